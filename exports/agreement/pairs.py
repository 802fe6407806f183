"""Two annotators on one label: Cohen's kappa, what stands behind it, and its interval.

Source: exports/contracts/agreement.md#coefficients.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from exports.agreement.coefficients import ratio
from exports.agreement.patterns import Entries, LabelPatterns, TaskPatterns, task_patterns
from exports.agreement.ratings import MISSING, FloatArray, IntArray, Ratings
from exports.agreement.resampling import BoolArray, Replicates, Statistic, bootstrap_frames, interval
from exports.agreement.schema import Interval, Overlap, PairAgreement, UndefinedReason

FEW_SHARED = 20
"""Pairs that share fewer units have no interval, and their figures say little."""
NEGLIGIBLE = 1e-18


class LabelPairs(NamedTuple):
    """The pairs of annotators that share units on one label."""

    raters: IntArray
    """Pairs × 2: numbers of the annotators, the first below the second; sorted."""
    cells: IntArray
    """Pairs × 4: units on which both say yes, only the first, only the second, neither."""
    entries: Entries
    """The cells of each pattern: patterns × four a pair."""

    @property
    def kappas(self) -> FloatArray:
        """Cohen's kappa of each pair; NaN where both say the same everywhere."""
        return kappas(self.cells.reshape(-1).astype(np.float64))

    @property
    def with_interval(self) -> IntArray:
        """Places of the pairs whose kappa gets an interval."""
        return np.flatnonzero((self.cells.sum(axis=1) >= FEW_SHARED) & ~np.isnan(self.kappas))


def measure_pairs(ratings: Ratings, resamples: int, seed: int) -> tuple[PairAgreement, ...]:
    """Every pair of annotators, label by label, by name; kappa has an interval where they share 20 units or more."""
    task = task_patterns(ratings)
    pairs = [label_pairs(task, label) for label in task.labels]
    return read_pairs(task, pairs, bootstrap_frames(plan_pairs(task, pairs), resamples, seed))


