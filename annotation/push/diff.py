"""The difference between canonical records and what Argilla holds: new, unchanged, updated, refused or revised.

A record is refused whole, in all three tasks, where any of its units was answered and now holds something else: an
answer must not be judged in one version here and in another one there. A revision is another record, with an id of its
own and the first one's in its hidden metadata as `revision_of`; the first one stays with its answers.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args
from uuid import UUID, uuid5

from annotation.campaign.file import Place
from annotation.campaign.setup import JuryDataset
from annotation.client import Argilla
from annotation.display import HIDDEN, HIDDEN_VERSION, content_hash, to_records
from annotation.labels import TASKS, TaskName
from annotation.tasks import short_hash
from annotation.wording import Wording
from pipeline.records import RECORD_NAMESPACE, QueryResponse, is_uuid

REVISION_OF = "revision_of"
"""In the hidden metadata of a revision: the `record_uuid` of the record that it is a later version of."""
SUGGESTION_HASH = "suggested"
"""In the hidden metadata of a record with suggestions: a hash of them."""

Fate = Literal["new", "unchanged", "updated", "refused", "revised"]
Decorate = Callable[[TaskName, dict[str, Any]], None]
Progress = Callable[[str, int, int | None], None]
"""Is told what is going on, how much of it is done, and of how much; None where that is not known."""


class TaskCount(NamedTuple):
    """What became of one task's units."""

    new: int = 0
    """Not in Argilla before."""
    unchanged: int = 0
    """There already as they are."""
    updated: int = 0
    """Changed, and answered by nobody, or changed only in what annotators do not see."""
    refused: int = 0
    """Changed after somebody answered the record."""
    revised: int = 0
    """New as part of a revision."""


class Target(NamedTuple):
    """Where records go: a place and its three datasets."""

    place: Place
    """Workspace, language and round."""
    datasets: Mapping[TaskName, JuryDataset]
    """The datasets by task."""
    wording: Wording
    """What annotators read there."""


class Stored(NamedTuple):
    """One unit that Argilla holds."""

    record_id: str
    """Argilla's own id; empty where this push is what puts it in."""
    position: int
    """How many records of the dataset come before it."""
    record_uuid: str
    """The canonical record that it is a unit of; empty where it is not ours."""
    digest: str
    """Hash of everything that a push sets."""
    version: int
    """Version of the hidden metadata, on which the next hash depends."""
    judged: str
    """Hash of what annotators judge by."""
    answered: bool
    """Whether there is any response, drafts and discards included."""


class Unit(NamedTuple):
    """One record body of one task, and what is to become of it."""

    task: TaskName
    """Its task."""
    body: dict[str, Any]
    """What Argilla is sent."""
    fate: Fate
    """What is to become of it."""
    record_id: str = ""
    """Argilla's id of the record that it replaces; empty where there is none."""
    position: int = 0
    """How many records came before that one when the dataset was read."""


def stored_units(
    argilla: Argilla, dataset: JuryDataset, progress: Progress = lambda what, done, total: None
) -> dict[str, Stored]:
    """What the dataset holds, by external id; a record that is not ours counts as one that differs from all of ours.

    `progress` is told the dataset's name, how many records were read, and of how many.
    """
    found: dict[str, Stored] = {}
    for total, page in argilla.record_pages(dataset.id):
        for item in page:
            found[item["external_id"] or item["id"]] = stored_unit(item, len(found))
        progress(dataset.name, len(found), total)
    return found


def stored_unit(item: Mapping[str, Any], position: int) -> Stored:
    """The unit that Argilla describes, at its place in the dataset."""
    hidden = (item.get("metadata") or {}).get(HIDDEN) or {}
    version = hidden.get("version", HIDDEN_VERSION)
    return Stored(
        record_id=item["id"],
        position=position,
        record_uuid=str(hidden.get("record_uuid", "")),
        digest=digest(item),
        version=version,
        judged=judged_hash(item, version) if hidden else "",
        answered=bool(item.get("responses")),
    )


def digest(record: Mapping[str, Any]) -> str:
    """A hash over everything that a push sets: the fields and our hidden metadata."""
    return short_hash([record["fields"], (record.get("metadata") or {}).get(HIDDEN)])


def judged_hash(record: Mapping[str, Any], version: int = HIDDEN_VERSION) -> str:
    """A hash of what annotators judge by, suggestions included, to compare with one of the version.

    Raises:
        ArgillaError: the record is not one of ours.
    """
    return f"{content_hash(record, version)}{record['metadata'][HIDDEN].get(SUGGESTION_HASH, '')}"


def is_answered_change(known: Stored, body: Mapping[str, Any]) -> bool:
    """Whether the body would change what somebody has judged; what she does not judge by may change."""
    return known.answered and known.judged != judged_hash(body, known.version)


