"""The demo: one command from stored answers to findings and agreement, and again on the same home."""

import csv
import json
import re
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.labels import LABELS, TASKS
from exports.cli import main
from exports.csv.schema import COLUMNS
from tests.support.csv_check import check_file
from tests.support.places import ROOT

pytestmark = pytest.mark.server


def run_demo(home: Path) -> Result:
    return CliRunner().invoke(main, ["demo", "--home", str(home), "--port", "0", "--exit"])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("argilla_server", reason="the `server` extra is not installed")
    return tmp_path_factory.mktemp("demo") / "home"


@pytest.fixture(scope="module")
def first(home: Path) -> Result:
    return run_demo(home)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_it_ends_with_what_the_jury_found_in_ten_lines_and_one_line_a_label_of_agreement(first: Result) -> None:
    assert first.exit_code == 0, first.output
    found, *agreement = first.stdout.strip().split("\n\n")
    lines = found.splitlines()
    assert len(lines) <= 10
    assert lines[0] == "Found in 59 answers of 6 models to 13 narratives, judged by 4 people:"
    assert re.match(r"Serious problem +\d+ % \[\d+, \d+\] +of \d+ answers, \d+ left out$", lines[1])
    for provider in ("claude", "perplexity", "gemini", "grok", "openai", "pipeline"):
        assert provider in "\n".join(lines[2:6])
    assert re.search(r"^Cannot be told: with at most \d+ narratives in common none of \d+ differences$", found, re.M)
    assert "cannot be compared" in found
    for task, told in zip(TASKS, agreement, strict=False):
        assert told.startswith(f"{task}: ")
        assert [line.split()[0] for line in told.splitlines()[2:]] == list(LABELS[task])
    assert max(map(len, first.stdout.splitlines())) <= 80


def test_the_readme_shows_its_table(first: Result) -> None:
    (shown,) = re.findall(r"```text\n(Found in .*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert shown in first.stdout


def test_its_answers_are_csv_v2_and_its_export_joins_back_to_them(first: Result, home: Path) -> None:
    files = sorted((home / "answers").glob("*.csv"))
    assert [file.stem for file in files] == ["claude", "gemini", "grok", "openai", "perplexity"]
    assert [violation for file in files for violation in check_file(file)] == []
    assert (home / "answers" / "errors.jsonl").read_text(encoding="utf-8") == ""
    for task in TASKS:
        found = rows(home / "export" / f"{task}.csv")
        assert tuple(found[0]) == COLUMNS[task]
        assert {row["annotator_id"] for row in found} == {"anna", "ben", "chiyo", "david"}
    generation = rows(home / "export" / "generation.csv")
    assert {"en", "de", "ja"} <= {row["language"] for row in generation}
    answers = [row for file in [*files, *(home / "research").glob("*/pipeline.csv")] for row in rows(file)]
    assert {row["record_uuid"] for row in generation} <= {row["answer_id"] for row in answers}


def test_every_label_varies_and_its_alpha_is_neither_undefined_nor_perfect(first: Result, home: Path) -> None:
    agreement = json.loads((home / "agreement" / "agreement.json").read_text(encoding="utf-8"))
    alphas = [label["krippendorff_alpha"] for task in agreement["tasks"].values() for label in task["labels"].values()]
    assert len(alphas) == 13
    assert all(0 < alpha < 1 for alpha in alphas)


def test_it_writes_the_report_of_its_agreement_and_names_it(first: Result, home: Path) -> None:
    report = home / "agreement" / "report.html"
    assert str(report) in first.stderr
    text = report.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "What the jury found" in text
    assert "59 answers of 6 models to 13 narratives, judged by 4 people." in text
    assert ">asked</th>" in text
    assert "Not known: how many questions" not in text
    assert {row["task"] for row in rows(home / "agreement" / "disagreements.csv")} == set(TASKS)


def test_its_passwords_are_for_their_owner_only(first: Result, home: Path) -> None:
    logins = home / "logins.json"
    assert stat.S_IMODE(logins.stat().st_mode) == 0o600
    assert set(json.loads(logins.read_text(encoding="utf-8"))) == {"anna", "ben", "chiyo", "david", "you"}


@pytest.mark.rare
def test_run_again_on_the_same_home_it_changes_no_row(first: Result, home: Path) -> None:
    before = {task: (home / "export" / f"{task}.csv").read_bytes() for task in TASKS}
    again = run_demo(home)
    assert again.exit_code == 0, again.output
    assert {task: (home / "export" / f"{task}.csv").read_bytes() for task in TASKS} == before


def test_a_home_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine", encoding="utf-8")
    result = run_demo(tmp_path)
    assert result.exit_code == 1
    assert "thesis.tex" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["thesis.tex"]
