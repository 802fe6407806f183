"""Adjudicators' decisions: `decisions.csv` written and read, and annotators scored against it."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from annotation.argilla.labels import LABELS, OWN_TASKS, TASKS, TaskName, is_of_passages, task_named
from exports.csv.rows import csv_line
from exports.csv.schema import utc
from exports.reading.input_files import column_rows, counted_cells
from exports.reading.read import CODES, expected_of
from exports.statistics.consensus import UnitLabel
from exports.statistics.ratings import MISSING, Ratings, all_labels
from pipeline.core.errors import BadRowsError, OutputError
from pipeline.core.files import output_errors, staged_file
from pipeline.core.schema import Frozen

_BOOLEANS: Mapping[str, bool] = {"True": True, "False": False}


class Decision(Frozen):
    """What an adjudicator decided on one label of one unit: a row of `decisions.csv`."""

    task: TaskName
    """The task."""
    record_uuid: str
    """Id of the record."""
    chunk_id: str
    """Id of the passage in retrieval; empty in the other tasks."""
    label: str
    """The label."""
    decision: bool | str
    """The label's value: True or False, or the value on its scale."""
    adjudicator: str
    """User name of who decided; several who agree are joined by `; `."""
    created_at: str
    """When the last of them submitted: ISO 8601, UTC."""
    own: bool = False
    """Whether one of them had labelled the unit before (`exports adjudicate push --allow-own`)."""
    disputed: bool = False
    """Whether she was asked since a judge and the jury differ (`exports adjudicate push --disputes`)."""


class AnnotatorScore(Frozen):
    """One annotator on one label, compared with the adjudicators' decisions."""

    task: TaskName
    """The task."""
    label: str
    """The label."""
    annotator: str
    """The annotator."""
    n: int
    """Her ratings of units with a decision; at least one."""
    n_agree: int
    """How many of them say what was decided."""
    agreement: float
    """Share of them that do."""
    n_no: int | None
    """Units among them where no was decided; None, as the next three, on a scale."""
    yes_when_no: int | None
    """How many of these she called yes."""
    n_yes: int | None
    """Units among them where yes was decided."""
    no_when_yes: int | None
    """How many of these she called no."""


class Decisions(NamedTuple):
    rows: tuple[Decision, ...]  # The decisions, at most one for each unit and label

    @property
    def by_unit(self) -> dict[UnitLabel, bool]:
        """Those of the tasks that come with citejury; others may have labels of the same names."""
        own = (row for row in self.rows if row.task in OWN_TASKS)
        return {(row.record_uuid, row.chunk_id, row.label): row.decision is True for row in own}

    @property
    def by_task(self) -> dict[TaskName, dict[UnitLabel, bool | str]]:
        found: dict[TaskName, dict[UnitLabel, bool | str]] = defaultdict(dict)
        for row in self.rows:
            found[row.task][row.record_uuid, row.chunk_id, row.label] = row.decision
        return dict(found)


_MARKS = ("own", "disputed")  # Columns of a file where any row has them
COLUMNS = tuple(name for name in Decision.model_fields if name not in _MARKS)


def read_decisions(path: Path) -> Decisions:
    """The decisions of a `decisions.csv`, in its order; further columns are let be.

    Raises:
        InputError: the file is no CSV in UTF-8, or lacks columns.
        BadRowsError: cells cannot be read, or a unit and label has two decisions; every one of them is listed.
    """
    found: dict[tuple[str, ...], Decision] = {}
    bad: list[str] = []
    advice = "Write it with `citejury exports adjudicate read`."
    for place, row in column_rows(path, COLUMNS, advice, path.name, bad):
        problems = _bad_cells(row)
        key = row["task"], row["record_uuid"], row["chunk_id"], row["label"]
        if not problems and key in found:
            problems = ["a row above decides on the same unit and label."]
        if problems:
            bad += [f"{place}: {problem}" for problem in problems]
            continue
        values: dict[str, object] = {column: row[column] for column in COLUMNS}
        values |= {"decision": _decided(row), **{mark: row.get(mark) == "True" for mark in _MARKS}}
        found[key] = Decision.model_validate(values)
    if bad:
        raise BadRowsError(f"{counted_cells(bad)} of `{path}` cannot be read; mend what is wrong:", bad)
    return Decisions(tuple(found.values()))


def _decided(row: Mapping[str, str]) -> bool | str | None:
    """The value of a row of a known label; None where it is none of the label's."""
    task, label = row["task"], row["label"]
    question = task_named(task).by_name[label]
    if question.scale == "boolean":
        return _BOOLEANS.get(row["decision"])
    code = CODES[task][LABELS[task].index(label)].get(row["decision"], MISSING)
    return None if code == MISSING else question.values[code]


