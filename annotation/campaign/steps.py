"""What set-up looks at and does, in words."""

from typing import Literal, NamedTuple

Done = Literal["created", "finished", "updated", "added", "removed", "kept"]


class Step(NamedTuple):
    """One thing that set-up looks at, and what it does: `kept` where nothing is to do."""

    kind: Literal["workspace", "dataset", "annotator"]
    """What it is."""
    name: str
    """Its name."""
    done: Done
    """What is done about it."""
    note: str = ""
    """What differs, or a remark; empty where there is none."""
    workspace: str = ""
    """The workspace that it is in."""
