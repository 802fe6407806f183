import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from pipeline.asking.paid_replies import BAD_RESPONSES
from pipeline.asking.run_folder import read_errors, read_manifest
from pipeline.asking.run_state import Spending
from pipeline.core.schema import PROVIDERS, ProviderName
from pipeline.csv.file import read_answers
from pipeline.providers import read_payload
from tests.support.csv_check import check_file
from tests.support.provider_server import (
    Behaviour,
    Good,
    HalfBody,
    ProviderServer,
    Status,
    Together,
    WrongContentType,
    claude_body,
    responses_body,
)

VARIABLES = {"openai": "OPENAI_API_KEY", "claude": "ANTHROPIC_API_KEY", "perplexity": "PERPLEXITY_API_KEY"}
PAUSED = Status(200, {}, claude_body(1, "pause_turn"))
DOWN = Status(400, {}, {"error": {"message": "no"}})
STRANGE = Status(200, {}, {"of": "no shape", "usage": {"input_tokens": 500_000, "output_tokens": 500_000}})
PRICED = {"CITEJURY_PRICES": json.dumps({"m": {"input": 3, "output": 15, "search": 10}})}


def write_rows(folder: Path, count: int) -> None:
    rows = "".join(f"N{number},Is it so? {number}\n" for number in range(count))
    (folder / "narratives.csv").write_text(f"narrative_id,prompt\n{rows}", encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_rows(tmp_path, 3)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(server: ProviderServer, provider: str, *options: str, **more: str) -> Result:
    urls = {name: server.base_url(name) for name in VARIABLES}
    env = {"CITEJURY_BASE_URLS": json.dumps(urls), VARIABLES[provider]: "planted-0123456789", **more}
    command = ["pipeline", "ask", "narratives.csv", "--out", "run", "--concurrency", "1", *options]
    return CliRunner().invoke(main, command, env=env)


def kept_bodies(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "run" / BAD_RESPONSES).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("bad", "body", "said"),
    [
        (Status(200, {}, '{"object": "response", "outp'), '{"object": "response", "outp', "is not JSON"),
        (Status(200, {}, ""), "", "is empty"),
        (Status(200, {}, 'data: {"type": 1}\n\n'), 'data: {"type": 1}\n\n', "is not JSON"),
        (WrongContentType(), "<html><body>Please log in</body></html>", "is not JSON"),
        (HalfBody(), None, "closed the connection before its answer was whole"),
    ],
    ids=["cut", "empty", "stream", "page", "broken off"],
)
def test_a_success_that_cannot_be_read_is_kept_with_its_body_and_bought_again_only_when_told_to(
    folder: Path, bad: Behaviour, body: str | None, said: str
) -> None:
    with ProviderServer([Good(), bad]) as server:
        first = ask(server, "openai")
        previews = [
            ask(server, "openai", "--dry-run", "--show-bodies", *more) for more in ([], ["--retry", "bad_response"])
        ]
        assert [json.loads(each.stdout)["calls"] for each in previews] == [0, 1]
        again = ask(server, "openai")
        assert (first.exit_code, again.exit_code, len(server.calls)) == (1, 1, 3)
        [error] = read_errors(folder / "run")
        assert (error.kind, error.status, error.narrative_id, error.attempts) == ("bad_response", 200, "N1", 1)
        assert said in error.message
        [kept] = kept_bodies(folder)
        half = json.dumps(responses_body(2), ensure_ascii=False)[:60]
        assert kept["body"] == body if body is not None else kept["body"].startswith(half)
        assert "0 kept, 2 new, 1 failed, spent now 0.00 USD (0.00 in all)" in first.stderr
        assert "2 kept, 0 new, 0 failed, 1 unread, spent now 0.00 USD (0.00 in all)" in again.stderr
        assert f"kept in {BAD_RESPONSES}" in again.stderr
        assert "Asking" not in again.stderr
        told = ask(server, "openai", "--retry", "bad_response")
    assert (told.exit_code, len(server.calls), read_errors(folder / "run")) == (0, 4, [])
    assert check_file(folder / "run" / "openai.csv") == []
    assert [each.narrative_id for each in read_answers(folder / "run" / "openai.csv")] == ["N0", "N1", "N2"]


