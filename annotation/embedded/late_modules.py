"""The part of argilla-server that few teams use and that loads longest is loaded when it is first used.

Its jobs for the Hugging Face Hub import `datasets`, pandas and PyArrow: a fifth of the time of a start, and 110 MB.
(`argilla_server/jobs/hub_jobs.py`, read in 2.8.0.)
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

LATE = "argilla_server.jobs.hub_jobs"


class LateModules(MetaPathFinder):
    """Finds the module where it is, and puts off running it until something of it is asked for."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Where the module is; nothing for every other one, which the finders after this one look for."""
        spec = PathFinder.find_spec(name, path, target) if name == LATE else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def load_hub_jobs_late() -> None:
    """Let what imports the jobs for the Hub from now on get them as they are used."""
    sys.meta_path.insert(0, LateModules())
