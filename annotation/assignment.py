"""What a record is before annotators for, and who gets it: a metadata property of its own beside the record's content.

Most records have none: they are to be labelled, by as many people as their dataset waits for. The property is declared
nowhere, so that the server returns it to owners and admins only, and no push of a record's content changes it.

Source: annotation/contracts/datasets.md#assignments.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, ValidationError

from pipeline.errors import ArgillaError
from pipeline.schema import Frozen

ASSIGNMENT = "citejury_assignment"
"""The metadata property of the record."""
Purpose = Literal["label", "control", "repeat", "practice"]
MIXED_IN: tuple[Purpose, ...] = ("control", "repeat")
"""What comes to annotators among their other work, at a rate, so that nobody can tell which it is."""
DEFAULT_RATE = 0.1
"""The rate at which they come where nobody says another."""
_SET_APART: tuple[Purpose, ...] = (*MIXED_IN, "practice")


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
    """Of a control or a repeat: which share of each person's units in the dataset all such are to be; None elsewhere.
    The highest among hers counts."""
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
    """What the record is for, as the server returned it to an owner or admin; `COMMON` where nothing is said.

    Raises:
        ArgillaError: as for `read_assignment`.
    """
    said = (record.get("metadata") or {}).get(ASSIGNMENT)
    return read_assignment(said, str(record.get("external_id") or record.get("id"))) if said else COMMON


def read_assignment(said: Any, record: str) -> Assignment:
    """What `record` is for, by its assignment; what somebody else put there is none, as the queue has it.

    Raises:
        ArgillaError: it is one of those whose answers are not to be counted among all others, and cannot be read.
    """
    try:
        return Assignment.model_validate(said)
    except ValidationError as error:
        purpose = said.get("purpose") if isinstance(said, Mapping) else None
        if purpose not in _SET_APART:
            return COMMON
        wrong = ", ".join(f"`{'.'.join(map(str, each['loc']))}`" for each in error.errors())
        raise ArgillaError(
            f"The record {record!r} is a {purpose} by its metadata property `{ASSIGNMENT}`, and this cannot be read: "
            f"{wrong}. Mend or delete the record, or use the version of citejury that wrote it."
        ) from error
