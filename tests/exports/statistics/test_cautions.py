"""Warnings by code, rules between labels, overlap and required size."""

from datetime import UTC, datetime
from typing import get_args

import numpy as np
import pytest

from exports.statistics.agreement import measure_agreement, measure_figures, measure_task
from exports.statistics.agreement_schema import LabelAgreement, LabelWarning, TaskAgreement, TaskWarning
from exports.statistics.annotators import identical_vectors, measure_overlap
from exports.statistics.consensus import groups_of
from exports.statistics.ratings import MISSING, Ratings, Votes
from exports.statistics.warnings import ADVICE, items_to_show, required_items, selection_p, with_cautions
from tests.support.agreement_data import Row, matrix_of, ratings_of, ratings_of_matrix

RESAMPLES = 200


def label_of(units: list[str], records: list[int] | None = None) -> LabelAgreement:
    ratings = ratings_of_matrix(matrix_of(*units), records)
    return with_cautions(ratings, measure_figures(ratings, RESAMPLES, 0).labels)["proper_action"]


def task_of(*rows: Row, n_duplicates: int = 0) -> TaskAgreement:
    return measure_task(ratings_of(rows, "retrieval", n_duplicates), RESAMPLES, 0)


def test_every_code_has_advice_clusters_are_records_and_required_units_have_two_ratings() -> None:
    assert set(ADVICE) == {*get_args(LabelWarning), *get_args(TaskWarning)}
    assert all(advice.endswith(".") and len(advice) > 40 for advice in ADVICE.values())
    assert label_of(["11", "00"] * 50, np.repeat(np.arange(10), 10).tolist()).warnings == ("FEW_CLUSTERS",)
    # At one half: (1.667·2.333)/(4·.333·.25) − .667 = 11.0123; times 1.645² = 2.706 is 29.80 units, or 59.6 ratings.
    assert [required_items(share) for share in (0.5, 0.05, None, 0, 1)] == [30, 165, None, None, None]
    assert required_items(0.3) == required_items(0.7)


@pytest.mark.parametrize(
    ("units", "given", "not_given"),
    [
        (["11", "00", "01", "10"] * 20, "", "all"),
        (["1", "0"], "SINGLE_ANNOTATOR", "all"),
        (["1.", ".0"], "NO_OVERLAP", "all"),
        (["10"], "SAMPLE_SIZE", ""),
        (["11", "00"] * 14 + ["10"], "FEW_ITEMS SAMPLE_SIZE", "all"),
        (["11", "00"] * 15, "", "all"),
        (["11", "00"] * 9 + ["10"], "FEW_CLUSTERS", ""),
        (["11", "00"] * 10, "", "FEW_CLUSTERS"),
        (["11"] * 4 + ["10"] + ["00"] * 40, "RARE_CLASS", ""),
        (["11"] * 5 + ["00"] * 40, "", "RARE_CLASS"),
        (["11", "10"] * 10, "CONSTANT_RATER", ""),
        (["11", "10"] * 9 + ["11"], "", "CONSTANT_RATER"),
        (["10", *["11"] * 30], "UNDEFINED_RESAMPLES", ""),
        # Feinstein & Cicchetti's tables (40, 9, 6, 45) and (80, 10, 5, 5): both agree on 85 of 100.
        (["11"] * 40 + ["10"] * 9 + ["01"] * 6 + ["00"] * 45, "", "PARADOX"),
        (["11"] * 80 + ["10"] * 10 + ["01"] * 5 + ["00"] * 5, "PARADOX", ""),
        (["11", "10"] * 30 + ["0."] * 60 + [".0"] * 60, "SELECTION", ""),
    ],
)
def test_a_label_is_warned_of_at_the_bounds_of_each_code(units: list[str], given: str, not_given: str) -> None:
    found = set(label_of(units).warnings)
    assert found == set(given.split()) if not_given == "all" else set(given.split()) <= found - {not_given}
    assert not_given not in found


@pytest.mark.parametrize(("alpha", "codings"), [(0.667, (60, 81, 172, 329)), (0.8, (103, 139, 293, 560))])
def test_required_ratings_are_those_of_the_printed_table(alpha: float, codings: tuple[int, ...]) -> None:
    assert tuple(round(2 * items_to_show(alpha, prevalence)) for prevalence in (0.5, 0.25, 0.1, 0.05)) == codings


def selection_of(double: int, single: int, random: np.random.Generator, shares: tuple[float, float]) -> float | None:
    """p of the test on records of one unit, of which so many are rated twice and once."""
    ones = np.concatenate([random.binomial(2, shares[0], double), random.binomial(1, shares[1], single)])
    return selection_p(Votes(np.repeat([2, 1], [double, single]) - ones, ones), np.arange(double + single))


