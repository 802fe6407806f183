"""What a batch is to us, whoever runs it: items go in, a state can be looked at, results come out, each once.

Requests that are answered within a day for about half the price. Nothing here knows narratives or run folders; how a
provider runs batches stands in its own module.
"""

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote

from pipeline.core.errors import InputError, ProviderError
from pipeline.providers.http.request import ProviderRequest, as_object, as_objects, encode_body, load_body

if TYPE_CHECKING:
    from pipeline.providers.http.client import ApiClient, Response

# The HTTP status that a failed request of Google's or xAI's would have had.
# Source: https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto, read 2026-11.
_RPC_STATUSES = dict(
    enumerate((499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401), start=1)
)
_DECODER = json.JSONDecoder()
# Every line of an upload is JSON in ASCII and begins with a brace, so no boundary can stand in it.
_BOUNDARY = "citejury-batch"

BatchStatus = Literal["working", "ended", "failed", "expired", "cancelled"]
_ENDS: dict[str, BatchStatus] = {"completed": "ended", "succeeded": "ended", "failed": "failed"}
_ENDS |= {"expired": "expired", "cancelled": "cancelled"}
Outcome = Literal["answered", "failed", "expired", "cancelled"]


class BatchItem(NamedTuple):
    """One request of a batch, and the id that its result has: the `answer_id`."""

    custom_id: str
    request: ProviderRequest


class BatchLimits(NamedTuple):
    requests: int
    bytes: int


class BatchState(NamedTuple):
    """How far a batch is, in numbers of requests; `name` is ours, empty where the provider keeps none (Claude).

    While it is `working` nothing can be collected, after `failed` neither: nothing was answered, for the `reason`.
    Otherwise what was answered can be, from the `files` where there are any. `created` is RFC 3339 or a date.
    """

    batch_id: str
    name: str
    status: BatchStatus
    done: int
    failed: int
    total: int
    created: str
    files: tuple[str, ...] = ()
    reason: str = ""


class BatchResult(NamedTuple):
    """What became of one request, with the status and body that a synchronous one would have had.

    A line that cannot be read counts as answered, for it may have to be paid, and is the text itself. What expired or
    was cancelled was not asked, and has the provider's words about it, if any. An id that cannot be read is empty.
    """

    custom_id: str
    outcome: Outcome
    status: int
    text: str


@dataclass(frozen=True, kw_only=True)
class BatchApi:
    limits: BatchLimits
    token_price: float = 0.5
    """What tokens cost in a batch by its documentation, as a share of their price, 1 where it does not say so."""
    is_named: bool = True
    """Whether `listed` knows batches by our name; where it does not, a batch is known by its custom ids, which its
    results have."""
    takes: str
    """The paths of requests that a batch may hold, as a regular expression."""
    make: Callable[["ApiClient", str, Sequence[BatchItem], str], Awaitable[BatchState]]
    """Makes a batch of this name of these items, which all ask at this path."""
    at: str
    """The path below which the ids of batches stand."""
    list_at: str = ""
    end: str = "/cancel"
    headers: dict[str, str] = field(default_factory=dict)
    read_state: Callable[[Any], BatchState]
    items: str = "data"
    page_query: str = "limit=100"
    token_name: str
    """The parameter by which the next page is asked for."""
    next_token: Callable[[dict[str, Any]], str | None]
    """What it is, by the page before; None after the last."""
    results_at: Callable[[BatchState], Iterable[str]]
    cut_results: Callable[[str], Iterable[str]] | None = None
    """Cuts the results out of a page; None where they are the lines of one response of any length."""
    read_result: Callable[[str], BatchResult]

    async def submit(self, client: "ApiClient", name: str, items: Sequence[BatchItem]) -> BatchState:
        """Make a batch of items that are all for one model. It is asked for once, and all or nothing of it exists.

        Where a ProviderError `is_lost`, nobody knows: look for it in `listed`.
        """
        return await self.make(client, name, items, _check_items(items, self.limits, self.takes))

    async def look(self, client: "ApiClient", batch_id: str) -> BatchState:
        return self.read_state((await client.send(self._get(f"{self.at}/{quote(batch_id)}"))).body)

    async def cancel(self, client: "ApiClient", batch_id: str) -> BatchState:
        """Ask that nothing more be started of a batch, and give its state, which may say `working` for some minutes."""
        answer = await client.send(ProviderRequest(f"{self.at}/{quote(batch_id)}{self.end}", self.headers, {}))
        return self.read_state(answer.body) if answer.body else await self.look(client, batch_id)

    async def listed(self, client: "ApiClient") -> AsyncGenerator[BatchState, None]:
        """Every batch of the key's owner that the provider still knows, by whomever made."""
        async for page in self._pages(client, self.list_at or self.at):
            for each in as_objects(as_object(page.body).get(self.items)):
                yield self.read_state(each)

    async def results(self, client: "ApiClient", state: BatchState) -> AsyncGenerator[BatchResult, None]:
        """What became of each request, in any order; one that has no result here was not asked."""
        for path in self.results_at(state):
            if self.cut_results:
                async for page in self._pages(client, path):
                    for result in self.cut_results(page.text):
                        yield self.read_result(result)
                continue
            async with aclosing(client.lines(self._get(path))) as lines:
                async for line in lines:
                    yield self.read_result(line)

    async def _pages(self, client: "ApiClient", path: str) -> AsyncGenerator["Response", None]:
        seen: set[str] = set()
        token: str | None = ""
        while token is not None:
            more = f"&{self.token_name}={quote(token)}" if token else ""
            page = await client.send(self._get(f"{path}?{self.page_query}{more}"))
            yield page
            token = self.next_token(as_object(page.body))
            if token is not None and token in seen:
                raise ProviderError("The provider's list repeats its pages.")
            seen.add(token or "")

    def _get(self, path: str) -> ProviderRequest:
        return ProviderRequest(path, self.headers, {}, "GET")


