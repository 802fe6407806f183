import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.core.errors import InputError
from pipeline.core.schema import AskOptions, ProviderName
from pipeline.providers import every_provider, get_provider
from pipeline.providers.gemini import ask_gemini
from pipeline.providers.http.request import ProviderRequest
from tests.support.places import NO_SHARED, SHARED, cases

CASES = cases("requests")
RECORDINGS = SHARED / "recordings"
PLAIN = AskOptions()
PROMPT = '{note_text} "=cmd" 🚀 ويكي\n{0}'
USER = {"role": "user", "content": PROMPT}
TARGETS = [(provider.name, api.name) for provider in every_provider() for api in provider.apis]
# Of each option a value that every provider with a place for it takes, and a model that takes a temperature.
VALUES: dict[str, Any] = {
    "allowed_domains": ("who.int", "bund.de"),
    "blocked_domains": ("example.com",),
    "country": "JP",
    "recency": "week",
    "max_uses": 3,
    "temperature": 0.2,
    "max_tokens": 2048,
}


def build(
    provider: ProviderName, model: str = "", options: AskOptions = PLAIN, api: str = "", system: str = "Cite."
) -> ProviderRequest:
    spoken = get_provider(provider).api(api)
    return spoken.request(model or spoken.model, system, PROMPT, options)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_request_is_this_as_a_whole(case: dict[str, Any]) -> None:
    body = json.loads(json.dumps(case["body"]).replace('"PROMPT"', json.dumps(PROMPT)))
    request = build(case["provider"], case["model"], AskOptions(**case["options"]), case["api"], case["system"])
    assert request == ProviderRequest(case["path"], case["headers"], body)


def test_gemini_gets_recency_as_a_span_of_time_and_the_temperature() -> None:
    options = AskOptions(recency="week", temperature=0.0, max_tokens=2048)
    span = {"startTime": "2026-11-14T12:00:05Z", "endTime": "2026-11-21T12:00:05Z"}
    now = datetime(2026, 11, 21, 12, 0, 5, tzinfo=UTC)
    assert ask_gemini("models/gemini-3.5-flash", "", PROMPT, options, now) == ProviderRequest(
        "/v1beta/models/gemini-3.5-flash:generateContent",
        {},
        {
            "contents": [{"role": "user", "parts": [{"text": PROMPT}]}],
            "tools": [{"google_search": {"timeRangeFilter": span}}],
            "generationConfig": {"maxOutputTokens": 2048, "temperature": 0.0},
        },
    )


def at(body: Any, place: str) -> Any:
    """What stands in the body at a place such as `tools[0].filters.allowed_domains`; None where there is none."""
    for step in re.findall(r"[^.\[\]]+", place):
        try:
            body = body[int(step) if step.isdigit() else step]
        except (KeyError, IndexError):
            return None
    return body


@pytest.mark.parametrize(("provider", "api"), TARGETS)
@pytest.mark.parametrize("option", list(AskOptions.model_fields))
def test_the_table_of_options_says_what_is_sent(provider: ProviderName, api: str, option: str) -> None:
    model = {"openai": "gpt-4.1", "claude": "claude-sonnet-4-6"}.get(provider, "")
    options = AskOptions(**{option: VALUES[option]})
    body, plain = build(provider, model, options, api).body, build(provider, model, PLAIN, api).body
    place = get_provider(provider).api(api).options.get(option)
    assert at(body, place) not in (None, at(plain, place)) if place else body == plain
    assert get_provider(provider).api(api).unsupported(options, model or "any") == (() if place else (option,))


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason=NO_SHARED)
@pytest.mark.parametrize(
    ("recording", "provider", "options"),
    [
        ("openai/responses_4omini_weather_with_sources", "openai", "country"),
        ("openai/responses_answer_date_only", "openai", "temperature"),
        ("openai/responses_incomplete_max_tokens_empty", "openai", "max_tokens"),
        ("anthropic/followup_turn_citation_without_search_block", "claude", "max_uses max_tokens"),
        ("gemini/max_tokens_no_parts", "gemini", "temperature max_tokens"),
        ("perplexity/agent_domain_filter_10_results_2_refs", "perplexity", "allowed_domains recency max_tokens"),
        ("anthropic/sonnet5_cran_date_one_citation", "claude", ""),
        ("gemini/flash35_ruby_version_6_chunks", "gemini", ""),
        ("xai/responses_grok43_ruby_3_annotations", "grok", ""),
    ],
)
def test_options_and_the_search_tool_are_those_of_requests_that_were_answered(
    recording: str, provider: ProviderName, options: str
) -> None:
    sent = json.loads((RECORDINGS / f"{recording}.meta.json").read_text(encoding="utf-8"))["request_body"]
    api = get_provider(provider).api()
    assert [option for option in options.split() if at(sent, api.options[option]) is None] == []
    assert options or build(provider).body["tools"] == sent["tools"]


