"""Warnings by code, rules between labels, overlap and required size."""

from datetime import UTC, datetime
from typing import get_args

import numpy as np
import pytest

from exports.statistics.agreement import measure_agreement, measure_figures, measure_task
from exports.statistics.agreement_schema import LabelAgreement, LabelWarning, TaskAgreement, TaskWarning
from exports.statistics.annotators import components, identical_vectors, measure_overlap
from exports.statistics.ratings import MISSING, Ratings, Votes
from exports.statistics.warnings import ADVICE, items_to_show, required_items, selection_p, with_cautions
from tests.support.agreement_data import Row, ratings_of, ratings_of_matrix

RESAMPLES = 200


def label_of(*units: str, resamples: int = RESAMPLES) -> LabelAgreement:
    """One label; each unit is a word with an answer for each annotator: 1, 0, or `.` for none."""
    matrix = np.array([[np.nan if answer == "." else float(answer) for answer in unit] for unit in units])
    ratings = ratings_of_matrix(matrix)
    return with_cautions(ratings, measure_figures(ratings, resamples, 0).labels)["proper_action"]


def warnings_of(*units: str) -> tuple[LabelWarning, ...]:
    return label_of(*units).warnings


def task_of(*rows: Row, n_duplicates: int = 0) -> TaskAgreement:
    return measure_task(ratings_of(rows, "retrieval", n_duplicates), RESAMPLES, 0)


def test_every_code_has_advice_in_plain_words() -> None:
    assert set(ADVICE) == {*get_args(LabelWarning), *get_args(TaskWarning)}
    assert all(advice.endswith(".") and len(advice) > 40 for advice in ADVICE.values())


def test_enough_ratings_of_both_values_are_not_warned_of() -> None:
    assert warnings_of(*["11", "00", "01", "10"] * 20) == ()


def test_without_a_shared_unit_one_annotator_and_several_are_told_apart() -> None:
    assert warnings_of("1", "0") == ("SINGLE_ANNOTATOR",)
    assert warnings_of("1.", ".0") == ("NO_OVERLAP",)


def test_few_units_few_records_and_rare_values_are_warned_of_at_their_bounds() -> None:
    assert warnings_of(*["11", "00"] * 14, "10") == ("FEW_ITEMS", "SAMPLE_SIZE")
    assert warnings_of(*["11", "00"] * 15) == ()
    assert "FEW_CLUSTERS" in warnings_of(*["11", "00"] * 9, "10")
    assert "FEW_CLUSTERS" not in warnings_of(*["11", "00"] * 10)
    assert "RARE_CLASS" in warnings_of(*["11"] * 4, "10", *["00"] * 40)
    assert "RARE_CLASS" not in warnings_of(*["11"] * 5, *["00"] * 40)


def test_few_clusters_counts_records_and_not_their_units() -> None:
    units = np.array([[1.0, 1.0], [0.0, 0.0]] * 50)
    ratings = ratings_of_matrix(units, np.repeat(np.arange(10), 10).tolist())
    found = with_cautions(ratings, measure_figures(ratings, RESAMPLES, 0).labels)["proper_action"]
    assert found.warnings == ("FEW_CLUSTERS",)


def test_an_annotator_who_always_says_the_same_is_warned_of_from_20_ratings_on() -> None:
    assert "CONSTANT_RATER" in warnings_of(*["11", "10"] * 10)
    assert "CONSTANT_RATER" not in warnings_of(*["11", "10"] * 9, "11")


def test_a_refused_interval_is_warned_of() -> None:
    found = label_of("10", *["11"] * 30)
    assert found.refused_intervals["krippendorff_alpha"] == "undefined_resamples"
    assert "UNDEFINED_RESAMPLES" in found.warnings


