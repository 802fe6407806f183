"""Our guard under uvicorn in a thread, before a small app, for the tests of what comes before argilla-server."""

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import uvicorn

from annotation.server.connections import Connection, Crowd, Limits

PATIENCE_SECONDS = 60
LONG_BYTES = 1024 * 65536
HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


async def tell_client(scope: Any, receive: Any, send: Any) -> None:
    """An app that answers with the client's address and the length of the body; `/long` and `/whole` with 64 MB."""
    if scope["type"] != "http":
        return
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return
        size += len(message["body"])
        more = message["more_body"]
    told = json.dumps({"client": scope["client"][0], "bytes": size}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    pieces, size = {"/long": (1024, 65536), "/whole": (1, LONG_BYTES)}.get(scope["path"], (0, 0))
    for _ in range(pieces):
        await send({"type": "http.response.body", "body": b" " * size, "more_body": True})
    await send({"type": "http.response.body", "body": told})


@contextlib.contextmanager
def running_edge(app: Any = tell_client, limits: Limits | None = None) -> Iterator[int]:
    """The port on which the app answers, behind connections of ours where limits are given, until the block ends."""
    http: Any = cast(Any, partial(Connection, crowd=Crowd(limits))) if limits else "httptools"
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    config = uvicorn.Config(app, http=http, ws="none", lifespan="off", log_level="warning", timeout_keep_alive=600)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])), daemon=True)
    thread.start()
    try:
        yield int(listening.getsockname()[1])
    finally:
        server.should_exit = server.force_exit = True
        thread.join(PATIENCE_SECONDS)
        listening.close()


@contextlib.contextmanager
def connected(port: int, *sent: bytes) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS) as connection:
        for piece in sent:
            connection.sendall(piece)
        yield connection


def read_to_the_end(connection: socket.socket) -> bytes:
    found = b""
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        while piece := connection.recv(65536):
            found += piece
    return found


def read_answer(connection: socket.socket) -> bytes:
    found = b""
    while not found.endswith(b"0\r\n\r\n"):
        found += connection.recv(65536)
    return found


def is_open(connection: socket.socket) -> bool:
    """Whether the server has not ended the connection, on which nothing was answered."""
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        connection.settimeout(PATIENCE_SECONDS)
