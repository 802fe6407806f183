"""A stock Argilla on loopback that keeps everything in memory, for goldens: it keeps what it is sent.

It knows the part of argilla-server 2.8.0's `/api/v1` that set-up, push, controls, status and exports use, as its
answers were seen on 2026-11-28, and none of our own server's paths. Ids follow from names; its clock ticks a second a
change, from a fixed day on. What a server does with data is tested with a real one.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit
from uuid import NAMESPACE_URL, uuid5

from pydantic import SecretStr

from tests.support.provider_server import JSON, Quiet, Served

Item = dict[str, Any]
OWNER = "owner"
FIRST_MOMENT = datetime(2026, 3, 2, 9, tzinfo=UTC)


class Sent(NamedTuple):
    """A request that changed something, each id in its path by what it is of."""

    method: str
    path: str
    body: Any


class ArgillaInMemory(Served):
    """The server as a context at `url`; `sent` are the requests that changed something, in their order."""

    def __init__(self) -> None:
        super().__init__(Handler)
        self.sent: list[Sent] = []
        self.moment = FIRST_MOMENT
        self.caller = OWNER
        self.items: dict[str, dict[str, Item]] = {
            kind: {} for kind in ("users", "workspaces", "datasets", "fields", "questions", "properties", "records")
        }
        self.members: list[tuple[str, str]] = []
        self.names: dict[str, str] = {}
        self.lock = threading.Lock()
        self.make("users", OWNER, {"username": OWNER, "role": "owner", "first_name": "Owner", "last_name": None})

    @property
    def owner_api_key(self) -> SecretStr:
        return SecretStr(f"{OWNER}.apikey")

    @property
    def environment(self) -> dict[str, str]:
        return {"ARGILLA_API_URL": self.url, "ARGILLA_API_KEY": f"{OWNER}.apikey"}

    def now(self) -> str:
        self.moment += timedelta(seconds=1)
        return self.moment.replace(tzinfo=None).isoformat(timespec="microseconds")

    def make(self, kind: str, name: str, body: Item) -> Item:
        item_id = str(uuid5(NAMESPACE_URL, f"{kind}/{name}"))
        self.names[item_id] = name
        moment = self.now()
        self.items[kind][item_id] = {**body, "id": item_id, "inserted_at": moment, "updated_at": moment}
        return self.items[kind][item_id]

    def change(self, item: Item, body: Item) -> Item:
        item.update(body, updated_at=self.now())
        return item

    def of_dataset(self, kind: str, dataset_id: str) -> list[Item]:
        return [item for item in self.items[kind].values() if item["dataset_id"] == dataset_id]

    def answer(self, record: Item, username: str, status: str, values: Mapping[str, str]) -> None:
        """Store somebody's answer to a record."""
        user = next(item for item in self.items["users"].values() if item["username"] == username)
        moment = self.now()
        record["responses"].append(
            {
                "id": str(uuid5(NAMESPACE_URL, f"{record['id']}/{username}")),
                "values": {name: {"value": value} for name, value in values.items()},
                "status": status,
                "record_id": record["id"],
                "user_id": user["id"],
                "inserted_at": moment,
                "updated_at": moment,
            }
        )
        dataset = self.items["datasets"][record["dataset_id"]]
        submitted = sum(each["status"] == "submitted" for each in record["responses"])
        record["status"] = "completed" if submitted >= dataset["distribution"]["min_submitted"] else "pending"

    def answer_all(self, items: list[Item]) -> Item:
        for each in items:
            values = {name: value["value"] for name, value in (each["values"] or {}).items()}
            self.answer(self.items["records"][each["record_id"]], self.caller, each["status"], values)
        return {"items": [{"item": each, "error": None} for each in items]}

    def reply(self, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        for wanted, pattern, respond in ROUTES:
            found = re.fullmatch(pattern.replace("ID", "([0-9a-f-]{36})"), path)
            if found and wanted == method:
                if method != "GET":
                    named = re.sub(r"[0-9a-f-]{36}", lambda each: f"<{self.names.get(each[0], each[0])}>", path)
                    self.sent.append(Sent(method, named, json.loads(json.dumps(body))))
                return {"POST": 201}.get(method, 200), respond(self, query, body, *found.groups())
        return 404, {"detail": "Not Found"}

    def add_part(self, kind: str, body: Item, dataset_id: str) -> Item:
        return self.make(kind, f"{self.names[dataset_id]}/{body['name']}", {**body, "dataset_id": dataset_id})

    def add_dataset(self, body: Item) -> Item:
        shared = {"status": "draft", "last_activity_at": self.now()}
        return self.make("datasets", f"{self.names[body['workspace_id']]}/{body['name']}", {**body, **shared})

    def add_user(self, body: Item) -> Item:
        kept = {name: value for name, value in body.items() if name != "password"}
        return self.make("users", body["username"], {**kept, "api_key": f"{body['username']}.apikey"})

    def add_member(self, workspace_id: str, user_id: str) -> Item:
        self.members.append((workspace_id, user_id))
        return self.items["users"][user_id]

    def write_records(self, dataset_id: str, items: list[Item]) -> Item:
        """Write the records: those with a known external id or id in place of what is there."""
        written = []
        for body in items:
            name = f"{self.names[dataset_id]}/{body.get('external_id')}"
            item_id = body.get("id") or str(uuid5(NAMESPACE_URL, f"records/{name}"))
            if item_id in self.items["records"]:
                written.append(self.change(self.items["records"][item_id], body))
                continue
            empty = {"status": "pending", "responses": [], "suggestions": [], "vectors": {}, "dataset_id": dataset_id}
            written.append(self.make("records", name, {"metadata": None, **empty, **body}))
        return {"items": written}

    def record_page(self, query: Mapping[str, str], dataset_id: str) -> Item:
        found = self.of_dataset("records", dataset_id)
        first = int(query.get("offset", 0))
        return {"items": found[first : first + int(query.get("limit", 50))], "total": len(found)}

    def progress(self, dataset_id: str) -> Item:
        kinds = ("submitted", "discarded", "draft")
        counts: dict[str, dict[str, dict[str, int]]] = {}
        for record in self.of_dataset("records", dataset_id):
            for response in record["responses"]:
                zero = {state: dict.fromkeys(kinds, 0) for state in ("completed", "pending")}
                of_user = counts.setdefault(response["user_id"], zero)
                of_user[record["status"]][response["status"]] += 1
        return {"users": [{"username": self.names[user], **of_user} for user, of_user in counts.items()]}


def _items(found: Iterator[Item] | list[Item]) -> Item:
    return {"items": list(found)}


ROUTES: tuple[tuple[str, str, (Callable[..., Any])], ...] = (
    ("GET", "/version", lambda at, query, body: {"version": "2.8.0"}),
    ("GET", "/me", lambda at, query, body: next(iter(at.items["users"].values()))),
    ("POST", "/me/responses/bulk", lambda at, query, body: at.answer_all(body["items"])),
    ("GET", "/me/workspaces", lambda at, query, body: _items(iter(at.items["workspaces"].values()))),
    ("POST", "/workspaces", lambda at, query, body: at.make("workspaces", body["name"], body)),
    (
        "GET",
        "/workspaces/ID/users",
        lambda at, query, body, ws: _items([at.items["users"][user] for each, user in at.members if each == ws]),
    ),
    ("POST", "/workspaces/ID/users", lambda at, query, body, ws: at.add_member(ws, body["user_id"])),
    ("GET", "/users", lambda at, query, body: _items(iter(at.items["users"].values()))),
    ("POST", "/users", lambda at, query, body: at.add_user(body)),
    (
        "GET",
        "/me/datasets",
        lambda at, query, body: _items(
            each
            for each in at.items["datasets"].values()
            if query.get("workspace_id", each["workspace_id"]) == each["workspace_id"]
        ),
    ),
    ("POST", "/datasets", lambda at, query, body: at.add_dataset(body)),
    ("GET", "/datasets/ID", lambda at, query, body, ds: at.items["datasets"][ds]),
    ("PATCH", "/datasets/ID", lambda at, query, body, ds: at.change(at.items["datasets"][ds], body)),
    (
        "PUT",
        "/datasets/ID/publish",
        lambda at, query, body, ds: at.change(at.items["datasets"][ds], {"status": "ready"}),
    ),
    ("GET", "/datasets/ID/(fields|questions)", lambda at, query, body, ds, kind: _items(at.of_dataset(kind, ds))),
    ("POST", "/datasets/ID/(fields|questions)", lambda at, query, body, ds, kind: at.add_part(kind, body, ds)),
    (
        "GET",
        "/me/datasets/ID/metadata-properties",
        lambda at, query, body, ds: _items(at.of_dataset("properties", ds)),
    ),
    ("POST", "/datasets/ID/metadata-properties", lambda at, query, body, ds: at.add_part("properties", body, ds)),
    ("DELETE", "/metadata-properties/ID", lambda at, query, body, name: at.items["properties"].pop(name)),
    ("GET", "/datasets/ID/records", lambda at, query, body, ds: at.record_page(query, ds)),
    ("PUT", "/datasets/ID/records/bulk", lambda at, query, body, ds: at.write_records(ds, body["items"])),
    ("GET", "/records/ID", lambda at, query, body, record: at.items["records"][record]),
    ("PATCH", "/records/ID", lambda at, query, body, record: at.change(at.items["records"][record], body)),
    ("GET", "/datasets/ID/users/progress", lambda at, query, body, ds: at.progress(ds)),
)


class Handler(Quiet):
    def answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        path = parts.path.removeprefix("/api/v1")
        argilla = self.server.owner
        with argilla.lock:
            argilla.caller = self.headers.get("x-argilla-api-key", "").removesuffix(".apikey")
            status, found = argilla.reply(self.command, path, query, json.loads(raw) if raw else None)
            content = json.dumps(found).encode()
        self.reply(status, JSON, content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer
