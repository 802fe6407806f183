import json
from pathlib import Path

import numpy as np
import pytest

from exports.csv.schema import COLUMNS
from exports.statistics.agreement import measure_figures
from exports.statistics.agreement_schema import LabelAgreement
from exports.statistics.ratings import Ratings
from exports.statistics.warnings import with_cautions
from pipeline.core.errors import InputError
from tests.support.agreement_data import CASES, SINGLE_LABEL, ratings_of_case, ratings_of_matrix
from tests.support.measured_files import measure_files
from tests.support.places import NO_SHARED

EXPECTED_NAMES = {"prevalence_ratings": "prevalence", "alpha": "krippendorff_alpha"} | {
    name: name
    for name in (
        *("n_items", "n_pairable_items", "n_ratings", "percent_agreement", "full_agreement_share", "fleiss_kappa"),
        *("gwet_ac1", "brennan_prediger", "positive_agreement", "negative_agreement"),
    )
}
FEW_RESAMPLES = 20
RETRIEVAL_HEAD = ",".join(COLUMNS["retrieval"])


def measure(*units: tuple[int, int], n_annotators: int = 5) -> LabelAgreement:
    """One label with these numbers of no and yes on its units; annotators take turns."""
    matrix = np.full((len(units), n_annotators), np.nan)
    for unit, (zeros, ones) in enumerate(units):
        for place, answer in enumerate([0] * zeros + [1] * ones):
            matrix[unit, (unit + place) % n_annotators] = answer
    return measure_case(ratings_of_matrix(matrix))


def measure_case(ratings: Ratings) -> LabelAgreement:
    return with_cautions(ratings, measure_figures(ratings, FEW_RESAMPLES, 0).labels)["proper_action"]


def write_generation(path: Path, *rows: str) -> Path:
    path.write_text("\n".join([",".join(COLUMNS["generation"]), *rows]) + "\n", encoding="utf-8")
    return path


def generation_row(
    record: str, annotator: str, labels: str = "1,1,1,0,0", at: str = "2025-03-01T10:00:00+00:00"
) -> str:
    return f"q,a,{labels},,{record},{annotator},generation,en,{at}"


def assert_as_expected(found: LabelAgreement, expected: dict[str, float | None]) -> None:
    for name, ours in EXPECTED_NAMES.items():
        value = getattr(found, ours)
        assert value == (None if expected[name] is None else pytest.approx(expected[name], abs=1e-9)), ours
        assert (ours in found.undefined) == (value is None), ours


@pytest.mark.parametrize("path", SINGLE_LABEL + sorted((CASES / "real").glob("*.csv")), ids=lambda path: path.stem)
def test_published_and_constructed_cases_come_out_to_nine_digits(path: Path) -> None:
    found = measure_case(ratings_of_case(path))
    assert_as_expected(found, json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["expected"])


@pytest.mark.skipif(not CASES.is_dir(), reason=NO_SHARED)
def test_a_whole_export_comes_out_to_nine_digits() -> None:
    folder = CASES / "open" / "export_a"
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["tasks"]
    found = measure_files([folder]).agreement
    assert list(found.tasks) == list(expected)
    for task, figures in found.tasks.items():
        assert figures.macro_alpha == pytest.approx(expected[task]["macro_alpha"], abs=1e-9)
        assert figures.n_labels_with_alpha == expected[task]["n_labels_with_alpha"]
        assert list(figures.labels) == list(expected[task]["labels"])
        for label, values in expected[task]["labels"].items():
            assert_as_expected(figures.labels[label], values)
    assert [file.rows for file in found.inputs] == [expected[task]["n_rows"] for task in expected]


