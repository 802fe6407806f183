"""Every route of a server, asked by callers of every role, with good and with bad requests: what each is answered.

`python -m tests.support.route_walk FILE` writes the answers of the installed server, without ids, times and keys.
"""

import contextlib
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx

from annotation.argilla.client import KEY_HEADER
from annotation.server.launch import ServerHandle, start_server

Answers = dict[str, dict[str, str]]
"""By request and caller."""

UNKNOWN = str(UUID(int=7))
PASSWORD = "a password of the walk"
LABELS = [{"value": value, "text": value.upper()} for value in ("yes", "no")]
QUESTIONS: dict[str, dict[str, Any]] = {
    "text": {"type": "text", "use_markdown": True},
    "label_selection": {"type": "label_selection", "options": LABELS, "visible_options": None},
    "multi_label_selection": {"type": "multi_label_selection", "options": LABELS},
    "rating": {"type": "rating", "options": [{"value": value} for value in range(1, 4)]},
    "ranking": {"type": "ranking", "options": LABELS},
    "span": {"type": "span", "field": "text", "options": LABELS, "allow_overlapping": True},
}
VALUES: dict[str, Any] = {
    "text": "A remark – ü 日本.",
    "label_selection": "yes",
    "multi_label_selection": ["yes", "no"],
    "rating": 2,
    "ranking": [{"value": "yes", "rank": 1}, {"value": "no", "rank": 2}],
    "span": [{"start": 0, "end": 3, "label": "yes"}],
}
FIELDS: dict[str, dict[str, Any]] = {
    "text": {"type": "text", "use_markdown": False},
    "chat": {"type": "chat", "use_markdown": True},
    "custom": {"type": "custom", "template": "<b>{{record.fields.custom.a}}</b>", "advanced_mode": False},
    "image": {"type": "image"},
}
PROPERTIES: dict[str, dict[str, Any]] = {
    "terms": {"type": "terms", "values": ["a", "b"]},
    "integer": {"type": "integer", "min": 0, "max": 9},
    "float": {"type": "float", "min": 0.5, "max": 2.5},
}
ANSWER = {"status": "submitted", "values": {name: {"value": value} for name, value in VALUES.items()}}
RANGE = {"type": "range", "scope": {"entity": "metadata", "metadata_property": "float"}, "ge": 1.0, "le": 2}
SEARCH = {
    "query": {"text": {"q": "words", "field": "text"}},
    "filters": {
        "and": [RANGE, {"type": "terms", "scope": {"entity": "response", "property": "status"}, "values": ["pending"]}]
    },
    "sort": [{"scope": {"entity": "metadata", "metadata_property": "float"}, "order": "asc"}],
}
BAD_SEARCHES: tuple[Any, ...] = (
    {"query": {"text": {"q": ""}}},
    {"query": {"vector": {"name": "vector", "record_id": UNKNOWN, "value": [0.1]}}},
    {"query": {"vector": {"name": "vector", "value": [0.5, 1.5], "order": "upwards"}}},
    {"filters": {"and": [{**RANGE, "le": 0.5}]}},
    {"filters": {"and": [{**RANGE, "ge": "a"}]}},
    {"filters": {"and": [{**RANGE, "ge": None, "le": None}]}},
    {"filters": {"and": [{**RANGE, "type": "near"}]}},
    {"filters": {"and": [{**RANGE, "scope": {"entity": "weather"}}]}},
    {"filters": {"and": [{**RANGE, "scope": {"entity": "suggestion", "question": "rating", "property": "score"}}]}},
    {"filters": {"and": []}},
    {"sort": [{"scope": {"entity": "record", "property": "inserted_at"}, "order": "upwards"}]},
    {"sort": []},
)
QUERIES = {
    "offset=1&limit=1": ("/records", "record-states", "units", "search", "history"),
    "offset=-1": ("/records", "search"),
    "offset=one&limit=0": ("/records", "record-states", "units", "search", "history"),
    "limit=100000": ("/records", "record-states", "units", "search", "history"),
    "include=responses,suggestions,vectors": ("/records", "search"),
    "include=vectors:vector,vectors:none": ("/records", "search"),
    "include=weather": ("/records", "search"),
    f"ids={UNKNOWN},none": ("/records", "/suggestions"),
    "workspace=walk": ("history",),
    "after=1": ("history", "units", "record-states"),
    f"workspace_id={UNKNOWN}&status=ready&name=study": ("/me/datasets",),
    "status=open&workspace_id=none": ("/me/datasets",),
}
NO_JSON: tuple[dict[str, Any], ...] = (
    {"content": b"{", "headers": {"Content-Type": "application/json"}},
    {"content": b'{"name": "\xff"}', "headers": {"Content-Type": "application/json"}},
    {"content": b'{"name": "text"}', "headers": {"Content-Type": "text/plain"}},
    {"content": b'{"more": 1}'},
    {"data": {"name": "form"}},
    {},
)
ODD_PATHS = ("", "/", "/none", "/me/", "/version/", "/datasets", "/openapi.json/", "/docs", "/redoc", "/token")
SITE_PATHS = ("/", "/sign-in", "/datasets/none", "/favicon.ico", "/none.js", "/api", "/api/", "/api/v2/me", "/%2e%2e/")
HIDDEN = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d{6}"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"), "WHOLE TIME"),
    (re.compile(r'("(?:api_key|access_token|secret|id_token)" ?: ?)"[^"]+"'), r'\1"KEY"'),
    (re.compile(r'("(?:rss|vms|shared|text|lib|data|dirty)" ?: ?)"[\d.]+[BKMGT]"'), r'\1"SIZE"'),
    (re.compile(r"http://127\.0\.0\.1:\d{4,5}\b"), "SITE"),
    (re.compile(r'("(?:cursor|next|after)" ?: ?)("[^"]*"|[\d.]+)'), r'\1"PLACE"'),
)
OWN_HEADERS = {"content-type", "allow", "location", "www-authenticate", "cache-control", "vary", "content-encoding"}


