"""500 pages from loopback to chunks, against trafilatura alone on the same bytes.

Ours is the way of the commands, with a parser process a core; trafilatura has one process. On stderr is
the same with one parser process, and how well the articles' text is found.
"""

import asyncio
import gzip
import json
import subprocess
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter

from pipeline.sources.chunk import tokenize_chunk
from pipeline.sources.extract import Extracted, Extractor
from pipeline.sources.fetch import Fetcher, FetchPolicy
from pipeline.sources.schema import Document, SourceMeta
from tests.benchmarks.measure import log, report
from tests.pipeline.sources.test_extract import f1
from tests.support.web import Page, Web

PAGES = 500
ROUNDS = 5
ARTICLES = Path(__file__).parents[3] / "shared" / "corpora" / "articles"
ALONE = """
import sys
from pathlib import Path
from time import perf_counter
import trafilatura
pages = [path.read_bytes() for path in sorted(Path(sys.argv[1]).iterdir())]
trafilatura.extract(pages[0])
start = perf_counter()
for page in pages:
    trafilatura.extract(page)
print(perf_counter() - start)
"""


def articles() -> dict[str, bytes]:
    """500 pages: the 181 real articles again and again, each under its path."""
    files = sorted((ARTICLES / "html").iterdir())
    return {
        f"/{number:03}": gzip.decompress(file.read_bytes()) for number, file in enumerate(islice(cycle(files), PAGES))
    }


def seconds_alone(pages: dict[str, bytes]) -> float:
    """How long one process of trafilatura takes over the bytes, its start and first page left out."""
    with tempfile.TemporaryDirectory() as folder:
        for path, body in pages.items():
            Path(folder, path[1:]).write_bytes(body)
        done = subprocess.run([sys.executable, "-c", ALONE, folder], capture_output=True, text=True, check=True)
    return float(done.stdout)


async def seconds_with_chunks(pages: dict[str, bytes], workers: int | None) -> tuple[float, list[Extracted]]:
    """How long fetching, extracting and chunking takes, the start of the parser processes left out."""
    policy = FetchPolicy(delay=0, per_host=8, robots=False)
    with Web({"a.example": {path: Page(body) for path, body in pages.items()}}) as web:
        async with web.client() as client, Fetcher(client, policy) as fetcher, Extractor(workers) as extractor:
            first = next(iter(pages.values()))
            await asyncio.gather(*(extractor.extract(first, "text/html", "", "") for _ in range(extractor.count)))
            start = perf_counter()
            found = await asyncio.gather(*(chunked(fetcher, extractor, web.url("a.example", path)) for path in pages))
            return perf_counter() - start, found


async def chunked(fetcher: Fetcher, extractor: Extractor, url: str) -> Extracted:
    """What the page says; it has been cut into chunks."""
    page = await fetcher.fetch(url)
    found = await extractor.extract(page.body, page.content_type, page.charset, url)
    meta = SourceMeta(domain="a.example", lang=found.language or None)
    if not tokenize_chunk(Document(url=url, text=found.text, source_meta=meta), 250, 0):
        raise SystemExit(f"no chunks of {url}: {page.reason}, {found.reason} {found.detail}")
    return found


def found_share(found: list[Extracted]) -> float:
    gold = json.loads((ARTICLES / "ground-truth.json").read_text(encoding="utf-8"))
    return f1([(read.text, gold[name]["articleBody"]) for name, read in zip(sorted(gold), found, strict=False)])


def main() -> None:
    if not ARTICLES.is_dir():
        raise SystemExit("the articles of ../shared/corpora are not here")
    pages = list(articles().items())
    alone = ours = single = 0.0
    found: list[Extracted] = []
    for start in range(0, PAGES, PAGES // ROUNDS):  # in turns, so that a busy machine slows both down
        part = dict(pages[start : start + PAGES // ROUNDS])
        alone += seconds_alone(part)
        seconds, read = asyncio.run(seconds_with_chunks(part, None))
        ours += seconds
        found += read
        single += asyncio.run(seconds_with_chunks(part, 1))[0]
    log(
        f"alone {alone:.1f} s, to chunks {ours:.1f} s, with one parser process {single:.1f} s ({single / alone:.2f}), "
        f"{PAGES} pages; F1 of the text {found_share(found):.4f}"
    )
    report("pages_to_chunks", ours / alone, 1.3)
