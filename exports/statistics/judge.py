"""A judge against the jury: each label against the majority of a unit's votes, and against each annotator."""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from annotation.argilla.labels import TASKS, TaskName
from exports.statistics import agreement_schema as schema
from exports.statistics import ratings as ratings_of
from exports.statistics.alt_test import EPSILON, Answers, alternative_annotator_test
from exports.statistics.annotators import kappas
from exports.statistics.distributions import holm, rounded, student_quantile
from exports.statistics.resampling import Estimator, bootstrap, interval
from exports.statistics.table import ratio
from exports.statistics.warnings import FEW_SHARED

_BINS = 10
_UNDEFINED_WHERE: dict[str, schema.JudgeReason] = {
    "precision": "judge_never_says_yes",
    "recall": "jury_never_says_yes",
    "f1": "nobody_says_yes",
    "accuracy": "no_compared_units",
    "cohen_kappa": "constant_both_raters",
}


def calibrate(p_yes: ratings_of.FloatArray, truths: ratings_of.BoolArray) -> schema.Calibration:
    """Source: Brier 1950; Naeini, Cooper & Hauskrecht 2015 (ECE, bins of one width); Hanley & McNeil 1982 (AUC)."""
    bins = _reliability_bins(p_yes, truths)
    n = len(truths)
    brier = float(np.mean((p_yes - truths) ** 2)) if n else None
    gaps = [
        found.n * abs(found.share_yes - found.mean_p_yes)
        for found in bins
        if found.share_yes is not None and found.mean_p_yes is not None
    ]
    undefined: dict[str, schema.JudgeReason] = {} if n else dict.fromkeys(("brier", "ece", "auc"), "no_compared_units")
    auc = _area_under_curve(p_yes, truths)
    if n and auc is None:
        undefined["auc"] = "jury_is_constant"
    return schema.Calibration(bins=bins, brier=brier, ece=ratio(sum(gaps), n), auc=auc, undefined=undefined)


def _reliability_bins(p_yes: ratings_of.FloatArray, truths: ratings_of.BoolArray) -> tuple[schema.ReliabilityBin, ...]:
    """Ten bins from 0 to 1; a probability on an end belongs to the bin above it, 1 to the last."""
    ends = np.arange(_BINS + 1) / _BINS
    places = np.clip(np.searchsorted(ends, p_yes, side="right") - 1, 0, _BINS - 1)
    counts = np.bincount(places, minlength=_BINS).tolist()
    stated = np.bincount(places, p_yes, _BINS).tolist()
    true = np.bincount(places, truths, _BINS).tolist()
    return tuple(
        schema.ReliabilityBin(
            low=float(ends[place]),
            high=float(ends[place + 1]),
            n=counts[place],
            mean_p_yes=ratio(stated[place], counts[place]),
            share_yes=ratio(true[place], counts[place]),
        )
        for place in range(_BINS)
    )


def _area_under_curve(p_yes: ratings_of.FloatArray, truths: ratings_of.BoolArray) -> float | None:
    """The area under the ROC curve, from ranks with ties in the middle; None where all truths are the same."""
    n_yes = int(np.count_nonzero(truths))
    n_no = len(truths) - n_yes
    if not n_yes or not n_no:
        return None
    _, places, counts = np.unique(p_yes, return_inverse=True, return_counts=True)
    middles = np.cumsum(counts) - (counts - 1) / 2
    rank_sum = float(middles[places][truths].sum())
    return (rank_sum - n_yes * (n_yes + 1) / 2) / (n_yes * n_no)


class JudgedUnits(NamedTuple):
    labels: dict[ratings_of.UnitKey, dict[str, tuple[bool, float]]]  # Value and probability of yes, by unit and label
    statuses: dict[str, int]  # Judgements that cannot be used, by status
    quotes: dict[ratings_of.UnitKey, tuple[str, ...]]  # That judgements rest on; units without any are not there


