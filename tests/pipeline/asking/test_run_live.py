import csv
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from pipeline.asking.run_folder import read_errors, read_manifest
from pipeline.asking.run_state import LastStart
from pipeline.csv.file import read_answers
from pipeline.records.run import records_from_run
from tests.support.csv_check import check_file
from tests.support.places import ROOT
from tests.support.provider_server import Behaviour, Hang, ProviderServer, Status

KEYS = {"openai": "OPENAI_API_KEY", "claude": "ANTHROPIC_API_KEY", "gemini": "GEMINI_API_KEY"}


NARRATIVES, RUN = Path("narratives.csv"), Path("run")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_narratives(5)


def write_narratives(count: int) -> None:
    with open(NARRATIVES, "w", encoding="utf-8", newline="") as file:
        rows = ((f"N{number}", f'=cmd {{x}} "{number}"\nمرحبا 🙂') for number in range(count))
        csv.writer(file).writerows([("narrative_id", "prompt"), *rows])


def environment(server: ProviderServer, *providers: str, **more: str) -> dict[str, str]:
    urls = {provider: server.base_url(provider) for provider in KEYS}
    keys = {KEYS[provider]: f"planted-{provider}-0123456789" for provider in providers}
    return {"CITEJURY_BASE_URLS": json.dumps(urls), **keys, **more}


def ask(env: dict[str, str], *options: str, narratives: str = "narratives.csv") -> Result:
    return CliRunner().invoke(main, ["pipeline", "ask", narratives, "--out", "run", *options], env=env)


def test_those_with_a_key_are_asked_and_the_others_named() -> None:
    with ProviderServer() as server:
        done = ask(environment(server, "openai", "claude"))
    assert done.exit_code == 0, done.output
    assert "gemini is skipped: `GEMINI_API_KEY` is not set." in done.stderr
    assert "OPENAI_API_KEY" not in done.stderr
    assert Counter(call.provider for call in server.calls) == {"openai": 5, "claude": 5}
    for name in ("openai", "claude"):
        path = RUN / f"{name}.csv"
        assert [each.narrative_id for each in read_answers(path)] == [f"N{number}" for number in range(5)]
        assert check_file(path) == []


def test_a_named_provider_without_key_fails_call_by_call_and_stops_nobody() -> None:
    with ProviderServer() as server:
        done = ask(environment(server, "openai"), "--providers", "openai,grok", "--allow-missing", "5")
        again = ask(environment(server, "openai"), "--providers", "openai,grok", "--allow-missing", "4")
    assert (done.exit_code, again.exit_code) == (0, 1)
    assert "grok is skipped: `XAI_API_KEY` is not set." in done.stderr
    errors = read_errors(RUN)
    assert [(error.provider, error.kind, error.attempts) for error in errors] == [("grok", "missing_key", 0)] * 5
    assert len(server.calls) == 5


def test_without_any_key_nothing_is_made_and_the_file_is_looked_at_before_the_keys() -> None:
    keyless = ask({})
    missing = ask({}, narratives="nope.csv")
    assert (keyless.exit_code, missing.exit_code, (RUN).exists()) == (1, 1, False)
    assert "`OPENAI_API_KEY`" in keyless.stderr
    assert ("There is no file" in missing.stderr, "nope.csv" in missing.stderr) == (True, True)
    assert "_API_KEY" not in missing.stderr


@pytest.mark.parametrize(
    ("options", "code", "hint"),
    [
        (["--providers", "opnai"], 2, "Did you mean 'openai'?"),
        (["--model", "clude=x"], 2, "Did you mean 'claude'?"),
        (["--recency", "mnth"], 2, "Did you mean 'month'?"),
        (["--attempts", "4"], 2, "1<=x<=3"),
        (["--max-cost", "nan"], 2, "nan is no amount"),
        (["--max-cost", "1"], 1, "`--max-cost` cannot be held"),
    ],
)
def test_a_wrong_option_is_an_error_with_the_nearest_name(options: list[str], code: int, hint: str) -> None:
    with ProviderServer() as server:
        done = ask(environment(server, "openai"), *options)
    assert (done.exit_code, len(server.calls)) == (code, 0)
    assert hint in done.stderr


