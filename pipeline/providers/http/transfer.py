"""One request and the bytes that come back, capped; every way in which that fails is an error of ours."""

import re
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from http.cookiejar import CookieJar
from typing import NamedTuple

import httpx

from pipeline.core.errors import ProviderError
from pipeline.providers.http.failure import REDACTED

_MAX_BODY_BYTES = 32 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024
_ENCODINGS = ("gzip", "x-gzip", "deflate")
# zlib's own word for: told by the header whether it is gzip or zlib.
_ANY_HEADER = 47
REDIRECT = "redirected-to"
_TRANSPORT_WORDS: dict[type[Exception], str] = {
    httpx.ConnectError: "cannot be reached",
    httpx.ProxyError: "cannot be reached through the proxy of the environment",
    httpx.RemoteProtocolError: "closed the connection before its answer was whole",
    httpx.ReadError: "broke the connection before its answer was whole",
    httpx.WriteError: "broke the connection before the question was whole",
    httpx.UnsupportedProtocol: "has an address that is not http or https",
}


class RawResponse(NamedTuple):
    """`fault` says why the text is not the whole body; one that cannot be unpacked has a letter for each byte."""

    status: int
    headers: Mapping[str, str]
    text: str
    fault: ProviderError | None = None


async def _hold_redirect(response: httpx.Response) -> None:
    """Rename `location`: httpx would read it, and trip over some of what stands there."""
    if "location" in response.headers:
        response.headers[REDIRECT] = response.headers.pop("location")


def one_connection(trust: ssl.SSLContext, silence: httpx.Timeout) -> httpx.AsyncClient:
    """A client for one request at a time, which follows no redirect and keeps no cookie."""
    return httpx.AsyncClient(
        verify=trust,
        timeout=silence,
        # Proxies of the environment are for the world outside; a server on this machine is asked directly.
        mounts={f"all://{host}": None for host in ("127.0.0.1", "localhost", "[::1]")},
        follow_redirects=False,
        event_hooks={"response": [_hold_redirect]},
        cookies=NoCookies(),
    )


@asynccontextmanager
async def opened(
    client: httpx.AsyncClient, url: str, headers: Mapping[str, str], content: bytes = b"", method: str = "GET"
) -> AsyncIterator[httpx.Response]:
    """A response of which only the head was read; the block may read its body with one of the functions below."""
    host = httpx.URL(url).host
    has_begun = False
    try:
        async with client.stream(method, url, headers=dict(headers), content=content) as response:
            has_begun = response.is_success
            yield response
    except httpx.TimeoutException as error:
        is_lost = not isinstance(error, httpx.ConnectTimeout)
        raise ProviderError(f"{host} did not answer in time.", "timeout", is_lost=is_lost) from None
    except (httpx.TransportError, httpx.StreamError, httpx.InvalidURL, ValueError) as error:
        raise _broken(host, error, has_begun) from None


async def read_whole(response: httpx.Response) -> RawResponse:
    """The response with its body, or with what came of it: of one larger than any answer the first megabyte."""
    raw, fault = bytearray(), None
    try:
        async for chunk in response.aiter_raw():
            raw += chunk
            if len(raw) > _MAX_BODY_BYTES:
                fault = _too_large(response.status_code)
                del raw[_PIECE_BYTES:]
                break
    except httpx.TransportError as error:
        if isinstance(error, httpx.TimeoutException) or not response.is_success:
            raise
        fault = _broken(response.url.host, error, has_begun=True)
    names = {name.lower(): value for name, value in response.headers.items()}
    text, damage = _unpack(bytes(raw), names.get("content-encoding", ""), response.status_code)
    return RawResponse(response.status_code, names, text, fault or damage)


async def read_lines(response: httpx.Response) -> AsyncIterator[str]:
    """The lines of a body of any length, one after the other, without those that are blank."""
    rest = bytearray()
    async for piece in _unpacked(response):
        if b"\n" in piece:
            *whole, last = piece.split(b"\n")
            whole[0] = bytes(rest) + whole[0]
            rest = bytearray(last)
            for line in whole:
                if line.strip():
                    yield line.decode("utf-8", errors="replace")
        else:
            rest += piece
        if len(rest) > _MAX_BODY_BYTES:
            raise _too_large(response.status_code)
    if rest.strip():
        yield rest.decode("utf-8", errors="replace")


