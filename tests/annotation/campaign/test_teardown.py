"""Teardown: what would be lost is named and asked about, exported first, and nothing else is removed."""

import os
import pty
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import Result

from annotation.argilla.client import Argilla
from annotation.argilla.units import HISTORY_PATH
from annotation.campaign.teardown import check_exported, plan_teardown, tear_down
from exports.cli.groups import new_folder
from pipeline.core.errors import ArgillaError, NotFoundError
from tests.support.export_bench import Bench, answers, make_dataset, make_user, read_csv, record
from tests.support.places import ROOT

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def people(owner: Argilla) -> dict[str, str]:
    return {name: make_user(owner, name)["id"] for name in ("ana", "ben")}


@pytest.fixture
def bench(argilla_server, owner: Argilla, people: dict[str, str], workspace: str) -> Bench:
    """Two submitted responses in one dataset, one discarded and one draft in another, by two members."""
    workspace_id = owner.request("POST", "/workspaces", json={"name": workspace})["id"]
    datasets = {task: make_dataset(owner, workspace_id, task) for task in ("grounding", "generation")}
    made = Bench(argilla_server, owner, workspace, workspace_id, datasets, people)
    join(owner, workspace_id, *people.values())
    answered = answers("generation")
    made.put("generation", record("generation", "r1", *(made.response(name, **answered) for name in people)))
    begun = made.response("ben", "draft", notes="not sure")
    made.put("grounding", record("grounding", "r1", made.response("ana", "discarded"), begun))
    return made


def join(owner: Argilla, workspace_id: str, *user_ids: str) -> None:
    for user_id in user_ids:
        owner.request("POST", f"/workspaces/{workspace_id}/users", json={"user_id": user_id})


@pytest.fixture
def run(command, workspace: str):
    def teardown(*words: str, code: int = 0) -> Result:
        return command("annotation", "teardown", "--workspace", workspace, "--export", "kept", *words, code=code)

    return teardown


def rows_in(folder: Path) -> dict[str, int]:
    (made,) = (folder / "kept").iterdir()
    return {path.name: len(read_csv(path)) for path in made.glob("*.csv")}


def names_of(bench: Bench) -> list[str]:
    return [each["name"] for each in bench.client.datasets(bench.workspace_id)]


@pytest.mark.parametrize("round_name", ["suggested", pytest.param("practice", marks=pytest.mark.rare)])
def test_suggested_rounds_and_practice_are_exported_too(bench: Bench, run, tmp_path: Path, round_name: str) -> None:
    bench.datasets["more"] = make_dataset(bench.client, bench.workspace_id, "generation", round_name)
    bench.put("more", record("generation", "r2", bench.response("ana", **answers("generation"))))
    run("--yes")
    assert rows_in(tmp_path)["generation.csv"] == 3
    assert bench.workspace not in bench.client.workspaces()


def test_without_yes_nothing_is_touched_with_it_all_exported_and_gone(bench: Bench, run, tmp_path: Path) -> None:
    assert "Add `--yes`" in run(code=1).stderr
    assert (len(names_of(bench)), list(tmp_path.iterdir())) == (2, [])
    said = run("--yes").stderr
    assert "'3-generation-en': 1 record, 2 submitted responses, 0 drafts, 0 discarded, by 2 annotators" in said
    assert "Drafts are in no export: 1 draft would be lost." in said
    rows = rows_in(tmp_path)
    assert (rows["generation.csv"], rows["grounding_discarded.csv"]) == (2, 1)
    (history,) = (tmp_path / "kept").glob("*/history.csv")
    assert sorted({(row["task"], row["status_after"]) for row in read_csv(history)}) == [
        ("generation", "submitted"),
        ("grounding", "discarded"),
        ("grounding", "draft"),
    ]
    with pytest.raises(NotFoundError):  # the history went with what it is about
        bench.client.request("GET", HISTORY_PATH, params={"workspace": bench.workspace})
    assert bench.workspace not in bench.client.workspaces()
    assert set(bench.annotators.values()) <= bench.client.usernames().keys()


@pytest.mark.rare
@pytest.mark.usefixtures("command")
@pytest.mark.parametrize("is_right", [True, False])
def test_a_person_types_the_name_of_the_workspace(bench: Bench, is_right: bool) -> None:
    terminal, end = pty.openpty()
    words = ["annotation", "teardown", "--workspace", bench.workspace]
    code = f"from exports.cli import main; main({words!r})"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=end, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        os.write(terminal, f"{bench.workspace if is_right else 'another'}\n".encode())
        _, said = process.communicate()
    os.close(terminal)
    os.close(end)
    assert process.returncode == (0 if is_right else 1), said
    assert (bench.workspace in bench.client.workspaces()) is not is_right
    assert ("Nothing was removed: 'another'" in said) is not is_right


def test_a_workspace_that_nobody_answered_in_goes_without_an_export(owner: Argilla, run, workspace, tmp_path) -> None:
    owner.request("POST", "/workspaces", json={"name": workspace})
    assert "Nobody submitted or discarded anything, so there is no export." in run("--yes").stderr
    assert workspace not in owner.workspaces()
    assert not list(tmp_path.iterdir())
    with pytest.raises(NotFoundError, match=f"no workspace '{workspace}'"):
        plan_teardown(owner, workspace)


@pytest.mark.rare
def test_what_was_only_discarded_is_exported_with_its_reason(bench: Bench, run, tmp_path: Path) -> None:
    bench.put("grounding", record("grounding", "r2", bench.response("ben", "discarded", notes="Garbled")))
    bench.client.request("DELETE", f"/datasets/{bench.datasets['generation']}")
    run("--yes")
    (kept,) = tmp_path.glob("kept/*/grounding_discarded.csv")
    assert sorted(row["notes"] for row in read_csv(kept)) == ["", "Garbled"]
    assert bench.workspace not in bench.client.workspaces()


