"""The same answer under another id is recognised, and goes in a second time only where somebody says so."""

import os
import pty
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.push.push import push_records
from exports.cli import main
from exports.cli.project import start_project
from pipeline.records.schema import Provenance, QueryResponse

pytestmark = pytest.mark.server
NUMBERS = count(1)


@pytest.fixture
def workspace(owner: Argilla) -> str:
    name = f"known-{next(NUMBERS)}"
    set_up(owner, name)
    return name


@pytest.fixture
def push(argilla_server, workspace: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)

    def run(*words: object) -> Result:
        return CliRunner().invoke(main, ["annotation", "push", *map(str, words), "--workspace", workspace])

    return run


def answer(record_uuid: str, text: str = "No.", **told: str) -> QueryResponse:
    provenance = Provenance(**{"model_name": "openai", "model_version": "gpt-5.6", "run_id": "one", **told})
    return QueryResponse(record_uuid=record_uuid, query="Is it?", answer=text, language="en", provenance=provenance)


def written(path: Path, *records: QueryResponse) -> Path:
    path.write_text("".join(record.model_dump_json() + "\n" for record in records), encoding="utf-8")
    return path


def ids(owner: Argilla, workspace: str) -> set[str]:
    dataset = find_datasets(owner, workspace)["generation"]
    return {item["external_id"] for _, page in owner.record_pages(dataset.id) for item in page}


def test_narratives_that_were_asked_into_another_folder_go_in_again_only_by_word(
    owner: Argilla, workspace: str, push, tmp_path: Path
) -> None:
    start_project(tmp_path)
    for folder in ("first", "second"):
        asked = ["pipeline", "ask", tmp_path / "narratives.csv", "--out", tmp_path / folder]
        CliRunner().invoke(main, [*map(str, asked), "--replay", str(tmp_path / "payloads")], catch_exceptions=False)
    assert push(tmp_path / "first").exit_code == 0
    before = ids(owner, workspace)
    shown = push(tmp_path / "second", "--dry-run")
    assert shown.exit_code == 0
    assert "10 records hold an answer (same provider, model, narrative and text)" in shown.stderr
    refused = push(tmp_path / "second")
    assert refused.exit_code == 1
    assert "Add `--known skip` to leave them out, or `--known push`" in refused.stderr
    skipped = push(tmp_path / "second", "--known", "skip")
    assert (skipped.exit_code, ids(owner, workspace)) == (0, before)
    assert "They are left out." in skipped.stderr
    assert push(tmp_path / "first").exit_code == 0  # what is there under its own id is nothing to ask about
    assert push(tmp_path / "second", "--known", "push").exit_code == 0
    assert len(ids(owner, workspace)) == 2 * len(before) == 20
    assert "under another id" not in push(tmp_path / "second").stderr


def test_only_the_same_text_of_the_same_model_to_the_same_narrative_is_the_same_answer(
    owner: Argilla, workspace: str, push, tmp_path: Path
) -> None:
    push_records(owner, workspace, [answer("a")])
    others = [
        answer("b", "No!", run_id="two"),
        answer("c", run_id="two", model_version="gpt-5.7"),
        answer("d", run_id="two", model_name="claude"),
        answer("e", run_id="two", arm="strict"),
        answer("f", run_id="one"),  # a repeat of the same run, which was asked for
        answer("g", run_id="two", model_name=""),  # of nobody known
    ]
    pushed = push(written(tmp_path / "others.jsonl", *others))
    assert (pushed.exit_code, "under another id" in pushed.stderr) == (0, False)
    again = push(written(tmp_path / "again.jsonl", answer("h", run_id="two"), answer("i", "New.")), "--known", "skip")
    assert "h: the same answer is there as a" in again.stderr
    assert ids(owner, workspace) == {"a", "b", "c", "d", "e", "f", "g", "i"}


def test_two_folders_of_one_push_are_held_against_each_other(
    owner: Argilla, workspace: str, push, tmp_path: Path
) -> None:
    both = [written(tmp_path / f"{name}.jsonl", answer(name, run_id=name)) for name in ("a", "b")]
    assert push(*both).exit_code == 1
    assert ids(owner, workspace) == set()
    assert push(*both, "--known", "skip").exit_code == 0
    assert ids(owner, workspace) == {"a"}


def test_a_person_at_a_terminal_is_asked(owner: Argilla, workspace: str, push, tmp_path: Path) -> None:
    push_records(owner, workspace, [answer("a")])
    path = written(tmp_path / "b.jsonl", answer("b", run_id="two"))
    terminal, end = pty.openpty()
    code = f"from exports.cli import main; main({['annotation', 'push', str(path), '--workspace', workspace]!r})"
    with subprocess.Popen([sys.executable, "-c", code], stdin=end, stderr=subprocess.PIPE, text=True) as command:
        os.write(terminal, b"push\n")
        _, said = command.communicate()
    os.close(terminal)
    os.close(end)
    assert command.returncode == 0, said
    assert "Leave them out, or put them in again? (skip, push)" in said
    assert ids(owner, workspace) == {"a", "b"}


def test_a_call_from_python_puts_them_in_and_tells(owner: Argilla, workspace: str) -> None:
    push_records(owner, workspace, [answer("a")])
    report = push_records(owner, workspace, [answer("b", run_id="two")])
    assert report.known == ("b: the same answer is there as a",)
    assert report.tasks["generation"].new == 1
    assert ids(owner, workspace) == {"a", "b"}
