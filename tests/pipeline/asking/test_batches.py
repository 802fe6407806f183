import json
import os
import shutil
import signal
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from pipeline.asking.ask_live import ask_in_batches
from pipeline.asking.index import read_index
from pipeline.asking.narratives import NarrativesCsv
from pipeline.asking.paid_replies import BAD_RESPONSES, LEDGER, PAUSED, open_batches
from pipeline.asking.questions import Call, Limits, ProviderSelection
from pipeline.asking.run_folder import RunManifest, read_errors, read_manifest
from pipeline.core.errors import InputError, OutputError
from pipeline.core.files import locked_folder
from pipeline.core.schema import AskOptions, Price, ProviderName
from pipeline.csv.file import answers_file, read_answers
from pipeline.providers import get_provider
from pipeline.providers.http.request import ProviderRequest
from tests.support.batch_books import Asked, Refused, good_answer
from tests.support.batch_dialects import openai_batch
from tests.support.batch_runs import (
    IN_BATCHES,
    QUICK,
    body_by_narrative,
    environment,
    narrative_of,
    run_batches,
    selection,
    stop_at,
    table,
    write_narratives,
    write_payloads,
)
from tests.support.batch_servers import BatchServers
from tests.support.csv_check import check_file
from tests.support.told_runs import replay_narratives

NARRATIVES, RUN = Path("narratives.csv"), Path("run")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_narratives(Path(), 5)


def start(server: BatchServers, *providers: ProviderName, **more: Any) -> RunManifest:
    return run_batches(server, NARRATIVES, RUN, *providers, **more)


def ask(out: Path, env: dict[str, str], *options: str) -> Result:
    return CliRunner().invoke(main, ["pipeline", "ask", str(NARRATIVES), "--out", str(out), *options], env=env)


def steps(out: Path) -> Counter[str]:
    return Counter(json.loads(line)["step"] for line in (out / LEDGER).read_text(encoding="utf-8").splitlines())


def stopped_run(server: BatchServers, out: Path, provider: ProviderName) -> None:
    """A run that was stopped while its batch is under way."""
    looks, server.looks = server.looks, 10**6
    manifest = run_batches(server, NARRATIVES, out, provider, tell=stop_at("sent as batch"))
    assert (manifest.stopped, manifest.unsettled, manifest.answers) == ("SIGINT", 5, 0)
    server.looks = looks


def test_batches_give_the_table_that_single_calls_of_the_same_bodies_give() -> None:
    replayed = Path("replayed")
    stored = replay_narratives(NARRATIVES, replayed, write_payloads(Path("payloads"), 5))
    assert stored.last
    assert (stored.last.new, stored.last.cost, stored.last.unpriced) == (20, 0.0, 0)  # nobody is paid for them
    with BatchServers(looks=1) as server:
        server.answer = body_by_narrative
        start(server, *IN_BATCHES)
        requests = len(server.calls)
        again = start(server, *IN_BATCHES)
        assert len(server.calls) == requests  # a finished run asks nobody
    assert (again.answers, again.unsettled, again.finished is None) == (20, 0, False)
    for provider in IN_BATCHES:
        assert table(RUN / f"{provider}.csv") == table(replayed / f"{provider}.csv")
        assert check_file(RUN / f"{provider}.csv") == []
        key = environment(server, provider)[get_provider(provider).key_variables[0]].encode()
        assert all(key not in path.read_bytes() for path in RUN.iterdir())
    assert len({answer_id for (_, answer_id), count in server.accepted.items() if count == 2}) == 2
    assert set(server.accepted.values()) == {1, 2}
    assert not (RUN / PAUSED).exists()
    assert open_batches(RUN) == []


def test_bodies_of_turns_that_are_paused_in_batches_count_once_when_they_come() -> None:
    model = get_provider("claude").api().model
    limits = Limits(max_cost=100_000.0, prices={model: Price(input=50_000, output=100_000, search=0.0)})
    with BatchServers(looks=1) as server:
        server.answer = body_by_narrative
        first = start(server, "claude", limits=limits, tell=stop_at("paused, to be finished"))
        done = start(server, "claude", limits=limits)
    assert first.last
    assert done.last
    assert (first.answers, first.providers["claude"].paused_bodies, first.last.cost, first.cost) == (3, 2, 2.5, 2.5)
    assert (done.answers, done.providers["claude"].paused_bodies, done.last.cost, done.cost) == (5, 0, 1.0, 3.5)


