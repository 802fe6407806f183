"""Whether plans hold what they promise, on studies whose truth is known; figures: annotation/contracts/planning.md."""

import sys
from collections.abc import Sequence

import numpy as np
import pytest

from annotation.argilla.labels import TASKS
from annotation.campaign.hours import Cell
from annotation.campaign.narratives import Population, draw, read_population, stratifications
from annotation.campaign.plan import (
    LEVEL,
    Likeness,
    PlannedSample,
    PlanOptions,
    detectable_difference,
    make_plan,
    narratives_within,
)
from exports.statistics.exchange import exchange_p, n_draws, paired
from exports.statistics.ratings import FloatArray
from exports.statistics.results import measure_results
from tests.support.drawn_studies import draw_votes
from tests.support.planned_records import planned_record, planned_study
from tests.support.results_simulation import SPREADS
from tests.support.study_data import Answer, study_of


def likeness_of(spread: str, seed: int = 0) -> Likeness:
    """The correlations of votes at a rate of one half, measured on very many."""
    votes = draw_votes(np.random.default_rng(seed), np.full((2, 1), 0.5), 200_000, 1, 2, SPREADS[spread], 2)
    deviations = votes[:, :, 0, :, 0].astype(float) - 0.5
    unit = float(np.mean(deviations[:, :, 0] * deviations[:, :, 1])) * 4
    return Likeness(unit, float(np.mean(deviations[:, 0].mean(axis=1) * deviations[:, 1].mean(axis=1))) * 4)


def power_of_the_detectable(
    spread: str, weights: Sequence[float], votes: int, studies: int, comparisons: int = 1, seed: int = 0
) -> tuple[float, float]:
    """The detectable difference of a design, and in how many studies the test of `exports results` finds it.

    `weights` are those of its narratives.
    """
    effective = sum(weights) ** 2 / sum(each**2 for each in weights)
    difference = detectable_difference(effective, votes, comparisons, likeness_of(spread))
    assert difference is not None
    rates = np.array([[0.5 + difference / 2], [0.5 - difference / 2]])
    narratives = len(weights)
    generator = np.random.default_rng([seed, narratives, votes])
    drawn = draw_votes(generator, rates, narratives * studies, 1, votes, SPREADS[spread], votes)
    means: FloatArray = drawn[:, :, 0, :, 0].mean(axis=2).reshape(studies, narratives, 2)
    held = [paired(each) for each in (means[..., 0] - means[..., 1]) * np.array(weights)]
    p_values = exchange_p(held, n_draws(comparisons), seed)
    return difference, float(np.mean(np.array(p_values) <= LEVEL / comparisons))


def planned_population(narratives: int = 60) -> Population:
    records = planned_study(narratives, ("openai", "claude"), ("en", "de"))
    return read_population(records, lambda record: record.language)


class Crew:
    """Annotators with paces of their own, who take as long for a unit as its text asks, times chance."""

    def __init__(self, generator: np.random.Generator, people: int, between: float, within: float) -> None:
        """Draw their paces; the spreads are standard deviations of logarithms."""
        self.generator, self.within = generator, within
        self.paces = np.exp(generator.normal(0, between, people))
        self.shares = generator.dirichlet(np.full(people, 3.0))
        """How much of the work each of them does."""
        self.tasks = {task: float(np.exp(generator.normal(0, 0.5))) for task in TASKS}
        """How much longer a task takes than its texts' lengths say."""
        self.languages = {"en": 1.0, "de": float(np.exp(generator.normal(0, 0.15)))}

    def seconds(self, person: int, cell: Cell, assumed: float) -> float:
        chance = float(np.exp(self.generator.normal(-(self.within**2) / 2, self.within)))
        return assumed * self.tasks[cell[0]] * self.languages[cell[1]] * float(self.paces[person]) * chance


def acted(population: Population, crew: Crew, units_a_task: int) -> tuple[PlannedSample, float]:
    """The plan after the crew's first units of each task, and the hours that the whole takes it at last.

    Some of the crew do more of it than others, the first units included.
    """
    units = [
        ((task, record.locale), load.seconds / load.units)
        for record in population.records
        for task, load in record.loads.items()
        for _ in range(load.units)
    ]
    order = crew.generator.permutation(len(units))
    total = 0.0
    timed: dict[Cell, list[tuple[str, float]]] = {}
    done = dict.fromkeys(TASKS, 0)
    people = crew.generator.choice(len(crew.paces), len(units), p=crew.shares)
    for person, place in zip(people.tolist(), order.tolist(), strict=True):
        cell, assumed = units[place]
        seconds = crew.seconds(person, cell, assumed)
        total += seconds
        if done[cell[0]] < units_a_task:
            done[cell[0]] += 1
            timed.setdefault(cell, []).append((f"user{person}", seconds))
    return make_plan(population, PlanOptions(), None, timed), total / 3600


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
def test_the_detectable_difference_is_found_in_four_studies_of_five_or_more(
    spread: str, narratives: int, votes: int
) -> None:
    difference, power = power_of_the_detectable(spread, [1.0] * narratives, votes, 3000)
    tell("power", spread, narratives, votes, difference, power)
    assert 0.77 <= power <= 0.91


@pytest.mark.parametrize(
    ("narratives", "votes"),
    [pytest.param(40, 2, marks=pytest.mark.rare), *(pytest.param(n, k, marks=soak) for n in (40, 100) for k in (1, 3))],
)
def test_the_difference_is_found_as_often_with_unequal_weights(narratives: int, votes: int) -> None:
    for heavy in (1.3, 4.0):
        weights = [heavy if number % 5 < 2 else 1.0 for number in range(narratives)]
        difference, power = power_of_the_detectable("middling", weights, votes, 2000)
        tell("weighted power", narratives, votes, heavy, difference, power)
        assert 0.77 <= power <= 0.91


@soak
@pytest.mark.parametrize(("spread", "narratives"), [("middling", 100), ("weak", 400)])
def test_the_corrected_difference_is_found_after_correction_for_a_whole_report(spread: str, narratives: int) -> None:
    difference, power = power_of_the_detectable(spread, [1.0] * narratives, 2, 400, comparisons=140)
    tell("corrected power", spread, narratives, difference, power)
    assert 0.77 <= power <= 0.91


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
        number = narratives_within(strata, 0.31 * sum(cost.values()), lambda each, part: cost[each.key])
        sizes.add(number)
        totals.append(sum(value[each.narrative.key] / each.probability for each in draw(strata, number)))
    truth = sum(value.values())
    error = float(np.std(totals, ddof=1)) / seeds**0.5
    tell("total", seeds, float(np.mean(totals)) / truth, error / truth)
    assert len(sizes) == 1
    assert abs(float(np.mean(totals)) - truth) < 4 * error


@pytest.mark.parametrize("seeds", [60, pytest.param(2000, marks=soak)])
def test_samples_take_about_their_hours(seeds: int) -> None:
    population = planned_population(200)
    cost = costs(population)
    budget = 0.2 * sum(cost.values())
    used = []
    for seed in range(seeds):
        strata = next(stratifications(population.narratives, seed))
        drawn = draw(strata, narratives_within(strata, budget, lambda each, part: cost[each.key]))
        used.append(sum(cost[each.narrative.key] for each in drawn) / budget)
    tell("hours used", float(np.mean(used)), float(min(used)), float(max(used)))
    assert 0.97 <= np.mean(used) <= 1.03
    assert 0.9 <= min(used) <= max(used) <= 1.1


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
    population = read_population(records, lambda record: record.language)
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
