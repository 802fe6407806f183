"""Canonical records into Argilla: a diff against what is there, then only what is new or changed.

A record is refused whole, in all three tasks, where any of its units was answered and now holds something else: an
answer must not be judged in one version here and in another one there. Everything else goes in. Responses are never
sent, so none can be overwritten; nothing is deleted.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from annotation.client import Argilla
from annotation.display import HIDDEN, HIDDEN_VERSION, content_hash, to_records
from annotation.labels import TASKS, TaskName
from annotation.setup import JuryDataset, find_datasets
from annotation.tasks import PRODUCTION, short_hash
from annotation.wording import Wording, read_wording
from pipeline.errors import ArgillaError
from pipeline.records import QueryResponse

POSITION = re.compile(r"position (\d+)")
BATCH_RECORDS = 500  # argilla-server 2.8.0, RECORDS_BULK_UPSERT_MAX_ITEMS
BATCH_BYTES = 8 * 1024 * 1024  # of JSON; a proxy in front often takes no more than 10 MB

Fate = Literal["new", "unchanged", "updated", "refused"]


class TaskCount(NamedTuple):
    """What became of one task's units."""

    new: int = 0
    unchanged: int = 0
    updated: int = 0
    refused: int = 0


class PushReport(NamedTuple):
    """What was pushed, or would be in a dry run."""

    tasks: dict[TaskName, TaskCount]
    refused: tuple[str, ...]
    """A line for each refused record: its `record_uuid` and why."""
    left_over: tuple[str, ...]
    """A line for each unit in Argilla that its record, pushed now, no longer has; it stays there."""


class Stored(NamedTuple):
    """One unit that Argilla holds."""

    record_uuid: str
    digest: str
    version: int
    content_hash: str
    answered: bool


class Unit(NamedTuple):
    """One record body of one task, and what is to become of it."""

    task: TaskName
    body: dict[str, Any]
    fate: Fate


def push_records(
    argilla: Argilla,
    workspace: str,
    records: Iterable[QueryResponse],
    locale: str | None = None,
    dry_run: bool = False,
    advance: Callable[[int], None] = lambda records: None,
    round_name: str = PRODUCTION,
) -> PushReport:
    """What became of each unit: new, unchanged, updated (changed, without any response), or refused.

    Pushing the same records again writes nothing. `locale` chooses the datasets where the round has several languages.
    `advance` is called after each record with how many are done. Memory grows with the number of units in
    Argilla, by a few hundred bytes each, not with the records pushed.

    Raises:
        NotFoundError: the workspace or one of its three datasets is missing.
        InputError: the round has datasets in several languages and `locale` is None.
        ArgillaError: Argilla refused a batch; the batches before it are in, and pushing again goes on from there.
    """
    datasets = find_datasets(argilla, workspace, locale, round_name)
    wording = read_wording(datasets["generation"].locale)
    stored = {task: stored_units(argilla, datasets[task]) for task in TASKS}
    batches = {task: Batch(argilla, datasets[task], dry_run) for task in TASKS}
    diff = Diff(stored, wording)
    for done, record in enumerate(records, start=1):
        for unit in diff.units(record):
            if unit.fate in ("new", "updated"):
                batches[unit.task].add(unit.body)
        advance(done)
    for batch in reversed(batches.values()):  # Argilla's home page shows the dataset that changed last first
        batch.send()
    return diff.report()


def stored_units(argilla: Argilla, dataset: JuryDataset) -> dict[str, Stored]:
    """What the dataset holds, by external id; a record that is not ours counts as one that differs from all of ours."""
    found: dict[str, Stored] = {}
    for _, page in argilla.record_pages(dataset.id):
        for item in page:
            hidden = (item.get("metadata") or {}).get(HIDDEN) or {}
            found[item["external_id"] or item["id"]] = Stored(
                record_uuid=str(hidden.get("record_uuid", "")),
                digest=digest(item),
                version=hidden.get("version", HIDDEN_VERSION),
                content_hash=content_hash(item, hidden["version"]) if hidden else "",
                answered=bool(item.get("responses")),
            )
    return found


def digest(record: Mapping[str, Any]) -> str:
    """A hash over everything that a push sets: the fields and our hidden metadata."""
    return short_hash([record["fields"], (record.get("metadata") or {}).get(HIDDEN)])


