"""The rows of export files, typed and sorted, one for each unit and annotator; kept on disk, so memory stays flat."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, Self

from annotation.argilla.labels import LABELS, TaskName, is_of_passages
from exports.csv.folder import PROVENANCE_FILE
from exports.csv.rows import EXTENDED_COLUMNS, PAIR_COLUMNS
from exports.csv.schema import COLUMNS, query_column, text_columns
from exports.dataset.splits import RecordLink, digest
from exports.reading.input_files import csv_rows
from exports.reading.provenance import ReadProvenance
from exports.reading.read import Response, holds_discarded, moment_or_none, read_responses
from exports.statistics.consensus import ConsensusLabel
from exports.statistics.ratings import EPOCH, MICROSECOND, MISSING, NO, YES
from pipeline.core.errors import InputError
from pipeline.records.schema import CONTEXT_SEPARATOR, Provenance

Row = dict[str, Any]
TIME_COLUMNS = ("created_at", "inserted_at", "updated_at")

_SCHEMA, _ADD = (Path(__file__).with_name(name).read_text("utf-8") for name in ("rows.sql", "add.sql"))
_COUNTED_RECORDS = "record_uuid IN (SELECT record_uuid FROM rows WHERE NOT discarded)"


class RowStore:
    """A file of rows; it is a context manager.

    Of several rows by one annotator on one unit the one stays that `Collection.finish` chooses: the newest, submitted
    or discarded alike. Where that is a discarded one, nothing of the unit and annotator is given back.
    """

    def __init__(self, path: Path, provenance: ReadProvenance) -> None:
        """Make the file, which must not exist; a cell that a row has itself comes before `provenance` by record."""
        self.provenance = provenance
        self._linked: tuple[str, ...] = ()
        self.differing: list[str] = []  # Cells of rows that say something else than `provenance.csv`, in words
        self.origins: dict[str, dict[str, str]] = {}  # Narrative and model of each record, where they are known
        self.columns: dict[TaskName, tuple[str, ...]] = {}
        self.unknown: dict[str, list[str]] = {}  # Columns that no export has, by file; they are left out
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.executescript(_SCHEMA)
        self._database.execute("BEGIN")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def add_file(self, path: Path, task: TaskName) -> None:
        """Add submitted and discarded responses of a file; cells that cannot be read are listed after its last row."""
        _, header = next(csv_rows(path))
        if not holds_discarded(path):
            self.check_columns(path, task, header)
        for response in read_responses(path, task):
            unit = task, response.record_uuid, response.chunk_id, response.annotator_id
            moment = (response.created_at - EPOCH) // MICROSECOND
            if response.status == "discarded":
                self._database.execute(_ADD, (*unit, 0, moment, True, ""))
            elif response.status == "submitted":
                place = f"{path.name}, line {response.line}"
                row = self.with_provenance(_typed_row(task, header, response, place), place)
                cells = (row.get("chunk_rank", 0), moment, False, json.dumps(row))
                self._database.execute(_ADD, (*unit, *cells))
                self.add_links(task, row)

    def add_links(self, task: TaskName, row: Row) -> None:
        """Note what ties the record of a row to others, once for the annotators of a unit, who follow each other."""
        names = ("record_uuid", "narrative_id", "input_query", "query", "chunk_id", "doc_id", "chunk", "context_set")
        linking = (task, *(row.get(name, "") for name in names))
        if linking != self._linked:
            self._database.executemany("INSERT OR IGNORE INTO links VALUES (?, ?, ?, ?)", _links(task, row))
            self._linked = linking
            known = {name: row[name] for name in ("narrative_id", "model_name") if row.get(name)}
            if known:
                self.origins[row["record_uuid"]] = self.origins.get(row["record_uuid"], {}) | known

    def with_provenance(self, row: Row, place: str) -> Row:
        """What is told of its record stands where the row has nothing itself; what differs is noted with its place."""
        told = self.provenance.rows.get(row["record_uuid"], {})
        for name in Provenance.model_fields:
            value = told.get(name)
            if value and row.get(name) and row[name] != value:
                self.differing.append(f"{place}, `{name}`: {row[name]!r}, not {value!r}")
            elif value:
                row[name] = value
        return row

    def check_columns(self, path: Path, task: TaskName, header: Sequence[str]) -> None:
        for column in (*text_columns(task), *(("chunk_rank",) if is_of_passages(task) else ())):
            if column not in header:
                raise InputError(f"`{path}` has no column `{column}`, which a dataset needs. Export it again.")
        unknown = [name for name in header if name not in {*COLUMNS[task], *PAIR_COLUMNS, *EXTENDED_COLUMNS}]
        if unknown:
            self.unknown[path.name] = unknown
        told = [name for name in self.provenance.columns if name in Provenance.model_fields]
        there = {*self.columns.get(task, ()), *header, *told}
        extended = tuple(name for name in EXTENDED_COLUMNS if name in there)
        self.columns[task] = (*PAIR_COLUMNS, *COLUMNS[task], *extended)

    def warnings(self) -> list[str]:
        found = [
            f"{file}: the columns {', '.join(f'`{name}`' for name in names)} are no part of an export and are left out."
            for file, names in self.unknown.items()
        ]
        if self.differing:
            found.append(
                f"Cells that say something else than `{PROVENANCE_FILE}`: {len(self.differing)}; the rows' own count "
                f"(the first: {self.differing[0]})."
            )
        return found

    def count(self, task: TaskName) -> int:
        found = self._database.execute("SELECT count(*) FROM rows WHERE task = ? AND NOT discarded", (task,))
        return int(found.fetchone()[0])

    def links(self) -> Iterator[RecordLink]:
        found = self._database.execute(f"SELECT * FROM links WHERE {_COUNTED_RECORDS}")
        yield from (RecordLink(*values) for values in found)

    def common_passage(self) -> tuple[int, str]:
        """How many records share the passage that most of them share, and the first of them; 0 without passages."""
        found = self._database.execute(
            "SELECT count(DISTINCT record_uuid), min(record_uuid) FROM links "
            f"WHERE passage != '' AND {_COUNTED_RECORDS} GROUP BY passage ORDER BY 1 DESC, 2 LIMIT 1"
        ).fetchone()
        return (0, "") if found is None else (int(found[0]), str(found[1]))

    def rows(self, task: TaskName) -> Iterator[dict[str, Any]]:
        """Sorted by record, rank, passage and annotator (exports/contracts/csv.md).

        A text is never None; a label that was not answered is, and so is a time that the file does not have.
        """
        found = self._database.execute(
            "SELECT cells FROM rows WHERE task = ? AND NOT discarded "
            "ORDER BY record_uuid, chunk_rank, chunk_id, annotator_id",
            (task,),
        )
        for (cells,) in found:
            values = json.loads(cells)
            row = {name: values.get(name, "") for name in self.columns[task]}
            times = [name for name in TIME_COLUMNS if name in row]
            yield row | {name: datetime.fromisoformat(row[name]) if row[name] else None for name in times}


def _typed_row(task: TaskName, header: Sequence[str], response: Response, place: str) -> Row:
    row: Row = dict(zip(header, response.cells, strict=True))
    row["text"], row["text_pair"] = (row[column] for column in text_columns(task))
    row |= {
        label: {YES: True, NO: False, MISSING: None}[value]
        for label, value in zip(LABELS[task], response.labels, strict=True)
    }
    row |= {"record_uuid": response.record_uuid, "annotator_id": response.annotator_id, "task": task}
    for name in TIME_COLUMNS:
        if row.get(name):
            told = moment_or_none(row[name])
            if told is None:
                raise InputError(
                    f"{place}, `{name}`: found {row[name]!r}, expected a time such as 2025-03-08T23:43:00+00:00, or "
                    "nothing."
                )
            row[name] = told.isoformat()
    if is_of_passages(task):
        row |= {"chunk_id": response.chunk_id, "chunk_rank": int(row["chunk_rank"])}
    return row


def _links(task: TaskName, row: Row) -> Iterator[RecordLink]:
    """Its narrative and query, and each passage by text and ids; parts of the context without words tie nothing."""
    query = row[query_column(task)] if query_column(task) else ""
    yield RecordLink(row["record_uuid"], row.get("narrative_id", ""), query)
    columns = text_columns(task)
    texts = row["context_set"].split(CONTEXT_SEPARATOR) if "context_set" in columns else []
    texts += [row["chunk"]] if "chunk" in columns else []
    passages = [digest(f"text {words}") for words in (" ".join(text.split()) for text in texts) if words]
    if is_of_passages(task) and row.get("doc_id"):
        passages.append(digest(f"ids {row['doc_id']} {row['chunk_id']}"))
    for passage in passages:
        yield RecordLink(row["record_uuid"], "", "", passage)


def soft_label(found: ConsensusLabel) -> float | None:
    """The label as a number from 0 to 1: the decision, the posterior or the vote share; None where nobody voted."""
    if found.consensus_source == "adjudicated":
        return float(bool(found.consensus))
    return found.posterior if found.consensus_source == "ds" else found.vote_share


def consensus_rows(
    rows: Iterable[Row], task: TaskName, found: Iterable[ConsensusLabel]
) -> Iterator[tuple[Row, list[ConsensusLabel]]]:
    """One row a unit with texts, ids and the consensus on each label, beside that consensus; one record is held.

    `rows` and `found` are of the same units, sorted by record; within a record units come in the order of their first
    rows.
    """
    responses = groupby(rows, key=itemgetter("record_uuid"))
    by_record = groupby(found, key=attrgetter("record_uuid"))
    for (_, of_rows), (_, of_labels) in zip(responses, by_record, strict=True):
        units: dict[str, list[Row]] = {}
        for row in of_rows:
            units.setdefault(row.get("chunk_id", ""), []).append(row)
        labels: dict[str, list[ConsensusLabel]] = {}
        for label in of_labels:
            labels.setdefault(label.chunk_id, []).append(label)
        for chunk_id, answered in units.items():
            row = answered[0] | {"n_ratings": len(answered)}
            for said in labels[chunk_id]:
                row |= {said.label: said.consensus, f"{said.label}_vote_share": said.vote_share}
                row |= {f"{said.label}_posterior": said.posterior, f"{said.label}_source": said.consensus_source}
            yield row, labels[chunk_id]
