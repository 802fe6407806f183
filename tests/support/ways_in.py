"""People of every role on a server, their ways in, and what each route of its API answers them."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from uuid import uuid4

import httpx

from annotation.argilla.client import KEY_HEADER, Argilla
from annotation.argilla.labels import LABELS
from annotation.campaign.datasets import find_datasets
from annotation.campaign.file import Annotator, Member
from annotation.campaign.people import NewUser, Passwords
from annotation.campaign.setup import add_users, set_up
from annotation.push.push import push_records
from pipeline.records.schema import Passage, QueryResponse

OPEN_TO_ANYBODY = {
    "GET /version",
    "GET /status",
    "GET /settings",
    "GET /oauth2/providers",
    "GET /oauth2/providers/{provider}/authentication",
    "GET /oauth2/providers/{provider}/access-token",
    "POST /token",
}
PASSAGE = Passage(chunk_id="d#0", doc_id="d", chunk_rank=1, text="Nobody did.")
ANSWER = QueryResponse(
    record_uuid="r1", query="Who?", answer="Nobody.", language="en", chunks=(PASSAGE,), context_set=PASSAGE.text
)
VALUES = {label: {"value": "yes"} for label in LABELS["generation"]}
FEW = {
    "GET /me",
    "GET /me/datasets",
    "GET /citejury/me/work",
    "GET /records/{record_id}",
    "POST /records/{record_id}/responses",
    "PUT /responses/{response_id}",
    "POST /me/responses/bulk",
    "POST /me/datasets/{dataset_id}/records/search",
}
JURY = ("removed", "forgotten", "renewed", "back", "moved", "taken out", "earlier", "annotator")

Headers = Mapping[str, str]


class Person(NamedTuple):
    """Somebody, with all her ways in as they were when she joined."""

    name: str
    id: str
    password: str
    key: Headers
    token: Headers

    def ways(self) -> tuple[Headers, ...]:
        return self.token, self.key


class Study(NamedTuple):
    """A workspace with a response of each member, and another one."""

    http: httpx.Client
    owner: Argilla
    workspace: str
    people: dict[str, Person]
    responses: dict[str, str]
    ids: dict[str, str]
    """Ids of the workspace's things, by the name that they have in paths."""
    other: dict[str, str]
    """The same of the other workspace."""

    def call(self, way: Headers, method: str, path: str, **words: Any) -> httpx.Response:
        return self.http.request(method, path.lstrip("/"), headers=dict(way), **words)

    def operations(self) -> list[str]:
        paths = self.call({}, "GET", "/openapi.json").json()["paths"]
        found = [(method, path) for path, methods in paths.items() for method in methods]
        return [f"{method.upper()} {path.removeprefix('/api/v1')}" for method, path in found]

    def answers(self, way: Headers, whose: str, few: bool = False) -> dict[str, httpx.Response]:
        """What each operation answers that asks who one is, or a few of them, with somebody's id and response."""
        ids = self.ids | {"response_id": self.responses[whose], "user_id": self.people[whose].id}
        found = {}
        for operation in FEW if few else self.operations():
            if operation not in OPEN_TO_ANYBODY:
                method, path = operation.split()
                body = {} if method == "GET" else {"json": bodies(ids).get(operation, {})}
                found[operation] = self.call(way, method, filled(path, ids), **body)
        return found

    def statuses(self, way: Headers, whose: str, few: bool = False) -> set[int]:
        return {answer.status_code for answer in self.answers(way, whose, few).values()}

    def refused(self, way: Headers, ids: Mapping[str, str]) -> set[str]:
        """The paths that somebody may not read who has this way in."""
        paths = [path for method, path in map(str.split, self.operations()) if method == "GET"]
        found = {path: self.call(way, "GET", filled(path, ids)).status_code for path in paths}
        return {path for path, status in found.items() if status in {401, 403}}

    def write(self, way: Headers, record_id: str) -> list[int]:
        """The statuses of an answer to a record, of a change of it and of its deletion."""
        body = {"status": "submitted", "values": VALUES}
        made = self.call(way, "POST", f"/records/{record_id}/responses", json=body)
        path = f"/responses/{made.json().get('id', uuid4())}"
        later = [self.call(way, "PUT", path, json=body), self.call(way, "DELETE", path)]
        return [made.status_code, *(each.status_code for each in later)]

    def log_in(self, name: str, password: str) -> httpx.Response:
        return self.call({}, "POST", "/token", data={"username": name, "password": password})

    def token(self, name: str, password: str) -> Headers:
        return {"Authorization": f"Bearer {self.log_in(name, password).raise_for_status().json()['access_token']}"}

    def kept(self) -> dict[str, Any]:
        record = self.owner.request("GET", f"/records/{self.ids['record_id']}")
        return {each["id"]: (each["status"], each["values"]) for each in record["responses"]}


