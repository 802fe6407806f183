"""A study that is asked once: planned without money, closed without those who left, killed and cut off anywhere."""

import csv
import json
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.argilla.tasks import task_of
from annotation.server.launch import ServerHandle, start_server
from exports.cli import main
from exports.cli.project import start_project
from exports.study.work import WAITS

ADJUDICATOR = "dora"
SERVER_STEPS = (
    *("annotation setup", "annotation push", "annotation share"),
    *("exports csv", "exports adjudicate push", "exports adjudicate read"),
)
STEPS = ("pipeline ask", "pipeline sources", "study plan", *SERVER_STEPS, "exports results")


def study(*words: str) -> Result:
    return CliRunner().invoke(main, ["study", *words])


def start(folder: Path, workspace: str, names: Sequence[str], adjudicator: str = "") -> None:
    start_project(folder)
    people = "".join(f'[[campaign.annotators]]\nname = "{name}"\n' for name in names)
    settles = f'[[campaign.annotators]]\nname = "{adjudicator}"\nrole = "adjudicator"\n' if adjudicator else ""
    (folder / "citejury.toml").write_text(
        f'workspace = "{workspace}"\n[campaign]\nlocales = ["en"]\noverlap = 2\n{people}{settles}', encoding="utf-8"
    )


@pytest.fixture
def jury(tmp_path: Path, argilla_server: ServerHandle, monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[str]]:
    """The workspace and people of a study in the working directory, which is new."""
    workspace = f"once-{uuid4().hex[:8]}"
    names = [f"{who}-{workspace}" for who in ("anna", "ben")]
    start(tmp_path, workspace, names)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    return workspace, names


def answer(owner: Argilla, workspace: str, names: Sequence[str], discarded: Callable[[int, int], bool]) -> None:
    """All say yes to two labels, the second person no to the first one of every third record."""
    keys = {user["username"]: user["api_key"] for user in owner.request("GET", "/users")["items"]}
    for dataset in owner.datasets(owner.find_workspace(workspace)):
        labels = LABELS[task_of(dataset)]
        records = [record for _, page in owner.record_pages(dataset["id"]) for record in page]
        for person, name in enumerate(names):
            items = [
                {
                    "record_id": each["id"],
                    "status": "discarded" if discarded(person, number) else "submitted",
                    "values": {
                        label: {"value": "yes" if place < 2 and not (person and number % 3 + place == 0) else "no"}
                        for place, label in enumerate(labels)
                    },
                }
                for number, each in enumerate(sorted(records, key=lambda each: str(each["external_id"])))
            ]
            with Argilla(owner.api_url, keys[name]) as annotator:
                annotator.request("POST", "/me/responses/bulk", json={"items": items})


def test_a_plan_before_any_money_says_hours_people_calls_and_cost_without_key_server_or_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, "jury", ["anna", "ben"])
    monkeypatch.chdir(tmp_path)
    stored = study("plan")
    assert stored.exit_code == 0, stored.output
    assert "$ citejury pipeline ask" not in stored.stderr  # stored answers cost nothing
    assert "`offline` fetches no page: passages" in stored.stderr
    path = Path("study.toml")
    text = path.read_text(encoding="utf-8").replace('replay = "payloads"', 'providers = "openai,claude"\nrepeats = 3')
    path.write_text(text.replace("# hours = 40", "power = 0.1"), encoding="utf-8")
    before = sorted(Path().rglob("*"))
    result = study("plan")
    assert result.exit_code == 0, result.output
    assert "$ citejury pipeline ask narratives.csv --out study/answers --providers" in result.stderr
    assert "calls: 12 (openai 6 to" in result.stdout
    assert "cost: openai " in result.stdout
    assert "2 narratives (all) with 12 answers" in result.stdout
    # Retrieval: 12 answers × 5 passages × 2 people.
    assert ["retrieval", "en", "60", "120"] in [line.split()[:4] for line in result.stdout.splitlines()]
    assert "for a difference of 20 points: 61; of 10: 223; of 5: 861 narratives" in result.stdout
    assert "! A difference of 10 points needs 223 narratives" in result.stderr
    hours = {line.split(":")[0]: line.split(": ")[1] for line in result.stdout.splitlines() if line.startswith("Hours")}
    whole = float(hours["Hours of all annotators together"].split()[0])
    each = [float(word) for word in hours["Hours of each person, if all do as much"].replace(",", "").split()[1::2]]
    assert sum(each) == pytest.approx(whole, abs=0.2)
    assert sorted(Path().rglob("*")) == before
    alone = study("plan", "narratives.csv", "--overlap", "3")
    assert "! retrieval waits for 3 annotators, and 2 of the campaign label in 'en'" in alone.stdout
    assert "`--out` takes the sample drawn from records" in study("plan", "narratives.csv", "--out", "plan").stderr


