import asyncio
import gzip
import json
import logging
import traceback
from collections.abc import Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from pipeline.ask import Network, RetryPolicy
from pipeline.calls import Call, Reply, plan_calls
from pipeline.endpoint import Endpoint
from pipeline.errors import PayloadError, SettingsError
from pipeline.limits import Gate
from pipeline.providers import provider_name, read_payload
from pipeline.providers.request import DEFAULT_MODELS, REQUESTS
from pipeline.schema import PROVIDERS, AskOptions, Narrative, ProviderName
from tests.provider_server import (
    Behaviour,
    Good,
    HalfBody,
    Hang,
    Huge,
    ProviderServer,
    Redirect,
    SlowDrip,
    Status,
    Together,
    WrongContentType,
    answer_text,
    claude_body,
    closed_port,
    responses_body,
)

RECORDINGS = Path(__file__).parents[2] / "shared" / "recordings"
RUN = "9f0e3b0a-6f0e-4b55-9e0a-7d6b1f4a2c11"
KEY = "planted/key+0123456789"
SOON = {"retry-after-ms": "1"}
QUICK = RetryPolicy(backoff_seconds=0.001)
SHORT = RetryPolicy(backoff_seconds=0.001, read_seconds=1.0)

Settled = Reply | PayloadError


def calls_to(provider: ProviderName, number: int = 1) -> list[Call]:
    narratives = [Narrative(narrative_id=str(row), prompt=f"Narrative {row}", line=row + 1) for row in range(number)]
    return list(plan_calls(RUN, provider, narratives, DEFAULT_MODELS[provider]))


async def settle(network: Network, call: Call) -> Settled:
    request = REQUESTS[call.provider](call.model, "Answer.", call.prompt, AskOptions())
    try:
        return await network.answer(call, request)
    except PayloadError as failure:
        return failure


def ask(
    server: ProviderServer,
    calls: Sequence[Call],
    policy: RetryPolicy = QUICK,
    concurrency: int = 1,
    key: str = KEY,
) -> list[Settled]:
    endpoints = {name: Endpoint(name, server.base_url(name), key) for name in PROVIDERS}

    async def ask_all() -> list[Settled]:
        async with Network(endpoints, policy, concurrency) as network:
            return list(await asyncio.gather(*(settle(network, call) for call in calls)))

    return asyncio.run(ask_all())


def ask_one(
    *behaviours: Behaviour, provider: ProviderName = "openai", policy: RetryPolicy = QUICK
) -> tuple[Settled, int]:
    """What one call came to, and how many requests the server saw."""
    with ProviderServer(behaviours) as server:
        [settled] = ask(server, calls_to(provider), policy)
        return settled, len(server.calls)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_good_answer_comes_back_as_it_was_sent(provider: ProviderName) -> None:
    reply, requests = ask_one(provider=provider)
    assert isinstance(reply, Reply)
    assert answer_text(1) in read_payload(provider, reply.text).text
    assert (reply.status, reply.model, reply.attempts, requests) == (200, DEFAULT_MODELS[provider], 1, 1)
    assert 0 < reply.seconds < 60


