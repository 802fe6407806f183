"""Google's Batch API: a file of requests goes in, an operation can be looked at, a file of results comes out.

Source, read 2026-11: https://ai.google.dev/gemini-api/docs/batch-api (2 GB a file, half the price of tokens, most done
within 24 hours, what runs for 48 expires without results), https://ai.google.dev/api/batch-api (`batchGenerateContent`,
`batches.list`; counts are int64, which JSON has as texts) and https://ai.google.dev/api/files (`media.upload`).
"""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
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
from pipeline.providers.batches._cut import cut, told
from pipeline.providers.batches._uploads import related_upload
from pipeline.providers.body import as_number, as_object, as_objects, as_text
from pipeline.providers.http.client import ApiClient
from pipeline.providers.request import ProviderRequest

# Far below what Google takes: a file is held in memory.
_LIMITS = BatchLimits(10_000, 64 * 1024 * 1024)
_PATH = re.compile(r"/v1beta/models/[^/:]+:generateContent")
_UPLOAD = "/upload/v1beta/files?uploadType=multipart"
_VERSION = "/v1beta"
_STATUSES: dict[str, BatchStatus] = {
    "SUCCEEDED": "ended",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
    "EXPIRED": "expired",
}
_PAGE = 100


async def _submit(client: ApiClient, name: str, items: Sequence[BatchItem]) -> BatchState:
    """Upload the requests, and make a batch of the file for the model that all of them ask."""
    path = check_items(items, _LIMITS, _PATH)
    lines = ({"key": item.custom_id, "request": item.request.body} for item in items)
    about = {"file": {"displayName": name, "mimeType": "application/jsonl"}}
    uploaded = await upload(client, _UPLOAD, related_upload(about, lines))
    file = known_id(as_object(as_object(uploaded).get("file")).get("name"), "file", "files/")
    body = {"batch": {"displayName": name, "inputConfig": {"fileName": file}}}
    path = path.replace(":generateContent", ":batchGenerateContent")
    return await create(client, ProviderRequest(path, {}, body), _state)


async def _look(client: ApiClient, batch_id: str) -> BatchState:
    """The state of one batch."""
    return _state((await client.send(ProviderRequest(f"{_VERSION}/{quote(batch_id)}", {}, {}, "GET"))).body)


async def _cancel(client: ApiClient, batch_id: str) -> BatchState:
    """Ask for the end of one batch, which is answered by nothing; so look at it."""
    await client.send(ProviderRequest(f"{_VERSION}/{quote(batch_id)}:cancel", {}, {}))
    return await _look(client, batch_id)


async def _listed(client: ApiClient) -> AsyncGenerator[BatchState, None]:
    """All batches of the project."""
    seen: set[str] = set()
    token = ""
    while True:
        query = f"{_VERSION}/batches?pageSize={_PAGE}{f'&pageToken={quote(token)}' if token else ''}"
        page = as_object((await client.send(ProviderRequest(query, {}, {}, "GET"))).body)
        for each in as_objects(page.get("operations")):
            yield _state(each)
        if not page.get("nextPageToken"):
            return
        token = next_page(as_text(page.get("nextPageToken")), seen)


async def _results(client: ApiClient, state: BatchState) -> AsyncGenerator[BatchResult, None]:
    """The lines of the file of results; a batch that expired or was cancelled has none."""
    for file in state.files:
        path = f"/download{_VERSION}/{quote(file)}:download?alt=media"
        async with aclosing(client.lines(ProviderRequest(path, {}, {}, "GET"))) as lines:
            async for line in lines:
                yield _result(line)


def _state(body: Any) -> BatchState:
    """The state that an operation tells. Until its results have a file, a batch that succeeded is still working.

    Raises:
        ProviderError: it has no id.
    """
    operation = as_object(body)
    fields = as_object(operation.get("metadata")) or operation
    output = as_object(operation.get("response")) or as_object(fields.get("output"))
    file = output.get("responsesFile")
    stats = as_object(fields.get("batchStats"))
    status = _STATUSES.get(as_text(fields.get("state")).rpartition("_STATE_")[2], "working")
    return BatchState(
        known_id(operation.get("name"), "batch", "batches/"),
        as_text(fields.get("displayName")),
        "working" if status == "ended" and not file else status,
        _count(stats.get("successfulRequestCount")),
        _count(stats.get("failedRequestCount")),
        _count(stats.get("requestCount")),
        as_text(fields.get("createTime")),
        (known_id(file, "file", "files/"),) if file else (),
        as_text(as_object(operation.get("error")).get("message")),
    )


def _count(value: Any) -> int:
    """The number, which may be a text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return as_number(value) or 0


def _result(line: str) -> BatchResult:
    """What a line tells of one request."""
    fields = told(line)
    custom_id = as_text(fields.get("key"))
    error = as_object(fields.get("error"))
    if not error:
        return BatchResult(custom_id, "answered", 200, cut(line, "response") or line)
    code = as_number(error.get("code")) or 0
    outcome: Outcome = "cancelled" if code == 1 else "failed"
    return BatchResult(custom_id, outcome, RPC_STATUSES.get(code, 500), f'{{"error":{cut(line, "error")}}}')


API = BatchApi(_LIMITS, 0.5, True, _submit, _look, _results, _listed, _cancel)
