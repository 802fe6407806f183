"""Labels on a nominal, ordinal or interval scale: their table of statistics, and what they ask of the joint bootstrap.

As for Booleans every figure is a function of sums over units, and a resample is a weight for each record. One more
statistic needs a field of `ScaledLabelAgreement` and its entry here.

Source: exports/contracts/agreement.md#scales: Krippendorff 2011; Gwet 2014 for weights, AC2 and Conger's κ of missing
ratings; Cohen 1968 for weighted κ.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, get_args

import numpy as np

from exports.statistics.ratings import FloatArray, IntArray, ScaledLabel, Weights
from exports.statistics.table import Over

MOST_VALUES = 100  # Of an interval scale with more, figures that count values are not given
NOTHING = 1e-13  # What is left of rounding where all ratings are the same, as a share


class _Form(NamedTuple):
    """How much two ratings agree: 1 where they are the same, and what else it needs to be known for."""

    matrix: FloatArray | None  # Features × features; None where two values agree only if they are the same

    def of(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """The agreement of two distributions over features (… × features), or of sums of as many ratings."""
        if self.matrix is None:
            found: FloatArray = np.einsum("...k,...k->...", first, second)
        else:
            found = np.einsum("...k,kl,...l->...", first, self.matrix, second)
        return found

    def total(self, n_values: int) -> float:
        """The sum over all pairs of so many values."""
        return float(n_values if self.matrix is None else self.matrix.sum())


_MOMENTS = _Form(np.array([[1.0, 0, -1], [0, 2, 0], [-1, 0, 0]]))  # 1 − (x − y)² of the features 1, x and x²


def weight_matrix(weights: Weights, places: FloatArray) -> FloatArray:
    """What part of an agreement two values are (Gwet 2014); `places` rise or, unweighted, are in any order."""
    gaps: FloatArray = np.abs(places[:, np.newaxis] - places)
    if weights == "identity":
        return np.eye(len(places))
    if weights == "ordinal":
        steps = np.abs(np.subtract.outer(np.arange(len(places)), np.arange(len(places)))) + 1
        gaps = steps * (steps - 1) / 2
    elif weights == "quadratic":
        gaps = gaps**2
    found: FloatArray = 1 - gaps / (float(gaps.max()) or 1.0)
    return found


class Measure:
    """How the values of one label are compared: by a matrix of their weights or, of very many numbers, by moments."""

    def __init__(self, label: ScaledLabel) -> None:
        self.label, self.n_values = label, len(label.values)
        self.counts_values = label.scale != "interval" or self.n_values <= MOST_VALUES
        low, high = (float(f(label.places)) if self.n_values else 0.0 for f in (np.min, np.max))
        self.x = (label.places - (low + high) / 2) / ((high - low) or 1)  # From −.5 to .5
        self.same, self.alpha = _Form(None), _Form(None)
        self.weighted: _Form | None = _MOMENTS if label.weights == "quadratic" else None
        if not self.counts_values:
            self.alpha = _MOMENTS
            return
        if label.scale == "interval":
            self.alpha = _Form(weight_matrix("quadratic", label.places))
        is_plain = label.weights == "identity"
        self.weighted = _Form(None if is_plain else weight_matrix(label.weights, label.places))

    @property
    def n_features(self) -> int:
        return self.n_values if self.counts_values else 3

    def features(self, codes: IntArray) -> tuple[IntArray, FloatArray]:
        """The features of ratings that are not 0: places and values, ratings × so many."""
        if self.counts_values:
            return codes[:, np.newaxis], np.ones((len(codes), 1))
        x = self.x[codes]
        return np.tile(np.arange(3), (len(codes), 1)), np.stack([np.ones(len(x)), x, x**2], axis=1)

    def agreement(self, form: _Form, first: IntArray, second: IntArray) -> FloatArray:
        """How much two ratings agree, by the numbers of their values."""
        if form.matrix is None:
            same: FloatArray = (first == second).astype(np.float64)
            return same
        if form is _MOMENTS:
            return 1 - (self.x[first] - self.x[second]) ** 2
        return form.matrix[first, second]


class Sums(NamedTuple):
    """Totals that the statistics of one label are functions of (…, or … × as many)."""

    rated: FloatArray  # Units with a rating
    pairable: FloatArray  # Units with two ratings or more; all that follow but the last but one are of these
    ratings: FloatArray
    same: FloatArray  # Share of a unit's pairs of ratings that are the same
    weighted: FloatArray  # The same with weights
    unanimous: FloatArray  # Units whose ratings are all the same
    disagreement: FloatArray  # Ordered pairs of ratings by their distance, divided by the unit's ratings less one
    shares: FloatArray  # … × features: mean of the ratings of each rated unit
    features: FloatArray  # … × features of all ratings
    crossed: FloatArray  # … × pairs of values, on an ordinal scale: ordered pairs as in `disagreement`
    by_rater: FloatArray  # … × annotators × (ratings, their features), of all rated units


_Compute = Callable[[Sums, Measure, FloatArray, _Form], FloatArray]


class ScaledStatistic(NamedTuple):
    """What is known of a statistic of a label on a scale beside its name and meaning, which are the field's."""

    title: str
    formula: str
    over: Over
    compute: _Compute | None  # From totals and agreement, plain or weighted; None where it is of pairs of annotators
    is_weighted: bool = False
    counts_values: bool = False  # Whether it has to know all values of the scale
    follows_alpha: bool = False  # Whether its interval is refused where α's is


