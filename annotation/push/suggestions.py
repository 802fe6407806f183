"""A judge's proposals beside the records of a round of their own, where annotators find them filled in.

They anchor annotators and inflate agreement, so they never go into another round.
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, ValidationError, model_validator

from annotation.argilla.client import Argilla
from annotation.argilla.display import HIDDEN, unit_id
from annotation.argilla.labels import LABELS, TaskName
from annotation.argilla.tasks import short_hash
from annotation.campaign.setup_plan import parts_of
from annotation.push.diff import SUGGESTION_HASH, Decorate, Target
from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.schema import Frozen
from pipeline.records.run import numbered_lines

GOOD = "ok"


class ProposedLabel(Frozen):
    """The judge's answer to one question."""

    value: bool
    """Yes or no."""
    p_yes: Annotated[float, Field(ge=0, le=1)]
    """Probability that the answer is yes; 1 or 0 by the value where a judge gives none. Files of earlier versions call
    it `confidence`, and are read."""

    @model_validator(mode="before")
    @classmethod
    def _read_other_forms(cls, value: Any) -> Any:
        if isinstance(value, dict) and "confidence" in value and "p_yes" not in value:
            return {"p_yes" if name == "confidence" else name: field for name, field in value.items()}
        if isinstance(value, dict) and value.get("p_yes") is None and isinstance(value.get("value"), bool):
            return {**value, "p_yes": float(value["value"])}
        return value


class Judgement(Frozen):
    """The judge's answers to one unit: a line of `citejury annotation judge`, as far as a proposal needs it."""

    record_uuid: str
    """The record."""
    task: TaskName
    """The task."""
    chunk_id: str | None = None
    """The passage in retrieval; None or empty in the other tasks."""
    labels: dict[str, ProposedLabel] = Field(default_factory=dict)
    """The answers by label."""
    status: str
    """`ok`, or why the answers cannot be used."""


class Judgements(NamedTuple):
    labels: dict[tuple[TaskName, str], dict[str, ProposedLabel]]  # by task and `unit_id`
    skipped: dict[str, int]  # by their status


def read_judgements(path: Path) -> Judgements:
    """The usable judgements of the file."""
    labels: dict[tuple[TaskName, str], dict[str, ProposedLabel]] = {}
    skipped: Counter[str] = Counter()
    bad: list[str] = []
    lines = 0
    for number, line in numbered_lines(path):
        lines += 1
        try:
            judgement = read_judgement(line)
            unit = (judgement.task, unit_of(judgement))
            if judgement.status != GOOD:
                skipped[judgement.status] += 1
            elif unit in labels:
                raise InputError(f"a second judgement of {unit[0]} {unit[1]!r}")
            else:
                labels[unit] = dict(judgement.labels)
        except InputError as error:
            bad.append(f"line {number}: {error}")
    if bad:
        raise BadRowsError(f"{path.name!r} has {len(bad)} lines that cannot be used; nothing was pushed:", bad)
    if not lines:
        raise InputError(f"{path.name!r} holds no judgement: it is empty.")
    return Judgements(labels, dict(sorted(skipped.items())))


def read_judgement(line: str) -> Judgement:
    """The judgement of one line of JSON; InputError where it is none, or names a label that its task does not have."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON ({error})") from error
    if not isinstance(value, dict):
        raise InputError("no JSON object")
    try:
        judgement = Judgement.model_validate({name: value[name] for name in Judgement.model_fields if name in value})
    except ValidationError as error:
        raise InputError(field_problems(error)) from error
    unknown = sorted(set(judgement.labels) - set(LABELS[judgement.task]))
    if unknown:
        raise InputError(f"{judgement.task} has no label {', '.join(map(repr, unknown))}")
    return judgement


def field_problems(error: ValidationError) -> str:
    """Without what they hold."""
    found = error.errors(include_input=False)
    return "; ".join(f"`{'.'.join(map(str, each['loc']))}`: {each['msg']}" for each in found)


def unit_of(judgement: Judgement) -> str:
    """The `unit_id` of its unit; InputError where it is of retrieval and names no passage."""
    if judgement.task != "retrieval":
        return judgement.record_uuid
    if not judgement.chunk_id:
        raise InputError("a judgement of retrieval without `chunk_id`")
    return f"{judgement.record_uuid}:{judgement.chunk_id}"


@dataclass
class Proposals:
    """What adds the judge's answers to the bodies of a push, and knows for how many units it had some."""

    judgements: Judgements
    used: set[tuple[TaskName, str]] = field(default_factory=set)

    def decorator(self, argilla: Argilla, target: Target) -> Decorate:
        """As suggestions, and a hash of them in its hidden metadata."""
        question_ids = {
            (task, question["name"]): question["id"]
            for task, dataset in target.datasets.items()
            for question in parts_of(argilla, dataset.id, "questions")
        }

        def decorate(task: TaskName, body: dict[str, Any]) -> None:
            unit = (task, unit_id(body))
            if labels := self.judgements.labels.get(unit):
                self.used.add(unit)
                body["suggestions"] = [
                    {
                        "question_id": question_ids[task, name],
                        "value": "yes" if label.value else "no",
                        "score": round(label.p_yes if label.value else 1 - label.p_yes, 6),  # of the value proposed
                        "type": "model",
                        "agent": "judge",  # annotators see it beside each proposal
                    }
                    for name in LABELS[task]
                    if (label := labels.get(name))
                ]
                hashed = {name: [label.value, label.p_yes] for name, label in labels.items()}
                body["metadata"][HIDDEN][SUGGESTION_HASH] = short_hash(hashed)

        return decorate
