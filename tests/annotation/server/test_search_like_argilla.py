"""Our search finds what argilla-server's own found on a real OpenSearch, on SQLite as on PostgreSQL.

`tests/data/search/argilla_on_opensearch.jsonl` has what argilla-server 2.8.0 answered on OpenSearch 2.19.1, a search a
line, about the dataset that `search_data` makes of seed 1. Only searches that no clock changes are in it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from annotation.server.launch import ServerHandle
from tests.support.places import ROOT
from tests.support.postgresql import Server
from tests.support.search_data import ANNOTATORS, RECORDS, Side, call, make_side, put_texts
from tests.support.search_queries import OWN_RATING, RECORD, known_here, searches, terms

pytestmark = pytest.mark.server

ANSWERS = ROOT / "tests" / "data" / "search" / "argilla_on_opensearch.jsonl"
PEOPLE = ("owner", *ANNOTATORS)
SHOWN = 3
TEXTS = {
    "a": "See example.com, don't use under_score, 3.14",
    "b": "ワクチンは安全です",
    "c": "全く安い",
    "d": "Straße &amp; Ｍａｓｋｓ",
    "e": "vaccine trial of the year",
    "f": "i\u2060nvisible",
}
BY_KEY = {"scope": RECORD | {"property": "external_id"}, "order": "asc"}


class Found(NamedTuple):
    total: int
    keys: tuple[str, ...]  # external ids in the order of the answer, or sorted where no order was asked for


def found(side: Side, who: str, body: dict[str, Any], **page: int) -> Found | int:
    """What a search finds, or the status of a refusal."""
    reply = ask(side, who, body, **page)
    if not reply.is_success:
        return int(reply.status_code)
    keys = [item["record"]["external_id"] for item in reply.json()["items"]]
    return Found(reply.json()["total"], tuple(keys if "sort" in body else sorted(keys)))


def ask(side: Side, who: str, body: dict[str, Any], **page: int) -> Any:
    place = "" if who == "owner" else "/me"
    path = f"{place}/datasets/{side.dataset}/records/search"
    return side.clients[who].post(path, json=known_here(body, side.known), params={"limit": RECORDS} | page)


@contextmanager
def made(url: str, key: str) -> Iterator[Side]:
    side = make_side(url, key, f"compared-{uuid4()}", seed=1)
    yield side
    for client in side.clients.values():
        client.close()


@pytest.fixture(scope="module")
def sqlite(argilla_server: ServerHandle) -> Iterator[Side]:
    with made(argilla_server.url, argilla_server.owner_api_key) as side:
        yield side


@pytest.fixture(scope="module")
def postgresql(postgresql_server: Server) -> Iterator[Side]:
    with made(postgresql_server.url, postgresql_server.api_key) as side:
        yield side


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.rare)])
def side(request: pytest.FixtureRequest) -> Side:
    found: Side = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def texts(side: Side) -> Side:
    return put_texts(side, TEXTS)


@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.rare)])
def test_what_argilla_found_on_opensearch_is_found(side: Side, every: int) -> None:
    different = []
    lines = ANSWERS.read_text(encoding="utf-8").splitlines()[::every]
    for told in map(json.loads, lines):
        ours = found(side, told["who"], told["search"], **told.get("page", {}))
        if ours != (told["total"], tuple(told["found"].split())):
            different.append(f"{told}\n  ours {ours}")
    assert not different, f"{len(different)} of {len(lines)} differ:\n" + "\n".join(different[:SHOWN])


@pytest.mark.parametrize(
    ("seed", "number"),
    [
        pytest.param(2, 200, marks=pytest.mark.rare),
        *(pytest.param(seed, 1000, marks=pytest.mark.soak) for seed in range(3, 9)),
    ],
)
def test_generated_searches_find_the_same(sqlite: Side, postgresql: Side, seed: int, number: int) -> None:
    different, telling = [], 0
    for place, body in enumerate(searches(seed, number)):
        who = "owner" if tells_of_records(body) else PEOPLE[place % len(PEOPLE)]
        page = {"offset": 3, "limit": 10} if "sort" in body and place % 3 == 0 else {}
        here, there = (found(side, who, body, **page) for side in (sqlite, postgresql))
        telling += isinstance(here, Found) and 0 < here.total < RECORDS
        if here != there:
            different.append(f"{who} {json.dumps(body)}\n  SQLite     {here}\n  PostgreSQL {there}")
    assert not different, f"{len(different)} of {number} differ:\n" + "\n".join(different[:SHOWN])
    assert telling > number / 3, "most searches find nothing or everything"


def tells_of_records(body: dict[str, Any]) -> bool:
    """Whether the search is by what our server does not tell annotators of records."""
    scopes = [each["scope"] for each in (*body.get("filters", {}).get("and", ()), *body.get("sort", ()))]
    hidden = ("inserted_at", "updated_at", "status")
    return any(scope["entity"] == "record" and scope["property"] in hidden for scope in scopes)


def test_counts_metrics_mean_ratings_answers_in_words_and_times_of_change_are_right(side: Side) -> None:
    owner = side.clients["owner"]
    progress = call(owner, "GET", f"/datasets/{side.dataset}/progress")
    assert (progress["total"], progress["completed"], progress["pending"]) == (40, 9, 31)
    properties = call(owner, "GET", f"/me/datasets/{side.dataset}/metadata-properties")["items"]
    assert {each["name"]: call(owner, "GET", f"/metadata-properties/{each['id']}/metrics") for each in properties} == {
        "kind": {"type": "terms", "total": 34, "values": counts(news=14, blog=10, study=10)},
        "tags": {"type": "terms", "total": 76, "values": counts(law=26, money=26, health=24)},
        "rank": {"type": "integer", "min": -2, "max": 6},
        "weight": {"type": "float", "min": -0.75, "max": 2.875},
        "none": {"type": "float", "min": None, "max": None},
    }
    ours = found(side, "owner", {"sort": [{"scope": OWN_RATING, "order": "desc"}, BY_KEY]})
    path = f"/datasets/{side.dataset}/records?include=responses&limit={RECORDS}"
    records = call(side.clients["owner"], "GET", path)["items"]
    means = {each["external_id"]: mean_rating(each["responses"]) for each in records}
    assert ours == (RECORDS, tuple(sorted(means, key=lambda key: (-means[key], key))))
    wanted = terms({"entity": "response", "question": "comment"}, "safe")
    path = f"/datasets/{side.dataset}/records?include=responses&limit={RECORDS}"
    records = call(side.clients["owner"], "GET", path)["items"]
    said = {
        each["external_id"]
        for each in records
        for response in each["responses"]
        if (response["values"] or {}).get("comment") == {"value": "safe"}
    }
    assert found(side, "owner", {"filters": {"and": [wanted]}}) == (len(said), tuple(sorted(said)))
    assert 0 < len(said) < RECORDS
    by_change = {"scope": RECORD | {"property": "updated_at"}, "order": "asc"}
    records = call(side.clients["owner"], "GET", f"/datasets/{side.dataset}/records?limit={RECORDS}")["items"]
    in_order = sorted(records, key=lambda each: (each["updated_at"], each["external_id"]))
    expected = (RECORDS, tuple(each["external_id"] for each in in_order))
    assert found(side, "owner", {"sort": [by_change, BY_KEY]}) == expected


def counts(**terms: int) -> list[dict[str, Any]]:
    return [{"term": term, "count": count} for term, count in terms.items()]


@pytest.mark.parametrize(
    ("order", "keys", "score"),
    [
        ("most_similar", "r05 r16 r33 r25 r28 r00 r06 r12 r09 r17 r03 r01 r19 r30 r26 r04 r38 r18 r29 r15", 0.9572682),
        ("least_similar", "r20 r07 r37 r35 r22 r24 r21 r34 r32 r10 r15 r29 r18 r38 r04 r26 r30 r19 r01 r03", 0.8974278),
    ],
)
def test_the_nearest_vectors_are_those_that_argilla_found(side: Side, order: str, keys: str, score: float) -> None:
    vector = {"name": "meaning", "value": [1.0, 0.5, 0.25, -0.5], "order": order}
    items = ask(side, "owner", {"query": {"vector": vector}}, limit=20).json()["items"]
    assert [item["record"]["external_id"] for item in items] == keys.split()
    assert items[0]["query_score"] == pytest.approx(score, abs=1e-6)


# What follows is where we differ from Argilla on purpose; README names each.


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("example", "a", id="a full stop separates words"),
        pytest.param("don", "a", id="so does an apostrophe"),
        pytest.param("score", "a", id="and a low line"),
        pytest.param("14", "a", id="and a decimal point"),
        pytest.param("example.com", "a", id="together they are a phrase"),
        pytest.param("ワク", "b", id="also part of a word in katakana"),
        pytest.param("STRASSE", "d", id="ß is ss"),
        pytest.param("amp", "", id="entities are read as annotators see them"),
        pytest.param("invisible", "f", id="what cannot be seen does not separate"),
        pytest.param("vacine~1", "", id="no word like another"),
        pytest.param('"vaccine year"~3', "", id="no words near each other"),
        pytest.param("vaccine !!!", "e", id="punctuation alone is left out"),
    ],
)
def test_words_are_cut_and_compared_in_our_own_way(texts: Side, query: str, expected: str) -> None:
    assert found(texts, "owner", {"query": {"text": {"q": query}}}) == (len(expected), tuple(expected))


def mean_rating(responses: list[dict[str, Any]]) -> float:
    ratings = [each["values"]["quality"]["value"] for each in responses if "quality" in (each["values"] or {})]
    return sum(ratings) / len(ratings) if ratings else 0.0


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"sort": [{"scope": {"entity": "response", "property": "status"}, "order": "asc"}]}, id="status"),
        pytest.param({"sort": [{"scope": {"entity": "response", "question": "label"}, "order": "asc"}]}, id="label"),
        pytest.param(
            {"filters": {"and": [terms({"entity": "metadata", "metadata_property": "rank"}, "many")]}},
            id="a word where numbers are",
        ),
        pytest.param({"query": {"vector": {"name": "meaning", "value": [0, 0, 0, 0]}}}, id="a vector without length"),
    ],
)
def test_what_makes_argilla_fail_is_answered(side: Side, body: dict[str, Any]) -> None:
    assert isinstance(found(side, "ann", body), Found)


@pytest.mark.parametrize(
    ("scope", "bounds"),
    [
        pytest.param({"entity": "response"}, {"values": ["yes"]}, id="no question"),
        pytest.param({"entity": "response", "property": "status"}, {"ge": "d"}, id="a range of statuses"),
        pytest.param({"entity": "metadata", "metadata_property": "rank"}, {"ge": "many"}, id="no number"),
        pytest.param({"entity": "response", "question": "quality"}, {"le": "good"}, id="no rating"),
        pytest.param(RECORD | {"property": "inserted_at"}, {"ge": "then"}, id="no time"),
        pytest.param(RECORD | {"property": "inserted_at"}, {"ge": "now-1d"}, id="arithmetic with dates"),
    ],
)
def test_what_means_nothing_is_refused(side: Side, scope: dict[str, Any], bounds: dict[str, Any]) -> None:
    wanted = {"type": "terms" if "values" in bounds else "range", "scope": scope, **bounds}
    assert found(side, "owner", {"filters": {"and": [wanted]}}) == 422
