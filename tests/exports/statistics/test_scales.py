"""Figures of nominal, ordinal and interval labels: printed ones, those of libraries, and where there is none."""

import csv
import io
import json
import math
from collections.abc import Callable
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from exports.reading.any_ratings import RatingOptions, read_ratings
from exports.statistics.agreement import measure_agreement, measure_figures
from exports.statistics.agreement_schema import ScaledLabelAgreement, TaskAgreement
from exports.statistics.ratings import FloatArray, ScaleName, Weights
from exports.statistics.scales import SCALED_STATISTICS, weight_matrix
from exports.statistics.table import STATISTICS, LabelFigures
from tests.support.agreement_data import ratings_of_matrix
from tests.support.places import NO_SHARED, SHARED
from tests.support.scaled_ratings import RAW4, scaled_ratings

CLIMATE = SHARED / "corpora" / "ratings" / "climate-fever.jsonl"


def measured(folder: Path, table: str, resamples: int = 100, **options: object) -> TaskAgreement:
    """A wide table of one label, `value`."""
    path = folder / "ratings.csv"
    path.write_text(table, encoding="utf-8")
    given = RatingOptions.model_validate({"unit": "unit", "rater_columns": ("*",), **options})
    read = read_ratings([path], given)
    return measure_agreement(read.tables, read.inputs, resamples, 0).tasks["ratings"]


def figures(folder: Path, table: str, scale: ScaleName, **options: object) -> ScaledLabelAgreement:
    found = measured(folder, table, scale={"": scale}, **options).labels["value"]
    assert isinstance(found, ScaledLabelAgreement)
    return found


def table_of(matrix: FloatArray) -> str:
    """Units × annotators; NaN is no rating."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["unit", *(f"p{number}" for number in range(matrix.shape[1]))])
    for number, row in enumerate(matrix):
        writer.writerow([f"u{number:03d}", *("" if math.isnan(value) else f"{value:.12g}" for value in row)])
    return text.getvalue()


def drawn(seed: int, n_values: int, n_units: int = 40, n_raters: int = 4) -> FloatArray:
    random = np.random.default_rng(seed)
    truth = random.integers(0, n_values, (n_units, 1))
    matrix = np.where(
        random.random((n_units, n_raters)) < 0.6, truth, random.integers(0, n_values, (n_units, n_raters))
    )
    found = matrix.astype(np.float64)
    found[random.random(found.shape) < 0.3] = np.nan
    return found


@pytest.mark.parametrize(("scale", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_four_observers_of_krippendorff(tmp_path: Path, scale: ScaleName, alpha: float) -> None:
    found = figures(tmp_path, RAW4, scale)
    assert found.krippendorff_alpha == pytest.approx(alpha, abs=0.0005)
    assert (found.n_items, found.n_pairable_items, found.n_ratings) == (12, 11, 41)


@pytest.mark.parametrize(
    ("weights", "percent", "ac", "fleiss", "conger", "brennan"),
    [
        ("identity", 0.8181818182, 0.7754440681, 0.7611692754, 0.7628174413, 0.7727272727),
        ("linear", 0.9393939394, 0.8587391364, 0.8179447671, 0.8137763200, 0.8484848485),
        ("quadratic", 0.9753787879, 0.9140007236, 0.8649350649, 0.8577106562, 0.9015151515),
        ("ordinal", 0.9681818182, 0.8989397699, 0.8502061894, 0.8436595252, 0.8863636364),
    ],
)
def test_coefficients_of_irrcac_with_each_of_its_weights(
    tmp_path: Path, weights: Weights, percent: float, ac: float, fleiss: float, conger: float, brennan: float
) -> None:
    """irrCAC 0.4.4 for Python on its `raw4raters`; those without weights are printed by R's irrCAC too."""
    found = figures(tmp_path, RAW4, "ordinal", weights=weights)
    assert found.weighted_agreement == pytest.approx(percent, abs=1e-6)
    assert found.gwet_ac2 == pytest.approx(ac, abs=1e-6)
    assert found.weighted_fleiss_kappa == pytest.approx(fleiss, abs=1e-6)
    assert found.weighted_conger_kappa == pytest.approx(conger, abs=1e-6)
    assert found.weighted_brennan_prediger == pytest.approx(brennan, abs=1e-6)
    assert found.gwet_ac1 == pytest.approx(0.7754440681, abs=1e-6)
    assert found.conger_kappa == pytest.approx(0.7628174413, abs=1e-6)


