"""The README is true: its generated parts are new, and every command in it runs, in its order."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from annotation.client import Argilla
from annotation.labels import LABELS, TASKS
from annotation.tasks import task_of
from exports.schema import COLUMNS
from tests.support.places import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = [
    line.split("  #")[0].strip()
    for block in re.findall(r"^```sh\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
    if line.strip()
]
MAKE, SERVE = "make ", "citejury annotation serve"
COMMANDS = [line for line in LINES if not line.startswith((MAKE, SERVE, "export PATH"))]
EXAMPLES = re.findall(r"^```python\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
FIRST_EXPORT = next(index for index, line in enumerate(COMMANDS) if line.startswith("citejury exports"))
DECISIONS = next(index for index, line in enumerate(COMMANDS) if line.startswith("citejury exports adjudicate read"))
SETTINGS = [line for line in COMMANDS[:FIRST_EXPORT] if not line.startswith("citejury")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like the checkout's root to the commands, and may be written to."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "exports").symlink_to(ROOT / "exports")
    return folder


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CITEJURY_", "ARGILLA_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    key = {"OPENAI_API_KEY": "planted-0123456789"}  # for the dry run, which sends nothing
    return kept | key | {"PATH": path, "CITEJURY_ANNOTATION_SERVE_PORT": "0"}


@pytest.fixture(scope="module")
def served(folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """The server of the README's first terminal, once it has said how to go on."""
    pytest.importorskip("argilla_server", reason="the `server` extra is not installed")
    (command,) = [line for line in LINES if line.startswith(SERVE)]
    with subprocess.Popen(command.split(), cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = next((line for line in server.stderr if "Ctrl-C" in line), None)
        assert said, "the server ended before it said anything"
        yield
        server.terminate()
        server.stderr.read()


def run(commands: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    script = "set -eu\n" + "\n".join(commands)
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def answer_everything(folder: Path, workspace: str, names: list[str]) -> None:
    """As the README says: when they have submitted. The first says yes to all, the next no to every third unit."""
    env = dict(
        line.removeprefix("export ").split("=", 1) for line in (folder / "jury" / "env").read_text().splitlines()
    )
    url, key = (env[name].strip("'\"") for name in ("ARGILLA_API_URL", "ARGILLA_API_KEY"))
    with Argilla(url, key) as owner:
        users = {user["username"]: user["api_key"] for user in owner.request("GET", "/users")["items"]}
        for dataset in owner.datasets(owner.find_workspace(workspace)):
            labels = LABELS[task_of(dataset)]
            records = [record for _, page in owner.record_pages(dataset["id"]) for record in page]
            for place, name in enumerate(names):
                answers = ["no" if place and number % 3 == 0 else "yes" for number in range(len(records))]
                items = [
                    {
                        "record_id": record["id"],
                        "status": "submitted",
                        "values": {label: {"value": answer} for label in labels},
                    }
                    for record, answer in zip(records, answers, strict=True)
                ]
                with Argilla(url, users[name]) as annotator:
                    annotator.request("POST", "/me/responses/bulk", json={"items": items})


@pytest.mark.server
def test_the_commands_of_the_readme_run_in_their_order(folder: Path, environment: dict[str, str], served: None) -> None:
    steps = [COMMANDS[:FIRST_EXPORT], COMMANDS[FIRST_EXPORT:DECISIONS], COMMANDS[DECISIONS:]]
    jurors = [("citejury", ["anna", "ben"]), ("citejury-adjudication", ["dora"])]
    output = ""
    for number, commands in enumerate(steps):
        if number:
            answer_everything(folder, *jurors[number - 1])
        done = run((SETTINGS if number else []) + commands, folder, environment)
        assert done.returncode == 0, done.stderr
        output += done.stdout
    for task in TASKS:
        header = (folder / "export" / f"{task}.csv").read_text(encoding="utf-8").splitlines()[0]
        assert tuple(header.split(",")) == COLUMNS[task]
    assert "topically_relevant" in output
    for example in EXAMPLES:
        done = subprocess.run(
            [sys.executable, "-c", example], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith(MAKE)])
def test_the_make_targets_of_the_readme_exist(line: str) -> None:
    subprocess.run([*line.split(), "--dry-run"], cwd=ROOT, check=True, capture_output=True)


def test_the_generated_parts_are_new() -> None:
    subprocess.run([sys.executable, "-m", "cogapp", "--check", "README.md"], cwd=ROOT, check=True, capture_output=True)


def test_the_pictures_and_files_that_it_shows_are_there() -> None:
    for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README):
        assert (ROOT / target).is_file()
