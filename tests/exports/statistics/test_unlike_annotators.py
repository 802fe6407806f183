"""What can be told of two models that not the same people judged, of labels, of findings and on scales."""

from pathlib import Path

import numpy as np
import pytest

from exports import measure_results as measure_files
from exports.report.results_words import no_difference_sentence
from exports.statistics.rates import rate_ends
from exports.statistics.results import measure_results
from exports.statistics.results_schema import Difference
from exports.statistics.study import Consensus, FindingDefinition, Study
from tests.support.annotator_simulation import DESIGNS, drawn, overlapping

FINDING = {"bad": FindingDefinition(title="Bad", any=("not helpful", "unsafe_content"))}
OTHERS, FEW, HIDDEN = "other_annotators", "few_judged_by_both", "majority_hides_annotators"


def study_of(design: str, n: int = 100, seed: int = 3, rate: float = 0.3) -> Study:
    generator = np.random.default_rng(seed)
    judged = overlapping(n, int(design)) if design.isdigit() else DESIGNS[design](generator, n)
    return drawn(generator, judged, (rate, rate))[0]


def compared(study: Study, consensus: Consensus = "share", by: tuple[str, ...] = ("model_name",)) -> list[Difference]:
    """The finding's, then a label's, between models."""
    found = measure_results(study, findings=FINDING, consensus=consensus, by=by)
    label = found.tasks["generation"].labels["helpful"]
    return [each for of in (found.findings["bad"], label) for each in of.differences if each.by == "model_name"]


@pytest.mark.parametrize(
    ("design", "consensus", "reasons"),
    [
        ("one on each model", "share", (OTHERS, OTHERS)),
        ("one on each model", "majority", (OTHERS, OTHERS)),
        ("3", "share", (FEW, FEW)),
        ("two of three on each model", "share", (None, None)),
        ("two of three on each model", "majority", (HIDDEN, HIDDEN)),
        ("two of three on each model", "adjudicated", (HIDDEN, HIDDEN)),
        ("all three judge everything", "majority", (None, None)),
    ],
)
def test_unlike_annotators_are_the_reason_why_neither_a_finding_nor_a_label_is_compared(
    design: str, consensus: Consensus, reasons: tuple[str | None, str | None]
) -> None:
    found = compared(study_of(design), consensus)
    assert tuple(each.undefined for each in found) == reasons
    assert [each.p is None for each in found] == [reason is not None for reason in reasons]
    assert {each.n_telling for each in found if each.undefined == FEW} <= {3}


def test_a_finding_of_other_people_is_left_open_within_each_level_and_between_months_too() -> None:
    study = study_of("one on each model")
    told = {record: {**each, "month": record[3]} for record, each in study.provenance.items()}
    found = compared(study._replace(provenance=told), by=("model_name", "month"))
    assert len(found) == 2 * 11
    assert {each.undefined for each in found} == {OTHERS}


def test_a_lenient_annotator_of_one_model_makes_no_finding() -> None:
    found = [
        compared(study_of(design, seed=seed))[0]
        for design in ("two of three on each model", "the lenient one on one model only")
        for seed in range(10)
    ]
    assert sum(each.stands_out for each in found) <= 3
    for each in found:
        assert each.leniency is not None
        assert each.difference == pytest.approx((each.rate_a or 0) - (each.rate_b or 0) - each.leniency)


@pytest.mark.parametrize(("both", "opens"), [
    (6, "Cannot be told: with at most 6 narratives judged in both by the same people none of 5 differences could be "
        "beyond chance; let more be judged so; 8 are needed."),
    (40, "None of 5 differences is beyond chance."),
])  # fmt: skip
def test_what_too_few_narratives_judged_in_both_could_tell_is_not_denied(both: int, opens: str) -> None:
    found = measure_results(study_of(str(both)), findings={}).tasks["generation"].labels.values()
    assert no_difference_sentence([each.differences[0] for each in found]) == opens


def test_who_judged_which_group_is_told_by_means_of_scales_and_counts_of_names(tmp_path: Path) -> None:
    rows = [
        f"i{number},{system},{coder},{label},{value}"
        for number in range(6)
        for system, coder, stars, tone in (("x", "anna", number % 3 + 1, "warm"), ("y", "ben", 5, "cold"))
        for label, value in (("stars", stars), ("tone", tone))
    ]
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join(["item,system,coder,q,said", *rows]) + "\n", encoding="utf-8")
    found = measure_files(
        path, unit="item", rater="coder", value="said", label="q", group="system", scale={"stars": "ordinal"}
    ).results
    assert [(each.annotator, each.n_ratings, each.means) for each in found.annotators or ()] == [
        ("anna", {"stars": 6, "tone": 6}, {"stars": 2.0, "tone": None}),
        ("ben", {"stars": 6, "tone": 6}, {"stars": 5.0, "tone": None}),
    ]


def test_what_was_seen_once_has_no_rate_of_exactly_0_within_its_interval() -> None:
    sizes = np.full(13, 4.5)
    low, high = rate_ends(np.eye(13)[0], sizes, sizes)
    assert 0 < low < 1 / sizes.sum() < high
    rarer, _ = rate_ends(np.eye(13)[0] / 10, sizes, sizes)
    assert 0 < rarer < low
