"""Deep runs without a model over Debian's English manuals, 154 pages: the whole of one, and its stages.

`research`: all processor time of the first run, which reads every page in processes of its own, against trafilatura
alone on the same bytes. `plan`, `extract`, `write`, `audit`: the median of three runs, each in a process that has read
nothing before, against reading once the 25 pages that a run rests on: their sentences, the words of these, and the form
quotes are looked up in. Seconds go to stderr. Prints a line each: name, ratio, goal, `ok` or `short`.
"""

import asyncio
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import process_time

import trafilatura

sys.path.insert(0, str(Path(__file__).parents[2]))

from pipeline.research.running.environment import Environment, open_environment
from pipeline.research.running.options import EXTRACTIVE, ResearchOptions
from pipeline.research.running.research_run import Progress
from pipeline.research.stages.run_stages import research
from pipeline.research.values import Stage
from pipeline.text.coverage import words_and_numbers
from pipeline.text.normal_form import normal_form
from pipeline.text.sentences import sentence_spans
from tests.support.debian_pages import DEBIAN_REFERENCE, DEVELOPERS_REFERENCE, HANDBOOK, PLACES

TOPIC = "How does Debian verify the signatures of packages, and which risks are left to administrators?"
WHOLE_GOAL = 3.5
GOALS: dict[Stage, float] = {"plan": 0.05, "extract": 3.0, "write": 0.4, "audit": 0.4}
RUNS = 3
PAGES = 25
CAP = 10
BOOKS = {"handbook": f"{HANDBOOK}/en-US", "reference": DEBIAN_REFERENCE, "developers": DEVELOPERS_REFERENCE}


class Stopwatch:
    """Processor seconds of this process by stage, all rounds together."""

    def __init__(self) -> None:
        """Nothing measured yet."""
        self.taken = defaultdict[Stage, float](float)
        self.began = 0.0

    def begin(self, stage: Stage, round_: int) -> None:
        """A pass of a stage begins."""
        self.began = process_time()

    def end(self, stage: Stage, round_: int, words: str) -> None:
        """It is done."""
        self.taken[stage] += process_time() - self.began


def copy_books(folder: Path) -> list[Path]:
    """The HTML pages of the books, each book in a folder of its own as if it were a site."""
    for name, path in BOOKS.items():
        place = next((place / path for place in PLACES if (place / path).exists()), None)
        if place is None:
            raise SystemExit("Debian's manuals are not here: `make pages` fetches them.")
        (folder / name).mkdir(parents=True)
        for file in (place if place.is_dir() else place.parent).glob("*.html"):
            shutil.copyfile(file, folder / name / file.name)
    return sorted(folder.rglob("*.html"))


def used_seconds() -> float:
    """Processor seconds of this process and of those that it started and that have ended."""
    children = getrusage(RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


async def run_once(runs_dir: Path, documents: Path, number: int) -> tuple[Stopwatch, list[str]]:
    """One run: how long its stages took, and the texts of its pages."""
    watch = Stopwatch()
    options = ResearchOptions(
        topic=TOPIC,
        run_id=f"r{number}",
        runs_dir=runs_dir,
        depth="deep",
        budget=PAGES,
        per_domain_cap=CAP,
        search="local",
        documents=documents,
        model=EXTRACTIVE,
    )
    report = Progress(begin=watch.begin, end=watch.end)
    async with open_environment(options, {}, report=report) as environment:
        finished = await research(options, environment)
        texts = texts_of(environment, finished.run_id)
    if not finished.passed or len(texts) < PAGES // 2:
        raise SystemExit(f"{len(texts)} pages were read; passed: {finished.passed}.")
    return watch, texts


def measured_run(runs_dir: Path, documents: Path, number: int) -> tuple[dict[Stage, float], int, float]:
    """A run in a process that has read nothing before: seconds by stage, its pages, and seconds to read these once."""
    watch, texts = asyncio.run(run_once(runs_dir, documents, number))
    return dict(watch.taken), len(texts), reading_seconds(texts)


def texts_of(environment: Environment, run_id: str) -> list[str]:
    """The texts of the pages that the run rests on."""
    store = environment.store
    urls = [event.payload["url"] for event in store.events(run_id) if event.kind == "fetch_result"]
    return [page.text for url in urls if (page := store.page(url, with_raw=False))]


def reading_seconds(texts: Sequence[str]) -> float:
    """How long it takes to read the texts once."""
    start = process_time()
    for text in texts:
        normal_form(text)
        for begin, end in sentence_spans(text, "en"):
            words_and_numbers(text[begin:end], "")
    return process_time() - start


def extracting_seconds(files: Sequence[Path]) -> float:
    """How long trafilatura takes over the files."""
    bodies = [file.read_bytes() for file in files]
    trafilatura.extract(bodies[0])
    start = process_time()
    for body in bodies:
        trafilatura.extract(body)
    return process_time() - start


def main() -> None:
    """Print the rows."""
    with tempfile.TemporaryDirectory() as place:
        documents, runs_dir = Path(place, "books"), Path(place, "runs")
        files = copy_books(documents)
        alone = extracting_seconds(files)
        pairs, used = [], []
        for number in range(RUNS):
            start = used_seconds()
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                taken, texts, reading = process.submit(measured_run, runs_dir, documents, number).result()
            used.append(used_seconds() - start - reading)
            pairs.append((taken, reading))
    sys.stderr.write(f"{len(files)} pages: {used[0]:.1f} s, trafilatura alone {alone:.1f} s\n")
    show("research", used[0] / alone, WHOLE_GOAL)
    floor = median(reading for _, reading in pairs)
    taken = {stage: median(found[stage] for found, _ in pairs) for stage in pairs[0][0]}
    seconds = ", ".join(f"{stage} {value:.2f}" for stage, value in taken.items())
    sys.stderr.write(f"{texts} pages read once in {floor:.2f} s; {seconds}\n")
    for stage, goal in GOALS.items():
        show(stage, taken[stage] / floor, goal)


def show(name: str, ratio: float, goal: float) -> None:
    """Print a row."""
    sys.stdout.write(f"{name}\t{ratio:.2f}\t<={goal:.2f}\t{'ok' if ratio <= goal else 'short'}\n")


if __name__ == "__main__":
    main()
