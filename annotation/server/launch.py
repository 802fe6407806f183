"""Start and stop the embedded Argilla: argilla-server 2.8.0 with its own web page, SQLite, no Docker.

`serve` and `start_server` prepare the home and bind the address, so that a taken port is known at once. They start the
guardian (`guardian.py`), which starts the web (`web.py`), the worker (`worker.py`) and the queue, and wait for an
answer.
"""

import contextlib
import errno
import http.client
import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from annotation.server.edge import ALLOW_HOSTS_VARIABLE, BOUND_HOST_VARIABLE
from annotation.server.environment import held, server_python
from annotation.server.guardian import START
from annotation.server.home import folder
from annotation.server.home.archive import bring_up_to_date, refuse_newer_home
from annotation.server.home.damage import damage_sentence, read_damage, refuse_damaged_home
from annotation.server.home.logs import EVENTS_VARIABLE, following, turn_log
from annotation.server.upkeep import BackupsOnTime, looked_after
from pipeline.core.errors import ServerStartError
from pipeline.core.files import write_private
from pipeline.core.terminal import interrupted_by

DEFAULT_HOST = "127.0.0.1"


class ServerHandle(NamedTuple):
    url: str
    home: Path
    owner_username: str
    owner_password: str
    owner_api_key: str
    guardian: "subprocess.Popen[bytes]"


class ServerOptions(NamedTuple):
    behind_tls: bool = False  # whether a proxy with HTTPS stands in front, see `patches/middleware.py`
    hold_minutes: int = 15  # how long what an annotator looks at is kept from the others' queues, from 1 on
    allow_hosts: tuple[str, ...] = ()
    """Names that the server answers to beside localhost and the address that was reached, see `edge`."""
    backups: BackupsOnTime | None = None  # which backups are made by themselves while it runs; none where None


_DEFAULT_OPTIONS = ServerOptions()


@contextlib.contextmanager
def start_server(
    home: Path,
    host: str = DEFAULT_HOST,
    port: int = 6900,
    starting: Callable[[], None] = lambda: None,
    options: ServerOptions = _DEFAULT_OPTIONS,
    waiting: Callable[[str], None] = lambda line: None,
) -> Iterator[ServerHandle]:
    """A server that answers, until the block ends; `port` 0 lets the kernel choose.

    `starting` is called once home and port are ours, before the seconds that the start takes; `waiting` gets a line
    where looking through the database takes longer, or shows that something was lost. Raises ServerStartError and
    OutputError.
    """
    python = server_python()
    if not home.exists():  # a taken port leaves no home behind
        listen(host, port).close()
    home = folder.open_home(home)
    lock = folder.take_lock(home)
    try:
        with held(), listen(host, port) as listening:
            url = url_of(listening)
            folder.sign_lock(lock, url)
            refuse_damaged_home(home, waiting)
            refuse_newer_home(home)
            kept = folder.read_or_make_secrets(home)
            for path in (home / "logs").glob("*.log"):
                turn_log(path)
            starting()
            bring_up_to_date(home)
            environment = server_environment(home, options, host)
            guardian = _spawn_guardian(python, home, listening.fileno(), lock, environment)
        try:
            wait_until_it_answers(home, url)
            shell = f"ARGILLA_API_URL={quote(url)}\nARGILLA_API_KEY={quote(kept.owner_api_key)}\n"
            write_private(home / "env", shell)
            with looked_after(home, options.backups):
                yield ServerHandle(url, home, kept.owner_username, kept.owner_password, kept.owner_api_key, guardian)
        finally:
            _stop_guardian(guardian)
    finally:
        os.close(lock)


def _stop_guardian(guardian: "subprocess.Popen[bytes]") -> None:
    assert guardian.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        guardian.stdin.close()
    try:
        guardian.wait(15.0)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(guardian.pid, signal.SIGKILL)
        guardian.wait()


