"""One cited page: fetched and read where there is a network, taken into the store where the store is."""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from pipeline.prompts import text_digest
from pipeline.sources.extract import Extractor
from pipeline.sources.fetch import Fetched, Fetcher, Trail
from pipeline.sources.politeness import UNREACHABLE
from pipeline.sources.schema import READ
from pipeline.sources.store import Store, StoredPage, row_from_page
from pipeline.text.urls import source_domain

_NOT_MODIFIED = 304

Report = Callable[[str, str], None]
"""Hears of a page that is done: its URL and the reason for its state."""


class Wanted(NamedTuple):
    """A page to fetch: by its key, with what makes the request conditional."""

    url: str
    etag: str = ""
    last_modified: str = ""
    held: bool = False
    """Whether text of it is held already, which a failure does not take away."""
    silent: bool = False
    """Whether nobody could be reached for it when it was last tried."""


class FoundPage(NamedTuple):
    """What came of one page."""

    row: tuple[Any, ...] | None
    """The page as the store's columns hold it; None where it has not changed since."""
    reason: str
    """Why it is in its state; `page` where it has not changed."""
    status: int | None
    """The HTTP status; None where nothing answered."""
    size: int
    """Bytes of its body."""
    seconds: float
    """How long its requests took."""
    onward: Trail | None = None
    """Where a redirect leaves the site that the fetcher keeps to; then nothing else is known yet."""


class Gathered(NamedTuple):
    """What came of fetching."""

    fetched: int = 0
    """Pages of which an answer came, good or bad."""
    kept: tuple[str, ...] = ()
    """Pages that could not be read anew, so that the text held before stands."""
    away: bool = False
    """Whether the network was away, so that pages were not tried."""


async def find_page(page: Wanted, fetcher: Fetcher, extractor: Extractor, trail: Trail | None = None) -> FoundPage:
    """Fetch and read one page; `trail` is how far another fetcher has come with it.

    Raises:
        NotInstalledError: no process that reads pages can be started.
    """
    fetched = await fetcher.fetch(page.url, page.etag, page.last_modified, trail)
    if fetched.not_modified or fetched.onward:
        return FoundPage(None, "page", _NOT_MODIFIED, 0, fetched.seconds, fetched.onward)
    found = await _extracted_page(fetched, extractor) if fetched.reason == "page" else _stored_page(fetched)
    # Packing takes tenths of a second for 10 MB; in a thread, the other pages go on meanwhile.
    row = await asyncio.to_thread(row_from_page, found)
    return FoundPage(row, found.reason, found.status, len(found.raw), fetched.seconds)


class Intake:
    """Takes what came of pages into the store, and counts it."""

    def __init__(self, store: Store, run_id: str, robots: bool, report: Report) -> None:
        """Take pages for this run; `robots` is whether robots.txt is obeyed, `report` hears of every page."""
        self.store = store
        self.run_id = run_id
        self.robots = robots
        self.report = report
        self.unreached: list[tuple[Any, ...]] = []
        self.kept: list[str] = []
        self.fetched = 0

    def keep(self, page: Wanted, found: FoundPage) -> None:
        """Store one page and leave a `fetch_result` in the run's trace.

        It is not stored where it would take the place of a text, nor where nobody was reached.

        Raises:
            OutputError: the store cannot be written.
        """
        if found.row and found.reason not in UNREACHABLE and not _loses_text(page, found):
            self.store.put_row(found.row)
        came = {"status": found.status, "bytes": found.size, "reason": found.reason}
        manner = {
            "latency_ms": round(found.seconds * 1000),
            "robots_respected": self.robots,
            "cached": found.row is None,
        }
        self.store.put_event(self.run_id, "fetch_result", {"url": page.url, **came, **manner})

    def count(self, page: Wanted, found: FoundPage) -> None:
        """Count one page, and report it."""
        if found.row and found.reason in UNREACHABLE and not page.held:
            self.unreached.append(found.row)
        lost = _loses_text(page, found)
        if lost:
            self.kept.append(page.url)
        self.report(page.url, "page" if lost else found.reason)
        self.fetched += 1

    def end(self, away: bool) -> Gathered:
        """What came of fetching; that nobody was reached is stored now, and not at all where the network was away.

        Raises:
            OutputError: the store cannot be written.
        """
        for row in () if away else self.unreached:
            self.store.put_row(row)
        return Gathered(self.fetched, tuple(sorted(self.kept)), away)


def _loses_text(page: Wanted, found: FoundPage) -> bool:
    """Whether storing what was found would replace a text that is held by a failure."""
    return page.held and found.reason not in READ


async def _extracted_page(fetched: Fetched, extractor: Extractor) -> StoredPage:
    """The page with its text, or with the reason why there is nothing worth reading on it."""
    extracted = await extractor.extract(
        fetched.body, fetched.content_type, fetched.charset, fetched.final_url, fetched.url
    )
    if extracted.reason == "empty" and fetched.leads_back:
        words = f"it leads back to itself, or in a circle ({extracted.detail})"
        return _stored_page(fetched._replace(reason="redirects", detail=words))
    if extracted.reason != "page":
        return _stored_page(fetched._replace(reason=extracted.reason, detail=extracted.detail))
    return _stored_page(fetched)._replace(
        text=extracted.text,
        title=extracted.title,
        lang=extracted.language,
        content_type=extracted.content_type or fetched.content_type,
        hash=text_digest(extracted.text),
        page_starts=extracted.page_starts,
        headings=extracted.headings,
    )


def _stored_page(fetched: Fetched) -> StoredPage:
    """The page with its bytes, and as yet without text."""
    own = fetched.final_url == fetched.url  # the tags of another URL's response would not be this one's
    return StoredPage(
        url=fetched.url,
        final_url=fetched.final_url,
        text="",
        title="",
        domain=source_domain(fetched.url),
        lang="",
        content_type=fetched.content_type,
        hash=text_digest(""),
        ts=fetched.fetched_at,
        raw=fetched.body,
        raw_sha256=fetched.sha256,
        status=fetched.status,
        reason=fetched.reason,
        detail=fetched.detail,
        etag=fetched.etag if own else "",
        last_modified=fetched.last_modified if own else "",
    )
