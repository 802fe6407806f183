"""Search without a provider: in a folder of documents, or in the pages that the store holds."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import InputError
from pipeline.research.full_text import FullText, Weights, all_of, any_of, search_words
from pipeline.research.search.documents import ReadDocuments, read_documents
from pipeline.research.search.results import RawResult, SearchResults, readable_results
from pipeline.sources.headings import Heading, headings_of
from pipeline.sources.passages import is_index
from pipeline.sources.schema import READ
from pipeline.sources.store import Store, StoredPage
from pipeline.text.words import content_words

# About as long as three paragraphs: so the best place of a long PDF counts as much as a short page.
_PASSAGE = 1500
# A word in the title or in a heading says more of what a passage is about than one in its text.
_WEIGHTS = Weights(6, 4, 1)
_FEW = 5
_COMMON = 0.4
"""Share of the pages from which a word that they hold tells them apart no more."""
_MOST_TOGETHER = 8
"""Words of a query, at most, for which places are looked for that hold all of them."""


class Place(NamedTuple):
    """A passage of a page: `text[start:end]`."""

    url: str
    start: int
    end: int


class PassageIndex:
    """Pages cut into passages, searchable by the words that they hold."""

    def __init__(self) -> None:
        self.texts = FullText()
        self.places: list[Place] = []
        self.lists: set[str] = set()
        self.pages = 0

    def add(self, url: str, title: str, text: str, headings: tuple[Heading, ...] = ()) -> None:
        """Add a page."""
        self.pages += 1
        if is_index(text):
            self.lists.add(url)
        places = [Place(url, start, end) for start, end in _passage_spans(text)]
        self.places += places
        self.texts.add(
            (title, "\n".join(headings_of(headings, start, end)), text[start:end]) for _, start, end in places
        )

    def best(self, query: str, k: int) -> list[Place]:
        """The best passage of each of the `k` pages that match best; empty where no page holds a word of the query."""
        words = search_words(query)
        if not words:
            return []
        telling = [each for each in words if len(self.pages_with(each.query)) <= _COMMON * self.pages] or words
        together = self.matching(all_of(telling), k) if 1 < len(telling) <= _MOST_TOGETHER else []
        found: dict[str, Place] = {}
        for row in zip_longest(together, self.matching(any_of(words), k)):
            for place in filter(None, row):
                found.setdefault(place.url, place)
        return sorted(found.values(), key=lambda place: place.url in self.lists)[:k]

    def matching(self, query: str, k: int) -> list[Place]:
        """The best passage of each of the `k` pages that match best, and of the lists among them."""
        found: dict[str, Place] = {}
        for number in self.texts.ranked(query, _WEIGHTS):
            place = self.places[number]
            found.setdefault(place.url, place)
            if len(found.keys() - self.lists) == k:
                break
        return list(found.values())

    def pages_with(self, query: str) -> set[str]:
        """The URLs of the pages that match a query in the index's own syntax."""
        return {self.places[number].url for number in self.texts.holding(query)}


def _passage_spans(text: str) -> Iterator[tuple[int, int]]:
    """Places of the passages, without gaps: each ends at the end of a line, unless the line is too long for that."""
    start = 0
    while start < len(text):
        end = start + _PASSAGE
        if end < len(text):
            line_end = text.rfind("\n", start, end)
            end = line_end + 1 if line_end > start else end
        yield start, min(end, len(text))
        start = end


class LocalSearch:
    """Documents of the user's, or the store's pages, as a search provider.

    They are read and indexed with the first query, and the same for all others.
    """

    name = "local"

    def __init__(self, documents: Path | None, store: Store, tell: Callable[[str], None] = lambda line: None) -> None:
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
        """At most `k` pages, the best first.

        Raises:
            InputError: no document can be read, or the store holds no page.
        """
        async with self.reading:
            self.index = self.index or await self.read()
        return readable_results((self.to_result(place, query) for place in self.index.best(query, k)), k)

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