def test_a_study_without_people_or_with_a_said_overlap_is_refused_in_a_line_before_it_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, "jury", [], ADJUDICATOR)
    monkeypatch.chdir(tmp_path)
    for command in ("run", "plan", "status"):
        result = study(command)
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1), result.stderr
        assert result.stderr.startswith("Error: Nobody labels: `[campaign]` in `citejury.toml` names no annotator.")
    start(tmp_path / "said", "jury", ["anna"])
    monkeypatch.chdir(tmp_path / "said")
    text = Path("study.toml").read_text(encoding="utf-8")
    Path("study.toml").write_text(text.replace("[setup]", "[setup]\noverlap = 2"), encoding="utf-8")
    assert "`[setup]` in the study has `overlap`" in study("run").stderr
    assert not Path("study/answers").exists()


@pytest.mark.server
def test_where_nobody_is_left_the_units_are_named_and_the_study_ends(
    jury: tuple[str, list[str]], owner: Argilla
) -> None:
    workspace, names = jury
    assert study("run").exit_code == WAITS
    status = study("status")
    assert f"people   0 of 25 units done; waits for {names[0]} 25, {names[1]} 25" in status.stdout
    assert status.stderr == "Next, when they are done: citejury study run\n"
    answer(owner, workspace, names, lambda person, number: True)
    nothing = study("run")
    assert (nothing.exit_code, "there is nothing to report" in " ".join(nothing.stderr.split())) == (0, True)
    answer(owner, workspace, names, lambda person, number: (person, number) == (0, 1))
    done = study("run")
    assert done.exit_code == 0, done.output
    assert "study closes without 3 submissions, and its report is interim." in done.stderr
    units = [line.split() for line in done.stderr.split("may answer these units:\n")[1].splitlines()[:3]]
    assert Counter(task for task, _ in units) == {"retrieval": 1, "grounding": 1, "generation": 1}
    records = Path("study/records.jsonl").read_text(encoding="utf-8").splitlines()
    known = {json.loads(line)["record_uuid"] for line in records}
    assert {unit.partition(":")[0] for _, unit in units} <= known
    again = study("run")
    assert (again.exit_code, "$ citejury" in again.stderr) == (0, False)
    assert "Closed: the report is study/results/report.html, interim: 22 of 25 units" in again.stderr
    status = study("status")
    assert "people   22 of 25 units done; nobody is left for 3 submissions" in status.stdout
    assert "results  study/results/report.html, interim: 22 of 25 units" in status.stdout
    assert status.stderr == "Next: open study/results/report.html\n"

    # Somebody new may answer, and in the end does.
    third = f"ines-{workspace}"
    with Path("citejury.toml").open("a", encoding="utf-8") as file:
        file.write(f'[[campaign.annotators]]\nname = "{third}"\n')
    status = study("status")
    assert f"interim: 22 of 25 units; opens again: {third} may answer now" in status.stdout
    assert status.stderr == "Next: citejury study run\n"
    for _ in range(2):
        opened = study("run")
        assert (opened.exit_code, "study opens again, as its report is interim" in opened.stderr) == (WAITS, True)
        assert Path(f"sheets/sheet-{third}.html").is_file()
    assert f"waits for {third} 3" in study("status").stdout
    answer(owner, workspace, [third], lambda person, number: False)
    whole = study("run")
    assert (whole.exit_code, "opens again, as its report is interim: 3 submissions came in" in whole.stderr) == (
        0,
        True,
    )
    assert whole.stderr.endswith("\nFinished: the report is study/results/report.html\n")
    assert "people   done" in study("status").stdout


@pytest.mark.server
def test_narratives_that_come_after_the_sample_are_asked_while_it_is_of_everything_and_named_else(
    jury: tuple[str, list[str]], owner: Argilla
) -> None:
    workspace, names = jury
    whole = Path("narratives.csv").read_text(encoding="utf-8")
    *before, last = whole.splitlines(keepends=True)
    Path("narratives.csv").write_text("".join(before), encoding="utf-8")
    assert study("run").exit_code == WAITS
    Path("narratives.csv").write_text(whole, encoding="utf-8")
    added = f"1 narrative came into narratives.csv after the sample: {last.partition(',')[0]}. "
    for command in ("status", "plan"):
        result = study(command)
        assert f"{added}`citejury study run` asks them" in " ".join(result.stderr.split()), result.output
    result = study("run")
    assert (result.exit_code, "$ citejury pipeline ask" in result.stderr) == (WAITS, True)
    assert "0 of 25 units done" in study("status").stdout
    assert "after the sample" not in study("run").stderr

    answer(owner, workspace, names, lambda person, number: False)
    assert study("run").exit_code == 0
    Path("narratives.csv").write_text(whole + last.replace(last.partition(",")[0], "N900"), encoding="utf-8")
    done = study("run")
    assert (done.exit_code, "$ citejury" in done.stderr) == (0, False)
    said = "N900. They are not asked. Move `study/plan` and `study/results` elsewhere, and `citejury study run` asks"
    assert said in " ".join(done.stderr.split())


