"""Responses out of Argilla, and agreement on them.

For notebooks: `from exports import read_task, measure_agreement, find_disagreements`. Nothing is loaded before one of
them is asked for, so that commands start at once.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exports.measure.notebook import find_disagreements, measure_agreement
    from exports.reading.frames import read_task

__all__ = ["find_disagreements", "measure_agreement", "read_task"]


def __getattr__(name: str) -> object:
    """A function of the Python API, imported now.

    Raises:
        AttributeError: there is no such function.
    """
    if name not in __all__:
        raise AttributeError(f"module 'exports' has no attribute {name!r}")
    from exports.measure import notebook
    from exports.reading import frames

    return getattr(frames if name == "read_task" else notebook, name)


def __dir__() -> list[str]:
    """The names of the module, those of the Python API among them."""
    return sorted({*globals(), *__all__})
