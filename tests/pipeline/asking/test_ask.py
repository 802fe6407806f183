import asyncio
import gzip
import json
import logging
import time
import traceback
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import pytest

from pipeline.asking.questions import Reply
from pipeline.core.errors import ProviderError, SettingsError
from pipeline.core.prompts import SYSTEM_PROMPT
from pipeline.core.schema import PROVIDERS, AskOptions, ProviderName
from pipeline.providers import get_provider, provider_name, read_payload
from pipeline.providers.http.client import ApiClient, RetryPolicy
from tests.support.ask_bench import (
    KEY,
    QUICK,
    SOON,
    Settled,
    answered,
    ask,
    ask_at,
    ask_one,
    calls_to,
    live,
    refused,
    settle,
)
from tests.support.places import NO_SHARED, SHARED
from tests.support.provider_server import (
    MB,
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

RECORDINGS = SHARED / "recordings"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_good_answer_comes_back_as_it_was_sent(provider: ProviderName) -> None:
    reply, requests = answered(provider=provider)
    assert answer_text(1) in read_payload(provider, reply.text).text
    assert (reply.status, reply.model, reply.attempts, requests) == (200, get_provider(provider).api().model, 1, 1)


def test_the_key_goes_in_one_header_of_its_provider_and_the_body_goes_unchanged() -> None:
    names: dict[ProviderName, str] = {"claude": "x-api-key", "gemini": "x-goog-api-key"}
    with ProviderServer() as server:
        calls = [call for provider in PROVIDERS for call in calls_to(provider)]
        ask(server, calls)
        for call in calls:
            [received] = server.calls_of(call.provider)
            request = get_provider(call.provider).api().request(call.model, SYSTEM_PROMPT, call.prompt, AskOptions())
            assert (received.path, received.body) == (request.path, request.body)
            holders = [name for name, value in received.headers.items() if KEY in value]
            assert holders == [names.get(call.provider, "authorization")]


def test_no_key_follows_a_redirect_is_kept_where_it_is_echoed_or_sent_where_none_is_wanted() -> None:
    with ProviderServer() as other:
        ask_one(Redirect(f"{other.url}/v1/responses"))
        assert other.calls == []
    body = responses_body(1)
    body["instructions"] = f"your key {KEY}"
    reply, _ = answered(Status(200, {}, json.dumps(body).replace("/", "\\/")))
    assert json.loads(reply.text)["instructions"] == "your key [redacted]"
    with ProviderServer() as server:
        [reply] = ask(server, calls_to("openai"), key="")
        assert (isinstance(reply, Reply), "authorization" in server.calls[0].headers) == (True, False)


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
    reply, requests = answered(Status(200, {}, body))
    assert (json.loads(reply.text), requests) == (body, 1)


def test_an_answer_under_a_wrong_content_type_or_compressed_is_an_answer() -> None:
    text = json.dumps(responses_body(1), ensure_ascii=False)
    packed = Status(200, {"content-encoding": "gzip"}, gzip.compress(text.encode()))
    assert [answered(good)[0].text for good in (Status(200, {"content-type": "text/plain"}, text), packed)] == [
        text
    ] * 2


def test_a_paused_turn_is_continued_in_order_and_one_that_never_ends_five_times() -> None:
    paused = claude_body(1, "pause_turn")
    with ProviderServer([Status(200, {}, paused), Status(529, SOON), Good()]) as server:
        [reply] = ask(server, calls_to("claude"))
        first, *_, last = server.calls
    assert isinstance(reply, Reply)
    assert json.loads(reply.text) == [paused, claude_body(3)]
    assert last.body["messages"] == [*first.body["messages"], {"role": "assistant", "content": paused["content"]}]
    assert (reply.attempts, read_payload("claude", reply.text).text) == (3, answer_text(1) + answer_text(3))
    body = json.dumps(claude_body(1, "pause_turn")).replace('"A"', "1e999")
    reply, requests = answered(*[Status(200, {}, body)] * 9, provider="claude")
    assert (len(json.loads(reply.text)), requests) == (6, 6)


@pytest.mark.parametrize("key", ["line\nbreak-0123456789", "schlüssel-0123456789"])
def test_a_key_that_no_header_carries_is_refused_unseen(key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        ApiClient(get_provider("openai").endpoint("http://127.0.0.1:9/v1", key))
    assert "0123456789" not in "".join(traceback.format_exception(caught.value))


def test_the_key_is_in_no_error_no_log_and_no_repr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echoes = [f"{KEY} is wrong", {"error": {"message": f"x{KEY}y"}}, {"error": {"message": "m" * 390 + KEY}}]
    bad = [*(Status(500, {}, echo) for echo in echoes), HalfBody(), Redirect("http://elsewhere.example/")]
    with ProviderServer(bad) as server:
        settled = ask(server, calls_to("gemini", len(bad)), RetryPolicy(1, backoff_seconds=0.001))
        [answered] = ask(server, calls_to("gemini"))
        endpoint = get_provider("gemini").endpoint(server.url, KEY)
    shown = "".join("".join(traceback.format_exception(each)) for each in settled if isinstance(each, Exception))
    assert [isinstance(each, ProviderError) for each in settled] == [True, True, True, False, True]
    for text in (shown, caplog.text, repr(endpoint), str(endpoint), f"{endpoint}", repr(answered), repr(settled)):
        assert KEY not in text
        assert KEY[-10:] not in text


def test_a_proxy_of_the_environment_is_asked_for_the_world_not_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    with ProviderServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        assert isinstance(ask_at({"openai": "http://api.example/v1"}, "openai"), Reply)
        assert proxy.calls[0].headers["host"] == "api.example"
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port()}")
    assert answered()[1] == 1


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason=NO_SHARED)
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


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason=NO_SHARED)
def test_the_recorded_pause_goes_on_with_its_recorded_continuation() -> None:
    names = ("pause_turn_91_results_no_citation", "pause_turn_continuation_17_citations")
    texts = [(RECORDINGS / "anthropic" / f"{name}.json").read_text(encoding="utf-8") for name in names]
    with ProviderServer([Status(200, {}, text) for text in texts]) as server:
        [reply] = ask(server, calls_to("claude"))
        assert server.calls[1].body["messages"][-1]["content"] == json.loads(texts[0])["content"]
    assert isinstance(reply, Reply)
    assert (reply.text, len(read_payload("claude", reply.text).occurrences)) == (f"[{texts[0]},{texts[1]}]", 17)


