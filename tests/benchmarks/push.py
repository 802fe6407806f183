"""`annotation push` of 5,000 Argilla records against the same bodies by bare bulk PUT on an unpatched argilla-server.

Ours is the whole way, from canonical records on, to the embedded server. The baseline is argilla-server 2.8.0 as it
comes, on SQLite too, with a search engine that does nothing; its bodies are made beforehand.
"""

import tempfile
from pathlib import Path
from typing import Any

from annotation.argilla.client import Argilla
from annotation.argilla.display import to_records
from annotation.argilla.labels import TASKS
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.push.push import push_records
from pipeline.records.schema import QueryResponse
from tests.benchmarks.bare_server import unpatched_server
from tests.benchmarks.measure import embedded, log, report, seconds
from tests.benchmarks.seeding import made_up

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
    set_up(client, WORKSPACE)

    def push() -> None:
        check(sum(counts.new for counts in push_records(client, WORKSPACE, records).tasks.values()))

    return seconds(push)


def seconds_of_put(client: Argilla, records: list[QueryResponse]) -> float:
    set_up(client, WORKSPACE)
    datasets = find_datasets(client, WORKSPACE)
    wording = read_wording("en")
    bodies: dict[str, list[dict[str, Any]]] = {task: [] for task in TASKS}
    for record in records:
        for task, group in to_records(record, wording).items():
            bodies[task] += group
    check(sum(len(group) for group in bodies.values()))

    def put() -> None:
        for task in TASKS:
            for first in range(0, len(bodies[task]), BATCH):
                items = bodies[task][first : first + BATCH]
                client.request("PUT", f"/datasets/{datasets[task].id}/records/bulk", json={"items": items})

    return seconds(put)


def check(bodies: int) -> None:
    if bodies != BODIES:
        raise SystemExit(f"{bodies} bodies instead of {BODIES}")


def main() -> None:
    records = [with_two_passages(number) for number in range(RECORDS)]
    with tempfile.TemporaryDirectory() as folder, unpatched_server(Path(folder) / "bare") as client:
        bare = seconds_of_put(client, records)
    with embedded() as (_, _, client):
        ours = seconds_of_push(client, records)
    log(f"push {ours:.1f} s, bare PUT on an unpatched server {bare:.1f} s, {BODIES:,} records")
    report("push", ours / bare, 0.4)