def test_weights_are_those_of_gwet() -> None:
    """Of ranks 1 to 4 the ordinal weight of 1 and 3 is 1 − C(3, 2)/C(4, 2) = 1/2."""
    places = np.array([1.0, 2, 4, 5])
    assert weight_matrix("ordinal", places)[0].tolist() == pytest.approx([1, 5 / 6, 1 / 2, 0])
    assert weight_matrix("linear", places)[0].tolist() == pytest.approx([1, 3 / 4, 1 / 4, 0])
    assert weight_matrix("quadratic", places)[0].tolist() == pytest.approx([1, 15 / 16, 7 / 16, 0])
    assert weight_matrix("identity", places).tolist() == np.eye(4).tolist()


@pytest.mark.parametrize("n_values", [2, 3, 7, 300])
@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_alpha_of_random_tables_is_that_of_the_library(tmp_path: Path, scale: ScaleName, n_values: int) -> None:
    matrix = drawn(n_values, n_values, n_units=60 if n_values < 300 else 30)
    if scale == "ordinal" and n_values == 300:
        matrix //= 4
    wanted = krippendorff.alpha(reliability_data=matrix.T, level_of_measurement=scale)
    assert figures(tmp_path, table_of(matrix), scale).krippendorff_alpha == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(("weights", "theirs"), [("identity", None), ("linear", "linear"), ("quadratic", "quadratic")])
def test_kappa_of_each_pair_is_that_of_scikit_learn(tmp_path: Path, weights: Weights, theirs: str | None) -> None:
    matrix = drawn(11, 5)
    found = measured(tmp_path, table_of(matrix), scale={"": "ordinal"}, weights=weights)
    assert len(found.scaled_pairs) == 6
    for pair in found.scaled_pairs:
        both = matrix[:, [int(pair.rater_a[1]), int(pair.rater_b[1])]]
        first, second = both[~np.isnan(both).any(axis=1)].T
        assert pair.n_shared == len(first)
        assert pair.percent_agreement == pytest.approx(float(np.mean(first == second)))
        assert pair.weighted_kappa == pytest.approx(
            cohen_kappa_score(first, second, weights=theirs, labels=list(range(5)))
        )
        assert pair.cohen_kappa == pytest.approx(cohen_kappa_score(first, second))
    label = found.labels["value"]
    assert isinstance(label, ScaledLabelAgreement)
    kappas = [pair.weighted_kappa for pair in found.scaled_pairs if pair.weighted_kappa is not None]
    assert label.mean_pairwise_weighted_kappa == pytest.approx(sum(kappas) / 6)


def test_two_values_give_the_figures_and_intervals_of_the_engine_of_yes_and_no(tmp_path: Path) -> None:
    matrix = drawn(5, 2, n_units=60)
    ours = measure_figures(ratings_of_matrix(matrix), 300, 0).labels["proper_action"]
    scaled = figures(tmp_path, table_of(matrix), "nominal", resamples=300)
    shared = [name for name in STATISTICS if name in SCALED_STATISTICS]
    assert len(shared) == 7
    for name in shared:
        assert getattr(scaled, name) == pytest.approx(getattr(ours, name), abs=1e-12)
        there, here = scaled.intervals[name], ours.intervals[name]
        assert (there.low, there.high, there.method) == (
            pytest.approx(here.low, abs=1e-9),
            pytest.approx(here.high, abs=1e-9),
            here.method,
        )
    assert scaled.p_below == ours.p_below
    assert scaled.standard_error == pytest.approx(ours.standard_error)
    assert scaled.n_effective == pytest.approx(ours.n_effective)


@pytest.mark.parametrize("seed", range(6))
def test_what_alpha_rests_on_is_for_two_values_what_it_is_for_yes_and_no(seed: int) -> None:
    from exports.statistics.resampling import alpha_support
    from exports.statistics.scaled_labels import ScaledEstimators

    random = np.random.default_rng(seed)
    n_units = 30
    units = np.repeat(np.arange(n_units), random.integers(1, 5, n_units))
    records = np.sort(random.integers(0, 20, n_units))
    records = np.unique(records, return_inverse=True)[1]
    truth = random.random(n_units) < 0.3
    codes = (truth[units] ^ (random.random(len(units)) < 0.05 * seed)).astype(np.int64)
    ones = np.bincount(units[codes == 1], minlength=n_units)
    wanted = alpha_support(np.bincount(units) - ones, ones, records, int(records.max()) + 1)
    for scale in ("nominal", "ordinal", "interval"):
        ratings = scaled_ratings(scale, units, records, codes, np.array([0.0, 1.0]))
        found = ScaledEstimators(ratings, ratings.scaled[0]).support
        assert found == pytest.approx(wanted)


