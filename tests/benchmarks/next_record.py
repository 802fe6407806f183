"""An annotator's next record at 100,000 records × 2 responses against the same at 1,000: medians of interleaved runs.

One row is of the embedded server's SQLite, one of PostgreSQL. The request is the page's own: the next pending record,
found and held for the annotator, with their responses. Each round asks for one that they have not seen, as if they went
on without answering.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from seeding import WAITING, make_many, make_many_on_postgresql

from annotation.argilla.client import Argilla
from annotation.server.launch import start_server

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.postgresql import server_on_postgresql

GOAL = 2.0
FEW, MANY = 1_000, 100_000
ROUNDS = 40
PAGE = {"limit": 10, "include": ["responses", "suggestions"]}
PENDING = [
    {"type": "terms", "scope": {"entity": entity, "property": "status"}, "values": ["pending"]}
    for entity in ("response", "record")
]


def seconds(annotator: Argilla, dataset_id: str, total: int, place: int) -> float:
    body = {"query": {}, "filters": {"and": PENDING}}
    begun = time.perf_counter()
    found = annotator.request(
        "POST", f"/me/datasets/{dataset_id}/records/search", params={**PAGE, "offset": place}, json=body
    )
    taken = time.perf_counter() - begun
    if (len(found["items"]), found["total"]) != (1, total):
        raise SystemExit(f"{len(found['items'])} of {found['total']} records instead of 1 of {total}")
    return taken


def measure(row: str, url: str, api_key: str, make: Callable[[Argilla, str, int], str]) -> None:
    with Argilla(url, api_key) as owner:
        few, many = (make(owner, f"with-{count}", count) for count in (FEW, MANY))
        key = next(user["api_key"] for user in owner.request("GET", "/users")["items"] if user["username"] == WAITING)
        with Argilla(url, key) as annotator:
            pairs = [
                (seconds(annotator, many, MANY, place), seconds(annotator, few, FEW, place))
                for place in range(1, ROUNDS + 1)  # at 0, two come at once
            ]
    large, small = (statistics.median(side) for side in zip(*pairs, strict=True))
    sys.stderr.write(f"{row}: {MANY:,} records {large * 1000:.1f} ms, {FEW:,} records {small * 1000:.1f} ms\n")
    sys.stdout.write(f"{row}\t{large / small:.2f}\t<={GOAL:.2f}\t{'ok' if large / small <= GOAL else 'short'}\n")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with start_server(Path(folder) / "home", port=0) as embedded:
            measure("next_record", embedded.url, embedded.owner_api_key, partial(make_many, embedded))
        try:
            with server_on_postgresql(Path(folder)) as server:
                fill = partial(make_many_on_postgresql, server.database)
                measure("next_record_postgresql", server.url, server.api_key, fill)
        except pytest.skip.Exception as reason:
            sys.stderr.write(f"next_record_postgresql is left out: {reason}\n")


if __name__ == "__main__":
    main()
