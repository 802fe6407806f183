"""How often our own 95 % interval holds the true alpha of a scale, in simulated studies."""

import sys
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from exports.statistics.agreement_schema import Interval
from exports.statistics.ratings import BoolArray, FloatArray, IntArray, Ratings, ScaleName
from exports.statistics.resampling import alpha_interval, bootstrap
from exports.statistics.scaled_labels import ScaledEstimators
from exports.statistics.scales import COMPUTED
from tests.support.scaled_ratings import scaled_ratings

SEED, STUDIES, GIVEN = 20261128, 100, 0.25
ALPHA = COMPUTED.index("krippendorff_alpha")
SHARES = {"even": (0.2, 0.2, 0.2, 0.2, 0.2), "rare": (0.8, 0.1, 0.04, 0.03, 0.03)}


class Cell(NamedTuple):
    """A population: five values, or a hundred times as many on an interval scale; annotators err one by one."""

    scale: ScaleName
    groups: int  # Of one to nine units that are alike, or of one unit each
    is_grouped: bool
    values: str  # Of `SHARES`
    error: float  # Share of ratings that are drawn anew, or a step away from the truth


def drawn(cell: Cell, groups: int, random: np.random.Generator) -> Ratings:
    """One study: two to five ratings a unit."""
    sizes = random.choice((1, 1, 2, 3, 9), groups) if cell.is_grouped else np.ones(groups, np.int64)
    records = np.repeat(np.arange(groups), sizes)
    truth = random.choice(5, len(records), p=SHARES[cell.values])
    alike = random.random(len(records)) < 0.5 * cell.is_grouped
    truth = np.where(alike, random.choice(5, groups, p=SHARES[cell.values])[records], truth)
    n_ratings = random.integers(2, 6, len(records))
    units = np.repeat(np.arange(len(records)), n_ratings)
    wrong: BoolArray = random.random(len(units)) < cell.error
    said: IntArray = truth[units]
    if cell.scale == "nominal":
        said = np.where(wrong, random.choice(5, len(units), p=SHARES[cell.values]), said)
    else:
        said = np.clip(said + wrong * random.choice((-1, 1), len(units)), 0, 4)
    places: FloatArray = np.arange(5.0)
    if cell.scale == "interval":
        said = said * 100 + random.integers(0, 60, len(units))
        places = np.arange(500.0)
    return scaled_ratings(cell.scale, units, records, said, places)


def measured(ratings: Ratings) -> ScaledEstimators:
    (label,) = ratings.scaled
    return ScaledEstimators(ratings, label)


@cache
def true_alpha(cell: Cell) -> float:
    found = measured(drawn(cell, 60_000, np.random.default_rng(SEED)))
    return float(found.over_pairable.formula(found.totals)[ALPHA])


def held(cell: Cell, studies: int, resamples: int) -> list[bool]:
    """Of each study that has an interval whether it holds alpha."""
    random = np.random.default_rng([SEED, cell.groups])
    found = []
    for study in range(studies):
        each = measured(drawn(cell, cell.groups, random))
        replicates = bootstrap([each.over_pairable], resamples, study)[each.over_pairable]
        interval = alpha_interval(replicates, ALPHA, each.support)
        if isinstance(interval, Interval):
            found.append(interval.low - 1e-12 <= true_alpha(cell) <= interval.high + 1e-12)
    return found


def test_a_sample_of_studies_on_each_scale_holds_alpha_and_a_rare_value_in_few_is_held_from_above() -> None:
    for scale in ("nominal", "ordinal", "interval"):
        told = held(Cell(scale, 50, True, "even", 0.1), 30, 199)
        assert len(told) == 30
        assert np.mean(told) >= 0.85
    rare = held(Cell("nominal", 20, False, "rare", 0.4), 30, 99)  # nobody agrees on it: an upper end only
    assert len(rare) > 20
    assert np.mean(rare) >= 0.85


@pytest.mark.soak
def test_intervals_of_alpha_on_every_scale_hold_it_in_at_least_90_of_100_studies() -> None:
    """By scale, grouping, values and groups, over three rates of error, where enough studies get an interval."""
    low: list[str] = []
    every: dict[ScaleName, list[bool]] = {}
    scales: tuple[ScaleName, ...] = ("nominal", "ordinal", "interval")
    for scale, is_grouped, values, groups in product(scales, (False, True), SHARES, (20, 50, 200)):
        parts = [held(Cell(scale, groups, is_grouped, values, error), STUDIES, 299) for error in (0.02, 0.1, 0.4)]
        found = [each for part in parts for each in part]
        every.setdefault(scale, []).extend(found)
        name = f"{scale}, {'groups' if is_grouped else 'units'}, {values} values, {groups}"
        shares = ", ".join(f"{np.mean(part):.2f} of {len(part)}" for part in parts if part)
        sys.stdout.write(f"{name}: {np.mean(found):.3f} ({shares})\n")
        if len(found) >= GIVEN * 3 * STUDIES and np.mean(found) < 0.9:
            low.append(name)
    sys.stdout.write("".join(f"{scale}: {np.mean(found):.3f} of {len(found)}\n" for scale, found in every.items()))
    assert not low
