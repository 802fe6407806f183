import csv
import json
from pathlib import Path
from uuid import UUID

import pytest
from click.testing import CliRunner

from exports.cli import main
from pipeline.core.errors import BadRowsError, InputError, OutputError
from pipeline.core.schema import StoredAnswer
from pipeline.csv.file import read_answers
from pipeline.csv.migrate import V1_COLUMNS, migrate_file
from tests.support.csv_check import check_file
from tests.support.places import NO_SHARED, SHARED

RECORDINGS = SHARED / "recordings"
RUN = "550e8400-e29b-41d4-a716-446655440000"
SONAR = json.dumps(
    {
        "model": "sonar-pro",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Nein [1][2]."}}],
        "citations": ["https://www.who.int/a", "https://mhlw.go.jp/b"],
        "search_results": [{"url": "https://www.who.int/a", "title": "WHO", "snippet": "sicher"}],
    }
)


def v1_row(**cells: str) -> dict[str, str]:
    return {
        "run_id": RUN,
        "prompt_id": "p1",
        "requested_at": "2025-12-29T17:30:00Z",
        "provider": "perplexity",
        "model": "sonar",
        "base_url": "https://api.perplexity.ai",
        "note_id": "001",
        "note_text": "ワクチンは危険",
        "system_prompt": "Prüfe.",
        "user_prompt": "ワクチンは危険\n\nはい?",
        "response_text": "Nein [1][2].",
        "finish_reason": "stop",
        "prompt_tokens": "12",
        "completion_tokens": "3",
        "total_tokens": "15",
        "latency_ms": "900",
        "search_results_json": "",
        "error": "",
        "raw_json": SONAR,
    } | cells


def write_v1(path: Path, *rows: dict[str, str], columns: tuple[str, ...] = V1_COLUMNS) -> Path:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def migrated(folder: Path, *rows: dict[str, str]) -> tuple[list[StoredAnswer], list[str]]:
    report = migrate_file(write_v1(folder / "v1.csv", *rows), folder / "v2.csv")
    assert check_file(folder / "v2.csv") == []
    return list(read_answers(folder / "v2.csv")), report.notes


def test_a_row_keeps_what_it_says_and_gains_its_citations(tmp_path: Path) -> None:
    (answer,), notes = migrated(tmp_path, v1_row())
    assert notes == []
    assert answer.model_dump(exclude={"search_results"}) == {
        "narrative_id": "001",
        "narrative_type": "",
        "narrative_prompt": "ワクチンは危険",
        "model_name": "perplexity",
        "model_version": "sonar",
        "answer_id": RUN,
        "answer_prompt": "ワクチンは危険\n\nはい?",
        "answer_text": "Nein [1][2].",
        "answer_raw_json": SONAR,
        "answer_timestamp": "2025-12-29T17:30:00Z",
        "citations": ("https://www.who.int/a", "https://mhlw.go.jp/b"),
        "domains": ("who.int", "mhlw.go.jp"),
    }
    assert [result.title for result in answer.search_results] == ["WHO"]


def test_old_names_naive_times_and_no_model_become_the_contracts(tmp_path: Path) -> None:
    rows = [
        v1_row(provider="xai", run_id=str(UUID(int=1)), requested_at="2025-12-29T17:30:00"),
        v1_row(provider="anthropic", run_id=str(UUID(int=2)), requested_at="2025-12-29 18:30:00.5+01:00"),
        v1_row(run_id=str(UUID(int=3)), model=""),
    ]
    answers, notes = migrated(tmp_path, *rows)
    assert [(answer.model_name, answer.model_version, answer.answer_timestamp) for answer in answers] == [
        ("grok", "sonar", "2025-12-29T17:30:00+00:00"),
        ("claude", "sonar", "2025-12-29T18:30:00.500000+01:00"),
        ("perplexity", "sonar-pro", "2025-12-29T17:30:00Z"),
    ]
    assert notes == [
        "line 2: `requested_at` has no offset and is taken for UTC",
        "line 8: `model` is empty; `model_version` is the model that `raw_json` names",
    ]


def test_a_run_id_that_names_no_single_answer_gives_way_to_a_lasting_one(tmp_path: Path) -> None:
    answers, notes = migrated(tmp_path, v1_row(), v1_row(), v1_row(run_id="run_7"), v1_row(run_id=""))
    ids = [answer.answer_id for answer in answers]
    assert (ids[0], [UUID(answer_id).version for answer_id in ids[1:]], len(set(ids))) == (RUN, [5, 5, 5], 4)
    assert notes == [
        "line 5: `run_id` stands on an earlier row; `answer_id` is made of the file and the row",
        "lines 8, 11: `run_id` is no UUID; `answer_id` is made of the file and the row",
    ]
    migrate_file(tmp_path / "v1.csv", tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "v2.csv").read_bytes()


