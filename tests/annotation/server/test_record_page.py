"""Our pages of records say what argilla-server's own say, value by value, to the same people."""

import json
import math
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from annotation.argilla.client import Argilla
from annotation.server.launch import ServerHandle, server_environment
from tests.support.export_bench import make_user

STOCK = """
import asyncio, json, sys
import httpx
from annotation.server.patches.first import import_argilla_server

import_argilla_server()
from argilla_server import app

async def main():
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://stock") as client:
        found = [await client.get(path, headers=headers) for path, headers in json.load(sys.stdin)]
    with open(sys.argv[1], "x") as file:  # the server logs to the standard output
        json.dump([[answer.status_code, answer.headers["content-type"], answer.text] for answer in found], file)

asyncio.run(main())
"""
OPTIONS = [{"value": value, "text": value} for value in ("yes", "no", "=1")]
QUESTIONS: dict[str, dict[str, Any]] = {
    "label": {"type": "label_selection", "options": OPTIONS},
    "labels": {"type": "multi_label_selection", "options": OPTIONS},
    "notes": {"type": "text"},
    "rank": {"type": "ranking", "options": OPTIONS[:2]},
    "rating": {"type": "rating", "options": [{"value": value} for value in range(5)]},
    "span": {"type": "span", "field": "text", "options": OPTIONS},
}
HOSTILE = 'ä "quoted", \\ NaN "}],\n\r\u2028\x00\x7f </script> 😀 Infinity'
VALUES: dict[str, Any] = {
    "label": "yes",
    "labels": ["no", "=1"],
    "notes": HOSTILE,
    "rank": [{"value": "no", "rank": 1}, {"value": "yes", "rank": 1}],
    "rating": 3,
    "span": [{"label": "yes", "start": 0, "end": 2}],
}
SUGGESTED: dict[str, dict[str, Any]] = {
    "label": {"value": "no", "score": 0.12345678901234566, "agent": "a:b/c", "type": "model"},
    "labels": {"value": ["no", "=1"], "score": [1.0, 0.1], "type": "human"},
    "notes": {"value": "007"},
    "rating": {"value": 4, "score": 1},
}
INCLUDES = ("", "responses", "suggestions", "responses,suggestions", "suggestions&include=responses")
ODD_QUERIES = (
    "limit=0",
    "limit=1001",
    "offset=x",
    "include=nothing",
    "include=vectors,vectors:v",
    "include=responses,vectors",
    "include=vectors:v&include=responses",
    "include=",
)


@pytest.fixture(scope="module")
def places(argilla_server: ServerHandle, client: Argilla) -> tuple[list[str], dict[str, str]]:
    """Paths of two datasets' records, the second with what Argilla's own page must tell; and keys by role."""
    name = f"w-{uuid.uuid4().hex[:12]}"
    workspace = client.request("POST", "/workspaces", json={"name": name})["id"]
    people = {who: make_user(client, who, role) for who, role in (("ida", "admin"), ("ana", "annotator"))}
    for user in people.values():
        client.request("POST", f"/workspaces/{workspace}/users", json={"user_id": user["id"]})
    users = [user["id"] for user in people.values()]
    paths = []
    odd = [{"none": math.nan}, {"list": [1, -math.inf]}, {"text": "\\ud83d: NaN"}]
    for is_odd in (False, True):
        dataset, questions = make_dataset(client, workspace)
        records = [{"fields": {"text": "t"}, "metadata": {"deep": each}} for each in odd]
        put(argilla_server, dataset, records if is_odd else told(users, questions))
        paths.append(f"/api/v1/datasets/{dataset}/records")
    keys = {who: str(user["api_key"]) for who, user in people.items()}
    return paths, {**keys, "owner": argilla_server.owner_api_key, "nobody": "wrong"}


