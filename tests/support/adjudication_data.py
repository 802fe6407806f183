"""A jury on the real server for the tests of adjudication: whoever differs was made to."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.display import unit_id
from annotation.argilla.labels import LABELS
from annotation.campaign.datasets import find_datasets
from exports.cli import main
from pipeline.records.schema import CONTEXT_SEPARATOR, Passage, Provenance, QueryResponse

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

NOTE = "<img src=x onerror=alert(1)> I doubt it\nYes: 99"


class Jury(NamedTuple):
    """A workspace with two answers, which anna, ben and carla have judged; dora is there and has not."""

    server: "ServerHandle"
    owner: Argilla
    workspace: str
    names: dict[str, str]
    keys: dict[str, str]
    export: Path

    def run(self, *words: str) -> Result:
        environment = {"ARGILLA_API_URL": self.server.url, "ARGILLA_API_KEY": self.server.owner_api_key}
        return CliRunner().invoke(main, ["exports", "adjudicate", *words], env=environment)

    def push(self, *words: str) -> Result:
        return self.run("push", str(self.export), "--workspace", self.workspace, *words)

    def client(self, who: str) -> httpx.Client:
        headers = {"X-Argilla-Api-Key": self.keys[who]}
        return httpx.Client(base_url=f"{self.server.url}/api/v1", headers=headers, timeout=60, verify=False)

    def respond(
        self, who: str, record_id: str, task: str, notes: str = "", status: str = "submitted", **yes: str
    ) -> None:
        values = {label: {"value": yes.get(label, "no")} for label in LABELS[task]}  # type: ignore[index]
        body = {"status": status, "values": values | ({"notes": {"value": notes}} if notes else {})}
        with self.client(who) as client:
            client.post(f"/records/{record_id}/responses", json=body).raise_for_status()

    def records(self, workspace: str) -> dict[str, dict[str, Any]]:
        """Every record of a workspace, by the name of its dataset and its unit."""
        found = {}
        for dataset in self.owner.datasets(self.owner.find_workspace(workspace)):
            for _, page in self.owner.record_pages(dataset["id"]):
                found |= {f"{dataset['name']} {unit_id(record)}": record for record in page}
        return found


def answer(number: int) -> QueryResponse:
    texts = [f"Passage {rank} of {number}." for rank in (1, 2)]
    return QueryResponse(
        record_uuid=f"r{number}",
        query=f"Query {number}?",
        answer="No <b>[1]</b>.",
        language="en",
        chunks=tuple(
            Passage(chunk_id=f"d{rank}#0", doc_id=f"d{rank}", chunk_rank=rank, text=text)
            for rank, text in enumerate(texts, start=1)
        ),
        context_set=CONTEXT_SEPARATOR.join(texts),
        provenance=Provenance(model_name="secretive-model"),
    )


def judge_everything(jury: Jury) -> None:
    """Carla alone says that passage 2 of record 1 is relevant, and ben alone that the answer of record 2 helps."""
    ids = {user["username"]: user["id"] for user in jury.owner.users()}
    planted = {("r1:d2#0", "carla"): "topically_relevant", ("r2", "ben"): "helpful"}
    for task, dataset in find_datasets(jury.owner, jury.workspace).items():
        items = []
        for record in jury.records(jury.workspace).values():
            if record["dataset_id"] != dataset.id:
                continue
            responses = []
            for who in ("anna", "ben", "carla"):
                yes = planted.get((unit_id(record), who))
                values = {label: {"value": "yes" if label == yes else "no"} for label in LABELS[task]}
                notes = {"notes": {"value": NOTE}} if yes == "topically_relevant" else {}
                response = {"user_id": ids[jury.names[who]], "status": "submitted", "values": values | notes}
                responses.append(response)
            items.append({"id": record["id"], "responses": responses})
        jury.owner.request("PUT", f"/datasets/{dataset.id}/records/bulk", json={"items": items})


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def everything_shown(jury: Jury, who: str, workspace: str) -> str:
    """All bodies that an adjudicator's page is filled from: datasets, fields, questions, records, one by one too."""
    bodies = []
    with jury.client(who) as client:
        listed = client.get("/me/datasets")
        bodies.append(listed.text)
        mine = jury.owner.find_workspace(workspace)
        for dataset in [item for item in listed.json()["items"] if item["workspace_id"] == mine]:
            for part in ("fields", "questions", "metadata-properties", "vectors-settings"):
                bodies.append(client.get(f"/me/datasets/{dataset['id']}/{part}").text)
                bodies.append(client.get(f"/datasets/{dataset['id']}/{part}").text)
            found = client.post(
                f"/me/datasets/{dataset['id']}/records/search",
                params={"include": ["responses", "suggestions"]},
                json={"query": {}},
            )
            bodies.append(found.text)
            for item in found.json()["items"]:
                bodies.append(client.get(f"/records/{item['record']['id']}").text)
    return "\n".join(bodies)
