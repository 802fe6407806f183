"""Nothing that an annotator's page or login receives tells which model answered, what others said, or their keys."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.display import to_records
from annotation.argilla.labels import LABELS, TASKS, TaskName
from annotation.argilla.units import ROWS_PATH
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.people import NewUser
from annotation.campaign.setup import set_up
from annotation.server.launch import ServerHandle
from pipeline.records.schema import Passage, Provenance, QueryResponse, Source
from tests.support.lossy_link import Forward, LossyLink
from tests.support.page_driver import answer, focused, forget, log_in_by_hand, press, wait
from tests.support.ways_in import filled

pytestmark = pytest.mark.server

# A word for every field of the provenance, one that is added later too.
PROVENANCE = Provenance(
    **{name: f"unseen7-{name}" for name in Provenance.model_fields if name != "contexts"}, contexts="supplied"
)
REDIRECT = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/unseen7-redirect"
RECORD = QueryResponse(
    record_uuid=str(uuid4()),
    query="Q?",
    answer="A <b>b</b> [1].",
    sources=(Source(n=1, url=REDIRECT, host="food.example", title="Honey", state="read"),),
    chunks=(Passage(chunk_id="d#0", doc_id="d", chunk_rank=1, text="Text &amp; more.", url=REDIRECT),),
    context_set="Text &amp; more.",
    provenance=PROVENANCE,
)
OPEN_TO_WRITE = {
    "POST /me/responses/bulk",
    "POST /me/datasets/{dataset_id}/records/search",
    "PUT /responses/{response_id}",
    "DELETE /responses/{response_id}",
}


class Jury(NamedTuple):
    url: str
    dora: NewUser
    keys: dict[str, str]
    records: dict[str, str]
    ids: dict[str, str]
    secrets: tuple[str, ...]


@pytest.fixture(scope="module")
def jury(argilla_server: ServerHandle) -> Jury:
    workspace = str(uuid4())
    names = {name: f"{name}-{workspace}" for name in ("anna", "ben", "cora", "dora")}
    new: list[NewUser] = []
    with Argilla(argilla_server.url, argilla_server.owner_api_key) as owner:
        set_up(owner, workspace, annotators=list(names.values()), min_submitted=9, announce=new.append)
        users = {user["username"]: user for user in owner.request("GET", "/users")["items"]}
        datasets = {task: dataset.id for task, dataset in find_datasets(owner, workspace).items()}
        records = {}
        for task, (body, *_) in to_records(RECORD, read_wording("en")).items():
            put = owner.request("PUT", f"/datasets/{datasets[task]}/records/bulk", json={"items": [body]})
            assert all(word in str(put) for word in PROVENANCE.model_dump().values())
            records[task] = put["items"][0]["id"]
        ids = {
            "workspace_id": owner.find_workspace(workspace),
            "question_id": owner.request("GET", f"/datasets/{datasets['grounding']}/questions")["items"][0]["id"],
            "field_id": owner.request("GET", f"/datasets/{datasets['grounding']}/fields")["items"][0]["id"],
            **{f"dataset {task}": dataset for task, dataset in datasets.items()},
        }
    keys = {name: users[username]["api_key"] for name, username in names.items()}
    keys["owner"] = argilla_server.owner_api_key
    dora = next(user for user in new if user.username == names["dora"])
    jury = Jury(argilla_server.url, dora, keys, records, ids, ())
    for name in ("ben", "anna", "cora"):
        with login(jury, name) as client:
            for task in TASKS:
                answer = {"status": "submitted", "values": values(task, f"notes of {name}")}
                response = client.post(f"/records/{records[task]}/responses", json=answer)
                assert response.status_code == 201
                ids[f"{name} {task}"] = response.json()["id"]
    ids |= {
        "dataset_id": datasets["grounding"],
        "record_id": records["grounding"],
        "user_id": users[names["ben"]]["id"],
    }
    secrets = ("unseen7-", "vertexaisearch", "notes of ben", names["ben"], keys["ben"], keys["owner"])
    secrets += tuple(ids[f"ben {task}"] for task in TASKS)
    return jury._replace(secrets=secrets)


def values(task: TaskName, note: str) -> dict[str, Any]:
    return {label: {"value": "yes"} for label in LABELS[task]} | {"notes": {"value": note}}


def login(jury: Jury, who: str) -> httpx.Client:
    return httpx.Client(base_url=f"{jury.url}/api/v1", headers={"X-Argilla-Api-Key": jury.keys[who]}, timeout=60)


def leaks(answers: dict[str, str], secrets: tuple[str, ...]) -> list[str]:
    return [name for name, text in answers.items() if any(secret in text for secret in secrets)]


def operations(client: httpx.Client) -> Iterator[tuple[str, str]]:
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        for method in methods:
            yield method.upper(), path.removeprefix("/api/v1")


@pytest.mark.parametrize("task", TASKS)
def test_no_address_that_her_login_can_read_breaks_her_blindness(jury: Jury, task: str) -> None:
    include = {"include": "responses,suggestions"}
    with login(jury, "anna") as client:
        datasets = {dataset["name"]: dataset["id"] for dataset in client.get("/me/datasets").json()["items"]}
        ids = jury.ids | {
            "record_id": jury.records[task],
            "dataset_id": datasets[next(name for name in datasets if task in name)],
            "response_id": jury.ids[f"anna {task}"],
        }
        answers = {}
        for method, path in operations(client):
            if method == "GET" and "oauth2" not in path:
                answers[path] = client.get(filled(path, ids), params=include).text
            if path.endswith("/records/search"):
                answers[f"POST {path}"] = client.post(filled(path, ids), params=include, json={"query": {}}).text
    assert len(answers) > 25
    assert any(path.endswith(ROWS_PATH) for path in answers)
    assert sum("notes of anna" in text for text in answers.values()) >= 2
    assert leaks(answers, jury.secrets) == []
    with login(jury, "owner") as owner:
        address = f"/records/{jury.records[task]}"
        assert leaks({address: owner.get(address).text}, jury.secrets) == [address]


def test_a_login_writes_its_own_response_only_and_learns_nothing_by_it(jury: Jury) -> None:
    bodies = {
        "POST /records/{record_id}/responses": {"status": "draft", "values": {}},
        "PUT /responses/{response_id}": {"status": "submitted", "values": values("generation", "mine")},
        "POST /me/responses/bulk": {
            "items": [{"record_id": jury.records["generation"], "status": "draft", "values": {"notes": {"value": "b"}}}]
        },
        "POST /me/datasets/{dataset_id}/records/search": {"query": {}},
    }
    ids = jury.ids | {"record_id": jury.records["generation"], "response_id": jury.ids["cora generation"]}
    answers, done = {}, set()
    with login(jury, "cora") as client:
        writes = [(method, path) for method, path in operations(client) if method != "GET" and path != "/token"]
        for method, path in sorted(writes, key=lambda write: write[0] == "DELETE"):
            called = f"{method} {path}"
            answer = client.request(method, filled(path, ids), json=bodies.get(called, {}))
            answers[called] = answer.text
            done |= {called} if answer.is_success else set()
        others = [
            client.request(method, f"/responses/{jury.ids[other]}", json=bodies["PUT /responses/{response_id}"])
            for other in jury.ids
            if other.startswith("ben ")
            for method in ("PUT", "DELETE")
        ]
    assert done == OPEN_TO_WRITE
    assert leaks(answers, jury.secrets) == []
    assert {answer.status_code for answer in others} == {403}
    assert leaks({str(place): answer.text for place, answer in enumerate(others)}, jury.secrets) == []


def test_what_others_did_changes_nothing_that_she_can_read(jury: Jury) -> None:
    with login(jury, "dora") as dora:
        # The status of the server has the memory that it uses.
        offered = {path for method, path in operations(dora) if method == "GET" and path != "/status"}
    addresses = {path: filled(path, jury.ids) for path in offered}

    def readable() -> dict[str, str]:
        """Every answer that Dora gets, without the time of the dataset's last activity."""
        with login(jury, "dora") as dora:
            found = {path: dora.get(address).text for path, address in addresses.items()}
            address = f"/me/datasets/{jury.ids['dataset_id']}/records/search?include=responses"
            found["search"] = dora.post(address, json={"query": {}}).text
        return {path: re.sub(r'"last_activity_at":"[^"]*"', "", text) for path, text in found.items()}

    before = readable()
    with login(jury, "ben") as ben:
        own = f"/responses/{jury.ids['ben grounding']}"
        for body in ({"status": "discarded", "values": {}}, {"status": "draft", "values": {}}):
            ben.put(own, json=body).raise_for_status()
            after = readable()
            assert {path: (text, after[path]) for path, text in before.items() if after[path] != text} == {}
        submitted = {"status": "submitted", "values": values("grounding", "notes of ben")}
        ben.put(own, json=submitted).raise_for_status()
    progress = json.loads(before["/datasets/{dataset_id}/progress"])
    assert progress == {"total": 1, "completed": 0, "pending": 1, "users": []}
    assert json.loads(before["/datasets/{dataset_id}/users/progress"]) == {"users": []}


