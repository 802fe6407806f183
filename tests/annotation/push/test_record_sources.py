"""What can be pushed: run folders, CSV v2 with broken rows, JSON Lines, frames."""

import csv
import json
from pathlib import Path

import pandas
import pytest

from annotation import push_frame
from annotation.push.record_sources import check_paths, kept_records, read_source, records_from_frame
from pipeline.csv_v2.file import write_answers
from pipeline.errors import BadRowsError, InputError
from pipeline.schema import CSV_COLUMNS, SearchResult, StoredAnswer

UUIDS = [f"7d7f3b52-5a6c-4d0e-9a35-00000000000{number}" for number in range(4)]


def stored(number: int, model_name: str = "perplexity", text: str = "It is not.", **more) -> StoredAnswer:
    values = {
        "narrative_id": str(number),
        "narrative_type": "",
        "narrative_prompt": f"Is it {number}?",
        "model_name": model_name,
        "model_version": "m",
        "answer_id": UUIDS[number],
        "answer_prompt": "p",
        "answer_text": text,
        "answer_raw_json": "{}",
        "answer_timestamp": "2026-11-01T00:00:00+00:00",
        "citations": ("https://a.example/1",),
        "domains": ("a.example",),
    }
    return StoredAnswer(**values | more)


def with_snippets(number: int) -> StoredAnswer:
    results = (SearchResult(url="https://a.example/1", title="A", snippet=f"Snippet {number}."),)
    return stored(number, search_results=results)


def test_a_csv_v2_file_gives_passages_where_its_rows_carry_snippets(tmp_path: Path) -> None:
    write_answers(tmp_path / "perplexity.csv", [with_snippets(0)])
    write_answers(tmp_path / "openai.csv", [stored(1, "openai")])
    paths = [tmp_path / "perplexity.csv", tmp_path / "openai.csv"]
    with kept_records() as kept:
        checked = check_paths(paths, keep=kept.keep)
        records = list(kept.read())
    assert [uuid for uuid, _ in checked.languages] == UUIDS[:2]
    assert (checked.without_passages, checked.problems) == ({UUIDS[1]}, ())
    assert [[chunk.text for chunk in record.chunks] for record in records] == [["Snippet 0."], []]
    assert records == [record for path in paths for record in read_source(path, [])]


def test_a_csv_file_gives_the_same_records_as_its_run_folder(tmp_path: Path) -> None:
    write_answers(tmp_path / "openai.csv", [stored(1, "openai")])
    (tmp_path / "manifest.json").write_text(json.dumps({"run_id": "run-1"}), encoding="utf-8")
    problems: list[str] = []
    alone, together = (list(read_source(path, problems)) for path in (tmp_path / "openai.csv", tmp_path))
    assert alone == together
    assert alone[0].provenance.run_id == "run-1"


def test_broken_rows_are_listed_with_their_lines_and_the_other_answers_are_read(tmp_path: Path) -> None:
    path = tmp_path / "perplexity.csv"
    write_answers(path, [with_snippets(number) for number in range(4)])
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    rows[1] = rows[1][:-1]
    rows[2][CSV_COLUMNS.index("answer_citation_list")] = "no JSON"
    rows[3][CSV_COLUMNS.index("source_id")] = ""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    checked = check_paths([path])
    assert [uuid for uuid, _ in checked.languages] == [UUIDS[3]]
    assert [problem.split(": ")[0] for problem in checked.problems] == [f"perplexity.csv, line {n}" for n in (2, 3, 4)]
    assert "found 19 cells, wanted 20" in checked.problems[0]


def test_an_answer_that_goes_on_after_it_ended_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "openai.csv"
    write_answers(path, [stored(0, "openai"), stored(1, "openai")])
    rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*rows, rows[1]]))
    problems: list[str] = []
    assert [record.record_uuid for record in read_source(path, problems)] == UUIDS[:2]
    assert problems == [f"openai.csv, line 4: the answer {UUIDS[0]!r} ended or went wrong further up"]


@pytest.mark.parametrize("name", ["old.csv", "empty.csv"])
def test_a_csv_file_without_answers_or_of_another_kind_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "old.csv").write_text("id,text\n1,x\n", encoding="utf-8")
    write_answers(tmp_path / "empty.csv", [])
    with pytest.raises(InputError, match=name):
        check_paths([tmp_path / name])


