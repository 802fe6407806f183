"""Responses out of Argilla, what the jury found in them, and how far it agrees.

For notebooks: `from exports import read_task, measure_results, measure_agreement, find_disagreements`. Nothing is
loaded before one of them is asked for, so that commands start at once.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exports.reading.frames import read_task
    from exports.report.notebook import find_disagreements, measure_agreement, measure_results

__all__ = ["find_disagreements", "measure_agreement", "measure_results", "read_task"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'exports' has no attribute {name!r}")
    from importlib import import_module

    module = "exports.reading.frames" if name == "read_task" else "exports.report.notebook"
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
