"""The whole body that goes out to each provider, with and without each option, and what is refused before it does."""

from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.core.errors import InputError
from pipeline.core.schema import AskOptions, ProviderName
from pipeline.providers import every_provider, get_provider
from pipeline.providers.gemini import ask_gemini
from pipeline.providers.http.request import ProviderRequest

PLAIN = AskOptions()
PROMPT = '{note_text} "=cmd" 🚀 ويكي\n{0}'
USER = {"role": "user", "content": PROMPT}
SYSTEM = {"role": "system", "content": "Cite."}
JAPAN = {"type": "approximate", "country": "JP"}
MARKS = "Put the number of the search result that supports a statement in brackets behind it, such as [1]."
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


def test_openai_is_asked_to_search_to_list_its_sources_and_to_keep_nothing() -> None:
    assert build("openai", "gpt-5.6") == ProviderRequest(
        "/responses",
        {},
        {
            "model": "gpt-5.6",
            "input": [SYSTEM, USER],
            "tools": [{"type": "web_search"}],
            "tool_choice": {"type": "web_search"},
            "include": ["web_search_call.action.sources"],
            "max_output_tokens": 4096,
            "store": False,
        },
    )


def test_openai_gets_every_option_but_recency() -> None:
    body = build("openai", "gpt-4.1", AskOptions(**VALUES)).body
    assert body == {
        "model": "gpt-4.1",
        "input": [SYSTEM, USER],
        "tools": [
            {
                "type": "web_search",
                "filters": {"allowed_domains": ["who.int", "bund.de"], "blocked_domains": ["example.com"]},
                "user_location": JAPAN,
            }
        ],
        "tool_choice": {"type": "web_search"},
        "include": ["web_search_call.action.sources"],
        "max_output_tokens": 2048,
        "max_tool_calls": 3,
        "temperature": 0.2,
        "store": False,
    }


def test_a_compatible_server_is_asked_by_chat_completions() -> None:
    request = build("openai", "gpt-5-search-api", AskOptions(country="JP", temperature=0.0), "chat")
    assert request == ProviderRequest(
        "/chat/completions",
        {},
        {
            "model": "gpt-5-search-api",
            "messages": [SYSTEM, USER],
            "web_search_options": {"user_location": {"type": "approximate", "approximate": {"country": "JP"}}},
            "max_completion_tokens": 4096,
        },
    )
    assert build("openai", "llama-4", AskOptions(temperature=0.0), "chat").body == {
        "model": "llama-4",
        "messages": [SYSTEM, USER],
        "web_search_options": {},
        "max_completion_tokens": 4096,
        "temperature": 0.0,
    }


def test_openrouter_is_asked_with_its_own_server_tool() -> None:
    body = {"model": "deepseek/deepseek-chat", "messages": [SYSTEM, USER], "max_tokens": 4096}
    plain = build("openai", "deepseek/deepseek-chat", PLAIN, "openrouter")
    assert plain == ProviderRequest("/chat/completions", {}, {**body, "tools": [{"type": "openrouter:web_search"}]})
    options = AskOptions(blocked_domains=("example.com",), country="JP", max_uses=3, temperature=0.2)
    parameters = {"excluded_domains": ["example.com"], "max_uses": 3, "user_location": JAPAN}
    assert build("openai", "deepseek/deepseek-chat", options, "openrouter").body == {
        **body,
        "tools": [{"type": "openrouter:web_search", "parameters": parameters}],
        "temperature": 0.2,
    }


def test_claude_is_asked_with_the_pinned_search_tool() -> None:
    assert build("claude", "claude-sonnet-5") == ProviderRequest(
        "/v1/messages",
        {"anthropic-version": "2023-06-01"},
        {
            "model": "claude-sonnet-5",
            "max_tokens": 4096,
            "system": "Cite.",
            "messages": [USER],
            "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        },
    )


@pytest.mark.parametrize("domains", ["allowed_domains", "blocked_domains"])
def test_claude_gets_every_option_but_recency(domains: str) -> None:
    options = AskOptions(country="JP", max_uses=3, temperature=0.2, max_tokens=2048, **{domains: ("who.int",)})
    tool = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3, domains: ["who.int"]}
    assert build("claude", "claude-sonnet-4-6", options).body == {
        "model": "claude-sonnet-4-6",
        "max_tokens": 2048,
        "system": "Cite.",
        "messages": [USER],
        "tools": [{**tool, "user_location": JAPAN}],
        "temperature": 0.2,
    }


def test_claude_is_given_the_newer_search_tool_to_call_itself() -> None:
    options = AskOptions(country="JP", max_uses=3, allowed_domains=("who.int",))
    assert build("claude", "claude-sonnet-5", options, "web_search_20260318") == ProviderRequest(
        "/v1/messages",
        {"anthropic-version": "2023-06-01"},
        {
            "model": "claude-sonnet-5",
            "max_tokens": 4096,
            "system": "Cite.",
            "messages": [USER],
            "tools": [
                {
                    "type": "web_search_20260318",
                    "name": "web_search",
                    "max_uses": 3,
                    "allowed_domains": ["who.int"],
                    "user_location": JAPAN,
                    "allowed_callers": ["direct"],
                }
            ],
        },
    )


