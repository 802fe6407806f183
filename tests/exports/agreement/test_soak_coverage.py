"""How often our own 95 % interval holds the true alpha: simulated data from populations whose alpha is known."""

from collections.abc import Callable

import numpy as np
import pytest

from exports.agreement._resampling import Statistic, bootstrap, interval
from exports.agreement.coefficients import alpha_sums, alphas, count_votes
from exports.agreement.ratings import FloatArray, IntArray
from exports.agreement.schema import Interval
from tests.support.agreement_data import ratings_of_matrix

RESAMPLES = 999
RATERS = 3
RUNS = 500
SAMPLE = 60
SEED = 20261122
ALPHA = 0.64
"""Of both populations, whose raters err symmetrically around a truth that is yes half of the time.

Two raters of a unit with error rate e differ with probability 2e(1 − e), and two ratings of different units with 1/2:
so alpha is 1 − 4·E[e(1 − e)] = E[(1 − 2e)²]. With e = .1 that is .64; with e = .02 on half of the records and .2 on the
other half it is (.9216 + .36)/2 = .6408.
"""
CLUSTERED_ALPHA = 0.6408

Simulation = Callable[[np.random.Generator, int], tuple[FloatArray, IntArray]]


def independent(random: np.random.Generator, n_units: int = 100) -> tuple[FloatArray, IntArray]:
    """Units × raters: every unit a record of its own, yes half of the time, one rating in ten wrong."""
    truth = random.random((n_units, 1)) < 0.5
    wrong = random.random((n_units, RATERS)) < 0.1
    return (truth ^ wrong).astype(np.float64), np.arange(n_units)


def clustered(random: np.random.Generator, n_records: int = 40) -> tuple[FloatArray, IntArray]:
    """Units × raters: records of five units, which share how hard they are and how likely a yes is."""
    records = np.repeat(np.arange(n_records), 5)
    likely = random.choice([0.1, 0.9], (n_records, 1))[records]
    hard = random.choice([0.02, 0.2], (n_records, 1))[records]
    truth = random.random((len(records), 1)) < likely
    wrong = random.random((len(records), RATERS)) < hard
    return (truth ^ wrong).astype(np.float64), records


SIMULATIONS = pytest.mark.parametrize(
    ("simulate", "alpha"),
    [(independent, ALPHA), (clustered, CLUSTERED_ALPHA)],
    ids=["100 independent units", "40 records of 5 units"],
)


def statistic_of(matrix: FloatArray, records: IntArray) -> Statistic:
    ratings = ratings_of_matrix(matrix, records.tolist())
    votes = count_votes(ratings.values[:, :1], ratings.units, len(ratings.unit_records))
    n_records = len(ratings.records)
    return Statistic(alpha_sums(votes, ratings.unit_records, n_records), alphas, np.ones(n_records, dtype=np.bool_))


def coverage(simulate: Simulation, alpha: float, runs: int) -> float:
    """Share of simulated data sets whose interval holds the true alpha."""
    random = np.random.default_rng(SEED)
    held = 0
    for run in range(runs):
        statistic = statistic_of(*simulate(random))
        found = interval(bootstrap([statistic], RESAMPLES, run)[statistic], 0)
        assert isinstance(found, Interval)
        assert found.method == "bca"
        held += found.low <= alpha <= found.high
    return held / runs


@SIMULATIONS
def test_the_alpha_that_is_called_true_is_that_of_a_huge_sample(simulate: Simulation, alpha: float) -> None:
    matrix, records = simulate(np.random.default_rng(SEED), 60_000)
    assert alphas(statistic_of(matrix, records).sums.sum(axis=0))[0] == pytest.approx(alpha, abs=0.01)


@SIMULATIONS
def test_a_sample_of_intervals_holds_the_true_alpha_about_as_often_as_promised(
    simulate: Simulation, alpha: float
) -> None:
    assert 0.85 <= coverage(simulate, alpha, SAMPLE) <= 1


@pytest.mark.soak
@SIMULATIONS
def test_intervals_hold_the_true_alpha_as_often_as_promised(simulate: Simulation, alpha: float) -> None:
    assert 0.92 <= coverage(simulate, alpha, RUNS) <= 0.98


def test_resampling_units_of_clustered_records_would_promise_too_much() -> None:
    """The simulation can tell a wrong interval: with units taken as independent it holds alpha too rarely."""

    def torn_apart(random: np.random.Generator, n_records: int = 40) -> tuple[FloatArray, IntArray]:
        matrix, records = clustered(random, n_records)
        return matrix, np.arange(len(records))

    assert coverage(torn_apart, CLUSTERED_ALPHA, SAMPLE) < coverage(clustered, CLUSTERED_ALPHA, SAMPLE)
