"""What the Python functions give back: the figures, tables and disagreements of the command."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from annotation.argilla.labels import TASKS
from exports import find_disagreements, measure_agreement, read_task
from exports.csv.schema import COLUMNS
from exports.report.files import agreement_json
from pipeline.core.errors import InputError
from tests.support.dataset_export import jury_export
from tests.support.measured_files import measure_files
from tests.support.places import NO_SHARED, SHARED
from tests.support.python_api_data import three_records, without_inputs, write_export

SHARED_EXPORT = SHARED / "iaa-cases" / "open" / "export_a"
needs_shared = pytest.mark.skipif(not SHARED_EXPORT.is_dir(), reason=NO_SHARED)
ONE_LINE_OF_PANDAS = {"dtype": str, "keep_default_na": False}


@pytest.fixture(scope="module", params=["made here", pytest.param("shared", marks=needs_shared)])
def export(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an export of all tasks."""
    if request.param == "shared":
        return SHARED_EXPORT
    folder = jury_export(tmp_path_factory.mktemp("made") / "export", 12)
    for path in folder.glob("*.csv"):  # Over some weeks, so that there are changes.
        frame = pd.read_csv(path, **ONE_LINE_OF_PANDAS)
        weeks = frame["record_uuid"].str[1:].astype(int) // 8
        frame["created_at"] = [f"2025-03-{3 + 7 * week:02d}T10:00:00+00:00" for week in weeks]
        label = {"retrieval": "misleading", "grounding": "fabricated_source"}.get(path.stem, "unsafe_content")
        frame.loc[::17, label] = "True"  # Every label that the tests ask for has a disagreement.
        frame.to_csv(path, index=False, lineterminator="\r\n")
    return folder


def read_typed(folder: Path, task: str) -> Any:
    return read_task(folder, task)


def read_as_text(folder: Path, task: str) -> Any:
    return pd.read_csv(folder / f"{task}.csv", **ONE_LINE_OF_PANDAS)


def read_by_default(folder: Path, task: str) -> Any:
    return pd.read_csv(folder / f"{task}.csv")


def read_as_arrow(folder: Path, task: str) -> Any:
    return pd.read_csv(folder / f"{task}.csv", dtype_backend="pyarrow", parse_dates=["created_at"])


@pytest.mark.parametrize("read", [read_typed, read_as_text, read_by_default, read_as_arrow])
def test_frames_give_the_figures_of_the_command(export: Path, read: Any) -> None:
    written = agreement_json(measure_files([export], resamples=50).agreement)
    expected = json.loads(written)
    del expected["inputs"]
    frames = [read(export, task).sample(frac=1, random_state=1) for task in TASKS]
    assert without_inputs(measure_agreement(frames, resamples=50)) == expected


def test_a_folder_and_its_files_give_the_bytes_of_the_command(export: Path) -> None:
    written = agreement_json(measure_files([export], resamples=50).agreement)
    files = [export / f"{task}.csv" for task in TASKS]
    for source in (str(export), export, files):
        assert measure_agreement(source, resamples=50).to_json() == written


def test_resamples_and_seed_reach_the_figures(tmp_path: Path) -> None:
    path = write_export(tmp_path / "generation.csv", *three_records())
    agreement = measure_agreement(path, resamples=20, seed=7).agreement
    assert (agreement.resamples, agreement.seed) == (20, 7)


def test_discards_of_a_folder_are_in_the_result(tmp_path: Path) -> None:
    write_export(tmp_path / "generation.csv", *three_records())
    discarded = {"record_uuid": "r9", "annotator_id": "ben", "response_status": "discarded"}
    columns = (*COLUMNS["generation"], "response_status")
    write_export(tmp_path / "generation_discarded.csv", discarded, columns=columns)
    discards = measure_agreement(tmp_path, resamples=20).agreement.tasks["generation"].discards
    assert discards is not None
    assert (discards.n_responses, discards.by_annotator["ben"]) == (1, pytest.approx(1 / 4))


