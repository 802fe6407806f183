"""Nothing that an annotator's page or login receives tells which model answered, what others said, or their keys."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid4

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
from annotation.push.push import push_records
from annotation.server.launch import ServerHandle
from pipeline.core.errors import ProviderError
from pipeline.core.schema import PROVIDERS
from pipeline.providers import read_payload
from pipeline.records.run import record_from_answer
from pipeline.records.schema import Passage, Provenance, QueryResponse, Source
from tests.support.blind_study import ORIGINS, RUN, accuracy, study_records
from tests.support.cited_run import stored_answer
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
    chunks=(
        Passage(
            chunk_id="unseen7-page#cited_text0",
            doc_id="unseen7-page",
            chunk_rank=1,
            text="Text &amp; more.",
            url=REDIRECT,
            origin="cited_text",
        ),
    ),
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
    secrets = ("unseen7-", "cited_text", "vertexaisearch", "notes of ben", names["ben"], keys["ben"], keys["owner"])
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
    assert (done, leaks(answers, jury.secrets)) == (OPEN_TO_WRITE, [])
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


MARGIN = 0.05
FETCHED = {
    "query_score",
    "record",
    *(f"record.{name}" for name in ("id", "status", "fields", "metadata", "external_id", "dataset_id")),
    *(f"record.{name}" for name in ("inserted_at", "updated_at", "responses", "suggestions")),
    *(f"record.fields.{name}" for name in ("query", "answer", "source", "chunk", "sources", "context")),
}
"""All that an annotator gets of a record that nobody has answered, by the names on the way to it."""


class Seen(NamedTuple):
    """What one annotator fetched of one answer, and whose it is; narratives of recorded answers have no number."""

    provider: str
    origin: str
    narrative: int
    units: list[dict[str, Any]]


def fetched(server: ServerHandle, folder: Path, narratives: int) -> list[Seen]:
    """Every provider and origin, and all recorded payloads, pushed as they stand in a run folder, and fetched."""
    workspace, name = str(uuid4()), f"eva-{uuid4()}"
    study = list(study_records(folder, narratives))
    told = {record.record_uuid: (provider, origin, narrative) for provider, origin, narrative, record in study}
    recorded = list(recorded_answers())
    told |= {record.record_uuid: (record.provenance.model_name, "recorded", -1) for record in recorded}
    records = [*recorded, *(record for *_, record in study)]
    with Argilla(server.url, server.owner_api_key) as owner:
        set_up(owner, workspace, annotators=[name])
        push_records(owner, workspace, sorted(records, key=lambda record: record.provenance.model_name))
        key = next(user["api_key"] for user in owner.request("GET", "/users")["items"] if user["username"] == name)
        datasets = [dataset.id for dataset in find_datasets(owner, workspace).values()]
    by_answer: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    with httpx.Client(base_url=f"{server.url}/api/v1", headers={"X-Argilla-Api-Key": key}, timeout=60) as eva:
        for dataset_id in datasets:
            items = list(found_in(eva, dataset_id))
            ids = [item["record"]["id"] for item in items]
            # Argilla's ids are random, so the order tells nothing of what was pushed when.
            assert ids == sorted(ids)
            for item in items:
                by_answer[item["record"]["external_id"][:36]].append(item)
        for unit in (unit for uuid, units in by_answer.items() if told[uuid][2] == 0 for unit in units):
            assert eva.get(f"/records/{unit['record']['id']}").json() == unit["record"]
    return [Seen(*told[record_uuid], units) for record_uuid, units in sorted(by_answer.items())]


def recorded_answers() -> Iterator[QueryResponse]:
    """What the demo's payloads and those of the tests say, as records."""
    shelf = files("exports") / "demo_data" / "payloads"
    bodies = [(name, file) for name in PROVIDERS for file in (shelf / name).iterdir()]
    own = Path(__file__).parents[2] / "data" / "payloads"
    bodies += [(name, file) for name in PROVIDERS for file in own.glob(f"{name}_*.json")]
    for number, (name, file) in enumerate(bodies):
        text = file.read_text(encoding="utf-8")
        try:
            answer = read_payload(name, text)
        except ProviderError:
            continue
        said = {"answer_text": answer.text, "answer_raw_json": text, "citations": answer.citations}
        said |= {"domains": answer.domains, "search_results": answer.search_results}
        yield record_from_answer(stored_answer(model_name=name, answer_id=str(UUID(int=number)), **said), RUN)


