"""A Redis server of a test's own, from the system's packages, gone with the block."""

import contextlib
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgresql import free_port

STARTS = 5


@contextlib.contextmanager
def running_redis(folder: Path, password: str = "") -> Iterator[str]:
    """`redis://[:PASSWORD@]127.0.0.1:PORT/0` of an empty Redis that keeps nothing on disk."""
    if shutil.which("redis-server") is None:
        pytest.skip("Redis is not installed here: no `redis-server`.")
    process, port = start(folder, password)
    try:
        yield f"redis://{f':{password}@' if password else ''}127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait()


def start(folder: Path, password: str) -> tuple["subprocess.Popen[bytes]", int]:
    """The process and its port. Another one may take a free port before it does, so that is tried again."""
    for _ in range(STARTS):
        port = free_port()
        options = ["--bind", "127.0.0.1", "--save", "", "--dir", str(folder), "--requirepass", password]
        process = subprocess.Popen(["redis-server", "--port", str(port), *options], stdout=subprocess.DEVNULL)
        while process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                connection.sendall(b"PING\r\n")
                if connection.recv(7).startswith((b"+PONG", b"-NOAUTH")):
                    return process, port
    raise AssertionError("Redis does not start.")
