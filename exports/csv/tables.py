"""A response and its record as one row of CSV (exports/contracts/csv.md)."""

import codecs
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from annotation.display import hidden_metadata, original_text
from annotation.labels import LABELS, TaskName, broken_rules
from exports.schema import COLUMNS, ExportedFile, ExportFilters, in_utc
from pipeline.errors import ArgillaError
from pipeline.records import Provenance
from pipeline.tables import spreadsheet_cell

TEXT_COLUMNS: dict[TaskName, tuple[str, str]] = {
    "retrieval": ("input_query", "chunk"),
    "grounding": ("answer", "context_set"),
    "generation": ("query", "answer"),
}
"""The two texts of each task, in the order of `text` and `text_pair`."""

PAIR_COLUMNS = ("text", "text_pair")
STATUS_COLUMN = "response_status"
EXTENDED_COLUMNS = (
    "record_status",
    STATUS_COLUMN,
    "record_id",
    "response_id",
    "inserted_at",
    "updated_at",
    "constraint_flags",
    *Provenance.model_fields,
    "answer_raw",
    "origin",
    "revision_of",
    "round",
    "dataset_id",
    "workspace",
    "dataset_version",
    "guideline_version",
)

_PASSAGE_COLUMNS = ("chunk_id", "doc_id", "chunk_rank")
_EXTENDED_HIDDEN_COLUMNS = ("origin", "answer_raw", "revision_of")
"""Columns that stand in the hidden metadata under their own names; empty where a record has none."""

LINE_END = b"\r\n"
_QUOTED = re.compile('["\r\n]')
"""What a cell of CSV is quoted for, beside the comma; a lone CR or LF too."""

_ANSWERS: Mapping[str, bool] = {"yes": True, "no": False}
_NO_NOTES: Mapping[str, str] = {"value": ""}
_LABEL_CELLS: Mapping[bool | None, str] = {True: "True", False: "False", None: ""}


def table_columns(task: TaskName, filters: ExportFilters, discarded: bool = False) -> tuple[str, ...]:
    """The header of one file: the contract's columns, then those that were asked for.

    A file of discarded responses always has `response_status`, so that nobody takes them for ratings.
    """
    pair = PAIR_COLUMNS if filters.text_pair else ()
    status = (STATUS_COLUMN,) if discarded else ()
    return COLUMNS[task] + pair + (EXTENDED_COLUMNS if filters.extended else status)


def record_values(task: TaskName, record: Mapping[str, Any], extended: bool) -> dict[str, Any]:
    """The columns, by name, that are the same in every row of one record; those of `--extended` on request.

    Raises:
        ArgillaError: the record is not one of ours.
    """
    hidden = hidden_metadata(record)
    texts = {column: original_text(record, task, column) for column in TEXT_COLUMNS[task]}
    found = {
        **{name: hidden.get(name) or "" for name in _PASSAGE_COLUMNS},
        **texts,
        **dict(zip(PAIR_COLUMNS, texts.values(), strict=True)),
        "record_uuid": hidden["record_uuid"],
        "task": task,
        "language": hidden.get("language") or "und",
    }
    if extended:
        found |= {
            **dict.fromkeys(Provenance.model_fields, ""),
            **(hidden.get("provenance") or {}),
            **{name: hidden.get(name) or "" for name in _EXTENDED_HIDDEN_COLUMNS},
            "record_status": record["status"],
            "record_id": record["id"],
        }
    return found


def response_values(
    task: TaskName, record: Mapping[str, Any], response: Mapping[str, Any], annotator_id: str, extended: bool
) -> dict[str, Any]:
    """The columns, by name, that one response to the record adds; those of `--extended` on request.

    Raises:
        ArgillaError: an answer is neither yes nor no.
    """
    values = response["values"] or {}
    found = {
        **{label: _LABEL_CELLS[_label_value(record, label, values.get(label))] for label in LABELS[task]},
        "notes": (values.get("notes") or _NO_NOTES)["value"] or "",
        "annotator_id": annotator_id,
        "created_at": utc(response["updated_at"]).isoformat(),
        STATUS_COLUMN: response["status"],
    }
    if extended:
        labels = {label: _label_value(record, label, values.get(label)) for label in LABELS[task]}
        found |= {
            "response_id": response["id"],
            "inserted_at": utc(response["inserted_at"]).isoformat(),
            "updated_at": found["created_at"],
            "constraint_flags": ";".join(broken_rules(task, labels)),
        }
    return found


def _label_value(record: Mapping[str, Any], label: str, answer: Mapping[str, Any] | None) -> bool | None:
    """The answer to one question as a Boolean; None where it was not answered, as in a discard.

    Raises:
        ArgillaError: it is neither yes nor no.
    """
    if answer is None:
        return None
    if answer["value"] not in _ANSWERS:
        raise ArgillaError(
            f"The record {record['id']} has the answer {answer['value']!r} to `{label}`, expected 'yes' or 'no'. "
            "The dataset was not made by this citejury; export it from another workspace."
        )
    return _ANSWERS[answer["value"]]


