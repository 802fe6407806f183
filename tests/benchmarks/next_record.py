"""An annotator's next record at 100,000 records × 2 responses against the same at 1,000: medians of interleaved runs.

The request is the page's own: her next pending record, found and held for her, with her responses. Each round asks for
one that she has not seen, as if she went on without answering.
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
PAGE = {"limit": 10, "include": ["responses", "suggestions"]}
PENDING = [
    {"type": "terms", "scope": {"entity": entity, "property": "status"}, "values": ["pending"]}
    for entity in ("response", "record")
]


def seconds(annotator: Argilla, dataset_id: str, total: int, place: int) -> float:
    """Wall time of one request for the record at a place; it must count all records and bring that one."""
    body = {"query": {}, "filters": {"and": PENDING}}
    begun = time.perf_counter()
    found = annotator.request(
        "POST", f"/me/datasets/{dataset_id}/records/search", params={**PAGE, "offset": place}, json=body
    )
    taken = time.perf_counter() - begun
    if (len(found["items"]), found["total"]) != (1, total):
        raise SystemExit(f"{len(found['items'])} of {found['total']} records instead of 1 of {total}")
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
            pairs = [
                (seconds(annotator, many, MANY, place), seconds(annotator, few, FEW, place))
                for place in range(1, ROUNDS + 1)  # at 0, two come at once
            ]
    large, small = (statistics.median(side) for side in zip(*pairs, strict=True))
    sys.stderr.write(f"{MANY:,} records {large * 1000:.1f} ms, {FEW:,} records {small * 1000:.1f} ms\n")
    sys.stdout.write(f"next_record\t{large / small:.2f}\t<={GOAL:.2f}\t{'ok' if large / small <= GOAL else 'short'}\n")


if __name__ == "__main__":
    main()