def test_calls_are_split_by_the_limit_and_each_is_sent_once() -> None:
    with BatchServers(looks=2) as server:
        manifest = start(server, "openai", policy=QUICK._replace(requests=2))
    assert [len(batch.items) for batch in server.batches] == [2, 2, 1]
    assert (len({batch.name for batch in server.batches}), manifest.answers) == (3, 5)
    assert (set(server.accepted.values()), steps(RUN)) == ({1}, {"planned": 3, "created": 3, "collected": 3})


def test_what_failed_or_expired_is_counted_and_asked_again_by_the_next_start() -> None:
    outcomes = iter(["answered", "failed", "expired", "answered", "answered"])
    of_each: dict[str, str] = {}
    with BatchServers() as server:
        server.outcome = lambda provider, custom_id: of_each.setdefault(custom_id, next(outcomes, "answered"))
        first = start(server, "claude")
        assert (first.answers, first.errors, first.unsettled) == (3, {"bad_response": 1, "timeout": 1}, 0)
        assert [error.attempts for error in read_errors(RUN) if error.kind == "timeout"] == [0]
        server.outcome = lambda provider, custom_id: "answered"
        second = start(server, "claude")
    assert (second.answers, second.errors, [len(batch.items) for batch in server.batches]) == (5, {}, [5, 2])


def test_a_result_that_cannot_be_read_is_kept_and_put_again_only_when_told_to() -> None:
    with BatchServers() as server:
        server.answer = lambda provider, custom_id, body: {"type": "unheard of"}
        with pytest.raises(InputError, match="5 bad_response"):
            start(server, "claude")
        server.answer = good_answer
        with pytest.raises(InputError, match="that of 5 replies that cannot be read is not known"):
            start(server, "claude")
        assert len(server.batches) == 1
        done = start(server, "claude", limits=Limits(retry_bad=True))
    assert (done.answers, done.errors) == (5, {})
    assert len((RUN / BAD_RESPONSES).read_text(encoding="utf-8").splitlines()) == 5


@pytest.mark.parametrize("provider", IN_BATCHES)
def test_a_batch_whose_creation_was_not_answered_is_found_and_not_sent_twice(provider: ProviderName) -> None:
    told = list[str]()
    with BatchServers(looks=2) as server:
        server.void[provider] = 1
        manifest = start(server, provider, told=told)
    assert (manifest.answers, len(server.batches)) == (5, 1)
    assert any("found the batch" in line for line in told)


def test_a_batch_that_was_never_made_is_sent_again() -> None:
    with BatchServers() as server:
        server.refusals["gemini"] = [(500, "Internal")]
        manifest = start(server, "gemini")
    assert (manifest.answers, set(server.accepted.values())) == (5, {1})
    assert steps(RUN) == {"planned": 2, "dropped": 1, "created": 1, "collected": 1}


def test_a_refused_batch_is_an_error_of_each_of_its_calls() -> None:
    with BatchServers() as server:
        server.refusals["openai"] = [(400, "The model has no batches.")]
        with pytest.raises(InputError, match="5 bad_response"):
            start(server, "openai")
    assert ["The model has no batches." in error.message for error in read_errors(RUN)] == [True] * 5
    assert open_batches(RUN) == []


def test_a_batch_that_is_refused_after_it_was_made_is_tried_again_when_another_has_ended() -> None:
    with BatchServers(looks=1) as server:
        server.most["openai"] = 2
        manifest = start(server, "openai", policy=QUICK._replace(requests=3))
    assert (manifest.answers, manifest.errors) == (2, {"bad_response": 3})
    assert all("The provider refused the batch: " in error.message for error in read_errors(RUN))
    assert (len(server.batches), set(server.accepted.values())) == (3, {1})


def test_stopped_and_started_again_it_collects_what_it_sent() -> None:
    with BatchServers(looks=1) as server:
        stopped_run(server, RUN, "grok")
        single = ask(RUN, environment(server, "grok"))
        assert single.exit_code == 1
        assert "`--batch-cancel`" in single.stderr
        assert read_manifest(RUN).stopped == "SIGINT"  # refused before anything was touched
        manifest = start(server, "grok")
    assert (manifest.answers, manifest.stopped, set(server.accepted.values())) == (5, "", {1})
    planned = json.loads((RUN / LEDGER).read_text(encoding="utf-8").splitlines()[0])["timestamp"]
    assert {answer.answer_timestamp for answer in read_answers(RUN / "grok.csv")} == {planned}


