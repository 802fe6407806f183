"""Argilla's SDK, imported late: it takes seconds, because it loads pandas and datasets."""

import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argilla as rg


@cache
def load_sdk() -> Any:
    with warnings.catch_warnings():
        # One of its models is written for pydantic 1; nobody who sees this warning can do anything about it.
        warnings.simplefilter("ignore", DeprecationWarning)
        import argilla
    return argilla


@cache
def client_class() -> Any:
    """The SDK's client without the request by which it greets the server, which also sets up Python's root logger."""

    class Client(load_sdk().Argilla):  # type: ignore[misc]
        # As a class of its own it is also never what the SDK takes for the default client of a notebook.
        def _validate_connection(self) -> None: ...

    return Client


@cache
def unconnected() -> "rg.Argilla":
    """A client for definitions, which ask for one although they send nothing."""
    return client_class()(api_url="http://no-server.invalid", api_key="-")
