"""Intervals of rates and of differences of rates, clustered by narrative.

Their constants were chosen by simulation; what they cover is in exports/contracts/results.md#simulations.

Source: exports/contracts/results.md#intervals.
"""

import math

import numpy as np

from exports.agreement.distributions import student_quantile
from exports.agreement.ratings import FloatArray

_LIKENESS = 0.3
"""Correlation within a narrative that is assumed as far as the data say nothing of it."""
_ASSUMED_NARRATIVES = 2.0
"""Narratives with something of the rarer value that the assumption weighs as much as."""
_ONE_SIDED = 1.645
"""Normal quantile of the end that lies nearest to 0 or 1, beyond which the rate cannot be."""
_IMAGINED = 0.3
"""Size of two imagined differences, one for each group, in squares of the largest that units can have by chance."""


def rate_ends(totals: FloatArray, weights: FloatArray, squares: FloatArray) -> tuple[float, float]:
    """The ends of a rate's 95 % interval, from two narratives or more: `share_ends` of `independent_units`.

    Args:
        totals: Sum of weight times value of each narrative.
        weights: Sum of the weights of each narrative.
        squares: Sum of the squared weights of each narrative.
    """
    rate = float(totals.sum()) / float(weights.sum())
    return share_ends(rate, independent_units(totals, weights, squares), len(weights) - 1)


def independent_units(totals: FloatArray, weights: FloatArray, squares: FloatArray) -> float:
    """How many independent units would be as telling as those of two narratives or more.

    Their number comes from the design effect, which few rare values tell badly: it is drawn towards that of an assumed
    correlation.

    Source: Kish 1965.

    Args:
        totals: Sum of weight times value of each narrative.
        weights: Sum of the weights of each narrative.
        squares: Sum of the squared weights of each narrative.
    """
    n, size = len(weights), float(weights.sum())
    rate = min(max(float(totals.sum()) / size, 0.0), 1.0)
    units = size**2 / float(squares.sum())
    assumed = _design_effect(float((weights**2).sum() / squares.sum()))
    found = 0.0
    if 0 < rate < 1:
        variance = n / (n - 1) * float(((totals - rate * weights) ** 2).sum()) / size**2
        found = variance * units / (rate * (1 - rate))
    telling = min(np.count_nonzero(totals > 0), np.count_nonzero(totals < weights))
    effect = (telling * found + _ASSUMED_NARRATIVES * assumed) / (telling + _ASSUMED_NARRATIVES)
    return units / effect


def share_ends(rate: float, independent: float, degrees: int) -> tuple[float, float]:
    """The ends of the 95 % interval of a share of so many independent units.

    Wilson's interval, with Student's t. Near 0 and 1 the nearer end is that of a Poisson count where that is nearer
    still, as Wilson's is too far there.

    Source: Wilson 1927; Franco et al. 2019; Brown, Cai & DasGupta 2001; Wilson & Hilferty 1931.
    """
    rate = min(max(rate, 0.0), 1.0)
    t2 = student_quantile(degrees) ** 2
    centre = (rate + t2 / (2 * independent)) / (1 + t2 / independent)
    half = math.sqrt(t2 * (rate * (1 - rate) / independent + t2 / (4 * independent**2))) / (1 + t2 / independent)
    low = min(centre - half, _rare_end(rate, independent))
    high = max(centre + half, 1 - _rare_end(1 - rate, independent))
    return max(low, 0.0), min(high, 1.0)


def _design_effect(units: float) -> float:
    """The design effect of so many units a narrative that have the assumed correlation."""
    return 1 + (units - 1) * _LIKENESS


def _rare_end(rate: float, units: float) -> float:
    """The 5 % point of a gamma variable with the mean of the count, by Wilson and Hilferty's cube, as a rate."""
    count = rate * units
    if count <= 0:
        return 0.0
    root = 1 - 1 / (9 * count) - _ONE_SIDED * math.sqrt((1 - rate) / (9 * count))
    return rate * max(root, 0.0) ** 3


def difference_ends(differences: FloatArray, weights: FloatArray, units: float) -> tuple[float, float]:
    """The ends of a mean difference's 95 % interval, from two narratives or more.

    Student's t over narratives. Two more are imagined, one for each group, so that narratives without a difference do
    not make it certain that there is none.

    Source: exports/contracts/results.md#intervals, after Bonett & Price 2012.

    `differences` are those of each narrative's means; `units` is how many a group has in a narrative, on average.
    """
    share = weights / weights.sum()
    mean = float(share @ differences)
    n = 1 / float((share**2).sum())
    squares = n * float((share * (differences - mean) ** 2).sum()) + 2 * _IMAGINED * _design_effect(units) / units
    half = student_quantile(len(differences) - 1) * math.sqrt(squares / ((n + 1) * (n + 2)))
    return max(mean - half, -1.0), min(mean + half, 1.0)
