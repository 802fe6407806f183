"""The search engine answers as Argilla's page and its clients expect, on SQLite and on PostgreSQL."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from annotation.server.launch import ServerHandle
from tests.support.postgresql import Server
from tests.support.search_anything import SEARCHES, SIGNS
from tests.support.search_jury import Jury, created, small_jury

pytestmark = pytest.mark.server


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.rare)])
def jury(request: pytest.FixtureRequest) -> Iterator[Jury]:
    if request.param == "sqlite":
        embedded: ServerHandle = request.getfixturevalue("argilla_server")
        server = Server(embedded.url, embedded.owner_api_key)
    else:
        server = request.getfixturevalue("postgresql_server")
    with small_jury(server) as jury:
        yield jury


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
        pytest.param("R&D", None, "f", id="an entity is read as it is shown"),
        pytest.param("prospektstrasse", None, "f", id="an invisible character and ß"),
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
    [("anna", "pending draft", "bdef"), ("ben", "pending", "bcdef"), ("owner", "draft submitted", "ab")],
)
def test_response_status_means_the_annotators_own(jury: Jury, who: str, statuses: str, expected: str) -> None:
    assert sorted(jury.found(getattr(jury, who), **terms(STATUS, *statuses.split()))) == list(expected)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(terms(RECORD | {"property": "id"}, "no-uuid"), "", id="an id that is none"),
        pytest.param(within({"entity": "metadata", "metadata_property": "rank"}, ge="2"), "bcd", id="number in quotes"),
        pytest.param(within(RELEVANT, ge="y", le="z"), "a", id="labels from a letter on"),
        pytest.param(terms(RELEVANT, "yes"), "a", id="own label"),
        pytest.param(within(QUALITY, le=2), "b", id="a draft's rating, not another annotator's"),
    ],
)
def test_filters_find(jury: Jury, wanted: dict[str, Any], expected: str) -> None:
    assert sorted(jury.found(jury.anna, **wanted)) == list(expected)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(terms(RECORD | {"property": "status"}, "completed"), "a", id="status"),
        pytest.param(terms(RECORD | {"property": "status"}, "pending", "nonsense"), "bcdef", id="unknown status"),
        pytest.param(within(RECORD | {"property": "inserted_at"}, ge="2020-01-01T00:00:00Z"), "abcdef", id="since"),
        pytest.param(within(RECORD | {"property": "updated_at"}, le="2020-01-01"), "", id="until"),
    ],
)
def test_what_a_record_is_for_is_the_owners(jury: Jury, wanted: dict[str, Any], expected: str) -> None:
    assert sorted(jury.found(jury.owner, **wanted)) == list(expected)
    refused = jury.anna.post(f"/me/datasets/{jury.dataset}/records/search", json=wanted)
    assert (refused.status_code, "Annotators cannot search by" in refused.text) == (422, True)


def test_filters_orders_own_responses_progress_and_metrics_are_argillas_and_odd_texts_read(jury: Jury) -> None:
    pending = [terms(scope, "pending")["filters"]["and"][0] for scope in (STATUS, RECORD | {"property": "status"})]
    assert sorted(jury.found(jury.ben, filters={"and": pending}, **text("trial*"))) == ["d", "e"]
    arrival = [{"scope": RECORD | {"property": "inserted_at"}, "order": "desc"}]
    assert jury.found(jury.owner, sort=arrival) == list("fedcba")
    assert jury.found(jury.anna, sort=arrival) == jury.found(jury.anna)
    (item,) = jury.search(jury.anna, **terms(RECORD | {"property": "external_id"}, "a"))["items"]
    assert [response["values"]["relevant"]["value"] for response in item["record"]["responses"]] == ["yes"]
    whole = jury.owner.get(f"/datasets/{jury.dataset}/progress").json()
    assert (whole["total"], whole["completed"], whole["pending"]) == (6, 1, 5)
    mine = jury.anna.get(f"/me/datasets/{jury.dataset}/metrics").json()["responses"]
    assert mine == {"total": 6, "submitted": 1, "discarded": 1, "draft": 1, "pending": 3}
    properties = jury.anna.get(f"/me/datasets/{jury.dataset}/metadata-properties").json()["items"]
    metrics = {p["name"]: jury.anna.get(f"/metadata-properties/{p['id']}/metrics").json() for p in properties}
    terms_found = [{"term": "health", "count": 2}, {"term": "law", "count": 2}]
    assert metrics["topic"] == {"type": "terms", "total": 4, "values": terms_found}
    assert metrics["rank"] == {"type": "integer", "min": 1, "max": 4}
    assert metrics["weight"] == {"type": "float", "min": 0.5, "max": 2.5}
    assert "model" not in metrics
    assert jury.found(jury.owner, filters={}) == list("abcdef")
    for query in ("(" * 5000, "(" * 200 + "zebra" + ")" * 200, " ".join(map(str, range(3000))), '"' * 999, "\\" * 999):
        assert jury.found(jury.owner, **text(query)) == []


def test_suggestions_and_vectors_are_found_and_words_follow_each_change(jury: Jury) -> None:
    other = jury.of_new_dataset()
    question = jury.owner.get(f"/datasets/{other.dataset}/questions").json()["items"][0]["id"]
    for key, value, score, agent in (("a", "yes", 0.2, "m1"), ("b", "no", 0.9, "m2")):
        said = {"question_id": question, "value": value, "score": score, "agent": agent, "type": "model"}
        other.put({"external_id": key, "fields": {"query": key, "chunk": key}, "suggestions": [said]})
    scope = {"entity": "suggestion", "question": "relevant"}
    assert other.found(jury.owner, **terms(scope | {"property": "agent"}, "m1")) == ["a"]
    assert other.found(jury.owner, **within(scope | {"property": "score"}, ge=0.5)) == ["b"]
    assert other.found(jury.owner, sort=[{"scope": scope | {"property": "agent"}, "order": "desc"}])[0] in "ab"
    assert other.found(jury.owner, sort=[{"scope": scope | {"property": "score"}, "order": "desc"}]) == ["b", "a"]
    other = jury.of_new_dataset()
    near = (("a", [1, 0]), ("b", [0.9, 0.1]), ("c", [-1, 0]))
    stored = other.put(
        *({"external_id": key, "fields": {"query": key, "chunk": key}, "vectors": {"v": value}} for key, value in near)
    )
    by_record = {"query": {"vector": {"name": "v", "record_id": stored[0]["id"]}}}
    assert other.found(jury.owner, **by_record) == ["b", "c"]
    by_value = {"query": {"vector": {"name": "v", "value": [1, 0], "order": "least_similar"}}}
    assert other.found(jury.owner, **by_value) == ["c", "b", "a"]
    other = jury.of_new_dataset()
    (stored,) = other.put({"external_id": "a", "fields": {"query": "one", "chunk": "first"}})
    assert other.found(jury.owner, **text("first one")) == ["a"]
    created(jury.owner.patch(f"/records/{stored['id']}", json={"fields": {"query": "one", "chunk": "second"}}))
    assert (other.found(jury.owner, **text("first")), other.found(jury.owner, **text("second"))) == ([], ["a"])
    jury.owner.delete(f"/datasets/{other.dataset}/records", params={"ids": stored["id"]})
    other.put({"external_id": "b", "fields": {"query": "one", "chunk": "second"}})
    assert other.found(jury.owner, **text("second")) == ["b"]


def test_what_no_index_holds_is_found_all_the_same(jury: Jury) -> None:
    other = jury.of_new_dataset()
    many = " ".join(f"wort{number}" for number in range(100_000))
    talk = [{"role": "user", "content": "Is NUL \0 here?"}, {"role": "assistant", "content": "Certainly not."}]
    other.put(
        {"external_id": "many", "fields": {"query": "q", "chunk": many}},
        {"external_id": "long", "fields": {"query": "q" * 3000 + "end", "chunk": "a\0b \ufffe"}},
        {"external_id": "talk", "fields": {"query": "q", "chunk": "c", "talk": talk}},
    )
    for query, expected in {
        "wort99999": "many",
        '"wort7 wort8"': "many",
        "wort9999*": "many",
        " ".join(f"wort{number}" for number in range(500, 1500)): "many",
        "q" * 3000 + "end": "long",
        "q" * 3000 + "en*": "long",
        "q" * 3000 + "other": "",
        '"a b"': "long",
        "nul certainly": "talk",
        '"here certainly"': "",
    }.items():
        assert other.found(jury.owner, **text(query)) == ([expected] if expected else []), query[:20]


@pytest.mark.rare
def test_five_megabytes_are_stored_and_found(jury: Jury) -> None:
    other = jury.of_new_dataset()
    passage = "Nadel " + "im Heuhaufen, überall. " * 210_000 + "Ende"
    other.put({"external_id": "large", "fields": {"query": "q", "chunk": passage}})
    for query in ('"Nadel im Heuhaufen"', '"überall Ende" heu* -fehlt'):
        assert other.found(jury.owner, **text(query)) == ["large"]


@given(search=SEARCHES)
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
def test_whatever_is_asked_is_answered_or_refused(jury: Jury, search: dict[str, Any]) -> None:
    for who in (jury.owner, jury.anna):
        reply = jury.ask(who, **search)
        assert reply.status_code == 200 or (reply.status_code == 422 and reply.json()["detail"]), (search, reply.text)


@given(query=SIGNS.map("".join))
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
def test_no_search_text_is_an_error(jury: Jury, query: str) -> None:
    jury.search(jury.owner, **text(query))


@pytest.mark.parametrize(
    "search",
    [
        pytest.param(
            {"filters": {"and": [{"type": "range", "scope": STATUS, "ge": 1, "le": "x"}]}}, id="unlike bounds"
        ),
        pytest.param(terms({"entity": "response"}, "yes"), id="a scope without a question"),
        pytest.param({"sort": [{"scope": {"entity": "response"}, "order": "asc"}]}, id="a sort by nothing"),
        pytest.param(terms(RELEVANT | {"question": "a\0"}, "yes"), id="NUL in a name"),
        pytest.param(text("a", "no such"), id="unknown field"),
        pytest.param(within({"entity": "metadata", "metadata_property": "rank"}, ge="many"), id="no number"),
        pytest.param(terms({"entity": "metadata", "metadata_property": "no"}, "x"), id="unknown property"),
        pytest.param({"query": {"vector": {"name": "v", "value": [1, 2, 3]}}}, id="a vector of another length"),
    ],
)
def test_malformed_searches_are_refused_in_argillas_own_shape(jury: Jury, search: dict[str, Any]) -> None:
    reply = jury.ask(jury.owner, **search)
    assert (reply.status_code, list(reply.json())) == (422, ["detail"])