def test_what_is_under_way_is_looked_at_once_no_other_process_can_send() -> None:
    with BatchServers() as server:
        stopped_run(server, RUN, "grok")
        with locked_folder(RUN):  # whoever holds it may be about to write a batch down
            held = ask(RUN, environment(server, "grok"))
        freed = ask(RUN, environment(server, "grok"))
    assert "Another `pipeline ask` is writing" in held.stderr
    assert "has batches under way (1 at grok)" in freed.stderr


def test_results_that_break_off_are_taken_up_again() -> None:
    with BatchServers() as server:
        server.cuts["claude"] = 2
        server.outcome = lambda provider, custom_id: "failed" if custom_id < "8" else "answered"
        manifest = start(server, "claude")
        failed = sum(each < "8" for _, each in server.accepted)
    assert (manifest.answers, sum(manifest.errors.values())) == (5 - failed, failed)
    assert len(list(read_answers(RUN / "claude.csv"))) == 5 - failed


def test_a_result_for_an_unknown_id_is_told_and_nothing_is_lost() -> None:
    told = list[str]()
    with BatchServers() as server:
        stopped_run(server, RUN, "openai")
        items = server.batches[0].items
        items["stranger"] = items.pop(next(iter(items)))
        manifest = start(server, "openai", told=told)
    assert (manifest.answers, manifest.errors) == (4, {"timeout": 1})
    line = next(line for line in told if "not asked for" in line)
    assert "1 result for calls that are not asked for (the first: stranger)" in line


@pytest.mark.parametrize(
    ("provider", "kept"),
    [
        *(("openai", None), ("openai", 0.3), ("claude", 0.0), ("claude", 0.9)),
        *(pytest.param("openai", kept, marks=pytest.mark.rare) for kept in (0.0, 0.01, 0.9)),
        *(pytest.param("claude", kept, marks=pytest.mark.rare) for kept in (None, 0.01, 0.3)),
    ],
)
def test_a_ledger_that_was_cut_off_or_lost_sends_nothing_twice(provider: ProviderName, kept: float | None) -> None:
    told = list[str]()
    with BatchServers(looks=2) as server:
        stopped_run(server, RUN, provider)
        stopped_run(server, Path("another"), provider)  # a new run waits for nobody's batch
        written = (RUN / LEDGER).read_bytes()
        if kept is None:
            (RUN / LEDGER).unlink()
        else:
            (RUN / LEDGER).write_bytes(written[: int(len(written) * kept)])
        for batch in server.batches:
            batch.looks = 0
        manifest = start(server, provider, told=told)
    assert (manifest.answers, set(server.accepted.values()), len(server.batches)) == (5, {1}, 2)
    held = "claude: 2 batches under way there may be this run's; nothing is sent before they have ended."
    assert told.count(held) == (provider == "claude")


def test_a_damaged_ledger_is_one_plain_line_and_nothing_is_sent() -> None:
    with BatchServers() as server:
        stopped_run(server, RUN, "openai")
        (RUN / LEDGER).write_bytes(b"{}\n" + (RUN / LEDGER).read_bytes())
        requests = len(server.calls)
        done = ask(RUN, environment(server, "openai"), "--batch")
        assert (done.exit_code, len(server.calls)) == (1, requests)
    assert all(part in done.stderr for part in (f"`{LEDGER}` in", "line 1", "Nothing was sent"))
    with pytest.raises(OutputError):
        open_batches(RUN)


def test_other_narratives_models_and_prompts_are_refused_while_a_batch_is_under_way() -> None:
    with BatchServers() as server:
        stopped_run(server, RUN, "openai")
        requests = len(server.calls)
        env = environment(server, "openai")
        fewer = ask(RUN, env, "--batch", "--max-rows", "3")
        model = ask(RUN, env, "--batch", "--model", "openai=another")
        (Path("system.txt")).write_text("Answer in rhymes.", encoding="utf-8")
        prompt = ask(RUN, env, "--batch", "--system-prompt", str(Path("system.txt")))
        assert len(server.calls) == requests
    assert (fewer.exit_code, model.exit_code, prompt.exit_code) == (1, 1, 1)
    assert "that was put with other prompts or options" in prompt.stderr
    assert "2 calls that are not asked for now" in fewer.stderr
    assert "'another' is asked for now" in model.stderr


class LaterVersion(ProviderSelection):
    """A selection as a later version of ours may send it: with bodies that say the same in another way."""

    def request(self, call: Call) -> ProviderRequest:
        request = super().request(call)
        return request._replace(body={**request.body, "store": False, "metadata": {"sent_by": "a later version"}})


