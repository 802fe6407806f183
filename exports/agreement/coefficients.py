"""Agreement coefficients for yes/no labels, from sums over units (`agreement.md` sections 2 to 5)."""

import math
from typing import NamedTuple

import numpy as np

from exports.agreement.ratings import FloatArray, IntArray


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


def unit_sums(zeros: IntArray, ones: IntArray) -> Sums:
    """The sums of each unit, from its ratings that say no and its ratings that say yes.

    Source: `agreement.md` section 2.
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
    )


def totals(zeros: IntArray, ones: IntArray) -> Sums:
    """The sums over all units, each a single number.

    Units with the same counts are added up together, and without rounding in between: so neither the order of the
    units nor those that add nothing change the last digit.
    """
    width = int(ones.max(initial=0)) + 1
    patterns, weights = np.unique(zeros * width + ones, return_counts=True)
    sums = unit_sums(patterns // width, patterns % width)
    return Sums(*(np.asarray(math.fsum(weights * field)) for field in sums))


def coefficients(total: Sums) -> dict[str, float | None]:
    """Each coefficient by its name in `agreement.json`, from totals; None where it is undefined.

    Alpha, agreement and specific agreement use units with two ratings or more; the marginals of Fleiss' kappa and
    AC1 use all.

    Source: `agreement.md` section 3: Krippendorff 2011, Fleiss 1971, Gwet 2008, Brennan & Prediger 1981, Cicchetti &
    Feinstein 1990.
    """
    n0, n1 = float(total.zeros), float(total.ones)
    observed = ratio(total.agreement, total.pairable)
    share = ratio(total.share, total.rated)
    chance_of_yes = 0.0 if share is None else share
    by_chance = chance_of_yes**2 + (1 - chance_of_yes) ** 2
    distance = ratio((n0 + n1 - 1) * total.disagreement, 2 * n0 * n1)
    return {
        "percent_agreement": observed,
        "krippendorff_alpha": None if distance is None else 1 - distance,
        "fleiss_kappa": beyond_chance(observed, by_chance),
        "gwet_ac1": beyond_chance(observed, 2 * chance_of_yes * (1 - chance_of_yes)),
        "brennan_prediger": beyond_chance(observed, 0.5),
        "positive_agreement": ratio(total.ones_agreeing, total.ones_paired),
        "negative_agreement": ratio(total.zeros_agreeing, total.zeros_paired),
        "full_agreement_share": ratio(total.unanimous, total.pairable),
    }


def ratio(part: float | FloatArray, whole: float | FloatArray) -> float | None:
    """`part / whole`; None where the whole is nothing."""
    return float(part) / float(whole) if whole else None


def beyond_chance(observed: float | None, by_chance: float) -> float | None:
    """Agreement beyond chance as a share of what is possible beyond chance; None where nothing is possible."""
    return None if observed is None or by_chance == 1 else (observed - by_chance) / (1 - by_chance)
