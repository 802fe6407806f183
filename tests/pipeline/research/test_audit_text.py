import json
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from pipeline.research.artefacts import RunFolder
from pipeline.research.audit import Restated, restated, words_said
from pipeline.verifying.page_text import PageText
from pipeline.verifying.read import read_report
from pipeline.verifying.values import ReadReport
from tests.support.places import DATA, NO_SHARED, SHARED

EDITS = SHARED / "corpora" / "edits" / "english.json"

CASES: dict[str, Any] = tomllib.loads((DATA / "research" / "burns.toml").read_text(encoding="utf-8"))
"""By language: a topic, a page on it, edits of its report that reverse a fact, and those that change no meaning."""


class Place(NamedTuple):
    """A folder with a finished run for each language."""

    path: Path

    def audit(self, language: str) -> Result:
        """What `--verify-only` says of the run of this language."""
        return command("--run-id", language, "--runs-dir", str(self.path / "runs"), "--verify-only")

    def edit(self, language: str, *changes: tuple[str, str]) -> None:
        """Edit the report of this language."""
        file = RunFolder(self.path / "runs" / language).report_file
        text = file.read_text(encoding="utf-8")
        for old, new in changes:
            assert old in text, text
            text = text.replace(old, new, 1)
        file.write_text(text, encoding="utf-8")


def command(*words: str) -> Result:
    return CliRunner().invoke(main, ["pipeline", "research", *words])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("audited")
    for language, case in CASES.items():
        papers = folder / language / "clinic"
        papers.mkdir(parents=True)
        (papers / "burns.md").write_text(case["page"], encoding="utf-8")
        options = ("--documents", str(folder / language), "--depth", "brief", "--runs-dir", str(folder / "runs"))
        done = command(case["topic"], "--run-id", language, "--model", "extractive", *options)
        assert done.exit_code == 0, done.output
    return Place(folder)


@pytest.fixture
def place(made: Place, tmp_path: Path) -> Iterator[Place]:
    """A copy of that folder."""
    shutil.copytree(made.path / "runs", tmp_path / "runs")
    return Place(tmp_path)


@pytest.mark.parametrize("language", CASES)
def test_each_reversed_fact_is_found_and_edits_that_change_no_meaning_pass(place: Place, language: str) -> None:
    for old, new in CASES[language]["reversed"]:
        place.edit(language, (old, new))
        done = place.audit(language)
        assert (done.exit_code, done.stdout.count("\n")) == (3, 1), (new, done.output)
        assert "is not what the run wrote" in done.stdout
        place.edit(language, (new, old))
    for change in CASES[language]["harmless"]:
        place.edit(language, change)
        done = place.audit(language)
        assert (done.exit_code, done.stdout) == (0, ""), (change, done.output)


def test_what_changed_is_named_by_its_line_in_the_report_and_in_its_data(place: Place) -> None:
    place.edit("en", ("about 48 hours", "about 84 hours"))
    line = place.audit("en").stdout
    assert line.startswith("`final/report.md`, line 7, 'After a burn the pain increases for about 84 hours.'")
    assert '"passed": false' in (place.path / "runs/en/evidence/verify.json").read_text(encoding="utf-8")
    file = RunFolder(place.path / "runs" / "de").report_json_file
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("15 Grad", "25 Grad"), encoding="utf-8")
    done = place.audit("de")
    assert (done.exit_code, done.stdout.count("\n")) == (3, 1)
    above = "\n\n".join(json.loads(text)["reportJson"]["sections"]).partition("Das Wasser")[0]
    assert done.stdout.startswith(f"The sections of `final/report.json`, line {above.count(chr(10)) + 1}, 'Das Wasser")
    file.write_text(text.replace("15 Grad sein, denn", "15 Grad sein - denn"), encoding="utf-8")
    assert place.audit("de").exit_code == 0


@pytest.mark.skipif(not EDITS.is_file(), reason=NO_SHARED)
def test_of_61_false_edits_each_is_found() -> None:
    edits = json.loads(EDITS.read_text(encoding="utf-8"))
    pages = {f"https://{name}.example/": PageText("\n".join(facts)) for name, facts in edits["pages"].items()}
    urls = list(pages)

    def report(facts: dict[str, list[str]]) -> ReadReport:
        body = [" ".join([*said, f"[{number}]"]) for number, said in enumerate(facts.values(), start=1)]
        return read_report("\n\n".join([*body, "## Sources", *(f"{n}. {url}" for n, url in enumerate(urls, start=1))]))

    run = report(edits["pages"])
    assert restated(run, run, pages.get) == Restated(len(run.sentences))
    for edit in edits["false_edits"]:
        facts = {name: list(said) for name, said in edits["pages"].items()}
        facts[edit["page"]][edit["fact"]] = edit["text"]
        assert len(restated(report(facts), run, pages.get).problems) == 1, edit
    assert len(edits["false_edits"]) == 61


