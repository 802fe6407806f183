"""Requests to the five providers: who is asked for what, where, with which key, and how a paused turn goes on."""

from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from pipeline.errors import SettingsError
from pipeline.providers import provider_name
from pipeline.providers import request_builders as build
from pipeline.providers.options import OPTION_SUPPORT as OPTION_SUPPORT
from pipeline.providers.options import OpenAIApi
from pipeline.providers.options import unsupported_options as unsupported_options
from pipeline.providers.request_builders import ProviderRequest as ProviderRequest
from pipeline.schema import AskOptions, ProviderName

RequestBuilder = Callable[[str, str, str, AskOptions], ProviderRequest]
"""From model, system prompt, user prompt and options to the request."""

KEY_VARIABLES: dict[ProviderName, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "claude": ("ANTHROPIC_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "grok": ("XAI_API_KEY",),
    "perplexity": ("PERPLEXITY_API_KEY",),
}

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
DEFAULT_CHAT_MODELS: dict[OpenAIApi, str] = {"chat": "gpt-5-search-api", "openrouter": "openai/gpt-5.6"}

REQUESTS: dict[ProviderName, RequestBuilder] = {
    "openai": build.ask_responses,
    "claude": build.ask_claude,
    "gemini": build.ask_gemini,
    "grok": build.ask_grok,
    "perplexity": build.ask_perplexity,
}
OPENAI_REQUESTS: dict[OpenAIApi, RequestBuilder] = {
    "responses": build.ask_responses,
    "chat": build.ask_chat,
    "openrouter": build.ask_openrouter,
}


def request_builder(provider: ProviderName, openai_api: OpenAIApi = "responses") -> RequestBuilder:
    """What builds the provider's requests; `openai_api` is the setting of that name."""
    return OPENAI_REQUESTS[openai_api] if provider == "openai" else REQUESTS[provider]


def default_model(provider: ProviderName, openai_api: OpenAIApi = "responses") -> str:
    """The model to ask where nobody named one: one that searches with this API."""
    if provider == "openai" and openai_api != "responses":
        return DEFAULT_CHAT_MODELS[openai_api]
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


def auth_headers(provider: ProviderName, key: str, variable: str = "") -> dict[str, str]:
    """The header that carries the key; never a query parameter, which ends up in logs.

    `variable` is where the key comes from; empty for the provider's own variable.

    Raises:
        SettingsError: the key holds white space or a letter that no header carries; the message does not show it.
    """
    if not key.isascii() or not key.isprintable() or " " in key or not key:
        raise SettingsError(
            f"The key in `{variable or KEY_VARIABLES[provider][0]}` is empty or holds white space or a letter that no "
            "key has. Copy it again."
        )
    if provider == "claude":
        return {"x-api-key": key}
    return {"x-goog-api-key": key} if provider == "gemini" else {"authorization": f"Bearer {key}"}


def read_base_urls(configured: Mapping[str, str]) -> dict[ProviderName, str]:
    """Where each provider is reached: the setting `base_urls` over the defaults, without a slash at the end.

    Raises:
        InputError: a name is no provider's.
        SettingsError: a URL is none that a key may be sent to.
    """
    given = {provider_name(name): read_base_url(name, url) for name, url in configured.items()}
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
        raise SettingsError(f"The base URL of {name} in `base_urls` is not of the form https://host/path. Mend it.")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_near(host)):
        raise SettingsError(f"The base URL of {name} would send the key unencrypted to {host!r}. Give an https URL.")
    return url.strip().rstrip("/")


def is_near(host: str) -> bool:
    """Whether the host is this machine, a private address, or a name without dots, as in a network of containers."""
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host
