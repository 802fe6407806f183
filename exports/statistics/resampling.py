"""The joint bootstrap over whole records: one set of weights for all labels, coefficients and pairs.

Every figure is a function of sums over units, and the sums of a record are those of its units. So a resample is a
weight for each record, how often it was drawn, and all its totals are one row of `weights @ sums`.

Source: exports/contracts/agreement.md#intervals.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np

from exports.statistics.agreement_schema import FEW_RECORDS, UNDEFINED_SHARE, Interval, RefusedReason
from exports.statistics.distributions import NORMAL_QUANTILE, largest_share, most_alpha, rounded, student_quantile
from exports.statistics.ratings import MISSING, YES, BoolArray, FloatArray, IntArray, Ratings
from exports.statistics.table import unit_sums

_TIE = 1e-9  # Replicates this near to the estimate are equal to it, but for rounding
_NORMAL = NormalDist()


_BLOCK = 2**21  # Numbers that a block of weights, of totals or of left-out sums may hold: 16 MiB
_LARGEST_BLOCK = 512  # Rows of such a block at most
_DRAWS_AT_ONCE = 2**16  # Records drawn in one call: few records cost one call, and counts stay in the cache
_MANTISSA = 52  # Bits of a number that may be added up without a carry into one more


class SparseSums(NamedTuple):
    """Sums of records of which most are 0: those that are not, by record."""

    records: IntArray  # Of each entry, rising; one may have several entries in a column
    columns: IntArray
    values: FloatArray
    shape: tuple[int, int]  # Records and columns


@dataclass(frozen=True, eq=False)
class Estimator:
    """Figures that depend on sums over records alone. `bootstrap` gives its replicates under the estimator itself."""

    sums: FloatArray | SparseSums  # Records × k; estimators with the same array share its totals
    formula: Callable[[FloatArray], FloatArray]  # From totals (… × k) to figures (… × m), NaN where one is undefined
    frame: BoolArray  # Which records may be drawn, one value a record; none leaves every figure NaN


class Replicates(NamedTuple):
    estimates: FloatArray  # The figures of the records as they are: m
    resampled: FloatArray  # The figures of each resample: resamples × m, NaN where one is undefined
    acceleration: FloatArray  # m, for BCa; NaN where leaving one record out leaves the figure undefined
    jackknife_se: FloatArray  # m; NaN where leaving one record out leaves the figure undefined
    n_records: int


Resampled = Mapping[Estimator, Replicates]


class Moments(NamedTuple):
    """Sums of powers of the leave-one-out values about their mean, for m figures."""

    n: float  # How many values
    squares: FloatArray  # Σu², u = mean − value
    cubes: FloatArray  # Σu³

    @property
    def acceleration(self) -> FloatArray:
        """Σu³ / (6·(Σu²)^1.5); 0 where nothing varies (Efron 1987)."""
        varies = np.where(self.squares == 0, 1.0, self.squares)
        acceleration: FloatArray = np.where(self.squares == 0, 0.0, self.cubes / (6 * varies * np.sqrt(varies)))
        return acceleration

    @property
    def standard_error(self) -> FloatArray:
        return np.sqrt((self.n - 1) / self.n * self.squares)


def bootstrap(estimators: Iterable[Estimator], resamples: int, seed: int) -> dict[Estimator, Replicates]:
    """The replicates of each estimator, when as many records as its frame has are drawn from it.

    Draws depend on the size of the frame, `resamples` and `seed` alone: figures with the same three are jointly
    distributed. Sums are brought to a grid on which additions are exact, so that neither their order nor the number of
    threads changes a digit.
    """
    by_frame: dict[bytes, list[Estimator]] = {}
    for estimator in dict.fromkeys(estimators):
        by_frame.setdefault(estimator.frame.tobytes(), []).append(estimator)
    found: dict[Estimator, Replicates] = {}
    for group in by_frame.values():
        found |= _bootstrap_frame(group, group[0].frame, resamples, seed)
    return found


def _bootstrap_frame(
    estimators: Sequence[Estimator], frame: BoolArray, resamples: int, seed: int
) -> dict[Estimator, Replicates]:
    n = int(np.count_nonzero(frame))
    by_sums: dict[int, list[Estimator]] = {}
    for estimator in estimators:
        by_sums.setdefault(id(estimator.sums), []).append(estimator)
    groups = [(_framed(group[0].sums, frame), group) for group in by_sums.values()]
    estimates = {each: each.formula(_column_totals(sums)) for sums, group in groups for each in group}
    resampled = {each: np.empty((resamples, len(figures))) for each, figures in estimates.items()}
    widest = max(sums.shape[1] for sums, _ in groups)
    for start, weights in _weight_blocks(n, widest, resamples, seed):
        for sums, group in groups:
            totals = _weighted_totals(weights, sums)
            for estimator in group:
                resampled[estimator][start : start + len(weights)] = estimator.formula(totals)
    found: dict[Estimator, Replicates] = {}
    for sums, group in groups:
        for each, moments in zip(group, left_out(sums, [(one.formula, estimates[one]) for one in group]), strict=True):
            found[each] = Replicates(estimates[each], resampled[each], moments.acceleration, moments.standard_error, n)
    return found


def _weight_blocks(n: int, widest: int, resamples: int, seed: int) -> Iterator[tuple[int, FloatArray]]:
    """How often each of n records is drawn, a row a resample; the draws do not depend on `widest`."""
    generator = np.random.default_rng(seed)
    rows = min(_LARGEST_BLOCK, max(1, _BLOCK // max(n, widest, 1)))
    for start in range(0, resamples, rows):
        weights = np.zeros((min(rows, resamples - start), n))
        at_once = max(1, _DRAWS_AT_ONCE // max(n, 1))
        for first in range(0, len(weights) if n else 0, at_once):
            some = weights[first : first + at_once]
            drawn = generator.integers(0, n, some.shape) + n * np.arange(len(some))[:, np.newaxis]
            some[:] = np.bincount(drawn.ravel(), minlength=some.size).reshape(some.shape)
        yield start, weights


def _weighted_totals(weights: FloatArray, sums: FloatArray | SparseSums) -> FloatArray:
    if not isinstance(sums, SparseSums):
        return weights @ sums
    rows = [np.bincount(sums.columns, row[sums.records] * sums.values, sums.shape[1]) for row in weights]
    return np.stack(rows).astype(np.float64, copy=False)


def _framed(sums: FloatArray | SparseSums, frame: BoolArray) -> FloatArray | SparseSums:
    """The sums of the frame's records, exact in any order of addition."""
    n = int(np.count_nonzero(frame))
    if not isinstance(sums, SparseSums):
        return exact_addends(sums[frame], n)
    kept = frame[sums.records]
    places = np.cumsum(frame) - 1
    entries = np.bincount(sums.records[kept]) if kept.any() else np.zeros(1)
    values = exact_addends(sums.values[kept, np.newaxis], n * int(entries.max()))[:, 0]
    return SparseSums(places[sums.records[kept]], sums.columns[kept], values, (n, sums.shape[1]))


