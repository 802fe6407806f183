"""Passages: those of a section that a model reads, and the reading list that is the report of a run without a model.

Source: pipeline/contracts/research.md#reading-list.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, islice
from typing import NamedTuple

from pipeline.research.full_text import FullText, SearchWord, any_of, search_words
from pipeline.research.values import PATTERNS, Intake, Plan, Written, plan_language, report_words, title_of
from pipeline.sources.choose import rank_passages
from pipeline.sources.chunk import page_chunks
from pipeline.sources.headings import headings_above, headings_of
from pipeline.sources.passages import is_index, is_label, passage_places
from pipeline.sources.schema import Chunk
from pipeline.text.asking import is_general
from pipeline.text.normal_form import normalise
from pipeline.text.sentences import sentence_spans
from pipeline.text.words import detect_language
from pipeline.verifying.values import Claim, Page, Paragraph, Quote

_PAGES_KEPT = 32  # Pages that stay cut up: more than the budget of a deep run
_ENOUGH_PARAGRAPHS, _LEAST_PARAGRAPH, _MOST_LINES = 3, 60, 500
"""How many paragraphs make a page one of two languages, how long they are, and where they are looked for."""


class Passage(NamedTuple):
    """A stretch of a page: `page.text[start:end]`."""

    page: Page
    start: int
    end: int
    goes_on: bool = False

    @property
    def text(self) -> str:
        return self.page.text[self.start : self.end]

    @property
    def headings(self) -> tuple[str, ...]:
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
    return tuple(page_chunks(page.url, page.text, page.lang, 220))


def best_passages(section: str, passages: Sequence[Passage], most: int, language: str) -> list[Passage]:
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
        if taken[url] <= 4:
            chosen.append(passages[place])
    return chosen[:most]


_MOST = 5
_FEW_WORDS, _LEAST_WORDS = 2, 2
"""A passage holds two words of a question that has more than two, else one: in its text, its title or its headings."""
_PRONOUN = re.compile(PATTERNS["claim"]["pronoun"], re.IGNORECASE)
_SAYS = re.compile(r"[^\W_]")


def reading_list(plan: Plan, pages: Sequence[Page]) -> list[list[Passage]]:
    """The passages for each section, the best first by BM25, none twice; tables of contents and the like come last."""
    passages = list(
        _distinct(Passage(page, *place) for page in pages for place in passage_places(page.text, page.headings))
    )
    index = FullText()
    index.add((each.page.title, "\n".join(each.headings), each.text) for each in passages)
    lists = {page.url for page in pages if is_index(page.text)}
    taken: set[int] = set()
    found = []
    for number in range(len(plan.sections)):
        words = _words_of(plan, number)
        least = _LEAST_WORDS if len(words) > _FEW_WORDS else 1
        held = Counter(each for word in words for each in index.holding(word.query))
        ranked = [each for each in index.ranked(any_of(words), (1, 2, 2)) if held[each] >= least] if words else []
        ranked.sort(key=lambda each: passages[each].page.url in lists)
        chosen = [each for each in ranked if each not in taken][:_MOST]
        taken.update(chosen)
        found.append([passages[each] for each in chosen])
    return found


def _distinct(passages: Iterable[Passage]) -> Iterator[Passage]:
    seen: set[str] = set()
    for each in passages:
        form = normalise(each.text)
        if form not in seen and any(_sentences(each)):
            seen.add(form)
            yield each


def _words_of(plan: Plan, number: int) -> list[SearchWord]:
    """The words of a section's question, and of those before it where it does not name what it asks about."""
    section = plan.sections[number]
    own = [word for word in search_words(section) if not is_general(word.word)]
    if number and (len(own) < _LEAST_WORDS or _PRONOUN.search(section)):
        own += [word for before in plan.sections[:number] for word in search_words(before)]
    return list({word.query: word for word in own or search_words(section)}.values())


def _sentences(passage: Passage) -> Iterator[Quote]:
    """The sentences of a passage in order, lines of code and rows of tables included; the label of a box is none."""
    page, start = passage.page, passage.start
    for begin, end in sentence_spans(passage.text, page.lang):
        text = passage.text[begin:end]
        if _SAYS.search(text) and not is_label(text):
            yield Quote(page.url, text, start + begin, start + end)


def claims_of(lists: Sequence[Sequence[Passage]]) -> list[Claim]:
    quotes = [(number, quote) for number, those in enumerate(lists) for each in those for quote in _sentences(each)]
    return [
        Claim(f"c{at}", " ".join(quote.text.split()), number, (quote,))
        for at, (number, quote) in enumerate(quotes, start=1)
    ]


class Shown(NamedTuple):
    section: int
    passage: Passage
    claim_ids: tuple[str, ...]


def shown_passages(claims: Sequence[Claim], pages: Iterable[Page]) -> list[Shown] | None:
    """The passages whose sentences the claims are, in order; None where the claims are others, an earlier version's."""
    by_url = {page.url: page for page in pages}
    shown = []
    for (section, passage), group in groupby(claims, lambda each: (each.section, _around(each, by_url))):
        own = list(group)
        if passage is None or [each.quotes for each in own] != [(quote,) for quote in _sentences(passage)]:
            return None
        shown.append(Shown(section, passage, tuple(each.id for each in own)))
    return shown


def write_list(intake: Intake, plan: Plan, shown: Sequence[Shown]) -> Written:
    paragraphs = []
    for section, passage, claim_ids in shown:
        heading = _heading_of(passage, _words_of(plan, section), plan_language(plan))
        paragraphs.append(Paragraph(section, passage.text, claim_ids, (passage.page.url,), heading=heading))
    return Written(title_of(intake.topic), tuple(paragraphs))


def _around(claim: Claim, pages: Mapping[str, Page]) -> Passage | None:
    quote = claim.quotes[0]
    page = pages.get(quote.url)
    places = passage_places(page.text, page.headings) if page else ()
    return next((Passage(page, *each) for each in places if page and each.start <= quote.start < each.end), None)


def _heading_of(passage: Passage, words: Sequence[SearchWord], language: str) -> str:
    index = FullText()
    index.add([(passage.page.title, "\n".join(passage.headings), passage.text)])
    held = [word.word for word in words if index.holding(word.query)]
    title = " ".join(passage.page.title.split()) or passage.page.site
    path = [title, *(each for each in passage.headings if each not in title)]
    found = report_words(language)
    cut = f" — {found.goes_on}" if passage.goes_on else ""
    return f"{' › '.join(path)} — {found.words_found.replace('{words}', found.between.join(held))}{cut}"
