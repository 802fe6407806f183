"""What stands at the head of a report: the verified claims that answer the whole topic, and that none answers."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline.research.output.artefacts import RunFolder
from pipeline.research.output.layout import Account, LaidOut, lay_out
from pipeline.research.running.environment import open_environment
from pipeline.research.running.options import ResearchOptions
from pipeline.research.stages._head import claims_of_head
from pipeline.research.stages._plan import make_plan
from pipeline.research.stages._write import write_report
from pipeline.research.stages.audit import audit, audit_run
from pipeline.research.stages.report import Finished, audit_again
from pipeline.research.stages.run_stages import research
from pipeline.research.values import ANSWER, Intake, Plan, Verified, Written
from pipeline.sources.store import open_store
from pipeline.verifying.values import Checked, Claim, Page, Quote

READ_AT = "2026-11-20T10:00:00+00:00"
LIBRARY = Path(__file__).parents[3] / "exports" / "demo_data" / "library"


def came(
    topic: str, language: str, *stated: tuple[int, str], plan: Plan | None = None
) -> tuple[Written, LaidOut, Plan]:
    """The report of these claims, each with its section, all of one page, and their sections by the topic's words."""
    intake = Intake(topic, topic, language, "brief")
    plan = plan or asyncio.run(make_plan(intake, None))
    text = "\n".join(words for _, words in stated)
    page = Page("https://a.example/", "Notes", "a.example", language, text, READ_AT)
    claims = []
    for number, (section, words) in enumerate(stated, start=1):
        start = text.index(words)
        quote = Quote(page.url, words, start, start + len(words))
        claims.append(Checked(Claim(f"c{number}", words, section, (quote,)), "supported", 1.0, (), (page.url,)))
    verified = Verified(tuple(claims), 1.0)
    written = asyncio.run(write_report(intake, plan, verified, [page], None))
    return written, lay_out(intake, plan, verified, written, [page]), plan


def stated_with(words: Sequence[str], relevances: Sequence[float]) -> tuple[Page, tuple[Checked, ...]]:
    """A page of these sentences, and supported claims of the first section that state them, with their relevances."""
    page = Page("https://a.example/", "Notes", "a.example", "en", "\n".join(words), READ_AT)
    claims = []
    for number, (text, relevance) in enumerate(zip(words, relevances, strict=True), start=1):
        start = page.text.index(text)
        quotes = (Quote(page.url, text, start, start + len(text)),)
        claim = Claim(f"c{number}", text, 0, quotes, relevance=relevance)
        claims.append(Checked(claim, "supported", 1.0, (), (page.url,)))
    return page, tuple(claims)


def head_of(written: Written) -> list[str]:
    return [paragraph.text for paragraph in written.paragraphs if paragraph.section == ANSWER]


BURNS = (
    (0, "My grandmother put butter on every burn, as her mother had done."),
    (0, "Cool water is the best first aid for a burn and takes the heat out of the skin."),
    (0, "For example, butter was put on a burn in the kitchen of an old hotel in the town."),
    (1, "Nurses of the old hospital counted forty visits in the winter of that year."),
    (2, "Butter on a burn is a lid that keeps the heat of the pan in the skin for long."),
)


def test_a_report_begins_with_what_answers_its_topic_best_and_states_it_nowhere_else() -> None:
    written, laid_out, _ = came("Butter or water on a burn", "en", *BURNS)
    assert laid_out.report.outline[0] == "In short"
    assert laid_out.markdown.startswith("# Butter or water on a burn\n\n## In short\n\n")
    head = " ".join(head_of(written))
    assert BURNS[1][1] in head
    assert BURNS[4][1] in head
    assert "grandmother" not in head
    assert "example" not in head
    for _, text in BURNS:
        assert laid_out.markdown.count(text) == 1
    assert audit(laid_out.markdown, laid_out.paragraphs, laid_out.citations).passed
    assert {each.claim_id for each in laid_out.report.citations} == {"c1", "c2", "c3", "c4", "c5"}


