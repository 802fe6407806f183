"""Answers before the annotators, in Argilla.

For notebooks: `from annotation import push_frame`. Nothing is loaded before it is asked for, so that commands start at
once.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from annotation.push.frames import push_frame

__all__ = ["push_frame"]


def __getattr__(name: str) -> object:
    """A function of the Python API, imported now.

    Raises:
        AttributeError: there is no such function.
    """
    if name not in __all__:
        raise AttributeError(f"module 'annotation' has no attribute {name!r}")
    from annotation.push import frames

    return getattr(frames, name)


def __dir__() -> list[str]:
    """The names of the module, those of the Python API among them."""
    return sorted({*globals(), *__all__})