class Diff:
    """What is to become of each unit of one place, and the counts of it so far."""

    def __init__(
        self,
        target: Target,
        stored: Mapping[TaskName, Mapping[str, Stored]],
        revise: bool = False,
        decorate: Decorate = lambda task, body: None,
    ) -> None:
        """Start from what Argilla holds; `decorate` adds to each body what is not part of the record."""
        self.target = target
        self.stored = {task: dict(units) for task, units in stored.items()}
        self.revise = revise
        self.decorate = decorate
        self.counts: dict[TaskName, Counter[Fate]] = {task: Counter() for task in TASKS}
        self.refused: list[str] = []
        self.revised: list[str] = []
        self.pushed: dict[str, str] = {}
        self.units_by_record: dict[str, set[tuple[TaskName, str]]] = {}
        for task, units in self.stored.items():
            for external_id, unit in units.items():
                self.units_by_record.setdefault(unit.record_uuid, set()).add((task, external_id))

    def units(self, record: QueryResponse) -> list[Unit]:
        """The record's units, each with its fate; all changes are refused, or made a revision, where one of them is."""
        bodies = self.bodies(record)
        content = short_hash(bodies)
        if (before := self.pushed.get(record.record_uuid)) is not None and before != content:
            reason = "it comes twice with different content; the first one went in"
            return self.refuse(record.record_uuid, reason, bodies)
        answered = self.answered_changes(bodies)
        if not answered:
            self.pushed[record.record_uuid] = content
            self.keep_in_mind(record.record_uuid, bodies)
            return self.counted(bodies)
        revision = revision_of(record, bodies)
        revised = self.bodies(revision, revision_of=record.record_uuid)
        is_there = any(body["external_id"] in self.stored[task] for task, body in revised)
        if (self.revise or is_there) and not self.answered_changes(revised):
            self.pushed[record.record_uuid] = content
            self.units_by_record.pop(record.record_uuid, None)
            if not is_there:
                self.revised.append(f"{record.record_uuid}: now also {revision.record_uuid}")
            return self.counted(revised, new="revised")
        return self.refuse(record.record_uuid, f"changed after it was answered: {', '.join(answered)}", bodies)

    def bodies(self, record: QueryResponse, revision_of: str = "") -> list[tuple[TaskName, dict[str, Any]]]:
        """The bodies of the record's units with their tasks, in the order of the tasks."""
        found = [(task, body) for task, group in to_records(record, self.target.wording).items() for body in group]
        for task, body in found:
            if revision_of:
                body["metadata"][HIDDEN][REVISION_OF] = revision_of
            self.decorate(task, body)
        return found

    def answered_changes(self, bodies: Sequence[tuple[TaskName, Mapping[str, Any]]]) -> list[str]:
        """The units that were answered and now hold something else."""
        return [
            f"{task} {body['external_id']}"
            for task, body in bodies
            if (known := self.stored[task].get(body["external_id"])) is not None and is_answered_change(known, body)
        ]

    def refuse(self, record_uuid: str, reason: str, bodies: Sequence[tuple[TaskName, dict[str, Any]]]) -> list[Unit]:
        """The units of a record that does not go in; what is unchanged stays so."""
        self.refused.append(f"{record_uuid}: {reason}")
        units = []
        for task, body in bodies:
            known = self.stored[task].get(body["external_id"])
            same = known is not None and known.digest == digest(body)
            units.append(Unit(task, body, "unchanged" if same else "refused"))
        return self.count(units)

    def counted(self, bodies: Sequence[tuple[TaskName, dict[str, Any]]], new: Fate = "new") -> list[Unit]:
        """The units of a record that goes in, which from now on count as stored."""
        units = []
        for task, body in bodies:
            external_id, own = body["external_id"], digest(body)
            known = self.stored[task].get(external_id)
            fate: Fate = new if known is None else "unchanged" if known.digest == own else "updated"
            record_id, position, answered = (
                (known.record_id, known.position, known.answered) if known else ("", 0, False)
            )
            units.append(Unit(task, body, fate, record_id, position))
            if fate != "unchanged":
                record_uuid = body["metadata"][HIDDEN]["record_uuid"]
                self.stored[task][external_id] = Stored(
                    record_id, position, record_uuid, own, HIDDEN_VERSION, judged_hash(body), answered
                )
        return self.count(units)

    def count(self, units: list[Unit]) -> list[Unit]:
        """The units themselves, each counted under its fate."""
        for unit in units:
            self.counts[unit.task][unit.fate] += 1
        return units

    def keep_in_mind(self, record_uuid: str, bodies: Sequence[tuple[TaskName, Mapping[str, Any]]]) -> None:
        """Nothing; these units of the record are not left over."""
        self.units_by_record.get(record_uuid, set()).difference_update(
            (task, str(body["external_id"])) for task, body in bodies
        )

    def task_counts(self) -> dict[TaskName, TaskCount]:
        """The counts so far."""
        return {task: TaskCount(*(counts[fate] for fate in get_args(Fate))) for task, counts in self.counts.items()}

    def left_over(self) -> tuple[str, ...]:
        """A line for each unit in Argilla that its record, seen in this push, no longer has.

        The units of a record that was revised are none of them: they are the earlier version.
        """
        return tuple(
            f"{task} {external_id}"
            for record_uuid in self.pushed
            for task, external_id in sorted(self.units_by_record.get(record_uuid, ()))
        )


def revision_of(record: QueryResponse, bodies: Sequence[tuple[TaskName, Mapping[str, Any]]]) -> QueryResponse:
    """The record under the id that its present content gives it: uuid5 of the old id and what is judged."""
    content = short_hash([[task, body["external_id"], judged_hash(body)] for task, body in bodies])
    old = record.record_uuid
    namespace, name = (UUID(old), content) if is_uuid(old) else (RECORD_NAMESPACE, f"{len(old)}:{old}{content}")
    return record.model_copy(update={"record_uuid": str(uuid5(namespace, name))})
