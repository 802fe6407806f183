"""`exports csv --update` after one record in a hundred changed, against a full export: median of pairs.

20,000 records × 2 responses; another number is an argument. Progress goes to stderr.
"""

import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from seeding import ANSWERED, make_many

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.server.launch import start_server
from exports.csv.write import export_csv, update_csv

GOAL = 0.3
RECORDS = 20_000
ROUNDS = 5
WORKSPACE = "benchmark"


def seconds(work: Callable[[], object]) -> float:
    gc.collect()
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


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


def main(count: int) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        start_server(Path(folder) / "home", port=0) as server,
        Argilla(server.url, server.owner_api_key) as client,
    ):
        dataset_id = make_many(server, client, WORKSPACE, count)
        out, full = Path(folder) / "out", Path(folder) / "full"
        export_csv(client, WORKSPACE, out)
        ratios: list[float] = []
        for number in range(ROUNDS):
            change(client, dataset_id, 100, number)
            updated = seconds(lambda: update_csv(client, out))
            exported = seconds(lambda: export_csv(client, WORKSPACE, full))
            if (out / "retrieval.csv").read_bytes() != (full / "retrieval.csv").read_bytes():
                raise SystemExit("the update has other bytes than the export")
            sys.stderr.write(f"updated in {updated:.2f} s, exported in {exported:.2f} s\n")
            ratios.append(updated / exported)
    ratio = statistics.median(ratios)
    sys.stdout.write(f"update\t{ratio:.2f}\t<={GOAL:.2f}\t{'ok' if ratio <= GOAL else 'short'}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS)
