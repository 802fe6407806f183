"""An earlier export and a new one: which responses came, changed and went, by annotator (exports/contracts/csv.md).

Files are sorted by unit, so both are walked through together, and only units whose lines differ are read. A row of the
earlier export that has no row now was withdrawn (its annotator has the unit as a draft or discarded), is left out by
the options that are given now, or is gone from the server.
"""

import csv
import io
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from annotation.argilla.labels import TASKS, TaskName
from exports.csv.folder import exported_files, file_name, mapping, read_manifest
from exports.csv.rows import csv_line
from exports.csv.schema import ExportFilters, utc
from exports.csv.spool import Spool
from exports.csv.update import Index, Update
from pipeline.core.files import sha256_of
from pipeline.core.tables import unescaped
from pipeline.core.terminal import counted

Kind = Literal["added", "changed", "withdrawn", "gone", "left out"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_Row = Mapping[str, str]
_Unit = tuple[str, int, str]  # Record, rank and id of the passage; 0 and empty outside retrieval


class Changes(NamedTuple):
    """What an export does to the rows of submitted responses of an earlier one in its folder."""

    by_annotator: Mapping[str, Mapping[Kind, int]]
    before: Mapping[str, int]  # Rows of the earlier export by annotator, of those who are missing some now

    def total(self, kind: Kind) -> int:
        return sum(counts.get(kind, 0) for counts in self.by_annotator.values())

    def gone(self) -> str:
        """Whose rows would go for good, in words, all of a person's first; empty where nobody's would."""
        lost = {who: counts.get("gone", 0) for who, counts in self.by_annotator.items() if counts.get("gone")}
        in_order = sorted(lost, key=lambda who: (lost[who] < self.before[who], who))
        return ", ".join(
            f"all {counted(lost[who], 'row')} of {who}"
            if lost[who] == self.before[who]
            else f"{lost[who]:,} of {counted(self.before[who], 'row')} of {who}"
            for who in in_order
        )


class Now(NamedTuple):
    new: Index
    update: Update | None
    filters: ExportFilters
    annotators: frozenset[str]  # Under which names those stand in files who were asked for; empty where everybody was
    workspaces: tuple[str, ...]
    datasets: Set[str]
    spool: Spool


def compare_exports(earlier: Path, index: Index | None, now: Now) -> Changes:
    """The changes from the earlier export, with its index if it has one, to the new one."""
    counts: dict[str, Counter[Kind]] = {}
    tasks = dict.fromkeys((*TASKS, *exported_files(earlier).values()))
    for task in tasks:
        name = file_name(task, discarded=False)
        if (sha256_of(earlier / name) if (earlier / name).is_file() else "") == now.new.files.get(name, ""):
            continue
        origins = _Origins(earlier, index, task, now)
        new = _fresh(now.new.folder / name, task, now.spool) if now.update else _units(now.new.folder / name, now.new)
        units = _paired(_units(earlier / name, index, now.update), new)
        for (_, _, chunk_id), before, after in units:
            came, missing = _compare_unit(before, after)
            for who, kind in (*came, *((_annotator(row), _why(task, chunk_id, row, now, origins)) for row in missing)):
                counts.setdefault(who, Counter())[kind] += 1
    before_by_annotator: Counter[str] = Counter()
    for task in tasks if any(each["gone"] for each in counts.values()) else ():
        path = earlier / file_name(task, discarded=False)
        for lines in _units(path, None):
            before_by_annotator.update(_newest(lines.rows()).keys())
    return Changes({who: counts[who] for who in sorted(counts)}, before_by_annotator)


class _Lines(NamedTuple):
    unit: _Unit
    header: Sequence[str]
    content: bytes

    def rows(self) -> list[_Row]:
        reader = csv.reader(io.StringIO(self.content.decode("utf-8"), newline=""))
        return [dict(zip(self.header, cells, strict=False)) for cells in reader]


def _units(path: Path, index: Index | None, update: Update | None = None) -> Iterator[_Lines]:
    """The units of a file in its order, of an update those of touched records; without index it is read row by row."""
    csv.field_size_limit(sys.maxsize)
    if not path.is_file():
        return
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream)
        header = next(reader, [])
        if index is None:
            for unit, rows in groupby(reader, key=lambda cells: _unit_of(dict(zip(header, cells, strict=False)))):
                yield _Lines(unit, header, b"".join(map(csv_line, rows)))
            return
    for span, lines in index.units(path.name, update.touched if update else None):
        yield _Lines(span[:3], header, lines)


def _fresh(path: Path, task: TaskName, spool: Spool) -> Iterator[_Lines]:
    """What an update read anew of a file, which is all that it has of touched records."""
    if path.is_file():
        with path.open(encoding="utf-8-sig", newline="") as stream:
            header = next(csv.reader(stream), [])
        for unit, pieces in groupby(spool.rows(task, discarded=False), key=itemgetter(0, 1, 2)):
            yield _Lines(unit, header, b"".join(piece.lines for piece in pieces))