def split_items(items: Iterable[BatchItem], limits: BatchLimits) -> Iterator[tuple[BatchItem, ...]]:
    """The items in their order, as many together as one batch holds; InputError where one alone is too large."""
    together: list[BatchItem] = []
    size = 0
    for item in items:
        more = len(encode_body(item.request.body)) + 300  # what stands around it in its line
        if more > limits.bytes:
            advice = "Shorten it."
            raise InputError(f"The question {item.custom_id} has {more} bytes; a batch holds {limits.bytes}. {advice}")
        if together and (len(together) == limits.requests or size + more > limits.bytes):
            yield tuple(together)
            together, size = [], 0
        together.append(item)
        size += more
    if together:
        yield tuple(together)


def _check_items(items: Sequence[BatchItem], limits: BatchLimits, takes: str) -> str:
    """The path that all items are for, once it is certain that a provider takes them as one batch."""
    if not 0 < len(items) <= limits.requests:
        raise InputError(f"A batch holds 1 to {limits.requests} questions, not {len(items)}.")
    ids = {item.custom_id for item in items}
    # Anthropic's rule, the narrowest of the four.
    odd = next((name for name in ids if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)), None)
    if odd is not None:
        raise InputError(f"{odd!r} cannot be the id of a question in a batch: up to 64 of A-Z, a-z, 0-9, _ and - can.")
    if len(ids) < len(items):
        raise InputError("Two questions of one batch have the same id.")
    paths = sorted({item.request.path for item in items})
    if len(paths) > 1:
        raise InputError(f"One batch cannot ask at both {paths[0]} and {paths[1]}; make two.")
    if not re.fullmatch(takes, paths[0]):
        raise InputError(f"Requests to {paths[0]} cannot be sent in a batch. Ask without `--batch`.")
    return paths[0]


async def upload_questions(client: "ApiClient", items: Iterable[BatchItem], path: str, **fields: str) -> str:
    """The id of an uploaded file with a line for each item, as OpenAI and xAI want them."""
    url = f"/v1{path}"
    lines = ({"custom_id": each.custom_id, "method": "POST", "url": url, "body": each.request.body} for each in items)
    uploaded = await upload(client, "/files", *_form_upload(fields, lines))
    return known_id(as_object(uploaded).get("id"), "file")


async def upload(client: "ApiClient", path: str, content: bytes, headers: dict[str, str]) -> Any:
    """The body that answers the upload of a file; a file alone makes no batch and costs nothing."""
    try:
        return (await client.send(ProviderRequest(path, headers, {}), content=content)).body
    except ProviderError as failure:
        raise _again(failure, is_lost=False) from failure


