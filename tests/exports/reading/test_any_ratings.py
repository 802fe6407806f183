"""Anybody's ratings: every format that is read, and what is wrong with a row, a column or a scale."""

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas
import pytest
from datasets import Dataset, DatasetDict

from annotation.argilla.sdk import load_sdk
from exports.reading.any_ratings import RatingOptions, is_of_others, rating_options, read_ratings
from exports.reading.read import ReadTables
from pipeline.core.errors import BadRowsError, InputError

LONG = RatingOptions(unit="unit", rater="rater", value="value")
ROWS = [
    ("u1", "anna", "low"),
    ("u1", "ben", "mid"),
    ("u2", "anna", "high"),
    ("u2", "ben", "high"),
    ("u3", "ben", "low"),
]


def write(folder: Path, text: str, name: str = "ratings.csv", encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def read(*paths: Path, frames: Sequence[Any] = (), **options: object) -> ReadTables:
    return read_ratings(paths, LONG.model_copy(update=options), frames)


def told(found: ReadTables, label: str = "value") -> dict[tuple[str, str], str]:
    """What each annotator said of each unit."""
    (ratings,) = found.tables
    units = [chunk or record for record, chunk in ratings.unit_keys]
    if label in ratings.labels:
        column = ratings.labels.index(label)
        return {
            (units[unit], ratings.annotators[who]): ("no", "yes")[values[column]]
            for unit, who, values in zip(ratings.units, ratings.response_annotators, ratings.values, strict=True)
            if values[column] >= 0
        }
    (scaled,) = [each for each in ratings.scaled if each.name == label]
    rows = zip(scaled.units, scaled.raters, scaled.codes, strict=True)
    return {(units[unit], ratings.annotators[who]): scaled.values[code] for unit, who, code in rows}


WANTED = {(unit, rater): value for unit, rater, value in ROWS}
AS_OBJECTS = [dict(zip(("unit", "rater", "value"), row, strict=True)) for row in ROWS]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_long_table_of_any_delimiter(tmp_path: Path, delimiter: str, encoding: str) -> None:
    text = "\r\n".join(delimiter.join(row) for row in [("unit", "rater", "value"), *ROWS])
    found = read(write(tmp_path, text, encoding=encoding))
    assert told(found) == WANTED
    assert found.inputs[0].rows == 5
    assert found.remarks == []


def test_json_lines_a_list_of_objects_parquet_and_a_frame_give_the_same(tmp_path: Path) -> None:
    lines = write(tmp_path, "\n".join(map(json.dumps, AS_OBJECTS)), "ratings.jsonl")
    whole = write(tmp_path, json.dumps(AS_OBJECTS), "ratings.json")
    frame = pandas.DataFrame(AS_OBJECTS)
    frame.to_parquet(tmp_path / "ratings.parquet")
    Dataset.from_list(AS_OBJECTS).save_to_disk(tmp_path / "saved")
    wanted = read(frames=[frame])
    assert told(wanted) == WANTED
    for path in (lines, whole, tmp_path / "ratings.parquet", tmp_path / "saved"):
        found = read(path)
        assert told(found) == WANTED
        for here, there in zip(found.tables[0].scaled[0], wanted.tables[0].scaled[0], strict=True):
            assert np.array_equal(here, there)


def test_a_wide_table_has_a_column_an_annotator_by_name_or_pattern(tmp_path: Path) -> None:
    path = write(tmp_path, "id,by_anna,by_ben,note\nu1,low,mid,x\nu2,high,high,y\nu3,,low,z\n")
    for columns in (("by_anna", "by_ben"), ("by_*",)):
        found = read_ratings([path], RatingOptions(unit="id", rater_columns=columns))
        assert told(found) == {(unit, f"by_{rater}"): value for (unit, rater), value in WANTED.items()}
    by_row = read_ratings([path], RatingOptions(rater_columns=("by_*",)))
    assert set(told(by_row)) == {(str(int(unit[1])), f"by_{rater}") for unit, rater in WANTED}


def test_a_number_is_one_value_with_and_without_zeros_behind(tmp_path: Path) -> None:
    path = write(tmp_path, "id,a,b\nu1,1,1.0\nu2,2,2.0\nu3,2.5,2.50\nu4,9,9.0\nu5,0,\n")
    wide = RatingOptions(unit="id", rater_columns=("a", "b"), scale="nominal", missing=("9",))
    (label,) = read_ratings([path], wide).tables[0].scaled
    assert label.values == ("0", "1", "2", "2.5")
    assert label.codes.tolist() == [1, 1, 2, 2, 3, 3, 0]
    (label,) = read_ratings([path], wide.model_copy(update={"order": ("2.0", "1.0", "2.5", "0")})).tables[0].scaled
    assert label.values == ("2", "1", "2.5", "0")
    path = write(tmp_path, "unit,rater,value\nu1,a,1\nu1,a,1.0\nu1,b,0.0\n")
    assert told(read(path)) == {("u1", "a"): "yes", ("u1", "b"): "no"}


def test_ordered_categories_of_a_frame_are_an_ordinal_scale(tmp_path: Path) -> None:
    kind = pandas.CategoricalDtype(["low", "mid", "high", "top"], ordered=True)
    long = pandas.DataFrame(AS_OBJECTS).astype({"value": kind})
    wide = long.pivot(index="unit", columns="rater", values="value").reset_index()
    by_rater = {"value": "", "rater": "", "rater_columns": ("anna", "ben")}
    found = (read(frames=[long]), read(frames=[wide.astype({"anna": kind, "ben": kind})], **by_rater))
    for (label,) in (each.tables[0].scaled for each in found):
        assert (label.scale, label.values) == ("ordinal", ("low", "mid", "high", "top"))
    (label,) = read(frames=[long], scale={"": "nominal"}).tables[0].scaled
    assert (label.scale, label.values) == ("nominal", ("high", "low", "mid"))
    with pytest.raises(InputError, match="ordered differently"):
        read(frames=[wide.astype({"anna": pandas.CategoricalDtype(["high", "mid", "low"], ordered=True)})], **by_rater)


def test_several_labels_have_a_scale_each_and_units_belong_together(tmp_path: Path) -> None:
    text = "unit,rater,q,value,doc\n" + "".join(
        f"u{unit},{rater},{label},{value},d{unit // 2}\n"
        for unit in range(4)
        for rater in ("anna", "ben")
        for label, value in (("ok", "yes"), ("tone", "warm"), ("stars", "4"))
    )
    found = read(write(tmp_path, text), label="q", cluster="doc", scale={"stars": "interval"})
    (ratings,) = found.tables
    assert ratings.labels == ("ok",)
    assert [(label.name, label.scale, label.weights) for label in ratings.scaled] == [
        ("stars", "interval", "quadratic"),
        ("tone", "nominal", "identity"),
    ]
    assert ratings.records == ("d0", "d1")
    assert ratings.unit_records.tolist() == [0, 0, 1, 1]


def test_yes_and_no_are_words_of_an_export_or_those_that_the_order_names(tmp_path: Path) -> None:
    found = read(write(tmp_path, "unit,rater,value\nu1,a,Yes\nu1,b,no\nu2,a,TRUE\nu2,b,0\n"))
    assert told(found) == {("u1", "a"): "yes", ("u1", "b"): "no", ("u2", "a"): "yes", ("u2", "b"): "no"}
    path = write(tmp_path, "unit,rater,value\nu1,a,bad\nu1,b,good\n")
    found = read(path, scale={"": "boolean"}, order={"": ("bad", "good")})
    assert told(found) == {("u1", "a"): "no", ("u1", "b"): "yes"}
    with pytest.raises(BadRowsError, match=r"line 2: `value` is 'bad', expected true"):
        read(path, scale={"": "boolean"})


@pytest.mark.parametrize("values", [("1", "2"), ("1", "high"), ("0", "0.5")])
def test_numbers_are_on_no_scale_before_it_is_told(tmp_path: Path, values: tuple[str, str]) -> None:
    path = write(tmp_path, f"unit,rater,value\nu1,a,{values[0]}\nu1,b,{values[1]}\n")
    with pytest.raises(InputError, match="names, ranks or amounts"):
        read(path)


def test_mixed_values_and_those_outside_a_scale_are_listed_with_their_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "unit,rater,value\nu1,a,1\nu1,b,many\nu2,a,7\nu2,b,nan\nu3,a,1e400\nu3,b,2\n")
    with pytest.raises(BadRowsError) as refused:
        read(path, scale={"": "interval"})
    assert [row.partition("line ")[2] for row in refused.value.rows] == [
        "3: `value` is 'many', expected a number.",
        "5: `value` is 'nan', expected a number; `--missing` names what is no value.",
        "6: `value` is '1e400', expected a number.",
    ]
    with pytest.raises(BadRowsError) as refused:
        read(path, scale={"": "ordinal"}, order={"": ("1", "2", "3")})
    assert str(refused.value).startswith("4 cells or rows cannot be used")
    assert "line 4: `value` is '7', expected one of 1, 2, 3." in str(refused.value)


