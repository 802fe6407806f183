"""Intervals of rates and of their differences, clustered by narrative (exports/contracts/results.md#intervals).

Their constants were chosen by simulation; what they cover is in exports/contracts/results.md#simulations.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from exports.statistics.distributions import holm, student_quantile
from exports.statistics.groups import Pair
from exports.statistics.ratings import FloatArray
from exports.statistics.results_schema import Difference
from exports.statistics.values import Cells

_LIKENESS = 0.3  # Correlation within a narrative that is assumed as far as the data say nothing of it
_ASSUMED_NARRATIVES = 2.0  # Narratives with something of the rarer value that the assumption weighs as much as
_ONE_SIDED = 1.645  # Normal quantile of the end that lies nearest to 0 or 1, beyond which the rate cannot be
_IMAGINED = 0.3  # two imagined differences, one for each group, in squares of the largest possible by chance


def rate_ends(totals: FloatArray, weights: FloatArray, squares: FloatArray) -> tuple[float, float]:
    """The ends of a rate's 95 % interval, from the sums of each of two narratives or more."""
    rate = float(totals.sum()) / float(weights.sum())
    return share_ends(rate, independent_units(totals, weights, squares), len(weights) - 1)


def independent_units(totals: FloatArray, weights: FloatArray, squares: FloatArray) -> float:
    """How many independent units would be as telling as those of two narratives or more (sums of each narrative).

    Their number comes from the design effect (Kish 1965), which few rare values tell badly: it is drawn towards that of
    an assumed correlation.
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
    """Wilson's 95 % interval of a share, with Student's t; near 0 and 1, where it is too wide, a Poisson count's end.

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
    """The ends by Student's t over two narratives or more; `units` is how many a group has in one, on average.

    Two more are imagined, one for each group: narratives without a difference do not make it certain that there is none
    (after Bonett & Price 2012).
    """
    share = weights / weights.sum()
    mean = float(share @ differences)
    n = 1 / float((share**2).sum())
    squares = n * float((share * (differences - mean) ** 2).sum()) + 2 * _IMAGINED * _design_effect(units) / units
    half = student_quantile(len(differences) - 1) * math.sqrt(squares / ((n + 1) * (n + 2)))
    return max(mean - half, -1.0), min(mean + half, 1.0)


LEVEL = 0.05  # At a p of this or less after correction a difference is beyond chance
_FLIPS_A_TEST = 40  # for each test of a family at the level, so that the smallest p can survive the correction
_FEWEST_FLIPS = 10_000
_SETTLED = 400  # A test with more flips as large as this needs no more: its p is known to a twentieth, and is not small
_FIRST_LOOK = 10_000  # flips after which it is first looked which tests are settled; then ten times as many
_TIE = 1e-9  # Sums closer than this to each other, as a share of the largest possible one, are equal
_BLOCK = 2**22  # Numbers of a table of contributions: 32 MiB
_SIGNS = 2**19  # Random signs at a time: 4 MiB, which processors keep near
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).astype(np.float64)


class Comparison(NamedTuple):
    """One label of two groups, on the narratives in which both have a unit with a value; one row each."""

    first: FloatArray
    second: FloatArray
    weights: FloatArray  # Weight of the narrative: the mean weight of a group's units, on average of both
    units: float  # Units that a group has in a narrative, on average; one number

    @property
    def rates(self) -> tuple[float, float]:
        total = float(self.weights.sum())
        return float(self.weights @ self.first) / total, float(self.weights @ self.second) / total

    @property
    def difference(self) -> float:
        """The weighted mean of first − second."""
        return float(self.contributions.sum()) / float(self.weights.sum())

    @property
    def contributions(self) -> FloatArray:
        return self.weights * (self.first - self.second)


def compare(cells: Cells, pair: Pair) -> Iterator[Comparison]:
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
    return max(_FEWEST_FLIPS, math.ceil(_FLIPS_A_TEST * largest_family / LEVEL))


def flip_p(contributions: Sequence[FloatArray], flips: int, seed: int) -> list[float]:
    """Two-sided p of each sum of contributions, when each contribution keeps or changes its sign by chance.

    All flips are counted where they are fewer than `flips`; otherwise they are random, the same for all sums, and the
    observed one counts among them. A p that is not small may rest on fewer; a sum so large that a p of 1/(flips + 1) is
    certain (Hoeffding's bound) gets it without any.
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
    sums = sizes[:1]
    for size in sizes[1:]:
        sums = np.concatenate([sums + size, sums - size])
    return float(np.mean(np.abs(sums) >= limit))


def _random_p(sizes: Sequence[FloatArray], limits: Sequence[float], flips: int, seed: int) -> FloatArray:
    """A sum of sizes with random signs is twice that of a random choice of them, less their total."""
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


def within_reach(compared: Sequence[Difference]) -> list[bool]:
    """Whether each of these differences, which have a p, could stand out, were every narrative to speak for it."""
    dimensions: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for place, found in enumerate(compared):
        dimensions[found.by, bool(found.within)].append(place)
    reached = [False] * len(compared)
    for places in dimensions.values():
        corrected = holm([_smallest_p(compared[place].n_narratives) for place in places])
        for place, p in zip(places, corrected, strict=True):
            reached[place] = p <= LEVEL
    return reached


def narratives_needed(compared: Sequence[Difference]) -> int:
    """The fewest common narratives with which a difference of the largest dimension could stand out."""
    dimensions = [(found.by, bool(found.within)) for found in compared]
    largest = max(map(dimensions.count, set(dimensions)))
    narratives = 1
    while largest * _smallest_p(narratives) > LEVEL:
        narratives += 1
    return narratives


def _smallest_p(n_narratives: int) -> float:
    """The p of the two sign flips in which all narratives point one way."""
    return 2.0 ** (1 - n_narratives)
