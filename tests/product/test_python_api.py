import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import exports
from annotation.argilla.labels import LABELS
from exports import find_disagreements, measure_agreement, read_task
from exports.csv.schema import COLUMNS
from pipeline.core.errors import BadRowsError, InputError
from tests.support.places import ROOT
from tests.support.python_api_data import CELLS, three_records, without_inputs, write_export


def test_importing_exports_loads_nothing_heavy_and_the_api_can_be_found_by_name() -> None:
    code = "import sys, exports; print(sorted({'numpy', 'pandas', 'pydantic', 'click'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
    assert {"read_task", "measure_agreement", "find_disagreements"} <= set(dir(exports))
    with pytest.raises(AttributeError, match="no attribute 'read_tasks'"):
        _ = exports.read_tasks


def test_text_that_looks_like_something_else_stays_text_and_times_are_utc(tmp_path: Path) -> None:
    rows = [
        {"record_uuid": "001", "annotator_id": "NA", "notes": "None", "query": "1.0"},
        {"record_uuid": "1e5", "annotator_id": "nan", "notes": "", "query": " =1+1 "},
    ]
    frame = read_task(write_export(tmp_path / "generation.csv", *rows))
    assert (frame["record_uuid"].tolist(), frame["annotator_id"].tolist()) == (["001", "1e5"], ["NA", "nan"])
    assert (frame["notes"].tolist(), frame["query"].tolist()) == (["None", ""], ["1.0", " =1+1 "])
    stamps = ["2025-03-01T12:00:00.000001+02:00", "2025-03-01T10:00:00.000001"]
    rows = [{"record_uuid": "r", "annotator_id": f"a{n}", "created_at": stamp} for n, stamp in enumerate(stamps)]
    frame = read_task(write_export(tmp_path / "generation.csv", *rows))
    assert set(frame["created_at"]) == {pd.Timestamp(datetime(2025, 3, 1, 10, 0, 0, 1, UTC))}


def test_columns_are_typed_and_in_the_order_of_the_file(tmp_path: Path) -> None:
    columns = ("mine", *reversed(COLUMNS["retrieval"]))
    row = {"task": "retrieval", "record_uuid": "r", "annotator_id": "anna", "misleading": "", "mine": "True"}
    frame = read_task(write_export(tmp_path / "retrieval.csv", row, columns=columns))
    assert tuple(frame.columns) == columns
    types = {name: str(frame[name].dtype) for name in columns}
    assert {name: types.pop(name) for name in LABELS["retrieval"]} == dict.fromkeys(LABELS["retrieval"], "boolean")
    assert (types.pop("chunk_rank"), types.pop("created_at")) == ("Int64", "datetime64[us, UTC]")
    assert set(types.values()) == {"string"}
    assert frame["misleading"].isna().all()
    assert not frame.drop(columns="misleading").isna().any(axis=None)
    empty = read_task(write_export(tmp_path / "empty.csv", columns=columns))
    assert (len(empty), empty.dtypes.to_dict()) == (0, frame.dtypes.to_dict())


def test_discarded_rows_are_not_in_the_frame_and_a_folder_of_several_tasks_wants_one_named(tmp_path: Path) -> None:
    columns = (*COLUMNS["generation"], "response_status")
    rows = [
        {**row, "response_status": status}
        for row, status in zip(three_records(), ["submitted", "discarded"] * 3, strict=True)
    ]
    write_export(tmp_path / "generation.csv", *rows, columns=columns)
    write_export(tmp_path / "generation_discarded.csv", rows[1], columns=columns)
    assert read_task(tmp_path)["annotator_id"].tolist() == ["anna"] * 3
    write_export(tmp_path / "generation.csv", *three_records())
    write_export(tmp_path / "retrieval.csv", *three_records(task="retrieval"), columns=COLUMNS["retrieval"])
    with pytest.raises(InputError, match="holds retrieval, generation; name one as `task`"):
        read_task(tmp_path)
    assert len(read_task(str(tmp_path), "retrieval")) == 6
    with pytest.raises(InputError, match="holds retrieval, generation, not grounding"):
        read_task(tmp_path, "grounding")
    with pytest.raises(InputError, match="no task 'grounded'"):
        read_task(tmp_path, "grounded")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="holds generation, not retrieval"):
        read_task(tmp_path / "generation.csv", "retrieval")