def test_gemini_is_asked_for_an_interaction_with_google_search_that_is_not_kept() -> None:
    body = {"model": "gemini-3.5-flash", "input": PROMPT, "tools": [{"type": "google_search"}], "store": False}
    plain = {**body, "system_instruction": "Cite.", "generation_config": {"max_output_tokens": 4096}}
    path = "/v1beta/interactions"
    assert build("gemini", "gemini-3.5-flash", PLAIN, "interactions") == ProviderRequest(path, {}, plain)
    options = AskOptions(temperature=0.0, max_tokens=2048, recency="week", country="JP")
    warm = {**body, "generation_config": {"max_output_tokens": 2048, "temperature": 0.0}}
    request = build("gemini", "models/gemini-3.5-flash", options, "interactions", system="")
    assert request == ProviderRequest(path, {}, warm)


def test_gemini_is_asked_with_google_search() -> None:
    assert build("gemini", "gemini-3.5-flash") == ProviderRequest(
        "/v1beta/models/gemini-3.5-flash:generateContent",
        {},
        {
            "systemInstruction": {"parts": [{"text": "Cite."}]},
            "contents": [{"role": "user", "parts": [{"text": PROMPT}]}],
            "tools": [{"google_search": {}}],
            "generationConfig": {"maxOutputTokens": 4096},
        },
    )


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


def test_a_model_name_cannot_leave_geminis_path() -> None:
    path = build("gemini", "../../v1/files?key=1#x").path
    assert path == "/v1beta/models/..%2F..%2Fv1%2Ffiles%3Fkey%3D1%23x:generateContent"


def test_grok_is_asked_to_search_and_to_keep_nothing() -> None:
    body = {"model": "grok-4.3", "input": [SYSTEM, USER], "store": False}
    plain = {**body, "tools": [{"type": "web_search"}], "max_output_tokens": 4096}
    assert build("grok", "grok-4.3") == ProviderRequest("/responses", {}, plain)
    options = AskOptions(blocked_domains=("example.com",), temperature=0.2, max_tokens=2048)
    assert build("grok", "grok-4.3", options).body == {
        **body,
        "tools": [{"type": "web_search", "filters": {"excluded_domains": ["example.com"]}}],
        "max_output_tokens": 2048,
        "temperature": 0.2,
    }


def test_perplexity_is_asked_by_preset_made_to_search_and_told_to_put_marks_where_it_is_told_anything() -> None:
    body = {
        "preset": "fast",
        "input": PROMPT,
        "max_output_tokens": 4096,
        "tools": [{"type": "web_search"}],
        "tool_choice": "required",
    }
    assert build("perplexity", "fast", system="") == ProviderRequest("/v1/agent", {}, body)
    told = {**body, "instructions": f"Cite.\n\n{MARKS}"}
    assert build("perplexity", "fast") == ProviderRequest("/v1/agent", {}, told)


def test_perplexity_gets_blocked_domains_with_a_minus_and_every_option_but_temperature() -> None:
    options = AskOptions(blocked_domains=("example.com",), country="JP", recency="year", max_uses=3, max_tokens=2048)
    filters = {"search_domain_filter": ["-example.com"], "search_recency_filter": "year"}
    assert build("perplexity", "perplexity/sonar", options).body == {
        "model": "perplexity/sonar",
        "input": PROMPT,
        "instructions": f"Cite.\n\n{MARKS}",
        "max_output_tokens": 2048,
        "max_steps": 3,
        "tools": [{"type": "web_search", "filters": filters, "user_location": {"country": "JP"}}],
        "tool_choice": "required",
    }


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


def test_values_outside_of_one_providers_range_are_refused() -> None:
    with pytest.raises(InputError, match="at most 10 searches; 11"):
        build("perplexity", options=AskOptions(max_uses=11))
    with pytest.raises(InputError, match=r"at most 1; 1\.5"):
        build("claude", "claude-sonnet-4-6", AskOptions(temperature=1.5))


@pytest.mark.parametrize(
    ("model", "message"), [("sonar-pro", "retired.*'low'"), ("mediun", "Did you mean 'medium'"), ("gpt-5", "maker")]
)
def test_a_preset_that_perplexity_does_not_have_is_refused(model: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build("perplexity", model)


def test_a_paused_turn_of_claude_goes_on_with_its_content_unchanged() -> None:
    request = build("claude")
    content = [{"type": "text", "text": "So far", "citations": None}, {"type": "server_tool_use", "id": "s1"}]
    following = get_provider("claude").next_request(request, {"stop_reason": "pause_turn", "content": content})
    assert following is not None
    assert following.body == {**request.body, "messages": [USER, {"role": "assistant", "content": content}]}
    assert following[:2] == request[:2]
    assert request.body["messages"] == [USER]


@pytest.mark.parametrize(
    "body", [{"stop_reason": "end_turn", "content": [{}]}, {"stop_reason": "pause_turn", "content": []}, [], "x", None]
)
def test_an_answer_that_is_complete_is_not_continued(body: Any) -> None:
    assert get_provider("claude").next_request(build("claude"), body) is None


def test_only_claude_is_continued() -> None:
    body = {"stop_reason": "pause_turn", "content": [{"type": "text", "text": "x"}]}
    assert get_provider("openai").next_request(build("openai"), body) is None
