"""Cited pages read by a Dask cluster, while this process alone writes the store.

The pages of one site are one chain: a link of it, a task for some of its pages, is out at a time, and says to the next
one what is known of the site's servers. A redirect to another site is a page of that site's chain. So the whole cluster
asks no host more often than one machine would. Dask itself gives a link to another worker when one ends.

Source: https://distributed.dask.org/en/stable/resilience.html, read 2026-11.
"""

import asyncio
import logging
import warnings
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import NamedTuple

import httpx
from distributed import Client, Future, KilledWorker
from distributed.client import FutureCancelledError, FuturesCancelledError

from pipeline.asking.gather import FoundPage, Gathered, Intake, Report, Wanted, find_page, missing_pages
from pipeline.asking.questions import Tell
from pipeline.citations.addresses import site_key
from pipeline.core.errors import CitejuryError, ClusterError
from pipeline.sources.extract import Extractor
from pipeline.sources.fetch import Fetcher, FetchPolicy, SiteMemory, Trail, host_of
from pipeline.sources.guard import guarded_client
from pipeline.sources.politeness import Network
from pipeline.sources.store import Store

# At one request a second, a quarter of a minute's work is what a worker that is killed can cost.
_PAGES = 16
_LOOK_SECONDS = 2.0
_GOES_ON = "What was read is in the store, and the same command goes on."

Asked = tuple[Wanted, Trail | None]
"""A page, with how far a worker that kept to another site has come with it."""


class Errand(NamedTuple):
    """What every link of a run is to know: our version, how the web is asked, and which private servers may be."""

    version: str
    policy: FetchPolicy
    allowed: tuple[tuple[str, int], ...]


@dataclass(frozen=True)  # no tuple: Dask would look for futures in it, and make another tuple of it
class Link:
    """The next pages of one site, by its `site_key`, and what is known of the site's servers."""

    errand: Errand
    site: str
    pages: tuple[Asked, ...]
    memory: SiteMemory


class LinkResult(NamedTuple):
    """What came of the pages of a link, in their order; of hosts that were `silent`, the reason."""

    found: tuple[FoundPage, ...]
    memory: SiteMemory
    answered: bool
    silent: Mapping[str, str]


async def _read_pages(link: Link) -> LinkResult:
    errand, here = link.errand, version("citejury")
    if here != errand.version:
        raise ClusterError(
            f"A worker has citejury {here}, and {errand.version} asks it. Install {errand.version} on scheduler and "
            "workers and start them again."
        )
    try:
        async with _tools(errand) as tools, Fetcher(tools.client, errand.policy, everyone=tools.everyone) as fetcher:
            fetcher.keep_to(link.site, link.memory)
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(find_page(page, fetcher, tools.extractor, trail)) for page, trail in link.pages
                ]
            found = tuple(task.result() for task in tasks)
            return LinkResult(found, fetcher.memory(), fetcher.network.answered, dict(fetcher.network.silent))
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


class _Tools:
    """What the links that run in this process share."""

    def __init__(self, client: httpx.AsyncClient, extractor: Extractor, everyone: asyncio.Semaphore) -> None:
        self.client = client
        self.extractor = extractor
        self.everyone = everyone
        self.opened = AsyncExitStack()
        self.links = 0
        self.closing: asyncio.Task[None] | None = None


_OPEN: dict[Errand, _Tools] = {}


@asynccontextmanager
async def _tools(errand: Errand) -> AsyncIterator[_Tools]:
    """What this process has for the links of a run, closed when none came for a while, or with the process."""
    tools = _OPEN.get(errand)
    if tools is None:
        concurrency = errand.policy.concurrency
        client = guarded_client(errand.allowed, connections=concurrency)
        tools = _OPEN[errand] = _Tools(client, Extractor(), asyncio.Semaphore(concurrency))
        tools.opened.push_async_callback(client.aclose)
        await tools.opened.enter_async_context(tools.extractor)
    elif tools.closing:
        tools.closing.cancel()
    tools.links += 1
    try:
        yield tools
    finally:
        tools.links -= 1
        if not tools.links:
            tools.closing = asyncio.create_task(_close_when_idle(errand, tools))