def test_error_rows_go_to_a_file_of_their_own_without_their_keys(tmp_path: Path) -> None:
    error = "429 insufficient_quota for key sk-abcdefghijklmnop"
    answers, _ = migrated(tmp_path, v1_row(), v1_row(error=error, raw_json="", response_text="", provider="openai"))
    assert len(answers) == 1
    (line,) = (tmp_path / "v2.errors.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == {
        "narrative_id": "001",
        "row": 2,
        "provider": "openai",
        "model": "sonar",
        "kind": "quota",
        "status": None,
        "message": "429 insufficient_quota for key [redacted]",
        "attempts": 1,
        "timestamp": "2025-12-29T17:30:00+00:00",
    }


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("Error code: 429 - {'error': {'message': 'slow down'}}", "rate_limit"),
        ("HTTPStatusError: 503 Service Unavailable", "server"),
        ("Request timed out.", "timeout"),
        ("Connection error.", "network"),
        ("KeyError: 'choices'", "bad_response"),
    ],
)
def test_the_kind_of_an_old_error_is_told_by_its_words(tmp_path: Path, error: str, kind: str) -> None:
    migrated(tmp_path, v1_row(error=error, requested_at=""))
    line = json.loads((tmp_path / "v2.errors.jsonl").read_text(encoding="utf-8"))
    assert (line["kind"], line["timestamp"]) == (kind, "")


@pytest.mark.parametrize(
    ("cells", "citations", "note"),
    [
        (
            {"raw_json": "ChatCompletion(id='1')", "search_results_json": '[{"url": "https://a.de/", "title": "A"}]'},
            ("https://a.de/",),
            "`search_results_json`",
        ),
        (
            {"raw_json": "", "search_results_json": '["https://a.de/", "https://a.de/", 7, {"title": "x"}]'},
            ("https://a.de/",),
            "`search_results_json`",
        ),
        (
            {"raw_json": "", "search_results_json": '{"query": "q", "results": [{"url": "https://a.de/"}]}'},
            ("https://a.de/",),
            "`search_results_json`",
        ),
        (
            {"raw_json": '{"x": 1}', "response_text": "Siehe [a](https://a.de/x), https://b.de/y."},
            ("https://a.de/x", "https://b.de/y"),
            "the URLs in `response_text`",
        ),
        (
            {"raw_json": "", "response_text": "Nein [1][2].\n\n[2]: https://b.de/\n[1]: https://a.de/"},
            ("https://a.de/", "https://b.de/"),
            "the URLs in `response_text`",
        ),
        (
            {"raw_json": "", "response_text": "Das ist [nicht so][who].\n\n[who]: https://a.de/ 'A'"},
            ("https://a.de/",),
            "the URLs in `response_text`",
        ),
        ({"raw_json": "x", "search_results_json": "[" * 100_000}, (), "the URLs in"),
    ],
    ids=["results", "bare urls", "results in an object", "text", "a list in the text", "reference links", "nothing"],
)
def test_where_no_reader_knows_the_body_the_rest_of_the_row_tells(
    tmp_path: Path, cells: dict[str, str], citations: tuple[str, ...], note: str
) -> None:
    (answer,), notes = migrated(tmp_path, v1_row(**cells))
    assert answer.citations == citations
    assert any("`raw_json` cannot be read; the citations are " + note in sentence for sentence in notes)
    if "is not JSON" in "".join(notes):
        assert json.loads(answer.answer_raw_json) == cells["raw_json"]


def test_search_results_that_the_body_lacks_are_taken_from_beside_it(tmp_path: Path) -> None:
    body = {name: value for name, value in json.loads(SONAR).items() if name != "search_results"}
    found = json.dumps([{"title": "T", "url": "https://r.com", "snippet": "S"}])
    (answer,), notes = migrated(tmp_path, v1_row(raw_json=json.dumps(body), search_results_json=found))
    assert [(each.url, each.snippet) for each in answer.search_results] == [("https://r.com", "S")]
    assert answer.citations == ("https://www.who.int/a", "https://mhlw.go.jp/b")
    assert notes == ["line 2: the search results are those of `search_results_json`"]