def test_answers_that_name_their_model_are_listed(tmp_path: Path) -> None:
    write_answers(tmp_path / "openai.csv", [stored(0, "openai", "As ChatGPT, I cannot."), stored(1, "openai")])
    (line,) = check_paths([tmp_path / "openai.csv"]).naming
    assert line.startswith(f"{UUIDS[0]}: 'ChatGPT' in ")


def test_answers_are_counted_and_not_the_names_in_them_and_those_that_speak_as_their_model_can_be_left_out(
    tmp_path: Path,
) -> None:
    texts = ["As ChatGPT, an OpenAI model, I cannot. OpenAI says so.", "OpenAI and ChatGPT are two names.", "Nobody."]
    write_answers(tmp_path / "openai.csv", [stored(n, "openai", text) for n, text in enumerate(texts)])
    told = check_paths([tmp_path / "openai.csv"])
    assert [line.split(":")[0] for line in told.naming] == list(UUIDS[:2])
    words = "OpenAI and ChatGPT are two names. [1]"
    assert told.naming[1] == f"{UUIDS[1]}: 'OpenAI' in {words!r}; 'ChatGPT' in {words!r}"
    assert (told.speaking, told.left_out, len(told.languages)) == ((UUIDS[0],), frozenset(), 3)
    with kept_records() as kept:
        skipped = check_paths([tmp_path / "openai.csv"], skip_self_naming=True, keep=kept.keep)
        records = list(kept.read(skipped.left_out))
    assert (skipped.naming, skipped.speaking) == (told.naming, told.speaking)
    assert [record for record, _ in skipped.languages] == list(UUIDS[1:3])
    assert [record.record_uuid for record in records] == list(UUIDS[1:3])


def test_where_every_answer_speaks_as_its_model_nothing_is_left_to_push(tmp_path: Path) -> None:
    write_answers(tmp_path / "openai.csv", [stored(0, "openai", "As ChatGPT, I cannot.")])
    with pytest.raises(InputError, match="Every answer speaks as its own model"):
        check_paths([tmp_path / "openai.csv"], skip_self_naming=True)


def test_a_frame_gives_records_with_passages_of_texts_and_of_dicts() -> None:
    passages = [["One.", {"text": "Two.", "title": "T", "url": "https://a.example/2", "origin": "snippet"}], [], None]
    frame = pandas.DataFrame({"query": ["Q?"] * 3, "answer": ["A", "B", ""], "passages": passages, "other": 1})
    records, invalid = records_from_frame(frame)
    assert invalid == []
    assert [(chunk.text, chunk.title, chunk.chunk_rank) for chunk in records[0].chunks] == [
        ("One.", "", 1),
        ("Two.", "T", 2),
    ]
    assert [len(record.chunks) for record in records] == [2, 0, 0]
    assert records_from_frame(frame)[0] == records


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"query": "Q?", "answer": float("nan"), "passages": []}, "`answer` is no text"),
        ({"query": " ", "answer": "A", "passages": []}, "`query` is empty"),
        ({"query": "Q?", "answer": "A", "passages": "One."}, "`passages` is no list"),
        ({"query": "Q?", "answer": "A", "passages": ["One.", ""]}, "passage 2 is neither"),
        ({"query": "Q?", "answer": "A", "passages": [{"text": "x", "rank": 1}]}, "rank"),
    ],
    ids=["no answer", "empty query", "one text", "empty passage", "unknown key"],
)
def test_a_row_that_is_no_record_is_listed_with_its_number(row: dict, reason: str) -> None:
    good = {"query": "Q?", "answer": "A", "passages": []}
    records, invalid = records_from_frame([good, row])
    assert len(records) == 1
    assert invalid[0].startswith("row 2: ")
    assert reason in invalid[0]


@pytest.mark.parametrize(("frame", "error"), [([], "no rows"), ([{"query": "Q?"}], "no column 'answer', 'passages'")])
def test_a_frame_without_rows_or_columns_is_refused(frame: list, error: str) -> None:
    with pytest.raises(InputError, match=error):
        push_frame(frame)


def test_a_frame_of_nothing_but_bad_rows_is_refused_before_argilla_is_asked() -> None:
    with pytest.raises(BadRowsError, match="No row is a record"):
        push_frame([{"query": "", "answer": "A", "passages": []}])
