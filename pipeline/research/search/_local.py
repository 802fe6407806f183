"""Search without a provider: in a folder of documents, or in the pages that the store holds."""

import asyncio
import re
import sqlite3
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.errors import InputError
from pipeline.research.search.documents import ReadDocuments, read_documents
from pipeline.research.search.results import RawResult, SearchResults, readable_results
from pipeline.sources.headings import Heading, headings_of
from pipeline.sources.schema import READ
from pipeline.sources.store import Store, StoredPage
from pipeline.text import meaning
from pipeline.text.asking import is_general, stem, subject_words
from pipeline.text.language import text_language
from pipeline.text.words import NUMBERS, UNSPACED_RUN, content_words, pairs

# About as long as three paragraphs: so the best place of a long PDF counts as much as a short page.
_PASSAGE = 1500
# A word in the title or in a heading says more of what a passage is about than one in its text.
_TITLE_WEIGHT, _HEADING_WEIGHT, _TEXT_WEIGHT = 6.0, 4.0, 1.0
# Words of Indic scripts hold marks, which would part them otherwise.
CREATE = """
CREATE VIRTUAL TABLE passages
USING fts5(title, headings, text, content='', tokenize = "unicode61 remove_diacritics 2 categories 'L* N* M* Co'")
"""
_ADD = "INSERT INTO passages (rowid, title, headings, text) VALUES (?, ?, ?, ?)"
_HOLDING = "SELECT rowid FROM passages WHERE passages MATCH ?"
_SEARCH = f"""
SELECT rowid FROM passages WHERE passages MATCH ?
ORDER BY bm25(passages, {_TITLE_WEIGHT}, {_HEADING_WEIGHT}, {_TEXT_WEIGHT}), rowid LIMIT ?
"""
# Of a page with many passages some matter, and the others should not hide the pages that come after it.
_PASSAGES_A_RESULT = 50
MOST_QUERY_WORDS = 64
_FEW = 5
_COMMON = 0.4
"""Share of the pages from which a word that they hold tells them apart no more."""
_MOST_TOGETHER = 8
"""Words of a query, at most, for which places are looked for that hold all of them."""
_PROSE_LINE = re.compile(r"^[^\n]{60,}[.!?:)\"”»]$|^[^\n]{20,}[。！？」）]$", re.MULTILINE)
_LEAST_PROSE = 0.1
"""Share of a page's text in lines that end as sentences do; with less it is an index, or a table of contents."""
_SHORT_TEXT = 2_000
_ENOUGH_PAGES = 40
"""Pages from which the share of them that hold a word, or end their titles alike, says something."""
_BY_WORDS, _BY_HEADINGS = 8, 12
"""Pages of each kind, those that words find and those whose headings are nearest to the query in meaning."""
_MOST_TITLES, _MOST_COMPARED = 1_000, 40
"""Pages whose titles are compared with a query, of more those that words find first; and how many of those with the
nearest titles, and of those that words find, have their headings compared."""
_HEADINGS_TOLD, _LONGEST_TOLD = 2, 200
"""Headings above a passage and characters of it that stand for it."""
_HEADING_WORTH, _WORDS_WORTH = 0.5, 0.3
"""What its page's nearest heading counts beside a passage, and how much more where words find the page first; half of
that where they find it second, a third where they find it third."""


_LAST_PART = re.compile(r" [-–—|·] (?:(?! [-–—|·] ).)+$")


class Place(NamedTuple):
    """A passage of a page."""

    url: str
    """The page's URL."""
    start: int
    """First code point of the passage."""
    end: int
    """The code point after the last one."""


