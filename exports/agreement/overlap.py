"""How units are shared out among annotators, and how often two of them give the same answers throughout."""

from collections.abc import Iterable

import numpy as np

from exports.agreement.coefficients import ratio
from exports.agreement.ratings import MISSING, Ratings
from exports.agreement.schema import Overlap


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
