import asyncio

import pytest

from pipeline.research.audit import audit
from pipeline.research.intake import make_plan
from pipeline.research.layout import LaidOut, lay_out
from pipeline.research.values import ANSWER, Intake, Plan, Verified, Written
from pipeline.research.write import write_report
from pipeline.verifying.values import Checked, Claim, Page, Quote

READ_AT = "2026-11-20T10:00:00+00:00"


def came(
    topic: str, language: str, *stated: tuple[int, str], plan: tuple[str, ...] = ()
) -> tuple[list[str], Written, LaidOut]:
    """The head and the report of these claims, each with its section, of one page; sections by the topic's words."""
    intake = Intake(topic, topic, language, "brief")
    sections = Plan(plan, ()) if plan else asyncio.run(make_plan(intake, None))
    text = "\n".join(words for _, words in stated)
    page = Page("https://a.example/", "Notes", "a.example", language, text, READ_AT)
    claims = []
    for number, (section, words) in enumerate(stated, start=1):
        start = text.index(words)
        quote = Quote(page.url, words, start, start + len(words))
        claims.append(Checked(Claim(f"c{number}", words, section, (quote,)), "supported", 1.0, (), (page.url,)))
    verified = Verified(tuple(claims), 1.0)
    written = asyncio.run(write_report(intake, sections, verified, [page], None))
    head = [paragraph.text for paragraph in written.paragraphs if paragraph.section == ANSWER]
    return head, written, lay_out(intake, sections, verified, written, [page])


BURNS = (
    (0, "My grandmother put butter on every burn, as her mother had done."),
    (0, "Cool water is the best first aid for a burn and takes the heat out of the skin."),
    (0, "For example, butter was put on a burn in the kitchen of an old hotel in the town."),
    (1, "Nurses of the old hospital counted forty visits in the winter of that year."),
    (2, "Butter on a burn is a lid that keeps the heat of the pan in the skin for long."),
)


def test_a_report_begins_with_what_answers_its_topic_best_and_states_it_nowhere_else() -> None:
    sides = ("Butter or water on a burn", "Visits to the hospital", "What butter does")
    texts, _, laid_out = came("Butter or water on a burn", "en", *BURNS, plan=sides)
    assert laid_out.report.outline[0] == "In short"
    assert laid_out.markdown.startswith("# Butter or water on a burn\n\n## In short\n\n")
    head = " ".join(texts)
    assert [words in head for words in (BURNS[1][1], BURNS[4][1], "grandmother", "example")] == [
        True,
        True,
        False,
        False,
    ]
    for _, text in BURNS:
        assert laid_out.markdown.count(text) == 1
    assert audit(laid_out.markdown, laid_out.paragraphs, laid_out.citations).passed
    assert {each.claim_id for each in laid_out.report.citations} == {"c1", "c2", "c3", "c4", "c5"}


def test_a_statement_in_small_letters_begins_a_paragraph_and_one_at_the_head_is_told_there() -> None:
    stated = (
        (0, "The scheduler of Debian is run by the system."),
        (0, "cron runs the jobs of the scheduler at their times."),
        (0, "Jobs of the scheduler that were missed are run later by anacron."),
    )
    _, written, _ = came("What does the scheduler run?", "en", *stated, plan=("What does the scheduler run?",))
    assert "cron" in [paragraph.text.partition(" ")[0] for paragraph in written.paragraphs]
    assert not any(". cron" in paragraph.text for paragraph in written.paragraphs)
    honey = (1, "Honey is a sweet food of the kitchen that bees make.")
    _, _, laid_out = came("Honey in the kitchen", "en", honey, plan=("Background", "How it works"))
    assert laid_out.report.outline == ("In short",)
    told = laid_out.markdown.partition("### What was looked for and not found")[2].partition("###")[0]
    assert "- On “How it works” there is nothing beyond what stands at the beginning." in told
    assert "Nothing on “Background”" in told


@pytest.mark.parametrize(("answer", "heading"), [(True, "In short"), (False, "Not answered by these pages")])
def test_a_report_of_a_model_says_first_what_no_page_names(answer: bool, heading: str) -> None:
    stated = [(0, "A cluster for storage is set up on three servers at least.")] if answer else []
    _, _, laid = came("How do I set up Ceph, and how many servers does Ceph need?", "en", *stated)
    assert laid.report.outline[0] == f"{heading} – no page that was read names Ceph"