def test_a_value_that_is_no_number_is_listed_with_its_column_and_what_to_do(tmp_path: Path) -> None:
    path = write(tmp_path, "item,by_a,by_b\nu1,1,NA\nu2,2,2\n")
    with pytest.raises(
        BadRowsError, match=r"`value` is 'NA', expected a number; `--missing` names what is no value"
    ) as na:
        read_ratings([path], RatingOptions(unit="item", rater_columns=("by_*",), scale={"": "interval"}))
    assert "line 2, by_b:" in str(na.value)
    path = write(tmp_path, "unit;rater;value\nu1;a;1,5\nu1;b;2\n")
    with pytest.raises(BadRowsError, match="expected a number; decimals are written with a point"):
        read(path, scale={"": "interval"})


def test_an_option_that_is_none_names_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"`scale` is 'interv'; choose boolean, nominal, ordinal or interval"):
        rating_options({"scale": {"": "interv"}})
    with pytest.raises(InputError, match=r"`units` is no option of ratings; there are unit, rater"):
        rating_options({"units": "x"})
    (tmp_path / "labels").mkdir()
    with pytest.raises(InputError, match="holds no dataset that Argilla or datasets saved"):
        read(tmp_path / "labels")


def test_an_ordinal_scale_of_words_needs_its_order_and_one_of_numbers_has_it(tmp_path: Path) -> None:
    path = write(tmp_path, "unit,rater,value\n" + "\n".join(",".join(row) for row in ROWS))
    with pytest.raises(InputError, match=r"`value` is ordinal, and high, low, mid have no order. Name it"):
        read(path, scale={"": "ordinal"})
    (label,) = read(path, order={"": ("low", "mid", "high")}).tables[0].scaled
    assert (label.scale, label.values) == ("ordinal", ("low", "mid", "high"))
    path = write(tmp_path, "unit,rater,value\nu1,a,10\nu1,b,9\nu2,a,9.0\n")
    (label,) = read(path, scale={"": "ordinal"}).tables[0].scaled
    assert (label.values, label.codes.tolist()) == (("9", "10"), [1, 0, 0])