def beyond_chance(agreed: FloatArray, by_chance: FloatArray | float) -> FloatArray:
    """Agreement beyond chance as a share of what is possible beyond chance; NaN where nothing is possible."""
    possible = 1 - np.asarray(by_chance)
    found: FloatArray = (agreed - by_chance) / np.where(possible <= NOTHING, np.nan, possible)
    return found


def _alpha(total: Sums, measure: Measure, agreed: FloatArray, form: _Form) -> FloatArray:
    n, disagreement = total.ratings, total.disagreement
    if measure.label.scale == "ordinal":
        disagreement, possible = ordinal_disagreement(total)
    else:
        possible = n**2 - measure.alpha.of(total.features, total.features)
    found: FloatArray = 1 - (n - 1) * disagreement / np.where(possible <= NOTHING * n**2, np.nan, possible)
    return found


def ordinal_disagreement(total: Sums) -> tuple[FloatArray, FloatArray]:
    """Observed and possible disagreement: two values are as far apart as their mean ranks among all ratings."""
    n = total.ratings
    ranks = (np.cumsum(total.features, axis=-1) - total.features / 2) / n[..., np.newaxis]
    low, high = np.triu_indices(total.features.shape[-1], 1)
    observed = (total.crossed * (ranks[..., low] - ranks[..., high]) ** 2).sum(axis=-1)
    squares, means = ((total.features * ranks**power).sum(axis=-1) for power in (2, 1))
    return observed, 2 * (n * squares - means**2)


def _fleiss(total: Sums, measure: Measure, agreed: FloatArray, form: _Form) -> FloatArray:
    shares = total.shares / total.rated[..., np.newaxis]
    return beyond_chance(_of_several(total, agreed), form.of(shares, shares))


def _of_several(total: Sums, agreed: FloatArray) -> FloatArray:
    """NaN of a single unit, by which chance cannot be told."""
    return np.where(np.equal(total.pairable, 1), np.nan, agreed)


def _conger(total: Sums, measure: Measure, agreed: FloatArray, form: _Form) -> FloatArray:
    n = total.by_rater[..., :1]
    shares = total.by_rater[..., 1:] / np.where(n > 0, n, 1)
    people, together = (n > 0).sum(axis=(-1, -2)), shares.sum(axis=-2)
    pairs = form.of(together, together) - form.of(shares, shares).sum(axis=-1)
    return beyond_chance(agreed, pairs / (people * (people - 1)))


def _gwet(total: Sums, measure: Measure, agreed: FloatArray, form: _Form) -> FloatArray:
    k, shares = measure.n_values, total.shares / total.rated[..., np.newaxis]
    mixed = 1 - (shares**2).sum(axis=-1)
    agreed = _of_several(total, agreed)
    return beyond_chance(agreed, form.total(k) / max(k * (k - 1), 1) * mixed) if k > 1 else agreed * np.nan


def _brennan(total: Sums, measure: Measure, agreed: FloatArray, form: _Form) -> FloatArray:
    return beyond_chance(agreed, form.total(measure.n_values) / max(measure.n_values, 1) ** 2)


def _agreed(total: Sums, measure: Measure, agreed: FloatArray, form: _Form) -> FloatArray:
    return agreed


def _unanimous(total: Sums, measure: Measure, agreed: FloatArray, form: _Form) -> FloatArray:
    return total.unanimous / total.pairable


