"""The history of responses on SQLite: every change is in it, whoever made it, and nobody changes it."""

import contextlib
import sqlite3
from collections.abc import Iterator

import httpx
import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.units import HISTORY_PATH
from annotation.server.home.folder import DATABASE_FILE, EVENTS_FILE
from annotation.server.launch import ServerHandle
from pipeline.core.errors import ArgillaError, NotAllowedError
from tests.support.export_bench import record
from tests.support.history_checks import (
    Place,
    check_a_deleted_dataset_can_be_erased,
    check_cascades,
    check_every_way_to_change_a_response,
    check_nothing_is_changed,
    place,
)

pytestmark = pytest.mark.server


@pytest.fixture(params=[pytest.param("OFF", id="plain"), pytest.param("ON", id="recursive", marks=pytest.mark.rare)])
def here(request: pytest.FixtureRequest, argilla_server: ServerHandle, client: Argilla) -> Iterator[Place]:
    """A place of the test's own; its way into the database has SQLite's recursive triggers off and on."""
    with contextlib.closing(sqlite3.connect(argilla_server.home / DATABASE_FILE, timeout=60)) as database:
        database.execute("PRAGMA foreign_keys = ON")
        database.execute(f"PRAGMA recursive_triggers = {request.param}")
        yield place(client, argilla_server.url, database)


def test_every_way_to_change_a_response_is_a_line(here: Place) -> None:
    check_every_way_to_change_a_response(here)


def test_responses_that_go_with_something_else_are_told(here: Place) -> None:
    check_cascades(here)


def test_nobody_changes_the_history(here: Place) -> None:
    check_nothing_is_changed(here, sqlite3.IntegrityError)


def test_the_history_goes_only_after_its_dataset_is_gone(here: Place, argilla_server: ServerHandle) -> None:
    events = argilla_server.home / EVENTS_FILE
    before = len(events.read_text(encoding="utf-8").splitlines())
    check_a_deleted_dataset_can_be_erased(here)
    (line,) = (each for each in events.read_text(encoding="utf-8").splitlines()[before:] if "history" in each)
    assert line.endswith(" history of the deleted dataset 3-generation-en erased by owner")


def test_annotators_read_nothing_pages_are_short_and_what_deleted_datasets_leave_stays(here: Place) -> None:
    with here.herself("anna") as anna:
        for workspace in (here.workspace, "no such workspace"):
            with pytest.raises(NotAllowedError):
                anna.request("GET", HISTORY_PATH, params={"workspace": workspace})
    assert httpx.get(f"{here.url}/api/v1{HISTORY_PATH}", params={"workspace": here.workspace}).status_code == 401
    odd = 'r"1\\ “ä”\n'
    here.put(record("generation", odd, here.said("anna", notes=odd)))
    (change,) = here.changes()
    assert (change["external_id"], change["values_after"]["notes"]["value"]) == (odd, odd)
    assert (change["status_before"], change["values_before"]) == (None, None)
    with pytest.raises(ArgillaError, match="500"):
        here.owner.request("GET", HISTORY_PATH, params={"workspace": here.workspace, "limit": 501})
    here.put(record("generation", "r1", here.said("anna")))
    here.owner.request("DELETE", f"/datasets/{here.dataset}")
    stored = here.stored(here.dataset)
    replace = f"INSERT OR REPLACE INTO citejury_history_datasets VALUES ('{stored}', 'x', '{stored}', 'x', NULL)"
    with pytest.raises(sqlite3.IntegrityError, match="only added to"):
        here.execute(replace)
    here.owner.request("DELETE", HISTORY_PATH, params={"workspace": here.workspace})
    with pytest.raises(sqlite3.IntegrityError, match="only added to"):
        here.execute(
            f"INSERT OR REPLACE INTO citejury_history_erased (dataset_id, at) VALUES ('{stored}', '2026-01-01')"
        )
