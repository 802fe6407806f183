"""Runs a module of ours in the server's own environment, which holds argilla-server and not citejury.

`python -P start.py MODULE …`: our three packages come from beside this file, and nothing else does.
"""

import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

_OURS = ("annotation", "exports", "pipeline")
_BESIDE = [str(Path(__file__).resolve().parents[2])]


class _Ours:
    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, _BESIDE) if name in _OURS else None


if __name__ == "__main__":
    sys.meta_path.insert(0, _Ours)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
