import asyncio
import json
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline.research.artefacts import RunFolder
from pipeline.research.audit import audit
from pipeline.research.claims import verify_passages
from pipeline.research.journal import JOURNAL
from pipeline.research.layout import Account, LaidOut, lay_out
from pipeline.research.options import ResearchOptions
from pipeline.research.passages import claims_of, reading_list, shown_passages, write_list
from pipeline.research.report import Finished, audit_again
from pipeline.research.run import open_environment
from pipeline.research.stages import research
from pipeline.research.values import Intake, Plan, Verified
from pipeline.sources.headings import Heading
from pipeline.sources.store import open_store
from pipeline.verifying.values import Page
from tests.support.places import DATA

LIBRARY = Path(__file__).parents[3] / "exports" / "demo_data" / "library"
MANUALS: dict[str, Any] = tomllib.loads((DATA / "research" / "manuals.toml").read_text(encoding="utf-8"))
"""By language: a manual, and questions with the first and the last words of the passage that each asks for."""
CASES = [(language, question) for language, manual in MANUALS.items() for question in manual["asked"]]


def run_over(documents: Path, runs_dir: Path, topic: str, run_id: str = "x", **options: object) -> Finished:
    """A run over these documents without a model."""
    wanted: Mapping[str, object] = {
        "topic": topic, "run_id": run_id, "runs_dir": runs_dir, "search": "local", "model": "extractive",
        "documents": documents, "offline": True, **options,
    }  # fmt: skip

    async def run() -> Finished:
        chosen = ResearchOptions.model_validate(wanted)
        async with open_environment(chosen, {}) as environment:
            return await research(chosen, environment)

    return asyncio.run(run())


