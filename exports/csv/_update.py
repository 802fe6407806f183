"""An earlier export and a server that tells what changed in: what a full export would write out, most of it as it was.

What is read anew is a unit as a whole, in every dataset that holds it: two of them may have responses of one person.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from heapq import merge
from operator import itemgetter
from typing import Any, NamedTuple

from annotation.campaign.datasets import JuryDataset
from annotation.client import Argilla
from annotation.units import CHANGED_PATH, PAGE_RECORDS, STATES_PATH
from exports.csv._index import EarlierExport, Index, IndexedRecord, dataset_state
from exports.csv._spool import KeptRecord
from exports.csv.fetch import (
    ReadDataset,
    Reading,
    Tally,
    counts_apart,
    exported_statuses,
    fetched_ahead,
    read_records,
    record_state,
    wants,
)
from exports.csv.folder import CONTROLS_FILE, EVIDENCE_FILE, PROVENANCE_FILE
from exports.csv.tables import Piece, Span
from pipeline.errors import NotFoundError

Unit = tuple[str, str, str]
"""Task, record and passage; no passage outside retrieval."""
_AT_ONCE = 100  # ids in one address


class Update(NamedTuple):
    """What an update takes over from the earlier export, beside what is in the spool."""

    read: list[ReadDataset]
    """The datasets, as if all of them had been read."""
    earlier: EarlierExport
    """The earlier export."""
    kept: list[IndexedRecord]
    """Its records that are as they were."""
    touched: set[Unit]
    """Units of which anything changed: all there is of them is in the spool."""

    def pieces(self, name: str, fresh: Iterator[Piece]) -> Iterator[Piece]:
        """The rows of one file, given those of touched units, in order."""
        return self.earlier.with_fresh(name, self._touches(name), fresh)

    def replaced(self, name: str) -> Iterator[Piece]:
        """The rows of touched units that the earlier file has, in order."""
        return self.earlier.units(name, self._touches(name))

    def provenance(self, fresh: Iterator[tuple[str, Sequence[str]]]) -> Iterator[tuple[str, Sequence[str]]]:
        """What each dataset tells of records with touched units, in order of records; `fresh` is what was read now."""
        records = self._records()
        told = {each.told for each in self.kept if each.told is not None and each.record_uuid in records}
        stays = [(record_uuid, json.loads(cells)) for record_uuid, cells in map(self.earlier.told, told)]
        return merge(sorted(stays), fresh, key=itemgetter(0))

    def _records(self) -> set[str]:
        """Records of which a unit is touched."""
        return {record_uuid for _, record_uuid, _ in self.touched}

    def _touches(self, name: str) -> Callable[[Span], bool]:
        """Whether lines of the file are of a touched unit, or in provenance of a record that has one."""
        if name == PROVENANCE_FILE:
            records = self._records()
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

    Raises:
        ArgillaError: the server does not answer, or an answer is neither yes nor no.
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
            read.append(listed.read)
            changed[dataset.id] = listed.changed
            kept |= {(dataset.id, record.id): record for record in listed.kept}
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
    """Pages of the dataset's records in order of arrival, as `record_pages` has them, but without any text.

    Raises:
        NotFoundError: the server is a stock Argilla.
    """
    after = None
    while True:
        params = {"limit": PAGE_RECORDS} | ({"after": after} if after else {})
        page = client.request("GET", STATES_PATH.format(dataset_id=dataset_id), params=params)
        yield page["items"]
        after = page["next"]
        if after is None:
            return


class _Listed(NamedTuple):
    """A dataset's records, told apart."""

    read: ReadDataset
    """The dataset, with what is as it was counted."""
    kept: list[IndexedRecord]
    """Records that are as they were."""
    changed: list[str]
    """Ids of those with responses that are not."""


def _list_records(reading: Reading, dataset: JuryDataset, coming: Future[EarlierExport]) -> _Listed | None:
    """The records of the dataset that are as they were, and the others; None where it takes a full export."""
    statuses, total, tally = exported_statuses(reading.filters), 0, Tally()
    kept: list[IndexedRecord] = []
    changed: list[str] = []
    try:
        for page in fetched_ahead(_record_states(reading.client, dataset.id)):
            earlier = coming.result()
            is_same = earlier.datasets.get(dataset.id) == dataset_state(dataset)
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
    return _Listed(ReadDataset(dataset, total, tally), kept, changed)


def _count(
    reading: Reading, tally: Tally, known: IndexedRecord, responses: Sequence[Mapping[str, Any]], *, is_exported: bool
) -> None:
    """Count the responses to a record that is as it was."""
    if known.purpose != "label":
        tally.add_apart(known.purpose, sum(counts_apart(reading, each, known.language) for each in responses))
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