@pytest.mark.parametrize("cancel", [False, True])
def test_a_batch_of_an_earlier_version_is_collected_and_ended_by_a_later_one(cancel: bool) -> None:
    with BatchServers() as server:
        stopped_run(server, RUN, "openai")
        later = LaterVersion(*selection(server, "openai"))
        questions = later.questions(NarrativesCsv(NARRATIVES))
        manifest = ask_in_batches(questions, RUN, later, policy=QUICK, cancel=cancel, redirect_client=None)
    assert (manifest.answers, open_batches(RUN)) == (5, [])


def test_a_paused_turn_of_an_earlier_version_is_finished_by_a_later_one() -> None:
    told = list[str]()
    write_narratives(Path(), 1)
    with BatchServers() as server:
        server.answer = body_by_narrative
        start(server, "claude", tell=stop_at("to be finished in another batch"))
        later = LaterVersion(*selection(server, "claude"))
        questions = later.questions(NarrativesCsv(NARRATIVES))
        ask_in_batches(questions, RUN, later, policy=QUICK, tell=told.append, redirect_client=None)
        [_, going_on] = server.batches
    assert [len(body["messages"]) for body in going_on.items.values()] == [2]
    [answer] = read_answers(RUN / "claude.csv")
    assert [body["stop_reason"] for body in json.loads(answer.answer_raw_json)] == ["pause_turn", "end_turn"]
    assert not any("anew" in line for line in told)


def test_gemini_asked_for_recent_pages_is_refused_other_options_and_collected_with_its_own() -> None:
    week = ("--providers", "gemini", "--recency", "week")
    with BatchServers(looks=10**6) as server:
        env = environment(server, "gemini")
        recent = selection(server, "gemini")._replace(options=AskOptions(recency="week"))
        questions = recent.questions(NarrativesCsv(NARRATIVES))
        ask_in_batches(questions, RUN, recent, policy=QUICK, tell=stop_at("sent as batch"), redirect_client=None)
        server.looks = 0
        shorter = ask(RUN, env, "--batch", *week, "--max-tokens", "100")
        older = ask(RUN, env, "--batch", "--providers", "gemini", "--recency", "month")
        same = ask(RUN, env, "--batch", *week)
    assert "that was put with other prompts or options" in shorter.stderr
    assert "that was put with other prompts or options" in older.stderr
    assert same.exit_code == 0, same.output
    assert read_manifest(RUN).answers == 5


def test_a_provider_that_cannot_be_looked_at_for_a_while_is_waited_for() -> None:
    told = list[str]()
    with BatchServers() as server:

        def overloaded(asked: Asked) -> None:
            if len(server.calls) <= 4:
                raise Refused(503, "Overloaded.")

        server.instead = overloaded
        manifest = start(server, "openai", told=told)
    assert (manifest.answers, manifest.errors) == (5, {})
    assert not any("Overloaded" in line for line in told)


@pytest.mark.parametrize("status", [429, 503])
def test_a_creation_that_is_refused_for_speed_costs_no_attempt_and_is_left_when_that_lasts(status: int) -> None:
    told = list[str]()
    policy = QUICK._replace(settle_seconds=0.01, attempts=1)
    with BatchServers() as server:
        server.refusals["claude"] = [(status, "Slow down.")] * 3
        manifest = start(server, "claude", policy=policy, told=told)
        assert (manifest.answers, manifest.errors) == (5, {})
        server.refusals["grok"] = [(status, "Slow down.")] * 1000
        with pytest.raises(InputError, match=f"5 {'rate_limit' if status == 429 else 'server'}"):
            run_batches(server, NARRATIVES, Path("another"), "grok", policy=policy._replace(patience=0.3))
    assert sum("Slow down" in line for line in told) >= 1


def test_batches_keep_answers_under_zstd() -> None:
    plain, packed = Path("plain"), Path("packed")
    with BatchServers() as server:
        server.answer = body_by_narrative
        run_batches(server, NARRATIVES, plain, "grok")
        done = ask(packed, environment(server, "grok"), "--batch", "--compress")
        assert done.exit_code == 0, done.output
        requests = len(server.calls)
        ask(packed, environment(server, "grok"), "--batch", "--compress")
        assert len(server.calls) == requests
    assert not (packed / "grok.csv").exists()
    answers = [[each.answer_text for each in read_answers(answers_file(RUN, "grok"))] for RUN in (plain, packed)]
    assert answers[0] == answers[1] != []


