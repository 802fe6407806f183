"""What earlier commits left behind is opened, continued and exported without loss.

`tests/data/made_by_<commit>/README.md` says how each was made.
"""

import csv
import io
import json
import re
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from click.testing import CliRunner, Result
from pydantic import SecretStr

from annotation.argilla.client import Argilla
from annotation.argilla.display import unit_id
from annotation.argilla.wording import read_wording
from annotation.campaign.file import read_campaign
from annotation.campaign.routing import as_it_stands, plan_routes, routing_metadata
from exports.cli import main
from pipeline.text.words import Languages
from tests.support.made_before import files_of, run, unpacked

NEW, OLD = "9c300d48", "17a5a56"
PROVIDERS = ("openai", "claude", "gemini", "grok", "perplexity")
INDEXES = {f"{provider}.index.jsonl" for provider in PROVIDERS}
TASKS = ("retrieval", "grounding", "generation")
DRAFTER = "ben"
"""Who left a draft in every home."""

Responses = dict[str, dict[str, dict[str, Any]]]
"""By workspace and dataset, external id and user name."""
Records = dict[str, dict[str, dict[str, Any]]]
"""Records with their responses by workspace and dataset, and external id."""


class Served(NamedTuple):
    """The server on the old home, and the folder with everything else that was made."""

    folder: Path
    environment: Mapping[str, str]
    http: httpx.Client

    def run(self, *words: str, code: int = 0, within: str = "campaign") -> Result:
        with chdir(self.folder / within):
            result = CliRunner(env=self.environment).invoke(main, words)
        assert result.exit_code == code, result.output
        return result

    def call(self, method: str, path: str, headers: Mapping[str, str] | None = None, **words: Any) -> Any:
        """What the server answers, to the owner where no other header says who asks."""
        who = headers or {"X-Argilla-Api-Key": self.environment["ARGILLA_API_KEY"]}
        response = self.http.request(method, f"/api/v1{path}", headers=who, **words)
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text[:300]}"
        return response.json()

    def login(self, name: str) -> dict[str, str]:
        passwords = json.loads((self.folder / "campaign" / "passwords.json").read_text(encoding="utf-8"))
        login = {"username": name, "password": passwords[name]}
        return {"Authorization": f"Bearer {self.call('POST', '/token', data=login)['access_token']}"}

    def listed(self) -> dict[str, dict[str, Any]]:
        workspaces = {each["id"]: each["name"] for each in self.call("GET", "/me/workspaces")["items"]}
        listed = self.call("GET", "/me/datasets")["items"]
        return {f"{workspaces[each['workspace_id']]}/{each['name']}": each for each in listed}

    def datasets(self) -> dict[str, dict[str, Any]]:
        return {
            name: each | {part: self.call("GET", f"/datasets/{each['id']}/{part}") for part in ("fields", "questions")}
            for name, each in self.listed().items()
        }

    def records(self) -> Records:
        path = "/datasets/{}/records?limit=500&include=responses"
        pages = {name: self.call("GET", path.format(each["id"])) for name, each in self.listed().items()}
        return {name: {unit_id(each): each for each in page["items"]} for name, page in pages.items()}

    def responses(self) -> Responses:
        names = {each["id"]: each["username"] for each in self.call("GET", "/users")["items"]}
        kept = ("status", "values", "updated_at")
        found: Responses = {}
        for dataset, records in self.records().items():
            for unit, record in records.items():
                for each in record["responses"]:
                    of_record = found.setdefault(dataset, {}).setdefault(unit, {})
                    of_record[names[each["user_id"]]] = {name: each[name] for name in kept}
        return found

    def units(self) -> dict[str, list[str]]:
        records = json_lines(self.folder / "campaign" / "records.jsonl")
        with_passages = [each for each in records if each["chunks"]]
        passages = [f"{each['record_uuid']}:{chunk['chunk_id']}" for each in with_passages for chunk in each["chunks"]]
        answers = [[each["record_uuid"] for each in some] for some in (with_passages, records)]
        return {"retrieval": passages, "grounding": answers[0], "generation": answers[1]}

    def exported(self, out: Path) -> dict[str, bytes]:
        """Files of the same exports as those that were made, by their path, but for what was not written then."""
        self.run("exports", "csv", str(out / "export"))
        self.run("exports", "csv", str(out / "export_extended"), "--extended", "--discarded")
        found = {path.relative_to(out).as_posix(): path for path in out.glob("*/*") if path.suffix != ".json"}
        return {name: path.read_bytes() for name, path in found.items() if (self.folder / name).exists()}

    def submit_the_rest(self, name: str, records: Records) -> set[tuple[str, str, str]]:
        """Submit somebody's drafts, and yes to all labels of those records that they have not answered.

        Gives task, external id and user name of each.
        """
        themselves = self.login(name)
        user_id = self.call("GET", "/me", headers=themselves)["id"]
        datasets, submitted = self.datasets(), set()
        for dataset, units in records.items():
            questions = datasets[dataset]["questions"]["items"]
            labels = [each["name"] for each in questions if each["settings"]["type"] == "label_selection"]
            body = {"status": "submitted", "values": {label: {"value": "yes"} for label in labels}}
            for external_id, record in units.items():
                theirs = [each for each in record["responses"] if each["user_id"] == user_id]
                if any(each["status"] != "draft" for each in theirs):
                    continue
                place = ("PUT", f"/responses/{theirs[0]['id']}") if theirs else None
                self.call(*(place or ("POST", f"/records/{record['id']}/responses")), headers=themselves, json=body)
                submitted.add((dataset.split("-")[-2], external_id, name))
        return submitted


