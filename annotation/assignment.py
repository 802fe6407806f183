"""What a record is before annotators for, and who gets it: a metadata property of its own beside the record's content.

Most records have none: they are to be labelled, by as many people as their dataset waits for. The property is declared
nowhere, so that the server returns it to owners and admins only, and no push of a record's content changes it.

Source: annotation/contracts/datasets.md#assignments.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from pipeline.schema import Frozen

ASSIGNMENT = "citejury_assignment"
"""The metadata property of the record."""
Purpose = Literal["label", "control", "repeat", "practice"]
MIXED_IN: tuple[Purpose, ...] = ("control", "repeat")
"""What comes to annotators among their other work, at a rate, so that nobody can tell which it is."""


class Assignment(Frozen):
    """What one record is for, and who gets it."""

    purpose: Purpose = "label"
    """`label`: its answers count; `control`: its answers are known; `repeat`: shows one person a unit of hers again;
    `practice`: its answers are known and explained to who submitted hers."""
    needed: int | None = Field(default=None, ge=1)
    """How many submissions it waits for; None for as many as its dataset does."""
    users: tuple[str, ...] = ()
    """Ids of the only users who get it; empty where all members do."""
    rate: float | None = Field(default=None, gt=0, le=0.5)
    """Of a control or a repeat: which share of each person's units in the dataset such are to be; None elsewhere."""
    answers: dict[str, bool] = Field(default_factory=dict)
    """The known answers by label; labels without a known answer are missing."""
    explanations: dict[str, str] = Field(default_factory=dict)
    """Why each known answer of a practice case is right, by label, in the language of its questions."""
    kind: str = ""
    """How a control came about, such as `known` or `foreign_passage`; empty for all others."""
    repeats: str = ""
    """External id of the record that it shows again; empty where it shows none again."""


COMMON = Assignment()
"""What a record without the property is for."""


def assignment_of(record: Mapping[str, Any]) -> Assignment:
    """What the record is for, as the server returned it to an owner or admin; `COMMON` where nothing is said."""
    said = (record.get("metadata") or {}).get(ASSIGNMENT)
    return Assignment.model_validate(said) if said else COMMON
