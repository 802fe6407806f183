"""`index.jsonl`: what an update needs to know of an export, without texts, names of accounts or ids of responses.

A line for each unit of each file (`u`: how long its lines are and whose), for each provenance (`p`) and each record
that had responses (`r`: a hash of its state); the last line has a hash of each file and of the lines before. Names are
those of the files, so pseudonyms where an export has them.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Self

from annotation.assignment import Purpose
from annotation.campaign.datasets import JuryDataset
from annotation.labels import TaskName
from annotation.tasks import short_hash
from exports.csv._spool import Spool
from exports.csv.folder import INDEX_FILE
from exports.csv.tables import Piece, Span
from exports.schema import ExportedFile

_VERSION = 2


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
    """Its task."""
    state: str
    """A hash of what its rows depend on."""
    record_uuid: str
    """The canonical record; empty where it is not ours."""
    chunk_id: str
    """The passage; empty outside retrieval."""
    language: str
    """Its language."""
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


class EarlierExport:
    """An export with its index in memory."""

    def __init__(self, index: Index) -> None:
        """Read the index."""
        self._index = index
        self.datasets = index.datasets
        records = (IndexedRecord(*line[1:]) for line in _parsed(index.raw_lines("r")))
        self.records = {(record.dataset, record.id): record for record in records}
        """Its records, by ids of dataset and record."""
        self._told = {line[1]: (line[2], line[3]) for line in _parsed(index.raw_lines("p"))}
        self.next_told = max(self._told, default=0) + 1
        """A number above those of all provenances."""
        self._units: dict[str, list[tuple[Span, bytes]]] = {name: [] for name in index.files}
        raw = list(index.raw_lines("u"))
        for line, parsed in zip(raw, _parsed(raw), strict=True):
            self._units[index.files[parsed[1]]].append((_span(parsed[1:]), line))

    def told(self, number: int) -> tuple[str, str]:
        """The record and the cells (as JSON) of a provenance."""
        return self._told[number]

    def pieces(self, name: str, wanted: Callable[[Span], bool]) -> Iterator[Piece]:
        """The wanted units of one file in its order; none where there is no such file."""
        if name not in self._units:
            return
        with (self._index.folder / name).open("rb") as stream:
            place = os.fstat(stream.fileno()).st_size - sum(span.length for span, _ in self._units[name])
            for span, line in self._units[name]:
                if wanted(span):
                    content = os.pread(stream.fileno(), span.length, place)
                    unit = (span.record_uuid, span.chunk_rank, span.chunk_id)
                    yield Piece(*unit, span.annotators, span.rows, content, span.note, line)
                place += span.length


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

    def span(self, number: int, name: str, span: Span, line: bytes) -> None:
        """Write a unit of the file of this number and name; `line` is what an earlier index has of it, or empty."""
        if line and self._earlier_files[number : number + 1] == (name,):
            self._write_line(line)
        else:
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
        if earlier:
            for number in sorted({record.told for record in kept if record.told is not None}):
                self._write(["p", number, *earlier.told(number)])
        for row in spool.told():
            self._write(["p", *row])
        for record in kept:
            self._write(["r", *record])
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
        self._write_line(line.encode("utf-8", "backslashreplace") + b"\n")

    def _write_line(self, line: bytes) -> None:
        self._stream.write(line)
        self._digest.update(line)


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
