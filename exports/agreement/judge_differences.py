"""Judges against each other: which of two says more often what the majority of the jury says, on the same units.

Passages of one answer are not independent, so the test exchanges the two judges on whole records, and the interval has
the variance between records.

Source: exports/contracts/agreement.md#two-judges.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist

import numpy as np

from annotation.labels import TASKS, TaskName
from exports.agreement.distributions import holm, rounded, student_quantile
from exports.agreement.judge import JudgedColumn, JudgedUnits, judged_columns
from exports.agreement.ratings import IntArray, Ratings
from exports.agreement.schema import JudgeDifference

_LEVEL = 0.05
_LEAST_DIFFERING = 6
"""Records on which the two differ, for an interval: fewer could not show a difference, all of them one way."""
_MOST_EXACT = 2_000


def compare_judges(
    tables: Sequence[Ratings], judges: Mapping[str, Mapping[TaskName, JudgedUnits]]
) -> tuple[JudgeDifference, ...]:
    """Every two judges on each label that both answered on units with a majority, by task, label and names."""
    by_task = {ratings.task: ratings for ratings in tables}
    found = []
    for task in TASKS:
        if task in by_task:
            ratings = by_task[task]
            columns = {
                name: {column.label: column for column in judged_columns(ratings, judges[name][task])}
                for name in sorted(judges)
                if task in judges[name]
            }
            for a, b in itertools.combinations(columns, 2):
                for label in (each for each in columns[a] if each in columns[b]):
                    found += _compare(ratings, a, columns[a][label], b, columns[b][label])
    corrected = holm([each.p for each in found])
    return tuple(
        each.model_copy(update={"p_holm": rounded(p_holm), "differs": p_holm < _LEVEL})
        for each, p_holm in zip(found, corrected, strict=True)
    )


def _compare(ratings: Ratings, a: str, first: JudgedColumn, b: str, second: JudgedColumn) -> list[JudgeDifference]:
    """Two judges on one label; nothing where they share no unit with a majority."""
    shared = first.compared & second.compared
    if not shared.any():
        return []
    right = [((column.values == 1) == column.majority)[shared] for column in (first, second)]
    _, places = np.unique(ratings.unit_records[shared], return_inverse=True)
    ahead = right[0].astype(np.int64) - right[1]
    by_record = np.bincount(places, ahead).astype(np.int64)
    n_units, difference = len(ahead), float(ahead.mean())
    ends = _ends(ahead, places, difference)
    return [
        JudgeDifference(
            task=ratings.task,
            label=first.label,
            model_a=a,
            model_b=b,
            n_units=n_units,
            n_records=len(by_record),
            n_differing=int(np.count_nonzero(by_record)),
            agreement_a=float(right[0].mean()),
            agreement_b=float(right[1].mean()),
            difference=difference,
            interval=ends,
            p=rounded(exchange_p(by_record)),
            p_holm=1.0,
            differs=False,
        )
    ]


def _ends(ahead: IntArray, places: IntArray, mean: float) -> tuple[float, float] | None:
    """The 95 % interval of the mean over units, from the variance between records; None for few that differ."""
    n_records = int(places.max()) + 1
    if np.count_nonzero(np.bincount(places, ahead)) < _LEAST_DIFFERING:
        return None
    squares = float((np.bincount(places, ahead - mean) ** 2).sum())
    half = student_quantile(n_records - 1) * math.sqrt(n_records / (n_records - 1) * squares) / len(ahead)
    return max(-1.0, mean - half), min(1.0, mean + half)


def exchange_p(sums: IntArray) -> float:
    """Two-sided p of a total of whole numbers whose signs are as likely one way as the other.

    Exact up to 2,000 numbers that are not 0, beyond them by the normal distribution.
    """
    sizes = np.abs(sums[sums != 0])
    if len(sizes) > _MOST_EXACT:
        return 2 * NormalDist().cdf(-abs(int(sums.sum())) / math.sqrt(float((sizes**2).sum())))
    total = int(sizes.sum())
    chances = np.zeros(2 * total + 1)
    chances[total] = 1.0
    for size in sizes.tolist():
        chances = (np.roll(chances, size) + np.roll(chances, -size)) / 2
    far = np.abs(np.arange(-total, total + 1)) >= abs(int(sums.sum()))
    return min(1.0, float(chances[far].sum()))
