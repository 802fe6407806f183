"""The same answer under another id is recognised, and goes in a second time only where somebody says so."""

import os
import pty
import subprocess
import sys

import pytest

from annotation.push.push import push_records
from exports.cli.project import start_project
from pipeline.records.schema import Provenance, QueryResponse
from tests.support.setup_bench import held, write_records

pytestmark = pytest.mark.server


@pytest.fixture
def push(command, ready):
    return lambda *words, code=0: command("annotation", "push", *words, "--workspace", ready, code=code)


def answer(record_uuid: str, text: str = "No.", **known: str) -> QueryResponse:
    provenance = Provenance(**{"model_name": "openai", "model_version": "gpt-5.6", "run_id": "one", **known})
    return QueryResponse(record_uuid=record_uuid, query="Is it?", answer=text, language="en", provenance=provenance)


def ids(owner, workspace) -> set[str]:
    return {item["external_id"] for item in held(owner, workspace)}


def test_narratives_asked_into_another_folder_go_in_again_only_by_word(owner, ready, push, command, tmp_path) -> None:
    start_project(tmp_path / "study")
    for folder in ("first", "second"):
        command("pipeline", "ask", "study/narratives.csv", "--out", folder, "--replay", "study/payloads")
    push("first")
    before = ids(owner, ready)
    shown = push("second", "--dry-run").stderr
    assert "10 records hold an answer (same provider, model, narrative and text)" in shown
    assert "Add `--known skip` to leave them out, or `--known push`" in push("second", code=1).stderr
    assert "They are left out." in push("second", "--known", "skip").stderr
    assert ids(owner, ready) == before
    push("first")  # what is there under its own id is nothing to ask about
    push("second", "--known", "push")
    assert len(ids(owner, ready)) == 2 * len(before) == 20
    assert "under another id" not in push("second").stderr


def test_only_the_same_text_of_the_same_model_to_its_narrative_is_the_same_answer(owner, ready, push, tmp_path) -> None:
    push_records(owner, ready, [answer("a")])
    others = [
        answer("b", "No!", run_id="two"),
        answer("c", run_id="two", model_version="gpt-5.7"),
        answer("d", run_id="two", model_name="claude"),
        answer("e", run_id="two", arm="strict"),
        answer("f", run_id="one"),  # a repeat of the same run, which was asked for
        answer("g", run_id="two", model_name=""),  # of nobody known
    ]
    assert "under another id" not in push(write_records(tmp_path / "others.jsonl", *others)).stderr
    again = write_records(tmp_path / "again.jsonl", answer("h", run_id="two"), answer("i", "New."))
    assert "h: the same answer is there as a" in push(again, "--known", "skip").stderr
    assert ids(owner, ready) == {"a", "b", "c", "d", "e", "f", "g", "i"}
    report = push_records(owner, ready, [answer("j", run_id="two")])  # Python puts it in, and says so
    assert (report.known, report.tasks["generation"].new) == (("j: the same answer is there as a",), 1)


@pytest.mark.rare
def test_two_folders_of_one_push_are_compared_and_a_person_at_a_terminal_asked(owner, ready, push, tmp_path) -> None:
    both = [write_records(tmp_path / f"{name}.jsonl", answer(name, run_id=name)) for name in ("a", "b")]
    push(*both, code=1)
    assert ids(owner, ready) == set()
    push(*both, "--known", "skip")
    assert ids(owner, ready) == {"a"}
    terminal, end = pty.openpty()
    code = f"from exports.cli import main; main({['annotation', 'push', str(both[1]), '--workspace', ready]!r})"
    with subprocess.Popen([sys.executable, "-c", code], stdin=end, stderr=subprocess.PIPE, text=True) as process:
        os.write(terminal, b"push\n")
        _, said = process.communicate()
    os.close(terminal)
    os.close(end)
    assert process.returncode == 0, said
    assert "Leave them out, or put them in again? (skip, push)" in said
    assert ids(owner, ready) == {"a", "b"}
