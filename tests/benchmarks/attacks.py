"""How long somebody's `GET /api/v1/me` takes while a stranger attacks the server, with our guard and without it.

Each row is the median under attack over the idle median of the same server, in the same run; what the same server
without the guard does stands beside it on stderr. Both have 1,024 open files and passwords as they are. Each request
comes on a connection of its own, as a newcomer's does; one that takes longer than five seconds counts as five.
"""

import contextlib
import http.client
import itertools
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from annotation.server.home.folder import read_or_make_secrets
from annotation.server.launch import start_server
from tests.benchmarks.bare_server import unpatched_server
from tests.benchmarks.measure import log, report

REQUESTS = 80
PAUSE_SECONDS = 0.05
LONGEST_SECONDS = 5.0
ATTACK_SECONDS = 15.0
OPEN_FILES = 1024
PASSWORD_PATCHES = ("slow_down", "check_elsewhere")

Place = tuple[str, int]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as servers:
        with few_open_files():
            guarded = servers.enter_context(start_server(Path(folder) / "guarded", port=0))
            bare = servers.enter_context(unpatched_server(Path(folder) / "bare", script=__file__, settings={}))
        key = read_or_make_secrets(Path(folder) / "bare").owner_api_key
        ours, theirs = place(guarded.url, guarded.owner_api_key), place(bare.api_url, key)
        for name in sys.argv[1:] or ATTACKS:
            with_guard, without = (ratio(name, *each) for each in (ours, theirs))
            log(f"{name}: {with_guard:.2f} with the guard, {without:.2f} without")
            report(name, with_guard, 5.0 if name == "log-in loops" else 3.0)


def place(url: str, key: str) -> tuple[Place, str]:
    """Host and port of the server, and the key."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    return (host, int(port)), key


@contextlib.contextmanager
def few_open_files() -> Iterator[None]:
    """So many open files for what is started here."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def ratio(name: str, server: Place, key: str) -> float:
    """The median under the attack over the idle one."""
    taken(server, key, 5)
    idle = statistics.median(taken(server, key, REQUESTS))
    command = [sys.executable, __file__, "attack", name, server[0], str(server[1])]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as attack:
        try:
            assert attack.stdout is not None
            attack.stdout.readline()  # it has begun
            during = statistics.median(taken(server, key, REQUESTS))
        finally:
            attack.kill()
    # What the attack has left behind is no part of the next one.
    while taken(server, key, 1)[0] > max(LONGEST_SECONDS / 5, 3 * idle):
        pass
    log(f"  {name}: {1000 * idle:.0f} ms idle, {1000 * during:.0f} ms under attack")
    return during / idle


def taken(server: Place, key: str, requests: int) -> list[float]:
    """Seconds of requests one after another, until the attack is nearly over."""
    found: list[float] = []
    began = time.perf_counter()
    while len(found) < requests and time.perf_counter() - began < ATTACK_SECONDS - LONGEST_SECONDS:
        start = time.perf_counter()
        connection = http.client.HTTPConnection(*server, timeout=LONGEST_SECONDS)
        try:
            connection.request("GET", "/api/v1/me", headers={"X-Argilla-Api-Key": key})
            connection.getresponse().read()
            found.append(min(LONGEST_SECONDS, time.perf_counter() - start))
        except (OSError, http.client.HTTPException):
            found.append(LONGEST_SECONDS)
        finally:
            connection.close()
        time.sleep(PAUSE_SECONDS)  # else they would all be in one wave of an attack
    return found


def send(server: Place, *pieces: bytes, endless: bytes = b"") -> None:
    """Send a request, or as much of it as is taken, and read what comes."""
    with contextlib.suppress(OSError), socket.create_connection(server, timeout=ATTACK_SECONDS) as connection:
        for piece in pieces:
            connection.sendall(piece)
        for _ in range(4096 if endless else 0):
            connection.sendall(endless)
        while connection.recv(65536):
            pass


