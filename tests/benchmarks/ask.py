"""`pipeline ask`, 500 narratives, answers of 200 ms, against a bare httpx loop that throws bodies away.

Both ask the same loopback server, which runs in a process of its own, with 50 calls at once; start-up is left out.
Prints one line: name, ratio, goal, `ok` or `short`.

Source: CONTRIBUTING.md#speed.
"""

import asyncio
import csv
import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import NamedTuple

import httpx

from pipeline.asking.ask_live import ask_providers, select_providers
from pipeline.asking.narratives import NarrativesCsv
from pipeline.asking.questions import Limits
from pipeline.asking.selection import ProviderSelection
from pipeline.core.schema import AskOptions

NAME = "pipeline_ask"
GOAL = 1.25
NARRATIVES = 500
CONCURRENCY = 50
SECONDS = 0.2
REPEATS = 3

# A body of 20 kB, as OpenAI's are, with five citations.
SERVER = f"""
import asyncio, json
link = "([site](https://www.site{{0}}.example/page/{{0}}?utm_source=openai))"
text = " ".join("A sentence of the answer, with its reasons. " * 4 + link.replace("{{0}}", str(n)) for n in range(5))
sources = [{{"type": "url", "url": f"https://found{{n}}.example/a/long/path/{{n}}"}} for n in range(250)]
body = json.dumps({{
    "id": "resp_1", "object": "response", "status": "completed", "model": "model-1", "error": None,
    "output": [
        {{"type": "web_search_call", "status": "completed", "action": {{"type": "search", "sources": sources}}}},
        {{"type": "message", "content": [{{"type": "output_text", "text": text, "annotations": []}}]}},
    ],
    "usage": {{"input_tokens": 9000, "output_tokens": 400, "total_tokens": 9400}},
}}).encode()
head = f"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: {{len(body)}}\\r\\n\\r\\n".encode()

async def serve(reader, writer):
    try:
        while True:
            request = await reader.readuntil(b"\\r\\n\\r\\n")
            length = request.lower().partition(b"content-length:")[2].partition(b"\\r\\n")[0]
            await reader.readexactly(int(length))
            await asyncio.sleep({SECONDS})
            writer.write(head + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


class Taken(NamedTuple):
    wall: float
    cpu: float


def bare_loop(url: str, bodies: list[bytes]) -> Taken:
    """How long httpx alone takes for the same requests."""

    async def work(client: httpx.AsyncClient, left: list[bytes]) -> None:
        while left:
            response = await client.post(url, content=left.pop(), headers={"content-type": "application/json"})
            response.raise_for_status()

    async def run() -> None:
        limits = httpx.Limits(max_connections=CONCURRENCY, max_keepalive_connections=CONCURRENCY)
        async with httpx.AsyncClient(limits=limits, timeout=30) as client:
            left = list(bodies)
            await asyncio.gather(*(work(client, left) for _ in range(CONCURRENCY)))

    start, processor = perf_counter(), process_time()
    asyncio.run(run())
    return Taken(perf_counter() - start, process_time() - processor)


def whole_run(narratives: Path, out: Path, selection: ProviderSelection) -> Taken:
    """How long the run takes, from the narratives' file to the finished folder."""
    start, processor = perf_counter(), process_time()
    manifest = ask_providers(selection.questions(NarrativesCsv(narratives)), out, selection, limits=Limits(CONCURRENCY))
    if manifest.answers != NARRATIVES:
        raise SystemExit(f"{manifest.answers} answers instead of {NARRATIVES}: {manifest.errors}")
    return Taken(perf_counter() - start, process_time() - processor)


def measure(port: int, folder: Path) -> tuple[list[Taken], list[Taken]]:
    """Both sides in turns, after one round that is not counted: the bare loop, then the run."""
    narratives = folder / "narratives.csv"
    with open(narratives, "w", encoding="utf-8", newline="") as file:
        rows = ((f"N{number}", f"Narrative {number}: ワクチンは危険である。") for number in range(NARRATIVES))
        csv.writer(file).writerows([("narrative_id", "prompt"), *rows])
    base = f"http://127.0.0.1:{port}/v1"
    selection = select_providers(["openai"], {}, AskOptions(), {"OPENAI_API_KEY": "benchmark"}, {"openai": base})
    bodies = [json.dumps({"input": f"Narrative {number}"}).encode() for number in range(NARRATIVES)]
    alone: list[Taken] = []
    ours: list[Taken] = []
    for turn in range(REPEATS + 1):
        alone.append(bare_loop(f"{base}/responses", bodies))
        ours.append(whole_run(narratives, folder / f"run{turn}", selection))
    return alone[1:], ours[1:]


def main() -> None:
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        with TemporaryDirectory() as folder:
            alone, ours = measure(int(server.stdout.readline()), Path(folder))
    finally:
        server.terminate()
        server.wait()
    ratio = median(each.wall for each in ours) / median(each.wall for each in alone)
    cpu = median(each.cpu for each in ours) / median(each.cpu for each in alone)
    sys.stderr.write(
        f"alone {median(each.wall for each in alone):.2f} s, pipeline ask {median(each.wall for each in ours):.2f} s, "
        f"processor time per call {cpu:.2f} times the bare loop's\n"
    )
    sys.stdout.write(f"{NAME}\t{ratio:.2f}\t<={GOAL:.2f}\t{'ok' if ratio <= GOAL else 'short'}\n")


if __name__ == "__main__":
    main()
