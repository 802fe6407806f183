import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from annotation.argilla.labels import TASKS
from exports import find_disagreements, measure_agreement, measure_results, read_task
from exports.csv.schema import CONTROL_COLUMNS
from exports.reading.controls import read_control_scores
from exports.reading.read import export_files, own_files, read_tables
from exports.report.results_words import rate_meaning
from exports.statistics.agreement import measure_agreement as agreement_of
from exports.statistics.labels import count_violations
from pipeline.core.errors import BadRowsError, InputError
from tests.support.claims_task import CLAIMS, RATING, claims_file, write_claims
from tests.support.export_folders import campaign, provenance_rows, write_export, write_rows


def two_of(number: int) -> list[dict[str, str]]:
    """Both annotators on so many records, of which they differ on every third."""
    values = ["wrong", "partly", "right"]
    rows = []
    for at in range(number):
        for who in ("anna", "ben"):
            place = (at + (who == "ben" and at % 3 == 0)) % 3
            told = {"accuracy": values[place], "kind": ["fact", "opinion", "=advice"][place], "sureness": str(place)}
            rows.append({"record_uuid": f"r-{at:02}", "annotator_id": who, "complete": str(place > 0), **told})
    return rows


def test_an_export_with_its_task_file_is_read_without_anything_else(tmp_path: Path) -> None:
    (ratings,) = read_tables(export_files([write_claims(tmp_path, two_of(6))])).tables
    assert (ratings.task, ratings.labels, ratings.n_duplicates) == ("claims", ("complete",), 0)
    assert ratings.values[:, 0].tolist() == [0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1]
    assert [(each.name, each.scale, each.weights, each.values) for each in ratings.scaled] == [
        ("accuracy", "ordinal", "ordinal", ("wrong", "partly", "right")),
        ("kind", "nominal", "identity", ("fact", "opinion", "=advice")),
        ("sureness", "interval", "quadratic", ("0", "0.5", "1", "2")),
    ]
    assert ratings.scaled[0].codes.tolist() == [0, 1, 1, 1, 2, 2, 0, 1, 1, 1, 2, 2]
    assert ratings.scaled[2].places.tolist() == [0, 0.5, 1, 2]
    assert ratings.scaled[2].codes.tolist() == [0, 2, 2, 2, 3, 3, 0, 2, 2, 2, 3, 3]


def test_a_value_outside_the_scale_is_listed_with_line_and_column_and_none_is_missing(tmp_path: Path) -> None:
    rows = [{"accuracy": "Right"}, {"kind": "fact "}, {"sureness": "1.5", "complete": "maybe"}, {"accuracy": ""}]
    with pytest.raises(BadRowsError) as caught:
        read_tables(export_files([write_claims(tmp_path / "bad", rows)]))
    assert list(caught.value.rows) == [
        "claims.csv, line 2, `accuracy`: found 'Right', expected one of wrong, partly, right, or nothing where it was "
        "not answered.",
        "claims.csv, line 3, `kind`: found 'fact ', expected one of fact, opinion, =advice, or nothing where it was "
        "not answered.",
        "claims.csv, line 4, `complete`: found 'maybe', expected True or False, or nothing where it was not answered.",
        "claims.csv, line 4, `sureness`: found '1.5', expected one of 0, 0.5, 1, 2, or nothing where it was not "
        "answered.",
    ]
    (ratings,) = read_tables(export_files([write_claims(tmp_path / "good", rows[3:])])).tables
    assert [len(each.codes) for each in ratings.scaled] == [0, 1, 1]


def test_numbers_as_other_programs_write_them_and_cells_for_spreadsheets_are_the_same_values(tmp_path: Path) -> None:
    rows = [{"sureness": "1.0", "kind": "'=advice"}, {"sureness": "0.0", "complete": "1"}]
    (ratings,) = read_tables(export_files([write_claims(tmp_path, rows)])).tables
    assert (ratings.scaled[2].codes.tolist(), ratings.scaled[1].codes.tolist()) == ([2, 0], [2, 0])


def test_an_export_without_its_task_file_says_what_is_missing(tmp_path: Path) -> None:
    folder = write_claims(tmp_path, two_of(2))
    listed = {"file": "claims.csv", "task": "claims"}
    (folder / "manifest.json").write_text(json.dumps({"citejury": "1", "datasets": [], "files": [listed]}))
    (folder / "tasks" / "claims.json").unlink()
    for source in ([folder], [folder / "claims.csv"]):
        with pytest.raises(
            InputError, match=r"claims\.csv` is of the task 'claims'.*`tasks/claims\.json`.* Put it back"
        ):
            export_files(source)
    (folder / "manifest.json").unlink()
    with pytest.raises(InputError, match=r"of the task 'claims', and its task file is not known.*tasks/claims\.json"):
        read_tables(export_files([folder / "claims.csv"]))
    claims_file(folder / "tasks")
    assert read_tables(export_files([folder])).tables[0].task == "claims"


