"""`--verify-only` reads a finished run's report again: reversed facts are found, edits that change no meaning pass."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from pipeline.research.artefacts import RunFolder
from pipeline.research.audit import Restated, restated, words_said
from pipeline.verifying.page_text import PageText
from pipeline.verifying.read import read_report
from pipeline.verifying.values import ReadReport
from tests.support.places import NO_SHARED, SHARED

EDITS = SHARED / "corpora" / "edits" / "english.json"

TOPICS = {
    "en": "First aid for a burn of the skin",
    "de": "Erste Hilfe bei einer Verbrennung: Wasser oder Butter",
    "ja": "やけどの応急処置では水とバターのどちらがよいですか",
}
PAGES = {
    "en": """# First aid for burns

Cool running water for twenty minutes is the best first aid for a burn. The water for a burn should not be colder than
15 degrees, because ice can harm the skin a second time. After a burn the pain increases for about 48 hours. Dr. Meyer
of the clinic in Hamburg treats 300 burns a year.""",
    "de": """# Erste Hilfe bei Verbrennungen

Kühles fließendes Wasser für zwanzig Minuten ist die beste erste Hilfe bei einer Verbrennung. Das Wasser soll bei einer
Verbrennung nicht kälter als 15 Grad sein, denn Eis schadet der Haut ein zweites Mal. Bei einer Verbrennung steigt der
Schmerz ohne erste Hilfe etwa 48 Stunden lang. Die erste Hilfe bei einer Verbrennung lehrt Frau Meyer in Hamburg.""",
    "ja": """# やけどの応急処置

