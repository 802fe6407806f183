"""The rows of export files, typed and sorted, one for each unit and annotator; kept on disk, so memory stays flat."""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from heapq import merge
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, get_args

from annotation.labels import LABELS, TASKS, TaskName
from exports.agreement.consensus import ConsensusLabel
from exports.agreement.ratings import EPOCH, MICROSECOND, MISSING, NO, YES
from exports.csv.tables import EXTENDED_COLUMNS, PAIR_COLUMNS, TEXT_COLUMNS
from exports.reading.collection import Response, moment_or_none
from exports.reading.read import csv_rows, holds_discarded, read_responses
from exports.schema import COLUMNS
from pipeline.errors import InputError
from pipeline.records import Provenance
from pipeline.schema import Frozen

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)


class SplitShares(Frozen):
    """How much of the narratives each split is meant to get; together 1."""

    train: float
    """Share of the train split."""
    validation: float
    """Share of the validation split."""
    test: float
    """Share of the test split."""


class RecordLink(NamedTuple):
    """What ties a record to others; several links of one record all count."""

    record_uuid: str
    """Id of the record."""
    narrative_id: str
    """Id of its narrative; empty where the export does not tell."""
    query: str
    """Its query; empty where the row has none."""


class Placed(NamedTuple):
    """Where a record belongs."""

    split: SplitName
    """Its split."""
    group: str
    """16 hexadecimal digits, the same for all records that must stay together."""


def read_shares(text: str) -> SplitShares:
    """The shares that a text such as `80,10,10` names, for train, validation and test.

    Raises:
        ValueError: these are not three numbers from 0 that make 100, with something for train.
    """
    numbers = [float(part) for part in text.split(",")]
    if len(numbers) != len(SPLITS) or not all(0 <= number <= 100 for number in numbers) or numbers[0] == 0:
        raise ValueError(f"{text!r} is not three shares from 0 with some for train")
    if abs(sum(numbers) - 100) > 1e-9:
        raise ValueError(f"{text!r} does not make 100")
    train, validation, test = (number / 100 for number in numbers)
    return SplitShares(train=train, validation=validation, test=test)


def group_records(links: Iterable[RecordLink]) -> dict[str, str]:
    """The group of each record: records that share a narrative id or a query, directly or through others, share it.

    A group is named after its smallest narrative id; where it has none, after its smallest query; else after the
    record. So it keeps its name when records of other narratives are added.
    """
    parents: dict[str, str] = {}

    def root(node: str) -> str:
        while parents.setdefault(node, node) != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    records: dict[str, str] = {}
    for link in links:
        records[link.record_uuid] = own = f"record {link.record_uuid}"
        nodes = [own]
        # The digits sort narratives before queries, and those before records.
        nodes += [f"1 {link.narrative_id}"] if link.narrative_id else []
        nodes += [f"2 {_digest(link.query)}"] if link.query else []
        first, *others = sorted(root(node) for node in nodes)
        for other in others:
            parents[other] = first
    return {record: _digest(root(own)) for record, own in records.items()}


def _digest(text: str) -> str:
    """16 hexadecimal digits that stand for the text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def place_records(groups: Mapping[str, str], shares: SplitShares, seed: int) -> dict[str, Placed]:
    """The split of each record, by a hash of seed and group: adding records moves none that is there already."""
    return {record: Placed(_split_of(group, shares, seed), group) for record, group in groups.items()}


def _split_of(group: str, shares: SplitShares, seed: int) -> SplitName:
    """The split of a group: where its hash falls between 0 and 1."""
    place = int.from_bytes(hashlib.sha256(f"{seed} {group}".encode()).digest()[:8], "big") / 2**64
    if place < shares.test:
        return "test"
    return "validation" if place < shares.test + shares.validation else "train"


Row = dict[str, Any]
_RETRIEVAL_COLUMNS: Mapping[str, str] = {
    "n_chunks": "int64",
    "topically_relevant_share": "float64",
    "first_relevant_rank": "int64",
    "any_evidence_sufficient": "bool",
    "any_misleading": "bool",
}
"""What is said of all passages of a query together, with types."""
_TEXTS: Mapping[TaskName, Mapping[str, str]] = {
    "retrieval": {"query": "text"},
    "grounding": {"answer": "text", "context_set": "text_pair"},
    "generation": {"query": "text", "answer": "text_pair"},
}
"""The texts of the merged view, and where each task keeps them."""


_QUERY_COLUMNS: Mapping[TaskName, str] = {"retrieval": "input_query", "generation": "query"}
TIME_COLUMNS = ("created_at", "inserted_at", "updated_at")
_COUNTED = ("submitted", "discarded")
_KNOWN_VALUES: Mapping[int, bool | None] = {YES: True, NO: False, MISSING: None}

_SCHEMA = """
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    CREATE TABLE rows (
        task TEXT, record_uuid TEXT, chunk_id TEXT, annotator_id TEXT, chunk_rank INTEGER, moment INTEGER,
        discarded INTEGER, narrative_id TEXT, query TEXT, cells TEXT,
        PRIMARY KEY (task, record_uuid, chunk_id, annotator_id)
    ) WITHOUT ROWID;
