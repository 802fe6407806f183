"""How often figures from runs are wrong, on answers whose truth is known; the figures are in the contract."""

import sys

import numpy as np
import pytest

from exports.statistics.rates import rate_ends
from exports.statistics.ratings import FloatArray
from exports.statistics.results import measure_results
from exports.statistics.study import Study, VerdictPatterns
from tests.support.told_answers import Told, told_answers

PATTERNS = {"en": VerdictPatterns(affirms=("yes",), rejects=("no",))}

# Sites of a narrative, those beyond the first that an answer cites on average, and how evenly they are cited.
OVERLAPS = {"much": (6, 1.0, 0.3), "some": (20, 2.0, 1.0), "little": (200, 1.0, 1.0)}


def narrative_overlaps(kind: str, count: int, seed: int) -> FloatArray:
    """Jaccard's index of two answers to each of so many narratives."""
    sites, more, evenness = OVERLAPS[kind]
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        popularity = generator.dirichlet(np.full(sites, evenness)) + 1e-9
        popularity /= popularity.sum()
        a, b = (
            set(generator.choice(sites, min(1 + generator.poisson(more), sites), replace=False, p=popularity).tolist())
            for _ in range(2)
        )
        found.append(len(a & b) / len(a | b))
    return np.array(found)


@pytest.mark.soak
@pytest.mark.parametrize("kind", OVERLAPS)
@pytest.mark.parametrize("n_narratives", [12, 30, 100])
def test_intervals_of_overlap_cover_the_truth(kind: str, n_narratives: int) -> None:
    # How often the interval of the mean overlap holds the mean over all narratives.
    all_of_them = narrative_overlaps(kind, 20_000, 1)
    generator = np.random.default_rng(2)
    truth, ones = float(all_of_them.mean()), np.ones(n_narratives)
    ends = (rate_ends(generator.choice(all_of_them, n_narratives), ones, ones) for _ in range(3000))
    found = float(np.mean([low <= truth <= high for low, high in ends]))
    sys.stdout.write(f"overlap\t{kind}\t{n_narratives}\t{found:.3f}\n")
    assert found >= 0.94


def false_winners(studies: int, n_narratives: int = 40) -> float:
    """Share of studies of five equal providers in which some difference of verdicts stands out."""
    generator = np.random.default_rng(5)
    return float(np.mean([_names_a_winner(generator, n_narratives) for _ in range(studies)]))


def _names_a_winner(generator: np.random.Generator, n_narratives: int) -> bool:
    """Whether one of five equal providers is told apart; narratives differ in how all of them answer."""
    rows = []
    for narrative in range(n_narratives):
        leaning = generator.dirichlet((0.4, 0.8, 0.4))
        cites = generator.beta(3, 0.6)
        rows += [
            Told(
                f"m{model}",
                f"n{narrative}",
                ("a.example",) if generator.random() < cites else (),
                str(generator.choice(("affirms", "rejects", "neither"), p=leaning)),
            )
            for model in range(5)
        ]
    found = measure_results(Study((), {}, {}, answers=told_answers(rows, PATTERNS)))
    assert found.landscape is not None
    verdicts = found.narrative_verdicts.verdicts.values()
    return any(each.stands_out for label in verdicts for each in label.differences)


def test_in_a_sample_of_studies_equal_providers_are_not_told_apart_by_their_verdicts() -> None:
    assert false_winners(40) <= 0.15


@pytest.mark.soak
def test_equal_providers_are_not_told_apart_by_their_verdicts() -> None:
    found = false_winners(600)
    sys.stdout.write(f"false winner by verdict\t{found:.3f}\n")
    assert found <= 0.07