def told(users: list[str], questions: dict[str, str]) -> list[dict[str, Any]]:
    values = {name: {"value": value} for name, value in VALUES.items()}
    whole = [{"user_id": users[0], "status": "submitted", "values": values}]
    bare = [{"user_id": users[1], "status": "discarded"}, {"user_id": users[0], "status": "draft", "values": {}}]
    suggestions = [{"question_id": questions[name], **known} for name, known in SUGGESTED.items()]
    return [
        {
            "fields": {"text": HOSTILE},
            "external_id": '7 "ü"\n',
            "metadata": {"n": 1, "x": 1.0, "deep": [HOSTILE, None, True, 1e300, 12345678901234567890]},
            "responses": whole,
            "suggestions": suggestions,
        },
        {"fields": {"text": "t"}, "responses": bare, "suggestions": suggestions[:1]},
        {"fields": {"text": ""}, "metadata": {}, "vectors": {"v": [0.1, 2.0]}},
        *({"fields": {"text": f"number {number}"}, "responses": whole} for number in range(5)),
    ]


def make_dataset(client: Argilla, workspace: str) -> tuple[str, dict[str, str]]:
    body = {"name": uuid.uuid4().hex, "workspace_id": workspace, "allow_extra_metadata": True}
    dataset = str(client.request("POST", "/datasets", json=body)["id"])
    text = {"name": "text", "title": "t", "required": True, "settings": {"type": "text"}}
    client.request("POST", f"/datasets/{dataset}/fields", json=text)
    client.request("POST", f"/datasets/{dataset}/vectors-settings", json={"name": "v", "title": "v", "dimensions": 2})
    questions = {}
    for name, settings in QUESTIONS.items():
        question = {"name": name, "title": name, "required": name == "label", "settings": settings}
        questions[name] = str(client.request("POST", f"/datasets/{dataset}/questions", json=question)["id"])
    client.request("PUT", f"/datasets/{dataset}/publish")
    return dataset, questions


def put(server: ServerHandle, dataset: str, records: list[dict[str, Any]]) -> None:
    url = f"{server.url}/api/v1/datasets/{dataset}/records/bulk"
    headers = {"X-Argilla-Api-Key": server.owner_api_key, "Content-Type": "application/json"}
    httpx.put(url, content=json.dumps({"items": records}), headers=headers, timeout=120).raise_for_status()


@pytest.mark.server
@pytest.mark.rare
def test_a_page_says_what_argillas_own_says(argilla_server: ServerHandle, places: Any, tmp_path: Path) -> None:
    (whole, broken), keys = places
    odd = [f"{broken}?limit=1&offset={offset}" for offset in range(3)]
    pages = [f"{whole}?limit=3&offset={offset}&include={include}" for offset in (0, 2, 9) for include in INCLUDES]
    asked = [(f"{whole}?include=responses,suggestions", who) for who in keys]
    asked += [(path, "owner") for path in (whole, *pages, *odd, f"/api/v1/datasets/{uuid.uuid4()}/records")]
    asked += [(f"{whole}?{query}", "owner") for query in ODD_QUERIES]
    requests = [(path, {"X-Argilla-Api-Key": keys[who]}) for path, who in asked]
    environment = server_environment(argilla_server.home) | {
        "ARGILLA_HOME_PATH": str(tmp_path),
        "TMPDIR": str(tmp_path),
    }
    answers = tmp_path / "answers.json"
    command = [sys.executable, "-c", STOCK, str(answers)]
    subprocess.run(command, input=json.dumps(requests), text=True, env=environment, check=True)
    theirs = json.loads(answers.read_bytes())
    assert {status for status, _, _ in theirs} == {200, 401, 403, 404, 422}
    with httpx.Client(base_url=argilla_server.url, timeout=120) as browser:
        for (path, headers), (status, kind, text) in zip(requests, theirs, strict=True):
            answer = browser.get(path, headers=headers)
            # Ours, but where Argilla's own has to tell; its own escapes nothing.
            assert answer.text.isascii() or whole not in path or "vectors" in path
            assert (answer.status_code, answer.headers["content-type"]) == (status, kind), path
            # As text: 1 is not 1.0 there, and the order counts.
            assert json.dumps(answer.json()) == json.dumps(json.loads(text)), path
