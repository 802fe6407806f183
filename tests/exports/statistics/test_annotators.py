import json
from pathlib import Path
from typing import Any

import pytest

from exports.reading.read import export_files, read_tables
from exports.statistics.agreement import TaskFigures, measure_figures
from exports.statistics.agreement_schema import AnnotatorAgreement, PairAgreement
from exports.statistics.annotators import measure_overlap, pair_agreement
from exports.statistics.table import Cells, mcnemar_p
from tests.support.agreement_data import CASES, SINGLE_LABEL, Row, expected_of_case, ratings_of, ratings_of_case
from tests.support.places import NO_SHARED

REAL = sorted((CASES / "real").glob("*.csv"))
PAIR_NAMES = (
    "percent_agreement",
    "cohen_kappa",
    "pabak",
    "prevalence_index",
    "bias_index",
    "positive_agreement",
    "negative_agreement",
    "mcc",
)


def figures_of(found: TaskFigures, label: str) -> tuple[list[PairAgreement], list[AnnotatorAgreement]]:
    return [pair for pair in found.pairs if pair.label == label], [
        each for each in found.annotators if each.label == label
    ]


def assert_pairs_and_annotators(found: TaskFigures, label: str, expected: dict[str, Any]) -> None:
    pairs, annotators = figures_of(found, label)
    sharing = [each for each in expected["pairwise"] if each["n_shared"]]
    assert [(pair.rater_a, pair.rater_b) for pair in pairs] == [(each["rater_a"], each["rater_b"]) for each in sharing]
    for pair, values in zip(pairs, sharing, strict=True):
        counts = (pair.n_shared, pair.n11, pair.n10, pair.n01, pair.n00)
        assert counts == tuple(values[name] for name in ("n_shared", "n11", "n10", "n01", "n00"))
        assert_figures(pair, {name: values[name] for name in PAIR_NAMES})
    assert [each.rater for each in annotators] == [each["rater"] for each in expected["leave_one_out"]]
    for annotator, values in zip(annotators, expected["leave_one_out"], strict=True):
        assert (annotator.n_ratings, annotator.n_compared, annotator.n_ties) == tuple(
            values[name] for name in ("n_ratings", "n_compared", "n_ties")
        )
        names = ("positive_rate", "alpha_without", "agreement_with_majority_of_others")
        assert_figures(annotator, {name: values[name] for name in names})


def assert_figures(found: PairAgreement | AnnotatorAgreement, expected: dict[str, float | None]) -> None:
    for name, value in expected.items():
        assert getattr(found, name) == (None if value is None else pytest.approx(value, abs=1e-9)), name
        assert (name in found.undefined) == (value is None), name


@pytest.mark.parametrize(
    "path", [path for path in SINGLE_LABEL if "pairwise" in expected_of_case(path)], ids=lambda path: path.stem
)
def test_pairs_and_annotators_of_the_cases_come_out_to_nine_digits(path: Path) -> None:
    found = measure_figures(ratings_of_case(path), 20, 0)
    expected = expected_of_case(path)
    assert_pairs_and_annotators(found, "proper_action", expected)
    label = found.labels["proper_action"]
    mean = expected["expected"]["mean_pairwise_cohen_kappa_defined_pairs"]
    assert label.mean_pairwise_kappa == (None if mean is None else pytest.approx(mean, abs=1e-9))
    assert label.n_pairs_with_kappa == expected["expected"]["n_pairs_with_kappa"]
    assert ("mean_pairwise_kappa" in label.undefined) == (mean is None)


@pytest.mark.skipif(not CASES.is_dir(), reason=NO_SHARED)
def test_pairs_and_annotators_of_a_whole_export_come_out_to_nine_digits() -> None:
    folder = CASES / "open" / "export_a"
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["tasks"]
    for ratings in read_tables(export_files([folder])).tables:
        found = measure_figures(ratings, 20, 0)
        for label, values in expected[ratings.task]["labels"].items():
            assert_pairs_and_annotators(found, label, values)


@pytest.mark.skipif(not REAL, reason=NO_SHARED)
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_mean_kappa_of_the_real_sets_comes_out_to_nine_digits(path: Path) -> None:
    expected = expected_of_case(path)["expected"]
    ratings = ratings_of_case(path)
    found = measure_figures(ratings, 20, 0)
    pairs, _ = figures_of(found, "proper_action")
    label = found.labels["proper_action"]
    assert len(pairs) + measure_overlap(ratings).pairs_apart == expected["n_rater_pairs"]
    assert len(pairs) == sum(pair.n_shared > 0 for pair in pairs) == expected["n_rater_pairs_sharing_items"]
    assert label.n_pairs_with_kappa == expected["n_pairs_with_defined_kappa"]
    assert label.mean_pairwise_kappa == pytest.approx(expected["mean_pairwise_cohen_kappa_defined_pairs"], abs=1e-9)


