"""OpenAI's Batch API: a file of requests goes in, files of results and of errors come out.

Source, read 2026-11: https://developers.openai.com/api/docs/guides/batch and
https://developers.openai.com/api/reference/resources/batches (50,000 requests and 200 MB a file, one model a file; half
the price of tokens; a window of 24 hours, after which what is left expires), output and error lines in the guide.
"""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from pipeline.providers.batches._batch import (
    BatchApi,
    BatchItem,
    BatchLimits,
    BatchResult,
    BatchState,
    BatchStatus,
    Outcome,
    check_items,
    create,
    known_id,
    next_page,
    upload,
)
from pipeline.providers.batches._cut import cut, told
from pipeline.providers.batches._uploads import form_upload
from pipeline.providers.body import as_number, as_object, as_objects, as_text
from pipeline.providers.http.client import ApiClient
from pipeline.providers.request import ProviderRequest

# Below what OpenAI takes: neither sending nor waiting for 20,000 is better than for 10,000.
_LIMITS = BatchLimits(10_000, 64 * 1024 * 1024)
_PATH = re.compile(r"/responses")
_VERSION = "/v1"
_STATUSES: dict[str, BatchStatus] = {
    "completed": "ended",
    "failed": "failed",
    "expired": "expired",
    "cancelled": "cancelled",
}
_UNANSWERED: dict[str, Outcome] = {"batch_expired": "expired", "batch_cancelled": "cancelled"}
_PAGE = 100


async def _submit(client: ApiClient, name: str, items: Sequence[BatchItem]) -> BatchState:
    """Upload the requests, and make a batch of the file."""
    endpoint = _VERSION + check_items(items, _LIMITS, _PATH)
    file = form_upload(
        {"purpose": "batch"},
        ({"custom_id": item.custom_id, "method": "POST", "url": endpoint, "body": item.request.body} for item in items),
    )
    uploaded = await upload(client, "/files", file)
    body = {
        "input_file_id": known_id(as_object(uploaded).get("id"), "file"),
        "endpoint": endpoint,
        "completion_window": "24h",
        "metadata": {"name": name},
    }
    return await create(client, ProviderRequest("/batches", {}, body), _state)


async def _look(client: ApiClient, batch_id: str) -> BatchState:
    """The state of one batch."""
    return _state((await client.send(ProviderRequest(f"/batches/{quote(batch_id)}", {}, {}, "GET"))).body)


async def _cancel(client: ApiClient, batch_id: str) -> BatchState:
    """Ask for the end of one batch, which takes up to ten minutes."""
    return _state((await client.send(ProviderRequest(f"/batches/{quote(batch_id)}/cancel", {}, {}))).body)


async def _listed(client: ApiClient) -> AsyncGenerator[BatchState, None]:
    """All batches of the project, newest first."""
    seen: set[str] = set()
    after = ""
    while True:
        query = f"/batches?limit={_PAGE}{f'&after={quote(after)}' if after else ''}"
        page = as_object((await client.send(ProviderRequest(query, {}, {}, "GET"))).body)
        for each in as_objects(page.get("data")):
            yield _state(each)
        if page.get("has_more") is not True:
            return
        after = next_page(as_text(page.get("last_id")), seen)


async def _results(client: ApiClient, state: BatchState) -> AsyncGenerator[BatchResult, None]:
    """The lines of the output file, then those of the error file."""
    for file in state.files:
        async with aclosing(client.lines(ProviderRequest(f"/files/{quote(file)}/content", {}, {}, "GET"))) as lines:
            async for line in lines:
                yield _result(line)


def _state(body: Any) -> BatchState:
    """The state that a batch object tells.

    Raises:
        ProviderError: it has no id.
    """
    fields = as_object(body)
    counts = as_object(fields.get("request_counts"))
    errors = as_objects(as_object(fields.get("errors")).get("data"))
    files = (fields.get(name) for name in ("output_file_id", "error_file_id"))
    return BatchState(
        known_id(fields.get("id"), "batch"),
        as_text(as_object(fields.get("metadata")).get("name")),
        _STATUSES.get(as_text(fields.get("status")), "working"),
        as_number(counts.get("completed")) or 0,
        as_number(counts.get("failed")) or 0,
        as_number(counts.get("total")) or 0,
        _moment(as_number(fields.get("created_at"))),
        tuple(known_id(file, "file") for file in files if file),
        "; ".join(as_text(error.get("message")) for error in errors[:3]),
    )


def _moment(seconds: int | None) -> str:
    """The time in RFC 3339; empty where it is none, as where a gateway counts in milliseconds."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds else ""
    except (ValueError, OverflowError, OSError):
        return ""


def _result(line: str) -> BatchResult:
    """What a line of either file tells of one request."""
    fields = told(line)
    custom_id = as_text(fields.get("custom_id"))
    body = cut(line, "response", "body")
    if body:
        status = as_number(as_object(fields.get("response")).get("status_code")) or 200
        return BatchResult(custom_id, "answered" if status < 400 else "failed", status, body)
    error = as_object(fields.get("error"))
    if not error:
        return BatchResult(custom_id, "answered", 200, line)
    outcome = _UNANSWERED.get(as_text(error.get("code")), "failed")
    return BatchResult(custom_id, outcome, 500, f'{{"error":{cut(line, "error")}}}')


API = BatchApi(_LIMITS, 0.5, True, _submit, _look, _results, _listed, _cancel)
