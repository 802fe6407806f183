import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from pipeline.asking.run_folder import read_errors, read_manifest
from pipeline.asking.run_state import LastStart
from pipeline.csv.file import read_answers
from pipeline.providers.cost import read_model_list
from pipeline.records.run import records_from_run
from tests.support.csv_check import check_file
from tests.support.places import ROOT
from tests.support.provider_server import Behaviour, Hang, ProviderServer, Status, perplexity_body

KEYS = {"openai": "OPENAI_API_KEY", "claude": "ANTHROPIC_API_KEY", "gemini": "GEMINI_API_KEY"}


NARRATIVES, RUN = Path("narratives.csv"), Path("run")
SHIPPED = ROOT / "pipeline" / "providers" / "models.toml"


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
        options = ("--dry-run", "--show-bodies", "--model", "openai=m", "--max-tokens", "100", "--repeats", "2")
        done = ask(env, *options)
        assert (done.exit_code, len(server.calls), (RUN).exists()) == (0, 0, False), done.output
        shown = json.loads(done.stdout)
        assert (shown["calls"], shown["providers"][0]["cost"]) == (10, [pytest.approx(1.0), pytest.approx(1.0)])
        ask(env, "--model", "openai=m", "--max-rows", "1")
        assert shown["providers"][0]["requests"][""]["body"] | {"max_output_tokens": 4096} == server.calls[0].body
        again = ask(env, *options)
    assert [(each["calls"], each["answered"]) for each in json.loads(again.stdout)["providers"]] == [(9, 1)]
    assert "planted" not in done.output


def test_a_dry_run_needs_no_key_and_says_all_in_five_lines() -> None:
    done = ask({}, "--dry-run")
    assert (done.exit_code, RUN.exists(), "Nothing was sent." in done.stderr) == (0, False, True), done.output
    calls, tokens, cost, hours, example = done.stdout.splitlines()
    defaults = "openai 5 to gpt-6.2-sol, claude 5 to claude-sonnet-5-5, gemini 5 to gemini-4-hydrogen, grok 5 to"
    assert calls == f"calls: 25 ({defaults} grok-4.7, perplexity 5 to perplexity/sonar), 0 answered"
    assert re.fullmatch(r"tokens: [\d,]+–[\d,]+ in, [\d,]+–102,400 out", tokens)
    amount = r"0\.\d\d–[01]\.\d\d USD"
    searches = "searches by gpt-6.2-sol"
    assert re.fullmatch(
        rf"cost: openai {amount} without {searches} \(price not known\), claude {amount}, gemini not known \(no price "
        rf"of gemini-4-hydrogen\), grok {amount}, perplexity not known \(no price of perplexity/sonar; each answer "
        rf"states its cost\), together {amount} without {searches}, gemini-4-hydrogen, perplexity/sonar",
        cost,
    )
    known = "perplexity 6 seconds (perplexity/sonar: 50 requests a minute, undated)"
    unlimited = "gpt-6.2-sol, claude-sonnet-5-5, gemini-4-hydrogen, grok-4.7"
    whose = "openai, claude, gemini, grok"
    assert hours == f"hours: {known}, not known for {whose} (no limit of {unlimited} is documented)"
    assert example.startswith("example: '=cmd {x}")
    assert example.endswith("' … to https://api.openai.com/v1/responses; `--show-bodies`: one a provider and arm")
    batch = ask({}, "--dry-run", "--batch", "--providers", "claude,grok")
    assert batch.exit_code == 0
    assert ask({}, "--dry-run", "--replay", "x").exit_code == ask({}, "--show-bodies").exit_code == 2


def arm(name: str, model: str) -> tuple[str, str]:
    Path(f"{name}.toml").write_text(f'model = "{model}"\n', encoding="utf-8")
    return "--arm", f"{name}:{name}.toml"


def dry_run(*options: str, prices: str = "{}") -> list[str]:
    done = ask({"CITEJURY_PRICES": prices}, "--providers", "claude", "--dry-run", *options)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def test_a_dry_run_of_arms_counts_limits_and_prices_each_by_its_own_model() -> None:
    old, new, other = arm("old", "claude-sonnet-5"), arm("new", "claude-sonnet-5-5"), arm("other", "claude-fable-5-2")
    with ProviderServer() as server:
        ask(environment(server, "claude"), *new)
    calls, _, _, hours, _ = dry_run(*new, *old)
    assert calls == "calls: 5 (claude 5 to claude-sonnet-5), 5 answered"
    assert re.fullmatch(r"hours: claude \d seconds? \(claude-sonnet-5: 1,000 requests a minute, 2026-08-22\)", hours)
    calls, _, cost, hours, _ = dry_run("--repeats", "2", *new, *other)
    assert calls == "calls: 15 (claude 5 to claude-sonnet-5-5 and 10 to claude-fable-5-2), 5 answered"
    assert re.fullmatch(r"cost: claude 0\.\d\d–0\.\d\d USD without claude-fable-5-2 \(price not known\)", cost)
    assert hours == "hours: not known for claude (no limit of claude-sonnet-5-5, claude-fable-5-2 is documented)"