@pytest.mark.parametrize("table", ["tasks", "labels", "pairs", "annotators", "slices", "changes", "conditional"])
def test_tables_are_typed_the_same_with_and_without_figures(tmp_path: Path, export: Path, table: str) -> None:
    full = measure_agreement(export, resamples=50).to_pandas(table)
    single = {**three_records()[0]}
    bare = measure_agreement(write_export(tmp_path / "generation.csv", single), resamples=50).to_pandas(table)
    assert len(full)
    assert full.dtypes.to_dict() == bare.dtypes.to_dict()
    assert {str(dtype) for dtype in full.dtypes} <= {"string", "Int64", "Float64", "boolean"}
    for name in full.select_dtypes("Float64"):
        assert not any(value is not pd.NA and math.isnan(value) for value in full[name])


def test_the_labels_table_holds_the_figures_and_an_undefined_one_is_missing(tmp_path: Path) -> None:
    result = measure_agreement(write_export(tmp_path / "generation.csv", *three_records()), resamples=20)
    labels = result.to_pandas().set_index("label")
    assert labels.loc["helpful", "percent_agreement"] == pytest.approx(2 / 3)
    assert labels["krippendorff_alpha"].isna().tolist() == [True, True, False, True, True]
    with pytest.raises(InputError, match="no table 'label'; the tables are tasks, labels"):
        result.to_pandas("label")


def test_disagreements_come_with_texts_and_notes_from_files_and_frames_alike(tmp_path: Path) -> None:
    rows = three_records()
    rows[-1] |= {"notes": "leaves out <b>half</b>", "query": "why $x$?"}
    rows[-2] |= {"query": "why $x$?"}
    path = write_export(tmp_path / "generation.csv", *rows)
    from_file, from_frame = find_disagreements(path), find_disagreements(read_task(path))
    assert list(from_file) == list(from_frame)
    (found,) = from_file
    assert (found.record_uuid, found.label, found.votes) == ("002", "helpful", {"anna": True, "ben": False})
    assert (found.text, found.notes) == ("why $x$?", {"ben": "leaves out <b>half</b>"})
    assert from_file.to_pandas().loc[0, "votes"] == {"anna": True, "ben": False}


def test_disagreements_are_ranked_over_all_tasks_and_cut_on_request(export: Path) -> None:
    every = find_disagreements(export)
    influences = [abs(found.influence) for found in every if found.influence is not None]
    assert influences == sorted(influences, reverse=True)
    assert list(find_disagreements(export, top=7)) == list(every[:7])
    assert {found.label for found in find_disagreements(export, label="misleading")} == {"misleading"}
    assert {found.task for found in find_disagreements(export, task="grounding")} == {"grounding"}
    assert len(every) == sum(len(find_disagreements(export, task=task)) for task in TASKS)


def test_a_notebook_shows_hostile_text_as_text(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    rows = three_records(query=hostile, answer=f"\x1b[31m{hostile}", notes=hostile)
    for row in rows:
        row["annotator_id"] = hostile + row["annotator_id"]
        row["record_uuid"] = hostile + row["record_uuid"]
    path = write_export(tmp_path / "generation.csv", *rows)
    shown = find_disagreements(path)._repr_html_() + measure_agreement(path, resamples=20)._repr_html_()
    assert "&lt;script&gt;" in shown
    assert set(re.findall(r"<(\w+)", shown)) == {
        *("table", "thead", "tr", "th", "td", "ul", "li", "h2", "h3", "details", "summary"),
        *("caption", "div", "p", "bdi"),
    }
    assert "\x1b" not in shown


def test_a_notebook_shows_warnings_in_words_and_says_how_much_more_there_is(tmp_path: Path) -> None:
    rows = [row | {"record_uuid": f"{n}-{row['record_uuid']}"} for n in range(30) for row in three_records()]
    path = write_export(tmp_path / "generation.csv", *rows)
    assert "α is undefined for proper_action" in measure_agreement(path, resamples=20)._repr_html_()
    assert find_disagreements(path)._repr_html_().endswith("<p>and 10 more</p></div>")


def test_results_have_a_short_repr(tmp_path: Path) -> None:
    path = write_export(tmp_path / "generation.csv", *three_records())
    assert re.fullmatch(
        r"<AgreementResult generation: 3 units, mean α \S+( \[.*\])?>", repr(measure_agreement(path, resamples=20))
    )
    assert repr(find_disagreements(path)) == "<DisagreementResult 1 disagreements>"
