"""40 queries to a search provider that answers after 500 ms, and the pages chosen, against what 5 at once allow.

The ideal is 40 x 0.5 s / 5; the server runs in a process of its own. Prints one line: name, ratio, goal, `ok` or
`short`.
"""

import asyncio
import subprocess
import sys
from statistics import median
from time import perf_counter

from pipeline.research.pages import harvest
from pipeline.research.search import MOST_AT_ONCE, SearchApi, tavily
from pipeline.research.values import Plan

NAME = "harvest"
GOAL = 1.3
QUERIES = 40
SECONDS = 0.5
REPEATS = 3

# Twenty results for each query, others each time.
SERVER = f"""
import asyncio, json

async def serve(reader, writer):
    head = await reader.readuntil(b"\\r\\n\\r\\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\\r\\n")[0])
    query = json.loads(await reader.readexactly(length))["query"]
    await asyncio.sleep({SECONDS})
    results = [
        {{"title": query, "url": f"https://site{{at}}.example/{{hash(query)}}", "content": 20 * query}}
        for at in range(20)
    ]
    body = json.dumps({{"query": query, "results": results}}).encode()
    writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\nconnection: close\\r\\n"
        b"content-length: %d\\r\\n\\r\\n" % len(body) + body)
    await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


def seconds(port: int, queries: int) -> float:
    plan = Plan(("section",), tuple(f"query {number}" for number in range(queries)))
    provider = SearchApi(tavily(f"http://127.0.0.1:{port}"), {"TAVILY_API_KEY": "tvly-benchmark"})
    start = perf_counter()
    came = asyncio.run(harvest(plan, provider, (), 20, 1000, 10_000, MOST_AT_ONCE))
    taken = perf_counter() - start
    if len(came.found) != queries * 20:
        raise SystemExit(f"{len(came.found)} pages were found.")
    return taken


def main() -> None:
    """Measure, and print the line."""
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        seconds(port, MOST_AT_ONCE)
        taken = median(seconds(port, QUERIES) for _ in range(REPEATS))
    finally:
        server.terminate()
        server.wait()
    ideal = QUERIES * SECONDS / MOST_AT_ONCE
    sys.stderr.write(f"ideal {ideal:.2f} s, harvested in {taken:.2f} s\n")
    sys.stdout.write(f"{NAME}\t{taken / ideal:.2f}\t<={GOAL:.2f}\t{'ok' if taken / ideal <= GOAL else 'short'}\n")


if __name__ == "__main__":
    main()
