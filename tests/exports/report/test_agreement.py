import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from exports.cli import main
from exports.csv.schema import COLUMNS
from exports.report.files import agreement_json
from exports.statistics.agreement import measure_figures
from exports.statistics.agreement_schema import LabelAgreement
from exports.statistics.ratings import FloatArray, Ratings
from exports.statistics.warnings import with_cautions
from pipeline.core.errors import InputError
from tests.support.agreement_data import CASES, SINGLE_LABEL, ratings_of_case, ratings_of_matrix
from tests.support.measured_files import measure_files
from tests.support.places import NO_SHARED

EVERY_CASE = SINGLE_LABEL + sorted((CASES / "real").glob("*.csv"))
EXPECTED_NAMES = {
    "prevalence_ratings": "prevalence",
    "alpha": "krippendorff_alpha",
    **{
        name: name
        for name in (
            "n_items",
            "n_pairable_items",
            "n_ratings",
            "percent_agreement",
            "full_agreement_share",
            "fleiss_kappa",
            "gwet_ac1",
            "brennan_prediger",
            "positive_agreement",
            "negative_agreement",
        )
    },
}
FEW_RESAMPLES = 20
GENERATION_HEAD = (
    "query,answer,proper_action,response_on_topic,helpful,incomplete,unsafe_content,notes,"
    "record_uuid,annotator_id,task,language,created_at"
)


def measure(*units: tuple[int, int], n_annotators: int = 5) -> LabelAgreement:
    """One label with these numbers of no and yes on its units; annotators take turns."""
    matrix = np.full((len(units), n_annotators), np.nan)
    for unit, (zeros, ones) in enumerate(units):
        for place, answer in enumerate([0] * zeros + [1] * ones):
            matrix[unit, (unit + place) % n_annotators] = answer
    return measure_matrix(matrix)


def measure_matrix(matrix: FloatArray) -> LabelAgreement:
    return measure_case(ratings_of_matrix(matrix))


def measure_case(ratings: Ratings) -> LabelAgreement:
    labels = measure_figures(ratings, FEW_RESAMPLES, 0).labels
    return with_cautions(ratings, labels)["proper_action"]


def write_generation(path: Path, *rows: str) -> Path:
    path.write_text("\n".join([GENERATION_HEAD, *rows]) + "\n", encoding="utf-8")
    return path


def generation_row(
    record: str, annotator: str, labels: str = "1,1,1,0,0", created_at: str = "2025-03-01T10:00:00+00:00"
) -> str:
    return f"q,a,{labels},,{record},{annotator},generation,en,{created_at}"


def assert_as_expected(found: LabelAgreement, expected: dict[str, float | None]) -> None:
    for name, ours in EXPECTED_NAMES.items():
        value = getattr(found, ours)
        assert value == (None if expected[name] is None else pytest.approx(expected[name], abs=1e-9)), ours
        assert (ours in found.undefined) == (value is None), ours


@pytest.mark.parametrize("path", EVERY_CASE, ids=lambda path: path.stem)
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


