"""Cited pages fetched, read and stored: many hosts at once, each page in the store the moment it is read."""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import httpx

from pipeline.asking.run_folder import CITATIONS, csv_file
from pipeline.gathering.run_sources import Tell
from pipeline.sources.fetching.fetch import Fetched, Fetcher, FetchPolicy, host_of
from pipeline.sources.fetching.politeness import UNREACHABLE
from pipeline.sources.reading.extractor import Extractor
from pipeline.sources.schema import READ
from pipeline.sources.store import Outcome, Store, StoredPage, row_from_page, text_hash
from pipeline.text.urls import source_domain, url_host

# Failures that another day may mend; a host name that is not found is one, for so it looks where the network is away.
# A parser may run out of time because everything else on the machine is busy too.
_TRANSIENT = re.compile(
    r"network|timeout|no_such_host|not_tried|parser_timeout|status_(?:408|425|429|5[0-9]{2})", re.ASCII
)
_NOT_MODIFIED = {"status": 304, "bytes": 0, "reason": "page"}

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
        elif not outcome.added and (refresh or _TRANSIENT.fullmatch(outcome.reason)):
            yield _wanted_again(url, outcome)


def _wanted_again(url: str, outcome: Outcome) -> Wanted:
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
    """Fetch, read and store these pages, each in the store as soon as it is read; what came of it.

    That nobody was reached is stored at the end, and not at all where the network was away: a page that nobody could
    ask for is no page that does not answer. Each page leaves a `fetch_result` in the run's trace. `workers` pages are
    worked on at a time, as many as the fetcher asks for unless told.

    Raises:
        OutputError: the store cannot be written.
        NotInstalledError: no process that reads pages can be started.
    """
    queues = HostQueues(wanted, fetcher.policy.per_host)
    running: dict[asyncio.Task[StoredPage | None], tuple[Wanted, deque[Wanted]]] = {}
    unreached: list[StoredPage] = []
    kept: list[str] = []
    fetched = 0
    try:
        async with asyncio.TaskGroup() as group:
            while True:
                # An answer that was still on its way may tell that it was not the network, so this is asked each time.
                while len(running) < (workers or fetcher.policy.concurrency) and not fetcher.away:
                    taken = queues.take()
                    if taken is None:
                        break
                    running[group.create_task(_gather_page(taken[0], fetcher, extractor, store, run_id))] = taken
                if not running:
                    break
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    page, host = running.pop(task)
                    queues.give_back(host)
                    found = task.result()
                    if found and found.reason in UNREACHABLE and not page.held:
                        unreached.append(found)
                    if found and _loses_text(page, found):
                        kept.append(page.url)
                    report(page.url, found.reason if found and not _loses_text(page, found) else "page")
                    fetched += 1
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    away = fetcher.away and (bool(queues.take()) or not fetcher.answered)
    for page_without_answer in () if away else unreached:
        store.put_page(page_without_answer)
    return Gathered(fetched, tuple(sorted(kept)), away)


async def _gather_page(
    page: Wanted, fetcher: Fetcher, extractor: Extractor, store: Store, run_id: str
) -> StoredPage | None:
    """Fetch, read and store one page; what came of it, None where it has not changed since.

    It is not stored where it would take the place of a text, nor where nobody was reached.
    """
    fetched = await fetcher.fetch(page.url, page.etag, page.last_modified)
    if fetched.not_modified:
        found = None
    elif fetched.reason == "page":
        found = await _extracted_page(fetched, extractor)
    else:
        found = _stored_page(fetched)
    if found and found.reason not in UNREACHABLE and not _loses_text(page, found):
        # Packing takes tenths of a second for 10 MB; in a thread, the other pages go on meanwhile.
        store.put_row(await asyncio.to_thread(row_from_page, found))
    _leave_trace(store, run_id, page.url, found, fetched.seconds, fetcher.policy.robots)
    return found


def _loses_text(page: Wanted, found: StoredPage) -> bool:
    """Whether storing what was found would replace a text that is held by a failure."""
    return page.held and found.reason not in READ


def _leave_trace(store: Store, run_id: str, url: str, stored: StoredPage | None, seconds: float, robots: bool) -> None:
    """Add what came of a page to the run's trace; None is a page that has not changed."""
    came = {"status": stored.status, "bytes": len(stored.raw), "reason": stored.reason} if stored else _NOT_MODIFIED
    manner = {"latency_ms": round(seconds * 1000), "robots_respected": robots, "cached": stored is None}
    store.put_event(run_id, "fetch_result", {"url": url, **came, **manner})


async def _extracted_page(fetched: Fetched, extractor: Extractor) -> StoredPage:
    """The page with its text, or with the reason why there is nothing worth reading on it."""
    extracted = await extractor.extract(
        fetched.body, fetched.content_type, fetched.charset, fetched.final_url, fetched.url
    )
    if extracted.reason != "page":
        return _stored_page(fetched._replace(reason=extracted.reason, detail=extracted.detail))
    return _stored_page(fetched)._replace(
        text=extracted.text,
        title=extracted.title,
        lang=extracted.language,
        content_type=extracted.content_type or fetched.content_type,
        hash=text_hash(extracted.text),
        page_starts=extracted.page_starts,
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


class Online(NamedTuple):
    """How the web is asked."""

    client: Callable[[], httpx.AsyncClient]
    """Makes the client, a guarded one."""
    policy: FetchPolicy = FetchPolicy()
    refresh: bool = False
    """Whether pages that are held are asked for again."""


def fetch_missing(
    store: Store, keys: Sequence[str], online: Online, run_id: str, report: Report, begin: Callable[[int], None]
) -> Gathered:
    """What came of fetching the pages that the store lacks; `begin` hears how many, `report` of each."""
    wanted = list(missing_pages(keys, store, online.refresh))
    begin(len(wanted))
    if not wanted:
        return Gathered()
    silent_before = {host_of(page.url) for page in wanted if page.silent}

    async def fetch() -> Gathered:
        async with (
            online.client() as client,
            Fetcher(client, online.policy, silent_before) as fetcher,
            Extractor() as extractor,
        ):
            return await gather_pages(wanted, fetcher, extractor, store, report, run_id)

    return asyncio.run(fetch())


def look_up_targets(run: Path, online: Online, tell: Tell) -> None:
    """Add the targets of Gemini's redirects to the run's `citations.jsonl`, as far as they are missing and found."""
    if not csv_file(run, "gemini").is_file() or not (run / CITATIONS).is_file():
        return
    from pipeline.asking.ask_live import look_up_redirects

    asyncio.run(look_up_redirects(run, online.client, tell))