def exact_addends(values: FloatArray, count: int) -> FloatArray:
    """Values (rows × k) rounded so that sums of up to `count` rows are exact; whole numbers stay as they are."""
    if not values.size:
        return values
    largest = np.abs(values).max(axis=0)
    _, exponents = np.frexp(largest * max(count, 1))
    places = np.maximum(_MANTISSA - exponents, 0)
    found: FloatArray = np.ldexp(np.rint(np.ldexp(values, places)), -places)
    return found


def _column_totals(sums: FloatArray | SparseSums) -> FloatArray:
    if not isinstance(sums, SparseSums):
        return np.asarray(sums.sum(axis=0), dtype=np.float64)
    return np.bincount(sums.columns, sums.values, sums.shape[1]).astype(np.float64)


def left_out(
    sums: FloatArray | SparseSums, group: Sequence[tuple[Callable[[FloatArray], FloatArray], FloatArray]]
) -> list[Moments]:
    n, columns = sums.shape
    total = _column_totals(sums)
    kinds, counts = (sums, None) if isinstance(sums, SparseSums) else distinct_rows(sums)
    powers = [np.zeros((3, len(estimates))) for _, estimates in group]
    rows = max(1, _BLOCK // max(1, columns + 8 * max(len(estimates) for _, estimates in group)))
    for start in range(0, kinds.shape[0], rows):
        rest = total - _dense_rows(kinds, start, min(start + rows, kinds.shape[0]))
        weights = None if counts is None else counts[start : start + rows]
        for (formula, estimates), power in zip(group, powers, strict=True):
            power += shifted_powers(formula(rest) - estimates, weights)
    return [central_moments(power, n) for power in powers]


def distinct_rows(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Told apart by one random combination of their columns, then compared: several times faster than sorting rows."""
    keys = np.einsum("ij,j->i", rows, np.random.default_rng(0).random(rows.shape[1]))
    _, firsts, places, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    found = rows[firsts]
    if len(found) == len(rows) or not np.array_equal(found[places], rows):
        return rows, np.ones(len(rows))
    return found, counts.astype(np.float64)


def blocks(sums: SparseSums) -> Iterator[FloatArray]:
    """All rows in their order, so many at a time as fit into memory."""
    rows = max(1, _BLOCK // max(1, sums.shape[1]))
    return (_dense_rows(sums, start, min(start + rows, sums.shape[0])) for start in range(0, sums.shape[0], rows))


def _dense_rows(sums: FloatArray | SparseSums, start: int, end: int) -> FloatArray:
    if not isinstance(sums, SparseSums):
        return sums[start:end]
    first, last = np.searchsorted(sums.records, [start, end])
    columns = sums.shape[1]
    places = (sums.records[first:last] - start) * columns + sums.columns[first:last]
    cells = np.bincount(places, sums.values[first:last], (end - start) * columns).astype(np.float64)
    return cells.reshape(-1, columns)


def shifted_powers(shifts: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Sums of the shifts (rows × m), of their squares and of their cubes: 3 × m."""
    squares = shifts * shifts
    counts = 1.0 if weights is None else weights[:, np.newaxis]
    return np.stack([(counts * power).sum(axis=0) for power in (shifts, squares, squares * shifts)])


def central_moments(power: FloatArray, count: float) -> Moments:
    """Moments about the mean from those about another value, which is near it."""
    first, second, third = power
    mean = first / max(count, 1)
    squares = np.maximum(second - count * mean**2, 0)
    cubes = -(third - 3 * mean * second + 2 * count * mean**3)
    # What is left of rounding is no variation.
    return Moments(max(count, 1), np.where(squares > 1e-24 * count, squares, squares * 0), cubes)


def interval(replicates: Replicates, column: int) -> Interval | RefusedReason:
    """One interval, or why it is refused; `constant`: all resamples give one value, which tells nothing."""
    estimate = float(replicates.estimates[column])
    resampled = replicates.resampled[:, column]
    defined = resampled[~np.isnan(resampled)]
    if math.isnan(estimate):
        return "undefined"
    if replicates.n_records < 2:
        return "single_record"
    if undefined_share(resampled) > UNDEFINED_SHARE or not len(defined):
        return "undefined_resamples"
    if np.ptp(defined) <= _TIE:
        return "constant"
    acceleration = float(replicates.acceleration[column])
    ends = bca_ends(defined, estimate, acceleration) if replicates.n_records >= FEW_RECORDS else None
    method: Literal["bca", "expanded_percentile"] = "bca" if ends else "expanded_percentile"
    low, high = ends or expanded_percentile_ends(defined, replicates.n_records)
    return Interval(low=rounded(low), high=rounded(high), method=method)


def or_none(found: Interval | RefusedReason) -> Interval | None:
    return found if isinstance(found, Interval) else None


def undefined_share(resampled: FloatArray) -> float:
    """Share of the replicates of one figure that are undefined, exact to the last digit: 5 of 100 are 0.05."""
    return int(np.count_nonzero(np.isnan(resampled))) / len(resampled)


def share_below(defined: FloatArray, threshold: float) -> float:
    """Share of defined replicates below the threshold; those equal to it but for rounding are not."""
    return float(np.mean(defined < threshold - _TIE))


def bias_correction(resampled: FloatArray, estimate: float) -> float:
    """z0 (Efron 1987), ties counted half; infinite where all replicates are on one side."""
    below = np.count_nonzero(resampled < estimate - _TIE)
    ties = np.count_nonzero(np.abs(resampled - estimate) <= _TIE)
    share = (below + ties / 2) / len(resampled)
    if share in (0, 1):
        return math.inf if share else -math.inf
    return _NORMAL.inv_cdf(share)


def bca_levels(z0: float, acceleration: float) -> tuple[float, float] | None:
    if not (math.isfinite(z0) and math.isfinite(acceleration)):
        return None
    shifted = (z0 - NORMAL_QUANTILE, z0 + NORMAL_QUANTILE)
    if any(1 - acceleration * each <= 0 for each in shifted):
        return None
    low, high = (_NORMAL.cdf(z0 + each / (1 - acceleration * each)) for each in shifted)
    return low, high


def bca_ends(resampled: FloatArray, estimate: float, acceleration: float) -> tuple[float, float] | None:
    levels = bca_levels(bias_correction(resampled, estimate), acceleration)
    return None if levels is None else _quantiles(resampled, levels)


def expanded_percentile_ends(resampled: FloatArray, n: int) -> tuple[float, float]:
    """Percentiles at Φ(∓√(n/(n − 1))·t), since resamples of n records vary too little (Hesterberg 2015)."""
    level = _NORMAL.cdf(-math.sqrt(n / (n - 1)) * student_quantile(n - 1))
    return _quantiles(resampled, (level, 1 - level))


def _quantiles(resampled: FloatArray, levels: tuple[float, float]) -> tuple[float, float]:
    low, high = np.quantile(resampled, levels)
    return float(low), float(high)


_FEWEST_CARRIED, _FEWEST_CARRIED_OF_FEW = 2, 4  # Records with a unanimous unit of each value, the second of few records
_FEW_RECORDS = 50  # Below so many records a rare value that is met twice was met by luck
_FEW_SPLIT = 5  # With fewer simulated intervals held alpha in .98 of the studies or more
_MANY_SPLIT, _MANY_CARRIED = 20, 10  # With fewer intervals of an absence held its effect in .25 to .92 of the studies
_ONE_SIDED = 0.05


FIRM_ALPHA = 0.8  # Krippendorff's: nothing firm follows from less


class Support(NamedTuple):
    carried: int  # Records with a unit on which all agree on yes, or on no: whichever are fewer
    split: int  # Records with a disagreement
    records: int  # Records with a pairable unit
    least: float  # The least alpha that would leave no disagreement on such records in one study of twenty
    least_of_few: float  # The least that would leave so few with one in one of forty, each the worst; -1: not few
    most: float  # The upper bound, one-sided


def alpha_support(zeros: IntArray, ones: IntArray, unit_records: IntArray, n_records: int) -> Support:
    """What alpha rests on, from each unit's ratings that say no and yes, and its record."""
    ratings = zeros + ones
    pairable = ratings >= 2
    carried = [records_with(pairable & (each == 0), unit_records) for each in (zeros, ones)]
    worst = np.where(pairable, halves(ratings), 0.0)
    n0, n1 = (float(each[pairable].sum()) for each in (zeros, ones))
    total = n0 + n1
    possible = 2 * n0 * n1 / (total * (total - 1)) if n0 * n1 else np.nan
    by_record = np.bincount(unit_records, worst, n_records).astype(np.float64)
    split = records_with(pairable & (zeros * ones > 0), unit_records)
    most = most_alpha(
        np.stack([zeros[pairable], ones[pairable]]),
        np.array([n1, n0]) / max(total, 1),
        2 * zeros[pairable] * ones[pairable] / np.maximum(ratings[pairable] - 1, 1),
        unit_records[pairable],
    )
    return support_of(min(carried), split, records_with(pairable, unit_records), by_record, total, possible, most)


def halves(ratings: IntArray) -> FloatArray:
    """The most that so many ratings can disagree: half of them at either end."""
    found: FloatArray = 2 * (ratings // 2) * (ratings - ratings // 2) / np.maximum(ratings - 1, 1)
    return found


def support_of(
    carried: int, split: int, records: int, worst: FloatArray, total: float, possible: float, most: float
) -> Support:
    """What alpha rests on: `worst` is how far each record can disagree, of so many ratings; `possible` by chance."""
    observed = _unseen_total(worst) / max(total, 1)
    of_few = -1.0
    if 0 < split < _FEW_SPLIT:
        hidden = largest_share(split, records) * records * float(worst.max())
        of_few = max(-1.0, 1 - hidden / max(total, 1) / possible)
    return Support(carried, split, records, max(-1.0, 1 - observed / possible), of_few, most)


def records_with(units: BoolArray, unit_records: IntArray) -> int:
    return len(np.unique(unit_records[units]))


def _unseen_total(worst: FloatArray) -> float:
    """The most disagreement that records are expected to hold, if there is none to see in one study of twenty.

    A record of which the worst is w disagrees with a probability π; Π(1 − π) is .05, and Σπw the largest possible:
    π = 1 − λ/w where w is above λ, else 0.
    """
    heights = np.sort(worst[worst > 0])[::-1]
    if not len(heights):
        return 0.0
    levels = (np.cumsum(np.log(heights)) + np.log(_ONE_SIDED)) / np.arange(1, len(heights) + 1)
    kept = int(np.flatnonzero(np.log(heights) > levels)[-1])
    return float((heights[: kept + 1] - np.exp(levels[kept])).sum())


def alpha_interval(replicates: Replicates, column: int, support: Support) -> Interval | RefusedReason:
    """Without any disagreement it is one-sided, from what such records could hide.

    With some, its lower end is never above that: who has seen one does not know more than who has seen none. Nor is it
    below what so few records with one allow: BCa of a handful swings, and more agreement would look like less.
    Where it would be refused, an upper end below .8 still tells what it is not.
    """
    defined = not np.isnan(replicates.estimates[column])
    found = _alpha_interval(replicates, column, support, defined)
    if isinstance(found, str) and defined and replicates.n_records > 1 and support.most < FIRM_ALPHA:
        return Interval(low=-1.0, high=rounded(support.most), method="one-sided")
    return found


def _alpha_interval(replicates: Replicates, column: int, support: Support, defined: bool) -> Interval | RefusedReason:
    found = interval(replicates, column)
    if defined and replicates.n_records > 1 and support.split == 0:
        found = Interval(low=rounded(support.least), high=1.0, method="one-sided")
    if not isinstance(found, Interval):
        return found
    if not _is_carried(support):
        return "too_few_rare_ratings"
    if found.method == "one-sided":
        return found
    update: dict[str, object] = {"conservative": support.split < _FEW_SPLIT}
    low = min(max(found.low, support.least_of_few), support.least)
    own = found.high if support.carried >= _FEWEST_CARRIED_OF_FEW else -1.0
    high = max(own, support.most) if support.carried < _MANY_CARRIED else own
    if (low, high) != (found.low, found.high):
        update |= {"low": rounded(low), "high": rounded(high), "method": "bounded"}
    return found.model_copy(update=update)


def refused_with_alpha(alpha: Interval | RefusedReason) -> RefusedReason | None:
    """Why there is no interval of what turns on the rarer value as alpha does; None where there may be one."""
    if isinstance(alpha, str):
        return alpha
    return "too_few_rare_ratings" if alpha.method == "one-sided" and alpha.high < 1 else None


def joint_interval(replicates: Replicates, column: int, *supports: Support) -> Interval | None:
    """The interval of a difference or mean of alphas; None where it is refused, or resamples show little of one."""
    shown = all(_is_carried(each) and each.split > 0 for each in supports)
    return or_none(interval(replicates, column)) if shown else None


def absence_interval(replicates: Replicates, column: int, support: Support) -> Interval | None:
    """The interval of alpha without somebody less alpha of all; None where it is refused, or would be too narrow."""
    enough = support.split >= _MANY_SPLIT and support.carried >= _MANY_CARRIED
    return or_none(interval(replicates, column)) if enough else None


def _is_carried(support: Support) -> bool:
    return support.carried >= (_FEWEST_CARRIED if support.records >= _FEW_RECORDS else _FEWEST_CARRIED_OF_FEW)


MOST_PATTERNS = 256  # With more patterns a label, totals of patterns cost more than they spare
_MOST_ANNOTATORS = 39  # 3 to this power is the last that 63 bits hold
DENSE = 2**23  # Numbers that an array of sums may hold; a larger one is kept sparse
_SPARSE_COST = 25  # An entry of a sparse array costs as much as so many numbers of a dense one, measured


class Entries(NamedTuple):
    patterns: IntArray  # Pattern of each number
    columns: IntArray
    values: FloatArray
    width: int  # k


class LabelPatterns(NamedTuple):
    """The ratings of one label by pattern; where there are too many patterns, each unit is one of its own."""

    label: str
    patterns: IntArray  # Pattern of each rating, in rising order; within one, ratings are sorted by annotator
    raters: IntArray  # Annotator of each rating
    yes: IntArray  # 1 where the rating says yes, 0 where it says no
    zeros: IntArray  # Ratings of each pattern that say no
    ones: IntArray  # Ratings of each pattern that say yes
    units: IntArray  # Units of each pattern
    unit_patterns: IntArray
    columns: slice  # Where the label's patterns stand among those of all labels

    @property
    def ratings(self) -> IntArray:
        return self.zeros + self.ones

    def total(self, entries: Entries) -> FloatArray:
        return np.bincount(entries.columns, entries.values * self.units[entries.patterns], entries.width).astype(
            np.float64, copy=False
        )


class TaskPatterns(NamedTuple):
    annotators: tuple[str, ...]  # Names of all annotators, sorted
    n_records: int
    unit_records: IntArray
    labels: tuple[LabelPatterns, ...]  # The labels in the order of the task
    counts: FloatArray | SparseSums | None  # Records × patterns of all labels: units; None where each unit is one

    def frame(self, label: LabelPatterns, at_least: int) -> BoolArray:
        """Records with a unit that has so many ratings or more."""
        units = (label.ratings >= at_least)[label.unit_patterns]
        return np.bincount(self.unit_records[units], minlength=self.n_records) > 0

    def estimator(
        self,
        parts: Sequence[tuple[LabelPatterns, Entries]],
        formula: Callable[[FloatArray], FloatArray],
        frame: BoolArray,
    ) -> Estimator:
        """The estimator whose formula takes the totals of the parts' columns, one part after the other."""
        if self.counts is None:
            return Estimator(self.record_sums([entries for _, entries in parts]), formula, frame)
        n_units = len(self.unit_records)
        sums = [(label.columns, exact_addends(dense(entries, len(label.units)), n_units)) for label, entries in parts]

        def from_counts(totals: FloatArray) -> FloatArray:
            return formula(np.concatenate([totals[..., columns] @ each for columns, each in sums], axis=-1))

        return Estimator(self.counts, from_counts, frame)

    def record_sums(self, parts: Sequence[Entries]) -> FloatArray | SparseSums:
        starts = np.cumsum([0, *(entries.width for entries in parts)])
        return gathered(
            np.concatenate([self.unit_records[entries.patterns] for entries in parts]),
            np.concatenate([entries.columns + start for entries, start in zip(parts, starts, strict=False)]),
            np.concatenate([entries.values for entries in parts]),
            (self.n_records, int(starts[-1])),
        )


def task_patterns(ratings: Ratings) -> TaskPatterns:
    n_units = len(ratings.unit_records)
    codes = [_pattern_codes(ratings, column) for column in range(ratings.values.shape[1])]
    few = all(found is not None and len(found[0]) <= MOST_PATTERNS for found in codes)
    labels: list[LabelPatterns] = []
    start = 0
    for column, (label, found) in enumerate(zip(ratings.labels, codes, strict=True)):
        if few and found is not None:
            firsts, unit_patterns = found
        else:
            firsts = unit_patterns = np.arange(n_units)
        labels.append(_label_patterns(ratings, column, label, firsts, unit_patterns, start))
        start += len(firsts)
    return TaskPatterns(
        annotators=ratings.annotators,
        n_records=len(ratings.records),
        unit_records=ratings.unit_records,
        labels=tuple(labels),
        counts=_pattern_counts(ratings, labels, start) if few else None,
    )


def _pattern_codes(ratings: Ratings, column: int) -> tuple[IntArray, IntArray] | None:
    """The first unit of each pattern and the pattern of each unit; None where annotators are too many to tell."""
    if len(ratings.annotators) > _MOST_ANNOTATORS:
        return None
    codes = np.zeros(len(ratings.unit_records), dtype=np.int64)
    digits = ratings.values[:, column].astype(np.int64) - MISSING
    np.add.at(codes, ratings.units, 3**ratings.response_annotators * digits)
    _, firsts, unit_patterns = np.unique(codes, return_index=True, return_inverse=True)
    return firsts, unit_patterns


def _label_patterns(
    ratings: Ratings, column: int, label: str, firsts: IntArray, unit_patterns: IntArray, start: int
) -> LabelPatterns:
    number = np.full(len(ratings.unit_records), -1)
    number[firsts] = np.arange(len(firsts))
    kept = (ratings.values[:, column] != MISSING) & (number[ratings.units] >= 0)
    patterns = number[ratings.units[kept]]
    order = np.argsort(patterns, kind="stable")
    patterns, raters = patterns[order], ratings.response_annotators[kept][order]
    yes = (ratings.values[kept, column][order] == YES).astype(np.int64)
    n_ratings = np.bincount(patterns, minlength=len(firsts))
    ones = np.bincount(patterns[yes == 1], minlength=len(firsts))
    return LabelPatterns(
        label=label,
        patterns=patterns,
        raters=raters,
        yes=yes,
        zeros=n_ratings - ones,
        ones=ones,
        units=np.bincount(unit_patterns, minlength=len(firsts)),
        unit_patterns=unit_patterns,
        columns=slice(start, start + len(firsts)),
    )


def _pattern_counts(ratings: Ratings, labels: Sequence[LabelPatterns], width: int) -> FloatArray | SparseSums:
    records = np.concatenate([ratings.unit_records] * len(labels))
    columns = np.concatenate([label.unit_patterns + label.columns.start for label in labels])
    return gathered(records, columns, np.ones(len(records)), (len(ratings.records), width))


def gathered(
    records: IntArray, columns: IntArray, values: FloatArray, shape: tuple[int, int]
) -> FloatArray | SparseSums:
    """The array of records × columns that the entries add up to, sparse where that is smaller or faster."""
    size = shape[0] * shape[1]
    if size <= min(DENSE, _SPARSE_COST * len(records)):
        return np.bincount(records * shape[1] + columns, values, size).astype(np.float64, copy=False).reshape(shape)
    order = np.argsort(records, kind="stable")
    return SparseSums(records[order], columns[order], values[order], shape)


def dense(entries: Entries, n_patterns: int) -> FloatArray:
    shape = (n_patterns, entries.width)
    cells = np.bincount(entries.patterns * entries.width + entries.columns, entries.values, shape[0] * shape[1])
    return cells.astype(np.float64, copy=False).reshape(shape)


def core_entries(label: LabelPatterns) -> Entries:
    """The sums of each pattern that coefficients are functions of, in the order of `Sums`."""
    sums = np.stack(unit_sums(label.zeros, label.ones), axis=1)
    patterns, columns = np.nonzero(sums)
    return Entries(patterns, columns, sums[patterns, columns], sums.shape[1])
