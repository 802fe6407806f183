import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from cogapp import Cog

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TASKS
from annotation.argilla.tasks import task_of
from exports.cli import main
from exports.csv.schema import COLUMNS
from tests.support.argilla_in_memory import ArgillaInMemory
from tests.support.judge_bench import judging_model
from tests.support.places import ROOT

READMES = (
    "README.md",
    "pipeline/README.md",
    "annotation/README.md",
    "exports/README.md",
    "docker/README.md",
    "CONTRIBUTING.md",
)
"""In the order in which a reader goes through them: a later one finds what the commands of an earlier one made."""
GENERATED = (*READMES, "SECURITY.md", *(str(p.relative_to(ROOT)) for p in sorted(ROOT.glob("*/contracts/*.md"))))
NOT_RUN = "# not run by the tests: "
MAKE, SERVE = "make ", "citejury annotation serve"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OUTPUT_BELOW = re.compile(r"\n+```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """Commands or code as they stand in one place, and the output that is shown below them; empty for none."""

    place: str
    language: str
    text: str
    output: str


def blocks() -> Iterator[Block]:
    for name in READMES:
        page = (ROOT / name).read_text(encoding="utf-8")
        for found in FENCE.finditer(page):
            below = OUTPUT_BELOW.match(page, found.end())
            line = page.count("\n", 0, found.start()) + 1
            yield Block(f"{name}:{line}", found[1], found[2], below[1] if below else "")


def commands(text: str) -> list[str]:
    """The lines without comments; those that only make sense at a terminal are left out."""
    lines = (line.split("  #")[0].strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(("#", MAKE, SERVE, "export PATH"))]


BLOCKS = [block for block in blocks() if block.language in ("sh", "python")]
RUN = [block for block in BLOCKS if not block.text.startswith(NOT_RUN)]
LINES = [line.split("  #")[0].strip() for block in RUN if block.language == "sh" for line in block.text.splitlines()]
SETTINGS = [line for line in LINES if line.startswith("set -a")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that looks like the checkout's root to the commands, and may be written to."""
    (tmp_path / "exports").symlink_to(ROOT / "exports")
    return tmp_path


@pytest.fixture
def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CITEJURY_", "ARGILLA_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    key = {"OPENAI_API_KEY": "planted-0123456789"}  # for the dry run, which sends nothing
    return kept | key | {"PATH": path, "CITEJURY_ANNOTATION_SERVE_PORT": "0"}


@pytest.fixture
def served(folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """The server of the README's first terminal, once it has said how to go on."""
    pytest.importorskip("uvicorn", reason="the server is not installed here")
    (command,) = [line for line in LINES if line.startswith(SERVE)]
    with subprocess.Popen(command.split(), cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = next((line for line in server.stderr if "Ctrl-C" in line), None)
        assert said, "the server ended before it said anything"
        yield
        server.terminate()
        server.stderr.read()


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
            values = {word: {label: {"value": word} for label in labels} for word in ("yes", "no")}
            records = [record for _, page in owner.record_pages(dataset["id"]) for record in page]
            for place, name in enumerate(names):
                answers = ["no" if place and number % 3 == 0 else "yes" for number in range(len(records))]
                items = [
                    {"record_id": each["id"], "status": "submitted", "values": values[answer]}
                    for each, answer in zip(records, answers, strict=True)
                ]
                with Argilla(url, users[name]) as annotator:
                    annotator.request("POST", "/me/responses/bulk", json={"items": items})


def shows(shown: str, printed: str) -> bool:
    """Whether the block shows what was printed; `…` stands for anything, also for several lines."""
    wanted = ".*?".join(re.escape(part) for part in shown.strip("\n").split("…"))
    return re.search(wanted, printed, re.DOTALL) is not None


def run(block: Block, folder: Path, environment: dict[str, str]) -> None:
    settings = SETTINGS if (folder / "jury" / "env").exists() else []
    python = block.language == "python"
    script = "\n".join(["set -eu", *settings, *(['exec "$0" -c "$1"'] if python else commands(block.text))])
    line = ["bash", "-c", script, sys.executable, block.text]
    done = subprocess.run(
        line, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, f"{block.place}: {done.stdout}"
    assert shows(block.output, done.stdout), f"{block.place} shows another output than:\n{done.stdout}"


def in_process(block: Block) -> str:
    """What a block prints, its commands or its code run here."""
    if block.language == "python":
        with redirect_stdout(StringIO()) as printed:
            exec(block.text, {})
        return printed.getvalue()
    said = ""
    for line in commands(block.text):
        if line not in SETTINGS:
            program, *words = shlex.split(line)
            assert program == "citejury"
            done = CliRunner().invoke(main, words)
            assert done.exit_code == 0, f"{block.place}: {done.output}"
            said += done.output
    return said


def test_the_commands_of_the_first_readme_run_in_their_order_and_print_what_it_shows(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with ArgillaInMemory() as argilla:
        for name, value in argilla.environment.items():
            monkeypatch.setenv(name, value)
        for block in (each for each in RUN if each.place.startswith("README.md:")):
            if "citejury exports csv" in block.text:
                for number, record in enumerate(argilla.items["records"].values()):
                    labels = LABELS[task_of(argilla.items["datasets"][record["dataset_id"]])]
                    argilla.answer(record, "anna", "submitted", dict.fromkeys(labels, "yes"))
                    argilla.answer(record, "ben", "submitted", dict.fromkeys(labels, "yes" if number % 3 else "no"))
            said = in_process(block)
            assert shows(block.output, said), f"{block.place} shows another output than:\n{said}"


@pytest.mark.rare
@pytest.mark.server
def test_the_commands_of_all_readmes_run_in_order(folder: Path, environment: dict[str, str], served: None) -> None:
    submitted: set[str] = set()
    jurors = {
        "citejury exports csv": ("citejury", ["anna", "ben"]),
        "citejury exports adjudicate read": ("citejury-adjudication", ["dora"]),
    }
    for block in RUN:
        for line, (workspace, names) in jurors.items():
            if line in block.text and line not in submitted:
                answer_everything(folder, workspace, names)
                submitted.add(line)
        if block.language == "python" or commands(block.text):
            with judging_model() as judge:
                run(block, folder, environment | judge)
    for task in TASKS:
        header = (folder / "export" / f"{task}.csv").read_text(encoding="utf-8").splitlines()[0]
        assert tuple(header.split(",")) == COLUMNS[task]


@pytest.mark.parametrize("line", sorted({line for line in LINES if line.startswith(MAKE)}))
def test_the_make_targets_of_the_readmes_exist(line: str) -> None:
    subprocess.run([*line.split(), "--dry-run"], cwd=ROOT, check=True, capture_output=True)


def test_what_is_not_run_says_why_and_the_first_readme_is_short() -> None:
    reasons = [block.text.splitlines()[0].removeprefix(NOT_RUN) for block in BLOCKS if block not in RUN]
    assert all(len(reason.split()) > 3 for reason in reasons)
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 300


def test_the_generated_parts_are_new(argilla_library: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with redirect_stdout(StringIO()) as said:
        code = Cog().main(["cog", "--check", *GENERATED])
    assert code == 0, f"{said.getvalue()}Run `make readme`."
