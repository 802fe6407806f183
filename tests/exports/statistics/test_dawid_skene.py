import csv
import json
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exports.statistics.consensus import DawidSkene, dawid_skene
from exports.statistics.ratings import FloatArray
from tests.support import oracles
from tests.support.places import NO_SHARED, SHARED

REAL = SHARED / "iaa-cases" / "real"
MAXIMUM = "numpy two-coin Dawid-Skene (exact maximum likelihood, started at vote shares)"
ACCURACY = {"rte_snow2008": (0.926, 0.930), "bluebirds_welinder2010": (0.889, 0.898)}


class Votes(NamedTuple):
    units: Any
    annotators: Any
    values: Any


def votes(*rows: str) -> Votes:
    """One row a unit, one character an annotator: 1 yes, 0 no, anything else missing."""
    found = [
        (unit, rater, int(mark)) for unit, row in enumerate(rows) for rater, mark in enumerate(row) if mark in "01"
    ]
    units, annotators, values = zip(*found, strict=True)
    return Votes(np.array(units), np.array(annotators), np.array(values, dtype=np.int8))


def simulated(n_units: int, rates: list[tuple[float, float]], seed: int = 1) -> tuple[Votes, Any]:
    """Votes of annotators with these probabilities of yes where yes and where no is right, and what is right."""
    random = np.random.default_rng(seed)
    truth = random.random(n_units) < 0.4
    rows = [[int(random.random() < rate[0 if right else 1]) for rate in rates] for right in truth]
    return votes(*("".join(map(str, row)) for row in rows)), truth


def read_case(name: str) -> tuple[Votes, Any, dict[str, Any]]:
    if not REAL.is_dir():
        pytest.skip(NO_SHARED)
    with (REAL / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    items = sorted({row["item_id"] for row in rows})
    raters = sorted({row["annotator_id"] for row in rows})
    gold = {row["item_id"]: row["gold"] == "1" for row in rows}
    found = Votes(
        np.array([items.index(row["item_id"]) for row in rows]),
        np.array([raters.index(row["annotator_id"]) for row in rows]),
        np.array([int(row["label"]) for row in rows], dtype=np.int8),
    )
    expected: dict[str, Any] = json.loads((REAL / f"{name}.json").read_text())["label_models"][MAXIMUM]
    return found, np.array([gold[item] for item in items]), expected


def fitted(found: Votes, **options: float) -> DawidSkene:
    model = dawid_skene(*found, **options)
    assert model is not None
    return model


@pytest.mark.parametrize("name", ACCURACY)
def test_real_crowds_are_fitted_as_in_the_literature_and_without_prior_to_the_exact_maximum(name: str) -> None:
    found, gold, expected = read_case(name)
    low, high = ACCURACY[name]
    assert low <= np.mean((fitted(found).posterior > 0.5) == gold) <= high + 0.0005  # three digits are printed
    model = fitted(found, prior=0)
    assert model.loglik == pytest.approx(expected["loglik"], abs=1e-3)
    assert model.prevalence == pytest.approx(expected["prevalence"], abs=1e-4)
    assert np.mean((model.posterior > 0.5) == gold) == pytest.approx(expected["accuracy"])


def test_simulated_rates_are_found_one_sided_people_do_not_outvote_and_who_is_apart_has_no_figure() -> None:
    rates = [(0.9, 0.1), (0.8, 0.3), (0.95, 0.2)]
    found, truth = simulated(4000, rates)
    model = fitted(found)
    assert model.sensitivity == pytest.approx([hit for hit, _ in rates], abs=0.05)
    assert model.specificity == pytest.approx([1 - alarm for _, alarm in rates], abs=0.05)
    assert model.prevalence == pytest.approx(truth.mean(), abs=0.03)
    found, truth = simulated(600, [(0.95, 0.05), (0.95, 0.05), (0.9, 0.8), (0.9, 0.8), (0.9, 0.8)])
    majority = np.bincount(found.units, weights=found.values) >= 3
    assert np.mean((fitted(found).posterior > 0.5) == truth) > np.mean(majority == truth) + 0.1
    found, _ = simulated(60, [(0.9, 0.1)] * 3)
    more = Votes(
        np.append(found.units, [60, 60, 62]),
        np.append(found.annotators, [3, 4, 5]),
        np.append(found.values, np.array([1, 0, -1], dtype=np.int8)),
    )
    model = fitted(more)
    assert (len(model.posterior), len(model.sensitivity)) == (63, 6)
    assert np.isnan(model.posterior[60:]).all()
    assert np.isnan(model.sensitivity[3:]).all()
    assert model.posterior[:60] == pytest.approx(fitted(found).posterior)


@pytest.mark.parametrize(
    "found",
    [
        simulated(500, [(0.9, 0.1), (0.8, 0.2)])[0],
        votes(*["11-", "0-0", "-10"] * 50),
        Votes(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int8)),
        votes(*["111"] * 30),
    ],
    ids=["two raters", "three raters in pairs only", "nothing at all", "no variation"],
)
def test_votes_that_identify_no_model_are_refused(found: Votes) -> None:
    assert dawid_skene(*found) is None


@given(st.permutations(range(90)))
def test_the_order_of_ratings_does_not_matter_and_swapping_yes_and_no_swaps_the_posterior(order: list[int]) -> None:
    found, _ = simulated(30, [(0.9, 0.1), (0.8, 0.2), (0.7, 0.3)])
    plain, shuffled = fitted(found), fitted(Votes(*(part[order] for part in found)))
    flipped = fitted(found._replace(values=1 - found.values))
    assert shuffled.posterior == pytest.approx(plain.posterior, abs=1e-4)
    assert flipped.posterior == pytest.approx(1 - plain.posterior, abs=1e-4)
    assert flipped.sensitivity == pytest.approx(plain.specificity, abs=1e-4)


def test_without_prior_no_other_rates_make_small_votes_likelier() -> None:
    # The likelihood is written here from Dawid and Skene 1979, equation 2.5, and its maximum found by scipy.
    found, _ = simulated(60, [(0.9, 0.2), (0.8, 0.1), (0.85, 0.3)], seed=4)
    said = found.values.reshape(60, 3)

    def unlikeliness(logits: FloatArray) -> float:
        prevalence, *rates = 1 / (1 + np.exp(-logits))
        sensitivity, specificity = np.array(rates).reshape(2, 3)
        of_yes = np.where(said == 1, sensitivity, 1 - sensitivity).prod(axis=1)
        of_no = np.where(said == 0, specificity, 1 - specificity).prod(axis=1)
        return -float(np.log(prevalence * of_yes + (1 - prevalence) * of_no).sum())

    best = oracles.optimize.minimize(unlikeliness, np.array([0.0, *[1.5] * 6]), method="BFGS")
    model = fitted(found, prior=0)
    assert model.loglik == pytest.approx(-best.fun, abs=1e-4)
    expected = 1 / (1 + np.exp(-best.x))
    assert [model.prevalence, *model.sensitivity, *model.specificity] == pytest.approx(list(expected), abs=2e-3)
