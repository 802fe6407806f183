"""A judge against the jury: each label against the majority of a unit's votes, and against each annotator."""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from annotation.argilla.labels import TASKS, TaskName
from exports.statistics import agreement_schema as schema
from exports.statistics import ratings as ratings_of
from exports.statistics.alt_test import EPSILON, Answers, alternative_annotator_test
from exports.statistics.annotators import kappas
from exports.statistics.consensus import scale_consensus
from exports.statistics.distributions import holm, rounded, student_quantile
from exports.statistics.exchange import LEVEL, exchange_p, n_draws, paired
from exports.statistics.resampling import Estimator, bootstrap, interval
from exports.statistics.scaled_labels import ScaledEstimators, pairs_with_last
from exports.statistics.scales import MOST_VALUES
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


class ScaledAnswers(NamedTuple):
    """A judge's answers to one label of anybody's ratings."""

    label: ratings_of.ScaledLabel  # People's ratings, of all values that they or the judge give
    judge: ratings_of.IntArray  # Number of the judge's value of each unit; -1 where it gave none

    @property
    def truth(self) -> ratings_of.FloatArray:
        return scale_consensus(self.label, len(self.judge))


def _answers_of_judges(people: ratings_of.Ratings, judges: ratings_of.Ratings) -> dict[str, dict[str, ScaledAnswers]]:
    """By judge and label; `judges` has judges for annotators, and units and labels of the same names."""
    number = {name: at for at, name in enumerate(people.unit_names)}
    unit_of = np.array([number.get(name, -1) for name in judges.unit_names], np.int64)
    theirs = {label.name: label for label in ratings_of.all_labels(judges)}
    found: dict[str, dict[str, ScaledAnswers]] = {name: {} for name in judges.annotators}
    for label in ratings_of.all_labels(people):
        if label.name in theirs:
            other = theirs[label.name]
            whole, codes = _with_values(label, other)
            for judge, name in enumerate(judges.annotators):
                said = np.full(len(people.unit_records), -1)
                own = (other.raters == judge) & (unit_of[other.units] >= 0)
                said[unit_of[other.units[own]]] = codes[other.codes[own]]
                if (said >= 0).any():
                    found[name][label.name] = ScaledAnswers(whole, said)
    return found


def _with_values(
    label: ratings_of.ScaledLabel, other: ratings_of.ScaledLabel
) -> tuple[ratings_of.ScaledLabel, ratings_of.IntArray]:
    """The label with the values of the other one too, and the numbers of the latter's in it."""
    values = [*label.values, *(value for value in other.values if value not in label.values)]
    if len(values) > len(label.values) and label.scale in ("ordinal", "interval"):
        values.sort(key=float)  # Words have an order that names all of them
    number = {value: at for at, value in enumerate(values)}
    codes, own = (np.array([number[each] for each in of.values], np.int64) for of in (other, label))
    places = np.array(values if label.scale == "interval" else range(len(values)), np.float64)
    return label._replace(values=tuple(values), places=places, codes=own[label.codes]), codes


def measure_rating_judges(
    people: ratings_of.Ratings, judges: ratings_of.Ratings, resamples: int, seed: int, epsilon: float = EPSILON
) -> tuple[schema.JudgeAgreement, ...]:
    """Judges of anybody's ratings, on every scale."""
    there = set(people.unit_names)
    found = []
    for name, labels in _answers_of_judges(people, judges).items():
        own = {
            judges.unit_names[unit]
            for label in ratings_of.all_labels(judges)
            for unit in label.units[label.raters == judges.annotators.index(name)].tolist()
        }
        task = schema.JudgedTask(
            n_units=len(there),
            n_judged=len(own & there),
            n_not_judged=len(there - own),
            n_unknown=len(own - there),
            statuses={},
            labels={},
            scaled={
                label: _measure_scale(people, answers, len(own & there), (name, resamples, seed, epsilon))
                for label, answers in labels.items()
            },
        )
        found.append(schema.JudgeAgreement(model=name, tasks={ratings_of.RATINGS: task}, other_tasks={}))
    return tuple(found)


def _measure_scale(
    people: ratings_of.Ratings, answers: ScaledAnswers, n_units: int, asked: tuple[str, int, int, float]
) -> schema.JudgedScale:
    (name, resamples, seed, epsilon), (label, judge), truth = asked, answers, answers.truth
    judged, rated = judge >= 0, np.bincount(label.units, minlength=len(judge)) > 0
    compared = np.flatnonzero(judged & ~np.isnan(truth))
    agreement, kappa = None, None
    confused: tuple[tuple[int, ...], ...] = ()
    if len(compared):
        pair = _of_two(label, compared, truth[compared], judge[compared])
        estimators = ScaledEstimators(people._replace(annotators=("people", name)), pair)
        agreement = estimators.read(bootstrap(estimators.estimators, resamples, seed))
        agreement = agreement.model_copy(update={"warnings": estimators.warnings(agreement)})
        kappa = agreement.intervals.get("mean_pairwise_weighted_kappa")
        k = len(pair.values)
        if label.scale != "interval" and k <= MOST_VALUES:
            cells = np.bincount(pair.codes[::2] * k + pair.codes[1::2], minlength=k * k).reshape(k, k)
            confused = tuple(map(tuple, cells.tolist()))
    beyond_chance = kappa is not None and kappa.low > 0 and len(compared) >= FEW_SHARED
    is_near = label.scale in ("ordinal", "interval")
    told = Answers(people.annotators, label.units, label.raters, label.codes, judge, people.unit_records)
    test = alternative_annotator_test(told._replace(places=label.places if is_near else None), epsilon, beyond_chance)
    return schema.JudgedScale(
        n_judged=int(judged.sum()),
        n_left_out=n_units - int(judged.sum()),
        n_compared=len(compared),
        n_ties=int((judged & rated & np.isnan(truth)).sum()),
        n_without_votes=int((judged & ~rated).sum()),
        agreement=agreement,
        confusion=confused,
        annotators=_with_each(people, answers, name, resamples, seed),
        scoring="neg_rmse" if is_near else "accuracy",
        alt_test=test,
    )


