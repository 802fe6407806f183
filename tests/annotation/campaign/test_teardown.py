"""Teardown: what would be lost is named and asked about, exported first, and nothing else is removed."""

import os
import pty
import subprocess
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.labels import TaskName
from annotation.argilla.units import HISTORY_PATH
from annotation.campaign.teardown import Teardown, check_exported, plan_teardown, tear_down
from exports.cli import main
from exports.cli.teardown import new_folder
from pipeline.core.errors import ArgillaError, NotFoundError
from tests.support.export_bench import Bench, answers, make_dataset, make_user, read_csv, record

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

pytestmark = pytest.mark.server


@pytest.fixture
def client(argilla_server: "ServerHandle", monkeypatch: pytest.MonkeyPatch) -> Iterator[Argilla]:
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    with Argilla(argilla_server.url, argilla_server.owner_api_key) as client:
        yield client


@pytest.fixture(scope="module")
def people(argilla_server: "ServerHandle") -> dict[str, str]:
    with Argilla(argilla_server.url, argilla_server.owner_api_key) as client:
        return {name: make_user(client, name)["id"] for name in ("ana", "ben")}


@pytest.fixture
def bench(argilla_server: "ServerHandle", client: Argilla, people: dict[str, str]) -> Bench:
    """Two submitted responses in one dataset, one discarded and one draft in another, by two members."""
    name = f"w-{uuid.uuid4().hex[:12]}"
    workspace_id = client.request("POST", "/workspaces", json={"name": name})["id"]
    tasks: tuple[TaskName, ...] = ("grounding", "generation")
    datasets: dict[str, str] = {task: make_dataset(client, workspace_id, task) for task in tasks}
    made = Bench(argilla_server, client, name, workspace_id, datasets, people)
    for user_id in people.values():
        client.request("POST", f"/workspaces/{workspace_id}/users", json={"user_id": user_id})
    said = answers("generation")
    made.put("generation", record("generation", "r1", *(made.response(name, **said) for name in people)))
    begun = made.response("ben", "draft", notes="not sure")
    made.put("grounding", record("grounding", "r1", made.response("ana", "discarded"), begun))
    return made


def run(bench: Bench, *words: str) -> Result:
    return CliRunner().invoke(main, ["annotation", "teardown", "--workspace", bench.workspace, *words])


def rows_in(folder: Path) -> dict[str, int]:
    (made,) = folder.iterdir()
    return {path.name: len(read_csv(path)) for path in made.glob("*.csv")}


def test_a_round_that_a_machine_filled_in_is_exported_too(bench: Bench, tmp_path: Path) -> None:
    filled_in = make_dataset(bench.client, bench.workspace_id, "generation", "suggested")
    answered = record("generation", "r2", bench.response("ana", **answers("generation")))
    bench._replace(datasets={"generation": filled_in}).put("generation", answered)
    result = run(bench, "--yes", "--export", str(tmp_path / "kept"))
    assert result.exit_code == 0, result.output
    assert rows_in(tmp_path / "kept")["generation.csv"] == 3
    assert bench.workspace not in bench.client.workspaces()


def test_everything_answered_is_exported_and_then_the_workspace_is_gone(bench: Bench, tmp_path: Path) -> None:
    result = run(bench, "--yes", "--export", str(tmp_path / "kept"))
    assert result.exit_code == 0, result.output
    assert "'3-generation-en': 1 record, 2 submitted responses, 0 drafts, 0 discarded, by 2 annotators" in result.stderr
    assert "Drafts are in no export: 1 draft would be lost." in result.stderr
    rows = rows_in(tmp_path / "kept")
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


def test_without_a_terminal_and_without_yes_nothing_is_touched(bench: Bench, tmp_path: Path) -> None:
    result = run(bench, "--export", str(tmp_path))
    assert (result.exit_code, "Add `--yes`" in result.stderr) == (1, True)
    assert len(bench.client.datasets(bench.workspace_id)) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("is_right", [True, False])
def test_a_person_types_the_name_of_the_workspace(bench: Bench, tmp_path: Path, is_right: bool) -> None:
    terminal, end = pty.openpty()
    words = ["annotation", "teardown", "--workspace", bench.workspace, "--export", str(tmp_path)]
    code = f"from exports.cli import main; main({words!r})"
    with subprocess.Popen([sys.executable, "-c", code], stdin=end, stderr=subprocess.PIPE, text=True) as command:
        os.write(terminal, f"{bench.workspace if is_right else 'another'}\n".encode())
        _, said = command.communicate()
    os.close(terminal)
    os.close(end)
    assert command.returncode == (0 if is_right else 1), said
    assert (bench.workspace in bench.client.workspaces()) is not is_right
    assert ("Nothing was removed: 'another'" in said) is not is_right


