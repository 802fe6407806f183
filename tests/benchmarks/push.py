"""`annotation push` of 5,000 Argilla records against the same bodies by bare bulk PUT on an unpatched argilla-server.

Ours is the whole way, from canonical records on, to the embedded server. The baseline is argilla-server 2.8.0 as it
comes, on SQLite too, with a search engine that does nothing; its bodies are made beforehand.
"""

import asyncio
import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seeding import made_up

from annotation.client import Argilla
from annotation.display import to_records
from annotation.embedded.guardian import valkey_command
from annotation.embedded.home import read_or_make_secrets
from annotation.embedded.launch import listen, server_environment, start_server, url_of, wait_until_it_answers
from annotation.labels import TASKS
from annotation.push import push_records
from annotation.setup import find_datasets, set_up
from annotation.wording import read_wording
from pipeline.records import QueryResponse

GOAL = 0.4
RECORDS = 1250
BODIES = 5000
BATCH = 500
WORKSPACE = "benchmark"


def with_two_passages(number: int) -> QueryResponse:
    """A record that becomes four in Argilla: two passages, a context and an answer."""
    record = made_up(number)
    second = record.chunks[0].model_copy(update={"chunk_id": f"e{number}#0", "doc_id": f"e{number}", "chunk_rank": 2})
    return record.model_copy(update={"chunks": (*record.chunks, second)})


def seconds_of_push(client: Argilla, records: list[QueryResponse]) -> float:
    """Wall time of our push."""
    set_up(client, WORKSPACE)
    begun = time.perf_counter()
    report = push_records(client, WORKSPACE, records)
    taken = time.perf_counter() - begun
    check(sum(counts.new for counts in report.tasks.values()))
    return taken


def seconds_of_put(client: Argilla, records: list[QueryResponse]) -> float:
    """Wall time of the bare requests."""
    set_up(client, WORKSPACE)
    datasets = find_datasets(client, WORKSPACE)
    wording = read_wording("en")
    bodies: dict[str, list[dict[str, Any]]] = {task: [] for task in TASKS}
    for record in records:
        for task, group in to_records(record, wording).items():
            bodies[task] += group
    check(sum(len(group) for group in bodies.values()))
    begun = time.perf_counter()
    for task in TASKS:
        for first in range(0, len(bodies[task]), BATCH):
            items = bodies[task][first : first + BATCH]
            client.request("PUT", f"/datasets/{datasets[task].id}/records/bulk", json={"items": items})
    return time.perf_counter() - begun


def check(bodies: int) -> None:
    """Stop where another number of bodies was sent than the row says."""
    if bodies != BODIES:
        raise SystemExit(f"{bodies} bodies instead of {BODIES}")


@contextlib.contextmanager
def unpatched_server(home: Path) -> Iterator[Argilla]:
    """The owner's connection to argilla-server as it comes; it and its queue end with the block."""
    for name in ("data", "queue", "logs"):
        (home / name).mkdir(parents=True)
    environment = server_environment(home) | {
        "ARGILLA_SEARCH_ENGINE": "empty",
        "ARGILLA_REDIS_URL": f"unix://{home / 'queue.sock'}",
        "TMPDIR": str(home),
    }
    with contextlib.ExitStack() as parts:
        listening = parts.enter_context(listen("127.0.0.1", 0))
        log = parts.enter_context(open(home / "logs" / "web.log", "wb"))
        descriptor = listening.fileno()
        for command in (valkey_command(home / "queue", home), [sys.executable, __file__, str(descriptor)]):
            part = subprocess.Popen(command, stdout=log, stderr=log, env=environment, pass_fds=(descriptor,))
            parts.callback(part.wait)
            parts.callback(part.kill)
        wait_until_it_answers(home, url_of(listening))
        yield parts.enter_context(Argilla(url_of(listening), read_or_make_secrets(home).owner_api_key))


def serve_unpatched(descriptor: int) -> None:
    """Serve argilla-server with an empty search engine, without anything of ours but the owner."""
    import argilla_server
    import uvicorn
    from alembic import command
    from alembic.config import Config
    from argilla_server.database import ALEMBIC_CONFIG_FILE
    from argilla_server.search_engine import SearchEngine

    from annotation.embedded.web import make_owner

    async def nothing(*_: Any, **__: Any) -> bool:
        return True

    @classmethod
    async def new_instance(cls: Any) -> Any:
        return cls()

    methods = {name: nothing for name in SearchEngine.__abstractmethods__}
    SearchEngine.register("empty")(type("Empty", (SearchEngine,), methods | {"new_instance": new_instance}))
    command.upgrade(Config(ALEMBIC_CONFIG_FILE), "head")
    asyncio.run(make_owner())
    server = uvicorn.Server(uvicorn.Config(argilla_server.app, log_level="warning", access_log=False))
    server.run(sockets=[socket.socket(fileno=descriptor)])


def main() -> None:
    """Print the row."""
    records = [with_two_passages(number) for number in range(RECORDS)]
    with tempfile.TemporaryDirectory() as folder:
        with unpatched_server(Path(folder) / "bare") as client:
            bare = seconds_of_put(client, records)
        with (
            start_server(Path(folder) / "ours", port=0) as server,
            Argilla(server.url, server.owner_api_key) as client,
        ):
            ours = seconds_of_push(client, records)
    sys.stderr.write(f"push {ours:.1f} s, bare PUT on an unpatched server {bare:.1f} s, {BODIES:,} records\n")
    ratio = ours / bare
    sys.stdout.write(f"push\t{ratio:.2f}\t<={GOAL:.2f}\t{'ok' if ratio <= GOAL else 'short'}\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve_unpatched(int(sys.argv[1]))
    else:
        main()