def test_a_share_of_yes_that_depends_on_how_units_were_chosen_is_found_as_by_hand_and_chance_is_not() -> None:
    random = np.random.default_rng(0)
    differing = [selection_of(100, 200, random, (0.5, 0.25)) for _ in range(50)]
    equal = [selection_of(100, 200, random, (0.4, 0.4)) for _ in range(400)]
    assert np.mean([p is not None and p < 0.01 for p in differing]) > 0.8
    assert 0.02 < np.mean([p is not None and p < 0.05 for p in equal]) < 0.08
    # Fewer than ten records of either kind, or no variation, tell nothing.
    for double, single, share in ((9, 100, 0.5), (100, 9, 0.5), (20, 20, 1)):
        assert selection_of(double, single, random, (share, share)) is None
    # 10 units rated twice, 8 ratings of 20 yes; 10 rated once, 6 of 10 yes; each unit a record. Common share 14/30.
    # Twice: (0,2) × 4, (2,0) × 6. u = (yes − 2·14/30)/20: 4·(1.06667/20)² + 6·(.93333/20)² = .01137778 + .01306667.
    # Once: u = −(yes − 14/30)/10: 6·(.53333/10)² + 4·(.46667/10)² = .01706667 + .00871111. Sum .05022222, root .22410.
    # Shares .4 and .6: z = −.2/.22410 = −.89246; p = .37216.
    ones, ratings = np.repeat([2, 0, 1, 0], [4, 6, 6, 4]), np.repeat([2, 1], 10)
    assert selection_p(Votes(ratings - ones, ones), np.arange(20)) == pytest.approx(0.37216, abs=1e-4)


def test_a_task_is_warned_of_pairs_groups_repeats_rules_and_clocks_and_shared_units_make_a_group() -> None:
    plain = [Row(f"r{n}", name, (n % 2, 0, 0)) for n in range(20) for name in ("anna", "ben")]
    assert (task_of(*plain).warnings, task_of(*plain, n_duplicates=1).warnings) == ((), ("DUPLICATES",))
    assert task_of(*plain[:-2]).warnings == ("PAIR_OVERLAP",)
    assert task_of(*plain, Row("other", "carla", (1, 0, 0))).warnings == ("PAIR_OVERLAP", "DISCONNECTED")
    assert task_of(*plain[:-1], plain[-1]._replace(labels=(0, 1, 0))).warnings == ("CONSTRAINT",)
    for wrong in (datetime(1999, 12, 31, 23, 59, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)):
        assert task_of(*plain[:-1], plain[-1]._replace(at=wrong)).warnings == ("CLOCK",)
    shared = {"r1": "anna ben", "r2": "ben carla", "r3": "dora emil", "r4": "fritz", "r5": "fritz"}
    rows = [Row(record, name, (1,)) for record, names in shared.items() for name in names.split()]
    overlap = measure_overlap(ratings_of(rows))
    assert overlap.components == (("anna", "ben", "carla"), ("dora", "emil"), ("fritz",))
    assert overlap.units_by_ratings == {1: 2, 2: 3}
    chain, nobody = np.arange(1999), np.empty(0, np.int64)
    assert not groups_of(np.concatenate([chain, chain]), np.concatenate([chain, chain + 1]), 2000).any()
    assert groups_of(nobody, nobody, 0).tolist() == []


@pytest.mark.parametrize(
    ("units", "share"),
    [
        # Three alike: 3 of 3 pairs. Two alike and one other: 1 of 3. One of two lacks a label: no pair.
        ([[(1, 0, 1)] * 3, [(0, 0, 1), (0, 0, 1), (1, 0, 1)], [(0, 0, 1), (0, MISSING, 1)]], 4 / 6),
        ([[(0, MISSING, 1)]], None),
        ([[(0, 0, 0), (1, 0, 0)], [(0, 0, 0), (0, 1, 0)], [(0, 0, 0), (0, 0, 1)]], 0),
    ],
)
def test_identical_vectors_are_of_whole_responses(units: list[list[tuple[int, ...]]], share: float | None) -> None:
    rows = [Row(f"r{at}", f"p{seat}", votes) for at, unit in enumerate(units) for seat, votes in enumerate(unit)]
    assert identical_vectors(ratings_of(rows, "retrieval")) == (None if share is None else pytest.approx(share))


