"""What waits for one place goes in: new units, and changed ones only where nobody has answered them by then."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import IO, Any, NamedTuple

from annotation.argilla.client import BATCH_RECORDS, Argilla
from annotation.argilla.display import unit_id
from annotation.argilla.labels import TaskName
from annotation.argilla.units import ASSIGNMENT
from annotation.campaign.datasets import JuryDataset, send_bodies
from annotation.push.diff import Stored, Target, Unit, stored_unit, touches_answers

CHANGED = "changed"
_PAGE_RECORDS = 1000  # argilla-server 2.8.0, LIST_DATASET_RECORDS_LIMIT_LE


@dataclass
class Waiting:
    """What one place is to get, in temporary files that end with the process, however it ends."""

    target: Target
    files: Mapping[str, IO[bytes]]  # one for each task, and one for what is changed
    count: int = 0

    def add(self, units: Sequence[Unit]) -> None:
        """Keep those of a record's units that are to be written; together where one of them replaces another text."""
        written = [unit for unit in units if unit.change in ("new", "updated", "revised")]
        self.count += len(written)
        lines: list[tuple[str, Any]] = [(unit.task, unit.body) for unit in written]
        if any(unit.change == "updated" for unit in written):
            lines = [(CHANGED, written)]
        for name, value in lines:
            self.files[name].write(json.dumps(value).encode("ascii") + b"\n")

    def read(self, name: str) -> Iterator[Any]:
        self.files[name].seek(0)
        yield from map(json.loads, self.files[name])

    def by_lot(self, task: TaskName) -> Iterator[Any]:
        """Answers in an order by lot: a stock server hands them out as they came, and runs come model by model."""
        file, lots, start = self.files[task], list[tuple[bytes, int]](), 0
        for body in self.read(task):
            answer = str(body["external_id"]).partition(":")[0]
            lots.append((blake2b(answer.encode(), digest_size=8).digest(), start))
            start = file.tell()
        for _, start in sorted(lots):
            file.seek(start)
            yield json.loads(file.readline())


def send_waiting(argilla: Argilla, waiting: Waiting, sent: Callable[[int], None]) -> list[str]:
    """A line for each record that stays as it was, because somebody answered it meanwhile; the rest is in.

    The tasks go in from the last one to the first, because Argilla's home page shows the dataset that changed last
    first. ArgillaError where a batch is refused; the batches before it are in.
    """
    late: list[str] = []
    for group in _grouped([Unit(*unit) for unit in units] for units in waiting.read(CHANGED)):
        late += _replace_records(argilla, waiting.target, group)
        sent(sum(map(len, group)))
    for task, dataset in reversed([*waiting.target.datasets.items()]):
        send_bodies(argilla, dataset, waiting.by_lot(task), lambda items: sent(len(items)))
    return late


def _grouped(records: Iterator[list[Unit]]) -> Iterator[list[list[Unit]]]:
    """A larger record is a group of its own."""
    group: list[list[Unit]] = []
    for units in records:
        if group and sum(map(len, group)) + len(units) > BATCH_RECORDS:
            yield group
            group = []
        group.append(units)
    if group:
        yield group


class _Before(NamedTuple):
    stored: Stored
    body: dict[str, Any]


def _replace_records(argilla: Argilla, target: Target, records: Sequence[Sequence[Unit]]) -> list[str]:
    """A line for each of the records that stays as it was; the others show what their units say.

    Whether a record was answered is looked up again right before it is replaced and, for an answer that comes in
    between, in what Argilla returns: then the old text is put back.
    """
    before: dict[str, _Before] = {}
    for task, dataset in target.datasets.items():
        there = [unit for units in records for unit in units if unit.task == task and unit.record_id]
        before |= _read_again(argilla, dataset, there)
    late, replaced = [], []
    for units in records:
        known = [unit for unit in units if unit.record_id]
        answered = [unit for unit in known if touches_answers(before[unit.record_id].stored, unit.body)]
        late += [_answered_meanwhile(unit) for unit in answered[:1]]
        replaced += [] if answered else [units]
    answered_now: set[str] = set()

    def receive(items: Sequence[Mapping[str, Any]]) -> None:
        answered_now.update(item["id"] for item in items if item.get("responses"))

    now = [unit for units in replaced for unit in units]
    for unit in now:  # what their records are for and who gets them no push changes
        metadata = (before[unit.record_id].body["metadata"] or {}) if unit.record_id else {}
        if ASSIGNMENT in metadata:
            unit.body["metadata"][ASSIGNMENT] = metadata[ASSIGNMENT]
    _write_units(argilla, target, now, receive)
    undone = []
    for units in replaced:
        hit = []
        for unit in (unit for unit in units if unit.record_id in answered_now):
            # An answer that came in meanwhile may be to the old text, which is another one.
            stored = before[unit.record_id].stored
            if not stored.answered and touches_answers(stored._replace(answered=True), unit.body):
                hit.append(unit)
        late += [_answered_meanwhile(unit) for unit in hit[:1]]
        known = [unit for unit in units if hit and unit.record_id]
        undone += [unit._replace(body=before[unit.record_id].body) for unit in known]
    _write_units(argilla, target, undone)
    return late


def _read_again(argilla: Argilla, dataset: JuryDataset, units: Sequence[Unit]) -> dict[str, _Before]:
    """By Argilla's id; in one page where they stand close together."""
    wanted = {unit.record_id for unit in units}
    positions = [unit.position for unit in units]
    items: list[dict[str, Any]] = []
    if units and max(positions) - min(positions) < _PAGE_RECORDS:
        page = {"offset": min(positions), "limit": max(positions) - min(positions) + 1, "include": "responses"}
        items = argilla.request("GET", f"/datasets/{dataset.id}/records", params=page)["items"]
    missing = wanted - {item["id"] for item in items}
    items += [argilla.request("GET", f"/records/{record_id}") for record_id in sorted(missing)]
    parts = ("external_id", "fields", "metadata")
    return {
        item["id"]: _Before(stored_unit(item, 0), {name: item[name] for name in parts})
        for item in items
        if item["id"] in wanted
    }


def _answered_meanwhile(unit: Unit) -> str:
    return f"{unit_id(unit.body)}: answered in {unit.task} while it was pushed; the old text stays. Push it again"


def _write_units(
    argilla: Argilla,
    target: Target,
    units: Sequence[Unit],
    receive: Callable[[Sequence[Mapping[str, Any]]], None] = lambda items: None,
) -> None:
    for task, dataset in reversed([*target.datasets.items()]):
        send_bodies(argilla, dataset, (unit.body for unit in units if unit.task == task), receive)
