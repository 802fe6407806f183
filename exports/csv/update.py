"""An earlier export and a server that tells what changed in: all of a full export in the spool, most of it as it was.

What is read anew is all about a record, in every dataset that holds it: two of them may have responses of one person.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence, Set
from heapq import merge
from importlib.metadata import version
from itertools import islice
from operator import itemgetter
from os import SEEK_CUR
from pathlib import Path
from typing import Any, NamedTuple, Self

from annotation.argilla.client import Argilla
from annotation.argilla.tasks import short_hash
from annotation.argilla.units import CHANGED_PATH, COMMON, PAGE_RECORDS, STATES_PATH, Assignment, read_assignment
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
from exports.csv.folder import INDEX_FILE
from exports.csv.rows import Piece, Span
from exports.csv.schema import ExportedFile
from exports.csv.spool import KeptRecord, Spool
from pipeline.core.errors import NotFoundError
from pipeline.core.files import sha256_of

_VERSION = 5
_ROWS_IN_LINE = 1000  # of the index: many at once are written and read in half the time
_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Index(NamedTuple):
    """The index of an export that is in one piece, with its folder."""

    folder: Path
    files: Mapping[str, str]  # SHA-256 by name, in the order in which they were written
    datasets: Mapping[str, str]
    """By id of each dataset that was read: a hash of what its rows depend on beside its records."""

    def rows(self, *begin: str | int) -> Iterator[list[Any]]:
        """The rows in lines that begin so: units (`u` and a number of a file), or records (`r`)."""
        start = _as_json(begin)[:-1].encode() + b","
        with (self.folder / INDEX_FILE).open("rb") as stream:
            for line in stream:
                if line.startswith(start):
                    yield from json.loads(line)[len(begin) :]

    def units(self, file: str, of: Set[str] | None = None) -> Iterator[tuple[Span, bytes]]:
        """The units of one file in its order, with their lines, or those of some records; none of no such file."""
        for number, name in enumerate(self.files):
            if name == file:
                with (self.folder / file).open("rb") as stream:
                    if not name.endswith(".jsonl"):
                        stream.readline()  # the header
                    for row in self.rows("u", number):
                        if of is None or row[0] in of:
                            yield Span(*row), stream.read(row[3])
                        else:
                            stream.seek(row[3], SEEK_CUR)


class IndexWriter:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stream = (folder / INDEX_FILE).open("xb")
        self._digest = hashlib.sha256()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def add(self, number: int, spans: Sequence[Span]) -> None:
        """Write units of the file of this number."""
        self._write(["u", number, *spans])

    def finish(self, spool: Spool, files: Sequence[ExportedFile], datasets: Sequence[JuryDataset]) -> Index:
        """Write what the spool has of records, and the last line."""
        records = spool.records()
        while some := list(islice(records, _ROWS_IN_LINE)):
            self._write(["r", *some])
        self._write(
            {
                "citejury_index": _VERSION,
                "citejury": version("citejury"),
                "files": {file.file: file.sha256 for file in files},
                "datasets": {dataset.id: _dataset_state(dataset) for dataset in datasets},
                "sha256": self._digest.hexdigest(),
            }
        )
        return Index(self._folder, {file.file: file.sha256 for file in files}, {})

    def _write(self, value: object) -> None:
        content = _as_json(value).encode("utf-8", "backslashreplace") + b"\n"
        self._stream.write(content)
        self._digest.update(content)


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
        return Index(folder, head["files"], head["datasets"]) if is_whole else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


_AT_ONCE = 100  # ids in one address


class Update(NamedTuple):
    read: list[ReadDataset]
    earlier: Index
    touched: Set[str]  # Records (`record_uuid`) of which anything changed: all there is of them is in the spool

    def pieces(self, name: str, fresh: Iterator[Piece]) -> Iterator[Piece]:
        """What a file has now in its order: its units of before but those of touched records, and what is fresh."""
        kept = (
            Piece(*span[:3], span.annotators, span.rows, lines, span.note)
            for span, lines in self.earlier.units(name)
            if span.record_uuid not in self.touched
        )
        return merge(kept, fresh, key=itemgetter(0, 1, 2))


def read_changes(reading: Reading, datasets: Sequence[JuryDataset], index: Index) -> Update | None:
    """What changed, read into the spool, which has also what the index tells of other records; None where all is to be.

    That is where the server does not tell what changed, or a pseudonym has to be given: its number depends on the order
    in which a full export meets people.
    """
    earlier = {(each.dataset, each.id): each for each in (KeptRecord(*line) for line in index.rows("r"))}
    read: list[ReadDataset] = []
    kept: dict[tuple[str, str], KeptRecord] = {}
    changed: dict[str, list[str]] = {}
    for dataset in datasets:
        is_same = index.datasets.get(dataset.id) == _dataset_state(dataset)
        listed = _list_records(reading, dataset, earlier if is_same else {})
        if listed is None:
            return None
        found, same, changed[dataset.id] = listed
        read.append(found)
        kept |= {(dataset.id, record.id): record for record in same}
    touched = {record.record_uuid for key, record in earlier.items() if key not in kept}
    tallies = {each.dataset.id: each.tally for each in read}
    while any(changed.values()):
        for dataset in datasets:
            touched |= _read_anew(reading, dataset, changed[dataset.id], tallies[dataset.id])
        again = [key for key, record in kept.items() if record.record_uuid in touched]
        changed = {dataset.id: [record_id for of, record_id in again if of == dataset.id] for dataset in datasets}
        tallies = {dataset.id: Tally() for dataset in datasets}  # they are counted already
        for key in again:
            del kept[key]
    reading.spool.add_records(kept.values())
    return Update(read, index, touched)


class _States(NamedTuple):
    records: list[dict[str, Any]]
    assignments: Mapping[str, Assignment] | None  # by record id, where it has one; None of a server of before


def _record_states(client: Argilla, dataset_id: str) -> Iterator[_States]:
    """Pages of the dataset's records in order of arrival, as `record_pages` has them, but without any text."""
    params: dict[str, Any] = {"limit": PAGE_RECORDS}
    while True:
        page = client.request("GET", STATES_PATH.format(dataset_id=dataset_id), params=params)
        said = page.get("assignments")
        yield _States(
            page["items"], None if said is None else {each: read_assignment(said[each], each) for each in said}
        )
        if page["next"] is None:
            return
        params["after"] = page["next"]


