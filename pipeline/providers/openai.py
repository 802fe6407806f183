"""OpenAI: Responses and Chat Completions, and OpenRouter's form of the latter.

What it answers with is read by the rules of the two shapes that several providers share (`answer.read_shared`).

Source, read 2026-11: https://developers.openai.com/api/docs/guides/tools-web-search for requests;
https://platform.openai.com/docs/guides/tools-web-search and https://openrouter.ai/docs/features/web-search for answers;
of batches https://developers.openai.com/api/docs/guides/batch and
https://developers.openai.com/api/reference/resources/batches (50,000 requests and 200 MB a file, one model a file; half
the price of tokens; a window of 24 hours, after which what is left expires), output and error lines in the guide.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pipeline.core.schema import AskOptions
from pipeline.providers import batch, provider
from pipeline.providers.claude import has_temperature as claude_has_temperature
from pipeline.providers.cost import general_model
from pipeline.providers.http.request import ProviderRequest, as_number, as_object, as_objects, as_text

if TYPE_CHECKING:
    from pipeline.providers.http.client import ApiClient

_FACTS = provider.Facts(__file__)

# Reasoning and search models refuse a temperature.
_WITHOUT_TEMPERATURE = re.compile(r"(?:o\d|gpt-(?:[5-9]|\d\d)|codex|computer-use)|.*search", re.IGNORECASE)

_UNANSWERED: dict[str, batch.Outcome] = {"batch_expired": "expired", "batch_cancelled": "cancelled"}


def _has_temperature(model: str) -> bool:
    """An unknown model does. OpenRouter also has Claude's."""
    if model.lower().startswith("claude"):
        return claude_has_temperature(model)
    return _WITHOUT_TEMPERATURE.match(model) is None


def _ask_responses(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """It searches in any case, lists what it found, and keeps nothing."""
    tool = {
        "type": "web_search",
        **provider.present(
            filters=provider.present(allowed_domains=options.allowed_domains, blocked_domains=options.blocked_domains)
        ),
        **provider.place_of_user(options),
    }
    body = {
        "model": model,
        "input": provider.messages(system, prompt),
        "tools": [tool],
        "tool_choice": {"type": "web_search"},
        "include": ["web_search_call.action.sources"],
        "max_output_tokens": options.max_tokens,
        **provider.present(max_tool_calls=options.max_uses),
        **_RESPONSES.temperature(model, options),
        "store": False,
    }
    return ProviderRequest("/responses", {}, body)


def _ask_chat(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """As servers compatible with it take it; only search models search."""
    place = {"type": "approximate", "approximate": {"country": options.country}} if options.country else None
    body = {
        "model": model,
        "messages": provider.messages(system, prompt),
        "web_search_options": provider.present(user_location=place),
        "max_completion_tokens": options.max_tokens,
        **_CHAT.temperature(model, options),
    }
    return ProviderRequest("/chat/completions", {}, body)


def _ask_openrouter(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """It searches with its own server tool for every model.

    Source: https://openrouter.ai/docs/guides/features/server-tools/web-search, read 2026-11.
    """
    parameters = {
        **provider.present(allowed_domains=options.allowed_domains, excluded_domains=options.blocked_domains),
        **provider.present(max_uses=options.max_uses),
        **provider.place_of_user(options),
    }
    body = {
        "model": model,
        "messages": provider.messages(system, prompt),
        "tools": [{"type": "openrouter:web_search", **provider.present(parameters=parameters)}],
        "max_tokens": options.max_tokens,
        **_OPENROUTER.temperature(model, options),
    }
    return ProviderRequest("/chat/completions", {}, body)


def _ask_json_in_chat(
    asked: provider.StructuredQuestion, form: provider.Form, limit: str = "max_tokens"
) -> ProviderRequest:
    body = {
        "model": asked.model,
        "messages": provider.messages(asked.system, asked.prompt),
        limit: asked.options.max_tokens,
        **_CHAT.temperature(asked.model, asked.options),
        **provider.present(response_format=provider.chat_format(asked.schema, form)),
    }
    return ProviderRequest("/chat/completions", {}, body)


async def _make_batch(client: "ApiClient", name: str, items: Sequence[batch.BatchItem], path: str) -> batch.BatchState:
    body = {
        "input_file_id": await batch.upload_questions(client, items, path, purpose="batch"),
        "endpoint": f"/v1{path}",
        "completion_window": "24h",
        "metadata": {"name": name},
    }
    return await batch.create(client, ProviderRequest("/batches", {}, body), _batch_state)


def _batch_state(body: Any) -> batch.BatchState:
    fields = as_object(body)
    counts = as_object(fields.get("request_counts"))
    errors = as_objects(as_object(fields.get("errors")).get("data"))
    files = (fields.get(name) for name in ("output_file_id", "error_file_id"))
    return batch.BatchState(
        batch.known_id(fields.get("id"), "batch"),
        as_text(as_object(fields.get("metadata")).get("name")),
        batch.status_of(as_text(fields.get("status"))),
        as_number(counts.get("completed")) or 0,
        as_number(counts.get("failed")) or 0,
        as_number(counts.get("total")) or 0,
        _moment(as_number(fields.get("created_at"))),
        tuple(batch.known_id(file, "file") for file in files if file),
        "; ".join(as_text(error.get("message")) for error in errors[:3]),
    )


def _moment(seconds: int | None) -> str:
    """Empty where it is none, as where a gateway counts in milliseconds."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds else ""
    except (ValueError, OverflowError, OSError):
        return ""


def _batch_result(line: str) -> batch.BatchResult:
    fields = batch.read_line(line)
    custom_id = as_text(fields.get("custom_id"))
    body = batch.cut(line, "response", "body")
    if body:
        status = as_number(as_object(fields.get("response")).get("status_code")) or 200
        return batch.BatchResult(custom_id, "answered" if status < 400 else "failed", status, body)
    error = as_object(fields.get("error"))
    if not error:
        return batch.BatchResult(custom_id, "answered", 200, line)
    outcome = _UNANSWERED.get(as_text(error.get("code")), "failed")
    return batch.BatchResult(custom_id, outcome, 500, f'{{"error":{batch.cut(line, "error")}}}')


_RESPONSES: provider.Api = _FACTS.api(
    "responses",
    ask=_ask_responses,
    ask_json=lambda asked, form: provider.ask_json_in_responses(_RESPONSES, asked, form),
    model=general_model("openai"),
    has_temperature=_has_temperature,
    batches=batch.BatchApi(
        # Below what OpenAI takes: neither sending nor waiting for 20,000 is better than for 10,000.
        limits=batch.BatchLimits(10_000, 64 * 1024 * 1024),
        takes="/responses",
        make=_make_batch,
        at="/batches",
        read_state=_batch_state,
        token_name="after",
        next_token=lambda page: as_text(page.get("last_id")) if page.get("has_more") is True else None,
        results_at=lambda state: [f"/files/{quote(file)}/content" for file in state.files],
        read_result=_batch_result,
    ),
)
_CHAT = _FACTS.api(
    "chat",
    ask=_ask_chat,
    # Only OpenAI's own wants the newer name of the limit.
    ask_json=lambda asked, form: _ask_json_in_chat(asked, form, "max_completion_tokens"),
    has_temperature=_has_temperature,
)
_OPENROUTER = _FACTS.api(
    "openrouter", ask=_ask_openrouter, ask_json=_ask_json_in_chat, has_temperature=_has_temperature
)

PROVIDER = _FACTS.provider(apis=(_RESPONSES, _CHAT, _OPENROUTER))
