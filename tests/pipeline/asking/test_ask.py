import gzip
import json
import logging
import traceback
from typing import Any

import pytest

from pipeline.asking.questions import Reply
from pipeline.core.errors import ProviderError, SettingsError
from pipeline.core.prompts import SYSTEM_PROMPT
from pipeline.core.schema import PROVIDERS, AskOptions, ProviderName
from pipeline.providers import get_provider, provider_name, read_payload
from pipeline.providers.http.client import ApiClient, RetryPolicy
from tests.support.ask_bench import KEY, SOON, answered, ask, ask_at, ask_one, calls_to
from tests.support.places import NO_SHARED, SHARED
from tests.support.provider_server import (
    Good,
    HalfBody,
    ProviderServer,
    Redirect,
    Status,
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
            system = "" if call.provider == "perplexity" else SYSTEM_PROMPT
            request = get_provider(call.provider).api().request(call.model, system, call.prompt, AskOptions())
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


def test_a_provider_without_endpoint_names_the_variable_of_its_key() -> None:
    failed = ask_at({}, "gemini")
    assert isinstance(failed, ProviderError)
    assert (failed.kind, failed.attempts, "GEMINI_API_KEY" in str(failed)) == ("missing_key", 0, True)


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


def test_a_proxy_of_the_environment_is_asked_for_the_world_and_not_for_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