def test_high_agreement_with_low_alpha_is_a_paradox_only_where_one_value_is_rare() -> None:
    # Feinstein & Cicchetti's tables (40, 9, 6, 45) and (80, 10, 5, 5): both agree on 85 of 100.
    assert "PARADOX" not in warnings_of(*["11"] * 40, *["10"] * 9, *["01"] * 6, *["00"] * 45)
    assert "PARADOX" in warnings_of(*["11"] * 80, *["10"] * 10, *["01"] * 5, *["00"] * 5)


@pytest.mark.parametrize(
    ("alpha", "codings"), [(0.667, (60, 81, 172, 329)), (0.8, (103, 139, 293, 560))], ids=["0.667", "0.8"]
)
def test_required_ratings_are_those_of_the_printed_table(alpha: float, codings: tuple[int, ...]) -> None:
    assert tuple(round(2 * items_to_show(alpha, prevalence)) for prevalence in (0.5, 0.25, 0.1, 0.05)) == codings


def test_required_units_have_two_ratings_each() -> None:
    # At one half: (1.667·2.333)/(4·.333·.25) − .667 = 11.0123; times 1.645² = 2.706 is 29.80 units, or 59.6 ratings.
    assert required_items(0.5) == 30
    assert required_items(0.05) == 165
    assert required_items(0.3) == required_items(0.7)
    assert (required_items(None), required_items(0), required_items(1)) == (None, None, None)


def selection_of(double: int, single: int, random: np.random.Generator, shares: tuple[float, float]) -> float | None:
    """p of the test on records of one unit, of which so many are rated twice and once."""
    yes_twice = random.binomial(2, shares[0], double)
    yes_once = random.binomial(1, shares[1], single)
    ones = np.concatenate([yes_twice, yes_once])
    ratings = np.concatenate([np.full(double, 2), np.full(single, 1)])
    return selection_p(Votes(ratings - ones, ones), np.arange(double + single))


def test_a_share_of_yes_that_depends_on_how_units_were_chosen_is_found_and_chance_is_not() -> None:
    random = np.random.default_rng(0)
    differing = [selection_of(100, 200, random, (0.5, 0.25)) for _ in range(50)]
    equal = [selection_of(100, 200, random, (0.4, 0.4)) for _ in range(400)]
    assert np.mean([p is not None and p < 0.01 for p in differing]) > 0.8
    assert 0.02 < np.mean([p is not None and p < 0.05 for p in equal]) < 0.08


def test_the_selection_test_by_hand() -> None:
    # 10 units rated twice, 8 ratings of 20 yes; 10 rated once, 6 of 10 yes; each unit a record. Common share 14/30.
    # Twice: (0,2) × 4, (2,0) × 6. u = (yes − 2·14/30)/20: 4·(1.06667/20)² + 6·(.93333/20)² = .01137778 + .01306667.
    # Once: u = −(yes − 14/30)/10: 6·(.53333/10)² + 4·(.46667/10)² = .01706667 + .00871111. Sum .05022222, root .22410.
    # Shares .4 and .6: z = −.2/.22410 = −.89246; p = .37216.
    ones = np.array([2] * 4 + [0] * 6 + [1] * 6 + [0] * 4)
    ratings = np.array([2] * 10 + [1] * 10)
    assert selection_p(Votes(ratings - ones, ones), np.arange(20)) == pytest.approx(0.37216, abs=1e-4)


def test_the_selection_test_needs_ten_records_of_either_kind_and_some_variation() -> None:
    random = np.random.default_rng(1)
    assert selection_of(9, 100, random, (0.5, 0.5)) is None
    assert selection_of(100, 9, random, (0.5, 0.5)) is None
    assert selection_of(20, 20, random, (1, 1)) is None


def test_selection_is_warned_of_in_the_figures() -> None:
    assert "SELECTION" in warnings_of(*["11", "10"] * 30, *["0."] * 60, *[".0"] * 60)