def head(path: str, method: str = "GET", **headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def post_form(server: Place, body: bytes) -> None:
    form = "application/x-www-form-urlencoded"
    send(server, head("/api/v1/token", "POST", Content_Length=str(len(body)), Content_Type=form) + body)


def dribble(server: Place, begin: bytes) -> None:
    """1,300 connections, a byte on each every second; one that is ended is opened again."""
    connections: list[socket.socket | None] = [None] * 1300
    while True:
        for number, connection in enumerate(connections):
            try:
                if connection is None:
                    connections[number] = socket.create_connection(server, timeout=1)
                    connections[number].sendall(begin)  # type: ignore[union-attr]
                else:
                    connection.send(b"a")
            except OSError:
                connections[number] = None
        time.sleep(1)


def hold_open(server: Place) -> None:
    """1,300 connections that send nothing; one that is ended is opened again, a thousand a second at most."""
    held = [opening(server) for _ in range(1300)]
    while True:
        for number, connection in enumerate(held):
            try:
                is_ended = not connection.recv(1)
            except BlockingIOError:
                continue
            except OSError:
                is_ended = True
            if is_ended:
                connection.close()
                held[number] = opening(server)
                time.sleep(0.001)
        time.sleep(0.1)


def opening(server: Place) -> socket.socket:
    """A connection that is being made."""
    connection = socket.socket()
    connection.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        connection.connect(server)
    return connection


ATTACKS: dict[str, tuple[Callable[[Place], None], int]] = {
    # A file in 57,000 pieces of two bytes.
    "Range": (lambda server: send(server, head("/favicon.ico", Range="bytes=" + "0-1," * 57_000 + "2-3")), 1),
    # 256 MB to a route that needs a log-in.
    "large body": (
        lambda server: send(
            server, head("/api/v1/workspaces", "POST", Content_Length=str(4096 * 65536)), endless=b"a" * 65536
        ),
        1,
    ),
    "slow headers": (lambda server: dribble(server, b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "), 1),
    "slow body": (lambda server: dribble(server, head("/api/v1/token", "POST", Content_Length="60000")), 1),
    "half-open": (hold_open, 1),
    # 4 MB.
    "large header": (
        lambda server: send(server, head("/api/v1/version")[:-2], b"X-Long: ", *[b"a" * 65536] * 64, b"\r\n\r\n"),
        1,
    ),
    # A wrong password of a user that there is.
    "log-in loops": (lambda server: post_form(server, b"username=owner&password=wrong-password"), 10),
    # 20,000 fields without a name and a password.
    "long forms": (lambda server: post_form(server, b"a=&" * 20_000), 10),
}
"""What each does, again and again, and in how many threads."""


def attack(name: str, server: Place) -> None:
    """Attack the server until killed, or for so many seconds."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    once, threads = ATTACKS[name]
    for _ in range(threads):
        threading.Thread(target=lambda: [once(server) for _ in itertools.repeat(None)], daemon=True).start()
    time.sleep(1)
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    time.sleep(ATTACK_SECONDS)


def serve_unguarded(descriptor: int) -> None:
    """Serve our argilla-server as it was before there was a guard, and with its own log-in."""
    import asyncio

    import uvicorn

    from annotation.server.patches import table
    from annotation.server.web import loading, make_owner, migrate_database

    table.PATCHES = [each for each in table.PATCHES if each[2] not in PASSWORD_PATCHES]
    with loading() as app:
        migrate_database()
        kept = read_or_make_secrets(Path(os.environ["ARGILLA_HOME_PATH"]).parent)
        asyncio.run(make_owner(kept.owner_username, kept.owner_password, kept.owner_api_key))
    config: Any = uvicorn.Config(app, log_level="warning", access_log=False, timeout_keep_alive=30)
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    if sys.argv[1:2] == ["attack"]:
        attack(sys.argv[2], (sys.argv[3], int(sys.argv[4])))
    elif sys.argv[1:] and sys.argv[1].isdecimal():
        serve_unguarded(int(sys.argv[1]))
    else:
        main()
