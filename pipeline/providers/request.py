"""Requests to the five providers: who is asked for what, where, with which key, and how a paused turn goes on.

Each shape names the page of documentation that it follows, and when that was read.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from pipeline.errors import InputError, SettingsError
from pipeline.providers import provider_name
from pipeline.providers.options import OPTION_SUPPORT as OPTION_SUPPORT
from pipeline.providers.options import check_options, is_model_name, takes_temperature
from pipeline.providers.options import unsupported_options as unsupported_options
from pipeline.schema import Api, AskOptions, ProviderName

_RECENCY_DAYS = {"day": 1, "week": 7, "month": 31, "year": 366}
# Whatever instructions Perplexity gets are all that it gets, and its answers cite by these marks alone.
_ASK_FOR_MARKS = "Put the number of the search result that supports a statement in brackets behind it, such as [1]."


class ProviderRequest(NamedTuple):
    """One request: `path` goes below the base URL and begins with a slash, `headers` are those without the key.

    An empty `body` is not sent.
    """

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    method: str = "POST"


class Endpoint(NamedTuple):
    """Where an API is asked, and with which key; its text never shows the key.

    `key_variable` is where the key comes from. Without a key no header carries one.
    """

    name: str
    base_url: str
    key: str = ""
    key_variable: str = ""
    key_header: str = "authorization"

    def __repr__(self) -> str:
        """Everything but the key."""
        return f"Endpoint(name={self.name!r}, base_url={self.base_url!r}, key={'…' if self.key else ''!r})"

    @property
    def host(self) -> str:
        """The host that is asked, for a message."""
        return urlsplit(self.base_url).hostname or ""

    def url(self, request: ProviderRequest) -> str:
        """The URL of a request: its path below the base URL."""
        return f"{self.base_url.rstrip('/')}/{request.path.lstrip('/')}"

    def key_headers(self) -> dict[str, str]:
        """The header that carries the key; never a query parameter, which ends up in logs.

        Raises:
            SettingsError: the key holds white space or a letter that no header carries; the message does not show it.
        """
        if not self.key:
            return {}
        if not self.key.isascii() or not self.key.isprintable() or " " in self.key:
            raise SettingsError(
                f"The key in `{self.key_variable}` holds white space or a letter that no key has. Copy it again."
            )
        return {self.key_header: f"Bearer {self.key}" if self.key_header == "authorization" else self.key}


def _ask_responses(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """OpenAI's Responses API; it searches in any case, lists what it found, and keeps nothing.

    Source: https://developers.openai.com/api/docs/guides/tools-web-search, read 2026-11.
    """
    check_options("openai", options, model)
    tool = {
        "type": "web_search",
        **present(filters=present(allowed_domains=options.allowed_domains, blocked_domains=options.blocked_domains)),
        **_place_of_user(options),
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


def _ask_chat(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """Chat Completions of OpenAI and of servers compatible with it; only search models search.

    Source: https://developers.openai.com/api/docs/guides/tools-web-search, read 2026-11.
    """
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


def _ask_openrouter(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """Chat Completions of OpenRouter, which searches with its own server tool for every model.

    Source: https://openrouter.ai/docs/guides/features/server-tools/web-search, read 2026-11.
    """
    check_options("openai", options, model, "openrouter")
    parameters = {
        **present(allowed_domains=options.allowed_domains, excluded_domains=options.blocked_domains),
        **present(max_uses=options.max_uses),
        **_place_of_user(options),
    }
    body = {
        "model": model,
        "messages": messages(system, prompt),
        "tools": [{"type": "openrouter:web_search", **present(parameters=parameters)}],
        "max_tokens": options.max_tokens,
        **temperature("openai", model, options, "openrouter"),
    }
    return ProviderRequest("/chat/completions", {}, body)


def _ask_claude(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """Anthropic's Messages with the basic search tool: left alone, its successors pass results through code, uncited.

    Source: https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool, read 2026-11.
    """
    check_options("claude", options, model)
    tool = {
        "type": "web_search_20250305",
        "name": "web_search",
        **present(max_uses=options.max_uses),
        **present(allowed_domains=options.allowed_domains, blocked_domains=options.blocked_domains),
        **_place_of_user(options),
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


def _ask_claude_newer(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """Anthropic's Messages with the newer search tool, which the model itself may call and no code of its own.

    No recorded answer shows whether it cites then.

    Source: https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools, read 2026-11.
    """
    request = _ask_claude(model, system, prompt, options)
    [tool] = request.body["tools"]
    newer = {**tool, "type": "web_search_20260318", "allowed_callers": ["direct"]}
    return request._replace(body={**request.body, "tools": [newer]})


def ask_gemini(
    model: str, system: str, prompt: str, options: AskOptions, now: datetime | None = None
) -> ProviderRequest:
    """Google's generateContent with Google Search; `now` ends the span of time that `recency` asks for.

    Source: https://ai.google.dev/gemini-api/docs/google-search, read 2026-11.
    """
    check_options("gemini", options, model)
    generation = {"maxOutputTokens": options.max_tokens, **temperature("gemini", model, options)}
    body = {
        **present(systemInstruction={"parts": [{"text": system}]} if system else None),
        "contents": [{"role": "user", "parts": [{"text": prompt}]}],
        "tools": [{"google_search": present(timeRangeFilter=_time_range(options.recency, now or datetime.now(UTC)))}],
        "generationConfig": generation,
    }
    name = quote(model.removeprefix("models/"), safe="")
    return ProviderRequest(f"/v1beta/models/{name}:generateContent", {}, body)


def _ask_interactions(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """Google's Interactions API with Google Search, which keeps nothing; a search there has no span of time.

    Source: https://ai.google.dev/api/interactions-api (`CreateModelInteractionParams`), read 2026-11.
    """
    check_options("gemini", options, model, "interactions")
    generation = {"max_output_tokens": options.max_tokens, **temperature("gemini", model, options, "interactions")}
    body = {
        "model": model.removeprefix("models/"),
        **present(system_instruction=system),
        "input": prompt,
        "tools": [{"type": "google_search"}],
        "generation_config": generation,
        "store": False,
    }
    return ProviderRequest("/v1beta/interactions", {}, body)


def _ask_grok(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """The Responses API of xAI, which keeps nothing.

    Source: https://docs.x.ai/docs/guides/tools/search-tools, read 2026-11.
    """
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


def _ask_perplexity(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """Perplexity's Agent API, asked for a model, `maker/model`, or for a preset.

    A system prompt takes the place of the preset's own, so it is made to ask for the marks on which citations rest.

    Source: https://docs.perplexity.ai/docs/agent-api/prompt-guide, read 2026-11.
    """
    check_options("perplexity", options, model)
    domains = [*options.allowed_domains, *(f"-{domain}" for domain in options.blocked_domains)]
    filters = present(search_domain_filter=domains, search_recency_filter=options.recency)
    country = {"country": options.country} if options.country else None
    body = {
        "model" if is_model_name(model) else "preset": model,
        "input": prompt,
        **present(instructions=f"{system}\n\n{_ASK_FOR_MARKS}" if system else ""),
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


def _place_of_user(options: AskOptions) -> dict[str, Any]:
    """The user's country as OpenAI and Claude want it; nothing where none is given."""
    return {"user_location": {"type": "approximate", "country": options.country}} if options.country else {}


