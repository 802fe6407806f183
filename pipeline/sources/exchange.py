"""One request to one server, and what came of it: whatever the web does is a value here, never an error."""

import asyncio
import re
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from html import unescape
from typing import NamedTuple
from urllib.parse import urldefrag, urljoin

import httpx

from pipeline.citations.addresses import canonical_url
from pipeline.core.errors import InputError
from pipeline.sources.decode import decoded
from pipeline.sources.guard import NoSuchHostError, web_target

_PACKED, _UNPACKED = ("gzip", "x-gzip", "deflate"), ("", "identity", "none", "utf-8")  # two of them are mistakes
_ANY_HEADER, _NO_HEADER = 47, -15  # zlib's own words: that of gzip or zlib
# A body of 10 MB comes in some thousand pieces; a server that sends it byte by byte is after something else.
MAX_PIECES = 20_000


class Body(NamedTuple):
    """What arrived of a body; `fault` is empty where that is all of it, otherwise why it is only the beginning."""

    content: bytes
    fault: str = ""
    detail: str = ""


async def read_body(pieces: AsyncIterator[bytes], encoding: str, limit: int) -> Body:
    """The body that the raw pieces make; reading ends as soon as more than `limit` bytes are there, raw or unpacked."""
    if encoding.strip().lower() not in (*_PACKED, *_UNPACKED):
        return Body(b"", "parser_failed", f"it is packed as {encoding[:40]!r}, which was not asked for")
    unpacker = _Unpacker(encoding.strip().lower() in _PACKED)
    content = bytearray()
    raw = count = 0
    try:
        async for piece in pieces:
            raw, count = raw + len(piece), count + 1
            content += unpacker.unpack(piece, limit + 1 - len(content))
            if len(content) > limit or raw > limit:
                return Body(bytes(content[:limit]), "too_large", f"it is larger than {limit:,} bytes")
            if count > MAX_PIECES:
                return Body(bytes(content), "too_slow", f"it comes in more than {MAX_PIECES:,} pieces")
            # Crumbs that are there already come without a wait in which others could go on.
            if count % 200 == 0:
                await asyncio.sleep(0)
    except zlib.error:
        return Body(bytes(content), "parser_failed", f"it is not packed as {encoding[:40]!r}, as its server says")
    if raw and not unpacker.whole:
        return Body(bytes(content), "parser_failed", "the packed body ends before it is whole")
    return Body(bytes(content))


class _Unpacker:
    """Unpacks gzip and both things that are called deflate, never more than it is told to."""

    def __init__(self, is_packed: bool) -> None:
        self.inflate = zlib.decompressobj(wbits=_ANY_HEADER) if is_packed else None
        self.begun = False

    @property
    def whole(self) -> bool:
        return self.inflate is None or self.inflate.eof

    def unpack(self, piece: bytes, room: int) -> bytes:
        """What the piece unpacks to, at most `room` bytes of it; `zlib.error` where it is not packed so."""
        if self.inflate is None:
            return piece[:room]
        if not piece or self.inflate.eof:
            return b""
        try:
            unpacked = self.inflate.decompress(piece, room)
        except zlib.error:
            if self.begun:
                raise
            # RFC 9110 8.4.1.2: some servers send deflate without the header that belongs to it.
            self.inflate = zlib.decompressobj(wbits=_NO_HEADER)
            unpacked = self.inflate.decompress(piece, room)
        self.begun = True
        return unpacked


SUCCESS = (200, 203)

UNTOLD = ("", "application/octet-stream", "binary/octet-stream")
"""What names no type: the bytes tell whether it is a PDF."""
DOWNLOADS = ("application/download", "application/x-download", "application/force-download")
# What holds text, or may turn out to be a PDF; `text/*` and `*+xml`, `*+json` besides.
_READABLE = (*UNTOLD, *DOWNLOADS, "application/xml", "application/json", "application/pdf", "application/x-pdf")
_NO_TEXT = frozenset({"image/svg+xml", "text/css", "text/javascript", "text/event-stream"})