def test_the_head_answers_each_of_several_questions_and_leaves_half_of_the_claims_to_the_sections() -> None:
    head, _, _ = came(
        "How does a heat pump work, and what does a heat pump cost to run?",
        "en",
        (0, "A heat pump works by moving heat from the outside air into the house."),
        (0, "The work of a heat pump is done by a compressor that raises the pressure."),
        (0, "A heat pump works best where the water for the heating is not too hot."),
        (0, "The heat pump works through the night where the house loses heat quickly."),
        (1, "The cost to run a heat pump is about 900 euros a year for a household."),
        (1, "Old houses need larger radiators when the cost of a heat pump counts to its owner."),
    )
    assert "moving heat" in " ".join(head)
    assert "900 euros" in " ".join(head)
    assert sum(text.count(".") for text in head) <= 3
    for count in range(1, 8):
        _, written, _ = came("Honey in the kitchen", "en", *((0, words) for words in HONEY[:count]))
        stated = [name for each in written.paragraphs if each.section == ANSWER for name in each.claim_ids]
        assert len(stated) == min(3, -(-count // 2))
    pairs = [(0, f"{HONEY[number]} {HONEY[number + 1]}") for number in (0, 2, 4)]
    head, _, _ = came("Honey in the kitchen", "en", *pairs, (0, HONEY[6]), (0, "Honey needs no cold shelf."))
    assert sum(text.count(".") for text in head) == 3


HONEY = (
    "Honey keeps for years in a closed jar on the shelf.",
    "Bakers replace sugar by honey in cakes and bread.",
    "Honey turns solid below ten degrees and flows again in a warm bath.",
    "Doctors warn parents of infants under one year of honey.",
    "Honey sweetens tea without hiding its taste.",
    "Marinades of honey and mustard brown quickly on the grill.",
    "A spoon dipped into oil lets go of honey at once.",
)


@pytest.mark.parametrize(
    ("text", "stands"),
    [("私有鍵は鍵ファイルの保存に必要で、秘密にします。", True), ("私は鍵ファイルの保存に封筒を使っています。", False)],
)
def test_what_somebody_tells_of_themselves_is_no_answer_and_a_word_with_their_sign_is(text: str, stands: bool) -> None:
    assert bool(came("鍵ファイルの保存", "ja", (0, text))[0]) is stands


@pytest.mark.parametrize(
    ("language", "topic", "answer", "short", "none"),
    [
        ("en", "Honey of bees", "Honey of bees is a sweet food.", "In short", "Not answered by these pages"),
        (
            *("de", "Honig der Bienen im Winter", "Honig der Bienen ist ein süßes Lebensmittel für den Winter."),
            *("Kurz gesagt", "Von diesen Seiten nicht beantwortet"),
        ),
        (
            *("ja", "蜂蜜の作り方と保存", "蜂蜜の保存は涼しい場所が望ましいです。"),
            *("要点", "これらのページには答えがありません"),
        ),
    ],
)
def test_the_head_says_in_the_reports_language_that_it_answers_or_that_nothing_does(
    language: str, topic: str, answer: str, short: str, none: str
) -> None:
    assert came(topic, language, (0, answer))[2].report.outline[0] == short
    laid_out = came(topic, language)[2]
    assert (laid_out.report.outline, laid_out.report.sections) == ((none,), (f"## {none}",))
    assert laid_out.markdown.startswith(f"# {topic}\n\n## {none}\n\n## ")
    found = audit(laid_out.markdown, laid_out.paragraphs, laid_out.citations)
    assert (found.total_paragraphs, found.passed) == (0, False)
    beside = (0, "Wasps eat flies and ripe fruit in the garden.")
    laid_out = came("Mating of tortoises", "en", beside, plan=("What do wasps eat?",))[2]
    assert laid_out.report.outline == ("Not answered by these pages", "What do wasps eat?")
    assert audit(laid_out.markdown, laid_out.paragraphs, laid_out.citations).passed
