import pytest
from markdown_it import MarkdownIt

from pipeline.research.report import RunNotes, verification_markdown
from pipeline.research.values import Verified, Written
from pipeline.verifying.page_text import PageText
from pipeline.verifying.scores import CitedText, Scores, citation_scores, cited_texts, weaker_sentences
from pipeline.verifying.values import Checked, Claim, Page, Paragraph, Quote

A, B, C, LOST = (f"https://{name}.example/" for name in ("a", "b", "c", "lost"))
HONEY = "Honey eases the cough of children at night."
BRIDGE = "The old bridge was opened in 1932."
PAGES = {
    A: PageText(f"{HONEY} {BRIDGE}", A, "en"),
    B: PageText(HONEY, B, "en"),
    C: PageText("The stock exchange closed lower on Monday.", C, "en"),
}


def test_recall_precision_and_accuracy_of_a_report_worked_by_hand() -> None:
    # Sentence, citations: supported together? citation needed? page carries it?
    scores = citation_scores(
        [
            CitedText((HONEY,), (A, B)),  # yes; A yes, B yes (each alone suffices); A yes, B yes
            CitedText((BRIDGE,), (A, C)),  # yes; A yes, C no (A suffices without it); A yes, C no
            CitedText((BRIDGE,), (B,)),  # no; B no; B no
            CitedText((BRIDGE,), ()),  # no citation, so not supported
            CitedText((HONEY,), (LOST,)),  # no; no; could not be read
        ],
        PAGES,
    )
    assert scores == Scores(sentences=5, supported=2, citations=6, precise=3, read=5, effective=3)
    assert (scores.recall, scores.precision) == (pytest.approx(2 / 5), pytest.approx(3 / 6))
    assert scores.accuracy == pytest.approx(3 / 5)


def test_sentences_of_a_paragraph_share_its_citations_and_unread_pages_carry_nothing() -> None:
    paragraph = Paragraph(0, f"{HONEY} {BRIDGE}", ("c1", "c2"), (A, B, A))
    texts = cited_texts([paragraph, paragraph], "en")
    assert texts[0] == CitedText((HONEY, BRIDGE), (A, B))
    scores = citation_scores(texts, PAGES)
    assert scores == Scores(sentences=4, supported=4, citations=4, precise=4, read=2, effective=2)
    reworded = "Honey soothes a child that coughs after dark."
    texts = [CitedText((HONEY, reworded), (A,)), CitedText((reworded,), (B,)), CitedText((BRIDGE,), (LOST,))]
    scores = citation_scores(texts, PAGES)
    assert (scores.read, scores.effective) == (2, 1)
    assert [text for text, verdict in weaker_sentences(texts, PAGES)] == [reworded, reworded, BRIDGE]
    assert dict(weaker_sentences(texts, PAGES))[BRIDGE] == "cannot_tell"
    scores = citation_scores([], PAGES)
    assert (scores.recall, scores.precision, scores.accuracy) == (None, None, None)


def page(url: str, title: str, text: str) -> Page:
    return Page(url, title, url.split("/")[2], "en", text, "2026-11-22T00:00:00Z")


HOSTILE = (
    "<img src=x onerror=alert(1)> | ![x](http://evil.example/x.png) [y](javascript:alert(1)) `code` # Heading\n\n# H"
)


def test_people_read_what_was_left_out_and_both_sides_of_a_conflict() -> None:
    first, other = page(A, "First page", HONEY), page(B, "Other page", "Honey does not ease the cough of children.")
    claim = Claim("c1", HONEY, 0, (Quote(A, HONEY, 0, len(HONEY)),))
    supported = Checked(claim, "supported", 1.0, (), (A,), (Quote(B, other.text, 0, len(other.text)),))
    dropped = Checked(claim._replace(id="c2", text="Honey cures 12 ills."), "not_found", 0.2, ("too few words",))
    verified = Verified((supported, dropped), 0.5)
    written = Written("Honey", (Paragraph(0, HONEY, ("c1",), (A,)),), (dropped,))
    scores = citation_scores(cited_texts(written.paragraphs), PAGES)
    weaker = [("It helps.", "cannot_tell")]
    about = RunNotes("Does honey help?", "time", ("One page was not read.",), weaker=weaker)
    text = verification_markdown(about, verified, written, [first, other], {A: "C001"}, scores)
    assert "| claims checked | 2 |" in text
    assert "| stopped early by | time |" in text
    assert "| c2 | Honey cures 12 ills. | not_found | too few words |" in text
    assert f"[First page]({A}) (C001, a.example, 2026-11-22)" in text
    assert "against it: “Honey does not ease the cough of children.”" in text
    assert "| citation recall (ALCE) | 100.0% | 1 of 1 sentences supported |" in text
    assert "- **c1** Honey eases" in text.split("## Claims with one source")[1]
    assert "- One page was not read." in text
    assert "\n- It helps. (cannot_tell: it cannot be told from its pages)\n" in text
    assert "- Paragraph 2 ends in no citation." in verification_markdown(
        about._replace(audit=("Paragraph 2 ends in no citation.",)), verified, written, [first], {}, scores
    )


def test_hostile_text_stays_text_in_it() -> None:
    hostile = Page(A, HOSTILE, HOSTILE, "en", HOSTILE, HOSTILE)
    quote = Quote(A, HOSTILE, 0, len(HOSTILE))
    checked = Checked(Claim(HOSTILE, HOSTILE, 0, (quote,)), "contradicted", 0.1, (HOSTILE,), (), (quote,))
    supported = checked._replace(claim=Claim("c1", HOSTILE, 0, (quote,)), verdict="supported", supporters=(A,))
    written = Written(HOSTILE, (Paragraph(0, HOSTILE, ("c1",), (A,)),), (checked,))
    about = RunNotes(HOSTILE, HOSTILE, (HOSTILE,), (HOSTILE,), [(HOSTILE, "not_found")])
    text = verification_markdown(about, Verified((checked, supported), 0.0), written, [hostile], {}, Scores())
    markdown = MarkdownIt("commonmark").enable("table")
    plain = verification_markdown(
        RunNotes("x", "x", ("x",), ("x",)), Verified((), 0.0), Written("x", ()), [], {}, Scores()
    )
    headings = [token for token in markdown.parse(plain) if token.type == "heading_open"]
    parsed = markdown.parse(text)
    assert len([token for token in parsed if token.type == "heading_open"]) == len(headings)
    inside = [child for token in parsed for child in token.children or ()]
    assert not [
        token for token in (*parsed, *inside) if token.type in ("html_block", "html_inline", "image", "code_inline")
    ]
    assert {token.attrGet("href") for token in inside if token.type == "link_open"} <= {A}
    rows = [line for line in text.splitlines() if line.startswith("| ") and "onerror" in line]
    assert all(line.replace("\\|", "").count("|") in (3, 5) for line in rows)