@contextmanager
def served_home(folder: Path) -> Iterator[Served]:
    """The old home in the folder, served by today's `annotation serve`."""
    command = [sys.executable, "-c", "from exports.cli import main; main()", "annotation", "serve", "--port", "0"]
    with subprocess.Popen([*command, "--home", folder / "home"], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            said = next((line for line in server.stderr if "Ctrl-C" in line), None)
            assert said, "the server ended before it said how to end it"
            lines = (folder / "home" / "env").read_text(encoding="utf-8").split()
            environment = dict(line.replace("'", "").split("=", 1) for line in lines)
            with httpx.Client(base_url=environment["ARGILLA_API_URL"], trust_env=False, timeout=60) as http:
                yield Served(folder, environment, http)
        finally:
            server.terminate()
            server.stderr.read()


def raw_rows(file: bytes) -> list[str]:
    """The rows of a CSV file as they are written, without the header."""
    lines = file.decode("utf-8").split("\n")
    reader = csv.reader(line + "\n" for line in lines[:-1])
    ends = [reader.line_num for _ in reader]
    return ["\n".join(lines[start:end]) for start, end in pairwise(ends)]


def csv_rows(file: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(file.decode("utf-8"), newline="")))


def rows_by_unit(file: bytes) -> dict[tuple[str, str, str], dict[str, str]]:
    return {(row["record_uuid"], row.get("chunk_id", ""), row["annotator_id"]): row for row in csv_rows(file)}


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_json_lines(path: Path, values: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in values), encoding="utf-8")


def holds_all(new: list[dict[str, Any]], old: list[dict[str, Any]]) -> bool:
    """Whether each old line is among the new ones with every value that it had, in provenance and sources too."""

    def holds(after: dict[str, Any], before: dict[str, Any]) -> bool:
        values = {name: value for name, value in before.items() if name not in ("provenance", "sources")}
        parts = [(before.get("provenance", {}), after.get("provenance", {}))]
        parts += zip(before.get("sources", ()), after.get("sources", ()), strict=True)
        return values.items() <= after.items() and all(old.items() <= new.items() for old, new in parts)

    return len(new) == len(old) and all(holds(*each) for each in zip(new, old, strict=True))


