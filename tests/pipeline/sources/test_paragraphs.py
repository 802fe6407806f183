import unicodedata
from pathlib import Path

import pytest
from lxml import html

from pipeline.sources.extract import extract_document
from pipeline.text.sentences import sentence_spans
from tests.support.debian_pages import handbook
from tests.support.places import DATA

WITH_BLOCKS = ".//p | .//div | .//pre | .//ul | .//ol | .//dl | .//table"
MANUAL = (DATA / "pages" / "manual.html").read_text(encoding="utf-8")
FILLER = "".join(
    f'<div class="para">Rule {number} of the <code>file</code> is there for machines of kind {number}, of which a '
    f"house has some that nobody else looks after, so that their lines go to a file of their own for a year.</div>"
    for number in range(12)
)


def manual(generator: str) -> str:
    """The page as this program makes it, without the line ends of its source."""
    return MANUAL.format(generator=generator, filler=FILLER).replace("\n", " ")


def read(page: str) -> str:
    return extract_document(page.encode(), "text/html", "", "https://manual.test/logging.html").text


def test_paragraphs_of_a_manual_are_read_around_inline_elements_lists_boxes_and_short_items() -> None:
    text = read(manual("DocBook XSL Stylesheets"))
    assert "The daemon rsyslogd reads what programs say. Its rules stand in rsyslog.conf, and each" in text
    assert "A rule such as mail.* takes all that the mail subsystem says." in text
    told = (
        "four kinds in all:",
        "the name of a file, to which",
        "the name of a pipe, with a bar;",
        "and @server, which sends",
    )
    places = [text.find(each) for each in told]
    assert -1 < places[0] < places[1] < places[2] < places[3]
    box = "Old logs are compressed by logrotate every week, and after a year of fifty-two weeks"
    assert box in read(manual("publican v4.3.2"))
    assert box not in read(manual("WordPress 6.1"))
    items = "".join(f'<li><div class="para"><code>level{number}</code>: short;</div></li>' for number in range(30))
    page = MANUAL.format(generator="DocBook XSL Stylesheets", filler=f"{FILLER}<ul>{items}</ul>").replace("\n", " ")
    text = read(page)
    assert "The daemon rsyslogd reads what programs say." in text
    assert "level7: short;" in text


WRAPPED = (DATA / "pages" / "wrapped.html").read_text(encoding="utf-8")


def test_a_line_end_within_a_paragraph_is_a_blank_and_one_of_a_listing_stays() -> None:
    text = read(WRAPPED)
    assert "You should set the package maintainer to Debian QA Group and file a bug" in text
    assert "the Debian Policy Manual for all" in text
    assert "reason for it in the report that you file against wnpp or qa.debian.org." in text
    assert "git clone one\ngit push two" in text


def letters_of(text: str) -> str:
    return "".join(sign for sign in unicodedata.normalize("NFKC", text).casefold() if sign.isalnum())


def plain_paragraphs(file: Path) -> list[str]:
    """The paragraphs that hold no block, as another reader than ours sees them; menus have none."""
    tree = html.document_fromstring(file.read_bytes(), parser=html.HTMLParser(encoding="utf-8"))
    found = tree.xpath("//p[not(@class)] | //div[@class='para']")
    plain = [each for each in found if not each.xpath(WITH_BLOCKS) and not each.xpath("ancestor::*[@class='docnav']")]
    return [" ".join(each.text_content().split()) for each in plain]


@pytest.mark.parametrize("folder", ["en-US", "de-DE", "ja-JP"])
def test_the_handbooks_sentences_are_read_in_every_language(folder: str) -> None:
    found = missing = 0
    for file in sorted(handbook(folder).glob("sect.*.html"))[::8]:
        text = letters_of(read(file.read_text(encoding="utf-8")))
        blocks = plain_paragraphs(file)
        spans = [(block, span) for block in blocks for span in sentence_spans(block, folder[:2])]
        told = (letters_of(block[start:end]) for block, (start, end) in spans)
        sentences = [sentence for sentence in told if len(sentence) >= 20]
        missing += sum(sentence not in text for sentence in sentences)
        found += len(sentences)
    assert found > 300
    assert missing <= (1 - 0.95) * found