def test_what_is_said_twice_counts_once_and_what_contradicts_itself_is_refused(tmp_path: Path) -> None:
    found = read(write(tmp_path, "unit,rater,value\nu1,a,x\nu1,b,y\nu1,a,x\n"))
    assert told(found) == {("u1", "a"): "x", ("u1", "b"): "y"}
    assert found.tables[0].n_duplicates == 1
    assert found.remarks == ["Ratings that repeat a unit, annotator and label, and count once: 1."]
    with pytest.raises(
        BadRowsError, match=r"line 4: 'a' gives 'u1' the value 'z', at ratings.csv, line 2 'x'.*`--group` or `--label`"
    ):
        read(write(tmp_path, "unit,rater,value\nu1,a,x\nu1,b,y\nu1,a,z\n"))


def test_rows_without_unit_rater_or_cluster_with_too_few_cells_or_in_two_clusters_are_listed(tmp_path: Path) -> None:
    text = "unit,rater,value,doc\n,a,x,d\nu1,,x,d\nu1,a,x,\nu1,a\nu1,a,x,d\nu1,b,x,e\nu2,a,,\n"
    with pytest.raises(BadRowsError) as refused:
        read(write(tmp_path, text), cluster="doc")
    assert [row.partition("line ")[2].split(":")[0] for row in refused.value.rows] == ["5", "2", "3", "4", "7"]


