"""How often figures from runs are wrong, on answers whose truth is known; the figures are in the contract."""

import sys

import numpy as np
import pytest

from exports.statistics.rates import rate_ends
from exports.statistics.ratings import FloatArray

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
