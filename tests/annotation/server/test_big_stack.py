"""On PostgreSQL and Redis, our commands do what they do on the embedded server, byte for byte."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

import httpx
import psycopg2
import pytest

from annotation.server.launch import ServerHandle
from tests.support.big_stack import (
    ANNOTATORS,
    PATIENCE_SECONDS,
    Compose,
    Places,
    Server,
    campaign,
    create_database,
    dataset_of,
    export,
    read_compose,
    running_argilla,
    running_queue,
    set_clock,
    wait_for_the_worker,
)
from tests.support.campaign_players import Player
from tests.support.postgresql import running_postgresql

pytestmark = [pytest.mark.server, pytest.mark.rare]


@pytest.fixture(scope="module")
def embedded(argilla_server: ServerHandle, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the embedded server exports."""
    server = Server(argilla_server.url, argilla_server.owner_api_key)
    folder = tmp_path_factory.mktemp("embedded")
    campaign(server, folder, "stack")
    with closing(sqlite3.connect(argilla_server.home / "data" / "argilla.db", timeout=60)) as database:
        set_clock(database, "stack", "?", lambda moment: moment.isoformat(" ", "microseconds"))
    return export(server, folder / "export", "stack")


class Machine(NamedTuple):
    """PostgreSQL and Redis at work, for Argilla to come."""

    places: Places
    database_url: str

    def compose(self) -> Compose:
        """The compose file, always with the same secrets."""
        return read_compose(self.places.folder / "docker")

    def export(self, server: Server, workspace: str) -> dict[str, bytes]:
        """The three files of an export of a workspace whose submissions came at the usual moments."""
        with closing(psycopg2.connect(self.database_url)) as database:
            set_clock(database, workspace, "%s", lambda moment: moment)
        return export(server, self.places.folder / f"export of {workspace}", workspace)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("stack")
    compose = read_compose(folder / "docker")
    asked = compose.services["postgres"]["environment"]
    login = f"{asked['POSTGRES_USER']}:{asked['POSTGRES_PASSWORD']}"
    with running_postgresql() as url, running_queue(compose.services["redis"], folder) as redis:
        database = create_database(url, compose.services["postgres"])
        yield Machine(Places(folder, database, redis), f"postgresql://{login}@{database}/{asked['POSTGRES_DB']}")


@pytest.fixture(scope="module")
def on_postgresql(machine: Machine) -> Iterator[Server]:
    """Our engine on PostgreSQL, with a campaign done."""
    compose = machine.compose()
    with running_argilla(compose, machine.places) as url:
        server = Server(url, compose.owner_api_key())
        campaign(server, machine.places.folder, "stack")
        yield server


def test_postgresql_gives_the_same_export(embedded: dict[str, bytes], machine: Machine, on_postgresql: Server) -> None:
    assert {name: text.count(b"\n") for name, text in embedded.items()} == {
        "retrieval.csv": 13,
        "grounding.csv": 7,
        "generation.csv": 7,
        "provenance.csv": 4,
    }
    assert machine.export(on_postgresql, "stack") == embedded


def test_status_is_the_same_on_postgresql(argilla_server: ServerHandle, embedded: Any, on_postgresql: Server) -> None:
    here = Server(argilla_server.url, argilla_server.owner_api_key)
    servers = (here, on_postgresql)
    shown = [server.run("annotation", "status", "--workspace", "stack").splitlines() for server in servers]
    assert on_postgresql.url in shown[1][0]
    assert shown[0][1:] == shown[1][1:]


def test_the_worker_does_the_jobs_of_a_server_on_postgresql(on_postgresql: Server) -> None:
    wait_for_the_worker(on_postgresql, dataset_of(on_postgresql, "stack", "1-retrieval-en"), len(ANNOTATORS), 6)


def test_the_edge_refuses_on_postgresql_what_it_refuses_elsewhere(on_postgresql: Server) -> None:
    with httpx.Client(base_url=on_postgresql.url, trust_env=False, timeout=PATIENCE_SECONDS) as stranger:
        assert stranger.get("/api/v1/version", headers={"Host": "evil.example"}).status_code == 421
        assert stranger.post("/api/v1/workspaces", content=b"a" * 100_000).status_code == 413
        assert stranger.get("/sign-in", headers={"Range": "bytes=0-1"}).status_code == 200
        stranger.headers["X-Argilla-Api-Key"] = on_postgresql.api_key
        assert stranger.get("/api/v1/me").headers["cache-control"] == "no-store"
        # PostgreSQL keeps no NUL; argilla-server answered with 500.
        assert stranger.post("/api/v1/workspaces", json={"name": "a\0b"}).status_code == 422


def test_an_annotator_sees_her_own_response_only_on_postgresql(machine: Machine, on_postgresql: Server) -> None:
    passwords = json.loads((machine.places.folder / "passwords.json").read_text(encoding="utf-8"))
    name = ANNOTATORS[0]
    with Player(on_postgresql.url, name, passwords[name]) as player:
        (page,) = player.pages(player.datasets()["stack", "2-grounding-en"], {})
        record_ = player.call("GET", f"/records/{page[0]['record']['id']}")
        assert [each["user_id"] for each in record_["responses"]] == [player.call("GET", "/me")["id"]]
        assert not record_["metadata"]
