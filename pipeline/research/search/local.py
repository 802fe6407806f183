"""Search without a provider: in a folder of documents, or in the pages that the store holds."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from pipeline.errors import InputError
from pipeline.gathering.gather import READ
from pipeline.research.search.documents import ReadDocuments, read_documents
from pipeline.research.search.index import PassageIndex, Place
from pipeline.research.search.results import RawResult, SearchResults, readable_results
from pipeline.sources.store.store import Store, StoredPage
from pipeline.text.words import content_words

Tell = Callable[[str], None]
FEW = 5


class LocalSearch:
    """Documents of the user's, or the store's pages, as a search provider.

    They are read and indexed with the first query, and the same for all others.
    """

    name = "local"

    def __init__(self, documents: Path | None, store: Store, tell: Tell = lambda line: None) -> None:
        """Nothing is read yet; `tell` hears of files that are left out.

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
        """At most `k` pages that hold words of the query, the best first.

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
        return RawResult(page.title, page.url, from_best_line(page.text[place.start : place.end], query))

    async def read(self) -> PassageIndex:
        """The index of everything that is searched.

        Raises:
            InputError: there is nothing.
        """
        if self.documents is None:
            return self.indexed(self.store.pages())
        documents = await read_documents(self.documents, self.store)
        for line in left_out_lines(documents):
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
                index.add(page.url, page.title, page.text)
        if not index.places:
            raise InputError(
                f"The store {str(self.store.path)!r} holds no page that could be searched. Name a folder of documents, "
                "or choose another provider with `--search`."
            )
        return index


def from_best_line(passage: str, query: str) -> str:
    """The passage from its first line on that holds as many words of the query as any."""
    asked = set(content_words(query))
    lines = passage.splitlines(keepends=True)
    folded = [line.casefold() for line in lines]
    best = max(range(len(lines)), key=lambda at: sum(word in folded[at] for word in asked))
    return "".join(lines[best:])


def left_out_lines(documents: ReadDocuments) -> list[str]:
    """What to tell of files that are not searched."""
    lines = list(documents.left_out[:FEW])
    if len(documents.left_out) > FEW:
        lines.append(f"{len(documents.left_out) - FEW} more files hold nothing that can be read.")
    if documents.other_kinds == 1:
        lines.append("1 file is neither PDF nor HTML nor text, and is left out.")
    elif documents.other_kinds:
        lines.append(f"{documents.other_kinds} files are neither PDF nor HTML nor text, and are left out.")
    return lines