def test_a_statement_that_begins_with_a_small_letter_begins_a_paragraph() -> None:
    stated = (
        (0, "The scheduler of Debian is run by the system."),
        (0, "cron runs the jobs of the scheduler at their times."),
        (0, "Jobs of the scheduler that were missed are run later by anacron."),
    )
    plan = Plan(("What does the scheduler run?",), ())
    written, _, _ = came("What does the scheduler run?", "en", *stated, plan=plan)
    begins = [paragraph.text.partition(" ")[0] for paragraph in written.paragraphs]
    assert "cron" in begins
    assert not any(". cron" in paragraph.text for paragraph in written.paragraphs)


def test_descriptions_of_one_entry_stand_together_behind_its_name_and_apart_from_all_else() -> None:
    first, second, other = "Pairs come in LIFO order.", "A KeyError says that none is left.", "Pairs keep their order."
    text = f"- popitem()¶\n- {first} {second}\n{other}"
    page = Page("https://a.example/", "Notes", "a.example", "en", text, READ_AT)

    def claim(number: int, text: str, *quoted: str) -> Checked:
        quotes = tuple(Quote(page.url, each, at := page.text.index(each), at + len(each)) for each in quoted)
        return Checked(Claim(f"c{number}", text, 0, quotes), "supported", 1.0, (), (page.url,))

    claims = (
        claim(1, f"popitem(): {first}", first, "popitem"),
        claim(2, f"popitem(): {second}", second, "popitem"),
        claim(3, other, other),
    )
    topic = "In which way do visitors leave?"
    intake, plan = Intake(topic, topic, "en", "brief"), Plan((topic,), ())
    verified = Verified(claims, 1.0)
    written = asyncio.run(write_report(intake, plan, verified, [page], None))
    told = [paragraph.text for paragraph in written.paragraphs]
    assert told == [f"popitem(): {first} {second}", other]
    laid_out = lay_out(intake, plan, verified, written, [page])
    assert audit(laid_out.markdown, laid_out.paragraphs, laid_out.citations).passed


def test_what_is_far_from_the_topic_itself_is_not_at_the_head_however_well_its_section_answers() -> None:
    topic = "How do I compute the greatest common divisor of two numbers?"
    intake = Intake(topic, topic, "en", "brief")
    words = (
        "The gcd function returns the greatest common divisor of its arguments.",
        "The default tolerance assures that two values are the same within about nine digits.",
        "The smallest integer that is not less than its argument is given by ceil.",
        "Either infinity is close to nothing but itself.",
    )
    page, claims = stated_with(words, (0.8, 0.8, 0.8, 0.8))
    written = asyncio.run(write_report(intake, Plan((topic,), ()), Verified(claims, 1.0), [page], None))
    assert head_of(written) == [words[0]]


def test_claims_that_answer_far_less_than_the_best_one_are_left_out_with_the_reason() -> None:
    topic = "What takes the heat out of a burn?"
    intake = Intake(topic, topic, "en", "brief")
    plan = asyncio.run(make_plan(intake, None))
    words = ("Cool water takes the heat out of a burn.", "The old hospital counts its visits in the winter.")
    page, claims = stated_with(words, (0.8, 0.2))
    written = asyncio.run(write_report(intake, plan, Verified(claims, 1.0), [page], None))
    assert [paragraph.text for paragraph in written.paragraphs] == [words[0]]
    (left,) = written.left_out
    assert left.claim.text == words[1]
    assert left.problems == ("far less of an answer than other claims of the report",)


HASHING = (
    "Possible uses include storing passwords in the database of the users of a Unix system.",
    "The traditional method has a salt of two characters and thirteen characters behind it.",
    "A good password hashing function must be tunable, slow, and include a salt.",
    "The function of the library gives an object with the name and the size of its block.",
)


def test_a_claim_that_is_nearest_itself_is_told_though_its_section_is_less_likely_to_answer() -> None:
    topic = "How do I hash a password safely?"
    intake = Intake(topic, topic, "en", "brief")
    plan = asyncio.run(make_plan(intake, None))
    page, claims = stated_with(HASHING, (0.9, 0.9, 0.5, 0.5))
    written = asyncio.run(write_report(intake, plan, Verified(claims, 1.0), [page], None))
    assert [left.claim.text for left in written.left_out] == [HASHING[3]]


