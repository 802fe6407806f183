"""The report's paragraphs on what sources disagree about: both sides in their own words, each paragraph citing both."""

import re
from collections.abc import Mapping, Sequence

from pipeline.text.urls import source_domain
from pipeline.text.words import without_marks
from pipeline.verifying.scores import conflicts
from pipeline.verifying.values import Checked, Page, Paragraph, Quote

"""Of the section behind the others, by the report's language; other languages have the English one."""
MOST = 5
"""Disagreements in a report; `verification.md` has the others."""
LONGEST_SIDE = 300
LONGEST_NAME = 80
BLANK_BEFORE_STOP = re.compile(r" (?=[.,;。、])")


def disagreements(claims: Sequence[Checked], pages: Sequence[Page], section: int) -> list[Paragraph]:
    """A paragraph for each claim that another page contradicts, at most 5, in order of the claims; the same pair once.

    `section` is the index behind the plan's last one. The paragraphs state no claim: they say who says what.
    """
    by_url = {page.url: page for page in pages}
    found: dict[frozenset[str], Paragraph] = {}
    for checked in conflicts(claims):
        own = next((quote for quote in checked.claim.quotes if quote.url in by_url), None)
        other = own and next((each for each in checked.against if each.url in by_url and each.url != own.url), None)
        if own and other:
            text = f"{side(own, by_url)} {side(other, by_url)}"
            pair = frozenset((own.text, other.text))
            found.setdefault(pair, Paragraph(section, text, (), (own.url, other.url)))
    return list(found.values())[:MOST]


def side(quote: Quote, pages: Mapping[str, Page]) -> str:
    """What a page says, behind its title, or its host where it has none."""
    name = " ".join(pages[quote.url].title.split()) or source_domain(quote.url)
    words = BLANK_BEFORE_STOP.sub("", " ".join(without_marks(quote.text).split()))
    return f"{cut(name, LONGEST_NAME)}: “{cut(words, LONGEST_SIDE)}”"


def cut(text: str, longest: int) -> str:
    """The text, with an ellipsis for what is beyond the longest length."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"
