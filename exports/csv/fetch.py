"""Argilla's responses as sorted rows: read over REST page by page, safely while people annotate."""

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

from annotation.campaign.datasets import JuryDataset
from annotation.campaign.versions import guideline_version_at
from annotation.client import Argilla
from annotation.display import HIDDEN
from annotation.labels import LABELS, TaskName
from exports.csv._marks import evidence_line, exported_marks
from exports.csv.annotators import Annotators
from exports.csv.provenance import provenance_cells
from exports.csv.tables import LINE_END, csv_cells, record_values, response_values, table_columns, utc
from exports.schema import COLUMNS, ExportedDataset, ExportFilters
from pipeline.errors import ArgillaError, RecordsMovedError

_SCHEMA = """
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    CREATE TABLE records (dataset TEXT, id TEXT, PRIMARY KEY (dataset, id)) WITHOUT ROWID;
    CREATE TABLE rows (
        dataset TEXT, kind TEXT, discarded INTEGER,
        record_uuid TEXT, chunk_rank INTEGER, chunk_id TEXT, annotator_id TEXT, response_id TEXT,
        place INTEGER, length INTEGER
    );
    CREATE TABLE provenance (dataset TEXT, record_uuid TEXT, cells TEXT, PRIMARY KEY (record_uuid, dataset, cells))
        WITHOUT ROWID;
"""
_ORDER = "record_uuid, chunk_rank, chunk_id, annotator_id, response_id, place"
_ATTEMPTS = 5
"""How often a dataset is read again because its records were added or deleted meanwhile."""


Table = TaskName | Literal["evidence"]
"""What has a file of its own: a task, or the marks on contexts."""


class SpooledRow(NamedTuple):
    """One response or mark, with what it is sorted by and its finished line."""

    table: Table
    """What it is a row of."""
    discarded: bool
    """Whether it belongs among the discarded ones."""
    record_uuid: str
    """First sort key."""
    chunk_rank: int
    """Second sort key; 0 outside retrieval."""
    chunk_id: str
    """Third sort key; empty outside retrieval."""
    annotator_id: str
    """Fourth sort key."""
    response_id: str
    """Last sort key: settles the order where all others are equal."""
    line: bytes
    """The row as a line of CSV in UTF-8, its line end included."""


class Spool:
    """Two files of rows in no order that gives them back sorted; it is a context manager."""

    def __init__(self, path: Path) -> None:
        """Make the files `path` and `path`.lines, which must not exist; whoever made their folder removes them."""
        self._lines = path.with_name(f"{path.name}.lines").open("x+b")
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.executescript(_SCHEMA)
        self._database.execute("BEGIN")

    def __enter__(self) -> Self:
        """The spool itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the files."""
        self._database.close()
        self._lines.close()

    def keep_new(self, dataset: str, record_ids: Sequence[str]) -> set[str]:
        """Those of the records that were not met before; they are from now on."""
        marks = ", ".join("?" * len(record_ids))
        found = f"SELECT id FROM records WHERE dataset = ? AND id IN ({marks})"
        new = set(record_ids).difference(*self._database.execute(found, (dataset, *record_ids)))
        self._database.executemany("INSERT INTO records VALUES (?, ?)", ((dataset, record_id) for record_id in new))
        return new

    def count_records(self, dataset: str) -> int:
        """Distinct records of the dataset that were met."""
        (count,) = self._database.execute("SELECT count(*) FROM records WHERE dataset = ?", (dataset,)).fetchone()
        return int(count)

    def add(self, dataset: str, rows: list[SpooledRow]) -> None:
        """Keep the rows of some records of the dataset."""
        place = self._lines.tell()
        kept = []
        for *keys, line in rows:
            kept.append((dataset, *keys, place, len(line)))
            place += len(line)
        self._lines.write(b"".join(row.line for row in rows))
        self._database.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", kept)

    def add_provenance(self, dataset: str, told: Iterable[tuple[str, Sequence[str]]]) -> None:
        """Keep what the dataset tells of some records: their ids, and the columns behind `record_uuid`."""
        kept = [(dataset, record_uuid, json.dumps(cells)) for record_uuid, cells in told]
        self._database.executemany("INSERT OR IGNORE INTO provenance VALUES (?, ?, ?)", kept)

    def provenance(self) -> Iterator[tuple[str, Sequence[str]]]:
        """What each dataset tells of each record, in order of records."""
        found = self._database.execute("SELECT DISTINCT record_uuid, cells FROM provenance ORDER BY record_uuid, cells")
        for record_uuid, cells in found:
            yield record_uuid, json.loads(cells)

    def forget(self, dataset: str) -> None:
        """Drop everything of the dataset, to read it again."""
        for table in ("records", "rows", "provenance"):
            self._database.execute(f"DELETE FROM {table} WHERE dataset = ?", (dataset,))

    def rows(self, table: Table, discarded: bool) -> Iterator[tuple[str, str, bytes]]:
        """Record, annotator and line of each row of one file, sorted by code point (exports/contracts/csv.md)."""
        self._lines.flush()
        file = self._lines.fileno()
        found = self._database.execute(
            "SELECT record_uuid, annotator_id, length, place FROM rows WHERE kind = ? AND discarded = ? "
            f"ORDER BY {_ORDER}",
            (table, discarded),
        )
        for record_uuid, annotator_id, length, place in found:
            yield record_uuid, annotator_id, os.pread(file, length, place)


