"""Whether what people labelled is a random part of what the judge judged."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from exports.statistics.ratings import BoolArray, FloatArray, IntArray

LEVEL = 0.01  # of a task: half of it for all groups, half for the judge's own scores
_HALVES = 2
_SCREEN = 2.5  # Standard deviations from which permutations are counted
_PERMUTATIONS = 20  # as large as what was seen, at which a test of the family is just no longer beyond the level
_FAR = 4.0  # Standard deviations by which the records that a sample stands for may differ from those that are there
_FEWEST_EXPECTED = 10.0  # Labelled narratives that a group must be expected to have before it is looked at so


class Division(NamedTuple):
    column: str
    names: tuple[str, ...]
    of_record: IntArray  # Number of each record's value


class Gap(NamedTuple):
    column: str
    name: str
    share: float
    elsewhere: float  # The same of all other records


class Leaning(NamedTuple):
    label: int  # Its column
    by_certainty: bool  # Whether it is how far the score is from one half, and not the score
    share: float


class _Score(NamedTuple):
    label: int
    by_certainty: bool
    units: IntArray  # The units that have it
    ranks: FloatArray  # Their ranks, from 0 to 1; equal scores share the mean of theirs


def uneven_share(narratives: IntArray, labelled: BoolArray, divisions: Sequence[Division], seed: int) -> Gap | None:
    """The group whose share of labelled records differs most, where some differ beyond chance.

    Two tests of each group, corrected by Bonferroni: labelled shares are exchanged among narratives, and which of a
    narrative's records are labelled within it (Mantel & Haenszel 1959).
    """
    tests = [
        (division, group, np.equal(division.of_record, group))
        for division in divisions
        if len(division.names) > 1
        for group in range(len(division.names))
    ]
    n_tests = 2 * len(tests) * _HALVES
    size = _counts(narratives, np.ones(len(narratives)))
    drawn = _counts(narratives, labelled)
    worst: tuple[float, Gap] | None = None
    for division, group, member in tests:
        own = _counts(narratives, member)
        p_between = _between(drawn / size, own - own.sum() / size.sum() * size, n_tests, seed)
        found = _counts(narratives, labelled & member)
        p = min(p_between, _within(size, drawn, own, found)) * n_tests
        if p <= LEVEL and (worst is None or p < worst[0]):
            shares = float(labelled[member].mean()), float(labelled[~member].mean())
            worst = (p, Gap(division.column, division.names[group], *shares))
    return worst and worst[1]


def chosen_by_score(
    narratives: IntArray, records: IntArray, labelled: BoolArray, p_yes: FloatArray, seed: int
) -> Leaning | None:
    """A label by whose P(yes), or its distance from one half, labelled units differ from the rest beyond chance.

    Three tests of each, corrected by Bonferroni: labelled shares are exchanged among narratives, among the records of
    each narrative, and among the units of each record.
    """
    scores = list(_scores(p_yes))
    n_tests = 3 * len(scores) * _HALVES
    for score in scores:
        chosen = labelled[score.units]
        if not chosen.any() or chosen.all():
            continue
        _, narrative = np.unique(narratives[score.units], return_inverse=True)
        _, first, record = np.unique(records[score.units], return_index=True, return_inverse=True)
        shares, ranks = (_means(record, each) for each in (chosen.astype(np.float64), score.ranks))
        size = _counts(narrative, np.ones(len(narrative)))
        parts = _counts(narrative, score.ranks - score.ranks.mean())
        if (
            _exchanged(record, chosen.astype(np.float64), score.ranks) * n_tests <= LEVEL
            or _exchanged(narrative[first], shares, ranks) * n_tests <= LEVEL
            or _between(_counts(narrative, chosen) / size, parts, n_tests, seed) * n_tests <= LEVEL
        ):
            higher = 0.5 + float(score.ranks[chosen].mean() - score.ranks[~chosen].mean())
            return Leaning(score.label, score.by_certainty, higher)
    return None


def _scores(p_yes: FloatArray) -> Iterator[_Score]:
    """What units are ranked by; nothing by which all are alike."""
    for label in range(p_yes.shape[1]):
        units = np.flatnonzero(~np.isnan(p_yes[:, label]))
        given = p_yes[units, label]
        # Equal but for rounding is equal: .3 is as far from one half as .7.
        for by_certainty, each in ((False, given), (True, np.round(np.abs(given - 0.5), 9))):
            _, number, count = np.unique(each, return_inverse=True, return_counts=True)
            if len(count) > 1:
                yield _Score(label, by_certainty, units, ((np.cumsum(count) - count / 2) / len(units))[number])


def _means(numbers: IntArray, each: FloatArray) -> FloatArray:
    return _counts(numbers, each) / _counts(numbers, np.ones(len(numbers)))


def _exchanged(strata: IntArray, shares: FloatArray, scores: FloatArray) -> float:
    """A bound of p (Bennett 1962, J Am Stat Assoc 57:33–45): scores of rare answers are too skew for a normal one."""
    _, strata = np.unique(strata, return_inverse=True)
    size = _counts(strata, np.ones(len(strata)))
    own, score = shares - _means(strata, shares)[strata], scores - _means(strata, scores)[strata]
    variance = float((_counts(strata, own**2) * _counts(strata, score**2) / np.maximum(size - 1, 1)).sum())
    most = float(np.abs(score).max(initial=0.0))
    if variance <= 0 or most <= 0:
        return 1.0
    excess = most * abs(float(own @ score)) / variance
    return min(2 * math.exp(-variance / most**2 * ((1 + excess) * math.log1p(excess) - excess)), 1.0)


def _counts(narratives: IntArray, each: FloatArray | BoolArray) -> FloatArray:
    found: FloatArray = np.bincount(narratives, each, int(narratives.max(initial=0)) + 1).astype(np.float64)
    return found


def _between(shares: FloatArray, parts: FloatArray, n_tests: int, seed: int) -> float:
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
    """The group that a sample with these inclusion probabilities (NaN: not labelled) misses most, if any."""
    stands_for, n_narratives = _stands_for(narratives, probabilities)
    worst: tuple[float, Gap] | None = None
    for division in divisions:
        for group, name in enumerate(division.names if len(division.names) > 1 else ()):
            member = np.equal(division.of_record, group)
            part = float(member.mean())
            expected = part * n_narratives
            if expected < _FEWEST_EXPECTED:
                continue
            distance = _distance(narratives, stands_for, member - part, n_narratives)
            if distance > _FAR and (worst is None or distance > worst[0]):
                shares = float(stands_for[member].mean()), float(stands_for[~member].mean())
                worst = (distance, Gap(division.column, name, *shares))
    return worst and worst[1]


def misfit_by_score(narratives: IntArray, probabilities: FloatArray, p_yes: FloatArray) -> Leaning | None:
    """The label by whose scores a sample with these inclusion probabilities misses the judged units most."""
    worst: tuple[float, Leaning] | None = None
    for score in _scores(p_yes):
        given = probabilities[score.units]
        if np.isnan(given).all():
            continue
        _, narrative = np.unique(narratives[score.units], return_inverse=True)
        stands_for, n_narratives = _stands_for(narrative, given)
        centred = score.ranks - score.ranks.mean()
        distance = _distance(narrative, stands_for, centred, n_narratives)
        if n_narratives >= _FEWEST_EXPECTED and distance > _FAR and (worst is None or distance > worst[0]):
            worst = (distance, Leaning(score.label, score.by_certainty, 0.5 + float((stands_for * centred).mean())))
    return worst and worst[1]


def _stands_for(narratives: IntArray, probabilities: FloatArray) -> tuple[FloatArray, int]:
    """How many of all each stands for, 0 where it is not labelled, and how many narratives are labelled."""
    labelled = ~np.isnan(probabilities)
    stands_for = np.where(labelled, 1 / np.where(labelled, probabilities, 1.0), 0.0)
    return stands_for * (len(narratives) / stands_for.sum()), len(np.unique(narratives[labelled]))


def _distance(narratives: IntArray, stands_for: FloatArray, centred: FloatArray, n_narratives: int) -> float:
    """Standard deviations by which the sum of what is centred, as the labelled ones stand for it, is off 0."""
    each = stands_for * centred
    seen = float((_counts(narratives, each) ** 2).sum())
    by_chance = float((centred**2).mean()) * len(centred) ** 2 / n_narratives
    return abs(float(each.sum())) / math.sqrt(max(seen, by_chance))


def divisions_of(
    columns: Sequence[str], records: Sequence[str], provenance: Mapping[str, Mapping[str, str]]
) -> Iterator[Division]:
    for column in dict.fromkeys(columns):
        values = [provenance.get(record, {}).get(column, "") for record in records]
        names = tuple(sorted(set(values)))
        number = {name: place for place, name in enumerate(names)}
        yield Division(column, names, np.array([number[value] for value in values], np.int64))