def test_without_the_store_the_text_is_held_against_the_runs_data_and_without_both_fails(place: Place) -> None:
    (place.path / "runs" / "store.db").unlink()
    done = place.audit("en")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "held against its `final/report.json`" in done.stderr
    place.edit("en", ("should not be", "should be"))
    done = place.audit("en")
    assert (done.exit_code, done.stdout.count("is not what the run wrote")) == (3, 1)
    RunFolder(place.path / "runs" / "en").report_json_file.unlink()
    done = place.audit("en")
    assert done.exit_code == 3
    assert done.stdout.startswith("Nothing of the text could be checked: ")


def test_claims_that_were_edited_or_removed_are_found(place: Place) -> None:
    file = place.path / "runs" / "en" / "evidence" / "claims.json"
    claims = json.loads(file.read_text(encoding="utf-8"))
    for changed in (
        [{**claims[0], "text": "Ice is the best first aid for a burn."}, *claims[1:]],
        [*claims, {**claims[0], "id": "c99"}],
    ):
        file.write_text(json.dumps(changed), encoding="utf-8")
        done = place.audit("en")
        assert (done.exit_code, done.stdout.count("`evidence/claims.json` has the claim")) == (3, 1), done.output
    file.unlink()
    done = place.audit("en")
    assert (done.exit_code, done.stdout) == (3, "`evidence/claims.json` is missing, and the run has written it.\n")


REPORT = """Butter melts at 32 degrees. Butter is made of cream. [1]

Cheese is old. [2]

{}## Sources

1. https://a.example/1
2. https://b.example/2
"""
PAGE = "Butter melts at 32 degrees. Butter is made of cream. Cream is fat milk. Milk is white. Cheese is pressed curd."


def said(changes: dict[str, str], more: str = "", page: str = PAGE, is_told: bool = True) -> Restated:
    """What comes of the report after these changes; the page at a.example holds PAGE, the other one nothing of it."""
    text = REPORT.format("")
    report = REPORT.format(more)
    for old, new in changes.items():
        report = report.replace(old, new)
    pages = {
        "https://a.example/1": PageText(page) if page else None,
        "https://b.example/2": PageText("The moon is far away."),
    }
    return restated(read_report(report), read_report(text) if is_told else None, pages.get)


@pytest.mark.parametrize(
    ("changes", "more", "is_problem"),
    [
        pytest.param({"degrees. Butter": "degrees; butter"}, "", False, id="joined"),
        pytest.param({"Butter is made of cream. ": ""}, "", False, id="left out"),
        pytest.param(
            {"Butter melts at 32 degrees. ": "", "made of cream.": "made of cream. Butter melts at 32 degrees."},
            "",
            False,
            id="in another order",
        ),
        pytest.param({}, "Milk is white. Cream is fat milk [1].\n\n", False, id="added from the page"),
        pytest.param({"32": "35"}, "", True, id="number"),
        pytest.param({"cream. [1]": "cream. [2]"}, "", True, id="another source"),
        pytest.param({"is old": "is not old"}, "", True, id="negated"),
        pytest.param({"Butter melts at 32 degrees. ": "Butter melts. "}, "", True, id="cut"),
        pytest.param({}, "Milk is black [1].\n\n", True, id="added and false"),
        pytest.param({}, "Presidents are elected in autumn [1].\n\n", True, id="added and silent"),
    ],
)
def test_what_neither_run_nor_pages_say_is_a_problem(changes: dict[str, str], more: str, is_problem: bool) -> None:
    assert bool(said(changes, more).problems) is is_problem


def test_other_words_than_the_pages_are_counted_and_without_the_runs_own_report_a_problem() -> None:
    found = said({})
    assert (found.sentences, found.weaker, found.problems) == (3, 1, ())
    assert [each.split(",")[0] for each in said({}, is_told=False).problems] == ["line 3"]
    found = said({"32": "35"}, page="", is_told=False)
    assert (found.unread, len(found.problems)) == (2, 1)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("It’s 1,000 km², “far”.", "It's 1000 km2 - far", True),
        ("Fu\u0308r Straße und Öl", "für strasse und öl", True),
        ("Die Ku\u0308hlung", "Die Kühlung", True),
        ("２０分、冷やす。", "20分冷やす", True),
        ("from 1990–2000", "from 1990-2000", True),
        ("co\u00adopera\u200btion", "cooperation", True),
        ("at -70 °C", "at 70 °C", False),
        ("約−5度", "約5度", False),
        ("$9.50", "€9.50", False),
        ("3.5 %", "35 %", False),
        ("5 %", "5 ‰", False),
        ("10² times", "102 times", False),
        ("1-2 cups", "1 2 cups", False),
        ("x < 5", "x > 5", False),
        ("Er konnte gehen", "Er könnte gehen", False),
        ("sie wurden", "sie würden", False),
        ("sie fordern", "sie fördern", False),
        ("can", "can't", False),
        ("ハンス", "バンス", False),
        ("Is it so?", "Is it so.", False),
    ],
)
def test_ways_to_write_the_same_are_one_and_what_says_something_else_is_not(one: str, other: str, same: bool) -> None:
    assert (words_said(one) == words_said(other)) is same
