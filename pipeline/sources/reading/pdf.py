"""The text of a PDF, page by page."""

import re
from itertools import accumulate
from typing import Any, NamedTuple

from pipeline.sources.reading.decode import stored_text

BROKEN_WORD = re.compile(r"(?<=\w)[-\u00ad\u2010\x02\ufffe]$")
ENDS_A_LINE = re.compile(r"[.!?…:;。！？」)\]\"”’]$")
BEGINS_AN_ITEM = re.compile(r"[-*•◦▪–]\s|\(?\d{1,3}(?:\.\d+)*[.)]?\s|[A-Z]\.\s")
WRITTEN_WITHOUT_BLANKS = re.compile(r"[\u3001-\u30ff\u3400-\u9fff\uff01-\uff60]")
FULL_LINE = 0.7
AMONG_THE_LONGEST = 0.8
LONGEST_TEXT = 20_000_000


class PdfText(NamedTuple):
    """What a PDF says."""

    text: str
    """The text of its pages, each on a new line."""
    title: str
    """The title in its properties; empty where it has none."""
    page_starts: tuple[int, ...]
    """First code point of each page, in order; an empty page begins where the next one does."""
    whole: bool
    """Whether all pages are there: reading ends behind 20 million characters."""


class UnreadablePdfError(ValueError):
    """The file is broken, or needs a password."""


def read_pdf(body: bytes) -> PdfText:
    """The text of the PDF, paragraphs joined from their lines and words from their halves.

    Raises:
        UnreadablePdfError: it is broken, or needs a password.
    """
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        raise UnreadablePdfError("it is broken, or needs a password") from error
    try:
        pages, length = [], 0
        for number in range(len(document)):
            pages.append(page_text(document, number))
            length += len(pages[-1])
            if length > LONGEST_TEXT:
                break
        title = " ".join(stored_text(document.get_metadata_dict().get("Title", "")).split())
        text, page_starts = joined(pages)
        return PdfText(text, title, page_starts, len(pages) == len(document))
    finally:
        document.close()


def page_text(document: Any, number: int) -> str:
    """The text of one page, a paragraph a line; empty for a page without text, or one that cannot be read."""
    import pypdfium2

    try:
        page = document[number]
        words = page.get_textpage()
        text = words.get_text_range(errors="replace")
    except pypdfium2.PdfiumError:
        return ""
    words.close()
    page.close()
    lines = [line.strip() for line in re.split(r"[\r\n]+", text)]
    return stored_text("\n".join(paragraphs([line for line in lines if line])))


def paragraphs(lines: list[str]) -> list[str]:
    """The lines of a page joined to paragraphs: a full line that ends in the middle of a sentence goes on below."""
    lengths = sorted(map(len, lines))
    full = FULL_LINE * lengths[int(len(lines) * AMONG_THE_LONGEST)] if lines else 0.0
    found: list[str] = []
    last_length = 0
    for line in lines:
        goes_on = found and last_length >= full and not ENDS_A_LINE.search(found[-1]) and not BEGINS_AN_ITEM.match(line)
        if found and BROKEN_WORD.search(found[-1]) and line[0].islower():
            found[-1] = found[-1][:-1] + line
        elif goes_on:
            found[-1] = found[-1] + between(found[-1], line) + line
        else:
            found.append(line)
        last_length = len(line)
    return found


def between(line: str, following: str) -> str:
    """What joins two lines: a blank, or nothing in scripts that are written without."""
    without = WRITTEN_WITHOUT_BLANKS.match(line[-1]) and WRITTEN_WITHOUT_BLANKS.match(following)
    return "" if without else " "


def joined(pages: list[str]) -> tuple[str, tuple[int, ...]]:
    """The pages as one text, and where each begins."""
    with_text = [f"{page}\n" if page else "" for page in pages]
    starts = list(accumulate((len(page) for page in with_text), initial=0))
    return "".join(with_text).rstrip("\n"), tuple(starts[:-1])