def serve(
    home: Path,
    host: str,
    port: int,
    announce: Callable[[ServerHandle], None],
    starting: Callable[[], None],
    options: ServerOptions = _DEFAULT_OPTIONS,
    show_event: Callable[[str], None] = lambda line: None,
    waiting: Callable[[str], None] = lambda line: None,
) -> None:
    """In the foreground until Ctrl-C, SIGTERM or a closed terminal; `show_event` is called by a thread of its own."""

    def start() -> None:
        starting()
        followed.enter_context(following(home / folder.EVENTS_FILE, show_event))

    with (
        interrupted_by(signal.SIGTERM, signal.SIGHUP),
        contextlib.ExitStack() as followed,
        contextlib.suppress(KeyboardInterrupt),
        start_server(home, host, port, start, options, waiting) as server,
    ):
        announce(server)
        server.guardian.wait()
        raise _stopped_by_itself(server.home)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at the address; connections wait in it until the web part takes them."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, OverflowError) as error:
        raise ServerStartError(
            f"There is no address {host!r} with port {port} to listen at. Choose with `--host` and `--port`."
        ) from error
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)
    except OSError as error:
        listening.close()
        other = (
            "another program has the port. Stop it, or choose another with `--port` (`--port 0` takes any free one)."
        )
        system = f"{(error.strerror or str(error)).lower()}. Choose an address of this machine with `--host`."
        above = "this user may not take that port. Choose one above 1023 with `--port`."
        why = {errno.EADDRINUSE: other, errno.EACCES: above}.get(error.errno or 0, system)
        raise ServerStartError(f"Cannot listen at {host}, port {port}: {why}") from error
    return listening


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _spawn_guardian(
    python: Path, home: Path, listening: int, lock: int, environment: dict[str, str]
) -> "subprocess.Popen[bytes]":
    log_file = os.open(home / "logs" / "guardian.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(log_file, "ab") as log:
        guardian = subprocess.Popen(
            [python, "-P", START, "annotation.server.guardian"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            pass_fds=(listening, lock),
            start_new_session=True,
        )
    orders = {"home": str(home), "listening": listening, "environment": environment}
    assert guardian.stdin is not None
    guardian.stdin.write(json.dumps(orders).encode() + b"\n")
    guardian.stdin.flush()
    return guardian


def server_environment(
    home: Path, options: ServerOptions = _DEFAULT_OPTIONS, host: str = DEFAULT_HOST
) -> dict[str, str]:
    """The environment of the server's parts: ours without any `ARGILLA_…` or key, and what argilla-server reads."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ARGILLA_", "CITEJURY_")) and not name.endswith(("_API_KEY", "_TOKEN"))
    }
    return kept | {
        "ARGILLA_HOME_PATH": str(home / "data"),
        "ARGILLA_DATABASE_URL": f"sqlite+aiosqlite:///{home / folder.DATABASE_FILE}?check_same_thread=False",
        "ARGILLA_DATABASE_SQLITE_TIMEOUT": "30",
        "ARGILLA_SEARCH_ENGINE": folder.ENGINE_NAME,
        "ARGILLA_AUTH_SECRET_KEY": folder.read_or_make_secrets(home).auth_secret_key,
        "ARGILLA_CORS_ORIGINS": "[]",
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "PYTHONUNBUFFERED": "1",
        EVENTS_VARIABLE: str(home / folder.EVENTS_FILE),
        folder.HOLD_SECONDS_SETTING: str(options.hold_minutes * 60),
        ALLOW_HOSTS_VARIABLE: " ".join(options.allow_hosts),
        BOUND_HOST_VARIABLE: host,
        **({folder.BEHIND_TLS_VARIABLE: "1"} if options.behind_tls else {}),
    }


def wait_until_it_answers(home: Path, url: str, seconds: float = 3600.0) -> None:
    """Until it has brought its database up to date; where a part fails, all end, and the connection with them."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=seconds)
    try:
        connection.request("GET", "/api/v1/version")
        said = f"answers with HTTP status {status}" if (status := connection.getresponse().status) != 200 else ""
    except TimeoutError:
        said = f"did not answer for {seconds:g} seconds"
    except (OSError, http.client.HTTPException) as error:
        raise _stopped_by_itself(home) from error
    finally:
        connection.close()
    if said:
        raise ServerStartError(f"The embedded Argilla {said}; see the logs in `{home / 'logs'}`.")


def _stopped_by_itself(home: Path) -> ServerStartError:
    if damage := read_damage(home):
        return ServerStartError(damage_sentence(home, damage))
    return ServerStartError(
        f"The embedded Argilla stopped by itself; its logs in `{home / 'logs'}` end with:\n"
        f"{folder.last_log_lines(home)}"
    )
