"""Agreement with all coefficients and intervals against `krippendorff` with alpha alone: the same number of resamples.

10,000 units × 3 annotators × 5 labels, 1000 resamples: labels, pairs and annotators against the rest, BCa. Once with
one unit a record, once with five. `krippendorff` computes alpha of resampled value counts, its fastest use; a tenth of
its resamples is measured and scaled up. Median of interleaved rounds; progress and traced memory go to stderr.
"""

import statistics
import tracemalloc

import krippendorff
import numpy as np

from annotation.argilla.labels import LABELS
from exports.statistics.agreement import measure_figures
from exports.statistics.ratings import IntArray, LabelArray, Ratings
from tests.benchmarks.measure import log, report, seconds

GOALS = {1: 20.0, 5: 60.0}
"""By units a record."""
UNITS = 10_000
ANNOTATORS = 3
RESAMPLES = 1000
SCALE = 10
ROUNDS = 3
MEMORY_MIB = 100


def make_ratings(units_a_record: int) -> Ratings:
    """Complete ratings of the five labels of grounding; annotators err in one answer of eight."""
    generator = np.random.default_rng(0)
    n_records = UNITS // units_a_record
    prevalence = np.array([0.5, 0.3, 0.2, 0.1, 0.05])
    truth = generator.random((UNITS, 1, 5)) < prevalence
    values: LabelArray = (truth ^ (generator.random((UNITS, ANNOTATORS, 5)) < 0.125)).astype(np.int8).reshape(-1, 5)
    return Ratings(
        task="grounding",
        annotators=("anna", "ben", "carla"),
        records=tuple(f"r{number:05d}" for number in range(n_records)),
        unit_records=np.arange(UNITS) // units_a_record,
        unit_chunks=("",) * UNITS,
        unit_languages=("en",) * UNITS,
        units=np.arange(UNITS).repeat(ANNOTATORS),
        response_annotators=np.tile(np.arange(ANNOTATORS), UNITS),
        values=values,
        moments=np.zeros(UNITS * ANNOTATORS, dtype=np.int64),
        rounds=(),
        response_rounds=np.full(UNITS * ANNOTATORS, -1),
        n_duplicates=0,
        discards=None,
    )


def value_counts(ratings: Ratings) -> list[IntArray]:
    """For each label units × (ratings that say no, ratings that say yes)."""
    votes = ratings.values.reshape(UNITS, ANNOTATORS, -1).sum(axis=1, dtype=np.int64)
    return [np.stack([ANNOTATORS - votes[:, label], votes[:, label]], axis=1) for label in range(votes.shape[1])]


def resample_with_krippendorff(counts: list[IntArray], resamples: int) -> None:
    """Alpha of each label in each resample of the units."""
    generator = np.random.default_rng(0)
    for _ in range(resamples):
        drawn = generator.integers(0, UNITS, UNITS)
        for label in counts:
            krippendorff.alpha(value_counts=label[drawn], level_of_measurement="nominal")


def measure_row(units_a_record: int) -> None:
    ratings = make_ratings(units_a_record)
    assert ratings.values.shape == (UNITS * ANNOTATORS, len(LABELS[ratings.task]))
    counts = value_counts(ratings)
    ratios: list[float] = []
    for _ in range(ROUNDS):
        theirs = seconds(lambda: resample_with_krippendorff(counts, RESAMPLES // SCALE)) * SCALE
        ours = statistics.median(seconds(lambda: measure_figures(ratings, RESAMPLES, 0)) for _ in range(ROUNDS))
        log(f"krippendorff {theirs:.2f} s (scaled up), citejury {ours:.3f} s")
        ratios.append(theirs / ours)
    tracemalloc.start()
    measure_figures(ratings, RESAMPLES, 0)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    log(f"traced peak {peak:.0f} MiB, goal below {MEMORY_MIB}")
    name = "agreement" if units_a_record == 1 else f"agreement_{units_a_record}_units"
    report(name, statistics.median(ratios), GOALS[units_a_record], is_at_least=True)


def main() -> None:
    for number in GOALS:
        measure_row(number)
