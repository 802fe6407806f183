"""A whole small campaign, planned, practised, controlled, escalated and adjudicated, acted over HTTP by six people.

Four label with care, one says yes to everything, one adjudicates. What they err is drawn by a hash; from a practice
case each of the four learns the labels that it explains. Clocks are simulated: Argilla's stamps are moved to when each
submission would have been made. `pytest -m soak -s tests/product/test_soak_study.py` prints the figures.
"""

import contextlib
import csv
import hashlib
import json
import sqlite3
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TASKS, TaskName, broken_rules
from annotation.argilla.units import Assignment, assignment_of
from exports.cli import main
from pipeline.records.schema import Passage, Provenance, QueryResponse, Source, join_context
from tests.support.campaign_players import Player, read_rows
from tests.support.planned_records import write_planned
from tests.support.queue_player import PENDING

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

pytestmark = [pytest.mark.server, pytest.mark.soak]
PROVIDERS = ("openai", "claude", "gemini")
CAREFUL = ("anna", "ben", "cem", "dora")
BAD, ADJUDICATOR = "eve", "zoe"
UNTAUGHT, TAUGHT = 0.3, 0.08
SECONDS: dict[TaskName, float] = {"retrieval": 35.0, "grounding": 120.0, "generation": 60.0}
MONDAY = datetime(2026, 11, 2, 8, tzinfo=UTC)


def drawn(*words: str) -> float:
    """A number from 0 up to 1 that only the words decide."""
    return int.from_bytes(hashlib.sha256("|".join(words).encode()).digest()[:6], "big") / 2**48


def answered(narrative: int, provider: str) -> QueryResponse:
    chunks = tuple(
        Passage(
            chunk_id=f"{narrative:04x}{rank:012x}#0",
            doc_id=f"{narrative:04x}{rank:012x}",
            chunk_rank=rank,
            text=f"The bridge N{narrative} was opened in {1900 + narrative}. It has {rank + 40} lanes, says "
            f"guide {rank}, and a footway for everybody who comes by foot.",
            url=f"https://bridges{rank}.example/{narrative}",
        )
        for rank in range(1, 4)
    )
    number = 1000 * narrative + 10 * PROVIDERS.index(provider)
    return QueryResponse(
        record_uuid=str(UUID(int=(number + 7) << 80 | narrative, version=4)),
        query=f"Was the bridge N{narrative} opened in {1900 + narrative}?",
        answer=f"Yes, says {provider[::-1]}. It was opened in {1900 + narrative} and has 41 lanes [1] [2].",
        language="en",
        sources=tuple(
            Source(n=n, url=f"https://bridges{n}.example/{narrative}", host=f"bridges{n}.example", state="read")
            for n in (1, 2)
        ),
        chunks=chunks,
        context_set=join_context(chunks),
        provenance=Provenance(model_name=provider, narrative_id=f"N{narrative}", narrative_type="misinformation"),
    )


class Person(Player):
    def __init__(self, study: "Study", who: str, password: str) -> None:
        super().__init__(study.server.url, study.names[who], password)
        study.stack.enter_context(self)
        self.study, self.who = study, who
        self.clock = MONDAY + timedelta(minutes=11 * len(study.people))
        self.pace = float(np.exp(study.generator.normal(0, 0.25)))
        self.learned: set[tuple[TaskName, str]] = set()

    def next_record(self, dataset_id: str) -> dict[str, Any] | None:
        body = {"query": {}, "filters": {"and": PENDING}}
        found = self.call("POST", f"/me/datasets/{dataset_id}/records/search?offset=0&limit=10", json=body)
        return found["items"][0]["record"] if found["items"] else None

    def work(self, task: TaskName, dataset_id: str, most: int = 100_000) -> int:
        """Submit what waits for them, so many at most; the number that they submitted."""
        for done in range(most):
            record = self.next_record(dataset_id)
            if record is None:
                return done
            self.submit(task, record)
        return most

    def submit(self, task: TaskName, record: dict[str, Any]) -> None:
        """Judge a record, and learn from the explanation where there is one."""
        truth, purpose = self.study.truth(task, record["id"])
        asked = (record["metadata"] or {}).get("citejury_disputed") or list(truth)
        said = {label: {"value": "yes" if self.says(task, record, label, truth[label]) else "no"} for label in asked}
        response = self.call("POST", f"/records/{record['id']}/responses", json={"status": "submitted", "values": said})
        seconds = SECONDS[task] * self.pace * float(np.exp(self.study.generator.normal(-0.1, 0.45)))
        self.clock += timedelta(seconds=seconds)
        self.study.seconds[purpose] += seconds
        self.study.counts[purpose] += 1
        self.study.stamps.append((self.clock, response["id"]))
        if purpose == "practice":
            self.call("GET", f"/citejury/records/{record['id']}/practice")
            self.learned |= {(task, label) for label in truth} if self.who in CAREFUL else set()

    def says(self, task: TaskName, record: dict[str, Any], label: str, truth: bool) -> bool:
        if self.who == BAD:
            return True
        error = TAUGHT if (task, label) in self.learned or self.who == ADJUDICATOR else UNTAUGHT
        return truth is not (drawn(self.who, record["id"], label) < error)


