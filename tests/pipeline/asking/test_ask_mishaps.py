"""Responses that a client library trips over: each must end as an answer or an error, never the run."""

import asyncio
import json
from typing import Any

import pytest

from pipeline.asking.questions import Reply
from pipeline.core.errors import ProviderError
from pipeline.providers.http.client import RetryPolicy
from tests.support.ask_bench import ask, ask_one, calls_to, live, settle
from tests.support.provider_server import Good, ProviderServer, Redirect, Status, claude_body


@pytest.mark.parametrize(
    "location",
    ["https://xn--/", "https://xn--zzzz999999.example/", "http://[::1", "https://é\xff.example/", "\x7f", "http://"],
)
def test_a_redirect_to_what_is_no_address_is_refused_at_once(location: str) -> None:
    settled, requests = ask_one(Redirect(location))
    assert isinstance(settled, ProviderError)
    assert (settled.kind, settled.status, requests) == ("bad_response", 307, 1)
    assert "redirects to " in str(settled)


@pytest.mark.parametrize("cookie", ["a=\xe9\xff; Path=/", "\xe4=\xf6", "plain=1; Path=/"])
def test_no_cookie_is_kept(cookie: str) -> None:
    with ProviderServer([Status(500, {"set-cookie": cookie}, "x"), Good()]) as server:
        [settled] = ask(server, calls_to("openai"))
        assert isinstance(settled, Reply)
        assert ["cookie" in call.headers for call in server.calls] == [False, False]


def test_a_paused_turn_with_a_number_that_json_cannot_carry_goes_on() -> None:
    body = json.dumps(claude_body(1, "pause_turn")).replace('"A"', "1e999")
    reply, requests = ask_one(Status(200, {}, body), provider="claude")
    assert isinstance(reply, Reply)
    assert requests == 2


def test_a_host_that_cannot_be_looked_up_is_an_error_of_the_call() -> None:
    url = f"https://{'a' * 70}.example"

    async def ask_it() -> Any:
        async with live({"grok": url}, RetryPolicy(1)) as answers:
            return await settle(answers, calls_to("grok")[0])

    failed = asyncio.run(ask_it())
    assert isinstance(failed, ProviderError)
    assert failed.kind == "network"
