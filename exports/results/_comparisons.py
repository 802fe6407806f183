"""Groups against each other on the narratives that both have: differences, and p from sign flips.

Source: exports/contracts/results.md#differences.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
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
"""Numbers of a table of contributions: 32 MiB."""
_SIGNS = 2**19
"""Random signs at a time: 4 MiB, which processors keep near."""
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).astype(np.float64)
"""The bits of each byte."""


class Comparison(NamedTuple):
    """One label of two groups, on the narratives in which both have a unit with a value; one row each."""

    first: FloatArray
    """Mean of the first group's units."""
    second: FloatArray
    """Mean of the second group's units."""
    weights: FloatArray
    """Weight of the narrative: the mean weight of a group's units, on average of both."""
    units: float
    """Units that a group has in a narrative, on average; one number."""

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


def compare(cells: Cells, pair: Pair) -> Iterator[Comparison]:
    """The two groups on each label."""
    a, b = cells.of_group(pair.a), cells.of_group(pair.b)
    _, left, right = np.intersect1d(cells.narratives[a], cells.narratives[b], assume_unique=True, return_indices=True)
    left, right = left + a.start, right + b.start
    both = (cells.units[left] > 0) & (cells.units[right] > 0)
    for label, rows in enumerate(both.T):
        first, second = left[rows], right[rows]
        units_a, units_b = cells.units[first, label], cells.units[second, label]
        weights_a, weights_b = cells.weights[first, label], cells.weights[second, label]
        yield Comparison(
            first=cells.totals[first, label] / weights_a,
            second=cells.totals[second, label] / weights_b,
            weights=(weights_a / units_a + weights_b / units_b) / 2,
            units=float(np.mean(units_a + units_b)) / 2 if rows.any() else 0.0,
        )


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
    for places in _alike(random, sizes):
        limits = [observed[place] - _TIE * float(sizes[place].sum()) for place in places]
        for place, p in zip(places, _random_p([sizes[place] for place in places], limits, flips, seed), strict=True):
            found[place] = p
    return found


def _alike(places: Sequence[int], sizes: Sequence[FloatArray]) -> Iterator[list[int]]:
    """The places in batches whose sums get the same signs, whatever else is tested, and fit a block."""
    ordered = sorted(places, key=lambda place: len(sizes[place]))
    for length, batch in groupby(ordered, key=lambda place: _signs(len(sizes[place]))):
        members, width = list(batch), max(1, _BLOCK // length)
        yield from (members[start : start + width] for start in range(0, len(members), width))


def _signs(contributions: int) -> int:
    """How many signs are drawn for so many contributions: up to a quarter more, in whole bytes."""
    step = max(8, 1 << max(0, contributions.bit_length() - 3))
    return -(-contributions // step) * step


def _exact_p(sizes: FloatArray, limit: float) -> float:
    """Share of all sign flips whose sum is at least as large as the limit, in either direction."""
    sums = sizes[:1]
    for size in sizes[1:]:
        sums = np.concatenate([sums + size, sums - size])
    return float(np.mean(np.abs(sums) >= limit))


def _random_p(sizes: Sequence[FloatArray], limits: Sequence[float], flips: int, seed: int) -> FloatArray:
    """The p of each sum from random sign flips: how many are at least as large as its limit, in either direction.

    A sum of sizes with random signs is twice that of a random choice of them, less their total.
    """
    table = np.zeros((_signs(len(sizes[0])), len(sizes)))
    for place, size in enumerate(sizes):
        table[: len(size), place] = size
    totals, limit = table.sum(axis=0), np.array(limits)
    as_large, made = np.zeros(len(sizes)), np.zeros(len(sizes))
    left = np.arange(len(sizes))
    own, high, low = table, (totals + limit) / 2, (totals - limit) / 2
    generator = np.random.default_rng(seed)
    rows = max(1, _SIGNS // len(table))
    chosen = np.empty((rows, len(table) // 8, 8))
    done, look = 0, _FIRST_LOOK
    while done < flips and len(left):
        count = min(rows, min(look, flips) - done)
        drawn = np.frombuffer(generator.bytes(rows * len(table) // 8), np.uint8).reshape(rows, -1)
        np.take(_BITS, drawn, axis=0, out=chosen, mode="clip")
        sums = chosen.reshape(rows, -1)[:count] @ own
        as_large[left] += np.count_nonzero((sums >= high) | (sums <= low), axis=0)
        done += count
        made[left] = done
        if done == look:
            left, look = left[as_large[left] < _SETTLED], look * 10
            own, high, low = (
                np.ascontiguousarray(each[..., left]) for each in (table, (totals + limit) / 2, (totals - limit) / 2)
            )
    return (1 + as_large) / (1 + made)