def test_a_task_is_warned_of_small_pairs_groups_repeats_broken_rules_and_clocks() -> None:
    plain = [Row(f"r{n}", name, (n % 2, 0, 0)) for n in range(20) for name in ("anna", "ben")]
    assert task_of(*plain).warnings == ()
    assert task_of(*plain, n_duplicates=1).warnings == ("DUPLICATES",)
    assert task_of(*plain[:-2]).warnings == ("PAIR_OVERLAP",)
    assert task_of(*plain, Row("other", "carla", (1, 0, 0))).warnings == ("PAIR_OVERLAP", "DISCONNECTED")
    assert task_of(*plain[:-1], plain[-1]._replace(labels=(0, 1, 0))).warnings == ("CONSTRAINT",)
    for wrong in (datetime(1999, 12, 31, 23, 59, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)):
        assert task_of(*plain[:-1], plain[-1]._replace(at=wrong)).warnings == ("CLOCK",)


def test_annotators_who_share_units_through_others_are_one_group() -> None:
    rows = [Row("r1", "anna", (1,)), Row("r1", "ben", (1,)), Row("r2", "ben", (1,)), Row("r2", "carla", (1,))]
    rows += [Row("r3", "dora", (1,)), Row("r3", "emil", (1,)), Row("r4", "fritz", (1,)), Row("r5", "fritz", (1,))]
    overlap = measure_overlap(ratings_of(rows))
    assert overlap.components == (("anna", "ben", "carla"), ("dora", "emil"), ("fritz",))
    assert overlap.units_by_ratings == {1: 2, 2: 3}


def test_components_of_long_chains_and_of_nothing() -> None:
    assert components(2000, [(n + 1, n) for n in range(1999)]) == [list(range(2000))]
    assert components(0, []) == []


def test_identical_vectors_are_counted_over_pairs_of_whole_responses() -> None:
    # Unit 1: three alike, 3 of 3 pairs. Unit 2: two alike and one other, 1 of 3. Unit 3: one lacks a label, no pair.
    rows = [Row("r1", name, (1, 0, 1)) for name in ("anna", "ben", "carla")]
    rows += [Row("r2", "anna", (0, 0, 1)), Row("r2", "ben", (0, 0, 1)), Row("r2", "carla", (1, 0, 1))]
    rows += [Row("r3", "anna", (0, 0, 1)), Row("r3", "ben", (0, MISSING, 1))]
    assert identical_vectors(ratings_of(rows, "retrieval")) == pytest.approx(4 / 6)
    assert identical_vectors(ratings_of(rows[-1:], "retrieval")) is None


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
    return ratings_of(
        [Row(record, name, votes) for record, by in answers.items() for name, votes in zip(names, by, strict=True)],
        "retrieval",
    )


def test_agreement_where_a_rule_leaves_its_label_open_by_hand() -> None:
    # evidence_sufficient among those who say relevant: r1 1,1,0; r2 0,0; r3 a single 1, out; r4 nobody; r5 1,1.
    # n = 7, n1 = 4, n0 = 3; d: r1 2·1·2/2 = 2, others 0; alpha = 1 − 6·2/(2·4·3) = 1/2.
    # a: r1 (0 + 2)/6 = 1/3, r2 1, r5 1: p_a = 7/9. π = (2/3 + 0 + 1)/3 = 5/9; p_e = 2·5/9·4/9 = 40/81.
    # AC1 = (63/81 − 40/81)/(41/81) = 23/41.
    needs, excludes = measure_task(conditional_rows(), RESAMPLES, 0).conditional
    assert (needs.rule, needs.premise, needs.premise_value, needs.label) == (
        "evidence_requires_relevance",
        "topically_relevant",
        True,
        "evidence_sufficient",
    )
    assert needs.n_pairable_items == 3
    assert needs.prevalence == pytest.approx(4 / 7)
    assert needs.krippendorff_alpha == pytest.approx(1 / 2)
    assert needs.percent_agreement == pytest.approx(7 / 9)
    assert needs.gwet_ac1 == pytest.approx(23 / 41)
    # Among those who say not misleading: r1 1,1,0; r2 0,0; r3 1,0; r4 0,0,0; r5 1,1.
    # n = 12, n1 = 5, n0 = 7; Σd = 2 + 2 = 4; alpha = 1 − 11·4/(2·35) = 26/70.
    assert (excludes.premise, excludes.premise_value, excludes.label) == ("misleading", False, "evidence_sufficient")
    assert excludes.n_pairable_items == 5
    assert excludes.krippendorff_alpha == pytest.approx(26 / 70)


