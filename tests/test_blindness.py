"""No address that an annotator can ask tells her which model answered, what others responded, or a key but her own."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from annotation.client import Argilla
from annotation.display import to_records
from annotation.embedded.launch import ServerHandle
from annotation.labels import LABELS
from annotation.setup import find_datasets, set_up
from annotation.wording import read_wording
from pipeline.records import Passage, Provenance, QueryResponse

pytestmark = pytest.mark.server

PROVENANCE = Provenance(model_name="hidden-name", model_version="hidden-version", run_id="hidden-run")
PASSAGE = Passage(chunk_id="d#0", doc_id="d", chunk_rank=1, text="Text.")


def test_nothing_that_an_annotator_can_read_breaks_her_blindness(argilla_server: ServerHandle) -> None:
    workspace, anna, ben = (f"{name}-{uuid4()}" for name in ("w", "anna", "ben"))
    with Argilla(argilla_server.url, argilla_server.owner_api_key) as owner:
        set_up(owner, workspace, annotators=[anna, ben], min_submitted=2)
        dataset = find_datasets(owner, workspace)["generation"].id
        answer = QueryResponse(
            record_uuid=str(uuid4()), query="Q?", answer="A [1].", chunks=(PASSAGE,), provenance=PROVENANCE
        )
        body = to_records(answer, read_wording("en"))["generation"][0]
        stored = owner.request("PUT", f"/datasets/{dataset}/records/bulk", json={"items": [body]})["items"][0]
        assert "hidden-name" in str(stored)
        users = {user["username"]: user for user in owner.request("GET", "/users")["items"]}
        ids = {"record_id": stored["id"], "dataset_id": dataset, "user_id": users[ben]["id"]}
        ids["workspace_id"] = owner.find_workspace(workspace)
    for name in (anna, ben):
        with annotator(argilla_server, users[name]["api_key"]) as client:
            values = {label: {"value": "yes"} for label in LABELS["generation"]}
            response = {"status": "submitted", "values": values | {"notes": {"value": f"notes of {name}"}}}
            client.post(f"/records/{stored['id']}/responses", json=response).raise_for_status()
    secrets = ["hidden-", f"notes of {ben}", users[ben]["api_key"], argilla_server.owner_api_key]
    with annotator(argilla_server, users[anna]["api_key"]) as client:
        answers = everything_read(client, ids)
    assert any(f"notes of {anna}" in text for text in answers.values())
    assert [path for path, text in answers.items() if any(secret in text for secret in secrets)] == []


def annotator(server: ServerHandle, key: str) -> httpx.Client:
    return httpx.Client(base_url=f"{server.url}/api/v1", headers={"X-Argilla-Api-Key": key}, timeout=60)


def everything_read(client: httpx.Client, ids: dict[str, Any]) -> dict[str, str]:
    """What each GET and each search of the API answers."""
    include = {"include": ["responses", "suggestions"]}
    found: dict[str, str] = {}
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        called = path.removeprefix("/api/v1")
        for name, value in ids.items():
            called = called.replace(f"{{{name}}}", value)
        if "{" in called or "oauth2" in called:
            continue
        if "get" in methods:
            found[f"GET {called}"] = client.get(called, params=include).text
        if called.endswith("/records/search"):
            found[f"POST {called}"] = client.post(called, params=include, json={"query": {}}).text
    assert len(found) > 20
    return found