_TRANSPORT_WORDS: dict[type[Exception], str] = {
    httpx.ConnectError: "nobody answers there",
    httpx.RemoteProtocolError: "its answer is no HTTP, or ends before it is whole",
    httpx.ReadError: "the connection broke before the answer was whole",
    httpx.WriteError: "the connection broke before the request was whole",
}


class RequestLimits(NamedTuple):
    """With `beginning` a body that is larger, or of any type, is good as far as it goes."""

    max_bytes: int
    seconds: float
    headers: Mapping[str, str] = {}
    beginning: bool = False


class Exchange(NamedTuple):
    """What came of a request.

    `status` is None where no head of a response came, names in `headers` are in lower case, `location` is where a
    redirect leads. `reason` is empty where the response is as it was wanted, a redirect or an error status included.
    `reached` tells that somebody is there, whatever they said or failed to say; `leads_back` that the page leads by
    itself to where its reader has been.
    """

    status: int | None = None
    headers: Mapping[str, str] = {}
    body: bytes = b""
    location: str = ""
    reason: str = ""
    detail: str = ""
    seconds: float = 0.0
    reached: bool = False
    leads_back: bool = False


async def exchange(client: httpx.AsyncClient, url: str, demand: RequestLimits) -> Exchange:
    """What came of one GET by a guarded client; a redirect is reported, not followed."""
    clock = asyncio.get_running_loop().time
    begun = clock()
    came = Exchange()
    try:
        async with asyncio.timeout(max(0.0, demand.seconds)):
            # `Connection` and the rest are httpx's; what it would accept by itself depends on what is installed.
            # Brotli and others are not asked for, so nothing that they pack has to be unpacked.
            headers = {"Accept-Encoding": "gzip, deflate", **demand.headers}
            request = client.build_request("GET", url, headers=headers)
            response = await client.send(request, stream=True, follow_redirects=False)
            try:
                names = {name.lower(): value for name, value in response.headers.items()}
                target = response.next_request
                location = "" if target is None else str(target.url)
                came = Exchange(response.status_code, names, location=location, reached=True)
                came = await _take_body(response, came, demand)
            finally:
                await response.aclose()
    except InputError as error:
        came = came._replace(reason="refused", detail=str(error), location="")
    except (httpx.ReadTimeout, httpx.WriteTimeout):
        came = _late(came._replace(reached=True), demand.seconds)
    except (TimeoutError, httpx.TimeoutException):
        came = _late(came, demand.seconds)
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError) as error:
        came = _broken(came, error)
    return came._replace(seconds=clock() - begun)


async def _take_body(response: httpx.Response, head: Exchange, demand: RequestLimits) -> Exchange:
    """The body is read only if it is one that is wanted, that of redirects and errors never."""
    if head.status not in SUCCESS or head.location:
        return head
    if not demand.beginning and not _is_readable(media_type(head.headers)):
        return head._replace(reason="not_text", detail=f"it is {media_type(head.headers)[:80]!r}")
    length = head.headers.get("content-length", "")
    digits = length.lstrip("0") if length.isascii() and length.isdigit() else ""
    # One of thousands of digits is never made a number.
    if not demand.beginning and (len(digits) > 20 or int(digits or 0) > demand.max_bytes):
        return head._replace(reason="too_large", detail=f"it is larger than {demand.max_bytes:,} bytes")
    body = await read_body(response.aiter_raw(), head.headers.get("content-encoding", ""), demand.max_bytes)
    fault = "" if demand.beginning and body.fault == "too_large" else body.fault
    return head._replace(body=body.content if not fault else b"", reason=fault, detail=body.detail if fault else "")


def _late(came: Exchange, seconds: float) -> Exchange:
    if came.status is None:
        return came._replace(reason="timeout", detail="no answer in time")
    return came._replace(reason="too_slow", detail=f"the answer began and did not end within {seconds:.0f} seconds")


