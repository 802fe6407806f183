"""Disagreements and files: texts, notes and links out of an export, and the ranked list as CSV."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit
from uuid import UUID

from pydantic import ValidationError

from annotation.argilla.display import opaque_id
from annotation.argilla.labels import TASKS, TaskName
from annotation.argilla.rendering import plain_text
from exports.csv.folder import EVIDENCE_FILE, MANIFEST_FILE
from exports.csv.schema import EvidenceRow, query_column, text_columns
from exports.reading.input_files import csv_rows
from exports.reading.read import Response, ResponseReader, TableRows, export_files, read_responses, task_of
from exports.statistics.agreement_schema import RATINGS, MeasuredTask
from exports.statistics.disagreements import Disagreement
from pipeline.core.errors import InputError
from pipeline.core.tables import Table
from pipeline.records.run import numbered_lines

UnitKey = tuple[MeasuredTask, str, str]  # task, `record_uuid` and `chunk_id`

_COLUMNS = (
    *("task", "label", "record_uuid", "chunk_id", "language", "n_yes", "n_no", "influence", "contribution"),
    *("pattern", "pattern_count", "lone_dissenter", "dissenter_reliability", "posterior", "entropy", "other_labels"),
    *("notes", "text", "text_pair", "record_id", "link"),
)


class Pattern(NamedTuple):
    """The same votes by the same annotators on one label."""

    task: MeasuredTask
    label: str
    pattern: str
    n_units: int


class UnitDetails:
    def __init__(self) -> None:
        self.query = ""
        self.texts = ("", "")
        self.record_id = ""
        self.link = ""
        self.notes: dict[str, tuple[datetime, str]] = {}
        self.marks: dict[str, tuple[datetime, list[str]]] = {}

    @property
    def told_notes(self) -> dict[str, str]:
        return {name: note for name, (_, note) in sorted(self.notes.items()) if note}

    @property
    def told_marks(self) -> dict[str, tuple[str, ...]]:
        return {name: tuple(marks) for name, (_, marks) in sorted(self.marks.items())}

    def add_note(self, response: Response, note: str) -> None:
        """Keep the annotator's note; of two responses the newer counts, of equals the later."""
        known = self.notes.get(response.annotator_id)
        if known is None or response.created_at >= known[0]:
            self.notes[response.annotator_id] = (response.created_at, note)

    def add_mark(self, mark: EvidenceRow) -> None:
        """Keep a mark, unless the annotator has a newer response with marks; an older one's marks go."""
        at = datetime.fromisoformat(mark.created_at)
        known = self.marks.get(mark.annotator_id)
        if known is None or at > known[0]:
            known = self.marks[mark.annotator_id] = (at, [])
        if at == known[0]:
            known[1].append(f"{mark.label}: {mark.text}")


def with_details(
    disagreements: Sequence[Disagreement], paths: Sequence[Path], frames: Sequence[TableRows] = ()
) -> list[Disagreement]:
    """The same with texts, notes, record ids and links, and marks of the `evidence.jsonl` beside a file."""
    found = read_details(((item.task, item.record_uuid, item.chunk_id) for item in disagreements), paths, frames)
    described: list[Disagreement] = []
    for item in disagreements:
        details = found[item.task, item.record_uuid, item.chunk_id]
        update = {
            "notes": details.told_notes,
            "marks": details.told_marks,
            **dict(zip(("text", "text_pair"), details.texts, strict=True)),
            **{name: getattr(details, name) for name in ("query", "record_id", "link")},
        }
        described.append(item.model_copy(update=update))
    return described


def read_details(
    units: Iterable[UnitKey], paths: Sequence[Path], frames: Sequence[TableRows] = ()
) -> dict[UnitKey, UnitDetails]:
    """What exports and the `evidence.jsonl` beside them hold of these units; of grounding the record's query too."""
    found = {key: UnitDetails() for key in units}
    queries = {record: "" for task, record, _ in found if task == "grounding"}
    for path in export_files(paths):
        task, marks = task_of(path), path.parent / EVIDENCE_FILE
        _, header = next(csv_rows(path))
        origin = _read_origin(path.parent / MANIFEST_FILE, task)
        _add_rows(found, queries, task, header, read_responses(path, task), *origin)
        if task == "grounding" and marks.is_file():
            _add_marks(found, marks)
    for frame in frames:
        responses = ResponseReader(frame.task, frame.header, frame.source, []).read(enumerate(frame.rows))
        _add_rows(found, queries, frame.task, frame.header, responses)
    for (task, record, _), details in found.items():
        details.query = queries[record] if task == "grounding" else ""
    return found


def _add_marks(found: Mapping[UnitKey, UnitDetails], path: Path) -> None:
    for number, line in numbered_lines(path):
        try:
            mark = EvidenceRow.model_validate_json(line)
        except ValidationError as error:
            raise InputError(f"`{path}`, line {number}, is no mark of an export. Export it again.") from error
        details = found.get(("grounding", mark.record_uuid, ""))
        if details is not None and mark.response_status == "submitted":
            details.add_mark(mark)


