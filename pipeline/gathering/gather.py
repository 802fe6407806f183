"""Cited pages fetched, read and stored: many hosts at once, each page in the store the moment it is read."""

import asyncio
import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from pipeline.sources.fetching.fetch import Fetched, Fetcher
from pipeline.sources.fetching.politeness import UNREACHABLE
from pipeline.sources.reading.extractor import Extractor
from pipeline.sources.store.store import Outcome, Store, StoredPage, row_from_page
from pipeline.text.urls import source_domain, url_host

# Failures that another day may mend; a host name that is not found is one, for so it looks where the network is away.
# A parser may run out of time because everything else on the machine is busy too.
TRANSIENT = re.compile(
    r"network|timeout|no_such_host|not_tried|parser_timeout|status_(?:408|425|429|5[0-9]{2})", re.ASCII
)
READ = ("page", "added")
NOT_MODIFIED = {"status": 304, "bytes": 0, "reason": "page"}

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


class Gathered(NamedTuple):
    """What came of fetching."""

    fetched: int = 0
    """Pages of which an answer came, good or bad."""
    kept: tuple[str, ...] = ()
    """Pages that could not be read anew, so that the text held before stands."""
    away: bool = False
    """Whether the network was away, so that pages were not tried."""


def missing_pages(urls: Iterable[str], store: Store, refresh: bool = False) -> Iterator[Wanted]:
    """Those of the pages that are to be fetched: unknown ones, and those that failed in a way that may pass.

    With `refresh` all of them are, conditionally where the text is held. What the user added is never fetched.
    """
    for url in urls:
        outcome = store.outcome(url)
        if outcome is None:
            yield Wanted(url)
        elif not outcome.added and (refresh or TRANSIENT.fullmatch(outcome.reason)):
            yield wanted_again(url, outcome)


def wanted_again(url: str, outcome: Outcome) -> Wanted:
    """The page to be fetched anew."""
    held = outcome.reason in READ
    silent = outcome.reason in UNREACHABLE
    return Wanted(url, outcome.etag, outcome.last_modified, held) if held else Wanted(url, silent=silent)


class HostQueues:
    """Pages waiting by host: a host is asked for as many at once as it bears, the one with most pages first."""

    def __init__(self, pages: Iterable[Wanted], lanes: int) -> None:
        """Sort the pages by host."""
        waiting: dict[str, deque[Wanted]] = {}
        for page in pages:
            waiting.setdefault(url_host(page.url), deque()).append(page)
        by_length = sorted(waiting.values(), key=len, reverse=True)
        self.hosts = deque(host for _ in range(lanes) for host in by_length)

    def take(self) -> tuple[Wanted, deque[Wanted]] | None:
        """A page whose host is free, with the host's queue, to be given back; None where no host is."""
        while self.hosts:
            host = self.hosts.popleft()
            if host:
                return host.popleft(), host
        return None

    def give_back(self, host: deque[Wanted]) -> None:
        """Its host is free again, and first in line: a host with many pages takes the longest."""
        self.hosts.appendleft(host)


async def gather_pages(
    wanted: Iterable[Wanted],
    fetcher: Fetcher,
    extractor: Extractor,
    store: Store,
    report: Report,
    run_id: str = "",
    workers: int | None = None,
) -> Gathered:
    """What came of fetching these pages; each is stored as soon as it is read.

    That nobody was reached is stored at the end, and not at all where the network was away: a page that nobody could
    ask for is no page that does not answer. Each page leaves a `fetch_result` in the run's trace. `workers` pages are
    worked on at a time, as many as the fetcher asks for unless told.

    Raises:
        OutputError: the store cannot be written.
        NotInstalledError: no process that reads pages can be started.
    """
    queues = HostQueues(wanted, fetcher.policy.per_host)
    failed: list[StoredPage] = []
    kept: list[str] = []
    fetched = stopped = 0

    async def work() -> None:
        nonlocal fetched, stopped
        while not fetcher.away and (taken := queues.take()):
            page, host = taken
            stored, seconds = await fetch_page(page, fetcher, extractor)
            queues.give_back(host)
            reason = stored.reason if stored else "page"
            if stored and page.held and reason not in READ:
                kept.append(page.url)
                reason = "page"
            elif stored and reason in UNREACHABLE:
                failed.append(stored)
            elif stored:
                await put_page(store, stored)
            report(page.url, reason)
            fetched += 1
            leave_trace(store, run_id, page.url, stored, seconds, fetcher.policy.robots)
            while stopped and not fetcher.away:  # this answer tells that it was not the network
                stopped -= 1
                group.create_task(work())
        stopped += fetcher.away

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(workers or fetcher.policy.concurrency):
                group.create_task(work())
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    away = fetcher.away and (bool(queues.take()) or not fetcher.answered)
    for stored in () if away else failed:
        store.put_page(stored)
    return Gathered(fetched, tuple(sorted(kept)), away)


async def put_page(store: Store, page: StoredPage) -> None:
    """Put the page into the store; others go on while it is packed, which takes tenths of a second for 10 MB."""
    store.put_row(await asyncio.to_thread(row_from_page, page))


def leave_trace(store: Store, run_id: str, url: str, stored: StoredPage | None, seconds: float, robots: bool) -> None:
    """Add what came of a page to the run's trace; None is a page that has not changed."""
    came = {"status": stored.status, "bytes": len(stored.raw), "reason": stored.reason} if stored else NOT_MODIFIED
    manner = {"latency_ms": round(seconds * 1000), "robots_respected": robots, "cached": stored is None}
    store.put_event(run_id, "fetch_result", {"url": url, **came, **manner})


async def fetch_page(page: Wanted, fetcher: Fetcher, extractor: Extractor) -> tuple[StoredPage | None, float]:
    """The page as it is to be stored, None where it has not changed since; and the seconds that its requests took."""
    fetched = await fetcher.fetch(page.url, page.etag, page.last_modified)
    if fetched.not_modified:
        return None, fetched.seconds
    if fetched.reason != "page":
        return stored_page(fetched), fetched.seconds
    return await extracted_page(fetched, extractor), fetched.seconds


async def extracted_page(fetched: Fetched, extractor: Extractor) -> StoredPage:
    """The page with its text, or with the reason why there is nothing worth reading on it."""
    extracted = await extractor.extract(fetched.body, fetched.content_type, fetched.charset, fetched.final_url)
    if extracted.reason != "page":
        return stored_page(fetched._replace(reason=extracted.reason, detail=extracted.detail))
    return stored_page(fetched)._replace(
        text=extracted.text,
        title=extracted.title,
        lang=extracted.language,
        content_type=extracted.content_type or fetched.content_type,
        hash=text_hash(extracted.text),
        page_starts=extracted.page_starts,
    )


def stored_page(fetched: Fetched) -> StoredPage:
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
        hash=text_hash(""),
        ts=fetched.fetched_at,
        raw=fetched.body,
        raw_sha256=fetched.sha256,
        status=fetched.status,
        reason=fetched.reason,
        detail=fetched.detail,
        etag=fetched.etag if own else "",
        last_modified=fetched.last_modified if own else "",
    )


def text_hash(text: str) -> str:
    """SHA-256 of the text in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
