"""The stage fetch: the pages that were found, from the store or the web, as text; each is stored when it is read."""

import re
import zlib
from collections.abc import Collection, Sequence
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import NamedTuple

from pipeline.gathering.gather import Report, gather_pages, missing_pages
from pipeline.research.contracts import FetchResult, put_trace
from pipeline.research.values import FoundPage
from pipeline.sources.fetching.fetch import Fetcher
from pipeline.sources.reading.extractor import Extractor
from pipeline.sources.schema import READ
from pipeline.sources.store import Outcome, Store, StoredPage
from pipeline.text.urls import site_key
from pipeline.text.words import UNSPACED
from pipeline.verifying.values import Page

# So many words in a row are hardly the same in two texts by chance.
_SHINGLE = 6
# Share of the words in a row of both together that both have.
_SAME = 0.7
_FEWEST = 30
# More than a deep run reads, so that none is cut up again in each round.
_PAGES_KEPT = 32
_TOKEN = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")


class Duplicate(NamedTuple):
    """A page that says what another one says."""

    url: str
    same_as: str
    """The one that is kept."""


class _Shingled(NamedTuple):
    """What two texts are compared by."""

    whole: int
    """Checksum of all words."""
    shingles: frozenset[int]
    """Checksums of words in a row; empty for a text that is too short for that."""


@lru_cache(maxsize=_PAGES_KEPT)
def _shingled(text: str) -> _Shingled:
    """The text in the form in which it is compared: white space, case and punctuation do not matter."""
    words = _TOKEN.findall(text.casefold())
    rows = (" ".join(words[at : at + _SHINGLE]) for at in range(len(words) - _SHINGLE + 1))
    shingles = frozenset(zlib.crc32(row.encode(errors="replace")) for row in rows)
    whole = zlib.crc32(" ".join(words).encode(errors="replace"))
    return _Shingled(whole, shingles if len(words) >= _FEWEST else frozenset())


def _same(one: _Shingled, other: _Shingled) -> bool:
    """Whether the two are mirrors; a page that is a part of a much longer one is none."""
    if one.whole == other.whole:
        return True
    smaller, larger = sorted((len(one.shingles), len(other.shingles)))
    if smaller < _SAME * larger or not smaller:
        return False
    shared = len(one.shingles & other.shingles)
    return shared >= _SAME * (smaller + larger - shared)


def without_duplicates(pages: Sequence[Page]) -> tuple[tuple[Page, ...], tuple[Duplicate, ...]]:
    """The pages of which none says the same as one before it, and those that do; all in their order."""
    kept: list[Page] = []
    texts: list[_Shingled] = []
    duplicates: list[Duplicate] = []
    for page in pages:
        text = _shingled(page.text)
        twin = next((before for before, known in zip(kept, texts, strict=True) if _same(text, known)), None)
        if twin is None:
            kept.append(page)
            texts.append(text)
        else:
            duplicates.append(Duplicate(page.url, twin.url))
    return tuple(kept), tuple(duplicates)


class Unread(NamedTuple):
    """A page that could not be read."""

    url: str
    """Its canonical URL."""
    reason: str
    """Why, a reason of `pipeline.sources.schema`."""
    detail: str
    """The same in plain words; empty where there is nothing to add. May hold words of the server's."""


class PagesRead(NamedTuple):
    """What came of the pages that were found."""

    pages: tuple[Page, ...] = ()
    """Those that were read, in the order in which they were found; of pages that say the same the first."""
    unread: tuple[Unread, ...] = ()
    """Those that were not, in that order."""
    duplicates: tuple[Duplicate, ...] = ()
    """Those that say the same as one of `pages`, in that order."""
    cached: int = 0
    """How many pages the store had, the useless among them."""
    fetched: int = 0
    """How many were asked for."""
    away: bool = False
    """Whether the network was away, so that pages were not tried."""


async def fetch(
    found: Sequence[FoundPage],
    fetcher: Fetcher,
    extractor: Extractor,
    store: Store,
    workers: int,
    note: Report = lambda url, reason: None,
    run_id: str = "",
    refresh: bool = False,
) -> PagesRead:
    """The text of the pages; none that the store has is fetched again, unless it failed in a way that may pass.

    `workers` pages are worked on at a time; `note` hears of each that is done, by its URL and the reason for its state.
    With `refresh` pages that the store has are asked for again, once a run, and not read where they do not come then;
    the user's own never are.

    Raises:
        OutputError: the store cannot be written.
    """
    urls = list(dict.fromkeys(page.url for page in found))
    old = set(urls) - fetched_by(run_id, store) if refresh else set()
    missing = [page for url in urls for page in missing_pages([url], store, url in old)]
    asked = {page.url for page in missing}
    tell_cached([url for url in urls if url not in asked], store, note, run_id)
    gathered = await gather_pages(missing, fetcher, extractor, store, note, run_id, workers)
    read, unread = _read_pages(urls, store, gathered.kept if refresh else ())
    pages, duplicates = without_duplicates(read)
    return PagesRead(pages, unread, duplicates, len(urls) - len(missing), gathered.fetched, gathered.away)


def tell_cached(urls: Sequence[str], store: Store, note: Report, run_id: str) -> None:
    """Say of pages that they come from the store; the trace of a run that has told where one came from keeps to it."""
    told = {event.payload["url"] for event in store.events(run_id) if event.kind == "fetch_result"}
    for url in urls:
        outcome = store.outcome(url) or Outcome("not_tried")
        note(url, outcome.reason)
        if url not in told:
            event = FetchResult(url=url, status=None, bytes=0, latency_ms=0, robots_respected=True, cached=True)
            put_trace(store, run_id, event)


def fetched_by(run_id: str, store: Store) -> set[str]:
    """The pages that the run has got from the web."""
    events = (event.payload for event in store.events(run_id) if event.kind == "fetch_result")
    return {str(payload["url"]) for payload in events if payload.get("reason") == "page"}


def _read_pages(urls: Sequence[str], store: Store, outdated: Collection[str]) -> tuple[list[Page], tuple[Unread, ...]]:
    """The pages as the store has them, and those of which it has no text or an outdated one; in the URLs' order."""
    pages: list[Page] = []
    unread: list[Unread] = []
    for url in urls:
        stored = store.page(url, with_raw=False)
        if url in outdated:
            unread.append(Unread(url, "not_tried", "It could not be fetched anew, and the cache is off."))
        elif stored and stored.reason in READ and stored.text.strip():
            pages.append(_to_page(stored))
        else:
            unread.append(Unread(url, stored.reason, stored.detail) if stored else Unread(url, "not_tried", ""))
    return pages, tuple(unread)


def _to_page(stored: StoredPage) -> Page:
    """The stored page as the stages see it; where it was redirected, its site is the one that answered."""
    site = site_key(stored.final_url or stored.url)
    changed = _day_of(stored.last_modified)
    told = changed if changed < stored.ts[:10] else ""
    return Page(stored.url, stored.title, site, stored.lang, stored.text, stored.ts, stored.headings, told)


def _day_of(http_date: str) -> str:
    """The day of an HTTP date, ISO 8601; empty where it is none."""
    try:
        return parsedate_to_datetime(http_date).date().isoformat()
    except ValueError:
        return ""
