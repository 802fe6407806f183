"""An annotator at Argilla's page, as the page of 2.8.0 asks for its records: read in its script.

It opens with ten records from the first. After each move it asks for ten more unless six or more are ahead, from the
number of those it has that are still pending, and where the next one is missing it asks before it moves.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from annotation.argilla.client import Argilla
from annotation.argilla.display import to_records
from annotation.argilla.labels import LABELS, TaskName
from annotation.argilla.wording import read_wording
from pipeline.records.schema import Passage, QueryResponse
from tests.support.export_bench import make_dataset, make_user

MANY = 10
PENDING = [
    {"type": "terms", "scope": {"entity": entity, "property": "status"}, "values": ["pending"]}
    for entity in ("response", "record")
]


class Shown(NamedTuple):
    id: str
    external_id: str


class Player:
    """One annotator's page, showing one record at a time."""

    def __init__(self, client: Argilla, dataset_id: str, task: TaskName) -> None:
        self.client, self.dataset_id = client, dataset_id
        self.values = {label: {"value": "yes"} for label in LABELS[task]}
        self.records: list[Shown] = []
        self.answered: set[str] = set()
        self.place = 0
        self.came: list[list[dict[str, Any]]] = []  # the records of each search

    def ask(self, offset: int, limit: int = MANY, beside: list[Any] | None = None) -> list[Shown]:
        params: dict[str, Any] = {"offset": offset, "limit": limit, "include": ["responses", "suggestions"]}
        body = {"query": {}, "filters": {"and": [*PENDING, *(beside or [])]}}
        path = f"/me/datasets/{self.dataset_id}/records/search"
        found = self.client.request("POST", path, params=params, json=body)
        self.total = int(found["total"])
        self.came.append([item["record"] for item in found["items"]])
        return [Shown(item["record"]["id"], item["record"]["external_id"]) for item in found["items"]]

    def open(self) -> Shown | None:
        self.records, self.answered, self.place = self.ask(0), set(), 0
        return self.shown

    @property
    def shown(self) -> Shown | None:
        return self.records[self.place] if self.place < len(self.records) else None

    def submit(self) -> Shown | None:
        assert self.shown
        body = {"status": "submitted", "values": self.values}
        self.client.request("POST", f"/records/{self.shown.id}/responses", json=body)
        self.answered.add(self.shown.id)
        return self.move_on()

    def move_on(self) -> Shown | None:
        self.place += 1
        if not self.shown:
            self.load_more()
        if self.shown and len(self.records) - self.place - 1 <= MANY / 2:
            self.load_more()
        return self.shown

    def load_more(self) -> None:
        """Ask for what comes after those that it has."""
        known = {record.id for record in self.records}
        self.records += [each for each in self.ask(len(self.records) - len(self.answered)) if each.id not in known]


def texts(count: int, passages: int = 1) -> list[QueryResponse]:
    return [
        QueryResponse(
            record_uuid=str(uuid4()),
            query="q",
            answer="a",
            chunks=tuple(
                Passage(chunk_id=f"d{number}#{rank}", doc_id=f"d{number}", chunk_rank=rank, text="t")
                for rank in range(1, passages + 1)
            ),
        )
        for number in range(count)
    ]


def put(client: Argilla, dataset: str, records: Sequence[dict[str, Any]]) -> list[str]:
    body = {"items": list(records)}
    return [item["id"] for item in client.request("PUT", f"/datasets/{dataset}/records/bulk", json=body)["items"]]


def ours(answers: Sequence[QueryResponse], task: TaskName = "generation") -> list[dict[str, Any]]:
    return [body for answer in answers for body in to_records(answer, read_wording("en"))[task]]


class Team(NamedTuple):
    players: list[Player]
    users: list[str]  # their ids, in the same order
    dataset: str


@contextlib.contextmanager
def gathering(client: Argilla) -> Iterator[Callable[..., Team]]:
    """What makes a workspace with the dataset of one task, and so many annotators, each with her page open."""
    with contextlib.ExitStack() as open_pages:

        def of(people: int, task: TaskName = "generation", overlap: int = 2) -> Team:
            workspace = client.request("POST", "/workspaces", json={"name": f"w-{uuid4()}"})["id"]
            dataset = make_dataset(client, workspace, task, overlap=overlap)
            users = [make_user(client, f"{task}-{number}") for number in range(people)]
            for user in users:
                client.request("POST", f"/workspaces/{workspace}/users", json={"user_id": user["id"]})
            pages = [open_pages.enter_context(Argilla(client.api_url, user["api_key"])) for user in users]
            return Team([Player(page, dataset, task) for page in pages], [user["id"] for user in users], dataset)

        yield of