def _weighted(plain: ScaledStatistic, formula: str, title: str = "", counts_values: bool = False) -> ScaledStatistic:
    named = title or f"weighted {plain.title}"
    return plain._replace(title=named, formula=formula, is_weighted=True, counts_values=counts_values)


_PAIRABLE, _RATED, _PAIRS = get_args(Over)
_PERCENT = ScaledStatistic("percent agreement p_a", "Σ_P a / N'", _PAIRABLE, _agreed)
_FLEISS = ScaledStatistic("Fleiss' κ", "p_e = Σ_k π_k²", _RATED, _fleiss, False, True, True)
_CONGER = ScaledStatistic("Conger's κ", "p_e = mean over g ≠ h of Σ_k p_gk·p_hk", _RATED, _conger, False, True, True)
_GWET = ScaledStatistic("Gwet's AC1", "p_e = Σ_k π_k(1−π_k)/(K−1)", _RATED, _gwet, False, True)
_BRENNAN = ScaledStatistic("Brennan–Prediger", "p_e = 1/K", _PAIRABLE, _brennan, False, True)
_LIGHT = ScaledStatistic("mean pairwise κ (Light)", "mean of Cohen's κ over pairs", _PAIRS, None, False, True, True)
_ALPHA_FORMULA = "1 − (n−1)·Σ_P Σ_kl r_k·r_l·δ_kl/(m−1) / Σ_kl n_k·n_l·δ_kl"
SCALED_STATISTICS: dict[str, ScaledStatistic] = {
    "percent_agreement": _PERCENT,
    "krippendorff_alpha": ScaledStatistic("Krippendorff's α", _ALPHA_FORMULA, _PAIRABLE, _alpha),
    "fleiss_kappa": _FLEISS,
    "conger_kappa": _CONGER,
    "gwet_ac1": _GWET,
    "brennan_prediger": _BRENNAN,
    "full_agreement_share": ScaledStatistic("full-agreement share", "share of P with one value", _PAIRABLE, _unanimous),
    "weighted_agreement": _weighted(_PERCENT, "Σ_P a / N'", "weighted agreement"),
    "weighted_fleiss_kappa": _weighted(_FLEISS, "p_e = Σ_kl w_kl·π_k·π_l"),
    "weighted_conger_kappa": _weighted(_CONGER, "p_e = mean over g ≠ h of Σ_kl w_kl·p_gk·p_hl"),
    "gwet_ac2": _weighted(_GWET, "p_e = Σ_kl w_kl · Σ_k π_k(1−π_k)/(K(K−1))", "Gwet's AC2", True),
    "weighted_brennan_prediger": _weighted(_BRENNAN, "p_e = Σ_kl w_kl/K²", counts_values=True),
    "mean_pairwise_kappa": _LIGHT,
    "mean_pairwise_weighted_kappa": _weighted(_LIGHT, "mean of weighted κ over pairs", "mean pairwise weighted κ"),
}
"""One with a p_e is (p_a − p_e)/(1 − p_e), where p_a is that of its weights."""
COMPUTED = tuple(name for name, entry in SCALED_STATISTICS.items() if entry.compute)
ALPHA = COMPUTED.index("krippendorff_alpha")
SCALARS = 7


def sums_of(totals: FloatArray, measure: Measure, n_raters: int) -> Sums:
    width = measure.n_features
    crossed = math.comb(measure.n_values, 2) if measure.label.scale == "ordinal" else 0
    ends = SCALARS + np.cumsum([width, width, crossed, n_raters * (1 + width)])
    parts = [totals[..., start:end] for start, end in zip((SCALARS, *ends), ends, strict=False)]
    parts[3] = parts[3].reshape(*totals.shape[:-1], n_raters, 1 + width)
    return Sums(*np.moveaxis(totals[..., :SCALARS], -1, 0), *parts)


def figures(totals: FloatArray, measure: Measure, n_raters: int, names: tuple[str, ...] = COMPUTED) -> FloatArray:
    """The statistics of these names (… × as many) from totals of `_unit_entries`; NaN where one is undefined."""
    total = sums_of(totals, measure, n_raters)
    found = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for entry in (SCALED_STATISTICS[name] for name in names):
            form = measure.weighted if entry.is_weighted else measure.same
            if entry.compute is None or form is None or (entry.counts_values and not measure.counts_values):
                found.append(np.full_like(total.rated, np.nan))
                continue
            agreed = (total.weighted if entry.is_weighted else total.same) / total.pairable
            found.append(entry.compute(total, measure, agreed, form))
    return np.stack(found, axis=-1)