def test_the_key_goes_in_one_header_of_its_provider_and_the_body_goes_unchanged() -> None:
    names: dict[ProviderName, str] = {"claude": "x-api-key", "gemini": "x-goog-api-key"}
    with ProviderServer() as server:
        calls = [call for provider in PROVIDERS for call in calls_to(provider)]
        ask(server, calls)
        for call in calls:
            [received] = server.calls_of(call.provider)
            request = REQUESTS[call.provider](call.model, "Answer.", call.prompt, AskOptions())
            assert (received.path, received.body) == (request.path, request.body)
            holders = [name for name, value in received.headers.items() if KEY in value]
            assert holders == [names.get(call.provider, "authorization")]


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (Status(429, SOON, {"error": {"code": "rate_limit_exceeded"}}), "rate_limit"),
        (Status(429, {"retry-after": "0"}), "rate_limit"),
        (Status(429, {"retry-after": "Tue, 02 Apr 2024 14:04:09 GMT"}), "rate_limit"),
        (Status(429, {"x-ratelimit-reset-requests": "1ms"}), "rate_limit"),
        (Status(429, {"x-ratelimit-reset": "1789986347"}), "rate_limit"),
        (Status(429, {"anthropic-ratelimit-requests-reset": "2024-06-04T18:39:57Z"}), "rate_limit"),
        (Status(429, {}, {"error": {"details": [{"@type": "RetryInfo", "retryDelay": "0.001s"}]}}), "rate_limit"),
        (Status(500, {}, {"error": {"message": "The server had an error", "type": "server_error"}}), "server"),
        (Status(529, SOON, {"type": "error", "error": {"type": "overloaded_error"}}), "server"),
        (Status(503, {}, "upstream connect error"), "server"),
        (Status(200, SOON, {"error": {"code": 429, "message": "upstream"}}), "rate_limit"),
        (Status(200, {}, {**responses_body(1), "status": "failed", "error": {"code": "server_error"}}), "server"),
        (Status(200, {}, ""), "network"),
        (Status(200, {}, '{"object": "response", "outp'), "network"),
        (HalfBody(), "network"),
        (WrongContentType(), "network"),
        (Hang(), "timeout"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_passing_trouble_is_tried_again_and_recorded_when_it_stays(bad: Behaviour, kind: str) -> None:
    policy = SHORT if isinstance(bad, Hang) else QUICK
    mended, requests = ask_one(bad, Good(), policy=policy)
    assert isinstance(mended, Reply), mended
    assert (mended.attempts, requests) == (2, 2)
    failed, requests = ask_one(bad, bad, bad, policy=policy)
    assert isinstance(failed, PayloadError)
    assert (failed.kind, failed.attempts, requests) == (kind, 2, 2)
    assert failed.status == (
        bad.status if isinstance(bad, Status) else 200 if isinstance(bad, WrongContentType) else None
    )


@pytest.mark.parametrize(
    ("bad", "kind", "words"),
    [
        (Status(400, {}, {"error": {"message": "No such tool"}}), "bad_response", "No such tool"),
        (Status(500, {"x-should-retry": "false"}, {"error": {"message": "no"}}), "server", "no"),
        (Status(429, SOON, {"error": {"code": "insufficient_quota", "message": "pay"}}), "quota", "pay"),
        (Status(200, {}, {"strange": 1}), "bad_response", "no known shape"),
        (Huge(50), "bad_response", "larger than 32 MB"),
        (Huge(100, bomb=True), "bad_response", "larger than 32 MB"),
        (Status(200, {"content-encoding": "br"}, "{}"), "bad_response", "compression"),
        (Redirect("https://elsewhere.example/v1?x=1"), "bad_response", "to the host 'elsewhere.example'"),
        (Redirect(""), "bad_response", "nothing was sent there"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_lasting_trouble_is_recorded_at_once(bad: Behaviour, kind: str, words: str) -> None:
    failed, requests = ask_one(bad)
    assert isinstance(failed, PayloadError)
    assert (failed.kind, failed.attempts, requests) == (kind, 1, 1)
    assert words in str(failed)


def test_no_key_follows_a_redirect() -> None:
    with ProviderServer() as other:
        ask_one(Redirect(f"{other.url}/v1/responses"))
        assert other.calls == []


@pytest.mark.parametrize(
    "body",
    [
        {**responses_body(1), "output": []},
        {**responses_body(1), "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
        {"candidates": [{"finishReason": "SAFETY"}]},
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}},
        {**claude_body(1), "content": [], "stop_reason": "refusal"},
    ],
    ids=["empty", "truncated", "safety", "blocked", "refusal"],
)
def test_an_answer_that_came_back_is_never_asked_again(body: Any) -> None:
    reply, requests = ask_one(Status(200, {}, body))
    assert isinstance(reply, Reply)
    assert (json.loads(reply.text), requests) == (body, 1)


def test_an_answer_under_a_wrong_content_type_or_compressed_is_an_answer() -> None:
    text = json.dumps(responses_body(1), ensure_ascii=False)
    packed = Status(200, {"content-encoding": "gzip"}, gzip.compress(text.encode()))
    for good in (Status(200, {"content-type": "text/plain"}, text), packed):
        reply, _ = ask_one(good)
        assert isinstance(reply, Reply)
        assert reply.text == text


def test_half_a_compressed_body_is_asked_for_again() -> None:
    half = gzip.compress(json.dumps(responses_body(1)).encode())[:-20]
    reply, requests = ask_one(Status(200, {"content-encoding": "gzip"}, half))
    assert isinstance(reply, Reply)
    assert requests == 2


def test_a_slow_drip_ends_with_the_time_of_the_call() -> None:
    failed, requests = ask_one(SlowDrip(), policy=RetryPolicy(total_seconds=0.2))
    assert isinstance(failed, PayloadError)
    assert (failed.kind, requests) == ("timeout", 1)


def test_a_wait_longer_than_the_call_may_take_is_not_begun_by_any_call() -> None:
    with ProviderServer([Status(429, {"retry-after": "3600"})]) as server:
        failures = ask(server, calls_to("openai", 3))
        assert len(server.calls) == 1
    assert [failure.attempts for failure in failures if isinstance(failure, PayloadError)] == [1, 0, 0]
    assert all(isinstance(failure, PayloadError) and failure.kind == "rate_limit" for failure in failures)
    assert "empty body. The next try is 3600 seconds away" in str(failures[0])


def test_nobody_at_the_address_is_a_network_error_of_every_attempt() -> None:
    endpoint = Endpoint("grok", f"http://127.0.0.1:{closed_port()}/v1", KEY)

    async def ask_it() -> Settled:
        async with Network({"grok": endpoint}, RetryPolicy(3, backoff_seconds=0.001)) as network:
            return await settle(network, calls_to("grok")[0])

    failed = asyncio.run(ask_it())
    assert isinstance(failed, PayloadError)
    assert (failed.kind, failed.attempts, failed.status) == ("network", 3, None)
    assert str(failed) == "127.0.0.1 cannot be reached."


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (Status(401, {}, {"error": {"message": "Incorrect API key provided"}}), "auth"),
        (Status(403, {}, {"error": {"message": "Not for you"}}), "auth"),
        (Status(400, {}, {"code": "invalid", "error": "Incorrect API key provided: pl***89."}), "auth"),
        (Status(402, {}, {"error": {"message": "Pay"}}), "quota"),
        (Status(429, {}, {"error": {"code": "insufficient_quota"}}), "quota"),
        (Status(410, {}, {"error": "Live search is gone"}), "bad_response"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_provider_that_refuses_for_good_is_asked_once_and_the_others_go_on(refusal: Status, kind: str) -> None:
    calls = [*calls_to("grok", 20), *calls_to("claude", 3)]
    with ProviderServer({"grok": repeat(refusal)}) as server:
        settled = ask(server, calls)
        assert len(server.calls_of("grok")) == 1
    failures = [each for each in settled[:20] if isinstance(each, PayloadError)]
    assert [failure.kind for failure in failures] == [kind] * 20
    assert [failure.attempts for failure in failures] == [1] + [0] * 19
    assert {failure.status for failure in failures} == {refusal.status}
    assert all(isinstance(each, Reply) for each in settled[20:])


def test_a_paused_turn_is_continued_and_its_bodies_are_kept_in_order() -> None:
    paused = claude_body(1, "pause_turn")
    with ProviderServer([Status(200, {}, paused), Status(529, SOON), Good()]) as server:
        [reply] = ask(server, calls_to("claude"))
        first, *_, last = server.calls
    assert isinstance(reply, Reply)
    assert json.loads(reply.text) == [paused, claude_body(3)]
    assert last.body["messages"] == [*first.body["messages"], {"role": "assistant", "content": paused["content"]}]
    assert reply.attempts == 3
    assert read_payload("claude", reply.text).text == answer_text(1) + answer_text(3)


def test_a_turn_that_never_ends_is_continued_five_times() -> None:
    with ProviderServer(repeat(Status(200, {}, claude_body(1, "pause_turn")))) as server:
        [reply] = ask(server, calls_to("claude"))
        assert len(server.calls) == 6
    assert isinstance(reply, Reply)
    assert len(json.loads(reply.text)) == 6


def test_each_provider_keeps_to_its_own_concurrency() -> None:
    with ProviderServer({"openai": repeat(Together(4))}) as server:
        endpoints = {name: Endpoint(name, server.base_url(name), KEY) for name in PROVIDERS}

        async def ask_all() -> list[Settled]:
            async with Network(endpoints, QUICK, {"claude": 1, "openai": 4}) as network:
                calls = [*calls_to("claude", 12), *calls_to("openai", 40)]
                return list(await asyncio.gather(*(settle(network, call) for call in calls)))

        assert all(isinstance(each, Reply) for each in asyncio.run(ask_all()))
        assert server.most_under_way == {"claude": 1, "openai": 4}


def test_a_limit_with_nothing_left_lets_the_next_call_wait() -> None:
    exhausted = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "300ms"}
    with ProviderServer([Status(200, exhausted, responses_body(1))]) as server:
        first, second = ask(server, calls_to("openai", 2))
        between = server.times[1] - server.times[0]
    assert isinstance(first, Reply)
    assert isinstance(second, Reply)
    assert between >= 0.28


def test_many_calls_share_a_narrow_limit_without_losing_one() -> None:
    refused = Status(429, {"retry-after-ms": "5"})
    with ProviderServer([Good(), refused, refused, refused, refused]) as server:
        settled = ask(server, calls_to("openai", 30), RetryPolicy(attempts=3), concurrency=8)
        assert len(server.calls) == 34
    assert all(isinstance(each, Reply) for each in settled)


def test_a_provider_without_endpoint_names_the_variable_of_its_key() -> None:
    async def ask_it() -> Settled:
        async with Network({}) as network:
            return await settle(network, calls_to("gemini")[0])

    failed = asyncio.run(ask_it())
    assert isinstance(failed, PayloadError)
    assert (failed.kind, failed.attempts) == ("missing_key", 0)
    assert "GEMINI_API_KEY" in str(failed)


@pytest.mark.parametrize("key", ["line\nbreak-0123456789", "schlüssel-0123456789"])
def test_a_key_that_no_header_carries_is_refused_unseen(key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Network({"openai": Endpoint("openai", "http://127.0.0.1:9/v1", key)})
    assert "0123456789" not in "".join(traceback.format_exception(caught.value))


def test_the_key_is_in_no_error_no_log_and_no_repr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echoes = [f"{KEY} is wrong", {"error": {"message": f"x{KEY}y"}}, {"error": {"message": "m" * 390 + KEY}}]
    bad = [*(Status(500, {}, echo) for echo in echoes), HalfBody(), Redirect("http://elsewhere.example/")]
    with ProviderServer(bad) as server:
        settled = ask(server, calls_to("gemini", len(bad)), RetryPolicy(1, backoff_seconds=0.001))
        [answered] = ask(server, calls_to("gemini"))
        endpoint = Endpoint("gemini", server.url, KEY)
    shown = "".join("".join(traceback.format_exception(each)) for each in settled if isinstance(each, Exception))
    assert len([each for each in settled if isinstance(each, PayloadError)]) == len(bad)
    for text in (shown, caplog.text, repr(endpoint), str(endpoint), f"{endpoint}", repr(answered)):
        assert KEY not in text
        assert KEY[-10:] not in text


def test_a_key_echoed_in_an_answer_is_not_kept() -> None:
    body = responses_body(1)
    body["instructions"] = f"your key {KEY}"
    reply, _ = ask_one(Status(200, {}, json.dumps(body).replace("/", "\\/")))
    assert isinstance(reply, Reply)
    assert json.loads(reply.text)["instructions"] == "your key [redacted]"


def test_a_server_that_wants_no_key_gets_no_header_for_one() -> None:
    with ProviderServer() as server:
        [reply] = ask(server, calls_to("openai"), key="")
        assert "authorization" not in server.calls[0].headers
    assert isinstance(reply, Reply)


def test_a_proxy_of_the_environment_is_not_asked_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port()}")
    reply, requests = ask_one()
    assert isinstance(reply, Reply)
    assert requests == 1


def test_a_proxy_of_the_environment_is_asked_for_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    with ProviderServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)

        async def ask_it() -> Settled:
            async with Network({"openai": Endpoint("openai", "http://api.example/v1", KEY)}, QUICK) as network:
                return await settle(network, calls_to("openai")[0])

        assert isinstance(asyncio.run(ask_it()), Reply)
        assert proxy.calls[0].headers["host"] == "api.example"


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason="the recorded payloads are not here")
@pytest.mark.parametrize("folder", ["openai", "anthropic", "gemini", "xai", "perplexity"])
def test_recorded_bodies_come_through_whole(folder: str) -> None:
    provider = provider_name(folder)
    paths = [path for path in sorted((RECORDINGS / folder).glob("*.json")) if not path.name.endswith(".meta.json")]
    texts = [
        path.read_text(encoding="utf-8") for path in paths if not path.name.startswith(("error_", "pause_turn_91"))
    ]
    with ProviderServer([Status(200, {}, text) for text in texts]) as server:
        settled = ask(server, calls_to(provider, len(texts)))
    assert [each.text for each in settled if isinstance(each, Reply)] == texts


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason="the recorded payloads are not here")
def test_the_recorded_pause_goes_on_with_its_recorded_continuation() -> None:
    names = ("pause_turn_91_results_no_citation", "pause_turn_continuation_17_citations")
    texts = [(RECORDINGS / "anthropic" / f"{name}.json").read_text(encoding="utf-8") for name in names]
    with ProviderServer([Status(200, {}, text) for text in texts]) as server:
        [reply] = ask(server, calls_to("claude"))
        assert server.calls[1].body["messages"][-1]["content"] == json.loads(texts[0])["content"]
    assert isinstance(reply, Reply)
    assert reply.text == f"[{texts[0]},{texts[1]}]"
    assert len(read_payload("claude", reply.text).occurrences) == 17


def test_a_refusal_for_speed_halves_the_door_once_and_good_answers_widen_it() -> None:
    async def steps() -> list[int]:
        gate = Gate(8)
        started = asyncio.get_running_loop().time()
        seen = [gate.allowed]
        for _ in range(3):
            gate.narrow(started)
            seen.append(gate.allowed)
        for _ in range(9):
            gate.widen()
        return [*seen, gate.allowed]

    assert asyncio.run(steps()) == [8, 4, 4, 4, 6]


def test_a_cancelled_call_gives_its_place_to_the_next() -> None:
    with ProviderServer([Hang()]) as server:

        async def ask_two() -> Settled:
            endpoint = Endpoint("grok", server.base_url("grok"), KEY)
            async with Network({"grok": endpoint}, QUICK, 1) as network:
                first, second = (asyncio.create_task(settle(network, call)) for call in calls_to("grok", 2))
                while not server.calls:
                    await asyncio.sleep(0)
                first.cancel()
                await asyncio.wait([first])
                assert first.cancelled()
                return await second

        assert isinstance(asyncio.run(ask_two()), Reply)