def _of_two(
    label: ratings_of.ScaledLabel, units: ratings_of.IntArray, truth: ratings_of.FloatArray, judge: ratings_of.IntArray
) -> ratings_of.ScaledLabel:
    """People's consensus and the judge as the ratings of two annotators; means have values of their own."""
    both = np.stack([truth, label.places[judge]], axis=1).ravel()
    codes, raters = both.astype(np.int64), np.tile([0, 1], len(units))
    if label.scale == "interval":
        places, codes = np.unique(both, return_inverse=True)
        label = label._replace(values=tuple(f"{place:.15g}" for place in places), places=places)
    return label._replace(units=np.repeat(units, 2), raters=raters, codes=codes)


def _with_each(
    people: ratings_of.Ratings, answers: ScaledAnswers, name: str, resamples: int, seed: int
) -> tuple[schema.ScaledPair, ...]:
    (label, judge), judged = answers, np.flatnonzero(answers.judge >= 0)
    units = np.concatenate([label.units, judged])
    raters = np.concatenate([label.raters, np.full(len(judged), len(people.annotators))])
    order = np.lexsort((raters, units))
    codes = np.concatenate([label.codes, judge[judged]])[order]
    whole = label._replace(units=units[order], raters=raters[order], codes=codes)
    return pairs_with_last(people._replace(annotators=(*people.annotators, name)), whole, resamples, seed)


_LEAST_DIFFERING = 6  # Records on which the two differ: fewer could not show a difference, all of them one way


def compare_judges(
    tables: Sequence[ratings_of.Ratings], judges: Mapping[str, Mapping[TaskName, JudgedUnits]]
) -> tuple[schema.JudgeDifference, ...]:
    found: list[schema.JudgeDifference] = []
    by_task = {ratings.task: ratings for ratings in tables}
    for ratings in (by_task[task] for task in TASKS if task in by_task):
        labels = {label.name: label for label in ratings_of.all_labels(ratings)}
        found += _compare_all(
            ratings,
            {
                name: {
                    each.label: ScaledAnswers(labels[each.label], each.values.astype(np.int64))
                    for each in _judged_columns(ratings, judges[name][ratings.task])
                }
                for name in sorted(judges)
                if ratings.task in judges[name]
            },
        )
    return _corrected(found)


def compare_rating_judges(people: ratings_of.Ratings, judges: ratings_of.Ratings) -> tuple[schema.JudgeDifference, ...]:
    return _corrected(_compare_all(people, _answers_of_judges(people, judges)))


def _compare_all(
    people: ratings_of.Ratings, answers: Mapping[str, Mapping[str, ScaledAnswers]]
) -> list[schema.JudgeDifference]:
    """On an ordinal or interval scale one is right where it is as near to the consensus as the other, or nearer."""
    found: list[schema.JudgeDifference] = []
    for a, b in itertools.combinations(answers, 2):
        for label in (each for each in answers[a] if each in answers[b]):
            first, second = answers[a][label], answers[b][label]
            truth = first.truth
            shared = (first.judge >= 0) & (second.judge >= 0) & ~np.isnan(truth)
            places = [each.label.places[each.judge][shared] for each in (first, second)]
            far = [np.round(np.abs(each - truth[shared]), 12) for each in places]
            if first.label.scale in ("ordinal", "interval"):
                right = [far[0] <= far[1], far[1] <= far[0]]
            else:
                right = [each == 0 for each in far]
            found += _compare(people, label, (a, b), shared, right)
    return found


def _corrected(found: Sequence[schema.JudgeDifference]) -> tuple[schema.JudgeDifference, ...]:
    corrected = holm([each.p for each in found])
    return tuple(
        each.model_copy(update={"p_holm": rounded(p_holm), "differs": p_holm < LEVEL})
        for each, p_holm in zip(found, corrected, strict=True)
    )


def _compare(
    ratings: ratings_of.Ratings,
    label: str,
    models: tuple[str, str],
    shared: ratings_of.BoolArray,
    right: Sequence[ratings_of.BoolArray],
) -> list[schema.JudgeDifference]:
    if not shared.any():
        return []
    _, places = np.unique(ratings.unit_records[shared], return_inverse=True)
    ahead = right[0].astype(np.int64) - right[1]
    by_record = np.bincount(places, ahead).astype(np.int64)
    n_units, difference = len(ahead), float(ahead.mean())
    ends = _ends(ahead, places, difference)
    return [
        schema.JudgeDifference(
            task=ratings.measured_as,
            label=label,
            model_a=models[0],
            model_b=models[1],
            n_units=n_units,
            n_records=len(by_record),
            n_differing=int(np.count_nonzero(by_record)),
            agreement_a=float(right[0].mean()),
            agreement_b=float(right[1].mean()),
            difference=difference,
            interval=ends,
            p=rounded(exchange_p([paired(by_record)], n_draws(1), 0)[0]),
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