def test_a_column_that_is_not_there_lists_those_that_are(tmp_path: Path) -> None:
    path = write(tmp_path, "item,coder,score\nu1,a,x\n")
    with pytest.raises(InputError, match=r"has no column `unit`. Its columns are `item`, `coder`, `score`."):
        read(path)
    with pytest.raises(InputError, match="name --rater, --value"):
        read_ratings([path], RatingOptions(unit="item"))
    with pytest.raises(InputError, match=r"has no column `by_\*`. Its columns are"):
        read_ratings([path], RatingOptions(unit="item", rater_columns=("by_*",)))
    with pytest.raises(InputError, match="has 2 columns `value`"):
        read(write(tmp_path, "unit,rater,value,value\nu1,a,x,x\n"))


def test_utf_16_is_read_where_it_can_be_and_refused_by_name_elsewhere(tmp_path: Path) -> None:
    text = "\n".join(";".join(row) for row in [("unit", "rater", "value"), *ROWS])
    assert told(read(write(tmp_path, text, encoding="utf-16"))) == WANTED
    with pytest.raises(InputError, match="is no JSON in UTF-8"):
        read(write(tmp_path, json.dumps(AS_OBJECTS), "ratings.jsonl", "utf-16"))
    with pytest.raises(InputError, match="looks like Windows-1252"):
        read(write(tmp_path, "unit,rater,value\nu1,Jörg,x\n", encoding="cp1252"))
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read(write(tmp_path, "PAR", "ratings.parquet"))
    with pytest.raises(InputError, match="no Excel file"):
        read(write(tmp_path, "PK", "ratings.xlsx"))


