"""The demo: the whole product on its own narratives, every step through the parts that a project uses."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from annotation.argilla.client import Argilla
from annotation.argilla.display import hidden_metadata
from annotation.argilla.labels import LABELS, TaskName
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

_DRAFT_SHARE = _DISCARD_SHARE = 0.015
"""As people do, one in so many is left as a draft, and one in so many is discarded."""


class _Unit(NamedTuple):
    task: TaskName
    provider: str
    narrative_id: str
    chunk_rank: int  # rank of the passage, counted from 1; 0 for a whole answer


class _Juror(NamedTuple):
    username: str
    first_name: str
    last_name: str
    care: float  # how rarely she slips: 1 is never


class Jury(NamedTuple):
    jurors: tuple[_Juror, ...]
    verdicts: Mapping[str, Any]
    notes: Mapping[tuple[str, str], str]  # text of a note by answer (`provider/narrative_id`) and task


def read_jury(folder: Traversable) -> Jury:
    people = json.loads((folder / "annotators.json").read_text(encoding="utf-8"))
    return Jury(
        jurors=tuple(_Juror(**each) for each in people["annotators"]),
        verdicts=json.loads((folder / "verdicts.json").read_text(encoding="utf-8")),
        notes={(each["answer"], each["task"]): each["text"] for each in people["notes"]},
    )


def _answers_unit(juror: _Juror, unit: _Unit, jurors: Sequence[_Juror]) -> bool:
    if _chance("left", *map(str, unit)) < 1 / 9:  # left to whoever tries the demo
        return False
    absent = int(_chance("absent", *map(str, unit)) * len(jurors))
    return jurors.index(juror) != absent


def _judge(jury: Jury, juror: _Juror, unit: _Unit) -> dict[str, bool]:
    entry = jury.verdicts[f"{unit.provider}/{unit.narrative_id}"]
    verdict, hard = entry[unit.task], entry.get("hard", {}).get(unit.task, [])
    if unit.task == "retrieval":
        verdict, hard = verdict[unit.chunk_rank - 1], (hard[unit.chunk_rank - 1] if hard else [])
    departs = {
        label: _chance(juror.username, label, *map(str, unit)) < (0.3 if label in hard else 1 - juror.care)
        for label in LABELS[unit.task]
    }
    return {label: verdict[label] ^ departs[label] for label in LABELS[unit.task]}


def _note(jury: Jury, juror: _Juror, unit: _Unit) -> str:
    """What the annotator writes beside her labels; the first one who judges a unit leaves its note, if it has one."""
    first = next((each for each in jury.jurors if _answers_unit(each, unit, jury.jurors)), None)
    return jury.notes.get((f"{unit.provider}/{unit.narrative_id}", unit.task), "") if juror == first else ""


def _chance(*words: str) -> float:
    digest = hashlib.sha256("\0".join(words).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


_RUN_ID = "butter_or_cool_water"
_ANSWERS_ID = "5f3f9f0e-6d0c-4b53-9a62-0d0c1e6f2a11"
"""Id of the run whose answers every demo has: figures that are resampled by the order of ids come out the same."""
ANSWER = f"{RESEARCH_RUN}/{_RUN_ID}"


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


def with_research(jury: Jury, record: QueryResponse) -> Jury:
    """The jury with its verdicts on the run's passages in the order of their ranks; they are written by document."""
    entry = jury.verdicts[ANSWER]
    documents = [document_name(passage.url) for passage in record.chunks]
    hard = {**entry["hard"], "retrieval": [entry["hard"]["retrieval"].get(name, []) for name in documents]}
    ordered = {**entry, "retrieval": [entry["retrieval"][name] for name in documents], "hard": hard}
    return jury._replace(verdicts={**jury.verdicts, ANSWER: ordered})


def document_name(url: str) -> str:
    return Path(urlsplit(url).path).stem


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
    jury = with_research(read_jury(data), report)
    with Argilla(server.url, server.owner_api_key) as owner:
        logins = _set_up_people(owner, home / _LOGINS, [*(juror.username for juror in jury.jurors), YOU])
        say("3/6  Pushing the records: retrieval, grounding, generation.")
        push_records(owner, WORKSPACE, read_records(home / RECORDS))
        say("4/6  Four annotators answer, each as herself.")
        with ProgressBars("records") as bars:
            datasets = find_datasets(owner, WORKSPACE).values()
            answered = sum(_answer_queue(owner, dataset, jury, bars.report) for dataset in datasets)
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


def _answer_queue(owner: Argilla, dataset: JuryDataset, jury: Jury, progress: Progress) -> int:
    """How many responses the demo's annotators gave to a dataset now; what they answered before is kept."""
    people = {user["username"]: user for user in owner.request("GET", "/users")["items"]}
    records = [record for _, page in owner.record_pages(dataset.id) for record in page]
    items = {}
    for juror in jury.jurors:
        user_id = people[juror.username]["id"]
        open_records = [record for record in records if all(each["user_id"] != user_id for each in record["responses"])]
        items[juror.username] = list(_responses_of(jury, juror, dataset, open_records))
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
    jury: Jury, juror: _Juror, dataset: JuryDataset, records: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    for record in records:
        hidden = hidden_metadata(record)
        provenance = hidden["provenance"]
        unit = _Unit(
            dataset.task, provenance["model_name"], provenance["narrative_id"], int(hidden.get("chunk_rank", 0))
        )
        if not _answers_unit(juror, unit, jury.jurors):
            continue
        labels = _judge(jury, juror, unit)
        values: dict[str, Any] = {label: {"value": "yes" if yes else "no"} for label, yes in labels.items()}
        if text := _note(jury, juror, unit):
            values["notes"] = {"value": text}
        drawn = _chance("status", juror.username, *map(str, unit))
        status = "draft" if drawn < _DRAFT_SHARE else "submitted"
        if _DRAFT_SHARE <= drawn < _DRAFT_SHARE + _DISCARD_SHARE:
            status = "discarded"
        yield {"record_id": record["id"], "status": status, "values": values}
