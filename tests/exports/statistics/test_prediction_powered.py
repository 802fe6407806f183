"""Rates with a judge's help: against the authors' library, and at the edges."""

import numpy as np
import pytest

from exports.statistics.judge_help import Units, prediction_powered
from exports.statistics.rates import rate_ends
from exports.statistics.ratings import FloatArray
from tests.support.judge_help_simulation import Design, draw_units, widths
from tests.support.judge_help_simulation import Studied as Seen


def _sequence(length: int, factor: int, start: int) -> FloatArray:
    """Numbers that look drawn at random between 0 and 1."""
    found, value = [], start
    for _ in range(length):
        value = (value * factor + 12_345) % 65_537
        found.append(value / 65_537)
    return np.array(found)


def powered_case(name: str, labelled: int, more: int) -> tuple[FloatArray, FloatArray]:
    """Values and the judge's probabilities of labelled units, then of the others."""
    size = labelled + more
    score, noise = _sequence(size, 75, 7), _sequence(size, 1_027, 11)
    values = (score > 0.65).astype(np.float64)
    p_yes = np.clip(0.6 * score + 0.4 * noise, 0.01, 0.99)
    if name == "shares":
        values = (values + (score + noise > 1)) / 2
    elif name == "yes or no":
        p_yes = (p_yes > 0.55).astype(np.float64)
    elif name == "biased":
        p_yes = np.minimum(0.3 * p_yes + 0.69, 1)
    elif name == "contrary":
        p_yes = 1 - p_yes
    elif name == "timid":
        p_yes = 0.45 + 0.1 * p_yes
    return values, p_yes


REFERENCES = [
    ("probabilities", 100, 900, 0.379214652283, 0.305527380203, 0.452901924363),
    ("yes or no", 120, 360, 0.358452006388, 0.286117745918, 0.430786266857),
    ("shares", 60, 60, 0.512994981171, 0.428411509262, 0.597578453080),
    ("biased", 200, 1800, 0.389377571957, 0.327381906652, 0.451373237261),
    ("contrary", 80, 720, 0.450000000000, 0.340983885473, 0.559016114527),
    ("timid", 90, 810, 0.419592551338, 0.320471586488, 0.518713516188),
]
"""`ppi_mean_pointestimate` and `ppi_mean_ci(alpha=0.05)` of ppi-python 0.2.3 on the cases of `powered_case`."""


CASE = powered_case("probabilities", 60, 540)


def units_of(values: FloatArray, p_yes: FloatArray, labelled: int, a_narrative: int = 1) -> Units:
    """Units of which the first are labelled, so many of them in each narrative."""
    voted = np.arange(len(values)) < labelled
    narratives = np.arange(len(values)) // a_narrative
    return Units(narratives, voted, np.where(voted, values, np.nan), np.ones(len(values)), p_yes)


@pytest.mark.parametrize(("name", "labelled", "more", "rate", "low", "high"), REFERENCES)
def test_rates_are_ppi_pythons(name: str, labelled: int, more: int, rate: float, low: float, high: float) -> None:
    found = prediction_powered(units_of(*powered_case(name, labelled, more), labelled))
    assert (found.method, found.rate) == ("normal", pytest.approx(rate, abs=1e-9))
    assert found.ends == pytest.approx((low, high), abs=1e-9)


def test_the_weight_has_the_smallest_variance_and_gaps_ties_and_weights_count_by_peoples_votes() -> None:
    found = prediction_powered(units_of(np.array([1.0, 0, 0, 0]), np.array([0.8, 0.4, 0.6, 0.2]), 2))
    assert (found.weight, found.rate) == (pytest.approx(1.5), pytest.approx(0.35))
    values, p_yes = powered_case("probabilities", 100, 900)
    lacking = p_yes.copy()
    lacking[:5] = np.nan
    found = prediction_powered(units_of(values, lacking, 100))
    excess = p_yes[5:100].mean() - p_yes[5:].mean()
    assert found.rate == pytest.approx(values[:100].mean() - found.weight * excess)
    units = units_of(values, p_yes, 100)
    units.values[:10] = np.nan
    found = prediction_powered(units)
    assert found.rate == pytest.approx(values[10:100].mean() - found.weight * (p_yes[:100].mean() - p_yes.mean()))
    weights = np.where(np.arange(1000) % 3 == 0, 4.0, 1.0)
    found = prediction_powered(units_of(values, p_yes, 100)._replace(weights=weights))
    own = weights[:100] / weights[:100].sum()
    assert found.rate == pytest.approx(own @ values[:100] - found.weight * (own @ p_yes[:100] - p_yes.mean()))


