"""Import argilla-server 2.8.0: what has to be changed for that, and what of it has no use here and is left out."""

import sys
import warnings
from importlib import import_module
from types import ModuleType
from typing import Any

_ENGINES = {"elasticsearch": "ElasticSearchEngine", "opensearch": "OpenSearchEngine"}


def import_argilla_server() -> None:
    """Before anything else imports a part of it. `table` has these changes too."""
    if "argilla_server" in sys.modules:
        return
    import fastapi
    from rq import decorators

    for module, engine in _ENGINES.items():
        empty = ModuleType(f"argilla_server.search_engine.{module}")
        setattr(empty, engine, None)
        sys.modules[empty.__name__] = empty
    job, query = decorators.job, fastapi.Query
    decorators.job = lambda queue, **named: job(queue, queue.connection, **named)
    without_help: Any = lambda *default, help=None, **named: query(*default, **named)  # noqa: E731
    fastapi.Query = without_help
    try:
        with warnings.catch_warnings(action="ignore"):  # of names that are to go one day
            import_module("argilla_server")
    finally:
        fastapi.Query = query
