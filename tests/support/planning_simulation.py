"""Studies with a known truth, for what plans promise: power, hours, totals."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from annotation.argilla.labels import TASKS
from annotation.campaign.hours import Cell, Work
from annotation.campaign.narratives import Population, read_population
from annotation.campaign.plan import PlannedSample, PlanOptions, make_plan
from annotation.campaign.power import LEVEL, Likeness, detectable_difference, shared_narratives
from exports.statistics.rates import flip_p, n_flips
from exports.statistics.ratings import FloatArray
from tests.support.drawn_studies import draw_votes
from tests.support.planned_records import planned_study
from tests.support.results_simulation import SPREADS

_BATCH = 100
"""Studies that are tested with the same signs."""


def likeness_of(spread: str, seed: int = 0) -> Likeness:
    """The correlations of votes at a rate of one half, measured on very many."""
    votes = draw_votes(np.random.default_rng(seed), np.full((2, 1), 0.5), 200_000, 1, 2, SPREADS[spread], 2)
    deviations = votes[:, :, 0, :, 0].astype(float) - 0.5
    unit = float(np.mean(deviations[:, :, 0] * deviations[:, :, 1])) * 4
    narrative = float(np.mean(deviations[:, 0].mean(axis=1) * deviations[:, 1].mean(axis=1))) * 4
    return Likeness(unit, narrative)


def power_of_the_detectable(
    spread: str, weights: Sequence[float], votes: int, studies: int, comparisons: int = 1, seed: int = 0
) -> tuple[float, float]:
    """The detectable difference of a design, and in how many studies the test of `exports results` finds it.

    `weights` are those of its narratives.
    """
    shared = shared_narratives(Counter(weights))
    difference = detectable_difference(shared, votes, likeness_of(spread), comparisons)
    assert difference is not None
    rates = np.array([[0.5 + difference / 2], [0.5 - difference / 2]])
    narratives = len(weights)
    generator = np.random.default_rng([seed, narratives, votes])
    drawn = draw_votes(generator, rates, narratives * studies, 1, votes, SPREADS[spread], votes)
    means: FloatArray = drawn[:, :, 0, :, 0].mean(axis=2).reshape(studies, narratives, 2)
    contributions = list((means[..., 0] - means[..., 1]) * np.array(weights))
    p_values = [
        p
        for start in range(0, studies, _BATCH)
        for p in flip_p(contributions[start : start + _BATCH], n_flips(comparisons), seed + start)
    ]
    return difference, float(np.mean(np.array(p_values) <= LEVEL / comparisons))


def planned_population(narratives: int = 60) -> Population:
    records = planned_study(narratives, ("openai", "claude"), ("en", "de"))
    return read_population(records, lambda language: language)


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


def units_of(population: Population) -> list[tuple[Cell, float]]:
    return [
        ((task, record.locale), load.seconds / load.units)
        for record in population.records
        for task, load in record.loads.items()
        for _ in range(load.units)
    ]


def acted(population: Population, crew: Crew, units_a_task: int) -> tuple[PlannedSample, float]:
    """The plan after the crew's first units of each task, and the hours that the whole takes it at last.

    Some of the crew do more of it than others, the first units included.
    """
    units = units_of(population)
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
    return make_plan(population, PlanOptions(), None, Work(timed, {})), total / 3600