def test_groups_are_resampled_whole_and_cost_what_the_design_effect_says(tmp_path: Path) -> None:
    lines = RAW4.splitlines()
    grouped = "\n".join([f"{lines[0]},group", *(f"{line},g{int(line[1:3]) // 3}" for line in lines[1:])])
    alone, together = (
        figures(tmp_path, table, "nominal", resamples=400, **more)
        for table, more in ((RAW4, {}), (grouped, {"cluster": "group"}))
    )
    assert together.krippendorff_alpha == alone.krippendorff_alpha
    assert (alone.n_cluster_records, together.n_cluster_records) == (11, 4)
    assert alone.design_effect == 1
    assert together.design_effect not in (None, 1)


def test_an_interval_scale_of_many_numbers_has_what_needs_no_count_of_its_values(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    matrix = 1900 + 100 * random.random((60, 1)) + 5 * random.random((60, 3))
    found = measured(tmp_path, table_of(np.round(matrix, 4)), scale={"": "interval"})
    label = found.labels["value"]
    assert isinstance(label, ScaledLabelAgreement)
    wanted = krippendorff.alpha(reliability_data=np.round(matrix.T, 4), level_of_measurement="interval")
    assert label.krippendorff_alpha == pytest.approx(wanted, abs=1e-9)
    assert label.values == ()
    assert {n for n, reason in label.undefined.items() if reason == "too_many_values"} == {
        *("fleiss_kappa", "conger_kappa", "gwet_ac1", "brennan_prediger", "gwet_ac2", "weighted_brennan_prediger"),
        "mean_pairwise_kappa",
    }
    first, second = np.round(matrix[:, :2], 4).T
    apart = np.mean((first - second) ** 2) / (first.var() + second.var() + (first.mean() - second.mean()) ** 2)
    (pair,) = [pair for pair in found.scaled_pairs if (pair.rater_a, pair.rater_b) == ("p0", "p1")]
    assert pair.weighted_kappa == pytest.approx(1 - apart, abs=1e-9)
    assert label.weighted_fleiss_kappa is not None
    assert label.weighted_conger_kappa is not None


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_constant_values_have_no_alpha_and_no_figure_that_looks_like_one(tmp_path: Path, scale: ScaleName) -> None:
    found = figures(tmp_path, "unit,a,b\n" + "".join(f"u{n},3,3\n" for n in range(30)), scale)
    assert (found.percent_agreement, found.weighted_agreement, found.full_agreement_share) == (1, 1, 1)
    for name, entry in SCALED_STATISTICS.items():
        if name not in ("percent_agreement", "weighted_agreement", "full_agreement_share"):
            assert getattr(found, name) is None
            assert found.undefined[name] == ("no_variation" if entry.compute else "constant_both_raters")
    assert "CONSTANT_RATER" in found.warnings


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_one_rater_or_units_nobody_shares_have_reasons_and_warnings(tmp_path: Path, scale: ScaleName) -> None:
    alone = figures(tmp_path, "unit,a\nu1,1\nu2,2\n", scale)
    assert (alone.krippendorff_alpha, alone.undefined["krippendorff_alpha"]) == (None, "single_annotator")
    assert "SINGLE_ANNOTATOR" in alone.warnings
    apart = figures(tmp_path, "unit,a,b\nu1,1,\nu2,,2\n", scale)
    assert (apart.percent_agreement, apart.undefined["percent_agreement"]) == (None, "no_pairable_items")
    assert "NO_OVERLAP" in apart.warnings
    assert not apart.intervals


def test_full_agreement_is_one_and_its_interval_one_sided(tmp_path: Path) -> None:
    found = figures(tmp_path, "unit,a,b\n" + "".join(f"u{n},{n % 4},{n % 4}\n" for n in range(40)), "ordinal")
    assert found.krippendorff_alpha == 1
    interval = found.intervals["krippendorff_alpha"]
    assert (interval.method, interval.high) == ("one-sided", 1)
    assert 0.5 < interval.low < 1


def test_a_rare_value_is_warned_of_and_alpha_has_no_interval(tmp_path: Path) -> None:
    rows = [("a", "a")] * 60 + [("b", "c"), ("b", "b"), ("a", "c")]
    found = figures(tmp_path, "unit,x,y\n" + "".join(f"u{n},{x},{y}\n" for n, (x, y) in enumerate(rows)), "nominal")
    assert {"RARE_VALUES", "COMMON_VALUE"} <= set(found.warnings)
    # 2 units are wholly on the side of b and c, which is enough of 63 records.
    assert "krippendorff_alpha" in found.intervals
    rows = rows[:60] + [("b", "c")] + [("a", "c")] * 3
    found = figures(tmp_path, "unit,x,y\n" + "".join(f"u{n},{x},{y}\n" for n, (x, y) in enumerate(rows)), "nominal")
    interval = found.intervals["krippendorff_alpha"]
    assert (interval.method, interval.low) == ("one-sided", -1)  # how high alpha may be is known: not above .667
    assert found.krippendorff_alpha < interval.high < 0.667
    assert found.refused_intervals["fleiss_kappa"] == "too_few_rare_ratings"


def test_agreement_on_each_value_by_hand(tmp_path: Path) -> None:
    """Of units aa, ab, abb: of three ratings a two of two agreeing of 1 + 1 + 1 + 2 others; b: 0 + 2 of 1 + 4."""
    found = figures(tmp_path, "unit,x,y,z\nu1,a,a,\nu2,a,b,\nu3,a,b,b\n", "nominal")
    assert [(each.value, each.n_ratings, each.specific_agreement) for each in found.values] == [
        ("a", 4, 2 / 5),
        ("b", 3, 2 / 5),
    ]


def test_order_of_rows_and_names_do_not_change_a_byte(tmp_path: Path) -> None:
    found = figures(tmp_path, RAW4, "ordinal")
    head, *rows = RAW4.splitlines()
    again = figures(tmp_path, "\n".join([head, *rows[::-1]]), "ordinal")
    assert again.model_dump_json() == found.model_dump_json()


@pytest.mark.parametrize(
    ("scale", "changed"),
    [
        ("nominal", lambda x: (x * 3 + 1) % 7),
        ("ordinal", lambda x: x**3 - 20),
        ("interval", lambda x: 1e6 - 0.25 * x),
    ],
)
def test_figures_do_not_change_with_what_the_scale_does_not_tell(
    tmp_path: Path, scale: ScaleName, changed: Callable[[FloatArray], FloatArray]
) -> None:
    """Names of a nominal scale, distances of an ordinal one, unit and zero of an interval one."""
    matrix = drawn(2, 7)
    first, second = (figures(tmp_path, table_of(each), scale) for each in (matrix, changed(matrix)))
    for name in SCALED_STATISTICS:
        assert getattr(first, name) == pytest.approx(getattr(second, name), abs=1e-9)
    if scale != "nominal":
        for name, interval in first.intervals.items():
            assert second.intervals[name].low == pytest.approx(interval.low, abs=1e-9)


def test_every_entry_of_the_table_is_a_field_with_its_meaning() -> None:
    fields = ScaledLabelAgreement.model_fields
    assert set(SCALED_STATISTICS) <= set(fields)
    added = {name for name, field in fields.items() if field.annotation == float | None}
    assert added - set(LabelFigures.model_fields) - {"undefined_resamples", "standard_error"} <= {
        *SCALED_STATISTICS,
        *("design_effect", "n_effective"),
    }


@pytest.mark.skipif(not CLIMATE.is_file(), reason=NO_SHARED)
def test_climate_fever_has_the_alpha_that_is_published(tmp_path: Path) -> None:
    """.334, of three classes."""
    rows = [
        {
            "unit": f"{claim['claim_id']}/{each['evidence_id']}",
            "who": f"voter {number}",
            "vote": vote,
            "claim": claim["claim_id"],
        }
        for claim in map(json.loads, CLIMATE.read_text(encoding="utf-8").splitlines())
        for each in claim["evidences"]
        for number, vote in enumerate(each["votes"])
        if vote
    ]
    path = tmp_path / "votes.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    read = read_ratings([path], RatingOptions(unit="unit", rater="who", value="vote", cluster="claim"))
    task = measure_agreement(read.tables, read.inputs, 200, 0).tasks["ratings"]
    found = task.labels["vote"]
    assert found.krippendorff_alpha == pytest.approx(0.334, abs=0.0005)
    assert (task.n_units, task.n_records) == (7675, 1535)
    interval = found.intervals["krippendorff_alpha"]
    assert interval.low < 0.334 < interval.high