def _unit_of(row: _Row) -> _Unit:
    record_uuid, rank, chunk_id = (row.get(name) or "" for name in ("record_uuid", "chunk_rank", "chunk_id"))
    return unescaped(record_uuid), int(rank) if rank.isdecimal() else 0, unescaped(chunk_id)


def _annotator(row: _Row) -> str:
    return unescaped(row.get("annotator_id", ""))


def _paired(old: Iterator[_Lines], new: Iterator[_Lines]) -> Iterator[tuple[_Unit, list[_Row], list[_Row]]]:
    """The rows of both files about each unit whose lines differ."""
    here, there = next(old, None), next(new, None)
    while here or there:
        both = here and there and here.unit == there.unit
        if here and there and both:
            if (here.header, here.content) != (there.header, there.content):
                yield here.unit, here.rows(), there.rows()
            here, there = next(old, None), next(new, None)
        elif here and (there is None or here.unit < there.unit):
            yield here.unit, here.rows(), []
            here = next(old, None)
        elif there:
            yield there.unit, [], there.rows()
            there = next(new, None)


def _compare_unit(old: Sequence[_Row], new: Sequence[_Row]) -> tuple[list[tuple[str, Kind]], list[_Row]]:
    """What came and changed in one unit, and the earlier rows that are missing.

    A row of the same moment under another name is the same response: its annotator was renamed, or pseudonyms stand in
    one of the exports.
    """
    before, after = _newest(old), _newest(new)
    pairs = [(before.pop(who), after.pop(who)) for who in sorted(before.keys() & after.keys())]
    for who in sorted(before):
        moment = before[who].get("created_at")
        other = next((each for each in sorted(after) if after[each].get("created_at") == moment), None)
        if other is not None:
            pairs.append((before.pop(who), after.pop(other)))
    found: list[tuple[str, Kind]] = [
        (_annotator(now), "changed")
        for then, now in pairs
        if any(then[name] != now[name] for name in then.keys() & now.keys())
    ]
    return found + [(who, "added") for who in after], list(before.values())


def _newest(rows: Sequence[_Row]) -> dict[str, _Row]:
    """The newest row of each annotator: an earlier version wrote a row for each workspace."""
    return {_annotator(row): row for row in sorted(rows, key=lambda row: row.get("created_at", ""))}


class _Origins:
    def __init__(self, earlier: Path, index: Index | None, task: TaskName, now: Now) -> None:
        manifest = read_manifest(earlier)
        filters = mapping(manifest.get("filters"))
        named = ("suggested", "with_controls")
        asked = (manifest.get("workspaces"), filters.get("rounds"), *(filters.get(name, False) for name in named))
        wanted = ([*now.workspaces], [*now.filters.rounds], *(getattr(now.filters, name) for name in named))
        self.asked_otherwise = asked != wanted
        self._now_apart: set[tuple[str, str]] = set()
        if filters.get("with_controls", False) and not now.filters.with_controls:
            self._now_apart = {
                (record_uuid, chunk_id)
                for _, _, of, _, record_uuid, chunk_id, *_, purpose in now.new.rows("r")
                if of == task and purpose != "label"
            }
        self._all = {each.get("id") for each in manifest.get("datasets", ()) if each.get("task") == task}
        self._task, self._index = task, index

    def is_apart(self, row: _Row) -> bool:
        """Whether the row is of a control or repeat, which were among the others then and are not now."""
        record_uuid, _, chunk_id = _unit_of(row)
        return (record_uuid, chunk_id) in self._now_apart

    def of(self, row: _Row) -> set[str]:
        if "dataset_id" in row:
            return {row["dataset_id"]}
        record_uuid, _, chunk_id = _unit_of(row)
        return self._by_unit.get((record_uuid, chunk_id), self._all)

    @cached_property
    def _by_unit(self) -> dict[tuple[str, str], set[str]]:
        found: dict[tuple[str, str], set[str]] = {}
        for dataset, _, task, _, record_uuid, chunk_id, *_ in self._index.rows("r") if self._index else ():
            if task == self._task:
                found.setdefault((record_uuid, chunk_id), set()).add(dataset)
        return found


def _why(task: TaskName, chunk_id: str, row: _Row, now: Now, origins: _Origins) -> Kind:
    filters, who = now.filters, _annotator(row)
    read = origins.of(row) & now.datasets
    is_left_out = (
        (bool(filters.tasks) and task not in filters.tasks)
        or (bool(filters.languages) and row.get("language") not in filters.languages)
        or (bool(now.annotators) and who not in now.annotators)
        or (filters.until is not None and utc(row["created_at"]) >= filters.until)
        or (origins.asked_otherwise and not read)
        or origins.is_apart(row)
    )
    if is_left_out:
        return "left out"
    return "withdrawn" if now.spool.is_unsubmitted(task, unescaped(row["record_uuid"]), chunk_id, who) else "gone"
