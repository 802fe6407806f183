"""Cited pages fetched, read and stored: many hosts at once, each page in the store the moment it is read."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import httpx

from pipeline.asking.questions import Tell
from pipeline.citations.addresses import source_domain, url_host
from pipeline.core.prompts import text_digest
from pipeline.core.terminal import printable
from pipeline.records.causes import NOT_ASKED, may_pass, state_of
from pipeline.sources.extract import Extractor
from pipeline.sources.fetch import Fetched, Fetcher, FetchPolicy, host_of
from pipeline.sources.own_files import with_text
from pipeline.sources.politeness import UNREACHABLE
from pipeline.sources.schema import READ
from pipeline.sources.store import Store, StoredPage, row_from_page

_ARCHIVE_SECONDS = 30.0
_NO_SITES = ("example", "invalid", "test")  # https://www.rfc-editor.org/rfc/rfc6761: nobody ever has a site there

Report = Callable[[str, str], None]
"""Hears of a page that is done: its URL and the reason for its state."""


class Wanted(NamedTuple):
    """A page to fetch: by its key, with what makes the request conditional."""

    url: str
    etag: str = ""
    last_modified: str = ""
    held: bool = False  # text of it, which a failure does not take away
    silent: bool = False  # nobody could be reached for it when it was last tried
    known: bool = False  # something has come of it before, which is kept where it is not asked itself


class Gathered(NamedTuple):
    """How many pages gave an answer, good or bad; `kept` could not be read anew, and `away` was the network."""

    fetched: int = 0
    kept: tuple[str, ...] = ()
    away: bool = False


class Intake:
    """Fetches and reads pages, takes what came of them into the store, and counts it."""

    def __init__(self, fetcher: Fetcher, extractor: Extractor, store: Store, run_id: str, report: Report) -> None:
        self.fetcher = fetcher
        self.extractor = extractor
        self.store = store
        self.run_id = run_id
        self.report = report
        self.unreached: list[StoredPage] = []
        self.kept: list[str] = []
        self.fetched = 0

    async def take(self, page: Wanted) -> None:
        """Store a page unless that would replace a text or nobody was reached; leave a `fetch_result` in the trace."""
        fetched = await self.fetcher.fetch(page.url, page.etag, page.last_modified)
        found = None if fetched.not_modified else await _read_page(fetched, self.extractor)
        reason = found.reason if found else "page"
        loses_text = page.held and reason not in READ
        if loses_text:
            self.kept.append(page.url)
        elif found and reason not in UNREACHABLE:
            # Packing takes tenths of a second for 10 MB; in a thread, the other pages go on meanwhile.
            self.store.put_row(await asyncio.to_thread(row_from_page, found))
        elif found and not (page.known and NOT_ASKED in found.detail):
            self.unreached.append(found)
        self.store.put_event(
            self.run_id,
            "fetch_result",
            {
                "url": page.url,
                "status": fetched.status,
                "bytes": len(found.raw) if found else 0,
                "reason": reason,
                "latency_ms": round(fetched.seconds * 1000),
                "robots_respected": self.fetcher.policy.robots,
                "cached": found is None,
            },
        )
        self.report(page.url, "page" if loses_text else reason)
        self.fetched += 1

    def end(self, away: bool) -> Gathered:
        """What came of fetching; that nobody was reached is stored now, and not at all where the network was away."""
        for page in () if away else self.unreached:
            self.store.put_page(page if self.fetcher.network.answered else _doubted(page))
        return Gathered(self.fetched, tuple(sorted(self.kept)), away)


def _doubted(page: StoredPage) -> StoredPage:
    """Where nobody answered, that a name is not found says more of the network here than of the name."""
    if page.reason != "no_host_twice" or url_host(page.url).rpartition(".")[2] in _NO_SITES:
        return page
    return page._replace(reason="no_such_host", detail=f"{page.detail}, but nobody else was reached either")


async def _read_page(fetched: Fetched, extractor: Extractor) -> StoredPage:
    if fetched.reason != "page":
        return _stored_page(fetched)
    extracted = await extractor.extract(
        fetched.body, fetched.content_type, fetched.charset, fetched.final_url, fetched.url
    )
    if extracted.reason == "empty" and fetched.leads_back:
        words = f"it leads back to itself, or in a circle ({extracted.detail})"
        return _stored_page(fetched._replace(reason="redirects", detail=words))
    if extracted.reason != "page":
        return _stored_page(fetched._replace(reason=extracted.reason, detail=extracted.detail))
    return with_text(_stored_page(fetched), extracted)


def _stored_page(fetched: Fetched) -> StoredPage:
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


def missing_pages(urls: Iterable[str], store: Store, refresh: bool = False) -> Iterator[Wanted]:
    """Those of the pages that are to be fetched: unknown ones, and those that failed in a way that may pass.

    With `refresh` all of them are, conditionally where the text is held. What the user added is never fetched. Pages
    that were never asked for themselves come first: a host is asked nothing more once a few of its pages have failed.
    """
    tried = []
    for url in urls:
        outcome = store.outcome(url)
        if outcome is None:
            yield Wanted(url)
        elif not outcome.added and (refresh or may_pass(outcome.reason)):
            held, silent = outcome.reason in READ, outcome.reason in UNREACHABLE
            kept = (outcome.etag, outcome.last_modified) if held else ("", "")
            page = Wanted(url, *kept, held, silent, known=NOT_ASKED not in outcome.detail)
            if page.known:
                tried.append(page)
            else:
                yield page
    yield from tried


class HostQueues:
    """Pages waiting by host: a host is asked for as many at once as it bears, the one with most pages first."""

    def __init__(self, pages: Iterable[Wanted], lanes: int) -> None:
        waiting: dict[str, deque[Wanted]] = {}
        for page in pages:
            waiting.setdefault(url_host(page.url), deque()).append(page)
        by_length = sorted(waiting.values(), key=len, reverse=True)
        self.hosts = deque(host for _ in range(lanes) for host in by_length)

    def take(self) -> tuple[Wanted, deque[Wanted]] | None:
        """A page whose host is free, with the host's queue, to be put back first; None where no host is."""
        while self.hosts:
            host = self.hosts.popleft()
            if host:
                return host.popleft(), host
        return None