def test_a_dry_run_shows_calls_body_and_cost_and_sends_nothing() -> None:
    prices = json.dumps({"m": {"input": 0, "output": 1000, "search": 0}})
    with ProviderServer() as server:
        env = environment(server, "openai", CITEJURY_PRICES=prices)
        options = ("--dry-run", "--model", "openai=m", "--max-tokens", "100", "--repeats", "2")
        done = ask(env, *options)
        assert (done.exit_code, len(server.calls), (RUN).exists()) == (0, 0, False), done.output
        shown = json.loads(done.stdout)
        assert (shown["calls"], shown["providers"][0]["cost"]) == (10, pytest.approx(1.0))
        ask(env, "--model", "openai=m", "--max-rows", "1")
        assert shown["providers"][0]["body"] | {"max_output_tokens": 4096} == server.calls[0].body
        again = ask(env, *options)
    assert [(each["calls"], each["answered"]) for each in json.loads(again.stdout)["providers"]] == [(9, 1)]
    assert "planted" not in done.output


def test_more_repeats_narratives_and_providers_are_asked_for_what_is_new() -> None:
    with ProviderServer() as server:
        ask(environment(server, "openai"))
        ask(environment(server, "openai"), "--repeats", "2")
        assert len(server.calls) == 10
        ask(environment(server, "openai"))
        write_narratives(6)
        ask(environment(server, "openai", "claude"))
    assert Counter(call.provider for call in server.calls) == {"openai": 11, "claude": 6}
    ids = [each.narrative_id for each in read_answers(RUN / "openai.csv")]
    assert ids == ["N0", "N0", "N1", "N1", "N2", "N2", "N3", "N3", "N4", "N4", "N5"]
    told = [each.provenance for each in records_from_run(RUN) if each.provenance.model_name == "openai"]
    assert [each.repeat for each in told] == ["1", "2"] * 5 + ["1"]
    assert {each.contexts for each in told} == {"selected"}
    assert all(each.answer_timestamp for each in told)


def test_started_again_a_run_says_what_it_kept_and_asked_and_spent_now() -> None:
    prices = json.dumps({"model-1": {"input": 1000, "output": 2000, "search": 0}})
    with ProviderServer() as server:
        env = environment(server, "openai", "claude", CITEJURY_PRICES=prices)
        first = ask(env, "--max-rows", "2")
        again = ask(env, "--max-rows", "2")
        more = ask(env, "--max-rows", "3", "--providers", "claude")
    assert "Asking openai (" in first.stderr
    assert "0 kept, 4 new, 0 failed, spent now 0.08 USD (0.08 in all)\n" in first.stderr
    assert "openai: 2 answers, 2 citations, 20 tokens in, 10 out, cost 0.0400 USD\n" in first.stderr
    assert "Asking" not in again.stderr
    assert "4 kept, 0 new, 0 failed, spent now 0.00 USD (0.08 in all)\n" in again.stderr
    assert ("Asking claude (" in more.stderr, "Asking openai (" in more.stderr) == (True, False)
    assert "2 kept, 1 new, 0 failed, spent now 0.02 USD (0.10 in all)\n" in more.stderr
    assert read_manifest(RUN).last == LastStart(kept=2, new=1, cost=0.02)


def test_a_provider_that_is_down_stops_no_other_and_is_said_with_the_reason_and_the_exit_code() -> None:
    refused = Status(401, {}, {"error": {"message": "no such key: planted-openai-0123456789"}})
    with ProviderServer({"openai": [refused] * 5}) as server:
        done = ask(environment(server, "openai", "claude"), "--concurrency", "1")
        held = b"".join(path.read_bytes() for path in (RUN).iterdir())
        calm = ask(environment(server, "claude"))
    assert (done.exit_code, calm.exit_code) == (1, 0)
    assert "Not answered, with what was said first:\nopenai  auth  5  The provider answered with" in done.stderr
    assert "no such key" in done.stderr
    assert "the same command asks for the 5 missing again; without them: citejury pipeline sources" in done.stderr
    assert "0 kept, 5 new, 5 failed, spent now 0.00 USD (0.00 in all), cost of 5 not known\n" in done.stderr
    assert "Not answered" not in calm.stderr
    assert (b"planted" in held, "planted" in done.output) == (False, False)
    assert (read_manifest(RUN).errors, len(list(read_answers(RUN / "claude.csv")))) == ({"auth": 5}, 5)


