from datetime import UTC, datetime
from pathlib import Path

import pytest

from exports.read import export_files, read_responses, read_tables, task_of
from exports.schema import COLUMNS
from pipeline.errors import BadRowsError, InputError

CELLS = {
    "proper_action": "True",
    "response_on_topic": "True",
    "helpful": "True",
    "incomplete": "False",
    "unsafe_content": "False",
    "record_uuid": "r1",
    "annotator_id": "anna",
    "task": "generation",
    "created_at": "2025-03-01T10:00:00+00:00",
}


def generation_csv(folder: Path, *rows: dict[str, str], columns: tuple[str, ...] = COLUMNS["generation"]) -> Path:
    path = folder / "generation.csv"
    lines = [columns, *(tuple({**CELLS, **row}.get(column, "") for column in columns) for row in rows)]
    path.write_text("\r\n".join(",".join(line) for line in lines) + "\r\n", encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("text", ["True", "true", "TRUE", "1", "yes"])
def test_every_spelling_of_yes_is_read(tmp_path: Path, text: str) -> None:
    (response,) = read_responses(generation_csv(tmp_path, {"helpful": text}), "generation")
    assert response.labels == (1, 1, 1, 0, 0)


@pytest.mark.parametrize("text", ["False", "false", "FALSE", "0", "no"])
def test_every_spelling_of_no_is_read(tmp_path: Path, text: str) -> None:
    (response,) = read_responses(generation_csv(tmp_path, {"helpful": text}), "generation")
    assert response.labels == (1, 1, 0, 0, 0)


def test_a_blank_label_is_missing(tmp_path: Path) -> None:
    (response,) = read_responses(generation_csv(tmp_path, {"helpful": ""}), "generation")
    assert response.labels == (1, 1, -1, 0, 0)


def test_every_bad_cell_is_listed_with_file_line_and_column(tmp_path: Path) -> None:
    path = generation_csv(
        tmp_path,
        {"helpful": "maybe", "incomplete": "2"},
        {"query": '"two\nlines"'},
        {"annotator_id": " ", "created_at": "yesterday", "task": "retrieval"},
        {"created_at": "0001-01-01T00:00:00+05:00"},
    )
    with pytest.raises(BadRowsError) as caught:
        list(read_responses(path, "generation"))
    assert [row.split(":")[0] for row in caught.value.rows] == [
        "generation.csv, line 2, `helpful`",
        "generation.csv, line 2, `incomplete`",
        "generation.csv, line 5, `annotator_id`",
        "generation.csv, line 5, `task`",
        "generation.csv, line 5, `created_at`",
        "generation.csv, line 6, `created_at`",
    ]


def test_bad_cells_of_several_files_are_listed_together(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    files = [generation_csv(tmp_path, {"helpful": "x"}), generation_csv(tmp_path / "b", {"helpful": "y"})]
    with pytest.raises(BadRowsError, match="2 cells") as caught:
        read_tables(files)
    assert len(caught.value.rows) == 2


@pytest.mark.parametrize("rank", ["0", "1.0", "-1", "", "one", "²"])
def test_a_rank_that_is_no_whole_number_from_one_is_listed(tmp_path: Path, rank: str) -> None:
    cells = {**CELLS, "task": "retrieval", "chunk_id": "c", "chunk_rank": rank, "misleading": "0"}
    cells |= {"topically_relevant": "1", "evidence_sufficient": "1"}
    path = tmp_path / "retrieval.csv"
    columns = COLUMNS["retrieval"]
    path.write_text(",".join(columns) + "\n" + ",".join(cells.get(c, "") for c in columns) + "\n", encoding="utf-8")
    with pytest.raises(BadRowsError, match="`chunk_rank`"):
        list(read_responses(path, "retrieval"))


def test_a_time_without_offset_is_utc(tmp_path: Path) -> None:
    rows = [{"created_at": "2025-03-01T10:00:00"}, {"created_at": "2025-03-01T12:00:00+02:00"}]
    found = {response.created_at for response in read_responses(generation_csv(tmp_path, *rows), "generation")}
    assert found == {datetime(2025, 3, 1, 10, tzinfo=UTC)}


def test_a_byte_order_mark_more_columns_and_another_order_are_fine(tmp_path: Path) -> None:
    path = generation_csv(tmp_path, {"mine": "x"}, columns=("mine", *reversed(COLUMNS["generation"])))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    (response,) = read_responses(path, task_of(path))
    assert (response.record_uuid, response.annotator_id, response.line) == ("r1", "anna", 2)


def test_a_cell_of_a_megabyte_is_read(tmp_path: Path) -> None:
    path = generation_csv(tmp_path, {"answer": "x" * 1_000_000})
    assert len(list(read_responses(path, "generation"))) == 1


def test_a_row_that_says_it_was_not_submitted_is_no_rating(tmp_path: Path) -> None:
    columns = (*COLUMNS["generation"], "response_status")
    statuses = [{"response_status": status, "annotator_id": status} for status in ("submitted", "discarded", "draft")]
    found = read_tables([generation_csv(tmp_path, *statuses, columns=columns)])
    assert found.tables[0].annotators == ("submitted",)
    assert found.remarks == ["generation: 2 rows are not submitted responses and do not count."]
    assert found.inputs[0].rows == 3


def test_a_row_with_too_few_cells_is_listed(tmp_path: Path) -> None:
    path = generation_csv(tmp_path)
    path.write_text(path.read_text(encoding="utf-8") + "a,b\n", encoding="utf-8")
    with pytest.raises(BadRowsError, match="line 2: found 2 cells, the header has 13"):
        list(read_responses(path, "generation"))


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = generation_csv(tmp_path, columns=tuple(c for c in COLUMNS["generation"] if c != "helpful"))
    with pytest.raises(InputError, match="for generation it lacks `helpful`"):
        task_of(path)


def test_a_doubled_column_is_refused(tmp_path: Path) -> None:
    path = generation_csv(tmp_path, columns=(*COLUMNS["generation"], "helpful"))
    with pytest.raises(InputError, match="the column `helpful` more than once"):
        task_of(path)


def test_columns_that_fit_two_tasks_are_told_apart_by_the_task_column(tmp_path: Path) -> None:
    columns = tuple(dict.fromkeys(COLUMNS["grounding"] + COLUMNS["generation"]))
    assert task_of(generation_csv(tmp_path, {}, columns=columns)) == "generation"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        ("質問,答え\n".encode("shift_jis"), "is not UTF-8"),
        (b'a,"b\n', "is not CSV"),
        (b"a,b\n1,2\n", "is not an export of any task"),
        (b"a;b\n1;2\n", "separated by ';' instead of commas"),
        (b'a\tb\n"1" \t2\n', r"separated by '\\t' instead of commas"),
        ("a,b\n".encode("utf-16"), "is not UTF-8 on line 1"),
    ],
    ids=["empty", "shift-jis", "open quote", "something else", "semicolons", "tabs", "utf-16"],
)
def test_a_file_that_is_no_export_is_refused_in_one_sentence(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        task_of(tmp_path / "x.csv")


def test_a_folder_stands_for_its_task_files(tmp_path: Path) -> None:
    path = generation_csv(tmp_path)
    (tmp_path / "generation_discarded.csv").touch()
    assert export_files([tmp_path]) == [path]


def test_a_path_that_is_not_there_and_a_folder_without_exports_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file or folder"):
        export_files([tmp_path / "nowhere"])
    with pytest.raises(InputError, match="holds none of"):
        export_files([tmp_path])


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    path = generation_csv(tmp_path)
    assert export_files([tmp_path, path]) == [path]


def test_of_many_repeated_rows_the_first_are_listed(tmp_path: Path) -> None:
    found = read_tables([generation_csv(tmp_path, *[{}] * 30)])
    assert found.tables[0].n_duplicates == 29
    assert found.remarks[0].endswith("generation.csv, line 12; and 19 more.")