def test_her_progress_is_what_the_progress_of_a_dataset_is_to_her(jury: Jury) -> None:
    paths = [f"/datasets/{jury.ids['dataset_id']}/{name}" for name in ("progress", "users/progress")]
    with login(jury, "ben") as ben, login(jury, "owner") as owner:
        progress, people = (ben.get(path).raise_for_status().json() for path in paths)
        everybody = [owner.get(path).raise_for_status().json() for path in paths]
    assert (progress["total"], progress["completed"], progress["pending"]) == (1, 1, 0)
    (only,) = people["users"]
    assert only["username"].startswith("ben-")
    assert only["pending"]["submitted"] == 1
    assert [user["username"] for user in progress["users"]] == [only["username"]]
    assert [len(each["users"]) for each in everybody] == [3, 3]
    assert everybody[0]["completed"] == 0


def test_what_is_hidden_is_found_by_no_search_filter_or_order(jury: Jury) -> None:
    scope = {"entity": "metadata", "metadata_property": "citejury"}
    condition = {"type": "terms", "scope": scope, "values": ["unseen7-model_name"]}
    address = f"/me/datasets/{jury.ids['dataset_id']}/records/search"
    with login(jury, "anna") as client:
        texts = ("Text", "unseen7-model_name", "unseen7", "unseen7-run_id", "vertexaisearch")
        found = [client.post(address, json={"query": {"text": {"q": text}}}).json()["total"] for text in texts]
        assert found == [1, 0, 0, 0, 0]
        for query in ({"filters": {"type": "and", "and": [condition]}}, {"sort": [{"scope": scope, "order": "asc"}]}):
            assert client.post(address, json=query).status_code == 422


