"""`controls.csv` of exports: the answers to controls, and to repeats beside what the same person said before."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from annotation.argilla.labels import LABELS, TASKS, TaskName
from annotation.quality.scores import AnnotatorScores, ControlAnswer, score_answers
from exports.csv.folder import CONTROLS_FILE
from exports.csv.schema import CONTROL_COLUMNS
from exports.reading.input_files import column_rows, counted_cells, display_names
from exports.statistics.consensus import ControlLabel, ControlVotes
from exports.statistics.ratings import MISSING, YES, Ratings
from pipeline.core.errors import BadRowsError
from pipeline.core.tables import unescaped

_BOOLEANS: Mapping[str, bool] = {"True": True, "False": False}


class _Row(NamedTuple):
    answer: ControlAnswer  # The answer; of a repeat with itself as what is known
    is_repeat: bool
    repeats: str


def read_control_votes(paths: Sequence[Path]) -> dict[ControlLabel, ControlVotes]:
    """The votes on each label of each control of these exports; repeats are none, of equal answers the first counts."""
    files, bad = _files_of(paths), list[str]()
    seen: set[tuple[str, str, str, str]] = set()
    found: dict[ControlLabel, ControlVotes] = {}
    for file, shown in zip(files, display_names(files), strict=True):
        for of, is_repeat, _ in _read_file(file, shown, bad):
            said = (of.task, of.record_id, of.label, of.annotator)
            if is_repeat or of.known is None or said in seen:
                continue
            seen.add(said)
            record_uuid, _, chunk_id = of.record_id.partition(":")
            key = (of.task, record_uuid, chunk_id, of.label)
            votes = found.get(key, ControlVotes(of.known, 0, 0))
            found[key] = ControlVotes(votes.known, votes.n_yes + of.given, votes.n_no + (not of.given))
    if bad:
        raise BadRowsError(f"{counted_cells(bad)} of `{CONTROLS_FILE}` cannot be read; export again:", bad)
    return found


def read_control_scores(paths: Sequence[Path], tables: Sequence[Ratings]) -> tuple[AnnotatorScores, ...]:
    """What these exports tell about each annotator; repeats are compared with the same person's earlier rating."""
    files = _files_of(paths)
    bad: list[str] = []
    rows: dict[tuple[str, str, str, str], _Row] = {}
    for file, shown in zip(files, display_names(files), strict=True):
        for row in _read_file(file, shown, bad):
            of = row.answer
            rows.setdefault((of.task, of.record_id, of.label, of.annotator), row)
    if bad:
        raise BadRowsError(f"{counted_cells(bad)} of `{CONTROLS_FILE}` cannot be read; export again:", bad)
    earlier = _ratings(tables) if any(row.is_repeat for row in rows.values()) else {}
    answers = []
    for answer, is_repeat, repeats in rows.values():
        known = (
            earlier.get((answer.task, repeats, answer.annotator), {}).get(answer.label) if is_repeat else answer.known
        )
        if known is not None:
            answers.append(answer._replace(known=known))
    return score_answers(answers)


def read_control_units(paths: Sequence[Path]) -> frozenset[tuple[str, str]]:
    """Record and passage of each control and repeat in these exports."""
    files, bad, found = _files_of(paths), list[str](), set[tuple[str, str]]()
    for file, shown in zip(files, display_names(files), strict=True):
        found |= {(row["record_uuid"], row["chunk_id"]) for _, row in _rows_of(file, shown, bad)}
    if bad:
        raise BadRowsError(f"{counted_cells(bad)} of `{CONTROLS_FILE}` cannot be read; export again:", bad)
    return frozenset(found)


def _files_of(paths: Sequence[Path]) -> list[Path]:
    places = [path / CONTROLS_FILE if path.is_dir() else path.with_name(CONTROLS_FILE) for path in paths]
    return list({place.resolve(): place for place in places if place.is_file()}.values())


def _read_file(file: Path, shown: str, bad: list[str]) -> list[_Row]:
    found: list[_Row] = []
    for place, row in _rows_of(file, shown, bad):
        task = next((task for task in TASKS if task == row["task"]), None)
        known = row["given"] if row["kind"] == "repeat" else row["known"]
        if task is None or row["label"] not in LABELS[task]:
            bad.append(f"{place}: no answer to a label of a task")
        elif known not in _BOOLEANS or row["given"] not in _BOOLEANS:
            bad.append(f"{place}: `known` and `given` are {row['known']!r} and {row['given']!r}")
        else:
            record = f"{row['record_uuid']}:{row['chunk_id']}" if row["chunk_id"] else row["record_uuid"]
            answer = ControlAnswer(
                *(row["annotator_id"], task, row["label"], row["kind"], record),
                *(_BOOLEANS[known], _BOOLEANS[row["given"]]),
            )
            found.append(_Row(answer, row["kind"] == "repeat", row["repeats"]))
    return found


def _rows_of(file: Path, shown: str, bad: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    for place, row in column_rows(file, CONTROL_COLUMNS, "Export it again.", shown, bad):
        yield place, {name: unescaped(cell) for name, cell in row.items()}


def _ratings(tables: Sequence[Ratings]) -> dict[tuple[TaskName, str, str], dict[str, bool]]:
    """What each annotator said, by task, unit (`record_uuid`, or `record_uuid:chunk_id`) and annotator."""
    found: dict[tuple[TaskName, str, str], dict[str, bool]] = {}
    for table in tables:
        names = [
            f"{table.records[record]}:{chunk}" if chunk else table.records[record]
            for record, chunk in zip(table.unit_records, table.unit_chunks, strict=True)
        ]
        for unit, who, values in zip(table.units, table.response_annotators, table.values, strict=True):
            found[table.task, names[unit], table.annotators[who]] = {
                label: bool(value == YES)
                for label, value in zip(LABELS[table.task], values, strict=True)
                if value != MISSING
            }
    return found
