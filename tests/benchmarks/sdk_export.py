"""The export of argilla's own SDK against `exports csv`, on one embedded server: median of interleaved pairs.

Each side goes first in half of the pairs, after one untimed run of both; neither pays for the other's garbage.

The SDK's way is `list(dataset.records(with_responses=True))`, and nothing is made of what it returns; ours is the whole
way to sorted files. 4,000 records × 2 responses; another number is an argument. Progress goes to stderr.
"""

import gc
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from seeding import make_many

from annotation.argilla.client import Argilla
from annotation.campaign.datasets import find_datasets
from annotation.server.launch import start_server
from exports.csv.write import export_csv

GOAL = 1.5
RECORDS = 4_000
ROUNDS = 5
WORKSPACE = "benchmark"


def seconds(work: Callable[[], object]) -> float:
    gc.collect()
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def main(count: int) -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.simplefilter("ignore")
    import argilla

    with (
        tempfile.TemporaryDirectory() as folder,
        start_server(Path(folder) / "home", port=0) as server,
        Argilla(server.url, server.owner_api_key) as client,
    ):
        make_many(server, client, WORKSPACE, count)
        name = find_datasets(client, WORKSPACE)["retrieval"].name
        dataset = argilla.Argilla(server.url, server.owner_api_key).datasets(name, workspace=WORKSPACE)

        def read_by_sdk() -> None:
            found = list(dataset.records(with_responses=True))
            if len(found) != count:
                raise SystemExit(f"the SDK read {len(found)} of {count} records")

        def export() -> None:
            export_csv(client, WORKSPACE, Path(folder) / "out")

        ratios: list[float] = []
        read_by_sdk()
        export()
        for number in range(ROUNDS):
            if number % 2:
                ours, sdk = seconds(export), seconds(read_by_sdk)
            else:
                sdk, ours = seconds(read_by_sdk), seconds(export)
            sys.stderr.write(f"SDK {sdk:.1f} s, exported in {ours:.1f} s\n")
            ratios.append(sdk / ours)
    ratio = statistics.median(ratios)
    sys.stdout.write(f"sdk_export\t{ratio:.2f}\t>={GOAL:.2f}\t{'ok' if ratio >= GOAL else 'short'}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS)