def test_a_case_worked_by_hand_and_what_answers_cannot_show_is_undefined_with_its_reason() -> None:
    # Units, as (no, yes): A (0,2), B (1,1), C (2,0), D (1,2), E (0,1); E is a singleton.
    # Pairable are A to D: n0 = 0+1+2+1 = 4, n1 = 2+1+0+2 = 5, n = 9.
    # d = 2·n0·n1/(m−1): 0, 2, 0, 4/2 = 2; Σd = 4.      alpha = 1 − (n−1)·Σd/(2·n0·n1) = 1 − 8·4/40 = 1/5.
    # a: 1, 0, 1, (0 + 2)/6 = 1/3; p_a = (7/3)/4 = 7/12.  BP = 2·7/12 − 1 = 1/6.
    # π over all five: (1 + 1/2 + 0 + 2/3 + 1)/5 = 19/30; p_e(AC1) = 2·(19/30)·(11/30) = 209/450.
    # AC1 = (7/12 − 209/450)/(1 − 209/450) = (107/900)/(241/450) = 107/482.
    # Fleiss: p_e = 1 − 209/450 = 241/450; κ = (7/12 − 241/450)/(209/450) = (43/900)/(209/450) = 43/418.
    # P⁺ = Σn1(n1−1)/Σn1(m−1) = (2+0+0+2)/(2+1+0+4) = 4/7; P⁻ = (0+0+2+0)/(0+1+2+2) = 2/5.
    found = measure((0, 2), (1, 1), (2, 0), (1, 2), (0, 1))
    by_hand = {"n_items": 5, "n_pairable_items": 4, "n_ratings": 10, "prevalence": 6 / 10, "krippendorff_alpha": 1 / 5}
    by_hand |= {"percent_agreement": 7 / 12, "brennan_prediger": 1 / 6, "gwet_ac1": 107 / 482, "fleiss_kappa": 43 / 418}
    by_hand |= {"positive_agreement": 4 / 7, "negative_agreement": 2 / 5, "full_agreement_share": 2 / 4}
    assert {name: getattr(found, name) for name in by_hand} == pytest.approx(by_hand)
    unanimous = measure((0, 3), (0, 3))
    lacking = ("krippendorff_alpha", "fleiss_kappa", "negative_agreement")
    assert unanimous.undefined == dict.fromkeys(lacking, "no_variation") | {
        "mean_pairwise_kappa": "constant_both_raters"
    }
    assert [getattr(unanimous, name) for name in lacking] == [None, None, None]
    assert (unanimous.percent_agreement, unanimous.gwet_ac1, unanimous.brennan_prediger) == (1, 1, 1)
    once_alone = measure((0, 2), (0, 2), (1, 0))
    assert once_alone.undefined["krippendorff_alpha"] == "no_variation"
    assert once_alone.fleiss_kappa == pytest.approx(1)
    for n_annotators, reason, warning in (
        (1, "single_annotator", "SINGLE_ANNOTATOR"),
        (2, "no_pairable_items", "NO_OVERLAP"),
    ):
        unshared = measure((1, 0), (0, 1), n_annotators=n_annotators)
        assert (unshared.prevalence, unshared.percent_agreement, unshared.warnings) == (0.5, None, (warning,))
        assert set(unshared.undefined.values()) == {reason}
    nothing = measure(n_annotators=0)
    assert (nothing.n_items, nothing.n_ratings, nothing.prevalence) == (0, 0, None)
    assert (set(nothing.undefined.values()), measure((1, 1)).krippendorff_alpha) == ({"no_pairable_items"}, 0)


def test_repeats_blank_labels_broken_rules_and_missing_rows_are_told(tmp_path: Path) -> None:
    path = write_generation(
        tmp_path / "generation.csv",
        generation_row("r1", "anna", "1,1,1,1,1", "2025-03-02T01:00:00+02:00"),
        generation_row("r1", "anna", "0,0,0,0,0", "2025-03-01T22:30:00Z"),
        generation_row("r1", "ben", "1,1,1,1,1"),
    )
    measured = measure_files([path])
    figures = measured.agreement.tasks["generation"]
    assert (figures.n_duplicates, figures.labels["helpful"].percent_agreement) == (1, 1)
    assert "generation.csv, line 3" in measured.remarks[0]
    assert measured.agreement.latest_response == "2025-03-01T23:00:00+00:00"
    rows = generation_row("r1", "anna", "1,,1,0,0"), generation_row("r1", "ben")
    labels = measure_files([write_generation(tmp_path / "generation.csv", *rows)]).agreement.tasks["generation"].labels
    assert (labels["response_on_topic"].n_ratings, labels["response_on_topic"].n_pairable_items) == (1, 0)
    assert labels["response_on_topic"].undefined["krippendorff_alpha"] == "single_annotator"
    assert labels["helpful"].n_pairable_items == 1
    said = {("r1", "a"): "0,1,1", ("r1", "b"): "1,1,1", ("r2", "c"): "1,0,0"}
    end = "retrieval,en,2025-03-01T10:00:00+00:00"
    rows = [f"q,p,c1,d,1,{labels},,{record},{name},{end}" for (record, name), labels in said.items()]
    (tmp_path / "retrieval.csv").write_text("\n".join([RETRIEVAL_HEAD, *rows, ""]), encoding="utf-8")
    figures = measure_files([tmp_path]).agreement.tasks["retrieval"]
    broken = {"evidence_requires_relevance": 1, "evidence_excludes_misleading": 2}
    assert figures.constraint_violations == broken
    assert (figures.n_units, figures.labels["misleading"].n_pairable_items) == (2, 1)
    write_generation(tmp_path / "generation.csv", generation_row("r1", "anna"))
    (tmp_path / "grounding.csv").write_text(",".join(COLUMNS["grounding"]) + "\r\n", encoding="utf-8")
    figures = measure_files([tmp_path]).agreement.tasks["grounding"]
    assert (figures.n_units, figures.macro_alpha) == (0, None)
    assert set(figures.labels["source_cited"].undefined.values()) == {"no_pairable_items"}
    with pytest.raises(InputError, match="no submitted response"):
        measure_files([write_generation(tmp_path / "generation.csv")])
