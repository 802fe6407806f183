"""`controls.csv` of exports: the answers to controls, and to repeats beside what the same person said before."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from annotation.argilla.labels import TASKS, TaskName, task_named
from annotation.quality.scores import AnnotatorScores, ControlAnswer, score_answers
from exports.csv.folder import CONTROLS_FILE
from exports.csv.schema import CONTROL_COLUMNS
from exports.reading.input_files import column_rows, counted_cells, display_names
from exports.statistics.consensus import ControlLabel, ControlVotes
from exports.statistics.ratings import MISSING, YES, Ratings
from pipeline.core.errors import BadRowsError
from pipeline.core.tables import unescaped

_BOOLEANS: Mapping[str, bool | str] = {"True": True, "False": False}


class _Row(NamedTuple):
    answer: ControlAnswer  # Of a repeat with itself as what is known
    is_repeat: bool
    repeats: str
    said: bool | str  # The value itself; of labels on a scale `answer` says only whether it is the known one


def read_control_votes(paths: Sequence[Path]) -> dict[ControlLabel, ControlVotes]:
    """Votes on each yes-or-no label of each control in `controls.csv` of each folder, or beside each file."""
    found: dict[ControlLabel, ControlVotes] = {}
    for of, is_repeat, _, said in _read(paths):
        if not is_repeat and isinstance(said, bool):
            record_uuid, _, chunk_id = of.record_id.partition(":")
            key = (of.task, record_uuid, chunk_id, of.label)
            votes = found.get(key, ControlVotes(of.known, 0, 0))
            found[key] = ControlVotes(votes.known, votes.n_yes + of.given, votes.n_no + (not of.given))
    return found


def read_control_scores(paths: Sequence[Path], tables: Sequence[Ratings]) -> tuple[AnnotatorScores, ...]:
    """What exports tell about each annotator; a repeat is compared with their rating of what it repeats, if any."""
    rows = _read(paths)
    earlier = _ratings(tables) if any(row.is_repeat for row in rows) else {}
    answers = []
    for answer, is_repeat, repeats, said in rows:
        known = earlier.get((answer.task, repeats, answer.annotator), {}).get(answer.label)
        if not is_repeat:
            answers.append(answer)
        elif isinstance(known, bool):
            answers.append(answer._replace(known=known))
        elif known is not None:
            answers.append(answer._replace(given=said == known))
    return score_answers(answers)


def _read(paths: Sequence[Path]) -> list[_Row]:
    """The rows of all files; of several exports with the same answer the first counts."""
    bad: list[str] = []
    found: dict[tuple[str, str, str, str], _Row] = {}
    for place, row in _cells(paths, bad):
        task = next((task for task in TASKS if task == row["task"]), None)
        known = row["given"] if row["kind"] == "repeat" else row["known"]
        question = task_named(task).by_name.get(row["label"]) if task else None
        values = _BOOLEANS if question is None or question.scale == "boolean" else {v: v for v in question.values}
        if task is None or question is None:
            bad.append(f"{place}: no answer to a label of a task")
        elif known not in values or row["given"] not in values:
            bad.append(f"{place}: `known` and `given` are {row['known']!r} and {row['given']!r}")
        else:
            record = f"{row['record_uuid']}:{row['chunk_id']}" if row["chunk_id"] else row["record_uuid"]
            said = (row["annotator_id"], task, row["label"], row["kind"], record)
            given = values[row["given"]]
            told = (bool(values[known]), given) if isinstance(given, bool) else (True, row["given"] == known)
            row_of = _Row(ControlAnswer(*said, *told), row["kind"] == "repeat", row["repeats"], given)
            found.setdefault((*said[:3], record), row_of)
    _refuse(bad)
    return list(found.values())


def _cells(paths: Sequence[Path], bad: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    places = [path / CONTROLS_FILE if path.is_dir() else path.with_name(CONTROLS_FILE) for path in paths]
    files = list({place.resolve(): place for place in places if place.is_file()}.values())
    for file, shown in zip(files, display_names(files), strict=True):
        for place, row in column_rows(file, CONTROL_COLUMNS, "Export it again.", shown, bad):
            yield place, {name: unescaped(cell) for name, cell in row.items()}


def _refuse(bad: list[str]) -> None:
    if bad:
        raise BadRowsError(f"{counted_cells(bad)} of `{CONTROLS_FILE}` cannot be read; export again:", bad)


def _ratings(tables: Sequence[Ratings]) -> dict[tuple[TaskName, str, str], dict[str, bool | str]]:
    """What each annotator said, by task, unit (`record_uuid`, or `record_uuid:chunk_id`) and annotator."""
    found: dict[tuple[TaskName, str, str], dict[str, bool | str]] = {}
    for table in tables:
        names = [f"{record}:{chunk}" if chunk else record for record, chunk in table.unit_keys]
        for unit, who, values in zip(table.units, table.response_annotators, table.values, strict=True):
            found[table.task, names[unit], table.annotators[who]] = {
                label: bool(value == YES) for label, value in zip(table.labels, values, strict=True) if value != MISSING
            }
        for each in table.scaled:
            for unit, who, code in zip(each.units, each.raters, each.codes, strict=True):
                found[table.task, names[unit], table.annotators[who]][each.name] = each.values[code]
    return found