def test_units_that_a_rule_decides_flatter_ac1_and_not_the_open_ones() -> None:
    random = np.random.default_rng(3)
    rows = []
    for record in range(60):
        for name in ("anna", "ben"):
            rows.append(Row(f"r{record}", name, (record % 3 == 0, random.integers(0, 2) * (record % 3 == 0), 0)))
    figures = measure_task(ratings_of(rows, "retrieval"), RESAMPLES, 0)
    overall, conditional = figures.labels["evidence_sufficient"], figures.conditional[0]
    assert overall.gwet_ac1 is not None
    assert conditional.gwet_ac1 is not None
    assert overall.gwet_ac1 - conditional.gwet_ac1 > 0.5
    assert conditional.n_pairable_items == 20
    assert conditional.interval is not None


def test_a_premise_that_nobody_affirms_leaves_its_figures_undefined() -> None:
    figures = task_of(Row("r1", "anna", (0, 0, 0)), Row("r1", "ben", (0, 0, 0))).conditional[0]
    assert figures.n_pairable_items == 0
    assert (figures.prevalence, figures.krippendorff_alpha, figures.interval) == (None, None, None)
    assert set(figures.undefined) == {"prevalence", "percent_agreement", "krippendorff_alpha", "gwet_ac1"}


def test_broken_rules_are_counted_by_annotator() -> None:
    figures = measure_task(conditional_rows(), RESAMPLES, 0)
    assert figures.constraint_violations == {"evidence_requires_relevance": 1, "evidence_excludes_misleading": 1}
    assert figures.constraint_violations_by_annotator == {
        "evidence_requires_relevance": {"carla": 1},
        "evidence_excludes_misleading": {"ben": 1},
    }


def test_discards_are_shares_of_what_each_annotator_handed_in() -> None:
    ratings = ratings_of([Row("r1", "anna", (1,)), Row("r2", "anna", (1,)), Row("r1", "ben", (1,))])
    found = measure_task(ratings._replace(discards={"anna": 2, "carla": 1}), RESAMPLES, 0).discards
    assert found is not None
    assert (found.n_responses, found.share) == (3, 0.5)
    assert found.by_annotator == {"anna": 0.5, "ben": 0, "carla": 1}
    assert measure_task(ratings, RESAMPLES, 0).discards is None


def test_a_task_without_responses_has_its_labels_and_nothing_in_them() -> None:
    figures = measure_agreement([ratings_of([])], (), RESAMPLES).tasks["generation"]
    assert (figures.n_units, figures.macro_alpha, figures.identical_vectors) == (0, None, None)
    assert (figures.weeks, figures.languages, figures.rounds, figures.changes, figures.warnings) == ((), (), (), (), ())
    assert {label.warnings for label in figures.labels.values()} == {("NO_OVERLAP",)}


def test_one_unit_is_fewer_than_required() -> None:
    assert "SAMPLE_SIZE" in warnings_of("10")
    assert "SAMPLE_SIZE" not in warnings_of("1.", ".0")


def test_responses_that_differ_on_any_label_are_not_identical() -> None:
    for other in ((1, 0, 0), (0, 1, 0), (0, 0, 1)):
        rows = [Row("r1", "anna", (0, 0, 0)), Row("r1", "ben", other)]
        assert identical_vectors(ratings_of(rows, "retrieval")) == 0