def test_an_admin_may_remove_a_dataset_only_and_the_others_stay(bench: Bench, run, monkeypatch) -> None:
    admin = make_user(bench.client, "admin", "admin")
    join(bench.client, bench.workspace_id, admin["id"])
    monkeypatch.setenv("ARGILLA_API_KEY", admin["api_key"])
    assert "Only an owner may remove the workspace" in run("--yes", code=1).stderr
    assert len(names_of(bench)) == 2
    words = ("--dataset", "3-generation-en", "--yes")
    assert "Its history stays on the server; only an owner" in run(*words).output
    assert names_of(bench) == ["2-grounding-en"]
    assert bench.client.request("GET", HISTORY_PATH, params={"workspace": bench.workspace})["total"] == 6
    assert "no dataset '3-generation-en'; it has: 2-grounding-en" in run(*words, code=1).stderr


def test_what_a_killed_run_left_is_exported_and_removed_by_the_next(bench: Bench, run, tmp_path: Path) -> None:
    def die(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tear_down(bench.client, [plan_teardown(bench.client, bench.workspace)], die)
    assert names_of(bench) == ["3-generation-en"]
    run("--yes")
    assert bench.workspace not in bench.client.workspaces()
    assert rows_in(tmp_path)["generation.csv"] == 2


def test_a_second_export_never_replaces_the_first(tmp_path: Path) -> None:
    now = datetime(2026, 11, 22, tzinfo=UTC)
    first = new_folder(tmp_path, "jury/../b", now)
    assert first.parent == tmp_path
    first.mkdir()
    assert new_folder(tmp_path, "jury/../b", now) == first.with_name(f"{first.name}-2")


def test_a_dataset_that_somebody_worked_in_since_stays(bench: Bench) -> None:
    plan = plan_teardown(bench.client, bench.workspace)
    changed = bench.response("ana", **answers("generation", helpful="yes"))
    bench.put("generation", record("generation", "r1", changed))
    with pytest.raises(ArgillaError, match="Somebody worked in the dataset '3-generation-en'"):
        tear_down(bench.client, [plan])
    assert names_of(bench) == ["3-generation-en"]
    assert bench.workspace in bench.client.workspaces()


def test_an_export_that_lacks_a_response_and_a_dataset_of_somebody_else_end_it(bench: Bench, run) -> None:
    plan = plan_teardown(bench.client, bench.workspace)
    rows = {
        (each.id, status): each.contents.counts[status]
        for each in plan.datasets
        for status in ("submitted", "discarded")
    }
    check_exported(plan, rows)
    with pytest.raises(ArgillaError, match="nothing was removed"):  # another dataset does not make up for it
        check_exported(plan, rows | {(bench.datasets["generation"], "submitted"): 1, ("another", "submitted"): 5})
    foreign = {"fields": record("generation", "x")["fields"], "external_id": "x"}
    bench.put("generation", {**foreign, "responses": [bench.response("ana", **answers("generation"))]})
    assert "holds 2 submitted responses of the 3" in run("--yes", code=1).stderr
    bench.client.request("POST", "/datasets", json={"name": "theirs", "workspace_id": bench.workspace_id})
    assert "'theirs', which citejury did not set up" in run("--yes", code=1).stderr
    assert len(names_of(bench)) == 3


def test_users_go_when_asked_unless_they_belong_or_answered_elsewhere(bench: Bench, run) -> None:
    client = bench.client
    other = client.request("POST", "/workspaces", json={"name": f"{bench.workspace}-other"})["id"]
    roles = {"member": "annotator", "answered": "annotator", "owner": "owner", "leaver": "annotator"}
    here = {name: make_user(client, name, role)["id"] for name, role in roles.items()}
    join(client, bench.workspace_id, *here.values())
    join(client, other, here["member"], *bench.annotators.values())
    bench.put("generation", record("generation", "r2", bench._replace(annotators=here).response("leaver", "discarded")))
    elsewhere = Bench(bench.server, client, "", other, {"generation": make_dataset(client, other, "generation")}, here)
    elsewhere.put("generation", record("generation", "r1", elsewhere.response("answered", **answers("generation"))))
    said = run("--yes", "--users").stderr
    assert here.pop("leaver") not in client.usernames()
    for reason in ("an owner", "a member of another workspace", "has answered in another workspace"):
        assert f"stays: {reason})" in said
    assert set(here.values()) <= client.usernames().keys()


@pytest.mark.rare
def test_several_workspaces_go_with_who_answered_in_one_and_belongs_to_the_other(bench: Bench) -> None:
    client = bench.client
    names = (bench.workspace, f"{bench.workspace}-second")
    second, third = (
        client.request("POST", "/workspaces", json={"name": f"{bench.workspace}-{each}"})["id"]
        for each in ("second", "third")
    )
    join(client, third, *bench.annotators.values())  # other tests want them
    mover = {"mover": make_user(client, "mover")["id"]}
    join(client, bench.workspace_id, mover["mover"])
    dataset = {"generation": make_dataset(client, second, "generation")}
    elsewhere = Bench(bench.server, client, names[1], second, dataset, mover)
    elsewhere.put("generation", record("generation", "r1", elsewhere.response("mover", **answers("generation"))))
    said: list[str] = []
    tear_down(client, [plan_teardown(client, each, (), True, names) for each in names], said.append)
    assert mover["mover"] not in client.usernames()
    assert sum("Removed the user 'mover" in line for line in said) == 1
    assert not {*names} & client.workspaces().keys()
