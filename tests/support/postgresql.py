"""A PostgreSQL server of a test's own, from the system's packages, gone with the block."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

USER = "jury"
SYSTEM_USER = "postgres"
STARTS = 5


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


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


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