def test_a_workspace_that_nobody_answered_in_goes_without_an_export(bench: Bench, tmp_path: Path) -> None:
    name = f"empty-{uuid.uuid4().hex[:8]}"
    bench.client.request("POST", "/workspaces", json={"name": name})
    words = ["annotation", "teardown", "--workspace", name, "--yes", "--export", str(tmp_path)]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert "Nobody submitted or discarded anything, so there is no export." in result.stderr
    assert name not in bench.client.workspaces()
    assert not list(tmp_path.iterdir())


def test_what_was_only_discarded_is_exported_with_its_reason(bench: Bench, tmp_path: Path) -> None:
    bench.put("grounding", record("grounding", "r2", bench.response("ben", "discarded", notes="Garbled")))
    bench.client.request("DELETE", f"/datasets/{bench.datasets['generation']}")
    result = run(bench, "--yes", "--export", str(tmp_path))
    assert result.exit_code == 0, result.output
    (kept,) = tmp_path.glob("*/grounding_discarded.csv")
    assert sorted(row["notes"] for row in read_csv(kept)) == ["", "Garbled"]
    assert bench.workspace not in bench.client.workspaces()


def test_an_admin_is_told_before_anything_is_gone_and_may_remove_a_dataset(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = make_user(bench.client, "admin", "admin")
    bench.client.request("POST", f"/workspaces/{bench.workspace_id}/users", json={"user_id": admin["id"]})
    monkeypatch.setenv("ARGILLA_API_KEY", admin["api_key"])
    result = run(bench, "--yes", "--export", str(tmp_path))
    assert (result.exit_code, "Only an owner may remove the workspace" in result.stderr) == (1, True)
    assert len(bench.client.datasets(bench.workspace_id)) == 2
    result = run(bench, "--dataset", "3-generation-en", "--yes", "--export", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "Its history stays on the server; only an owner" in result.output
    assert len(bench.client.datasets(bench.workspace_id)) == 1
    assert bench.client.request("GET", HISTORY_PATH, params={"workspace": bench.workspace})["total"] == 6


def test_one_dataset_goes_and_the_others_stay(bench: Bench, tmp_path: Path) -> None:
    assert run(bench, "--dataset", "3-generation-en", "--yes", "--export", str(tmp_path)).exit_code == 0
    assert [each["name"] for each in bench.client.datasets(bench.workspace_id)] == ["2-grounding-en"]
    unknown = run(bench, "--dataset", "3-generation-en", "--yes")
    assert unknown.exit_code == 1
    assert "no dataset '3-generation-en'; it has: 2-grounding-en" in unknown.stderr


def test_what_a_killed_run_left_is_exported_and_removed_by_the_next(bench: Bench, tmp_path: Path) -> None:
    class KilledError(Exception):
        pass

    def die(line: str) -> None:
        raise KilledError(line)

    with pytest.raises(KilledError):
        tear_down(bench.client, [plan_teardown(bench.client, bench.workspace)], die)
    assert [each["name"] for each in bench.client.datasets(bench.workspace_id)] == ["3-generation-en"]
    assert run(bench, "--yes", "--export", str(tmp_path)).exit_code == 0
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
    bench.put("generation", {**record("generation", "r1", changed)})
    with pytest.raises(ArgillaError, match="Somebody worked in the dataset '3-generation-en'"):
        tear_down(bench.client, [plan])
    assert [each["name"] for each in bench.client.datasets(bench.workspace_id)] == ["3-generation-en"]
    assert bench.workspace in bench.client.workspaces()


def test_an_export_that_lacks_a_response_ends_it(bench: Bench, tmp_path: Path) -> None:
    foreign = {"fields": record("generation", "x")["fields"], "external_id": "x"}
    bench.put("generation", {**foreign, "responses": [bench.response("ana", **answers("generation"))]})
    result = run(bench, "--yes", "--export", str(tmp_path))
    assert (result.exit_code, "holds 2 submitted responses of the 3" in result.stderr) == (1, True)
    assert len(bench.client.datasets(bench.workspace_id)) == 2


def test_a_dataset_of_somebody_else_is_not_touched(bench: Bench) -> None:
    body = {"name": "theirs", "workspace_id": bench.workspace_id}
    bench.client.request("POST", "/datasets", json=body)
    result = run(bench, "--yes")
    assert (result.exit_code, "'theirs', which citejury did not set up" in result.stderr) == (1, True)
    assert len(bench.client.datasets(bench.workspace_id)) == 3


def test_users_go_when_asked_unless_they_belong_or_answered_elsewhere(bench: Bench, tmp_path: Path) -> None:
    client = bench.client
    other = client.request("POST", "/workspaces", json={"name": f"other-{uuid.uuid4().hex[:8]}"})["id"]
    roles = {"member": "annotator", "answered": "annotator", "owner": "owner", "leaver": "annotator"}
    here = {name: make_user(client, name, role)["id"] for name, role in roles.items()}
    for user_id in here.values():
        client.request("POST", f"/workspaces/{bench.workspace_id}/users", json={"user_id": user_id})
    for user_id in (here["member"], *bench.annotators.values()):
        client.request("POST", f"/workspaces/{other}/users", json={"user_id": user_id})
    bench.put("generation", record("generation", "r2", bench._replace(annotators=here).response("leaver", "discarded")))
    elsewhere = Bench(bench.server, client, "", other, {"generation": make_dataset(client, other, "generation")}, here)
    elsewhere.put("generation", record("generation", "r1", elsewhere.response("answered", **answers("generation"))))
    result = run(bench, "--yes", "--users", "--export", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert here.pop("leaver") not in client.usernames()
    for reason in ("an owner", "a member of another workspace", "has answered in another workspace"):
        assert f"stays: {reason})" in result.stderr
    assert set(here.values()) <= client.usernames().keys()


def test_several_workspaces_go_with_who_answered_in_one_and_belongs_to_the_other(bench: Bench) -> None:
    client = bench.client
    name = f"second-{uuid.uuid4().hex[:8]}"
    second = client.request("POST", "/workspaces", json={"name": name})["id"]
    elsewhere_too = client.request("POST", "/workspaces", json={"name": f"third-{uuid.uuid4().hex[:8]}"})["id"]
    for user_id in bench.annotators.values():  # other tests want them
        client.request("POST", f"/workspaces/{elsewhere_too}/users", json={"user_id": user_id})
    her = {"mover": make_user(client, "mover")["id"]}
    client.request("POST", f"/workspaces/{bench.workspace_id}/users", json={"user_id": her["mover"]})
    dataset = {"generation": make_dataset(client, second, "generation")}
    elsewhere = Bench(bench.server, client, name, second, dataset, her)
    elsewhere.put("generation", record("generation", "r1", elsewhere.response("mover", **answers("generation"))))
    names = (bench.workspace, name)
    told: list[str] = []
    tear_down(client, [plan_teardown(client, each, (), True, names) for each in names], told.append)
    assert her["mover"] not in client.usernames()
    assert sum("Removed the user 'mover" in line for line in told) == 1
    assert not {*names} & client.workspaces().keys()


def test_practice_is_exported_before_it_goes(bench: Bench, tmp_path: Path) -> None:
    bench.datasets["practice"] = make_dataset(bench.client, bench.workspace_id, "generation", "practice")
    bench.put("practice", record("generation", "lesson", bench.response("ana", **answers("generation"))))
    result = run(bench, "--yes", "--export", str(tmp_path))
    assert (result.exit_code, rows_in(tmp_path)["generation.csv"]) == (0, 3), result.output


def test_a_count_that_differs_in_one_dataset_is_not_made_up_for_by_another(bench: Bench) -> None:
    plan: Teardown = plan_teardown(bench.client, bench.workspace)
    rows = {(each.id, "submitted"): each.contents.submitted for each in plan.datasets}
    rows |= {(each.id, "discarded"): each.contents.discarded for each in plan.datasets}
    check_exported(plan, rows)
    with pytest.raises(ArgillaError, match="nothing was removed"):
        check_exported(plan, rows | {(bench.datasets["generation"], "submitted"): 1, ("another", "submitted"): 5})


def test_a_workspace_that_is_not_there_is_named(bench: Bench) -> None:
    with pytest.raises(NotFoundError, match="no workspace 'nowhere'"):
        plan_teardown(bench.client, "nowhere")
