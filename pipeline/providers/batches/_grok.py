"""The Batch API of xAI: a file of requests goes in, pages of results come out, each as a chat completion.

A batch has no status: it is told by its counts, which are all 0 until the file was read, and for ever where it is
refused. Of the two ways to fill a batch this is the one that makes it at once and whole; the other adds requests to one
that is there already, which nobody can take back when it breaks off.

Source, read 2026-11: https://docs.x.ai/developers/advanced-api-usage/batch-api (at most 25 MB for requests that are
added, no limit named for a file; half the price), https://docs.x.ai/developers/rest-api-reference/inference/batches,
https://docs.x.ai/developers/release-notes (March 2026: files of lines, and tools that the server runs); the shapes of
lines and results as https://github.com/vercel/ai speaks them (`packages/xai`), which asks /v1/responses in them.
"""

import json
import re
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from pipeline.providers.batches._batch import (
    RPC_STATUSES,
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
from pipeline.providers.batches._cut import cut, cut_list, told
from pipeline.providers.batches._uploads import form_upload
from pipeline.providers.body import as_number, as_object, as_objects, as_text
from pipeline.providers.http.client import ApiClient
from pipeline.providers.request import ProviderRequest

# The size is the one that is named for the other way.
_LIMITS = BatchLimits(10_000, 25 * 1000 * 1000)
_PATH = re.compile(r"/responses")
_VERSION = "/v1"
_PAGE = 100
# How long after its beginning a day is over by every clock.
_DAY_AND_CLOCKS = timedelta(hours=25)


async def _submit(client: ApiClient, name: str, items: Sequence[BatchItem]) -> BatchState:
    """Upload the requests, and make a batch of the file."""
    url = _VERSION + check_items(items, _LIMITS, _PATH)
    file = form_upload(
        {},
        ({"custom_id": item.custom_id, "method": "POST", "url": url, "body": item.request.body} for item in items),
    )
    uploaded = as_object(await upload(client, "/files", file))
    body = {"name": name, "input_file_id": known_id(uploaded.get("id"), "file")}
    state = await create(client, ProviderRequest("/batches", {}, body), _state)
    return state._replace(total=len(items))


async def _look(client: ApiClient, batch_id: str) -> BatchState:
    """The state of one batch."""
    return _state((await client.send(ProviderRequest(f"/batches/{quote(batch_id)}", {}, {}, "GET"))).body)


async def _cancel(client: ApiClient, batch_id: str) -> BatchState:
    """Ask for the end of one batch."""
    return _state((await client.send(ProviderRequest(f"/batches/{quote(batch_id)}:cancel", {}, {}))).body)


async def _listed(client: ApiClient) -> AsyncGenerator[BatchState, None]:
    """All batches of the team."""
    async for text in _pages(client, "/batches"):
        for each in as_objects(told(text).get("batches")):
            yield _state(each)


async def _results(client: ApiClient, state: BatchState) -> AsyncGenerator[BatchResult, None]:
    """The results, page by page."""
    async for text in _pages(client, f"/batches/{quote(state.batch_id)}/results"):
        for each in cut_list(text, "results"):
            yield _result(each)


async def _pages(client: ApiClient, path: str) -> AsyncGenerator[str, None]:
    """The bodies of a list's pages."""
    seen: set[str] = set()
    token = ""
    while True:
        query = f"{path}?limit={_PAGE}{f'&pagination_token={quote(token)}' if token else ''}"
        response = await client.send(ProviderRequest(query, {}, {}, "GET"))
        yield response.text
        following = as_text(as_object(response.body).get("pagination_token"))
        if not following:
            return
        token = next_page(following, seen)


def _state(body: Any) -> BatchState:
    """The state that a batch's counts tell.

    Raises:
        ProviderError: it has no id.
    """
    fields = as_object(body)
    counts = {name: as_number(count) or 0 for name, count in as_object(fields.get("state")).items()}
    return BatchState(
        known_id(fields.get("batch_id"), "batch"),
        as_text(fields.get("name")),
        _status(fields, counts),
        counts.get("num_success", 0),
        counts.get("num_error", 0) + counts.get("num_cancelled", 0),
        counts.get("num_requests", 0),
        as_text(fields.get("create_time")),
        (),
        as_text(fields.get("cancel_by_xai_message")),
    )


def _status(fields: dict[str, Any], counts: dict[str, int]) -> BatchStatus:
    """What the counts and times come to."""
    pending = counts.get("num_pending", 0)
    if fields.get("cancel_by_xai_message") and not counts.get("num_success"):
        return "failed"
    if pending:
        return "expired" if _is_past(as_text(fields.get("expire_time"))) else "working"
    if fields.get("cancel_time"):
        return "cancelled"
    return "ended" if counts.get("num_requests") else "working"


def _is_past(moment: str) -> bool:
    """Whether the time has come, or the day has been over for an hour; not where it cannot be read."""
    try:
        read = datetime.fromisoformat(moment)
    except ValueError:
        return False
    if "T" not in moment:
        read += _DAY_AND_CLOCKS
    return (read if read.tzinfo else read.replace(tzinfo=UTC)) <= datetime.now(UTC)


def _result(text: str) -> BatchResult:
    """What an item of a page tells of one request."""
    fields = told(text)
    custom_id = as_text(fields.get("batch_request_id"))
    result = as_object(fields.get("batch_result"))
    answer = cut(text, "batch_result", "response", "chat_get_completion")
    error = as_object(result.get("error"))
    message = as_text(fields.get("error_message")) or as_text(error.get("message"))
    code = as_number(error.get("code")) or 0
    if answer and not message and not code:
        return BatchResult(custom_id, "answered", 200, answer)
    if not message and not code:
        return BatchResult(custom_id, "answered", 200, text)
    outcome: Outcome = "cancelled" if code == 1 else "failed"
    body = f'{{"error":{cut(text, "batch_result", "error") or json.dumps(message)}}}'
    return BatchResult(custom_id, outcome, RPC_STATUSES.get(code, 500), body)


API = BatchApi(_LIMITS, 0.5, True, _submit, _look, _results, _listed, _cancel)
