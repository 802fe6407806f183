"""Pages of a sorted search: wherever they begin, they are parts of the one order."""

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from annotation.client import Argilla

pytestmark = pytest.mark.server

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
def dataset(client: "Argilla") -> str:
    """A dataset of nine records, some of the same rank and some of none."""
    workspace = client.request("POST", "/workspaces", json={"name": f"w-{uuid4().hex[:12]}"})["id"]
    body = {"name": "sorted", "workspace_id": workspace}
    dataset = str(client.request("POST", "/datasets", json=body)["id"])
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


def found(client: "Argilla", dataset: str, sort: list[dict[str, Any]], offset: int, limit: int) -> list[str]:
    """External ids of a page."""
    page = {"offset": offset, "limit": limit}
    body = {"query": {}, "sort": sort} if sort else {"query": {}}
    items = client.request("POST", f"/datasets/{dataset}/records/search", params=page, json=body)["items"]
    return [item["record"]["external_id"] for item in items]


@pytest.mark.parametrize("sort", [[], BOTH, *ORDERS], ids=str)
def test_every_page_is_a_part_of_the_one_order(client: "Argilla", dataset: str, sort: list[dict[str, Any]]) -> None:
    whole = found(client, dataset, sort, 0, len(RANKS))
    assert sorted(whole) == [str(number) for number in range(len(RANKS))]
    for offset in range(len(RANKS) + 1):
        assert found(client, dataset, sort, offset, 4) == whole[offset : offset + 4]


def test_the_order_is_the_one_that_was_asked_for(client: "Argilla", dataset: str) -> None:
    assert found(client, dataset, [], 0, 9) == list("012345678")
    assert found(client, dataset, ORDERS[1], 0, 9) == list("876543210")
    assert found(client, dataset, ORDERS[4], 0, 9) == list("148370526")
    assert found(client, dataset, BOTH, 0, 9) == list("507384162")