class Diff:
    """What is to become of each unit, and the counts of it so far."""

    def __init__(self, stored: Mapping[TaskName, Mapping[str, Stored]], wording: Wording) -> None:
        """Start from what Argilla holds."""
        self.stored = {task: dict(units) for task, units in stored.items()}
        self.wording = wording
        self.counts: dict[TaskName, Counter[Fate]] = {task: Counter() for task in TASKS}
        self.refused: list[str] = []
        self.pushed: dict[str, str] = {}
        self.units_by_record: dict[str, set[tuple[TaskName, str]]] = {}
        for task, units in self.stored.items():
            for external_id, unit in units.items():
                self.units_by_record.setdefault(unit.record_uuid, set()).add((task, external_id))

    def units(self, record: QueryResponse) -> list[Unit]:
        """The record's units, each with its fate; all changes are refused where one of them is."""
        bodies = [(task, body) for task, group in to_records(record, self.wording).items() for body in group]
        reason = self.reason_to_refuse(record, bodies)
        units = [Unit(task, body, self.fate(task, body, refused=bool(reason))) for task, body in bodies]
        for unit in units:
            self.counts[unit.task][unit.fate] += 1
        if reason:
            self.refused.append(f"{record.record_uuid}: {reason}")
        else:
            self.pushed[record.record_uuid] = short_hash(bodies)
            self.units_by_record.get(record.record_uuid, set()).difference_update(
                (task, body["external_id"]) for task, body in bodies
            )
        return units

    def fate(self, task: TaskName, body: Mapping[str, Any], refused: bool) -> Fate:
        """What is to become of one unit; what is unchanged stays so in a refused record too."""
        known = self.stored[task].get(body["external_id"])
        hidden = body["metadata"][HIDDEN]
        new = Stored(hidden["record_uuid"], digest(body), hidden["version"], hidden["content_hash"], answered=False)
        if known is not None and known.digest == new.digest:
            return "unchanged"
        if refused:
            return "refused"
        self.stored[task][body["external_id"]] = new._replace(answered=known is not None and known.answered)
        return "new" if known is None else "updated"

    def reason_to_refuse(self, record: QueryResponse, bodies: list[tuple[TaskName, dict[str, Any]]]) -> str:
        """Why the record must not go in; empty where it may.

        What annotators do not see, such as provenance, may change after an answer.
        """
        before = self.pushed.get(record.record_uuid)
        if before is not None and before != short_hash(bodies):
            return "it comes twice with different content; the first one went in"
        answered = [
            f"{task} {body['external_id']}"
            for task, body in bodies
            if (known := self.stored[task].get(body["external_id"])) is not None
            and known.answered
            and known.content_hash != content_hash(body, known.version)
        ]
        return f"changed after it was answered: {', '.join(answered)}" if answered else ""

    def report(self) -> PushReport:
        """The counts and lists of everything so far."""
        return PushReport(
            tasks={
                task: TaskCount(counts["new"], counts["unchanged"], counts["updated"], counts["refused"])
                for task, counts in self.counts.items()
            },
            refused=tuple(self.refused),
            left_over=tuple(
                f"{task} {external_id}"
                for record_uuid in self.pushed
                for task, external_id in sorted(self.units_by_record.get(record_uuid, ()))
            ),
        )


class Batch:
    """Bodies waiting for one dataset, sent whenever the server takes no more at once."""

    def __init__(self, argilla: Argilla, dataset: JuryDataset, dry_run: bool) -> None:
        """Start empty."""
        self.argilla = argilla
        self.dataset = dataset
        self.dry_run = dry_run
        self.bodies: list[dict[str, Any]] = []
        self.bytes = 0

    def add(self, body: dict[str, Any]) -> None:
        """Keep the body; send those before it where they would be too many or too large together."""
        size = len(json.dumps(body))
        if self.bodies and (len(self.bodies) == BATCH_RECORDS or self.bytes + size > BATCH_BYTES):
            self.send()
        self.bodies.append(body)
        self.bytes += size

    def send(self) -> None:
        """Send what waits, in a dry run nowhere.

        Raises:
            ArgillaError: the server refused the batch as a whole; the message names the record that it minds.
        """
        if self.bodies and not self.dry_run:
            try:
                self.argilla.request("PUT", f"/datasets/{self.dataset.id}/records/bulk", json={"items": self.bodies})
            except ArgillaError as error:
                raise type(error)(f"{error}{self.named_position(str(error))}") from error
        self.bodies, self.bytes = [], 0

    def named_position(self, message: str) -> str:
        """Which record the server's "position N" is; empty where it names none."""
        found = POSITION.search(message)
        if found is None or int(found[1]) >= len(self.bodies):
            return ""
        return f" That is {self.bodies[int(found[1])]['external_id']!r} in {self.dataset.name!r}."