やけどの応急処置では、すぐに20分間流水で冷やすのが最もよい方法です。やけどの応急処置で使う水は15度より冷たくしてはいけません。
やけどの応急処置をしないと、痛みは約48時間のあいだ強くなります。やけどの応急処置の講習は東京の病院で年に300回あります。""",
}
REVERSED = {
    "en": [
        ("should not be", "should be"),
        ("about 48 hours", "about 84 hours"),
        ("pain increases", "pain decreases"),
        ("Hamburg", "Munich"),
        ("for twenty minutes", "for twelve minutes"),
    ],
    "de": [
        ("soll bei einer Verbrennung nicht kälter", "soll bei einer Verbrennung kälter"),
        ("15 Grad", "-15 Grad"),
        ("ist die beste", "ist die schlechteste"),
        ("Wasser für zwanzig", "Öl für zwanzig"),
        ("zwanzig Minuten", "zwanzig Stunden"),
    ],
    "ja": [
        ("20分間", "2分間"),
        ("20分間", "20秒間"),
        ("最もよい方法です", "最もよい方法ではありません"),
        ("流水で冷やす", "流水で温める"),
        ("流水で", "氷水で"),
    ],
}
HARMLESS = {
    "en": [
        ("## First aid", "## The first aid"),
        ("for twenty minutes is", "for twenty minutes, is"),
        ("15 degrees, because", "15 degrees because"),
        ("Cool running", "Cool  \n*running*"),
        ("After a burn the", "After a burn, the"),
    ],
    "de": [
        ("## Erste Hilfe", "## Zur ersten Hilfe"),
        ("Kühles fließendes", "Kuehles fliessendes"),
        ("zwanzig Minuten ist", "zwanzig Minuten, ist"),
        ("Das Wasser soll", "Das\u00a0Wasser  soll"),
        ("Grad sein, denn", "Grad sein – denn"),
    ],
    "ja": [
        ("# やけど", "# 要約: やけど"),
        ("すぐに20分間流水で", "すぐに20分間、流水で"),
        ("20分間", "２０分間"),
        ("応急処置では、すぐに", "応急処置ではすぐに"),
        ("方法です。", "方法です"),
    ],
}


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
    for language, topic in TOPICS.items():
        papers = folder / language / "clinic"
        papers.mkdir(parents=True)
        (papers / "burns.md").write_text(PAGES[language], encoding="utf-8")
        options = ("--documents", str(folder / language), "--depth", "brief", "--runs-dir", str(folder / "runs"))
        done = command(topic, "--run-id", language, "--model", "extractive", *options)
        assert done.exit_code == 0, done.output
    return Place(folder)


@pytest.fixture
def place(made: Place, tmp_path: Path) -> Iterator[Place]:
    """A copy of that folder."""
    shutil.copytree(made.path / "runs", tmp_path / "runs")
    return Place(tmp_path)


@pytest.mark.parametrize("language", TOPICS)
def test_each_reversed_fact_is_found(place: Place, language: str) -> None:
    assert place.audit(language).exit_code == 0
    for old, new in REVERSED[language]:
        place.edit(language, (old, new))
        done = place.audit(language)
        assert (done.exit_code, done.stdout.count("\n")) == (3, 1), (new, done.output)
        assert "is not what the run wrote" in done.stdout
        place.edit(language, (new, old))
    assert place.audit(language).exit_code == 0


@pytest.mark.parametrize("language", TOPICS)
def test_edits_that_change_no_meaning_pass(place: Place, language: str) -> None:
    for change in HARMLESS[language]:
        place.edit(language, change)
        done = place.audit(language)
        assert (done.exit_code, done.stdout) == (0, ""), (change, done.output)


def test_what_changed_is_named_by_its_line_with_what_the_page_says(place: Place) -> None:
    place.edit("en", REVERSED["en"][1])
    line = place.audit("en").stdout
    assert line.startswith("`final/report.md`, line 7, 'After a burn the pain increases for about 84 hours.'")
    assert '"passed": false' in (place.path / "runs/en/evidence/verify.json").read_text(encoding="utf-8")


def test_the_report_as_data_is_read_again_too(place: Place) -> None:
    file = RunFolder(place.path / "runs" / "de").report_json_file
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("15 Grad", "25 Grad"), encoding="utf-8")
    done = place.audit("de")
    assert (done.exit_code, done.stdout.count("\n")) == (3, 1)
    above = "\n\n".join(json.loads(text)["reportJson"]["sections"]).partition("Das Wasser")[0]
    line = above.count("\n") + 1
    assert done.stdout.startswith(f"The sections of `final/report.json`, line {line}, 'Das Wasser")
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


def test_without_the_store_the_text_is_held_against_the_runs_own_data(place: Place) -> None:
    (place.path / "runs" / "store.db").unlink()
    done = place.audit("en")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "held against its `final/report.json`" in done.stderr
    place.edit("en", REVERSED["en"][0])
    done = place.audit("en")
    assert (done.exit_code, done.stdout.count("is not what the run wrote")) == (3, 1)


def test_where_nothing_of_the_text_could_be_checked_the_audit_fails(place: Place) -> None:
    (place.path / "runs" / "store.db").unlink()
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


def test_what_the_run_stated_in_other_words_than_its_pages_passes_and_is_counted() -> None:
    found = said({})
    assert (found.sentences, found.weaker, found.problems) == (3, 1, ())


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"degrees. Butter": "degrees; butter"}, ""),
        ({"Butter is made of cream. ": ""}, ""),
        ({"Butter melts at 32 degrees. ": "", "made of cream.": "made of cream. Butter melts at 32 degrees."}, ""),
        ({}, "Milk is white. Cream is fat milk [1].\n\n"),
    ],
    ids=["joined", "left out", "in another order", "added from the page"],
)  # fmt: skip
def test_a_report_may_be_edited_where_it_still_says_what_it_said(changes: dict[str, str], more: str) -> None:
    assert said(changes, more).problems == ()


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"32": "35"}, ""),
        ({"cream. [1]": "cream. [2]"}, ""),
        ({"is old": "is not old"}, ""),
        ({"Butter melts at 32 degrees. ": "Butter melts. "}, ""),
        ({}, "Milk is black [1].\n\n"),
        ({}, "Presidents are elected in autumn [1].\n\n"),
    ],
    ids=["number", "another source", "negated", "cut", "added and false", "added and silent"],
)
def test_what_neither_the_run_nor_its_pages_say_is_a_problem(changes: dict[str, str], more: str) -> None:
    assert said(changes, more).problems


def test_without_the_runs_own_report_only_what_pages_deny_or_lack_is_a_problem() -> None:
    assert [each.split(",")[0] for each in said({}, is_told=False).problems] == ["line 3"]
    found = said({"32": "35"}, page="", is_told=False)
    assert (found.unread, len(found.problems)) == (2, 1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It’s 1,000 km², “far”.", "It's 1000 km2 - far"),
        ("Fu\u0308r Straße und Öl", "fuer strasse und Oel"),
        ("Die Ku\u0308hlung", "Die Kühlung"),
        ("２０分、冷やす。", "20分冷やす"),
        ("from 1990–2000", "from 1990-2000"),
        ("co\u00adopera\u200btion", "cooperation"),
    ],
)
def test_ways_to_write_the_same_are_one(one: str, other: str) -> None:
    assert words_said(one) == words_said(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("at -70 °C", "at 70 °C"),
        ("約−5度", "約5度"),
        ("$9.50", "€9.50"),
        ("3.5 %", "35 %"),
        ("5 %", "5 ‰"),
        ("10² times", "102 times"),
        ("1-2 cups", "1 2 cups"),
        ("x < 5", "x > 5"),
        ("Er konnte gehen", "Er könnte gehen"),
        ("sie wurden", "sie würden"),
        ("sie fordern", "sie fördern"),
        ("can", "can't"),
        ("ハンス", "バンス"),
        ("Is it so?", "Is it so."),
    ],
)
def test_what_says_something_else_is_not_one(one: str, other: str) -> None:
    assert words_said(one) != words_said(other)
