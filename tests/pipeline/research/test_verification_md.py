from markdown_it import MarkdownIt

from pipeline.research.report import RunNotes, verification_markdown, weaker_sentences
from pipeline.research.values import Verified, Written
from pipeline.verifying.page_text import PageText
from pipeline.verifying.values import Checked, Claim, Page, Paragraph, Quote

A, B, LOST = (f"https://{name}.example/" for name in ("a", "b", "lost"))
HONEY = "Honey eases the cough of children at night."
BRIDGE = "The old bridge was opened in 1932."
PAGES = {
    A: PageText(f"{HONEY} {BRIDGE}", A, "en"),
    B: PageText(HONEY, B, "en"),
}


def test_sentences_of_a_paragraph_share_its_citations_and_unread_pages_carry_nothing() -> None:
    reworded = "Honey soothes a child that coughs after dark."
    given = [(f"{HONEY} {reworded}", (A,)), (reworded, (B,)), (BRIDGE, (LOST,)), (f"{HONEY} {BRIDGE}", (A, B))]
    weaker = weaker_sentences([Paragraph(0, text, ("c1",), urls) for text, urls in given], PAGES, "en")
    assert [text for text, _ in weaker] == [reworded, reworded, BRIDGE]
    assert dict(weaker)[BRIDGE] == "cannot_tell"


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
    weaker = [("It helps.", "cannot_tell")]
    about = RunNotes("Does honey help?", "time", ("One page was not read.",), weaker=weaker)
    text = verification_markdown(about, verified, written, [first, other], {A: "C001"})
    assert "| claims checked | 2 |" in text
    assert "| stopped early by | time |" in text
    assert "| c2 | Honey cures 12 ills. | not_found | too few words |" in text
    assert f"[First page]({A}) (C001, a.example, 2026-11-22)" in text
    assert "against it: “Honey does not ease the cough of children.”" in text
    assert "- **c1** Honey eases" in text.split("## Claims with one source")[1]
    assert "- One page was not read." in text
    assert "\n- It helps. (cannot_tell: it cannot be told from its pages)\n" in text
    assert "- Paragraph 2 ends in no citation." in verification_markdown(
        about._replace(audit=("Paragraph 2 ends in no citation.",)), verified, written, [first], {}
    )


def test_hostile_text_stays_text_in_it() -> None:
    hostile = Page(A, HOSTILE, HOSTILE, "en", HOSTILE, HOSTILE)
    quote = Quote(A, HOSTILE, 0, len(HOSTILE))
    checked = Checked(Claim(HOSTILE, HOSTILE, 0, (quote,)), "contradicted", 0.1, (HOSTILE,), (), (quote,))
    supported = checked._replace(claim=Claim("c1", HOSTILE, 0, (quote,)), verdict="supported", supporters=(A,))
    written = Written(HOSTILE, (Paragraph(0, HOSTILE, ("c1",), (A,)),), (checked,))
    about = RunNotes(HOSTILE, HOSTILE, (HOSTILE,), (HOSTILE,), [(HOSTILE, "not_found")])
    text = verification_markdown(about, Verified((checked, supported), 0.0), written, [hostile], {})
    markdown = MarkdownIt("commonmark").enable("table")
    plain = verification_markdown(RunNotes("x", "x", ("x",), ("x",)), Verified((), 0.0), Written("x", ()), [], {})
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