"""
_ADD = """
    INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET
        chunk_rank = excluded.chunk_rank, moment = excluded.moment, discarded = excluded.discarded,
        narrative_id = excluded.narrative_id, query = excluded.query, cells = excluded.cells
    WHERE excluded.moment >= moment
"""


class RowStore:
    """A file of rows; it is a context manager.

    Of several rows by one annotator on one unit the one stays that `Collection.finish` chooses: the newest, submitted
    or discarded alike. Where that is a discarded one, nothing of the unit and annotator is given back.
    """

    def __init__(self, path: Path) -> None:
        """Make the file, which must not exist; whoever made its folder removes it."""
        self.columns: dict[TaskName, tuple[str, ...]] = {}
        """The columns of each task that has a file, in their order."""
        self.unknown: dict[str, list[str]] = {}
        """Columns that no export has, by file; they are left out."""
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.executescript(_SCHEMA)
        self._database.execute("BEGIN")

    def __enter__(self) -> Self:
        """The store itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the file."""
        self._database.close()

    def add_file(self, path: Path, task: TaskName) -> None:
        """Add the submitted and discarded responses of a file of the task.

        Raises:
            InputError: the file cannot be read, lacks a text, or has a time beside `created_at` that is none.
            BadRowsError: after the last row: some cells could not be read; each is listed.
        """
        _, header = next(csv_rows(path))
        if not holds_discarded(path):
            self.check_columns(path, task, header)
        responses = read_responses(path, task)
        self._database.executemany(
            _ADD, (_stored(path, task, header, found) for found in responses if found.status in _COUNTED)
        )

    def check_columns(self, path: Path, task: TaskName, header: Sequence[str]) -> None:
        """Note which columns of a file are known.

        Raises:
            InputError: a text or the rank is missing.
        """
        for column in (*TEXT_COLUMNS[task], *(("chunk_rank",) if task == "retrieval" else ())):
            if column not in header:
                raise InputError(f"`{path}` has no column `{column}`, which a dataset needs. Export it again.")
        unknown = [name for name in header if name not in {*COLUMNS[task], *PAIR_COLUMNS, *EXTENDED_COLUMNS}]
        if unknown:
            self.unknown[path.name] = unknown
        there = {*self.columns.get(task, ()), *header}
        extended = tuple(name for name in EXTENDED_COLUMNS if name in there)
        self.columns[task] = (*PAIR_COLUMNS, *COLUMNS[task], *extended)

    def warnings(self) -> list[str]:
        """A sentence for each file with columns that no export has."""
        return [
            f"{file}: the columns {', '.join(f'`{name}`' for name in names)} are no part of an export and are left out."
            for file, names in self.unknown.items()
        ]

    def count(self, task: TaskName) -> int:
        """How many rows the task has."""
        (count,) = self._database.execute(
            "SELECT count(*) FROM rows WHERE task = ? AND NOT discarded", (task,)
        ).fetchone()
        return int(count)

    def links(self) -> Iterator[RecordLink]:
        """What ties each record to others, over all tasks."""
        found = self._database.execute(
            "SELECT DISTINCT record_uuid, narrative_id, query FROM rows WHERE NOT discarded "
            "ORDER BY record_uuid, narrative_id, query"
        )
        yield from (RecordLink(*values) for values in found)

    def rows(self, task: TaskName) -> Iterator[dict[str, Any]]:
        """The rows of a task by column, sorted by record, rank, passage and annotator (exports/contracts/csv.md).

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


def _stored(path: Path, task: TaskName, header: Sequence[str], response: Response) -> tuple[str | int, ...]:
    """One response of the file as the store keeps it.

    Raises:
        InputError: a time is none.
    """
    moment = (response.created_at - EPOCH) // MICROSECOND
    key = (task, response.record_uuid, response.chunk_id, response.annotator_id)
    if response.status == "discarded":
        return (*key, 0, moment, True, "", "", "")
    row: dict[str, Any] = dict(zip(header, response.cells, strict=True))
    row["text"], row["text_pair"] = (row[column] for column in TEXT_COLUMNS[task])
    row |= {label: _KNOWN_VALUES[value] for label, value in zip(LABELS[task], response.labels, strict=True)}
    row |= {"record_uuid": response.record_uuid, "annotator_id": response.annotator_id, "task": task}
    for name in TIME_COLUMNS:
        if row.get(name):
            told = moment_or_none(row[name])
            if told is None:
                raise InputError(
                    f"{path.name}, line {response.line}, `{name}`: found {row[name]!r}, expected a time such as "
                    "2025-03-08T23:43:00+00:00, or nothing."
                )
            row[name] = told.isoformat()
    if task == "retrieval":
        row |= {"chunk_id": response.chunk_id, "chunk_rank": int(row["chunk_rank"])}
    return (
        *key,
        row.get("chunk_rank", 0),
        moment,
        False,
        row.get("narrative_id", ""),
        row[_QUERY_COLUMNS[task]] if task in _QUERY_COLUMNS else "",
        json.dumps(row),
    )