def test_a_kept_reply_that_a_mended_reader_can_read_becomes_the_answer_unasked_and_counts_once(folder: Path) -> None:
    options = ("--model", "openai=m", "--max-cost", "50")
    with ProviderServer([STRANGE]) as server:
        ask(server, "openai", *options, **PRICED)
        [kept] = kept_bodies(folder)
        # What a mended reader would read stands in for the mended reader.
        line = json.dumps({**kept, "body": json.dumps(responses_body(7))})
        (folder / "run" / BAD_RESPONSES).write_text(f"{line}\n", encoding="utf-8")
        done = ask(server, "openai", *options, **PRICED)
        assert len(server.calls) == 3
    assert "2 kept, 1 new, 0 failed, spent now 0.00" in done.stderr  # an earlier start has paid for it
    first = next(iter(read_answers(folder / "run" / "openai.csv")))
    assert (first.narrative_id, first.answer_timestamp) == ("N0", kept["timestamp"])
    counts = read_manifest(folder / "run").providers["openai"]
    assert (counts.answers, counts.bad_replies, counts.cost) == (3, 0, pytest.approx(3 * 0.000105))


def test_a_torn_line_is_cut_off_and_its_call_put_again_and_a_line_of_somebody_else_is_refused(folder: Path) -> None:
    path = folder / "run" / BAD_RESPONSES
    with ProviderServer([Status(200, {}, "junk"), Status(200, {}, "more junk")]) as server:
        ask(server, "openai")
        path.write_bytes(path.read_bytes()[:-20])
        done = ask(server, "openai")
        assert (len(server.calls), [each["body"] for each in kept_bodies(folder)]) == (4, ["junk"])
        path.write_text('{"a": 1}\n', encoding="utf-8")
        refused = ask(server, "openai")
        assert (refused.exit_code, len(server.calls)) == (1, 4)
    assert "1 kept, 1 new, 0 failed, 1 unread" in done.stderr
    assert f"`{BAD_RESPONSES}` in 'run', line 1 is not a reply of a run. Nothing was sent." in refused.stderr


