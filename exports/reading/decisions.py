"""Adjudicators' decisions: `decisions.csv` written and read, and annotators scored against it."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from annotation.argilla.labels import LABELS, TASKS, TaskName, is_of_passages
from exports.csv.rows import csv_line
from exports.csv.schema import utc
from exports.reading.input_files import column_rows, counted_cells
from exports.statistics.consensus import UnitLabel
from exports.statistics.ratings import MISSING, YES, Ratings
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
    decision: bool
    """The label's value."""
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
    n_no: int
    """Units among them where no was decided."""
    yes_when_no: int
    """How many of these she called yes."""
    n_yes: int
    """Units among them where yes was decided."""
    no_when_yes: int
    """How many of these she called no."""


class Decisions(NamedTuple):
    rows: tuple[Decision, ...]  # The decisions, at most one for each unit and label

    @property
    def by_unit(self) -> dict[UnitLabel, bool]:
        return {(row.record_uuid, row.chunk_id, row.label): row.decision for row in self.rows}


_MARKS = ("own", "disputed")  # Columns of a file where any row has them
COLUMNS = tuple(name for name in Decision.model_fields if name not in _MARKS)


def read_decisions(path: Path) -> Decisions:
    """The decisions of a `decisions.csv`, in its order; further columns are let be.

    Raises:
        InputError: the file is no CSV in UTF-8, or lacks columns.
        BadRowsError: cells cannot be read, or a unit and label has two decisions; every one of them is listed.
    """
    found: dict[UnitLabel, Decision] = {}
    bad: list[str] = []
    advice = "Write it with `citejury exports adjudicate read`."
    for place, row in column_rows(path, COLUMNS, advice, path.name, bad):
        problems = _bad_cells(row)
        key = row["record_uuid"], row["chunk_id"], row["label"]
        if not problems and key in found:
            problems = ["a row above decides on the same unit and label."]
        if problems:
            bad += [f"{place}: {problem}" for problem in problems]
            continue
        values: dict[str, object] = {column: row[column] for column in COLUMNS}
        values |= {"decision": _BOOLEANS[row["decision"]], **{mark: row.get(mark) == "True" for mark in _MARKS}}
        found[key] = Decision.model_validate(values)
    if bad:
        raise BadRowsError(f"{counted_cells(bad)} of `{path}` cannot be read; mend what is wrong:", bad)
    return Decisions(tuple(found.values()))


def _bad_cells(row: Mapping[str, str]) -> list[str]:
    task = next((known for known in TASKS if known == row["task"]), None)
    if task is None:
        return [f"`task`: found {row['task']!r}, expected one of {', '.join(TASKS)}."]
    found = [f"`{column}`: is empty." for column in ("record_uuid", "adjudicator") if not row[column].strip()]
    if bool(row["chunk_id"]) != is_of_passages(task):
        found.append(f"`chunk_id`: found {row['chunk_id']!r}; retrieval needs one, the other tasks have none.")
    if row["label"] not in LABELS[task]:
        found.append(f"`label`: found {row['label']!r}, expected one of {', '.join(LABELS[task])}.")
    if row["decision"] not in _BOOLEANS:
        found.append(f"`decision`: found {row['decision']!r}, expected True or False.")
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
                values = row.model_dump()
                file.write(csv_line([str(values[column]) for column in columns]))


def score_annotators(ratings: Ratings, decisions: Decisions) -> list[AnnotatorScore]:
    """Each annotator on each label against the decisions, by label, then by name; without common units they are absent.

    Which units have a decision is no accident: the shares compare annotators, and say nothing about the other units.
    """
    decided = decisions.by_unit
    cells: dict[tuple[int, int], list[tuple[bool, bool]]] = defaultdict(list)
    units = ratings.unit_keys
    columns = list(enumerate(ratings.labels))
    wanted = {key[:2] for key in decided}
    responses = zip(ratings.units.tolist(), ratings.response_annotators.tolist(), ratings.values.tolist(), strict=True)
    for (unit, rater, values), (column, label) in itertools.product(
        ((units[unit], rater, values) for unit, rater, values in responses if units[unit] in wanted), columns
    ):
        decision = decided.get((*unit, label))
        if decision is not None and values[column] != MISSING:
            cells[column, rater].append((values[column] == YES, decision))
    return [
        _to_score(ratings.task, ratings.labels[column], ratings.annotators[rater], found)
        for (column, rater), found in sorted(cells.items())
    ]


def _to_score(task: TaskName, label: str, annotator: str, votes: Sequence[tuple[bool, bool]]) -> AnnotatorScore:
    agree = sum(vote == decision for vote, decision in votes)
    of_no = [vote for vote, decision in votes if not decision]
    of_yes = [vote for vote, decision in votes if decision]
    return AnnotatorScore(
        task=task,
        label=label,
        annotator=annotator,
        n=len(votes),
        n_agree=agree,
        agreement=agree / len(votes),
        n_no=len(of_no),
        yes_when_no=sum(of_no),
        n_yes=len(of_yes),
        no_when_yes=len(of_yes) - sum(of_yes),
    )
