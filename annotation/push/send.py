"""What waits for one place goes in: new units, and changed ones only where nobody has answered them by then."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from annotation.argilla.client import BATCH_RECORDS, Argilla
from annotation.argilla.labels import TASKS, TaskName
from annotation.argilla.tasks import takes_suggestions
from annotation.argilla.units import ASSIGNMENT
from annotation.campaign.datasets import Batch, JuryDataset
from annotation.push.diff import Progress, Stored, Target, Unit, is_answered_change, moves_marks, stored_unit

_WRITTEN = frozenset({"new", "updated", "revised"})
_SUGGESTION = ("question_id", "value", "score", "type", "agent")
_PAGE_RECORDS = 1000  # argilla-server 2.8.0, LIST_DATASET_RECORDS_LIMIT_LE


class Waiting:
    """What one place is to get, in temporary files that end with the process, however it ends."""

    def __init__(self, target: Target, new: Mapping[TaskName, IO[bytes]], changed: IO[bytes]) -> None:
        self.target = target
        self.count = 0
        self._new = new
        self._changed = changed

    def add(self, units: Sequence[Unit]) -> None:
        """Keep those of a record's units that are to be written; together where one of them replaces another text."""
        written = [unit for unit in units if unit.change in _WRITTEN]
        self.count += len(written)
        if any(unit.change == "updated" for unit in written):
            _write_line(self._changed, written)
            return
        for unit in written:
            _write_line(self._new[unit.task], unit.body)

    def new(self, task: TaskName) -> Iterator[dict[str, Any]]:
        yield from _read_lines(self._new[task])

    def changed(self) -> Iterator[list[Unit]]:
        for units in _read_lines(self._changed):
            yield [Unit(*unit) for unit in units]


@contextmanager
def opened_waiting(target: Target) -> Iterator[Waiting]:
    with ExitStack() as stack:
        new = {task: stack.enter_context(TemporaryFile()) for task in TASKS}
        yield Waiting(target, new, stack.enter_context(TemporaryFile()))


def _write_line(file: IO[bytes], value: Any) -> None:
    file.write(json.dumps(value).encode("ascii") + b"\n")


def _read_lines(file: IO[bytes]) -> Iterator[Any]:
    file.seek(0)
    yield from map(json.loads, file)


def send_waiting(argilla: Argilla, waiting: Waiting, sent: Callable[[int], None]) -> list[str]:
    """A line for each record that stays as it was, because somebody answered it meanwhile; the rest is in.

    The tasks go in from the last one to the first, because Argilla's home page shows the dataset that changed last
    first. ArgillaError where a batch is refused; the batches before it are in.
    """
    late: list[str] = []
    for group in _grouped(waiting.changed()):
        late += _replace_records(argilla, waiting.target, group)
        sent(sum(map(len, group)))
    for task in reversed(TASKS):
        batch = Batch(argilla, waiting.target.datasets[task], lambda items: sent(len(items)))
        for body in waiting.new(task):
            batch.add(body)
        batch.send()
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
    before = _read_before(argilla, target, [unit for units in records for unit in units])
    late, replaced = [], []
    for units in ([_still_assigned(unit, before) for unit in units] for units in records):
        answered = [
            unit for unit in units if unit.record_id and _touches_answers(before[unit.record_id].stored, unit.body)
        ]
        late += [_answered_meanwhile(unit) for unit in answered[:1]]
        replaced += [] if answered else [units]
    answered_now: set[str] = set()

    def receive(items: Sequence[Mapping[str, Any]]) -> None:
        answered_now.update(item["id"] for item in items if item.get("responses"))

    now = [unit for units in replaced for unit in units]
    _withdraw_suggestions(argilla, [(before[unit.record_id].body, unit) for unit in now if unit.record_id])
    _write_units(argilla, target, now, receive)
    undone = []
    for units in replaced:
        hit = [
            unit
            for unit in units
            if unit.record_id in answered_now and _is_newly_answered(unit, before[unit.record_id].stored)
        ]
        late += [_answered_meanwhile(unit) for unit in hit[:1]]
        undone += [
            (unit.body, unit._replace(body=before[unit.record_id].body)) for unit in units if hit and unit.record_id
        ]
    _withdraw_suggestions(argilla, undone)
    _write_units(argilla, target, [unit for _, unit in undone])
    return late