def test_a_paused_turn_whose_continuation_fails_goes_on_from_its_bodies_at_the_next_start(folder: Path) -> None:
    with ProviderServer([PAUSED, PAUSED, DOWN]) as server:
        assert (ask(server, "claude", "--max-rows", "1").exit_code, len(server.calls)) == (1, 3)
        done = ask(server, "claude", "--max-rows", "1")
        assert (done.exit_code, len(server.calls)) == (0, 4), done.output
        asked = [[turn["role"] for turn in call.body["messages"]] for call in server.calls]
    turns = ["user", "assistant", "assistant"]
    assert asked == [turns[:1], turns[:2], turns, turns]
    [answer] = read_answers(folder / "run" / "claude.csv")
    bodies = json.loads(answer.answer_raw_json)
    assert [body["stop_reason"] for body in bodies] == ["pause_turn", "pause_turn", "end_turn"]
    assert read_payload("claude", answer.answer_raw_json).text == answer.answer_text
    assert not {"paused.jsonl", BAD_RESPONSES} & {path.name for path in (folder / "run").iterdir()}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("--model", "claude=claude-a"), ("--model", "claude=claude-b")),
        (("--country", "DE"), ("--country", "FR")),
        ((), ("--system-prompt", "pirate.txt")),
    ],
    ids=["model", "option", "prompt"],
)
def test_a_paused_turn_that_another_request_began_is_begun_anew_and_a_line_says_so(
    folder: Path, before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    (folder / "pirate.txt").write_text("Be a pirate.", encoding="utf-8")
    with ProviderServer([PAUSED, DOWN, PAUSED, DOWN]) as server:
        ask(server, "claude", "--max-rows", "1", *before)
        anew = ask(server, "claude", "--max-rows", "1", *after)
        done = ask(server, "claude", "--max-rows", "1", *after)
        asked = [[turn["role"] for turn in call.body["messages"]] for call in server.calls]
    assert done.exit_code == 0, done.output
    assert asked == [["user"], ["user", "assistant"]] * 2 + [["user", "assistant"]]
    assert "claude: 1 paused turn begun anew" in anew.stderr
    assert "begun anew" not in done.stderr
    [answer] = read_answers(folder / "run" / "claude.csv")
    assert len(json.loads(answer.answer_raw_json)) == 2
    [unused] = (folder / "run" / "paused.jsonl").read_text("utf-8").splitlines()
    assert json.loads(unused)["unused"]


def spent(result: Result) -> str:
    return result.stderr.partition("spent now ")[2].partition("\n")[0]


def test_bodies_of_paused_turns_count_while_no_answer_holds_them_and_for_ever_where_none_will(folder: Path) -> None:
    """A body takes 10 tokens in and 5 out: at these prices a dollar."""
    prices = {
        "CITEJURY_PRICES": json.dumps({each: {"input": 50_000, "output": 100_000, "search": 0} for each in ("m", "n")})
    }
    old, new, first = ("--model", "claude=m"), ("--model", "claude=n"), ("--max-rows", "1")
    with ProviderServer([PAUSED, PAUSED, DOWN, DOWN, PAUSED, Good()]) as server:
        starts = [ask(server, "claude", *more, **prices) for more in (old + first, old + first, new + first, new)]
        asked = len(server.calls)
        again = ask(server, "claude", *new, "--max-cost", "3", **prices)
        assert len(server.calls) == asked
    counts = read_manifest(folder / "run").providers["claude"]
    assert ["Known cost: 2.00 USD" in each.stderr for each in starts[:2]] == [True, True]
    assert [spent(each) for each in starts[2:]] == ["2.00 USD (4.00 in all)", "2.00 USD (6.00 in all)"]
    assert spent(again) == "0.00 USD (6.00 in all)"
    assert (counts.answers, counts.paused_bodies, counts.input_tokens, counts.cost) == (3, 2, 60, 6.0)
    assert "2 of paused turns paid for" in again.stderr


def test_bodies_of_a_paused_turn_reach_the_limit_now_and_at_the_next_start(folder: Path) -> None:
    prices = {"CITEJURY_PRICES": json.dumps({"m": {"input": 50_000, "output": 100_000, "search": 0}})}
    options = ("--model", "claude=m", "--max-cost", "2")
    with ProviderServer([PAUSED, PAUSED, DOWN]) as server:
        first = ask(server, "claude", *options, **prices)
        again = ask(server, "claude", *options, **prices)
        assert len(server.calls) == 3
        done = ask(server, "claude", *options[:2], "--max-cost", "3", "--max-rows", "1", **prices)
        assert len(server.calls) == 4
    assert (read_manifest(folder / "run").stopped, first.exit_code, again.exit_code) == ("", 1, 1)
    assert "2 calls are left" in first.stderr
    assert "3 calls are left" in again.stderr
    assert spent(done) == "1.00 USD (3.00 in all)"


def test_a_paused_turn_of_an_older_folder_goes_on_whatever_began_it(folder: Path) -> None:
    with ProviderServer([PAUSED, DOWN]) as server:
        ask(server, "claude", "--max-rows", "1", "--country", "DE")
        path = folder / "run" / "paused.jsonl"
        line = {key: value for key, value in json.loads(path.read_text("utf-8")).items() if key != "digest"}
        path.write_text(json.dumps(line) + "\n", encoding="utf-8")
        done = ask(server, "claude", "--max-rows", "1", "--country", "FR")
        assert done.exit_code == 0, done.output
        assert len(server.calls[-1].body["messages"]) == 2


def test_a_torn_body_of_a_paused_turn_is_bought_again_and_a_damaged_line_is_refused(folder: Path) -> None:
    with ProviderServer([PAUSED, PAUSED, DOWN]) as server:
        ask(server, "claude", "--max-rows", "1")
        path = folder / "run" / "paused.jsonl"
        whole = path.read_bytes()
        path.write_bytes(b"{}\n" + whole)
        refused = ask(server, "claude", "--max-rows", "1")
        assert len(server.calls) == 3
        path.write_bytes(whole[:-20])
        assert (ask(server, "claude", "--max-rows", "1").exit_code, len(server.calls)) == (0, 4)
        assert len(server.calls[-1].body["messages"]) == 2
    assert refused.exit_code == 1
    assert "`paused.jsonl` in 'run', line 1 is not a body of a paused turn. Nothing was sent." in refused.stderr
    assert "without the line its call is asked from the beginning." in refused.stderr


def test_a_limit_counts_what_is_under_way_and_is_passed_by_one_call_at_the_most(folder: Path) -> None:
    write_rows(folder, 40)
    prices = json.dumps({"m": {"input": 1000, "output": 2000, "search": 0}})  # an answer costs 0.02
    options = ("--model", "openai=m", "--concurrency", "8", "--max-cost", "0.59")
    with ProviderServer([*[Good()] * 12, *[Together(6)] * 6]) as server:
        done = ask(server, "openai", *options, CITEJURY_PRICES=prices)
        assert len(server.calls) == 30
        assert server.most_under_way["openai"] > 5
        again = ask(server, "openai", *options, CITEJURY_PRICES=prices)
        assert len(server.calls) == 30
    assert "30 new, 0 failed, spent now 0.60 USD (0.60 in all)" in done.stderr
    assert "10 calls are left" in done.stderr
    assert "30 kept, 0 new" in again.stderr
    assert read_manifest(folder / "run").stopped == "max_cost"


def overshoot(seed: int) -> float:
    """By how much forty calls at once, whose costs differ a lot, pass a limit, in costs of the dearest call."""
    chance, spending, costs = random.Random(seed), Spending(1.0), [0.0]

    async def work(provider: ProviderName) -> None:
        while await spending.begin(provider):
            for _ in range(chance.randint(1, 30)):
                await asyncio.sleep(0)
            costs.append(0.02 * chance.lognormvariate(0, 1))
            spending.pay(provider, costs[-1])
            spending.end(provider)

    async def work_all() -> None:
        await asyncio.gather(*(work(provider) for provider in PROVIDERS for _ in range(8)))

    asyncio.run(work_all())
    return (spending.spent - 1.0) / max(costs)


def test_a_limit_is_passed_by_two_of_the_dearest_calls_at_the_most_and_few_begin_before_costs_are_known() -> None:
    passed = sorted(overshoot(seed) for seed in range(60))
    assert passed[0] >= 0
    assert passed[30] < 0.5
    assert passed[-1] < 2

    async def spend() -> tuple[float, bool]:
        spending = Spending(1.0)
        for _ in range(16):
            spending.pay("openai", 0.01)
        for begun in [await spending.begin("openai") for _ in range(16)]:
            assert begun
            spending.pay("openai", 1.0)
            spending.end("openai")
        return round(spending.spent, 2), await spending.begin("openai")

    assert asyncio.run(spend()) == (16.16, False)

    async def begin_all(known: int) -> int:
        spending = Spending(100.0)
        for _ in range(known):
            spending.pay("openai", 0.01)
        tasks = [asyncio.create_task(spending.begin("openai")) for _ in range(8)]
        for _ in range(20):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return spending.under_way["openai"]

    assert [asyncio.run(begin_all(known)) for known in range(4)] == [1, 1, 2, 3]


def test_a_provider_without_a_price_is_not_asked_again_until_it_has_one(folder: Path) -> None:
    options = ("--model", "perplexity=some/model", "--max-cost", "1")
    with ProviderServer() as server:
        for done in [ask(server, "perplexity", *options) for _ in range(2)]:
            assert "perplexity: what a reply cost is not known, so `--max-cost` cannot be held" in done.stderr
            assert "What is missing is a price" in done.stderr
            assert 'write it into `citejury.toml` as `[prices."some/model"]` with `input` and `output`' in done.stderr
            assert done.stderr.endswith(
                "`--max-cost` cannot be held without a price: 2 calls are left. Next: the same command with "
                '`[prices."some/model"]` in `citejury.toml` goes on\n'
            )
        assert (len(server.calls), read_manifest(folder / "run").stopped) == (1, "max_cost")
        prices = {"CITEJURY_PRICES": '{"some/model": {"input": 1, "output": 2, "search": 0}}'}
        told = ask(server, "perplexity", *options, **prices)
        assert len(server.calls) == 3
    assert "1 kept, 2 new, 0 failed" in told.stderr


def test_the_model_that_wants_a_price_is_named_also_where_another_is_asked_now(folder: Path) -> None:
    with ProviderServer([Status(200, {}, "junk")]) as server:
        ask(server, "openai", "--model", "openai=old", "--max-rows", "1")
        done = ask(server, "openai", "--model", "openai=m", "--max-cost", "1", **PRICED)
        assert len(server.calls) == 1
    assert '[prices."old"]' in done.stderr
    assert '[prices."m"]' not in done.stderr


@pytest.mark.parametrize(
    ("bad", "limit", "spent", "unknown", "price"),
    [
        (STRANGE, "5", "9.00", "", 9.0),
        # Nothing can be read of it, so it counts as 4,096 tokens and a search, 0.07144 USD, but nobody says it cost so.
        (Status(200, {}, "junk"), "0.05", "0.00", ", cost of 1 not known", 0.0),
    ],
    ids=["usage stated", "nothing readable"],
)
def test_a_reply_that_cannot_be_read_counts_against_the_limit_now_and_at_the_next_start(
    folder: Path, bad: Status, limit: str, spent: str, unknown: str, price: float
) -> None:
    write_rows(folder, 10)
    options = ("--model", "claude=m", "--max-cost", limit)
    with ProviderServer([Good(), Good(), *[bad] * 8]) as server:
        done = ask(server, "claude", *options, **PRICED)
        again = ask(server, "claude", *options, **PRICED)
        retried = ask(server, "claude", *options, "--retry", "bad_response", **PRICED)
        assert len(server.calls) == 3
    assert f"0 kept, 2 new, 1 failed, spent now {spent} USD ({spent} in all){unknown}\n" in done.stderr
    assert f"spent now 0.00 USD ({spent} in all){unknown}\n" in again.stderr
    assert "7 calls are left" in again.stderr
    assert "8 calls are left" in retried.stderr
    assert "claude: 2 answers, 2 citations, 1 unreadable but paid for" in done.stderr
    manifest = read_manifest(folder / "run")
    counts = manifest.providers["claude"]
    assert (manifest.stopped, counts.bad_replies, counts.unpriced) == ("max_cost", 1, len(unknown) > 0)
    assert manifest.cost == counts.cost == pytest.approx(price + 2 * (10 * 3 + 5 * 15) / 1e6)


def test_a_paused_turn_that_ends_in_a_reply_that_cannot_be_read_is_counted_once(folder: Path) -> None:
    options = ("--model", "claude=m", "--max-rows", "1", "--retry", "bad_response")
    tokens = []
    with ProviderServer([PAUSED, STRANGE]) as server:
        for _ in range(2):
            ask(server, "claude", *options, **PRICED)
            tokens.append(read_manifest(folder / "run").providers["claude"].input_tokens)
    assert tokens == [10 + 500_000, 10 + 500_000 + 10]


def test_a_finished_run_that_is_started_again_says_of_how_many_the_cost_is_not_known(folder: Path) -> None:
    with ProviderServer() as server:
        first = ask(server, "perplexity", "--max-rows", "2")
        again = ask(server, "perplexity", "--max-rows", "2", "--max-cost", "1")
        assert read_manifest(folder / "run").stopped == ""
        more = ask(server, "perplexity")
    spent_now = "spent now 0.00 USD (0.00 in all), cost of"
    assert f"{spent_now} 2 not known\n" in first.stderr
    assert f"2 kept, 0 new, 0 failed, {spent_now} 2 not known\n" in again.stderr
    assert "cannot be held" not in again.stderr
    assert f"2 kept, 1 new, 0 failed, {spent_now} 3 not known, 1 of them new\n" in more.stderr


def test_where_nothing_is_answered_the_known_cost_is_said_all_the_same(folder: Path) -> None:
    with ProviderServer([Status(200, {}, "junk")] * 3) as server:
        done = ask(server, "openai")
        assert (done.exit_code, len(server.calls)) == (1, 3)
    assert "Nothing was answered (3 bad_response)" in done.stderr
    assert "Known cost: 0.00 USD; that of 3 replies that cannot be read is not known." in done.stderr


def test_presets_of_perplexity_keep_their_own_words_unless_they_are_to_have_ours_or_yours(folder: Path) -> None:
    (folder / "system.txt").write_text("Be brief.", encoding="utf-8")
    with ProviderServer() as server:
        fast = ("perplexity", "--max-rows", "1", "--model", "perplexity=fast")
        ask(server, *fast)
        ask(server, *fast, "--out", "b", CITEJURY_PERPLEXITY_INSTRUCTIONS="true")
        ask(server, *fast, "--out", "c", "--system-prompt", "system.txt")
        ask(server, "perplexity", "--max-rows", "1", "--out", "d")
        preset, ours, yours, plain = (call.body.get("instructions", "") for call in server.calls)
    assert (preset, plain, ours[:20], yours[:11]) == ("", ours, "You check statements", "Be brief.\n\n")
    assert all(each.endswith("such as [1].") for each in (ours, yours))


def test_settings_choose_geminis_api_and_claudes_search_tool(folder: Path) -> None:
    (folder / "citejury.toml").write_text(
        'gemini_api = "interactions"\nclaude_search = "web_search_20260318"\n', encoding="utf-8"
    )
    with ProviderServer() as server:
        urls = {name: server.base_url(name) for name in ("gemini", "claude")}
        keys = {"GEMINI_API_KEY": "planted-0123456789", "ANTHROPIC_API_KEY": "planted-0123456789"}
        command = ["pipeline", "ask", "narratives.csv", "--out", "run", "--max-rows", "1", "--recency", "week"]
        done = CliRunner().invoke(main, command, env={"CITEJURY_BASE_URLS": json.dumps(urls), **keys})
        assert done.exit_code == 0, done.output
        [asked] = server.calls_of("gemini")
        [other] = server.calls_of("claude")
    assert asked.path == "/v1beta/interactions"
    assert "gemini (gemini-4-hydrogen) takes no `--recency`; it is not sent." in done.stderr
    assert other.body["tools"][0]["type"] == "web_search_20260318"
    [answer] = read_answers(folder / "run" / "gemini.csv")
    assert answer.citations == ("https://a.example/",)
    counts = read_manifest(folder / "run").providers["gemini"]
    assert (counts.input_tokens, counts.output_tokens, counts.searches) == (10, 5, 2)


def test_how_long_a_limit_is_waited_for_is_an_option(folder: Path) -> None:
    refused = Status(429, {"retry-after": "30"}, {"error": {"message": "slow down"}})
    with ProviderServer([refused] * 3) as server:
        done = ask(server, "openai", "--max-rows", "1", "--patience", "20")
        assert (done.exit_code, len(server.calls)) == (1, 1)
    [error] = read_errors(folder / "run")
    assert "slow down. It asks to be left alone for 3" in error.message
    assert "longer than 20 seconds. So nothing more is asked" in error.message
    with ProviderServer([Status(429), Good(), Status(503)]) as server:
        waited = ask(server, "openai", "--out", "waited", "--attempts", "1")
        assert (waited.exit_code, len(server.calls)) == (0, 5)
    assert waited.stderr.count("openai: Waiting for a rate limit; the next request goes out in 1 second.") == 1
    assert f"openai  rate_limit  1  {error.message[:30]}" in " ".join(done.stderr.split("\n"))
    wrong = CliRunner().invoke(main, ["pipeline", "ask", "narratives.csv", "--out", "x", "--timeout", "0"])
    assert wrong.exit_code == 2
