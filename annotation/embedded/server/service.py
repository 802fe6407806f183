"""The parts of Argilla on PostgreSQL, one process or container each: `python -m annotation.embedded.service PART`.

    migrate        bring the database up to date, make the owner, fill OpenSearch where it is the engine; then end
    restore        bring a backup of the embedded server, from standard input, into the new database; then end
    web            the page and the REST API
    worker         Argilla's background jobs
    reindex        fill OpenSearch anew
    check-web      ends with 0 where the web of this machine answers
    check-worker   ends with 0 where the worker of this machine is there

What they need comes from the environment; docker/compose.yaml sets it.
"""

import asyncio
import http.client
import socket
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from annotation.embedded.server.service_checks import check_settings, open_queue, reach_database, setting, whole_number
from pipeline.errors import CitejuryError, ServerStartError, SettingsError

WORKER_SIGN_OF_LIFE_SECONDS = 60
CHECK_SECONDS = 8.0
BACKLOG = 2048


def main() -> int:
    """How the part ended: 0, or 1 after a line that says what is wrong."""
    chosen = sys.argv[1] if len(sys.argv) == 2 else ""
    if chosen not in PARTS:
        sys.stderr.write(f"usage: python -m annotation.embedded.service {{{','.join(PARTS)}}}\n")
        return 2
    try:
        return PARTS[chosen]()
    except CitejuryError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def migrate() -> int:
    """Bring the database up to date, make the owner, and fill OpenSearch where that is the engine.

    Raises:
        SettingsError: the owner's name, password or key is missing.
        ServerStartError: the database or OpenSearch does not answer.
    """
    from annotation.embedded.engines.open_search_indexes import fill_indexes
    from annotation.embedded.server import web

    owner = [setting(f"CITEJURY_OWNER_{name}") for name in ("USERNAME", "PASSWORD", "API_KEY")]
    bring_up_to_date()
    asyncio.run(web.make_owner(*owner))
    asyncio.run(fill_indexes(anew=False))
    return 0


def bring_up_to_date() -> None:
    """Give the database the tables of this software, Argilla's and ours.

    Raises:
        ServerStartError: the database does not answer.
    """
    from annotation.embedded.server import web

    check_settings()
    reach_database()
    with web.loading():
        web.migrate()


def restore() -> int:
    """Bring a backup of the embedded server, from standard input, into a database that nobody has used yet.

    Raises:
        SettingsError: the owner's name or key is missing, or the key is not that of the backup.
        InputError: it is no backup, or PostgreSQL cannot keep all of it.
        OutputError: the database is in use, or there is no room.
        ServerStartError: the backup is of newer software, or the database stopped.
    """
    from annotation.embedded.backup.move_to_postgresql import check_database, move, unpacked_database

    owner, api_key = (setting(f"CITEJURY_OWNER_{name}") for name in ("USERNAME", "API_KEY"))
    check_settings()
    if sys.stdin.isatty():
        raise SettingsError("The backup comes by standard input: end the command with `< FILE`, and give `run` a `-T`.")
    with unpacked_database(sys.stdin.buffer) as (database, manifest):
        check_database(database, api_key)
        bring_up_to_date()
        move(database, owner)
    moment = f"{manifest.created_at:%Y-%m-%d %H:%M} UTC"
    sys.stderr.write(f"Everything is there as of {moment}. The old server has no part in it any more.\n")
    sys.stderr.write("Next: docker compose -f docker/compose.yaml up -d --build --wait\n")
    return 0


def reindex() -> int:
    """Fill OpenSearch anew."""
    from annotation.embedded.engines.open_search_indexes import fill_indexes

    asyncio.run(fill_indexes(anew=True))
    return 0


def serve_web() -> int:
    """Serve the page and the REST API until told to stop.

    Raises:
        SettingsError: the environment does not say where to listen, in how many processes, or with what.
        ServerStartError: there is no listening there, or the database or the queue does not answer.
    """
    from annotation.embedded.server.processes import run_processes
    from annotation.embedded.server.web import build_app, loading, run_server

    number = whole_number("CITEJURY_WEB_PROCESSES")
    check_settings()
    with listen() as listening:
        reach_database()
        open_queue().close()
        with loading():
            app = build_app()
        sys.stderr.write("Argilla listens at {}:{}\n".format(*listening.getsockname()))
        return run_processes(number, lambda: run_server(app, listening))


def listen() -> socket.socket:
    """A socket that listens where `CITEJURY_LISTEN` says; connections wait in it until the app is there.

    Raises:
        SettingsError: it names no address.
        ServerStartError: there is no listening there.
    """
    host, port = address()
    try:
        return socket.create_server((host, port), backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise ServerStartError(f"Cannot listen at {host}, port {port} (`CITEJURY_LISTEN`): {error}.") from error


def address() -> tuple[str, int]:
    """Host and port of `CITEJURY_LISTEN`.

    Raises:
        SettingsError: it is none.
    """
    host, _, port = setting("CITEJURY_LISTEN").rpartition(":")
    if not host or not port.isdecimal():
        raise SettingsError("`CITEJURY_LISTEN` should be a host and a port, such as 0.0.0.0:6900.")
    return host.strip("[]"), int(port)


def serve_jobs() -> int:
    """Do Argilla's background jobs until told to stop.

    Raises:
        SettingsError: the environment names no database, engine or queue.
        ServerStartError: the queue does not answer.
    """
    from annotation.embedded.server.worker import work

    check_settings()
    open_queue().close()
    work(sign_of_life_seconds=WORKER_SIGN_OF_LIFE_SECONDS)
    return 0


def check_web() -> int:
    """0 where the web of this machine, and the search engine behind it, answer."""
    connection = http.client.HTTPConnection("127.0.0.1", address()[1], timeout=CHECK_SECONDS)
    try:
        connection.request("GET", "/api/v1/status")
        return int(connection.getresponse().status != http.client.OK)
    except (OSError, http.client.HTTPException) as error:
        sys.stderr.write(f"The web does not answer: {error}\n")
        return 1
    finally:
        connection.close()


def check_worker() -> int:
    """0 where a worker of this machine has given a sign of life lately.

    Raises:
        ServerStartError: the queue does not answer.
    """
    from rq import Worker

    latest = datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=2 * WORKER_SIGN_OF_LIFE_SECONDS)
    with open_queue() as queue:
        workers = Worker.all(connection=queue)
    here = [worker for worker in workers if worker.hostname == socket.gethostname()]
    return int(not any(worker.last_heartbeat and worker.last_heartbeat > latest for worker in here))


PARTS: dict[str, Callable[[], int]] = {
    "migrate": migrate,
    "restore": restore,
    "web": serve_web,
    "worker": serve_jobs,
    "reindex": reindex,
    "check-web": check_web,
    "check-worker": check_worker,
}