def test_the_first_sheet_of_a_spreadsheet_and_what_in_it_is_no_rating(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in [("unit", "rater", "value"), *ROWS]:
        book.active.append(row)
    book.create_sheet("notes")
    book.save(tmp_path / "ratings.xlsx")
    found = read(tmp_path / "ratings.xlsx")
    assert told(found) == WANTED
    assert found.remarks == ["ratings.xlsx: 0 hidden rows and 1 other sheet; the rows count, the sheets do not."]
    book.active.append(("u4", "anna", "=1+1"))
    book.save(tmp_path / "ratings.xlsx")
    with pytest.raises(BadRowsError, match=r"ratings.xlsx, line 7: holds a formula; put its value there"):
        read(tmp_path / "ratings.xlsx")
    book.remove(book.active)
    for row in [("unit", "rater", "value"), (1, "anna", True), (1, "ben", False)]:
        book.active.append(row)
    book.save(tmp_path / "ratings.xlsx")
    assert told(read(tmp_path / "ratings.xlsx")) == {("1", "anna"): "yes", ("1", "ben"): "no"}


def test_words_for_missing_are_none_where_they_are_named_and_told_of_where_not(tmp_path: Path) -> None:
    path = write(tmp_path, "unit,rater,value\nu1,a,x\nu1,b,NA\nu2,a,y\nu2,b, x \n")
    assert told(read(path, missing=("NA",))) == {("u1", "a"): "x", ("u2", "a"): "y", ("u2", "b"): "x"}
    found = read(path)
    assert len(told(found)) == 4
    assert found.remarks == [
        "value: 'NA' counts as a value, as any other. Name it with `--missing` if it stands for none."
    ]


def test_words_that_differ_in_case_alone_are_told(tmp_path: Path) -> None:
    found = read(write(tmp_path, "unit,rater,value\nu1,a,Good\nu1,b,good\nu2,a,bad\n"))
    assert found.tables[0].scaled[0].values == ("Good", "bad", "good")
    assert found.remarks == ["value: 'Good', 'good' differ in case alone, and count as different."]


def test_free_text_is_no_label_unless_somebody_says_so(tmp_path: Path) -> None:
    text = "unit,rater,q,value\n" + "".join(f"u{n},a,note,text {n}\nu{n},a,ok,yes\n" for n in range(20))
    path = write(tmp_path, text)
    found = read(path, label="q")
    assert (found.tables[0].labels, found.tables[0].scaled) == (("ok",), ())
    assert "note is left out: 20 different values in 20 ratings look like free text" in found.remarks[0]
    assert len(read(path, label="q", scale={"note": "nominal"}).tables[0].scaled) == 1


def test_weights_do_not_fit_a_scale_without_order_nor_ranks_a_hundred_values(tmp_path: Path) -> None:
    path = write(tmp_path, "unit,rater,value\n" + "".join(f"u{n},a,{n}\n" for n in range(101)))
    with pytest.raises(InputError, match="no weights but identity"):
        read(path, scale={"": "nominal"}, weights="linear")
    with pytest.raises(InputError, match="101 values, too many for ranks"):
        read(path, scale={"": "ordinal"})


def annotation(who: object, results: Sequence[Mapping[str, object]], **more: object) -> dict[str, object]:
    return {"completed_by": who, "result": results, "was_cancelled": False, "updated_at": "2026-01-01", **more}


def choice(*chosen: str, name: str = "tone") -> dict[str, object]:
    return {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": list(chosen)}}


def stars(n: int) -> dict[str, object]:
    return {"from_name": "stars", "to_name": "text", "type": "rating", "value": {"rating": n}}


def test_an_export_of_label_studio(tmp_path: Path) -> None:
    span = {"from_name": "ner", "type": "labels", "value": {"labels": ["PER"]}}
    tasks = [
        {
            "id": 7,
            "data": {"text": "a", "doc": "d1"},
            "annotations": [
                annotation({"id": 1, "email": "anna@x.org"}, [choice("warm"), stars(4), span]),
                annotation(2, [choice("cold"), stars(2), choice("x", "y", name="topics")]),
                annotation(2, [choice("warm"), stars(3)], updated_at="2026-01-02"),
                annotation(3, [choice("cold")], was_cancelled=True),
            ],
        },
        {"id": 8, "data": {"text": "b", "doc": "d1"}, "annotations": [annotation(2, [choice("warm"), stars(5)])]},
    ]
    path = write(tmp_path, json.dumps(tasks), "project.json")
    assert is_of_others([path])
    found = read_ratings([path], RatingOptions(scale={"stars": "interval"}))
    assert told(found, "tone") == {("7", "anna@x.org"): "warm", ("7", "2"): "warm", ("8", "2"): "warm"}
    assert told(found, "stars") == {("7", "anna@x.org"): "4", ("7", "2"): "3", ("8", "2"): "5"}
    assert found.inputs[0].rows == 2
    assert found.remarks == [
        "project.json: results of the kind labels left out, which are no ratings: 1.",
        "project.json: annotations left out because they were skipped: 1.",
        "topics is left out: some gave several values at once.",
        "Ratings that repeat a unit, annotator and label, and count once: 2.",
    ]
    by_text = read_ratings([path], RatingOptions(unit="text", cluster="doc", value="tone"))
    assert set(told(by_text, "tone")) == {("a", "anna@x.org"), ("a", "2"), ("b", "2")}
    assert by_text.tables[0].records == ("d1",)
    with pytest.raises(InputError, match=r"no column `url`. Its columns are `text`, `doc`"):
        read_ratings([path], RatingOptions(unit="url", value="tone"))


def test_an_export_of_prodigy(tmp_path: Path) -> None:
    def row(hashed: int, who: str, answer: str = "accept", **more: object) -> dict[str, object]:
        return {"text": "a", "_input_hash": hashed, "_annotator_id": who, "answer": answer, "_timestamp": 1, **more}

    options = [{"id": "good", "text": "Good"}, {"id": "bad", "text": "Bad"}]
    rows = [
        row(1, "anna", options=options, accept=["good"]),
        row(1, "ben", options=options, accept=["bad"]),
        row(1, "ben", options=options, accept=["good"], _timestamp=2),
        row(2, "anna", "ignore", options=options, accept=[]),
        row(3, "anna", label="SPORT"),
        row(3, "ben", "reject", label="SPORT"),
        row(4, "anna", spans=[{"start": 0, "end": 1}]),
    ]
    path = write(tmp_path, "\n".join(map(json.dumps, rows)), "export.jsonl")
    found = read_ratings([path], RatingOptions())
    assert told(found, "accept") == {("1", "anna"): "good", ("1", "ben"): "good"}
    assert told(found, "SPORT") == {("3", "anna"): "yes", ("3", "ben"): "no"}
    assert found.remarks[:2] == [
        "export.jsonl: rows left out because the answer is ignore: 1.",
        "export.jsonl: rows left out because they mark spans: 1.",
    ]
    several = [
        row(1, w, options=options, accept=a, config={"choice_style": "multiple"})
        for w, a in (("anna", ["good", "bad"]), ("ben", []))
    ]
    found = read_ratings([write(tmp_path, "\n".join(map(json.dumps, several)), "s.jsonl")], RatingOptions())
    assert found.tables[0].labels == ("bad", "good")
    assert told(found, "bad") == {("1", "anna"): "yes", ("1", "ben"): "no"}


def argilla_records() -> list[Any]:
    """What its client holds of two records and two people; the second answer of the first is a draft."""
    argilla = load_sdk()

    people = [uuid.UUID(int=1), uuid.UUID(int=2)]

    def record(name: str, values: Sequence[str], states: Sequence[str]) -> Any:
        responses = [
            argilla.Response(question, value, user_id=who, status=state)
            for question in ("tone", "stars")
            for value, who, state in zip(
                values if question == "tone" else [len(value) for value in values], people, states, strict=True
            )
        ]
        return argilla.Record(id=name, fields={"text": name}, metadata={"doc": "d1"}, responses=responses)

    return [
        record("r1", ["warm", "cold"], ["submitted", "draft"]),
        record("r2", ["warm", "cool"], ["submitted", "submitted"]),
    ]


def test_argillas_datasets_as_its_client_saves_them(tmp_path: Path) -> None:
    records = argilla_records()
    from argilla.records._io import GenericIO, JsonIO

    anna, ben = (str(uuid.UUID(int=number)) for number in (1, 2))
    saved = Dataset.from_dict(GenericIO.to_dict(records, flatten=True))
    saved.save_to_disk(tmp_path / "saved")
    DatasetDict({"train": saved}).save_to_disk(tmp_path / "splits")
    for folder in ("saved", "splits"):
        assert is_of_others([tmp_path / folder])
        found = read_ratings([tmp_path / folder], RatingOptions(scale={"stars": "ordinal"}))
        assert told(found, "tone") == {("r1", anna): "warm", ("r2", anna): "warm", ("r2", ben): "cool"}
        assert set(told(found, "stars").values()) == {"4"}
        assert found.remarks == [f"{folder}: answers left out because they are draft: 2."]
    grouped = read_ratings([tmp_path / "saved"], RatingOptions(value="tone", cluster="doc"))
    assert grouped.tables[0].records == ("d1",)
    (tmp_path / "disk").mkdir()
    JsonIO.to_json(records, tmp_path / "disk" / "records.json")
    found = read_ratings([tmp_path / "disk"], RatingOptions(value="tone"))
    assert len(told(found, "tone")) == 4
    assert found.remarks == ["disk: whether answers are submitted, drafts or discarded is not told."]
