"""The demo's four annotators: how each of them judges each unit, from the verdicts written for the demo.

Everything is drawn from hashes of names, so that the demo gives the same figures on every machine.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources.abc import Traversable
from typing import Any, Literal, NamedTuple

from annotation.labels import LABELS, TaskName

# How often an annotator departs from the verdict on a label that people honestly see differently.
HARD_SHARE = 0.3
# One unit in so many is left to whoever tries the demo.
LEFT_SHARE = 1 / 9
# As people do, one in so many is left as a draft, and one in so many is discarded.
DRAFT_SHARE = 0.015
DISCARD_SHARE = 0.015


class Unit(NamedTuple):
    """One thing to judge: an answer of the demo, or one of its passages."""

    task: TaskName
    provider: str
    narrative_id: str
    chunk_rank: int
    """Rank of the passage, counted from 1; 0 for a whole answer."""


class Juror(NamedTuple):
    """One demo annotator."""

    username: str
    first_name: str
    last_name: str
    care: float
    """How rarely she slips: 1 is never."""


class Jury(NamedTuple):
    """The demo's annotators, the verdicts they are drawn from and the notes they leave."""

    jurors: tuple[Juror, ...]
    verdicts: Mapping[str, Any]
    notes: Mapping[tuple[str, str], str]
    """Text of a note by answer (`provider/narrative_id`) and task."""


def read_jury(folder: Traversable) -> Jury:
    """The jury that the demo's data folder describes."""
    people = json.loads((folder / "annotators.json").read_text(encoding="utf-8"))
    return Jury(
        jurors=tuple(Juror(**each) for each in people["annotators"]),
        verdicts=json.loads((folder / "verdicts.json").read_text(encoding="utf-8")),
        notes={(each["answer"], each["task"]): each["text"] for each in people["notes"]},
    )


def answers_unit(juror: Juror, unit: Unit, jurors: Sequence[Juror]) -> bool:
    """Whether this annotator judges this unit: three of four do, and nobody the units that are left over."""
    if chance("left", *map(str, unit)) < LEFT_SHARE:
        return False
    absent = int(chance("absent", *map(str, unit)) * len(jurors))
    return jurors.index(juror) != absent


def status(juror: Juror, unit: Unit) -> Literal["submitted", "draft", "discarded"]:
    """What the annotator does with the unit in the end; nearly always she submits."""
    drawn = chance("status", juror.username, *map(str, unit))
    if drawn < DRAFT_SHARE:
        return "draft"
    return "discarded" if drawn < DRAFT_SHARE + DISCARD_SHARE else "submitted"


def judge(jury: Jury, juror: Juror, unit: Unit) -> dict[str, bool]:
    """The annotator's label for each of the task's labels."""
    entry = jury.verdicts[f"{unit.provider}/{unit.narrative_id}"]
    verdict, hard = entry[unit.task], entry.get("hard", {}).get(unit.task, [])
    if unit.task == "retrieval":
        verdict, hard = verdict[unit.chunk_rank - 1], (hard[unit.chunk_rank - 1] if hard else [])
    return {label: verdict[label] ^ departs(juror, unit, label, label in hard) for label in LABELS[unit.task]}


def departs(juror: Juror, unit: Unit, label: str, is_hard: bool) -> bool:
    """Whether the annotator sees this label otherwise than the verdict."""
    share = HARD_SHARE if is_hard else 1 - juror.care
    return chance(juror.username, label, *map(str, unit)) < share


def note(jury: Jury, juror: Juror, unit: Unit) -> str:
    """What the annotator writes beside her labels; the first one who judges a unit leaves its note, if it has one."""
    first = next((each for each in jury.jurors if answers_unit(each, unit, jury.jurors)), None)
    return jury.notes.get((f"{unit.provider}/{unit.narrative_id}", unit.task), "") if juror == first else ""


def chance(*words: str) -> float:
    """A number from 0 up to 1 that depends on the words alone, evenly spread."""
    digest = hashlib.sha256("\0".join(words).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
