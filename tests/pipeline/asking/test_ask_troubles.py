import asyncio
import gzip
import json
from itertools import repeat

import pytest

from pipeline.asking.questions import Reply
from pipeline.core.errors import ProviderError
from pipeline.providers.http.client import Gate, RetryPolicy
from tests.support.ask_bench import QUICK, SOON, Settled, answered, ask, ask_at, calls_to, live, refused, settle
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
    closed_port,
    responses_body,
)

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
def test_a_success_that_cannot_be_read_comes_back_as_it_is_and_is_not_bought_again(
    bad: Behaviour, fault: str, begins: str
) -> None:
    reply, requests = answered(bad)
    assert (reply.status, reply.attempts, requests, reply.is_paid) == (200, 1, 1, True)
    assert (reply.text.startswith(begins), len(reply.text) <= MB) == (True, True)
    assert (fault in reply.fault, bool(reply.fault)) == (True, bool(fault))


def test_a_slow_drip_ends_with_the_time_of_the_call_and_no_longer_wait_is_begun() -> None:
    failed, requests = refused(SlowDrip(), policy=RetryPolicy(total_seconds=0.2))
    assert (failed.kind, requests) == ("timeout", 1)
    with ProviderServer([Status(429, {"retry-after": "3600"})]) as server:
        failures = ask(server, calls_to("openai", 3))
        assert len(server.calls) == 1
    assert [failure.attempts for failure in failures if isinstance(failure, ProviderError)] == [1, 0, 0]
    assert all(isinstance(failure, ProviderError) and failure.kind == "rate_limit" for failure in failures)
    assert "empty body. The next try is 3600 seconds away" in str(failures[0])


@pytest.mark.parametrize("cookie", ["a=\xe9\xff; Path=/", "\xe4=\xf6", "plain=1; Path=/"])
def test_no_cookie_is_kept(cookie: str) -> None:
    with ProviderServer([Status(500, {"set-cookie": cookie}, "x"), Good()]) as server:
        [settled] = ask(server, calls_to("openai"))
        assert isinstance(settled, Reply)
        assert ["cookie" in call.headers for call in server.calls] == [False, False]


def test_nobody_at_the_address_or_no_address_is_a_network_error_of_every_attempt() -> None:
    policy = RetryPolicy(3, backoff_seconds=0.001)
    failed = ask_at({"grok": f"http://127.0.0.1:{closed_port()}/v1"}, "grok", policy)
    assert isinstance(failed, ProviderError)
    assert (failed.kind, failed.attempts, failed.status) == ("network", 3, None)
    assert str(failed) == "127.0.0.1 cannot be reached."
    nowhere = ask_at({"grok": f"https://{'a' * 70}.example"}, "grok", RetryPolicy(1))
    assert isinstance(nowhere, ProviderError)
    assert nowhere.kind == "network"


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
    refused = Status(429, {"retry-after-ms": "5"})
    with ProviderServer([Good(), refused, refused, refused, refused]) as server:
        settled = ask(server, calls_to("openai", 30), RetryPolicy(attempts=3), concurrency=8)
        assert len(server.calls) == 34
    assert all(isinstance(each, Reply) for each in settled)


def test_a_limit_with_nothing_left_lets_the_next_call_wait_and_a_refusal_halves_the_door() -> None:
    exhausted = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "300ms"}
    with ProviderServer([Status(200, exhausted, responses_body(1))]) as server:
        first, second = ask(server, calls_to("openai", 2))
        between = server.times[1] - server.times[0]
    assert (isinstance(first, Reply), isinstance(second, Reply)) == (True, True)
    assert between >= 0.28

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
            async with live({"grok": server.base_url("grok")}) as answers:
                first, second = (asyncio.create_task(settle(answers, call)) for call in calls_to("grok", 2))
                while not server.calls:
                    await asyncio.sleep(0)
                first.cancel()
                await asyncio.wait([first])
                assert first.cancelled()
                return await second

        assert isinstance(asyncio.run(ask_two()), Reply)