def test_exports_whose_files_ask_other_questions_under_one_name_are_refused(tmp_path: Path) -> None:
    one = write_claims(tmp_path / "one", two_of(2))
    other = write_claims(tmp_path / "other", two_of(2), CLAIMS.replace('"partly"', '"half"').replace("partly", "half"))
    with pytest.raises(InputError, match=r"other questions under the name 'claims'. Measure these exports one"):
        export_files([one, other])
    assert export_files([one, write_claims(tmp_path / "same", two_of(3))])
    assert export_files([other])


def test_broken_rules_between_labels_on_scales_are_counted_by_annotator(tmp_path: Path) -> None:
    rows = [
        {"accuracy": "wrong", "complete": "True"},
        {"accuracy": "wrong", "complete": "True", "annotator_id": "ben"},
        {"accuracy": "wrong", "complete": "False"},
        {"accuracy": "", "complete": "True"},
        {"accuracy": "wrong", "complete": ""},
        {"accuracy": "right", "complete": "True"},
    ]
    (ratings,) = read_tables(export_files([write_claims(tmp_path, rows)])).tables
    assert count_violations(ratings) == {"wrong_is_incomplete": {"anna": 1, "ben": 1}}
    found = agreement_of([ratings], [], resamples=100).tasks["claims"]
    assert found.constraint_violations == {"wrong_is_incomplete": 2}
    assert "CONSTRAINT" in found.warnings


def test_figures_of_a_task_from_a_file_are_those_of_the_same_ratings_from_anybody(tmp_path: Path) -> None:
    rows = two_of(12)
    ours = measure_agreement(write_claims(tmp_path, rows), resamples=200)
    frame = pd.DataFrame(rows).melt(["record_uuid", "annotator_id"], ["accuracy", "kind", "sureness", "complete"])
    theirs = measure_agreement(
        frame,
        resamples=200,
        unit="record_uuid",
        rater="annotator_id",
        value="value",
        label="variable",
        scale={"accuracy": "ordinal", "kind": "nominal", "sureness": "interval", "complete": "boolean"},
        order={"accuracy": ["wrong", "partly", "right"], "sureness": ["0", "0.5", "1", "2"]},
    )
    assert ours.agreement.tasks["claims"].labels.keys() == {"accuracy", "complete", "kind", "sureness"}
    for label, found in ours.agreement.tasks["claims"].labels.items():
        assert found == theirs.agreement.tasks["ratings"].labels[label].model_copy(
            update={"values": found.values} if hasattr(found, "values") else {}
        )
    assert ours.agreement.latest_response == "2026-03-01T12:00:00+00:00"


def test_a_folder_with_tasks_of_both_kinds_gives_ours_the_figures_that_they_have_alone(tmp_path: Path) -> None:
    alone = write_export(tmp_path / "alone", campaign(narratives=6))
    mixed = write_claims(write_export(tmp_path / "mixed", campaign(narratives=6)), two_of(6))
    figures = [measure_agreement(folder, resamples=100).agreement.tasks for folder in (alone, mixed)]
    assert list(figures[1]) == ["grounding", "generation", "claims"]
    assert {task: figures[1][task] for task in figures[0]} == figures[0]
    files, left_out = own_files(export_files([mixed]), "Datasets for training")
    assert [file.name for file in files] == ["grounding.csv", "generation.csv"]
    assert left_out == ["Datasets for training are of retrieval, grounding, generation only; left out: claims."]
    with pytest.raises(InputError, match="left out: claims"):
        own_files([mixed / "claims.csv"], "Datasets for training")


def test_frames_of_a_task_have_types_by_its_scales_and_are_measured_as_the_files(tmp_path: Path) -> None:
    folder = write_claims(tmp_path, [*two_of(6), {"accuracy": "", "complete": "", "kind": "", "sureness": ""}])
    frame = read_task(folder)
    assert frame["accuracy"].dtype == pd.CategoricalDtype(["wrong", "partly", "right"], ordered=True)
    assert frame["kind"].dtype == pd.CategoricalDtype(["fact", "opinion", "=advice"], ordered=False)
    assert (str(frame["sureness"].dtype), str(frame["complete"].dtype)) == ("Float64", "boolean")
    assert frame.iloc[-1][list(RATING)].isna().all()
    assert np.array_equal(frame["sureness"][:4], [0, 1, 1, 1])
    assert (
        measure_agreement(frame, resamples=100).agreement.tasks
        == measure_agreement(folder, resamples=100).agreement.tasks
    )