def _read_before(argilla: Argilla, target: Target, units: Sequence[Unit]) -> dict[str, _Before]:
    before: dict[str, _Before] = {}
    include = "responses,suggestions" if takes_suggestions(target.place.round_name) else "responses"
    for task, dataset in target.datasets.items():
        there = [unit for unit in units if unit.task == task and unit.record_id]
        before |= {item["id"]: _as_before(item) for item in _read_again(argilla, dataset, there, include)}
    return before


def _still_assigned(unit: Unit, before: Mapping[str, _Before]) -> Unit:
    metadata = (before[unit.record_id].body["metadata"] or {}) if unit.record_id else {}
    if ASSIGNMENT not in metadata:
        return unit
    kept = {**unit.body["metadata"], ASSIGNMENT: metadata[ASSIGNMENT]}
    return unit._replace(body={**unit.body, "metadata": kept})


def _withdraw_suggestions(argilla: Argilla, replaced: Sequence[tuple[Mapping[str, Any], Unit]]) -> None:
    """A bulk write leaves suggestions to other questions as they are.

    This comes before it: a push that is killed in between finds the old hash of suggestions, and does it again.
    """
    for earlier, unit in replaced:
        wanted = unit.body.get("suggestions", [])
        questions = {each["question_id"] for each in wanted}
        if any(each["question_id"] not in questions for each in earlier.get("suggestions", [])):
            argilla.request("PATCH", f"/records/{unit.record_id}", json={"suggestions": wanted})


def _read_again(argilla: Argilla, dataset: JuryDataset, units: Sequence[Unit], include: str) -> list[dict[str, Any]]:
    """In no order; in one page where they stand close together."""
    wanted = {unit.record_id for unit in units}
    positions = [unit.position for unit in units]
    items: list[dict[str, Any]] = []
    if units and max(positions) - min(positions) < _PAGE_RECORDS:
        page = {"offset": min(positions), "limit": max(positions) - min(positions) + 1, "include": include}
        items = argilla.request("GET", f"/datasets/{dataset.id}/records", params=page)["items"]
    found = [item for item in items if item["id"] in wanted]
    missing = wanted - {item["id"] for item in found}
    return found + [argilla.request("GET", f"/records/{record_id}") for record_id in sorted(missing)]


def _as_before(item: Mapping[str, Any]) -> _Before:
    body = {name: item[name] for name in ("external_id", "fields", "metadata")}
    suggestions = [{name: each[name] for name in _SUGGESTION} for each in item.get("suggestions") or ()]
    return _Before(stored_unit(item, 0), body | ({"suggestions": suggestions} if suggestions else {}))


def _is_newly_answered(unit: Unit, before: Stored) -> bool:
    """Whether an answer that came in meanwhile may be to the old text, which is another one."""
    return not before.answered and _touches_answers(before._replace(answered=True), unit.body)


def _touches_answers(before: Stored, body: Mapping[str, Any]) -> bool:
    return is_answered_change(before, body) or moves_marks(before, body)


def _answered_meanwhile(unit: Unit) -> str:
    return f"{unit.body['external_id']}: answered in {unit.task} while it was pushed; the old text stays. Push it again"


def _write_units(
    argilla: Argilla,
    target: Target,
    units: Sequence[Unit],
    receive: Callable[[Sequence[Mapping[str, Any]]], None] = lambda items: None,
) -> None:
    for task in reversed(TASKS):
        batch = Batch(argilla, target.datasets[task], receive)
        for unit in units:
            if unit.task == task:
                batch.add(unit.body)
        batch.send()


def counted(progress: Progress, total: int) -> Callable[[int], None]:
    """A function that is told of each batch's units and passes on how many are in so far."""
    done = 0

    def sent(units: int) -> None:
        nonlocal done
        done += units
        progress("sent", done, total)

    return sent