def test_a_pair_worked_by_hand_and_one_without_shared_units_that_is_not_listed() -> None:
    # Both yes 4, only anna 3, only ben 1, neither 2; n = 10. p_o = 6/10; anna says yes 7/10, ben 5/10.
    # p_e = .7·.5 + .3·.5 = .5; kappa = (.6 − .5)/.5 = 1/5. MCC = (8 − 3)/√(7·3·5·5) = 5/√525.
    # McNemar on (3, 1): 2·(1 + 4)/2⁴ = 10/16.
    found = pair_agreement("helpful", "anna", "ben", Cells(4, 3, 1, 2), None)
    expected = (0.6, 0.2, 0.2, 0.2, 0.2, 8 / 12, 4 / 8, 5 / 525**0.5, 10 / 16)
    assert [getattr(found, name) for name in (*PAIR_NAMES, "mcnemar_p")] == pytest.approx(expected)
    assert (found.n_shared, found.undefined) == (10, {})
    found = measure_figures(ratings_of([Row("r1", "anna", (1,)), Row("r2", "ben", (0,))]), 20, 0)
    pairs, annotators = figures_of(found, "proper_action")
    assert (pairs, [each.alpha_without for each in annotators]) == ([], [None, None])
    assert annotators[0].undefined["alpha_without"] == "single_annotator"


@pytest.mark.parametrize(
    ("cells", "undefined"),
    [
        (
            (3, 0, 0, 0),
            {"cohen_kappa": "constant_both_raters", "negative_agreement": "no_variation", "mcc": "no_variation"},
        ),
        ((3, 2, 0, 0), {"mcc": "no_variation"}),
        ((0, 3, 0, 0), {"mcc": "no_variation"}),
    ],
    ids=["both say yes throughout", "one says yes throughout", "each is constant and they differ"],
)
def test_what_a_pair_cannot_tell_has_its_reason(cells: tuple[int, ...], undefined: dict[str, str]) -> None:
    found = pair_agreement("helpful", "anna", "ben", Cells(*cells), None)
    assert found.undefined.items() >= undefined.items()
    assert found.undefined.keys() - undefined.keys() <= {"negative_agreement"}
    assert found.cohen_kappa == (None if "cohen_kappa" in undefined else 0)


@pytest.mark.parametrize(
    ("only_first", "only_second", "p"),
    [(0, 0, 1), (5, 5, 1), (0, 5, 2 / 32), (10, 2, 2 * 79 / 4096), (40_000, 40_000, 1), (41_000, 39_000, 1.6e-12)],
)
def test_mcnemar_is_twice_the_smaller_tail(only_first: int, only_second: int, p: float) -> None:
    assert mcnemar_p(only_first, only_second) == pytest.approx(p, rel=0.05 if p < 1e-6 else 1e-9)
    assert mcnemar_p(only_first, only_second) == mcnemar_p(only_second, only_first)


@pytest.mark.parametrize("units", [19, 20])
def test_kappa_has_an_interval_from_twenty_shared_units_on(units: int) -> None:
    rows = [
        Row(f"r{unit}", name, (int(unit % 3 == 0 or (name == "b" and unit % 5 == 0)),))
        for unit in range(units)
        for name in "ab"
    ]
    (found,), _ = figures_of(measure_figures(ratings_of(rows), 200, 0), "proper_action")
    assert (found.interval is None) == (units < 20)
    if found.interval:
        assert found.interval.low < (found.cohen_kappa or 0) < found.interval.high


def test_a_random_annotator_is_told_by_delta_alpha_and_a_label_is_resampled_among_its_own_records() -> None:
    rows = [
        Row(f"r{unit:03d}", name, (unit % 2 if name != "carla" else int(unit * 7919 % 11 < 5),))
        for unit in range(100)
        for name in ("anna", "ben", "carla")
    ]
    _, (anna, _, carla) = figures_of(measure_figures(ratings_of(rows), 500, 0), "proper_action")
    dissents = sum(unit % 2 != int(unit * 7919 % 11 < 5) for unit in range(100))
    assert (carla.alpha_without, carla.n_compared, carla.n_ties, carla.lone_dissents) == (1, 100, 0, dissents)
    assert (anna.n_ties, anna.lone_dissents) == (dissents, 0)
    assert carla.delta_interval.low > 0
    assert carla.positive_rate_interval[0] < (carla.positive_rate or 0) < carla.positive_rate_interval[1]
    rows = [
        Row(
            f"r{unit:02d}",
            name,
            (int(unit % 3 == 0), *([int(unit % 2 == 0 or (name == "b" and unit == 5))] * (unit < 25))),
        )
        for unit in range(40)
        for name in "abc"
    ]
    labels = measure_figures(ratings_of(rows), 300, 0).labels
    assert (labels["proper_action"].n_cluster_records, labels["response_on_topic"].n_cluster_records) == (40, 25)
    shortened = measure_figures(ratings_of([row for row in rows if row.record < "r25"]), 300, 0).labels
    for name, found in labels["response_on_topic"].intervals.items():
        alone = shortened["response_on_topic"].intervals[name]
        assert (found.low, found.high) == pytest.approx((alone.low, alone.high), abs=1e-12), name
