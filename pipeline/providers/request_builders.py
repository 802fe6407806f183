"""How one question is put to each API: path, headers and body. Nothing here touches a network or a file.

Web search is on in every request. Tests assert the whole bodies; a recorded answer would not notice a missing field.
Source: the providers' API references, as of November 2026; `User-Agent`, `Content-Type` and the key are the sender's.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote

from pipeline.providers.options import OpenAIApi, check_options, is_model_name, takes_temperature
from pipeline.schema import AskOptions, ProviderName

RECENCY_DAYS = {"day": 1, "week": 7, "month": 31, "year": 366}


class ProviderRequest(NamedTuple):
    """One request: `path` goes below the base URL and begins with a slash, `headers` are those without the key."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


def ask_responses(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """OpenAI's Responses API; it searches in any case, lists what it found, and keeps nothing."""
    check_options("openai", options, model)
    tool = {
        "type": "web_search",
        **present(filters=present(allowed_domains=options.allowed_domains, blocked_domains=options.blocked_domains)),
        **place_of_user(options),
    }
    body = {
        "model": model,
        "input": messages(system, prompt),
        "tools": [tool],
        "tool_choice": {"type": "web_search"},
        "include": ["web_search_call.action.sources"],
        "max_output_tokens": options.max_tokens,
        **present(max_tool_calls=options.max_uses),
        **temperature("openai", model, options),
        "store": False,
    }
    return ProviderRequest("/responses", {}, body)


def ask_chat(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """Chat Completions of OpenAI and of servers compatible with it; only search models search."""
    check_options("openai", options, model, "chat")
    place = {"type": "approximate", "approximate": {"country": options.country}} if options.country else None
    body = {
        "model": model,
        "messages": messages(system, prompt),
        "web_search_options": present(user_location=place),
        "max_completion_tokens": options.max_tokens,
        **temperature("openai", model, options, "chat"),
    }
    return ProviderRequest("/chat/completions", {}, body)


def ask_openrouter(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """Chat Completions of OpenRouter, which searches with its own server tool for every model.

    Source: https://openrouter.ai/docs/guides/features/server-tools/web-search.
    """
    check_options("openai", options, model, "openrouter")
    parameters = {
        **present(allowed_domains=options.allowed_domains, excluded_domains=options.blocked_domains),
        **present(max_uses=options.max_uses),
        **place_of_user(options),
    }
    body = {
        "model": model,
        "messages": messages(system, prompt),
        "tools": [{"type": "openrouter:web_search", **present(parameters=parameters)}],
        "max_tokens": options.max_tokens,
        **temperature("openai", model, options, "openrouter"),
    }
    return ProviderRequest("/chat/completions", {}, body)


def ask_claude(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """Anthropic's Messages. The search tool is pinned: its successors pass results through code, without citations."""
    check_options("claude", options, model)
    tool = {
        "type": "web_search_20250305",
        "name": "web_search",
        **present(max_uses=options.max_uses),
        **present(allowed_domains=options.allowed_domains, blocked_domains=options.blocked_domains),
        **place_of_user(options),
    }
    body = {
        "model": model,
        "max_tokens": options.max_tokens,
        **present(system=system),
        "messages": messages("", prompt),
        "tools": [tool],
        **temperature("claude", model, options),
    }
    return ProviderRequest("/v1/messages", {"anthropic-version": "2023-06-01"}, body)


def ask_gemini(
    model: str, system: str, prompt: str, options: AskOptions, now: datetime | None = None
) -> ProviderRequest:
    """Google's generateContent with Google Search; `now` ends the span of time that `recency` asks for."""
    check_options("gemini", options, model)
    generation = {"maxOutputTokens": options.max_tokens, **temperature("gemini", model, options)}
    body = {
        **present(systemInstruction={"parts": [{"text": system}]} if system else None),
        "contents": [{"role": "user", "parts": [{"text": prompt}]}],
        "tools": [{"google_search": present(timeRangeFilter=time_range(options.recency, now or datetime.now(UTC)))}],
        "generationConfig": generation,
    }
    name = quote(model.removeprefix("models/"), safe="")
    return ProviderRequest(f"/v1beta/models/{name}:generateContent", {}, body)


def ask_grok(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """The Responses API of xAI, which keeps nothing."""
    check_options("grok", options, model)
    filters = present(allowed_domains=options.allowed_domains, excluded_domains=options.blocked_domains)
    body = {
        "model": model,
        "input": messages(system, prompt),
        "tools": [{"type": "web_search", **present(filters=filters)}],
        "max_output_tokens": options.max_tokens,
        **temperature("grok", model, options),
        "store": False,
    }
    return ProviderRequest("/responses", {}, body)


def ask_perplexity(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """Perplexity's Agent API, asked for a model, `maker/model`, or for a preset."""
    check_options("perplexity", options, model)
    domains = [*options.allowed_domains, *(f"-{domain}" for domain in options.blocked_domains)]
    filters = present(search_domain_filter=domains, search_recency_filter=options.recency)
    country = {"country": options.country} if options.country else None
    body = {
        "model" if is_model_name(model) else "preset": model,
        "input": prompt,
        **present(instructions=system),
        "max_output_tokens": options.max_tokens,
        **present(max_steps=options.max_uses),
        "tools": [{"type": "web_search", **present(filters=filters, user_location=country)}],
        "tool_choice": "required",
    }
    return ProviderRequest("/v1/agent", {}, body)


def present(**fields: Any) -> dict[str, Any]:
    """The fields that hold something, tuples as lists; none that is None, empty text or an empty collection."""
    kept = {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}
    return {name: value for name, value in kept.items() if value is not None and value not in ("", [], {})}


def messages(system: str, prompt: str) -> list[dict[str, str]]:
    """The two prompts as messages; no message for an empty system prompt."""
    first = [{"role": "system", "content": system}] if system else []
    return [*first, {"role": "user", "content": prompt}]


def place_of_user(options: AskOptions) -> dict[str, Any]:
    """The user's country as OpenAI and Claude want it; nothing where none is given."""
    return {"user_location": {"type": "approximate", "country": options.country}} if options.country else {}


def temperature(
    provider: ProviderName, model: str, options: AskOptions, openai_api: OpenAIApi = "responses"
) -> dict[str, float]:
    """The temperature where one is given and the model takes one."""
    if options.temperature is None or not takes_temperature(provider, model, openai_api):
        return {}
    return {"temperature": options.temperature}


def time_range(recency: str, now: datetime) -> dict[str, str] | None:
    """The span of time that ends now, in UTC; None for any age."""
    if not recency:
        return None
    start = now - timedelta(days=RECENCY_DAYS[recency])
    return {"startTime": f"{start:%Y-%m-%dT%H:%M:%SZ}", "endTime": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
