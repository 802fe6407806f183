"""A task of four questions on different scales, from its file to findings, over HTTP and without code."""

import json
import shutil
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.labels import TASKS, forget_tasks
from exports.cli import main
from tests.support.adjudication_data import read_csv
from tests.support.campaign_players import Player
from tests.support.setup_bench import answered, write_records
from tests.support.task_files import PRACTICE, write_claims

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

pytestmark = pytest.mark.server
RIGHT = {"accuracy": "right", "kind": "fact", "stars": 5, "complete": "yes"}


def run(*words: str, code: int = 0) -> Result:
    """What a command printed, which knows of no task but ours when it begins."""
    forget_tasks()
    result = CliRunner().invoke(main, words)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def project(
    tmp_path: Path, argilla_server: "ServerHandle", monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, dict[str, str]]:
    """A folder with the task, a campaign of two people on the session's server, and their names."""
    folder, mark = tmp_path / "project", uuid4().hex[:8]
    path = write_claims(tmp_path)
    path.write_text(path.read_text(encoding="utf-8") + PRACTICE, encoding="utf-8")
    assert str(folder / "claims.toml") in run("init", str(folder), "--task", str(path)).stdout
    settings = folder / "citejury.toml"
    text = settings.read_text(encoding="utf-8").replace('workspace = "citejury"', f'workspace = "claims-{mark}"')
    names = {name: f"{name}-{mark}" for name in ("anna", "ben")}
    for name, own in names.items():
        text = text.replace(f'name = "{name}"', f'name = "{own}"')
    text = text.replace("[campaign.calibration]", "[campaign.practice]\n\n[campaign.calibration]").replace(
        "fraction = 0.1", "records = 1"
    )
    settings.write_text(text, encoding="utf-8")
    assert tomllib.loads(text)["campaign"]["tasks"] == ["claims.toml"]
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    return folder, names


def lists(player: Player) -> dict[str, Any]:
    return {each["name"]: each for each in player.call("GET", "/citejury/me/work")["lists"]}


def answer(player: Player, dataset_id: str, **said: str | int) -> int:
    """Everything that waits for them there, all alike."""
    queue = list(player.queue(dataset_id).values())
    for record_id in queue:
        values = {name: {"value": value} for name, value in (RIGHT | said).items()}
        player.call("POST", f"/records/{record_id}/responses", json={"status": "submitted", "values": values})
    return len(queue)