def test_every_provider_names_options_that_there_are_and_leaves_out_a_temperature_not_taken() -> None:
    for provider in every_provider():
        assert all({"max_tokens"} <= set(api.options) <= set(AskOptions.model_fields) for api in provider.apis)
        names = tuple(api.name for api in provider.apis)
        setting = provider.api_setting
        assert (setting and (setting.choices, setting.default)) == ((names, names[0]) if names[1:] else None)
    assert set(AskOptions.model_fields) == set(VALUES)
    assert len([provider for provider in every_provider() if provider.continue_turn]) == 1  # see `continue_turn`
    options = AskOptions(temperature=0.2)
    for provider in ("openai", "claude", "perplexity"):
        assert build(provider, options=options) == build(provider)
        api = get_provider(provider).api()
        assert api.unsupported(options, api.model) == ("temperature",)


@pytest.mark.parametrize(
    ("provider", "models", "takes"),
    [
        ("openai", "gpt-4.1-2025-04-14 deepseek/deepseek-chat", True),
        ("openai", "gpt-5.6-sol gpt-12 o4-mini gpt-4o-search-preview openai/gpt-5.6 anthropic/claude-opus-4.8", False),
        ("claude", "claude-haiku-4-5-20251001 claude-opus-4-20250514", True),
        ("claude", "claude-opus-4-7 claude-sonnet-5 claude-opus-10", False),
        ("gemini", "gemini-3.5-flash", True),
        ("grok", "grok-4.3", True),
        ("perplexity", "fast", False),
    ],
)
def test_a_temperature_goes_only_to_models_that_take_one(provider: ProviderName, models: str, takes: bool) -> None:
    assert {get_provider(provider).api().takes_temperature(model) for model in models.split()} == {takes}


@pytest.mark.parametrize(("provider", "api"), [target for target in TARGETS if target not in [("openai", "responses")]])
def test_two_lists_of_domains_are_refused_where_the_provider_refuses_them(provider: ProviderName, api: str) -> None:
    options = AskOptions(allowed_domains=("who.int",), blocked_domains=("example.com",))
    if "allowed_domains" not in get_provider(provider).api(api).options:
        assert build(provider, options=options, api=api) == build(provider, api=api)
        return
    with pytest.raises(InputError, match="not both"):
        build(provider, options=options, api=api)


@pytest.mark.parametrize(("provider", "most"), [("openai", 100), ("grok", 5), ("perplexity", 20)])
def test_more_domains_than_the_provider_takes_are_refused(provider: ProviderName, most: int) -> None:
    domains = tuple(f"site{number}.example" for number in range(most + 1))
    assert build(provider, options=AskOptions(allowed_domains=domains[:most]))
    with pytest.raises(InputError, match=f"at most {most} domains; {most + 1} were given"):
        build(provider, options=AskOptions(allowed_domains=domains))


@pytest.mark.parametrize(
    ("provider", "model", "options", "message"),
    [
        ("perplexity", "", AskOptions(max_uses=11), "at most 10 searches; 11"),
        ("claude", "claude-sonnet-4-6", AskOptions(temperature=1.5), r"at most 1; 1\.5"),
        ("perplexity", "sonar-pro", PLAIN, "retired.*'low'"),
        ("perplexity", "mediun", PLAIN, "Did you mean 'medium'"),
        ("perplexity", "gpt-5", PLAIN, "maker"),
    ],
)
def test_what_providers_lack_is_refused(provider: ProviderName, model: str, options: AskOptions, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build(provider, model, options)


def test_a_paused_turn_of_claude_alone_goes_on_with_its_content_unchanged() -> None:
    request = build("claude")
    content = [{"type": "text", "text": "So far", "citations": None}, {"type": "server_tool_use", "id": "s1"}]
    paused = {"stop_reason": "pause_turn", "content": content}
    following = get_provider("claude").next_request(request, paused)
    assert following is not None
    assert following.body == {**request.body, "messages": [USER, {"role": "assistant", "content": content}]}
    assert (following[:2], request.body["messages"]) == (request[:2], [USER])
    for body in ({"stop_reason": "end_turn", "content": [{}]}, {"stop_reason": "pause_turn", "content": []}, [], "x"):
        assert get_provider("claude").next_request(request, body) is None
    assert get_provider("openai").next_request(build("openai"), paused) is None
