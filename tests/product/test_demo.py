import html
import json
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.labels import LABELS, TASKS
from exports.cli import main
from exports.cli.demo import run_demo
from exports.csv.schema import COLUMNS
from exports.report.agreement_page import short_sections
from exports.report.sections import terminal_text
from tests.support.argilla_in_memory import ArgillaInMemory
from tests.support.csv_check import check_file
from tests.support.export_bench import read_csv
from tests.support.places import ROOT

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle


def run(home: Path) -> Result:
    return CliRunner().invoke(main, ["demo", "--home", str(home), "--port", "0", "--exit"])


class Made(NamedTuple):
    home: Path
    printed: str


@pytest.fixture(
    scope="module",
    params=[False, pytest.param(True, marks=[pytest.mark.rare, pytest.mark.server])],
    ids=["before an Argilla in memory", "as people call it"],
)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """What the demo left behind, and what it printed at its end."""
    home = tmp_path_factory.mktemp("demo") / "home"
    if not request.param:
        home.mkdir()
        with ArgillaInMemory() as argilla:
            measured = run_demo(home, cast("ServerHandle", argilla), lambda line: None).measured
        return Made(home, terminal_text(short_sections(measured.agreement, measured.results)))
    pytest.importorskip("uvicorn", reason="the server is not installed here")
    done = run(home)
    assert done.exit_code == 0, done.output
    assert str(home / "agreement" / "details.html") in done.stderr
    return Made(home, done.stdout)


def test_it_ends_with_what_the_jury_found_which_the_readme_shows_and_a_line_a_label_of_agreement(made: Made) -> None:
    interim, found, *agreement = made.printed.strip().split("\n\n")
    assert interim.startswith("Interim: 126 of 149 units are done (retrieval 51 of 64, ")
    lines = found.splitlines()
    assert len(lines) <= 10
    assert lines[0] == "Found in 59 answers of 6 models to 13 narratives, judged by 4 people:"
    assert re.match(r"Serious problem +\d+ % \[\d+, \d+\] +of \d+ answers, \d+ left out$", lines[1])
    for provider in ("claude", "perplexity", "gemini", "grok", "openai", "pipeline"):
        assert provider in "\n".join(lines[2:6])
    assert re.match(r"In another language than asked +\d+ % \[.+\] +of 59 answers$", lines[6])
    assert re.search(
        r"^None of \d+ differences is beyond chance; only \d+ have enough shared narratives\.$", found, re.M
    )
    assert "cannot be compared" in found
    for task, told in zip(TASKS, agreement, strict=False):
        assert told.startswith(f"{task}: ")
        assert [line.split()[0] for line in told.splitlines()[2:]] == list(LABELS[task])
    assert max(map(len, made.printed.splitlines())) <= 80
    (shown,) = re.findall(r"```text\n(Found in .*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert shown in made.printed


def test_its_answers_are_csv_v2_its_export_joins_them_and_its_report_names_what_varies(made: Made) -> None:
    files = sorted((made.home / "answers").glob("*.csv"))
    assert [file.stem for file in files] == ["claude", "gemini", "grok", "openai", "perplexity"]
    assert [violation for file in files for violation in check_file(file)] == []
    assert (made.home / "answers" / "errors.jsonl").read_text(encoding="utf-8") == ""
    for task in TASKS:
        found = read_csv(made.home / "export" / f"{task}.csv")
        assert tuple(found[0]) == COLUMNS[task]
        assert {row["annotator_id"] for row in found} == {"anna", "ben", "chiyo", "david"}
    generation = read_csv(made.home / "export" / "generation.csv")
    assert {"en", "de", "ja"} <= {row["language"] for row in generation}
    answers = [row for file in [*files, *(made.home / "research").glob("*/pipeline.csv")] for row in read_csv(file)]
    assert {row["record_uuid"] for row in generation} <= {row["answer_id"] for row in answers}
    agreement = json.loads((made.home / "agreement" / "agreement.json").read_text(encoding="utf-8"))
    alphas = [label["krippendorff_alpha"] for task in agreement["tasks"].values() for label in task["labels"].values()]
    assert len(alphas) == 13
    assert all(0 < alpha < 1 for alpha in alphas)
    text = (made.home / "agreement" / "details.html").read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "What the jury found" in text
    assert "What the jury found about 59 answers to 13 narratives, by model_name." in text
    report = (made.home / "agreement" / "report.html").read_text(encoding="utf-8")
    assert "Asked: 5 models and citejury's own research report about 13 narratives" in html.unescape(report)
    assert "Not known: how many questions" not in text
    assert {row["task"] for row in read_csv(made.home / "agreement" / "disagreements.csv")} == set(TASKS)
    logins = made.home / "logins.json"
    assert stat.S_IMODE(logins.stat().st_mode) == 0o600
    assert set(json.loads(logins.read_text(encoding="utf-8"))) == {"anna", "ben", "chiyo", "david", "you"}


@pytest.mark.rare
@pytest.mark.server
@pytest.mark.parametrize("made", [True], indirect=True)
def test_run_again_on_the_same_home_it_changes_no_row(made: Made) -> None:
    before = {task: (made.home / "export" / f"{task}.csv").read_bytes() for task in TASKS}
    again = run(made.home)
    assert again.exit_code == 0, again.output
    assert {task: (made.home / "export" / f"{task}.csv").read_bytes() for task in TASKS} == before


def test_a_home_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine", encoding="utf-8")
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "thesis.tex" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["thesis.tex"]
