"""The parts of Argilla on PostgreSQL, one process or container each: `python -m annotation.server.service PART`.

    migrate        bring the database up to date, make the owner; then end
    restore        bring a backup of the embedded server, from standard input, into the new database; then end
    web            the page and the REST API
    worker         Argilla's background jobs
    check-web      ends with 0 where the web of this machine answers
    check-worker   ends with 0 where the worker of this machine is there

What they need comes from the environment; docker/compose.yaml sets it.
"""

import asyncio
import contextlib
import http.client
import os
import signal
import socket
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from threading import Event
from typing import TYPE_CHECKING, Any

from annotation.server.guardian import ending_with_the_parent
from annotation.server.home.folder import ENGINE_NAME, hold_seconds
from pipeline.core.errors import CitejuryError, ServerStartError, SettingsError

if TYPE_CHECKING:
    from sqlalchemy import URL

_ANSWER_SECONDS = 8.0
_GRACE_SECONDS = 8.0
_WORKER_SIGN_OF_LIFE_SECONDS = 60


def _setting(name: str) -> str:
    found = os.environ.get(name, "")
    if not found:
        raise SettingsError(f"`{name}` is not set; docker/compose.yaml shows what this part of the server needs.")
    return found


def _check_settings() -> "URL":
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    if (engine := _setting("ARGILLA_SEARCH_ENGINE")) != ENGINE_NAME:
        remedy = f"this server searches in PostgreSQL only: set it to {ENGINE_NAME}."
        raise SettingsError(f"`ARGILLA_SEARCH_ENGINE` is {engine!r}, but {remedy}")
    with contextlib.suppress(ArgumentError, ValueError):
        url = make_url(_setting("ARGILLA_DATABASE_URL"))
        if url.get_backend_name() == "postgresql" and url.username:
            hold_seconds()
            return url
    raise SettingsError(
        "`ARGILLA_DATABASE_URL` is no address of a PostgreSQL. A password in it may have letters and digits only."
    )


def _reach_database(url: "URL") -> None:
    from sqlalchemy import create_engine
    from sqlalchemy.exc import OperationalError

    # Not argilla-server's own connections, which take seconds to load.
    engine = create_engine(url.set(drivername="postgresql+psycopg2"))
    try:
        engine.connect().close()
    except OperationalError as error:
        said = str(error.orig).splitlines()
        raise ServerStartError(f"The database does not answer: {said[0] if said else 'no reason given'}") from error
    finally:
        engine.dispose()


def _open_queue() -> Any:
    from redis import Redis
    from redis.exceptions import RedisError

    try:
        queue = Redis.from_url(_setting("ARGILLA_REDIS_URL"), socket_timeout=_ANSWER_SECONDS)
    except ValueError as error:
        raise SettingsError("`ARGILLA_REDIS_URL` is no address of a Redis.") from error
    try:
        queue.ping()
    except RedisError as error:
        raise ServerStartError(f"The queue does not answer: {error}") from error
    return queue


def main() -> int:
    chosen = sys.argv[1] if len(sys.argv) == 2 else ""
    if chosen not in _PARTS:
        sys.stderr.write(f"usage: python -m annotation.server.service {{{','.join(_PARTS)}}}\n")
        return 2
    try:
        return _PARTS[chosen]()
    except CitejuryError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _migrate() -> int:
    from annotation.server.web import loading, make_owner, migrate_database

    owner = [_setting(f"CITEJURY_OWNER_{name}") for name in ("USERNAME", "PASSWORD", "API_KEY")]
    _reach_database(_check_settings())
    with loading():
        migrate_database()
    asyncio.run(make_owner(*owner))
    return 0


