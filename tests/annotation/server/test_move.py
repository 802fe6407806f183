"""A campaign on the embedded server goes on in docker/'s PostgreSQL: same bytes, keys, logins, queues and status."""

import json
import re
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psycopg2
import pytest

from annotation.server.home.archive import restore_home, write_backup
from annotation.server.home.folder import DATABASE_FILE
from annotation.server.launch import start_server
from tests.support.big_stack import (
    ANNOTATORS,
    PATIENCE_SECONDS,
    Compose,
    Places,
    Server,
    campaign,
    command_of,
    create_database,
    environment_of,
    read_compose,
    running_argilla,
    running_queue,
)
from tests.support.campaign_book import answers, record
from tests.support.campaign_players import Player
from tests.support.postgresql import running_postgresql
from tests.support.provider_server import JSON

pytestmark = [pytest.mark.server, pytest.mark.rare]

WORKSPACE = "move"
LANGUAGE = "ja"
STRANGE = 'NUL \0, tab\t, backslash \\N \\., "quotes"\nand 橋 🌉'


class Work(NamedTuple):
    exports: dict[str, bytes]
    history: bytes
    status: str
    queues: dict[tuple[str, str], list[str]]
    keys: dict[str, str]


class Old(NamedTuple):
    home: Path
    backup: Path
    work: Work
    ended: str
    """A log-in that was ended by a new password."""


def seen(server: Server, folder: Path, passwords: dict[str, str]) -> Work:
    server.run("exports", "csv", str(folder), "--workspace", WORKSPACE)
    server.run("exports", "csv", "--history", str(folder.with_suffix(".csv")), "--workspace", WORKSPACE)
    exports = {path.name: path.read_bytes() for path in folder.glob("*.csv")}
    history = folder.with_suffix(".csv").read_bytes()
    status = server.run("annotation", "status", "--workspace", WORKSPACE, "--json")
    queues, keys = {}, {"owner": server.api_key}
    for name, password in passwords.items():
        with Player(server.url, name, password) as player:
            keys[name] = player.call("GET", "/me")["api_key"]
            datasets = {dataset: found for (place, dataset), found in player.datasets().items() if place == WORKSPACE}
            queues |= {(name, dataset): list(player.queue(found)) for dataset, found in datasets.items()}
    return Work(exports, history, re.sub(r'"(server|moment|finish)": "[^"]*"', "", status), queues, keys)


def make_foreign_dataset(server: Server) -> None:
    """A dataset of somebody else's making, with all that Argilla's tables can hold and ours do not."""
    workspace = server.call("POST", "/workspaces", json={"name": "others"})["id"]
    dataset = server.call("POST", "/datasets", json={"name": "theirs", "workspace_id": workspace})["id"]
    parts = {
        "fields": {"name": "text", "title": "Text", "required": True, "settings": {"type": "text"}},
        "questions": {
            "name": "label",
            "title": "Label",
            "required": True,
            "settings": {"type": "label_selection", "options": [{"value": each, "text": each} for each in "ab"]},
        },
        "metadata-properties": {"name": "weight", "title": "Weight", "settings": {"type": "float"}},
        "vectors-settings": {"name": "vector", "title": "Vector", "dimensions": 2},
    }
    made = {part: server.call("POST", f"/datasets/{dataset}/{part}", json=body) for part, body in parts.items()}
    server.call("PUT", f"/datasets/{dataset}/publish")
    suggestion = {"question_id": made["questions"]["id"], "value": "a", "score": 1.0, "agent": "model", "type": "model"}
    items: list[dict[str, Any]] = [
        {"external_id": "tab\tbed", "fields": {"text": STRANGE}, "metadata": {"weight": 0.1, "more": STRANGE}},
        {"fields": {"text": "plain"}, "suggestions": [suggestion], "vectors": {"vector": [0.25, -1e-9]}},
    ]
    server.call("PUT", f"/datasets/{dataset}/records/bulk", content=json.dumps({"items": items}), headers=JSON)
    events = {"url": "http://127.0.0.1:9/", "events": ["dataset.deleted"]}
    webhook = server.call("POST", "/webhooks", json=events)["id"]
    server.call("PATCH", f"/webhooks/{webhook}", json={"enabled": False})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("move")