def test_a_task_goes_from_its_file_to_answers_their_status_and_findings(
    project: tuple[Path, dict[str, str]], argilla_server: "ServerHandle", owner: Argilla
) -> None:
    folder, names = project
    plan = run("annotation", "setup", "--passwords", "passwords.json").stdout
    assert all(name in plan for name in ("practice-4-claims-en", "calibration-4-claims-en", "/4-claims-en"))
    assert "1-retrieval-en" not in plan
    assert "nothing was changed" in run("annotation", "setup").output
    records = [answered(f"claims-{number}") for number in range(3)]
    hostile = answered("claims-3", answer="# 1\n\n<script>x</script> **so** [1].", chunks=(), context_set="")
    pushed = run("annotation", "push", str(write_records(folder / "records.jsonl", *records, hostile)))
    rows = [line.split() for line in pushed.stdout.splitlines() if line.startswith("claims")]
    assert "1 of 4 records have no passages: no task shows them (claims)" in pushed.stderr
    assert [(row[2], row[3]) for row in rows] == [("calibration", "1"), ("production", "2")]
    again = run("annotation", "push", "records.jsonl").stdout
    assert [line.split()[3:5] for line in again.splitlines() if line.startswith("claims")] == [["0", "1"], ["0", "2"]]
    passwords = json.loads((folder / "passwords.json").read_text(encoding="utf-8"))
    with ExitStack() as stack:
        anna, ben = (stack.enter_context(Player(argilla_server.url, name, passwords[name])) for name in names.values())
        before = lists(anna)
        assert list(before) == ["practice-4-claims-en", "calibration-4-claims-en", "4-claims-en"]
        assert {(each["task"], each["title"]) for each in before.values()} == {("claims", "Claims")}
        practice, calibration, production = (each["id"] for each in before.values())
        assert (before["4-claims-en"]["closed_by"], anna.queue(production)) == (practice, {})
        (case,) = anna.queue(practice).values()
        answer(anna, practice, stars=4, accuracy="partly")
        told = anna.call("GET", f"/citejury/records/{case}/practice")
        assert [(each["name"], each["hers"], each["known"]) for each in told["labels"]] == [
            ("accuracy", "partly", "right"),
            ("kind", "fact", "fact"),
            ("stars", "4", "5"),
            ("complete", True, True),
        ]
        assert (told["standing"]["right"], told["standing"]["wanted"]) == (2, 3)
        anna.call("POST", f"/citejury/datasets/{practice}/practice/again")
        for player in (anna, ben):
            answer(player, practice)
            assert answer(player, calibration) == 1
        assert (answer(anna, production), answer(ben, production, complete="no", stars=1, kind="opinion")) == (2, 2)
    status = json.loads(run("annotation", "status", "--json").stdout)
    found = {each["dataset"]: each for each in status["datasets"]}
    assert {name: (each["records"], each["overlap_reached"]) for name, each in found.items()} == {
        "calibration-4-claims-en": (1, 1),
        "4-claims-en": (2, 2),
    }
    assert found["4-claims-en"]["broken_rules"] == {"right_is_complete": 2}
    assert TASKS[3:] == ["claims"]
    assert "right_is_complete 2×" in run("annotation", "status", "--all").stdout
    task = folder / "claims.toml"
    task.write_text(task.read_text(encoding="utf-8").replace("is right is", "is all right is"), encoding="utf-8")
    assert "version of the wording" in run("annotation", "setup", "--yes").stdout
    assert "nothing was changed" in run("annotation", "setup").output
    split = run("exports", "adjudicate", "push", "--one-more", code=1).output
    assert "2 units are split" in split
    sheets = run("annotation", "share", "--out", "sheets").stdout
    assert "guidelines-claims-en.html" in sheets
    assert "<h1>Claims</h1>" in (folder / "sheets" / "guidelines-claims-en.html").read_text(encoding="utf-8")
    measured = findings(folder)
    assert measured[0]["constraint_violations"] == {"right_is_complete": 2}
    assert set(measured[0]["labels"]) == {"accuracy", "kind", "stars", "complete"}
    assert measured[1]["scaled"]["stars"]["mean"]["rate"] == pytest.approx((5 + 3 + 3) / 3)  # practice is nobody's data
    assert measured[1]["labels"]["complete"]["n_units"] == 3
    adjudicators_decide_on_scales_what_annotators_differ_on_and_nothing_else(project, argilla_server)


def adjudicators_decide_on_scales_what_annotators_differ_on_and_nothing_else(
    project: tuple[Path, dict[str, str]], argilla_server: "ServerHandle"
) -> None:
    folder, names = project
    export, dora = folder.parent / "alone" / "export", names["anna"].replace("anna", "dora")
    run("annotation", "users", "--add", dora, "--role", "adjudicator", "--passwords", "dora.json")
    push = ("exports", "adjudicate", "push", str(export), "--votes", "--annotator", dora, "--task", "claims")
    assert "There is no task 'claim'" in run(*push, "--task", "claim", code=1).output
    assert "'star' is no label" in run(*push, "--label", "star", code=2).output
    assert "Units new: 2, there before: 0, refused: 0." in run(*push, "--label", "stars").stdout
    assert "Units new: 0, there before: 2, refused: 0." in run(*push, "--label", "complete", "--label", "kind").stdout
    passwords = json.loads((folder / "dora.json").read_text(encoding="utf-8"))
    with Player(argilla_server.url, dora, passwords[dora]) as player:
        (work,) = lists(player).values()
        assert (work["name"], work["task"]) == ("adjudication-4-claims-en", "claims")
        queue = list(player.queue(work["id"]).values())
        record = player.call("GET", f"/records/{queue[0]}")
        assert record["metadata"]["citejury_disputed"] == ["kind", "stars", "complete"]
        shown = [each.split("\n") for each in record["fields"]["votes"].split("\n\n")]
        assert shown == [
            ["What is it?", "Fact: 1 · Opinion: 1"],
            ["How good is it?", "1: 1 · 5: 1"],
            ["Is it complete?", "Yes: 1 · No: 1"],
        ]
        for record_id, stars in zip(queue, (2, 4), strict=True):
            said = {"kind": "neither of them", "stars": stars, "complete": "yes"}
            values = {name: {"value": value} for name, value in said.items()}
            player.call("POST", f"/records/{record_id}/responses", json={"status": "submitted", "values": values})
    told = run("exports", "adjudicate", "read", "--out", "decisions.csv", "--export", str(export))
    rows = read_csv(folder / "decisions.csv")
    assert sorted((row["task"], row["label"], row["decision"]) for row in rows) == [
        ("claims", "complete", "True"),
        ("claims", "complete", "True"),
        ("claims", "kind", "neither of them"),
        ("claims", "kind", "neither of them"),
        ("claims", "stars", "2"),
        ("claims", "stars", "4"),
    ]
    scores = {(row["label"], row["annotator"]): row for row in read_csv(folder / "scores.csv")}
    assert {key: (row["n_agree"], row["n"], row["no_when_yes"]) for key, row in scores.items()} == {
        ("kind", names["anna"]): ("0", "2", ""),
        ("kind", names["ben"]): ("0", "2", ""),
        ("stars", names["anna"]): ("0", "2", ""),
        ("stars", names["ben"]): ("0", "2", ""),
        ("complete", names["anna"]): ("2", "2", "0"),
        ("complete", names["ben"]): ("0", "2", "2"),
    }
    assert [line.split()[2:] for line in told.stdout.splitlines() if names["ben"] in line] == [
        ["6", "0%", "0", "of", "0", "2", "of", "2"]
    ]
    decided = ("--consensus", "adjudicated", "--decisions", "decisions.csv")
    run("exports", "results", str(export), *decided, "--out", "decided")
    found = json.loads((folder / "decided" / "results.json").read_bytes())["tasks"]["claims"]
    stars, complete = found["scaled"]["stars"]["mean"], found["labels"]["complete"]
    assert (stars["rate"], stars["n_units"]) == (pytest.approx((5 + 2 + 4) / 3), 3)
    assert (complete["rate"], complete["n_units"]) == (1, 3)
    assert found["scaled"]["kind"]["shares"]["neither of them"]["rate"] == pytest.approx(2 / 3)