def test_answers_that_a_folder_has_change_no_price_of_further_calls() -> None:
    fresh, batch = dry_run()[2], dry_run("--batch")[2]
    with ProviderServer() as server:
        for env in ({}, {"CITEJURY_PRICES": '{"claude-sonnet-5-5": {"input": 900000, "output": 900000}}'}):
            ask(environment(server, "claude", **env), "--max-rows", "1")
    assert (dry_run("--repeats", "2", "--max-rows", "1")[0])[:28] == "calls: 1 (claude 1 to claude"
    write_narratives(6)
    assert (dry_run()[2], dry_run("--batch")[2]) == (fresh, batch)
    assert fresh != batch


def test_a_dry_run_counts_the_system_prompt_of_each_call() -> None:
    Path("system.txt").write_text("x" * 200_000, encoding="utf-8")
    tokens = dry_run("--system-prompt", "system.txt")[1]
    low, high = (int(each.replace(",", "")) for each in re.findall(r"[\d,]+", tokens)[:2])
    assert (low > 5 * 50_000, high > 5 * 200_000) == (True, True)


def test_a_price_without_that_of_a_search_is_not_known_where_a_model_searches() -> None:
    prices = '{"claude-sonnet-5-5": {"input": 2, "output": 10}}'
    assert "USD without searches by claude-sonnet-5-5 (price not known)" in dry_run(prices=prices)[2]
    with ProviderServer() as server:
        env = environment(server, "claude", CITEJURY_PRICES=prices)
        refused, asked = ask(env, "--max-cost", "0.5"), ask(env)
    assert (refused.exit_code, asked.exit_code, len(server.calls)) == (1, 0, 5)
    cheap = dry_run("--repeats", "2", "--max-rows", "1", prices=prices.replace("2,", "1e-9,").replace("10", "1"))[2]
    assert re.match(r"cost: claude 0\.000\d–0\.00\d USD", cheap)
    assert "the price of a search by 'claude-sonnet-5-5' (claude) is not known" in refused.stderr


def test_a_limit_of_cost_holds_for_perplexity_by_what_its_answers_state() -> None:
    assert "perplexity/sonar" not in read_model_list().prices()
    body = perplexity_body(1)
    stated = Status(200, {}, {**body, "usage": {**body["usage"], "cost": {"total_cost": 0.01, "currency": "USD"}}})
    with ProviderServer({"perplexity": [stated] * 5}) as server:
        urls = json.dumps({"perplexity": server.base_url("perplexity")})
        done = ask({"CITEJURY_BASE_URLS": urls, "PERPLEXITY_API_KEY": "planted-0123456789"}, "--max-cost", "0.035")
    assert "4 new, 0 failed, spent now 0.04 USD" in done.stderr
    assert "not known" not in done.stderr
    shown = ask({}, "--providers", "perplexity", "--dry-run").stdout
    assert "cost: perplexity not known (no price of perplexity/sonar; each answer states its cost)" in shown


def test_old_prices_are_said_where_they_are_reckoned_with() -> None:
    old = datetime.now(UTC).date() - timedelta(days=150)
    listed = SHIPPED.read_text(encoding="utf-8").replace("date = 2026-09-28", f"date = {old}")
    Path("mine.toml").write_text(listed, encoding="utf-8")
    with ProviderServer() as server:
        env = environment(server, "claude", CITEJURY_MODEL_LIST="mine.toml")
        shown, limited, plain = ask(env, "--dry-run"), ask(env, "--max-cost", "5", "--max-rows", "1"), ask(env)
    words = "Prices that may have changed: claude-sonnet-5-5 (150 days old); see `citejury pipeline models`."
    assert [done.stderr.splitlines().count(words) for done in (shown, limited, plain)] == [1, 1, 0]
    assert len(shown.stdout.splitlines()) == 5
    table = CliRunner().invoke(main, ["pipeline", "models"], env=env).stdout
    assert re.search(rf"claude-sonnet-5-5 +default .* {old} old", table)


