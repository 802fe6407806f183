"""The demo: the whole product on its own narratives, every step through the parts that a project uses."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from annotation.argilla.client import Argilla
from annotation.argilla.display import hidden_metadata
from annotation.argilla.labels import LABELS
from annotation.campaign.datasets import JuryDataset, find_datasets
from annotation.campaign.people import NewUser
from annotation.campaign.setup import set_up
from annotation.push.push import push_records
from exports.csv.fetch import Progress
from exports.csv.write import export_csv
from exports.report.files import FigureOptions, Measured, measure_and_write
from pipeline.asking.narratives import NarrativesCsv
from pipeline.asking.questions import Questions
from pipeline.asking.run import RecordedAnswers, ask_narratives, recorded_providers
from pipeline.core.errors import ArgillaError, OutputError
from pipeline.core.files import write_private
from pipeline.core.terminal import ProgressBars
from pipeline.records.citation_form import RESEARCH_RUN
from pipeline.records.run import read_records, write_records
from pipeline.records.schema import QueryResponse
from pipeline.research.options import EXTRACTIVE, ResearchOptions
from pipeline.research.run import open_environment
from pipeline.research.stages import research

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

Said = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""What annotators say: by answer (`provider/narrative_id`), by unit (a task, `retrieval 2` of a passage), by person."""


_RUN_ID = "butter_or_cool_water"
_ANSWERS_ID = "5f3f9f0e-6d0c-4b53-9a62-0d0c1e6f2a11"
"""Id of the run whose answers every demo has: figures that are resampled by the order of ids come out the same."""


def research_library(library: Path, runs_dir: Path) -> QueryResponse:
    """The record of the demo's research run, which is done where it is not there yet."""
    run = runs_dir / _RUN_ID
    if not (run / f"{RESEARCH_RUN}.csv").is_file():
        options = ResearchOptions(
            topic="Butter or cool water on a burn",
            run_id=_RUN_ID,
            runs_dir=runs_dir,
            depth="brief",
            budget=6,
            k=6,
            search="local",
            model=EXTRACTIVE,
            documents=library,
            offline=True,
        )

        async def run_once() -> None:
            async with open_environment(options, {}) as environment:
                await research(options, environment)

        asyncio.run(run_once())
    return next(read_records(run))


WORKSPACE = "demo"
YOU = "you"
_RESPONSES_PER_CALL = 20  # argilla-server 2.8.0 takes 100 in POST /me/responses/bulk; fewer let the bar move

_OURS = ("answers", "research", "records.jsonl", "export", "agreement", "server", "logins.json")
ANSWERS, RESEARCH, RECORDS, EXPORT, AGREEMENT, SERVER, _LOGINS = _OURS


class DemoReport(NamedTuple):
    measured: Measured
    logins: dict[str, str]


def check_home(home: Path) -> None:
    if home.exists() and not home.is_dir():
        raise OutputError(f"`{home}` is a file. Name a folder for the demo with `--home`.")
    names = {entry.name for entry in home.iterdir()} if home.exists() else set()
    # A file that begins with a dot is one of ours that a kill left half-written, or the system's.
    foreign = sorted(name for name in names.difference(_OURS) if not name.startswith("."))
    if foreign:
        raise OutputError(
            f"The folder `{home}` holds {foreign[0]!r}, which is not the demo's. Name an empty or a new folder with "
            "`--home`."
        )