class JudgedColumn(NamedTuple):
    label: str
    values: ratings_of.LabelArray  # The judge's answer to each unit: 1 yes, 0 no, -1 missing
    p_yes: ratings_of.FloatArray  # Its probability of yes; NaN where the answer is missing
    votes: ratings_of.Votes  # The jury's votes on each unit

    @property
    def judged(self) -> ratings_of.BoolArray:
        return np.not_equal(self.values, ratings_of.MISSING)

    @property
    def compared(self) -> ratings_of.BoolArray:
        """Those of them on which the jury has a majority."""
        return np.logical_and(self.judged, np.not_equal(self.votes.ones, self.votes.zeros))

    @property
    def majority(self) -> ratings_of.BoolArray:
        return np.greater(self.votes.ones, self.votes.zeros)

    @property
    def cells(self) -> ratings_of.IntArray:
        """Units × 4: 1 where a compared unit is a tp, an fp, an fn, a tn; 0 in all four elsewhere."""
        yes, right = self.values == ratings_of.YES, self.majority
        cells = (yes & right, yes & ~right, ~yes & right, ~yes & ~right)
        return np.stack([self.compared & cell for cell in cells], axis=1).astype(np.int64)


def measure_judges(
    tables: Sequence[ratings_of.Ratings],
    judges: Mapping[str, Mapping[TaskName, JudgedUnits]],
    resamples: int,
    seed: int,
    epsilon: float = EPSILON,
) -> tuple[schema.JudgeAgreement, ...]:
    by_task = {ratings.task: ratings for ratings in tables}
    return tuple(
        schema.JudgeAgreement(
            model=name,
            tasks={
                task: measure_judge(by_task[task], judges[name][task], resamples, seed, epsilon)
                for task in TASKS
                if task in by_task and task in judges[name]
            },
            other_tasks={
                task: len(judged.labels) + sum(judged.statuses.values())
                for task, judged in judges[name].items()
                if task not in by_task
            },
        )
        for name in sorted(judges)
    )


def measure_judge(
    ratings: ratings_of.Ratings, judged: JudgedUnits, resamples: int, seed: int, epsilon: float = EPSILON
) -> schema.JudgedTask:
    numbers = set(ratings.unit_keys)
    known = {key: labels for key, labels in judged.labels.items() if key in numbers}
    columns = _judged_columns(ratings, judged)
    intervals = _kappa_intervals(ratings, columns, resamples, seed)
    return schema.JudgedTask(
        n_units=len(numbers),
        n_judged=len(known),
        n_not_judged=len(numbers) - len(known),
        n_unknown=len(judged.labels) - len(known),
        statuses=dict(sorted(Counter(judged.statuses).items())),
        labels={
            column.label: _measure_label(ratings, column, len(known), found, epsilon)
            for column, found in zip(columns, intervals, strict=True)
        },
    )


def _judged_columns(ratings: ratings_of.Ratings, judged: JudgedUnits) -> list[JudgedColumn]:
    numbers = {key: number for number, key in enumerate(ratings.unit_keys)}
    units = {numbers[key]: labels for key, labels in judged.labels.items() if key in numbers}
    found = []
    for column, label in enumerate(ratings.labels):
        if any(label in labels for labels in judged.labels.values()):
            values = np.full(len(ratings.unit_records), ratings_of.MISSING, dtype=np.int8)
            p_yes = np.full(len(values), np.nan)
            for unit, labels in units.items():
                if label in labels:
                    values[unit], p_yes[unit] = labels[label]
            found.append(JudgedColumn(label, values, p_yes, ratings_of.label_votes(ratings, column)))
    return found


def _kappa_intervals(
    ratings: ratings_of.Ratings, columns: Sequence[JudgedColumn], resamples: int, seed: int
) -> list[schema.Interval | schema.RefusedReason]:
    """The interval of each label's kappa with the majority, or why it is refused; records are drawn for all at once."""
    n_records = len(ratings.records)
    estimators: list[Estimator] = []
    for column in columns:
        cells = [np.bincount(ratings.unit_records, each, n_records) for each in column.cells.T]
        frame = np.bincount(ratings.unit_records[column.compared], minlength=n_records) > 0
        estimators.append(Estimator(np.stack(cells, axis=1).astype(np.float64), kappas, frame))
    resampled = bootstrap(estimators, resamples, seed)
    return [interval(resampled[estimator], 0) for estimator in estimators]