async def gather_pages(
    wanted: Iterable[Wanted],
    fetcher: Fetcher,
    extractor: Extractor,
    store: Store,
    report: Report,
    run_id: str = "",
    workers: int | None = None,
) -> Gathered:
    """Fetch, read and store these pages, each as soon as it is read, `workers` at a time; what came of it."""
    queues = HostQueues(wanted, fetcher.policy.per_host)
    running: dict[asyncio.Task[None], deque[Wanted]] = {}
    intake = Intake(fetcher, extractor, store, run_id, report)
    try:
        async with asyncio.TaskGroup() as group:
            while True:
                # An answer that was still on its way may tell that it was not the network, so this is asked each time.
                while len(running) < (workers or fetcher.policy.concurrency) and not fetcher.network.away:
                    taken = queues.take()
                    if taken is None:
                        break
                    page, host = taken
                    running[group.create_task(intake.take(page))] = host
                if not running:
                    break
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    queues.hosts.appendleft(running.pop(task))
                    task.result()
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    network = fetcher.network
    return intake.end(network.away and (bool(queues.take()) or not network.answered))


class Online(NamedTuple):
    """How the web is asked: by a guarded client; to `refresh` is to ask again for pages that are held."""

    client: Callable[[], httpx.AsyncClient]
    policy: FetchPolicy = FetchPolicy()
    refresh: bool = False
    archive: str = ""  # what a page's URL is put behind to ask an archive for it; empty where none is asked
    tell: Tell = lambda line: None  # hears why an archive gave no clear answer


def fetch_missing(
    store: Store, keys: Sequence[str], online: Online, run_id: str, report: Report, begin: Callable[[int], None]
) -> Gathered:
    """What came of fetching the pages that the store lacks; `begin` hears how many, `report` of each.

    An archive, if there is one, is asked for those that are gone.
    """
    wanted = list(missing_pages(keys, store, online.refresh))
    begin(len(wanted))
    silent_before = {host_of(page.url) for page in wanted if page.silent}

    async def fetch() -> Gathered:
        async with (
            online.client() as client,
            Fetcher(client, online.policy, silent_before) as fetcher,
            Extractor() as extractor,
        ):
            return await gather_pages(wanted, fetcher, extractor, store, report, run_id)

    gathered = asyncio.run(fetch()) if wanted else Gathered()
    if online.archive and not gathered.away:
        _ask_archive(store, keys, online)
    return gathered


def _ask_archive(store: Store, keys: Sequence[str], online: Online) -> None:
    """Keep what the archive says of those of the pages that are gone; what it has said is asked again to refresh."""
    from pipeline.sources.archive import look_up

    outcomes = ((key, store.outcome(key)) for key in keys)
    gone = [key for key, outcome in outcomes if outcome and state_of(outcome.reason) == "gone"]
    wanted = [key for key in gone if online.refresh or store.archived(key) in ("", "unknown")]

    unclear: Counter[str] = Counter()

    async def ask() -> None:
        policy = online.policy._replace(max_seconds=min(online.policy.max_seconds, _ARCHIVE_SECONDS))
        async with online.client() as client, Fetcher(client, policy) as fetcher:
            async for key, said, why in look_up(wanted, online.archive, fetcher):
                store.put_archived(key, said, online.archive)
                unclear[why] += said == "unknown"

    if wanted:
        asyncio.run(ask())
    for why, count in (+unclear).most_common(3):
        online.tell(f"The archive gave no clear answer for {count:,} of {len(wanted):,} pages: {printable(why)}")