def soft_label(found: ConsensusLabel) -> float | None:
    """The label as a number from 0 to 1: the decision, the posterior or the vote share; None where nobody voted."""
    if found.consensus_source == "adjudicated":
        return float(bool(found.consensus))
    return found.posterior if found.consensus_source == "ds" else found.vote_share


def consensus_rows(
    rows: Iterable[Row], task: TaskName, found: Iterable[ConsensusLabel]
) -> Iterator[tuple[Row, list[ConsensusLabel]]]:
    """One row a unit with texts, ids and the consensus on each label, beside that consensus; one record is held.

    Both `rows` and `found`, which are of the same units, are sorted by record; labels are in the order of the task.
    Within a record the units come in the order of their first rows.
    """
    responses = groupby(rows, key=itemgetter("record_uuid"))
    said = groupby(found, key=attrgetter("record_uuid"))
    for (_, of_rows), (_, of_labels) in zip(responses, said, strict=True):
        units: dict[str, list[Row]] = {}
        for row in of_rows:
            units.setdefault(row["chunk_id"] if task == "retrieval" else "", []).append(row)
        labels: dict[str, list[ConsensusLabel]] = {}
        for label in of_labels:
            labels.setdefault(label.chunk_id, []).append(label)
        for chunk_id, answered in units.items():
            yield answered[0] | {"n_ratings": len(answered)} | _label_cells(labels[chunk_id]), labels[chunk_id]


def _label_cells(found: Iterable[ConsensusLabel]) -> Row:
    """The columns of each label of one unit."""
    cells: Row = {}
    for said in found:
        label = said.label
        cells[label] = said.consensus
        cells[f"{label}_vote_share"] = said.vote_share
        cells[f"{label}_posterior"] = said.posterior
        cells[f"{label}_source"] = said.consensus_source
    return cells


def merged_columns() -> dict[str, str]:
    """The columns of the merged view with their types: always all, whichever tasks there are."""
    names = ("record_uuid", "language", *Provenance.model_fields, "query", "answer", "context_set")
    types = dict.fromkeys(names, "string") | {f"{task}_ratings": "int64" for task in TASKS} | dict(_RETRIEVAL_COLUMNS)
    for task in TASKS:
        if task != "retrieval":
            types |= {label: "bool" for label in LABELS[task]}
            types |= {f"{label}_vote_share": "float64" for label in LABELS[task]}
    return types | {"split": "string", "group": "string"}


def merged_rows(units: Sequence[Iterable[Row]]) -> Iterator[Row]:
    """One row a record over the consensus rows of each task, which are sorted by record; a missing task is None.

    Retrieval, which has many units a record, is summed up; grounding and generation lend their labels.
    """
    record = itemgetter("record_uuid")
    for record_uuid, found in groupby(merge(*units, key=record), key=record):
        of_task: dict[str, list[Row]] = {}
        for row in found:
            of_task.setdefault(row["task"], []).append(row)
        merged: Row = {"record_uuid": record_uuid}
        for task in TASKS:
            if rows := of_task.get(task):
                merged |= _task_cells(task, rows)
        yield merged


def _task_cells(task: TaskName, rows: Sequence[Row]) -> Row:
    """What one task says of a record; `rows` are its units, in order of rank."""
    first = rows[0]
    shared = {name: first[name] for name in ("language", "split", "group", *Provenance.model_fields) if name in first}
    texts = {name: first[column] for name, column in _TEXTS[task].items()}
    ratings = {f"{task}_ratings": sum(row["n_ratings"] for row in rows)}
    if task == "retrieval":
        return shared | texts | ratings | _passages(rows)
    names = [name for label in LABELS[task] for name in (label, f"{label}_vote_share")]
    return shared | texts | ratings | {name: first[name] for name in names}


def _passages(rows: Sequence[Row]) -> Row:
    """What the consensus says of all passages of one query together; None where it does not tell."""
    relevant = [row["topically_relevant"] for row in rows if row["topically_relevant"] is not None]
    ranks = [row["chunk_rank"] for row in rows if row["topically_relevant"]]
    return {
        "n_chunks": len(rows),
        "topically_relevant_share": sum(relevant) / len(relevant) if relevant else None,
        "first_relevant_rank": min(ranks, default=None),
        "any_evidence_sufficient": _any_true([row["evidence_sufficient"] for row in rows]),
        "any_misleading": _any_true([row["misleading"] for row in rows]),
    }


def _any_true(values: Sequence[bool | None]) -> bool | None:
    """Whether one is true; None where none is and one is not known."""
    if any(values):
        return True
    return None if None in values else False