def _broken(came: Exchange, error: Exception) -> Exchange:
    """The server's own words are shown as such."""
    if isinstance(error, NoSuchHostError):
        return came._replace(reason="no_such_host", detail="there is no host of this name")
    words = _TRANSPORT_WORDS.get(type(error), "the connection failed")
    insecure = isinstance(error, ssl.SSLError) or "SSL" in str(error) or "certificate" in str(error)
    if insecure:
        words = "no secure connection can be made"
    said = "".join(letter if letter.isprintable() else " " for letter in str(error))[:200]
    reached = came.reached or insecure or not isinstance(error, httpx.ConnectError | OSError)
    return came._replace(reason="network", detail=f"{words} ({said})" if said else words, reached=reached)


def media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def named_charset(headers: Mapping[str, str]) -> str:
    for parameter in headers.get("content-type", "").split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip()
    return ""


def _is_readable(media: str) -> bool:
    if media in _NO_TEXT:
        return False
    return media in _READABLE or media.startswith("text/") or media.endswith(("+xml", "+json")) or "/" not in media


# What counts for nothing in a browser with scripts: comments, those for old browsers too, and `noscript`.
_SKIPPED_OR_TAG = re.compile(
    r"""<!--.*?(?:-->|\Z)
    | <(?P<skipped>script|style|noscript|template|textarea|title|xmp|iframe)\b.*?(?:</(?P=skipped)\b|\Z)
    | <(?P<tag>meta|base)\b(?P<attributes>(?:[^<>"'] | "[^"]{0,4000}" | '[^']{0,4000}'){0,4000})>""",
    re.I | re.S | re.X,
)
_ATTRIBUTE = re.compile(r"""([\w-]{1,40})\s{0,20}=\s{0,20}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_REFRESH = re.compile(
    r"""\s*(?P<seconds>[0-9]{1,6})?(?:\.[0-9.]{0,20})?(?:\s*[;,]\s*|\s+)(?:url\s*=\s*)?(?P<url>\S.*)""", re.I | re.S
)


def forwarding_target(came: Exchange, url: str) -> str:
    """The URL that the page at `url` leads its reader to within ten seconds; empty where they stay.

    Whether it may be asked for is judged when it is. One that differs in its fragment only is the page itself.
    """
    target = _target(came, url)
    return "" if not target or urldefrag(target).url == urldefrag(url).url else target


def leads_to_itself(came: Exchange, url: str) -> bool:
    """Whether the page at `url` leads its reader to that very page within ten seconds, again and again."""
    return _target(came, url) == canonical_url(url)


def _target(came: Exchange, url: str) -> str:
    if came.status not in SUCCESS or came.reason or came.location:
        return ""
    said, base = came.headers.get("refresh", ""), url
    if not said and media_type(came.headers) in ("text/html", "application/xhtml+xml", ""):
        said, base = _refresh_of(decoded(came.body[:65_536], named_charset(came.headers)), url)
    parts = _REFRESH.fullmatch(said)
    # Whoever waits longer is shown the page: front pages load themselves anew every few minutes.
    if parts is None or float(parts["seconds"] or 0) > 10.0:
        return ""
    target = parts["url"].strip()
    return _page_url(base, target[1:].partition(target[0])[0] if target[0] in "'\"" else target)


def _refresh_of(page: str, url: str) -> tuple[str, str]:
    """What the first refresh of the page says, empty without one, and the URL from which it counts."""
    base = url
    for found in filter(lambda each: each["tag"], _SKIPPED_OR_TAG.finditer(page)):
        values = {
            name.lower(): unescape(double or single or plain)
            for name, double, single, plain in _ATTRIBUTE.findall(found["attributes"])
        }
        if found["tag"].lower() == "base":
            base = _page_url(url, values.get("href", "")) or base
        elif values.get("http-equiv", "").strip().lower() == "refresh":
            return values.get("content", ""), base
    return "", base


def _page_url(base: str, target: str) -> str:
    with suppress(InputError, ValueError):
        found = canonical_url(urljoin(base, target))
        web_target(found)
        return found
    return ""