@pytest.fixture(scope="module")
def manuals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the manual of each language, and a run for the first question."""
    folder = tmp_path_factory.mktemp("manuals")
    for language, manual in MANUALS.items():
        (folder / language).mkdir()
        (folder / language / "saving.md").write_text(manual["text"], encoding="utf-8")
    asked(folder, 0)
    return folder


def asked(folder: Path, number: int) -> RunFolder:
    """The run for a question over the manual of its language."""
    language, question = CASES[number]
    if not (folder / "runs" / f"q{number}").exists():
        run_over(folder / language, folder / "runs", question, f"q{number}")
    return RunFolder(folder / "runs" / f"q{number}")


def copied(folder: Path, place: Path) -> RunFolder:
    """The first run with its store, elsewhere."""
    shutil.copytree(folder / "runs", place, dirs_exist_ok=True)
    return RunFolder(place / "q0")


@pytest.mark.parametrize(
    ("number", "case"),
    [
        pytest.param(number, case, id=case[1], marks=() if case[0] == "en" else pytest.mark.rare)
        for number, case in enumerate(CASES)
    ],
)
def test_a_warning_code_a_table_and_a_list_are_shown_whole_and_each_sentence_is_a_claim(
    manuals: Path, number: int, case: tuple[str, str]
) -> None:
    language, question = case
    first, last = MANUALS[language]["asked"][question]
    text = MANUALS[language]["text"]
    wanted = text[text.index(first) : text.index(last) + len(last)]
    folder = asked(manuals, number)
    claims, paragraphs, report, check = (
        folder.read_claims(), folder.read_paragraphs(), folder.read_report(), folder.read_verify(),
    )  # fmt: skip
    assert wanted in [each.text for each in paragraphs]
    assert len(paragraphs) <= 5
    markdown = folder.read_report_md().partition("\n## ")[2].partition("\n\n## ")[0]
    for line in filter(None, wanted.split("\n")):
        assert line.replace("|", "\\|").replace("- ", "\\- ", line.startswith("- ")) in markdown.replace("`", "")
    assert claims
    assert report
    assert check
    shown = " ".join(" ".join(each.text.split()) for each in paragraphs)
    assert all(each.text in shown for each in claims)
    assert {(each.type, each.confidence, each.relevance) for each in claims} == {("fact", 1.0, None)}
    ids = [f"c{at}" for at in range(1, len(claims) + 1)]
    assert [each.id for each in claims] == [each.claim_id for each in report.citations] == ids
    assert (check.verified_claims_count, check.total_paragraphs, check.passed) == (len(claims), len(paragraphs), True)
    left = "".join(shown.split()).replace("Warning", "").replace("Warnung", "").replace("警告", "")
    assert "".join("".join(each.text for each in claims).split()) == left
    account = (folder.path / "final" / "verification.md").read_text(encoding="utf-8")
    told = account.partition("## Stated in other words than the pages'")[2].partition("##")[0].strip()
    assert told.startswith("None")
    with open_store(manuals / "runs" / "store.db") as store:
        again = audit_again(folder, store)
    assert (again.passed, again.text.weaker) == (True, 0)


def page(host: str, text: str, title: str = "", headings: tuple[Heading, ...] = (), lang: str = "en") -> Page:
    return Page(f"https://{host}/", title, host, lang, text, "2026-11-20T10:00:00+00:00", headings)


def listed(*sections: str, pages: list[Page]) -> list[list[str]]:
    return [[each.text for each in those] for those in reading_list(Plan(sections, sections), pages)]


def test_a_question_has_five_passages_at_most_each_once_and_headings_are_searched_too() -> None:
    pages = [page("a.example", "\n".join(f"Bees of the kind {number} make honey." for number in range(9)))]
    first, second = listed("Which bees make honey?", "Which honey do bees make?", pages=pages)
    assert (len(first), len(second)) == (5, 4)
    assert not {*first} & {*second}
    pages = [page("a.example", "Bees make honey."), page("b.example", "Bees  make honey.")]
    assert listed("What do bees make of honey?", pages=pages) == [["Bees make honey."]]
    text = "It is kept dry and dark.\nBees live in towns."
    pages = [
        page("a.example", text, "Honey", (Heading(0, 1, "How honey is stored"), Heading(25, 1, "Towns"))),
        page("b.example", "Store nothing here."),
    ]
    assert listed("How should honey be stored in winter?", pages=pages) == [["It is kept dry and dark."]]
    text = "Redis has the port 6379.\nRedis is secured by a password.\nDoors are secured by a lock."
    questions = ("Which port of a server has Redis by default?", "How is it secured?")
    first, second = listed(*questions, pages=[page("a.example", text)])
    assert (first, second) == (["Redis has the port 6379."], ["Redis is secured by a password."])


def test_a_question_without_a_passage_says_so_and_a_topic_without_any_does_not_pass(tmp_path: Path) -> None:
    done = run_over(LIBRARY, tmp_path, "How are burns cooled with water, and which moons of Jupiter have volcanoes?")
    report, markdown = RunFolder(done.folder).read_report(), RunFolder(done.folder).read_report_md()
    assert report is not None
    assert (done.passed, report.outline) == (True, ("How are burns cooled with water?",))
    assert "No passage for “Which moons of Jupiter have volcanoes?”" in markdown
    assert "on none of the pages that were read: moons; Jupiter; volcanoes." in markdown
    done = run_over(LIBRARY, tmp_path, "The orbits of the moons of Jupiter", "none")
    report = RunFolder(done.folder).read_report()
    assert report is not None
    assert (done.passed, report.outline, report.citations, done.metrics.sources_count) == (False, (), (), 0)
    assert "No passage for “The orbits of the moons of Jupiter”" in RunFolder(done.folder).read_report_md()


def test_each_passage_stands_below_its_place_and_the_words_found_and_cites_its_page(manuals: Path) -> None:
    markdown = RunFolder(manuals / "runs" / "q0").read_report_md()
    heading, _, block = markdown.partition("\n### ")[2].partition("\n\n")
    assert heading == "Saving objects › Security — words found: data; network; loaded"
    assert block.partition("\n\n")[0].endswith("while it is loaded. (C001)")
    assert "No model wrote this: it is a reading list." in markdown
    for name in ("In short", "may answer", "Not answered"):
        assert name not in markdown


def laid_out(question: str, *pages: Page) -> tuple[Verified, LaidOut]:
    """The claims of a reading list, and the report that it is."""
    plan, intake = Plan((question,), ()), Intake(question, question, "en", "brief")
    verified = verify_passages(claims_of(reading_list(plan, pages)), pages, plan.sections)
    shown = shown_passages([each.claim for each in verified.claims], pages)
    assert shown is not None
    written = write_list(intake, plan, shown)
    return verified, lay_out(intake, plan, verified, written, pages, Account(has_model=False))


def test_passages_that_contradict_each_other_are_named_and_hostile_text_stays_text() -> None:
    heights = [page(f"{host}.example", f"The tower is {high} metres high.") for host, high in (("a", 300), ("b", 200))]
    verified, laid = laid_out("How high is the tower?", *heights)
    assert [[quote.url for quote in each.against] for each in verified.claims] == [
        ["https://b.example/"],
        ["https://a.example/"],
    ]
    line = next(line for line in laid.markdown.split("\n") if "contradict" in line)
    assert "300 metres" in line
    assert "200 metres" in line
    text = (
        "Saving needs <script>alert(1)</script> and [this](javascript:x) (C009).\n"
        "$ save `x` </code> [9]\n# save \u202eevil"
    )
    _, laid = laid_out("How does saving with a script work?", page("a.example", text, "Saving <b>"))
    assert "\\<script\\>" in laid.markdown
    assert "\u202e" not in laid.markdown
    found = audit(laid.markdown, laid.paragraphs, laid.citations)
    assert found.passed, found.problems
    assert found.citations_found == 1


def test_the_audit_finds_what_is_changed_in_a_passage(manuals: Path, tmp_path: Path) -> None:
    folder = copied(manuals, tmp_path)
    folder.report_file.write_text(folder.read_report_md().replace("is not secure", "is secure"), encoding="utf-8")
    with open_store(tmp_path / "store.db") as store:
        assert any("is secure" in each for each in audit_again(folder, store).problems)


def test_a_run_killed_before_it_is_written_goes_on_to_the_same_list(manuals: Path, tmp_path: Path) -> None:
    whole = RunFolder(manuals / "runs" / "q0")
    folder = copied(manuals, tmp_path)
    lines = (folder.path / JOURNAL).read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line).get("stage") not in ("write", "audit", "cache")]
    assert len(kept) < len(lines)
    (folder.path / JOURNAL).write_text("".join(kept), encoding="utf-8")
    for name in ("final/report.md", "final/report.json", "logs/pipeline.jsonl"):
        (folder.path / name).unlink()
    run_over(manuals / "en", tmp_path, CASES[0][1], "q0")
    assert folder.read_report_md() == whole.read_report_md()


def test_claims_that_are_no_passages_are_told_from_those_that_are() -> None:
    pages = [page("a.example", "Bees make honey. Wasps make paper.")]
    claims = claims_of(reading_list(Plan(("What do bees and wasps make?",), ()), pages))
    assert [each.claim_ids for each in shown_passages(claims, pages) or ()] == [("c1", "c2")]
    assert shown_passages(claims[:1], pages) is None
    assert shown_passages(claims, []) is None