class Study:
    def __init__(self, server: "ServerHandle", owner: Argilla, stack: contextlib.ExitStack) -> None:
        self.server, self.owner, self.stack = server, owner, stack
        self.workspace = f"study-{uuid4().hex[:8]}"
        self.generator = np.random.default_rng(16)
        self.names = {who: f"{who}-{self.workspace}" for who in (*CAREFUL, BAD, ADJUDICATOR)}
        self.people: dict[str, Person] = {}
        self.stamps: list[tuple[datetime, str]] = []
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.counts: Counter[str] = Counter()
        people = "".join(
            f'[[campaign.annotators]]\nname = "{name}"\n' + ('role = "adjudicator"\n' if who == ADJUDICATOR else "")
            for who, name in self.names.items()
        )
        Path("citejury.toml").write_text(
            f'workspace = "{self.workspace}"\n[campaign]\nlocales = ["en"]\noverlap = 2\n'
            f"[campaign.practice]\npass_mark = 0.6\n{people}",
            encoding="utf-8",
        )

    def run(self, *words: str, code: int | None = 0) -> Result:
        environment = {"ARGILLA_API_URL": self.server.url, "ARGILLA_API_KEY": self.server.owner_api_key}
        result = CliRunner(env=environment).invoke(main, words)
        assert code is None or result.exit_code == code, result.output
        print(f"\n$ citejury {' '.join(words)}\n{result.output}")  # noqa: T201
        return result

    def come(self) -> None:
        passwords = json.loads(Path("passwords.json").read_text(encoding="utf-8"))
        for who, name in self.names.items():
            self.people[who] = Person(self, who, passwords[name])

    def datasets(self, workspace: str | None = None) -> dict[str, str]:
        found = self.owner.datasets(self.owner.find_workspace(workspace or self.workspace))
        return {each["name"]: each["id"] for each in found}

    def truth(self, task: TaskName, record_id: str) -> tuple[dict[str, bool], str]:
        """The true answers to a record and what it is for; what is known of it, a hash decides for the rest."""
        record = self.owner.request("GET", f"/records/{record_id}")
        assignment = assignment_of(record)
        return true_answers(task, assignment.repeats or record["external_id"], assignment), assignment.purpose

    def tell_times(self) -> None:
        """Move Argilla's stamps to when the submissions would have been made."""
        rows = [
            (moment.replace(tzinfo=None).isoformat(" ", "microseconds"), response_id.replace("-", ""))
            for moment, response_id in self.stamps
        ]
        with contextlib.closing(sqlite3.connect(self.server.home / "data" / "argilla.db", timeout=60)) as database:
            database.executemany("UPDATE responses SET updated_at = ? WHERE id = ?", rows)
            database.commit()
        self.stamps.clear()

    def act(self, prefix: str, most: int, *who: str) -> None:
        """Everybody works in turns on a round, so many units of each task."""
        datasets = self.datasets()
        for task in TASKS:
            left = dict.fromkeys(who, most)
            while left:
                for name in list(left):
                    turn = min(5, left[name])
                    done = self.people[name].work(task, datasets[f"{prefix}{TASKS.index(task) + 1}-{task}-en"], turn)
                    left[name] -= done
                    if done < turn or not left[name]:
                        del left[name]
        self.tell_times()


def true_answers(task: TaskName, key: str, assignment: Assignment) -> dict[str, bool]:
    """The answers that are true of a unit, in keeping with the rules between labels."""
    for attempt in range(100):
        found = {label: drawn(key, label, str(attempt)) < 0.5 for label in LABELS[task]} | assignment.answers
        if not broken_rules(task, found):
            return found
    raise AssertionError(f"{key}: no answers keep the rules")


def alphas(file: Path) -> dict[str, float]:
    return {
        label: each["krippendorff_alpha"]
        for task in json.loads(file.read_text(encoding="utf-8"))["tasks"].values()
        for label, each in task["labels"].items()
        if each["krippendorff_alpha"] is not None
    }