_Page = tuple[int, list[dict[str, Any]]]
"""The dataset's total at that moment, and some of its records."""

Progress = Callable[[str, int, int], None]
"""Told the workspace and name of the dataset, the records read so far, and the records it holds."""


class Reading(NamedTuple):
    """What reading a dataset needs beside the dataset."""

    client: Argilla
    """The server."""
    filters: ExportFilters
    """Which responses are wanted, and which columns."""
    annotators: Annotators
    """Their names."""
    spool: Spool
    """Where the rows go."""
    progress: Progress
    """Told how far the reading is."""


class Tally:
    """Whose responses there are in which languages, and which of them the filters let through."""

    def __init__(self) -> None:
        """Begin without responses."""
        self.submitted: set[tuple[str, str]] = set()
        """User id and language of every submitted response, whatever was asked for."""
        self.exported: set[tuple[str, str]] = set()
        """The same of those that are rows now."""
        self.stamps: tuple[str, str] | None = None
        """The first and the last `updated_at` of a submitted response, as the server writes them."""
        self.cut_marks = 0
        """Marks on more than the text of one passage."""
        self.lost_marks: list[tuple[str, str]] = []
        """Record and annotator of each mark on no passage's text."""

    def add(self, response: Mapping[str, Any], language: str, wanted: bool) -> None:
        """Count a response; only submitted ones do."""
        if response["status"] != "submitted":
            return
        whose, stamp = (response["user_id"], language), response["updated_at"]
        self.submitted.add(whose)
        first, last = self.stamps or (stamp, stamp)
        self.stamps = min(first, stamp), max(last, stamp)
        if wanted:
            self.exported.add(whose)


class ReadDataset(NamedTuple):
    """A dataset that was read."""

    described: ExportedDataset
    """What the manifest says of it."""
    tally: Tally
    """Whose responses it holds."""


def read_dataset(reading: Reading, dataset: JuryDataset) -> ReadDataset:
    """What was read: the wanted responses of the dataset are in the spool, each record once.

    Pages shift when records are deleted or added meanwhile. So the records are counted by id against the server's
    total, and all is read again when they differ, the total changed on the way, or a page does not follow its last.

    Raises:
        ArgillaError: the records kept changing, or an answer is neither yes nor no.
    """
    for _ in range(_ATTEMPTS):
        reading.spool.forget(dataset.id)
        with suppress(RecordsMovedError):
            found = _read_once(reading, dataset)
            if found is not None:
                return found
    raise ArgillaError(
        f"The records of the dataset {dataset.name!r} changed each of the {_ATTEMPTS} times they were read. Wait until "
        "nobody pushes or deletes records, then export again."
    )


def _read_once(reading: Reading, dataset: JuryDataset) -> ReadDataset | None:
    """What was read; None where records were added or deleted meanwhile, so that the spool may lack some.

    Raises:
        RecordsMovedError: records were deleted meanwhile.
        ArgillaError: an answer is neither yes nor no.
    """
    tally = Tally()
    totals: set[int] = set()
    foreign = read = 0
    for total, page in _fetched_ahead(reading.client.record_pages(dataset.id)):
        totals.add(total)
        if len(totals) > 1:
            return None
        new = reading.spool.keep_new(dataset.id, [record["id"] for record in page])
        answered = [(record, _counted_responses(record, reading.filters)) for record in page if record["id"] in new]
        ours = [(record, responses) for record, responses in answered if responses and is_ours(record)]
        foreign += sum(1 for record, responses in answered if responses and not is_ours(record))
        reading.spool.add(dataset.id, _page_rows(reading, dataset, ours, tally))
        read += len(page)
        reading.progress(f"{dataset.workspace}/{dataset.name}", read, total)
    if totals != {reading.spool.count_records(dataset.id)}:
        return None
    return ReadDataset(
        ExportedDataset(
            task=dataset.task,
            id=dataset.id,
            name=dataset.name,
            workspace=dataset.workspace,
            round=dataset.round,
            guideline_version=dataset.guideline_version,
            records=totals.pop(),
            foreign_records=foreign,
            cut_marks=tally.cut_marks,
            lost_marks=len(tally.lost_marks),
        ),
        tally,
    )


def _fetched_ahead(pages: Iterator[_Page]) -> Iterator[_Page]:
    """The same pages; while one is worked on, the next is fetched. Two pages at most are held."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        coming = pool.submit(next, pages, None)
        while (page := coming.result()) is not None:
            coming = pool.submit(next, pages, None)
            yield page


def _counted_responses(record: Mapping[str, Any], filters: ExportFilters) -> list[dict[str, Any]]:
    """The record's responses of a status that is exported: drafts never are, discarded ones on request."""
    statuses = ("submitted", "discarded") if filters.discarded else ("submitted",)
    return [response for response in record["responses"] or () if response["status"] in statuses]


