"""An earlier export and a server that tells what changed in: what a full export would write out, most of it as it was.

What is read anew is a unit as a whole, in every dataset that holds it: two of them may have responses of one person.
"""

import hashlib
import json
import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from heapq import merge
from importlib.metadata import version
from itertools import accumulate, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Self

from annotation.argilla.client import Argilla
from annotation.argilla.labels import TaskName
from annotation.argilla.tasks import short_hash
from annotation.argilla.units import CHANGED_PATH, PAGE_RECORDS, STATES_PATH, Purpose
from annotation.campaign.datasets import JuryDataset
from exports.csv.fetch import (
    ReadDataset,
    Reading,
    Tally,
    exported_statuses,
    fetched_ahead,
    read_records,
    record_state,
    wants,
)
from exports.csv.folder import CONTROLS_FILE, EVIDENCE_FILE, INDEX_FILE, PROVENANCE_FILE
from exports.csv.rows import Piece, Span
from exports.csv.schema import ExportedFile
from exports.csv.spool import KeptRecord, Spool
from pipeline.core.errors import NotFoundError
from pipeline.core.files import sha256_of

_VERSION = 3
_KIND_ENDS = len(b'["u",')
_RUN = 500  # units that are copied in one piece


class Index(NamedTuple):
    """The index of an export that is in one piece, with its folder."""

    folder: Path
    files: tuple[str, ...]
    datasets: Mapping[str, str]
    """By id of each dataset that was read: a hash of what its rows depend on beside its records."""

    def lines(self, kind: str) -> Iterator[list[Any]]:
        start = f'["{kind}",'.encode()
        with (self.folder / INDEX_FILE).open("rb") as stream:
            yield from (json.loads(line)[1:] for line in stream if line.startswith(start))

    def spans(self, file: str) -> Iterator[Span]:
        yield from (_span(line) for line in self.lines("u") if self.files[line[0]] == file)


def _span(line: Sequence[Any]) -> Span:
    _, record_uuid, chunk_rank, chunk_id, length, rows, annotators, note = line
    return Span(record_uuid, chunk_rank, chunk_id, length, rows, tuple(annotators), note)


class IndexedRecord(NamedTuple):
    dataset: str
    id: str
    task: TaskName
    state: str
    record_uuid: str
    chunk_id: str
    language: str
    told: int | None  # Number of its provenance; None where none of its responses is in a file
    cut: int
    lost: str  # JSON: who made each mark on no passage's text; empty where there is none
    doubled: int
    differing: int
    purpose: Purpose

    @property
    def unit(self) -> tuple[str, str, str]:
        return self.task, self.record_uuid, self.chunk_id


class _File(NamedTuple):
    """One file of an earlier export: its units in its order, and what the index has of each."""

    spans: list[Span]
    lines: list[bytes]

    def places(self, size: int) -> list[int]:
        """Where each unit begins in the file of this size, and where the last one ends; a head stands before them."""
        ends = [*accumulate((span.length for span in self.spans), initial=0)]
        return [size - ends[-1] + end for end in ends]


class EarlierExport:
    def __init__(self, index: Index) -> None:
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
        self.next_told = max(self._told, default=0) + 1  # A number above those of all provenances
        self._files = {name: _File([], []) for name in index.files}
        files = [*self._files.values()]
        for line, parsed in zip(by_kind[b'["u",'], _parsed(by_kind[b'["u",']), strict=True):
            file = files[parsed[1]]
            file.spans.append(_span(parsed[1:]))
            file.lines.append(line)

    def told(self, number: int) -> tuple[str, list[str]]:
        """The record and the cells of a provenance."""
        _, _, record_uuid, cells = json.loads(self._told[number])
        return record_uuid, json.loads(cells)

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
        """What one file has now in its order: its units but the touched ones, in runs, and what is fresh."""
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
    def __init__(self, folder: Path, earlier: Index | None) -> None:
        """Begin the file; lines of an earlier index that stay as they are may be written again."""
        self._stream = (folder / INDEX_FILE).open("xb")
        self._digest = hashlib.sha256()
        self._earlier_files = earlier.files if earlier else ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def spans(self, number: int, name: str, spans: Sequence[Span], lines: bytes) -> None:
        """Write units of the file of this number and name; `lines` is what an earlier index has of them, or empty."""
        if lines and self._earlier_files[number : number + 1] == (name,):
            self._write_lines(lines)
            return
        for span in spans:
            self._write(["u", number, *span])

    def finish(self, spool: Spool, kept: bytes, files: Sequence[ExportedFile], datasets: Sequence[JuryDataset]) -> None:
        """Write what an earlier index has of records that are kept, what the spool has, and the last line."""
        self._write_lines(kept)
        for row in spool.told():
            self._write(["p", *row])
        for row in spool.records():
            self._write(["r", *row])
        self._write(
            {
                "citejury_index": _VERSION,
                "citejury": version("citejury"),
                "files": {file.file: file.sha256 for file in files},
                "datasets": {dataset.id: _dataset_state(dataset) for dataset in datasets},
                "sha256": self._digest.hexdigest(),
            }
        )

    def _write(self, value: object) -> None:
        line = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        self._write_lines(line.encode("utf-8", "backslashreplace") + b"\n")

    def _write_lines(self, lines: bytes) -> None:
        self._stream.write(lines)
        self._digest.update(lines)


def _dataset_state(dataset: JuryDataset) -> str:
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
        found = (head["citejury_index"], head["citejury"], head["sha256"])
        is_whole = found == (_VERSION, version("citejury"), digest.hexdigest()) and all(
            sha256_of(folder / name) == sha256 for name, sha256 in head["files"].items()
        )
        return Index(folder, tuple(head["files"]), head["datasets"]) if is_whole else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


Unit = tuple[str, str, str]  # Task, record and passage; no passage outside retrieval
_AT_ONCE = 100  # ids in one address


class Update(NamedTuple):
    """What an update takes over from the earlier export, beside what is in the spool."""

    read: list[ReadDataset]
    earlier: EarlierExport
    kept: list[IndexedRecord]
    touched: set[Unit]  # Units of which anything changed: all there is of them is in the spool

    def pieces(self, name: str, fresh: Iterator[Piece]) -> Iterator[Piece]:
        return self.earlier.with_fresh(name, self._touches(name), fresh)

    def replaced(self, name: str) -> Iterator[Piece]:
        """The rows of touched units that the earlier file has, in order."""
        return self.earlier.units(name, self._touches(name))

    def provenance(self, fresh: Iterator[tuple[str, Sequence[str]]]) -> Iterator[tuple[str, Sequence[str]]]:
        """What each dataset says of records with touched units, in order of records; `fresh` is what was read now."""
        records = {record_uuid for _, record_uuid, _ in self.touched}
        told = {each.told for each in self.kept if each.told is not None and each.record_uuid in records}
        return merge(sorted(map(self.earlier.told, told)), fresh, key=itemgetter(0))

    def _touches(self, name: str) -> Callable[[Span], bool]:
        """Whether lines of the file are of a touched unit, or in provenance of a record that has one."""
        if name == PROVENANCE_FILE:
            records = {record_uuid for _, record_uuid, _ in self.touched}
            return lambda span: span.record_uuid in records
        if name == EVIDENCE_FILE:
            return lambda span: ("grounding", span.record_uuid, "") in self.touched
        if name == CONTROLS_FILE:
            units = {(record_uuid, chunk_id) for _, record_uuid, chunk_id in self.touched}
            return lambda span: (span.record_uuid, span.chunk_id) in units
        task = name.removesuffix(".csv").removesuffix("_discarded")
        return lambda span: (task, span.record_uuid, span.chunk_id) in self.touched


def read_changes(reading: Reading, datasets: Sequence[JuryDataset], index: Index) -> Update | None:
    """What changed, read into the spool; None where it takes a full export.

    That is where the server does not tell what changed, or a pseudonym has to be given: its number depends on the order
    in which a full export meets people.
    """
    read: list[ReadDataset] = []
    kept: dict[tuple[str, str], IndexedRecord] = {}
    changed: dict[str, list[str]] = {}
    with ThreadPoolExecutor(max_workers=1) as pool:
        coming = pool.submit(EarlierExport, index)  # while the server tells what it has
        for dataset in datasets:
            listed = _list_records(reading, dataset, coming)
            if listed is None:
                return None
            found, same, changed[dataset.id] = listed
            read.append(found)
            kept |= {(dataset.id, record.id): record for record in same}
        earlier = coming.result()
    reading.spool.begin_provenance_at(earlier.next_told)
    touched = {record.unit for record in earlier.records.values() if (record.dataset, record.id) not in kept}
    tallies = {each.dataset.id: each.tally for each in read}
    while any(changed.values()):
        for dataset in datasets:
            touched |= _read_anew(reading, dataset, changed[dataset.id], tallies[dataset.id])
        of_any_task = {(record_uuid, chunk_id) for _, record_uuid, chunk_id in touched}
        again = [
            key
            for key, record in kept.items()
            if record.unit in touched
            # One file holds controls of all tasks, and its lines about a record and passage stand together.
            or (record.purpose != "label" and (record.record_uuid, record.chunk_id) in of_any_task)
        ]
        changed = {dataset.id: [record_id for of, record_id in again if of == dataset.id] for dataset in datasets}
        tallies = {dataset.id: Tally() for dataset in datasets}  # they are counted already
        for key in again:
            del kept[key]
    return Update(read, earlier, list(kept.values()), touched)


def _record_states(client: Argilla, dataset_id: str) -> Iterator[list[dict[str, Any]]]:
    """Pages of the dataset's records in order of arrival, as `record_pages` has them, but without any text."""
    params: dict[str, Any] = {"limit": PAGE_RECORDS}
    while True:
        page = client.request("GET", STATES_PATH.format(dataset_id=dataset_id), params=params)
        yield page["items"]
        if page["next"] is None:
            return
        params["after"] = page["next"]


def _list_records(
    reading: Reading, dataset: JuryDataset, coming: Future[EarlierExport]
) -> tuple[ReadDataset, list[IndexedRecord], list[str]] | None:
    """The dataset, its records that are as they were, and ids of the others; None where it takes a full export."""
    statuses, total, tally = exported_statuses(reading.filters), 0, Tally()
    kept: list[IndexedRecord] = []
    changed: list[str] = []
    try:
        for page in fetched_ahead(_record_states(reading.client, dataset.id)):
            earlier = coming.result()
            is_same = earlier.datasets.get(dataset.id) == _dataset_state(dataset)
            total += len(page)
            for record in page:
                responses = record["responses"]
                if not responses:
                    continue
                exported = [each["user_id"] for each in responses if each["status"] in statuses]
                if reading.filters.anonymized and not all(map(reading.annotators.known_name, exported)):
                    return None
                known = earlier.records.get((dataset.id, record["id"])) if is_same else None
                if known is None or known.state != record_state(reading, record):
                    changed.append(record["id"])
                    continue
                kept.append(known)
                _count(reading, tally, known, responses, is_exported=bool(exported))
    except NotFoundError:
        return None
    return ReadDataset(dataset, total, tally), kept, changed


def _count(
    reading: Reading, tally: Tally, known: IndexedRecord, responses: Sequence[Mapping[str, Any]], *, is_exported: bool
) -> None:
    if known.purpose != "label":
        tally.apart[known.purpose] += sum(
            each["status"] == "submitted" and wants(reading, each, known.language) for each in responses
        )
        return
    if not known.record_uuid:
        tally.foreign_records += is_exported
        return
    for response in responses:
        tally.add(response, known.language, wants(reading, response, known.language))
    if known.cut or known.lost:
        who = tuple(json.loads(known.lost)) if known.lost else ()
        tally.add_marks(KeptRecord(known.id, "", known.record_uuid, cut=known.cut, lost=who))


def _read_anew(reading: Reading, dataset: JuryDataset, ids: Sequence[str], tally: Tally) -> set[Unit]:
    """The units of the records of these ids, which are in the spool now as far as they are still there."""
    units: set[Unit] = set()
    for start in range(0, len(ids), _AT_ONCE):
        params = {"ids": ",".join(ids[start : start + _AT_ONCE])}
        page = reading.client.request("GET", CHANGED_PATH.format(dataset_id=dataset.id), params=params)
        kept = read_records(reading, dataset, page["items"], tally)
        units |= {(dataset.task, record.record_uuid, record.chunk_id) for record in kept}
        reading.progress(f"{dataset.workspace}/{dataset.name}", min(start + _AT_ONCE, len(ids)), len(ids))
    return units
