"""Pages of a long list, wherever they begin: parts of each annotator's own order, or of a sorted search."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.server.launch import ServerHandle

pytestmark = pytest.mark.server

RECORDS = 1200
BATCH = 400
PAGE = 170
VALUES = {label: {"value": "no"} for label in LABELS["generation"]}


class Queue(NamedTuple):
    annotators: list[Argilla]
    dataset: str

    def ids(self, who: int, *statuses: str) -> list[str]:
        scope = {"entity": "response", "property": "status"}
        body = {"filters": {"and": [{"type": "terms", "scope": scope, "values": list(statuses)}]}}
        found: list[str] = []
        total = 1
        while len(found) < total:
            params: dict[str, Any] = {"offset": len(found), "limit": PAGE}
            path = f"/me/datasets/{self.dataset}/records/search"
            page = self.annotators[who].request("POST", path, params=params, json=body)
            assert len(page["items"]) == min(PAGE, page["total"] - len(found))
            found += [item["record"]["id"] for item in page["items"]]
            total = page["total"]
        return found

    def answer(self, who: int, ids: list[str]) -> None:
        for first in range(0, len(ids), 100):
            items = [{"record_id": each, "status": "submitted", "values": VALUES} for each in ids[first : first + 100]]
            reply = self.annotators[who].request("POST", "/me/responses/bulk", json={"items": items})
            assert [each["error"] for each in reply["items"]] == [None] * len(items)


@pytest.fixture(scope="module")
def queue(argilla_server: ServerHandle) -> Iterator[Queue]:
    names = [f"{name}-{uuid4()}" for name in ("anna", "ben")]
    workspace = f"w-{uuid4()}"
    with Argilla(argilla_server.url, argilla_server.owner_api_key) as owner:
        set_up(owner, workspace, annotators=names, min_submitted=2)
        dataset = find_datasets(owner, workspace)["generation"].id
        for first in range(0, RECORDS, BATCH):
            fields = {"query": "q", "answer": "a"}
            items = [{"external_id": str(n), "fields": fields} for n in range(first, first + BATCH)]
            owner.request("PUT", f"/datasets/{dataset}/records/bulk", json={"items": items})
        keys = {user["username"]: user["api_key"] for user in owner.request("GET", "/users")["items"]}
    with Argilla(argilla_server.url, keys[names[0]]) as anna, Argilla(argilla_server.url, keys[names[1]]) as ben:
        yield Queue([anna, ben], dataset)


@pytest.mark.rare
def test_a_long_queue_holds_each_record_once_in_an_order_of_her_own_that_stays(queue: Queue) -> None:
    before, others = queue.ids(0, "pending"), queue.ids(1, "pending")
    assert (len(set(before)), sorted(others)) == (RECORDS, sorted(before))
    assert others[:50] != before[:50]
    queue.answer(0, before[3:7])
    assert queue.ids(0, "pending") == before[:3] + before[7:]
    queue.answer(0, before[7:307])  # so many that the rest is sorted as a whole
    assert (queue.ids(0, "pending"), queue.ids(0, "submitted")) == (before[:3] + before[307:], before[3:307])
    assert (queue.ids(0, "pending", "submitted"), queue.ids(1, "pending")) == (before, others)


RANKS = (3, 1, None, 2, 1, 3, None, 2, 1)
SCOPES = (
    {"entity": "record", "property": "inserted_at"},
    {"entity": "record", "property": "status"},
    {"entity": "metadata", "metadata_property": "rank"},
)
ORDERS: list[list[dict[str, Any]]] = [
    [{"scope": scope, "order": order}] for scope in SCOPES for order in ("asc", "desc")
]
BOTH = [{"scope": SCOPES[2], "order": "desc"}, {"scope": SCOPES[0], "order": "desc"}]


@pytest.fixture(scope="module")
def dataset(client: Argilla) -> str:
    workspace = client.request("POST", "/workspaces", json={"name": f"w-{uuid4().hex[:12]}"})["id"]
    dataset = str(client.request("POST", "/datasets", json={"name": "sorted", "workspace_id": workspace})["id"])
    text = {"name": "text", "title": "t", "required": True, "settings": {"type": "text"}}
    rank = {"name": "rank", "title": "r", "settings": {"type": "integer"}}
    notes = {"name": "notes", "title": "n", "required": True, "settings": {"type": "text"}}
    for kind, settings in (("fields", text), ("metadata-properties", rank), ("questions", notes)):
        client.request("POST", f"/datasets/{dataset}/{kind}", json=settings)
    client.request("PUT", f"/datasets/{dataset}/publish")
    items = [
        {"fields": {"text": "t"}, "external_id": str(number), "metadata": {} if rank is None else {"rank": rank}}
        for number, rank in enumerate(RANKS)
    ]
    client.request("PUT", f"/datasets/{dataset}/records/bulk", json={"items": items})
    return dataset


def found(client: Argilla, dataset: str, sort: list[dict[str, Any]], offset: int, limit: int) -> list[str]:
    page = {"offset": offset, "limit": limit}
    body = {"query": {}, "sort": sort} if sort else {"query": {}}
    items = client.request("POST", f"/datasets/{dataset}/records/search", params=page, json=body)["items"]
    return [item["record"]["external_id"] for item in items]


@pytest.mark.parametrize("sort", [[], BOTH, *ORDERS], ids=str)
def test_every_page_is_a_part_of_the_one_order(client: Argilla, dataset: str, sort: list[dict[str, Any]]) -> None:
    whole = found(client, dataset, sort, 0, len(RANKS))
    assert sorted(whole) == [str(number) for number in range(len(RANKS))]
    for offset in range(len(RANKS) + 1):
        assert found(client, dataset, sort, offset, 4) == whole[offset : offset + 4]


def test_the_order_is_the_one_that_was_asked_for(client: Argilla, dataset: str) -> None:
    assert found(client, dataset, [], 0, 9) == list("012345678")
    assert found(client, dataset, ORDERS[1], 0, 9) == list("876543210")
    assert found(client, dataset, ORDERS[4], 0, 9) == list("148370526")
    assert found(client, dataset, BOTH, 0, 9) == list("507384162")
