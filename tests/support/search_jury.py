"""A small dataset with answers of two annotators, on whichever server, for the tests of the search."""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import uuid4

import httpx

from tests.support.postgresql import Server

TEXTS = {
    "a": ("Are vaccines safe?", "Vaccines are tested in trials."),
    "b": ("ワクチンは安全ですか", "安全性は治験で確かめられます。"),
    "c": ("Ist Über-Impfung möglich?", "Die ÜBERSICHT der Studien zeigt 100% Schutz."),
    "d": ("Are masks useful?", "Masks reduce spread; 1000 trials say so."),
    "e": ("What is a trial?", "A trial compares two groups."),
    "f": ("Is it under_scored?", "Snake_case text, R&amp;D in Prospekt\u2060straße."),
}
METADATA: dict[str, dict[str, Any]] = {
    "a": {"topic": ["health", "law"], "rank": 1, "weight": 0.5, "model": "x"},
    "b": {"topic": ["health"], "rank": 2, "weight": 1.5, "model": "y\0z"},
    "c": {"topic": ["law"], "rank": 3, "weight": 2.5, "model": "x"},
    "d": {"rank": 4},
    "e": {},
    "f": {},
}


class Jury(NamedTuple):
    server: Server
    owner: httpx.Client
    anna: httpx.Client
    ben: httpx.Client
    dataset: str
    ids: dict[str, str]

    def found(self, who: httpx.Client, **body: Any) -> list[str]:
        """External ids of the records that a search finds for an annotator, in order."""
        return [item["record"]["external_id"] for item in self.search(who, **body)["items"]]

    def search(self, who: httpx.Client, offset: int = 0, limit: int = 50, **body: Any) -> Any:
        reply = self.ask(who, offset, limit, **body)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def ask(self, who: httpx.Client, offset: int = 0, limit: int = 50, **body: Any) -> httpx.Response:
        place = "" if who is self.owner else "/me"
        path = f"{place}/datasets/{self.dataset}/records/search"
        return who.post(path, params={"offset": offset, "limit": limit, "include": "responses"}, json=body)

    def of_new_dataset(self) -> "Jury":
        workspace = self.owner.get(f"/datasets/{self.dataset}").json()["workspace_id"]
        return self._replace(dataset=make_dataset(self.owner, workspace), ids={})

    def put(self, *items: dict[str, Any]) -> list[dict[str, Any]]:
        return created(self.owner.put(f"/datasets/{self.dataset}/records/bulk", json={"items": items}))["items"]


def client_for(url: str, key: str) -> httpx.Client:
    return httpx.Client(
        base_url=f"{url}/api/v1", headers={"X-Argilla-Api-Key": key}, timeout=60, verify=False, trust_env=False
    )


def created(reply: httpx.Response) -> Any:
    assert reply.is_success, reply.text
    return reply.json()


def make_dataset(owner: httpx.Client, workspace: str) -> str:
    spread = {"strategy": "overlap", "min_submitted": 2}
    body = {"name": f"search-{uuid4()}", "workspace_id": workspace, "distribution": spread}
    dataset = created(owner.post("/datasets", json=body))["id"]
    for name, kind in {"query": "text", "chunk": "text", "talk": "chat", "picture": "image"}.items():
        settings = {"type": kind, **({} if kind == "image" else {"use_markdown": False})}
        field = {"name": name, "title": name, "settings": settings, "required": kind == "text"}
        created(owner.post(f"/datasets/{dataset}/fields", json=field))
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
    created(owner.post(f"/datasets/{dataset}/vectors-settings", json={"name": "v", "title": "v", "dimensions": 2}))
    created(owner.put(f"/datasets/{dataset}/publish"))
    return str(dataset)


@contextlib.contextmanager
def small_jury(server: Server) -> Iterator[Jury]:
    """Anna and Ben, and six records that they have answered in part."""
    with contextlib.ExitStack() as stack:
        owner = stack.enter_context(client_for(server.url, server.api_key))
        workspace = created(owner.post("/workspaces", json={"name": f"w-{uuid4()}"}))["id"]
        people = []
        for name in ("anna", "ben"):
            person = {"first_name": name, "username": f"{name}-{uuid4()}", "role": "annotator"}
            user = created(owner.post("/users", json={**person, "password": "long-enough"}))
            created(owner.post(f"/workspaces/{workspace}/users", json={"user_id": user["id"]}))
            people.append(stack.enter_context(client_for(server.url, user["api_key"])))
        jury = Jury(server, owner, *people, make_dataset(owner, workspace), {})
        items = [
            {"external_id": key, "fields": {"query": query, "chunk": chunk}, "metadata": METADATA[key]}
            for key, (query, chunk) in TEXTS.items()
        ]
        jury.ids.update({item["external_id"]: item["id"] for item in jury.put(*items)})
        answer(jury, jury.anna, "a", "submitted", "yes", 5)
        answer(jury, jury.anna, "b", "draft", "no", 2)
        answer(jury, jury.anna, "c", "discarded")
        answer(jury, jury.ben, "a", "submitted", "no", 1)
        yield jury


def answer(jury: Jury, who: httpx.Client, key: str, status: str, label: str = "", rating: int = 0) -> None:
    values = {"relevant": {"value": label}, "quality": {"value": rating}} if label else None
    created(who.post(f"/records/{jury.ids[key]}/responses", json={"status": status, "values": values}))