def _list_records(
    reading: Reading, dataset: JuryDataset, known_records: Mapping[tuple[str, str], KeptRecord]
) -> tuple[ReadDataset, list[KeptRecord], list[str]] | None:
    """The dataset, its records that are as they were, and ids of the others; None where it takes a full export."""
    statuses, total, tally = exported_statuses(reading.filters), 0, reading.tally(dataset)
    kept: list[KeptRecord] = []
    changed: list[str] = []
    try:
        for page in fetched_ahead(_record_states(reading.client, dataset.id)):
            if page.assignments is None:
                return None
            total += len(page.records)
            for record in page.records:
                tally.add_work(record, page.assignments.get(record["id"], COMMON))
                responses = record["responses"]
                if not responses:
                    continue
                exported = [each["user_id"] for each in responses if each["status"] in statuses]
                if reading.filters.anonymized and not all(map(reading.annotators.known_name, exported)):
                    return None
                known = known_records.get((dataset.id, record["id"]))
                if known is None or known.state != record_state(reading, record):
                    changed.append(record["id"])
                    continue
                kept.append(known)
                _count(reading, tally, known, responses, is_exported=bool(exported))
    except NotFoundError:
        return None
    return ReadDataset(dataset, total, tally), kept, changed


def _count(
    reading: Reading, tally: Tally, known: KeptRecord, responses: Sequence[Mapping[str, Any]], *, is_exported: bool
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
    tally.add_marks(known)


def _read_anew(reading: Reading, dataset: JuryDataset, ids: Sequence[str], tally: Tally) -> set[str]:
    """The `record_uuid` of the records of these ids, which are in the spool now as far as they are still there."""
    found: set[str] = set()
    for start in range(0, len(ids), _AT_ONCE):
        params = {"ids": ",".join(ids[start : start + _AT_ONCE])}
        page = reading.client.request("GET", CHANGED_PATH.format(dataset_id=dataset.id), params=params)
        kept = read_records(reading, dataset, page["items"], tally)
        found |= {record.record_uuid for record in kept}
        reading.progress(f"{dataset.workspace}/{dataset.name}", min(start + _AT_ONCE, len(ids)), len(ids))
    return found
