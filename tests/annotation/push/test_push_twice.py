"""Several pushes at once, pushes killed in the middle, and answers that come in meanwhile."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.display import original_text
from annotation.argilla.labels import LABELS, TASKS, TaskName
from annotation.campaign.datasets import find_datasets
from annotation.campaign.file import Place
from annotation.campaign.setup import set_up
from annotation.push.push import PushOptions, push_records
from pipeline.records.schema import Passage, QueryResponse

pytestmark = pytest.mark.server
RECORDS = 700
DEADLINE = 240.0


def made_up(number: int, answer: str = "Nobody.") -> QueryResponse:
    passage = Passage(chunk_id="d#0", doc_id="d", chunk_rank=1, text=f"Text {number}.")
    return QueryResponse(
        record_uuid=f"r{number}", query=f"Who {number}?", answer=answer, language="en", chunks=(passage,),
        context_set=passage.text,
    )  # fmt: skip


def write_records(path: Path, answer: str = "Nobody.") -> Path:
    lines = (made_up(number, answer).model_dump_json() for number in range(RECORDS))
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def begin_push(server, path: Path, workspace: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", "from exports.cli import main; main()", "annotation", "push", str(path)]
    environment = {**os.environ, "ARGILLA_API_KEY": server.owner_api_key, "ARGILLA_API_URL": server.url}
    words = [*command, "--workspace", workspace]
    return subprocess.Popen(words, env=environment, cwd=path.parent, text=True, stdout=subprocess.PIPE, stderr=-1)


def held(argilla: Argilla, workspace: str, task: TaskName) -> list[dict]:
    dataset = find_datasets(argilla, workspace)[task]
    return [item for _, page in argilla.record_pages(dataset.id) for item in page]


def texts_held(argilla: Argilla, workspace: str) -> dict[TaskName, list[tuple[str, str]]]:
    column: dict[TaskName, str] = {"retrieval": "chunk", "grounding": "answer", "generation": "answer"}
    return {
        task: sorted(
            (item["external_id"], original_text(item, task, column[task])) for item in held(argilla, workspace, task)
        )
        for task in TASKS
    }


def wanted(answer: str = "Nobody.") -> dict[TaskName, list[tuple[str, str]]]:
    return {
        "retrieval": sorted((f"r{number}:d#0", f"Text {number}.") for number in range(RECORDS)),
        "grounding": sorted((f"r{number}", answer) for number in range(RECORDS)),
        "generation": sorted((f"r{number}", answer) for number in range(RECORDS)),
    }


def submit(argilla: Argilla, record_id: str, task: TaskName) -> None:
    values = {label: {"value": "no"} for label in LABELS[task]}
    argilla.request("POST", f"/records/{record_id}/responses", json={"status": "submitted", "values": values})


def test_two_processes_that_push_the_same_records_leave_each_unit_once(argilla_server, owner, tmp_path) -> None:
    set_up(owner, "twice-new")
    path = write_records(tmp_path / "records.jsonl")
    pushes = [begin_push(argilla_server, path, "twice-new") for _ in range(2)]
    ends = [push.communicate(timeout=DEADLINE) for push in pushes]
    assert [push.returncode for push in pushes] == [0, 0], ends
    assert texts_held(owner, "twice-new") == wanted()


def test_a_push_that_is_killed_leaves_whole_batches_and_the_next_one_finishes_it(
    argilla_server, owner, tmp_path
) -> None:
    set_up(owner, "killed")
    path = write_records(tmp_path / "records.jsonl")
    dataset = find_datasets(owner, "killed")["generation"]
    push = begin_push(argilla_server, path, "killed")
    limit = time.monotonic() + DEADLINE
    while not next(owner.record_pages(dataset.id, include=(), page_size=2))[0]:
        assert time.monotonic() < limit
        assert push.poll() is None
    push.send_signal(signal.SIGKILL)
    push.communicate()
    assert push.returncode == -signal.SIGKILL
    again = begin_push(argilla_server, path, "killed")
    told = again.communicate(timeout=DEADLINE)
    assert again.returncode == 0, told
    assert texts_held(owner, "killed") == wanted()


@pytest.mark.rare
def test_two_processes_that_replace_the_same_texts_both_end_well(argilla_server, owner, tmp_path) -> None:
    set_up(owner, "twice-changed")
    push_records(owner, "twice-changed", (made_up(number) for number in range(RECORDS)))
    path = write_records(tmp_path / "records.jsonl", answer="Somebody.")
    pushes = [begin_push(argilla_server, path, "twice-changed") for _ in range(2)]
    ends = [push.communicate(timeout=DEADLINE) for push in pushes]
    assert [push.returncode for push in pushes] == [0, 0], ends
    assert texts_held(owner, "twice-changed") == wanted("Somebody.")


def test_an_answer_that_comes_after_the_difference_was_shown_keeps_its_text(owner) -> None:
    set_up(owner, "meanwhile")
    push_records(owner, "meanwhile", [made_up(1), made_up(2)])
    answered = next(item for item in held(owner, "meanwhile", "grounding") if item["external_id"] == "r1")
    options = PushOptions(show=lambda report: submit(owner, answered["id"], "grounding"))
    report = push_records(owner, "meanwhile", [made_up(1, "Changed."), made_up(2, "Changed.")], options=options)
    assert [line.split(":")[0] for line in report.refused] == ["r1"]
    assert report.counts[Place("meanwhile", "en", "production")]["generation"].updated == 2
    for task in ("grounding", "generation"):
        found = {item["external_id"]: original_text(item, task, "answer") for item in held(owner, "meanwhile", task)}
        assert found == {"r1": "Nobody.", "r2": "Changed."}
