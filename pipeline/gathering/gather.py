"""Cited pages fetched, read and stored: many hosts at once, each page in the store the moment it is read."""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import httpx

from pipeline.asking.run_folder import CITATIONS
from pipeline.gathering._pages import FoundPage, Gathered, Intake, Report, Wanted, find_page
from pipeline.gathering.run_sources import Tell
from pipeline.sources.extract import Extractor
from pipeline.sources.fetch import Fetcher, FetchPolicy, host_of
from pipeline.sources.politeness import UNREACHABLE
from pipeline.sources.schema import READ
from pipeline.sources.store import Outcome, Store
from pipeline.text.urls import url_host

__all__ = ["Gathered", "Online", "Report", "Wanted", "fetch_missing", "gather_pages", "missing_pages"]

# Failures that another day may mend; a host name that is not found is one, for so it looks where the network is away.
# A parser may run out of time because everything else on the machine is busy too.
_TRANSIENT = re.compile(
    r"network|timeout|no_such_host|not_tried|parser_timeout|status_(?:408|425|429|5[0-9]{2})", re.ASCII
)


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
    running: dict[asyncio.Task[FoundPage], tuple[Wanted, deque[Wanted]]] = {}
    intake = Intake(store, run_id, fetcher.policy.robots, report)
    try:
        async with asyncio.TaskGroup() as group:
            while True:
                # An answer that was still on its way may tell that it was not the network, so this is asked each time.
                while len(running) < (workers or fetcher.policy.concurrency) and not fetcher.network.away:
                    taken = queues.take()
                    if taken is None:
                        break
                    running[group.create_task(_take_page(taken[0], fetcher, extractor, intake))] = taken
                if not running:
                    break
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    page, host = running.pop(task)
                    queues.give_back(host)
                    intake.count(page, task.result())
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return intake.end(fetcher.network.away and (bool(queues.take()) or not fetcher.network.answered))


async def _take_page(page: Wanted, fetcher: Fetcher, extractor: Extractor, intake: Intake) -> FoundPage:
    """Fetch, read and store one page; what came of it."""
    found = await find_page(page, fetcher, extractor)
    intake.keep(page, found)
    return found


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
    """Add the targets of redirects to the run's `citations.jsonl`, as far as they are missing and found."""
    from pipeline.asking.ask_live import cites_redirects, look_up_redirects

    if not cites_redirects(run) or not (run / CITATIONS).is_file():
        return
    asyncio.run(look_up_redirects(run, online.client, tell))