def test_what_is_left_to_ask_is_told_apart_from_what_cannot_be_read() -> None:
    junk = Status(200, {}, "junk")
    with ProviderServer({"claude": [junk, junk, Status(400, {}, {"error": {"message": "no"}})]}) as server:
        first = ask(environment(server, "claude"), "--concurrency", "1")
        assert dry_run()[0] == "calls: 1 (claude 1 to claude-sonnet-5-5), 2 answered, 2 unreadable"
        again = ask(environment(server, "claude"))
    words = "Next: the same command asks for {} missing again, with `--retry bad_response` for all; without them: cit"
    assert words.format("1 of the 3") in first.stderr
    assert words.format("none of the 2") in again.stderr
    assert dry_run() == [
        "Nothing is left to ask: 3 answered, 2 unreadable (`--retry bad_response` asks for them again)"
    ]
    assert dry_run("--retry", "bad_response")[0].startswith("calls: 2 (claude 2 to claude-sonnet-5-5), 3 answered")


def test_a_limit_of_cost_holds_for_defaults_with_a_known_price_and_names_the_others() -> None:
    with ProviderServer() as server:
        done = ask(environment(server, "claude"), "--max-cost", "5")
        refused = ask(environment(server, "openai", "claude", "gemini"), "--max-cost", "5")
        own = json.dumps({"gpt-6.2-sol": {"input": 2, "output": 10, "search": 10}})
        paid = ask(environment(server, "openai", CITEJURY_PRICES=own), "--max-cost", "5")
    assert (done.exit_code, refused.exit_code, paid.exit_code) == (0, 1, 0)
    assert Counter(call.provider for call in server.calls) == {"claude": 5, "openai": 5}
    names = (
        "the price of a search by 'gpt-6.2-sol' (openai) and the price of 'gemini-4-hydrogen' (gemini) are not known"
    )
    assert names in refused.stderr
    assert (
        "Of gemini-4-hydrogen others than its provider say (USD a million tokens, a thousand searches): input"
        in refused.stderr
    )


def test_a_run_goes_on_with_the_model_that_it_began_with_and_a_new_one_has_todays() -> None:
    with ProviderServer() as server:
        ask(environment(server, "openai"), "--model", "openai=gpt-5.6", "--max-rows", "1")
        again = ask(environment(server, "openai", "claude"))
        assert again.exit_code == 0, again.stderr
        Path("a.toml").write_text("", encoding="utf-8")
        arms = ["pipeline", "ask", "narratives.csv", "--out", "armed", "--max-rows", "1", "--arm"]
        env = environment(server, "openai")
        CliRunner().invoke(main, [*arms, "old:a.toml", "--model", "openai=gpt-5.6"], env=env)
        assert CliRunner().invoke(main, [*arms, "old:a.toml", "--arm", "new:a.toml"], env=env).exit_code == 0
    assert {call.body["model"] for call in server.calls_of("openai")} == {"gpt-5.6"}
    assert {call.body["model"] for call in server.calls_of("claude")} == {"claude-sonnet-5-5"}
    assert "openai: this run goes on with gpt-5.6; a new one would ask gpt-6.2-sol." in again.stderr
    manifest = read_manifest(RUN)
    assert {name: each.model_asked for name, each in manifest.providers.items()} == {
        "openai": "gpt-5.6",
        "claude": "claude-sonnet-5-5",
    }


def test_what_is_doubtful_is_listed_and_nothing_is_paid_before_somebody_agrees() -> None:
    rows = "narrative_id,language,prompt\nN1,de,a\nN1,de,b\nN1,de,a\nN/2,German,c\n,,\n"
    NARRATIVES.write_text(rows, encoding="utf-8")
    with ProviderServer() as server:
        env = environment(server, "openai")
        refused, shown = ask(env), ask(env, "--dry-run")
        assert (refused.exit_code, shown.exit_code, RUN.exists(), len(server.calls)) == (1, 0, False, 0)
        assert ask(env, "--yes").exit_code == 0
        again = ask(env)
        assert (again.exit_code, "doubtful" in again.stderr, "the id" in again.stderr) == (0, False, False)
        NARRATIVES.write_text(f"{rows}N3,,d\n", encoding="utf-8")
        assert (ask(env).exit_code, len(server.calls)) == (0, 5)
        NARRATIVES.write_text(f"{rows}N3,,d\nN1,de,e\n", encoding="utf-8")
        more = ask(env)
        assert (more.exit_code, len(server.calls)) == (1, 5)
    told = [line for line in more.stderr.splitlines() if "narratives.csv, line" in line]
    assert told == [
        "narratives.csv, line 6: empty, and left out",
        "narratives.csv, line 8: the id 'N1' is in line 2 with another text; both would be asked under this id",
    ]
    for done in (refused, shown):
        assert done.stderr.splitlines()[:5] == [
            "narratives.csv, line 6: empty, and left out",
            "narratives.csv, line 3: the id 'N1' is in line 2 with another text; both would be asked under this id",
            "narratives.csv, line 4: the id 'N1' is in line 2 with the same text; both would be paid for",
            "narratives.csv, line 5: the language 'German' is no code of two letters such as `de` or `pt-BR`",
            "narratives.csv, line 5: the id 'N/2' cannot be the name of a file, which `--replay` needs",
        ]
    assert "nothing was sent. Mend them, or give `--yes`" in refused.stderr