def test_copies_and_labelled_narratives_are_one_case_each_and_a_perfect_judge_leaves_a_width() -> None:
    values, p_yes = powered_case("probabilities", 90, 810)
    once = prediction_powered(units_of(values, p_yes, 90))
    copies = prediction_powered(units_of(np.repeat(values, 4), np.repeat(p_yes, 4), 360, a_narrative=4))
    apart = prediction_powered(units_of(np.repeat(values, 4), np.repeat(p_yes, 4), 360))
    assert copies.rate == pytest.approx(once.rate, abs=0.01)
    assert copies.ends[1] - copies.ends[0] == pytest.approx(once.ends[1] - once.ends[0], rel=0.06)
    assert apart.ends[1] - apart.ends[0] < 0.6 * (copies.ends[1] - copies.ends[0])
    values, p_yes = powered_case("probabilities", 60, 240)
    narratives = np.tile(np.arange(60), 5)
    voted = np.arange(300) < 60
    given = np.where(voted, np.tile(values[:60], 5), np.nan)
    alike = Units(narratives, voted, given, np.ones(300), np.tile(p_yes[:60], 5))
    found, alone = prediction_powered(alike), rate_ends(values[:60], np.ones(60), np.ones(60))
    assert found.rate == pytest.approx(values[:60].mean())
    assert found.ends[1] - found.ends[0] == pytest.approx(alone[1] - alone[0], rel=0.02)
    values = CASE[0]
    found = prediction_powered(units_of(values, values.copy(), 60))
    alone = rate_ends(values[:60], np.ones(60), np.ones(60))
    assert found.rate == pytest.approx(values.mean(), abs=0.005)
    assert 0.25 < (found.ends[1] - found.ends[0]) / (alone[1] - alone[0]) < 0.4


@pytest.mark.parametrize(
    ("values", "p_yes"),
    [
        (np.zeros(600), CASE[1]),
        (np.ones(600), CASE[1]),
        (CASE[0], np.full(600, 0.7)),
        (CASE[0], np.where(np.arange(600) < 60, 0.5, np.nan)),
    ],
    ids=["people all say no", "people all say yes", "the judge says one thing", "the judge judges nothing more"],
)
def test_where_the_judge_cannot_help_figures_are_peoples_with_a_width(values: FloatArray, p_yes: FloatArray) -> None:
    found = prediction_powered(units_of(values, p_yes, 60))
    assert (found.rate, found.weight) == (pytest.approx(values[:60].mean()), 0)
    assert found.ends == rate_ends(values[:60], np.ones(60), np.ones(60))
    assert found.ends[1] > found.ends[0]


@pytest.mark.parametrize("sampling", ["narratives", "records", "weights"])
def test_no_interval_is_much_wider_than_peoples(sampling: str) -> None:
    generator = np.random.default_rng(5)
    found = []
    for judge in ("good", "guessing", "contrary", "erring"):
        for rate in (0.03, 0.3):
            units, _ = draw_units(generator, Design(32, 3, rate, judge, sampling))
            own = units.voted
            _, cluster = np.unique(units.narratives[own], return_inverse=True)
            weights = units.weights[own]
            sums = (np.bincount(cluster, each) for each in (weights * units.values[own], weights, weights**2))
            found.append(Seen(prediction_powered(units), rate_ends(*sums), 0.0, rate))
    assert widths(found).max() <= 1.02 + 1e-9
