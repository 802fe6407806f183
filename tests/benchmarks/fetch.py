"""2,000 URLs on 50 loopback hosts that answer after 100 ms, politeness off, against what the concurrency allows.

The ideal is 2,000 x 0.1 s / concurrency; the server runs in a process of its own. Memory is that of this process, and
stays the same however many pages are fetched.
"""

import asyncio
from collections.abc import Sequence
from statistics import median
from time import perf_counter, process_time

import psutil

from pipeline.sources.fetch import Fetcher, FetchPolicy
from pipeline.sources.guard import guarded_client
from tests.benchmarks.measure import answering, log, report

URLS = 2000
HOSTS = 50
SECONDS = 0.1
POLICY = FetchPolicy(per_host=FetchPolicy().concurrency, delay=0.0, robots=False)
# A page of 60 kB.
BODY = 'body = b"<html><body>" + b"<p>A sentence of the page, with its reasons.</p>" * 1250 + b"</body></html>"'


async def resolve(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


async def fetch_all(port: int, urls: int) -> tuple[float, float, float]:
    """Wall time, processor time and MB of memory for so many pages; each is thrown away when it is there."""
    left = iter([f"http://host{number % HOSTS}.example:{port}/page/{number}" for number in range(urls)])

    async def work(fetcher: Fetcher) -> None:
        for url in left:
            came = await fetcher.fetch(url)
            if not came.body:
                raise SystemExit(f"{url}: {came.reason}, {came.detail}")

    start, processor = perf_counter(), process_time()
    async with guarded_client([("127.0.0.1", port)], resolve=resolve) as client, Fetcher(client, POLICY) as fetcher:
        await asyncio.gather(*(work(fetcher) for _ in range(2 * POLICY.concurrency)))
    memory = psutil.Process().memory_info().rss / 1e6
    return perf_counter() - start, process_time() - processor, memory


def main() -> None:
    with answering(BODY, 'response("text/html; charset=utf-8", body)', SECONDS) as port:
        *_, before = asyncio.run(fetch_all(port, URLS // 10))
        walls, processors, memories = zip(*(asyncio.run(fetch_all(port, URLS)) for _ in range(3)), strict=True)
    ideal = URLS * SECONDS / POLICY.concurrency
    log(
        f"ideal {ideal:.2f} s, fetched in {median(walls):.2f} s, processor time a page "
        f"{median(processors) / URLS * 1000:.2f} ms; memory {before:.0f} MB after "
        f"{URLS // 10:,} pages, {max(memories):.0f} MB after {URLS:,}"
    )
    report("fetch", median(walls) / ideal, 1.3)
