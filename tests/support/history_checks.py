"""What holds of the history of responses on both engines: `sqlite3` and psycopg2 take the same statements."""

import contextlib
import itertools
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

from annotation.argilla.client import Argilla
from annotation.argilla.units import HISTORY_PATH
from pipeline.core.errors import ArgillaError
from tests.support.export_bench import answers, make_dataset, record

_number = itertools.count()


class Place(NamedTuple):
    """A workspace of a test's own with one dataset and two annotators, and a way into the server's database."""

    owner: Argilla
    url: str
    database: Any
    """A connection to the database."""
    workspace: str
    workspace_id: str
    dataset: str
    people: dict[str, dict[str, Any]]
    """Users as the server made them, with their keys, by first name."""

    def put(self, *records: dict[str, Any]) -> list[str]:
        body = {"items": list(records)}
        return [each["id"] for each in self.owner.request("PUT", self.records("bulk"), json=body)["items"]]

    def records(self, rest: str = "") -> str:
        return f"/datasets/{self.dataset}/records" + (f"/{rest}" if rest else "")

    def said(self, who: str, status: str = "submitted", **changed: str) -> dict[str, Any]:
        """A response as the records' bulk PUT takes it."""
        values = {name: {"value": value} for name, value in answers("generation", **changed).items()}
        return {"user_id": self.people[who]["id"], "status": status, "values": values}

    def herself(self, who: str) -> Argilla:
        return Argilla(self.url, self.people[who]["api_key"])

    def changes(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        after: int | None = 0
        while after is not None:
            params = {"workspace": self.workspace, "after": after, "limit": 2}
            page = self.owner.request("GET", HISTORY_PATH, params=params)
            found += page["items"]
            after = page["next"]
        return found

    def execute(self, statement: str) -> None:
        """Change the database as any other program may."""
        with contextlib.closing(self.database.cursor()) as cursor:
            try:
                cursor.execute(statement)
            except Exception:
                self.database.rollback()
                raise
        self.database.commit()

    def stored(self, named: str) -> str:
        """An id as this database writes it."""
        return named if "psycopg2" in type(self.database).__module__ else uuid.UUID(named).hex

    def fresh(self, name: str) -> str:
        return f"{name}-{next(_number)}"


def place(owner: Argilla, url: str, database: Any) -> Place:
    name = f"h-{uuid.uuid4().hex[:12]}"
    workspace_id = owner.request("POST", "/workspaces", json={"name": name})["id"]
    dataset = make_dataset(owner, workspace_id, "generation")
    people = {}
    for who in ("anna", "ben"):
        body = {"first_name": who, "username": f"{who}-{uuid.uuid4().hex[:8]}", "role": "annotator"}
        people[who] = owner.request("POST", "/users", json=body | {"password": "12345678"})
        owner.request("POST", f"/workspaces/{workspace_id}/users", json={"user_id": people[who]["id"]})
    return Place(owner, url, database, name, workspace_id, dataset, people)


def told(changes: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """Of each change what it was, of which record, from which status and note to which."""
    for each in changes:
        notes = [(each[side] or {}).get("notes", {}).get("value") for side in ("values_before", "values_after")]
        yield each["action"], each["external_id"], each["status_before"], each["status_after"], *notes


def check_every_way_to_change_a_response(here: Place) -> None:
    """Each way is one line with what was before and after; whose it was, when, and of which record."""
    (first, second) = here.put(record("generation", "r1", here.said("anna", notes="a")), record("generation", "r2"))
    with here.herself("ben") as ben:
        made = ben.request("POST", f"/records/{first}/responses", json={**here.said("ben", notes="b"), "user_id": None})
        values = here.said("ben", notes="c")["values"]
        ben.request("PUT", f"/responses/{made['id']}", json={"status": "draft", "values": values})
        again = {"record_id": second, "status": "submitted", "values": values}
        (bulk,) = ben.request("POST", "/me/responses/bulk", json={"items": [again]})["items"]
        ben.request("POST", "/me/responses/bulk", json={"items": [{**again, "status": "discarded"}]})
        ben.request("DELETE", f"/responses/{bulk['item']['id']}")
    here.put({"id": first, "responses": [here.said("anna", notes="d")]})
    found = here.changes()
    assert list(told(found)) == [
        ("insert", "r1", None, "submitted", None, "a"),
        ("insert", "r1", None, "submitted", None, "b"),
        ("update", "r1", "submitted", "draft", "b", "c"),
        ("insert", "r2", None, "submitted", None, "c"),
        ("update", "r2", "submitted", "discarded", "c", "c"),
        ("delete", "r2", "discarded", None, "c", None),
        ("update", "r1", "submitted", "submitted", "a", "d"),
    ]
    names = {here.people[who]["id"]: who for who in here.people}
    assert [names[each["user_id"]] for each in found] == ["anna", *["ben"] * 5, "anna"]
    assert {each["dataset_id"] for each in found} == {here.dataset}
    assert sorted(each["at"] for each in found) == [each["at"] for each in found]


def check_cascades(here: Place) -> None:
    """Responses that go with their user, their record or their dataset are told as well, and of which record."""
    _, gone, last = here.put(
        record("generation", "kept", here.said("anna"), here.said("ben")),
        record("generation", "gone", here.said("ben")),
        record("generation", "last", here.said("ben")),
    )
    here.owner.request("DELETE", f"/users/{here.people['anna']['id']}")
    here.owner.request("DELETE", here.records(), params={"ids": gone})
    here.execute(f"DELETE FROM records WHERE id = '{here.stored(last)}'")
    here.owner.request("DELETE", f"/datasets/{here.dataset}")
    deleted = [each for each in here.changes() if each["action"] == "delete"]
    assert [each["external_id"] for each in deleted] == ["kept", "gone", "last", "kept"]
    assert {(each["status_before"], each["dataset_id"]) for each in deleted} == {("submitted", here.dataset)}
    page = here.owner.request("GET", HISTORY_PATH, params={"workspace": here.workspace})
    described = page["datasets"][here.dataset]
    assert (described["workspace"], described["is_gone"]) == (here.workspace, True)
    assert described["metadata"]["task"] == "generation"
    here.owner.request("DELETE", f"/workspaces/{here.workspace_id}")
    assert here.changes() == page["items"]


def check_nothing_is_changed(here: Place, refusal: type[Exception]) -> None:
    """No statement changes the history or takes from it, not of a dataset that is there, and not as a whole."""
    here.put(record("generation", here.fresh("r"), here.said("anna")))
    here.owner.request(
        "DELETE", here.records(), params={"ids": here.put(record("generation", "x", here.said("ben")))[0]}
    )
    before = here.changes()
    for statement in (
        "UPDATE citejury_history SET values_after = '{}'",
        "UPDATE citejury_history SET at = at",
        "DELETE FROM citejury_history",
        "DELETE FROM citejury_history WHERE action = 'begin'",
        "UPDATE citejury_history_records SET external_id = 'other'",
        "DELETE FROM citejury_history_records",
        "DELETE FROM citejury_history_datasets",
        f"INSERT INTO citejury_history_erased (dataset_id, at) VALUES ('{here.stored(here.dataset)}', '2026-01-01')",
        *here_only(here, before[0]["id"]),
    ):
        with contextlib.suppress(refusal):
            here.execute(statement)
            assert statement in HARMLESS_WHEN_EMPTY, statement
    assert here.changes() == before


HARMLESS_WHEN_EMPTY = ("DELETE FROM citejury_history_datasets",)
"""Where no test before has deleted a dataset, there is nothing to refuse."""


def here_only(here: Place, change: int) -> list[str]:
    """What only one of the two engines knows."""
    if "psycopg2" in type(here.database).__module__:
        return ["TRUNCATE citejury_history", "TRUNCATE responses, citejury_history CASCADE"]
    other = uuid.uuid4().hex
    kept = "INSERT OR REPLACE INTO citejury_history_records"
    return [
        f"INSERT OR REPLACE INTO citejury_history (id, at, action) VALUES ({change}, '2026-01-01', 'insert')",
        f"{kept} SELECT record_id, '{other}', external_id FROM citejury_history_records LIMIT 1",
        f"{kept} (rowid, record_id, dataset_id) SELECT rowid, '{other}', '{other}' FROM citejury_history_records",
    ]


def check_a_deleted_dataset_can_be_erased(here: Place) -> None:
    """The owner erases the history of what is gone, and of nothing else; that it happened stays."""
    here.put(record("generation", "r1", here.said("anna")))
    erase = {
        "method": "DELETE",
        "path": HISTORY_PATH,
        "params": {"workspace": here.workspace, "dataset_id": here.dataset},
    }
    assert refused(here.owner, **erase) == "NotFoundError"
    here.owner.request("DELETE", f"/datasets/{here.dataset}")
    with here.herself("anna") as anna:
        assert refused(anna, **erase) == "NotAllowedError"
    here.owner.request("PATCH", f"/users/{here.people['ben']['id']}", json={"role": "admin"})
    with here.herself("ben") as admin:
        assert refused(admin, **erase) == "NotAllowedError"
    assert len(here.changes()) == 2
    here.owner.request(**erase)
    with contextlib.closing(here.database.cursor()) as cursor:
        cursor.execute(f"SELECT count(*) FROM citejury_history_erased WHERE dataset_id = '{here.stored(here.dataset)}'")
        assert cursor.fetchone() == (1,)
        cursor.execute(
            f"SELECT count(*) FROM citejury_history WHERE user_id = '{here.stored(here.people['anna']['id'])}'"
        )
        assert cursor.fetchone() == (0,)
    here.database.rollback()


def refused(client: Argilla, **call: Any) -> str:
    try:
        client.request(**call)
    except ArgillaError as error:
        return type(error).__name__
    return ""
