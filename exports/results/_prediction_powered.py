"""Rates with a judge's help: what people labelled corrects what the judge says of all, clustered by narrative.

Source: exports/contracts/results.md#with-a-judges-help.
"""

import math
from typing import NamedTuple

import numpy as np

from exports.agreement.consensus import BoolArray
from exports.agreement.distributions import NORMAL_QUANTILE
from exports.agreement.ratings import FloatArray, IntArray
from exports.results._intervals import independent_units, share_ends

FEWEST_NARRATIVES = 30
"""A group with fewer labelled narratives gets no help: what its judge errs by is not known well enough."""
_FEWEST_RESTED_ON = 10.0
"""The normal interval is taken where the variance rests on so many labelled units, of"""
_FEWEST_LABELLED = 40
"""so many."""
_WIDEST = 1.02
"""Where the interval would be wider than so many times that of people alone, the judge does not count."""


class Units(NamedTuple):
    """The units of one group on one label, one row each: those with votes and those that the judge judged."""

    narratives: IntArray
    """Number of the narrative."""
    voted: BoolArray
    """Whether people voted on it."""
    values: FloatArray
    """What it is worth by their votes; NaN where they settle nothing, or there are none."""
    weights: FloatArray
    """Weight of a unit with votes."""
    p_yes: FloatArray
    """The judge's probability of yes; NaN where it did not judge."""


class Powered(NamedTuple):
    """A rate with the judge's help."""

    rate: float
    ends: tuple[float, float]
    """The ends of its 95 % interval."""
    method: str
    """How the interval was made."""
    weight: float
    """How much the judge counts: 0 not at all."""


class _Parts(NamedTuple):
    """What each narrative adds to the error of people's rate, and to the judge's on what people labelled."""

    people: FloatArray
    """By narrative: its part of the mean of values, less what is expected."""
    judge: FloatArray
    """By narrative: its part of the judge's mean on labelled units less that on all, less what is expected."""


def labelled_narratives(units: Units) -> int:
    """In how many narratives people's votes gave a value to a unit that the judge judged."""
    return len(np.unique(units.narratives[~np.isnan(units.values) & ~np.isnan(units.p_yes)]))


def prediction_powered(units: Units) -> Powered:
    """The rate with the judge's help, from two narratives with values or more.

    It is the weighted mean of people's values, less λ times by how much the judge's mean on what people labelled is
    above its mean on all that it judged. λ makes the variance of this over narratives smallest.

    Source: Angelopoulos, Duchi & Zrnic 2023, arXiv:2311.01453.
    """
    _, cluster = np.unique(units.narratives, return_inverse=True)
    n = int(cluster.max()) + 1
    valued, judged = ~np.isnan(units.values), ~np.isnan(units.p_yes)
    both = units.voted & judged
    totals = _sums(cluster[valued], (units.weights * units.values)[valued], n)
    weights = _sums(cluster[valued], units.weights[valued], n)
    squares = _sums(cluster[valued], units.weights[valued] ** 2, n)
    there = weights > 0
    rate = float(totals.sum() / weights.sum())
    independent = independent_units(totals[there], weights[there], squares[there])
    degrees = int(np.count_nonzero(there)) - 1
    alone = Powered(rate, share_ends(rate, independent, degrees), "wilson", 0.0)
    more = int(np.count_nonzero(judged & ~units.voted))
    if not more or not both.any() or np.ptp(units.p_yes[judged]) == 0:
        return alone
    clustered = len(cluster) > n
    parts, excess = _parts(units, cluster, n, rate)
    weight = _weight(units, parts, clustered)
    powered = rate - weight * excess
    errors = parts.people - weight * parts.judge
    if not clustered and degrees + 1 >= _FEWEST_LABELLED and _rests_on(errors[there]) >= _FEWEST_RESTED_ON:
        half = NORMAL_QUANTILE * math.sqrt(float((errors**2).sum()))
        found = Powered(powered, (max(powered - half, 0.0), min(powered + half, 1.0)), "normal", weight)
    else:
        squares_alone = float((parts.people**2).sum())
        kept = float((errors**2).sum()) / squares_alone if squares_alone else 1.0
        found = Powered(powered, share_ends(powered, independent / kept, degrees), "wilson", weight)
    return found if _width(found) <= _WIDEST * _width(alone) else alone


def _sums(cluster: IntArray, each: FloatArray, n: int) -> FloatArray:
    """The sum over each cluster."""
    found: FloatArray = np.bincount(cluster, each, n).astype(np.float64)
    return found


def _parts(units: Units, cluster: IntArray, n: int, rate: float) -> tuple[_Parts, float]:
    """What each narrative adds, and by how much the judge's mean on labelled units is above that on all."""
    valued, judged = ~np.isnan(units.values), ~np.isnan(units.p_yes)
    both, more = units.voted & judged, judged & ~units.voted
    size = int(np.count_nonzero(judged))
    share = units.weights[valued] / units.weights[valued].sum()
    people = _sums(cluster[valued], share * (units.values[valued] - rate), n)
    own = units.weights[both] / units.weights[both].sum()
    here, everywhere = float(own @ units.p_yes[both]), float(units.p_yes[judged].mean())
    equal = bool(np.ptp(units.weights[both]) < 1e-12)
    judge = _sums(cluster[both], own * (units.p_yes[both] - here), n)
    for part, centre in ((both, here), (more, float(units.p_yes[more].mean()))):
        around = units.p_yes[part] - (centre if equal else everywhere)
        judge -= _sums(cluster[part], around / size, n)
    return _Parts(people, judge), here - everywhere


def _weight(units: Units, parts: _Parts, clustered: bool) -> float:
    """λ: the covariance of both parts over the variance of the judge's, from 0 to all judged ÷ those not labelled.

    Without clusters the judge's variance is that of all it judged, as `ppi-python` has it.
    """
    judged = ~np.isnan(units.p_yes)
    p_yes = units.p_yes[judged]
    size, more = len(p_yes), int(np.count_nonzero(judged & ~units.voted))
    covariance = float(parts.people @ parts.judge)
    variance = float((parts.judge**2).sum())
    if not clustered and bool(np.ptp(units.weights[units.voted]) < 1e-12):
        variance = float(np.var(p_yes, ddof=1)) * more / (size * (size - more))
    return min(max(covariance / variance, 0.0), size / more) if variance > 0 else 0.0


def _rests_on(errors: FloatArray) -> float:
    """How many units of equal size a sum of squares would rest on as well."""
    squares = errors**2
    return float(squares.sum() ** 2 / (squares**2).sum()) if squares.any() else 0.0


def _width(found: Powered) -> float:
    """How wide the interval is."""
    return found.ends[1] - found.ends[0]
