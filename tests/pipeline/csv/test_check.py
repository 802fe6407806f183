import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exports.cli import main
from pipeline.core.errors import InputError
from pipeline.core.schema import CSV_COLUMNS, SearchResult, StoredAnswer
from pipeline.csv.check import Violation
from pipeline.csv.file import write_answers
from pipeline.providers import read_body
from tests.support.cited_run import stored_answer
from tests.support.csv_check import check_file

OPENAI = "550e8400-e29b-41d4-a716-446655440000"
PERPLEXITY = "7f3e8400-e29b-41d4-a716-446655440001"
Rows = list[dict[str, str]]


def answer(
    model: str, answer_id: str, citations: tuple[str, ...], results: tuple[SearchResult, ...] = (), **fields: Any
) -> StoredAnswer:
    of_model = {"model_name": model, "answer_id": answer_id, "citations": citations, "search_results": results}
    return stored_answer(**of_model, **fields)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Rows 2 to 4: an answer with three citations. Rows 5 to 8: a product of two citations and two results."""
    results = (SearchResult(url="https://news.com/a", title="t", snippet="s"), SearchResult(url="", title="file"))
    write_answers(
        tmp_path / "answers.csv",
        [
            answer("openai", OPENAI, ("https://www.who.int/a", "https://mhlw.go.jp/b", "https://bücher.de/c")),
            answer("perplexity", PERPLEXITY, ("https://a.de/", "https://b.de/"), results),
        ],
    )
    return tmp_path / "answers.csv"


def rows_of(path: Path) -> Rows:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rewrite(path: Path, rows: Rows, columns: tuple[str, ...] = CSV_COLUMNS) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def edit(path: Path, row: int, cells: dict[str, str]) -> None:
    rows = rows_of(path)
    rows[row] |= cells
    rewrite(path, rows)


def places(violations: list[Violation]) -> list[tuple[int, str]]:
    return [(violation.line, violation.column) for violation in violations]


def test_a_right_file_has_no_violation_whatever_the_order_of_its_rows(path: Path) -> None:
    assert check_file(path) == []
    rows = rows_of(path)
    rewrite(path, [rows[place] for place in (4, 0, 6, 1, 3, 2, 5)])
    assert check_file(path) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(),
    paths=st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"])), max_size=4),
    results=st.lists(st.builds(SearchResult, url=st.text(), title=st.text(), snippet=st.text()), max_size=3),
)
def test_whatever_a_model_says_what_is_written_is_right(
    tmp_path: Path, text: str, paths: list[str], results: list[SearchResult]
) -> None:
    citations = tuple(f"https://a.de/{path}" for path in paths)
    said = answer("perplexity", PERPLEXITY, citations, tuple(results)).model_copy(update={"answer_text": text})
    write_answers(tmp_path / "perplexity.csv", [said])
    assert check_file(tmp_path / "perplexity.csv") == []


def test_what_ask_writes_of_no_urls_a_refusal_a_body_of_a_megabyte_and_an_endless_number_pass(tmp_path: Path) -> None:
    cited = ["not a url", "https://", "//x", "mailto:a@b", "https:///", "https://a b", "https://@", "data://x"]
    cited += [
        "file:///etc/passwd",
        "javascript://x.example/%0aalert(1)",
        "https://?q",
        "https://[::1",
        "https://a.de/\x1b",
    ]
    cited += ["https://a.de/b c", "HTTP://1.2.3.4", "ftp://a.de/b", "https://exa\u200bmple.com/a"]
    text = "Yes [1][15].\n\nSources:\n[1] https:///\n[15] https://a.de/\x01\n[16] [a](https://[::1)"
    read = read_body("perplexity", {"choices": [{"message": {"content": text}}], "citations": cited})
    said = answer("perplexity", PERPLEXITY, read.citations).model_copy(update={"answer_text": read.text})
    write_answers(tmp_path / "perplexity.csv", [said])
    assert (check_file(tmp_path / "perplexity.csv"), list(read.citations)) == ([], cited[-4:])
    body = json.dumps({"text": "ワ" * 1_000_000})[:-1] + ', "n": ' + "9" * 5000 + "}"
    write_answers(tmp_path / "a.csv", [answer("claude", OPENAI, (), answer_text="", answer_raw_json=body)])
    assert check_file(tmp_path / "a.csv") == []


@pytest.mark.parametrize(
    ("column", "cell", "wanted"),
    [
        ("narrative_id", "", "a value"),
        ("narrative_prompt", " \n", "a value"),
        ("model_version", "", "a value"),
        ("model_name", "xai", "one of openai, claude, gemini, grok, perplexity"),
        ("model_name", "pipeline", "only in a file `pipeline.csv`"),
        ("answer_prompt", "", "a value"),
        ("answer_raw_json", "{'a': 1}", "valid JSON"),
        ("answer_raw_json", '{"a": NaN}', "NaN is no JSON value"),
        ("answer_raw_json", "[" * 200_000, "nested"),
        ("answer_raw_json", "", "a value"),
        ("answer_timestamp", "2025-12-29T17:30:00", "ISO 8601 time with its offset"),
        ("answer_timestamp", "2025-12-29 17:30:00+00:00", "ISO 8601"),
        ("answer_timestamp", "yesTerday", "ISO 8601"),
        ("answer_text", "a\0b", "text"),
    ],
)
def test_a_wrong_shared_cell_is_told_where_it_stands_and_differs_on_the_other_rows(
    path: Path, column: str, cell: str, wanted: str
) -> None:
    edit(path, 0, {column: cell})
    first, *others = (violation for violation in check_file(path) if violation.column == column)
    assert first.line == 2
    assert wanted in first.wanted
    assert ["the first row of this answer" in violation.wanted for violation in others] == [True, True]


@pytest.mark.parametrize(
    ("row", "column", "cell", "wanted"),
    [
        (1, "source_id", f"{OPENAI}_source_x", "a number from 0"),
        (1, "source_id", f"{PERPLEXITY}_source_1", f"'{OPENAI}_source_'"),
        (1, "source_id", f"{OPENAI}_source_01", "a number from 0"),
        (1, "source_id", f"{OPENAI}_source_3", "below 3"),
        (1, "source_id", "", "a number from 0"),
        (1, "source_url", "", "'https://mhlw.go.jp/b', entry 1"),
        (1, "source_url", "https://mhlw.go.jp/x", "entry 1 of `answer_citation_list`"),
        (1, "source_domain", "www.mhlw.go.jp", "'mhlw.go.jp'"),
        (2, "source_domain", "bücher.de", "'xn--bcher-kva.de'"),
        (0, "result_title", "t", "nothing but for Perplexity"),
        (0, "result_rank", "1", "nothing but for Perplexity"),
        (4, "result_id", "", "a number from 0"),
        (4, "result_id", f"{PERPLEXITY}_result_-1", "a number from 0"),
        (4, "result_rank", "1.0", "'2'"),
        (4, "result_rank", "1", "'2'"),
        (4, "result_rank", "", "'2'"),
        (3, "result_domain", "", "'news.com'"),
        (3, "result_snippet", "a\0b", "text"),
    ],
)
def test_a_wrong_source_or_result_is_told_in_place(path: Path, row: int, column: str, cell: str, wanted: str) -> None:
    edit(path, row, {column: cell})
    (violation,) = [v for v in check_file(path) if (v.line, v.column) == (row + 2, column) and "other" not in v.found]
    assert wanted in violation.wanted


@pytest.mark.parametrize("cell", ["", "550e8400", f"{{{OPENAI}}}", f"urn:uuid:{OPENAI}"])
def test_an_answer_id_is_a_whole_uuid(path: Path, cell: str) -> None:
    rows = [row | {"answer_id": cell, "source_id": row["source_id"].replace(OPENAI, cell)} for row in rows_of(path)[:3]]
    rewrite(path, rows)
    assert places(check_file(path)) == [(2, "answer_id"), (3, "answer_id"), (4, "answer_id")]


@pytest.mark.parametrize("cell", ["", "https://a.de", '{"a": 1}', "[1]", "['a']", "null"])
def test_a_citation_list_is_a_json_array_of_texts_and_nothing_follows_from_a_broken_one(path: Path, cell: str) -> None:
    rewrite(path, [row | {"answer_citation_list": cell} for row in rows_of(path)[:3]])
    assert places(check_file(path)) == [(line, "answer_citation_list") for line in (2, 3, 4)]


@pytest.mark.parametrize(
    ("keep", "told"),
    [
        ((0, 2, 3, 4, 5, 6), [(2, "source_id"), (2, "row")]),
        ((0, 1, 2, 2, 3, 4, 5, 6), [(5, "row"), (2, "row")]),
        ((0, 1, 2, 3, 4, 5), [(5, "row"), (5, "row")]),
        ((0, 1, 2, 3, 4, 6), [(5, "row"), (5, "row")]),
        ((0, 1, 2, 3, 4, 5, 5), [(8, "row"), (5, "row")]),
        ((0, 1, 2, 4, 6), [(5, "result_id")]),
        ((0, 1, 2, 3, 4), [(5, "source_id"), (5, "row")]),
    ],
)
def test_rows_are_citations_with_each_result(path: Path, keep: tuple[int, ...], told: list[tuple[int, str]]) -> None:
    rows = rows_of(path)
    rewrite(path, [rows[place] for place in keep])
    assert places(check_file(path)) == told


def test_one_id_never_has_two_contents(path: Path) -> None:
    edit(path, 5, {"result_title": "another title"})
    assert places(check_file(path)) == [(7, "result_id")]


def test_an_answer_without_citations_is_one_row_without_results(path: Path) -> None:
    row = rows_of(path)[4] | {"answer_citation_list": "[]"}
    rewrite(path, [row | dict.fromkeys(CSV_COLUMNS[11:], "")])
    assert check_file(path) == []
    rewrite(path, [row | dict.fromkeys(CSV_COLUMNS[11:14], "")])
    assert {violation.wanted for violation in check_file(path)} == {"nothing, as the answer has no citation"}


def test_a_shared_cell_that_changes_is_told_even_when_the_rows_lie_apart(path: Path) -> None:
    rows = rows_of(path)
    rows[1]["answer_text"] = "x"
    rewrite(path, [rows[0], *rows[3:], rows[1], rows[2]])
    assert places(check_file(path)) == [(7, "answer_text")]


def test_a_redirect_names_one_site_and_pipeline_elsewhere_is_a_violation(tmp_path: Path) -> None:
    gemini = answer("gemini", OPENAI, ("https://vertexaisearch.cloud.google.com/grounding-api-redirect/AUZIYQ",))
    write_answers(tmp_path / "gemini.csv", [gemini.model_copy(update={"domains": ("ruby-lang.org",)})])
    assert check_file(tmp_path / "gemini.csv") == []
    for wrong in ("Weather in Berlin", "www.ruby-lang.org", ""):
        write_answers(tmp_path / "gemini.csv", [gemini.model_copy(update={"domains": (wrong,)})])
        assert places(check_file(tmp_path / "gemini.csv")) == [(2, "source_domain")]
    for name, found in (("pipeline.csv", []), ("openai.csv", [(2, "model_name")])):
        write_answers(tmp_path / name, [answer("pipeline", OPENAI, ())])
        assert places(check_file(tmp_path / name)) == found
    (tmp_path / "a.csv").write_bytes(b"")
    assert [violation.found for violation in check_file(tmp_path / "a.csv")] == ["an empty file"]
    with pytest.raises(InputError, match="There is no file"):
        check_file(tmp_path / "b.csv")


def test_the_first_missing_result_is_named_however_large_the_numbers_are(path: Path) -> None:
    rows = rows_of(path)
    for row in (rows[4], rows[6]):
        row["result_id"], row["result_rank"] = f"{PERPLEXITY}_result_999999999", "1000000000"
    rewrite(path, rows)
    assert [(each.line, each.column, each.found) for each in check_file(path)] == [(5, "result_id", "no result 1")]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (CSV_COLUMNS[:-1], [(1, "result_rank")]),
        ((*CSV_COLUMNS, "note"), [(1, "row")]),
        ((CSV_COLUMNS[1], CSV_COLUMNS[0], *CSV_COLUMNS[2:]), [(1, "narrative_type")]),
    ],
)
def test_the_header_is_the_20_columns_in_order(path: Path, columns: tuple[str, ...], told: list[Any]) -> None:
    rewrite(path, [row | {"note": "x"} for row in rows_of(path)], columns)
    assert places(check_file(path)) == told


def test_bytes_ragged_rows_and_quotes_are_told_and_the_rest_is_still_judged(path: Path) -> None:
    raw = path.read_bytes().split(b"\r\n")
    raw[1] = raw[1].replace("ワクチン".encode(), "ワクチン".encode("cp932"), 1)
    raw[3] += b",more"
    raw[4] = raw[4].replace(b'"[', b'x"[', 1)
    raw[5] = raw[5].replace(b"news.com,t", b"news.com,u")
    path.write_bytes(b"\r\n".join([*raw[:6], b"", *raw[6:-1], b'"never closed\r\nat all']))
    violations = check_file(path)
    assert (2, "row", "UTF-8") in [(v.line, v.column, v.wanted) for v in violations]
    assert (4, "row", "21 cells") in [(v.line, v.column, v.found) for v in violations]
    assert [v.line for v in violations if v.found.startswith("no CSV")] == [10]


def test_the_command_prints_each_violation_and_says_what_comes_next(path: Path, tmp_path: Path) -> None:
    def check(*paths: Path) -> Result:
        return CliRunner().invoke(main, ["pipeline", "check", *map(str, paths)])

    (tmp_path / "empty").mkdir()
    refused = check(tmp_path / "empty")
    assert (refused.exit_code, "holds no CSV file" in refused.stderr) == (1, True)
    other = path.with_name("another.csv")
    other.write_bytes(path.read_bytes())
    right = check(path.parent)
    assert (right.exit_code, right.stdout) == (0, "")
    *files, following = right.stderr.splitlines()
    assert [line.split(":")[0] for line in files] == sorted(map(str, (path, other)))
    assert following == f"Next: citejury pipeline sources {path.parent} --out records.jsonl"
    edit(path, 1, {"source_domain": "x\ny"})
    wrong = check(path)
    assert wrong.exit_code == 1
    assert wrong.stdout == rf"{path}:3: source_domain: found 'x\ny', wanted 'mhlw.go.jp'" + "\n"
    assert f"{path}: rows 7, answers 2, violations 1" in wrong.stderr
