import math
import os
import subprocess
import sys

import numpy as np
import pytest

from exports.statistics.agreement import measure_figures
from exports.statistics.agreement_schema import UNDEFINED_SHARE, Interval
from exports.statistics.annotators import AnnotatorEstimators, PairEstimators, measure_exchange
from exports.statistics.distributions import student_quantile
from exports.statistics.labels import LabelEstimators
from exports.statistics.ratings import FloatArray, Ratings
from exports.statistics.resampling import (
    Estimator,
    Replicates,
    SparseSums,
    bca_levels,
    bootstrap,
    exact_addends,
    expanded_percentile_ends,
    interval,
    share_below,
    task_patterns,
    undefined_share,
)
from tests.support.agreement_data import CASES, Row, ratings_of, ratings_of_matrix
from tests.support.peak_memory import needs_proc
from tests.support.places import NO_SHARED, ROOT

RTE = CASES / "real" / "rte_snow2008.csv"
MEASURE_RTE = f"""
from pathlib import Path
from exports.statistics.agreement import measure_figures
from tests.support.agreement_data import ratings_of_case
from tests.support.peak_memory import peak_bytes
found = measure_figures(ratings_of_case(Path({str(RTE)!r})), 600, 0)
print(peak_bytes(), len(found.pairs))
print(sum(pair.interval is not None for pair in found.pairs))
"""
needs_rte = pytest.mark.skipif(not RTE.is_file(), reason=NO_SHARED)


def mean(totals: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return totals[..., :1] / totals[..., 1:2]


def records_of(*values: float) -> FloatArray:
    return np.array([[value, 1.0] for value in values])


def drawn(*, units: int, annotators: int, share: float, records: int, seed: int = 0) -> Ratings:
    generator = np.random.default_rng(seed)
    truth = generator.random((units, 1)) < 0.4
    matrix = (truth ^ (generator.random((units, annotators)) < 0.15)).astype(np.float64)
    matrix[generator.random(matrix.shape) > share] = np.nan
    matrix[:, 0] = truth[:, 0]
    return ratings_of_matrix(
        matrix, sorted([*generator.integers(0, records, units - records).tolist(), *range(records)])
    )


def resampled(sums: FloatArray | SparseSums, resamples: int, seed: int = 0, frame: object = None) -> Replicates:
    drawn_from = np.ones(sums.shape[0], dtype=bool) if frame is None else np.array(frame)
    (found,) = bootstrap([Estimator(sums, mean, drawn_from)], resamples, seed).values()
    return found


def test_a_case_worked_by_hand_of_which_only_records_of_the_frame_are_drawn() -> None:
    # Records 0, 0, 3 and 9; their mean is 3. Leaving one out: 12/3 = 4, 4, 3, 1, whose mean is 3.
    # u = mean − value: −1, −1, 0, 2; Σu² = 6, Σu³ = −1 − 1 + 8 = 6.
    # Acceleration 6/(6·6^1.5) = 6^−1.5; jackknife error √(3/4 · 6) = √4.5.
    found = resampled(records_of(0, 0, 3, 9), 500)
    assert (found.n_records, found.estimates.tolist(), found.resampled.shape) == (4, [3], (500, 1))
    assert found.acceleration == pytest.approx([6**-1.5])
    assert found.jackknife_se == pytest.approx([math.sqrt(4.5)])
    # The mean of four draws has variance (9 + 9 + 0 + 36)/4/4 = 3.375.
    assert found.resampled.mean() == pytest.approx(3, abs=5 * math.sqrt(3.375 / 500))
    assert found.resampled.var() == pytest.approx(3.375, rel=0.3)
    found = resampled(records_of(1, 1000, 2), 200, frame=[True, False, True])
    assert (found.n_records, set(found.resampled[:, 0])) == (2, {1, 1.5, 2})
    nothing = resampled(records_of(1, 2), 10, frame=[False, False])
    assert np.isnan([*nothing.estimates, *nothing.resampled[:, 0]]).all()
    assert interval(nothing, 0) == "undefined"


def test_separate_calls_sparse_sums_and_any_order_give_the_same_resamples_to_the_last_digit() -> None:
    first, second = records_of(*range(30)), records_of(*(5 - 2 * value for value in range(30)))
    alone, other = resampled(first, 700, 3), resampled(np.hstack([second, np.zeros((30, 300))]), 700, 3)
    assert other.resampled == pytest.approx(5 - 2 * alone.resampled)
    assert (resampled(first, 700, 4).resampled != alone.resampled).any()
    dense = np.random.default_rng(0).integers(0, 3, (40, 2)).astype(np.float64) + 0.1
    records, columns = np.nonzero(dense)
    halves = SparseSums(records.repeat(2), columns.repeat(2), (dense[records, columns] / 2).repeat(2), (40, 2))
    one, other = (resampled(each, 60, frame=np.arange(40) % 4 > 0) for each in (dense, halves))
    for field in ("estimates", "resampled", "acceleration", "jackknife_se"):
        assert getattr(one, field) == pytest.approx(getattr(other, field), rel=1e-9), field
    generator = np.random.default_rng(0)
    values = generator.random((5000, 3)) * [1, 1e-7, 1e9]
    rounded = exact_addends(values, 5000)
    assert (np.abs(rounded - values).max(axis=0) <= 5000 * values.max(axis=0) / 2**52).all()
    assert len({tuple(rounded[generator.permutation(5000)].sum(axis=0).tolist()) for _ in range(20)}) == 1
    assert (exact_addends(np.arange(10.0)[:, np.newaxis], 10)[:, 0] == np.arange(10)).all()


def replicates(resampled: list[float], n_records: int = 40, acceleration: float = 0.0) -> Replicates:
    one = np.array([1.0])
    return Replicates(0.5 * one, np.array(resampled)[:, np.newaxis], acceleration * one, one, n_records)


EVEN = np.linspace(0, 1, 1001).tolist()


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        (replicates(EVEN, n_records=1), "single_record"),
        (replicates([0.5] * 100), "constant"),
        # Five per cent undefined is the last share that is neither refused nor warned of.
        (replicates([*EVEN[:950], *[math.nan] * 50]), None),
        (replicates([*EVEN[:949], *[math.nan] * 51]), "undefined_resamples"),
    ],
)
def test_an_interval_is_refused_with_its_reason(given: Replicates, refused: str | None) -> None:
    found = interval(given, 0)
    assert (found if isinstance(found, str) else None) == refused
    assert (undefined_share(given.resampled[:, 0]) > UNDEFINED_SHARE) == (refused == "undefined_resamples")