class Server:
    """A server that can be stopped and started again where it was."""

    def __init__(self, home: Path) -> None:
        self.home, self.port, self.stack = home, 0, ExitStack()
        self.start()

    def start(self) -> None:
        self.handle = self.stack.enter_context(start_server(self.home, port=self.port))
        self.port = int(self.handle.url.rpartition(":")[2])

    def stop(self) -> None:
        self.stack.close()


def run_until(step: str, strike: Callable[[subprocess.Popen[str]], object]) -> tuple[int, str]:
    """Exit code and rest of what `study run` says, which is struck when it shows this step."""
    command = [str(Path(sys.executable).parent / "citejury"), "study", "run"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any(line.startswith(f"$ citejury {step}") for line in process.stderr), step
        strike(process)
        said = process.stderr.read()
    return process.returncode, said


def end_state(owner: Argilla, workspace: str) -> dict[str, object]:
    """What a study comes to, but for the moments of its responses."""
    found: dict[str, object] = {}
    for name in ("retrieval", "grounding", "generation"):
        with open(f"study/export/{name}.csv", encoding="utf-8", newline="") as file:
            rows = [{key: row[key] for key in ("record_uuid", *LABELS[name])} for row in csv.DictReader(file)]
        found[name] = sorted(rows, key=repr)
    with open("study/decisions.csv", encoding="utf-8", newline="") as file:
        found["decisions"] = sorted((row["record_uuid"], row["label"], row["decision"]) for row in csv.DictReader(file))
    results = json.loads(Path("study/results/results.json").read_text(encoding="utf-8"))
    found |= {name: results[name] for name in ("n_records", "consensus", "findings")}
    for home in (workspace, f"{workspace}-adjudication"):
        described = owner.datasets(owner.find_workspace(home))
        found[f"records of {home.removeprefix(workspace)}"] = {
            each["name"]: sum(len(page) for _, page in owner.record_pages(each["id"])) for each in described
        }
    return found


@pytest.mark.rare
@pytest.mark.server
def test_killed_or_cut_off_from_its_server_at_every_step_a_study_ends_as_one_that_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(tmp_path / "home")
    monkeypatch.setenv("ARGILLA_API_URL", server.handle.url)
    monkeypatch.setenv("ARGILLA_API_KEY", server.handle.owner_api_key)

    def kill(step: str) -> None:
        assert run_until(step, lambda process: process.kill())[0] == -signal.SIGKILL

    def cut_off(step: str) -> None:
        def strike(process: subprocess.Popen[str]) -> None:
            process.send_signal(signal.SIGSTOP)
            server.stop()
            process.send_signal(signal.SIGCONT)

        code, said = run_until(step, strike)
        assert (code, said.count("Error: ")) == (1, 1), said
        server.start()

    def lead(name: str, strike: Callable[[str], None], steps: Sequence[str]) -> dict[str, object]:
        """A study that is struck at these steps, in a folder with the answers of the first from another machine."""
        names = [f"{who}-{name}" for who in ("anna", "ben")]
        start(tmp_path / name, name, names, f"{ADJUDICATOR}-{name}")
        if name != "whole":
            shutil.copytree(tmp_path / "whole/study/answers", tmp_path / name / "study/answers")
        monkeypatch.chdir(tmp_path / name)
        for part, code in ((STEPS[:6], WAITS), (STEPS[6:8], WAITS), (STEPS[8:], 0)):
            for step in filter(steps.__contains__, part):
                strike(step)
            result = study("run")
            assert result.exit_code == code, result.output
            with Argilla(server.handle.url, server.handle.owner_api_key) as owner:
                if part == STEPS[:6]:
                    answer(owner, name, names, lambda person, number: False)
                elif code:
                    answer(owner, f"{name}-adjudication", [f"{ADJUDICATOR}-{name}"], lambda person, number: False)
                else:
                    return end_state(owner, name)
        raise AssertionError

    with server.stack:
        whole = lead("whole", kill, ())
        assert (bool(whole["decisions"]), whole["consensus"]) == (True, "adjudicated")
        assert lead("killed", kill, STEPS) == whole
        assert lead("cut", cut_off, SERVER_STEPS) == whole
