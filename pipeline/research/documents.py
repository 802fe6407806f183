"""The user's own documents, read from a folder into the store, and the search in them or in all that the store holds.

Contracts want http(s) URLs, so a file is named under the host `documents.invalid`, which can never exist (RFC 6761
section 6.4): `manuals/debian/apt.html`, found in the folder `manuals`, is
`https://debian.manuals.documents.invalid/apt.html`. Each folder on the first level is a site of its own when sites are
counted, and the files beside those folders are one together.
"""

import asyncio
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from pipeline.citations.addresses import canonical_url
from pipeline.core.errors import InputError
from pipeline.core.terminal import counted
from pipeline.research.contracts import OWN_FILES_HOST
from pipeline.research.full_text import FullText, any_of, search_words
from pipeline.research.search import RawResult, SearchResults, readable_results
from pipeline.research.values import PATTERNS
from pipeline.sources.extract import Extractor
from pipeline.sources.headings import Heading, headings_of
from pipeline.sources.own_files import MEDIA_TYPES, added_page, read_file
from pipeline.sources.passages import is_index
from pipeline.sources.schema import READ
from pipeline.sources.store import Store, StoredPage
from pipeline.text.words import content_words

_HOST_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_NO_LETTERS = re.compile(r"[^a-z0-9]+")


async def _read_documents(folder: Path, store: Store) -> tuple[list[str], list[str]]:
    """The folder's documents, now in the store, as URLs by their paths, and what to say of files that are left out."""
    files = document_files(folder)
    # What Sphinx made HTML pages of and keeps beside them says the same once more.
    page_sources = {file for file in files if _is_page_source(file, folder)}
    known = [file for file in files if file.suffix.lower() in MEDIA_TYPES and file not in page_sources]
    room = asyncio.Semaphore(16)

    async def read(file: Path, extractor: Extractor) -> str:
        async with room:
            return await _read_document(document_url(folder, file), file, extractor, store)

    by_size = sorted(known, key=_size_of, reverse=True)  # or one core works on a large one when the others are done
    async with Extractor() as extractor:
        found = await asyncio.gather(*(read(file, extractor) for file in by_size))
    problem_of = dict(zip(by_size, found, strict=True))
    problems = [problem_of[file] for file in known if problem_of[file]]
    urls = [document_url(folder, file) for file in known if not problem_of[file]]
    if not urls:
        raise _nothing_to_read(folder, files, next(iter(problems), ""))
    lines = problems[:_FEW]
    if len(problems) > _FEW:
        lines.append(f"{len(problems) - _FEW} more files hold nothing that can be read.")
    left_out = {"unreadable": len(files) - len(known) - len(page_sources), "page_source": len(page_sources)}
    for name, count in left_out.items():
        if count:
            lines.append(PATTERNS["left_out"][name if count == 1 else f"{name}s"].format(count=count))
    return urls, lines


def refuse_missing(folder: Path | None) -> None:
    if folder is not None and not folder.is_dir():
        raise InputError(f"There is no folder {str(folder)!r}. Name the one that holds the documents to search.")


def document_files(folder: Path) -> list[Path]:
    """The folder's files and those below it by their paths, of which one at least is of a kind that is read."""
    refuse_missing(folder)
    files = []
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        files += [Path(above, name) for name in sorted(names) if not name.startswith(".")]
    if not any(file.suffix.lower() in MEDIA_TYPES for file in files):
        raise _nothing_to_read(folder, files)
    return files


def _nothing_to_read(folder: Path, files: Sequence[Path], problem: str = "") -> InputError:
    of = f", of {counted(len(files), 'file')}" if files else ""
    advice = f"PDF, HTML, Markdown and plain text are read.{' ' if problem else ''}{problem}"
    return InputError(f"The folder {str(folder)!r} holds no document that can be read{of}. {advice}")


def _is_page_source(file: Path, folder: Path) -> bool:
    """Whether Sphinx put it into `_sources/` when it made a page of it: `_sources/a/b.rst.txt` of `a/b.html`."""
    above, sources, below = f"/{file.relative_to(folder).as_posix()}".rpartition("/_sources/")
    page = Path(f"{folder}{above}/{below.removesuffix('.txt')}").with_suffix(".html")
    return bool(sources) and page.is_file()