def bodies(ids: Mapping[str, str]) -> dict[str, Any]:
    """What the operations take that would change a response or read records."""
    draft = {"status": "draft", "values": {}}
    return {
        "POST /records/{record_id}/responses": draft,
        "PUT /responses/{response_id}": draft,
        "POST /me/responses/bulk": {"items": [{"record_id": ids["record_id"], **draft}]},
        "POST /me/datasets/{dataset_id}/records/search": {"query": {}},
        "POST /datasets/{dataset_id}/records/search": {"query": {}},
    }


def filled(path: str, ids: Mapping[str, str]) -> str:
    """The path with an id in every place; one that does not exist where there is none of the kind."""
    for name, value in ids.items():
        path = path.replace(f"{{{name}}}", value)
    while "{" in path:
        path = f"{path[: path.index('{')]}{uuid4()}{path[path.index('}') + 1 :]}"
    return path


@contextlib.contextmanager
def study(url: str, owner: Argilla) -> Iterator[Study]:
    """A study of people of every role, each with a token and a key, and each of the jury with a submitted answer."""
    workspace = f"w-{uuid4().hex[:10]}"
    names = {who: f"{who} of {workspace}" for who in (*JURY, "new", "admin", "adjudicator")}
    told: dict[str, NewUser] = {}

    def keep(user: NewUser) -> None:
        told[user.username] = user

    set_up(owner, workspace, annotators=[names[who] for who in (*JURY, "new")], min_submitted=9, announce=keep)
    set_up(owner, f"{workspace}-other")
    members = [
        Member(workspace, Annotator(name=names["admin"], role="admin")),
        Member(f"{workspace}-other", Annotator(name=names["adjudicator"], role="adjudicator")),
        Member(f"{workspace}-other", Annotator(name=names["moved"])),
    ]
    add_users(owner, members, Passwords(announce=keep))
    http = httpx.Client(base_url=f"{url}/api/v1", timeout=60, trust_env=False, verify=False)
    found = Study(http, owner, workspace, {}, {}, pushed(owner, workspace), pushed(owner, f"{workspace}-other"))
    users = {user["username"]: user for user in owner.request("GET", "/users")["items"]}
    for who, name in names.items():
        token = found.token(name, told[name].password)
        key = {KEY_HEADER: users[name]["api_key"]}
        found.people[who] = Person(name, users[name]["id"], told[name].password, key, token)
    for who in JURY:
        body = {"status": "submitted", "values": VALUES}
        answer = found.call(found.people[who].token, "POST", f"/records/{found.ids['record_id']}/responses", json=body)
        found.responses[who] = answer.raise_for_status().json()["id"]
    with contextlib.closing(http):
        yield found


def pushed(owner: Argilla, workspace: str) -> dict[str, str]:
    """Ids of the workspace's things, by the name that they have in paths, once there is a record."""
    push_records(owner, workspace, [ANSWER])
    dataset = find_datasets(owner, workspace)["generation"].id
    return {
        "workspace_id": owner.find_workspace(workspace),
        "dataset_id": dataset,
        "record_id": next(owner.record_pages(dataset))[1][0]["id"],
        "question_id": owner.request("GET", f"/datasets/{dataset}/questions")["items"][0]["id"],
        "field_id": owner.request("GET", f"/datasets/{dataset}/fields")["items"][0]["id"],
    }