def test_thresholds_forgive_rounding_and_bca_is_by_hand_and_without_bias_the_percentile_interval() -> None:
    assert share_below(np.array([0.79, 0.8 - 2**-52, 0.8, 0.9]), 0.8) == 0.25
    found = interval(replicates(EVEN), 0)
    assert isinstance(found, Interval)
    assert (found.low, found.high) == pytest.approx((0.025, 0.975))
    assert (found.method, found.unit) == ("bca", "record_uuid")
    # z0 = 0.1, a = 0.05: 0.1 + (0.1 − 1.959964)/(1 + 0.05·1.859964) = −1.601682; Φ = 0.054613.
    # 0.1 + (0.1 + 1.959964)/(1 − 0.05·2.059964) = 2.396498; Φ = 0.991724.
    assert bca_levels(0.1, 0.05) == pytest.approx((0.054613, 0.991724), abs=1e-5)
    assert bca_levels(math.inf, 0.05) is None
    assert bca_levels(0.0, 0.6) is None


@pytest.mark.parametrize(
    "given",
    [
        replicates(EVEN, n_records=19),
        replicates(EVEN, acceleration=math.nan),
        replicates(np.linspace(0.6, 1, 1001).tolist()),
    ],
    ids=["few records", "no acceleration", "all resamples on one side"],
)
def test_where_bca_is_no_help_the_expanded_percentile_is_named(given: Replicates) -> None:
    found = interval(given, 0)
    assert isinstance(found, Interval)
    assert found.method == "expanded_percentile"
    ends = expanded_percentile_ends(given.resampled[:, 0], given.n_records)
    assert (found.low, found.high) == pytest.approx(ends, abs=1e-11)


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.706204736), (2, 4.302652730), (9, 2.262157163), (30, 2.042272456), (5000, 1.960438)],
)
def test_quantiles_of_student_are_those_of_the_tables(degrees: int, quantile: float) -> None:
    assert student_quantile(degrees) == pytest.approx(quantile, abs=1e-6)


def test_figures_depend_on_the_seed_and_not_on_what_else_is_resampled_nor_in_what_order() -> None:
    ratings = drawn(units=120, annotators=4, share=0.6, records=40)
    joint, task = measure_figures(ratings, 300, 5), task_patterns(ratings)
    pairs = [PairEstimators(task, label) for label in task.labels]
    alone = bootstrap([each.estimator for each in reversed(pairs)], 300, 5)
    assert joint.pairs == tuple(found for each in pairs for found in each.read(alone))
    annotators = [AnnotatorEstimators(task, label) for label in task.labels]
    alone = bootstrap([each.estimator for each in reversed(annotators)], 300, 5)
    supports = [LabelEstimators(task, label, own).support for label, own in zip(task.labels, pairs, strict=True)]
    read = zip(annotators, supports, measure_exchange(ratings), strict=True)
    assert joint.annotators == tuple(found for each, *more in read for found in each.read(alone, *more))
    ratings = drawn(units=100, annotators=3, share=0.8, records=30)
    first, second, third = (measure_figures(ratings, 200, seed) for seed in (7, 7, 8))
    assert first == second
    one, other = (each.labels["proper_action"] for each in (first, third))
    assert (one.intervals == other.intervals, one.krippendorff_alpha == other.krippendorff_alpha) == (False, True)


