"""`pipeline sources` on one machine against three workers of a Dask cluster: how many times as long it takes.

240 pages of 24 sites, each a second away; eight requests at a time, on the machine and on each worker. A first page of
each site is read before, so that no start of a process is in the figure; that the workers share one machine's
processors is. Seconds go to stderr.
"""

import asyncio
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import httpx

from pipeline.asking.cluster import Cluster, fetch_on_cluster
from pipeline.asking.gather import Wanted, gather_pages
from pipeline.sources.extract import Extractor
from pipeline.sources.fetch import Fetcher, FetchPolicy
from pipeline.sources.guard import guarded_client
from pipeline.sources.store import Store, open_store
from tests.benchmarks.measure import bees, log, report
from tests.support.dask_cluster import dask_cluster
from tests.support.web import Web

SITES = 24
PAGES = 10
WORKERS = 3
POLICY = FetchPolicy(delay=0.0, concurrency=8)


async def alone(first: Sequence[str], urls: Sequence[str], client: httpx.AsyncClient, store: Store) -> float:
    """How long one machine takes for the pages, after the first ones."""
    async with client, Fetcher(client, POLICY) as fetcher, Extractor() as extractor:
        await gather_pages(map(Wanted, first), fetcher, extractor, store, lambda *_: None)
        begun = time.perf_counter()
        await gather_pages(map(Wanted, urls), fetcher, extractor, store, lambda *_: None)
        return time.perf_counter() - begun


def together(first: Sequence[str], urls: Sequence[str], cluster: Cluster, store: Store) -> float:
    begun = 0.0
    for keys in (first, urls):
        begun = time.perf_counter()
        fetch_on_cluster(store, keys, cluster, "", lambda *_: None, lambda _: None, lambda _: None)
    return time.perf_counter() - begun


def check(store: Store) -> None:
    read = sum(page.reason == "page" for page in store.pages())
    if read != SITES * (PAGES + 1):
        raise SystemExit(f"{read} of {SITES * (PAGES + 1)} pages were read")


def main() -> None:
    with ExitStack() as opened:
        folders = [Path(opened.enter_context(tempfile.TemporaryDirectory())) for _ in range(3)]
        hosts = [f"127.0.0.{number + 2}" for number in range(SITES)]
        webs = [opened.enter_context(Web({host: partial(bees, seconds=1.0)}, host)) for host in hosts]
        first, *rest = ([web.url(web.host, f"/{web.host}/{number}") for web in webs] for number in range(PAGES + 1))
        urls = [url for some in rest for url in some]
        allowed = tuple(web.address for web in webs)
        with open_store(folders[0] / "store.db") as store:
            one = asyncio.run(alone(first, urls, guarded_client(allowed, connections=POLICY.concurrency), store))
            check(store)
        running = opened.enter_context(dask_cluster(folders[1], WORKERS, POLICY.concurrency))
        with open_store(folders[2] / "store.db") as store:
            three = together(first, urls, Cluster(running.address, POLICY, allowed), store)
            check(store)
    log(f"{SITES * PAGES} pages: one machine {one:.1f} s, {WORKERS} workers {three:.1f} s")
    report("cluster", one / three, 2.0, is_at_least=True)
