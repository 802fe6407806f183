"""What a batch is to us, whoever runs it: items go in, a state can be looked at, results come out, each once.

Requests that are answered within a day for about half the price. Nothing here knows narratives or run folders; how a
provider runs batches stands in its own module.
"""

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pipeline.errors import InputError, ProviderError
from pipeline.providers.http.request import ProviderRequest, as_object, encode_body, load_body

if TYPE_CHECKING:
    from pipeline.providers.http.client import ApiClient

# What stands around an item's body in its line, the custom id included.
_LINE_BYTES = 300
# Anthropic's rule, the narrowest of the four.
_CUSTOM_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,199}", re.ASCII)
# The HTTP status that a failed request of Google's or xAI's would have had.
# Source: https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto, read 2026-11.
RPC_STATUSES = {
    1: 499,
    2: 500,
    3: 400,
    4: 504,
    5: 404,
    6: 409,
    7: 403,
    8: 429,
    9: 400,
    10: 409,
    11: 400,
    12: 501,
    13: 500,
    14: 503,
    15: 500,
    16: 401,
}
_DECODER = json.JSONDecoder()
_WHITE = " \t\r\n"
# Every line of an upload is JSON in ASCII and begins with a brace, so no boundary can stand in it.
_BOUNDARY = "citejury-batch"

BatchStatus = Literal["working", "ended", "failed", "expired", "cancelled"]
Outcome = Literal["answered", "failed", "expired", "cancelled"]


class BatchItem(NamedTuple):
    """One request of a batch, and the id by which its result is told: the `answer_id`."""

    custom_id: str
    request: ProviderRequest


class Upload(NamedTuple):
    """The body of an upload, and the header that says what it is."""

    content: bytes
    headers: dict[str, str]


class BatchLimits(NamedTuple):
    """The most requests and bytes that are put into one batch."""

    requests: int
    bytes: int


class BatchState(NamedTuple):
    """How far a batch is, in numbers of requests.

    `name` is ours, empty where the provider keeps none (Claude). While it is `working` nothing can be collected,
    after `failed` neither: the provider refused the whole batch for the `reason`, and nothing was answered. Otherwise
    what was answered before the end can be collected, from the `files` where there are any. `created` is as the
    provider writes it, in RFC 3339 or as a date.
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
    """What became of one request.

    `answered` and `failed` have the status and the body that a synchronous request would have had; a line that cannot
    be read counts as answered, for it may have to be paid, and is the text itself. What expired or was cancelled was
    not asked, and has the provider's words about it, if any. An id that cannot be read is empty.
    """

    custom_id: str
    outcome: Outcome
    status: int
    text: str


class BatchApi(NamedTuple):
    """How a provider runs batches.

    `token_price` is what tokens cost in a batch, as a share of the price in `[prices]`; searches cost as ever.
    `is_named` says whether `listed` tells batches by our name; where it does not, a batch is known by its custom ids,
    which its results have.
    """

    limits: BatchLimits
    token_price: float
    is_named: bool
    submit: Callable[["ApiClient", str, Sequence[BatchItem]], Awaitable[BatchState]]
    """Make a batch of this name of items that `check_items` takes, all for one model.

    It is asked for once, whatever the client's policy says, and all or nothing of it exists.

    Raises:
        InputError: the items are none for a batch.
        ProviderError: it was not made, or, where the error's `is_lost` says so, nobody knows: look for it in `listed`.
    """
    look: Callable[["ApiClient", str], Awaitable[BatchState]]
    """The state of the batch with this id.

    Raises:
        ProviderError: it cannot be had.
    """
    results: Callable[["ApiClient", BatchState], AsyncGenerator[BatchResult, None]]
    """What became of each request, in any order; one that has no result here was not asked.

    Raises:
        ProviderError: they cannot be had, or break off; what came before the break is good.
    """
    listed: Callable[["ApiClient"], AsyncGenerator[BatchState, None]]
    """Every batch of the key's owner that the provider still knows, by whomever made; newest first where it says so.

    Raises:
        ProviderError: they cannot be had.
    """
    cancel: Callable[["ApiClient", str], Awaitable[BatchState]]
    """Ask that nothing more be started of a batch, and give its state, which may say `working` for some minutes.

    Raises:
        ProviderError: the provider did not take it.
    """


def split_items(items: Iterable[BatchItem], limits: BatchLimits) -> Iterator[tuple[BatchItem, ...]]:
    """The items in their order, as many together as one batch holds.

    Raises:
        InputError: one item alone is too large.
    """
    together: list[BatchItem] = []
    size = 0
    for item in items:
        more = len(encode_body(item.request.body)) + _LINE_BYTES
        if more > limits.bytes:
            raise InputError(
                f"The question {item.custom_id} has {more} bytes; a batch holds {limits.bytes}. Shorten it."
            )
        if together and (len(together) == limits.requests or size + more > limits.bytes):
            yield tuple(together)
            together, size = [], 0
        together.append(item)
        size += more
    if together:
        yield tuple(together)


def check_items(items: Sequence[BatchItem], limits: BatchLimits, path: re.Pattern[str]) -> str:
    """The path that all items are for, once it is certain that a provider takes them as one batch.

    Raises:
        InputError: there are none or too many, two have one id, an id is none that every provider takes, or they are
            for several paths or one that no batch takes.
    """
    if not 0 < len(items) <= limits.requests:
        raise InputError(f"A batch holds 1 to {limits.requests} questions, not {len(items)}.")
    ids = {item.custom_id for item in items}
    odd = next((name for name in ids if not _CUSTOM_ID.fullmatch(name)), None)
    if odd is not None:
        raise InputError(f"{odd!r} cannot be the id of a question in a batch: up to 64 of A-Z, a-z, 0-9, _ and - can.")
    if len(ids) < len(items):
        raise InputError("Two questions of one batch have the same id.")
    paths = sorted({item.request.path for item in items})
    if len(paths) > 1:
        raise InputError(f"One batch cannot ask at both {paths[0]} and {paths[1]}; make two.")
    if not path.fullmatch(paths[0]):
        raise InputError(f"Requests to {paths[0]} cannot be sent in a batch. Ask without `--batch`.")
    return paths[0]


async def upload(client: "ApiClient", path: str, file: Upload) -> Any:
    """The body that answers the upload of a file; a file alone makes no batch and costs nothing.

    Raises:
        ProviderError: it was not taken.
    """
    try:
        return (await client.send(ProviderRequest(path, file.headers, {}), content=file.content)).body
    except ProviderError as failure:
        raise _again(failure, is_lost=False) from failure


async def create(client: "ApiClient", request: ProviderRequest, read: Callable[[Any], BatchState]) -> BatchState:
    """The state that answers the creation of a batch, which is sent once: a second one might make a second batch.

    Raises:
        ProviderError: its `is_lost` says whether the batch may have been made all the same.
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
    """The same failure, and whether something may have been made all the same."""
    return ProviderError(str(failure), failure.kind, status=failure.status, attempts=failure.attempts, is_lost=is_lost)