def _bad_cells(row: Mapping[str, str]) -> list[str]:
    task = next((known for known in TASKS if known == row["task"]), None)
    if task is None:
        return [f"`task`: found {row['task']!r}, expected one of {', '.join(TASKS)}."]
    found = [f"`{column}`: is empty." for column in ("record_uuid", "adjudicator") if not row[column].strip()]
    if bool(row["chunk_id"]) != is_of_passages(task):
        needed = "needs one" if is_of_passages(task) else "has none"
        found.append(f"`chunk_id`: found {row['chunk_id']!r}; {task} {needed}.")
    if row["label"] not in LABELS[task]:
        found.append(f"`label`: found {row['label']!r}, expected one of {', '.join(LABELS[task])}.")
    elif _decided(row) is None:
        expected = expected_of(task_named(task).by_name[row["label"]])
        found.append(f"`decision`: found {row['decision']!r}, expected {expected}.")
    try:
        utc(row["created_at"])
    except (ValueError, OverflowError):
        found.append(f"`created_at`: found {row['created_at']!r}, expected a time such as 2025-03-08T23:43:00+00:00.")
    return found


def write_decisions(path: Path, decisions: Decisions) -> None:
    """Write the decisions as CSV; OutputError where the file holds something else or cannot be written."""
    marks = tuple(mark for mark in _MARKS if any(getattr(row, mark) for row in decisions.rows))
    earlier = [(*COLUMNS, *some) for count in range(len(_MARKS) + 1) for some in itertools.combinations(_MARKS, count)]
    _write_rows(path, (*COLUMNS, *marks), decisions.rows, earlier)


def write_scores(path: Path, scores: Sequence[AnnotatorScore]) -> None:
    """Write the scores as CSV; OutputError where the file holds something else or cannot be written."""
    _write_rows(path, tuple(AnnotatorScore.model_fields), scores)


def _write_rows(
    path: Path, columns: Sequence[str], rows: Iterable[Frozen], earlier: Iterable[Sequence[str]] = ()
) -> None:
    """Write a table with these columns; only one with the same or one of the `earlier` columns gives way to it."""
    head = csv_line(columns)
    with output_errors(f"`{path}` cannot be written", "Name another file."):
        if path.exists() and not path.read_bytes().startswith((head, *map(csv_line, earlier))):
            raise OutputError(f"`{path}` holds something else than citejury writes there. Name another file.")
        with staged_file(path) as file:
            file.write(head)
            for row in rows:
                values = {name: "" if value is None else str(value) for name, value in row.model_dump().items()}
                file.write(csv_line([values[column] for column in columns]))


def each_answer(ratings: Ratings) -> Iterator[tuple[int, int, int, bool | str]]:
    """The place of its label in the task, its unit, its annotator and its value."""
    for label in all_labels(ratings):
        place = LABELS[ratings.task].index(label.name)
        values = (False, True) if label.scale == "boolean" else label.values
        for unit, rater, code in zip(label.units.tolist(), label.raters.tolist(), label.codes.tolist(), strict=True):
            yield place, unit, rater, values[code]


def score_annotators(ratings: Ratings, decisions: Decisions) -> list[AnnotatorScore]:
    """Each annotator on each label against the decisions, by label, then by name; without common units they are absent.

    Which units have a decision is no accident: the shares compare annotators, and say nothing about the other units.
    """
    decided, labels = decisions.by_task.get(ratings.task, {}), LABELS[ratings.task]
    cells: dict[tuple[int, int], list[tuple[bool | str, bool | str]]] = defaultdict(list)
    units = ratings.unit_keys
    for place, unit, rater, value in each_answer(ratings):
        decision = decided.get((*units[unit], labels[place]))
        if decision is not None:
            cells[place, rater].append((value, decision))
    return [
        _to_score(ratings.task, labels[place], ratings.annotators[rater], found)
        for (place, rater), found in sorted(cells.items())
    ]


def _to_score(
    task: TaskName, label: str, annotator: str, votes: Sequence[tuple[bool | str, bool | str]]
) -> AnnotatorScore:
    agree = sum(vote == decision for vote, decision in votes)
    of_no, of_yes = ([vote for vote, decision in votes if decision is side] for side in (False, True))
    is_boolean = task_named(task).by_name[label].scale == "boolean"
    return AnnotatorScore(
        task=task,
        label=label,
        annotator=annotator,
        n=len(votes),
        n_agree=agree,
        agreement=agree / len(votes),
        n_no=len(of_no) if is_boolean else None,
        yes_when_no=of_no.count(True) if is_boolean else None,
        n_yes=len(of_yes) if is_boolean else None,
        no_when_yes=of_yes.count(False) if is_boolean else None,
    )
