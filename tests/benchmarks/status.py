"""`annotation status` against the responses fetched with their records and thrown away, as a stock Argilla sends them.

20,000 records × 2 responses; another number is an argument. The share of the time says what is saved by leaving out the
texts. Medians of interleaved pairs on one embedded server; progress goes to stderr.
"""

import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from seeding import make_many

from annotation.argilla.client import Argilla
from annotation.quality.summary import read_status
from annotation.server.launch import start_server

GOAL = 0.5
RECORDS = 20_000
ROUNDS = 3
WORKSPACE = "benchmark"


def main(count: int) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        start_server(Path(folder) / "home", port=0) as server,
        Argilla(server.url, server.owner_api_key) as client,
    ):
        dataset_id = make_many(server, client, WORKSPACE, count)
        ratios: list[float] = []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            status = read_status(client, [WORKSPACE], datetime.now(UTC))
            told = time.perf_counter()
            for _ in client.record_pages(dataset_id):
                pass
            fetched = time.perf_counter()
            if sum(each.done for each in status.datasets) != 2 * count:
                raise SystemExit(f"{status.datasets} instead of {2 * count} responses")
            sys.stderr.write(f"status in {told - begun:.1f} s, records fetched in {fetched - told:.1f} s\n")
            ratios.append((told - begun) / (fetched - told))
    ratio = statistics.median(ratios)
    sys.stdout.write(f"status\t{ratio:.2f}\t<={GOAL:.2f}\t{'ok' if ratio <= GOAL else 'short'}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS)