@pytest.fixture(scope="module")
def old(folder: Path) -> Old:
    home, backup = folder / "home", folder / "monday.zip"
    with start_server(home, port=0) as handle:
        server = Server(handle.url, handle.owner_api_key)
        campaign(server, folder / "campaign", WORKSPACE, (LANGUAGE,))
        passwords = read_passwords(folder)
        more = folder / "more.jsonl"
        lines = [record(number, LANGUAGE).model_dump_json() for number in range(10, 17)]
        more.write_text("\n".join(lines) + "\n", encoding="utf-8")
        server.run("annotation", "push", str(more), "--workspace", WORKSPACE)
        name = ANNOTATORS[0]
        with Player(server.url, name, passwords[name]) as player:
            first, second, third, fourth, *_ = player.queue(player.datasets()[WORKSPACE, "3-generation-en"]).items()
            player.respond(first[1], "submitted", answers("generation", name, first[0]), "後で <b>見る</b>\t\\N")
            player.respond(second[1], "draft", {"helpful": "yes"}, "")
            player.respond(third[1], "discarded", {}, "")
            player.call("POST", f"/records/{fourth[1]}/responses", json={"status": "discarded", "values": None})
        make_foreign_dataset(server)
        data = {"username": ANNOTATORS[0], "password": passwords[ANNOTATORS[0]]}
        ended = str(server.call("POST", "/token", data=data)["access_token"])
        words = ("passwd", ANNOTATORS[0], "--passwords", str(folder / "campaign" / "passwords.json"))
        server.run("annotation", "users", *words)
        passwords = read_passwords(folder)
        work = seen(server, folder / "old", passwords)
    write_backup(home, backup)
    return Old(home, backup, work, ended)


