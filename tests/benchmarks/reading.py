"""What reads many records with their responses on one embedded server, each against something that bears its cost.

`python tests/benchmarks/reading.py ROW [RECORDS]`. Medians of interleaved pairs; progress goes to stderr.
"""

import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.campaign.datasets import find_datasets
from annotation.quality.summary import read_status
from exports.csv.write import export_csv as write_csv
from exports.csv.write import update_csv
from tests.benchmarks.bare_server import unpatched_server
from tests.benchmarks.measure import embedded, log, medians, report, seconds
from tests.benchmarks.seeding import ANSWERED, WAITING, make_many, make_many_on_postgresql
from tests.support.crowd import PAGE, PENDING
from tests.support.postgresql import server_on_postgresql

WORKSPACE = "benchmark"
FEW, MANY = 1_000, 100_000


def throw_away(client: Argilla, dataset_id: str) -> None:
    for _ in client.record_pages(dataset_id):
        pass


def export_csv(count: int = 20_000) -> None:
    """The same pages are fetched from argilla-server as it comes, on the same database; our own pages are logged.

    2 responses a record, as in all rows.
    """
    ratios = []
    with embedded() as (folder, server, client):
        dataset_id = make_many(server, client, WORKSPACE, count)
        with unpatched_server(folder / "bare", data_of=folder / "home") as bare:
            for _ in range(3):
                fetched = seconds(lambda: throw_away(bare, dataset_id))
                exported = seconds(lambda: write_csv(client, WORKSPACE, folder / "out"))
                alone = seconds(lambda: throw_away(client, dataset_id))
                log(f"fetched in {fetched:.1f} s, exported in {exported:.1f} s; our pages {alone:.1f} s")
                ratios.append(exported / fetched)
    report("export_csv", statistics.median(ratios), 1.25)


def sdk_export(count: int = 4_000) -> None:
    """`list(dataset.records(with_responses=True))` by Argilla's SDK against the whole way to sorted files.

    Each side goes first in half of the pairs, after one untimed run of both.
    """
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.simplefilter("ignore")
    import argilla

    with embedded() as (folder, server, client):
        make_many(server, client, WORKSPACE, count)
        name = find_datasets(client, WORKSPACE)["retrieval"].name
        dataset = argilla.Argilla(server.url, server.owner_api_key).datasets(name, workspace=WORKSPACE)

        def read_by_sdk() -> None:
            found = list(dataset.records(with_responses=True))
            if len(found) != count:
                raise SystemExit(f"the SDK read {len(found)} of {count} records")

        def export() -> None:
            write_csv(client, WORKSPACE, folder / "out")

        ratios: list[float] = []
        read_by_sdk()
        export()
        for number in range(5):
            taken = {work: seconds(work) for work in ((export, read_by_sdk) if number % 2 else (read_by_sdk, export))}
            log(f"SDK {taken[read_by_sdk]:.1f} s, exported in {taken[export]:.1f} s")
            ratios.append(taken[read_by_sdk] / taken[export])
    report("sdk_export", statistics.median(ratios), 1.5, is_at_least=True)


def update(count: int = 20_000) -> None:
    """`exports csv --update` after one record in a hundred changed, against a full export."""
    with embedded() as (folder, server, client):
        dataset_id = make_many(server, client, WORKSPACE, count)
        out, full = folder / "out", folder / "full"
        write_csv(client, WORKSPACE, out)
        ratios: list[float] = []
        for number in range(5):
            change(client, dataset_id, 100, number)
            updated = seconds(lambda: update_csv(client, out))
            exported = seconds(lambda: write_csv(client, WORKSPACE, full))
            if (out / "retrieval.csv").read_bytes() != (full / "retrieval.csv").read_bytes():
                raise SystemExit("the update has other bytes than the export")
            log(f"updated in {updated:.2f} s, exported in {exported:.2f} s")
            ratios.append(updated / exported)
    report("update", statistics.median(ratios), 0.3)