def test_a_replay_is_no_consent_to_paying_and_takes_none_back() -> None:
    NARRATIVES.write_text("narrative_id,prompt\nN1,a\nN1,b\n", encoding="utf-8")
    Path("payloads/grok").mkdir(parents=True)
    for name in ("N1", "N1.2"):
        body = json.dumps({"model": "grok", "choices": [{"message": {"content": "Nein."}}]})
        Path(f"payloads/grok/{name}.json").write_text(body, encoding="utf-8")
    with ProviderServer() as server:
        env = environment(server, "openai", "claude")
        replayed = ask(env, "--replay", "payloads")
        assert (replayed.exit_code, "another text" in replayed.stderr) == (0, True)
        assert (ask(env, "--providers", "claude").exit_code, len(server.calls)) == (1, 0)
        assert (ask(env, "--providers", "claude", "--yes").exit_code, len(server.calls)) == (0, 2)
        assert ask(env, "--replay", "payloads").exit_code == 0
        assert (ask(env, "--providers", "openai").exit_code, len(server.calls)) == (0, 4)


def test_doubts_that_an_older_version_paid_for_are_not_asked_about_again() -> None:
    NARRATIVES.write_text("narrative_id,prompt\nN1,a\nN1,b\n", encoding="utf-8")
    with ProviderServer() as server:
        env = environment(server, "openai")
        ask(env, "--yes")
        manifest = json.loads((RUN / "manifest.json").read_bytes())
        del manifest["narratives"]["agreed"], manifest["narratives"]["encoding"]
        (RUN / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        assert ask(env, "--repeats", "2").exit_code == 0
    assert len(read_manifest(RUN).narratives.agreed or ()) == 1


def at_a_terminal(env: dict[str, str], typed: str, *options: str) -> tuple[int, str]:
    """The command with a terminal as its input, on which somebody types; its exit code and what it printed."""
    import pty  # there is none on Windows

    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from exports.cli import main; main()", "pipeline", "ask", "narratives.csv"]
    settings = {**os.environ, **env, "PYTHONPATH": str(ROOT)}
    os.write(ours, typed.encode())
    try:
        done = subprocess.run(
            [*command, "--out", "run", *options],
            stdin=theirs,
            capture_output=True,
            text=True,
            env=settings,
            timeout=120,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    return done.returncode, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_at_a_terminal_another_encoding_and_doubts_are_asked_about() -> None:
    rows = "".join(f"N{number};Übung {number}\r\n" for number in range(4))
    NARRATIVES.write_bytes(f"narrative_id;prompt\r\n{rows}N1;nochmals\r\n".encode("cp1252"))
    with ProviderServer() as server:
        env = environment(server, "openai")
        refused = ask(env)
        assert (refused.exit_code, "Or say what it is in: `--encoding windows-1252`." in refused.stderr) == (1, True)
        code, said = at_a_terminal(env, "n\n")
        assert (code, "name its encoding with `--encoding NAME`" in said) == (1, True)
        code, said = at_a_terminal(env, "y\nn\n")
        assert (code, len(server.calls)) == (1, 0)
        assert "As Windows-1252, its rows are:\n  N0 | Übung 0\n  N1 | Übung 1\n  N2 | Übung 2\n" in said
        assert "Is that right?" in said
        assert "Ask these rows as they are?" in said
        code, said = at_a_terminal(env, "y\ny\n")
        assert (code, len(server.calls)) == (0, 5), said
        again = ask(env)
        assert (again.exit_code, "narratives.csv is read as cp1252, as when" in again.stderr) == (0, True)
        with NARRATIVES.open("ab") as file:
            file.write("N9;Größe\r\n".encode("cp1252"))
        assert (ask(env).exit_code, ask(env, "--encoding", "cp1252").exit_code, len(server.calls)) == (0, 0, 6)
    assert [each.narrative_prompt for each in read_answers(RUN / "openai.csv")][:2] == ["Übung 0", "Übung 1"]


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
    assert read_manifest(RUN).last == LastStart(kept=2, new=1, cost=0.02, missing={}, unreadable=0)


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
    assert "0 kept, 5 new, 5 failed, spent now 0.00 USD (0.00 in all)\n" in done.stderr
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
    prices = json.dumps({"m": {"input": 1000, "output": 2000, "search": 0}})
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
