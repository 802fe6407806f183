"""`index.jsonl`: what an update needs to know of an export, without texts, names of accounts or ids of responses.

A line for each unit of each file (`u`: how long its lines are and whose), for each provenance (`p`) and each record
that had responses (`r`: a hash of its state); the last line has a hash of each file and of the lines before. Names are
those of the files, so pseudonyms where an export has them.
"""

import hashlib
import json
import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import accumulate, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Self

from annotation.campaign.datasets import JuryDataset
from annotation.labels import TaskName
from annotation.tasks import short_hash
from annotation.units import Purpose
from exports.csv._spool import Spool
from exports.csv.folder import INDEX_FILE
from exports.csv.tables import Piece, Span
from exports.schema import ExportedFile

_VERSION = 2
_KIND_ENDS = len(b'["u",')
_RUN = 500  # units that are copied in one piece


class Index(NamedTuple):
    """The index of an export that is in one piece, with its folder."""

    folder: Path
    """The export."""
    files: tuple[str, ...]
    """Names of its files, in the order in which the lines count them."""
    datasets: Mapping[str, str]
    """By id of each dataset that was read: a hash of what its rows depend on beside its records."""

    def raw_lines(self, kind: str) -> Iterator[bytes]:
        """The lines of one kind, as they are."""
        start = f'["{kind}",'.encode()
        with (self.folder / INDEX_FILE).open("rb") as stream:
            yield from (line for line in stream if line.startswith(start))

    def lines(self, kind: str) -> Iterator[list[Any]]:
        """The lines of one kind, without their first item."""
        return (json.loads(line)[1:] for line in self.raw_lines(kind))

    def spans(self, file: str) -> Iterator[Span]:
        """The units of one file, in its order."""
        if file not in self.files:
            return
        number = self.files.index(file)
        for line in self.lines("u"):
            if line[0] == number:
                yield _span(line)


def _span(line: Sequence[Any]) -> Span:
    """The unit that a line is about, its kind left out."""
    _, record_uuid, chunk_rank, chunk_id, length, rows, annotators, note = line
    return Span(record_uuid, chunk_rank, chunk_id, length, rows, tuple(annotators), note)


class IndexedRecord(NamedTuple):
    """One record of an index."""

    dataset: str
    """Id of its dataset."""
    id: str
    """The server's id."""
    task: TaskName
    state: str
    """A hash of what its rows depend on."""
    record_uuid: str
    """The canonical record; empty where it is not ours."""
    chunk_id: str
    """The passage; empty outside retrieval."""
    language: str
    told: int | None
    """Number of its provenance; None where none of its responses is in a file."""
    cut: int
    """Marks on more than the text of one passage."""
    lost: str
    """JSON: who made each mark on no passage's text; empty where there is none."""
    doubled: int
    """Its responses that were left out for a newer one."""
    differing: int
    """Those of them with other answers."""
    purpose: Purpose
    """What it is for, where that keeps it out of the tasks' files; else `label`."""

    @property
    def unit(self) -> tuple[str, str, str]:
        """Task, record and passage."""
        return self.task, self.record_uuid, self.chunk_id


class _File(NamedTuple):
    """One file of an earlier export."""

    spans: list[Span]
    """Its units in its order."""
    lines: list[bytes]
    """What the index has of each."""

    def places(self, size: int) -> list[int]:
        """Where each unit begins in the file of this size, and where the last one ends; a head stands before them."""
        ends = [*accumulate((span.length for span in self.spans), initial=0)]
        return [size - ends[-1] + end for end in ends]


