"""What the measure of research reports counts, on reports and pages written for it."""

import json
from pathlib import Path

import pytest

from tests.support.research_key import About, Fact, Topic
from tests.support.research_measure import Judged, Measured, account, debris_in, measure, said_before, shares, table
from tests.support.research_pages import Pages

PAGE = """<html><head><title>Tea</title></head><body>
<div class="toc"><dl><dt>1.1. Brewing green tea at home.</dt></dl></div>
<h1>1. Tea</h1><p>Tea is a drink made of leaves. Green tea is brewed at <b>80</b> degrees, and <code>black</code>
tea at 95.</p>
<h2>1.1. Brewing</h2><p>Water of 95 degrees makes green tea bitter.</p><pre>kettle --degrees 80 --wait now.</pre>
<div class="sidebar"><p class="title">ASIDE Milk</p><p>Milk goes in last in most of Europe.</p></div>
<p>The leaves may be used twice.</p><table><tr><td>Oolong tea</td><td>is half black.</td></tr></table>
<h1>2. Coffee</h1><p>Coffee is ground before it is brewed.</p></body></html>"""
GREEN = "Green tea is brewed at 80 degrees, and black tea at 95."
TOPIC = Topic(
    name="tea",
    question="How is green tea brewed?",
    language="en",
    corpus="manuals",
    about=(About(page="tea.html", under=("1. Tea",)),),
    fact=(
        Fact(
            fact="Green tea wants 80 degrees.",
            page="tea.html",
            said=(("green tea", r"\b80\b"),),
            false=("green tea", r"\b95\b degrees is best"),
            reworded="At 80 degrees green tea is best.",
        ),
        Fact(fact="Leaves serve twice.", page="tea.html", said=(("leaves", "twice"),), reworded="Use leaves twice."),
    ),
)


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    file = tmp_path / "pages" / "tea.html"
    file.parent.mkdir()
    file.write_text(PAGE, encoding="utf-8")
    return Pages(file.parent, {"https://tea.test/tea.html": file}, {})


def measured(tmp_path: Path, pages: Pages, *paragraphs: str, topic: Topic = TOPIC) -> Measured:
    """The measure of a report whose sections have these paragraphs."""
    run = tmp_path / "run"
    for folder in ("evidence", "final"):
        (run / folder).mkdir(parents=True, exist_ok=True)
    entry = {"cid": "C001", "url": "https://tea.test/tea.html"}
    (run / "evidence" / "citations.json").write_text(json.dumps([entry]), encoding="utf-8")
    body = "\n\n".join(["# How is green tea brewed?", "## Brewing", *paragraphs, "## References", "1. C001 Tea"])
    (run / "final" / "report.md").write_text(body, encoding="utf-8")
    return measure(topic, run, pages)


def one(tmp_path: Path, pages: Pages, sentence: str) -> Judged:
    return measured(tmp_path, pages, f"{sentence} (C001)").judged[0]


def test_cited_sentences_are_counted_and_notes_are_not(tmp_path: Path, pages: Pages) -> None:
    found = measured(
        tmp_path, pages, f"{GREEN} The leaves may be used twice. (C001)", "- Milk is white. [1]", "Nothing."
    )
    assert [each.statement.text for each in found.judged] == [GREEN, "The leaves may be used twice.", "Milk is white."]
    assert {each.statement.heading for each in found.judged} == {"Brewing"}


def test_a_good_sentence_has_nothing_against_it(tmp_path: Path, pages: Pages) -> None:
    judged = one(tmp_path, pages, GREEN)
    assert (judged.about, judged.debris, judged.repeats, judged.wrong) == (True, "", "", "")


def test_facts_are_found_in_a_sentence_or_two_on_end(tmp_path: Path, pages: Pages) -> None:
    assert [fact.fact for fact in measured(tmp_path, pages, f"{GREEN} (C001)").found] == ["Green tea wants 80 degrees."]
    apart = ("Green tea is made so. (C001)", "Water has 80 degrees. (C001)", "Leaves are green. (C001)")
    assert len(measured(tmp_path, pages, *apart).found) == 1
    assert not measured(tmp_path, pages, apart[0], apart[2], apart[1]).found


def test_a_sentence_of_another_section_of_the_page_is_off_topic(tmp_path: Path, pages: Pages) -> None:
    assert not one(tmp_path, pages, "Coffee is ground before it is brewed.").about
    assert one(tmp_path, pages, "Milk goes in last in most of Europe.").about


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("Green tea is brewed at 60 degrees, and black tea at 95.", "none of its pages"),
        ("For green tea 95 degrees is best.", "contradicts"),
    ],
)
def test_what_no_page_says_or_the_key_denies_is_wrong(tmp_path: Path, pages: Pages, sentence: str, why: str) -> None:
    assert why in one(tmp_path, pages, sentence).wrong


