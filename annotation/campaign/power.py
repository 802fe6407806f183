"""How small a difference between two providers a study finds, and how large a study must be to find one.

Source: annotation/contracts/planning.md#power.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

POWER = 0.8  # how often the difference is to be found
LEVEL = 0.05  # level of the two-sided test
SHARE = 0.5  # mean of the two rates
AGREEMENT = 0.667  # correlation of two votes on a unit that is assumed as far as nothing was measured
LIKENESS = 0.3  # correlation of votes on two answers to one narrative that is assumed as far as nothing was measured
_STUDIES = 20_000
_STEP = 0.1  # weights whose logarithms differ less are taken together
_HALVINGS = 14
_NORMAL = NormalDist()
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
_MASSES = _WEIGHTS / _WEIGHTS.sum()
_LIKEST = 0.98  # votes that depend on each other more are computed as if they depended this much


class Likeness(NamedTuple):
    """How much alike votes are, as correlations at a share of one half."""

    agreement: float = AGREEMENT
    narrative: float = LIKENESS


class Shared(NamedTuple):
    groups: tuple[tuple[float, int], ...]  # how many narratives have which weight
    are_equal: bool = True  # some that hardly differ are one group

    @property
    def effective(self) -> float:
        """As many narratives of equal weight as tell as much (Kish 1965)."""
        squares = sum(count * weight**2 for weight, count in self.groups)
        return sum(count * weight for weight, count in self.groups) ** 2 / squares if squares else 0.0


def shared_narratives(counts: Mapping[float, float]) -> Shared:
    """How many narratives have which weight, those within a tenth together and their numbers rounded."""
    together: defaultdict[int, dict[float, float]] = defaultdict(dict)
    for weight, count in counts.items():
        together[round(math.log(weight) / _STEP)][weight] = count
    groups = []
    for members in together.values():
        count = sum(members.values())
        groups.append((sum(weight * each for weight, each in members.items()) / count, round(count)))
    return Shared(tuple(sorted(groups)), len(counts) <= 1)


@cache
def detectable_difference(shared: Shared, votes: int, likeness: Likeness, comparisons: int = 1) -> float | None:
    """The smallest difference between two rates that is found with power .8; None where no difference is.

    Votes follow normal scores that narrative and unit share. The narratives' differences get the test of `exports
    results`: sign flips, by their normal approximation with a correction for continuity, on seeded studies.
    `comparisons` is how many tests the level is divided by (Bonferroni).
    """
    if not finds_difference(1.0, shared, votes, likeness, comparisons):
        return None
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        found = finds_difference(middle, shared, votes, likeness, comparisons)
        low, high = (low, middle) if found else (middle, high)
    return round(high, 4)


def finds_difference(difference: float, shared: Shared, votes: int, likeness: Likeness, comparisons: int = 1) -> bool:
    """Whether the difference is found in as many of the studies as `POWER` says.

    Sums of equal weights lie two steps apart, so that a sum counts from one step beyond the limit on; sums of different
    weights lie closer, and half a step is taken.
    """
    # How likely a narrative's difference in yes votes is each number from −votes to votes.
    first, second = (_vote_masses(SHARE + each / 2, votes, likeness) for each in (difference, -difference))
    joint = np.einsum("n,na,nb->ab", _MASSES, first, second)
    found = np.array([np.trace(joint, offset) for offset in range(votes, -votes - 1, -1)])
    masses = np.clip(found, 0, None)
    masses /= masses.sum()
    generator = np.random.default_rng(0)
    steps = np.arange(-votes, votes + 1)
    sums, squares = np.zeros(_STUDIES), np.zeros(_STUDIES)
    for weight, narratives in shared.groups:
        counts = generator.multinomial(narratives, masses, size=_STUDIES)
        sums += weight * (counts @ steps)
        squares += weight**2 * (counts @ steps**2)
    limit = -_NORMAL.inv_cdf(LEVEL / comparisons / 2) * np.sqrt(squares)
    step = min((weight for weight, _ in shared.groups), default=0.0) / (1 if shared.are_equal else 2)
    return float(np.mean((np.abs(sums) >= limit + step) & (squares > 0))) >= POWER


def _vote_masses(rate: float, votes: int, likeness: Likeness) -> NDArray[np.float64]:
    """Nodes of the narrative × number of yes votes on an answer: how likely each number is."""
    unit = min(_LIKEST, math.sin(math.pi / 2 * likeness.agreement))
    narrative = min(unit, math.sin(math.pi / 2 * max(0.0, likeness.narrative)))
    mean = _NORMAL.inv_cdf(min(max(rate, 1e-9), 1 - 1e-9))
    scores = mean + math.sqrt(narrative) * _NODES[:, np.newaxis] + math.sqrt(unit - narrative) * _NODES
    yes = np.vectorize(_NORMAL.cdf)(scores / math.sqrt(1 - unit))
    numbers = range(votes + 1)
    return np.stack([math.comb(votes, k) * (yes**k * (1 - yes) ** (votes - k)) @ _MASSES for k in numbers], axis=1)