def known_id(value: object, what: str, prefix: str = "") -> str:
    """The id that a provider gave, fit to be a part of a path.

    Raises:
        ProviderError: it is none.
    """
    text = value if isinstance(value, str) else ""
    if text.startswith(prefix) and _ID.fullmatch(text.removeprefix(prefix)):
        return text
    raise ProviderError(f"The provider's answer names no {what} that can be asked for.")


def next_page(token: str, seen: set[str]) -> str:
    """The token, remembered; a list whose pages go round in circles is no list.

    Raises:
        ProviderError: it was there before.
    """
    if token in seen:
        raise ProviderError("The provider's list repeats its pages.")
    seen.add(token)
    return token


def form_upload(fields: Mapping[str, str], lines: Iterable[Mapping[str, Any]]) -> Upload:
    """The lines as the file of a form, its fields before it (xAI refuses them after it).

    Source: RFC 7578.
    """
    parts = [
        f'--{_BOUNDARY}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    head = f'--{_BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="batch.jsonl"\r\n'
    return _upload("form-data", "".join([*parts, head]), lines)


def related_upload(about: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> Upload:
    """The lines after what is told about them, as Google takes both in one request.

    Source: https://developers.google.com/workspace/drive/api/guides/manage-uploads#multipart, read 2026-11.
    """
    told = encode_body(about).decode("ascii")
    head = f"--{_BOUNDARY}\r\ncontent-type: application/json; charset=UTF-8\r\n\r\n{told}\r\n--{_BOUNDARY}\r\n"
    return _upload("related", head, lines)


def _upload(kind: str, head: str, lines: Iterable[Mapping[str, Any]]) -> Upload:
    """The head, the lines and the end."""
    content = bytearray(f"{head}content-type: application/jsonl\r\n\r\n".encode("ascii"))
    for line in lines:
        content += encode_body(line)
        content += b"\n"
    content += f"\r\n--{_BOUNDARY}--\r\n".encode("ascii")
    return Upload(bytes(content), {"content-type": f"multipart/{kind}; boundary={_BOUNDARY}"})


def cut(text: str, *path: str) -> str:
    """The value under the names, one within the other; empty where there is none or the text is no JSON.

    >>> cut('{"a": {"b": [1.50]}}', "a", "b")
    '[1.50]'
    """
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


def read_line(line: str) -> dict[str, Any]:
    """The object that a line is; an empty one where it is none."""
    try:
        return as_object(load_body(line))
    except ProviderError:
        return {}


def cut_list(text: str, name: str) -> Iterator[str]:
    """The items of the list under the name, one after the other; none where there is no such list."""
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
    """The names of the object that begins here, each with where its value begins; nothing where there is no object.

    Raises:
        ValueError, IndexError: the text is no JSON.
    """
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
    """The next place that holds no white space."""
    while text[at : at + 1] and text[at] in _WHITE:
        at += 1
    return at