def test_another_model_in_the_same_folder_is_refused_and_nothing_sent() -> None:
    with ProviderServer() as server:
        ask(environment(server, "openai"), "--model", "openai=a", "--max-rows", "1")
        done = ask(environment(server, "openai"), "--model", "openai=b")
    assert (done.exit_code, len(server.calls)) == (1, 1)
    assert "from the model 'a', and 'b' is asked for now" in done.stderr


def test_tokens_and_cost_are_counted_and_a_limit_stops_before_the_next_start() -> None:
    prices = json.dumps({"m": {"input": 1000, "output": 2000}})
    with ProviderServer() as server:
        env = environment(server, "openai", CITEJURY_PRICES=prices)
        options = ("--model", "openai=m", "--concurrency", "1", "--max-cost", "0.035")
        done = ask(env, *options)
        again = ask(env, *options)
    assert (done.exit_code, again.exit_code, len(server.calls)) == (1, 1, 2)
    manifest = read_manifest(RUN)
    assert (manifest.stopped, manifest.unsettled, manifest.finished) == ("max_cost", 3, None)
    counts = manifest.providers["openai"]
    assert (counts.input_tokens, counts.output_tokens, counts.cost) == (20, 10, pytest.approx(0.04))
    assert "3 calls are left. Next: the same command with a higher `--max-cost` goes on" in done.stderr


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.rare)]
)
def test_the_second_signal_gives_up_what_is_sent_and_the_command_goes_on(number: signal.Signals, code: int) -> None:
    with ProviderServer({"openai": [Hang()]}) as server:
        env = {**os.environ, **environment(server, "openai")}
        process = subprocess.Popen(command("1"), cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True)
        with server.lock:
            assert server.lock.wait_for(lambda: server.calls, timeout=120)
        told = listen(process, number)
        assert process.wait(timeout=120) == code, told
        assert "Stopping: 1 calls under way" in told
        assert "5 calls are left" in told
        assert subprocess.run(command("1"), cwd=ROOT, env=env, check=False, capture_output=True).returncode == 0
    assert (len(server.calls), len(list(read_answers(RUN / "openai.csv")))) == (6, 5)


def test_a_signal_ends_the_wait_for_a_next_try_and_sends_nothing_more() -> None:
    script: list[Behaviour] = [Status(429, {"retry-after": "500"}, {"error": {"message": "slow down"}}), Hang()]
    with ProviderServer({"openai": script}) as server:
        env = {**os.environ, **environment(server, "openai")}
        process = subprocess.Popen(command("2"), cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True)
        with server.lock:
            assert server.lock.wait_for(lambda: len(server.calls) == 2, timeout=120)
            assert server.lock.wait_for(lambda: server.under_way["openai"] == 1, timeout=120)
        told = listen(process, signal.SIGINT)
        assert process.wait(timeout=120) == 130, told
        assert len(server.calls) == 2
    manifest = read_manifest(RUN)  # the refusal may be heard before the signal or after it
    assert (manifest.stopped, manifest.unsettled + sum(manifest.errors.values())) == ("SIGINT", 5)


def test_a_disk_that_takes_no_more_is_one_line_and_the_same_command_goes_on() -> None:
    limited = command("1", before="import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (3000, 3000)); ")
    with ProviderServer() as server:
        env = {**os.environ, **environment(server, "openai")}
        full = subprocess.run(limited, cwd=ROOT, env=env, check=False, capture_output=True, text=True)
        assert full.returncode == 1
        assert f"'{RUN.resolve()}' cannot be written to: File too large." in full.stderr
        assert "Spent since this start: about 0.00 USD" in full.stderr
        assert 1 < len(server.calls) < 5
        assert ask(environment(server, "openai")).exit_code == 0
    assert (len(server.calls), check_file(RUN / "openai.csv")) == (6, [])


def command(*options: str, before: str = "") -> list[str]:
    program = f"{before}from exports.cli import main; main()"
    words = ["pipeline", "ask", str(NARRATIVES.resolve()), "--out", str(RUN.resolve()), "--concurrency", *options]
    return [sys.executable, "-c", program, *words]


def listen(process: subprocess.Popen[str], number: signal.Signals) -> str:
    """What the process says; the second signal goes out when it has heard the first."""
    assert process.stderr is not None
    process.send_signal(number)
    told = []
    with process.stderr as lines:
        for line in lines:
            told.append(line)
            if line.startswith("Stopping"):
                process.send_signal(number)
    return "".join(told)