def test_of_claims_that_are_as_likely_to_answer_the_one_that_is_nearest_itself_begins_the_report() -> None:
    topic = "How do I block everything from outside that I don't need?"
    words = (
        "A script usually needs to be written by hand.",
        "A graphical editor draws the rules on the screen for those who prefer it.",
        "Simple commands can enable or disable network traffic to and from ports and addresses.",
    )
    intake = Intake(topic, topic, "en", "brief")
    plan = asyncio.run(make_plan(intake, None))
    page, claims = stated_with(words, (0.9, 0.9, 0.9))
    assert claims_of_head(topic, plan, claims, [page])[0].claim.text == words[2]


NOUNS = (
    *("apple", "bridge", "candle", "desert", "engine", "forest", "garden", "hammer", "island", "jacket"),
    *("kettle", "ladder", "mirror", "needle", "orange", "pencil", "quartz", "ribbon", "saddle", "tunnel"),
)


UNSURE = "it is more likely than not that the pages do not answer"
UNNAMED = "no page that was read names what is asked"


@pytest.mark.parametrize(
    ("subject", "relevance", "told", "heading", "reason"),
    [
        ("a burn", 0.5, 20, "In short", ""),
        ("a burn", 0.36, 3, "What may answer it", UNSURE),
        ("a burn", 0.25, 0, "Not answered by these pages", UNSURE),
        ("Kubernetes", 0.9, 3, "What may answer it – no page that was read names Kubernetes", UNNAMED),
        ("Kubernetes", 0.25, 0, "Not answered by these pages – no page that was read names Kubernetes", UNSURE),
    ],
)
def test_of_what_is_more_likely_no_answer_little_is_told_under_a_heading_that_says_so(
    subject: str, relevance: float, told: int, heading: str, reason: str
) -> None:
    topic = f"What takes the heat out of {subject}?"
    intake = Intake(topic, topic, "en", "brief")
    plan = asyncio.run(make_plan(intake, None))
    words = [f"{each.capitalize()} takes the heat out of every {each}." for each in NOUNS]
    page, claims = stated_with(words, [relevance] * len(words))
    verified = Verified(claims, 1.0)
    written = asyncio.run(write_report(intake, plan, verified, [page], None))
    assert sum(len(each.claim_ids) for each in written.paragraphs) == told
    assert {"; ".join(each.problems) for each in written.left_out} == (
        {f"the report tells little where {reason}"} if reason else set()
    )
    report = lay_out(intake, plan, verified, written, [page], Account(has_model=False)).report
    assert report.outline[0] == heading


@pytest.mark.parametrize(("answer", "heading"), [(True, "In short"), (False, "Not answered by these pages")])
def test_a_report_of_a_model_says_first_what_no_page_names(answer: bool, heading: str) -> None:
    stated = [(0, "A cluster for storage is set up on three servers at least.")] if answer else []
    _, laid, _ = came("How do I set up Ceph, and how many servers does Ceph need?", "en", *stated)
    assert laid.report.outline[0] == f"{heading} – no page that was read names Ceph"


def test_the_head_answers_each_of_several_questions() -> None:
    topic = "How does a heat pump work, and what does a heat pump cost to run?"
    written, _, plan = came(
        topic,
        "en",
        (0, "A heat pump works by moving heat from the outside air into the house."),
        (0, "The work of a heat pump is done by a compressor that raises the pressure."),
        (0, "A heat pump works best where the water for the heating is not too hot."),
        (0, "The heat pump works through the night where the house loses heat quickly."),
        (1, "The cost to run a heat pump is about 900 euros a year for a household."),
        (1, "Old houses need larger radiators when the cost of a heat pump counts to its owner."),
    )
    assert len(plan.sections) == 3
    head = head_of(written)
    assert "moving heat" in " ".join(head)
    assert "900 euros" in " ".join(head)
    assert sum(text.count(".") for text in head) <= 3


