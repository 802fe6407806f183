"""40 queries to a search provider that answers after 500 ms, and the pages chosen, against what 5 at once allow.

The ideal is 40 x 0.5 s / 5; the server runs in a process of its own.
"""

import asyncio
from statistics import median

from pipeline.research.pages import harvest
from pipeline.research.search import MOST_AT_ONCE, SearchApi, tavily
from pipeline.research.values import Plan
from tests.benchmarks.measure import answering, log, report, seconds

QUERIES = 40
SECONDS = 0.5

# Twenty results for each query, others each time.
RESULTS = """
def results(query):
    found = [
        {"title": query, "url": f"https://site{at}.example/{hash(query)}", "content": 20 * query} for at in range(20)
    ]
    return response("application/json", json.dumps({"query": query, "results": found}).encode())
"""


def search(port: int, queries: int) -> None:
    plan = Plan(("section",), tuple(f"query {number}" for number in range(queries)))
    provider = SearchApi(tavily(f"http://127.0.0.1:{port}"), {"TAVILY_API_KEY": "tvly-benchmark"})
    came = asyncio.run(harvest(plan, provider, (), 20, 1000, 10_000, MOST_AT_ONCE))
    if len(came.found) != queries * 20:
        raise SystemExit(f"{len(came.found)} pages were found.")


def main() -> None:
    with answering(RESULTS, 'results(json.loads(request)["query"])', SECONDS) as port:
        search(port, MOST_AT_ONCE)
        taken = median(seconds(lambda: search(port, QUERIES)) for _ in range(3))
    ideal = QUERIES * SECONDS / MOST_AT_ONCE
    log(f"ideal {ideal:.2f} s, harvested in {taken:.2f} s")
    report("harvest", taken / ideal, 1.3)
