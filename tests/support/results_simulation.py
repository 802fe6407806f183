"""How often results are wrong: intervals that miss the truth, equal providers told apart, differences not found."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from annotation.argilla.labels import LABELS, TASKS, TaskName
from exports.statistics.distributions import holm
from exports.statistics.rates import difference_ends, few_narratives, is_uneven, rate_ends
from exports.statistics.ratings import MISSING, FloatArray, IntArray, LabelArray
from exports.statistics.results import measure_results
from exports.statistics.results_schema import LabelResults, Results
from tests.support.drawn_studies import draw_votes, study_of_votes

SPREADS = {"weak": (1.0, 0.0, 2.0), "middling": (2.0, 0.0, 1.0), "strong": (3.0, 0.0, 0.5), "answers": (1.0, 1.5, 1.0)}
"""Difficulty shared by a narrative, an answer, a unit's votes: how much alike a narrative's units are."""
COPIES = {"copies": (6.0, 0.0, 0.1)}  # A narrative whose answers are nearly always all judged alike
RATES = (0.01, 0.05, 0.5, 0.95)
NARRATIVES = (12, 30, 100)


class Design(NamedTuple):
    models: int
    passages: int
    most_votes: int


DESIGNS = {
    "5 answers": Design(5, 1, 3),
    "1 answer": Design(1, 1, 3),
    "1 answer, 1 vote": Design(1, 1, 1),
    "5 passages": Design(1, 5, 3),
}


def unit_shares(votes: LabelArray) -> FloatArray:
    """The share of yes of each unit on the first label: replicates × models × passages."""
    own = votes[..., 0]
    return (own == 1).sum(axis=-1) / (own != MISSING).sum(axis=-1)


def rate_coverage(design: str, spread: str, rate: float, n_narratives: int, studies: int, seed: int = 0) -> float:
    """How often a rate's interval holds the truth."""
    generator = np.random.default_rng([seed, n_narratives, int(rate * 1000)])
    models, passages, most_votes = DESIGNS[design]
    votes = draw_votes(
        generator, np.full((models, 1), rate), n_narratives * studies, passages, most_votes, (SPREADS | COPIES)[spread]
    )
    totals = unit_shares(votes).reshape(studies, n_narratives, -1).sum(axis=2)
    sizes = np.full(n_narratives, float(models * passages))
    ends = [rate_ends(each, sizes, sizes) for each in totals]
    assert all(high > low for low, high in ends)
    return float(np.mean([low <= rate <= high for low, high in ends]))


def difference_coverage(
    design: str, spread: str, rates: tuple[float, float], n_narratives: int, studies: int, seed: int = 0
) -> float:
    """How often the interval of a difference between two models holds the truth."""
    generator = np.random.default_rng([seed, n_narratives, int(rates[0] * 1000)])
    _, passages, most_votes = DESIGNS[design]
    votes = draw_votes(
        generator, np.array(rates)[:, np.newaxis], n_narratives * studies, passages, most_votes, SPREADS[spread]
    )
    means = unit_shares(votes).mean(axis=2).reshape(studies, n_narratives, 2)
    ones = np.ones(n_narratives)
    ends = [difference_ends(each, ones, float(passages)) for each in means[..., 0] - means[..., 1]]
    assert all(high > low for low, high in ends)
    truth = rates[0] - rates[1]
    return float(np.mean([low - 1e-9 <= truth <= high + 1e-9 for low, high in ends]))


def uneven_coverage(rate: float, n_narratives: int, studies: int, seed: int = 0) -> tuple[float, float]:
    """How often intervals hold a rate, and its difference to half of it, with weights 4 and 1 and missing answers."""
    generator = np.random.default_rng([seed, n_narratives, int(rate * 1000)])
    votes = draw_votes(generator, np.full((5, 1), rate), n_narratives * studies)
    shares = unit_shares(votes).reshape(studies, n_narratives, 5)
    heavy = np.where(generator.random((studies, n_narratives)) < 0.4, 4.0, 1.0)
    weights = heavy[..., np.newaxis] * (generator.random(shares.shape) < 0.7)
    rates = []
    for own, weight in zip(shares, weights, strict=True):
        there = weight.any(axis=1)
        sums = ((weight * own).sum(axis=1), weight.sum(axis=1), (weight**2).sum(axis=1))
        low, high = rate_ends(*(each[there] for each in sums))
        rates.append(low <= rate <= high)
    pairs = draw_votes(generator, np.array([[rate], [rate / 2]]), n_narratives * studies)
    means = unit_shares(pairs).reshape(studies, n_narratives, 2)
    ends = [difference_ends(own, w, 1.0) for own, w in zip(means[..., 0] - means[..., 1], heavy, strict=True)]
    return float(np.mean(rates)), float(np.mean([low <= rate / 2 <= high for low, high in ends]))