HONEY = (
    "Honey keeps for years in a closed jar on the shelf.",
    "Bakers replace sugar by honey in cakes and bread.",
    "Honey turns solid below ten degrees and flows again in a warm bath.",
    "Doctors warn parents of infants under one year of honey.",
    "Honey sweetens tea without hiding its taste.",
    "Marinades of honey and mustard brown quickly on the grill.",
    "A spoon dipped into oil lets go of honey at once.",
)


@pytest.mark.parametrize("count", range(1, 8))
def test_the_head_leaves_half_of_the_claims_to_the_sections(count: int) -> None:
    written, _, _ = came("Honey in the kitchen", "en", *((0, words) for words in HONEY[:count]))
    stated = [name for each in written.paragraphs if each.section == ANSWER for name in each.claim_ids]
    assert len(stated) == min(3, -(-count // 2))


def test_the_head_has_three_sentences_at_most_however_many_a_claim_has() -> None:
    pairs = [(0, f"{HONEY[number]} {HONEY[number + 1]}") for number in (0, 2, 4)]
    written, _, _ = came("Honey in the kitchen", "en", *pairs, (0, HONEY[6]), (0, "Honey needs no cold shelf."))
    assert sum(text.count(".") for text in head_of(written)) == 3


def test_a_section_whose_only_claim_stands_at_the_head_is_said_to_be_told_there() -> None:
    _, laid_out, _ = came("Honey in the kitchen", "en", (1, "Honey is a sweet food of the kitchen that bees make."))
    assert laid_out.report.outline == ("In short",)
    told = laid_out.markdown.partition("### What was looked for and not found")[2].partition("###")[0]
    assert "- On “How it works” there is nothing beyond what stands at the beginning." in told
    assert "Nothing on “Background and terms”" in told


@pytest.mark.parametrize(
    ("text", "stands"),
    [("私有鍵は鍵ファイルの保存に必要で、秘密にします。", True), ("私は鍵ファイルの保存に封筒を使っています。", False)],
)
def test_what_somebody_tells_of_herself_is_no_answer_and_a_word_with_her_sign_is(text: str, stands: bool) -> None:
    written, _, _ = came("鍵ファイルの保存", "ja", (0, text))
    assert bool(head_of(written)) is stands


HEADINGS = {
    "en": ("Honey of bees", "Honey of bees is a sweet food.", "In short", "Not answered by these pages"),
    "de": (
        "Honig der Bienen im Winter",
        "Honig der Bienen ist ein süßes Lebensmittel für den Winter.",
        "Kurz gesagt",
        "Von diesen Seiten nicht beantwortet",
    ),
    "ja": (
        "蜂蜜の作り方と保存",
        "蜂蜜の保存は涼しい場所が望ましいです。",
        "要点",
        "これらのページには答えがありません",
    ),
}


@pytest.mark.parametrize("language", HEADINGS)
def test_the_head_says_in_the_reports_language_that_it_answers_or_that_nothing_does(language: str) -> None:
    topic, answer, short, none = HEADINGS[language]
    _, laid_out, _ = came(topic, language, (0, answer))
    assert laid_out.report.outline[0] == short
    _, laid_out, _ = came(topic, language)
    assert laid_out.report.outline == (none,)
    assert laid_out.report.sections == (f"## {none}",)
    assert laid_out.markdown.startswith(f"# {topic}\n\n## {none}\n\n## ")
    found = audit(laid_out.markdown, laid_out.paragraphs, laid_out.citations)
    assert (found.total_paragraphs, found.passed) == (0, False)


def test_sections_beside_the_point_follow_a_head_that_says_that_nothing_answers() -> None:
    plan = Plan(("What do wasps eat?",), ("wasps",))
    _, laid_out, _ = came("Mating of tortoises", "en", (0, "Wasps eat flies and ripe fruit in the garden."), plan=plan)
    assert laid_out.report.outline == ("Not answered by these pages", "What do wasps eat?")
    assert audit(laid_out.markdown, laid_out.paragraphs, laid_out.citations).passed


async def run_over(documents: Path, runs_dir: Path, topic: str) -> Finished:
    """A run over these documents without a model."""
    options = ResearchOptions(
        topic=topic,
        lang="en",
        run_id="x",
        runs_dir=runs_dir,
        search="local",
        model="extractive",
        documents=documents,
        offline=True,
    )
    async with open_environment(options, {}) as environment:
        return await research(options, environment)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished run."""
    runs_dir = tmp_path_factory.mktemp("runs")
    assert asyncio.run(run_over(LIBRARY, runs_dir, "How are kitchen burns treated with water or butter?")).passed
    return runs_dir


def test_every_file_of_a_run_has_the_head_and_the_audit_finds_what_is_changed_in_it(runs: Path) -> None:
    folder = RunFolder(runs / "x")
    report, markdown = folder.read_report(), folder.read_report_md()
    assert report is not None
    assert report.outline[0] == "In short"
    first = folder.read_paragraphs()[0]
    assert report.sections[0].startswith(f"## In short\n\n{first.text} (C001")
    csv = (folder.path / "pipeline.csv").read_text(encoding="utf-8")
    assert "## In short" in csv
    with open_store(runs / "store.db") as store:
        assert audit_again(folder, store).passed
        longest = max(re.findall("[a-z]+", first.text), key=len)
        folder.report_file.write_text(markdown.replace(longest, "tortoises", 1), encoding="utf-8")
        assert any("tortoises" in each for each in audit_again(folder, store).problems)
    folder.report_file.write_text(markdown, encoding="utf-8")
    assert audit_run(folder).passed


def test_each_of_two_questions_has_the_answers_that_are_nearer_to_it(tmp_path: Path) -> None:
    (tmp_path / "tea").mkdir()
    (tmp_path / "tea" / "tea.md").write_text(
        "# Green tea\n\nGreen tea is made from leaves that were not oxidised after they were picked. Green tea is "
        "brewed with water of about 80 degrees for two or three minutes. Boiling water makes green tea bitter because "
        "it dissolves more tannin.\n\nGreen tea keeps its taste for about a year when it is stored dry and dark in a "
        "closed tin. Green tea that is stored in a refrigerator takes on the smell of other food.\n",
        encoding="utf-8",
    )
    done = asyncio.run(
        run_over(tmp_path / "tea", tmp_path / "runs", "How is green tea brewed and how is green tea stored?")
    )
    report = (done.folder / "final" / "report.md").read_text(encoding="utf-8")
    brewed, _, stored = report.partition("## How is green tea brewed?")[2].partition("## How is green tea stored?")
    assert "Boiling water" in brewed
    assert "refrigerator" not in brewed
    assert stored


def test_a_library_of_one_page_answers_the_side_of_a_choice_that_it_has(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "burns.md").write_text(
        "# First aid for burns\n\nCool running water for twenty minutes is the best first aid for a burn.\n",
        encoding="utf-8",
    )
    done = asyncio.run(run_over(tmp_path / "one", tmp_path / "runs", "First aid for a burn: water or butter"))
    assert done.passed
    assert "## In short\n\nCool running water" in RunFolder(done.folder).read_report_md()


def test_a_topic_that_no_page_holds_gets_a_short_report_that_says_so(tmp_path: Path) -> None:
    done = asyncio.run(run_over(LIBRARY, tmp_path, "The orbits of the moons of Jupiter"))
    folder = RunFolder(done.folder)
    report = folder.read_report()
    assert report is not None
    assert report.outline == ("Not answered by these pages – no page that was read names Jupiter",)
    assert (done.passed, done.metrics.sources_count, report.citations) == (False, 0, ())
    markdown = folder.read_report_md()
    assert "no statement on this topic could be checked against a page" in markdown
    assert "### What was looked for and not found" in markdown
    assert len(markdown) < 1200
    csv = (folder.path / "pipeline.csv").read_text(encoding="utf-8")
    assert "no statement on this topic" in csv