def is_ours(record: Mapping[str, Any]) -> bool:
    """Whether citejury pushed the record: only then its `record_uuid` is known."""
    hidden = (record["metadata"] or {}).get(HIDDEN)
    return isinstance(hidden, dict) and "record_uuid" in hidden


def _page_rows(
    reading: Reading,
    dataset: JuryDataset,
    answered: Sequence[tuple[dict[str, Any], list[dict[str, Any]]]],
    tally: Tally,
) -> list[SpooledRow]:
    """A finished row for each wanted response to the records of a page; each response is counted.

    Raises:
        ArgillaError: an answer is neither yes nor no.
    """
    chosen: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    for record, responses in answered:
        language = record["metadata"][HIDDEN].get("language") or "und"
        wanted = [_wants(reading, response, language) for response in responses]
        for response, is_wanted in zip(responses, wanted, strict=True):
            tally.add(response, language, is_wanted)
        kept = [response for response, is_wanted in zip(responses, wanted, strict=True) if is_wanted]
        if kept:
            chosen.append((record, kept))
    reading.annotators.meet({response["user_id"] for _, kept in chosen for response in kept})
    told = [(record["metadata"][HIDDEN]["record_uuid"], provenance_cells(record)) for record, _ in chosen]
    reading.spool.add_provenance(dataset.id, told)
    rows = [row for record, kept in chosen for row in _record_rows(reading, dataset, record, kept)]
    if dataset.evidence == "off":
        return rows
    return rows + [row for record, kept in chosen for row in _mark_rows(reading, dataset, record, kept, tally)]


def _wants(reading: Reading, response: Mapping[str, Any], language: str) -> bool:
    """Whether the response fits the filters."""
    filters = reading.filters
    if filters.languages and language not in filters.languages:
        return False
    user_id = response["user_id"]
    if filters.annotators and not {user_id, reading.annotators.name(user_id)} & set(filters.annotators):
        return False
    if filters.since is None and filters.until is None:
        return True
    moment = utc(response["updated_at"])
    return (filters.since is None or moment >= filters.since) and (filters.until is None or moment < filters.until)


def _record_rows(
    reading: Reading, dataset: JuryDataset, record: Mapping[str, Any], responses: Sequence[Mapping[str, Any]]
) -> Iterator[SpooledRow]:
    """One finished row for each response to one record.

    Raises:
        ArgillaError: an answer is neither yes nor no, or the record is not one of ours.
    """
    task, filters = dataset.task, reading.filters
    shared = record_values(task, record, filters.extended)
    if filters.extended:
        shared |= {"round": dataset.round, "dataset_id": dataset.id, "workspace": dataset.workspace}
        shared["dataset_version"] = dataset.version
    n_texts = COLUMNS[task].index(LABELS[task][0])
    # Once: they are long, and the same in every row.
    texts = csv_cells(shared, COLUMNS[task][:n_texts], filters.spreadsheet_safe)
    columns = {kind: table_columns(task, filters, kind)[n_texts:] for kind in (False, True)}
    for response in responses:
        annotator_id = reading.annotators.exported_name(response["user_id"])
        values = shared | response_values(task, record, response, annotator_id, filters.extended)
        if filters.extended:
            values["guideline_version"] = guideline_version_at(dataset.metadata, response["updated_at"])
        if filters.anonymized:
            values["response_id"] = ""  # whoever may read the server finds the person by it
        discarded = response["status"] == "discarded"
        others = csv_cells(values, columns[discarded], filters.spreadsheet_safe)
        yield SpooledRow(
            table=task,
            discarded=discarded,
            record_uuid=values["record_uuid"],
            chunk_rank=values["chunk_rank"] or 0,
            chunk_id=values["chunk_id"],
            annotator_id=annotator_id,
            response_id=response["id"],
            line=texts + b"," + others + LINE_END,
        )


def _mark_rows(
    reading: Reading,
    dataset: JuryDataset,
    record: Mapping[str, Any],
    responses: Sequence[Mapping[str, Any]],
    tally: Tally,
) -> Iterator[SpooledRow]:
    """One finished row for each mark in the responses to one record; those that cannot be one are counted."""
    for response in responses:
        annotator_id = reading.annotators.exported_name(response["user_id"])
        marks = exported_marks(dataset, record, response, annotator_id)
        tally.cut_marks += marks.cut
        tally.lost_marks += [(record["metadata"][HIDDEN]["record_uuid"], annotator_id)] * marks.lost
        for row in marks.rows:
            yield SpooledRow(
                table="evidence",
                discarded=False,
                record_uuid=row.record_uuid,
                chunk_rank=row.chunk_rank,
                chunk_id=row.chunk_id,
                annotator_id=annotator_id,
                response_id=response["id"],
                line=evidence_line(row),
            )
