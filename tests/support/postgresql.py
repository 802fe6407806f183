"""PostgreSQL and Redis from the system's packages, and Argilla on them, gone with the block."""

import contextlib
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest

from annotation.server import environment
from annotation.server.guardian import START
from tests.support.provider_server import closed_port as free_port

USER = "jury"
SYSTEM_USER = "postgres"
STARTS = 5
PATIENCE_SECONDS = 120
SERVICE = [str(environment.folder() / "bin" / "python"), "-P", START, "annotation.server.service"]


class Server(NamedTuple):
    """An Argilla: its address, its owner's key and, on PostgreSQL, its database's address and its environment."""

    url: str
    api_key: str
    database: str = ""
    environment: dict[str, str] = {}


def program(name: str) -> Path:
    """The newest PostgreSQL's program; the test skips where there is none."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    found = next((path / name for path in folders if (path / name).exists()), shutil.which(name))
    if found is None:
        pytest.skip(f"PostgreSQL is not installed here: no `{name}`.")
    return Path(found)


def as_its_user(command: Sequence[str | Path]) -> list[str]:
    """The command, run as `postgres` when we are root: PostgreSQL refuses to run as root."""
    words = [str(word) for word in command]
    return ["setpriv", "--reuid", SYSTEM_USER, "--regid", SYSTEM_USER, "--clear-groups", *words] if is_root() else words


def is_root() -> bool:
    return os.geteuid() == 0


@contextlib.contextmanager
def running_postgresql() -> Iterator[str]:
    """`postgresql://jury@127.0.0.1:PORT/jury` of an empty database, kept in memory's speed: nothing is synced."""
    initdb, pg_ctl, createdb = (program(name) for name in ("initdb", "pg_ctl", "createdb"))
    if is_root() and SYSTEM_USER not in {user.pw_name for user in pwd.getpwall()}:
        pytest.skip(f"PostgreSQL needs a user `{SYSTEM_USER}` on this machine when the tests run as root.")
    # Not in pytest's own folder, which other users cannot enter.
    folder = Path(subprocess.check_output(as_its_user(["mktemp", "-d"]), text=True).strip())
    data, log = folder / "data", folder / "log"
    try:
        run([initdb, "-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale", "C.UTF-8", "--no-sync"])
        port = start(pg_ctl, data, log, folder)
        try:
            run([createdb, "-h", "127.0.0.1", "-p", str(port), "-U", USER, USER])
            yield f"postgresql://{USER}@127.0.0.1:{port}/{USER}"
        finally:
            run([pg_ctl, "-D", data, "-m", "immediate", "-w", "stop"])
    finally:
        subprocess.run(as_its_user(["rm", "-rf", str(folder)]), check=False)


def start(pg_ctl: Path, data: Path, log: Path, sockets: Path) -> int:
    """The port that it listens at. Another process may take a free port before it does, so that is tried again."""
    for _ in range(STARTS):
        port = free_port()
        options = f"-p {port} -c listen_addresses=127.0.0.1 -k {sockets} -c fsync=off -c full_page_writes=off"
        if run([pg_ctl, "-D", data, "-l", log, "-w", "-t", "120", "-o", options, "start"], check=False) == 0:
            return port
    raise AssertionError(f"PostgreSQL does not start: {log.read_text(encoding='utf-8')}")


def run(command: Sequence[str | Path], check: bool = True) -> int:
    """How the command ended. Its output goes nowhere: the server that it starts would keep a pipe open."""
    done = subprocess.run(
        as_its_user(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        check=False,
    )
    assert not check or done.returncode == 0, f"{command} ended with {done.returncode}"
    return done.returncode


@contextlib.contextmanager
def running_redis(folder: Path, password: str = "") -> Iterator[str]:
    """`redis://[:PASSWORD@]127.0.0.1:PORT/0` of an empty Redis that keeps nothing on disk."""
    if shutil.which("redis-server") is None:
        pytest.skip("Redis is not installed here: no `redis-server`.")
    process, port = start_redis(folder, password)
    try:
        yield f"redis://{f':{password}@' if password else ''}127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait()


def start_redis(folder: Path, password: str) -> tuple["subprocess.Popen[bytes]", int]:
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


def run_part(command: Sequence[str], environment: Mapping[str, str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def running_web(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[str]:
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            address = next(line.split()[-1] for line in process.stderr if "listens at" in line)
            threading.Thread(target=pass_on, args=(process.stderr,), daemon=True).start()
            yield address
        finally:
            end(process)


def pass_on(lines: IO[str]) -> None:
    for line in lines:
        sys.stderr.write(line)


def end(process: "subprocess.Popen[Any]") -> None:
    """Tell a part to stop, as a container is, and see that it does, well."""
    process.terminate()
    assert process.wait(PATIENCE_SECONDS) == 0


@contextlib.contextmanager
def server_on_postgresql(folder: Path) -> Iterator[Server]:
    """Our Argilla in two processes on PostgreSQL and Redis, as docker/ runs it."""
    key = secrets.token_urlsafe(32)
    with running_redis(folder) as queue, running_postgresql() as database:
        environment = {
            "PATH": "/usr/bin:/bin",
            "ARGILLA_AUTH_SECRET_KEY": secrets.token_hex(16),
            "ARGILLA_DATABASE_URL": database.replace("postgresql:", "postgresql+asyncpg:"),
            "ARGILLA_HOME_PATH": str(folder),
            "ARGILLA_REDIS_URL": queue,
            "ARGILLA_SEARCH_ENGINE": "citejury",
            "CITEJURY_HOLD_SECONDS": "900",
            "CITEJURY_LISTEN": "127.0.0.1:0",
            "CITEJURY_OWNER_API_KEY": key,
            "CITEJURY_OWNER_PASSWORD": secrets.token_urlsafe(12),
            "CITEJURY_OWNER_USERNAME": "owner",
            "CITEJURY_WEB_PROCESSES": "2",
            "HF_HUB_OFFLINE": "1",
        }
        run_part([*SERVICE, "migrate"], environment)
        with running_web([*SERVICE, "web"], environment) as address:
            yield Server(f"http://{address}", key, database, environment)