HALF_PACKED = gzip.compress(json.dumps(responses_body(1)).encode())[:-20]
NO_ADDRESSES = (
    "https://xn--/",
    "https://xn--zzzz999999.example/",
    "http://[::1",
    "https://é\xff.example/",
    "\x7f",
    "http://",
)
SHORT = RetryPolicy(backoff_seconds=0.001, read_seconds=1.0)


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (Status(500, {}, {"error": {"message": "The server had an error", "type": "server_error"}}), "server"),
        (Status(200, {}, {**responses_body(1), "status": "failed", "error": {"code": "server_error"}}), "server"),
        (Hang(), "timeout"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_passing_trouble_is_tried_again_and_recorded_when_it_stays(bad: Behaviour, kind: str) -> None:
    policy = SHORT if isinstance(bad, Hang) else QUICK
    mended, requests = answered(bad, Good(), policy=policy)
    assert (mended.attempts, requests) == (2, 2)
    failed, requests = refused(bad, bad, bad, policy=policy)
    assert (failed.kind, failed.attempts, requests) == (kind, 2, 2)
    assert failed.status == (bad.status if isinstance(bad, Status) else None)


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (Status(429, SOON, {"error": {"code": "rate_limit_exceeded"}}), "rate_limit"),
        (Status(429), "rate_limit"),
        (Status(429, {"retry-after": "0"}), "rate_limit"),
        (Status(429, {"retry-after": "soon, perhaps"}), "rate_limit"),
        (Status(429, {"retry-after": "Tue, 02 Apr 2024 14:04:09 GMT"}), "rate_limit"),
        (Status(429, {"x-ratelimit-reset-requests": "1ms"}), "rate_limit"),
        (Status(429, {"x-ratelimit-reset": "1789986347"}), "rate_limit"),
        (Status(429, {"anthropic-ratelimit-requests-reset": "2024-06-04T18:39:57Z"}), "rate_limit"),
        (Status(429, {}, {"error": {"details": [{"@type": "RetryInfo", "retryDelay": "0.001s"}]}}), "rate_limit"),
        (Status(429, {}, {"error": {"message": "Please try again in 1ms."}}), "rate_limit"),
        (Status(529, SOON, {"type": "error", "error": {"type": "overloaded_error"}}), "server"),
        (Status(503, {}, "upstream connect error"), "server"),
        (Status(200, SOON, {"error": {"code": 429, "message": "upstream"}}), "rate_limit"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_limit_costs_no_attempt_and_is_waited_out_or_left_when_it_lasts(bad: Status, kind: str) -> None:
    once = QUICK._replace(attempts=1)
    mended, requests = answered(bad, bad, bad, Good(), policy=once)
    assert (mended.status, requests) == (200, 4)
    failed, requests = refused(*[bad] * 100, policy=once._replace(patience_seconds=0.02))
    assert (failed.kind, failed.status, failed.attempts) == (kind, bad.status, requests)
    assert requests > 1
    assert str(failed).endswith("0 seconds. So nothing more is asked of this provider in this run.")


@pytest.mark.parametrize(
    ("bad", "kind", "words"),
    [
        (Status(400, {}, {"error": {"message": "No such tool"}}), "bad_response", "No such tool"),
        (Status(500, {"x-should-retry": "false"}, {"error": {"message": "no"}}), "server", "no"),
        (Status(429, SOON, {"error": {"code": "insufficient_quota", "message": "pay"}}), "quota", "pay"),
        (Redirect("https://elsewhere.example/v1?x=1"), "bad_response", "to the host 'elsewhere.example'"),
        (Redirect(""), "bad_response", "nothing was sent there"),
        *((Redirect(location), "bad_response", "redirects to ") for location in NO_ADDRESSES),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_lasting_trouble_is_recorded_at_once(bad: Behaviour, kind: str, words: str) -> None:
    failed, requests = refused(bad)
    assert (failed.kind, failed.attempts, requests) == (kind, 1, 1)
    assert words in str(failed)


@pytest.mark.parametrize(
    ("bad", "fault", "begins"),
    [
        (Status(200, {}, ""), "", ""),
        (Status(200, {}, '{"object": "response", "outp'), "", '{"object": "response", "outp'),
        (Status(200, {}, 'data: {"type": "response.created"}\n\n'), "", "data: {"),
        (Status(200, {}, {"strange": 1}), "", '{"strange": 1}'),
        (WrongContentType(), "", "<html>"),
        (HalfBody(), "closed the connection before its answer was whole", '{"id": "resp_1"'),
        (Status(200, {"content-encoding": "gzip"}, HALF_PACKED), "ends before it is whole", '{"id": "resp_1"'),
        (Status(200, {"content-encoding": "gzip"}, b"no gzip \xff"), "cannot be unpacked", "no gzip \xff"),
        (Status(200, {"content-encoding": "br"}, b"\x0b\x01\x80{}"), "compression", "\x0b\x01\x80{}"),
        (Huge(50), "larger than 32 MB", " "),
        pytest.param(Huge(100, bomb=True), "larger than 32 MB", "\x1f\x8b", marks=pytest.mark.rare),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_success_that_cannot_be_read_is_kept_and_not_bought_again(bad: Behaviour, fault: str, begins: str) -> None:
    reply, requests = answered(bad)
    assert (reply.status, reply.attempts, requests, reply.is_paid) == (200, 1, 1, True)
    assert (reply.text.startswith(begins), len(reply.text) <= MB) == (True, True)
    assert (fault in reply.fault, bool(reply.fault)) == (True, bool(fault))


def test_a_slow_drip_ends_with_the_time_of_the_call_and_no_longer_wait_is_begun() -> None:
    failed, requests = refused(SlowDrip(), policy=RetryPolicy(total_seconds=0.2))
    assert (failed.kind, requests) == ("timeout", 1)
    with ProviderServer([Status(429, {"retry-after": "86400"})]) as server:
        failures = ask(server, calls_to("openai", 3))
        assert len(server.calls) == 1
    assert [failure.attempts for failure in failures if isinstance(failure, ProviderError)] == [1, 0, 0]
    assert all(isinstance(failure, ProviderError) and failure.kind == "rate_limit" for failure in failures)
    assert "empty body. It asks to be left alone for 1 day, longer than 15 minutes." in str(failures[0])


@pytest.mark.parametrize("cookie", ["a=\xe9\xff; Path=/", "\xe4=\xf6", "plain=1; Path=/"])
def test_no_cookie_is_kept(cookie: str) -> None:
    with ProviderServer([Status(500, {"set-cookie": cookie}, "x"), Good()]) as server:
        [settled] = ask(server, calls_to("openai"))
        assert isinstance(settled, Reply)
        assert ["cookie" in call.headers for call in server.calls] == [False, False]


def test_nobody_at_the_address_is_a_network_error_and_no_endpoint_names_the_variable_of_its_key() -> None:
    policy = RetryPolicy(3, backoff_seconds=0.001)
    failed = ask_at({"grok": f"http://127.0.0.1:{closed_port()}/v1"}, "grok", policy)
    assert isinstance(failed, ProviderError)
    assert (failed.kind, failed.attempts, failed.status) == ("network", 3, None)
    assert str(failed) == "127.0.0.1 cannot be reached."
    nowhere = ask_at({"grok": f"https://{'a' * 70}.example"}, "grok", RetryPolicy(1))
    assert isinstance(nowhere, ProviderError)
    assert nowhere.kind == "network"
    failed = ask_at({}, "gemini")
    assert isinstance(failed, ProviderError)
    assert (failed.kind, failed.attempts, "GEMINI_API_KEY" in str(failed)) == ("missing_key", 0, True)


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (Status(401, {}, {"error": {"message": "Incorrect API key provided"}}), "auth"),
        (Status(403, {}, {"error": {"message": "Not for you"}}), "no_permission"),
        (Status(400, {}, {"code": "invalid", "error": "Incorrect API key provided: pl***89."}), "auth"),
        (Status(402, {}, {"error": {"message": "Pay"}}), "quota"),
        (Status(429, {}, {"error": {"code": "insufficient_quota"}}), "quota"),
        (Status(404, {}, {"error": {"message": "The model `m` does not exist"}}), "unknown_model"),
        (Status(410, {}, {"error": "Live search is gone"}), "bad_response"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_provider_that_refuses_for_good_is_asked_once_and_the_others_go_on(refusal: Status, kind: str) -> None:
    calls = [*calls_to("grok", 20), *calls_to("claude", 3)]
    with ProviderServer({"grok": repeat(refusal)}) as server:
        settled = ask(server, calls)
        assert len(server.calls_of("grok")) == 1
    failures = [each for each in settled[:20] if isinstance(each, ProviderError)]
    assert [failure.kind for failure in failures] == [kind] * 20
    assert [failure.attempts for failure in failures] == [1] + [0] * 19
    assert {failure.status for failure in failures} == {refusal.status}
    assert all(isinstance(each, Reply) for each in settled[20:])


def test_each_provider_keeps_to_its_own_concurrency_and_many_calls_share_a_narrow_limit() -> None:
    with ProviderServer({"openai": repeat(Together(4)), "claude": repeat(Together(4))}) as server:
        settled = ask(server, [*calls_to("claude", 12), *calls_to("openai", 40)], concurrency=4)
        assert all(isinstance(each, Reply) for each in settled)
        assert server.most_under_way == {"claude": 4, "openai": 4}
    with ProviderServer(bucket(rate=60, most=3)) as server:
        policy = RetryPolicy(attempts=1, backoff_seconds=0.1)
        settled = ask(server, calls_to("openai", 40), policy, concurrency=8)
        assert len(server.calls) < 80
    assert all(isinstance(each, Reply) for each in settled)


def bucket(rate: float, most: int) -> Iterator[Behaviour]:
    """Good answers, and refusals without a word of when to come back where there are more than `rate` a second."""
    tokens, last = float(most), time.monotonic()
    while True:
        tokens, last = min(most, tokens + (time.monotonic() - last) * rate), time.monotonic()
        yield Good() if tokens >= 1 else Status(429)
        tokens -= tokens >= 1


def test_a_limit_with_nothing_left_lets_the_next_call_wait() -> None:
    exhausted = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "300ms"}
    with ProviderServer([Status(200, exhausted, responses_body(1))]) as server:
        first, second = ask(server, calls_to("openai", 2))
        between = server.times[1] - server.times[0]
    assert (isinstance(first, Reply), isinstance(second, Reply)) == (True, True)
    assert between >= 0.28


def test_a_cancelled_call_gives_its_place_to_the_next() -> None:
    with ProviderServer([Hang()]) as server:

        async def ask_two() -> Settled:
            async with live({"grok": server.base_url("grok")}) as answers:
                first, second = (asyncio.create_task(settle(answers, call)) for call in calls_to("grok", 2))
                while not server.calls:
                    await asyncio.sleep(0)
                first.cancel()
                await asyncio.wait([first])
                assert first.cancelled()
                return await second

        assert isinstance(asyncio.run(ask_two()), Reply)
