"""Intervals of rates and of differences of rates, clustered by narrative.

Source: exports/contracts/results.md#intervals.
"""

import math

from exports.agreement.distributions import student_quantile
from exports.agreement.ratings import FloatArray


def rate_ends(totals: FloatArray, weights: FloatArray, n_units: float) -> tuple[float, float]:
    """The ends of a rate's 95 % interval, from two narratives or more.

    Wilson's interval with the effective number of units and Student's t for the narratives.

    Args:
        totals: Sum of weight times value of each narrative.
        weights: Sum of the weights of each narrative.
        n_units: Units in them.
    """
    n, size = len(weights), float(weights.sum())
    rate = min(max(float(totals.sum()) / size, 0.0), 1.0)
    variance = n / (n - 1) * float(((totals - rate * weights) ** 2).sum()) / size**2
    effective = rate * (1 - rate) / variance if variance > 0 and 0 < rate < 1 else float(n)
    effective = min(effective, n_units)
    t2 = student_quantile(n - 1) ** 2
    centre = (rate + t2 / (2 * effective)) / (1 + t2 / effective)
    half = math.sqrt(t2 * (rate * (1 - rate) / effective + t2 / (4 * effective**2))) / (1 + t2 / effective)
    return max(0.0, min(centre - half, rate)), min(1.0, max(centre + half, rate))


def difference_ends(differences: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """The ends of a mean difference's 95 % interval, from two narratives or more.

    Student's t over narratives, of which two more are imagined: one for and one against, by a half.

    Args:
        differences: Difference of each narrative's means.
        weights: Weight of each narrative.
    """
    share = weights / weights.sum()
    mean = float(share @ differences)
    effective = 1 / float((share**2).sum())
    imagined = 0.25
    squares = float((share * (differences - mean) ** 2).sum()) * effective + 2 * imagined
    half = student_quantile(len(differences) - 1) * math.sqrt(squares / (effective + 1)) / math.sqrt(effective + 2)
    return max(-1.0, mean - half), min(1.0, mean + half)