class PassageIndex:
    """Pages cut into passages, searchable by the words that they hold."""

    def __init__(self) -> None:
        """An index without pages, in memory."""
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.execute(CREATE)
        self.places: list[Place] = []
        self.lists: set[str] = set()
        self.titles: dict[str, str] = {}
        self.headings: dict[str, list[tuple[str, Place]]] = {}
        self.pages = 0

    def add(self, url: str, title: str, text: str, headings: tuple[Heading, ...] = ()) -> None:
        """Add a page."""
        plain_title = _searchable(title)
        self.pages += 1
        if _is_list(text):
            self.lists.add(url)
        self.titles[url] = title
        lines = [("", 0), *((each.text, each.start) for each in headings if each.text != title)]
        self.headings[url] = [(line, Place(url, start, start + _PASSAGE)) for line, start in lines if start < len(text)]
        self.database.execute("BEGIN")
        for start, end in passage_spans(text):
            self.places.append(Place(url, start, end))
            above = _searchable("\n".join(headings_of(headings, start, end)))
            self.database.execute(_ADD, (len(self.places), plain_title, above, _searchable(text[start:end])))
        self.database.execute("COMMIT")

    def named_places(self, urls: Iterable[str]) -> list[tuple[str, Place]]:
        """The title of each page, then its headings behind the title, each with the passage below it."""
        site = self.site_name()
        return [
            (" - ".join(filter(None, [self.titles[url].removesuffix(site), heading])), place)
            for url in urls
            for heading, place in self.headings[url]
        ]

    def site_name(self) -> str:
        """What more than half of the titles end with, as ` — Python 3.11.2 documentation`: it tells no page apart."""
        endings = Counter(found[0] for title in self.titles.values() if (found := _LAST_PART.search(title)))
        ((ending, count),) = endings.most_common(1) or [("", 0)]
        return ending if 2 * count > self.pages >= _ENOUGH_PAGES else ""

    def best(self, query: str, k: int) -> list[Place]:
        """The best passage of each of the `k` pages that match best; empty where no page holds a word of the query."""
        asked = _asked(query)[:MOST_QUERY_WORDS]
        if not asked:
            return []
        telling = [word for word in asked if len(self.pages_with(word)) <= _COMMON * self.pages] or asked
        together = self.matching(" AND ".join(telling), k) if 1 < len(telling) <= _MOST_TOGETHER else []
        found: dict[str, Place] = {}
        for row in zip_longest(together, self.matching(" OR ".join(asked), k)):
            for place in filter(None, row):
                found.setdefault(place.url, place)
        return sorted(found.values(), key=lambda place: place.url in self.lists)[:k]

    def matching(self, words: str, k: int) -> list[Place]:
        """The best passage of each of the `k` pages that match best, and of the lists among them."""
        found: dict[str, Place] = {}
        for (rowid,) in self.database.execute(_SEARCH, (words, k * _PASSAGES_A_RESULT)):
            place = self.places[rowid - 1]
            found.setdefault(place.url, place)
            if len(found.keys() - self.lists) == k:
                break
        return list(found.values())

    def shares(self, words: Iterable[str]) -> dict[str, float]:
        """The share of all pages that hold each word, in any of its forms; empty where there are few pages."""
        if self.pages < _ENOUGH_PAGES:
            return {}
        return {word: len(self.pages_with(_in_any_form(word))) / self.pages for word in words}

    def pages_with(self, asked: str) -> set[str]:
        """The URLs of the pages that hold a word, given in the index's own syntax."""
        return {self.places[rowid - 1].url for (rowid,) in self.database.execute(_HOLDING, [asked])}


def _in_any_form(word: str) -> str:
    """A word in the index's own syntax, whatever its ending is."""
    if UNSPACED_RUN.fullmatch(word):
        return _as_signs(word)
    return f"{phrase(stem(word))}{'*' if word.isalpha() else ''}"


def _as_signs(word: str) -> str:
    """A word of unspaced signs in the index's own syntax: its pairs, one behind the other."""
    return phrase(" ".join(pairs(word)) if len(word) > 1 else word)


def _asked(query: str) -> list[str]:
    """What a query is about in the index's own syntax, a word each; all of its words where they fit any query.

    German words stand for all of their forms. Numbers stand as they are written too: the index has those of its pages
    as they stand there.
    """
    language = text_language(query, "")
    if language in ("de", "ja"):
        asked = subject_words(query, language)
        words = [word.text for word in asked if not word.general] or [word.text for word in asked]
        return [phrase(word) if language == "ja" and word.isascii() else _in_any_form(word) for word in words]
    words = [word for word in content_words(query) if not is_general(word)] or content_words(query)
    return list(map(phrase, dict.fromkeys([*words, *NUMBERS.findall(query)])))