def write_known(path: Path, records: list[QueryResponse]) -> None:
    """A person's file of known answers: to everything that is asked about an answer."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["record_uuid", *LABELS["generation"]])
        writer.writeheader()
        for record in records:
            told = true_answers("generation", record.record_uuid, Assignment())
            writer.writerow({"record_uuid": record.record_uuid, **told})


def test_a_study_from_its_plan_to_its_last_label(
    argilla_server: "ServerHandle", owner: Argilla, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    records = [answered(n, provider) for n in range(1, 31) for provider in PROVIDERS]
    write_planned(Path("records.jsonl"), records)
    write_planned(Path("pilot.jsonl"), [answered(n, "openai") for n in range(31, 39)])
    spare = [answered(n, "claude") for n in range(40, 70)]
    write_planned(Path("spare.jsonl"), spare)
    with contextlib.ExitStack() as stack:
        study = Study(argilla_server, owner, stack)
        study.run("annotation", "setup", "--passwords", "passwords.json")
        study.come()
        workers = (*CAREFUL, BAD)

        # Before practice: a pilot by everybody.
        study.run("annotation", "setup", "--round", "pilot", "--overlap", "4")
        study.run("annotation", "push", "pilot.jsonl", "--round", "pilot")
        study.act("pilot-", 1000, *CAREFUL)
        study.run("exports", "csv", "pilot", "--round", "pilot")
        study.run("exports", "results", "pilot", "--out", "pilot-agreement", "--resamples", "200")

        # The plan, and its sample.
        study.seconds.clear()
        study.run("study", "plan", "records.jsonl", "--out", "plan", "--hours", "4")
        study.run("annotation", "push", "records.jsonl", "--sample", "plan/sample.csv")

        # Practice: who says yes to everything does not pass, and the lead lets them in all the same.
        study.act("practice-", 1000, *workers)
        study.run("annotation", "practice")
        assert study.people[BAD].next_record(study.datasets()["1-retrieval-en"]) is None
        study.run("annotation", "practice", "--open", study.names[BAD])

        # Controls, then the work.
        with Path("citejury.toml").open("a", encoding="utf-8") as settings:
            settings.write('[campaign.controls]\nknown = "known.csv"\nrecords = "spare.jsonl"\nrate = 0.2\n')
            settings.write("repeats = 0.15\ndistance = 10\n")
        write_known(Path("known.csv"), spare)
        study.run("annotation", "push", "records.jsonl", "--sample", "plan/sample.csv")
        study.act("", 20, *workers)
        sampled = {row["record_uuid"] for row in read_rows(Path("plan/sample.csv"))}
        write_planned(Path("sampled.jsonl"), [each for each in records if each.record_uuid in sampled])
        study.run("study", "plan", "sampled.jsonl", "--out", "measured", "--from", argilla_server.url)
        study.act("", 1000, *workers)
        labelled = study.seconds.pop("label") / 3600
        study.run("annotation", "push", "records.jsonl", "--sample", "plan/sample.csv")
        study.run("exports", "adjudicate", "push", "--one-more")
        study.act("", 1000, *workers)
        status = study.run("annotation", "status", "--strict", code=1)

        # What came of it.
        study.run("exports", "csv", "export")
        study.run("exports", "results", "export", "--out", "agreement", "--resamples", "200")
        study.run("exports", "adjudicate", "push", "export", "--blind")
        for name, dataset_id in study.datasets(f"{study.workspace}-adjudication").items():
            study.people[ADJUDICATOR].work(next(task for task in TASKS if task in name), dataset_id)
        study.run("exports", "adjudicate", "read", "--out", "decisions.csv", "--export", "export")
        study.run("exports", "results", "export", "--sample", "plan/sample.csv", "--out", "results", code=None)

    before, after = alphas(Path("pilot-agreement/agreement.json")), alphas(Path("agreement/agreement.json"))
    planned = json.loads(Path("plan/plan.json").read_text(encoding="utf-8"))
    measured = json.loads(Path("measured/plan.json").read_text(encoding="utf-8"))
    others = {name: round(each / 3600, 2) for name, each in study.seconds.items()}
    print(f"hours: planned from texts {planned['hours']}, after 20 units a task {measured['hours']}")  # noqa: T201
    print(f"acted {labelled:.2f} for the sample; practice, controls, repeats, escalated units: {others}")  # noqa: T201
    print(f"alpha before {np.mean(list(before.values())):.3f}, after {np.mean(list(after.values())):.3f}")  # noqa: T201
    assert study.names[BAD] in status.output
    assert not any(
        study.names[who] in line for who in CAREFUL for line in status.output.splitlines() if "same answer" in line
    )
    assert np.mean(list(before.values())) < np.mean(list(after.values()))