def label_pairs(task: TaskPatterns, label: LabelPatterns) -> LabelPairs:
    """The pairs that share units, with their cells."""
    n_annotators = len(task.annotators)
    patterns, codes, cells = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    # Ratings are sorted by pattern and annotator: each pair is met at the distance of its two ratings.
    for distance in range(1, int(label.ratings.max(initial=0))):
        first = np.flatnonzero(label.patterns[distance:] == label.patterns[:-distance])
        second = first + distance
        patterns.append(label.patterns[first])
        codes.append(label.raters[first] * n_annotators + label.raters[second])
        cells.append(2 * (1 - label.yes[first]) + 1 - label.yes[second])
    found, places = np.unique(np.concatenate(codes), return_inverse=True)
    columns = 4 * places + np.concatenate(cells)
    at = np.concatenate(patterns)
    return LabelPairs(
        raters=np.stack([found // max(n_annotators, 1), found % max(n_annotators, 1)], axis=1),
        cells=np.bincount(columns, label.units[at], 4 * len(found)).astype(np.int64).reshape(-1, 4),
        entries=Entries(at, columns, np.ones(len(at)), 4 * len(found)),
    )


def plan_pairs(task: TaskPatterns, pairs: Sequence[LabelPairs]) -> list[tuple[Statistic, BoolArray]]:
    """One statistic a label: kappa of the pairs with an interval, and at last the mean over all that are defined."""

    def statistic(label: LabelPatterns, each: LabelPairs) -> Statistic:
        chosen = each.with_interval

        def figures(totals: FloatArray) -> FloatArray:
            found = kappas(totals)
            return np.concatenate([found[..., chosen], mean_of_defined(found)], axis=-1)

        return task.statistic([(label, each.entries)], figures)

    return [
        (statistic(label, each), task.frame(label, at_least=2)) for label, each in zip(task.labels, pairs, strict=True)
    ]


def kappas(totals: FloatArray) -> FloatArray:
    """Cohen's kappa of each pair from its four cells (… × four a pair): … × pairs, NaN where both are constant alike.

    (p_o − p_e)/(1 − p_e), multiplied by n²: one constant annotator gives exactly 0.

    Source: Cohen 1960.
    """
    both, first, second, neither = (totals[..., cell::4] for cell in range(4))
    chance = (both + first) * (first + neither) + (both + second) * (second + neither)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: FloatArray = 2 * (both * neither - first * second) / chance
    return found


def mean_of_defined(values: FloatArray) -> FloatArray:
    """The mean over the last axis of what is not NaN (… × 1); NaN where nothing is."""
    defined = ~np.isnan(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean: FloatArray = np.where(defined, values, 0).sum(axis=-1, keepdims=True) / defined.sum(-1, keepdims=True)
    return mean


def read_pairs(
    task: TaskPatterns, pairs: Sequence[LabelPairs], replicates: Sequence[Replicates]
) -> tuple[PairAgreement, ...]:
    """Every pair, from the replicates of `plan_pairs`."""
    found: list[PairAgreement] = []
    for label, each, resampled in zip(task.labels, pairs, replicates, strict=True):
        columns = {int(place): column for column, place in enumerate(each.with_interval)}
        places = {(int(first), int(second)): place for place, (first, second) in enumerate(each.raters)}
        for first, second in itertools.combinations(range(len(task.annotators)), 2):
            place = places.get((first, second))
            kappa_interval = interval(resampled, columns[place]) if place in columns else None
            found.append(
                pair_agreement(
                    label.label,
                    task.annotators[first],
                    task.annotators[second],
                    (0, 0, 0, 0) if place is None else tuple(each.cells[place].tolist()),
                    kappa_interval if isinstance(kappa_interval, Interval) else None,
                )
            )
    return tuple(found)


def pair_agreement(
    label: str, rater_a: str, rater_b: str, cells: tuple[int, ...], kappa_interval: Interval | None
) -> PairAgreement:
    """The figures of one pair from its four cells.

    Source: exports/contracts/agreement.md#coefficients.
    """
    n11, n10, n01, n00 = cells
    n = n11 + n10 + n01 + n00
    margins = (n11 + n10) * (n01 + n00) * (n11 + n01) * (n10 + n00)
    chance = (n11 + n10) * (n10 + n00) + (n11 + n01) * (n01 + n00)
    figures = {
        "percent_agreement": (n11 + n00) / n if n else None,
        "cohen_kappa": 2 * (n11 * n00 - n10 * n01) / chance if chance else None,
        "pabak": (n11 + n00 - n10 - n01) / n if n else None,
        "prevalence_index": (n11 - n00) / n if n else None,
        "bias_index": (n10 - n01) / n if n else None,
        "positive_agreement": 2 * n11 / (2 * n11 + n10 + n01) if n11 + n10 + n01 else None,
        "negative_agreement": 2 * n00 / (2 * n00 + n10 + n01) if n00 + n10 + n01 else None,
        "mcc": (n11 * n00 - n10 * n01) / math.sqrt(margins) if margins else None,
        "mcnemar_p": mcnemar_p(n10, n01) if n else None,
    }
    return PairAgreement(
        label=label,
        rater_a=rater_a,
        rater_b=rater_b,
        n_shared=n,
        n11=n11,
        n10=n10,
        n01=n01,
        n00=n00,
        **figures,
        interval=kappa_interval,
        undefined={name: undefined_reason(name, n) for name, value in figures.items() if value is None},
    )


def undefined_reason(figure: str, n_shared: int) -> UndefinedReason:
    """Why a figure of a pair is None."""
    if not n_shared:
        return "no_pairable_items"
    return "constant_both_raters" if figure == "cohen_kappa" else "no_variation"


def mcnemar_p(only_first: int, only_second: int) -> float:
    """Exact two-sided p of McNemar's test: twice the smaller tail of a fair coin, at most 1.

    The tail is added up from its largest term downwards until the rest is negligible.
    """
    n, k = only_first + only_second, min(only_first, only_second)
    term = math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2))
    tail = 0.0
    while k >= 0 and term > tail * NEGLIGIBLE:
        tail += term
        term *= k / (n - k + 1)
        k -= 1
    return min(1.0, 2 * tail)


def measure_overlap(ratings: Ratings) -> Overlap:
    """Units by number of responses, and the groups of annotators that share units, each in the order of names."""
    per_unit = np.bincount(ratings.units, minlength=len(ratings.unit_records))
    counts, units = np.unique(per_unit, return_counts=True)
    # Responses are sorted by unit, so a unit joins all its annotators by its neighbouring responses.
    together = ratings.units[1:] == ratings.units[:-1]
    joined = np.unique(
        np.stack([ratings.response_annotators[:-1][together], ratings.response_annotators[1:][together]], axis=1),
        axis=0,
    )
    groups = components(len(ratings.annotators), joined.tolist())
    return Overlap(
        units_by_ratings={int(count): int(n) for count, n in zip(counts, units, strict=True)},
        components=tuple(tuple(ratings.annotators[number] for number in group) for group in groups),
    )


def components(n_nodes: int, edges: Iterable[tuple[int, int]]) -> list[list[int]]:
    """The connected components of a graph, by their smallest node; each lists its nodes in order."""
    parent = list(range(n_nodes))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for one, other in edges:
        low, high = sorted((root(one), root(other)))
        parent[high] = low
    found: dict[int, list[int]] = {}
    for node in range(n_nodes):
        found.setdefault(root(node), []).append(node)
    return list(found.values())


def identical_vectors(ratings: Ratings) -> float | None:
    """Share of pairs of responses to one unit that agree on every label; None without pairs.

    All pairs of all units count alike. A response that lacks a label forms no pair.
    """
    complete = (ratings.values != MISSING).all(axis=1)
    units, values = ratings.units[complete], ratings.values[complete].astype(np.int64)
    vectors = units << values.shape[1]
    for place in range(values.shape[1]):
        vectors |= values[:, place] << place
    pairs, identical = (
        int((counts * (counts - 1)).sum()) for counts in (np.bincount(units), np.unique(vectors, return_counts=True)[1])
    )
    return ratio(float(identical), float(pairs))
