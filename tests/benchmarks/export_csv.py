"""`exports csv` against the same pages fetched from argilla-server as it comes and thrown away: median of pairs.

Both servers run on the same database; what our own server's faster pages take alone is told too. 20,000 records × 2
responses; another number is an argument. Progress goes to stderr.
"""

import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bare_server import unpatched_server
from seeding import make_many

from annotation.argilla.client import Argilla
from annotation.server.launch import start_server
from exports.csv.write import export_csv

GOAL = 1.25
RECORDS = 20_000
ROUNDS = 3
WORKSPACE = "benchmark"


def throw_away(client: Argilla, dataset_id: str) -> None:
    """Fetch every page and keep nothing."""
    for _ in client.record_pages(dataset_id):
        pass


def seconds(work: Callable[[], object]) -> float:
    gc.collect()
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def main(count: int) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        start_server(Path(folder) / "home", port=0) as server,
        Argilla(server.url, server.owner_api_key) as client,
    ):
        dataset_id = make_many(server, client, WORKSPACE, count)
        ratios: list[float] = []
        with unpatched_server(Path(folder) / "bare", data_of=Path(folder) / "home") as bare:
            for _ in range(ROUNDS):
                fetched = seconds(lambda: throw_away(bare, dataset_id))
                exported = seconds(lambda: export_csv(client, WORKSPACE, Path(folder) / "out"))
                alone = seconds(lambda: throw_away(client, dataset_id))
                sys.stderr.write(f"fetched in {fetched:.1f} s, exported in {exported:.1f} s; our pages {alone:.1f} s\n")
                ratios.append(exported / fetched)
    ratio = statistics.median(ratios)
    sys.stdout.write(f"export_csv\t{ratio:.2f}\t<={GOAL:.2f}\t{'ok' if ratio <= GOAL else 'short'}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS)