async def _close_when_idle(errand: Errand, tools: _Tools) -> None:
    await asyncio.sleep(30.0)  # processes that read pages take a second to start
    del _OPEN[errand]  # from here on, a link makes its own
    await tools.opened.aclose()


class Cluster(NamedTuple):
    """The scheduler's address, such as `tcp://127.0.0.1:8786`, and how each worker asks the web."""

    address: str
    policy: FetchPolicy
    allowed: tuple[tuple[str, int], ...] = ()
    refresh: bool = False


def fetch_on_cluster(
    store: Store,
    keys: Sequence[str],
    cluster: Cluster,
    run_id: str,
    report: Report,
    begin: Callable[[int], None],
    tell: Tell,
) -> Gathered:
    """As `gather.fetch_missing`, by the cluster, which is asked only where pages are missing."""
    wanted = list(missing_pages(keys, store, cluster.refresh))
    begin(len(wanted))
    if not wanted:
        return Gathered()
    intake = Intake(store, run_id, cluster.policy.robots, report)
    return asyncio.run(_gather_pages(wanted, cluster, intake, tell))


class _Site:
    """The pages of one site that wait, and what is known of its servers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting: deque[Asked] = deque()
        self.memory = SiteMemory()
        self.idle = True


class _Chains:
    """Pages waiting by site; of each site one link is out at a time."""

    def __init__(self, pages: Iterable[Wanted]) -> None:
        self.sites: dict[str, _Site] = {}
        self.ready: deque[_Site] = deque()
        for page in pages:
            self.add(page.url, (page, None))
        self.ready = deque(sorted(self.ready, key=lambda site: len(site.waiting), reverse=True))

    def add(self, url: str, asked: Asked) -> None:
        name = site_key(url)
        site = self.sites.setdefault(name, _Site(name))
        site.waiting.append(asked)
        if site.idle:
            site.idle = False
            self.ready.append(site)

    def take(self) -> tuple[_Site, tuple[Asked, ...]] | None:
        if not self.ready:
            return None
        site = self.ready.popleft()
        return site, tuple(site.waiting.popleft() for _ in range(min(_PAGES, len(site.waiting))))

    def give_back(self, site: _Site) -> None:
        """Its link is done; where pages are left it is first in line, since the longest chain takes the longest."""
        site.idle = not site.waiting
        if site.waiting:
            self.ready.appendleft(site)


class _Workers:
    """The cluster's workers, looked after while they work."""

    def __init__(self, client: Client, address: str, tell: Tell) -> None:
        self.client = client
        self.address = address
        self.tell = tell
        self.count = 0
        self.places = 0

    async def look(self) -> None:
        try:
            threads = await asyncio.wait_for(self.client.nthreads(), 30.0)
        except (OSError, FutureCancelledError, FuturesCancelledError) as error:
            raise _gone(self.address) from error
        self.count, self.places = len(threads), sum(threads.values())

    async def watch(self, until_there: bool = False) -> None:
        """Count them again and again; `until_there` ends as soon as there is one."""
        without = 0.0
        while True:
            await self.look()
            if self.places and until_there:
                return
            if not self.places and not without:
                self.tell(f"The scheduler at {self.address} has no worker; waiting for one.")
            without = 0.0 if self.places else without + _LOOK_SECONDS
            if without > 30.0:  # it may be starting its first worker, or a killed one anew
                raise ClusterError(
                    f"The scheduler at {self.address} has no worker. Start some with `dask worker {self.address} "
                    f"--nthreads 32`, each where this citejury is installed. {_GOES_ON}"
                )
            await asyncio.sleep(_LOOK_SECONDS)


