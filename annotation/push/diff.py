"""The difference between canonical records and what Argilla holds: new, unchanged, updated, refused or revised.

A record is refused whole, in all tasks, where any of its units was answered and now holds something else: an
answer must not be judged in one version here and in another one there. A revision is another record, with an id of its
own and the first one's in its hidden metadata as `revision_of`; the first one stays with its answers.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple
from uuid import UUID, uuid5

from annotation.argilla import display
from annotation.argilla.client import Argilla
from annotation.argilla.labels import TaskName, is_of_passages
from annotation.argilla.marks import MarkedPassage, add_passages, can_be_marked
from annotation.argilla.rendering import rendered_answer
from annotation.argilla.tasks import COLUMN_FIELDS, MARKED_FIELD, short_hash
from annotation.argilla.units import assignment_of
from annotation.argilla.wording import Wording
from annotation.campaign.datasets import JuryDataset
from annotation.campaign.file import Place
from pipeline.records.schema import RECORD_NAMESPACE, QueryResponse, is_uuid, split_line

_REVISION_OF = "revision_of"
"""In the hidden metadata of a revision: the `record_uuid` of the record that it is a later version of."""

Change = Literal["new", "unchanged", "updated", "refused", "revised"]
_Body = tuple[TaskName, dict[str, Any]]  # what Argilla is sent of one unit, with the unit's task
Progress = Callable[[str, int, int | None], None]
"""Is told what is going on, how much of it is done, and of how much; None where that is not known."""


class TaskCount(NamedTuple):
    new: int = 0
    unchanged: int = 0
    updated: int = 0  # changed, and answered by nobody, or changed only in what annotators do not see
    refused: int = 0  # changed after somebody answered the record
    revised: int = 0


class Repair(NamedTuple):
    record_uuid: str
    repairs: Mapping[str, int]
    given_up: str  # why no Markdown is shown in it at all; empty where it is

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} × {count}" for kind, count in self.repairs.items())
        return f"{self.record_uuid}: {f'shown as written: {self.given_up}' if self.given_up else kinds}"


class Target(NamedTuple):
    place: Place
    datasets: Mapping[TaskName, JuryDataset]
    wording: Wording


class Stored(NamedTuple):
    record_id: str  # empty where this push is what puts it in
    position: int  # how many records of the dataset come before it
    record_uuid: str  # empty where it is not ours
    digest: str  # hash of everything that a push sets
    version: int  # on which the next hash depends
    judged: str  # hash of what annotators judge by
    answered: bool  # whether there is any response, drafts and discards included
    marked: str = ""  # hash of the text that marks are offsets into; empty where there can be none
    answer: str = ""
    """Hash of the answer and of who gave it to what; empty where that is not known, or the task does not show both."""
    run_id: str = ""  # empty where it is not known
    tells_causes: bool = True  # whether it tells apart what earlier versions called `unresolved`
    external_id: str = ""
    listed: str = ""  # the list of sources by which somebody answered


class Unit(NamedTuple):
    task: TaskName
    body: dict[str, Any]
    change: Change
    record_id: str = ""  # Argilla's id of the record that it replaces; empty where there is none
    position: int = 0  # how many records came before that one when the dataset was read


def stored_units(
    argilla: Argilla, dataset: JuryDataset, progress: Progress = lambda what, done, total: None
) -> dict[str, Stored]:
    """What the dataset holds, by `unit_id`; a record that is not ours counts as one that differs from all of ours."""
    found: dict[str, Stored] = {}
    for total, page in argilla.record_pages(dataset.id):
        for item in page:
            found[display.unit_id(item)] = stored_unit(item, len(found))
        progress(dataset.name, len(found), total)
    return found


def stored_unit(item: Mapping[str, Any], position: int) -> Stored:
    hidden = (item.get("metadata") or {}).get(display.HIDDEN) or {}
    provenance, version = hidden.get("provenance") or {}, hidden.get("version", display.HIDDEN_VERSION)
    answer = ""
    task = str(hidden.get("task"))
    shows_both = {"query", "answer"} <= set(COLUMN_FIELDS.get(task, ()))
    named = shows_both and provenance.get("model_name") and not hidden.get(_REVISION_OF)
    if named and assignment_of(item).purpose == "label":  # controls and the like repeat an answer
        query, text = (display.original_text(item, task, column) for column in ("query", "answer"))
        answer = _answer_hash(provenance, query, text)
    return Stored(
        record_id=item["id"],
        position=position,
        record_uuid=str(hidden.get("record_uuid", "")),
        digest=_digest(item),
        version=version,
        judged=display.content_hash(item, version) if hidden else "",
        answered=bool(item.get("responses")),
        marked=_marked_hash(item),
        answer=answer,
        run_id=str(provenance.get("run_id", "")),
        tells_causes="unresolved" not in (hidden.get("sources") or {}),
        external_id=item["external_id"] or "",
        listed=item["fields"].get("sources", "") if item.get("responses") else "",
    )


def _answer_hash(provenance: Mapping[str, str], query: str, answer: str) -> str:
    return short_hash([*(provenance.get(name, "") for name in ("model_name", "model_version", "arm")), query, answer])


def _digest(record: Mapping[str, Any]) -> str:
    hidden = (record.get("metadata") or {}).get(display.HIDDEN)
    if hidden and display.ASKED in hidden:  # a run that goes on changes no record of its
        hidden = {name: value for name, value in hidden.items() if name != display.ASKED}
    return short_hash([record["fields"], hidden])


def _is_answered_change(known: Stored, body: Mapping[str, Any]) -> bool:
    """What they do not judge by may change."""
    hidden = body["metadata"][display.HIDDEN]
    if not known.tells_causes and display.EARLIER_HASH in hidden:
        body = {**body, "metadata": {display.HIDDEN: {**hidden, "content_hash": hidden[display.EARLIER_HASH]}}}
    return known.answered and known.judged != display.content_hash(body, known.version)


def _moves_marks(known: Stored, body: Mapping[str, Any]) -> bool:
    """Whether the body would show otherwise what somebody may have marked: their marks would be on other words."""
    return known.answered and bool(known.marked) and known.marked != _marked_hash(body)


def touches_answers(known: Stored, body: Mapping[str, Any]) -> bool:
    return _is_answered_change(known, body) or _moves_marks(known, body)


def _marked_hash(record: Mapping[str, Any]) -> str:
    return short_hash(record["fields"][MARKED_FIELD]) if can_be_marked(record) else ""


class _WentIn(NamedTuple):
    content: str
    units: frozenset[tuple[TaskName, str]] | None  # None where a revision went in and all units of the earlier one stay


@dataclass
class Diff:
    target: Target
    stored: Mapping[TaskName, Mapping[str, Stored]]
    revise: bool
    lacking: Mapping[TaskName, Collection[str]]  # names of fields that older datasets do not have
    counts: Counter[tuple[TaskName, Change]] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    revised: list[str] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    went_in: dict[str, _WentIn] = field(default_factory=dict)

    def add(self, record: QueryResponse) -> list[Unit]:
        """The record's units, each with what is to become of it.

        Where one of them was answered and would change, all changes are refused, or become a revision. A record that
        comes twice in a push is refused the second time, unless it is the same.
        """
        units = self._compare(record)
        shown = rendered_answer(split_line(record)[0])
        if shown.repairs or shown.given_up:
            self.repairs.append(Repair(record.record_uuid, shown.repairs, shown.given_up))
        self.counts.update((unit.task, unit.change) for unit in units)
        return units

    def _compare(self, record: QueryResponse) -> list[Unit]:
        bodies = self._bodies(record)
        content = short_hash(bodies)
        before = self.went_in.get(record.record_uuid)
        if before is not None and before.content != content:
            return self._refuse(record, "it comes twice with different content; the first one went in", bodies)
        answered = self._answered_changes(bodies)
        if before is not None:
            revised = self._bodies(_revision_of(record, bodies), record.record_uuid) if answered else bodies
            return [Unit(task, body, "unchanged") for task, body in revised]
        if not answered:
            units = frozenset((task, display.unit_id(body)) for task, body in bodies)
            self.went_in[record.record_uuid] = _WentIn(content, units)
            return [self._unit(task, body, "new") for task, body in bodies]
        revision = _revision_of(record, bodies)
        revised = self._bodies(revision, record.record_uuid)
        is_there = any(self._held(task, body) for task, body in revised)
        if not (self.revise or is_there) or self._answered_changes(revised):
            return self._refuse(record, f"changed after it was answered: {', '.join(answered)}", bodies)
        self.went_in[record.record_uuid] = _WentIn(content, None)
        if not is_there:
            self.revised.append(f"{record.record_uuid}: now also {revision.record_uuid}")
        return [self._unit(task, body, "revised") for task, body in revised]

    def _bodies(self, record: QueryResponse, revision_of: str = "") -> list[_Body]:
        by_task = display.to_records(record, self.target.wording, self.target.datasets)
        found = [(task, body) for task, group in by_task.items() for body in group]
        for task, body in found:
            self._name(task, body, found)
            if revision_of:
                body["metadata"][display.HIDDEN][_REVISION_OF] = revision_of
            for name in self.lacking[task]:
                del body["fields"][name]
            if self.target.datasets[task].evidence != "off":
                add_passages(body, passages_of(record))
        return found

    def _name(self, task: TaskName, body: dict[str, Any], beside: Sequence[_Body]) -> None:
        """What is in Argilla keeps its id and, once somebody has answered, the list of sources as they saw it."""
        known = self._held(task, body)
        if known is not None:
            body["external_id"] = known.external_id or body["external_id"]
            body["fields"] |= {"sources": known.listed} if known.listed else {}
        elif is_of_passages(task) and body["external_id"] in self._ids_there[task]:
            taken = self._ids_there[task] | {each["external_id"] for _, each in beside}
            body["external_id"] = display.opaque_id(
                body["metadata"][display.HIDDEN]["record_uuid"], body["fields"]["chunk"], taken
            )

    @cached_property
    def _ids_there(self) -> Mapping[TaskName, frozenset[str]]:
        return {task: frozenset(unit.external_id for unit in units.values()) for task, units in self.stored.items()}

    def _held(self, task: TaskName, body: Mapping[str, Any]) -> Stored | None:
        return self.stored[task].get(display.unit_id(body))

    def _answered_changes(self, bodies: Sequence[_Body]) -> list[str]:
        return [
            f"{task} {display.unit_id(body)}"
            for task, body in bodies
            if (known := self._held(task, body)) and _is_answered_change(known, body)
        ]

    def _refuse(self, record: QueryResponse, reason: str, bodies: Sequence[_Body]) -> list[Unit]:
        self.refused.append(f"{record.record_uuid}: {reason}")
        held = [(task, body, self._held(task, body)) for task, body in bodies]
        return [
            Unit(task, body, "unchanged" if known and known.digest == _digest(body) else "refused")
            for task, body, known in held
        ]

    def _unit(self, task: TaskName, body: dict[str, Any], new: Change) -> Unit:
        known = self._held(task, body)
        if known is None:
            return Unit(task, body, new)
        stays = known.digest == _digest(body) or _moves_marks(known, body)
        stays = stays or (known.answered and not known.tells_causes)  # as it was when it was judged
        return Unit(task, body, "unchanged" if stays else "updated", known.record_id, known.position)

    def held(self, task: TaskName) -> int:
        return len(self.stored[task]) + self.counts[task, "new"] + self.counts[task, "revised"]

    def left_over(self) -> tuple[str, ...]:
        """A line for each unit in Argilla that its record, seen in this push, no longer has; of no revised record."""
        lines: dict[str, list[str]] = {record_uuid: [] for record_uuid in self.went_in}
        for task, units in self.stored.items():
            for unit, stored in sorted(units.items()):
                record = self.went_in.get(stored.record_uuid)
                if record and record.units is not None and (task, unit) not in record.units:
                    lines[stored.record_uuid].append(f"{task} {unit}")
        return tuple(line for found in lines.values() for line in sorted(found))


def passages_of(record: QueryResponse) -> list[MarkedPassage]:
    in_order = sorted(record.chunks, key=lambda passage: passage.chunk_rank)
    return [MarkedPassage(each.chunk_id, each.doc_id, each.chunk_rank, each.text) for each in in_order]


def _revision_of(record: QueryResponse, bodies: Sequence[_Body]) -> QueryResponse:
    """The record under the id that its present content gives it: uuid5 of the old id and what is judged."""
    content = short_hash([[task, display.unit_id(body), display.content_hash(body)] for task, body in bodies])
    old = record.record_uuid
    namespace, name = (UUID(old), content) if is_uuid(old) else (RECORD_NAMESPACE, f"{len(old)}:{old}{content}")
    return record.model_copy(update={"record_uuid": str(uuid5(namespace, name))})


class KnownAnswers:
    def __init__(self, stored: Iterable[Stored]) -> None:
        self._held: dict[str, dict[str, str]] = {}
        self._found: dict[str, str] = {}
        for unit in stored:
            if unit.answer:
                self._held.setdefault(unit.answer, {})[unit.record_uuid] = unit.run_id

    def other_id(self, record: QueryResponse) -> str:
        """The `record_uuid` under which the record's answer is there already; empty where it is not.

        What is there under its own id goes in as ever. So do two answers of one run: each was asked for, as a repeat.
        """
        told = record.provenance
        if not told.model_name or record.record_uuid in self._found:
            return self._found.get(record.record_uuid, "")
        held = self._held.setdefault(_answer_hash(told.model_dump(), record.query, record.answer), {})
        if record.record_uuid in held:
            return ""
        other = next((each for each, run_id in held.items() if not run_id or run_id != told.run_id), "")
        held[record.record_uuid] = told.run_id
        if other:
            self._found[record.record_uuid] = other
        return other
