"""The demo: the whole product on its own narratives, every step through the parts that a project uses."""

import json
import os
from collections.abc import Callable, Iterator
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from annotation.campaign.people import NewUser
from annotation.campaign.setup import JuryDataset, find_datasets, set_up
from annotation.client import Argilla
from annotation.display import hidden_metadata
from annotation.embedded.server.launch import ServerHandle
from annotation.push.push import push_records
from exports.csv.fetch import Progress
from exports.csv.write import Export, export_csv
from exports.measure.files import Measured
from exports.measure.write import measure_and_write
from exports.progress import shown_progress
from exports.start.demo_jury import Juror, Jury, Unit, answers_unit, judge, note, read_jury, status
from exports.start.demo_research import research_library, with_research
from pipeline.asking.replay import replay_narratives
from pipeline.errors import ArgillaError, OutputError
from pipeline.recording.files import read_records, write_records
from pipeline.staging import staged_file

WORKSPACE = "demo"
YOU = "you"
OVERLAP = 3
RESPONSES_PER_CALL = 20  # argilla-server 2.8.0 takes 100 in POST /me/responses/bulk; fewer let the bar move

ANSWERS, RESEARCH, RECORDS, EXPORT, AGREEMENT, SERVER, LOGINS = (
    "answers",
    "research",
    "records.jsonl",
    "export",
    "agreement",
    "server",
    "logins.json",
)
OURS = frozenset({ANSWERS, RESEARCH, RECORDS, EXPORT, AGREEMENT, SERVER, LOGINS})

Say = Callable[[str], None]


class DemoReport(NamedTuple):
    """What the demo made."""

    measured: Measured
    """Agreement between the four annotators."""
    logins: dict[str, str]
    """Passwords by user name."""


def check_home(home: Path) -> None:
    """Nothing where the home is absent, empty, or an earlier demo's.

    Raises:
        OutputError: it holds something else, or is a file.
    """
    if home.exists() and not home.is_dir():
        raise OutputError(f"`{home}` is a file. Name a folder for the demo with `--home`.")
    names = {entry.name for entry in home.iterdir()} if home.exists() else set()
    # A file that begins with a dot is one of ours that a kill left half-written, or the system's.
    foreign = sorted(name for name in names - OURS if not name.startswith("."))
    if foreign:
        raise OutputError(
            f"The folder `{home}` holds {foreign[0]!r}, which is not the demo's. Name an empty or a new folder with "
            "`--home`."
        )


def run_demo(home: Path, server: ServerHandle, say: Say) -> DemoReport:
    """What the demo made in `home`: answers, a report, records, annotations in Argilla, an export, agreement.

    Run again on the same home, every step keeps what is there. `say` hears a line before each step.

    Raises:
        CitejuryError: as the steps raise.
    """
    data = Path(str(files("exports") / "demo_data"))
    say("1/6  Five providers answer twelve narratives (from stored payloads).")
    manifest = replay_narratives(data / "narratives.csv", home / ANSWERS, data / "payloads")
    say(f"     {manifest.answers} answers. A research run without a model adds a report on six documents.")
    report = research_library(data / "library", home / RESEARCH)
    written = write_records(home / RECORDS, chain(read_records(home / ANSWERS), [report]))
    say(f"2/6  {written.records} records, {written.with_passages} with passages. Setting up Argilla.")
    jury = with_research(read_jury(data), report)
    with Argilla(server.url, server.owner_api_key) as owner:
        logins = set_up_people(owner, home / LOGINS, [*(juror.username for juror in jury.jurors), YOU])
        say("3/6  Pushing the records: retrieval, grounding, generation.")
        push_records(owner, WORKSPACE, read_records(home / RECORDS))
        say("4/6  Four annotators answer, each as herself.")
        with shown_progress() as progress:
            datasets = find_datasets(owner, WORKSPACE).values()
            answered = sum(answer_queue(owner, dataset, jury, progress) for dataset in datasets)
        say(f"5/6  {answered} new responses. Exporting what was submitted.")
        export = export_csv(owner, WORKSPACE, home / EXPORT)
    say(f"6/6  {rows_of(export)}. Computing agreement.")
    return DemoReport(measure_and_write([home / EXPORT], home / AGREEMENT), logins)


def rows_of(export: Export) -> str:
    """The exported rows in words: `150 rows in retrieval.csv, …`."""
    return ", ".join(f"{file.rows} rows in {file.file}" for file in export.manifest.files)


def set_up_people(owner: Argilla, path: Path, names: list[str]) -> dict[str, str]:
    """Passwords by user name, after the workspace, its datasets and its people are there.

    The demo keeps the passwords in a file of its own, mode 600: a person who runs it again wants to log in again.
    """
    logins: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def remember(user: NewUser) -> None:
        logins[user.username] = user.password
        with staged_file(path) as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(json.dumps(logins, indent=2).encode())

    set_up(owner, WORKSPACE, annotators=names, min_submitted=OVERLAP, announce=remember)
    return logins


def answer_queue(owner: Argilla, dataset: JuryDataset, jury: Jury, progress: Progress) -> int:
    """How many responses the demo's annotators gave to a dataset now; what they answered before is kept."""
    people = {user["username"]: user for user in owner.request("GET", "/users")["items"]}
    records = [record for _, page in owner.record_pages(dataset.id) for record in page]
    items = {}
    for juror in jury.jurors:
        user_id = people[juror.username]["id"]
        open_records = [record for record in records if user_id not in responders(record)]
        items[juror.username] = list(responses_of(jury, juror, dataset, open_records))
    total = sum(map(len, items.values()))
    given = 0
    for username, responses in items.items():
        with Argilla(owner.api_url, people[username]["api_key"]) as herself:
            for first in range(0, len(responses), RESPONSES_PER_CALL):
                batch = responses[first : first + RESPONSES_PER_CALL]
                submit(herself, batch)
                given += len(batch)
                progress(dataset.name, given, total)
    return given


def responders(record: dict[str, Any]) -> set[str]:
    """Ids of the users who have a response to the record, of any status."""
    return {response["user_id"] for response in record["responses"]}


def responses_of(
    jury: Jury, juror: Juror, dataset: JuryDataset, records: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The annotator's responses to those of the records that she judges, as Argilla takes them."""
    for record in records:
        hidden = hidden_metadata(record)
        provenance = hidden["provenance"]
        unit = Unit(
            dataset.task, provenance["model_name"], provenance["narrative_id"], int(hidden.get("chunk_rank", 0))
        )
        if not answers_unit(juror, unit, jury.jurors):
            continue
        labels = judge(jury, juror, unit)
        values: dict[str, Any] = {label: {"value": "yes" if yes else "no"} for label, yes in labels.items()}
        if text := note(jury, juror, unit):
            values["notes"] = {"value": text}
        yield {"record_id": record["id"], "status": status(juror, unit), "values": values}


def submit(herself: Argilla, items: list[dict[str, Any]]) -> None:
    """Nothing; the responses are stored.

    Raises:
        ArgillaError: Argilla refused one of them; a bulk call answers 200 all the same.
    """
    for result in herself.request("POST", "/me/responses/bulk", json={"items": items})["items"]:
        if result.get("error"):
            raise ArgillaError(f"Argilla refused a response of the demo: {result['error'].get('detail')}.")