def test_units_told_by_pattern_give_what_single_units_give(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaves() -> dict[str, object]:
        found = measure_figures(drawn(units=120, annotators=4, share=0.6, records=40), 300, 5)
        kept = (found.labels["proper_action"], *found.pairs, *found.annotators)
        return flat(tuple(each.model_dump() for each in kept))

    by_pattern = leaves()
    for name, value in (("MOST_PATTERNS", 3), ("DENSE", 0)):
        monkeypatch.setattr(f"exports.statistics.resampling.{name}", value)
        assert leaves() == pytest.approx(by_pattern, abs=1e-9)


def flat(value: object, name: str = "") -> dict[str, object]:
    """Leaves of a nested value by their path."""
    if isinstance(value, dict):
        return {key: leaf for part, each in value.items() for key, leaf in flat(each, f"{name}.{part}").items()}
    if isinstance(value, tuple):
        return flat(dict(enumerate(value)), name)
    return {name: value}


def test_macro_alpha_moves_as_one_with_its_labels_and_units_never_tell_as_much_as_more_would() -> None:
    # Three labels answered alike have one alpha, so their mean has its interval; if they were resampled each on its
    # own, the interval of the mean would be 1/√3 as wide.
    ratings = drawn(units=60, annotators=3, share=1, records=60)
    values = ratings.values.copy()
    values[:, 1] = values[:, 2] = values[:, 0]
    found = measure_figures(ratings._replace(values=values), 500, 0)
    alpha = found.labels["proper_action"].intervals["krippendorff_alpha"]
    assert found.macro.n_labels_with_alpha == 3
    assert found.macro.macro_alpha == pytest.approx(found.labels["proper_action"].krippendorff_alpha)
    mean = found.macro.macro_interval
    assert (mean.low, mean.high) == pytest.approx((alpha.low, alpha.high), abs=1e-9)
    # Each record has one unit on which the two agree and one on which they differ: records differ less than units.
    rows = [
        Row(f"r{record:02d}", name, (int(name == "a" or unit == 0),), f"c{unit}")
        for record in range(26)
        for unit in range(2)
        for name in "ab"
    ]
    rows += [Row("r99", name, (0,), "c0") for name in "ab"]
    found = measure_figures(ratings_of(rows), 300, 0).labels["proper_action"]
    assert (found.design_effect or 1) < 0.9
    assert found.n_effective == found.n_pairable_items == 53


def test_a_record_with_one_pairable_unit_has_a_design_effect_of_exactly_one() -> None:
    alone = measure_figures(drawn(units=80, annotators=3, share=1, records=80), 400, 0).labels["proper_action"]
    assert (alone.design_effect, alone.n_effective) == (1, 80)
    # Shares of resamples below the thresholds come with the interval.
    assert list(alone.p_below) == ["0.667", "0.800"]
    assert 0 < alone.p_below["0.667"] <= alone.p_below["0.800"] <= 1
    assert (alone.p_below["0.667"] > 0.025) == (alone.intervals["krippendorff_alpha"].low < 0.667)
    nothing = measure_figures(ratings_of([Row("r", "anna", (1,))]), 400, 0).labels["proper_action"]
    assert (nothing.p_below, nothing.undefined_resamples, nothing.design_effect) == ({}, None, None)
    rows = [
        Row(f"r{unit // 4:02d}", name, (int(unit % 8 < 4 or (name == "c" and unit % 3 == 0)),), f"c{unit}")
        for unit in range(160)
        for name in "abc"
    ]
    together = measure_figures(ratings_of(rows), 300, 0).labels["proper_action"]
    assert together.design_effect not in (None, 1)
    assert together.n_effective == pytest.approx(min(160, 160 / (together.design_effect or 1)))


DIGEST = """
import hashlib
from exports.statistics import resampling
from exports.statistics.agreement import measure_figures
from tests.exports.statistics.test_resampling import drawn
digest = hashlib.sha256()
for resampling.MOST_PATTERNS in (256, 0):
    found = measure_figures(drawn(units=6000, annotators=4, share=0.7, records=2500), 400, 0)
    for each in (*found.labels.values(), found.macro.macro_interval, *found.pairs, *found.annotators):
        digest.update(each.model_dump_json().encode() if each else b"none")
print(digest.hexdigest())
"""


@pytest.mark.rare
def test_the_number_of_threads_changes_not_a_byte() -> None:
    def digest(threads: int) -> str:
        names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
        given = {**os.environ, **dict.fromkeys(names, str(threads))}
        command = [sys.executable, "-c", DIGEST]
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=given).stdout

    alone = digest(1)
    assert (len(alone), digest(2)) == (65, alone)


@needs_rte
@needs_proc
@pytest.mark.rare
def test_164_annotators_and_the_1254_pairs_of_theirs_that_share_units_fit_into_memory() -> None:
    done = subprocess.run([sys.executable, "-c", MEASURE_RTE], capture_output=True, text=True, check=True, cwd=ROOT)
    peak, n_pairs, with_interval = map(int, done.stdout.split())
    assert n_pairs == 1254
    assert with_interval > 1000
    assert peak < 500 * 2**20
