"""Dawid and Skene's model of annotators who err on yes and on no at rates of their own, fitted to one label.

Source: Dawid & Skene 1979, Appl Stat 28:20-28, with two classes; `agreement.md` section 8.
"""

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from exports.agreement.ratings import YES, FloatArray, IntArray, LabelArray

MIN_TRIPLED_UNITS = 10
"""Units with three ratings or more that the model must have: two raters leave two of its five figures open."""
PRIOR = 0.5
"""Imagined ratings on each side of each of an annotator's two rates: keeps them off 0 and 1, and weighs little."""
TOLERANCE = 1e-9
"""The fit ends when the log-likelihood grows by less than this for each rating."""
MAX_ITERATIONS = 1000
SMALLEST = 1e-12
"""Rates are kept this far from 0 and 1, so that their logarithms exist without a prior too."""

BoolArray = npt.NDArray[np.bool_]
Refusal = Literal["too_few_units_with_three_ratings", "no_variation"]


class DawidSkene(NamedTuple):
    """The fitted model; NaN stands where it cannot tell."""

    posterior: FloatArray
    """Probability of yes for each unit; NaN for a unit that no identified annotator rated."""
    sensitivity: FloatArray
    """Probability that each annotator says yes where yes is right; NaN for annotators who are not identified."""
    specificity: FloatArray
    """Probability that each annotator says no where no is right; NaN for annotators who are not identified."""
    prevalence: float
    """Share of units where yes is right."""
    loglik: float
    """Log-likelihood of the ratings, without the prior."""
    iterations: int
    """Steps until the fit ended."""


class Rates(NamedTuple):
    """What the M step estimates."""

    prevalence: float
    """Share of units where yes is right."""
    hits: FloatArray
    """Each annotator's probability of yes where yes is right."""
    false_alarms: FloatArray
    """Each annotator's probability of yes where no is right."""


def dawid_skene(units: IntArray, annotators: IntArray, values: LabelArray, prior: float = PRIOR) -> DawidSkene | None:
    """The model of one label; None where it is not identified, for which `refusal` gives the reason.

    It needs units that three annotators or more rated. Annotators are identified by such units, or by sharing units,
    directly or through others, with those who are; ratings of the rest are left out.

    Args:
        units: Number of the unit of each rating, counted from 0.
        annotators: Number of the annotator of each rating, counted from 0.
        values: 1 yes, 0 no, -1 missing.
        prior: Imagined ratings on each side of each rate; 0 gives maximum likelihood.
    """
    if refusal(units, annotators, values) is not None:
        return None
    kept = identified_ratings(units, annotators, values)
    n_units, n_annotators = int(units.max()) + 1, int(annotators.max()) + 1
    unit_numbers, unit = np.unique(units[kept], return_inverse=True)
    rater_numbers, rater = np.unique(annotators[kept], return_inverse=True)
    fitted = fit(unit, rater, values[kept] == YES, prior)
    return DawidSkene(
        posterior=spread(fitted.posterior, unit_numbers, n_units),
        sensitivity=spread(fitted.sensitivity, rater_numbers, n_annotators),
        specificity=spread(fitted.specificity, rater_numbers, n_annotators),
        prevalence=fitted.prevalence,
        loglik=fitted.loglik,
        iterations=fitted.iterations,
    )


def refusal(units: IntArray, annotators: IntArray, values: LabelArray) -> Refusal | None:
    """Why the model is not identified by these ratings; None where it is."""
    kept = identified_ratings(units, annotators, values)
    if not kept.any():
        return "too_few_units_with_three_ratings"
    return "no_variation" if len(np.unique(values[kept])) < 2 else None


def identified_ratings(units: IntArray, annotators: IntArray, values: LabelArray) -> BoolArray:
    """Which ratings are by annotators of a group with enough units that three of its members rated."""
    given = values >= 0
    kept = np.zeros(len(values), dtype=np.bool_)
    if not given.any():
        return kept
    unit, rater = units[given], annotators[given]
    group = groups_of(unit, rater)[rater]
    tripled = np.bincount(unit) >= 3
    _, first = np.unique(unit, return_index=True)
    counted = first[tripled[unit[first]]]
    enough = np.bincount(group[counted], minlength=int(group.max()) + 1) >= MIN_TRIPLED_UNITS
    kept[given] = enough[group]
    return kept


