"""Anthropic Claude: Messages, a turn that was paused and continued, and an older shape.

Source, read 2026-11: https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool for requests;
https://docs.claude.com/en/docs/agents-and-tools/tool-use/web-search-tool and pipeline/contracts/csv_v2.md#citations for
answers; of batches https://platform.claude.com/docs/en/build-with-claude/batch-processing (100,000 requests or
256 MB; half the price; all that the Messages API takes; 24 hours, after which what is left expires; results for 29
days) and https://platform.claude.com/docs/en/api/messages/batches/create, `/list`, `/results`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from pipeline.core.errors import InputError
from pipeline.core.schema import Answer, AskOptions, Occurrence
from pipeline.providers import batch, provider
from pipeline.providers.answer import build_answer, place
from pipeline.providers.cost import general_model
from pipeline.providers.http.request import ProviderRequest, as_number, as_object, as_objects, as_text

if TYPE_CHECKING:
    from pipeline.providers.http.client import ApiClient

_FACTS = provider.Facts(__file__)

_MESSAGES = "/v1/messages"
_HEADERS = {"anthropic-version": "2023-06-01"}
# Every Claude since Opus 4.7 and Sonnet 5 refuses a temperature, and so may an unknown one.
_WITH_TEMPERATURE = re.compile(r"claude-(?:[23]|instant|haiku-4|sonnet-4|opus-4(?![.-][7-9](?!\d)))", re.IGNORECASE)

_BATCHES = "/v1/messages/batches"
# What a synchronous request of this kind of error would have had as its status.
# Source: https://platform.claude.com/docs/en/api/errors, read 2026-11.
_ERROR_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def _is_message(body: Any) -> bool:
    """One body, or the bodies of a paused turn and its continuations in a list."""
    if isinstance(body, list):
        return bool(body) and all(isinstance(each, dict) and _is_message(each) for each in body)
    return isinstance(body, dict) and as_text(body.get("type")) == "message" and isinstance(body.get("content"), list)


def _read(body: Any) -> Answer:
    """The answer: its citations are the URLs in `tool_use` blocks named `web_search`, then those of its text blocks.

    What a search found and no block cites is no citation. A list of bodies is one turn: the texts joined, model and
    stop reason those of the last.
    """
    bodies = as_objects(body) if isinstance(body, list) else [as_object(body)]
    blocks = [block for each in bodies for block in as_objects(each.get("content"))]
    # The block of an older shape; no body of the real service has one with results.
    tools = [block for block in blocks if block.get("type") == "tool_use" and block.get("name") == "web_search"]
    searched = [found for block in tools for found in _tool_occurrences(block)]
    text = "".join(_block_text(block) for block in blocks)
    cited = list(_block_occurrences(text, blocks, _documents(blocks)))
    return build_answer(
        text,
        [occurrence.url for occurrence in (*searched, *cited)],
        [*cited, *searched],
        retrieved={occurrence.url for occurrence in searched} - {occurrence.url for occurrence in cited},
        model=as_text(bodies[-1].get("model")),
        stop_reason=as_text(bodies[-1].get("stop_reason")),
    )


def _block_text(block: dict[str, Any]) -> str:
    return as_text(block.get("text")) if block.get("type") == "text" else ""


def _tool_occurrences(value: Any) -> Iterator[Occurrence]:
    if isinstance(value, str) and value.startswith(("http://", "https://")) and not any(map(str.isspace, value)):
        yield Occurrence(url=value)
    elif isinstance(value, list):
        for each in value:
            yield from _tool_occurrences(each)
    elif isinstance(value, dict):
        title = as_text(value.get("title"))
        for each in value.values():
            for found in _tool_occurrences(each):
                yield found.model_copy(update={"title": title}) if isinstance(each, str) else found


class _Document(NamedTuple):
    url: str
    title: str


def _documents(blocks: list[dict[str, Any]]) -> list[_Document]:
    """The pages that web_fetch read, in the order in which citations count them.

    Source: https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-fetch-tool, read 2026-11.
    """
    results = [as_object(block.get("content")) for block in blocks if block.get("type") == "web_fetch_tool_result"]
    fetched = [result for result in results if result.get("type") == "web_fetch_result"]
    return [
        _Document(as_text(result.get("url")), as_text(as_object(result.get("content")).get("title")))
        for result in fetched
    ]


def _source_of(citation: dict[str, Any], documents: list[_Document]) -> _Document:
    """Whom a citation names: by its own URL, by `source` of a search result, or by a fetched page's title or place."""
    url, title = as_text(citation.get("url")), as_text(citation.get("title"))
    source = as_text(citation.get("source"))
    if url or source.startswith(("http://", "https://")):
        return _Document(url or source, title)
    name, index = as_text(citation.get("document_title")), as_number(citation.get("document_index"))
    named = [document for document in documents if name and document.title == name]
    if len(named) == 1:
        return named[0]
    return documents[index] if index is not None and 0 <= index < len(documents) else _Document("", "")


def _block_occurrences(text: str, blocks: list[dict[str, Any]], documents: list[_Document]) -> Iterator[Occurrence]:
    start = 0
    for block in blocks:
        words = _block_text(block)
        for citation in as_objects(block.get("citations")) if words or block.get("type") == "text" else ():
            source = _source_of(citation, documents)
            yield place(
                text,
                (start, start + len(words.rstrip())),
                url=source.url,
                placement="claim",
                title=source.title,
                cited_text=as_text(citation.get("cited_text")),
            )
        start += len(words)


