"""Which narratives are drawn: whole, by stratum, with a known probability, and the same ones for the same seed.

Source: annotation/contracts/planning.md#sample.
"""

import hashlib
import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import variance
from typing import NamedTuple

from annotation.planning.population import PlannedNarrative

ALL = "all"
"""The one stratum of narratives that are not divided."""
_SURE = 1.2816
"""Normal quantile: nine of ten samples take no longer."""
_SAFE, _LEAST, _MOST = 0.8, 0.6, 1.2
"""Shares of the hours: so much may always be used; that is the least; that the most, where one narrative more would
otherwise leave nearly half of them unused."""


class Stratification(NamedTuple):
    """One way to divide the narratives, and in which order strata get one narrative more."""

    members: Mapping[str, Sequence[PlannedNarrative]]
    """The narratives of each stratum, those that are drawn first in front."""
    turns: tuple[str, ...]
    """The stratum of each place: a sample of n has the first n of them, so that a larger one holds the smaller."""

    @property
    def smallest(self) -> int:
        """How many narratives it takes at least: one of each stratum."""
        return len(self.members)

    def sizes(self, narratives: int) -> dict[str, int]:
        """How many of each stratum are in a sample of so many."""
        counts = dict.fromkeys(self.members, 0)
        for stratum in self.turns[:narratives]:
            counts[stratum] += 1
        return counts


class Draw(NamedTuple):
    """A sampled narrative."""

    narrative: PlannedNarrative
    """The narrative with all its answers."""
    stratum: str
    """Where it was drawn."""
    probability: float
    """How likely it was to be drawn, over all seeds."""


def stratifications(narratives: Sequence[PlannedNarrative], seed: int) -> Iterator[Stratification]:
    """Ways to divide the narratives, the finest first: by language and type, by language, not at all."""
    yield _stratified(narratives, seed, lambda each: f"{each.language}/{each.kind}" if each.kind else each.language)
    yield _stratified(narratives, seed, lambda each: each.language)
    yield _stratified(narratives, seed, lambda each: ALL)


def _stratified(
    narratives: Sequence[PlannedNarrative], seed: int, stratum_of: Callable[[PlannedNarrative], str]
) -> Stratification:
    """The narratives by stratum, in an order that only seed and narrative decide.

    Each stratum gets a narrative; then whichever is furthest from its share does (Webster's divisor method).
    """
    members: defaultdict[str, list[PlannedNarrative]] = defaultdict(list)
    for each in sorted(narratives, key=lambda each: (_lot(seed, each.key), each.key)):
        members[stratum_of(each)].append(each)
    turns = sorted(members)
    waiting = [(1.5 / len(own), stratum, 1) for stratum, own in members.items() if len(own) > 1]
    heapq.heapify(waiting)
    while waiting:
        _, stratum, given = heapq.heappop(waiting)
        turns.append(stratum)
        if given + 1 < len(members[stratum]):
            heapq.heappush(waiting, ((given + 1.5) / len(members[stratum]), stratum, given + 1))
    return Stratification({stratum: members[stratum] for stratum in sorted(members)}, tuple(turns))


def _lot(seed: int, key: str) -> bytes:
    """A number that only seed and text decide, evenly spread over texts."""
    return hashlib.sha256(f"sample {seed} {key}".encode("utf-8", "surrogatepass")).digest()


def draw(strata: Stratification, narratives: int) -> list[Draw]:
    """The sample of so many narratives, in order of stratum and key."""
    return [
        Draw(each, stratum, count / len(strata.members[stratum]))
        for stratum, count in strata.sizes(narratives).items()
        for each in sorted(strata.members[stratum][:count], key=lambda each: each.key)
    ]


def narratives_within(strata: Stratification, hours: float, costs: Mapping[str, float]) -> int:
    """How many narratives fit into the hours, where each costs as many as `costs` says by its key.

    The number does not depend on which narratives are drawn, so that every narrative keeps its probability. Nine of
    ten samples of that number take no longer than the hours, unless a fifth of these would stay unused.
    """
    spread = {name: _mean_and_variance([costs[each.key] for each in own]) for name, own in strata.members.items()}
    counts = dict.fromkeys(strata.members, 0)
    expected = squares = 0.0
    fits, spent, after = 0, 0.0, (0.0, 0)
    for number, stratum in enumerate(strata.turns, start=1):
        mean, deviation = spread[stratum]
        size = len(strata.members[stratum])
        squares -= _sum_variance(counts[stratum], size, deviation)
        counts[stratum] += 1
        squares += _sum_variance(counts[stratum], size, deviation)
        expected += mean
        if expected + _SURE * math.sqrt(max(0.0, squares)) <= hours or expected <= _SAFE * hours:
            fits, spent = number, expected
        elif number == fits + 1:
            after = (expected, number)
        if expected > hours:
            break
    if 0 < spent < _LEAST * hours and after[1] == fits + 1 and after[0] <= _MOST * hours:
        return after[1]
    return fits


def _mean_and_variance(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and the variance where there are two or more."""
    return sum(values) / len(values), variance(values) if len(values) > 1 else 0.0


def _sum_variance(drawn: int, size: int, deviation: float) -> float:
    """The variance of the sum of so many, drawn without replacement."""
    return drawn * (1 - drawn / size) * deviation