def test_search_results_become_columns_whatever_the_shape_of_the_body(tmp_path: Path) -> None:
    found = json.dumps([{"title": "T", "url": "https://r.com", "snippet": "S"}])
    part = {"type": "output_text", "text": "Nein.", "annotations": [{"type": "url_citation", "url": "https://a.de/x"}]}
    agent = {"object": "response", "output": [{"type": "message", "content": [part]}]}
    plain = {"choices": [{"message": {"content": "Nein."}}], "model": "gpt"}
    rows = [
        v1_row(run_id=str(UUID(int=1)), raw_json=json.dumps(agent), search_results_json=found),
        v1_row(run_id=str(UUID(int=2)), raw_json=json.dumps(plain), search_results_json=found, provider="openai"),
        v1_row(run_id=str(UUID(int=3)), raw_json=json.dumps(plain | {"x": "https://r.com"}), search_results_json=found),
    ]
    answers, _ = migrated(tmp_path, *rows)
    assert [[each.url for each in answer.search_results] for answer in answers] == [
        ["https://r.com"],
        [],
        ["https://r.com"],
    ]
    [left] = map(json.loads, (tmp_path / "v2.left.jsonl").read_text(encoding="utf-8").splitlines())
    assert (left["line"], left["cells"]) == (5, {"search_results_json": found})
    assert left["reason"] == "`search_results_json` has what is in neither the body nor a column of CSV v2"


