"""`exports csv` against the same pages fetched and thrown away: best of interleaved runs on one embedded server.

The full figure is 20,000 records × 2 responses (`export_csv.py 20000`); filling the server with them takes minutes, so
the default is 3,000: cost a record is the same, since both sides read page by page.
"""

import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from annotation.client import Argilla
from annotation.display import to_records
from annotation.embedded.launch import start_server
from annotation.labels import LABELS
from annotation.tasks import define_dataset
from annotation.wording import read_wording
from exports.csv_export import export_csv
from pipeline.records import Passage, QueryResponse

GOAL = 1.25
RECORDS = 3000
ROUNDS = 3
BATCH = 500
WORKSPACE = "benchmark"
PASSAGE = 'Die Behörde veröffentlichte den Bericht im März; er nennt, Absatz für Absatz, "drei" Gründe.\n' * 12


def make_dataset(client: Argilla) -> str:
    """The id of an empty, published retrieval dataset."""
    workspace_id = client.request("POST", "/workspaces", json={"name": WORKSPACE})["id"]
    definition = define_dataset("retrieval", read_wording("en"))
    body = {**definition.body, "workspace_id": workspace_id}
    dataset_id = str(client.request("POST", "/datasets", json=body)["id"])
    for kind, parts in (("fields", definition.fields), ("questions", definition.questions)):
        for part in parts:
            client.request("POST", f"/datasets/{dataset_id}/{kind}", json=part)
    client.request("PUT", f"/datasets/{dataset_id}/publish")
    return dataset_id


def make_users(client: Argilla) -> list[str]:
    """The ids of two annotators."""
    bodies = (
        {"first_name": name, "username": name, "role": "annotator", "password": uuid.uuid4().hex}
        for name in ("anna", "ben")
    )
    return [str(client.request("POST", "/users", json=body)["id"]) for body in bodies]


def fill(client: Argilla, dataset_id: str, users: list[str], count: int) -> None:
    """Put `count` records with a submitted response of each user into the dataset."""
    wording = read_wording("en")
    values = {label: {"value": "yes"} for label in LABELS["retrieval"]} | {"notes": {"value": 'hm, "so"'}}
    responses = [{"user_id": user, "status": "submitted", "values": values} for user in users]
    for first in range(0, count, BATCH):
        numbers = range(first, min(first + BATCH, count))
        records = (
            QueryResponse(
                record_uuid=str(uuid.uuid5(uuid.NAMESPACE_URL, str(number))),
                query=f"Was steht im Bericht {number}?",
                answer="Drei Gründe [1].",
                chunks=(Passage(chunk_id=f"d{number}#0", doc_id=f"d{number}", chunk_rank=1, text=PASSAGE),),
            )
            for number in numbers
        )
        items = [{**to_records(record, wording)["retrieval"][0], "responses": responses} for record in records]
        client.request("PUT", f"/datasets/{dataset_id}/records/bulk", json={"items": items})


def throw_away(client: Argilla, dataset_id: str) -> None:
    """Fetch every page and keep nothing."""
    for _ in client.record_pages(dataset_id):
        pass


def seconds(work: Callable[[], object]) -> float:
    """Wall time of the work."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def main(count: int) -> None:
    """Print the row."""
    with (
        tempfile.TemporaryDirectory() as folder,
        start_server(Path(folder) / "home", port=0) as server,
        Argilla(server.url, server.owner_api_key) as client,
    ):
        dataset_id = make_dataset(client)
        fill(client, dataset_id, make_users(client), count)
        fetch: list[float] = []
        export: list[float] = []
        for _ in range(ROUNDS):
            fetch.append(seconds(lambda: throw_away(client, dataset_id)))
            export.append(seconds(lambda: export_csv(client, WORKSPACE, Path(folder) / "out")))
    ratio = min(export) / min(fetch)
    sys.stdout.write(f"export_csv\t{ratio:.2f}\t<={GOAL:.2f}\t{'ok' if ratio <= GOAL else 'short'}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS)