async def _gather_pages(wanted: Sequence[Wanted], cluster: Cluster, intake: Intake, tell: Tell) -> Gathered:
    chains = _Chains(wanted)
    network = Network({host_of(page.url) for page in wanted if page.silent})
    errand = Errand(version("citejury"), cluster.policy, cluster.allowed)
    running: dict[asyncio.Task[LinkResult | None], tuple[_Site, tuple[Asked, ...]]] = {}
    untried = 0
    async with _connected(cluster.address, tell) as client:
        workers = _Workers(client, cluster.address, tell)
        await workers.watch(until_there=True)
        tell(
            f"{len(wanted):,} pages of {len(chains.sites):,} sites go to {workers.count:,} workers, "
            f"{workers.places:,} sites at a time."
        )
        watching = asyncio.create_task(workers.watch())
        try:
            while True:
                # For each place of the cluster two are on their way, so that none waits for this process.
                while len(running) < 2 * max(workers.places, 1) and not network.away:
                    taken = chains.take()
                    if taken is None:
                        break
                    link = Link(errand, taken[0].name, taken[1], taken[0].memory)
                    running[asyncio.create_task(_read_link(client, cluster.address, link))] = taken
                if not running:
                    break
                done, _ = await asyncio.wait([*running, watching], return_when=asyncio.FIRST_COMPLETED)
                if watching in done:
                    watching.result()
                for task in done:
                    site, pages = running.pop(task)
                    result = task.result()
                    if result is None:
                        untried += len(pages)
                    else:
                        _take_in(site, pages, result, chains, network, intake)
                    chains.give_back(site)
        finally:
            for task in (watching, *running):
                task.cancel()
            await asyncio.gather(watching, *running, return_exceptions=True)
    if untried:
        tell(f"{untried:,} pages were not tried, because each worker that took them ended; the same command goes on.")
    return intake.end(network.away and (bool(chains.ready) or not network.answered), network.answered)


def _take_in(
    site: _Site, pages: Sequence[Asked], result: LinkResult, chains: _Chains, network: Network, intake: Intake
) -> None:
    """Store what came of a link; a page that a redirect has led to another site waits for that one."""
    site.memory = result.memory
    if result.answered:
        network.reach(site.name)
    for host, reason in result.silent.items():
        network.miss(host, reason)
    for (page, _), found in zip(pages, result.found, strict=True):
        if found.onward:
            chains.add(found.onward.url, (page, found.onward))
        else:
            intake.keep(page, found)
            intake.count(page, found)


async def _read_link(client: Client, address: str, link: Link) -> LinkResult | None:
    """What came of a link; None where one worker after the other ended while it had it."""
    future: Future = client.submit(_read_pages, link, pure=False)
    try:
        result: LinkResult = await future
        return result
    except CitejuryError:
        raise
    except KilledWorker:
        return None
    except (OSError, FutureCancelledError, FuturesCancelledError) as error:
        raise _gone(address) from error
    except Exception as error:
        words = str(error).strip().splitlines() or [type(error).__name__]
        raise ClusterError(
            f"The cluster at {address} cannot read pages: {words[0][:200]!r}. Scheduler and workers need this "
            f"citejury ({version('citejury')}) with its extra `cluster`, and the same Python. {_GOES_ON}"
        ) from error
    finally:
        future.release()


@asynccontextmanager
async def _connected(address: str, tell: Tell) -> AsyncIterator[Client]:
    """The scheduler's client, closed when the block ends, which also gives up what was asked for."""
    # What they have to say of a scheduler that is gone is said here, in one line.
    for name in logging.root.manager.loggerDict:
        if name.startswith("distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    with warnings.catch_warnings(record=True) as noticed:
        try:
            client = await Client(address, asynchronous=True, timeout=10.0, set_as_default=False)
        except (OSError, ValueError, ImportError) as error:
            raise ClusterError(
                f"No Dask scheduler answers at {address!r}. Start one with `dask scheduler`, or leave out "
                f"`--scheduler` to read the pages from here. {_GOES_ON}"
            ) from error
    if any("mismatch" in type(each.message).__name__.lower() for each in noticed if isinstance(each.message, Warning)):
        tell("Warning: the cluster has other versions of Python or of Dask's libraries than this machine.")
    try:
        yield client
    finally:
        with suppress(Exception):
            await asyncio.wait_for(client.close(), 3.0)


def _gone(address: str) -> ClusterError:
    return ClusterError(f"The Dask scheduler at {address} is gone. {_GOES_ON}")
