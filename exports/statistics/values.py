"""Votes go in; the value of each unit, and of answers, comes out (exports/contracts/results.md#values)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from annotation.argilla.labels import LABELS, TaskName
from exports.statistics.consensus import UnitLabel
from exports.statistics.groups import Grouping
from exports.statistics.ratings import BoolArray, FloatArray, IntArray, Ratings, count_votes
from exports.statistics.study import Consensus, FindingDefinition
from pipeline.core.errors import InputError

_NOT = "not "
_TASK_OF: Mapping[str, TaskName] = {label: task for task, labels in LABELS.items() for label in labels}


class Values(NamedTuple):
    records: IntArray  # Number of each unit's record, counted from 0
    values: FloatArray  # Units × labels: from 0 (no) to 1 (yes); NaN where a unit has none
    undecided: BoolArray  # Units × labels: whether the unit has votes on the label and they settle nothing


class FindingValues(NamedTuple):
    values: Values  # A unit for each answer with votes on any task; one column
    n_incomplete: int  # Answers without a value on some part
    missing: dict[str, int]  # How many answers lack a value on each of the labels


def unit_values(
    ratings: Ratings, places: Mapping[str, int], consensus: Consensus, decisions: Mapping[UnitLabel, bool]
) -> Values:
    """The values of a task's units on its labels, in their orders; `places` numbers the records."""
    votes = count_votes(ratings.values, ratings.units, len(ratings.unit_records))
    with np.errstate(invalid="ignore"):
        share = votes.ones / votes.ratings
    if consensus == "share":
        values = share
    elif consensus == "majority":
        values = np.where(share == 0.5, np.nan, np.where(np.isnan(share), np.nan, share > 0.5))
    else:
        values = np.where((share == 0) | (share == 1), share, np.nan)
        units, labels = {unit: number for number, unit in enumerate(ratings.unit_keys)}, LABELS[ratings.task]
        for (record, chunk_id, label), decided in decisions.items():
            if (record, chunk_id) in units and label in labels:
                values[units[record, chunk_id], labels.index(label)] = decided
    records = np.array([places[record] for record in ratings.records], np.int64)[ratings.unit_records]
    return Values(records, values, (votes.ratings > 0) & np.isnan(values))


def finding_values(definition: FindingDefinition, tasks: Mapping[TaskName, Values], n_records: int) -> FindingValues:
    """1 where most votes on one of its parts make an answer count, ½ for a tie, else 0; NaN without votes on a part.

    Not the largest share of votes: one slip on any of several parts would count for a third of an answer each time.
    """
    if not definition.any:
        raise InputError(f"The finding {definition.title!r} names no label. Give at least one in `any`.")
    judged = np.zeros(n_records, np.bool_)
    for task in tasks.values():
        judged[task.records] = True
    parts = [_part_values(part, tasks, n_records) for part in definition.any]
    values = np.stack([part[0][judged] for part in parts], axis=1)
    voted = np.stack([part[1][judged] for part in parts], axis=1)
    lacking = np.isnan(values)
    largest = np.where(lacking, 0, values).max(axis=1)
    told = voted.all(axis=1) & (~lacking.any(axis=1) | (largest == 1))
    value = np.where(told, largest, np.nan)
    missing = {
        _label_of(part): int(count)
        for part, count in zip(
            definition.any, np.count_nonzero(lacking & np.isnan(value)[:, np.newaxis], axis=0), strict=True
        )
    }
    undecided = np.isnan(value) & voted.all(axis=1)
    found = Values(np.flatnonzero(judged), value[:, np.newaxis], undecided[:, np.newaxis])
    return FindingValues(found, int(np.count_nonzero(np.isnan(value))), missing)


def _part_values(part: str, tasks: Mapping[TaskName, Values], n_records: int) -> tuple[FloatArray, BoolArray]:
    """By the votes' majority, ½ for a tie, NaN without one, of passages the largest; and whether there are votes."""
    label = _label_of(part)
    if label not in _TASK_OF:
        raise InputError(
            f"A finding names the label {label!r}, which no task has. The labels are {', '.join(_TASK_OF)}."
        )
    values, voted = np.full(n_records, np.nan), np.zeros(n_records, np.bool_)
    task = tasks.get(_TASK_OF[label])
    if task is not None:
        column = LABELS[_TASK_OF[label]].index(label)
        own = 1 - task.values[:, column] if part.startswith(_NOT) else task.values[:, column]
        settled = np.where(np.isnan(own) | (own == 0.5), own, own > 0.5)
        np.fmax.at(values, task.records, settled)
        voted[task.records[~np.isnan(own) | task.undecided[:, column]]] = True
    return values, voted


def _label_of(part: str) -> str:
    return part.removeprefix(_NOT).strip()


def tasks_of(labels: Sequence[str]) -> tuple[TaskName, ...]:
    return tuple(dict.fromkeys(_TASK_OF[_label_of(part)] for part in labels))


class Cells(NamedTuple):
    """One row for each group and narrative that have a unit together, sorted by group, then by narrative."""

    narratives: IntArray
    starts: IntArray  # Where the rows of each group begin, and the end of the last: groups + 1
    units: FloatArray  # Cells × labels: units with a value
    undecided: FloatArray  # Cells × labels: units with votes that settle nothing
    weights: FloatArray  # Cells × labels: sum of the weights of units with a value
    squares: FloatArray  # Cells × labels: sum of their squares
    totals: FloatArray  # Cells × labels: sum of weight times value

    def of_group(self, group: int) -> slice:
        return slice(int(self.starts[group]), int(self.starts[group + 1]))


def cells_of(values: Values, grouping: Grouping, narratives: IntArray, weights: FloatArray) -> Cells:
    """The sums of each group and narrative; `narratives` and `weights` are by record."""
    width = int(narratives.max(initial=0)) + 1
    keys = grouping.of_record[values.records] * width + narratives[values.records]
    found, cell = np.unique(keys, return_inverse=True)
    given = ~np.isnan(values.values)
    weight = weights[values.records][:, np.newaxis] * given
    return Cells(
        narratives=found % width,
        starts=np.searchsorted(found // width, np.arange(len(grouping.groups) + 1)),
        units=_sums(cell, len(found), given),
        undecided=_sums(cell, len(found), values.undecided),
        weights=_sums(cell, len(found), weight),
        squares=_sums(cell, len(found), weight**2),
        totals=_sums(cell, len(found), weight * np.where(given, values.values, 0)),
    )


def _sums(cell: IntArray, n_cells: int, columns: FloatArray | BoolArray) -> FloatArray:
    found: Sequence[FloatArray] = [
        np.bincount(cell, column, n_cells).astype(np.float64) for column in np.asarray(columns, np.float64).T
    ]
    return np.stack(found, axis=1)