def findings(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Agreement and results on the task as files have them, computed from its export alone."""
    assert "tasks/claims.json" in run("exports", "csv", "export", "--task", "claims").stderr
    alone = folder.parent / "alone"
    shutil.move(folder / "export", alone / "export")
    found = []
    for command in ("agreement", "results"):
        run("exports", command, str(alone / "export"), "--out", str(alone / command))
        found.append(json.loads((alone / command / f"{command}.json").read_bytes())["tasks"]["claims"])
    assert "claims" in (alone / "agreement" / "details.html").read_text(encoding="utf-8")
    return found[0], found[1]


def test_a_plan_counts_the_campaigns_own_task(project: tuple[Path, dict[str, str]]) -> None:
    folder, _ = project
    records = write_records(folder / "records.jsonl", *(answered(f"claims-{number}") for number in range(3)))
    planned = run("study", "plan", str(records), "--out", "plan").stdout
    assert [line.split()[:4] for line in planned.splitlines() if line.startswith("claims")] == [
        ["claims", "en", "3", "6"]
    ]
    assert "retrieval" not in planned


def test_what_is_wrong_about_tasks_in_a_campaign_is_named(project: tuple[Path, dict[str, str]]) -> None:
    folder, _ = project
    settings, task = folder / "citejury.toml", folder / "claims.toml"
    right, questions = settings.read_text(encoding="utf-8"), task.read_text(encoding="utf-8")
    for before, after, said in (
        ('tasks = ["claims.toml"]', 'tasks = ["nowhere.toml"]', "`nowhere.toml` is missing"),
        ('tasks = ["claims.toml"]', 'tasks = ["claims.toml", "claims.toml"]', "`tasks` has 'claims' twice"),
        ('locales = ["en"]', 'locales = ["en", "de"]', "the file of 'claims' has wording for en only"),
        ("overlap = 2", "overlap = { retrieval = 2 }", "`overlap` has 'retrieval', which is none of `tasks`"),
        ("overlap = 2", "overlap = { claim = 2 }", "'generation' or 'claims', found 'claim'"),
    ):
        assert before in right
        settings.write_text(right.replace(before, after, 1), encoding="utf-8")
        assert said in run("annotation", "setup", "--dry-run", code=1).output
    settings.write_text(right, encoding="utf-8")
    told = run("annotation", "setup", "--new-version", "retrieval", code=2).output
    assert "name one of the tasks here, claims" in told
    task.write_text(questions.replace('answer = "right"', 'answer = "true"'), encoding="utf-8")
    told = run("annotation", "setup", "--dry-run", code=1).output
    assert "no answer to `accuracy`: found 'true'. Write `accuracy = { answer = \"wrong\"" in told
    task.write_text(questions.replace("scale = 'ordinal'", "scale = 'order'"), encoding="utf-8")
    assert "line 8: `question.1.scale` is 'order'; expected 'boolean'" in run("annotation", "status", code=1).output
