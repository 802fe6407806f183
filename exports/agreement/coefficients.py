"""Agreement coefficients for yes/no labels, from sums over units (exports/contracts/agreement.md)."""

import math
from typing import NamedTuple

import numpy as np

from exports.agreement.ratings import NO, YES, FloatArray, IntArray, LabelArray, Ratings

COEFFICIENTS = (
    "prevalence",
    "percent_agreement",
    "krippendorff_alpha",
    "fleiss_kappa",
    "gwet_ac1",
    "brennan_prediger",
    "positive_agreement",
    "negative_agreement",
    "full_agreement_share",
)
"""The figures that `coefficient_values` gives, in its order."""
ALPHA = COEFFICIENTS.index("krippendorff_alpha")


class Sums(NamedTuple):
    """The sums that every coefficient is a function of: one value a unit, or their totals."""

    rated: FloatArray
    """1 where there is a rating."""
    share: FloatArray
    """Share of yes among the unit's ratings."""
    pairable: FloatArray
    """1 where there are two ratings or more; all that follow are 0 elsewhere."""
    zeros: FloatArray
    """Ratings that say no."""
    ones: FloatArray
    """Ratings that say yes."""
    disagreement: FloatArray
    """Ordered pairs that disagree, divided by the ratings less one."""
    agreement: FloatArray
    """Share of pairs that agree."""
    unanimous: FloatArray
    """1 where all ratings are equal."""
    ones_agreeing: FloatArray
    """Ordered pairs that both say yes."""
    ones_paired: FloatArray
    """Ordered pairs whose first says yes."""
    zeros_agreeing: FloatArray
    """Ordered pairs that both say no."""
    zeros_paired: FloatArray
    """Ordered pairs whose first says no."""
    all_ratings: FloatArray
    """Ratings, those that stand alone on their unit included."""
    all_ones: FloatArray
    """Ratings that say yes, those that stand alone on their unit included."""


def unit_sums(zeros: IntArray, ones: IntArray) -> Sums:
    """The sums of each unit, from its ratings that say no and its ratings that say yes.

    Source: exports/contracts/agreement.md#data.
    """
    n0, n1 = zeros.astype(np.float64), ones.astype(np.float64)
    ratings = n0 + n1
    pairable = (ratings >= 2).astype(np.float64)
    others = np.maximum(ratings - 1, 1)
    agreeing = n0 * (n0 - 1) + n1 * (n1 - 1)
    return Sums(
        rated=(ratings >= 1).astype(np.float64),
        share=n1 / np.maximum(ratings, 1),
        pairable=pairable,
        zeros=n0 * pairable,
        ones=n1 * pairable,
        disagreement=2 * n0 * n1 / others * pairable,
        agreement=agreeing / (np.maximum(ratings, 1) * others) * pairable,
        unanimous=(n0 * n1 == 0) * pairable,
        ones_agreeing=n1 * (n1 - 1) * pairable,
        ones_paired=n1 * (ratings - 1) * pairable,
        zeros_agreeing=n0 * (n0 - 1) * pairable,
        zeros_paired=n0 * (ratings - 1) * pairable,
        all_ratings=ratings,
        all_ones=n1,
    )


