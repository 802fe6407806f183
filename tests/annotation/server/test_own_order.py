"""Pages of a long list, wherever they begin: parts of each annotator's own order, or of one that tells nothing."""

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
    assert (queue.ids(0, "pending"), queue.ids(0, "submitted")) == (before[:3] + before[307:], sorted(before[3:307]))
    assert (queue.ids(0, "pending", "submitted"), sorted(queue.ids(1, "pending"))) == (sorted(before), sorted(others))
