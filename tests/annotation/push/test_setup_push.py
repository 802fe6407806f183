"""Set-up against the real server: finished where it was interrupted, and nothing is ever deleted."""

import httpx
import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.argilla.tasks import define_dataset
from annotation.argilla.wording import FIELDS, read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import NewUser, set_up
from pipeline.core.errors import ArgillaError, InputError, NotAllowedError
from tests.support.setup_bench import done

pytestmark = pytest.mark.server


def test_set_up_makes_three_published_datasets_with_our_fields_and_questions(owner, workspace) -> None:
    set_up(owner, workspace, "de", min_submitted=2)
    for task, dataset in find_datasets(owner, workspace).items():
        fields, questions = (owner.request("GET", f"/datasets/{dataset.id}/{kind}") for kind in ("fields", "questions"))
        assert (dataset.status, dataset.locale, dataset.min_submitted) == ("ready", "de", 2)
        assert [field["name"] for field in fields["items"]] == list(FIELDS[task])
        assert [question["name"] for question in questions["items"]] == [*LABELS[task], "notes"]


def test_set_up_twice_changes_nothing_new_people_log_in_passwords_are_shown_once(owner, workspace, command) -> None:
    made: list[NewUser] = []
    people = {"annotators": [f"ann-{workspace}"], "announce": made.append}
    assert set_up(owner, workspace, **people).changed
    before = owner.datasets(owner.find_workspace(workspace))
    assert not set_up(owner, workspace, **people).changed
    assert owner.datasets(owner.find_workspace(workspace)) == before
    assert set_up(owner, f"{workspace}-b", **people).steps[-1].done == "added"
    ((name, password),) = made  # only once
    assert len(password) >= 16
    login = {"username": name, "password": password}
    assert httpx.post(f"{owner.api_url}/api/v1/token", data=login, trust_env=False).status_code == 201
    words = ("annotation", "setup", "--workspace", workspace, "--annotator", f"cmd-{workspace}")
    first, second = command(*words), command(*words)
    assert f"Annotator cmd-{workspace} has the password " in first.stdout
    assert "password" not in second.stdout
    assert "nothing was changed" in second.stderr
    assert f"Next: citejury annotation push RECORDS.jsonl --workspace {workspace}\n" in second.stderr


@pytest.mark.parametrize("parts_there", [2, *(pytest.param(each, marks=pytest.mark.rare) for each in (0, 3))])
def test_a_half_made_dataset_is_finished(owner, workspace, parts_there) -> None:
    workspace_id = owner.request("POST", "/workspaces", json={"name": workspace})["id"]
    definition = define_dataset("retrieval", read_wording("en"))
    draft = owner.request("POST", "/datasets", json={**definition.body, "workspace_id": workspace_id})
    for field in definition.fields[:parts_there]:
        owner.request("POST", f"/datasets/{draft['id']}/fields", json=field)
    assert done(set_up(owner, workspace))[workspace, "1-retrieval-en"] == "finished"
    assert find_datasets(owner, workspace)["retrieval"].id == draft["id"]


def test_a_dataset_with_other_questions_or_of_somebody_else_is_refused_and_nothing_is_made(owner, workspace) -> None:
    workspace_id = owner.request("POST", "/workspaces", json={"name": workspace})["id"]
    definition = define_dataset("generation", read_wording("en"))
    made = owner.request("POST", "/datasets", json={**definition.body, "workspace_id": workspace_id})
    for field in definition.fields:
        owner.request("POST", f"/datasets/{made['id']}/fields", json={**field, "required": field["name"] == "query"})
    owner.request("POST", f"/datasets/{made['id']}/questions", json={**definition.questions[0], "name": "other"})
    with pytest.raises(ArgillaError, match=r"`other` is not asked for; `answer` has required False instead of True"):
        set_up(owner, workspace)
    assert [dataset["name"] for dataset in owner.datasets(workspace_id)] == ["3-generation-en"]
    owner.request("POST", "/datasets", json={"name": "2-grounding-en", "workspace_id": workspace_id})
    with pytest.raises(ArgillaError, match=r"'2-grounding-en' that citejury did not make"):
        set_up(owner, workspace)


@pytest.mark.rare
def test_an_admin_named_as_an_annotator_is_noted_and_their_key_makes_nothing_at_all(owner, ready) -> None:
    name = f"adm-{ready}"
    body = {"username": name, "first_name": "A", "role": "admin", "password": "long-enough-1"}
    admin = owner.request("POST", "/users", json=body)
    report = set_up(owner, ready, annotators=[name, f"ann-{ready}"])
    assert report.steps[-2][1:4] == (name, "added", "role admin: may read what the others answer")
    with Argilla(owner.api_url, admin["api_key"]) as argilla, pytest.raises(NotAllowedError, match="owner"):
        set_up(argilla, ready, "de", annotators=["nobody"])
    assert [dataset["name"][-2:] for dataset in owner.datasets(owner.find_workspace(ready))] == ["en"] * 3
    members = owner.request("GET", f"/workspaces/{owner.find_workspace(ready)}/users")["items"]
    key = next(user["api_key"] for user in members if user["username"] == f"ann-{ready}")
    with Argilla(owner.api_url, key) as argilla, pytest.raises(NotAllowedError, match="owner"):
        set_up(argilla, f"{ready}-other")


@pytest.mark.parametrize("names", [["ana", "ana "], ["ana", " "], ["ana", "b\nen"], ["ana", "b\x1b[2Jen"]])
def test_annotators_named_twice_or_not_at_all_are_refused_before_anything_is_made(owner, workspace, names) -> None:
    with pytest.raises(InputError, match="nnotator"):
        set_up(owner, workspace, annotators=names)
    assert workspace not in owner.workspaces()