def has_temperature(model: str) -> bool:
    return _WITH_TEMPERATURE.match(model) is not None


def _ask(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """Messages with the basic search tool: left alone, its successors pass results through code, uncited."""
    tool = {
        "type": "web_search_20250305",
        "name": "web_search",
        **provider.present(max_uses=options.max_uses),
        **provider.present(allowed_domains=options.allowed_domains, blocked_domains=options.blocked_domains),
        **provider.place_of_user(options),
    }
    body = {
        "model": model,
        "max_tokens": options.max_tokens,
        **provider.present(system=system),
        "messages": provider.messages("", prompt),
        "tools": [tool],
        **_BASIC.temperature(model, options),
    }
    return ProviderRequest(_MESSAGES, _HEADERS, body)


def _ask_newer(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """The newer search tool, called by the model itself; no recorded answer shows whether it cites then.

    Source: https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools, read 2026-11.
    """
    request = _ask(model, system, prompt, options)
    [tool] = request.body["tools"]
    newer = {**tool, "type": "web_search_20260318", "allowed_callers": ["direct"]}
    return request._replace(body={**request.body, "tools": [newer]})


def _ask_json(asked: provider.StructuredQuestion, form: provider.Form) -> ProviderRequest:
    output = {"format": {"type": "json_schema", "schema": asked.schema}} if form == "json_schema" else None
    body = {
        "model": asked.model,
        "max_tokens": asked.options.max_tokens,
        "system": asked.system,
        "messages": provider.messages("", asked.prompt),
        **_BASIC.temperature(asked.model, asked.options),
        **provider.present(output_config=output),
    }
    return ProviderRequest(_MESSAGES, _HEADERS, body)


def _check(model: str, options: AskOptions) -> None:
    if _BASIC.takes_temperature(model) and (options.temperature or 0) > 1.0:
        raise InputError(f"claude takes a temperature of at most 1; {options.temperature:g} was given.")


def _continue_turn(request: ProviderRequest, body: Any) -> ProviderRequest | None:
    """The paused turn's content is appended unchanged; None where none was paused."""
    if not isinstance(body, dict) or body.get("stop_reason") != "pause_turn" or not body.get("content"):
        return None
    so_far = [*request.body["messages"], {"role": "assistant", "content": body["content"]}]
    return request._replace(body={**request.body, "messages": so_far})


async def _make_batch(client: "ApiClient", name: str, items: Sequence[batch.BatchItem], path: str) -> batch.BatchState:
    requests = [{"custom_id": item.custom_id, "params": item.request.body} for item in items]
    headers = {**_HEADERS, **items[0].request.headers}
    state = await batch.create(client, ProviderRequest(_BATCHES, headers, {"requests": requests}), _batch_state)
    return state._replace(name=name)


def _batch_state(body: Any) -> batch.BatchState:
    fields = as_object(body)
    counts = {name: as_number(count) or 0 for name, count in as_object(fields.get("request_counts")).items()}
    status: batch.BatchStatus = "working"
    if fields.get("processing_status") == "ended":
        status = "cancelled" if counts.get("canceled") else "expired" if counts.get("expired") else "ended"
    return batch.BatchState(
        batch.known_id(fields.get("id"), "batch"),
        "",
        status,
        counts.get("succeeded", 0),
        sum(counts.get(name, 0) for name in ("errored", "canceled", "expired")),
        sum(counts.values()),
        as_text(fields.get("created_at")),
    )


def _batch_result(line: str) -> batch.BatchResult:
    fields = batch.read_line(line)
    custom_id = as_text(fields.get("custom_id"))
    result = as_object(fields.get("result"))
    kind = as_text(result.get("type"))
    if kind == "errored":
        error = as_object(as_object(result.get("error")).get("error"))
        status = _ERROR_STATUSES.get(as_text(error.get("type")), 500)
        return batch.BatchResult(custom_id, "failed", status, batch.cut(line, "result", "error"))
    if kind in ("expired", "canceled"):
        return batch.BatchResult(
            custom_id, "expired" if kind == "expired" else "cancelled", 0, batch.cut(line, "result")
        )
    return batch.BatchResult(custom_id, "answered", 200, batch.cut(line, "result", "message") or line)


_BASIC = _FACTS.api(
    "web_search_20250305",
    ask=_ask,
    ask_json=_ask_json,
    model=general_model("claude"),
    has_temperature=has_temperature,
    check=_check,
    batches=batch.BatchApi(
        # Below what Anthropic takes: a batch is one body, which is held in memory.
        limits=batch.BatchLimits(10_000, 64 * 1024 * 1024),
        is_named=False,
        takes=_MESSAGES,
        make=_make_batch,
        at=_BATCHES,
        headers=_HEADERS,
        read_state=_batch_state,
        token_name="after_id",
        next_token=lambda page: as_text(page.get("last_id")) if page.get("has_more") is True else None,
        # The address that the state names is not followed, for it could be anybody's.
        results_at=lambda state: [f"{_BATCHES}/{quote(state.batch_id)}/results"],
        read_result=_batch_result,
    ),
)

PROVIDER = _FACTS.provider(
    apis=(_BASIC, replace(_BASIC, name="web_search_20260318", ask=_ask_newer)),
    shapes=(provider.Shape("claude", _is_message, _read),),
    continue_turn=_continue_turn,
)
