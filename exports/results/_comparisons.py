"""Groups against each other on the narratives that both have: differences, and p from sign flips.

Source: exports/contracts/results.md#differences.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from exports.agreement.ratings import FloatArray
from exports.results._cells import Cells
from exports.results._groups import Pair

LEVEL = 0.05
"""At a p of this or less after correction a difference is beyond chance."""
_FLIPS_A_TEST = 40
"""Sign flips for each test of a family at the level, so that the smallest p can survive the correction."""
_FEWEST_FLIPS = 10_000
_SETTLED = 400
"""A test with more flips as large as this needs no more: its p is known to a twentieth, and is not small."""
_FIRST_LOOK = 10_000
"""Flips after which it is looked for the first time which tests are settled; then ten times as many."""
_TIE = 1e-9
"""Sums closer than this to each other, as a share of the largest possible one, are equal."""
_BLOCK = 2**22
"""Numbers of a block of signs, or of sums: 32 MiB."""


class Comparison(NamedTuple):
    """One label of two groups, on the narratives in which both have a unit with a value; one row each."""

    first: FloatArray
    """Mean of the first group's units."""
    second: FloatArray
    """Mean of the second group's units."""
    weights: FloatArray
    """Weight of the narrative."""

    @property
    def rates(self) -> tuple[float, float]:
        """The weighted mean of each."""
        total = float(self.weights.sum())
        return float(self.weights @ self.first) / total, float(self.weights @ self.second) / total

    @property
    def difference(self) -> float:
        """The weighted mean of first − second."""
        return float(self.contributions.sum()) / float(self.weights.sum())

    @property
    def contributions(self) -> FloatArray:
        """What each narrative adds to the weighted sum of the differences."""
        return self.weights * (self.first - self.second)


def compare(cells: Cells, pair: Pair, label: int) -> Comparison:
    """The two groups on one label."""
    a, b = cells.of_group(pair.a), cells.of_group(pair.b)
    _, left, right = np.intersect1d(cells.narratives[a], cells.narratives[b], assume_unique=True, return_indices=True)
    left, right = left + a.start, right + b.start
    both = (cells.units[left, label] > 0) & (cells.units[right, label] > 0)
    rows = (left[both], right[both])
    first, second = (cells.totals[at, label] / cells.weights[at, label] for at in rows)
    weight_a, weight_b = (cells.weights[at, label] / cells.units[at, label] for at in rows)
    return Comparison(first, second, (weight_a + weight_b) / 2)


def n_flips(largest_family: int) -> int:
    """How many random sign flips a p needs that is corrected for so many tests."""
    return max(_FEWEST_FLIPS, math.ceil(_FLIPS_A_TEST * largest_family / LEVEL))


def flip_p(contributions: Sequence[FloatArray], flips: int, seed: int) -> list[float]:
    """Two-sided p of each sum of contributions, when each contribution keeps or changes its sign by chance.

    All sign flips are counted where they are fewer than `flips`; narratives without a difference need none. Otherwise
    they are random, the same for all sums, and the observed one counts among them. A p that is not small may rest on
    fewer of them. A sum so large that a p of 1/(flips + 1) is certain (Hoeffding's bound) gets it without any.
    The order of the contributions and their signs do not matter.
    """
    sizes = [-np.sort(-np.abs(each[each != 0])) for each in contributions]
    observed = [abs(float(each.sum())) for each in contributions]
    found = [math.nan] * len(sizes)
    random: list[int] = []
    for place, size in enumerate(sizes):
        limit = observed[place] - _TIE * float(size.sum())
        if len(size) == 0:
            found[place] = 1.0
        elif 2 ** len(size) <= flips:
            found[place] = _exact_p(size, limit)
        elif 2 * math.exp(-(limit**2) / (2 * float((size**2).sum()))) < 1 / (flips + 1):
            found[place] = 1 / (flips + 1)
        else:
            random.append(place)
    random.sort(key=lambda place: len(sizes[place]))
    for place, p in zip(
        random, _random_p([sizes[i] for i in random], [observed[i] for i in random], flips, seed), strict=True
    ):
        found[place] = p
    return found


def _exact_p(sizes: FloatArray, limit: float) -> float:
    """Share of all sign flips whose sum is at least as large as the limit, in either direction."""
    sums = sizes[:1]
    for size in sizes[1:]:
        sums = np.concatenate([sums + size, sums - size])
    return float(np.mean(np.abs(sums) >= limit))


def _random_p(sizes: Sequence[FloatArray], observed: Sequence[float], flips: int, seed: int) -> FloatArray:
    """The p of each sum from random sign flips."""
    if not sizes:
        return np.empty(0)
    table = np.zeros((max(map(len, sizes)), len(sizes)))
    for place, size in enumerate(sizes):
        table[: len(size), place] = size
    totals = table.sum(axis=0)
    limits = np.array(observed) - _TIE * totals
    as_large, made = np.zeros(len(sizes)), np.zeros(len(sizes))
    open_ones = np.arange(len(sizes))
    generator = np.random.default_rng(seed)
    done, look = 0, _FIRST_LOOK
    rows = max(8, _BLOCK // max(table.shape))
    while done < flips and len(open_ones):
        count = min(rows, min(look, flips) - done)
        bits = generator.integers(0, 2, (count, len(table)), dtype=np.uint8)
        sums = 2 * (bits.astype(np.float64) @ table[:, open_ones]) - totals[open_ones]
        as_large[open_ones] += np.count_nonzero(np.abs(sums) >= limits[open_ones], axis=0)
        done += count
        made[open_ones] = done
        if done == look:
            open_ones, look = open_ones[as_large[open_ones] < _SETTLED], look * 10
    return (1 + as_large) / (1 + made)
