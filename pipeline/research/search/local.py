"""Search without a provider: in a folder of documents, or in the pages that the store holds."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from pipeline.errors import InputError
from pipeline.research.search.documents import ReadDocuments, read_documents
from pipeline.research.search.index import PassageIndex, Place
from pipeline.research.search.results import RawResult, SearchResults, readable_results
from pipeline.sources.gather import READ
from pipeline.sources.store import Store, StoredPage

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
        return readable_results(map(self.to_result, self.index.best(query, k)), k)

    def to_result(self, place: Place) -> RawResult:
        """The page with the passage for a snippet."""
        page = self.store.page(place.url, with_raw=False)
        return RawResult(page.title, page.url, page.text[place.start : place.end]) if page else RawResult("", "", "")

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


def left_out_lines(documents: ReadDocuments) -> list[str]:
    """What to tell of files that are not searched."""
    lines = list(documents.left_out[:FEW])
    if len(documents.left_out) > FEW:
        lines.append(f"{len(documents.left_out) - FEW} more files hold nothing that can be read.")
    if documents.other_kinds:
        lines.append(f"{documents.other_kinds} files are neither PDF nor HTML nor text, and are left out.")
    return lines