def conditional_rows() -> Ratings:
    """Retrieval units as (relevant, sufficient, misleading) by anna, ben and carla."""
    answers = {
        "r1": ((1, 1, 0), (1, 1, 0), (1, 0, 0)),
        "r2": ((1, 0, 0), (1, 0, 1), (0, 0, 0)),
        "r3": ((1, 1, 0), (0, 0, 0), (0, 0, 1)),
        "r4": ((0, 0, 0), (0, 0, 0), (0, 0, 0)),
        "r5": ((1, 1, 0), (1, 1, 1), (0, 1, 0)),
    }
    names = ("anna", "ben", "carla")
    rows = [Row(record, name, votes) for record, by in answers.items() for name, votes in zip(names, by, strict=True)]
    return ratings_of(rows, "retrieval")


def test_agreement_where_a_rule_leaves_its_label_open_by_hand() -> None:
    # evidence_sufficient among those who say relevant: r1 1,1,0; r2 0,0; r3 a single 1, out; r4 nobody; r5 1,1.
    # n = 7, n1 = 4, n0 = 3; d: r1 2·1·2/2 = 2, others 0; alpha = 1 − 6·2/(2·4·3) = 1/2.
    # a: r1 (0 + 2)/6 = 1/3, r2 1, r5 1: p_a = 7/9. π = (2/3 + 0 + 1)/3 = 5/9; p_e = 2·5/9·4/9 = 40/81.
    # AC1 = (63/81 − 40/81)/(41/81) = 23/41.
    # Among those who say not misleading: r1 1,1,0; r2 0,0; r3 1,0; r4 0,0,0; r5 1,1.
    # n = 12, n1 = 5, n0 = 7; Σd = 2 + 2 = 4; alpha = 1 − 11·4/(2·35) = 26/70.
    figures = measure_task(conditional_rows(), RESAMPLES, 0)
    needs, excludes = figures.conditional
    assert needs.rule == "evidence_requires_relevance"
    assert [(each.premise, each.premise_value, each.label, each.n_pairable_items) for each in (needs, excludes)] == [
        ("topically_relevant", True, "evidence_sufficient", 3),
        ("misleading", False, "evidence_sufficient", 5),
    ]
    measured = (needs.prevalence, needs.krippendorff_alpha, needs.percent_agreement, needs.gwet_ac1)
    assert measured == pytest.approx((4 / 7, 1 / 2, 7 / 9, 23 / 41))
    assert excludes.krippendorff_alpha == pytest.approx(26 / 70)
    assert figures.constraint_violations == {"evidence_requires_relevance": 1, "evidence_excludes_misleading": 1}
    assert figures.constraint_violations_by_annotator == {
        "evidence_requires_relevance": {"carla": 1},
        "evidence_excludes_misleading": {"ben": 1},
    }


def test_units_that_a_rule_decides_flatter_ac1_and_a_premise_of_nobody_is_undefined() -> None:
    random = np.random.default_rng(3)
    rows = [
        Row(f"r{record}", name, (record % 3 == 0, random.integers(0, 2) * (record % 3 == 0), 0))
        for record in range(60)
        for name in ("anna", "ben")
    ]
    figures = task_of(*rows)
    overall, conditional = figures.labels["evidence_sufficient"], figures.conditional[0]
    assert (overall.gwet_ac1 or 0) - (conditional.gwet_ac1 or 1) > 0.5
    assert (conditional.n_pairable_items, conditional.interval is None) == (20, False)
    figures = task_of(Row("r1", "anna", (0, 0, 0)), Row("r1", "ben", (0, 0, 0))).conditional[0]
    assert (figures.n_pairable_items, figures.prevalence, figures.krippendorff_alpha, figures.interval) == (
        (0, None, None, None)
    )
    assert set(figures.undefined) == {"prevalence", "percent_agreement", "krippendorff_alpha", "gwet_ac1"}


def test_discards_are_shares_of_each_annotators_work_and_a_task_without_responses_is_empty() -> None:
    ratings = ratings_of([Row("r1", "anna", (1,)), Row("r2", "anna", (1,)), Row("r1", "ben", (1,))])
    found = measure_task(ratings._replace(discards={"anna": 2, "carla": 1}), RESAMPLES, 0).discards
    assert (found.n_responses, found.share, found.by_annotator) == (3, 0.5, {"anna": 0.5, "ben": 0, "carla": 1})
    assert measure_task(ratings, RESAMPLES, 0).discards is None
    figures = measure_agreement([ratings_of([])], (), RESAMPLES).tasks["generation"]
    assert (figures.n_units, figures.macro_alpha, figures.identical_vectors) == (0, None, None)
    assert (figures.weeks, figures.languages, figures.rounds, figures.changes, figures.warnings) == ((), (), (), (), ())
    assert {label.warnings for label in figures.labels.values()} == {("NO_OVERLAP",)}
