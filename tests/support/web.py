"""A small web on 127.0.0.1: hosts by name, each a folder, a few pages, or a function of what is asked.

`Loopback` runs any asyncio server in a thread of its own; `Web` answers HTTP on it.
"""

import asyncio
import mimetypes
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit

import httpx

from pipeline.sources.guard import guarded_client

Connection = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Page(NamedTuple):
    body: str | bytes = b""
    status: int = 200
    content_type: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = {}
    seconds: float = 0.0
    """How long the server takes before it answers."""


class Asked(NamedTuple):
    """One request: host without port, path with query, names of headers in lower case."""

    host: str
    path: str
    headers: dict[str, str]


Site = Path | Mapping[str, Page | str | bytes] | Callable[[Asked], Page]


class Loopback:
    """A server on a free port of 127.0.0.1 or another loopback address, a context; its connections end with it."""

    def __init__(self, connection: Connection, host: str = "127.0.0.1") -> None:
        self.connection = connection
        self.host = host
        self.port = 0
        self.ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self.serve()), daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        return (self.host, self.port)

    def __enter__(self) -> Self:
        self.thread.start()
        if not self.ready.wait(60):
            raise RuntimeError("The loopback server does not start.")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.loop.call_soon_threadsafe(self.over.set)
        self.thread.join(60)

    async def serve(self) -> None:
        self.loop, self.over = asyncio.get_running_loop(), asyncio.Event()
        under_way: set[asyncio.Task[None]] = set()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            under_way.add(task)
            try:
                # A caller who hangs up is what many of these tests are about, and so is the end of the server.
                with suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, asyncio.CancelledError):
                    await self.connection(reader, writer)
            finally:
                under_way.discard(task)
                writer.transport.abort()

        server = await asyncio.start_server(answer, self.host, 0, backlog=1024)
        self.port = int(server.sockets[0].getsockname()[1])
        self.ready.set()
        await self.over.wait()
        server.close()
        for task in list(under_way):
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


class Web(Loopback):
    """The hosts of `sites`, and what was asked of them; every other name is no host at all.

    A folder serves its files, and `index.html` for a path that ends in `/`; pages stand under their path with query.
    """

    def __init__(self, sites: Mapping[str, Site], host: str = "127.0.0.1") -> None:
        super().__init__(self.talk, host)
        self.sites = dict(sites)
        self.asked: list[Asked] = []

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}:{self.port}{path}"

    def paths(self, host: str) -> list[str]:
        """The paths that were asked of a host, in order, robots.txt left out."""
        return [asked.path for asked in self.asked if asked.host == host and asked.path != "/robots.txt"]

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """127.0.0.1 for each host; for `guarded_client(resolve=...)`."""
        if host not in self.sites:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [self.host]

    def client(self, connections: int = 50) -> httpx.AsyncClient:
        """A guarded client for which these hosts are the whole web."""
        return guarded_client([self.address], resolve=self.resolve, connections=connections)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            asked = read_request(await reader.readuntil(b"\r\n\r\n"))
            self.asked.append(asked)
            page = page_of(self.sites.get(asked.host, {}), asked)
            if page.seconds:
                await asyncio.sleep(page.seconds)
            writer.write(response(page))
            await writer.drain()


def read_request(head: bytes) -> Asked:
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if name}
    return Asked(headers.get("host", "").partition(":")[0], first.split(" ")[1], headers)


def page_of(site: Site, asked: Asked) -> Page:
    """The page that a site has for a request; 404 where it has none."""
    if callable(site):
        return site(asked)
    found = folder_page(site, asked.path) if isinstance(site, Path) else site.get(asked.path)
    if found is None:
        return Page("<html><body>Not Found</body></html>", 404)
    return found if isinstance(found, Page) else Page(found)


def folder_page(folder: Path, path: str) -> Page | None:
    """The file of a folder that a path names; None where there is none below the folder."""
    file = (folder / unquote(urlsplit(path).path).lstrip("/")).resolve()
    file = file / "index.html" if file.is_dir() else file
    if not file.is_file() or not file.is_relative_to(folder.resolve()):
        return None
    return Page(file.read_bytes(), content_type=mimetypes.guess_type(file.name)[0] or "application/octet-stream")


def response(page: Page) -> bytes:
    body = page.body.encode() if isinstance(page.body, str) else page.body
    named = {"Content-Type": page.content_type} if page.content_type else {}
    headers = {**named, "Content-Length": str(len(body)), **page.headers}
    lines = [f"HTTP/1.1 {page.status} {HTTPStatus(page.status).phrase}", *(f"{k}: {v}" for k, v in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body