def _size_of(file: Path) -> int:
    """Its size in bytes; 0 of one that is gone or a broken link, which reading tells."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


async def _read_document(url: str, file: Path, extractor: Extractor, store: Store) -> str:
    try:
        held = store.page(url, with_raw=False)
        if held and held.text.strip() and held.raw_sha256 == hashlib.sha256(read_file(file)).hexdigest():
            return ""
        page = await added_page(url, file, extractor)
    except (InputError, OSError) as problem:
        return str(problem)
    store.put_page(page if page.title else page._replace(title=file.stem.replace("_", " ").strip()[:300]))
    return ""


def document_url(folder: Path, file: Path) -> str:
    *folders, name = file.relative_to(folder).parts
    sites = [_label_of(part) for part in (*folders[:1], folder.resolve().name) if part]
    path = quote(os.fsencode("/".join([*folders[1:], name])))
    return canonical_url(f"https://{'.'.join([*sites, OWN_FILES_HOST])}/{path}")


def _label_of(name: str) -> str:
    """The name as part of a host; where it holds more than a host can, with a few digits that tell it from others."""
    if _HOST_LABEL.fullmatch(name):
        return name
    digits = hashlib.sha256(os.fsencode(name)).hexdigest()[:8]
    letters = _NO_LETTERS.sub("-", name.lower()).strip("-")[:30].strip("-")
    return f"{letters}-{digits}" if letters else digits


# About as long as three paragraphs: so the best place of a long PDF counts as much as a short page.
_PASSAGE = 1500
# A word in the title or in a heading says more of what a passage is about than one in its text.
_WEIGHTS = (6, 4, 1)
_FEW = 5
_COMMON = 0.4  # Share of the pages from which a word that they hold tells them apart no more
_MOST_TOGETHER = 8  # Words of a query, at most, for which places are looked for that hold all of them


class Place(NamedTuple):
    url: str
    start: int
    end: int


class PassageIndex:
    def __init__(self) -> None:
        self.texts = FullText()
        self.places: list[Place] = []
        self.lists: set[str] = set()
        self.pages = 0

    def add(self, url: str, title: str, text: str, headings: tuple[Heading, ...] = ()) -> None:
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

        def is_rare(query: str) -> bool:
            pages = {self.places[number].url for number in self.texts.holding(query)}
            return len(pages) <= _COMMON * self.pages

        rare = [each for each in words if is_rare(each.query)] or words
        all_rare = " AND ".join(word.query for word in rare)
        together = self._matching(all_rare, k) if 1 < len(rare) <= _MOST_TOGETHER else []
        found: dict[str, Place] = {}
        for row in zip_longest(together, self._matching(any_of(words), k)):
            for place in filter(None, row):
                found.setdefault(place.url, place)
        return sorted(found.values(), key=lambda place: place.url in self.lists)[:k]

    def _matching(self, query: str, k: int) -> list[Place]:
        found: dict[str, Place] = {}
        for number in self.texts.ranked(query, _WEIGHTS):
            place = self.places[number]
            found.setdefault(place.url, place)
            if len(found.keys() - self.lists) == k:
                break
        return list(found.values())


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
    """Documents of the user's, or the store's pages, as a search provider; indexed with the first query."""

    name = "local"

    def __init__(self, documents: Path | None, store: Store, tell: Callable[[str], None] = lambda line: None) -> None:
        refuse_missing(documents)
        self.documents = documents
        self.store = store
        self.tell = tell
        self.index: PassageIndex | None = None
        self.reading = asyncio.Lock()

    async def search(self, query: str, k: int) -> SearchResults:
        async with self.reading:
            self.index = self.index or await self._read()
        return readable_results((self._to_result(place, query) for place in self.index.best(query, k)), k)

    def _to_result(self, place: Place, query: str) -> RawResult:
        page = self.store.page(place.url, with_raw=False)
        if page is None:
            return RawResult("", "", "")
        # From the first line on that holds as many words of the query as any.
        asked = set(content_words(query))
        lines = page.text[place.start : place.end].splitlines(keepends=True)
        folded = [line.casefold() for line in lines]
        best = max(range(len(lines)), key=lambda at: sum(word in folded[at] for word in asked))
        return RawResult(page.title, page.url, "".join(lines[best:]))

    async def _read(self) -> PassageIndex:
        pages: Iterable[StoredPage | None] = self.store.pages()
        if self.documents is not None:
            urls, left_out = await _read_documents(self.documents, self.store)
            for line in left_out:
                self.tell(line)
            pages = (self.store.page(url, with_raw=False) for url in urls)
        index = PassageIndex()
        for page in pages:
            if page and page.reason in READ:
                index.add(page.url, page.title, page.text, page.headings)
        if not index.places:
            advice = "Name a folder of documents, or choose another provider with `--search`."
            raise InputError(f"The store {str(self.store.path)!r} holds no page that could be searched. {advice}")
        return index