def groups_of(unit: IntArray, rater: IntArray) -> IntArray:
    """The group of each annotator: its smallest number; sharing a unit puts two annotators into one group."""
    group = np.arange(int(rater.max()) + 1)
    while True:
        smallest = np.full(int(unit.max()) + 1, len(group))
        np.minimum.at(smallest, unit, group[rater])
        merged = group.copy()
        np.minimum.at(merged, rater, smallest[unit])
        if np.array_equal(merged, group):
            return group
        group = merged


def fit(unit: IntArray, rater: IntArray, yes: BoolArray, prior: float) -> DawidSkene:
    """The model at a maximum of the likelihood times the prior, started at the share of yes among each unit's votes.

    Of the two mirrored solutions the one in which annotators are right more often than wrong is returned.
    """
    said = 2 * rater + yes  # who said what, as one number
    posterior = np.bincount(unit, weights=yes) / np.bincount(unit)
    before, iterations = -np.inf, 0
    while iterations < MAX_ITERATIONS:
        iterations += 1
        rates = estimate(posterior, unit, said, prior)
        posterior, loglik = expect(rates, unit, said)
        penalised = loglik + log_prior(rates, prior)
        if penalised - before < TOLERANCE * len(unit):
            break
        before = penalised
    if rates.hits.mean() < rates.false_alarms.mean():
        rates = Rates(1 - rates.prevalence, rates.false_alarms, rates.hits)
        posterior = 1 - posterior
    return DawidSkene(posterior, rates.hits, 1 - rates.false_alarms, rates.prevalence, loglik, iterations)


def estimate(posterior: FloatArray, unit: IntArray, said: IntArray, prior: float) -> Rates:
    """The rates that fit the posterior best: the M step. `said` is twice the annotator's number, one more for yes."""
    size = int(said.max()) // 2 * 2 + 2
    counts = np.bincount(said, minlength=size).reshape(-1, 2).astype(np.float64)
    likely = np.bincount(said, weights=posterior[unit], minlength=size)
    where_yes = np.asarray(likely, dtype=np.float64).reshape(-1, 2)
    return Rates(
        prevalence=float(np.clip(posterior.mean(), SMALLEST, 1 - SMALLEST)),
        hits=share_of_yes(where_yes, prior),
        false_alarms=share_of_yes(counts - where_yes, prior),
    )


def share_of_yes(votes: FloatArray, prior: float) -> FloatArray:
    """Each annotator's share of yes, from her votes of no and of yes (columns) and imagined ones on each side."""
    shares = (votes[:, 1] + prior) / np.maximum(votes.sum(axis=1) + 2 * prior, SMALLEST)
    return np.asarray(np.clip(shares, SMALLEST, 1 - SMALLEST), dtype=np.float64)


def expect(rates: Rates, unit: IntArray, said: IntArray) -> tuple[FloatArray, float]:
    """The probability of yes for each unit at these rates, and the log-likelihood of all ratings: the E step."""
    where_yes = np.log(np.column_stack([1 - rates.hits, rates.hits]).ravel())
    where_no = np.log(np.column_stack([1 - rates.false_alarms, rates.false_alarms]).ravel())
    log_yes = np.log(rates.prevalence) + np.bincount(unit, weights=where_yes[said])
    log_no = np.log1p(-rates.prevalence) + np.bincount(unit, weights=where_no[said])
    together = np.logaddexp(log_yes, log_no)
    return np.exp(log_yes - together), float(together.sum())


def log_prior(rates: Rates, prior: float) -> float:
    """The logarithm of the Beta prior of all rates, up to a constant."""
    both = np.concatenate([rates.hits, rates.false_alarms])
    return float(prior * (np.log(both) + np.log1p(-both)).sum())


def spread(values: FloatArray, numbers: IntArray, length: int) -> FloatArray:
    """The values at their numbers in an array of this length, NaN elsewhere."""
    whole = np.full(length, np.nan)
    whole[numbers] = values
    return whole
