"""The worker's side of a cluster: the next few pages of one site, fetched and read where this runs.

The pages of a site are a chain of links; each is a task of its own, so that a worker that dies costs a link.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import NamedTuple

import httpx

from pipeline.errors import ClusterError
from pipeline.gathering._pages import FoundPage, Wanted, find_page
from pipeline.sources.extract import Extractor
from pipeline.sources.fetch import Fetcher, FetchPolicy, SiteMemory, Trail
from pipeline.sources.guard import guarded_client

# Processes that read pages take a second to start; they wait so long for the next link.
_IDLE_SECONDS = 30.0

Asked = tuple[Wanted, Trail | None]
"""A page, with how far a worker that kept to another site has come with it."""


@dataclass(frozen=True)  # no tuple: Dask would look for futures in it, and make another tuple of it
class Link:
    """The next pages of one site."""

    errand: "Errand"
    """What every link of the run is to know."""
    site: str
    """The site, by its `site_key`."""
    pages: tuple[Asked, ...]
    """The pages."""
    memory: SiteMemory
    """What is known of the site's servers."""


class Errand(NamedTuple):
    """What every link of a run is to know."""

    version: str
    """The version of citejury that asks."""
    policy: FetchPolicy
    """How much is asked of the web, and how politely."""
    allowed: tuple[tuple[str, int], ...]
    """The private servers that may be asked."""


class LinkResult(NamedTuple):
    """What came of one link."""

    found: tuple[FoundPage, ...]
    """What came of its pages, in their order."""
    memory: SiteMemory
    """What the next link of the site is to know of its servers."""
    answered: bool
    """Whether anybody was reached."""
    silent: Mapping[str, str]
    """The hosts that were not reached after that, with the reason."""


async def read_link(link: Link) -> LinkResult:
    """What came of the link's pages.

    Raises:
        ClusterError: this is another version of citejury.
        NotInstalledError: no process that reads pages can be started.
    """
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
        """Keep them, for nobody yet."""
        self.client = client
        self.extractor = extractor
        self.everyone = everyone
        self.opened = AsyncExitStack()
        self.links = 0
        self.closing: asyncio.Task[None] | None = None


_OPEN: dict[Errand, _Tools] = {}


@asynccontextmanager
async def _tools(errand: Errand) -> AsyncIterator[_Tools]:
    """What this process has for the links of a run, made for the first of them and closed when none came for a while.

    A process that ends before that takes its readers of pages along: their input ends with it.
    """
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
    """Close the tools, unless another link comes in time."""
    await asyncio.sleep(_IDLE_SECONDS)
    del _OPEN[errand]  # from here on, a link makes its own
    await tools.opened.aclose()
