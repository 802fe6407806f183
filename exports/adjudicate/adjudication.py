"""Adjudication: the datasets that adjudicators see, what they are shown of the votes, and what they decided."""

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, NamedTuple

from annotation.display import HIDDEN, shown_anew
from annotation.labels import DISPUTED, LABELS, TaskName
from annotation.rendering import one_line, plain_text
from annotation.tasks import DatasetDefinition, define_dataset
from annotation.wording import ANSWERS, NOTES, Wording
from exports.agreement.disagreements import Disagreement
from exports.agreement.ratings import EPOCH, MISSING, YES, Ratings
from exports.reading.decisions import Decision, Decisions

AdjudicationKind = Literal["blind", "votes", "quotes"]
"""What adjudicators see beside the unit: nothing, the votes, or that answers differ with words to look at."""
ROUND = "adjudication"
OWN = "citejury_own"
"""Hidden metadata of a record: ids of the adjudicators who labelled its unit themselves."""
_NOTE_LENGTH = 2000


class UnitId(NamedTuple):
    """One unit that an adjudicator may settle."""

    task: TaskName
    record_uuid: str
    """Id of its record."""
    chunk_id: str
    """Id of its passage in retrieval; empty in the other tasks."""

    @property
    def external_id(self) -> str:
        """Its id in Argilla (annotation/contracts/datasets.md#records)."""
        return f"{self.record_uuid}:{self.chunk_id}" if self.chunk_id else self.record_uuid

    def __str__(self) -> str:
        """Task and id in Argilla."""
        return f"{self.task} {self.external_id}"


class Undecided(NamedTuple):
    """A unit and label on which adjudicators differ."""

    unit: UnitId
    label: str
    votes: dict[str, bool]
    """What each adjudicator said, by name."""


class Outcome(NamedTuple):
    """What adjudicators said."""

    decisions: Decisions
    """Where they agree, or one alone decided."""
    undecided: list[Undecided]
    """Where they differ: there is no decision."""


def adjudication_workspace(workspace: str, kind: AdjudicationKind) -> str:
    """The workspace of its own for one kind of adjudication: who works blind must not see the votes in another dataset.

    Argilla has no assignment: whoever is a member of a workspace sees all its datasets.
    """
    return f"{workspace}-{ROUND}" if kind == "blind" else f"{workspace}-{ROUND}-{kind}"


def define_adjudication(
    task: TaskName,
    wording: Wording,
    kind: AdjudicationKind,
    min_submitted: int = 1,
    lacking: Collection[str] = (),
) -> DatasetDefinition:
    """The dataset of a task for adjudicators: as its annotators have it, with a field of its kind unless it is blind.

    `lacking` names fields that one of an earlier version goes without.
    """
    added: dict[str, str] = {} if kind == "blind" else {kind: wording.adjudication[kind]}
    return define_dataset(task, wording, min_submitted, ROUND, added, lacking)


def to_adjudicate(
    record: Mapping[str, Any],
    task: TaskName,
    wording: Wording,
    kind: AdjudicationKind,
    labels: Collection[str],
    own: Collection[str] = (),
    lacking: Collection[str] = (),
    beside: str = "",
) -> dict[str, Any]:
    """The body of an Argilla record for adjudicators: fields, hidden metadata and external id of the one it is from.

    `labels` are what she is to decide, `own` the ids of adjudicators who labelled the unit themselves, `lacking` the
    names of fields that the adjudicators' dataset goes without, `beside` the text of the field `quotes`. What the
    record was for before annotators stays behind.
    """
    shown = shown_anew(record)
    fields = {name: text for name, text in shown["fields"].items() if name not in lacking}
    if kind == "votes":
        fields[kind] = votes_text(record["responses"] or (), task, wording, labels)
    elif kind == "quotes":
        fields[kind] = beside
    metadata = {HIDDEN: shown["metadata"][HIDDEN], DISPUTED: [label for label in LABELS[task] if label in labels]}
    if own:
        metadata[OWN] = sorted(own)
    return {"external_id": record["external_id"], "fields": fields, "metadata": metadata}