def change(client: Argilla, dataset_id: str, every: int, number: int) -> None:
    """One annotator answers every so many records anew."""
    user_id = next(user["id"] for user in client.users() if user["username"] == ANSWERED[0])
    values = {label: {"value": "yes" if number % 2 else "no"} for label in LABELS["retrieval"]}
    response = {"user_id": user_id, "status": "submitted", "values": values}
    records = [each for _, page in client.record_pages(dataset_id, include=()) for each in page][::every]
    for start in range(0, len(records), 100):
        items = [
            {name: each[name] for name in ("external_id", "fields", "metadata")} | {"responses": [response]}
            for each in records[start : start + 100]
        ]
        client.request("PUT", f"/datasets/{dataset_id}/records/bulk", json={"items": items})


def status(count: int = 20_000) -> None:
    """`annotation status` against the records' pages thrown away: what is saved by leaving out the texts."""
    with embedded() as (_, server, client):
        dataset_id = make_many(server, client, WORKSPACE, count)

        def read() -> None:
            found = read_status(client, [WORKSPACE], datetime.now(UTC))
            if sum(each.done for each in found.datasets) != 2 * count:
                raise SystemExit(f"{found.datasets} instead of {2 * count} responses")

        pairs = [(seconds(read), seconds(lambda: throw_away(client, dataset_id))) for _ in range(3)]
    log(f"status and pages in seconds: {pairs}")
    report("status", statistics.median(one / other for one, other in pairs), 0.5)


def record_page(many: int = MANY) -> None:
    """The last page of 1,000 records of many against the first of 1,000."""

    def fetch(dataset_id: str, total: int) -> None:
        params = {"offset": total - FEW, "limit": FEW, "include": "responses"}
        check(client.request("GET", f"/datasets/{dataset_id}/records", params=params), FEW, total)

    with embedded() as (_, server, client):
        small, large = (make_many(server, client, f"with-{count}", count) for count in (FEW, many))
        pairs = [(seconds(partial(fetch, large, many)), seconds(partial(fetch, small, FEW))) for _ in range(11)]
    report_sizes("record_page", many, pairs)


def next_record(many: int = MANY) -> None:
    """An annotator's next record of many against the same of 1,000, on SQLite and on PostgreSQL.

    The request is the page's own: the next pending record, found and held for the annotator, with their responses. Each
    round asks for one that they have not seen, as if they went on without answering.
    """
    with embedded() as (_, server, client):
        measure_next("next_record", client, partial(make_many, server), many)
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            server_on_postgresql(Path(folder)) as server,
            Argilla(server.url, server.api_key) as client,
        ):
            measure_next("next_record_postgresql", client, partial(make_many_on_postgresql, server.database), many)
    except pytest.skip.Exception as reason:
        log(f"next_record_postgresql is left out: {reason}")


def measure_next(row: str, owner: Argilla, make: Callable[[Argilla, str, int], str], many: int) -> None:
    small, large = (make(owner, f"with-{count}", count) for count in (FEW, many))
    key = next(user["api_key"] for user in owner.request("GET", "/users")["items"] if user["username"] == WAITING)

    def taken(dataset_id: str, total: int, place: int) -> float:
        body = {"query": {}, "filters": {"and": PENDING}}
        path = f"/me/datasets/{dataset_id}/records/search"
        begun = time.perf_counter()
        found = annotator.request("POST", path, params={**PAGE, "offset": place}, json=body)
        needed = time.perf_counter() - begun
        check(found, 1, total)
        return needed

    with Argilla(owner.api_url, key) as annotator:
        # At 0, two come at once.
        pairs = [(taken(large, many, place), taken(small, FEW, place)) for place in range(1, 41)]
    report_sizes(row, many, pairs)


def check(found: dict[str, Any], records: int, total: int) -> None:
    if (len(found["items"]), found["total"]) != (records, total):
        raise SystemExit(f"{len(found['items'])} of {found['total']} records instead of {records} of {total}")


def report_sizes(row: str, many: int, pairs: list[tuple[float, float]]) -> None:
    large, small = medians(pairs)
    log(f"{row}: of {many:,} records {large * 1000:.1f} ms, of {FEW:,} records {small * 1000:.1f} ms")
    report(row, large / small, 2.0)


if __name__ == "__main__":
    globals()[sys.argv[1]](*map(int, sys.argv[2:]))
