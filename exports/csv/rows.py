"""A response and its record as rows of CSV and lines of JSON, and how these are written (exports/contracts/csv.md)."""

import codecs
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, get_args

from annotation.argilla.display import ASKED, hidden_metadata, original_text
from annotation.argilla.labels import EVIDENCE, Question, TaskName, broken_rules, task_named
from annotation.argilla.marks import marked_words
from annotation.argilla.units import Assignment
from annotation.campaign.datasets import JuryDataset
from exports.csv import schema
from exports.csv.folder import PROVENANCE_FILE
from pipeline.core.errors import ArgillaError
from pipeline.core.tables import spreadsheet_cell
from pipeline.records.causes import UNRESOLVED, SourceState
from pipeline.records.schema import CITED, Provenance

PAIR_COLUMNS = ("text", "text_pair")
EXTENDED_COLUMNS = (
    "record_status",
    schema.STATUS_COLUMN,
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

LINE_END = b"\r\n"
_UNITS_AT_ONCE = 1000
_QUOTED = re.compile('["\r\n]')  # What a cell of CSV is quoted for, beside the comma; a lone CR or LF too

_ANSWERS: Mapping[str, str] = {"yes": "True", "no": "False"}
# Some readers of lines end one at these, which JSON may write as they are.
_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
_TOLD = schema.PROVENANCE_COLUMNS[1:]
_LACKING = {"model_name": "cannot be told apart by provider", "narrative_id": "cannot be compared by narrative"}
"""What an empty cell means, in words, for the columns that results rest on."""


def table_columns(task: TaskName, filters: schema.ExportFilters, discarded: bool = False) -> tuple[str, ...]:
    """The header of one file: the contract's columns, then those that were asked for.

    A file of discarded responses always has `response_status`, so that nobody takes them for ratings.
    """
    pair = PAIR_COLUMNS if filters.text_pair else ()
    status = (schema.STATUS_COLUMN,) if discarded else ()
    return schema.COLUMNS[task] + pair + (EXTENDED_COLUMNS if filters.extended else status)


def record_values(task: TaskName, record: Mapping[str, Any], extended: bool) -> dict[str, Any]:
    """The columns, by name, that are the same in every row of one record; those of `--extended` on request."""
    hidden = hidden_metadata(record)
    texts = {column: original_text(record, task, column) for column in schema.text_columns(task)}
    first, *others = texts.values()
    found = {
        **{name: hidden.get(name) or "" for name in ("chunk_id", "doc_id", "chunk_rank")},
        **texts,
        **dict(zip(PAIR_COLUMNS, (first, others[0] if others else ""), strict=True)),
        "record_uuid": hidden["record_uuid"],
        "task": task,
        "language": hidden.get("language") or "und",
    }
    if extended:
        found |= {
            **dict.fromkeys(Provenance.model_fields, ""),
            **(hidden.get("provenance") or {}),
            **{name: hidden.get(name) or "" for name in ("origin", "answer_raw", "revision_of")},
            "record_status": record["status"],
            "record_id": record["id"],
        }
    return found


def response_values(
    task: TaskName, record: Mapping[str, Any], response: Mapping[str, Any], annotator_id: str, extended: bool
) -> dict[str, Any]:
    """The columns, by name, that one response to the record adds; those of `--extended` on request."""
    values = response["values"] or {}
    questions = task_named(task).by_name
    labels = {name: str(values[name]["value"]) for name in questions if values.get(name)}  # none in a discard
    for name, given in labels.items():
        if given not in questions[name].answers:
            raise ArgillaError(
                f"The record {record['id']} has the answer {given!r} to `{name}`, expected "
                f"{' or '.join(map(repr, questions[name].answers))}. The dataset was not made by this citejury, or for "
                "another form of the task; export it from another workspace."
            )
    found = {
        **{name: answer_cell(each, labels[name]) if name in labels else "" for name, each in questions.items()},
        "notes": (values.get("notes") or {"value": ""})["value"] or "",
        "annotator_id": annotator_id,
        "created_at": schema.utc(response["updated_at"]).isoformat(),
        schema.STATUS_COLUMN: response["status"],
    }
    if extended:
        found |= {
            "response_id": response["id"],
            "inserted_at": schema.utc(response["inserted_at"]).isoformat(),
            "updated_at": found["created_at"],
            "constraint_flags": ";".join(broken_rules(task, labels)),
        }
    return found


def answer_cell(question: Question, value: Any) -> str:
    """An answer as the files have it: True or False to a question of yes and no, else the value as it is."""
    return _ANSWERS.get(value, str(value)) if question.scale == "boolean" else str(value)


def csv_cells(values: Mapping[str, str | int], columns: Sequence[str], spreadsheet_safe: bool) -> bytes:
    """The named cells of a row as CSV in UTF-8, without the line's end."""
    cells: list[str | int] = [values[column] for column in columns]
    return csv_line(list(map(spreadsheet_cell, cells)) if spreadsheet_safe else cells).removesuffix(LINE_END)


def csv_line(cells: Sequence[str | int]) -> bytes:
    """Two cells or more as a line of CSV in UTF-8, as the csv module writes it when lines end in CRLF.

    The module looks at each character by itself, which takes six times as long for a passage.
    """
    texts = list(map(str, cells))
    line = ",".join(texts)
    if line.count(",") >= len(texts) or _QUOTED.search(line):
        line = ",".join(
            '"' + text.replace('"', '""') + '"' if "," in text or _QUOTED.search(text) else text for text in texts
        )
    return line.encode("utf-8") + LINE_END


class Piece(NamedTuple):
    """Lines of a file that stand together and are about one unit."""

    record_uuid: str
    chunk_rank: int
    chunk_id: str
    annotators: Sequence[str]
    rows: int
    lines: bytes
    note: str = ""  # What has to be known of them beside, as `ProvenanceGaps` writes it


class Span(NamedTuple):
    """All lines of a file that are about one unit; they follow each other."""

    record_uuid: str
    chunk_rank: int
    chunk_id: str
    length: int
    rows: int
    annotators: Sequence[str]
    note: str


def table_head(header: Sequence[str], bom: bool) -> bytes:
    """What a file begins with; a BOM tells a spreadsheet that it is UTF-8."""
    return (codecs.BOM_UTF8 if bom else b"") + (csv_line(header) if header else b"")


def write_table(
    path: Path, task: TaskName | None, head: bytes, pieces: Iterable[Piece], keep: Callable[[Sequence[Span]], None]
) -> schema.ExportedFile:
    """What was written to `path`: the head and the lines of the pieces as they come; `keep` is told of all units."""
    digest = hashlib.sha256(head)
    records, count, last_record = 0, 0, None
    annotators: set[str] = set()
    spans: list[Span] = []
    with path.open("xb") as stream:
        stream.write(head)
        for (record_uuid, chunk_rank, chunk_id), of_unit in groupby(pieces, key=itemgetter(0, 1, 2)):
            length, rows, note = 0, 0, ""
            people: dict[str, None] = {}
            for piece in of_unit:
                stream.write(piece.lines)
                digest.update(piece.lines)
                length += len(piece.lines)
                rows += piece.rows
                people |= dict.fromkeys(piece.annotators)
                note = piece.note
            spans.append(Span(record_uuid, chunk_rank, chunk_id, length, rows, tuple(people), note))
            if len(spans) == _UNITS_AT_ONCE:
                keep(spans)
                spans.clear()
            count += rows
            records += record_uuid != last_record
            last_record = record_uuid
            annotators |= people.keys()
    keep(spans)
    return schema.ExportedFile(
        file=path.name, task=task, rows=count, annotators=len(annotators), records=records, sha256=digest.hexdigest()
    )


def control_rows(
    dataset: JuryDataset,
    record: Mapping[str, Any],
    assignment: Assignment,
    response: Mapping[str, Any],
    annotator_id: str,
) -> list[dict[str, str]]:
    """A row for each label that was answered; of a control only those whose answer is known."""
    hidden = hidden_metadata(record)
    questions, values = task_named(dataset.task).by_name, response["values"] or {}
    is_repeat, chunk_id = assignment.purpose == "repeat", hidden.get("chunk_id") or ""
    repeated = assignment.repeats.partition(":")[0] if chunk_id else assignment.repeats
    return [
        dict(
            record_uuid=hidden["record_uuid"],
            task=dataset.task,
            chunk_id=chunk_id,
            annotator_id=annotator_id,
            kind="repeat" if is_repeat else assignment.kind,
            label=label,
            known="" if is_repeat else str(assignment.answers[label]),
            given=answer_cell(question, values[label]["value"]),
            repeats=":".join(filter(None, (repeated, chunk_id))) if is_repeat else "",
            language=hidden.get("language") or "und",
            round=dataset.round,
            workspace=dataset.workspace,
            created_at=schema.utc(response["updated_at"]).isoformat(),
        )
        for label, question in questions.items()
        if values.get(label) and (is_repeat or label in assignment.answers)
    ]


class ExportedMarks(NamedTuple):
    """The marks of one response: lines of `evidence.jsonl` (exports/contracts/csv.md#marks)."""

    rows: list[schema.EvidenceRow]
    cut: int  # Marks on more than the text of one passage
    lost: int  # Marks on no passage's text


def exported_marks(
    dataset: JuryDataset, record: Mapping[str, Any], response: Mapping[str, Any], annotator_id: str
) -> ExportedMarks:
    given = ((response["values"] or {}).get(EVIDENCE) or {}).get("value") or []
    if not given:
        return ExportedMarks([], 0, 0)
    hidden = hidden_metadata(record)
    marks = marked_words(record, [(each["start"], each["end"]) for each in given])
    rows = [
        schema.EvidenceRow(
            record_uuid=hidden["record_uuid"],
            annotator_id=annotator_id,
            label=each["label"],
            chunk_id=words.passage.chunk_id,
            doc_id=words.passage.doc_id,
            chunk_rank=words.passage.chunk_rank,
            start=words.start,
            end=words.end,
            text=words.text,
            cut=not mark.is_whole,
            language=hidden.get("language") or "und",
            response_status=response["status"],
            created_at=schema.utc(response["updated_at"]).isoformat(),
            round=dataset.round,
            workspace=dataset.workspace,
        )
        for each, mark in zip(given, marks, strict=True)
        for words in mark.parts
    ]
    rows.sort(key=lambda row: (row.chunk_rank, row.start, row.end, row.label))
    cut = sum(bool(mark.parts) and not mark.is_whole for mark in marks)
    return ExportedMarks(rows, cut, sum(not mark.parts for mark in marks))


def evidence_line(row: schema.EvidenceRow) -> bytes:
    return json.dumps(row.model_dump(), ensure_ascii=False).translate(_LINE_ENDS).encode("utf-8") + b"\n"


def provenance_cells(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Where a record of ours comes from: the columns of `provenance.csv` behind `record_uuid`, empty where unknown."""
    hidden = hidden_metadata(record)
    known = {**(hidden.get("provenance") or {}), "language": hidden.get("language") or "und"}
    known["run_asked"] = hidden.get(ASKED, "")
    states = hidden.get("sources")
    if isinstance(states, dict):
        known |= {f"n_{state}": states.get(state, 0) for state in get_args(SourceState)}
        known["n_sources"] = sum(states.values())
        known["n_unresolved"] = sum(states.get(state, 0) for state in (*UNRESOLVED, "unresolved"))
        if "unresolved" in states:  # pushed by a version that did not tell them apart
            known |= dict.fromkeys([f"n_{state}" for state in UNRESOLVED], "")
    if isinstance(cited := hidden.get("cited"), dict):
        known |= {f"n_{each}": cited.get(each, 0) for each in CITED}
    return tuple(str(known.get(column, "")).replace("\0", "\ufffd") for column in _TOLD)


class MergedProvenance(NamedTuple):
    """What all datasets together say of where one record comes from."""

    record_uuid: str
    cells: Mapping[str, str]
    contradicted: tuple[str, ...]  # Columns of which two datasets say different things


def merge_provenance(told: Iterable[tuple[str, Sequence[str]]]) -> Iterator[MergedProvenance]:
    """One row for each record, given what each dataset says of it, in order of records.

    The fullest comes first, what it lacks comes from the others.
    """
    for record_uuid, group in groupby(told, key=itemgetter(0)):
        told_so = {tuple(cells) for _, cells in group}
        if len(told_so) == 1:
            yield MergedProvenance(record_uuid, dict(zip(_TOLD, told_so.pop(), strict=True)), ())
            continue
        by_fullness = sorted(told_so, key=lambda cells: (-sum(map(bool, cells)), cells))
        columns = dict(zip(_TOLD, zip(*by_fullness, strict=True), strict=True))
        yield MergedProvenance(
            record_uuid,
            {name: next(filter(None, column), "") for name, column in columns.items()},
            tuple(name for name, column in columns.items() if len({*filter(None, column)}) > 1),
        )


def provenance_pieces(merged: Iterable[MergedProvenance], spreadsheet_safe: bool) -> Iterator[Piece]:
    """The line of each row; its note names the columns that it lacks, then those that are contradicted."""
    for record_uuid, cells, contradicted in merged:
        row = [record_uuid, *cells.values()]
        line = csv_line([spreadsheet_cell(cell) for cell in row] if spreadsheet_safe else row)
        lacking = [name for name in _LACKING if not cells[name]]
        note = f"{','.join(lacking)};{','.join(contradicted)}" if lacking or contradicted else ""
        yield Piece(record_uuid, 0, "", (), 1, line, note)


class ProvenanceGaps:
    def __init__(self) -> None:
        self.records = self.contradicted = 0
        self.lacking = dict.fromkeys(_LACKING, 0)
        self._first = ""

    def count(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        for piece in pieces:
            self.records += piece.rows
            if piece.note:
                lacking, contradicted = piece.note.split(";")
                for name in filter(None, lacking.split(",")):
                    self.lacking[name] += piece.rows
                self.contradicted += piece.rows if contradicted else 0
                self._first = self._first or (f"{piece.record_uuid} ({contradicted})" if contradicted else "")
            yield piece

    def warnings(self) -> list[str]:
        found = [
            f"{count:,} of {self.records:,} records have no {name} and {_LACKING[name]}. Push them again with their "
            f"provenance, or fill in {PROVENANCE_FILE}."
            for name, count in self.lacking.items()
            if count
        ]
        if self.contradicted:
            found.append(
                f"The datasets tell different things of where {self.contradicted:,} of {self.records:,} records come "
                f"from, such as {self._first}. {PROVENANCE_FILE} has what the fullest one tells."
            )
        return found
