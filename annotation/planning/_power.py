"""How small a difference between two providers a study finds, and how large a study must be to find one.

Source: annotation/contracts/planning.md#power.
"""

import math
from functools import cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

POWER = 0.8
"""How often the difference is to be found."""
LEVEL = 0.05
"""Level of the two-sided test."""
SHARE = 0.5
"""Mean of the two rates."""
AGREEMENT = 0.667
"""Correlation of two votes on a unit that is assumed as far as nothing was measured."""
LIKENESS = 0.3
"""Correlation of votes on two answers to one narrative that is assumed as far as nothing was measured."""
_STUDIES = 20_000
_SEED = 0
_HALVINGS = 14
_NORMAL = NormalDist()
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
_MASSES = _WEIGHTS / _WEIGHTS.sum()
_LIKEST = 0.98
"""Votes that depend on each other more are computed as if they depended this much."""

_Floats = NDArray[np.float64]


class Likeness(NamedTuple):
    """How much alike votes are, as correlations at a share of one half."""

    agreement: float = AGREEMENT
    """Of two people's votes on one unit."""
    narrative: float = LIKENESS
    """Of votes on two providers' answers to one narrative."""


@cache
def detectable_difference(narratives: int, votes: int, likeness: Likeness, comparisons: int = 1) -> float | None:
    """The smallest difference between two rates that is found with power .8; None where no difference is.

    Votes follow normal scores that narrative and unit share. The narratives' differences get the test of `exports
    results`: sign flips, by their normal approximation with a correction for continuity, on seeded studies.

    Args:
        narratives: Narratives that both providers answered.
        votes: Votes on each answer.
        likeness: How much alike votes are.
        comparisons: How many tests the level is divided by (Bonferroni).
    """
    if _power(1.0, narratives, votes, likeness, comparisons) < POWER:
        return None
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _power(middle, narratives, votes, likeness, comparisons) < POWER:
            low = middle
        else:
            high = middle
    return round(high, 4)


def finds_difference(difference: float, narratives: int, votes: int, likeness: Likeness) -> bool:
    """Whether one planned comparison finds the difference with power .8."""
    return _power(difference, narratives, votes, likeness, 1) >= POWER


def _power(difference: float, narratives: int, votes: int, likeness: Likeness, comparisons: int) -> float:
    """The share of studies in which the difference is found."""
    masses = _difference_masses(difference, votes, likeness)
    counts = np.random.default_rng(_SEED).multinomial(narratives, masses, size=_STUDIES)
    steps = np.arange(-votes, votes + 1)
    sums, squares = np.abs(counts @ steps), counts @ steps**2
    limit = -_NORMAL.inv_cdf(LEVEL / comparisons / 2)
    return float(np.mean(sums >= limit * np.sqrt(squares) + 1))


def _difference_masses(difference: float, votes: int, likeness: Likeness) -> _Floats:
    """How likely a narrative's difference in yes votes is each number from −votes to votes."""
    first, second = (_vote_masses(SHARE + each / 2, votes, likeness) for each in (difference, -difference))
    joint = np.einsum("n,na,nb->ab", _MASSES, first, second)
    found = np.array([np.trace(joint, offset) for offset in range(votes, -votes - 1, -1)])
    clean = np.clip(found, 0, None)
    return np.asarray(clean / clean.sum())


def _vote_masses(rate: float, votes: int, likeness: Likeness) -> _Floats:
    """Nodes of the narrative × number of yes votes on an answer: how likely each number is."""
    unit = min(_LIKEST, math.sin(math.pi / 2 * likeness.agreement))
    narrative = min(unit, math.sin(math.pi / 2 * max(0.0, likeness.narrative)))
    mean = _NORMAL.inv_cdf(min(max(rate, 1e-9), 1 - 1e-9))
    scores = mean + math.sqrt(narrative) * _NODES[:, np.newaxis] + math.sqrt(unit - narrative) * _NODES
    yes = np.vectorize(_NORMAL.cdf)(scores / math.sqrt(1 - unit))
    numbers = range(votes + 1)
    return np.stack([math.comb(votes, k) * (yes**k * (1 - yes) ** (votes - k)) @ _MASSES for k in numbers], axis=1)