def _add_rows(
    found: Mapping[UnitKey, UnitDetails],
    queries: dict[str, str],
    task: TaskName,
    header: Sequence[str],
    responses: Iterable[Response],
    server: str = "",
    dataset: str = "",
) -> None:
    for response in responses:
        if queries.get(response.record_uuid) == "" and query_column(task):
            row = dict(zip(header, response.cells, strict=True))
            queries[response.record_uuid] = row.get(query_column(task), "")
        details = found.get((task, response.record_uuid, response.chunk_id))
        if details is None or response.status != "submitted":
            continue
        row = dict(zip(header, response.cells, strict=True))
        first, second = (*text_columns(task), "")[:2]
        details.texts = row.get(first, ""), row.get(second, "")
        details.record_id = row.get("record_id", "") or details.record_id
        unit = response.record_uuid  # annotators may follow the link, so it must not tell `chunk_id`
        unit = opaque_id(unit, plain_text(row.get("chunk", ""))) if response.chunk_id else unit
        details.link = _record_link(server, row.get("dataset_id") or dataset, unit) or details.link
        details.add_note(response, row.get("notes", ""))


def _read_origin(manifest: Path, task: TaskName) -> tuple[str, str]:
    """Address of Argilla and id of the task's dataset; empty where the manifest does not tell, or has several."""
    try:
        read = json.loads(manifest.read_bytes())
        server, ids = str(read["server"]), [str(each["id"]) for each in read["datasets"] if each["task"] == task]
    except (OSError, ValueError, KeyError, TypeError):
        return "", ""
    return server, ids[0] if len(ids) == 1 else ""


def _record_link(server: str, dataset_id: str, unit: str) -> str:
    """The address that shows the unit in Argilla; empty where the server is no http(s) address or the id is none.

    The page of Argilla 2.8.0 takes page, status, search text and filters from its address, but no record's id: `record`
    is read by citejury's own servers, and all others show the dataset.
    """
    try:
        address, known = urlsplit(server), UUID(dataset_id)
    except ValueError:
        return ""
    plain = server.isascii() and server.isprintable() and not set(server) & set(" \"'<>\\^`{|}")
    if address.scheme not in ("http", "https") or not address.hostname or address.username or not plain:
        return ""
    place = f"{address.scheme}://{address.netloc}{address.path.rstrip('/')}/dataset/{known}/annotation-mode"
    return f"{place}?record={quote(unit, safe=':')}"


def count_patterns(disagreements: Sequence[Disagreement]) -> list[Pattern]:
    """The patterns of votes among all disagreements of some tasks, the most frequent first, then by their names."""
    counted = Counter((item.task, item.label, item.pattern) for item in disagreements)
    patterns = [Pattern(task, label, pattern, count) for (task, label, pattern), count in counted.items()]
    tasks = (*TASKS, RATINGS)
    return sorted(patterns, key=lambda found: (-found.n_units, tasks.index(found.task), found.label, found.pattern))


def said_vote(vote: bool | str) -> str:
    return vote if isinstance(vote, str) else "yes" if vote else "no"


def disagreements_table(disagreements: Sequence[Disagreement]) -> Table:
    """The list in its order, with a column of votes for each annotator, and of marks.

    A vote is `True`, `False` or a value of its scale, or empty where the annotator gave none; what is undefined is
    empty. Of labels on a scale `values` has how many gave each.
    """
    return Table(list(_table_rows(disagreements)))


def _table_rows(disagreements: Sequence[Disagreement]) -> Iterator[list[object]]:
    names = sorted({name for item in disagreements for name in item.votes})
    # Without these columns, a list without marks or scales stays as it was
    marked, scaled = any(item.marks for item in disagreements), any(item.n_yes is None for item in disagreements)
    more = [*(["values"] if scaled else []), *(["marks"] if marked else [])]
    yield [*_COLUMNS, *(f"vote of {name}" for name in names), *more]
    for item in disagreements:
        values = item.model_dump(include=set(_COLUMNS)) | {
            "other_labels": ";".join(item.other_labels),
            "notes": "\n".join(f"{name}: {note}" for name, note in item.notes.items()),
        }
        marks = "\n".join(f"{name}: {mark}" for name, given in item.marks.items() for mark in given)
        votes = (item.votes.get(name) for name in names)
        given = Counter(vote for vote in item.votes.values() if isinstance(vote, str))
        counts = json.dumps(dict(sorted(given.items())), ensure_ascii=False) if given else None
        own = (*((counts,) if scaled else ()), *((marks,) if marked else ()))
        yield [*(values[column] for column in _COLUMNS), *votes, *own]