def _is_list(text: str) -> bool:
    """Whether a long text is hardly made of sentences: an index, or a table of contents."""
    prose = sum(len(line[0]) for line in _PROSE_LINE.finditer(text))
    return len(text) > _SHORT_TEXT and prose < _LEAST_PROSE * len(text)


def _searchable(text: str) -> str:
    """The text as the index takes it: one case, one form of each letter, spaces between pairs of unspaced scripts."""
    plain = unicodedata.normalize("NFKC", text).casefold().encode(errors="replace").decode()
    return UNSPACED_RUN.sub(lambda run: f" {' '.join(pairs(run[0]))} ", plain)


def phrase(word: str) -> str:
    """A content word in the index's own syntax: whatever it holds is searched for as it stands."""
    # A letter of an unspaced script alone is the beginning of all of its pairs.
    beginning = "*" if len(word) == 1 and UNSPACED_RUN.fullmatch(word) else ""
    return f'"{word}"{beginning}'


def passage_spans(text: str) -> Iterator[tuple[int, int]]:
    """Places of the passages, without gaps: each ends at the end of a line, unless the line is too long for that."""
    start = 0
    while start < len(text):
        end = start + _PASSAGE
        if end < len(text):
            line_end = text.rfind("\n", start, end)
            end = line_end + 1 if line_end > start else end
        yield start, min(end, len(text))
        start = end


_Tell = Callable[[str], None]