async def create(client: "ApiClient", request: ProviderRequest, read: Callable[[Any], BatchState]) -> BatchState:
    """The state that answers the creation of a batch, which is sent once: a second one might make a second batch.

    The `is_lost` of a ProviderError says whether the batch may have been made all the same.
    """
    try:
        response = await client.send(request, attempts=1)
    except ProviderError as failure:
        refused = failure.attempts == 0 or 300 <= (failure.status or 0) < 500
        raise _again(failure, is_lost=not refused) from failure
    try:
        return read(response.body)
    except ProviderError as failure:
        raise _again(failure, is_lost=True) from failure


def _again(failure: ProviderError, is_lost: bool) -> ProviderError:
    return ProviderError(str(failure), failure.kind, status=failure.status, attempts=failure.attempts, is_lost=is_lost)


def status_of(word: str) -> BatchStatus:
    return _ENDS.get(word.lower(), "working")


def known_id(value: object, what: str, prefix: str = "") -> str:
    """The id that a provider gave, fit to be a part of a path; ProviderError where it is none."""
    text = value if isinstance(value, str) else ""
    if text.startswith(prefix) and re.fullmatch(r"[A-Za-z0-9][\w.-]{0,199}", text.removeprefix(prefix), flags=re.ASCII):
        return text
    raise ProviderError(f"The provider's answer names no {what} that can be asked for.")


def _form_upload(fields: Mapping[str, str], lines: Iterable[Mapping[str, Any]]) -> tuple[bytes, dict[str, str]]:
    """The body and headers that send the lines as the file of a form, its fields before it (xAI refuses them after it).

    Source: RFC 7578.
    """
    parts = [
        f'--{_BOUNDARY}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    head = f'--{_BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="batch.jsonl"\r\n'
    return _upload("form-data", "".join([*parts, head]), lines)


def related_upload(about: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> tuple[bytes, dict[str, str]]:
    """The body and headers that send the lines after what is said about them, as Google takes both in one request.

    Source: https://developers.google.com/workspace/drive/api/guides/manage-uploads#multipart, read 2026-11.
    """
    said = encode_body(about).decode("ascii")
    head = f"--{_BOUNDARY}\r\ncontent-type: application/json; charset=UTF-8\r\n\r\n{said}\r\n--{_BOUNDARY}\r\n"
    return _upload("related", head, lines)


def _upload(kind: str, head: str, lines: Iterable[Mapping[str, Any]]) -> tuple[bytes, dict[str, str]]:
    content = bytearray(f"{head}content-type: application/jsonl\r\n\r\n".encode("ascii"))
    for line in lines:
        content += encode_body(line)
        content += b"\n"
    content += f"\r\n--{_BOUNDARY}--\r\n".encode("ascii")
    return bytes(content), {"content-type": f"multipart/{kind}; boundary={_BOUNDARY}"}


def cut(text: str, *path: str) -> str:
    """The value under the names, one within the other; empty where there is none or the text is no JSON."""
    try:
        at = _skip(text, 0)
        for name in path:
            found = next((start for key, start in _members(text, at) if key == name), None)
            if found is None:
                return ""
            at = found
        return text[at : _DECODER.raw_decode(text, at)[1]]
    except (ValueError, IndexError, RecursionError):
        return ""


def rpc_failure(custom_id: str, code: int, error: str) -> BatchResult:
    outcome: Outcome = "cancelled" if code == 1 else "failed"
    return BatchResult(custom_id, outcome, _RPC_STATUSES.get(code, 500), f'{{"error":{error}}}')


def read_line(line: str) -> dict[str, Any]:
    try:
        return as_object(load_body(line))
    except ProviderError:
        return {}


def cut_list(text: str, name: str) -> Iterator[str]:
    inner = cut(text, name)
    if not inner.startswith("["):
        return
    at = _skip(inner, 1)
    while inner[at] != "]":
        end = _DECODER.raw_decode(inner, at)[1]
        yield inner[at:end]
        at = _skip(inner, end)
        at = _skip(inner, at + 1) if inner[at] == "," else at


def _members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """The names of the object that begins here, each with where its value begins. ValueError, IndexError: no JSON."""
    if text[at] != "{":
        return
    at = _skip(text, at + 1)
    while text[at] == '"':
        name, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] != ":":
            raise ValueError("a colon is missing")
        at = _skip(text, at + 1)
        yield name, at
        at = _skip(text, _DECODER.raw_decode(text, at)[1])
        if text[at] != ",":
            return
        at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in " \t\r\n":
        at += 1
    return at
