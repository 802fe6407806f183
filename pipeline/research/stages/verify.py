"""The stage `verify`: every claim of a run against the stored pages, those it cites and all others."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pipeline.research.values import Verified
from pipeline.text.coverage import cover, words_and_numbers
from pipeline.verifying.claim import CANDIDATES, Finding, check_sentence, is_covered, opposed, with_quotes
from pipeline.verifying.page_text import PageText, read_page
from pipeline.verifying.values import Checked, Claim, Page, Quote

CORROBORATED_FROM = 0.6
"""Share of a claim's words that a sentence of a page has to have that the claim does not cite."""
MOST_FOLLOW_UPS = 3
"""Queries that a round asks for sections without a supported claim."""


class ReadPages(NamedTuple):
    """The pages of a run, read once."""

    texts: Mapping[str, PageText]
    """By canonical URL, in the order of the pages."""
    sites: Mapping[str, str]
    """The site of each."""


def read_pages(pages: Iterable[Page]) -> ReadPages:
    """The pages of a run, read once; of those with the same URL the last one."""
    last = {page.url: page for page in pages}
    texts = {url: read_page(page) for url, page in last.items()}
    return ReadPages(texts, {url: page.site for url, page in last.items()})


def verify(claims: Iterable[Claim], pages: Iterable[Page], sections: Sequence[str] = ()) -> Verified:
    """Every claim checked, in order; the share of the sections that have a supported one, and what to ask next."""
    read = read_pages(pages)
    checked = [check(claim, read) for claim in claims]
    return verified_of(checked, sections)


def verified_of(checked: Sequence[Checked], sections: Sequence[str]) -> Verified:
    """The claims with the share of the sections that have a supported one, and the others as queries, at most three."""
    covered = {each.claim.section for each in checked if each.verdict == "supported"}
    open_sections = [section for number, section in enumerate(sections) if number not in covered]
    share = 1 - len(open_sections) / len(sections) if sections else 0.0
    return Verified(tuple(checked), share, tuple(dict.fromkeys(open_sections))[:MOST_FOLLOW_UPS])


def check(claim: Claim, read: ReadPages) -> Checked:
    """The claim with what its own pages say of it, which others support it, and which say otherwise."""
    cited = list(dict.fromkeys(quote.url for quote in claim.quotes))
    own = [read.texts[url] for url in cited if url in read.texts]
    finding = with_quotes(check_sentence(claim.text, own), own, claim.quotes)
    others = [text for url, text in read.texts.items() if url not in cited]
    against = finding.against + contrary(claim.text, others)
    supporters = supporting(claim.text, cited, finding, read) if finding.verdict == "supported" else ()
    return Checked(claim, finding.verdict, finding.score, finding.problems, supporters, against)


def supporting(text: str, cited: Sequence[str], finding: Finding, read: ReadPages) -> tuple[str, ...]:
    """The pages that support the text, the cited ones first; all cited ones where only all together do."""
    alone = [url for url in cited if url in read.texts and supports(text, read.texts[url])]
    own = alone or [url for url in cited if url in read.texts]
    return (*own, *(url for url, page in read.texts.items() if url not in cited and supports(text, page)))


def supports(text: str, page: PageText) -> bool:
    """Whether the page alone supports the text; most pages are told by their words already."""
    words, numbers = words_and_numbers(text, "")
    coverage, _ = cover(words, numbers, [page.index])
    enough = bool(words or numbers) and is_covered(coverage, len(words or numbers), CORROBORATED_FROM)
    return enough and check_sentence(text, [page]).verdict == "supported"


def contrary(text: str, pages: Sequence[PageText]) -> tuple[Quote, ...]:
    """The sentences of the pages that contradict the text."""
    words, numbers = words_and_numbers(text, "")
    _, places = cover(words, numbers, [page.index for page in pages], CANDIDATES)
    return opposed(text, pages, places)[1]