def test_arms_are_put_in_batches_each_with_its_model_and_prompt() -> None:
    rhymes, plain = Path("rhymes.toml"), Path("plain.toml")
    rhymes.write_text('[models]\nopenai = "another"\n[prompts]\nsystem = "Answer in rhymes."\n', encoding="utf-8")
    plain.write_text('[models]\nopenai = "one"\n', encoding="utf-8")
    arms = ["--arm", f"plain:{plain}", "--arm", f"rhymes:{rhymes}"]
    with BatchServers() as server:
        done = ask(RUN, environment(server, "openai"), "--batch", *arms)
        assert done.exit_code == 0, done.output
    asked = {(body["model"], "rhymes" in json.dumps(body)) for batch in server.batches for body in batch.items.values()}
    assert asked == {("one", False), ("another", True)}
    assert ([len(batch.items) for batch in server.batches], set(server.accepted.values())) == ([5, 5], {1})


def test_what_cannot_be_asked_in_batches_is_refused_before_anything_is_sent() -> None:
    with BatchServers() as server:
        env = environment(server, "openai", "perplexity")
        refused = ask(RUN, env, "--batch")
        router = ask(RUN, env | {"CITEJURY_OPENAI_API": "openrouter"}, "--batch", "--providers", "openai")
        keyless = ask(RUN, env, "--batch", "--providers", "openai,claude")
        assert server.calls == []
    assert not (RUN).exists()
    assert {refused.exit_code, router.exit_code, keyless.exit_code} == {1}
    assert all(part in refused.stderr for part in ("perplexity cannot be asked in a batch", "https://"))
    assert "its batches do not search the web" in router.stderr
    assert "`ANTHROPIC_API_KEY`" in keyless.stderr


def test_the_command_ends_batches_and_keeps_what_they_answered() -> None:
    with BatchServers(looks=10**6) as server:
        env = environment(server, "claude")
        stopped_run(server, RUN, "claude")
        ended = ask(RUN, env, "--batch-cancel", "--poll-seconds", "0.1")
        assert ended.exit_code == 0, ended.output
        assert "5 calls are left" in ended.stderr
        assert (open_batches(RUN), read_errors(RUN)) == ([], [])
        server.looks = 0
        done = ask(RUN, env, "--batch", "--poll-seconds", "0.1")
    assert done.exit_code == 0, done.output
    assert read_manifest(RUN).answers == 5
    assert "Next: citejury pipeline sources" in done.stderr


def test_one_who_waits_without_a_terminal_reads_what_is_under_way_and_each_change() -> None:
    completed = [0, 3, 3, 4]
    with BatchServers() as server:
        stopped_run(server, RUN, "openai")

        def halfway(asked: Asked) -> Any:
            if not completed or asked.path != "/batches/batch_0001":
                return None
            counts = {"total": 5, "completed": completed.pop(0), "failed": 1}
            return {**openai_batch(server, server.batches[0]), "status": "in_progress", "request_counts": counts}

        server.instead = halfway
        done = ask(RUN, environment(server, "openai"), "--batch", "--poll-seconds", "0.1")
    assert done.exit_code == 0, done.output
    planned = json.loads((RUN / LEDGER).read_text(encoding="utf-8").splitlines()[0])["timestamp"]
    assert [line for line in done.stderr.splitlines() if "batch_0001" in line] == [
        f"openai: batch batch_0001 is under way: 5 calls, sent {planned[:10]} {planned[11:16]} UTC.",
        *(f"openai: batch batch_0001, {number} of 5 calls answered, 1 failed." for number in (0, 3, 4)),
        "openai: batch batch_0001 has ended, 5 answers collected.",
    ]


def test_batches_are_ended_at_those_who_have_some_whoever_else_has_a_key() -> None:
    with BatchServers(looks=10**6) as server:
        env = environment(server, "openai", "claude", "perplexity")
        stopped_run(server, RUN, "claude")
        ended = ask(RUN, env, "--batch-cancel", "--poll-seconds", "0.1")
        again = ask(RUN, env, "--batch-cancel")
        nowhere = ask(Path("nowhere"), env, "--batch-cancel")
    assert (ended.exit_code, open_batches(RUN)) == (0, []), ended.output
    assert {asked.provider for asked in server.calls} == {"claude"}
    assert (again.exit_code, again.stderr) == (0, "No batch is under way; nothing is to be ended.\n")
    assert nowhere.exit_code == 1
    assert "holds no `manifest.json` of a run" in nowhere.stderr


