"""Anthropic's Message Batches: requests inline, results as JSON Lines in any order, and no name.

Source, read 2026-11: https://platform.claude.com/docs/en/build-with-claude/batch-processing (100,000 requests or
256 MB; half the price; all that the Messages API takes; 24 hours, after which what is left expires; results for 29
days) and https://platform.claude.com/docs/en/api/messages/batches/create, `/list`, `/results`.
"""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any
from urllib.parse import quote

from pipeline.providers.batches._batch import (
    BatchApi,
    BatchItem,
    BatchLimits,
    BatchResult,
    BatchState,
    BatchStatus,
    check_items,
    create,
    known_id,
    next_page,
)
from pipeline.providers.batches._cut import cut, told
from pipeline.providers.body import as_number, as_object, as_objects, as_text
from pipeline.providers.http.client import ApiClient
from pipeline.providers.request import ProviderRequest

# Below what Anthropic takes: a batch is one body, which is held in memory.
_LIMITS = BatchLimits(10_000, 64 * 1024 * 1024)
_PATH = re.compile(r"/v1/messages")
_BATCHES = "/v1/messages/batches"
_HEADERS = {"anthropic-version": "2023-06-01"}
_PAGE = 100
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


async def _submit(client: ApiClient, name: str, items: Sequence[BatchItem]) -> BatchState:
    """Send all requests in one body; the name goes nowhere."""
    check_items(items, _LIMITS, _PATH)
    requests = [{"custom_id": item.custom_id, "params": item.request.body} for item in items]
    headers = {**_HEADERS, **items[0].request.headers}
    state = await create(client, ProviderRequest(_BATCHES, headers, {"requests": requests}), _state)
    return state._replace(name=name)


async def _look(client: ApiClient, batch_id: str) -> BatchState:
    """The state of one batch."""
    return _state((await client.send(ProviderRequest(f"{_BATCHES}/{quote(batch_id)}", _HEADERS, {}, "GET"))).body)


async def _cancel(client: ApiClient, batch_id: str) -> BatchState:
    """Ask for the end of one batch; what is under way may still be answered."""
    return _state((await client.send(ProviderRequest(f"{_BATCHES}/{quote(batch_id)}/cancel", _HEADERS, {}))).body)


async def _listed(client: ApiClient) -> AsyncGenerator[BatchState, None]:
    """All batches of the workspace, newest first."""
    seen: set[str] = set()
    after = ""
    while True:
        query = f"{_BATCHES}?limit={_PAGE}{f'&after_id={quote(after)}' if after else ''}"
        page = as_object((await client.send(ProviderRequest(query, _HEADERS, {}, "GET"))).body)
        for each in as_objects(page.get("data")):
            yield _state(each)
        if page.get("has_more") is not True:
            return
        after = next_page(as_text(page.get("last_id")), seen)


async def _results(client: ApiClient, state: BatchState) -> AsyncGenerator[BatchResult, None]:
    """The lines of the results; the address that the state names is not followed, for it could be anybody's."""
    request = ProviderRequest(f"{_BATCHES}/{quote(state.batch_id)}/results", _HEADERS, {}, "GET")
    async with aclosing(client.lines(request)) as lines:
        async for line in lines:
            yield _result(line)


def _state(body: Any) -> BatchState:
    """The state that a batch object tells.

    Raises:
        ProviderError: it has no id.
    """
    fields = as_object(body)
    counts = {name: as_number(count) or 0 for name, count in as_object(fields.get("request_counts")).items()}
    status: BatchStatus = "working"
    if fields.get("processing_status") == "ended":
        status = "cancelled" if counts.get("canceled") else "expired" if counts.get("expired") else "ended"
    return BatchState(
        known_id(fields.get("id"), "batch"),
        "",
        status,
        counts.get("succeeded", 0),
        sum(counts.get(name, 0) for name in ("errored", "canceled", "expired")),
        sum(counts.values()),
        as_text(fields.get("created_at")),
    )


def _result(line: str) -> BatchResult:
    """What a line tells of one request."""
    fields = told(line)
    custom_id = as_text(fields.get("custom_id"))
    result = as_object(fields.get("result"))
    match as_text(result.get("type")):
        case "errored":
            error = as_object(as_object(result.get("error")).get("error"))
            status = _ERROR_STATUSES.get(as_text(error.get("type")), 500)
            return BatchResult(custom_id, "failed", status, cut(line, "result", "error"))
        case "expired":
            return BatchResult(custom_id, "expired", 0, cut(line, "result"))
        case "canceled":
            return BatchResult(custom_id, "cancelled", 0, cut(line, "result"))
        case _:
            return BatchResult(custom_id, "answered", 200, cut(line, "result", "message") or line)


API = BatchApi(_LIMITS, 0.5, False, _submit, _look, _results, _listed, _cancel)