def test_a_case_worked_by_hand() -> None:
    # Units, as (no, yes): A (0,2), B (1,1), C (2,0), D (1,2), E (0,1); E is a singleton.
    # Pairable are A to D: n0 = 0+1+2+1 = 4, n1 = 2+1+0+2 = 5, n = 9.
    # d = 2·n0·n1/(m−1): 0, 2, 0, 4/2 = 2; Σd = 4.      alpha = 1 − (n−1)·Σd/(2·n0·n1) = 1 − 8·4/40 = 1/5.
    # a: 1, 0, 1, (0 + 2)/6 = 1/3; p_a = (7/3)/4 = 7/12.  BP = 2·7/12 − 1 = 1/6.
    # π over all five: (1 + 1/2 + 0 + 2/3 + 1)/5 = 19/30; p_e(AC1) = 2·(19/30)·(11/30) = 209/450.
    # AC1 = (7/12 − 209/450)/(1 − 209/450) = (107/900)/(241/450) = 107/482.
    # Fleiss: p_e = 1 − 209/450 = 241/450; κ = (7/12 − 241/450)/(209/450) = (43/900)/(209/450) = 43/418.
    # P⁺ = Σn1(n1−1)/Σn1(m−1) = (2+0+0+2)/(2+1+0+4) = 4/7; P⁻ = (0+0+2+0)/(0+1+2+2) = 2/5.
    found = measure((0, 2), (1, 1), (2, 0), (1, 2), (0, 1))
    assert (found.n_items, found.n_pairable_items, found.n_ratings) == (5, 4, 10)
    assert found.prevalence == pytest.approx(6 / 10)
    assert found.krippendorff_alpha == pytest.approx(1 / 5)
    assert found.percent_agreement == pytest.approx(7 / 12)
    assert found.brennan_prediger == pytest.approx(1 / 6)
    assert found.gwet_ac1 == pytest.approx(107 / 482)
    assert found.fleiss_kappa == pytest.approx(43 / 418)
    assert found.positive_agreement == pytest.approx(4 / 7)
    assert found.negative_agreement == pytest.approx(2 / 5)
    assert found.full_agreement_share == pytest.approx(2 / 4)


def test_unanimous_answers_have_no_alpha_but_full_percent_agreement_and_ac1() -> None:
    found = measure((0, 3), (0, 3))
    assert (found.krippendorff_alpha, found.fleiss_kappa, found.negative_agreement) == (None, None, None)
    assert found.undefined == dict.fromkeys(
        ("krippendorff_alpha", "fleiss_kappa", "negative_agreement"), "no_variation"
    ) | {"mean_pairwise_kappa": "constant_both_raters"}
    assert (found.percent_agreement, found.gwet_ac1, found.brennan_prediger) == (1, 1, 1)


def test_a_no_given_once_alone_leaves_alpha_undefined_and_fleiss_defined() -> None:
    found = measure((0, 2), (0, 2), (1, 0))
    assert found.undefined["krippendorff_alpha"] == "no_variation"
    assert found.fleiss_kappa == pytest.approx(1)


@pytest.mark.parametrize(
    ("n_annotators", "reason", "warning"),
    [(1, "single_annotator", "SINGLE_ANNOTATOR"), (2, "no_pairable_items", "NO_OVERLAP")],
    ids=["one annotator", "two without a shared unit"],
)
def test_without_a_shared_unit_only_the_prevalence_is_defined(n_annotators: int, reason: str, warning: str) -> None:
    found = measure((1, 0), (0, 1), n_annotators=n_annotators)
    assert found.prevalence == 0.5
    assert found.percent_agreement is None
    assert set(found.undefined.values()) == {reason}
    assert found.warnings == (warning,)


def test_one_unit_that_is_disputed_has_alpha_zero() -> None:
    assert measure((1, 1)).krippendorff_alpha == 0