def test_a_batch_beyond_the_limit_of_cost_is_not_sent_and_the_user_reads_what_it_would_cost() -> None:
    Path("long.toml").write_text("[options]\nmax_tokens = 20000\n", encoding="utf-8")
    with BatchServers() as server:
        env = environment(
            server, "claude", CITEJURY_PRICES='{"claude-sonnet-5-5": {"input": 0, "output": 10.0, "search": 0}}'
        )
        done = ask(RUN, env, "--batch", "--max-cost", ".05")
        long = ask(Path("b"), env, "--batch", "--arm", "a:long.toml", "--max-cost", ".4")
        previews = [ask(RUN, env, "--dry-run", "--show-bodies", *more) for more in ([], ["--batch"])]
        assert server.batches == []
    assert done.exit_code == 1, done.output
    told = "a batch of 5 calls to claude is expected to cost about 0.10 USD, beyond `--max-cost` 0.05; it was not sent."
    assert told in done.stderr.splitlines()
    assert "`--max-cost` lets no more be sent: 5 calls are left. Next: the same command with a higher" in done.stderr
    assert "reached" not in done.stderr
    assert "is expected to cost about 0.50 USD, beyond `--max-cost` 0.4; it was not sent." in long.stderr
    single, batch = (json.loads(each.stdout)["providers"][0]["cost"][1] for each in previews)
    assert batch == pytest.approx(single / 2)


def dear(server: BatchServers, calls: float, *providers: ProviderName) -> Limits:
    """A limit of what so many calls are expected to cost, which cost next to nothing when they are answered."""
    chosen = selection(server, *providers)
    models = [model for provider in providers for model in chosen.models_of(provider)]
    prices = dict.fromkeys([*models, "model-1"], Price(input=0.0, output=100.0, search=0.0))
    return Limits(max_cost=calls * chosen.options.max_tokens * 50.0 / 1_000_000, prices=prices)


def test_a_limit_of_cost_holds_by_what_batches_are_expected_to_cost() -> None:
    told = list[str]()
    with BatchServers(looks=1) as server:
        with pytest.raises(InputError, match="`--max-cost` cannot be held"):
            start(server, "openai", limits=Limits(max_cost=1.0))
        limits, policy = dear(server, 3.5, "openai"), QUICK._replace(requests=1)
        manifest = start(server, "openai", limits=limits, policy=policy, told=told)
    assert max(accumulate([("sent as batch" in line) - ("has ended" in line) for line in told])) == 3
    assert sum("waits until others have ended" in line for line in told) == 1
    assert (manifest.stopped, manifest.answers) == ("", 5)


def forget(asked: Asked) -> None:
    if asked.method == "GET" and asked.path.startswith("/batches/"):
        raise Refused(404, "No such batch.")


@pytest.mark.parametrize(
    ("calls", "providers", "changes", "stopped", "answers", "batches"),
    [
        # A batch of another provider that fills the limit is waited for, one that the provider has no more is not.
        (7.5, ("openai", "gemini"), {"looks": 3}, "", 10, 10),
        (1.5, ("openai",), {"instead": forget}, "max_cost", 0, 1),
        # Where no answer says what it cost, batches count as they were expected.
        (2.5, ("openai",), {"answer": lambda *asked: {**good_answer(*asked), "usage": None}}, "max_cost", 2, 2),
    ],
)
def test_a_limit_of_cost_counts_what_is_under_way_and_what_no_answer_tells(
    calls: float, providers: tuple[ProviderName, ...], changes: dict[str, Any], stopped: str, answers: int, batches: int
) -> None:
    with BatchServers() as server:
        for name, value in changes.items():
            setattr(server, name, value)
        limits, policy = dear(server, calls, *providers), QUICK._replace(requests=1)
        manifest = start(server, *providers, limits=limits, policy=policy)
    assert (manifest.stopped, manifest.answers, len(server.batches)) == (stopped, answers, batches)


def test_providers_that_send_at_the_same_time_keep_one_limit_of_cost() -> None:
    with BatchServers(looks=3) as server:
        limits = dear(server, 7.5, "openai", "gemini")
        start(server, "openai", "gemini", limits=limits, tell=stop_at("sent as batch"))
    assert len(server.batches) == 1


def test_a_batch_that_is_found_again_counts_against_the_limit_of_cost() -> None:
    with BatchServers(looks=10**6) as server:
        server.void["openai"] = 1
        limits, policy = dear(server, 1.5, "openai", "gemini"), QUICK._replace(requests=1, settle_seconds=60.0)
        start(server, "openai", limits=limits, policy=policy, tell=stop_at("found the batch"))
    assert len(server.batches) == 1