def run_demo(home: Path, server: "ServerHandle", say: Callable[[str], None]) -> DemoReport:
    """Make all of the demo in `home`; run again, every step keeps what is there. `say` hears a line before each."""
    data = Path(str(files("exports") / "demo_data"))
    say("1/6  Five providers answer twelve narratives (from stored payloads).")
    asked, payloads = NarrativesCsv(data / "narratives.csv"), data / "payloads"
    questions = Questions(asked, recorded_providers(payloads), {}, run_id=_ANSWERS_ID)
    manifest = asyncio.run(ask_narratives(questions, home / ANSWERS, RecordedAnswers(payloads)))
    say(f"     {manifest.answers} answers. A research run without a model adds a report on six documents.")
    report = research_library(data / "library", home / RESEARCH)
    written = write_records(home / RECORDS, chain(read_records(home / ANSWERS), [report]))
    say(f"2/6  {written.records} records, {written.with_passages} with passages. Setting up Argilla.")
    said: Said = json.loads((data / "responses.json").read_text(encoding="utf-8"))
    jury = sorted({who for units in said.values() for people in units.values() for who in people})
    with Argilla(server.url, server.owner_api_key) as owner:
        logins = _set_up_people(owner, home / _LOGINS, [*jury, YOU])
        say("3/6  Pushing the records: retrieval, grounding, generation.")
        push_records(owner, WORKSPACE, read_records(home / RECORDS))
        say("4/6  Four annotators answer, each as herself.")
        with ProgressBars("records") as bars:
            datasets = find_datasets(owner, WORKSPACE).values()
            answered = sum(_answer_queue(owner, dataset, said, jury, bars.report) for dataset in datasets)
        say(f"5/6  {answered} new responses. Exporting what was submitted.")
        export = export_csv(owner, WORKSPACE, home / EXPORT)
    rows = ", ".join(f"{file.rows} rows in {file.file}" for file in export.manifest.files if file.task)
    say(f"6/6  {rows}. Computing agreement.")
    options = FigureOptions(runs=(home / ANSWERS, home / RESEARCH / _RUN_ID, home / RECORDS))
    return DemoReport(measure_and_write([home / EXPORT], home / AGREEMENT, options), logins)


def _set_up_people(owner: Argilla, path: Path, names: list[str]) -> dict[str, str]:
    """Passwords by user name, in a file of our own, mode 600: a person who runs it again wants to log in again."""
    logins: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def remember(user: NewUser) -> None:
        logins[user.username] = user.password
        write_private(path, json.dumps(logins, indent=2))

    set_up(owner, WORKSPACE, annotators=names, min_submitted=3, announce=remember)
    return logins


def _answer_queue(owner: Argilla, dataset: JuryDataset, said: Said, jury: Sequence[str], progress: Progress) -> int:
    """How many responses the demo's annotators gave to a dataset now; what they answered before is kept."""
    people = {user["username"]: user for user in owner.request("GET", "/users")["items"]}
    records = [record for _, page in owner.record_pages(dataset.id) for record in page]
    items = {who: list(_responses_of(said, who, people[who]["id"], dataset, records)) for who in jury}
    total = sum(map(len, items.values()))
    given = 0
    for username, responses in items.items():
        with Argilla(owner.api_url, people[username]["api_key"]) as herself:
            for first in range(0, len(responses), _RESPONSES_PER_CALL):
                batch = responses[first : first + _RESPONSES_PER_CALL]
                for result in herself.request("POST", "/me/responses/bulk", json={"items": batch})["items"]:
                    if result.get("error"):
                        raise ArgillaError(f"Argilla refused a response of the demo: {result['error'].get('detail')}.")
                given += len(batch)
                progress(dataset.name, given, total)
    return given


def _responses_of(
    said: Said, who: str, user_id: str, dataset: JuryDataset, records: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    for record in records:
        hidden = hidden_metadata(record)
        answer = "{model_name}/{narrative_id}".format(**hidden["provenance"])
        rank = hidden.get("chunk_rank")
        told = said.get(answer, {}).get(f"{dataset.task} {rank}" if rank else dataset.task, {}).get(who)
        if told and all(each["user_id"] != user_id for each in record["responses"]):
            values = {label: {"value": "yes" if label in told["yes"] else "no"} for label in LABELS[dataset.task]}
            values |= {"notes": {"value": told["notes"]}} if "notes" in told else {}
            yield {"record_id": record["id"], "status": told.get("status", "submitted"), "values": values}