class LocalSearch:
    """Documents of the user's, or the store's pages, as a search provider.

    They are read and indexed with the first query, and the same for all others.
    """

    name = "local"

    def __init__(self, documents: Path | None, store: Store, tell: _Tell = lambda line: None) -> None:
        """Check that the folder is there; `tell` hears of files that are left out when it is read.

        Raises:
            InputError: there is no folder `documents`.
        """
        if documents is not None and not documents.is_dir():
            raise InputError(f"There is no folder {str(documents)!r}. Name the one that holds the documents to search.")
        self.documents = documents
        self.store = store
        self.tell = tell
        self.index: PassageIndex | None = None
        self.reading = asyncio.Lock()

    async def search(self, query: str, k: int) -> SearchResults:
        """At most `k` pages, the best first: those that words of the query find, and what headings mean.

        Raises:
            InputError: no document can be read, or the store holds no page.
        """
        async with self.reading:
            self.index = self.index or await self.read()
        language = text_language(query, "")
        places = self.nearest(query, self.index, language) if language else self.index.best(query, k)
        return readable_results((self.to_result(place, query) for place in places[:k]), k)

    def nearest(self, query: str, index: PassageIndex, language: str) -> list[Place]:
        """A passage of each page that may answer, the nearest to the query in meaning first, lists last.

        People do not ask in the words of those who answer, so that words find some of the pages and headings others.
        """
        by_words = {place.url: place for place in index.best(query, _BY_WORDS)}
        by_headings = self.by_headings(query, index, language)
        found = by_words | {url: place for url, (_, place) in list(by_headings.items())[:_BY_HEADINGS]}
        pages = {place: page for place in found.values() if (page := self.store.page(place.url, with_raw=False))}
        places = list(pages)
        told = [_told(page, each, query if each == by_words.get(each.url) else "") for each, page in pages.items()]
        near = meaning.cosines(query, told, language)
        headings = np.array([by_headings[place.url][0] if place.url in by_headings else 0.0 for place in places])
        words = np.array([1 / (1 + list(by_words).index(each.url)) if each.url in by_words else 0.0 for each in places])
        score = near + headings * (_HEADING_WORTH + _WORDS_WORTH * words)
        order = np.argsort(-score, kind="stable")
        return sorted((places[at] for at in order), key=lambda place: place.url in index.lists)

    def by_headings(self, query: str, index: PassageIndex, language: str) -> dict[str, tuple[float, Place]]:
        """The passage below each page's nearest heading with how near that is, the nearest page first."""
        few = index.pages <= _MOST_TITLES
        urls = list(index.headings) if few else [place.url for place in index.best(query, _MOST_TITLES)]
        titled = [url for url in urls if index.headings[url]]
        site = index.site_name()
        titles = meaning.cosines(query, [index.titles[url].removesuffix(site) for url in titled], language)
        nearest = [titled[at] for at in np.argsort(-titles, kind="stable")[:_MOST_COMPARED]]
        compared = dict.fromkeys([*nearest, *(place.url for place in index.best(query, _MOST_COMPARED))])
        lines = index.named_places(compared)
        nearness = meaning.cosines(query, [line for line, _ in lines], language)
        found: dict[str, tuple[float, Place]] = {}
        for at in np.argsort(-nearness, kind="stable"):
            _, place = lines[at]
            found.setdefault(place.url, (float(nearness[at]), place))
        return found

    async def shares(self, words: Collection[str]) -> dict[str, float]:
        """The share of all pages that hold each word, whether they were found or not.

        Raises:
            InputError: no document can be read, or the store holds no page.
        """
        async with self.reading:
            self.index = self.index or await self.read()
        return self.index.shares(words)

    def to_result(self, place: Place, query: str) -> RawResult:
        """The page, with what of the passage matches the query best for a snippet."""
        page = self.store.page(place.url, with_raw=False)
        if page is None:
            return RawResult("", "", "")
        return RawResult(page.title, page.url, _from_best_line(page.text[place.start : place.end], query))

    async def read(self) -> PassageIndex:
        """The index of everything that is searched.

        Raises:
            InputError: there is nothing.
        """
        if self.documents is None:
            return self.indexed(self.store.pages())
        documents = await read_documents(self.documents, self.store)
        for line in _left_out_lines(documents):
            self.tell(line)
        pages = (self.store.page(url, with_raw=False) for url in documents.urls)
        return self.indexed(page for page in pages if page)

    def indexed(self, pages: Iterable[StoredPage]) -> PassageIndex:
        """The index of these pages.

        Raises:
            InputError: there are none.
        """
        index = PassageIndex()
        for page in pages:
            if page.reason in READ:
                index.add(page.url, page.title, page.text, page.headings)
        if not index.places:
            raise InputError(
                f"The store {str(self.store.path)!r} holds no page that could be searched. Name a folder of documents, "
                "or choose another provider with `--search`."
            )
        return index


def _told(page: StoredPage, place: Place, query: str) -> str:
    """What a passage begins with, at its best line for the query if any, behind the title and the headings above it."""
    above = headings_of(page.headings, place.start, place.start + 1)[-_HEADINGS_TOLD:]
    text = _from_best_line(page.text[place.start : place.end], query)
    return f"{' - '.join([page.title, *above])}: {text[:_LONGEST_TOLD]}"


def _from_best_line(passage: str, query: str) -> str:
    """The passage from its first line on that holds as many words of the query as any."""
    asked = set(content_words(query))
    lines = passage.splitlines(keepends=True)
    folded = [line.casefold() for line in lines]
    best = max(range(len(lines)), key=lambda at: sum(word in folded[at] for word in asked))
    return "".join(lines[best:])


def _left_out_lines(documents: ReadDocuments) -> list[str]:
    """What to tell of files that are not searched."""
    lines = list(documents.left_out[:_FEW])
    if len(documents.left_out) > _FEW:
        lines.append(f"{len(documents.left_out) - _FEW} more files hold nothing that can be read.")
    if documents.other_kinds == 1:
        lines.append("1 file is neither PDF nor HTML nor text, and is left out.")
    elif documents.other_kinds:
        lines.append(f"{documents.other_kinds} files are neither PDF nor HTML nor text, and are left out.")
    if documents.page_sources == 1:
        lines.append("1 file in `_sources` is what an HTML page was made from, and is left out.")
    elif documents.page_sources:
        count = documents.page_sources
        lines.append(f"{count} files in `_sources` are what HTML pages were made from, and are left out.")
    return lines
