"""Several pushes at once, pushes killed in the middle, and answers that come in meanwhile."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.display import original_text, unit_id
from annotation.argilla.labels import TaskName
from annotation.campaign.datasets import find_datasets
from annotation.campaign.file import Place
from annotation.push.push import PushOptions, push_records
from pipeline.records.schema import Passage, QueryResponse
from tests.support.setup_bench import answered, held, submit_first, write_records

pytestmark = pytest.mark.server
RECORDS = 700
DEADLINE = 240.0


def made_up(number: int, answer: str = "Nobody.") -> QueryResponse:
    passage = Passage(chunk_id="d#0", doc_id="d", chunk_rank=1, text=f"Text {number}.")
    return answered(f"r{number}", answer, chunks=(passage,), context_set=passage.text)


def all_written(path: Path, answer: str = "Nobody.") -> Path:
    return write_records(path, *(made_up(number, answer) for number in range(RECORDS)))


def begin_push(server, path: Path, workspace: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", "from exports.cli import main; main()", "annotation", "push", str(path)]
    environment = {**os.environ, "ARGILLA_API_KEY": server.owner_api_key, "ARGILLA_API_URL": server.url}
    words = [*command, "--workspace", workspace]
    return subprocess.Popen(words, env=environment, cwd=path.parent, text=True, stdout=subprocess.PIPE, stderr=-1)


def texts_held(argilla: Argilla, workspace: str) -> dict[TaskName, list[tuple[str, str]]]:
    columns: dict[TaskName, str] = {"retrieval": "chunk", "grounding": "answer", "generation": "answer"}
    return {
        task: sorted((unit_id(each), original_text(each, task, column)) for each in held(argilla, workspace, task))
        for task, column in columns.items()
    }


def wanted(answer: str = "Nobody.", count: int = RECORDS) -> dict[TaskName, list[tuple[str, str]]]:
    return {
        "retrieval": sorted((f"r{number}:d#0", f"Text {number}.") for number in range(count)),
        "grounding": sorted((f"r{number}", answer) for number in range(count)),
        "generation": sorted((f"r{number}", answer) for number in range(count)),
    }


def both_end(argilla_server, path: Path, workspace: str) -> None:
    pushes = [begin_push(argilla_server, path, workspace) for _ in range(2)]
    ends = [push.communicate(timeout=DEADLINE) for push in pushes]
    assert [push.returncode for push in pushes] == [0, 0], ends


@pytest.mark.rare
def test_two_processes_that_push_the_same_records_leave_each_unit_once(argilla_server, owner, ready, tmp_path) -> None:
    both_end(argilla_server, all_written(tmp_path / "records.jsonl"), ready)
    assert texts_held(owner, ready) == wanted()


@pytest.mark.rare
def test_a_push_that_is_killed_is_finished_by_the_next_one(argilla_server, owner, ready, tmp_path) -> None:
    path = all_written(tmp_path / "records.jsonl")
    dataset = find_datasets(owner, ready)["generation"]
    push = begin_push(argilla_server, path, ready)
    limit = time.monotonic() + DEADLINE
    while not next(owner.record_pages(dataset.id, include=(), page_size=2))[0]:
        assert time.monotonic() < limit
        assert push.poll() is None
    push.send_signal(signal.SIGKILL)
    push.communicate()
    assert push.returncode == -signal.SIGKILL
    again = begin_push(argilla_server, path, ready)
    assert again.returncode == 0, again.communicate(timeout=DEADLINE)
    assert texts_held(owner, ready) == wanted()


def test_a_push_that_breaks_off_in_the_middle_is_finished_by_the_next_one(owner, ready, monkeypatch) -> None:
    records, send, left = [made_up(number) for number in range(3)], owner.request, 1

    def die(method: str, path: str, **named: Any) -> Any:
        nonlocal left
        if "/records" in path and method in ("PUT", "POST") and (left := left - 1) < 0:
            raise KeyboardInterrupt
        return send(method, path, **named)

    with monkeypatch.context() as killed:
        killed.setattr(owner, "request", die)
        with pytest.raises(KeyboardInterrupt):
            push_records(owner, ready, records)
    assert 1 <= sum(bool(held) for held in texts_held(owner, ready).values()) < 3
    push_records(owner, ready, records)
    assert texts_held(owner, ready) == wanted(count=3)


@pytest.mark.rare
def test_two_processes_that_replace_the_same_texts_both_end_well(argilla_server, owner, ready, tmp_path) -> None:
    push_records(owner, ready, (made_up(number) for number in range(RECORDS)))
    both_end(argilla_server, all_written(tmp_path / "records.jsonl", answer="Somebody."), ready)
    assert texts_held(owner, ready) == wanted("Somebody.")


def test_an_answer_that_comes_after_the_difference_was_shown_keeps_its_text(owner, ready) -> None:
    push_records(owner, ready, [made_up(1), made_up(2)])
    dataset = find_datasets(owner, ready)["grounding"].id
    (kept,) = {each["external_id"] for each in held(owner, ready, "grounding")[:1]}
    options = PushOptions(show=lambda report: submit_first(owner, dataset))
    report = push_records(owner, ready, [made_up(1, "Changed."), made_up(2, "Changed.")], options=options)
    assert [line.split(":")[0] for line in report.refused] == [kept]
    assert report.counts[Place(ready, "en", "production")]["generation"].updated == 2
    for task in ("grounding", "generation"):
        found = {each["external_id"]: original_text(each, task, "answer") for each in held(owner, ready, task)}
        assert found == dict.fromkeys(("r1", "r2"), "Changed.") | {kept: "Nobody."}