def test_a_frame_is_checked_as_by_the_command_and_repeats_across_files_are_told(tmp_path: Path) -> None:
    path = write_export(tmp_path / "generation.csv", *three_records(helpful="maybe"), {"annotator_id": "x"})
    with pytest.raises(BadRowsError) as caught:
        read_task(path)
    assert len(caught.value.rows) == 6  # five of the six, ben's last one is False; and a row without a record
    path = write_export(tmp_path / "generation.csv", *three_records())
    later = read_task(path).assign(created_at="2026-01-01", helpful=True)
    result = measure_agreement([path, later], resamples=20)
    assert result.agreement.tasks["generation"].n_duplicates == 6
    assert result.agreement.tasks["generation"].labels["helpful"].percent_agreement == 1
    assert "frame 1, row 0" in result.remarks[0]


@pytest.mark.parametrize("wanted", [{"resamples": 0}, {"seed": -1}])
def test_a_number_that_is_too_small_is_named(tmp_path: Path, wanted: dict[str, int]) -> None:
    with pytest.raises(InputError, match="expected 1 or more, and 0 or more"):
        measure_agreement(write_export(tmp_path / "generation.csv", *three_records()), **wanted)


def test_a_frame_made_by_hand_needs_ids_labels_and_times_and_may_miss_a_label(tmp_path: Path) -> None:
    path = write_export(tmp_path / "generation.csv", *three_records(language=""))
    frame = pd.DataFrame(three_records())
    frame = frame.assign(**{label: [1.0] * 6 for label in LABELS["generation"]})
    frame.loc[5, "helpful"] = 0
    frame["created_at"] = pd.Timestamp("2025-03-01 10:00")
    expected = without_inputs(measure_agreement(path, resamples=20))
    assert without_inputs(measure_agreement(frame, resamples=20)) == expected
    frame = pd.DataFrame([{**CELLS, **row} for row in three_records()])
    for nothing in (None, float("nan"), pd.NA, ""):
        frame["helpful"] = [True, False, True, True, True, nothing]
        result = measure_agreement(frame, resamples=20)
        assert result.agreement.tasks["generation"].labels["helpful"].n_ratings == 5


def test_bad_cells_of_frames_are_listed_by_their_position() -> None:
    good = pd.DataFrame([{**CELLS, **row} for row in three_records()])
    bad = good.assign(helpful=["x", *[True] * 5], created_at=["2025-03-01", pd.NaT, *["2025-03-01"] * 4])
    with pytest.raises(BadRowsError) as caught:
        measure_agreement([good, bad])
    assert [row.split(": found")[0] for row in caught.value.rows] == [
        "frame 2, row 0, `helpful`",
        "frame 2, row 1, `created_at`",
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (pd.DataFrame({"record_uuid": ["r"]}), "frame 1 is not an export of any task: for retrieval it lacks"),
        (pd.DataFrame([{**CELLS, **row} for row in three_records()]).assign(record_uuid=1), "`record_uuid` holds 1"),
        (
            pd.DataFrame([{**CELLS, "record_uuid": "r", "annotator_id": "a"}])[
                [*CELLS, "record_uuid", "annotator_id", "helpful"]
            ],
            "`helpful` more than once",
        ),
        (5, "5 is no export folder"),
        ([], "no submitted response in what was given"),
        (pd.DataFrame(columns=[*CELLS, "record_uuid", "annotator_id"]), "no submitted response"),
    ],
    ids=["columns missing", "ids as numbers", "doubled column", "a number", "nothing", "no rows"],
)
def test_a_source_that_is_none_is_refused_in_one_sentence(source: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        measure_agreement(source)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"label": "helpfull"}, "no label 'helpfull'"),
        ({"task": "retrieval", "label": "helpful"}, "no label 'helpful'; the labels are topically_relevant"),
        ({"task": "x"}, "no task 'x'"),
        ({"top": -1}, "`top` is -1"),
    ],
)
def test_what_does_not_exist_is_named(tmp_path: Path, wanted: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_disagreements(write_export(tmp_path / "generation.csv", *three_records()), **wanted)
