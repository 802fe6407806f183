"""Set-up against the real server: finished where it was interrupted, and nothing is ever deleted."""

import httpx
import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.argilla.tasks import define_dataset
from annotation.argilla.wording import FIELDS, read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import NewUser, set_up
from exports.cli import main
from pipeline.core.errors import ArgillaError, InputError, NotAllowedError

pytestmark = pytest.mark.server
UUID = "0b9f6d1e-2c3a-4e5f-8a7b-{:012d}"


@pytest.fixture
def ready(owner, workspace) -> str:
    set_up(owner, workspace)
    return workspace


def annotator_of(owner: Argilla, workspace: str) -> Argilla:
    made: list[NewUser] = []
    set_up(owner, workspace, annotators=[f"ann-{workspace}"], announce=made.append)
    members = owner.request("GET", f"/workspaces/{owner.find_workspace(workspace)}/users")["items"]
    return Argilla(owner.api_url, next(user["api_key"] for user in members if user["username"] == made[0].username))


def test_set_up_makes_three_published_datasets_with_our_fields_and_questions(owner, workspace) -> None:
    set_up(owner, workspace, "de", min_submitted=2)
    for task, dataset in find_datasets(owner, workspace).items():
        fields, questions = (owner.request("GET", f"/datasets/{dataset.id}/{kind}") for kind in ("fields", "questions"))
        assert (dataset.status, dataset.locale, dataset.min_submitted) == ("ready", "de", 2)
        assert [field["name"] for field in fields["items"]] == list(FIELDS[task])
        assert [question["name"] for question in questions["items"]] == [*LABELS[task], "notes"]


def test_set_up_run_twice_changes_nothing(owner, workspace) -> None:
    first = set_up(owner, workspace, annotators=[f"twice-{workspace}"])
    before = owner.datasets(owner.find_workspace(workspace))
    made: list[NewUser] = []
    second = set_up(owner, workspace, annotators=[f"twice-{workspace}"], announce=made.append)
    assert (first.changed, second.changed, made) == (True, False, [])
    assert owner.datasets(owner.find_workspace(workspace)) == before


@pytest.mark.parametrize("parts_there", [0, 2, 3])
def test_a_half_made_dataset_is_finished(owner, workspace, parts_there) -> None:
    workspace_id = owner.request("POST", "/workspaces", json={"name": workspace})["id"]
    definition = define_dataset("retrieval", read_wording("en"))
    draft = owner.request("POST", "/datasets", json={**definition.body, "workspace_id": workspace_id})
    for field in definition.fields[:parts_there]:
        owner.request("POST", f"/datasets/{draft['id']}/fields", json=field)
    steps = {step.name: step.done for step in set_up(owner, workspace).steps}
    assert steps["1-retrieval-en"] == "finished"
    assert find_datasets(owner, workspace)["retrieval"].id == draft["id"]


def test_a_dataset_with_other_questions_is_refused_and_nothing_is_made(owner, workspace) -> None:
    workspace_id = owner.request("POST", "/workspaces", json={"name": workspace})["id"]
    definition = define_dataset("generation", read_wording("en"))
    made = owner.request("POST", "/datasets", json={**definition.body, "workspace_id": workspace_id})
    for field in definition.fields:
        owner.request("POST", f"/datasets/{made['id']}/fields", json={**field, "required": field["name"] == "query"})
    owner.request("POST", f"/datasets/{made['id']}/questions", json={**definition.questions[0], "name": "other"})
    with pytest.raises(ArgillaError, match=r"`other` is not asked for; `answer` has required False instead of True"):
        set_up(owner, workspace)
    assert [dataset["name"] for dataset in owner.datasets(workspace_id)] == ["3-generation-en"]


