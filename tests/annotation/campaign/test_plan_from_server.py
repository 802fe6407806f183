"""Hours of a plan from what annotators did on a real server."""

import contextlib
import json
import sqlite3
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TASKS, TaskName
from annotation.campaign.datasets import find_datasets
from annotation.campaign.hours import read_times
from annotation.campaign.narratives import read_population
from annotation.push.record_sources import read_source
from tests.support.export_bench import make_user
from tests.support.places import ROOT
from tests.support.planned_records import planned_record, planned_study, write_planned
from tests.support.setup_bench import held

pytestmark = pytest.mark.server

MONDAY = datetime(2026, 11, 2, 8, tzinfo=UTC)
FIRST = 20


@pytest.fixture
def run(command):
    return lambda *words, code=0: command(*([] if words[0] == "study" else ["annotation"]), *words, code=code)


class Crew:
    """Annotators on the server whose submissions get the times that they would have taken."""

    def __init__(self, server, owner: Argilla, workspace: str, people: int) -> None:
        self.server, self.owner = server, owner
        self.datasets = find_datasets(owner, workspace)
        users = [make_user(owner, f"crew{number}") for number in range(people)]
        for user in users:
            path = f"/workspaces/{owner.find_workspace(workspace)}/users"
            owner.request("POST", path, json={"user_id": user["id"]})
        keys = {user["id"]: user["api_key"] for user in owner.request("GET", "/users")["items"]}
        self.keys = [keys[user["id"]] for user in users]
        self.waiting: defaultdict[int, list[tuple[dict[str, Any], datetime]]] = defaultdict(list)

    def records(self, task: TaskName) -> list[tuple[str, str]]:
        """Argilla's id and ours of each record, in the order in which they came."""
        pages = self.owner.record_pages(self.datasets[task].id, include=())
        return [(each["id"], each["external_id"]) for _, page in pages for each in page]

    def submit(self, person: int, task: TaskName, record_id: str, yes: bool, moment: datetime) -> None:
        """One submission, and when it is to have been made."""
        values = {label: {"value": "yes" if yes else "no"} for label in LABELS[task]}
        self.waiting[person].append(({"record_id": record_id, "status": "submitted", "values": values}, moment))

    def act(self) -> None:
        """Submit it all, and give it its times."""
        rows = []
        for person, waiting in self.waiting.items():
            with Argilla(self.server.url, self.keys[person]) as argilla:
                items = [item for item, _ in waiting]
                answer = argilla.request("POST", "/me/responses/bulk", json={"items": items})
            for each, (_, moment) in zip(answer["items"], waiting, strict=True):
                stamp = moment.replace(tzinfo=None).isoformat(" ", "microseconds")
                rows.append((stamp, each["item"]["id"].replace("-", "")))
        with contextlib.closing(sqlite3.connect(self.server.home / "data" / "argilla.db", timeout=60)) as database:
            database.executemany("UPDATE responses SET updated_at = ? WHERE id = ?", rows)
            database.commit()


def planned(out: str = "plan") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(out, "plan.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.rare
def test_the_demos_hours_are_within_a_quarter_at_last(argilla_server, owner: Argilla, ready: str, command, run) -> None:
    """Four people of different pace, tasks that take other times than their texts say, coffee, and a day in between."""
    demo = ROOT / "exports" / "demo_data"
    command("pipeline", "ask", demo / "narratives.csv", "--out", "answers", "--replay", demo / "payloads")
    run("push", "answers", "--workspace", ready)
    assumed = {
        (task, record.record_uuid): load.seconds / load.units
        for record in read_population(read_source(Path("answers"), []), lambda record: record.language).records
        for task, load in record.loads.items()
        if load.units
    }
    crew = Crew(argilla_server, owner, ready, 4)
    generator = np.random.default_rng(16)
    paces = np.exp(generator.normal(0, 0.35, 4))
    slower = {"retrieval": 0.6, "grounding": 2.1, "generation": 1.4}
    clocks = [MONDAY + timedelta(minutes=7 * person) for person in range(4)]
    total = 0.0
    for task in TASKS:
        for person, clock in enumerate(clocks):
            clocks[person] = clock + timedelta(hours=20)
        for place, (record_id, external_id) in enumerate(crew.records(task)):
            person = place % 4
            chance = float(np.exp(generator.normal(-0.18, 0.6)))
            seconds = assumed[task, external_id.partition(":")[0]] * slower[task] * float(paces[person]) * chance
            total += seconds
            if place < FIRST:
                coffee = timedelta(minutes=25) if place == 11 else timedelta(0)
                clocks[person] += timedelta(seconds=seconds) + coffee
                crew.submit(person, task, record_id, place % 2 == 0, clocks[person])
    crew.act()
    run("study", "plan", "answers", "--out", "assumed")
    result = run("study", "plan", "answers", "--out", "plan", "--from", argilla_server.url, "--workspace", ready)
    hours = planned()["hours"]
    assert hours["expected"] == pytest.approx(total / 3600, rel=0.25)
    assert hours["low"] <= total / 3600 <= hours["high"]
    assert abs(planned("assumed")["hours"]["expected"] * 3600 / total - 1) > abs(hours["expected"] * 3600 / total - 1)
    assert {each["basis"] for each in planned()["paces"]} == {"measured"}
    assert "is assumed from the length" not in result.stderr


def test_pauses_interruptions_and_controls_are_not_timed(argilla_server, owner: Argilla, ready: str, run) -> None:
    write_planned(Path("records.jsonl"), [planned_record(f"N{n}", passages=0) for n in range(8)])
    run("push", "records.jsonl", "--workspace", ready)
    crew = Crew(argilla_server, owner, ready, 2)
    stored = held(owner, ready)
    control = {"citejury_assignment": {"purpose": "control", "answers": {}}}
    owner.request("PATCH", f"/records/{stored[3]['id']}", json={"metadata": stored[3]["metadata"] | control})
    moment = MONDAY
    for record, seconds in zip(stored, (5, 20, 22, 9, 24, 1700, 4000, 26), strict=True):
        moment += timedelta(seconds=seconds)
        crew.submit(0, "generation", record["id"], True, moment)
    crew.act()
    timed = read_times(owner, [ready])
    assert {cell: sorted(seconds for _, seconds in taken) for cell, taken in timed.items()} == {
        ("generation", "en"): [20.0, 22.0, 24.0, 26.0]
    }


def test_a_server_without_our_datasets_is_refused_in_a_line(argilla_server, owner: Argilla, workspace, run) -> None:
    owner.request("POST", "/workspaces", json={"name": workspace})
    write_planned(Path("records.jsonl"), planned_study(12))
    words = ("study", "plan", "records.jsonl", "--out", "plan", "--from", argilla_server.url, "--workspace", workspace)
    assert "no pace can be measured" in run(*words, code=1).stderr
    assert not Path("plan").exists()