def found_in(client: httpx.Client, dataset_id: str) -> Iterator[dict[str, Any]]:
    address, offset, total = f"/me/datasets/{dataset_id}/records/search", 0, 1
    while offset < total:
        params: dict[str, Any] = {"include": "responses,suggestions", "offset": offset, "limit": 1000}
        page = client.post(address, params=params, json={"query": {}}).raise_for_status().json()
        yield from page["items"]
        offset, total = offset + len(page["items"]), page["total"]


def names_in(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            place = f"{path}.{name}".lstrip(".")
            yield place
            yield from names_in(inner, place)
    for inner in value if isinstance(value, list) else ():
        yield from names_in(inner, path)


def test_of_a_record_her_login_gets_only_what_is_allowed(argilla_server: ServerHandle, tmp_path: Path) -> None:
    seen = fetched(argilla_server, tmp_path, 1)
    assert {(each.provider, each.origin) for each in seen if each.narrative == 0} == {
        (provider, origin) for provider, origins in ORIGINS.items() for origin in origins
    }
    units = [unit for each in seen for unit in each.units]
    assert {name for unit in units for name in names_in(unit)} == FETCHED
    assert not any(unit["record"]["metadata"] for unit in units)
    ids = {re.sub("[0-9a-f]", "x", unit["record"]["external_id"]) for unit in units}
    assert ids == {f"{str(UUID(int=0)).replace('0', 'x')}{end}" for end in ("", f":{'x' * 16}")}
    assert not re.search("vertexaisearch|utm_source|openai|perplexity|#snippet|cited_text", str(units))


def features(unit: Mapping[str, Any]) -> Iterator[str]:
    """Every name, and of what it holds the words and the length; of ids what is not by chance."""
    for name in names_in(unit):
        yield f"has {name}"
    record = unit["record"]
    for name, text in record["fields"].items():
        yield from (f"{name} says {word}" for word in re.findall(r"\w+|[^\w\s]", text.lower()))
        yield f"{name} of {len(text) // 40}"
        yield f"{name} of {text.count(chr(10))} lines"
    for name in ("id", "external_id", "dataset_id"):
        yield f"{name} of {len(record[name])}"
        yield f"{name} like {re.sub('[0-9a-f]', 'x', record[name])}"
    signs = record["external_id"]
    yield from (f"external_id has {signs[at : at + n]}" for n in (1, 2, 3) for at in range(36, len(signs)))


def told_by(answers: Sequence[Seen], parts: str) -> float:
    """How often the provider is told by these parts of what is fetched."""
    wanted = re.compile(parts)
    found = [Counter(each for unit in seen.units for each in features(unit) if wanted.match(each)) for seen in answers]
    return accuracy(found, [seen.provider for seen in answers], [seen.narrative for seen in answers])


@pytest.mark.rare
def test_nothing_but_the_answer_tells_her_login_the_provider(argilla_server: ServerHandle, tmp_path: Path) -> None:
    """Of 150 narratives: an accuracy has a standard error of .015 among five providers, of .029 between two."""
    seen = fetched(argilla_server, tmp_path, 150)
    for is_page, providers in ((True, 5), (False, 2)):
        answers = [each for each in seen if each.narrative >= 0 and (each.origin == "page") is is_page]
        assert len(answers) == 150 * providers
        assert len({each.provider for each in answers}) == providers
        whole, answer, ids = (told_by(answers, parts) for parts in ("", "answer ", r"\w*id "))
        figures = (
            f"whole {whole:.3f}, answer {answer:.3f}, ids {ids:.3f}, all else {told_by(answers, '(?!answer )'):.3f}"
        )
        assert whole <= answer + MARGIN, figures
        assert ids <= 1 / providers + MARGIN, figures


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
def test_what_a_page_loads_tells_nothing(jury: Jury, browser: Chrome, link: LossyLink, tasks: list[TaskName]) -> None:
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
    assert (upgrades, leaks(seen, jury.secrets)) == ([], [])


def dataset_addresses(driver: Chrome) -> set[str]:
    cards = driver.find_elements(By.CSS_SELECTOR, "a[href*='/dataset/']")
    return {str(card.get_attribute("href")) for card in cards}
