"""What the benchmarks share; no benchmark itself: times, rows, and servers to measure against."""

import contextlib
import csv
import gc
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import perf_counter

from annotation.argilla.client import Argilla
from annotation.server.launch import ServerHandle, start_server
from tests.support.web import Asked, Page


def report(name: str, ratio: float, goal: float, *, is_at_least: bool = False) -> None:
    is_reached = ratio >= goal if is_at_least else ratio <= goal
    sign = ">=" if is_at_least else "<="
    print(f"{name}\t{ratio:.3g}\t{sign}{goal:g}\t{'ok' if is_reached else 'short'}", flush=True)  # noqa: T201


def log(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def seconds(work: Callable[[], object], clock: Callable[[], float] = perf_counter) -> float:
    gc.collect()
    begun = clock()
    work()
    return clock() - begun


def medians(pairs: Iterable[tuple[float, float]]) -> tuple[float, float]:
    first, second = (statistics.median(side) for side in zip(*pairs, strict=True))
    return first, second


def bees(asked: Asked, seconds: float = 0) -> Page:
    """One of many pages: 6 kB of text that no other page has."""
    if asked.path == "/robots.txt":
        return Page(status=404)
    text = "".join(f"Page {asked.path} says in sentence {number} what bees do with nectar. " for number in range(90))
    body = f"<html><head><title>{asked.path}</title></head><body><article><p>{text}</p></article></body></html>"
    return Page(body, seconds=seconds)


def write_narratives(folder: Path, number: int) -> Path:
    rows = ((f"N{at}", f"Narrative {at}: ワクチンは危険である。") for at in range(number))
    with open(folder / "narratives.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("narrative_id", "prompt"), *rows])
    return folder / "narratives.csv"


@contextlib.contextmanager
def embedded() -> Iterator[tuple[Path, ServerHandle, Argilla]]:
    """A folder, our server with its home in it, and the owner's connection."""
    with (
        tempfile.TemporaryDirectory() as folder,
        start_server(Path(folder) / "home", port=0) as server,
        Argilla(server.url, server.owner_api_key) as client,
    ):
        yield Path(folder), server, client


@contextlib.contextmanager
def answering(made: str, reply: str, wait: float) -> Iterator[int]:
    """The port of a process on loopback that answers each HTTP request after so many seconds.

    Args:
        made: Code that is run once, before the first request.
        reply: An expression of `request`, the request's body, for the bytes of a whole response.
        wait: Seconds before each answer.
    """
    script = f"""
import asyncio, json
{made}
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            length = head.lower().partition(b"content-length:")[2].partition(b"\\r\\n")[0]
            request = await reader.readexactly(int(length or 0))
            await asyncio.sleep({wait})
            writer.write({reply})
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

def response(kind, body):
    head = f"HTTP/1.1 200 OK\\r\\ncontent-type: {{kind}}\\r\\ncontent-length: {{len(body)}}\\r\\n\\r\\n"
    return head.encode() + body

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()