def votes_text(
    responses: Iterable[Mapping[str, Any]], task: TaskName, wording: Wording, labels: Collection[str] | None = None
) -> str:
    """How often each question was answered yes and no, and the notes, escaped for a field without Markdown.

    `labels` are the questions to decide; all of the task where it is None.

    Nobody is named, yes comes before no, and notes are sorted by their text: no order tells who said what.
    """
    values = [response["values"] or {} for response in responses if response["status"] == "submitted"]
    lines = []
    for label in (each for each in LABELS[task] if labels is None or each in labels):
        votes = Counter(value[label]["value"] for value in values if label in value)
        counted = " · ".join(f"{wording.answers[answer]}: {votes[answer]}" for answer in ANSWERS)
        lines.append(f"{wording.questions[task][label].title}\n{counted}")
    notes = sorted(
        note for value in values if (note := one_line((value.get(NOTES) or {}).get("value") or "", _NOTE_LENGTH))
    )
    if notes:
        lines.append("\n".join([wording.adjudication[NOTES], *(f"– {note}" for note in notes)]))
    return plain_text("\n\n".join(lines))


Split = Mapping[UnitId, tuple[str, ...]]
"""The labels on which annotators differ, by unit."""


def split_units(disagreements: Iterable[Disagreement], top: int | None = None) -> Split:
    """What ranked disagreements are on, the units in order of their first; at most `top` of them."""
    found: dict[UnitId, tuple[str, ...]] = {}
    for item in disagreements:
        unit = UnitId(item.task, item.record_uuid, item.chunk_id)
        found[unit] = (*found.get(unit, ()), item.label)
    return dict(itertools.islice(found.items(), top))


class Asked(NamedTuple):
    """What adjudicators were asked on one unit."""

    labels: frozenset[str]
    """The labels to decide; an adjudication of an earlier version asked for all."""
    own: frozenset[str]
    """Names of adjudicators who labelled the unit themselves."""
    disputed: frozenset[str] = frozenset()
    """Those of the labels on which a judge and the jury differ."""

    def with_more(self, other: "Asked | None") -> "Asked":
        """What both ask, as where the same unit was pushed blind and with votes."""
        if other is None:
            return self
        return Asked(self.labels | other.labels, self.own | other.own, self.disputed | other.disputed)


def decide(tables: Sequence[Ratings], asked: Mapping[UnitId, Asked]) -> Outcome:
    """What adjudicators decided on every label that they were asked for, from their responses to the tasks.

    Where several answered and agree, all of them are named; where they differ, there is no decision. What they answered
    besides, as they have to on stock Argilla, decides nothing.
    """
    rows: list[Decision] = []
    undecided: list[Undecided] = []
    for ratings in tables:
        for unit, responses in enumerate(_responses_by_unit(ratings)):
            named = UnitId(ratings.task, ratings.records[ratings.unit_records[unit]], ratings.unit_chunks[unit])
            wanted = asked.get(named) or Asked(frozenset(LABELS[ratings.task]), frozenset())
            for column, label in enumerate(LABELS[ratings.task]):
                if label not in wanted.labels:
                    continue
                given = [at for at in responses if ratings.values[at, column] != MISSING]
                votes = {
                    ratings.annotators[ratings.response_annotators[at]]: bool(ratings.values[at, column] == YES)
                    for at in given
                }
                if len(set(votes.values())) > 1:
                    undecided.append(Undecided(named, label, votes))
                elif votes:
                    moment = max(int(ratings.moments[at]) for at in given)
                    own = not wanted.own.isdisjoint(votes)
                    rows.append(_to_decision(named, label, votes, moment, own, label in wanted.disputed))
    return Outcome(Decisions(tuple(rows)), undecided)


def _responses_by_unit(ratings: Ratings) -> list[list[int]]:
    """The numbers of the responses to each unit, in order."""
    found: list[list[int]] = [[] for _ in ratings.unit_chunks]
    for response, unit in enumerate(ratings.units.tolist()):
        found[unit].append(response)
    return found


def _to_decision(
    unit: UnitId, label: str, votes: Mapping[str, bool], moment: int, own: bool, disputed: bool
) -> Decision:
    """The decision that all votes agree on; `moment` is the last of them, in microseconds since 1970 UTC.

    `own` says whether one of those who decided had labelled the unit, `disputed` whether a judge and the jury differ.
    """
    return Decision(
        task=unit.task,
        record_uuid=unit.record_uuid,
        chunk_id=unit.chunk_id,
        label=label,
        decision=next(iter(votes.values())),
        adjudicator="; ".join(sorted(votes)),
        created_at=(EPOCH + timedelta(microseconds=moment)).isoformat(),
        own=own,
        disputed=disputed,
    )
