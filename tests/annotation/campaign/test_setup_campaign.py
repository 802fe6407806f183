"""A campaign in Argilla: planned, made, changed where it differs, and made anew where Argilla cannot change it."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from annotation.campaign.datasets import current_datasets, find_datasets
from annotation.campaign.people import NewUser, Passwords
from annotation.campaign.setup import apply_plan, plan_campaign, set_up
from annotation.client import Argilla
from annotation.labels import TASKS
from annotation.push.push import push_records
from exports.cli import main
from pipeline.errors import InputError
from tests.support.setup_bench import ANSWER, campaign, described, done, make, submit_first

if TYPE_CHECKING:
    from annotation.embedded.launch import ServerHandle

Command = Callable[..., Result]
pytestmark = pytest.mark.server


@pytest.fixture
def workspace() -> str:
    return f"c-{uuid.uuid4().hex[:10]}"


def test_a_campaign_is_made_and_made_again_it_changes_nothing(owner: Argilla, workspace: str) -> None:
    wanted = campaign(workspace, locales=["en", "ja"], overlap=2, calibration={"fraction": 0.2})
    assert make(owner, workspace, wanted).changed
    before = owner.datasets(owner.find_workspace(workspace))
    assert len(before) == 12
    again = make(owner, workspace, wanted)
    assert (again.changed, owner.datasets(owner.find_workspace(workspace))) == (False, before)
    overlaps = {each["name"]: each["distribution"]["min_submitted"] for each in before}
    assert set(overlaps.values()) == {2}
    assert all(each["metadata"]["routing"]["calibration"]["fraction"] == 0.2 for each in before)


def test_a_plan_changes_nothing(owner: Argilla, workspace: str) -> None:
    plan = plan_campaign(owner, campaign(workspace), workspace)
    assert plan.changed
    assert workspace not in owner.workspaces()


def test_groups_have_workspaces_with_their_members_only(owner: Argilla, workspace: str) -> None:
    anna, ben = f"{workspace}-anna", f"{workspace}-ben"
    make(owner, workspace, campaign(workspace, groups={"a": [anna], "b": [ben]}))
    assert workspace not in owner.workspaces()
    for group, name in (("a", anna), ("b", ben)):
        members = owner.workspace_users(owner.find_workspace(f"{workspace}-{group}"))
        assert [user["username"] for user in members] == [name]
        assert set(find_datasets(owner, f"{workspace}-{group}")) == set(TASKS)


def test_who_left_is_taken_out_and_her_responses_stay(owner: Argilla, workspace: str) -> None:
    make(owner, workspace, campaign(workspace))
    gone = campaign(workspace, annotators=[{"name": f"{workspace}-anna"}, {"name": f"{workspace}-ben", "left": True}])
    report = make(owner, workspace, gone)
    assert done(report)[workspace, f"{workspace}-ben"] == "removed"
    members = owner.workspace_users(owner.find_workspace(workspace))
    assert [user["username"] for user in members] == [f"{workspace}-anna"]
    assert f"{workspace}-ben" in {user["username"] for user in owner.users()}
    assert not make(owner, workspace, gone).changed


def test_a_language_more_is_made_and_written_into_every_dataset(owner: Argilla, workspace: str) -> None:
    make(owner, workspace, campaign(workspace))
    wider = campaign(workspace, locales=["en", "de"])
    assert {step.note for step in make(owner, workspace, wider).steps} >= {"how records are split"}
    datasets = current_datasets(owner, owner.find_workspace(workspace))
    assert [each["metadata"]["routing"]["locales"] for each in datasets] == [["en", "de"]] * 6


def test_more_people_than_there_are_is_noted(owner: Argilla, workspace: str) -> None:
    plan = plan_campaign(owner, campaign(workspace, overlap=3), workspace)
    notes = {step.note for step in plan.steps if step.kind == "dataset"}
    assert notes == {"waits for 3 annotators, and the campaign has 2 for it"}


def test_a_password_that_was_written_before_an_interruption_is_used(
    owner: Argilla, workspace: str, tmp_path: Path
) -> None:
    file = tmp_path / "passwords.json"
    password = Passwords(file).make(f"{workspace}-anna")
    assert file.stat().st_mode & 0o777 == 0o600
    told: list[NewUser] = []
    apply_plan(owner, plan_campaign(owner, campaign(workspace), workspace), Passwords(file, told.append))
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert (kept[f"{workspace}-anna"], len(kept), told) == (password, 2, [])


@pytest.mark.parametrize("content", ["{", "[]", '{"a": 1}'])
def test_a_file_that_holds_no_passwords_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "passwords.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="holds no passwords"):
        Passwords(file)


@pytest.fixture
def command(argilla_server: "ServerHandle", monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workspace: str) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    text = f'workspace = "{workspace}"\n[campaign]\nlocales = ["en"]\nannotators = [{{ name = "{workspace}-anna" }}]\n'
    (tmp_path / "citejury.toml").write_text(text, encoding="utf-8")

    def run(*words: str, answer: str = "") -> Result:
        return CliRunner().invoke(main, ["annotation", "setup", *words], input=answer)

    return run


def test_the_command_shows_the_campaigns_plan_and_in_a_dry_run_no_more(
    command: Command, owner: Argilla, workspace: str
) -> None:
    result = command("--dry-run")
    assert result.exit_code == 0, result.output
    assert f"{workspace}/1-retrieval-en" in result.stdout
    assert "Nothing was changed (dry run)." in result.stderr
    assert workspace not in owner.workspaces()


def test_the_command_refuses_options_that_the_campaign_says(command: Command) -> None:
    result = command("--overlap", "2", "--locale", "en")
    assert result.exit_code == 2
    assert "--locale and --overlap cannot be used where citejury.toml has a campaign" in result.stderr
    assert command("--round", "suggested", "--annotator", "ben").exit_code == 2


def test_the_command_makes_a_round_beside_the_campaigns_own(command: Command, owner: Argilla, workspace: str) -> None:
    assert command("--round", "suggested", "--overlap", "2", "--passwords", "passwords.json").exit_code == 0
    assert find_datasets(owner, workspace, round_name="suggested")["retrieval"].min_submitted == 2
    assert [each["username"] for each in owner.workspace_users(owner.find_workspace(workspace))] == [
        f"{workspace}-anna"
    ]
    for words, told in (("calibration",), "the campaign's own"), (("pilot", "--locale", "de"), "has no 'de'"):
        refused = command("--round", *words)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert told in refused.stderr
    assert command().exit_code == 0
    again = command("--round", "suggested").stderr
    assert "nothing was changed" in again
    assert "push RECORDS.jsonl --suggestions JUDGEMENTS.jsonl --round suggested" in again
    assert "nothing was changed" in command().stderr


def test_the_command_asks_before_it_touches_what_was_answered(command: Command, owner: Argilla, workspace: str) -> None:
    assert command("--passwords", "passwords.json").exit_code == 0
    push_records(owner, workspace, [ANSWER])
    submit_first(owner, find_datasets(owner, workspace)["generation"].id)
    words = ("--new-version", "generation")
    for answer in ("", "n\n"):
        refused = command(*words, answer=answer)
        assert refused.exit_code == 1
        assert "has 1 responses: a new version" in refused.stderr
        assert find_datasets(owner, workspace)["generation"].version == 1
    assert command(*words, answer="y\n").exit_code == 0
    assert command(*words, "--yes").exit_code == 0
    assert find_datasets(owner, workspace)["generation"].version == 3


def test_setting_up_one_round_by_options_leaves_the_campaigns_split_written(owner: Argilla, workspace: str) -> None:
    make(owner, workspace, campaign(workspace))
    assert not set_up(owner, workspace).changed
    assert "routing" in described(owner, workspace, "1-retrieval-en")["metadata"]