def utc(stamp: str) -> datetime:
    """The moment that an ISO 8601 text names, in UTC; without offset it is UTC, as Argilla's own stamps are.

    Source: reference of argilla-server 2.8.0, `api/schemas/v1/responses.py`: naive UTC with microseconds.

    Raises:
        ValueError: it is no such text.
        OverflowError: no calendar holds it.
    """
    return in_utc(datetime.fromisoformat(stamp))


def csv_cells(values: Mapping[str, str | int], columns: Sequence[str], spreadsheet_safe: bool) -> bytes:
    """The named cells of a row as CSV in UTF-8, without the line's end."""
    cells: list[str | int] = [values[column] for column in columns]
    return _csv_text(list(map(spreadsheet_cell, cells)) if spreadsheet_safe else cells).encode("utf-8")


def csv_line(cells: Sequence[str | int]) -> bytes:
    """One line of CSV in UTF-8."""
    return _csv_text(cells).encode("utf-8") + LINE_END


def _csv_text(cells: Sequence[str | int]) -> str:
    """Two cells or more as a line of CSV without its end, as the csv module writes it when lines end in CRLF.

    The module looks at each character by itself, which takes six times as long for a passage.
    """
    texts = list(map(str, cells))
    line = ",".join(texts)
    if line.count(",") < len(texts) and not _QUOTED.search(line):
        return line
    return ",".join(map(_csv_cell, texts))


def _csv_cell(text: str) -> str:
    """The text as a cell of CSV, quoted where it must be."""
    return '"' + text.replace('"', '""') + '"' if "," in text or _QUOTED.search(text) else text


class Piece(NamedTuple):
    """One line of a file, some that stand together, or a run of units that are as they were in an earlier file."""

    record_uuid: str
    """The record that they are about."""
    chunk_rank: int
    """Rank of the passage; 0 where there is none."""
    chunk_id: str
    """Id of the passage; empty where there is none."""
    annotators: tuple[str, ...]
    """Whose they are; empty where they are nobody's."""
    rows: int
    """How many they are."""
    lines: bytes
    """The lines, each with its end."""
    note: str = ""
    """What has to be known of them beside, as `ProvenanceGaps` writes it."""
    units: "tuple[Span, ...]" = ()
    """The whole units that a run consists of, the first of which is named above; none where the lines are new."""
    index_lines: bytes = b""
    """What the earlier index has of them."""


class Span(NamedTuple):
    """The lines of a file that are about one unit; they follow each other."""

    record_uuid: str
    chunk_rank: int
    """Rank of the passage; 0 where there is none."""
    chunk_id: str
    """Id of the passage; empty where there is none."""
    length: int
    """Bytes of the lines."""
    rows: int
    """How many lines they are."""
    annotators: tuple[str, ...]
    """Whose they are."""
    note: str
    """What has to be known of them beside."""


def table_head(header: Sequence[str], bom: bool) -> bytes:
    """What a file begins with; a BOM tells a spreadsheet that it is UTF-8."""
    return (codecs.BOM_UTF8 if bom else b"") + (csv_line(header) if header else b"")


def write_table(
    path: Path,
    task: TaskName | None,
    head: bytes,
    pieces: Iterable[Piece],
    keep: Callable[[Sequence[Span], bytes], None],
) -> ExportedFile:
    """What was written to `path`: the head and the lines of the pieces as they come; `keep` is told of each unit.

    It is also told what an earlier index has of the units, or nothing where they are new.
    """
    digest = hashlib.sha256(head)
    records, count, last_record = 0, 0, None
    annotators: set[str] = set()
    with path.open("xb") as stream:
        stream.write(head)
        for (record_uuid, chunk_rank, chunk_id), of_unit in groupby(pieces, key=itemgetter(0, 1, 2)):
            length = rows = 0
            people: dict[str, None] = {}
            note, index_lines = "", b""
            units: tuple[Span, ...] = ()
            for piece in of_unit:
                stream.write(piece.lines)
                digest.update(piece.lines)
                length += len(piece.lines)
                rows += piece.rows
                people |= dict.fromkeys(piece.annotators)
                note, units, index_lines = piece.note, piece.units, piece.index_lines
            units = units or (Span(record_uuid, chunk_rank, chunk_id, length, rows, tuple(people), note),)
            keep(units, index_lines)
            count += rows
            for unit in units:
                records += unit.record_uuid != last_record
                last_record = unit.record_uuid
            annotators |= people.keys()
    return ExportedFile(
        file=path.name,
        task=task,
        rows=count,
        annotators=len(annotators),
        records=records,
        sha256=digest.hexdigest(),
    )