def old_columns(new: bytes, old: bytes) -> bytes:
    """The new file without the columns that it has more than the old one; both are CSV as exports write it."""
    out = io.StringIO(newline="")
    names = next(csv.reader(io.StringIO(old.decode("utf-8"), newline="")))
    writer = csv.DictWriter(out, names, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(csv_rows(new))
    return out.getvalue().encode("utf-8")


def without_wording(datasets: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The datasets without the texts that annotators read in them, and without when these were changed."""

    def rest(part: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in part.items() if key not in {"title", "description", "updated_at"}}

    return {
        name: {key: value for key, value in rest(dataset).items() if key not in {"guidelines", "last_activity_at"}}
        | {part: [rest(each) for each in dataset[part]["items"]] for part in ("fields", "questions")}
        for name, dataset in datasets.items()
    }


@pytest.mark.server
@pytest.mark.parametrize(
    ("commit", "whole"),
    [
        (NEW, False),
        pytest.param(NEW, True, marks=pytest.mark.rare),
        pytest.param(OLD, True, marks=pytest.mark.rare),
    ],
)
def test_a_home_is_served_continued_and_exported_without_loss(commit: str, whole: bool, tmp_path: Path) -> None:
    """The whole has practice, research, a study and updates of old exports too."""
    pytest.importorskip("uvicorn", reason="the server is not installed here")
    with served_home(unpacked(commit, tmp_path / "made")) as served:
        responses, datasets, files = served.responses(), served.datasets(), served.exported(tmp_path / "found")
        assert responses == json.loads((served.folder / "responses.json").read_text(encoding="utf-8"))
        of_each = [each for records in responses.values() for people in records.values() for each in people.values()]
        assert {each["status"] for each in of_each} == {"submitted", "draft", "discarded"}
        exports_decisions_and_history_have_the_same_bytes(served, files, tmp_path / "found")
        a_draft_is_found_with_the_old_password(served, responses)
        if commit == NEW and whole:
            practice_replies_and_controls_are_as_they_were(served)

        served.run("annotation", "setup", "--yes", "--passwords", "passwords.json")
        set_up = served.datasets()
        assert (without_wording(set_up), served.responses()) == (without_wording(datasets), responses)
        earlier = served.records()
        served.run("annotation", "push", "records.jsonl")
        records = served.records()
        ids = {name: {unit: each["external_id"] for unit, each in of.items()} for name, of in records.items()}
        assert all(ids[name][unit] == each["external_id"] for name, of in earlier.items() for unit, each in of.items())
        the_rest_of_the_records_went_in(served, records, 2 if commit == NEW else 0)
        if whole:
            served.run("annotation", "push", "records.jsonl")
            assert served.records() == records
        if commit == NEW and whole:
            a_finished_research_run_is_there_already(served)
        elif commit == OLD:
            the_wording_is_new(served, set_up)
            an_old_campaign_goes_on_in_its_workspace_and_by_its_rule_of_calibration(served, set_up, records)

        english = {name: each for name, each in records.items() if re.match(r"jury(-en)?/.*-en$", name)}
        submitted = served.submit_the_rest(DRAFTER, units_of_the_campaign(served, english))
        after, work = served.responses(), served.exported(tmp_path / "work")
        old_answers_stay_and_new_ones_come_out(responses, files, submitted, after, work)
        status_counts_the_old_and_the_new_answers(served, after)
        if commit == NEW and whole:
            earlier_exports_are_brought_up_to_date(served, work, tmp_path)
            a_study_goes_on_with_its_second_month(served)
        elif commit == OLD:
            for task in TASKS:
                old, new = (rows_by_unit(each[f"export_extended/{task}.csv"]) for each in (files, work))
                versions = {row["guideline_version"] for row in old.values()}
                assert versions.isdisjoint(new[unit]["guideline_version"] for unit in new.keys() - old.keys())
            the_history_begins_with_the_first_start(served, submitted, tmp_path)
            a_new_version_shows_the_query(served, [name for name in datasets if "-grounding-" in name])
            assert served.exported(tmp_path / "renewed") == work


def units_of_the_campaign(served: Served, records: Records) -> Records:
    """Those of the records; the server has a study's and a research run's too."""
    units = {unit for of_task in served.units().values() for unit in of_task}
    return {name: {unit: each[unit] for unit in each if unit in units} for name, each in records.items()}


def exports_decisions_and_history_have_the_same_bytes(served: Served, files: dict[str, bytes], out: Path) -> None:
    words = ("--out", str(out / "decisions.csv"), "--export", str(served.folder / "export_extended"))
    served.run("exports", "adjudicate", "read", *words)
    if (served.folder / "history.csv").exists():
        served.run("exports", "csv", "--history", str(out / "history.csv"))
        assert json_lines(served.folder / "export" / "evidence.jsonl")
    files = files | {path.name: path.read_bytes() for path in out.glob("*.csv")}
    made = {name: (served.folder / name).read_bytes() for name in files}
    assert len(made) in (11, 20)
    # An index is made anew where its version changes; what earlier versions called unresolved has more columns since.
    today = {
        name: old_columns(content, made[name]) if re.search(r"export_extended/.*csv|provenance\.csv", name) else content
        for name, content in files.items()
        if not name.endswith("index.jsonl")
    }
    assert today == {name: made[name] for name in today}


def a_draft_is_found_with_the_old_password(served: Served, responses: Responses) -> None:
    (draft,) = (
        (dataset, external_id, people[DRAFTER]["values"])
        for dataset, records in responses.items()
        for external_id, people in records.items()
        if people.get(DRAFTER, {}).get("status") == "draft"
    )
    record = served.records()[draft[0]][draft[1]]
    seen = served.call("GET", f"/records/{record['id']}", headers=served.login(DRAFTER))
    assert [each["values"] for each in seen["responses"]] == [draft[2]]


def practice_replies_and_controls_are_as_they_were(served: Served) -> None:
    shown = [line.split() for line in served.run("annotation", "practice").stdout.splitlines()]
    opened = {(row[1], row[2]): " ".join(row[-2:]) for row in shown if row[:1] == ["generation"]}
    assert (opened["en", "ben"], opened["en", "anna"]) == ("the lead", "1 yes")
    assert "0 questions without a reply, 1 with one" in served.run("annotation", "reply").output
    assert "anna              2  80% [38, 96]  60% [23, 88]" in served.run("annotation", "status").stdout


def the_rest_of_the_records_went_in(served: Served, records: Records, controls: int) -> None:
    for task, units in served.units().items():
        names = [name for name in records if re.match(rf"jury(-en|-de)?/(?!practice-).*-{task}-", name)]
        there = {unit for name in names for unit in records[name]}
        assert set(units) <= there
        assert len(there) == len(units) + (controls if task == "generation" else 0)


def a_finished_research_run_is_there_already(served: Served) -> None:
    rows = [line.split() for line in served.run("annotation", "push", "../runs/burns").stdout.splitlines()]
    counts = [row[-5:] for row in rows if row[:1] and row[0] in TASKS]
    assert sum(int(unchanged) for _, unchanged, *_ in counts) > 0
    assert {count for new, _, *rest in counts for count in (new, *rest)} == {"0"}


def the_wording_is_new(served: Served, datasets: Mapping[str, Mapping[str, Any]]) -> None:
    for name, dataset in datasets.items():
        if name.startswith("jury/"):
            task, locale = name.split("-")[-2:]
            wording = read_wording(locale)
            assert dataset["guidelines"] == wording.guidelines[task]
            shown = {each["name"]: (each["title"], each["description"]) for each in dataset["questions"]["items"]}
            assert shown == {**wording.questions[task], "notes": wording.notes}
    assert "titles" not in served.run("annotation", "setup", "--dry-run").stdout


def an_old_campaign_goes_on_in_its_workspace_and_by_its_rule_of_calibration(
    served: Served, datasets: Mapping[str, Mapping[str, Any]], records: Records
) -> None:
    """Its people do not share all languages: a new campaign would have a workspace for each, and another rule."""
    campaign = read_campaign(served.folder / "campaign" / "citejury.toml")
    assert campaign is not None
    assert campaign.parts_languages
    with Argilla(served.environment["ARGILLA_API_URL"], SecretStr(served.environment["ARGILLA_API_KEY"])) as argilla:
        standing = as_it_stands(argilla, campaign, "jury")
    assert (standing.parts_languages, standing.calibration and standing.calibration.rule) == (False, 1)
    routings = [each["metadata"]["routing"] for each in datasets.values() if "routing" in each["metadata"]]
    assert routings
    assert all(each == routing_metadata(standing) and "rule" not in each["calibration"] for each in routings)
    assert {name.partition("/")[0] for name in records} == {"jury", "jury-adjudication"}
    fresh = [(f"new-{number}", Languages(*[("en", "de")[number % 2]] * 2)) for number in range(40)]
    bare = {uuid for uuid, _ in fresh[6:]}
    by_old = plan_routes(fresh, {}, standing, "jury", bare)
    assert by_old == plan_routes(fresh, {}, standing, "jury")  # whatever has passages
    assert {place.workspace for place in by_old.values()} == {"jury"}
    by_new = plan_routes(fresh, {}, campaign, "jury", bare)
    assert {place.workspace for place in by_new.values()} == {"jury-en", "jury-de"}


def old_answers_stay_and_new_ones_come_out(
    before: Responses,
    files: Mapping[str, bytes],
    submitted: set[tuple[str, str, str]],
    after: Responses,
    work: Mapping[str, bytes],
) -> None:
    """Only the draft has changed; all old rows of the export have the same bytes and keep their guidelines."""
    for dataset, records in before.items():
        for external_id, people in records.items():
            for name, response in people.items():
                if (name, response["status"]) != (DRAFTER, "draft"):
                    assert after[dataset][external_id][name] == response
    assert {task for task, _, _ in submitted} == set(TASKS)
    for task in TASKS:
        rows, now = (raw_rows(each[f"export/{task}.csv"]) for each in (files, work))
        assert rows
        assert not set(rows) - set(now)
        old, new = (rows_by_unit(each[f"export_extended/{task}.csv"]) for each in (files, work))
        units = {(*external_id.partition(":")[::2], who) for which, external_id, who in submitted if which == task}
        assert new.keys() - old.keys() == units
        assert old.keys() <= new.keys()
        assert [new[unit]["guideline_version"] for unit in old] == [old[unit]["guideline_version"] for unit in old]


def status_counts_the_old_and_the_new_answers(served: Served, responses: Responses) -> None:
    """All that is submitted in the campaign's workspaces on its records."""
    status = json.loads(served.run("annotation", "status", "--json").stdout)["datasets"]
    counted = {
        f"{each['workspace']}/{each['dataset']}": sum(who["done"] for who in each["annotators"]) for each in status
    }
    ours = units_of_the_campaign(served, {name: each for name, each in responses.items() if name[:5] != "jury-a"})
    submitted = Counter(
        dataset
        for dataset, records in ours.items()
        for people in records.values()
        for response in people.values()
        if response["status"] == "submitted" and re.match(r"jury(-en|-de)?/", dataset)
    )
    assert {name: count for name, count in counted.items() if count} == submitted


def earlier_exports_are_brought_up_to_date(served: Served, work: Mapping[str, bytes], out: Path) -> None:
    shutil.copytree(served.folder / "export", out / "updated")
    served.run("exports", "csv", str(out / "updated"), "--update")
    for task in TASKS:
        assert (out / "updated" / f"{task}.csv").read_bytes() == work[f"export/{task}.csv"]


def a_study_goes_on_with_its_second_month(served: Served) -> None:
    first = files_of(served.folder / "study" / "months" / "2026-09")
    waiting = {name: records for name, records in served.records().items() if name.startswith("monthly/2026-10-")}
    assert sum(len(records) for records in waiting.values()) == 6
    for name in ("anna", "ben"):
        served.submit_the_rest(name, waiting)
    # The guidelines have changed since then, which somebody has to see before those of answered datasets change.
    words = served.run("study", "run", "--month", "2026-10", within="study", code=1).output.rpartition("$ citejury ")[2]
    served.run(*words.splitlines()[0].split(), "--yes", within="study")
    done = served.run("study", "run", "--month", "2026-10", within="study").output
    assert "2 months finished" in done
    assert "What moved between the months is in months/trend." in done
    assert files_of(served.folder / "study" / "months" / "2026-09") == first


def the_history_begins_with_the_first_start(served: Served, submitted: set[tuple[str, str, str]], out: Path) -> None:
    said = served.run("exports", "csv", "--history", str(out / "history.csv"), "--workspace", "jury")
    assert re.search(r"The history begins at 20\d\d-", said.stderr)
    rows = csv_rows((out / "history.csv").read_bytes())
    assert {row["task"] for row in rows} == {task for task, _, _ in submitted}
    # Of what was there before, only what became of it: Ben's draft was submitted.
    updates = [(row["status_before"], row["status_after"]) for row in rows if row["action"] == "update"]
    assert (set(updates), {row["annotator_id"] for row in rows}) == ({("draft", "submitted")}, {DRAFTER})


def a_new_version_shows_the_query(served: Served, old: Sequence[str]) -> None:
    """The old grounding datasets go on without it; in the new ones nothing is pushed twice."""
    before = served.run("annotation", "setup", "--dry-run").stdout
    assert "without `query`, which `--new-version grounding` brings" in before
    served.run("annotation", "setup", "--new-version", "grounding", "--yes", "--passwords", "passwords.json")
    records, datasets = served.records(), served.datasets()
    served.run("annotation", "push", "records.jsonl")  # what is carried and not answered is shown as new records are
    ids, shown = (
        {name: {unit: each["id"] for unit, each in of.items()} for name, of in found.items()}
        for found in (records, served.records())
    )
    assert shown == ids
    old = [name for name in old if name.startswith("jury/")]
    assert sum(len(records[name]) for name in old) > 1
    for name in old:
        new = records[f"{name}-v2"]
        assert new.keys() == records[name].keys()
        assert datasets[f"{name}-v2"]["fields"]["items"][1]["name"] == "query"
        for unit, each in new.items():
            assert records[name][unit]["fields"].keys() == {"sources", "answer", "context"}
            generation = records[name.replace("2-grounding", "3-generation")][unit]
            assert each["fields"]["query"] == generation["fields"]["query"]
            assert each["metadata"] == records[name][unit]["metadata"]


@pytest.fixture(params=[NEW, pytest.param(OLD, marks=pytest.mark.rare)])
def made(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All that the commit of the folder's name made, in the current folder; nobody has touched it yet."""
    monkeypatch.chdir(unpacked(request.param, tmp_path / request.param))
    return tmp_path / request.param


new_only = pytest.mark.parametrize("made", [NEW], indirect=True)


@pytest.mark.server
def test_the_backup_becomes_a_home_with_the_same_answers(made: Path) -> None:
    pytest.importorskip("uvicorn", reason="the server is not installed here")
    run("annotation", "restore", "backup.zip", "--home", "again")
    answers = []
    for home in ("home", "again"):
        with closing(sqlite3.connect(f"{home}/data/argilla.db")) as database:
            answers.append(database.execute("SELECT * FROM responses ORDER BY id").fetchall())
    assert answers[0]
    assert answers[1] == answers[0]


def test_the_run_goes_on_with_the_missing_answers_under_its_own_prompts_and_asks_nobody_again(made: Path) -> None:
    late = ("claude", "grok") if made.name == NEW else ("grok",)
    before = files_of(Path("answers"))
    providers = ("--providers", ",".join(PROVIDERS))  # in the older, payloads of others are not there any more
    run("pipeline", "ask", "narratives.csv", "--out", "answers", "--replay", "payloads", *providers)
    after = files_of(Path("answers"))
    assert after.keys() == before.keys() | INDEXES
    changed = {name for name in before if after[name] != before[name]}
    of_answers = {f"{provider}.csv" for provider in late} | INDEXES  # indexes of earlier versions are made anew
    assert changed == (of_answers & before.keys()) | {"citations.jsonl", "errors.jsonl", "manifest.json"}
    assert (before["errors.jsonl"].count(b"\n"), after["errors.jsonl"]) == (len(late), b"")
    for provider in late:
        assert set(raw_rows(before[f"{provider}.csv"])) < set(raw_rows(after[f"{provider}.csv"]))
    manifests = [json.loads(each["manifest.json"]) for each in (before, after)]
    for name in ("run_id", "prompts") if made.name == NEW else ("run_id",):
        assert manifests[0][name] == manifests[1][name]
    if made.name == NEW:
        assert manifests[0]["narratives"].items() <= manifests[1]["narratives"].items()
    run("pipeline", "check", *(f"answers/{provider}.csv" for provider in PROVIDERS))


@new_only
def test_the_run_of_two_arms_goes_on_stopped_runs_are_listed_and_the_report_is_held_again(made: Path) -> None:
    before = json_lines(Path("armed/citations.jsonl"))
    arms = ("--arm", "neutral:arms/neutral.toml", "--arm", "leading:arms/leading.toml")
    options = ("--providers", "claude,gemini", "--max-rows", "1", "--compress")
    run("pipeline", "ask", "narratives.csv", "--out", "armed", "--replay", "payloads", *arms, *options)
    assert Path("armed/errors.jsonl").read_bytes() == b""
    run("pipeline", "check", "armed/claude.csv.zst", "armed/gemini.csv.zst")
    after = json_lines(Path("armed/citations.jsonl"))
    assert len(after) > len(before)
    assert all(each in after for each in before)
    run("pipeline", "verify", "report.md", "--offline", "--out", "again.json")
    before, after = (
        json.loads(Path(name).read_text(encoding="utf-8"))["sentences"] for name in ("verdicts.json", "again.json")
    )
    kept = ("text", "citations", "line", "ids")
    assert [[each[name] for name in kept] for each in after] == [[each[name] for name in kept] for each in before]
    assert [each["verdict"] for each in before].count("supported") == 1
    assert after[0]["verdict"] == before[0]["verdict"] == "supported"
    assert (
        states().items()
        >= {
            "stopped-after-plan": ["unfinished", "plan"],
            "stopped-after-extract": ["unfinished", "extract"],
            "burns": ["finished", "cache"],
        }.items()
    )
    for run_id in ("stopped-after-plan", "stopped-after-extract"):
        assert "unfinished" in run("pipeline", "research", "--list", "--run-id", run_id).stdout


def test_stored_bodies_are_read_as_before(made: Path) -> None:
    for folder in ("answers", "armed") if made.name == NEW else ("answers",):
        before = files_of(Path(folder))
        run("pipeline", "check", "--reparse", folder)
        after = files_of(Path(folder))
        derived = INDEXES | {f"{name}.zst" for name in INDEXES} | {"manifest.json"}
        assert {name: after[name] for name in before if name not in derived} == {
            name: content for name, content in before.items() if name not in derived
        }
        counts = [json.loads(each["manifest.json"]) for each in (before, after)]
        for provider in counts[1].get("providers", {}).values():
            assert provider.pop("unread", {}) == {}
        # The list of prices that comes along now knows some that were unknown then.
        costs = [[each.pop("cost") for each in (*found.get("providers", {}).values(), found)] for found in counts]
        assert all(then <= now for then, now in zip(*costs, strict=True))
        unpriced = [[each.pop("unpriced") for each in found.get("providers", {}).values()] for found in counts]
        assert all(then >= now for then, now in zip(*unpriced, strict=True))
        assert [counts[1].get("last", {}).pop(name, None) for name in ("missing", "unreadable")] == [None, None]
        asked = counts[1].get("narratives", {})
        assert (asked.pop("encoding", ""), asked.pop("agreed", None)) == ("", None)
        assert counts[0] == counts[1]
        assert after.keys() - before.keys() <= (INDEXES if made.name == OLD else set())


def test_its_records_are_made_again_without_the_web_and_a_dataset_of_the_old_export(made: Path) -> None:
    run("pipeline", "sources", "answers", "--out", "again.jsonl", "--offline")
    old = json_lines(Path("records.jsonl"))
    assert any(source["state"] == "read" for each in old for source in each["sources"])
    assert made.name == OLD or any(chunk["origin"] == "page" for each in old for chunk in each["chunks"])
    assert holds_all(json_lines(Path("again.jsonl")), old)
    run("exports", "dataset", "dataset", "--from", "export_extended", "--decisions", "decisions.csv")
    assert {path.stem for path in Path("dataset", "parquet").iterdir()} >= set(TASKS)


def test_agreement_of_the_old_export_and_of_judgements_without_a_model_has_the_same_figures(made: Path) -> None:
    run("exports", "results", "export", "--out", "again", "--resamples", "200", "--judge", "judgements.jsonl")
    place = "figures/labels.csv" if made.name == NEW else "labels.csv"
    old, new = (csv_rows(Path(name).read_bytes()) for name in (place, "again/labels.csv"))
    assert any(row["krippendorff_alpha"] for row in old)
    # Since then intervals that so few responses do not bear are refused, and with them what goes by them.
    judged = re.compile(r"_(low|high|method)$|^p_below|^(refused_intervals|undefined_resamples|warnings)$")
    old = [{name: row[name] for name in row if not judged.search(name)} for row in old]
    assert {"krippendorff_alpha", "gwet_ac1", "percent_agreement", "undefined"} <= old[0].keys()
    assert holds_all(new, old)


@new_only
def test_results_and_sample_of_the_old_export_and_records_are_the_same(made: Path) -> None:
    shutil.copytree("study/months/2026-09/results", "again")  # that version wrote it, with a table for LaTeX
    assert Path("again/results.tex").exists()
    run("exports", "results", "export", "--runs", "answers", "--out", "again")
    for name in ("results.csv", "findings.csv"):
        old, new = (csv_rows(Path(folder, name).read_bytes()) for folder in ("results", "again"))
        assert old
        # Three figures say today what was one, one more is there, and words at an opening are not counted.
        old = [row for row in old if not re.match("source_unresolved|narrative_", row.get("label", ""))]
        # Ends of rates go by narratives today, and by their exact bound where few have any.
        old = [{name: row[name] for name in row if not name.startswith("interval_")} for row in old]
        known = {row.get("label") for row in old}
        assert holds_all([row for row in new if row.get("label") in known], old)
    run("study", "plan", "records.jsonl", "--out", "planned", "--overlap", "2")
    assert Path("planned/sample.csv").read_bytes() == Path("plan/sample.csv").read_bytes()
    words = ("--resamples", "200", "--judge", "runs/burns/judgements.jsonl")
    run("exports", "results", "export", "--out", "judged", *words)
    assert "citejury-verifier" in Path("judged/agreement.json").read_text(encoding="utf-8")


# Research without a model, as those commits did it. A finished run opens as it is. One that was stopped goes on, or is
# refused in one sentence that says what to do, and then keeps every byte.


def verdicts_of(run_id: str, topic: str) -> set[str]:
    """The verdicts on the sentences of a finished run, which is listed, shown, audited and kept."""
    before = files_of(Path("runs", run_id, "final"))
    assert topic in run("pipeline", "research", "--list", "--run-id", run_id).stdout
    verified = json.loads(run("pipeline", "verify", f"runs/{run_id}", "--offline").stdout)
    run("pipeline", "research", "--run-id", run_id, "--verify-only")
    run("pipeline", "check", f"runs/{run_id}/pipeline.csv")
    assert files_of(Path("runs", run_id, "final")).items() >= before.items()
    return {each["verdict"] for each in verified["sentences"]}


def test_a_finished_research_run_opens_and_facts_reversed_in_its_report_are_found(made: Path) -> None:
    """Edits of form pass the audit."""
    dated = {"cannot_tell"} if made.name == NEW else set()  # the passage with a disagreement has a date of its own
    assert verdicts_of("burns", "Butter or cool water on a burn") == {"supported"} | dated
    report = Path("runs/burns/final/report.md")
    text = report.read_text(encoding="utf-8")
    facts = {"twenty minutes": "two minutes", "cool and not icy": "icy and not cool", "never put": "put"}
    for old, new in facts.items():
        assert old in text
        report.write_text(text.replace(old, new), encoding="utf-8")
        done = run("pipeline", "research", "--run-id", "burns", "--verify-only", code=3)
        assert done.stdout.count("is not what the run wrote") == 1
    report.write_text(text.replace("## Background", "## The background").replace("twenty", "twenty,"), encoding="utf-8")
    run("pipeline", "research", "--run-id", "burns", "--verify-only")


@pytest.mark.rare
@pytest.mark.parametrize("made", [OLD], indirect=True)
@pytest.mark.parametrize(
    ("then", "now"), [("partial", "cannot_tell"), ("unknown", "cannot_tell"), ("unsupported", "not_found")]
)
def test_an_old_run_goes_on_whose_journal_holds_a_verdict_of_its_time(made: Path, then: str, now: str) -> None:
    """Killed after the check of its claims, one of which had that verdict."""
    journal, log = Path("runs/burns/.state/journal.jsonl"), Path("runs/burns/logs/pipeline.jsonl")
    entries, events = (
        [each for each in json_lines(path) if each.get("stage") not in {"write", "audit", "cache"}]
        for path in (journal, log)
    )
    (checked,) = (each for each in entries if each.get("stage") == "verify")
    (butter,) = (each for each in checked["value"][0][0] if "one sixth water" in each[0][1])
    butter[1:5] = [then, 0.8, ["its time's reason"], []]
    entries[0]["setup"]["documents"] = str(made / "library")  # which lies elsewhere now
    write_json_lines(journal, entries)
    write_json_lines(log, events)
    run("pipeline", "research", "--run-id", "burns")
    assert "one sixth water" not in Path("runs/burns/final/report.md").read_text(encoding="utf-8").split("## Ref")[0]
    assert f"| {now} | its time's reason |" in Path("runs/burns/final/verification.md").read_text(encoding="utf-8")
    run("pipeline", "research", "--run-id", "burns", "--verify-only")


def states() -> dict[str, list[str]]:
    rows = [line.split() for line in run("pipeline", "research", "--list").stdout.splitlines()]
    return {row[0]: row[1:3] for row in rows}


@new_only
@pytest.mark.parametrize(
    ("run_id", "words"),
    [("stopped-after-plan", "it is a reading list"), ("stopped-after-extract", "An earlier version")],
)
def test_a_stopped_research_run_goes_on_to_its_report(made: Path, run_id: str, words: str) -> None:
    journal = Path("runs", run_id, ".state", "journal.jsonl")
    entries = json_lines(journal)
    entries[0]["setup"]["documents"] = str(made / "library")  # which lies elsewhere now
    write_json_lines(journal, entries)
    done = run("pipeline", "research", "--run-id", run_id)
    assert (json_lines(journal)[: len(entries)], states()[run_id][0]) == (entries, "finished")
    assert "supported" in verdicts_of(run_id, entries[0]["setup"]["topic"])
    assert json_lines(Path("runs", run_id, "records.jsonl"))[0]["chunks"]
    assert words in Path("runs", run_id, "final", "report.md").read_text(encoding="utf-8")
    assert ("under another `--run-id`" in done.stderr) is (run_id == "stopped-after-extract")


@new_only
@pytest.mark.parametrize(
    ("run_id", "words", "remedy"),
    [
        ("stopped-after-plan", (), "Name the one that holds the documents"),
        ("stopped-after-extract", (), "Name the one that holds the documents"),
        ("stopped-after-plan", ("Why do leaves fall?", "--documents", "elsewhere"), "was begun with"),
    ],
)
def test_a_stopped_research_run_without_its_documents_or_under_another_topic_is_refused_and_keeps_every_byte(
    made: Path, run_id: str, words: tuple[str, ...], remedy: str
) -> None:
    (made / "library").rename(made / "elsewhere")
    before = files_of(Path("runs"))
    (line,) = run("pipeline", "research", "--run-id", run_id, *words, code=1).stderr.strip().splitlines()
    assert line.startswith("Error: ")
    assert remedy in line
    assert files_of(Path("runs")) == before
