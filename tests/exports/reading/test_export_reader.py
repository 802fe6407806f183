import codecs
import csv
import io
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exports.csv.rows import csv_line
from exports.csv.schema import COLUMNS
from exports.reading.read import export_files, read_responses, read_tables, task_of
from exports.statistics.ratings import Ratings
from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.tables import FORMULA_STARTS, spreadsheet_cell

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


STATUS_COLUMNS = (*COLUMNS["generation"], "response_status")


def generation_csv(
    folder: Path,
    *rows: dict[str, str],
    columns: tuple[str, ...] = COLUMNS["generation"],
    name: str = "generation.csv",
) -> Path:
    path = folder / name
    folder.mkdir(exist_ok=True)
    lines = [columns, *(tuple({**CELLS, **row}.get(column, "") for column in columns) for row in rows)]
    path.write_text("\r\n".join(",".join(line) for line in lines) + "\r\n", encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize(
    ("texts", "value"),
    [(("True", "true", "TRUE", "1", "yes"), 1), (("False", "false", "FALSE", "0", "no"), 0), (("",), -1)],
)
def test_every_spelling_of_yes_and_no_is_read_blank_missing(tmp_path: Path, texts: tuple[str, ...], value: int) -> None:
    path = generation_csv(tmp_path, *({"helpful": text} for text in texts))
    assert [each.labels for each in read_responses(path, "generation")] == [(1, 1, value, 0, 0)] * len(texts)


def test_every_bad_cell_is_listed_with_file_line_and_column_of_several_files_together(tmp_path: Path) -> None:
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
    files = [generation_csv(tmp_path, {"helpful": "x"}), generation_csv(tmp_path / "b", {"helpful": "y"})]
    with pytest.raises(BadRowsError, match="2 cells") as caught:
        read_tables(files)
    assert len(caught.value.rows) == 2
    status = generation_csv(tmp_path, {"response_status": "submited"}, columns=STATUS_COLUMNS)
    with pytest.raises(BadRowsError, match="`response_status`: found 'submited'"):
        read_tables([status])
    status.write_text(",".join(COLUMNS["generation"]) + "\na,b\n", encoding="utf-8")
    with pytest.raises(BadRowsError, match="line 2: found 2 cells, the header has 13"):
        read_tables([status])


@pytest.mark.parametrize("rank", ["0", "1.0", "-1", "", "one", "²"])
def test_a_rank_that_is_no_whole_number_from_one_is_listed(tmp_path: Path, rank: str) -> None:
    cells = {**CELLS, "task": "retrieval", "chunk_id": "c", "chunk_rank": rank, "misleading": "0"}
    cells |= {"topically_relevant": "1", "evidence_sufficient": "1"}
    path = tmp_path / "retrieval.csv"
    columns = COLUMNS["retrieval"]
    path.write_text(",".join(columns) + "\n" + ",".join(cells.get(c, "") for c in columns) + "\n", encoding="utf-8")
    with pytest.raises(BadRowsError, match="`chunk_rank`"):
        list(read_responses(path, "retrieval"))


def test_a_time_without_offset_a_byte_order_mark_and_large_cells_are_fine_and_drafts_no_rating(tmp_path: Path) -> None:
    rows = [{"created_at": "2025-03-01T10:00:00"}, {"created_at": "2025-03-01T12:00:00+02:00"}]
    found = {response.created_at for response in read_responses(generation_csv(tmp_path, *rows), "generation")}
    assert found == {datetime(2025, 3, 1, 10, tzinfo=UTC)}
    path = generation_csv(
        tmp_path, {"mine": "x", "answer": "x" * 1_000_000}, columns=("mine", *reversed(COLUMNS["generation"]))
    )
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    (response,) = read_responses(path, task_of(path))
    assert (response.record_uuid, response.annotator_id, response.line) == ("r1", "anna", 2)
    statuses = [{"response_status": status, "annotator_id": status} for status in ("submitted", "discarded", "draft")]
    found = read_tables([generation_csv(tmp_path, *statuses, columns=STATUS_COLUMNS)])
    assert (found.tables[0].annotators, found.tables[0].discards) == (("submitted",), {"discarded": 1})
    assert found.remarks == ["generation: rows left out because they are drafts or pending: 1."]
    assert found.inputs[0].rows == 3


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (tuple(c for c in COLUMNS["generation"] if c != "helpful"), "for generation it lacks `helpful`"),
        ((*COLUMNS["generation"], "helpful"), "the column `helpful` more than once"),
    ],
)
def test_a_missing_or_doubled_column_is_named(tmp_path: Path, columns: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        task_of(generation_csv(tmp_path, columns=columns))


def test_tasks_rounds_languages_and_apostrophes_are_read_and_repeated_rows_listed(tmp_path: Path) -> None:
    columns = tuple(dict.fromkeys(COLUMNS["grounding"] + COLUMNS["generation"]))
    assert task_of(generation_csv(tmp_path, {}, columns=columns)) == "generation"
    rows = [
        {"round": "production", "record_uuid": "r1"},
        {"round": "calibration", "record_uuid": "r2", "created_at": "2025-02-01T10:00:00+00:00"},
        {"round": "", "record_uuid": "r3"},
    ]
    (ratings,) = read_tables([generation_csv(tmp_path, *rows, columns=(*COLUMNS["generation"], "round"))]).tables
    assert (ratings.rounds, ratings.response_rounds.tolist()) == (("calibration", "production"), [1, 0, -1])
    rows = [
        {"annotator_id": name, "language": code} for name, code in {"a": "und", "b": "en", "c": "de", "d": ""}.items()
    ]
    (ratings,) = read_tables([generation_csv(tmp_path, *rows, {"record_uuid": "r2"})]).tables
    assert ratings.unit_languages == ("de", "und")
    (ratings,) = read_tables([generation_csv(tmp_path, {"annotator_id": "'anna'", "record_uuid": "'"})]).tables
    assert (ratings.annotators, ratings.records) == (("'anna'",), ("'",))
    found = read_tables([generation_csv(tmp_path, *[{}] * 30)])
    assert found.tables[0].n_duplicates == 29
    assert found.remarks[0].endswith("generation.csv, line 12; and 19 more.")
    files = [generation_csv(tmp_path, {}), generation_csv(tmp_path / "b", {})]
    (remark,) = read_tables(files).remarks
    assert remark.endswith(f"Repeated at: {files[1]}, line 2.")


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
    for name in ("grounding.csv", "grounding_discarded.csv"):  # named after its task
        (tmp_path / name).write_text("a,b\n1,2\n", encoding="utf-8")
        with pytest.raises(InputError, match="for grounding it lacks "):
            task_of(tmp_path / name)


def test_a_folder_stands_for_its_task_files_and_each_is_read_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file or folder"):
        export_files([tmp_path / "nowhere"])
    with pytest.raises(InputError, match="holds none of"):
        export_files([tmp_path])
    path = generation_csv(tmp_path)
    discarded = generation_csv(tmp_path, columns=STATUS_COLUMNS, name="generation_discarded.csv")
    (tmp_path / "manifest.json").touch()
    assert export_files([tmp_path, path]) == [path, discarded]


def test_a_discarded_file_is_counted_an_empty_one_tells_of_none_and_its_absence_nothing(tmp_path: Path) -> None:
    discards = [
        {"annotator_id": "ben", "response_status": "discarded", "helpful": "", "record_uuid": f"r{n}"} for n in (1, 2)
    ]
    generation_csv(tmp_path, {}, {"annotator_id": "ben", "record_uuid": "r3"})
    generation_csv(tmp_path, *discards, columns=STATUS_COLUMNS, name="generation_discarded.csv")
    found = read_tables(export_files([tmp_path]))
    assert (found.tables[0].discards, found.tables[0].records, found.remarks) == ({"ben": 2}, ("r1", "r3"), [])
    assert [(file.file, file.rows) for file in found.inputs] == [("generation.csv", 2), ("generation_discarded.csv", 2)]
    # A response that was discarded later is a rating no more.
    later = {"response_status": "discarded", "created_at": "2025-03-02T10:00:00+00:00"}
    generation_csv(tmp_path, later, columns=STATUS_COLUMNS, name="generation_discarded.csv")
    (ratings,) = read_tables(export_files([tmp_path])).tables
    assert (ratings.annotators, ratings.discards, ratings.n_duplicates) == (("ben",), {"anna": 1}, 1)
    path = generation_csv(tmp_path, {"response_status": "submitted"}, columns=STATUS_COLUMNS)
    assert read_tables([path]).tables[0].discards is None
    discarded = generation_csv(tmp_path, columns=STATUS_COLUMNS, name="generation_discarded.csv")
    assert read_tables([path, discarded]).tables[0].discards == {}
    generation_csv(tmp_path, {}, name="generation_discarded.csv")
    with pytest.raises(InputError, match="has no column `response_status`"):
        read_tables([discarded])


@pytest.mark.parametrize("mark", FORMULA_STARTS)
def test_an_export_for_spreadsheets_has_the_same_ratings(tmp_path: Path, mark: str) -> None:
    ours = {**CELLS, "query": "q", "answer": "a", "notes": f"{mark}1", "language": "en"}
    marked = [{"annotator_id": f"{mark}anna", "record_uuid": f"{mark}r{n}"} for n in range(3)]
    rows = [[{**ours, **row}[name] for name in COLUMNS["generation"]] for row in (*marked, {})]
    escaped = [[spreadsheet_cell(cell) for cell in row] for row in rows]
    plain, safe = tmp_path / "generation.csv", tmp_path / "safe.csv"
    plain.write_bytes(b"".join(map(csv_line, (COLUMNS["generation"], *rows))))
    safe.write_bytes(codecs.BOM_UTF8 + b"".join(map(csv_line, (COLUMNS["generation"], *escaped))))
    assert plain.read_bytes() != safe.read_bytes()
    assert same(read_tables([plain]).tables[0], read_tables([safe]).tables[0])


@given(st.lists(st.text(st.sampled_from('a ,"\r\n\t\0ä\u2028')) | st.integers(), min_size=2))
def test_a_line_of_csv_is_the_csv_modules(cells: list[str | int]) -> None:
    line = io.StringIO(newline="")
    csv.writer(line).writerow(cells)
    assert csv_line(cells) == line.getvalue().encode()


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3), st.integers(0, 2), st.sampled_from(["", "1", "0"]), st.sampled_from(["", "x", "y"])
        ),
        unique_by=lambda row: row[:2],
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_of_rows_does_not_change_an_array(
    tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[int, int, str, str]], random: Random
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    rows = [
        {"record_uuid": f"r{r}", "annotator_id": f"a{a}", "helpful": yes, "round": name} for r, a, yes, name in cells
    ]
    columns = (*COLUMNS["generation"], "round")
    (first,) = read_tables([generation_csv(folder, *rows, columns=columns)]).tables
    random.shuffle(rows)
    (second,) = read_tables([generation_csv(folder, *rows, columns=columns)]).tables
    assert same(first, second)


def same(first: Ratings, second: Ratings) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
