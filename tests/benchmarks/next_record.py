"""An annotator's next record at 100,000 records × 2 responses against the same at 1,000: medians of interleaved runs.

The request is the page's own: ten pending records, in the annotator's own order, with her responses.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from seeding import WAITING, make_many

from annotation.client import Argilla
from annotation.embedded.launch import start_server

GOAL = 2.0
FEW, MANY = 1_000, 100_000
ROUNDS = 40
PAGE = {"offset": 0, "limit": 10, "include": ["responses", "suggestions"]}
PENDING = [
    {"type": "terms", "scope": {"entity": entity, "property": "status"}, "values": ["pending"]}
    for entity in ("response", "record")
]


def seconds(annotator: Argilla, dataset_id: str, total: int) -> float:
    """Wall time of one request; it must count all records and bring ten of them."""
    body = {"query": {}, "filters": {"and": PENDING}}
    begun = time.perf_counter()
    found = annotator.request("POST", f"/me/datasets/{dataset_id}/records/search", params=PAGE, json=body)
    taken = time.perf_counter() - begun
    if (len(found["items"]), found["total"]) != (10, total):
        raise SystemExit(f"{len(found['items'])} of {found['total']} records instead of 10 of {total}")
    return taken


def main() -> None:
    """Print the row."""
    with (
        tempfile.TemporaryDirectory() as folder,
        start_server(Path(folder) / "home", port=0) as server,
        Argilla(server.url, server.owner_api_key) as owner,
    ):
        few, many = (make_many(server, owner, f"with-{count}", count) for count in (FEW, MANY))
        key = next(user["api_key"] for user in owner.request("GET", "/users")["items"] if user["username"] == WAITING)
        with Argilla(server.url, key) as annotator:
            pairs = [(seconds(annotator, many, MANY), seconds(annotator, few, FEW)) for _ in range(ROUNDS)]
    large, small = (statistics.median(side) for side in zip(*pairs, strict=True))
    sys.stderr.write(f"{MANY:,} records {large * 1000:.1f} ms, {FEW:,} records {small * 1000:.1f} ms\n")
    sys.stdout.write(f"next_record\t{large / small:.2f}\t<={GOAL:.2f}\t{'ok' if large / small <= GOAL else 'short'}\n")


if __name__ == "__main__":
    main()
