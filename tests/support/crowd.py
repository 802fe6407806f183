"""Many annotators at once on one server, over real HTTP: each asks for her queue, as the page does, and submits."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from uuid import uuid4

import httpx

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from tests.support.queue_player import PENDING

TASK = "generation"
PATIENCE_SECONDS = 240
PAGE = {"offset": 0, "limit": 10, "include": ["responses", "suggestions"]}
Answers = dict[tuple[str, str], str]
"""The notes of submitted responses, by record and annotator."""


class Crowd(NamedTuple):
    dataset: str
    keys: dict[str, str]
    """API key by user id."""


class Work(NamedTuple):
    acknowledged: Answers
    refused: list[tuple[int, str]]
    """Status and text of each answer but the expected one."""
    seconds: list[float]
    """Time of each submission that was acknowledged."""


def gather(owner: Argilla, workspace: str, annotators: int, min_submitted: int) -> Crowd:
    """A workspace with so many annotators, and its dataset, still empty."""
    names = [f"{workspace}-{number}" for number in range(annotators)]
    set_up(owner, workspace, annotators=names, min_submitted=min_submitted)
    return find_crowd(owner, workspace)


def find_crowd(owner: Argilla, workspace: str) -> Crowd:
    users = owner.request("GET", "/users")["items"]
    keys = {user["id"]: user["api_key"] for user in users if user["username"].startswith(f"{workspace}-")}
    return Crowd(find_datasets(owner, workspace)[TASK].id, keys)


def add_records(owner: Argilla, crowd: Crowd, count: int) -> list[str]:
    items = [{"external_id": str(uuid4()), "fields": {"query": "q", "answer": "a"}} for _ in range(count)]
    stored = owner.request("PUT", f"/datasets/{crowd.dataset}/records/bulk", json={"items": items})["items"]
    return [item["id"] for item in stored]


def all_at_once(url: str, crowd: Crowd, is_enough: Callable[[], bool]) -> list[Work]:
    """What each annotator did; each goes on until `is_enough`, asked after each submission, says so."""
    together = threading.Barrier(len(crowd.keys))
    with ThreadPoolExecutor(len(crowd.keys)) as pool:
        people = crowd.keys.items()
        begun = [pool.submit(work_through, url, crowd.dataset, *user, together, is_enough) for user in people]
        return [work.result() for work in begun]


def work_through(
    url: str, dataset: str, user: str, key: str, together: threading.Barrier, is_enough: Callable[[], bool]
) -> Work:
    """One annotator's work, until her queue is empty, the server is gone, or it is enough."""
    work = Work({}, [], [])
    with connection(url, key) as client:
        together.wait()
        try:
            while queue := ask_for_queue(client, dataset, work):
                for record in queue:
                    notes = f"{user} on {record}"
                    begun = time.perf_counter()
                    reply = client.post(f"/records/{record}/responses", json=response_body(notes))
                    if reply.status_code == httpx.codes.CREATED:
                        work.acknowledged[record, user] = notes
                        work.seconds.append(time.perf_counter() - begun)
                    else:
                        work.refused.append((reply.status_code, reply.text))
                    if is_enough():
                        return work
        except httpx.TransportError:
            return work
    return work


def connection(url: str, key: str) -> httpx.Client:
    return httpx.Client(
        base_url=f"{url}/api/v1", headers={"X-Argilla-Api-Key": key}, timeout=PATIENCE_SECONDS, verify=False
    )


def ask_for_queue(client: httpx.Client, dataset: str, work: Work) -> list[str]:
    asked = {"query": {}, "filters": {"and": PENDING}}
    reply = client.post(f"/me/datasets/{dataset}/records/search", params=PAGE, json=asked)
    if reply.status_code != httpx.codes.OK:
        work.refused.append((reply.status_code, reply.text))
        return []
    return [item["record"]["id"] for item in reply.json()["items"]]


def response_body(notes: str) -> dict[str, Any]:
    values = {label: {"value": "yes"} for label in LABELS[TASK]} | {"notes": {"value": notes}}
    return {"status": "submitted", "values": values}


def acknowledged_of(works: Sequence[Work]) -> Answers:
    """Every response that the server acknowledged to anybody."""
    return {key: notes for work in works for key, notes in work.acknowledged.items()}


def check_books(owner: Argilla, dataset: str, min_submitted: int, acknowledged: Answers) -> Answers:
    """What the server holds: all that it acknowledged, nobody twice on a record, and every count as it should be."""
    found: Answers = {}
    statuses = Counter(pending=0, completed=0)
    for _, page in owner.record_pages(dataset):
        for record in page:
            statuses[record["status"]] += 1
            is_complete = len(record["responses"]) >= min_submitted
            assert record["status"] == ("completed" if is_complete else "pending"), record["responses"]
            for response in record["responses"]:
                key = (record["id"], response["user_id"])
                assert key not in found
                found[key] = response["values"]["notes"]["value"]
    assert found.items() >= acknowledged.items()
    progress = owner.request("GET", f"/datasets/{dataset}/progress")
    assert {status: progress[status] for status in statuses} == statuses
    people = owner.request("GET", f"/datasets/{dataset}/users/progress")["users"]
    counted = sum(count for user in people for status in statuses for count in user.get(status, {}).values())
    assert counted == len(found)
    return found
