"""Our search engine finds what argilla-server's own finds on a real OpenSearch, and differs only where it means to."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from annotation.embedded.launch import ServerHandle
from tests.support.opensearch_argilla import argilla_on_opensearch
from tests.support.opensearch_data import ANNOTATORS, RECORDS, SPANS, Side, call, make_side, put_texts
from tests.support.opensearch_queries import OWN_RATING, RECORD, known_here, searches, terms
from tests.support.search_jury import server_on_postgresql

pytestmark = pytest.mark.server

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


class Pair(NamedTuple):
    """Argilla on OpenSearch and our embedded Argilla, with the same data."""

    stock: Side
    ours: Side

    def ask(self, who: str, body: dict[str, Any], **page: int) -> tuple[Any, Any]:
        """What each of them answers to a search."""
        with ThreadPoolExecutor(2) as both:
            stock, ours = both.map(lambda side: found(side, who, body, **page), self)
        return stock, ours


class Found(NamedTuple):
    """What a search found."""

    total: int
    keys: tuple[str, ...]
    """External ids in the order of the answer."""
    scores: tuple[float | None, ...] = ()


def found(side: Side, who: str, body: dict[str, Any], **page: int) -> Found | int:
    """What a search finds, or the status of a refusal."""
    place = "" if who == "owner" else "/me"
    path = f"{place}/datasets/{side.dataset}/records/search"
    reply = side.clients[who].post(path, json=known_here(body, side.known), params={"limit": RECORDS} | page)
    if not reply.is_success:
        return reply.status_code
    items = reply.json()["items"]
    keys = tuple(item["record"]["external_id"] for item in items)
    return Found(reply.json()["total"], keys, tuple(item.get("query_score") for item in items))


@pytest.fixture(scope="module")
def pair(argilla_server: ServerHandle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    name = f"compared-{uuid4()}"
    with argilla_on_opensearch(tmp_path_factory.mktemp("stock")) as (url, key):
        stock = make_side(url, key, name, seed=1)
        ours = make_side(argilla_server.url, argilla_server.owner_api_key, name, seed=1)
        yield Pair(stock, ours)
        for side in (stock, ours):
            for client in side.clients.values():
                client.close()


@pytest.fixture(scope="module")
def texts(pair: Pair) -> Pair:
    return Pair(*(put_texts(side, TEXTS) for side in pair))


def check_searches(pair: Pair, seed: int, number: int) -> None:
    """Ask both the same; what is sorted comes in the same order, page by page."""
    different, telling = [], 0
    for place, body in enumerate(searches(seed, number)):
        who = "owner" if tells_of_records(body) else PEOPLE[place % len(PEOPLE)]
        page = {"offset": 3, "limit": 10} if "sort" in body and place % 3 == 0 else {}
        stock, ours = (answer_of(each, body) for each in pair.ask(who, body, **page))
        telling += isinstance(stock, tuple) and 0 < stock[0] < RECORDS
        if stock != ours:
            different.append(f"{who} {json.dumps(body)}\n  stock {stock}\n  ours  {ours}")
    assert not different, f"{len(different)} of {number} differ:\n" + "\n".join(different[:SHOWN])
    assert telling > number / 3, "most searches find nothing or everything"


def tells_of_records(body: dict[str, Any]) -> bool:
    """Whether the search is by what our server does not tell annotators of records."""
    scopes = [each["scope"] for each in (*body.get("filters", {}).get("and", ()), *body.get("sort", ()))]
    return any(
        scope["entity"] == "record" and scope["property"] in ("inserted_at", "updated_at", "status") for scope in scopes
    )


def answer_of(each: Found | int, body: dict[str, Any]) -> tuple[int, Any] | int:
    """What has to agree: the order only where one was asked for."""
    if isinstance(each, int):
        return each
    return each.total, each.keys if "sort" in body else sorted(each.keys)


def test_generated_searches_find_the_same(pair: Pair) -> None:
    check_searches(pair, seed=1, number=200)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 8))
def test_more_generated_searches_find_the_same(pair: Pair, seed: int) -> None:
    check_searches(pair, seed=seed, number=1000)


@pytest.mark.soak
def test_generated_searches_find_the_same_on_postgresql(pair: Pair, tmp_path: Path) -> None:
    with server_on_postgresql(tmp_path) as server:
        ours = make_side(server.url, server.api_key, f"compared-{uuid4()}", seed=1)
        check_searches(Pair(pair.stock, ours), seed=1, number=200)
        for client in ours.clients.values():
            client.close()


@pytest.mark.parametrize("name", SPANS)
def test_a_time_that_is_cut_short_means_the_same(pair: Pair, name: str) -> None:
    for end in ("ge", "le"):
        wanted = {"type": "range", "scope": RECORD | {"property": "inserted_at"}, end: f"@{name}"}
        stock, ours = pair.ask("owner", {"filters": {"and": [wanted]}})
        assert stock.total == ours.total
        assert (end, name) in (("le", "month"), ("le", "year")) or ours.total in (RECORDS, 0)


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_an_annotators_own_ratings_sort_the_same(pair: Pair, order: str) -> None:
    for who in ANNOTATORS:
        stock, ours = pair.ask(who, {"sort": [{"scope": OWN_RATING, "order": order}, BY_KEY]})
        assert stock.keys == ours.keys


def test_the_number_of_records_by_status_and_the_metrics_of_metadata_agree(pair: Pair) -> None:
    def told(side: Side) -> Any:
        owner = side.clients["owner"]
        progress = call(owner, "GET", f"/datasets/{side.dataset}/progress")
        properties = call(owner, "GET", f"/me/datasets/{side.dataset}/metadata-properties")["items"]
        metrics = {
            each["name"]: call(owner, "GET", f"/metadata-properties/{each['id']}/metrics") for each in properties
        }
        return {name: progress[name] for name in ("total", "completed", "pending")}, metrics

    stock, ours = map(told, pair)
    assert stock == ours


@pytest.mark.parametrize("order", ["most_similar", "least_similar"])
def test_the_nearest_vectors_are_the_same_where_opensearch_finds_them(pair: Pair, order: str) -> None:
    vector = {"name": "meaning", "value": [1.0, 0.5, 0.25, -0.5], "order": order}
    stock, ours = pair.ask("owner", {"query": {"vector": vector}}, limit=20)
    exact = dict(zip(ours.keys, ours.scores, strict=True))
    assert len(ours.keys) == 20
    assert len(set(stock.keys) & set(ours.keys)) >= 10  # its graph is an approximation with few links
    for key, score in zip(stock.keys, stock.scores, strict=True):
        assert key not in exact or exact[key] == pytest.approx(score, abs=1e-4)


# What follows is where we differ on purpose; README names each.


@pytest.mark.parametrize(
    ("query", "stock", "ours"),
    [
        pytest.param("example", "", "a", id="a full stop separates words"),
        pytest.param("don", "", "a", id="so does an apostrophe"),
        pytest.param("score", "", "a", id="and a low line"),
        pytest.param("14", "", "a", id="and a decimal point"),
        pytest.param("example.com", "a", "a", id="together they are a phrase"),
        pytest.param("安全", "bc", "b", id="Japanese characters are wanted side by side"),
        pytest.param("ワク", "", "b", id="also part of a word in katakana"),
        pytest.param("STRASSE", "", "d", id="ß is ss"),
        pytest.param("masks", "", "d", id="full-width letters are letters"),
        pytest.param("amp", "d", "", id="entities are read as annotators see them"),
        pytest.param("invisible", "", "f", id="what cannot be seen does not separate"),
        pytest.param("vacine~1", "e", "", id="no word like another"),
        pytest.param('"vaccine year"~3', "e", "", id="no words near each other"),
        pytest.param("vaccine !!!", "", "e", id="punctuation alone is left out"),
    ],
)
def test_words_are_cut_and_compared_in_our_own_way(texts: Pair, query: str, stock: str, ours: str) -> None:
    answers = texts.ask("owner", {"query": {"text": {"q": query}}})
    assert ["".join(sorted(each.keys)) for each in answers] == [stock, ours]


def test_progress_counts_an_annotators_own_responses_only(pair: Pair) -> None:
    for who in ANNOTATORS:
        stock, ours = (call(side.clients[who], "GET", f"/me/datasets/{side.dataset}/metrics") for side in pair)
        status = {"entity": "response", "property": "status"}
        right = {}
        for name in ("draft", "submitted", "discarded", "pending"):
            right[name] = pair.ask(who, {"filters": {"and": [terms(status, name)]}})[0].total
        assert ours["responses"] == {"total": RECORDS} | right
        assert stock["responses"] != ours["responses"], "Argilla counts other annotators' responses too"


def test_unsorted_records_come_to_the_owner_as_they_arrived_and_to_an_annotator_in_her_own_order(pair: Pair) -> None:
    stock, ours = pair.ask("owner", {})
    assert list(ours.keys) == [f"r{number:02}" for number in range(RECORDS)]
    assert sorted(stock.keys) == sorted(ours.keys)
    for who in ANNOTATORS:
        stock, ours = pair.ask(who, {})
        assert sorted(stock.keys) == sorted(ours.keys)
        assert stock.keys != ours.keys


def test_the_mean_of_several_ratings_is_not_rounded(pair: Pair) -> None:
    body = {"sort": [{"scope": OWN_RATING, "order": "desc"}, BY_KEY]}
    stock, ours = pair.ask("owner", body)
    records = call(
        pair.ours.clients["owner"], "GET", f"/datasets/{pair.ours.dataset}/records?include=responses&limit=99"
    )
    means = {each["external_id"]: mean_rating(each["responses"]) for each in records["items"]}
    assert list(ours.keys) == sorted(means, key=lambda key: (-means[key], key))
    rounded = {key: int(mean + 0.5) for key, mean in means.items()}
    assert list(stock.keys) == sorted(rounded, key=lambda key: (-rounded[key], key))


def mean_rating(responses: list[dict[str, Any]]) -> float:
    """The mean of the ratings; 0, less than any rating, where there is none."""
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
def test_what_makes_argilla_fail_is_answered(pair: Pair, body: dict[str, Any]) -> None:
    stock, ours = pair.ask("ann", body)
    assert stock == 500
    assert isinstance(ours, Found)


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param({"type": "terms", "scope": {"entity": "response"}, "values": ["yes"]}, id="no question"),
        pytest.param(
            {"type": "range", "scope": {"entity": "response", "property": "status"}, "ge": "d"},
            id="a range of statuses",
        ),
        pytest.param(
            {"type": "range", "scope": {"entity": "metadata", "metadata_property": "rank"}, "ge": "many"},
            id="no number",
        ),
        pytest.param(
            {"type": "range", "scope": {"entity": "response", "question": "quality"}, "le": "good"}, id="no rating"
        ),
        pytest.param({"type": "range", "scope": RECORD | {"property": "inserted_at"}, "ge": "then"}, id="no time"),
    ],
)
def test_what_makes_argilla_fail_and_means_nothing_is_refused(pair: Pair, wanted: dict[str, Any]) -> None:
    assert pair.ask("ann", {"filters": {"and": [wanted]}}) == (500, 422)


def test_an_answer_in_words_is_found_by_its_words(pair: Pair) -> None:
    body = {"filters": {"and": [terms({"entity": "response", "question": "comment"}, "safe")]}}
    stock, ours = pair.ask("owner", body)
    assert (stock.total, ours.total > 0) == (0, True)


@pytest.mark.parametrize("moment", ["now-1d", "2020-01-01||+1M"])
def test_arithmetic_with_dates_is_refused(pair: Pair, moment: str) -> None:
    wanted = {"type": "range", "scope": RECORD | {"property": "inserted_at"}, "ge": moment}
    stock, ours = pair.ask("owner", {"filters": {"and": [wanted]}})
    assert (stock.total, ours) == (RECORDS, 422)


def test_a_record_that_its_answers_completed_changed_then(pair: Pair) -> None:
    by_change = {"scope": RECORD | {"property": "updated_at"}, "order": "asc"}
    is_right = []
    for side, answer in zip(pair, pair.ask("owner", {"sort": [by_change, BY_KEY]}), strict=True):
        records = call(side.clients["owner"], "GET", f"/datasets/{side.dataset}/records?limit=99")["items"]
        in_order = sorted(records, key=lambda each: (each["updated_at"], each["external_id"]))
        is_right.append(list(answer.keys) == [each["external_id"] for each in in_order])
    assert is_right == [False, True]


def test_discarding_without_an_answer_works(texts: Pair) -> None:
    statuses = []
    for side in texts:
        body = {"status": "discarded", "values": None}
        reply = side.clients["ann"].post(f"/records/{side.known['@id a']}/responses", json=body)
        statuses.append(reply.status_code)
    assert statuses == [500, 201]
