"""The command `judge` around its model: costs, what it refuses, and whom it never speaks to."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from exports.cli import main
from tests.support.judge_bench import judged, lines_of, proper, record_of, run, written
from tests.support.provider_server import Behaviour, Received, Status
from tests.support.scripted_model import ScriptedModel, form_of, says

PRICES = '[prices."m-1"]\ninput = 10000\noutput = 0\n'


def as_told(received: Received) -> Behaviour:
    return says(proper(received))


def test_the_cost_ends_a_run_and_the_same_command_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [record_of(name, "Honey.") for name in "abcd"]
    monkeypatch.chdir(tmp_path)
    Path("citejury.toml").write_text(PRICES, encoding="utf-8")
    options = ["--task", "retrieval", "--concurrency", "1", "--max-cost"]
    said, lines, calls = judged(tmp_path, as_told, *records, options=[*options, "1.5"])
    assert (len(calls), len(lines), "`--max-cost` is reached: 2 units are left" in said) == (2, 2, True)
    _, lines, calls = judged(tmp_path, as_told, *records, options=[*options, "9"])
    assert (len(calls), len(lines)) == (2, 4)


def test_a_judge_never_speaks_to_argilla(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = written(tmp_path / "records.jsonl", record_of("a", "Honey eases cough."))
    with (
        ScriptedModel(lambda received: Status(500)) as argilla,
        ScriptedModel(as_told) as server,
    ):
        monkeypatch.setenv("ARGILLA_API_URL", argilla.url)
        monkeypatch.setenv("ARGILLA_API_KEY", "key-of-argilla")
        done = run(server, records, tmp_path / "judged.jsonl")
        assert (done.exit_code, done.stdout) == (0, "")  # sites are listed where a judgement failed
        assert argilla.calls == []
        assert all("key-of-argilla" not in json.dumps([call.headers, call.body]) for call in server.calls)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--provider", "claude"], "set `ANTHROPIC_API_KEY`"),
        (["--model", "some/model"], "set `OPENROUTER_API_KEY`"),
        (["--base-url", "http://127.0.0.1:1"], "needs the name of a model"),
        ([], "Name the model to ask with `--model`, as in `citejury annotation judge records.jsonl --out"),
        (["--model", "baseline"], "Name the model to ask with `--model`"),
        (["--provider", "nobody", "--model", "m"], "nobody"),
        (["--model", "m", "--base-url", "http://127.0.0.1:1", "--max-cost", "1"], "price of 'm' is not known"),
    ],
)
def test_what_cannot_be_asked_is_said_before_a_file_is_written(tmp_path: Path, options: list[str], words: str) -> None:
    records = written(tmp_path / "records.jsonl", record_of("a", "Honey eases cough."))
    result = CliRunner().invoke(main, ["annotation", "judge", str(records), "--out", str(tmp_path / "out"), *options])
    assert result.exit_code in (1, 2)
    assert words in result.output
    assert list(tmp_path.iterdir()) == [records]


def test_the_environment_may_name_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records, out = written(tmp_path / "records.jsonl", record_of("a", "Honey eases cough.")), tmp_path / "judged.jsonl"
    monkeypatch.setenv("CITEJURY_ANNOTATION_JUDGE_MODEL", "m-of-environment")
    with ScriptedModel(as_told) as server:
        words = ["annotation", "judge", str(records), "--out", str(out), "--base-url", server.url]
        assert CliRunner().invoke(main, words).exit_code == 0
    assert {line["model"] for line in lines_of(out)} == {"m-of-environment"}


def test_nothing_but_the_same_judges_work_is_written_over(tmp_path: Path) -> None:
    records = written(tmp_path / "records.jsonl", record_of("a", "Honey eases cough."))
    out = tmp_path / "judged.jsonl"
    by_baseline = {"record_uuid": "a", "task": "grounding", "status": "ok", "model": "baseline", "left_out": ["x"]}
    os.mkfifo(tmp_path / "pipe")
    with ScriptedModel(as_told) as server:
        for kept, said in (("other text", "something else"), (json.dumps(by_baseline), "'baseline', not 'm-1'")):
            out.write_text(f"{kept}\n", encoding="utf-8")
            result = run(server, records, out)
            assert (result.exit_code, out.read_text(encoding="utf-8")) == (1, f"{kept}\n")
            assert said in result.output
        result = run(server, records, tmp_path / "pipe")
        assert (result.exit_code, result.output.count("no file"), server.calls) == (1, 1, [])


@pytest.mark.parametrize("name", ["judged.jsonl", "judged.jsonl.raw.jsonl", "judged.jsonl.sample.jsonl"])
def test_the_records_are_never_written_over(tmp_path: Path, name: str) -> None:
    records = written(tmp_path / name, record_of("a", "Honey eases cough."))
    # A last line without its end looks like one that a kill has torn.
    records.write_bytes(records.read_bytes().rstrip())
    before = records.read_bytes()
    with ScriptedModel(as_told) as server:
        result = run(server, records, tmp_path / "judged.jsonl", "--sample", "1")
        assert (result.exit_code, records.read_bytes(), server.calls) == (1, before, [])
    assert "is the records" in result.output


def test_what_an_empty_reply_cost_counts_without_a_better_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("citejury.toml").write_text(PRICES, encoding="utf-8")

    def respond(received: Received) -> Behaviour:
        return says("") if form_of(received) == "json_schema" else Status(500)

    options = ["--task", "retrieval", "--concurrency", "1", "--max-cost", "1.5"]
    records = (record_of(name, "Honey.") for name in "abcd")
    said, _, calls = judged(tmp_path, respond, *records, options=options)
    assert (len(calls), "2 units are left" in said) == (4, True)


def test_a_model_that_quotes_without_end_or_answers_in_another_form_is_described_in_plain_words(tmp_path: Path) -> None:
    def respond(received: Received) -> Behaviour:
        answer = proper(received)
        return says({**answer, "evidence": answer["evidence"] * 23})

    def other_form(received: Received) -> Behaviour:
        return says({"labels": "secret words of a page"})

    record, options = record_of("a", "Honey eases cough."), ("--task", "retrieval")
    _, (line,), _ = judged(tmp_path, respond, record, options=options)
    assert (line["status"], line["errors"]) == ("ok", ["evidence: only the first 20 of 23 quotes were looked at"])
    for path in tmp_path.iterdir():
        path.unlink()
    _, (line,), _ = judged(tmp_path, other_form, record, options=options, code=1)
    assert line["errors"] == ["schema_validation_error: `labels`: Input should be a valid dictionary"]


def test_a_quote_over_the_seam_of_two_passages_of_a_page_is_none(tmp_path: Path) -> None:
    record = record_of("a", "Smoking causes cancer.", "Nobody believes that.")
    chunks = tuple(chunk.model_copy(update={"url": "https://a.example/"}) for chunk in record.chunks)
    snippets = ["cancer. Nobody believes", "Nobody believes that."]
    quotes = [{"url": "https://a.example/", "snippet": snippet} for snippet in snippets]
    _, (line,), _ = judged(
        tmp_path,
        lambda received: says({**proper(received), "evidence": quotes}),
        record.model_copy(update={"chunks": chunks}),
        options=("--task", "grounding"),
    )
    (error,) = line["errors"]
    assert error.startswith("evidence[0] snippet_not_verbatim; the quote is compared as 'cancer. nobody believes'")
    assert line["evidence"] == [{**quotes[1], "chunk_id": "a#2", "char_start": 0, "char_end": 21}]
