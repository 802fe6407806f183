"""`pipeline ask`, 500 narratives, answers of 200 ms, against a bare httpx loop that throws bodies away.

Both ask the same loopback server, which runs in a process of its own, with 50 calls at once; start-up is left out.
"""

import asyncio
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import httpx

from pipeline.asking.ask_live import ask_providers, select_providers
from pipeline.asking.narratives import NarrativesCsv
from pipeline.asking.questions import Limits
from pipeline.core.schema import AskOptions
from tests.benchmarks.measure import answering, log, report, write_narratives

NARRATIVES = 500
CONCURRENCY = 50
# A body of 20 kB, as OpenAI's are, with five citations.
BODY = """
link = "([site](https://www.site{0}.example/page/{0}?utm_source=openai))"
text = " ".join("A sentence of the answer, with its reasons. " * 4 + link.replace("{0}", str(n)) for n in range(5))
sources = [{"type": "url", "url": f"https://found{n}.example/a/long/path/{n}"} for n in range(250)]
body = json.dumps({
    "id": "resp_1", "object": "response", "status": "completed", "model": "model-1", "error": None,
    "output": [
        {"type": "web_search_call", "status": "completed", "action": {"type": "search", "sources": sources}},
        {"type": "message", "content": [{"type": "output_text", "text": text, "annotations": []}]},
    ],
    "usage": {"input_tokens": 9000, "output_tokens": 400, "total_tokens": 9400},
}).encode()
"""


async def bare_loop(url: str) -> None:
    left = [json.dumps({"input": f"Narrative {number}"}).encode() for number in range(NARRATIVES)]
    limits = httpx.Limits(max_connections=CONCURRENCY, max_keepalive_connections=CONCURRENCY)
    async with httpx.AsyncClient(limits=limits, timeout=30) as client:

        async def work() -> None:
            while left:
                response = await client.post(url, content=left.pop(), headers={"content-type": "application/json"})
                response.raise_for_status()

        await asyncio.gather(*(work() for _ in range(CONCURRENCY)))


def taken(work: Callable[[], object]) -> tuple[float, float]:
    start, processor = perf_counter(), process_time()
    work()
    return perf_counter() - start, process_time() - processor


def main() -> None:
    with TemporaryDirectory() as name, answering(BODY, 'response("application/json", body)', 0.2) as port:
        folder, numbers = Path(name), count()
        narratives = write_narratives(folder, NARRATIVES)
        base = f"http://127.0.0.1:{port}/v1"
        selection = select_providers(["openai"], {}, AskOptions(), {"OPENAI_API_KEY": "benchmark"}, {"openai": base})

        def whole_run() -> None:
            questions = selection.questions(NarrativesCsv(narratives))
            manifest = ask_providers(questions, folder / f"run{next(numbers)}", selection, limits=Limits(CONCURRENCY))
            if manifest.answers != NARRATIVES:
                raise SystemExit(f"{manifest.answers} answers instead of {NARRATIVES}: {manifest.errors}")

        # In turns; the first round is not counted.
        turns = [(taken(lambda: asyncio.run(bare_loop(f"{base}/responses"))), taken(whole_run)) for _ in range(4)][1:]
    (alone, alone_cpu), (ours, ours_cpu) = (map(median, zip(*side, strict=True)) for side in zip(*turns, strict=True))
    log(f"alone {alone:.2f} s, pipeline ask {ours:.2f} s, processor time per call {ours_cpu / alone_cpu:.2f} of it")
    report("pipeline_ask", ours / alone, 1.25)
