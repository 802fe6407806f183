"""`setup`, `practice show` and `practice open` as a lead calls them."""

from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from annotation.client import Argilla
from annotation.embedded.launch import ServerHandle
from exports.cli import main
from tests.support.practice_campaign import Practised, practised

pytestmark = pytest.mark.server


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argilla_server: ServerHandle) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    return tmp_path


def write_campaign(folder: Path, workspace: str, practice: str) -> None:
    text = f'workspace = "{workspace}"\n[campaign]\nlocales = ["en"]\n[campaign.practice]\n{practice}\n'
    (folder / "citejury.toml").write_text(text, encoding="utf-8")


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["annotation", *words])


def test_setup_brings_the_cases_and_a_second_one_changes_nothing(folder: Path, owner: Argilla) -> None:
    write_campaign(folder, f"practice-{uuid4().hex[:8]}", 'tasks = ["retrieval"]')
    plan = run("setup", "--dry-run")
    assert "opens the rest at 0.75" in plan.output
    first, second = run("setup"), run("setup")
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert "Practice: 8 cases new, 0 changed, 0 there already." in first.output
    assert "Practice: 0 cases new, 0 changed, 8 there already." in second.output
    assert "nothing was changed" in second.output
    assert "practice" not in second.output.partition("Practice:")[0].partition("No work so far")[2]


def test_a_case_without_an_answer_is_refused_before_anything_is_done(folder: Path, owner: Argilla) -> None:
    workspace = f"practice-{uuid4().hex[:8]}"
    write_campaign(folder, workspace, 'file = "cases.toml"')
    (folder / "cases.toml").write_text('[[retrieval]]\nquery = "Who?"\npassages = [{ text = "He." }]\n', "utf-8")
    refused = run("setup")
    assert refused.exit_code == 1
    (line,) = refused.output.strip().splitlines()
    assert "`cases.toml`: case 1 of retrieval has no answer to `topically_relevant`" in line
    assert workspace not in owner.workspaces()


def test_no_record_is_pushed_into_practice(folder: Path, owner: Argilla) -> None:
    work = practised(owner, tasks=["retrieval"], cases=1)
    write_campaign(folder, work.workspace, 'tasks = ["retrieval"]')
    (folder / "records.jsonl").write_text(f"{work.cases[0].record.model_dump_json()}\n", encoding="utf-8")
    pushed = run("push", "records.jsonl", "--round", "practice")
    assert pushed.exit_code == 1
    assert "The round 'practice' is for known cases" in pushed.output


def test_the_lead_sees_who_has_passed_and_opens_the_rest(folder: Path, owner: Argilla) -> None:
    work: Practised = practised(owner, tasks=["retrieval"], cases=1)
    write_campaign(folder, work.workspace, 'tasks = ["retrieval"]')
    work.practise("anna", "practice-1-retrieval-en")
    work.practise("ben", "practice-1-retrieval-en", wrong=3)
    shown = run("practice", "show").output
    rows = [line.split() for line in shown.splitlines() if work.workspace in line]
    assert [row[-1] for row in rows] == ["yes", "no"]
    assert "3 of 3, 3 wanted" in shown
    assert "0 of 3, 3 wanted" in shown
    assert "Next: citejury annotation practice open NAME" in shown
    opened = run("practice", "open", work.names["ben"], "--task", "retrieval")
    assert f"retrieval (en) opened to {work.names['ben']}" in opened.output
    assert "by the lead" in run("practice", "show").output
    assert "practice ·" not in run("status").output
    assert "hold no record" not in run("status").output
    assert len(work.queue("ben", "1-retrieval-en")) == 2
    assert "no practice of that task" in run("practice", "open", work.names["ben"], "--task", "grounding").output
    assert "has no user 'nobody'" in run("practice", "open", "nobody").output


def test_without_practice_the_commands_say_how_to_get_one(folder: Path, owner: Argilla) -> None:
    workspace = f"practice-{uuid4().hex[:8]}"
    (folder / "citejury.toml").write_text(f'workspace = "{workspace}"\n', encoding="utf-8")
    assert run("setup").exit_code == 0
    shown = run("practice", "show")
    assert shown.exit_code == 1
    assert "Add `[campaign.practice]` to citejury.toml and run `citejury annotation setup`" in shown.output
