"""The search engine answers as Argilla's page and its clients expect, on SQLite and on PostgreSQL."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation.server.launch import ServerHandle
from tests.support.postgresql import Server
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


STATUS = {"entity": "response", "property": "status"}
RECORD = {"entity": "record"}


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
        pytest.param("trial* -groups", None, "ad", id="one word without another"),
        pytest.param("-trials -masks (tested)", None, "", id="parentheses are no sign"),
        pytest.param("t*", None, "", id="one letter is no beginning"),
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
        pytest.param(terms(RECORD | {"property": "status"}, "completed"), "a", id="status"),
        pytest.param(terms(RECORD | {"property": "status"}, "pending", "nonsense"), "bcdef", id="unknown status"),
    ],
)
def test_what_a_record_is_for_is_the_owners(jury: Jury, wanted: dict[str, Any], expected: str) -> None:
    assert sorted(jury.found(jury.owner, **wanted)) == list(expected)
    refused = jury.anna.post(f"/me/datasets/{jury.dataset}/records/search", json=wanted)
    assert (refused.status_code, "Annotators cannot search by" in refused.text) == (422, True)


def test_ids_own_responses_progress_and_pages_are_argillas_and_odd_texts_are_read(jury: Jury) -> None:
    pending = [terms(scope, "pending")["filters"]["and"][0] for scope in (STATUS, RECORD | {"property": "status"})]
    assert sorted(jury.found(jury.ben, filters={"and": pending}, **text("trial*"))) == ["d", "e"]
    assert jury.found(jury.owner, **terms(RECORD | {"property": "id"}, "no-uuid", jury.ids["c"])) == ["c"]
    assert [jury.search(jury.owner, offset, 2)["items"][0]["record"]["external_id"] for offset in (0, 2)] == ["a", "c"]
    (item,) = jury.search(jury.anna, **terms(RECORD | {"property": "external_id"}, "a"))["items"]
    assert [response["values"]["relevant"]["value"] for response in item["record"]["responses"]] == ["yes"]
    whole = jury.owner.get(f"/datasets/{jury.dataset}/progress").json()
    assert (whole["total"], whole["completed"], whole["pending"]) == (6, 1, 5)
    mine = jury.anna.get(f"/me/datasets/{jury.dataset}/metrics").json()["responses"]
    assert mine == {"total": 6, "submitted": 1, "discarded": 1, "draft": 1, "pending": 3}
    assert jury.found(jury.owner, filters={}) == list("abcdef")
    for query in ("(" * 5000, "(" * 200 + "zebra" + ")" * 200, " ".join(map(str, range(3000))), '"' * 999, "\\" * 999):
        assert jury.found(jury.owner, **text(query)) == []


def test_words_follow_each_change_of_a_record(jury: Jury) -> None:
    other = jury.of_new_dataset()
    (stored,) = other.put(
        {"external_id": "a", "fields": {"query": "one", "chunk": "first", "picture": "https://x.org/a.png"}}
    )
    assert (other.found(jury.owner, **text("first one")), other.found(jury.owner, **text("org"))) == (["a"], [])
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


SIGNS = st.sampled_from("\"()|+-*~\\ \0'&;%_") | st.characters(exclude_categories=["Cs"])


@given(query=st.lists(SIGNS, max_size=30).map("".join))
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
def test_no_search_text_is_an_error(jury: Jury, query: str) -> None:
    jury.search(jury.owner, **text(query))


METADATA = {"entity": "metadata", "metadata_property": "rank"}
SUGGESTED = {"entity": "suggestion", "question": "relevant", "property": "score"}


@pytest.mark.parametrize(
    "search",
    [
        {"sort": [{"scope": RECORD | {"property": "inserted_at"}, "order": "desc"}]},
        {"query": {"vector": {"name": "v", "value": [1, 2]}}},
        terms(METADATA, "1"),
        terms(SUGGESTED, "1"),
        terms(SUGGESTED | {"property": None}, "yes"),
        terms({"entity": "response", "question": "relevant"}, "yes"),
        terms({"entity": "response"}, "yes"),
        terms(RECORD | {"property": "inserted_at"}, "2026"),
        {"filters": {"and": [{"type": "range", "scope": STATUS, "ge": "a", "le": "x"}]}},
    ],
    ids=str,
)
def test_what_nobody_needs_is_refused_in_one_sentence(jury: Jury, search: dict[str, Any]) -> None:
    for who in (jury.owner, jury.anna):
        reply = jury.ask(who, **search)
        assert (reply.status_code, reply.json()["detail"][:28]) == (422, "This server searches texts, ")
    for each in jury.anna.get(f"/me/datasets/{jury.dataset}/metadata-properties").json()["items"]:
        counted = jury.anna.get(f"/metadata-properties/{each['id']}/metrics")
        assert (counted.status_code == 200) is (each["settings"]["type"] == "terms"), counted.text


@pytest.mark.parametrize(
    "search",
    [
        {"filters": {"and": [{"type": "range", "scope": STATUS, "ge": 1, "le": "x"}]}},
        text("a", "no such"),
        text("a", "a\0"),
    ],
    ids=str,
)
def test_malformed_searches_are_refused_in_argillas_own_shape(jury: Jury, search: dict[str, Any]) -> None:
    reply = jury.ask(jury.owner, **search)
    assert (reply.status_code, list(reply.json())) == (422, ["detail"])
