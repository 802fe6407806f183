"""Whether plans hold what they promise, on studies whose truth is known; figures: annotation/contracts/planning.md."""

import sys

import numpy as np
import pytest

from annotation.campaign.narratives import Population, draw, narratives_within, read_population, stratifications
from exports.statistics.results import measure_results
from tests.support.planned_records import planned_record
from tests.support.planning_simulation import Crew, acted, planned_population, power_of_the_detectable
from tests.support.results_simulation import SPREADS
from tests.support.study_data import Answer, study_of

soak = pytest.mark.soak
TWO = ("openai", "claude")


def tell(*figures: object) -> None:
    """Figures of a simulation, as `pytest -s` shows them."""
    sys.stdout.write("\t".join(f"{each:.3f}" if isinstance(each, float) else str(each) for each in figures) + "\n")


@pytest.mark.parametrize(
    ("spread", "narratives", "votes"),
    [
        ("middling", 30, 2),
        *(pytest.param(spread, n, k, marks=soak) for spread in SPREADS for n in (12, 30, 100, 400) for k in (1, 2, 3)),
    ],
)
def test_the_detectable_difference_is_found_in_four_studies_of_five(spread: str, narratives: int, votes: int) -> None:
    difference, power = power_of_the_detectable(spread, [1.0] * narratives, votes, 3000)
    tell("power", spread, narratives, votes, difference, power)
    assert 0.77 <= power <= 0.83


@pytest.mark.parametrize(
    ("narratives", "votes"), [(40, 2), *(pytest.param(n, k, marks=soak) for n in (40, 100) for k in (1, 3))]
)
def test_the_difference_is_found_as_often_with_unequal_weights(narratives: int, votes: int) -> None:
    for heavy in (1.3, 4.0):
        weights = [heavy if number % 5 < 2 else 1.0 for number in range(narratives)]
        difference, power = power_of_the_detectable("middling", weights, votes, 2000)
        tell("weighted power", narratives, votes, heavy, difference, power)
        assert 0.77 <= power <= 0.83


@soak
@pytest.mark.parametrize(("spread", "narratives"), [("middling", 100), ("weak", 400)])
def test_the_corrected_difference_is_found_after_correction_for_a_whole_report(spread: str, narratives: int) -> None:
    difference, power = power_of_the_detectable(spread, [1.0] * narratives, 2, 400, comparisons=140)
    tell("corrected power", spread, narratives, difference, power)
    assert 0.74 <= power <= 0.86


def costs(population: Population) -> dict[str, float]:
    return {
        each.key: sum(load.seconds for r in each.records for load in r.loads.values()) for each in population.narratives
    }


@pytest.mark.parametrize("seeds", [400, pytest.param(20_000, marks=soak)])
def test_weighted_totals_are_unbiased_over_seeds(seeds: int) -> None:
    """Of a value that is larger for narratives that take longer, and rare in a language: hours decide the number."""
    population = planned_population(60)
    cost = costs(population)
    value = {each.key: cost[each.key] * (3.0 if each.language == "de" else 1.0) for each in population.narratives}
    totals, sizes = [], set()
    for seed in range(seeds):
        strata = next(stratifications(population.narratives, seed))
        number = narratives_within(strata, 0.31 * sum(cost.values()), cost)
        sizes.add(number)
        totals.append(sum(value[each.narrative.key] / each.probability for each in draw(strata, number)))
    truth = sum(value.values())
    error = float(np.std(totals, ddof=1)) / seeds**0.5
    tell("total", seeds, float(np.mean(totals)) / truth, error / truth)
    assert len(sizes) == 1
    assert abs(float(np.mean(totals)) - truth) < 4 * error


@pytest.mark.parametrize("seeds", [60, pytest.param(2000, marks=soak)])
def test_nine_of_ten_samples_take_no_longer_than_their_hours(seeds: int) -> None:
    population = planned_population(200)
    cost = costs(population)
    budget = 0.2 * sum(cost.values())
    used = []
    for seed in range(seeds):
        strata = next(stratifications(population.narratives, seed))
        drawn = draw(strata, narratives_within(strata, budget, cost))
        used.append(sum(cost[each.narrative.key] for each in drawn) / budget)
    tell("hours used", float(np.mean(used)), float(np.mean(np.array(used) <= 1)), float(min(used)))
    assert np.mean(np.array(used) <= 1) >= 0.85
    assert min(used) >= 0.6


@pytest.mark.parametrize(
    ("people", "between", "within", "campaigns"),
    [
        (4, 0.3, 0.6, 60),
        *(pytest.param(n, b, w, 400, marks=soak) for n in (2, 4, 8) for b in (0.2, 0.4) for w in (0.5, 0.8)),
    ],
)
def test_hours_after_twenty_units_a_task(people: int, between: float, within: float, campaigns: int) -> None:
    population = planned_population(60)
    generator = np.random.default_rng([people, campaigns])
    near, inside = [], []
    for _ in range(campaigns):
        planned, hours = acted(population, Crew(generator, people, between, within), 20)
        told = planned.plan.hours
        near.append(abs(told.expected / hours - 1) <= 0.25)
        inside.append(told.low <= hours <= told.high)
    tell("hours", people, between, within, float(np.mean(near)), float(np.mean(inside)))
    assert np.mean(near) >= 0.8
    assert np.mean(inside) >= 0.9


@pytest.mark.parametrize("seeds", [60, pytest.param(1500, marks=soak)])
def test_weighted_results_of_samples_are_those_of_all_on_average(seeds: int) -> None:
    """Of a label that is common where narratives are rare: without weights its rate would be too high."""
    languages = ["en"] * 45 + ["de"] * 12 + ["ja"] * 3
    records = [
        planned_record(f"N{n:02d}", provider, language) for n, language in enumerate(languages) for provider in TWO
    ]
    common = {"en": 7, "de": 3, "ja": 1}
    says = {each.record_uuid: int(int(each.record_uuid[1:3]) % common[each.language] == 0) for each in records}
    population = read_population(records, lambda language: language)
    truth = sum(says.values()) / len(says)
    rates = []
    for seed in range(seeds):
        drawn = draw(next(stratifications(population.narratives, seed)), 6)
        probabilities = {record.record_uuid: each.probability for each in drawn for record in each.narrative.records}
        answers = [
            Answer(uuid.partition("-")[0], uuid.partition("-")[2], {"generation": [{"helpful": says[uuid]}]})
            for uuid in probabilities
        ]
        study = study_of(answers)
        by_record = {each.record: probabilities[f"{each.narrative}-{each.model}"] for each in answers}
        measured = [measure_results(each, findings={}) for each in (study._replace(probabilities=by_record), study)]
        rates.append([each.tasks["generation"].labels["helpful"].rate for each in measured])
    weighted, plain = np.array(rates, dtype=float).T
    error = float(np.std(weighted, ddof=1)) / seeds**0.5
    tell("weighted rate", truth, float(np.mean(weighted)), error, float(np.mean(plain)))
    assert abs(float(np.mean(weighted)) - truth) < 4 * error
    assert float(np.mean(plain)) - truth > 4 * error