def test_search_results_that_cannot_be_taken_over_whole_are_kept_in_the_list(tmp_path: Path) -> None:
    kept = json.loads(SONAR)["search_results"]
    cells = [
        '[{"url":',
        json.dumps([{"link": "https://lost.example/"}]),
        json.dumps({"data": {"results": [{"url": "https://lost.example/"}]}}),
        "https://lost.example/;https://b.example",
        "[{'url': 'https://lost.example/'}]",
        json.dumps([*kept, {"url": "https://lost.example/"}]),
        json.dumps({"results": kept, "citations": ["https:\\/\\/lost.example"]}).replace("\\\\", "\\"),
    ]
    taken = ["", "null", "[]", "{}", json.dumps(kept), json.dumps(kept).replace("/", "\\/")]
    rows = [v1_row(run_id=str(UUID(int=number)), search_results_json=cell) for number, cell in enumerate(cells + taken)]
    v1 = write_v1(tmp_path / "v1.csv", *rows)
    result = CliRunner().invoke(main, ["pipeline", "check", str(v1), "--out", str(tmp_path / "v2.csv")])
    assert (result.exit_code, len(list(read_answers(tmp_path / "v2.csv")))) == (1, len(rows))
    left = [json.loads(line) for line in (tmp_path / "v2.left.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [each["cells"]["search_results_json"] for each in left] == cells
    assert [each["reason"].removeprefix("`search_results_json` ") for each in left] == [
        "is not JSON",
        "has a result without `url`",
        "has what is in neither the body nor a column of CSV v2",
        "is not JSON",
        "is not JSON",
        "has what is in neither the body nor a column of CSV v2",
        "has what is in neither the body nor a column of CSV v2",
    ]


def test_a_row_that_is_no_utf_8_or_no_csv_goes_to_the_list_as_it_stands_and_the_others_are_migrated(
    tmp_path: Path,
) -> None:
    rows = [v1_row(run_id=str(UUID(int=number)), note_id=f"N{number}") for number in range(5)]
    v1 = write_v1(tmp_path / "v1.csv", *rows)
    content = v1.read_bytes().replace(b",N1,", b",N\xff1,").replace(b",N3,", b',"N3,')
    v1.write_bytes(content + b'"a,b\r\n')
    migrate_file(v1, tmp_path / "v2.csv")
    assert [each.narrative_id for each in read_answers(tmp_path / "v2.csv")] == ["N0", "N2", "N4"]
    left = [json.loads(line) for line in (tmp_path / "v2.left.jsonl").read_text(encoding="utf-8").splitlines()]
    assert left[0]["cells"].encode(errors="surrogateescape").splitlines()[0] in content
    assert ["is the byte 0xff" in left[0]["reason"], "it is not CSV (" in left[-1]["reason"]] == [True, True]
    assert (left[0]["line"], left[-1]["cells"]) == (5, '"a,b\r\n')
    assert "".join(each["cells"] if isinstance(each["cells"], str) else "" for each in left).count("N3") == 1


def test_rows_that_cannot_be_migrated_go_to_a_list_with_their_reasons_and_the_others_are_migrated(
    tmp_path: Path,
) -> None:
    bad = [
        v1_row(note_text=" "),
        v1_row(provider="hal"),
        v1_row(requested_at="29/12/2025"),
        v1_row(model="", raw_json="x"),
        v1_row(error="boom", requested_at="yesterday"),
    ]
    v1 = write_v1(tmp_path / "v1.csv", v1_row(), *bad, v1_row(error="boom"), v1_row(provider="grok"))
    with open(v1, "a", encoding="utf-8") as file:
        file.write("a,b\r\n")
    result = CliRunner().invoke(main, ["pipeline", "check", str(v1), "--out", str(tmp_path / "v2.csv")])
    assert (result.exit_code, check_file(tmp_path / "v2.csv")) == (1, [])
    assert [answer.model_name for answer in read_answers(tmp_path / "v2.csv")] == ["perplexity", "grok"]
    told = [line.partition(".jsonl:")[2] for line in result.stderr.splitlines() if line.startswith("not migrated, ")]
    assert [line.split(":")[0] for line in told] == [f" line {line}" for line in (5, 8, 11, 14, 17, 26)]
    assert "`requested_at` is '29/12/2025', no ISO 8601 time" in told[2]
    assert "There is no provider 'hal'" in told[1]
    left = [json.loads(line) for line in (tmp_path / "v2.left.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [each["cells"] for each in left] == [*bad, ["a", "b"]]
    for name in ("v2.csv", "v2.left.jsonl"):
        (tmp_path / name).rename(tmp_path / f"was-{name}")
    (tmp_path / "v2.errors.jsonl").unlink()
    with pytest.raises(BadRowsError, match="has no row that can be migrated \\(2\\)"):
        migrate_file(write_v1(tmp_path / "bad.csv", *bad[:2]), tmp_path / "v2.csv")
    assert not (tmp_path / "v2.csv").exists()


def test_what_is_not_schema_v1_is_refused(tmp_path: Path) -> None:
    v1 = write_v1(tmp_path / "v1.csv", v1_row(), columns=V1_COLUMNS[1:])
    with pytest.raises(InputError, match="no column `run_id`"):
        migrate_file(v1, tmp_path / "v2.csv")
    with pytest.raises(InputError, match="no rows"):
        migrate_file(write_v1(tmp_path / "empty.csv"), tmp_path / "v2.csv")
    assert not (tmp_path / "v2.csv").exists()
    migrated(tmp_path, v1_row())
    with pytest.raises(InputError, match="CSV v2 already"):
        migrate_file(tmp_path / "v2.csv", tmp_path / "v3.csv")


def test_columns_in_another_order_are_found_and_unknown_ones_are_told(tmp_path: Path) -> None:
    v1 = write_v1(tmp_path / "v1.csv", v1_row() | {"origin_note": "x"}, columns=(*reversed(V1_COLUMNS), "origin_note"))
    report = migrate_file(v1, tmp_path / "v2.csv")
    assert report.notes == [
        "line 1: the column 'origin_note' is not of schema v1; its values are kept in the list of what is left"
    ]
    assert (report.left, json.loads(report.left_path.read_bytes())["cells"]) == ([], {"origin_note": "x"})
    assert [answer.answer_id for answer in read_answers(tmp_path / "v2.csv")] == [RUN]


def test_the_command_reports_what_it_did_and_never_overwrites_a_file(tmp_path: Path) -> None:
    v1 = write_v1(tmp_path / "v1.csv", v1_row(), v1_row(error="boom"))
    words = ["pipeline", "check", str(v1), "--out", str(tmp_path / "v2.csv")]
    (tmp_path / "v2.errors.jsonl").write_text("mine", encoding="utf-8")
    refused = CliRunner().invoke(main, words)
    assert (refused.exit_code, "v2.errors.jsonl' exists already" in refused.stderr) == (1, True)
    (tmp_path / "v2.errors.jsonl").unlink()
    result = CliRunner().invoke(main, words)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "answers 1, errors 1" in result.stderr
    assert f"Next: citejury pipeline sources {tmp_path} " in result.stderr
    with pytest.raises(OutputError, match="exists already"):
        migrate_file(v1, tmp_path / "v2.csv")


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason=NO_SHARED)
@pytest.mark.parametrize("folder", ["openai", "anthropic", "gemini", "xai", "perplexity", "openrouter"])
def test_every_recorded_body_becomes_rows_that_pass_the_check(tmp_path: Path, folder: str) -> None:
    bodies = sorted(path for path in (RECORDINGS / folder).glob("*.json") if not path.name.endswith(".meta.json"))
    rows = [
        v1_row(provider=folder, run_id=path.stem, raw_json=path.read_text(encoding="utf-8"), response_text="")
        for path in bodies
    ]
    answers, _ = migrated(tmp_path, *rows)
    assert len(answers) == len(bodies) > 0