def temperature(provider: ProviderName, model: str, options: AskOptions, api: Api = "responses") -> dict[str, float]:
    """The temperature where one is given and the model takes one."""
    if options.temperature is None or not takes_temperature(provider, model, api):
        return {}
    return {"temperature": options.temperature}


def _time_range(recency: str, now: datetime) -> dict[str, str] | None:
    """The span of time that ends now, in UTC; None for any age."""
    if not recency:
        return None
    start = now - timedelta(days=_RECENCY_DAYS[recency])
    return {"startTime": f"{start:%Y-%m-%dT%H:%M:%SZ}", "endTime": f"{now:%Y-%m-%dT%H:%M:%SZ}"}


RequestBuilder = Callable[[str, str, str, AskOptions], ProviderRequest]
"""From model, system prompt, user prompt and options to the request."""

KEY_VARIABLES: dict[ProviderName, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "claude": ("ANTHROPIC_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "grok": ("XAI_API_KEY",),
    "perplexity": ("PERPLEXITY_API_KEY",),
}

_KEY_HEADERS: dict[ProviderName, str] = {"claude": "x-api-key", "gemini": "x-goog-api-key"}

BASE_URLS: dict[ProviderName, str] = {
    "openai": "https://api.openai.com/v1",
    "claude": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
    "grok": "https://api.x.ai/v1",
    "perplexity": "https://api.perplexity.ai",
}

# None of these had a date of retirement in November 2026. Perplexity's is a preset, the successor of `sonar`.
DEFAULT_MODELS: dict[ProviderName, str] = {
    "openai": "gpt-5.6",
    "claude": "claude-sonnet-5",
    "gemini": "gemini-3.5-flash",
    "grok": "grok-4.3",
    "perplexity": "fast",
}
DEFAULT_CHAT_MODELS: dict[Api, str] = {"chat": "gpt-5-search-api", "openrouter": "openai/gpt-5.6"}

REQUESTS: dict[ProviderName, RequestBuilder] = {
    "openai": _ask_responses,
    "claude": _ask_claude,
    "gemini": ask_gemini,
    "grok": _ask_grok,
    "perplexity": _ask_perplexity,
}
_OTHER_REQUESTS: dict[tuple[ProviderName, Api], RequestBuilder] = {
    ("openai", "chat"): _ask_chat,
    ("openai", "openrouter"): _ask_openrouter,
    ("gemini", "interactions"): _ask_interactions,
    ("claude", "web_search_20260318"): _ask_claude_newer,
}


def request_builder(provider: ProviderName, api: Api = "responses") -> RequestBuilder:
    """What builds the provider's requests; an `api` that is none of its other ones is its usual one."""
    return _OTHER_REQUESTS.get((provider, api), REQUESTS[provider])


def default_model(provider: ProviderName, api: Api = "responses") -> str:
    """The model to ask where nobody named one: one that searches with this API."""
    if provider == "openai" and api in DEFAULT_CHAT_MODELS:
        return DEFAULT_CHAT_MODELS[api]
    return DEFAULT_MODELS[provider]


def continue_request(provider: ProviderName, request: ProviderRequest, body: Any) -> ProviderRequest | None:
    """The request that goes on with a turn that Claude paused: its content appended unchanged; None where none is.

    Source: https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools (`pause_turn`).
    """
    paused = isinstance(body, dict) and body.get("stop_reason") == "pause_turn" and body.get("content")
    if provider != "claude" or not paused:
        return None
    so_far = [*request.body["messages"], {"role": "assistant", "content": body["content"]}]
    return request._replace(body={**request.body, "messages": so_far})


def provider_endpoint(provider: ProviderName, base_url: str, key: str, key_variable: str = "") -> Endpoint:
    """The provider at this address; `key_variable` is where the key comes from, empty for the provider's own."""
    variable = key_variable or KEY_VARIABLES[provider][0]
    return Endpoint(provider, base_url, key, variable, _KEY_HEADERS.get(provider, "authorization"))


def read_base_urls(configured: Mapping[str, str]) -> dict[ProviderName, str]:
    """Where each provider is reached: the setting `base_urls` over the defaults, without a slash at the end.

    Raises:
        SettingsError: a name is no provider's, or a URL is none that a key may be sent to.
    """
    try:
        given = {provider_name(name): read_base_url(name, url) for name, url in configured.items()}
    except InputError as error:
        raise SettingsError(f"`[base_urls]` in `citejury.toml`: {error}") from error
    return {**BASE_URLS, **given}


def read_base_url(name: str, url: str) -> str:
    """The base URL without a slash at the end.

    Raises:
        SettingsError: it is not https (http only on this machine or inside a network), or holds more than a path.
    """
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        parts, host = urlsplit(""), ""
    if not host or parts.username or parts.password or parts.query or parts.fragment:
        raise SettingsError(f"The base URL of {name} is not of the form https://host/path. Mend it.")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_near(host)):
        raise SettingsError(
            f"The base URL of {name} would send the key unencrypted to {host!r}. Give one of the form https://host/path."
        )
    return url.strip().rstrip("/")


def is_near(host: str) -> bool:
    """Whether the host is this machine, a private address, or a name without dots, as in a network of containers."""
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host
