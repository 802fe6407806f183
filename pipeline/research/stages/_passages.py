"""The passages of the pages that speak most of a section, each with its place in its page and the headings above it."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from pipeline.research.values import Plan, plan_language
from pipeline.sources.choosing.chunk import page_chunks
from pipeline.sources.choosing.select import rank_passages
from pipeline.sources.headings import headings_above, headings_of
from pipeline.sources.schema import Chunk
from pipeline.text.language import detect_language
from pipeline.verifying.values import Page

_CHUNK_TOKENS = 220
_PAGES_KEPT = 32
"""Pages that stay cut up: more than the budget of a deep run."""
_MOST_OF_A_PAGE = 4
"""Passages of one page for one section."""
_ENOUGH_PARAGRAPHS, _LEAST_PARAGRAPH, _MOST_LINES = 3, 60, 500
"""How many paragraphs make a page one of two languages, how long they are, and where they are looked for."""


class Passage(NamedTuple):
    """A stretch of a page: `page.text[start:end]`."""

    page: Page
    start: int
    end: int
    goes_on: bool = False
    """Whether it is cut for its length, and goes on behind its end."""

    @property
    def text(self) -> str:
        """Its words, line by line."""
        return self.page.text[self.start : self.end]

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings above it, the highest first."""
        return headings_above(self.page.headings, self.start)


def readable_pages(plan: Plan, pages: Sequence[Page], *, first: bool) -> list[Page]:
    """The pages that speak the plan's language or an unknown one; in a first round without any of these, all."""
    language = plan_language(plan)
    found = [page for page in pages if not page.lang or _speaks(page, language)]
    return found or (list(pages) if first else [])


@lru_cache(maxsize=_PAGES_KEPT)
def _speaks(page: Page, language: str) -> bool:
    """Whether the page is in the language, or some paragraphs of it are, as where half of it is translated."""
    paragraphs = (line for line in page.text.split("\n")[:_MOST_LINES] if len(line) >= _LEAST_PARAGRAPH)
    told = (paragraph for paragraph in paragraphs if detect_language(paragraph) == language)
    return page.lang == language or sum(1 for _ in islice(told, _ENOUGH_PARAGRAPHS)) == _ENOUGH_PARAGRAPHS


def passages_of(pages: Sequence[Page]) -> list[Passage]:
    """The passages of the pages in order, without overlap; those that stand on two pages only for the first."""
    found: dict[str, Passage] = {}
    for page in pages:
        for chunk in chunks_of(page):
            start, end = chunk.start or 0, chunk.end or 0
            found.setdefault(chunk.hash, Passage(page, start, end))
    return list(found.values())


@lru_cache(maxsize=_PAGES_KEPT)
def chunks_of(page: Page) -> tuple[Chunk, ...]:
    """The page cut into chunks without overlap, in order."""
    return tuple(page_chunks(page.url, page.text, page.lang, _CHUNK_TOKENS))


def best_passages(section: str, passages: Sequence[Passage], most: int, language: str) -> list[Passage]:
    """At most so many passages for a section, the best first, at most 4 of one page."""
    texts = [
        "\n".join([each.page.title, *headings_of(each.page.headings, each.start, each.end), each.text])
        for each in passages
    ]
    order = rank_passages(section, "", texts, language)
    taken: dict[str, int] = {}
    chosen = []
    for place in order:
        url = passages[place].page.url
        taken[url] = taken.get(url, 0) + 1
        if taken[url] <= _MOST_OF_A_PAGE:
            chosen.append(passages[place])
    return chosen[:most]