def test_a_frame_of_a_task_that_is_not_known_says_how_to_read_it(tmp_path: Path) -> None:
    folder = write_claims(tmp_path, two_of(2))
    frame = pd.read_csv(folder / "claims.csv", dtype=str, keep_default_na=False)
    with pytest.raises(InputError, match=r"frame 1 is of the task 'claims'.*tasks/claims\.json"):
        measure_agreement(frame)
    assert measure_agreement([frame, folder / "claims.csv"], resamples=100).agreement.tasks["claims"].n_duplicates == 4


def test_disagreements_are_on_every_label_with_what_each_annotator_said(tmp_path: Path) -> None:
    folder = write_claims(tmp_path, two_of(6))
    found = find_disagreements(folder)
    assert {(each.task, each.text, each.text_pair) for each in found} == {("claims", "Is it so?", "It is [1].")}
    votes = {each.label: each.votes for each in found if each.record_uuid == "r-00"}
    assert votes == {
        "accuracy": {"anna": "wrong", "ben": "partly"},
        "complete": {"anna": False, "ben": True},
        "kind": {"anna": "fact", "ben": "opinion"},
        "sureness": {"anna": "0", "ben": "1"},
    }
    assert {each.label for each in find_disagreements(folder, label="kind")} == {"kind"}
    assert "claims" in TASKS


def test_results_of_a_task_from_a_file_are_grouped_by_provider_with_narratives_as_clusters(tmp_path: Path) -> None:
    answers = campaign(("claude", "gemini"), narratives=6)
    rows = [
        {"record_uuid": each.record, "annotator_id": who, "accuracy": "right" if each.model == "claude" else "wrong"}
        for each in answers
        for who in ("anna", "ben")
    ]
    folder = write_claims(tmp_path, rows, complete="False")
    write_rows(folder / "provenance.csv", provenance_rows(answers))
    found = measure_results(folder).results.tasks["claims"]
    assert found.labels.keys() == {"complete"}
    assert found.scaled is not None
    assert list(found.scaled) == ["accuracy", "kind", "sureness"]
    accuracy = found.scaled["accuracy"].mean
    assert accuracy is not None
    assert [(each.by, each.rate) for each in accuracy.groups] == [
        ({"model_name": "claude"}, 3),
        ({"model_name": "gemini"}, 1),
    ]
    (difference,) = accuracy.differences
    assert (difference.difference, difference.n_narratives) == (2, 6)


def test_results_on_scales_say_what_each_figure_is_and_no_mean_is_beyond_its_scale(tmp_path: Path) -> None:
    answers = campaign(("claude",), narratives=2)
    rows = [{"record_uuid": each.record, "sureness": str(at * 2)} for at, each in enumerate(answers)]
    folder = write_claims(tmp_path, rows)
    write_rows(folder / "provenance.csv", provenance_rows(answers))
    measured = measure_results(folder)
    found = measured.results.tasks["claims"].scaled
    assert found
    mean = found["sureness"].mean
    assert mean
    assert mean.interval
    assert (mean.rate, mean.interval.low, mean.interval.high) == (1, 0, 2)
    assert "Each figure is the share of yes or of a value, or a mean" in rate_meaning(measured.results)
    assert "narratives as what was drawn" in rate_meaning(measured.results)


def test_controls_and_repeats_on_a_scale_are_right_where_their_value_is(tmp_path: Path) -> None:
    folder = write_claims(tmp_path, two_of(3))
    told = dict.fromkeys(CONTROL_COLUMNS, "") | {"annotator_id": "anna", "task": "claims", "label": "accuracy"}
    known = [told | {"record_uuid": f"c{at}", "kind": "known", "known": "right"} for at in range(2)]
    again = [told | {"record_uuid": f"a{at}", "kind": "repeat", "repeats": f"r-0{at}"} for at in range(2)]
    given = ["right", "partly", "wrong", "wrong"]
    rows = [row | {"given": value} for row, value in zip([*known, *again], given, strict=True)]
    write_rows(folder / "controls.csv", rows, CONTROL_COLUMNS)
    tables = read_tables(export_files([folder])).tables
    (anna,) = read_control_scores([folder], tables)
    scores = anna.labels["claims"]["accuracy"]
    assert scores.sensitivity is not None
    assert scores.consistency is not None
    assert (anna.controls, anna.repeats, scores.specificity) == (2, 2, None)
    assert [(each.count, each.of) for each in (scores.sensitivity, scores.consistency)] == [(1, 2), (1, 2)]
    write_rows(folder / "controls.csv", [rows[0] | {"given": "so-so"}], CONTROL_COLUMNS)
    with pytest.raises(BadRowsError, match=r"1 cell or row of `controls.csv`"):
        read_control_scores([folder], tables)
