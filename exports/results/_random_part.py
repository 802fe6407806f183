"""Whether what people labelled is a random part of what the judge judged: one share for all groups, beyond chance.

Source: exports/contracts/results.md#with-a-judges-help.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from exports.agreement.consensus import BoolArray
from exports.agreement.ratings import FloatArray, IntArray

LEVEL = 0.01
"""How often a random part may be called none, over all groups of a task."""
_SCREEN = 2.5
"""Standard deviations from which permutations are counted."""
_PERMUTATIONS = 20
"""Permutations as large as what was seen at which a test of the family is just no longer beyond the level."""
_FAR = 4.0
"""Standard deviations by which the records that a sample stands for may differ from those that are there."""
_FEWEST_EXPECTED = 10.0
"""Labelled narratives that a group must be expected to have before it is looked at so."""


class Division(NamedTuple):
    """The records by one column."""

    column: str
    """The column."""
    names: tuple[str, ...]
    """Its values; empty where it is not known."""
    of_record: IntArray
    """Number of each record's value."""


class Gap(NamedTuple):
    """A group whose share of labelled records is not that of the others."""

    column: str
    """The column."""
    name: str
    """Its value."""
    share: float
    """Share of the group's records that people labelled; where probabilities are given, share of its records that the
    labelled ones stand for."""
    elsewhere: float
    """The same of all other records."""


def uneven_share(narratives: IntArray, labelled: BoolArray, divisions: Sequence[Division], seed: int) -> Gap | None:
    """The group that differs most where some differ beyond chance; None where none does.

    Two tests of each group, corrected by Bonferroni. Between narratives: their labelled shares are exchanged among
    narratives, and how many labelled records the group would have is counted, beyond its part of every narrative.
    Within narratives: which of a narrative's records are labelled is exchanged (Mantel & Haenszel 1959).

    Args:
        narratives: Number of the narrative of each record that was judged, counted from 0.
        labelled: Whether people labelled the record.
        divisions: The records by each column.
        seed: Of the permutations.
    """
    tests = [
        (division, group, np.equal(division.of_record, group))
        for division in divisions
        if len(division.names) > 1
        for group in range(len(division.names))
    ]
    size = _counts(narratives, np.ones(len(narratives)))
    drawn = _counts(narratives, labelled)
    worst: tuple[float, Gap] | None = None
    for division, group, member in tests:
        own = _counts(narratives, member)
        p_between = _between(drawn / size, own - own.sum() / size.sum() * size, 2 * len(tests), seed)
        found = _counts(narratives, labelled & member)
        p = min(p_between, _within(size, drawn, own, found)) * 2 * len(tests)
        if p <= LEVEL and (worst is None or p < worst[0]):
            shares = float(labelled[member].mean()), float(labelled[~member].mean())
            worst = (p, Gap(division.column, division.names[group], *shares))
    return worst and worst[1]


def _counts(narratives: IntArray, each: FloatArray | BoolArray) -> FloatArray:
    """The sum over the records of each narrative."""
    found: FloatArray = np.bincount(narratives, each, int(narratives.max(initial=0)) + 1).astype(np.float64)
    return found


def _between(shares: FloatArray, parts: FloatArray, n_tests: int, seed: int) -> float:
    """Two-sided p of the sum of shares times parts when shares are exchanged among narratives."""
    n = len(shares)
    spread = float(((shares - shares.mean()) ** 2).sum() * (parts**2).sum())
    observed = abs(float(shares @ parts))
    if n < 2 or spread <= 0 or observed < _SCREEN * math.sqrt(spread / (n - 1)):
        return 1.0
    generator = np.random.default_rng(seed)
    permutations = math.ceil(_PERMUTATIONS * n_tests / LEVEL)
    exchanged = shares.copy()
    as_large = 0
    for _ in range(permutations):
        generator.shuffle(exchanged)
        as_large += abs(float(exchanged @ parts)) >= observed - 1e-9
        if as_large >= _PERMUTATIONS:
            return 1.0
    return (1 + as_large) / (1 + permutations)


def _within(size: FloatArray, drawn: FloatArray, own: FloatArray, found: FloatArray) -> float:
    """Two-sided p of how many labelled records the group has, given each narrative's, by the normal approximation."""
    several = size > 1
    size, drawn, own, found = size[several], drawn[several], own[several], found[several]
    variance = float((drawn * (size - drawn) * own * (size - own) / (size**2 * (size - 1))).sum())
    distance = max(abs(float((found - drawn * own / size).sum())) - 0.5, 0.0)
    return math.erfc(distance / math.sqrt(2 * variance)) if variance > 0 else 1.0


def misfit(narratives: IntArray, probabilities: FloatArray, divisions: Sequence[Division]) -> Gap | None:
    """The group that a sample with inclusion probabilities misses most, where it stands for another number of records.

    Args:
        narratives: Number of the narrative of each record that was judged, counted from 0.
        probabilities: Inclusion probability of the record; NaN where people did not label it.
        divisions: The records by each column.
    """
    labelled = ~np.isnan(probabilities)
    known = np.where(labelled, probabilities, 1.0)
    n_narratives = len(np.unique(narratives[labelled]))
    stands_for = np.where(labelled, 1 / known, 0.0)
    stands_for *= len(narratives) / stands_for.sum()
    worst: tuple[float, Gap] | None = None
    for division in divisions:
        for group, name in enumerate(division.names if len(division.names) > 1 else ()):
            member = np.equal(division.of_record, group)
            part = float(member.mean())
            expected = part * n_narratives
            if expected < _FEWEST_EXPECTED:
                continue
            each = stands_for * (member - part)
            by_narrative = _counts(narratives, each)
            seen = float((by_narrative**2).sum())
            by_chance = float(member.sum()) ** 2 * (1 - part) / expected
            distance = abs(float(each.sum())) / math.sqrt(max(seen, by_chance))
            if distance > _FAR and (worst is None or distance > worst[0]):
                shares = float(stands_for[member].mean()), float(stands_for[~member].mean())
                worst = (distance, Gap(division.column, name, *shares))
    return worst and worst[1]


def divisions_of(
    columns: Sequence[str], records: Sequence[str], provenance: Mapping[str, Mapping[str, str]]
) -> Iterator[Division]:
    """The records by each of the columns."""
    for column in dict.fromkeys(columns):
        values = [provenance.get(record, {}).get(column, "") for record in records]
        names = tuple(sorted(set(values)))
        number = {name: place for place, name in enumerate(names)}
        yield Division(column, names, np.array([number[value] for value in values], np.int64))
