"""What the Python functions give back: the figures, tables and disagreements of the command."""

import json
import math
import re
from collections.abc import Callable
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
from tests.support.python_api_data import three_records, without_inputs, write_export

ONE_LINE_OF_PANDAS = {"dtype": str, "keep_default_na": False}


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an export of all tasks."""
    folder = jury_export(tmp_path_factory.mktemp("made") / "export", 12)
    for path in folder.glob("*.csv"):  # Over some weeks.
        frame = pd.read_csv(path, **ONE_LINE_OF_PANDAS)
        weeks = frame["record_uuid"].str[1:].astype(int) // 8
        frame["created_at"] = [f"2025-03-{3 + 7 * week:02d}T10:00:00+00:00" for week in weeks]
        label = {"retrieval": "misleading", "grounding": "fabricated_source"}.get(path.stem, "unsafe_content")
        frame.loc[::17, label] = "True"  # Every label that the tests ask for has a disagreement.
        frame.to_csv(path, index=False, lineterminator="\r\n")
    return folder


def test_frames_folders_and_files_give_the_figures_of_the_command(export: Path) -> None:
    written = agreement_json(measure_files([export], resamples=50).agreement)
    for source in (str(export), export, [export / f"{task}.csv" for task in TASKS]):
        assert measure_agreement(source, resamples=50).to_json() == written
    expected = json.loads(written)
    del expected["inputs"]
    readers: tuple[Callable[[str], Any], ...] = (
        lambda task: read_task(export, task),
        lambda task: pd.read_csv(export / f"{task}.csv", **ONE_LINE_OF_PANDAS),
        lambda task: pd.read_csv(export / f"{task}.csv"),
        lambda task: pd.read_csv(export / f"{task}.csv", dtype_backend="pyarrow", parse_dates=["created_at"]),
    )
    for read in readers:
        frames = [read(task).sample(frac=1, random_state=1) for task in TASKS]
        assert without_inputs(measure_agreement(frames, resamples=50)) == expected


def test_discards_of_a_folder_are_in_the_result(tmp_path: Path) -> None:
    write_export(tmp_path / "generation.csv", *three_records())
    discarded = {"record_uuid": "r9", "annotator_id": "ben", "response_status": "discarded"}
    columns = (*COLUMNS["generation"], "response_status")
    write_export(tmp_path / "generation_discarded.csv", discarded, columns=columns)
    agreement = measure_agreement(tmp_path, resamples=20, seed=7).agreement
    assert (agreement.resamples, agreement.seed) == (20, 7)
    discards = agreement.tasks["generation"].discards
    assert (discards.n_responses, discards.by_annotator["ben"]) == (1, pytest.approx(1 / 4))


def test_tables_are_typed_the_same_with_and_without_figures(tmp_path: Path, export: Path) -> None:
    one = write_export(tmp_path / "generation.csv", three_records()[0])
    full_result, bare_result = measure_agreement(export, resamples=50), measure_agreement(one, resamples=50)
    for table in ("tasks", "labels", "pairs", "annotators", "slices", "conditional"):
        full, bare = full_result.to_pandas(table), bare_result.to_pandas(table)
        assert len(full)
        assert full.dtypes.to_dict() == bare.dtypes.to_dict()
        assert {str(dtype) for dtype in full.dtypes} <= {"string", "Int64", "Float64", "boolean"}
        for name in full.select_dtypes("Float64"):
            assert not any(value is not pd.NA and math.isnan(value) for value in full[name])


def test_labels_disagreements_with_texts_and_what_a_notebook_shows(tmp_path: Path) -> None:
    result = measure_agreement(write_export(tmp_path / "generation.csv", *three_records()), resamples=20)
    labels = result.to_pandas().set_index("label")
    assert labels.loc["helpful", "percent_agreement"] == pytest.approx(2 / 3)
    assert labels["krippendorff_alpha"].isna().tolist() == [True, True, False, True, True]
    with pytest.raises(InputError, match="no table 'label'; the tables are tasks, labels"):
        result.to_pandas("label")
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
    rows = [row | {"record_uuid": f"{n}-{row['record_uuid']}"} for n in range(30) for row in three_records()]
    path = write_export(tmp_path / "generation.csv", *rows)
    agreement, disagreements = measure_agreement(path, resamples=20), find_disagreements(path)
    assert "α is undefined for proper_action" in agreement._repr_html_()
    assert re.fullmatch(r"<AgreementResult generation: 90 units, mean α \S+( \[.*\])?>", repr(agreement))
    assert repr(disagreements) == "<DisagreementResult 30 disagreements>"


def test_disagreements_are_ranked_over_all_tasks_and_cut_on_request(export: Path) -> None:
    every = find_disagreements(export)
    influences = [abs(found.influence) for found in every if found.influence is not None]
    assert influences == sorted(influences, reverse=True)
    assert list(find_disagreements(export, top=7)) == list(every[:7])
    assert {found.label for found in find_disagreements(export, label="misleading")} == {"misleading"}
    assert {found.task for found in find_disagreements(export, task="grounding")} == {"grounding"}
    assert len(every) == sum(len(find_disagreements(export, task=task)) for task in TASKS)