async def _unpacked(response: httpx.Response) -> AsyncIterator[bytes]:
    """The body in pieces of at most 1 MB without its compression."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        async for chunk in response.aiter_raw():
            yield chunk
        return
    if encoding not in _ENCODINGS:
        raise ProviderError("The answer came in a compression that was not asked for.", status=response.status_code)
    unpacker = zlib.decompressobj(wbits=_ANY_HEADER)
    try:
        async for chunk in response.aiter_raw():
            while chunk:
                yield unpacker.decompress(chunk, _PIECE_BYTES)
                chunk = unpacker.unconsumed_tail
    except zlib.error as error:
        raise ProviderError(
            "The compressed answer cannot be unpacked.", "network", status=response.status_code
        ) from error
    if not unpacker.eof:
        raise ProviderError("The compressed answer ends before it is whole.", "network", status=response.status_code)


def _unpack(raw: bytes, encoding: str, status: int) -> tuple[str, ProviderError | None]:
    """The body's text without its compression, never more than the limit in memory, and why it is not all of it."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity") or not raw:
        return _decode(raw), None
    as_it_came = raw.decode("latin-1")
    if encoding not in _ENCODINGS:
        return as_it_came, ProviderError("The answer came in a compression that was not asked for.", status=status)
    unpacker = zlib.decompressobj(wbits=_ANY_HEADER)
    try:
        body = unpacker.decompress(raw, _MAX_BODY_BYTES + 1)
    except zlib.error:
        words = "The compressed answer cannot be unpacked."
        return as_it_came, ProviderError(words, "network", status=status, is_lost=True)
    if len(body) > _MAX_BODY_BYTES:
        return as_it_came, _too_large(status)
    if not unpacker.eof:
        words = "The compressed answer ends before it is whole."
        return _decode(body), ProviderError(words, "network", status=status, is_lost=True)
    return _decode(body), None


def _decode(body: bytes) -> str:
    """One wrong byte does not lose a paid answer."""
    return body.decode("utf-8-sig", errors="replace")


def _broken(host: str, error: Exception, has_begun: bool) -> ProviderError:
    # The exception's own words may hold a header, and with it the key.
    words = _TRANSPORT_WORDS.get(type(error), "could not be asked")
    return ProviderError(f"{host} {words}.", "network", is_lost=has_begun)


def _too_large(status: int) -> ProviderError:
    limit = _MAX_BODY_BYTES // (1024 * 1024)
    return ProviderError(
        f"The answer is larger than {limit} MB, which no answer is; the rest was not read.", status=status
    )


def hide_key(text: str, key: str) -> str:
    """The text without the key's own value, as it is or with any of its letters escaped; some providers echo it."""
    key = key.strip()
    if len(key) < 8:
        return text
    text = text.replace(key, REDACTED)
    # What begins an escaped letter in JSON, in a URL and in HTML.
    return _escaped_key(key).sub(REDACTED, text) if any(sign in text for sign in ("\\", "%", "&#")) else text


@cache
def _escaped_key(key: str) -> re.Pattern[str]:
    return re.compile(r"\\{0,3}".join(map(_escaped_letter, key)))


def _escaped_letter(letter: str) -> str:
    code = ord(letter)
    digits = "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in f"{code:02x}")
    # Each alternative begins with one plain letter: so `re` passes over the rest of a long body quickly.
    forms = (
        re.escape(letter),
        rf"\\\\{{0,3}}u00{digits}",
        f"%(?:25){{0,2}}{digits}",
        f"&#0*{code};",
        f"&#[xX]0*{digits};",
    )
    return f"(?:{'|'.join(forms)})"


class NoCookies(CookieJar):
    """Takes no cookie: one that cannot be sent back would fail every later request, also to other sites."""

    def extract_cookies(self, response: object, request: object) -> None:
        """Leave the response's cookies where they are."""
