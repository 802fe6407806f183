"""A web that attacks whoever reads it: every host of `ATTACKS` does one bad thing, for as long as it may."""

import asyncio
import socket
import zlib
from collections.abc import Awaitable, Callable, Sequence

import httpx

from pipeline.sources.guard import guarded_client
from tests.support.web import Loopback, Page, read_request, response

PUBLIC = "93.184.215.14"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
ROBOTS_SIZE = 100 * 1024 * 1024

Attack = Callable[[asyncio.StreamWriter], Awaitable[None]]


def says(head: bytes, body: bytes = b"") -> Attack:
    async def attack(writer: asyncio.StreamWriter) -> None:
        writer.write(head + b"\r\n" + body)
        await writer.drain()

    return attack


def leads_to(location: str) -> Attack:
    return says(f"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: {location}\r\n".encode("latin-1"))


def repeats(head: bytes, piece: bytes) -> Attack:
    async def attack(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(piece)
            await writer.drain()

    return attack


def hangs(beginning: bytes) -> Attack:
    """Sends this, and nothing more for ever."""

    async def attack(writer: asyncio.StreamWriter) -> None:
        writer.write(beginning)
        await writer.drain()
        await asyncio.Event().wait()

    return attack


def bomb(encoding: str, wbits: int) -> Attack:
    """A body without end, a thousandth of it on the wire."""

    async def attack(writer: asyncio.StreamWriter) -> None:
        packer = zlib.compressobj(wbits=wbits)
        writer.write(OK + f"Content-Encoding: {encoding}\r\n\r\n".encode())
        while True:
            writer.write(packer.compress(bytes(1024 * 1024)) + packer.flush(zlib.Z_SYNC_FLUSH))
            await writer.drain()

    return attack


REFUSED = {
    "loopback": "http://127.0.0.1/",
    "loopback6": "http://[::1]/",
    "mapped": "http://[::ffff:10.0.0.1]/",
    "metadata": "http://169.254.169.254/latest/meta-data/",
    "zero": "http://0.0.0.0/",
    "decimal": "http://2130706433/",
    "octal": "http://0177.0.0.1/",
    "hex": "http://0x7f.1/",
    "short": "http://127.1/",
    "two": "http://two-addresses.example/",
    "user": f"http://user:secret@{PUBLIC}/",
    "port": f"http://{PUBLIC}:22/",
    "file": "file:///etc/passwd",
    "gopher": "gopher://127.0.0.1:6379/_FLUSHALL",
    "no-url": "http://[",
}

HOW_IT_ENDS: dict[str, tuple[Attack, str]] = {
    **{f"to-{name}": (leads_to(target), "refused") for name, target in REFUSED.items()},
    "gzip-bomb": (bomb("gzip", 31), "too_large"),
    "deflate-bomb": (bomb("deflate", -15), "too_large"),
    "brotli": (says(OK + b"Content-Encoding: br\r\n", b"\x1b\xff\xff"), "parser_failed"),
    "packed-twice": (says(OK + b"Content-Encoding: gzip, gzip\r\n", b"\x1f\x8b"), "parser_failed"),
    "no-gzip": (says(OK + b"Content-Encoding: gzip\r\n", b"<html>plain"), "parser_failed"),
    "half-gzip": (says(OK + b"Content-Encoding: gzip\r\n", zlib.compress(b"a" * 999)[:12]), "parser_failed"),
    "endless": (repeats(OK + b"\r\n", b"<p>word " * 8192), "too_large"),
    "endless-chunks": (
        repeats(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"800\r\n" + b"word" * 512 + b"\r\n"),
        "too_large",
    ),
    "crumbs": (repeats(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"4\r\nword\r\n" * 512), "too_slow"),
    "tall-claim": (hangs(OK + b"Content-Length: " + b"9" * 15 + b"\r\n\r\n"), "too_large"),
    "long-length": (says(OK + b"Content-Length: 99\r\n", b"<p>half"), "network"),
    "short-length": (says(OK + b"Content-Length: 4\r\n", b"page and more"), "page"),
    "two-lengths": (says(OK + b"Content-Length: 4\r\nContent-Length: 5\r\n", b"pages"), "network"),
    "odd-length": (says(OK + b"Content-Length: -1\r\n", b"page"), "network"),
    "header-flood": (repeats(b"HTTP/1.1 200 OK\r\n", b"X-Flood: " + b"a" * 4096 + b"\r\n"), "network"),
    "one-header": (repeats(b"HTTP/1.1 200 OK\r\nX-Flood: ", b"a" * 65536), "network"),
    "nul": (says(OK + b"X-Nul: a\0b\r\nContent-Length: 4\r\n", b"page"), "network"),
    "split": (says(b"HTTP/1.1 302 Found\r\nLocation: http://a.example/\rX: b\r\n"), "network"),
    "no-http": (says(b"SSH-2.0-OpenSSH_9.2\r\n"), "network"),
    "status-999": (says(b"HTTP/1.1 999 Request denied\r\nContent-Length: 0\r\n"), "status_999"),
    "not-asked": (says(b"HTTP/1.1 304 Not Modified\r\n"), "status_304"),
    "image": (repeats(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n", b"\x89PNG" * 8192), "not_text"),
    "binary": (says(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n", b"\x7fELF\0\0"), "not_text"),
    "circle": (leads_to("/"), "redirects"),
}
SLOW: dict[str, tuple[Attack, str]] = {
    "mute": (hangs(b""), "timeout"),
    "slow-head": (hangs(b"HTTP/1.1 200 OK\r\nX-Slow: "), "timeout"),
    "slow-body": (hangs(OK + b"Content-Length: 9\r\n\r\n<p>"), "too_slow"),
}
HINTS = repeats(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n")
ATTACKS = {**HOW_IT_ENDS, **SLOW, "hints": (HINTS, "timeout")}


class HostileWeb(Loopback):
    """Every attack under its name, at `http://<name>.example`; robots.txt is 404 but on `robots-*` hosts.

    `stairs.example` redirects 10,000 times; `robots-huge.example` has a robots.txt of 100 MB whose first line closes
    everything. A name that begins with `flip` leads to a private address from its second look-up on.
    """

    def __init__(self) -> None:
        super().__init__(self.talk)
        self.looked_up: list[str] = []
        self.sent = 0

    def url(self, name: str) -> str:
        return f"http://{name}.example:{self.port}/"

    def client(self) -> httpx.AsyncClient:
        return guarded_client([self.address], resolve=self.resolve)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.looked_up.append(host)
        if host == "two-addresses.example":
            return [PUBLIC, "10.0.0.1"]
        if host.startswith("flip"):
            return ["127.0.0.1"] if self.looked_up.count(host) == 1 else ["169.254.169.254"]
        if not host.endswith(".example"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return ["127.0.0.1"]

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = read_request(await reader.readuntil(b"\r\n\r\n"))
        name = asked.host.removesuffix(".example")
        if asked.path == "/robots.txt":
            await self.robots(name, writer)
        elif name == "stairs":
            await leads_to(f"/{int(asked.path.strip('/') or 0) + 1}")(writer)
        elif name in ATTACKS:
            await ATTACKS[name][0](writer)
        else:
            writer.write(response(Page("<p>page", headers={"Connection": "close"})))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def robots(self, name: str, writer: asyncio.StreamWriter) -> None:
        if not name.startswith("robots-"):
            writer.write(response(Page(status=404, headers={"Connection": "close"})))
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nUser-agent: *\nDisallow: /\n")
        while self.sent < ROBOTS_SIZE:
            writer.write(b"User-agent: agent\n" * 4096)
            self.sent += 18 * 4096
            await writer.drain()
