"""Set-up that is killed after each change, and started again, ends like a set-up that nobody disturbed."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from annotation.argilla.client import Argilla
from annotation.push.push import push_records
from tests.support.lossy_link import Forward, lossy_link
from tests.support.places import ROOT
from tests.support.setup_bench import ANSWER, answered

pytestmark = [pytest.mark.server, pytest.mark.rare]
PEOPLE = ("anna", "ben")
MOST_KILLS = 80


class Killing(Forward):
    """Passes requests on; kills the client after each one that changes something, before it learns of the answer."""

    killer: "Killer"

    def reply(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        if self.command != "GET" and self.killer.armed:
            self.killer.kill(f"{self.command} {self.path}")
        else:
            super().reply(status, headers, body)


class Killer:
    """Commands in processes of their own, and the changes after which they were killed."""

    def __init__(self, driver: "subprocess.Popen[str]") -> None:
        self.driver = driver
        self.process = 0
        self.started = threading.Event()
        self.armed = False
        self.killed: list[str] = []

    def run(self, *words: str, armed: bool = False) -> int:
        """How the command ended; 0 where it came to its end."""
        assert self.driver.stdin
        assert self.driver.stdout
        self.started.clear()
        self.armed = armed
        self.driver.stdin.write(" ".join(words) + "\n")
        self.driver.stdin.flush()
        self.process = int(self.driver.stdout.readline())
        self.started.set()
        return int(self.driver.stdout.readline())

    def kill(self, change: str) -> None:
        self.started.wait()
        self.armed = False
        self.killed.append(change)
        os.kill(self.process, signal.SIGKILL)


@pytest.fixture
def killer(argilla_server, tmp_path: Path) -> Iterator[Killer]:
    with lossy_link(argilla_server.url) as link:
        environment = {
            **os.environ,
            "ARGILLA_API_URL": link.url,
            "ARGILLA_API_KEY": argilla_server.owner_api_key,
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-m", "tests.support.setup_driver"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, cwd=tmp_path, env=environment, **pipes) as driver:
            killer = Killer(driver)
            link.RequestHandlerClass = type("Handler", (Killing,), {"killer": killer})
            yield killer
            driver.stdin.close()


def campaign_words(workspace: str) -> list[str]:
    people = [word for name in PEOPLE for word in ("--annotator", f"{workspace}-{name}")]
    return ["annotation", "setup", "--workspace", workspace, "--passwords", f"{workspace}.json", "--yes", *people]


def everything(owner: Argilla, workspace: str) -> dict[str, Any]:
    """What Argilla has of the workspace, without ids and times."""
    workspace_id = owner.find_workspace(workspace)
    datasets = owner.datasets(workspace_id)
    names = {dataset["id"]: dataset["name"] for dataset in datasets}
    ids = re.compile("|".join(names))
    kept = ("name", "title", "description", "required", "settings", "visible_for_annotators")
    found = {}
    for dataset in datasets:
        path = f"/datasets/{dataset['id']}"
        parts = [
            [{key: part[key] for key in kept if key in part} for part in owner.request("GET", each)["items"]]
            for each in (f"{path}/fields", f"{path}/questions", f"/me{path}/metadata-properties")
        ]
        records = [
            [record["external_id"], record["fields"], record["metadata"], len(record["responses"])]
            for _, page in owner.record_pages(dataset["id"])
            for record in page
        ]
        metadata = ids.sub(lambda found: names[found[0]], json.dumps(dataset["metadata"], sort_keys=True))
        own = [dataset[key] for key in ("status", "guidelines", "distribution", "allow_extra_metadata")]
        found[dataset["name"]] = [own, metadata, parts, records]
    people = sorted(
        (user["username"].removeprefix(workspace), user["role"], user["first_name"].removeprefix(workspace))
        for user in owner.workspace_users(workspace_id)
    )
    return {"datasets": found, "people": people}


def test_killed_at_each_change_it_ends_alike(owner: Argilla, killer: Killer, workspace: str, tmp_path: Path) -> None:
    quiet = f"{workspace}-quiet"
    assert killer.run(*campaign_words(quiet)) == 0
    killer.killed = []
    while (ended := killer.run(*campaign_words(workspace), armed=True)) == signal.SIGKILL:
        assert len(killer.killed) < MOST_KILLS
    assert ended == 0
    assert len(killer.killed) > 30
    assert len(set(killer.killed)) > 10
    assert everything(owner, workspace) == everything(owner, quiet)
    passwords = json.loads((tmp_path / f"{workspace}.json").read_text(encoding="utf-8"))
    for name in PEOPLE:
        login = {"username": f"{workspace}-{name}", "password": passwords[f"{workspace}-{name}"]}
        assert httpx.post(f"{owner.api_url}/api/v1/token", data=login, trust_env=False).status_code == 201


def test_a_new_version_killed_at_each_change_has_records_once(owner: Argilla, killer: Killer, workspace: str) -> None:
    quiet = f"{workspace}-quiet"
    for each in (workspace, quiet):
        assert killer.run(*campaign_words(each)) == 0
        push_records(owner, each, [ANSWER, answered("r2")])
    again = ("--new-version", "generation")
    assert killer.run(*campaign_words(quiet), *again) == 0
    killer.killed = []
    while "3-generation-en-v2" not in {each["name"] for each in owner.datasets(owner.find_workspace(workspace))}:
        assert killer.run(*campaign_words(workspace), *again, armed=True) == signal.SIGKILL
        assert len(killer.killed) < MOST_KILLS
    assert len(killer.killed) > 10
    assert everything(owner, workspace) == everything(owner, quiet)