class Walk:
    def __init__(self, server: ServerHandle, http: httpx.Client) -> None:
        self.http = http
        self.root = server.url
        self.owner = {KEY_HEADER: server.owner_api_key}
        self.ids: dict[str, str] = {}
        self.answers: Answers = {}
        self.callers: dict[str, dict[str, str]] = {"nobody": {}, "wrong key": {KEY_HEADER: "wrong"}}
        self.callers["wrong token"] = {"Authorization": "Bearer a.b.c"}
        self.passwords = {"owner": (server.owner_username, server.owner_password)}

    def make(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.http.request(method, f"/api/v1{path}", headers=self.owner, json=body)
        assert answer.is_success, (method, path, answer.text)
        return answer.json()

    def set_up(self) -> None:
        workspaces = {name: self.make("POST", "/workspaces", {"name": name})["id"] for name in ("walk", "elsewhere")}
        for name, role, where in (
            ("outside", "annotator", None),
            ("elsewhere", "annotator", "elsewhere"),
            ("annotator", "annotator", "walk"),
            ("admin", "admin", "walk"),
        ):
            user = self.make_user(name, role)
            if where:
                self.make("POST", f"/workspaces/{workspaces[where]}/users", {"user_id": user["id"]})
            self.callers[name] = {KEY_HEADER: user["api_key"]}
            self.ids[f"user {name}"] = user["id"]
        self.callers["owner"] = self.owner
        self.ids |= {"workspace_id": workspaces["walk"], "user_id": self.ids["user annotator"]}
        self.ids |= self.make_dataset("study")
        self.make_records()

    def make_user(self, name: str, role: str) -> Any:
        body = {"first_name": name.title(), "username": name, "role": role, "password": PASSWORD}
        self.passwords[name] = (name, PASSWORD)
        return self.make("POST", "/users", body)

    def make_dataset(self, name: str, is_published: bool = True) -> dict[str, str]:
        body = {"name": name, "workspace_id": self.ids["workspace_id"], "guidelines": "# How\n\nSo."}
        path = f"/datasets/{(dataset := self.make('POST', '/datasets', body)['id'])}"
        ids = {"dataset_id": dataset}
        for kind, bodies, parts in (
            ("field_id", FIELDS, "fields"),
            ("question_id", QUESTIONS, "questions"),
            ("metadata_property_id", PROPERTIES, "metadata-properties"),
        ):
            for part, settings in bodies.items():
                more = {"visible_for_annotators": part != "integer"} if parts == "metadata-properties" else {}
                required = {} if more else {"required": part in ("text", "label_selection")}
                made = {"name": part, "title": part, "settings": settings, **more, **required}
                ids[f"{kind} {part}"] = self.make("POST", f"{path}/{parts}", made)["id"]
            ids[kind] = ids[f"{kind} {next(iter(bodies))}"]
        vector = {"name": "vector", "title": "A vector", "dimensions": 2}
        ids["vector_settings_id"] = self.make("POST", f"{path}/vectors-settings", vector)["id"]
        if is_published:
            self.make("PUT", f"{path}/publish")
        return ids

    def record(self, name: str) -> dict[str, Any]:
        suggestions = [
            {"question_id": self.ids[f"question_id {part}"], "value": value, "agent": "m"}
            | ({} if part == "span" else {"score": 0.25})
            for part, value in VALUES.items()
            if part in ("rating", "span", "label_selection")
        ]
        fields = {
            "text": f"Some words of {name} – ü 日本",
            "chat": [{"role": "user", "content": "Why?"}],
            "custom": {"a": 1, "b": [1.0, None, True]},
            "image": "https://example.org/image.png",
        }
        place = {"one": 1.0, "two": 1.125, "by admin": 1.25}.get(name, 1.5)
        metadata = {"terms": ["a", "b"], "integer": 3, "float": place, "extra": {"deep": [1e-7, 1e21]}}
        extra = {"vectors": {"vector": [0.5, 1.0]}, "suggestions": suggestions, "external_id": name}
        return {"fields": fields, "metadata": metadata, **extra}

    def make_records(self) -> None:
        items = [self.record(name) for name in ("one", "two")]
        made = self.make("PUT", f"/datasets/{self.ids['dataset_id']}/records/bulk", {"items": items})["items"]
        self.ids |= {"record_id": made[0]["id"], "record other": made[1]["id"]}
        for name in ("annotator", "admin"):
            answer = self.http.post(
                f"/api/v1/records/{self.ids['record_id']}/responses", headers=self.callers[name], json=ANSWER
            )
            self.ids[f"response_id {name}"] = answer.raise_for_status().json()["id"]
        self.ids["response_id"] = self.ids["response_id annotator"]
        page = self.make("GET", f"/records/{self.ids['record_id']}/suggestions")
        self.ids["suggestion_id"] = page["items"][0]["id"]

    def bodies(self, who: str) -> dict[str, list[Any]]:
        """What each operation takes, and what looks like it; each named by its place."""
        ids, suggestion = (
            self.ids,
            {"question_id": self.ids["question_id rating"], "value": 3, "score": 1, "agent": "m"},
        )
        parts = {"name": f"by {who}", "title": "A title"}
        user = {"first_name": "Ann", "username": f"by {who}", "password": PASSWORD}
        bulk = {"items": [self.record(f"by {who}")]}
        hub = {
            "name": "a/b",
            "subset": "default",
            "split": "train",
            "mapping": {"fields": [{"source": "a", "target": "b"}]},
        }
        wrong = {**ANSWER, "values": {"rating": {"value": 7}}}
        return {
            "POST /workspaces": [{"name": f"by {who}"}, {"name": ""}, {"name": 1, "id": "none"}],
            "POST /workspaces/{workspace_id}/users": [
                {"user_id": ids["user admin"]},
                {"user_id": UNKNOWN},
                {"user_id": 1},
            ],
            "POST /users": [
                user,
                user,
                {**user, "password": "short"},
                {**user, "role": "king"},
                {**user, "username": ""},
            ],
            "PATCH /users/{user_id}": [{"first_name": f"By {who}"}, {"role": "king"}, {"more": 1}, {"username": None}],
            "POST /datasets": [
                {
                    "name": f"by {who}",
                    "workspace_id": ids["workspace_id"],
                    "distribution": {"strategy": "overlap", "min_submitted": 2},
                },
                {"name": "study", "workspace_id": ids["workspace_id"]},
                {"name": "n", "workspace_id": UNKNOWN, "metadata": {"a": [1.0, None]}},
                {"name": "n", "workspace_id": "none", "distribution": {"strategy": "luck"}, "guidelines": ""},
                {"name": "n" * 300, "workspace_id": ids["workspace_id"], "allow_extra_metadata": "perhaps"},
            ],
            "PATCH /datasets/{dataset_id}": [
                {"guidelines": f"By {who}", "metadata": {"a": 1.0}},
                {"name": None},
                {"distribution": {"min_submitted": 0}},
            ],
            "POST /datasets/{dataset_id}/fields": [
                {**parts, "settings": settings} for settings in (*FIELDS.values(), {"type": "song"}, {})
            ],
            "POST /datasets/{dataset_id}/questions": [
                {**parts, "settings": settings}
                for settings in (
                    *QUESTIONS.values(),
                    {"type": "riddle"},
                    {"type": "rating", "options": [{"value": 1}, {"value": 1}]},
                )
            ],
            "POST /datasets/{dataset_id}/metadata-properties": [
                {**parts, "settings": settings}
                for settings in (
                    *PROPERTIES.values(),
                    {"type": "integer", "min": 2, "max": 1},
                    {"type": "terms", "values": []},
                )
            ],
            "POST /datasets/{dataset_id}/vectors-settings": [
                {**parts, "dimensions": 3},
                {**parts, "dimensions": 0},
                {**parts, "dimensions": "3"},
            ],
            "PATCH /fields/{field_id}": [
                {"title": f"By {who}"},
                {"title": ""},
                {"settings": {"type": "chat", "use_markdown": 1}},
                {"settings": FIELDS["text"]},
            ],
            "PATCH /questions/{question_id}": [
                {"title": f"By {who}"},
                {"settings": QUESTIONS["text"]},
                {"settings": QUESTIONS["rating"]},
                {"settings": {"type": "x"}},
            ],
            "PATCH /metadata-properties/{metadata_property_id}": [{"title": "T"}, {"visible_for_annotators": "maybe"}],
            "PATCH /vectors-settings/{vector_settings_id}": [{"title": "T"}, {"title": None}],
            "PATCH /records/{record_id}": [
                {"metadata": {"integer": 4, "float": 2}},
                {"metadata": {"integer": "four"}},
                {"fields": {"text": None}},
                {"suggestions": [suggestion], "vectors": {"vector": [1, 2]}},
                {"suggestions": [suggestion, suggestion]},
                {"vectors": {"vector": [1, 2, 3]}},
                {"vectors": {"vector": ["a"]}},
            ],
            "PUT /records/{record_id}/suggestions": [
                suggestion,
                {**suggestion, "value": 9},
                {**suggestion, "value": [1]},
                {**suggestion, "agent": "ü"},
                {
                    **suggestion,
                    "question_id": ids["question_id span"],
                    "value": [{"start": 2, "end": 1, "label": "yes"}],
                },
            ],
            "POST /records/{record_id}/responses": [
                ANSWER,
                wrong,
                {"status": "draft"},
                {"status": "lost"},
                {"values": {}},
            ],
            "PUT /responses/{response_id}": [
                ANSWER,
                wrong,
                {"status": "draft", "values": {}},
                {"status": "lost"},
                {"status": "discarded"},
            ],
            "POST /me/responses/bulk": [
                {
                    "items": [
                        {"record_id": ids["record other"], **ANSWER},
                        {"record_id": UNKNOWN, "status": "discarded", "values": None},
                    ]
                },
                {"items": [{"record_id": ids["record_id"], **wrong}]},
                {"items": [{"record_id": "none", "status": "lost"}]},
                {"items": []},
            ],
            "POST /datasets/{dataset_id}/records/bulk": [
                bulk,
                {"items": []},
                {"items": [{}]},
                {"items": [{"fields": {"text": 1}}]},
            ],
            "PUT /datasets/{dataset_id}/records/bulk": [
                bulk,
                bulk,
                {"items": [{"id": UNKNOWN, "fields": {"text": "x"}}]},
                {"items": [{"fields": {"none": "x"}}]},
            ],
            "POST /me/datasets/{dataset_id}/records/search": [SEARCH, *BAD_SEARCHES],
            "POST /datasets/{dataset_id}/records/search": [SEARCH, *BAD_SEARCHES],
            "POST /datasets/{dataset_id}/import": [hub, {**hub, "mapping": {}}],
            "POST /datasets/{dataset_id}/export": [{"name": "", "token": ""}],
            "POST /webhooks": [
                {
                    "url": "http://127.0.0.1:9/",
                    "events": ["record.created", "dataset.published"],
                    "description": f"By {who}",
                },
                {"url": "none", "events": ["record.created"]},
                {"url": "http://127.0.0.1:9", "events": ["x"]},
                {"url": "http://127.0.0.1:9", "events": []},
            ],
            "PATCH /webhooks/{webhook_id}": [{"enabled": False}, {"url": "ftp:"}],
        }

    def ask(self, name: str, who: str, method: str, path: str, **words: Any) -> httpx.Response:
        headers = {**self.callers[who], **words.pop("headers", {})}
        answer = self.http.request(method, path, headers=headers, **words)
        in_order = not ("/search" in name and "sort" not in (words.get("json") or ()))
        self.answers.setdefault(name, {})[who] = told(answer, in_order)
        return answer

    def filled(self, path: str, **more: str) -> str:
        return re.sub(r"{(\w+)}", lambda found: (self.ids | more).get(found[1], UNKNOWN), f"/api/v1{path}")

    def walk(self) -> Answers:
        paths = self.make("GET", "/openapi.json")["paths"]
        found = sorted((path.removeprefix("/api/v1"), method.upper()) for path in paths for method in paths[path])
        self.answers["operations"] = {"all": " ".join(f"{method} {path}" for path, method in found)}
        for who in self.callers:
            bodies = self.bodies(who)
            for path, method in found:
                if method == "GET":
                    self.read(who, path)
                elif method != "DELETE" and path != "/token":
                    self.write(who, method, path, bodies.get(f"{method} {path}", []))
            self.log_in(who)
            self.delete(who, [path for path, method in found if method == "DELETE"])
        for path, method in (
            (path, method)
            for path in (*ODD_PATHS, "/datasets/none/records")
            for method in ("GET", "PUT", "HEAD", "OPTIONS")
        ):
            for who in ("nobody", "annotator"):
                self.ask(f"{method} {path} (odd)", who, method, f"/api/v1{path}")
        for path in SITE_PATHS:
            for method in ("GET", "POST", "HEAD"):
                self.ask(f"{method} {path} (page)", "nobody", method, path)
        return self.answers

    def read(self, who: str, path: str) -> None:
        self.ask(f"GET {path}", who, "GET", self.filled(path))
        if "{" in path:
            self.ask(f"GET {path} of unknown", who, "GET", re.sub(r"{\w+}", UNKNOWN, f"/api/v1{path}"))
            self.ask(f"GET {path} of none", who, "GET", re.sub(r"{\w+}", "none", f"/api/v1{path}"))
        if path.endswith("/metrics") and "property" in path:
            for kind in PROPERTIES:
                self.ask(
                    f"GET {path} {kind}",
                    who,
                    "GET",
                    self.filled(path, metadata_property_id=self.ids[f"metadata_property_id {kind}"]),
                )
        self.queries(who, "GET", path)

    def queries(self, who: str, method: str, path: str, **words: Any) -> None:
        for query, ends in QUERIES.items():
            if path.endswith(ends):
                self.ask(f"{method} {path}?{query}", who, method, f"{self.filled(path)}?{query}", **words)

    def write(self, who: str, method: str, path: str, bodies: list[Any]) -> None:
        asked = f"{method} {path}"
        is_stranger = who not in self.passwords
        for place, body in enumerate((*bodies[: 1 if is_stranger else None], {}, [], "text", None)):
            self.ask(f"{asked} {place}", who, method, self.filled(path), json=body)
        for place, words in enumerate(NO_JSON[: 1 if is_stranger else None]):
            self.ask(f"{asked} no JSON {place}", who, method, self.filled(path), **dict(words))
        unknown = re.sub(r"{\w+}", UNKNOWN, f"/api/v1{path}")
        self.ask(f"{asked} of unknown", who, method, unknown, json=bodies[0] if bodies else {})
        if path.endswith("search") and not is_stranger:
            self.queries(who, method, path, json={"sort": SEARCH["sort"]})
        if path.endswith("/webhooks") and who == "owner":
            self.ids["webhook_id"] = self.make("GET", path)["items"][0]["id"]

    def log_in(self, who: str) -> None:
        if who in self.passwords:
            name, password = self.passwords[who]
            answer = self.ask(
                "POST /token", who, "POST", "/api/v1/token", data={"username": name, "password": password}
            )
            token = answer.json().get("access_token", "")
            self.ask("GET /me by token", who, "GET", "/api/v1/me", headers={"Authorization": f"Bearer {token}"})
            self.ask(
                "GET /me by token alone", "nobody", "GET", "/api/v1/me", headers={"Authorization": f"Bearer {token}"}
            )
        if who == "nobody":
            for place, words in enumerate(
                ({"json": {}}, {"data": {}}, {"data": {"username": "a"}}, {"files": {"username": b"a"}}, {})
            ):
                self.ask(f"POST /token {place}", who, "POST", "/api/v1/token", **words)
            self.ask("POST /token wrong", who, "POST", "/api/v1/token", data={"username": "a", "password": "b" * 9})

    def delete(self, who: str, paths: list[str]) -> None:
        for path in paths:
            unknown = re.sub(r"{\w+}", UNKNOWN, f"/api/v1{path}")
            self.ask(f"DELETE {path} of unknown", who, "DELETE", unknown)
        spare = self.make_dataset(f"spare of {who}", is_published=False)
        user = self.make("POST", "/users", {"first_name": "S", "username": f"spare {who}", "password": PASSWORD})["id"]
        self.make("POST", f"/workspaces/{self.ids['workspace_id']}/users", {"user_id": user})
        items = {"items": [{"fields": {"text": "spare"}}]}
        record = self.make("POST", f"/datasets/{self.ids['dataset_id']}/records/bulk", items)["items"][0]["id"]
        later = ("/users/{user_id}", "/datasets/{dataset_id}", "/workspaces/{workspace_id}")
        for path in sorted(paths, key=later.__contains__):
            kept = "workspace_id" in path and "user_id" not in path
            ids = spare | {"user_id": user, "record_id": record} | ({"workspace_id": UNKNOWN} if kept else {})
            if "responses" in path or "suggestion" in path:
                ids = {"response_id": self.ids.get(f"response_id {who}", self.ids["response_id"])}
            query = f"?ids={record}" if path.endswith("/records") else ""
            query = f"?workspace=walk&dataset_id={UNKNOWN}" if path.endswith("history") else query
            self.ask(f"DELETE {path}", who, "DELETE", self.filled(path, **ids) + query)
        self.http.delete(f"/api/v1/records/{record}", headers=self.owner)


def told(answer: httpx.Response, in_order: bool = True) -> str:
    """Status, headers and body, without what no two servers have in common: so the order of some searches."""
    kind = answer.headers.get("content-type", "")
    headers = [
        f"{name}: {', '.join(sorted(value.split(', ')))}"
        for name, value in sorted(answer.headers.items())
        if name in OWN_HEADERS
    ]
    text = answer.text if kind.startswith(("application/json", "text/plain")) else f"{len(answer.content) > 0} bytes"
    text = "openapi" if text.startswith('{"openapi"') else text
    head = f"{answer.status_code} | {' | '.join(headers)}"
    for pattern, word in HIDDEN:
        head, text = pattern.sub(word, head), pattern.sub(word, text)
    if not in_order and text.startswith('{"items":['):
        found = json.loads(text)
        found["items"].sort(key=json.dumps)
        text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return f"{head} | {text}"


@contextlib.contextmanager
def a_server() -> Iterator[ServerHandle]:
    with tempfile.TemporaryDirectory() as folder, start_server(Path(folder) / "home", port=0) as server:
        yield server


def walk(server: ServerHandle) -> Answers:
    # After a failure the server closes the connection, while the client may send the next request on it.
    alone = {"Connection": "close"}
    with httpx.Client(base_url=server.url, timeout=60, trust_env=False, headers=alone) as http:
        one = Walk(server, http)
        one.set_up()
        return one.walk()


def written(answers: Answers) -> str:
    """The answers as JSON, each text once."""
    texts = list(dict.fromkeys(text for callers in answers.values() for text in callers.values()))
    places = {text: place for place, text in enumerate(texts)}
    callers = list(dict.fromkeys(who for found in answers.values() for who in found))
    asked = {name: [places.get(found.get(who, ""), -1) for who in callers] for name, found in answers.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(row, separators=(',', ':'))}" for name, row in asked.items()]
    shown = ",\n".join(json.dumps(text, ensure_ascii=False) for text in texts)
    return f'{{"callers": {json.dumps(callers)},\n"texts": [\n{shown}],\n"asked": {{\n' + ",\n".join(lines) + "}}\n"


def read_answers(text: str) -> Answers:
    kept = json.loads(text)
    return {
        name: {who: kept["texts"][place] for who, place in zip(kept["callers"], row, strict=True) if place >= 0}
        for name, row in kept["asked"].items()
    }


if __name__ == "__main__":
    with a_server() as running:
        Path(sys.argv[1]).write_text(written(walk(running)), encoding="utf-8")
