"""Answers before the annotators, in Argilla.

For notebooks: `from annotation import task_settings`. Nothing is loaded before it is asked for, so that
commands start at once.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from annotation.argilla.tasks import task_settings

__all__ = ["task_settings"]


def __getattr__(name: str) -> object:
    """A function of the Python API, imported now.

    Raises:
        AttributeError: there is no such function.
    """
    if name == "task_settings":
        from annotation.argilla.tasks import task_settings

        return task_settings
    raise AttributeError(f"module 'annotation' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The names of the module, those of the Python API among them."""
    return sorted({*globals(), *__all__})
