"""`annotation serve` is killed while annotators submit: nothing that was acknowledged is lost or doubled."""

import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import httpx
import psutil
import pytest

from annotation.client import Argilla
from annotation.embedded.home import read_or_make_secrets
from annotation.labels import LABELS
from annotation.setup import find_datasets, set_up

pytestmark = pytest.mark.server

WORKSPACE = "soak"
ANNOTATORS = [f"annotator-{number}" for number in range(12)]
SUBMITTED_BEFORE_KILL = 30
PATIENCE_SECONDS = 120

Answers = dict[tuple[str, str], str]
"""The notes of submitted responses by record and annotator."""


@pytest.mark.parametrize("kills", [2, pytest.param(30, marks=pytest.mark.soak)])
def test_every_acknowledged_response_outlives_kills(tmp_path: Path, kills: int) -> None:
    acknowledged: Answers = {}
    for kill in range(kills):
        with serving(tmp_path) as (process, owner):
            dataset = make_dataset(owner) if kill == 0 else find_datasets(owner, WORKSPACE)["generation"].id
            assert stored_answers(owner, dataset).items() >= acknowledged.items()
            records = add_records(owner, dataset)
            users = owner.request("GET", "/users")["items"]
            keys = {user["id"]: user["api_key"] for user in users if user["role"] == "annotator"}
            submitted = threading.Semaphore(0)
            with ThreadPoolExecutor(len(ANNOTATORS)) as pool:
                work = [pool.submit(submit_all, owner.api_url, *user, records, submitted) for user in keys.items()]
                for _ in range(SUBMITTED_BEFORE_KILL):
                    assert submitted.acquire(timeout=PATIENCE_SECONDS)
                stop(process, signal.SIGKILL)
                for done in work:
                    acknowledged |= done.result()
    with serving(tmp_path) as (process, owner):
        assert stored_answers(owner, dataset).items() >= acknowledged.items()
        stop(process, signal.SIGTERM)
    assert len(acknowledged) >= kills * SUBMITTED_BEFORE_KILL


def make_dataset(owner: Argilla) -> str:
    set_up(owner, WORKSPACE, annotators=ANNOTATORS, min_submitted=len(ANNOTATORS))
    return find_datasets(owner, WORKSPACE)["generation"].id


def add_records(owner: Argilla, dataset: str) -> list[str]:
    """Ids of ten new records."""
    items = [{"external_id": str(uuid4()), "fields": {"query": "q", "answer": "a"}} for _ in range(10)]
    stored = owner.request("PUT", f"/datasets/{dataset}/records/bulk", json={"items": items})["items"]
    return [item["id"] for item in stored]


def submit_all(url: str, user: str, key: str, records: list[str], submitted: threading.Semaphore) -> Answers:
    """What the server acknowledged of one annotator's work before it was killed."""
    acknowledged: Answers = {}
    headers = {"X-Argilla-Api-Key": key}
    with httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=PATIENCE_SECONDS) as client:
        for record in records:
            notes = f"{user} on {record}"
            values = {label: {"value": "yes"} for label in LABELS["generation"]} | {"notes": {"value": notes}}
            try:
                reply = client.post(f"/records/{record}/responses", json={"status": "submitted", "values": values})
            except httpx.TransportError:
                return acknowledged
            assert reply.status_code == 201, reply.text
            acknowledged[record, user] = notes
            submitted.release()
    return acknowledged


def stored_answers(owner: Argilla, dataset: str) -> Answers:
    """What the server holds; no annotator may have two responses to one record."""
    found: Answers = {}
    for _, page in owner.record_pages(dataset):
        for record in page:
            for response in record["responses"]:
                key = (record["id"], response["user_id"])
                assert key not in found
                found[key] = response["values"]["notes"]["value"]
    return found


@contextlib.contextmanager
def serving(tmp_path: Path) -> Iterator[tuple["subprocess.Popen[str]", Argilla]]:
    """`citejury annotation serve` once it has said where it is, and the owner's connection."""
    command = [sys.executable, "-c", "from annotation.cli_serve import serve; serve()"]
    home = tmp_path / "home"
    with subprocess.Popen([*command, "--home", str(home), "--port", "0"], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            url = next(line for line in process.stderr if line.startswith("Argilla is at")).split()[-1]
            with Argilla(url, read_or_make_secrets(home).owner_api_key) as owner:
                yield process, owner
        finally:
            process.kill()


def stop(process: "subprocess.Popen[str]", number: signal.Signals) -> None:
    """Send the signal; every process of the server must end."""
    parts = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    _, alive = psutil.wait_procs(parts, timeout=PATIENCE_SECONDS)
    assert alive == []
