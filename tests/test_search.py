"""The search engine without an index answers as Argilla's page and its clients expect, from the tables as they are."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import pytest

from annotation.embedded.launch import ServerHandle

pytestmark = pytest.mark.server

TEXTS = {
    "a": ("Are vaccines safe?", "Vaccines are tested in trials."),
    "b": ("ワクチンは安全ですか", "安全性は治験で確かめられます。"),
    "c": ("Ist Über-Impfung möglich?", "Die ÜBERSICHT der Studien zeigt 100% Schutz."),
    "d": ("Are masks useful?", "Masks reduce spread; 1000 trials say so."),
    "e": ("What is a trial?", "A trial compares two groups."),
    "f": ("Is it under_scored?", "Snake_case text."),
}
METADATA: dict[str, dict[str, Any]] = {
    "a": {"topic": ["health", "law"], "rank": 1, "weight": 0.5, "model": "x"},
    "b": {"topic": ["health"], "rank": 2, "weight": 1.5, "model": "y"},
    "c": {"topic": ["law"], "rank": 3, "weight": 2.5, "model": "x"},
    "d": {"rank": 4},
    "e": {},
    "f": {},
}


class Jury(NamedTuple):
    owner: httpx.Client
    anna: httpx.Client
    ben: httpx.Client
    dataset: str
    ids: dict[str, str]

    def found(self, who: httpx.Client, **body: Any) -> list[str]:
        """External ids of the records that a search finds for an annotator, in order."""
        return [item["record"]["external_id"] for item in self.search(who, **body)["items"]]

    def search(self, who: httpx.Client, offset: int = 0, limit: int = 50, **body: Any) -> Any:
        place = "" if who is self.owner else "/me"
        path = f"{place}/datasets/{self.dataset}/records/search"
        reply = who.post(path, params={"offset": offset, "limit": limit, "include": "responses"}, json=body)
        assert reply.status_code == 200, reply.text
        return reply.json()


def client_for(server: ServerHandle, key: str) -> httpx.Client:
    return httpx.Client(base_url=f"{server.url}/api/v1", headers={"X-Argilla-Api-Key": key}, timeout=60)


def created(reply: httpx.Response) -> Any:
    assert reply.is_success, reply.text
    return reply.json()


def make_dataset(owner: httpx.Client, workspace: str) -> str:
    spread = {"strategy": "overlap", "min_submitted": 2}
    body = {"name": f"search-{uuid4()}", "workspace_id": workspace, "distribution": spread}
    dataset = created(owner.post("/datasets", json=body))["id"]
    for name in ("query", "chunk"):
        settings = {"type": "text", "use_markdown": False}
        created(owner.post(f"/datasets/{dataset}/fields", json={"name": name, "title": name, "settings": settings}))
    options = [{"value": value, "text": value} for value in ("yes", "no")]
    questions: dict[str, Any] = {
        "relevant": {"type": "label_selection", "options": options},
        "quality": {"type": "rating", "options": [{"value": n} for n in range(1, 6)]},
    }
    for name, settings in questions.items():
        question = {"name": name, "title": name, "required": name == "relevant", "settings": settings}
        created(owner.post(f"/datasets/{dataset}/questions", json=question))
    for name, kind in {"topic": "terms", "rank": "integer", "weight": "float", "model": "terms"}.items():
        shown = name != "model"
        prop = {"name": name, "title": name, "settings": {"type": kind}, "visible_for_annotators": shown}
        created(owner.post(f"/datasets/{dataset}/metadata-properties", json=prop))
    created(owner.put(f"/datasets/{dataset}/publish"))
    return str(dataset)


@pytest.fixture(scope="module")
def jury(argilla_server: ServerHandle) -> Iterator[Jury]:
    owner = client_for(argilla_server, argilla_server.owner_api_key)
    workspace = created(owner.post("/workspaces", json={"name": f"w-{uuid4()}"}))["id"]
    people = []
    for name in ("anna", "ben"):
        person = {"first_name": name, "username": f"{name}-{uuid4()}", "role": "annotator", "password": "long-enough"}
        user = created(owner.post("/users", json=person))
        created(owner.post(f"/workspaces/{workspace}/users", json={"user_id": user["id"]}))
        people.append(client_for(argilla_server, user["api_key"]))
    dataset = make_dataset(owner, workspace)
    items = [
        {"external_id": key, "fields": {"query": query, "chunk": chunk}, "metadata": METADATA[key]}
        for key, (query, chunk) in TEXTS.items()
    ]
    stored = created(owner.put(f"/datasets/{dataset}/records/bulk", json={"items": items}))["items"]
    jury = Jury(owner, *people, dataset, {item["external_id"]: item["id"] for item in stored})
    answer(jury, jury.anna, "a", "submitted", "yes", 5)
    answer(jury, jury.anna, "b", "draft", "no", 2)
    answer(jury, jury.anna, "c", "discarded")
    answer(jury, jury.ben, "a", "submitted", "no", 1)
    yield jury
    for client in (owner, *people):
        client.close()


def answer(jury: Jury, who: httpx.Client, key: str, status: str, label: str = "", rating: int = 0) -> None:
    values = {"relevant": {"value": label}, "quality": {"value": rating}} if label else None
    created(who.post(f"/records/{jury.ids[key]}/responses", json={"status": status, "values": values}))


def text(q: str, field: str | None = None) -> dict[str, Any]:
    return {"query": {"text": {"q": q, "field": field}}}


def terms(scope: dict[str, str], *values: str) -> dict[str, Any]:
    return {"filters": {"and": [{"type": "terms", "scope": scope, "values": list(values)}]}}


def within(scope: dict[str, str], **bounds: Any) -> dict[str, Any]:
    return {"filters": {"and": [{"type": "range", "scope": scope, **bounds}]}}


STATUS = {"entity": "response", "property": "status"}
RECORD = {"entity": "record"}
RELEVANT = {"entity": "response", "question": "relevant"}
QUALITY = {"entity": "response", "question": "quality"}


@pytest.mark.parametrize(
    ("query", "field", "expected"),
    [
        pytest.param("VACCINES", None, "a", id="case"),
        pytest.param("安全", None, "b", id="two characters of Japanese"),
        pytest.param("über", None, "c", id="case of umlauts"),
        pytest.param("Ｍａｓｋｓ", None, "d", id="full-width letters"),
        pytest.param("trial two", None, "e", id="every word, anywhere in the record"),
        pytest.param('"two trial"', None, "", id="words in quotation marks stay together"),
        pytest.param("trials", "query", "", id="one field only"),
        pytest.param("100%", None, "c", id="percent sign is no wildcard"),
        pytest.param("under_scored", None, "f", id="punctuation separates, and what is typed as one word is a phrase"),
        pytest.param("scored_text", None, "", id="a phrase is within one field"),
        pytest.param("trial*", None, "ade", id="beginning of a word"),
        pytest.param("über | (trial -groups)", None, "c", id="signs"),
        pytest.param("安全は", None, "", id="Japanese characters side by side"),
        pytest.param("*", None, "abcdef", id="everything"),
        pytest.param("%", None, "", id="no word finds nothing"),
        pytest.param("  ", None, "", id="no text finds nothing"),
        pytest.param("'; drop table records; --", None, "", id="quoting"),
    ],
)
def test_text_is_found(jury: Jury, query: str, field: str | None, expected: str) -> None:
    assert sorted(jury.found(jury.anna, **text(query, field))) == list(expected)


@pytest.mark.parametrize(
    ("who", "statuses", "expected"),
    [
        ("anna", ["pending"], "def"),
        ("anna", ["submitted"], "a"),
        ("anna", ["draft"], "b"),
        ("anna", ["discarded"], "c"),
        ("anna", ["pending", "draft"], "bdef"),
        ("ben", ["pending"], "bcdef"),
        ("ben", ["submitted"], "a"),
        ("owner", ["pending"], "def"),
        ("owner", ["draft", "submitted"], "ab"),
    ],
)
def test_response_status_means_the_annotators_own(jury: Jury, who: str, statuses: list[str], expected: str) -> None:
    assert sorted(jury.found(getattr(jury, who), **terms(STATUS, *statuses))) == list(expected)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(terms(RECORD | {"property": "status"}, "completed"), "a", id="record status"),
        pytest.param(terms(RECORD | {"property": "status"}, "pending", "nonsense"), "bcdef", id="unknown status"),
        pytest.param(terms(RECORD | {"property": "external_id"}, "a", "f"), "af", id="external ids"),
        pytest.param(terms(RECORD | {"property": "id"}, "no-uuid"), "", id="an id that is none"),
        pytest.param(within(RECORD | {"property": "inserted_at"}, ge="2020-01-01T00:00:00Z"), "abcdef", id="since"),
        pytest.param(within(RECORD | {"property": "updated_at"}, le="2020-01-01"), "", id="until"),
        pytest.param(terms({"entity": "metadata", "metadata_property": "topic"}, "law"), "ac", id="item of a list"),
        pytest.param(terms({"entity": "metadata", "metadata_property": "rank"}, "2"), "b", id="number as a term"),
        pytest.param(within({"entity": "metadata", "metadata_property": "rank"}, ge=2, le=3), "bc", id="range"),
        pytest.param(within({"entity": "metadata", "metadata_property": "weight"}, ge=1.5), "bc", id="floats"),
        pytest.param(terms(RELEVANT, "yes"), "a", id="own label"),
        pytest.param(within(QUALITY, ge=3), "a", id="own rating"),
        pytest.param(within(QUALITY, le=2), "b", id="a draft's rating, not another annotator's"),
    ],
)
def test_filters_find(jury: Jury, wanted: dict[str, Any], expected: str) -> None:
    assert sorted(jury.found(jury.anna, **wanted)) == list(expected)


def test_filters_are_joined_by_and(jury: Jury) -> None:
    both = (
        terms(STATUS, "pending")["filters"]["and"] + terms(RECORD | {"property": "status"}, "pending")["filters"]["and"]
    )
    assert sorted(jury.found(jury.ben, filters={"and": both}, **text("trial*"))) == ["d", "e"]


def test_each_annotator_has_an_order_of_her_own_that_stays(jury: Jury) -> None:
    anna, ben = jury.found(jury.anna), jury.found(jury.ben)
    assert jury.found(jury.anna) == anna
    assert sorted(anna) == sorted(ben)
    pages = [jury.search(jury.anna, offset=n, limit=2) for n in (0, 2, 4)]
    assert [item["record"]["external_id"] for page in pages for item in page["items"]] == anna
    assert {page["total"] for page in pages} == {6}


def test_the_owner_finds_records_in_order_of_arrival(jury: Jury) -> None:
    assert jury.found(jury.owner) == list("abcdef")


@pytest.mark.parametrize(
    ("scope", "order", "expected"),
    [
        pytest.param({"entity": "metadata", "metadata_property": "rank"}, "desc", "dcbaef", id="metadata"),
        pytest.param(RECORD | {"property": "external_id"}, "desc", "fedcba", id="external id"),
        pytest.param(RECORD | {"property": "inserted_at"}, "desc", "fedcba", id="arrival"),
        pytest.param(QUALITY, "asc", "bacdef", id="own rating"),
        pytest.param(STATUS, "asc", "cbadef", id="own status"),
    ],
)
def test_sorted_as_asked_with_missing_values_last(jury: Jury, scope: dict[str, str], order: str, expected: str) -> None:
    assert jury.found(jury.anna, sort=[{"scope": scope, "order": order}]) == list(expected)


def test_a_bound_that_is_no_number_is_a_client_error(jury: Jury) -> None:
    scope = {"entity": "metadata", "metadata_property": "rank"}
    path = f"/me/datasets/{jury.dataset}/records/search"
    assert jury.anna.post(path, json=within(scope, ge="many")).status_code == 422


def test_an_annotator_receives_her_own_responses_only(jury: Jury) -> None:
    (item,) = jury.search(jury.anna, **terms(RECORD | {"property": "external_id"}, "a"))["items"]
    assert [response["values"]["relevant"]["value"] for response in item["record"]["responses"]] == ["yes"]


def test_progress_counts_records_and_own_responses(jury: Jury) -> None:
    whole = jury.owner.get(f"/datasets/{jury.dataset}/progress").json()
    assert (whole["total"], whole["completed"], whole["pending"]) == (6, 1, 5)
    mine = jury.anna.get(f"/me/datasets/{jury.dataset}/metrics").json()["responses"]
    assert mine == {"total": 6, "submitted": 1, "discarded": 1, "draft": 1, "pending": 3}


def test_metadata_metrics(jury: Jury) -> None:
    properties = jury.anna.get(f"/me/datasets/{jury.dataset}/metadata-properties").json()["items"]
    metrics = {p["name"]: jury.anna.get(f"/metadata-properties/{p['id']}/metrics").json() for p in properties}
    terms_found = [{"term": "health", "count": 2}, {"term": "law", "count": 2}]
    assert metrics["topic"] == {"type": "terms", "total": 4, "values": terms_found}
    assert metrics["rank"] == {"type": "integer", "min": 1, "max": 4}
    assert metrics["weight"] == {"type": "float", "min": 0.5, "max": 2.5}
    assert "model" not in metrics


def test_suggestions_are_found_and_sorted_by_score(jury: Jury) -> None:
    dataset = make_dataset(jury.owner, jury.owner.get(f"/datasets/{jury.dataset}").json()["workspace_id"])
    question = jury.owner.get(f"/datasets/{dataset}/questions").json()["items"][0]["id"]
    items = [
        {
            "external_id": key,
            "fields": {"query": key, "chunk": key},
            "suggestions": [{"question_id": question, "value": value, "score": score, "agent": agent, "type": "model"}],
        }
        for key, value, score, agent in (("a", "yes", 0.2, "m1"), ("b", "no", 0.9, "m2"))
    ]
    created(jury.owner.put(f"/datasets/{dataset}/records/bulk", json={"items": items}))
    other = jury._replace(dataset=dataset)
    scope = {"entity": "suggestion", "question": "relevant"}
    assert other.found(jury.owner, **terms(scope | {"property": "value"}, "no")) == ["b"]
    assert other.found(jury.owner, **terms(scope | {"property": "agent"}, "m1")) == ["a"]
    assert other.found(jury.owner, **within(scope | {"property": "score"}, ge=0.5)) == ["b"]
    assert other.found(jury.owner, sort=[{"scope": scope | {"property": "score"}, "order": "desc"}]) == ["b", "a"]


def test_records_like_another_are_found_by_their_vectors(jury: Jury) -> None:
    dataset = make_dataset(jury.owner, jury.owner.get(f"/datasets/{jury.dataset}").json()["workspace_id"])
    vector = {"name": "v", "title": "v", "dimensions": 2}
    created(jury.owner.post(f"/datasets/{dataset}/vectors-settings", json=vector))
    items = [
        {"external_id": key, "fields": {"query": key, "chunk": key}, "vectors": {"v": value}}
        for key, value in (("a", [1, 0]), ("b", [0.9, 0.1]), ("c", [-1, 0]))
    ]
    stored = created(jury.owner.put(f"/datasets/{dataset}/records/bulk", json={"items": items}))["items"]
    other = jury._replace(dataset=dataset)
    by_record = {"query": {"vector": {"name": "v", "record_id": stored[0]["id"]}}}
    assert other.found(jury.owner, **by_record) == ["b", "c"]
    by_value = {"query": {"vector": {"name": "v", "value": [1, 0], "order": "least_similar"}}}
    assert other.found(jury.owner, **by_value) == ["c", "b", "a"]
