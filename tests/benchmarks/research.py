"""A deep run without a model over Debian's English manuals, 154 pages, against trafilatura alone on the same bytes.

All processor time of the run counts, that of the processes which read the pages too; the median of three runs. Seconds
go to stderr.
"""

import asyncio
import shutil
import tempfile
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import process_time

import trafilatura

from pipeline.research.options import EXTRACTIVE, ResearchOptions
from pipeline.research.run import open_environment
from pipeline.research.stages import research
from tests.benchmarks.measure import log, report, seconds
from tests.support.debian_pages import DEBIAN_REFERENCE, DEVELOPERS_REFERENCE, HANDBOOK, PLACES

TOPIC = "How does Debian verify the signatures of packages, and which risks are left to administrators?"
BOOKS = {"handbook": f"{HANDBOOK}/en-US", "reference": DEBIAN_REFERENCE, "developers": DEVELOPERS_REFERENCE}


def copy_books(folder: Path) -> list[Path]:
    for name, path in BOOKS.items():
        place = next((place / path for place in PLACES if (place / path).exists()), None)
        if place is None:
            raise SystemExit("Debian's manuals are not here: `make pages` fetches them.")
        (folder / name).mkdir(parents=True)
        for file in (place if place.is_dir() else place.parent).glob("*.html"):
            shutil.copyfile(file, folder / name / file.name)
    return sorted(folder.rglob("*.html"))


def used_seconds() -> float:
    children = getrusage(RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


async def run_once(runs_dir: Path, documents: Path) -> None:
    """One run, whose store holds no page yet."""
    options = ResearchOptions(
        topic=TOPIC,
        run_id="r",
        runs_dir=runs_dir,
        depth="deep",
        budget=25,
        per_domain_cap=10,
        search="local",
        documents=documents,
        model=EXTRACTIVE,
    )
    async with open_environment(options, {}) as environment:
        if not (await research(options, environment)).passed:
            raise SystemExit("The run did not pass its audit.")


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        documents = Path(place, "books")
        bodies = [file.read_bytes() for file in copy_books(documents)]
        trafilatura.extract(bodies[0])
        alone = seconds(lambda: list(map(trafilatura.extract, bodies)), process_time)
        runs = [Path(place, f"runs{number}") for number in range(3)]
        used = median(seconds(lambda each=each: asyncio.run(run_once(each, documents)), used_seconds) for each in runs)
    log(f"{len(bodies)} pages: {used:.1f} s, trafilatura alone {alone:.1f} s")
    report("research", used / alone, 3.5)
