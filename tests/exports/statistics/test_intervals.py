"""Our own intervals against 200,000 resamples of each case, within the tolerances that the cases come with."""

import math
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from exports.reading.read import export_files, read_tables
from exports.statistics.agreement import measure_figures
from exports.statistics.agreement_schema import Interval
from exports.statistics.ratings import FloatArray, Ratings, count_votes
from exports.statistics.resampling import Estimator, Replicates, bca_ends, bias_correction, bootstrap, interval
from exports.statistics.table import alpha_sums, alphas
from tests.support.agreement_data import CASES, SINGLE_LABEL, expected_of_case, ratings_of_case
from tests.support.places import NO_SHARED

RESAMPLES = 10_000
SEED = 1
REAL = sorted((CASES / "real").glob("*.csv"))
REFERENCES = [
    path for path in (*SINGLE_LABEL, *REAL) if expected_of_case(path)["bootstrap_alpha_reference"] is not None
]
REFUSED = {
    "edge_all_positive",
    "edge_one_constant_rater",
    "edge_singletons_shift_marginals",
    "freelon2010_R2.01",
    "freelon2010_R2.09",
    "freelon2010_R3.03",
    "freelon2010_R3.08",
    "irrcac_raw5observers_is3",
}
FEW_VALUES = {
    "edge_one_constant_rater",
    "edge_singletons_shift_marginals",
    "freelon2010_R2.04",
    "freelon2010_R3.03",
    "krippendorff2011_A_binary",
    "krippendorff2011_C_is1",
    "wikipedia_kalpha_is1",
    "wikipedia_kalpha_is3",
}
"""Cases whose replicates take so few values that a correct program's ends jump."""
EXPORT = CASES / "open" / "export_a"
NORMAL = NormalDist()

each_reference = pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.stem)


def resample_alpha(ratings: Ratings, resamples: int = RESAMPLES) -> Replicates:
    votes = count_votes(ratings.values[:, :1], ratings.units, len(ratings.unit_records))
    sums = alpha_sums(votes, ratings.unit_records, len(ratings.records))
    estimator = Estimator(sums, alphas, sums.any(axis=1))
    return bootstrap([estimator], resamples, SEED)[estimator]


@cache
def resampled_case(path: Path) -> tuple[Replicates, dict[str, Any]]:
    return resample_alpha(ratings_of_case(path)), expected_of_case(path)["bootstrap_alpha_reference"]


def defined(replicates: Replicates) -> FloatArray:
    column = replicates.resampled[:, 0]
    return column[~np.isnan(column)]


def assert_between_quantiles(replicates: FloatArray, level: float, reference: float) -> None:
    margin = 5 * math.sqrt(level * (1 - level) / RESAMPLES) + 0.0001
    low, high = np.quantile(replicates, [max(0.0, level - margin), min(1.0, level + margin)])
    assert low - 1e-9 <= reference <= high + 1e-9


@each_reference
def test_resamples_and_their_ends_are_those_of_many_more(path: Path) -> None:
    replicates, expected = resampled_case(path)
    share, found = expected["undefined_resamples"], np.isnan(replicates.resampled[:, 0]).mean()
    assert abs(found - share) <= 5 * math.sqrt(share * (1 - share) / RESAMPLES) + 0.0005
    if "jackknife_se" in expected:
        assert replicates.jackknife_se[0] == pytest.approx(expected["jackknife_se"], abs=1e-9)
        assert replicates.acceleration[0] == pytest.approx(expected["bca_acceleration"], abs=1e-9)
    else:
        assert math.isnan(replicates.acceleration[0])
    if "se" in expected:
        assert defined(replicates).std(ddof=1) == pytest.approx(expected["se"], rel=0.05)
    if "bca_z0" in expected:
        own = bias_correction(defined(replicates), replicates.estimates[0])
        assert own == pytest.approx(expected["bca_z0"], abs=0.06)
    if path.stem not in FEW_VALUES and "bca_95" in expected:
        ends = bca_ends(defined(replicates), replicates.estimates[0], replicates.acceleration[0])
        assert ends == pytest.approx(tuple(expected["bca_95"]), abs=0.35 * expected["se"] + 1e-9)
    for level, end in zip((0.025, 0.975), expected.get("percentile_95", ()), strict=False):
        assert_between_quantiles(defined(replicates), level, end)
    z0, acceleration = expected.get("bca_z0", math.nan), expected.get("bca_acceleration", math.nan)
    for z, end in zip((-1.959964, 1.959964), expected.get("bca_95", ()), strict=False):
        level = NORMAL.cdf(z0 + (z0 + z) / (1 - acceleration * (z0 + z)))
        assert_between_quantiles(defined(replicates), level, end)


@each_reference
def test_an_interval_is_refused_where_too_many_resamples_are_undefined_and_else_names_its_method(path: Path) -> None:
    replicates, _ = resampled_case(path)
    found = interval(replicates, 0)
    if isinstance(found, Interval):
        assert path.stem not in REFUSED
        assert found.method == ("bca" if replicates.n_records >= 20 else "expanded_percentile")
        assert found.low <= replicates.estimates[0] <= found.high
    else:
        assert path.stem in REFUSED
        assert found == ("undefined" if math.isnan(replicates.estimates[0]) else "undefined_resamples")


@pytest.mark.skipif(not EXPORT.is_dir(), reason=NO_SHARED)
def test_the_intervals_of_a_whole_export_are_those_of_200_000_resamples_of_its_records() -> None:
    expected = expected_of_case(EXPORT / "expected")["tasks"]
    compared = 0
    effects: dict[str, set[float | None]] = {}
    for ratings in read_tables(export_files([EXPORT])).tables:
        for label, found in measure_figures(ratings, RESAMPLES, SEED).labels.items():
            reference = expected[ratings.task]["labels"][label]["bootstrap"]["clusters_record_uuid"]
            assert found.n_cluster_records == reference["n_resampled_units"]
            effects.setdefault(ratings.task, set()).add(found.design_effect)
            if (alpha := found.intervals.get("krippendorff_alpha")) is None:
                if found.refused_intervals["krippendorff_alpha"] != "too_few_rare_ratings":
                    assert found.refused_intervals["krippendorff_alpha"] == "undefined_resamples"
                    assert reference["undefined"] > 0.04
                continue
            if alpha.method == "one-sided":
                assert (alpha.low, found.refused_intervals["fleiss_kappa"]) == (-1, "too_few_rare_ratings")
                assert found.krippendorff_alpha is not None
                assert found.krippendorff_alpha < alpha.high < 0.667
                continue
            ends = reference["bca_95" if alpha.method == "bca" else "percentile_95"]
            assert (alpha.low, alpha.high) == pytest.approx(tuple(ends), abs=0.35 * reference["se"]), label
            assert found.standard_error == pytest.approx(reference["se"], rel=0.05)
            compared += 1
    assert compared >= 10
    # Clusters cost precision in retrieval, and none elsewhere.
    assert all(1 < (effect or 0) < 1.4 for effect in effects.pop("retrieval"))
    assert effects == {"grounding": {1}, "generation": {1}}