def test_a_batch_of_an_earlier_start_counts_against_the_limit_of_cost() -> None:
    with BatchServers(looks=10**6) as server:
        limits, policy = dear(server, 1.5, "openai"), QUICK._replace(requests=1)
        start(server, "openai", policy=policy, limits=limits, tell=stop_at("sent as batch"))
        [batch] = server.batches

        def progress(*_: Any) -> None:
            if batch.looks > 3:
                os.kill(os.getpid(), signal.SIGINT)

        start(server, "openai", policy=policy, limits=limits, progress=progress)
    assert len(server.batches) == 1


def test_a_limit_of_cost_counts_earlier_answers_at_the_price_of_batches() -> None:
    limits = Limits(
        max_cost=45.0, prices=dict.fromkeys(("claude-sonnet-5-5", "model-1"), Price(input=1e6, output=0.0, search=0.0))
    )
    with BatchServers() as server:
        run_batches(server, write_narratives(Path(), 4), RUN, "claude")  # 10 tokens each, so 20 in all and not 40
        manifest = run_batches(server, write_narratives(Path(), 5), RUN, "claude", limits=limits)  # about 20 more
    assert (manifest.stopped, manifest.answers) == ("", 5)


# A reply of ten tokens in and five out is a dollar at these prices, half a dollar in a batch.
PRICES = dict.fromkeys((get_provider("claude").api().model, "model-1"), Price(input=50_000, output=100_000, search=0.0))
LIMITS = Limits(max_cost=100_000.0, prices=PRICES)


def strange_twice(provider: str, custom_id: str, body: Any) -> Any:
    """Answers that cannot be read to two of the narratives."""
    if narrative_of(body) not in ("N3", "N4"):
        return good_answer(provider, custom_id, body)
    return {"type": "message", "content": None, "usage": {"input_tokens": 10, "output_tokens": 5}}


def test_replies_of_batches_that_cannot_be_read_are_counted_at_the_price_of_batches_at_every_start() -> None:
    with BatchServers() as server:
        server.answer = strange_twice
        starts = [start(server, "claude", limits=LIMITS) for _ in range(2)]
    assert [(each.answers, each.providers["claude"].bad_replies) for each in starts] == [(3, 2)] * 2
    assert [each.cost for each in starts] == [2.5, 2.5]
    assert [each.last and each.last.cost for each in starts] == [2.5, 0.0]


def test_replies_that_cannot_be_read_are_counted_once_where_a_stop_has_them_collected_again() -> None:
    sent = list[bool]()

    def stop_at_the_first(*_: Any) -> None:
        if (RUN / BAD_RESPONSES).exists() and not sent:
            sent.append(True)
            os.kill(os.getpid(), signal.SIGINT)

    with BatchServers() as server:
        server.answer = strange_twice
        first = start(server, "claude", limits=LIMITS, progress=stop_at_the_first)
        done = start(server, "claude", limits=LIMITS)
    assert first.stopped == "SIGINT"
    assert first.providers["claude"].bad_replies > 0
    assert (done.stopped, done.answers, done.providers["claude"].bad_replies, done.cost) == ("", 3, 2, 2.5)


def test_a_paused_turn_of_a_batch_that_the_ledger_has_lost_is_gone_on_with_once() -> None:
    with BatchServers(looks=10**6) as server:
        server.answer = body_by_narrative
        start(server, "claude", tell=stop_at("sent as batch"))
        server.looks = 1
        (RUN / LEDGER).write_bytes(b"")
        manifest = start(server, "claude")
    assert (manifest.answers, manifest.errors, [len(batch.items) for batch in server.batches]) == (5, {}, [5, 2])


@pytest.mark.parametrize("status", [400, 500])
def test_a_batch_whose_results_cannot_be_had_keeps_no_other_from_being_collected(status: int) -> None:
    told = list[str]()

    def damaged(asked: Asked) -> None:
        if asked.path.startswith("/files/file-out-1"):
            raise Refused(status, "The file is damaged.")

    def stop_when_collected(line: str) -> None:
        told.append(line)
        if status == 500:  # what may pass is waited for
            stop_at("batch_0003 has ended")(line)

    policy = QUICK._replace(requests=2)
    with BatchServers() as server:
        server.instead = damaged
        first = start(server, "openai", policy=policy, tell=stop_when_collected)
        told_first = [line for line in told if "The file is damaged." in line]
        server.instead = lambda asked: None
        done = start(server, "openai", policy=policy)
    assert (first.answers, first.unsettled, first.stopped) == (3, 2, "batch" if status == 400 else "SIGINT")
    assert (len(told_first), done.answers, len(server.batches), set(server.accepted.values())) == (1, 5, 3, {1})