def test_no_ratings_at_all_leave_every_figure_undefined() -> None:
    found = measure(n_annotators=0)
    assert (found.n_items, found.n_ratings, found.prevalence) == (0, 0, None)
    assert set(found.undefined.values()) == {"no_pairable_items"}


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.booleans()), min_size=1, unique_by=lambda row: row[:2])
)
def test_the_order_of_rows_and_the_names_of_annotators_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory, answers: list[tuple[int, int, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("export")
    labels = {True: "1,1,1,0,0", False: "0,1,,0,1"}
    rows = [generation_row(f"r{unit}", f"anna{person}", labels[yes]) for unit, person, yes in answers]
    renamed = [row.replace("anna", "zoë") for row in reversed(rows)]
    first = measure_files([write_generation(folder / "a.csv", *rows)], FEW_RESAMPLES).agreement.tasks["generation"]
    second = measure_files([write_generation(folder / "b.csv", *renamed)], FEW_RESAMPLES).agreement.tasks["generation"]
    assert first.labels == second.labels
    assert first.constraint_violations == second.constraint_violations


def test_of_several_answers_to_one_unit_the_newest_counts_and_the_others_are_told(tmp_path: Path) -> None:
    path = write_generation(
        tmp_path / "generation.csv",
        generation_row("r1", "anna", "1,1,1,1,1", created_at="2025-03-02T01:00:00+02:00"),
        generation_row("r1", "anna", "0,0,0,0,0", created_at="2025-03-01T22:30:00Z"),
        generation_row("r1", "ben", "1,1,1,1,1"),
    )
    measured = measure_files([path])
    figures = measured.agreement.tasks["generation"]
    assert figures.n_duplicates == 1
    assert figures.labels["helpful"].percent_agreement == 1
    assert "generation.csv, line 3" in measured.remarks[0]
    assert measured.agreement.latest_response == "2025-03-01T23:00:00+00:00"


def test_a_blank_label_is_missing_for_that_label_only(tmp_path: Path) -> None:
    path = write_generation(
        tmp_path / "generation.csv", generation_row("r1", "anna", "1,,1,0,0"), generation_row("r1", "ben")
    )
    labels = measure_files([path]).agreement.tasks["generation"].labels
    assert (labels["response_on_topic"].n_ratings, labels["response_on_topic"].n_pairable_items) == (1, 0)
    assert labels["response_on_topic"].undefined["krippendorff_alpha"] == "single_annotator"
    assert labels["helpful"].n_pairable_items == 1


def test_broken_rules_between_labels_are_counted(tmp_path: Path) -> None:
    head = (
        "input_query,chunk,chunk_id,doc_id,chunk_rank,topically_relevant,evidence_sufficient,misleading,notes,"
        "record_uuid,annotator_id,task,language,created_at\n"
    )
    end = ",,r1,{},retrieval,en,2025-03-01T10:00:00+00:00\n"
    rows = [f"q,p,c1,d,1,{labels}" + end.format(name) for name, labels in {"a": "0,1,1", "b": "1,1,1"}.items()]
    (tmp_path / "retrieval.csv").write_text(head + "".join(rows), encoding="utf-8")
    assert measure_files([tmp_path]).agreement.tasks["retrieval"].constraint_violations == {
        "evidence_requires_relevance": 1,
        "evidence_excludes_misleading": 2,
    }


def test_a_passage_id_that_repeats_across_records_is_not_one_unit(tmp_path: Path) -> None:
    head = (
        "input_query,chunk,chunk_id,doc_id,chunk_rank,topically_relevant,evidence_sufficient,misleading,notes,"
        "record_uuid,annotator_id,task,language,created_at\n"
    )
    row = "q,p,c1,d,1,1,0,0,,{},{},retrieval,en,2025-03-01T10:00:00+00:00\n"
    (tmp_path / "retrieval.csv").write_text(head + row.format("r1", "anna") + row.format("r2", "ben"), encoding="utf-8")
    figures = measure_files([tmp_path]).agreement.tasks["retrieval"]
    assert (figures.n_units, figures.labels["misleading"].n_pairable_items) == (2, 0)


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    path = write_generation(tmp_path / "generation.csv", generation_row("r1", "anna"), generation_row("r1", "ben"))
    first, second = (agreement_json(measure_files([path]).agreement) for _ in range(2))
    assert first == second
    assert list(json.loads(first)["tasks"]) == ["generation"]


def test_a_header_without_rows_beside_answers_is_a_task_without_figures(tmp_path: Path) -> None:
    write_generation(tmp_path / "generation.csv", generation_row("r1", "anna"))
    (tmp_path / "grounding.csv").write_text(",".join(COLUMNS["grounding"]) + "\r\n", encoding="utf-8")
    figures = measure_files([tmp_path]).agreement.tasks["grounding"]
    assert (figures.n_units, figures.macro_alpha) == (0, None)
    assert set(figures.labels["source_cited"].undefined.values()) == {"no_pairable_items"}


def test_files_without_any_submitted_response_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no submitted response"):
        measure_files([write_generation(tmp_path / "generation.csv")])


def test_a_path_that_is_not_there_is_one_plain_line_and_exit_1(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["exports", "agreement", str(tmp_path / "nowhere")])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("Error: There is no file or folder")
    assert len(result.stderr.splitlines()) == 1