def test_somebody_elses_dataset_of_the_name_is_refused(owner, workspace) -> None:
    workspace_id = owner.request("POST", "/workspaces", json={"name": workspace})["id"]
    owner.request("POST", "/datasets", json={"name": "2-grounding-en", "workspace_id": workspace_id})
    with pytest.raises(ArgillaError, match=r"'2-grounding-en' that citejury did not make"):
        set_up(owner, workspace)


def test_another_overlap_than_the_datasets_is_set(owner, ready) -> None:
    report = set_up(owner, ready, min_submitted=3)
    assert {(step.done, step.note) for step in report.steps[1:]} == {("updated", "overlap 1 becomes 3")}
    assert {dataset.min_submitted for dataset in find_datasets(owner, ready).values()} == {3}
    assert not set_up(owner, ready).changed


def test_a_new_annotator_can_log_in_with_her_password(owner, workspace, argilla_server) -> None:
    made: list[NewUser] = []
    set_up(owner, workspace, annotators=[f"new-{workspace}"], announce=made.append)
    assert len(made[0].password) >= 16
    login = {"username": made[0].username, "password": made[0].password}
    assert httpx.post(f"{argilla_server.url}/api/v1/token", data=login, trust_env=False).status_code == 201


def test_an_annotator_who_exists_is_added_to_the_workspace_and_keeps_her_password(owner, workspace) -> None:
    made: list[NewUser] = []
    for name in (f"{workspace}-a", f"{workspace}-b"):
        report = set_up(owner, name, annotators=[f"both-{workspace}"], announce=made.append)
    assert (report.steps[-1].done, len(made)) == ("added", 1)


def test_an_admin_named_as_an_annotator_is_noted_because_she_is_not_blind(owner, workspace) -> None:
    admin = {"username": f"adm-{workspace}", "first_name": "A", "role": "admin", "password": "long-enough-1"}
    owner.request("POST", "/users", json=admin)
    report = set_up(owner, workspace, annotators=[admin["username"]])
    assert report.steps[-1][1:4] == (admin["username"], "added", "role admin: may read what the others answer")


def test_a_key_that_may_not_make_annotators_makes_nothing_at_all(owner, ready) -> None:
    admin = {"username": f"adm-{ready}", "first_name": "A", "role": "admin", "password": "long-enough-1"}
    made = owner.request("POST", "/users", json=admin)
    workspace_id = owner.find_workspace(ready)
    owner.request("POST", f"/workspaces/{workspace_id}/users", json={"user_id": made["id"]})
    with Argilla(owner.api_url, made["api_key"]) as argilla, pytest.raises(NotAllowedError, match="owner"):
        set_up(argilla, ready, "de", annotators=["nobody"])
    assert [dataset["name"][-2:] for dataset in owner.datasets(workspace_id)] == ["en"] * 3


@pytest.mark.parametrize("names", [["ana", "ana "], ["ana", " "], ["ana", "b\nen"], ["ana", "b\x1b[2Jen"]])
def test_annotators_named_twice_or_not_at_all_are_refused_before_anything_is_made(owner, workspace, names) -> None:
    with pytest.raises(InputError, match="nnotator"):
        set_up(owner, workspace, annotators=names)
    assert workspace not in owner.workspaces()


def test_an_annotators_key_cannot_set_up(owner, ready) -> None:
    with annotator_of(owner, ready) as annotator, pytest.raises(NotAllowedError, match="owner"):
        set_up(annotator, f"{ready}-other")


@pytest.fixture
def command(argilla_server, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)

    def run(*words: str) -> Result:
        return CliRunner().invoke(main, ["annotation", *words])

    return run


def test_the_command_setup_shows_a_password_once(command, workspace) -> None:
    words = ("setup", "--workspace", workspace, "--annotator", f"cmd-{workspace}")
    first, second = command(*words), command(*words)
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert f"Annotator cmd-{workspace} has the password " in first.stdout
    assert "password" not in second.stdout
    assert "nothing was changed" in second.stderr
    assert f"Next: citejury annotation push RECORDS.jsonl --workspace {workspace}\n" in second.stderr