def totals(zeros: IntArray, ones: IntArray, units: IntArray | None = None) -> Sums:
    """The sums over all units, each a single number; where `units` is given, each place stands for so many units.

    Units with the same counts are added up together, and without rounding in between: so neither the order of the
    units nor those that add nothing change the last digit.
    """
    width = int(ones.max(initial=0)) + 1
    patterns, places = np.unique(zeros * width + ones, return_inverse=True)
    weights = np.bincount(places, units, len(patterns))
    sums = unit_sums(patterns // width, patterns % width)
    return Sums(*(np.asarray(math.fsum(weights * field)) for field in sums))


def coefficients(total: Sums) -> dict[str, float | None]:
    """Each coefficient by its name in `agreement.json`, from totals; None where it is undefined.

    Alpha, agreement and specific agreement use units with two ratings or more; prevalence and the marginals of Fleiss'
    kappa and AC1 use all.
    """
    found = coefficient_values(np.array([float(each) for each in total]))
    return {
        name: None if math.isnan(value) else value for name, value in zip(COEFFICIENTS, found.tolist(), strict=True)
    }


def coefficient_values(totals: FloatArray) -> FloatArray:
    """The `COEFFICIENTS` (… × 9) from totals of `Sums` (… × 14); NaN where one is undefined.

    Source: exports/contracts/agreement.md#coefficients: Krippendorff 2011, Fleiss 1971, Gwet 2008, Brennan & Prediger
    1981, Cicchetti & Feinstein 1990.
    """
    total = Sums(*np.moveaxis(totals, -1, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = total.agreement / total.pairable
        share = total.share / total.rated
        by_chance = share**2 + (1 - share) ** 2
        distance = (total.zeros + total.ones - 1) * total.disagreement / (2 * total.zeros * total.ones)
        values = (
            total.all_ones / total.all_ratings,
            observed,
            1 - distance,
            _beyond_chance(observed, by_chance),
            _beyond_chance(observed, 2 * share * (1 - share)),
            _beyond_chance(observed, 0.5),
            total.ones_agreeing / total.ones_paired,
            total.zeros_agreeing / total.zeros_paired,
            total.unanimous / total.pairable,
        )
    return np.stack(values, axis=-1)


def ratio(part: float | FloatArray, whole: float | FloatArray) -> float | None:
    """`part / whole`; None where the whole is nothing."""
    return float(part) / float(whole) if whole else None


def _beyond_chance(observed: FloatArray, by_chance: float | FloatArray) -> FloatArray:
    """Agreement beyond chance as a share of what is possible beyond chance; NaN where nothing is possible."""
    possible = np.where(np.equal(by_chance, 1), np.nan, 1 - np.asarray(by_chance))
    beyond: FloatArray = (observed - by_chance) / possible
    return beyond


class Votes(NamedTuple):
    """Ratings of each unit, or of each part of one: units × labels, or a number a unit where it is about one label."""

    zeros: IntArray
    """Ratings that say no."""
    ones: IntArray
    """Ratings that say yes."""

    @property
    def ratings(self) -> IntArray:
        """Ratings of either kind."""
        return self.zeros + self.ones


def count_votes(values: LabelArray, units: IntArray, n_units: int) -> Votes:
    """Votes of each unit on each label, from responses × labels and the number of each response's unit."""

    def count(value: int) -> IntArray:
        columns = [np.bincount(units[column == value], minlength=n_units) for column in values.T]
        return np.stack(columns, axis=1).astype(np.int64)

    return Votes(count(NO), count(YES))


def label_votes(ratings: Ratings, column: int) -> Votes:
    """Votes of each unit on one label of the task: one number a unit."""
    votes = count_votes(ratings.values[:, [column]], ratings.units, len(ratings.unit_records))
    return Votes(votes.zeros[:, 0], votes.ones[:, 0])


def alpha_sums(votes: Votes, records: IntArray, n_records: int) -> FloatArray:
    """What alpha is a function of, for each record: records × three numbers a label, label after label.

    They are the sums of `zeros`, `ones` and `disagreement` over the record's pairable units.
    """
    sums = unit_sums(votes.zeros, votes.ones)
    columns = np.stack([sums.zeros, sums.ones, sums.disagreement], axis=2)
    columns = columns.reshape(len(records), 3 * votes.ones.shape[1])
    return np.stack([np.bincount(records, column, n_records) for column in columns.T], axis=1)


def alphas(totals: FloatArray) -> FloatArray:
    """Krippendorff's alpha of each label from totals of `alpha_sums` (… × three a label): … × labels, NaN undefined."""
    zeros, ones, disagreement = totals[..., 0::3], totals[..., 1::3], totals[..., 2::3]
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = (zeros + ones - 1) * disagreement / (2 * zeros * ones)
    return np.where(zeros * ones > 0, 1 - distance, np.nan)