def _measure_label(
    ratings: ratings_of.Ratings,
    column: JudgedColumn,
    n_units: int,
    found: schema.Interval | schema.RefusedReason,
    epsilon: float,
) -> schema.JudgedLabel:
    compared = column.compared
    n_compared = int(compared.sum())
    few = 0 < n_compared < FEW_SHARED
    refused: schema.RefusedReason | None = None if isinstance(found, schema.Interval) else found
    kappa_interval = found if isinstance(found, schema.Interval) and not few else None
    beyond_chance = kappa_interval is not None and kappa_interval.low > 0
    return schema.JudgedLabel(
        n_judged=int(column.judged.sum()),
        n_left_out=n_units - int(column.judged.sum()),
        n_compared=n_compared,
        n_ties=int((column.judged & (column.votes.ratings > 0) & ~compared).sum()),
        n_without_votes=int((column.judged & (column.votes.ratings == 0)).sum()),
        confusion=confusion(*column.cells.sum(axis=0).tolist()),
        interval=kappa_interval,
        refused_interval="few_units" if few else refused,
        calibration=calibrate(column.p_yes[compared], column.majority[compared]),
        annotators=_against_annotators(ratings, column),
        alt_test=alternative_annotator_test(_answers(ratings, column), epsilon, beyond_chance),
    )


def _answers(ratings: ratings_of.Ratings, column: JudgedColumn) -> Answers:
    values = ratings.values[:, ratings.labels.index(column.label)]
    given = values != ratings_of.MISSING
    return Answers(
        ratings.annotators,
        ratings.units[given],
        ratings.response_annotators[given],
        values[given].astype(np.int64),
        column.values.astype(np.int64),
        ratings.unit_records,
    )


def _against_annotators(ratings: ratings_of.Ratings, column: JudgedColumn) -> tuple[schema.JudgeAgainstAnnotator, ...]:
    place = ratings.labels.index(column.label)
    judge, answers = column.values[ratings.units], ratings.values[:, place]
    both = (judge != ratings_of.MISSING) & (answers != ratings_of.MISSING)
    wrong = judge[both] != answers[both]
    cell = np.where(judge[both] == ratings_of.YES, np.where(wrong, 1, 0), np.where(wrong, 2, 3))
    width = 4 * len(ratings.annotators)
    counts = np.bincount(4 * ratings.response_annotators[both] + cell, minlength=width).reshape(-1, 4)
    return tuple(
        schema.JudgeAgainstAnnotator(annotator=name, confusion=confusion(*cells.tolist()))
        for name, cells in zip(ratings.annotators, counts, strict=True)
        if cells.sum()
    )


def confusion(tp: int, fp: int, fn: int, tn: int) -> schema.Confusion:
    n = tp + fp + fn + tn
    figures = {
        "precision": ratio(tp, tp + fp),
        "recall": ratio(tp, tp + fn),
        "f1": ratio(2 * tp, 2 * tp + fp + fn),
        "accuracy": ratio(tp + tn, n),
        "cohen_kappa": ratio(2 * (tp * tn - fp * fn), (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn)),
    }
    undefined = {
        name: _UNDEFINED_WHERE[name] if n else "no_compared_units" for name in figures if figures[name] is None
    }
    return schema.Confusion(tp=tp, fp=fp, fn=fn, tn=tn, **figures, undefined=undefined)


_LEVEL = 0.05
_LEAST_DIFFERING = 6  # Records on which the two differ: fewer could not show a difference, all of them one way
_MOST_EXACT = 2_000


def compare_judges(
    tables: Sequence[ratings_of.Ratings], judges: Mapping[str, Mapping[TaskName, JudgedUnits]]
) -> tuple[schema.JudgeDifference, ...]:
    by_task = {ratings.task: ratings for ratings in tables}
    found = []
    for task in TASKS:
        if task in by_task:
            ratings = by_task[task]
            columns = {
                name: {column.label: column for column in _judged_columns(ratings, judges[name][task])}
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


def _compare(
    ratings: ratings_of.Ratings, a: str, first: JudgedColumn, b: str, second: JudgedColumn
) -> list[schema.JudgeDifference]:
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
        schema.JudgeDifference(
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


def _ends(ahead: ratings_of.IntArray, places: ratings_of.IntArray, mean: float) -> tuple[float, float] | None:
    """The 95 % interval of the mean over units, from the variance between records; None for few that differ."""
    n_records = int(places.max()) + 1
    if np.count_nonzero(np.bincount(places, ahead)) < _LEAST_DIFFERING:
        return None
    squares = float((np.bincount(places, ahead - mean) ** 2).sum())
    half = student_quantile(n_records - 1) * math.sqrt(n_records / (n_records - 1) * squares) / len(ahead)
    return max(-1.0, mean - half), min(1.0, mean + half)


def exchange_p(sums: ratings_of.IntArray) -> float:
    """Two-sided p of a total of whole numbers with random signs; of more than 2,000 by the normal distribution."""
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