def test_ending_batches_comes_to_an_end_where_the_results_of_one_cannot_be_had() -> None:
    told = list[str]()

    def damaged(asked: Asked) -> None:
        if asked.path.startswith("/files/"):
            raise Refused(400, "The file is damaged.")

    with BatchServers() as server:
        start(server, "openai", tell=stop_at("sent as batch"))
        server.instead = damaged
        manifest = start(server, "openai", cancel=True, told=told)
    assert (manifest.stopped, manifest.unsettled) == ("batch", 5)
    assert any("batch_0001 is left to a later start; its 5 calls may be paid." in line for line in told)


def test_a_provider_that_is_away_from_the_beginning_is_an_error_of_each_call() -> None:
    server, told = BatchServers(), list[str]()
    server.server.server_close()
    with pytest.raises(InputError, match=r"Nothing was answered \(5 network\)"):
        start(server, "openai", told=told)
    assert [line for line in told if "cannot be reached" in line] == [told[0]]
    assert "It is asked again." in told[0]
    with BatchServers() as servers:
        assert start(servers, "openai").answers == 5


def test_a_kill_after_the_answer_to_a_turn_that_was_begun_anew_loses_no_count_of_what_it_had_brought() -> None:
    killed = Path("killed")

    def as_a_kill_leaves_it(*_: Any) -> None:
        """The folder once all is answered, and before the run comes to its end."""
        if not killed.exists() and len(list(read_index(RUN / "claude.csv"))) == 5:
            shutil.copytree(RUN, killed)

    with BatchServers() as server:
        server.answer = body_by_narrative
        start(server, "claude", tell=stop_at("paused, to be finished"))
        server.answer = good_answer
        german = selection(server, "claude")._replace(options=AskOptions(country="DE"))
        questions = german.questions(NarrativesCsv(NARRATIVES))
        ask_in_batches(
            questions, RUN, german, policy=QUICK, limits=LIMITS, progress=as_a_kill_leaves_it, redirect_client=None
        )
        ask_in_batches(questions, killed, german, policy=QUICK, limits=LIMITS, redirect_client=None)
    for manifest in (read_manifest(RUN), read_manifest(killed)):
        assert (manifest.answers, manifest.providers["claude"].paused_bodies, manifest.cost) == (5, 2, 3.5)


def test_results_of_another_run_that_the_provider_has_deleted_keep_nobody_from_asking() -> None:
    with BatchServers() as server:
        run_batches(server, write_narratives(Path(), 4), RUN, "claude")
        write_narratives(Path(), 5)
        run_batches(server, NARRATIVES, Path("another"), "claude")

        def deleted(asked: Asked) -> None:
            if asked.path.endswith("/batch_0002/results"):
                raise Refused(404, "The results are no longer available.")

        server.instead = deleted
        manifest = start(server, "claude")
    assert (manifest.answers, manifest.errors) == (5, {})
    assert [len(batch.items) for batch in server.batches] == [4, 5, 1]


def test_a_batch_of_a_folder_with_digests_of_bodies_is_collected() -> None:
    with BatchServers(looks=10**6) as server:
        start(server, "openai", tell=stop_at("sent as batch"))
        lines = [json.loads(line) for line in (RUN / LEDGER).read_text(encoding="utf-8").splitlines()]
        lines[0]["digest"] = lines[0].pop("said")[::-1]
        (RUN / LEDGER).write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        server.looks = 0
        manifest = start(server, "openai")
    assert (manifest.answers, len(server.batches)) == (5, 1)


def test_a_batch_that_somebody_makes_after_the_start_began_is_not_waited_for() -> None:
    listings = list[str]()

    def by_another(asked: Asked) -> Any:
        """A list with a batch of somebody else's that never ends."""
        if (asked.method, asked.path) != ("GET", "/v1/messages/batches"):
            return None
        listings.append(asked.path)
        if len(listings) == 10:
            os.kill(os.getpid(), signal.SIGINT)
        made = datetime.now(UTC) + timedelta(hours=2)
        batch = {"id": "msgbatch_1", "processing_status": "in_progress", "created_at": made.isoformat()}
        return {"data": [{**batch, "request_counts": {"processing": 1}}], "has_more": False}

    with BatchServers() as server:
        run_batches(server, write_narratives(Path(), 4), RUN, "claude")
        server.instead = by_another
        manifest = run_batches(server, write_narratives(Path(), 5), RUN, "claude")
    assert (manifest.answers, manifest.stopped) == (5, "")
