"""The last page of 1,000 records of 100,000 against the first of 1,000: medians of interleaved runs."""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from seeding import make_many

from annotation.argilla.client import Argilla
from annotation.server.launch import start_server

GOAL = 2.0
FEW, MANY = 1_000, 100_000
PAGE = 1_000
ROUNDS = 11


def seconds(client: Argilla, dataset_id: str, total: int) -> float:
    params = {"offset": total - PAGE, "limit": PAGE, "include": "responses"}
    begun = time.perf_counter()
    found = client.request("GET", f"/datasets/{dataset_id}/records", params=params)
    taken = time.perf_counter() - begun
    if (len(found["items"]), found["total"]) != (PAGE, total):
        raise SystemExit(f"{len(found['items'])} of {found['total']} records instead of {PAGE} of {total}")
    return taken


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        start_server(Path(folder) / "home", port=0) as server,
        Argilla(server.url, server.owner_api_key) as client,
    ):
        few, many = (make_many(server, client, f"with-{count}", count) for count in (FEW, MANY))
        pairs = [(seconds(client, many, MANY), seconds(client, few, FEW)) for _ in range(ROUNDS)]
    large, small = (statistics.median(side) for side in zip(*pairs, strict=True))
    sys.stderr.write(f"of {MANY:,} records {large * 1000:.0f} ms, of {FEW:,} records {small * 1000:.0f} ms\n")
    sys.stdout.write(f"record_page\t{large / small:.2f}\t<={GOAL:.2f}\t{'ok' if large / small <= GOAL else 'short'}\n")


if __name__ == "__main__":
    main()