class Recording(Forward):
    """Keeps every answer of the server as text, by number, method and path; an encoded one could not be searched."""

    server: Any

    def ask_upstream(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        del self.headers["Accept-Encoding"]
        self.server.upgrades += [self.path] if "Upgrade" in self.headers else []
        status, headers, content = super().ask_upstream(body)
        name = f"{len(self.server.seen)} {self.command} {self.path}"
        self.server.seen[name] = content.decode("utf-8", "replace") + str(headers)
        return status, headers, content


@pytest.mark.browser
@pytest.mark.parametrize("tasks", [["grounding"], pytest.param(["retrieval", "generation"], marks=pytest.mark.rare)])
def test_nothing_that_her_page_loads_breaks_her_blindness(
    jury: Jury, browser: Chrome, link: LossyLink, tasks: list[TaskName]
) -> None:
    link.RequestHandlerClass = Recording
    seen, upgrades = link.seen, link.upgrades = {}, []  # type: ignore[attr-defined]  # what `Recording` keeps
    log_in_by_hand(browser, link.url, jury.dora.username, jury.dora.password)
    wait(browser, lambda: len(dataset_addresses(browser)) == len(TASKS))
    with login(jury, "dora") as dora:
        for task in tasks:
            browser.get(f"{link.url}/dataset/{jury.ids[f'dataset {task}']}/annotation-mode?page=1&status=pending")
            wait(browser, lambda task=task: focused(browser) == f"{LABELS[task][0]}_yes")
            answer(browser, [(label, True) for label in LABELS[task]])
            press(browser, Keys.RETURN)
            record = f"/records/{jury.records[task]}"
            wait(browser, lambda record=record: dora.get(record).json()["responses"])
        forget(browser, link.url)  # so that nothing more comes
    assert sum(RECORD.record_uuid in text for text in seen.values()) >= len(tasks)
    assert sum("/responses" in name for name in seen) >= len(tasks)
    assert upgrades == []
    assert leaks(seen, jury.secrets) == []


def dataset_addresses(driver: Chrome) -> set[str]:
    cards = driver.find_elements(By.CSS_SELECTOR, "a[href*='/dataset/']")
    return {str(card.get_attribute("href")) for card in cards}
