"""Frames of `read_task` where `provenance.csv` stands beside the file."""

from pathlib import Path

import pandas as pd
import pytest

from exports import find_disagreements, measure_agreement, read_task
from exports.csv.schema import COLUMNS, PROVENANCE_COLUMNS
from pipeline.core.errors import BadRowsError, InputError
from tests.support.provenance_file import write_provenance
from tests.support.python_api_data import three_records, without_inputs, write_export

RECORDS: dict[str, dict[str, str]] = {"000": {}, "001": {"model_name": "grok"}, "002": {"arm": "b", "n_gone": "0"}}


def test_columns_are_joined_and_typed_the_files_own_stay_and_a_bad_provenance_is_an_error(tmp_path: Path) -> None:
    path = write_export(tmp_path / "generation.csv", *three_records())
    write_provenance(tmp_path, **RECORDS)
    for source in (tmp_path, path):
        frame = read_task(source)
        new = [name for name in PROVENANCE_COLUMNS if name not in ("record_uuid", "language")]
        assert tuple(frame.columns) == (*COLUMNS["generation"], *new)
        counts = {"repeat", *(name for name in new if name.startswith("n_"))} - {"narrative_id", "narrative_type"}
        types = {name: str(frame[name].dtype) for name in new}
        assert {types.pop(name) for name in counts} == {"Int64"}
        assert (types.pop("answer_timestamp"), set(types.values())) == ("datetime64[us, UTC]", {"string"})
        assert frame["model_name"].tolist() == ["openai", "openai", "grok", "grok", "openai", "openai"]
        assert frame["arm"].isna().tolist() == [True, True, True, True, False, False]
        assert frame["n_gone"].tolist()[-1] == 0
        assert frame["n_unfetched"].isna().all()
        assert (frame["answer_timestamp"] == pd.Timestamp("2026-03-01T09:00:00Z")).all()
    write_provenance(tmp_path, **RECORDS)
    full = read_task(write_export(tmp_path / "full.csv", *three_records()))
    assert full.dtypes.to_dict() == read_task(write_export(tmp_path / "empty.csv")).dtypes.to_dict()
    columns = (*COLUMNS["generation"], "model_name")
    own = write_export(tmp_path / "own.csv", *three_records(model_name="the file's own"), columns=columns)
    frame = read_task(own)
    assert (set(frame["model_name"]), set(frame["narrative_id"])) == ({"the file's own"}, {"n1"})
    assert list(frame.columns).count("model_name") == 1
    write_export(tmp_path / "generation.csv", *three_records())
    (tmp_path / "provenance.csv").write_text("record_uuid,model\n", encoding="utf-8")
    with pytest.raises(InputError, match="needs the column `narrative_id` once"):
        read_task(tmp_path)
    path = write_provenance(tmp_path, **RECORDS)
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines()[1])
    with pytest.raises(BadRowsError, match="1 cell or row of `provenance"):
        read_task(tmp_path)


def test_figures_and_disagreements_are_those_without_provenance(tmp_path: Path) -> None:
    plain, told = tmp_path / "plain", tmp_path / "told"
    for folder in (plain, told):
        folder.mkdir()
        write_export(folder / "generation.csv", *three_records())
    write_provenance(told, **RECORDS)
    frame = read_task(told)
    assert without_inputs(measure_agreement(frame, resamples=20)) == without_inputs(
        measure_agreement(plain, resamples=20)
    )
    assert list(find_disagreements(frame)) == list(find_disagreements(plain))
    assert list(find_disagreements(frame)) == list(find_disagreements(told))


@pytest.mark.parametrize(
    ("records", "sentences", "is_na"),
    [
        (
            {"000": {}, "001": {"model_name": "", "narrative_id": ""}},
            [
                "No row of `provenance.csv` tells where 1 of 3 records come from (the first: 002). Export again with "
                "`citejury exports csv`.",
                "`narrative_id` is not known for 1 of 3 records (the first: 001).",
                "`model_name` is not known for 1 of 3 records (the first: 001).",
            ],
            {"model_name": [False, False, True, True, True, True]},
        ),
        (
            RECORDS | {"001": {"answer_timestamp": "in spring", "repeat": "first"}},
            [
                "`repeat` of `provenance.csv` is no whole number in 2 of 6 rows and is NA there (the first: 'first').",
                "`answer_timestamp` of `provenance.csv` is no time in 2 of 6 rows and is NA there (the first: 'in "
                "spring').",
            ],
            {name: [False, False, True, True, False, False] for name in ("repeat", "answer_timestamp")},
        ),
    ],
    ids=["records of which nothing is told", "what is no time and no number"],
)
def test_what_is_not_known_is_na_and_told(
    tmp_path: Path, records: dict[str, dict[str, str]], sentences: list[str], is_na: dict[str, list[bool]]
) -> None:
    write_export(tmp_path / "generation.csv", *three_records())
    write_provenance(tmp_path, **records)
    with pytest.warns(UserWarning, match=".") as caught:
        frame = read_task(tmp_path)
    assert [str(warning.message) for warning in caught] == sentences
    assert {warning.filename for warning in caught} == {__file__}
    assert {name: frame[name].isna().tolist() for name in is_na} == is_na
