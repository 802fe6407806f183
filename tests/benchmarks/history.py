"""Answers in bulk with the history of responses against the same without it: the larger of two ratios of the fastest.

In turns on one server: its triggers on responses are dropped and made again by their own statements, and a first small
request after that lets the server read the tables' definitions anew. One request is
an annotator's `POST /me/responses/bulk` of 100 answers, new and then sent again; the other is the records' bulk PUT of
200 records with an answer each. The fastest of the rounds tells what the history costs, and not who else was at work.
"""

import contextlib
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

from annotation.argilla.client import Argilla
from annotation.argilla.display import to_records
from annotation.argilla.labels import LABELS
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.server.home.folder import DATABASE_FILE
from annotation.server.patches import history
from annotation.server.sql import read_sql
from tests.benchmarks.measure import embedded, log, report, seconds
from tests.benchmarks.seeding import made_up

ROUNDS = 14
PUT, BULK = 200, 100
ANNOTATOR = "anna"
TRIGGERS = tuple(f"citejury_history_{event}" for event in ("insert", "update", "delete"))
VALUES = {label: {"value": "yes"} for label in LABELS["generation"]}


def switch(database: Path, on: bool) -> None:
    """Make the triggers on responses, or drop them."""
    with contextlib.closing(sqlite3.connect(database, timeout=60)) as connection, connection:
        for trigger in TRIGGERS:
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        for statement in read_sql(history.__file__, "sqlite")["statements"] if on else ():
            if statement.startswith(tuple(f"CREATE TRIGGER {trigger} " for trigger in TRIGGERS)):
                connection.execute(statement)


def send(client: Argilla, method: str, path: str, items: list[dict[str, Any]]) -> float:
    """Seconds of a request, after a first small one."""

    def request(items: list[dict[str, Any]]) -> None:
        answer = client.request(method, path, json={"items": items})
        if len(answer["items"]) != len(items) or any(each.get("error") for each in answer["items"]):
            raise SystemExit("an answer was not taken")

    request(items[:2])
    return seconds(lambda: request(items[2:]))


def main() -> None:
    taken: defaultdict[tuple[str, bool], list[float]] = defaultdict(list)
    with embedded() as (_, server, owner):
        set_up(owner, "benchmark", annotators=[ANNOTATOR], min_submitted=2)
        users = {user["username"]: user for user in owner.request("GET", "/users")["items"]}
        dataset = find_datasets(owner, "benchmark")["generation"].id
        wording, database = read_wording("en"), server.home / DATABASE_FILE
        said = {"user_id": users["owner"]["id"], "status": "submitted", "values": VALUES}
        with Argilla(server.url, users[ANNOTATOR]["api_key"]) as annotator:
            for number in range(2 * ROUNDS):
                on = number % 4 in {1, 2}  # neither is always the first of two on a growing database
                switch(database, on)
                bodies = [to_records(made_up(number * PUT + each), wording)["generation"][0] for each in range(PUT)]
                items = [{**body, "responses": [said]} for body in bodies]
                taken["PUT", on].append(send(owner, "PUT", f"/datasets/{dataset}/records/bulk", items))
                page = owner.request(
                    "GET", f"/datasets/{dataset}/records", params={"offset": number * PUT, "limit": BULK}
                )
                answers = [{"record_id": each["id"], "status": "submitted", "values": VALUES} for each in page["items"]]
                for _ in ("new", "again"):
                    taken["POST", on].append(send(annotator, "POST", "/me/responses/bulk", answers))
    ratios = []
    for call in ("PUT", "POST"):
        with_it, without = (min(taken[call, on]) for on in (True, False))
        ratios.append(with_it / without)
        log(f"{call}: {1000 * with_it:.0f} ms with the history, {1000 * without:.0f} ms without")
    report("history", max(ratios), 1.1)
