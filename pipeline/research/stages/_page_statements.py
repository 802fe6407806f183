"""A page as its statements are read from it: the sentences that can stand alone, and what stands above them."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from pipeline.research.stages._passages import PAGES_KEPT, ResearchPassage, speaks
from pipeline.research.stages._statements import is_in, is_said_elsewhere, item_start, statement_in, without_wraps
from pipeline.sources.headings import Section, sections_above
from pipeline.text.entries import Entry, entry_above
from pipeline.text.sentences import is_named_above, sentence_spans
from pipeline.text.words import content_words
from pipeline.verifying.values import Page

_MOST_TOGETHER = 480
"""Characters of a statement with those that point back to it."""
_LIST = re.compile(r"^.{20,}:\n(?:.{3,200}[;,](?: and| or| und| oder)?\n){1,12}.{3,200}\.$", re.MULTILINE)
"""A sentence that announces a list, and its items, which end as parts of one sentence."""
_NEXT_ITEM = re.compile(r"\n(?:[-*•‣–] )?")
_HEADINGS_TOLD = 2
"""Headings above a statement that are told with it where its meaning counts."""
_PARTS_OF_LIST = re.compile(r"[,;、，；]")
_LISTING = 4
"""Parts of a heading that names many things, none of which all that stands below it is about."""


class Statement(NamedTuple):
    """A sentence of a page that can stand alone."""

    text: str
    """The sentence in one line, without citation marks."""
    page: Page
    """Its page."""
    start: int
    """First code point of the sentence in the page's text."""
    end: int
    """The code point after the last one."""
    words: frozenset[str]
    """Its content words."""
    headings: frozenset[str]
    """The words of its page's title and of all headings above it."""
    section: frozenset[str]
    """The words of what stands below that heading, and of all headings above."""
    entry: Entry | None = None
    """What the sentence is told behind, for it describes that and does not name it; None where it does."""


@lru_cache(maxsize=PAGES_KEPT)
def page_statements(page: Page, language: str) -> "PageStatements":
    """The page, read for questions in this language once for all rounds of a run."""
    return PageStatements(page, language)


class PageStatements:
    """The statements of a page and its sections, each read when it is first asked for."""

    def __init__(self, page: Page, language: str) -> None:
        """Read this page for questions in this language."""
        self.page = page
        self.language = language
        # As many signs as the page's own text, so that places are the same.
        self.text = _LIST.sub(_in_one_line, page.text)
        self.statements: dict[ResearchPassage, list[Statement]] = {}
        self.passages: dict[ResearchPassage, frozenset[str]] = {}
        self.sections: dict[Section, frozenset[str]] = {}
        self.above: dict[int, list[tuple[frozenset[str], Section]]] = {}

    def section_of(self, place: int) -> Section:
        """The lowest section that holds this place."""
        return self.sections_above(place)[-1][1]

    def heading_of(self, place: int) -> str:
        """The two headings right above this place, or the title of the page."""
        return " - ".join(section.heading for _, section in self.sections_above(place)[-_HEADINGS_TOLD:])

    def sections_above(self, place: int) -> list[tuple[frozenset[str], Section]]:
        """What this place is a part of, the whole page first, each with the words of its heading."""
        at = bisect_right(self.page.headings, place, key=lambda each: each.start)
        if at not in self.above:
            found = sections_above(self.page.headings, place, self.page.title, len(self.page.text))
            listing = (len(_PARTS_OF_LIST.split(each.heading)) >= _LISTING for each in found)
            self.above[at] = [
                (frozenset() if lists else self.content(each.heading), each)
                for each, lists in zip(found, listing, strict=True)
            ]
        return self.above[at]

    def words_above(self, place: int) -> frozenset[str]:
        """The content words of the page's title and of the headings above this place."""
        return frozenset[str]().union(*(words for words, _ in self.sections_above(place)))

    def words_of_section(self, section: Section) -> frozenset[str]:
        """The content words of a section."""
        if section not in self.sections:
            self.sections[section] = self.content(self.page.text[section.start : section.end])
        return self.sections[section]

    def words_of_passage(self, passage: ResearchPassage) -> frozenset[str]:
        """The content words of a passage, those of the title and of all headings above or in it included."""
        if passage not in self.passages:
            self.passages[passage] = self.content(passage.with_headings)
        return self.passages[passage]

    def content(self, text: str) -> frozenset[str]:
        """The content words of a text."""
        return frozenset(content_words(text, self.language))

    def statements_in(self, passage: ResearchPassage) -> list[Statement]:
        """The statements of a passage in order."""
        if passage not in self.statements:
            self.statements[passage] = list(self.read_statements(passage))
        return self.statements[passage]

    def read_statements(self, passage: ResearchPassage) -> Iterator[Statement]:
        """The statements of a passage in order, read from its text, each with those behind it that point back to it."""
        text_of = self.page.text
        read: list[tuple[str, int, int, Entry | None]] = []
        for start, end in self.sentences_in(passage):
            text, entry = self.statement_at(start, end)
            if text:
                read.append((text, start, end, entry))
            elif read and self.goes_on(read[-1][2], start) and (more := self.following_at(start, end)):
                said_before, first, last, entry = read[-1]
                if len(said_before) + len(more) <= _MOST_TOGETHER and not is_said_elsewhere(more):
                    read[-1] = (f"{said_before}{text_of[last:start]}{more}", first, end, entry)
        for text, start, end, entry in read:
            *_, (_, section) = self.sections_above(start)
            yield Statement(
                text,
                self.page,
                start,
                end,
                frozenset(content_words(text, self.language)),
                self.words_above(start),
                self.words_of_section(section) | self.words_above(start),
                entry,
            )

    def sentences_in(self, passage: ResearchPassage) -> Iterator[tuple[int, int]]:
        """The places of the passage's sentences in its page, without the marks of lists."""
        found = sentence_spans(self.text[passage.start : passage.end], self.page.lang or self.language)
        for begin, end in found:
            yield item_start(self.text, passage.start + begin, passage.start + end), passage.start + end

    def statement_at(self, start: int, end: int) -> tuple[str, Entry | None]:
        """The statement at this place, and what it is told behind; empty for none, or one in another language.

        A description leaves out what it describes: "Pairs are returned in LIFO order" holds of `popitem()` alone, and
        is told behind that name.
        """
        named = is_named_above(self.text, start, self.page.lang or self.language)
        entry = entry_above(self.text, start)
        described = entry is not None and not entry.is_case
        text = statement_in(without_wraps(self.text, start, end), self.language, named=named, described=described)
        if not self.is_readable(text) or (entry and entry.is_case and not entry.is_in(text)):
            return "", None
        return (text, None) if entry is None or entry.is_in(text) else (f"{entry.label}: {text}", entry)

    def following_at(self, start: int, end: int) -> str:
        """What the sentence at this place says behind the one that it leans on; empty as `statement_at`."""
        text = statement_in(without_wraps(self.text, start, end), self.language, follows=True)
        return text if self.is_readable(text) else ""

    def is_readable(self, text: str) -> bool:
        """Whether there is a text, in the page's language where the page speaks that of the questions."""
        return bool(text) and (is_in(text, self.language) or not speaks(self.page, self.language))

    def goes_on(self, before: int, start: int) -> bool:
        """Whether a sentence that begins here stands right behind one that ends `before` it in its paragraph."""
        between = self.page.text[before:start]
        return not between.strip() and "\n" not in between


def _in_one_line(found: re.Match[str]) -> str:
    """A list in one line, as long as it was."""
    return _NEXT_ITEM.sub(lambda end: " " * len(end[0]), found[0])
