"""A workspace of a test's own on the embedded Argilla, and what goes into it: for the tests of exports."""

import csv
import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TASKS, TaskName
from annotation.argilla.tasks import COLUMN_FIELDS, PRODUCTION, define_dataset
from annotation.argilla.wording import FIELDS, read_wording
from exports.csv.folder import MANIFEST_FILE, PROVENANCE_FILE
from exports.csv.schema import ExportFilters
from exports.csv.write import export_csv

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle


class Bench(NamedTuple):
    """A workspace of a test's own with the three datasets and two annotators."""

    server: "ServerHandle"
    client: Argilla
    workspace: str
    workspace_id: str
    datasets: dict[str, str]
    annotators: dict[str, str]

    def put(self, task: str, *records: dict[str, Any]) -> list[str]:
        body = {"items": list(records)}
        answer = self.client.request("PUT", f"/datasets/{self.datasets[task]}/records/bulk", json=body)
        return [item["id"] for item in answer["items"]]

    def response(self, annotator: str, status: str = "submitted", **values: str) -> dict[str, Any]:
        given = {name: {"value": value} for name, value in values.items()}
        return {"user_id": self.annotators[annotator], "status": status, "values": given or None}

    def export(self, out: Path, **wanted: Any) -> dict[str, list[dict[str, str]]]:
        export_csv(self.client, self.workspace, out, ExportFilters(**wanted))
        return {path.stem: read_csv(path) for path in out.glob("*.csv") if path.name != PROVENANCE_FILE}


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def record(task: str, record_uuid: str, *responses: dict[str, Any], rank: int = 1, **known: Any) -> dict[str, Any]:
    passage = (
        {"chunk_id": f"c{rank}", "doc_id": "d", "chunk_rank": rank, "origin": "page"} if task == "retrieval" else {}
    )
    ours = {
        "version": 1,
        "task": task,
        "record_uuid": record_uuid,
        "language": "en",
        **passage,
        "originals": {},
        **known,
    }
    return {
        "fields": dict.fromkeys(FIELDS[task], "-")
        | {field: f"{column} of {record_uuid}" for column, field in COLUMN_FIELDS[task].items()},
        "metadata": {"citejury": ours},
        "external_id": f"{record_uuid}:c{rank}" if task == "retrieval" else record_uuid,
        "responses": list(responses),
    }


def answers(task: str, **changed: str) -> dict[str, str]:
    return dict.fromkeys(LABELS[task], "no") | changed


def make_dataset(
    client: Argilla, workspace_id: str, task: TaskName, round_name: str = PRODUCTION, overlap: int = 1
) -> str:
    definition = define_dataset(task, read_wording("en"), overlap, round_name=round_name)
    dataset = client.request("POST", "/datasets", json={**definition.body, "workspace_id": workspace_id})["id"]
    for kind, parts in (("fields", definition.fields), ("questions", definition.questions)):
        for part in parts:
            client.request("POST", f"/datasets/{dataset}/{kind}", json=part)
    client.request("PUT", f"/datasets/{dataset}/publish")
    return str(dataset)


def make_user(client: Argilla, name: str, role: str = "annotator") -> dict[str, Any]:
    body = {"first_name": name, "username": f"{name}-{uuid.uuid4().hex[:8]}", "role": role, "password": "12345678"}
    return client.request("POST", "/users", json=body)


def full_bench(server: "ServerHandle", client: Argilla, users: dict[str, str]) -> Bench:
    return new_bench(server, client, users, *TASKS)


def generation_bench(server: "ServerHandle", client: Argilla, users: dict[str, str]) -> Bench:
    """A workspace with the dataset of one task, the quickest to make."""
    return new_bench(server, client, users, "generation")


def new_bench(server: "ServerHandle", client: Argilla, users: dict[str, str], *tasks: TaskName) -> Bench:
    name = f"w-{uuid.uuid4().hex[:12]}"
    workspace_id = client.request("POST", "/workspaces", json={"name": name})["id"]
    datasets = {str(task): make_dataset(client, workspace_id, task) for task in tasks}
    return Bench(server, client, name, workspace_id, datasets, users)


def username(bench: Bench, who: str) -> str:
    return bench.client.usernames()[bench.annotators[who]]


def answered_by(bench: Bench, *people: str, record_uuid: str = "r1", **known: Any) -> None:
    responses = [bench.response(who, **answers("generation")) for who in people]
    bench.put("generation", record("generation", record_uuid, *responses, **known))


def pairs(rows: list[dict[str, str]]) -> list[tuple[str, str]]:
    return [(row["record_uuid"], row["annotator_id"]) for row in rows]


def manifest_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
