"""A response's body as it arrives, unpacked and never larger than its limit, however it was packed."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from typing import NamedTuple

# Brotli and others are not asked for, so nothing that they pack has to be unpacked.
ACCEPT_ENCODING = "gzip, deflate"
GZIP = ("gzip", "x-gzip")
# zlib's own words: told by the header whether it is gzip or zlib; no header at all.
ANY_HEADER = 47
NO_HEADER = -15

# A body of 10 MB comes in some thousand pieces; a server that sends it byte by byte is after something else.
MAX_PIECES = 20_000
# Crumbs that are there already come without a wait in which others could go on.
REST_AFTER = 200


class Body(NamedTuple):
    """What arrived of a body.

    `fault` is empty where that is all of it, otherwise why not: `too_large`, `too_slow` (in crumbs), `parser_failed`
    (packed in a way that cannot be unpacked); `content` is then its beginning.
    """

    content: bytes
    fault: str = ""
    detail: str = ""


async def read_body(pieces: AsyncIterator[bytes], encoding: str, limit: int) -> Body:
    """The body that the raw pieces make; reading ends as soon as more than `limit` bytes are there, raw or unpacked."""
    unpacker = unpacker_of(encoding)
    if unpacker is None:
        return Body(b"", "parser_failed", f"it is packed as {encoding[:40]!r}, which was not asked for")
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
            if count % REST_AFTER == 0:
                await asyncio.sleep(0)
    except zlib.error:
        return Body(bytes(content), "parser_failed", f"it is not packed as {encoding[:40]!r}, as its server says")
    if raw and not unpacker.whole:
        return Body(bytes(content), "parser_failed", "the packed body ends before it is whole")
    return Body(bytes(content))


class Plain:
    """Passes on what was not packed."""

    whole = True

    def unpack(self, piece: bytes, room: int) -> bytes:
        """The piece, at most `room` bytes of it."""
        return piece[:room]


class Unzip:
    """Unpacks gzip and both things that are called deflate, never more than it is told to."""

    def __init__(self) -> None:
        """Begin before the first byte."""
        self.inflate = zlib.decompressobj(wbits=ANY_HEADER)
        self.begun = False

    @property
    def whole(self) -> bool:
        """Whether the end has come; what follows it counts for nothing."""
        return self.inflate.eof

    def unpack(self, piece: bytes, room: int) -> bytes:
        """What the piece unpacks to, at most `room` bytes of it.

        Raises:
            zlib.error: it is not packed so.
        """
        if not piece or self.whole:
            return b""
        try:
            unpacked = self.inflate.decompress(piece, room)
        except zlib.error:
            if self.begun:
                raise
            # RFC 9110 8.4.1.2: some servers send deflate without the header that belongs to it.
            self.inflate = zlib.decompressobj(wbits=NO_HEADER)
            unpacked = self.inflate.decompress(piece, room)
        self.begun = True
        return unpacked


def unpacker_of(encoding: str) -> Plain | Unzip | None:
    """What unpacks a body of this `Content-Encoding`; None where nothing here does."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity", "none", "utf-8"):  # the last two are common mistakes
        return Plain()
    return Unzip() if encoding in (*GZIP, "deflate") else None