def one_label_studies(
    rates: Sequence[float], n_narratives: int, studies: int, spread: str = "middling", design: str = "1 answer"
) -> list[LabelResults]:
    """The figures of one label in each study of models with these rates, of which each gives one answer."""
    generator = np.random.default_rng(n_narratives)
    _, passages, most_votes = DESIGNS[design]
    task: TaskName = "retrieval" if passages > 1 else "generation"
    found = []
    for _ in range(studies):
        votes = draw_votes(
            generator, np.array(rates)[:, np.newaxis], n_narratives, passages, most_votes, SPREADS[spread]
        )
        results = measure_results(study_of_votes({task: votes}), findings={})
        found.append(results.tasks[task].labels[LABELS[task][0]])
    return found


def reports(
    rates: FloatArray, n_narratives: int, studies: int, spread: str = "middling", seed: int = 0
) -> list[Results]:
    """The whole of each study in which models have the same rate on all labels, five passages in retrieval."""
    generator = np.random.default_rng([seed, n_narratives])
    found = []
    for _ in range(studies):
        votes = {
            task: draw_votes(
                generator,
                np.repeat(rates[:, np.newaxis], len(LABELS[task]), axis=1),
                n_narratives,
                5 if task == "retrieval" else 1,
                2,
                SPREADS[spread],
            )
            for task in TASKS
        }
        found.append(measure_results(study_of_votes(votes)))
    return found


def share(found: list[LabelResults], wanted: Callable[[LabelResults], bool]) -> float:
    return sum(map(wanted, found)) / len(found)


def names_a_winner(label: LabelResults) -> bool:
    """Whether any two models differ on the label after Holm over its pairs."""
    return any(each.p_holm is not None and each.p_holm <= 0.05 for each in label.differences)


def stands_out(results: Results) -> bool:
    """Whether anything in the report is beyond chance."""
    labels = [*results.findings.values(), *(label for task in results.tasks.values() for label in task.labels.values())]
    return any(each.stands_out for label in labels for each in label.differences)


def planned_is_found(label: LabelResults) -> bool:
    """Whether two models that are compared once differ."""
    p = label.differences[0].p
    return p is not None and p <= 0.05


def each_found(found: list[LabelResults]) -> float:
    """The share of the last model's comparisons that are found after Holm over the pairs of the label."""
    last = [each for label in found for each in label.differences if each.b == label.groups[-1].by["model_name"]]
    return float(np.mean([each.p_holm is not None and each.p_holm <= 0.05 for each in last]))


def unpaired_winner(n_narratives: int, studies: int, seed: int = 0) -> float:
    """How often five equal models are told apart by two-sample z tests over passages, Holm over the ten pairs."""
    from scipy.stats import ttest_ind

    generator = np.random.default_rng(seed)
    told = 0
    for _ in range(studies):
        votes = draw_votes(generator, np.full((5, 1), 0.5), n_narratives, 5, 1, SPREADS["answers"])
        units = unit_shares(votes).transpose(1, 0, 2).reshape(5, -1)
        told += min(holm([float(ttest_ind(a, b).pvalue) for a, b in combinations(units, 2)])) <= 0.05
    return told / studies


class Seen(NamedTuple):
    holds: float  # Share of the intervals that hold the rate
    refused: float  # Share of the studies without an interval
    exact: float  # Share of the intervals that have the exact bound


def alike_coverage(rate: float, sizes: IntArray, correlation: float, studies: int) -> Seen:
    """Of answers whose narratives' rates follow a beta distribution with this correlation."""
    generator = np.random.default_rng([len(sizes), int(sizes.max()), int(rate * 1000), int(correlation * 100)])
    likely = np.full((studies, len(sizes)), rate)
    if correlation:
        more = (1 - correlation) / correlation
        likely = np.clip(generator.beta(rate * more, (1 - rate) * more, likely.shape), 0, 1)
    weights = sizes.astype(np.float64)
    totals = generator.binomial(sizes, likely).astype(np.float64)
    if is_uneven(weights):
        return Seen(1.0, 1.0, 0.0)
    ends = [rate_ends(each, weights, weights) for each in totals]
    exact = [any(few_narratives(each, weights)) for each in totals]
    return Seen(float(np.mean([low <= rate <= high for low, high in ends])), 0.0, float(np.mean(exact)))
