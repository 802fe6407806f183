"""How often the interval of a mean on a scale holds the truth; the figures are in exports/contracts/results.md."""

import sys
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from exports.statistics.ratings import FloatArray, ScaleName
from exports.statistics.results import measure_results
from exports.statistics.results_schema import RateInterval
from exports.statistics.study import Study
from tests.support.scaled_ratings import scaled_ratings

SEED, STUDIES = 20261128, 400
SHIFT = 0.5  # How much higher the second group is before values are made of it


class Cell(NamedTuple):
    scale: ScaleName
    clusters: int
    alike: float  # Share of the variance between units that clusters have in common


def values_of(cell: Cell, inner: FloatArray) -> FloatArray:
    """Of an ordinal scale five steps, most of them low; of an interval one amounts, a few of them large."""
    if cell.scale == "ordinal":
        return np.clip(np.round(1.0 + 1.1 * inner), 0, 4)
    amounts: FloatArray = np.round(np.exp(0.6 * inner), 3)
    return amounts


def drawn(cell: Cell, random: np.random.Generator, clusters: int) -> Study:
    """One to four units of each of two groups in a cluster, one to three ratings of a unit."""
    cluster = np.repeat(np.arange(clusters), 2)
    group = np.tile([0, 1], clusters)
    sizes = random.integers(1, 5, 2 * clusters)
    records, groups = np.repeat(cluster, sizes), np.repeat(group, sizes)
    common = random.normal(size=clusters)[records]
    inner = np.sqrt(cell.alike) * common + np.sqrt(1 - cell.alike) * random.normal(size=len(records)) + SHIFT * groups
    units = np.repeat(np.arange(len(records)), random.integers(1, 4, len(records)))
    said = values_of(cell, inner[units] + 0.5 * random.normal(size=len(units)))
    places, codes = np.unique(said, return_inverse=True)
    if cell.scale == "ordinal":
        places, codes = np.arange(5.0), said.astype(np.int64)
    ratings = scaled_ratings(cell.scale, units, records, codes, places)
    return Study.of_ratings(ratings._replace(unit_groups=tuple("ab"[each] for each in groups.tolist())), "group")


def figures(study: Study) -> list[tuple[float, RateInterval | None]]:
    """The mean of the first group, and the difference of both."""
    scaled = measure_results(study, by=("group",), findings={}).tasks["ratings"].scaled
    assert scaled
    mean = scaled["score"].mean
    assert mean
    (apart,) = mean.differences
    first = mean.groups[0]
    return [(first.rate or 0.0, first.interval), (apart.difference or 0.0, apart.interval)]


def coverage(cell: Cell, studies: int) -> list[float]:
    truth = [value for value, _ in figures(drawn(cell, np.random.default_rng(SEED), 60_000))]
    held = np.zeros((studies, 2))
    for number in range(studies):
        found = figures(drawn(cell, np.random.default_rng([SEED, cell.clusters, number]), cell.clusters))
        for place, (_, ends) in enumerate(found):
            held[number, place] = ends is not None and ends.low <= truth[place] <= ends.high
    shares: list[float] = held.mean(axis=0).tolist()
    return shares


@pytest.mark.parametrize("scale", ["ordinal", "interval"])
def test_a_sample_of_intervals_of_means_and_differences_holds_the_truth(scale: ScaleName) -> None:
    assert min(coverage(Cell(scale, 30, 0.5), 60)) >= 0.88


@pytest.mark.soak
def test_intervals_of_means_and_differences_hold_the_truth() -> None:
    scales: tuple[ScaleName, ...] = ("ordinal", "interval")
    low = []
    for scale, alike, clusters in product(scales, (0.0, 0.5), (12, 30, 100)):
        found = coverage(Cell(scale, clusters, alike), STUDIES)
        sys.stdout.write(f"{scale}, {alike} alike, {clusters}: mean {found[0]:.3f}, difference {found[1]:.3f}\n")
        if min(found) < 0.88:
            low.append((scale, alike, clusters))
    assert not low