class EarlierExport:
    """An export with its index in memory."""

    def __init__(self, index: Index) -> None:
        """Read the index."""
        self._folder = index.folder
        self.datasets = index.datasets
        by_kind: defaultdict[bytes, list[bytes]] = defaultdict(list)
        with (index.folder / INDEX_FILE).open("rb") as stream:
            for line in stream:
                by_kind[line[:_KIND_ENDS]].append(line)
        records = [IndexedRecord(*line[1:]) for line in _parsed(by_kind[b'["r",'])]
        self.records = {(record.dataset, record.id): record for record in records}
        """Its records, by ids of dataset and record."""
        self._record_lines = dict(zip(self.records, by_kind[b'["r",'], strict=True))
        self._told = {int(line[_KIND_ENDS : line.index(b",", _KIND_ENDS)]): line for line in by_kind[b'["p",']}
        self.next_told = max(self._told, default=0) + 1
        """A number above those of all provenances."""
        self._files = {name: _File([], []) for name in index.files}
        files = [*self._files.values()]
        for line, parsed in zip(by_kind[b'["u",'], _parsed(by_kind[b'["u",']), strict=True):
            file = files[parsed[1]]
            file.spans.append(_span(parsed[1:]))
            file.lines.append(line)

    def told(self, number: int) -> tuple[str, str]:
        """The record and the cells (as JSON) of a provenance."""
        _, _, record_uuid, cells = json.loads(self._told[number])
        return record_uuid, cells

    def lines_of(self, records: Iterable[IndexedRecord]) -> Iterator[bytes]:
        """What the index has of these records of its, those of their provenances first."""
        kept = [*records]
        for number in sorted({record.told for record in kept if record.told is not None}):
            yield self._told[number]
        for record in kept:
            yield self._record_lines[record.dataset, record.id]

    def units(self, name: str, wanted: Callable[[Span], bool]) -> Iterator[Piece]:
        """The wanted units of one file in its order; none where there is no such file."""
        if name not in self._files:
            return
        file = self._files[name]
        with (self._folder / name).open("rb") as stream:
            places = file.places(os.fstat(stream.fileno()).st_size)
            for span, place in zip(file.spans, places, strict=False):
                if wanted(span):
                    content = os.pread(stream.fileno(), span.length, place)
                    yield Piece(*span[:3], span.annotators, span.rows, content, span.note)

    def with_fresh(self, name: str, is_touched: Callable[[Span], bool], fresh: Iterator[Piece]) -> Iterator[Piece]:
        """What one file has now in its order: its units but the touched ones, in runs, and what is fresh.

        Where there is no such file, all there is is fresh.
        """
        if name not in self._files:
            yield from fresh
            return
        file = self._files[name]
        keys = [span[:3] for span in file.spans]
        kept = [number for number, span in enumerate(file.spans) if not is_touched(span)]
        done = 0
        with (self._folder / name).open("rb") as stream:
            places = file.places(os.fstat(stream.fileno()).st_size)

            def runs(end: int) -> Iterator[Piece]:
                """The units before that number that are still to come."""
                nonlocal done
                upto = bisect_left(kept, end, done)
                for first, last in _runs(kept[done:upto], file.spans):
                    units = tuple(file.spans[first:last])
                    people = tuple(dict.fromkeys(who for unit in units for who in unit.annotators))
                    content = os.pread(stream.fileno(), places[last] - places[first], places[first])
                    rows, lines = sum(unit.rows for unit in units), b"".join(file.lines[first:last])
                    yield Piece(*keys[first], people, rows, content, units[0].note, units, lines)
                done = upto

            for key, pieces in groupby(fresh, key=itemgetter(0, 1, 2)):
                yield from runs(bisect_left(keys, key))
                yield from pieces
            yield from runs(len(keys))


def _runs(numbers: Sequence[int], spans: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """The ascending numbers of units as ranges (first, behind the last) of units with one note, none of them long."""
    first = None
    for place, number in enumerate(numbers):
        first = number if first is None else first
        following = numbers[place + 1] if place + 1 < len(numbers) else None
        if following != number + 1 or number + 1 - first == _RUN or spans[following].note != spans[number].note:
            yield first, number + 1
            first = None


def _parsed(lines: Iterable[bytes]) -> list[list[Any]]:
    """The lines' values; all at once takes half as long as one by one."""
    found: list[list[Any]] = json.loads(b"[" + b",".join(lines) + b"]")
    return found


class IndexWriter:
    """Writes an index line by line; it is a context manager."""

    def __init__(self, folder: Path, earlier: Index | None) -> None:
        """Begin the file; lines of an earlier index that stay as they are may be written again."""
        self._stream = (folder / INDEX_FILE).open("xb")
        self._digest = hashlib.sha256()
        self._earlier_files = earlier.files if earlier else ()

    def __enter__(self) -> Self:
        """The writer itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._stream.close()

    def spans(self, number: int, name: str, spans: Sequence[Span], lines: bytes) -> None:
        """Write units of the file of this number and name; `lines` is what an earlier index has of them, or empty."""
        if lines and self._earlier_files[number : number + 1] == (name,):
            self._write_lines(lines)
            return
        for span in spans:
            self._write(["u", number, *span])

    def finish(
        self,
        spool: Spool,
        kept: Sequence[IndexedRecord],
        earlier: EarlierExport | None,
        files: Sequence[ExportedFile],
        datasets: Sequence[JuryDataset],
    ) -> None:
        """Write what the spool and the earlier export know of records, and the last line."""
        self._write_lines(b"".join(earlier.lines_of(kept)) if earlier else b"")
        for row in spool.told():
            self._write(["p", *row])
        for row in spool.records():
            self._write(["r", *row])
        head = {
            "citejury_index": _VERSION,
            "citejury": version("citejury"),
            "files": {file.file: file.sha256 for file in files},
            "datasets": {dataset.id: dataset_state(dataset) for dataset in datasets},
            "sha256": self._digest.hexdigest(),
        }
        self._write(head)

    def _write(self, value: object) -> None:
        line = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        self._write_lines(line.encode("utf-8", "backslashreplace") + b"\n")

    def _write_lines(self, lines: bytes) -> None:
        self._stream.write(lines)
        self._digest.update(lines)


def dataset_state(dataset: JuryDataset) -> str:
    """A hash of what rows depend on beside their records."""
    return short_hash([dataset.name, dataset.workspace, dataset.task, dataset.round, dataset.version, dataset.metadata])


def read_index(folder: Path) -> Index | None:
    """The index of the export in the folder; None where none of this version fits its files byte for byte."""
    try:
        with (folder / INDEX_FILE).open("rb") as stream:
            digest, last = hashlib.sha256(), b""
            for line in stream:
                digest.update(last)
                last = line
        head = json.loads(last)
        if (head["citejury_index"], head["citejury"]) != (_VERSION, version("citejury")):
            return None
        if head["sha256"] != digest.hexdigest():
            return None
        for name, sha256 in head["files"].items():
            with (folder / name).open("rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() != sha256:
                    return None
        return Index(folder, tuple(head["files"]), head["datasets"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
