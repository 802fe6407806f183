"""2,000 URLs on 50 loopback hosts that answer after 100 ms, politeness off, against what the concurrency allows.

The ideal is 2,000 x 0.1 s / concurrency; the server runs in a process of its own. Memory is that of this process, and
stays the same however many pages are fetched. Prints one line: name, ratio, goal, `ok` or `short`.
"""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from statistics import median
from time import perf_counter, process_time
from typing import NamedTuple

import psutil

from pipeline.sources.fetch import Fetcher, FetchPolicy
from pipeline.sources.guard import guarded_client

NAME = "fetch"
GOAL = 1.30
URLS = 2000
HOSTS = 50
SECONDS = 0.1
REPEATS = 3
POLICY = FetchPolicy(per_host=FetchPolicy().concurrency, delay=0.0, robots=False)

# A page of 60 kB.
SERVER = f"""
import asyncio
body = b"<html><body>" + b"<p>A sentence of the page, with its reasons.</p>" * 1250 + b"</body></html>"
head = b"HTTP/1.1 200 OK\\r\\ncontent-type: text/html; charset=utf-8\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(body)

async def serve(reader, writer):
    try:
        while True:
            await reader.readuntil(b"\\r\\n\\r\\n")
            await asyncio.sleep({SECONDS})
            writer.write(head + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


class Taken(NamedTuple):
    wall: float
    cpu: float
    memory: float


async def resolve(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


async def fetch_all(port: int, urls: int) -> Taken:
    """How long so many pages take; each is thrown away when it is there."""
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
    return Taken(perf_counter() - start, process_time() - processor, memory)


def main() -> None:
    """Measure, and print the line."""
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        first = asyncio.run(fetch_all(port, URLS // 10))
        taken = [asyncio.run(fetch_all(port, URLS)) for _ in range(REPEATS)]
    finally:
        server.terminate()
        server.wait()
    ideal = URLS * SECONDS / POLICY.concurrency
    ratio = median(each.wall for each in taken) / ideal
    sys.stderr.write(
        f"ideal {ideal:.2f} s, fetched in {median(each.wall for each in taken):.2f} s, processor time a page "
        f"{median(each.cpu for each in taken) / URLS * 1000:.2f} ms; memory {first.memory:.0f} MB after "
        f"{URLS // 10:,} pages, {max(each.memory for each in taken):.0f} MB after {URLS:,}\n"
    )
    sys.stdout.write(f"{NAME}\t{ratio:.2f}\t<={GOAL:.2f}\t{'ok' if ratio <= GOAL else 'short'}\n")


if __name__ == "__main__":
    main()