def test_a_sentence_that_quotes_is_judged_by_what_it_quotes(tmp_path: Path, pages: Pages) -> None:
    judged = one(tmp_path, pages, "The page says “Water of 95 degrees makes green tea bitter.”")
    assert (judged.about, judged.wrong) == (True, "")
    assert one(tmp_path, pages, "The page says “Water of 60 degrees makes green tea bitter.”").wrong


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("Brewing green tea at home.", "links"),
        ("kettle --degrees 80 --wait now.", "code"),
        ("Brewing Water of 95 degrees makes green tea bitter.", "heading and text"),
        ("ASIDE Milk Milk goes in last in most of Europe.", "heading and text"),
        ("Oolong tea is half black.", "cell"),
        ("makes green tea bitter.", "begins within a sentence"),
        ("Water of 95 degrees makes green tea", "no end"),
    ],
)
def test_contents_code_headings_and_parts_of_sentences_are_debris(
    tmp_path: Path, pages: Pages, sentence: str, why: str
) -> None:
    judged = one(tmp_path, pages, sentence)
    assert not judged.wrong
    assert why in judged.debris


@pytest.mark.parametrize(
    "text",
    [
        "It is <b>bold</b> and &nbsp; so on.",
        "See 1.2 Tea, 3.4 Milk and 5.6.7 Sugar here.",
        "Tea . . . . . . . . . . 17.",
        "Figure 4.6. Name of the first user.",
        "図 12.1 インストーラのセッションに接続します。",
        '{"a": [1, 2, 3], "b": 17} == 0x1f.',
        "# apt install tea now.",
        "Use tea.",
        "例です。",
        "To brew it, choose from the following:",
    ],
)
def test_signs_of_markup_and_code_are_debris_wherever_they_stand(text: str) -> None:
    assert debris_in(text, [])


@pytest.mark.parametrize(
    "text",
    [
        "AppArmor profiles are stored in /etc/apparmor.d/ and they contain a list of rules.",
        "Call `aa-status`, as chapter 14.4, “Introduction to AppArmor” says.",
        "Der Befehl rsync (aus dem gleichnamigen Paket) wird täglich benutzt.",
        "APT からの入力要求に自動回答する設定は簡単です。",
        "It costs $3.50 a pound, or 12 % less.",
    ],
)
def test_ordinary_sentences_are_no_debris(text: str) -> None:
    assert not debris_in(text, [])


@pytest.mark.parametrize(
    ("earlier", "text", "again"),
    [
        (GREEN, "Black tea is brewed at 95 degrees, and green tea at 80.", True),
        (GREEN, "Green tea is brewed at 80 degrees.", True),
        (GREEN, "Green tea is brewed at 70 degrees in Japan, where the leaves are steamed.", False),
        ("rsync wird täglich auf den Servern benutzt.", "Täglich wird rsync auf den Servern benutzt.", True),
        ("debconf の質問には優先度があります。", "優先度は debconf の質問にあります。", True),
        ("debconf の質問には優先度があります。", "apticron は更新をメールで知らせます。", False),
        ("It is so.", "It is so.", True),
        ("It is so.", "It was not.", False),
    ],
)
def test_what_an_earlier_sentence_says_is_a_repetition(earlier: str, text: str, again: bool) -> None:
    assert bool(said_before(text, ["Something else is said here.", earlier])) == again


def test_shares_pool_the_topics_and_absent_ones_count_by_what_is_stated(tmp_path: Path, pages: Pages) -> None:
    good = measured(tmp_path, pages, f"{GREEN} (C001)")
    bad = measured(
        tmp_path, pages, "Coffee is ground before it is brewed. (C001)", "kettle --degrees 80 --wait now. (C001)"
    )
    absent = measured(tmp_path, pages, "Tea is red. (C001)", topic=TOPIC.model_copy(update={"fact": (), "about": ()}))
    assert shares([good, bad, absent]) == (1 / 4, 1 / 3, 1 / 3, 0, 1, 1)
    assert [line.split("\t")[:5] for line in table([good, absent])][1:3] == [
        ["tea", "2", "1", "1", "1"],
        ["tea", "0", "0", "1", "0"],
    ]
    assert "off topic; debris: code\tBrewing\tkettle --degrees 80 --wait now." in list(account(bad))
    assert "missing\tLeaves serve twice." in list(account(bad))
