"""The demo's research run: one topic, a small library that comes with the demo, no model and no network."""

import asyncio
import signal
from pathlib import Path
from urllib.parse import urlsplit

from exports.start.demo_jury import Jury
from pipeline.recording.files import read_records
from pipeline.recording.run import RESEARCH_RUN
from pipeline.records import QueryResponse
from pipeline.research.running.environment import opened_environment
from pipeline.research.running.options import EXTRACTIVE, ResearchOptions
from pipeline.research.stages.machine import research

TOPIC = "Butter or cool water on a burn"
RUN_ID = "butter_or_cool_water"
ANSWER = f"{RESEARCH_RUN}/{RUN_ID}"
"""The run's place among the demo's verdicts."""


def research_library(library: Path, runs_dir: Path) -> QueryResponse:
    """The record of the demo's research run, which is done where it is not there yet.

    Raises:
        CitejuryError: as `research` raises.
    """
    run = runs_dir / RUN_ID
    if not (run / f"{RESEARCH_RUN}.csv").is_file():
        options = ResearchOptions(
            topic=TOPIC,
            run_id=RUN_ID,
            runs_dir=runs_dir,
            depth="brief",
            budget=6,
            k=6,
            search="local",
            model=EXTRACTIVE,
            documents=library,
            offline=True,
        )
        # A research run hears SIGTERM by itself and leaves it to nobody; the demo's server wants it back.
        heard = signal.getsignal(signal.SIGTERM)
        try:
            asyncio.run(researched(options))
        finally:
            signal.signal(signal.SIGTERM, heard)
    return next(read_records(run))


async def researched(options: ResearchOptions) -> None:
    """Do the run; its files are in its folder.

    Raises:
        CitejuryError: as `research` raises.
    """
    async with opened_environment(options, {}) as environment:
        await research(options, environment)


def with_research(jury: Jury, record: QueryResponse) -> Jury:
    """The jury with its verdicts on the run's passages in the order of their ranks; they are written by document."""
    entry = jury.verdicts[ANSWER]
    documents = [document_name(passage.url) for passage in record.chunks]
    hard = {**entry["hard"], "retrieval": [entry["hard"]["retrieval"].get(name, []) for name in documents]}
    ordered = {**entry, "retrieval": [entry["retrieval"][name] for name in documents], "hard": hard}
    return jury._replace(verdicts={**jury.verdicts, ANSWER: ordered})


def document_name(url: str) -> str:
    """The file that a document's URL stands for, without its ending."""
    return Path(urlsplit(url).path).stem
