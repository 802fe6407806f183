"""The part of argilla-server that few teams use and that loads longest is loaded when it is first used.

Its jobs for the Hugging Face Hub import `datasets`, pandas and PyArrow: a fifth of the time of a start, and 110 MB.
(`argilla_server/jobs/hub_jobs.py`, read in 2.8.0.)
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from types import ModuleType
from typing import Any

LATE = "argilla_server.jobs.hub_jobs"


class LateModule(ModuleType):
    """A module that is run when something of it is asked for.

    The names that every module has are no such thing: `inspect` asks all modules for them, which runs the lazy modules
    of `importlib`.
    """

    def __getattr__(self, name: str) -> Any:
        """Run the module, once, and give what was asked for."""
        if name.startswith("__"):
            raise AttributeError(name)
        assert isinstance(self.__loader__, LateLoader)
        SourceFileLoader.exec_module(self.__loader__, self)
        self.__class__ = ModuleType  # type: ignore[assignment]  # an ordinary one from now on
        return getattr(self, name)


class LateLoader(SourceFileLoader):
    """Makes late modules."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module, empty."""
        return LateModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing yet."""


class LateModules(MetaPathFinder):
    """Finds the module where it is."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Where the module is; nothing for every other one, which the finders after this one look for."""
        spec = PathFinder.find_spec(name, path, target) if name == LATE else None
        if spec is None or spec.origin is None:
            return None
        return spec_from_file_location(name, spec.origin, loader=LateLoader(name, spec.origin))


def load_hub_jobs_late() -> None:
    """Let what imports the jobs for the Hub from now on get them as they are used."""
    sys.meta_path.insert(0, LateModules())