def _restore() -> int:
    from annotation.server.home.archive import check_database, unpacked_database
    from annotation.server.web import loading, migrate_database

    owner, api_key = (_setting(f"CITEJURY_OWNER_{name}") for name in ("USERNAME", "API_KEY"))
    url = _check_settings()
    if sys.stdin.isatty():
        raise SettingsError("The backup comes by standard input: end the command with `< FILE`, and give `run` a `-T`.")
    with unpacked_database(sys.stdin.buffer) as (database, manifest):
        check_database(database, api_key)
        _reach_database(url)
        with loading():
            migrate_database()
            from annotation.server.database import move
        move(database, owner)
    moment = f"{manifest.created_at:%Y-%m-%d %H:%M} UTC"
    sys.stderr.write(f"Everything is there as of {moment}. The old server has no part in it any more.\n")
    sys.stderr.write("Next: docker compose -f docker/compose.yaml up -d --build --wait\n")
    return 0


def _serve_web() -> int:
    from annotation.server.edge import read_names
    from annotation.server.web import loading, run_server

    number = _setting("CITEJURY_WEB_PROCESSES")
    if not (number.isascii() and number.isdecimal()) or int(number) < 1:
        raise SettingsError(f"`CITEJURY_WEB_PROCESSES` is {number!r} and should be a number from 1.")
    url = _check_settings()
    read_names()
    host, port = _address()
    try:
        listening = socket.create_server((host, port), backlog=2048)  # connections wait in it for the app
    except (OSError, OverflowError) as error:
        raise ServerStartError(f"Cannot listen at {host}, port {port} (`CITEJURY_LISTEN`): {error}.") from error
    with listening:
        _reach_database(url)
        _open_queue().close()
        with loading() as app:
            sys.stderr.write("Argilla listens at {}:{}\n".format(*listening.getsockname()))
        return run_processes(int(number), lambda: run_server(app, listening))


def _address() -> tuple[str, int]:
    host, _, port = _setting("CITEJURY_LISTEN").rpartition(":")
    if not host or not port.isdecimal():
        raise SettingsError("`CITEJURY_LISTEN` should be a host and a port, such as 0.0.0.0:6900.")
    return host.strip("[]"), int(port)


def _serve_jobs() -> int:
    from annotation.server.worker import work

    _check_settings()
    _open_queue().close()
    work(sign_of_life_seconds=_WORKER_SIGN_OF_LIFE_SECONDS)
    return 0


def _check_web() -> int:
    connection = http.client.HTTPConnection("127.0.0.1", _address()[1], timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", "/api/v1/status")
        return int(connection.getresponse().status != http.client.OK)
    except (OSError, http.client.HTTPException) as error:
        sys.stderr.write(f"The web does not answer: {error}\n")
        return 1
    finally:
        connection.close()


def _check_worker() -> int:
    from rq import Worker

    latest = datetime.now(UTC) - timedelta(seconds=2 * _WORKER_SIGN_OF_LIFE_SECONDS)
    with _open_queue() as queue:
        workers = Worker.all(connection=queue)
    here = [worker for worker in workers if worker.hostname == socket.gethostname()]
    return int(not any(worker.last_heartbeat and worker.last_heartbeat > latest for worker in here))


_PARTS: dict[str, Callable[[], int]] = {
    "migrate": _migrate,
    "restore": _restore,
    "web": _serve_web,
    "worker": _serve_jobs,
    "check-web": _check_web,
    "check-worker": _check_worker,
}


def run_processes(number: int, serve: Callable[[], None]) -> int:
    """1 where one ended by itself and so all did. A process shares the memory of all that was loaded before."""
    stopping = Event()
    prepare = ending_with_the_parent() if sys.platform == "linux" else lambda: None

    def begin() -> None:
        for signal_number in (signal.SIGTERM, signal.SIGINT):  # not its parent's ways with them
            signal.signal(signal_number, signal.SIG_DFL)
        prepare()
        serve()

    processes = [ForkProcess(target=begin) for _ in range(number)]

    def stop(*_: object) -> None:
        stopping.set()
        for process in processes:
            with contextlib.suppress(AttributeError):  # not started yet; it is told below
                process.terminate()

    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, stop)
    for process in processes:
        process.start()
    if not stopping.is_set():
        wait([process.sentinel for process in processes])
    unasked = not stopping.is_set()
    stop()
    for process in processes:
        process.join(_GRACE_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
    return int(unasked)


if __name__ == "__main__":
    sys.exit(main())