def read_passwords(folder: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((folder / "campaign" / "passwords.json").read_text(encoding="utf-8"))
    return found


class Stack(NamedTuple):
    compose: Compose
    places: Places
    admin: str
    """Address of the database for somebody who may do everything."""

    def restore(self, backup: Path) -> "subprocess.Popen[str]":
        """`docker compose run --rm -T migrate restore < backup`, begun."""
        service = {**self.compose.services["migrate"], "command": ["restore"]}
        environment = environment_of(service, self.places, TMPDIR=str(self.places.folder))
        with open(backup, "rb") as file:
            return subprocess.Popen(
                command_of(service), env=environment, stdin=file, stderr=subprocess.PIPE, text=True, encoding="utf-8"
            )

    def refusal(self, backup: Path) -> str:
        """What it says when it does not restore; nothing is left behind."""
        process = self.restore(backup)
        said = process.communicate(timeout=PATIENCE_SECONDS)[1]
        assert (process.returncode, "Traceback" in said) == (1, False), said
        assert not list(self.places.folder.glob("citejury-*"))
        return said

    def people(self) -> set[str]:
        with closing(psycopg2.connect(self.admin)) as database, database.cursor() as cursor:
            cursor.execute("SELECT username FROM users")
            return {name for (name,) in cursor.fetchall()}


@pytest.fixture(scope="module")
def stack(folder: Path, old: Old) -> Iterator[Stack]:
    """An empty stack; the old owner's secrets came into its .env after it had some of its own."""
    place = folder / "docker"
    before = read_compose(place).services["migrate"]["environment"]
    subprocess.run([place / "make-secrets", "--from", old.home], check=True, capture_output=True)
    compose = read_compose(place)
    after = compose.services["migrate"]["environment"]
    assert {name for name in after if after[name] != before[name]} == {
        "ARGILLA_AUTH_SECRET_KEY",
        "CITEJURY_OWNER_API_KEY",
        "CITEJURY_OWNER_PASSWORD",
    }
    with running_postgresql() as url, running_queue(compose.services["redis"], folder) as redis:
        places = Places(folder, create_database(url, compose.services["postgres"]), redis)
        yield Stack(compose, places, url.rsplit("/", 1)[0] + "/argilla")


@pytest.fixture(scope="module")
def refused(stack: Stack, old: Old, folder: Path) -> str:
    """What is said of a backup with something that PostgreSQL cannot keep."""
    home, backup = folder / "nan", folder / "nan.zip"
    restore_home(old.backup, home)
    with closing(sqlite3.connect(home / DATABASE_FILE)) as database, database:
        database.execute("""UPDATE records SET metadata = '{"weight": NaN}' WHERE external_id = 'tab\tbed'""")
    write_backup(home, backup)
    said = stack.refusal(backup)
    assert stack.people() == set()
    return said


@pytest.fixture(scope="module")
def killed(stack: Stack, refused: str, old: Old) -> set[str]:
    """Who was in the database, where a first start had made an owner, after a restore that was killed late."""
    with closing(psycopg2.connect(stack.admin)) as database, database, database.cursor() as cursor:
        cursor.execute(
            "INSERT INTO users (id, first_name, username, role, api_key, password_hash, inserted_at, updated_at) "
            "VALUES (gen_random_uuid(), 'Owner', 'owner', 'owner', 'key', '', now(), now())"
        )
    with closing(psycopg2.connect(stack.admin)) as reader, reader.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM citejury_texts")  # in a transaction, so that nobody makes it anew
        process = stack.restore(old.backup)
        try:
            wait_until_it_waits(stack, process)
        finally:
            process.kill()
            process.communicate()
    for left in stack.places.folder.glob("citejury-*"):  # gone with the container
        shutil.rmtree(left)
    return stack.people()


def wait_until_it_waits(stack: Stack, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    with closing(psycopg2.connect(stack.admin)) as database, database.cursor() as cursor:
        database.autocommit = True
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'citejury_texts'::regclass"
        while cursor.execute(waiting) or cursor.fetchone() == (0,):
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            assert time.monotonic() < deadline


@pytest.fixture(scope="module")
def moved(stack: Stack, killed: set[str], old: Old) -> str:
    process = stack.restore(old.backup)
    said = process.communicate(timeout=PATIENCE_SECONDS)[1]
    assert process.returncode == 0, said
    return said


class New(NamedTuple):
    server: Server
    work: Work
    ended: int


Rows = dict[str, set[tuple[str | None, ...]]]


@pytest.fixture(scope="module")
def rows(old: Old) -> Rows:
    """By table what the embedded server has that cannot be made anew, each value as SQLite writes it."""
    found = {}
    with closing(sqlite3.connect(old.home / DATABASE_FILE)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        kept = [name for (name,) in tables if not name.startswith(("citejury_", "sqlite_"))]
        for table in (*kept, "citejury_epochs"):
            texts = ", ".join(f'CAST("{column}" AS TEXT)' for column in columns_of(database, table))
            found[table] = set(database.execute(f"SELECT {texts} FROM {table}"))
    return found


def columns_of(database: sqlite3.Connection, table: str) -> list[str]:
    return sorted(each[1] for each in database.execute(f"PRAGMA table_info({table})"))


@pytest.fixture(scope="module")
def restored_rows(stack: Stack, moved: str, rows: Rows) -> Rows:
    """What PostgreSQL has before anybody comes, each value as SQLite would write it."""
    found = {}
    columns = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s"
    with closing(psycopg2.connect(stack.admin)) as database, database.cursor() as cursor:
        for table in rows:
            cursor.execute(columns, (table,))
            texts = ", ".join(spelled(*each) for each in sorted(cursor.fetchall()))
            cursor.execute(f"SELECT {texts} FROM {table}")
            found[table] = set(cursor.fetchall())
    return found


def spelled(column: str, kind: str) -> str:
    match kind:
        case "uuid":
            return f"replace(\"{column}\"::text, '-', '')"
        case "boolean":
            return f'"{column}"::int::text'
        case "timestamp without time zone":
            return f"to_char(\"{column}\", 'YYYY-MM-DD HH24:MI:SS.US')"
    return f'"{column}"::text'


@pytest.fixture(scope="module")
def new(stack: Stack, restored_rows: object, old: Old, folder: Path) -> Iterator[New]:
    with running_argilla(stack.compose, stack.places) as url:
        server = Server(url, stack.compose.owner_api_key())
        work = seen(server, folder / "new", read_passwords(folder))
        ended = httpx.get(f"{url}/api/v1/me", headers={"Authorization": f"Bearer {old.ended}"}).status_code
        yield New(server, work, ended)


def test_an_impossible_row_is_named_and_a_killed_restore_runs_again(refused: str, killed: set[str], moved: str) -> None:
    assert r"the record 'tab\tbed' of the dataset 'theirs'" in refused
    assert "`records`, `metadata`" in refused
    assert killed == {"owner"}
    assert "records: 34\n" in moved
    assert moved.splitlines()[-1] == "Next: docker compose -f docker/compose.yaml up -d --build --wait"


def test_every_value_of_argilla_is_there_as_it_was(rows: Rows, restored_rows: Rows) -> None:
    assert len(rows) == 16
    assert all(rows.values())
    assert restored_rows == rows


def test_exports_history_keys_logins_queues_and_status_are_the_same(old: Old, new: New) -> None:
    assert {name: text.count(b"\n") for name, text in new.work.exports.items()} == {
        "retrieval.csv": 5,
        "grounding.csv": 3,
        "generation.csv": 4,
        "provenance.csv": 3,
    }
    assert new.work.exports == old.work.exports
    assert new.work.history == old.work.history
    assert new.work.history.count(b"\n") > 30
    assert new.work.keys == old.work.keys
    assert any(new.work.queues.values())
    assert (new.work.queues, new.work.status, new.ended) == (old.work.queues, old.work.status, 401)


def test_a_database_in_use_is_kept_and_another_owners_backup_names_a_way(stack: Stack, new: New, old: Old) -> None:
    said = stack.refusal(old.backup)
    assert "The database is in use already (users beside the owner: 2, workspaces: 2, webhooks: 1)" in said
    secrets = stack.compose.services["migrate"]["environment"]
    other = stack.compose.services | {
        "migrate": {
            **stack.compose.services["migrate"],
            "environment": {**secrets, "CITEJURY_OWNER_API_KEY": "another"},
        }
    }
    said = stack._replace(compose=stack.compose._replace(services=other)).refusal(old.backup)
    assert "docker/make-secrets --from" in said
    assert secrets["CITEJURY_OWNER_API_KEY"] not in said


def test_the_edge_and_her_own_part_are_the_same_there(new: New, folder: Path) -> None:
    with httpx.Client(base_url=new.server.url, trust_env=False, timeout=PATIENCE_SECONDS) as stranger:
        assert stranger.get("/api/v1/version", headers={"Host": "evil.example"}).status_code == 421
        assert stranger.post("/api/v1/workspaces", content=b"a" * 100_000).status_code == 413
        assert stranger.get("/sign-in", headers={"Range": "bytes=0-1"}).status_code == 200
        stranger.headers["X-Argilla-Api-Key"] = new.server.api_key
        assert stranger.get("/api/v1/me").headers["cache-control"] == "no-store"
        # PostgreSQL keeps no NUL; argilla-server answered with 500.
        assert stranger.post("/api/v1/workspaces", json={"name": "a\0b"}).status_code == 422
    name = ANNOTATORS[1]
    with Player(new.server.url, name, read_passwords(folder)[name]) as player:
        path = f"/me/datasets/{player.datasets()[WORKSPACE, '2-grounding-en']}/records/search"
        found = player.call("POST", path, params={"include": ["responses", "suggestions"], "limit": 500}, json={})
        record_ = player.call("GET", f"/records/{found['items'][0]['record']['id']}")
        assert {each["user_id"] for each in record_["responses"]} <= {player.call("GET", "/me")["id"]}
        assert not record_["metadata"]
