"""What an earlier commit left behind, opened with today's code: its home served, its files held against today's.

`tests/data/made_by_<commit>/README.md` says how each was made.
"""

import csv
import io
import json
import signal
import sqlite3
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from tests.support.places import DATA

PROVIDERS = ("openai", "claude", "gemini", "grok", "perplexity")
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

    def datasets(self) -> dict[str, dict[str, Any]]:
        """Every dataset by workspace and name, with its fields and questions."""
        return {
            name: each | {part: self.call("GET", f"/datasets/{each['id']}/{part}") for part in ("fields", "questions")}
            for name, each in self.listed().items()
        }

    def listed(self) -> dict[str, dict[str, Any]]:
        """The same without its fields and questions."""
        workspaces = {each["id"]: each["name"] for each in self.call("GET", "/me/workspaces")["items"]}
        listed = self.call("GET", "/me/datasets")["items"]
        return {f"{workspaces[each['workspace_id']]}/{each['name']}": each for each in listed}

    def records(self) -> Records:
        """Every record with its responses, by workspace and dataset, and external id."""
        path = "/datasets/{}/records?limit=500&include=responses"
        pages = {name: self.call("GET", path.format(each["id"])) for name, each in self.listed().items()}
        return {name: {each["external_id"]: each for each in page["items"]} for name, page in pages.items()}

    def responses(self) -> Responses:
        names = {each["id"]: each["username"] for each in self.call("GET", "/users")["items"]}
        kept = ("status", "values", "updated_at")
        found: Responses = {}
        for dataset, records in self.records().items():
            for external_id, record in records.items():
                for each in record["responses"]:
                    of_record = found.setdefault(dataset, {}).setdefault(external_id, {})
                    of_record[names[each["user_id"]]] = {name: each[name] for name in kept}
        return found

    def submit_the_rest(self, name: str, records: Records) -> set[tuple[str, str, str]]:
        """Submit somebody's drafts, and yes to all labels of those records that they have not answered.

        Gives task, external id and user name of each.
        """
        themselves = self.login(name)
        user_id = self.call("GET", "/me", headers=themselves)["id"]
        datasets, submitted = self.datasets(), set()
        for dataset, units in records.items():
            body = {"status": "submitted", "values": yes_to_all(datasets[dataset])}
            for external_id, record in units.items():
                theirs = [each for each in record["responses"] if each["user_id"] == user_id]
                if any(each["status"] != "draft" for each in theirs):
                    continue
                method, path = (
                    ("PUT", f"/responses/{theirs[0]['id']}")
                    if theirs
                    else ("POST", f"/records/{record['id']}/responses")
                )
                self.call(method, path, headers=themselves, json=body)
                submitted.add((dataset.split("-")[-2], external_id, name))
        return submitted


class Seen(NamedTuple):
    responses: Responses
    datasets: dict[str, dict[str, Any]]
    files: dict[str, bytes]
    """Files of the exports and the decisions, by their path in the folder of what was made."""


class Continued(NamedTuple):
    """The server's records after the push, and after it was done again."""

    once: Records
    twice: Records
    set_up: Seen


class Work(NamedTuple):
    """What annotators did then, and the exports after it."""

    submitted: set[tuple[str, str, str]]
    """Task, external id and user name."""
    responses: Responses
    files: dict[str, bytes]


def unpacked(commit: str, folder: Path) -> Path:
    with tarfile.open(DATA / f"made_by_{commit}" / "made.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@contextmanager
def served_home(folder: Path) -> Iterator[Served]:
    """The old home in the folder, served by today's `annotation serve`."""
    command = [sys.executable, "-c", "from exports.cli import main; main()", "annotation", "serve", "--port", "0"]
    with subprocess.Popen([*command, "--home", folder / "home"], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = []
        while not any("Ctrl-C" in line for line in said):
            said.append(server.stderr.readline())
            assert said[-1], "".join(said)
        lines = (folder / "home" / "env").read_text(encoding="utf-8").split()
        environment = dict(line.replace("'", "").split("=", 1) for line in lines)
        with httpx.Client(base_url=environment["ARGILLA_API_URL"], trust_env=False, timeout=60) as http:
            yield Served(folder, environment, http)
        server.send_signal(signal.SIGTERM)
        server.stderr.read()


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All that the module's `COMMIT` made, in the current folder; nobody has touched it yet."""
    monkeypatch.chdir(unpacked(request.module.COMMIT, tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The home that the module's `COMMIT` made, served by today's `annotation serve`."""
    pytest.importorskip("argilla_server", reason="the `server` extra is not installed")
    with served_home(unpacked(request.module.COMMIT, tmp_path_factory.mktemp("made"))) as home:
        yield home


def exported(served: Served, out: Path, without: Sequence[str] = ()) -> dict[str, bytes]:
    """The files of rows in the same exports as those that were made, but for those that the commit did not write."""
    served.run("exports", "csv", str(out / "export"))
    served.run("exports", "csv", str(out / "export_extended"), "--extended", "--discarded")
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for pattern in ("*/*.csv", "*/evidence.jsonl")
        for path in out.glob(pattern)
        if path.name not in without
    }


def found_at_first(served: Served, out: Path, without: Sequence[str] = ()) -> Seen:
    """What the server has before anybody does anything, with its decisions."""
    responses, files = served.responses(), exported(served, out, without)
    words = ("--out", str(out / "decisions.csv"), "--export", str(served.folder / "export_extended"))
    served.run("exports", "adjudicate", "read", *words)
    files |= {path.name: path.read_bytes() for path in out.glob("*.csv")}
    return Seen(responses, served.datasets(), files)


def set_up_and_pushed_twice(served: Served) -> Continued:
    """Set up again, which brings the new wording, and the half-done push finished, twice."""
    served.run("annotation", "setup", "--yes", "--passwords", "passwords.json")
    set_up = Seen(served.responses(), served.datasets(), {})
    served.run("annotation", "push", "records.jsonl")
    once = served.records()
    served.run("annotation", "push", "records.jsonl")
    return Continued(once, served.records(), set_up)


def run(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == code, result.output
    return result


def yes_to_all(dataset: Mapping[str, Any]) -> dict[str, Any]:
    """The answer yes to every label of a dataset, as the server takes it."""
    labels = [each["name"] for each in dataset["questions"]["items"] if each["settings"]["type"] == "label_selection"]
    return {label: {"value": "yes"} for label in labels}


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def raw_rows(file: bytes) -> list[str]:
    """The rows of a CSV file as they stand there, without the header."""
    lines = file.decode("utf-8").split("\n")
    reader = csv.reader(line + "\n" for line in lines[:-1])
    ends = [reader.line_num for _ in reader]
    return ["\n".join(lines[start:end]) for start, end in pairwise(ends)]


def csv_rows(file: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(line + "\n" for line in file.decode("utf-8").split("\n")[:-1]))


def unit_of(external_id: str) -> tuple[str, str]:
    """Record and passage of a unit; the passage is empty where the unit is an answer."""
    record_uuid, _, chunk_id = external_id.partition(":")
    return record_uuid, chunk_id


def rows_by_unit(file: bytes) -> dict[tuple[str, str, str], dict[str, str]]:
    return {(row["record_uuid"], row.get("chunk_id", ""), row["annotator_id"]): row for row in csv_rows(file)}


def units_of(records: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    with_passages = [each for each in records if each["chunks"]]
    passages = [f"{each['record_uuid']}:{chunk['chunk_id']}" for each in with_passages for chunk in each["chunks"]]
    return {
        "retrieval": sorted(passages),
        "grounding": sorted(each["record_uuid"] for each in with_passages),
        "generation": sorted(each["record_uuid"] for each in records),
    }


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_json_lines(path: Path, values: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in values), encoding="utf-8")


def holds_all(new: list[dict[str, Any]], old: list[dict[str, Any]]) -> bool:
    """Whether each old line stands among the new ones with every value that it had, in its provenance too."""

    def holds(after: dict[str, Any], before: dict[str, Any]) -> bool:
        told = {name: value for name, value in before.items() if name != "provenance"}
        provenance = before.get("provenance", {}).items() <= after.get("provenance", {}).items()
        return provenance and told.items() <= after.items()

    return len(new) == len(old) and all(holds(*each) for each in zip(new, old, strict=True))


def old_columns(new: bytes, old: bytes) -> bytes:
    """The new file without the columns that it has more than the old one; both are CSV as exports write it."""
    wanted = next(csv.reader(io.StringIO(old.decode("utf-8"), newline="")))
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, wanted, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(csv.DictReader(io.StringIO(new.decode("utf-8"), newline="")))
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


def check_served_as_it_was(served: Served, found: Seen) -> None:
    """Check that every answer, draft and discard is there as `responses.json` has it."""
    stored = json.loads((served.folder / "responses.json").read_text(encoding="utf-8"))
    states = {each["status"] for records in stored.values() for people in records.values() for each in people.values()}
    assert states == {"submitted", "draft", "discarded"}
    assert found.responses == stored


def check_same_bytes(folder: Path, files: Mapping[str, bytes]) -> None:
    """Check today's exports against those that were made; the extended ones may have more columns."""
    made = {name: (folder / name).read_bytes() for name in files}
    today = {
        name: old_columns(content, made[name]) if "export_extended/" in name and name.endswith(".csv") else content
        for name, content in files.items()
    }
    assert today == made


def check_draft_is_found(served: Served, found: Seen) -> None:
    """Check that who left a draft logs in with their old password and reads it."""
    drafts = [
        (dataset, external_id)
        for dataset, records in found.responses.items()
        for external_id, people in records.items()
        if people.get(DRAFTER, {}).get("status") == "draft"
    ]
    ((dataset, external_id),) = drafts
    record = served.records()[dataset][external_id]
    seen = served.call("GET", f"/records/{record['id']}", headers=served.login(DRAFTER))
    assert [each["values"] for each in seen["responses"]] == [found.responses[dataset][external_id][DRAFTER]["values"]]


def check_old_answers_stay(found: Seen, work: Work) -> None:
    """Check that only the draft has changed, and that all rows of the export are there with the same bytes."""
    for dataset, records in found.responses.items():
        for external_id, people in records.items():
            for name, response in people.items():
                if (name, response["status"]) != (DRAFTER, "draft"):
                    assert work.responses[dataset][external_id][name] == response
    for task in TASKS:
        file = f"export/{task}.csv"
        old, new = raw_rows(found.files[file]), raw_rows(work.files[file])
        assert old
        assert not set(old) - set(new)


def check_new_answers_come_out(found: Seen, work: Work) -> None:
    """Check that what was submitted stands beside what was there, which keeps the guidelines that it was given by."""
    assert {task for task, _, _ in work.submitted} == set(TASKS)
    for task in TASKS:
        old, new = (rows_by_unit(files[f"export_extended/{task}.csv"]) for files in (found.files, work.files))
        expected = {(*unit_of(external_id), who) for which, external_id, who in work.submitted if which == task}
        assert new.keys() - old.keys() == expected
        assert old.keys() <= new.keys()
        assert [new[unit]["guideline_version"] for unit in old] == [old[unit]["guideline_version"] for unit in old]


def check_status_counts(served: Served, work: Work, workspaces: tuple[str, ...]) -> None:
    """Check that the status counts all that is submitted in these workspaces on records of the campaign."""
    ours = {each["record_uuid"] for each in json_lines(served.folder / "campaign" / "records.jsonl")}
    told = json.loads(served.run("annotation", "status", "--json").stdout)["datasets"]
    counted = {
        f"{each['workspace']}/{each['dataset']}": sum(who["done"] for who in each["annotators"]) for each in told
    }
    submitted = Counter(
        dataset
        for dataset, records in work.responses.items()
        if dataset.partition("/")[0] in workspaces
        for external_id, people in records.items()
        if unit_of(external_id)[0] in ours
        for response in people.values()
        if response["status"] == "submitted"
    )
    assert {name: count for name, count in counted.items() if count} == submitted


def check_backup_becomes_a_home() -> None:
    """Check that the backup in the current folder holds the answers of the home beside it."""
    run("annotation", "restore", "backup.zip", "--home", "again")
    answers = []
    for home in ("home", "again"):
        with closing(sqlite3.connect(f"{home}/data/argilla.db")) as database:
            answers.append(database.execute("SELECT * FROM responses ORDER BY id").fetchall())
    assert answers[0]
    assert answers[1] == answers[0]


def check_judged_as_before(by_name: str) -> None:
    """Check that the baseline says of the records what it said, or leaves it out; P(yes) had that name then."""
    run("annotation", "judge", "records.jsonl", "--out", "again.jsonl")
    old, new = (json_lines(Path(name)) for name in ("judgements.jsonl", "again.jsonl"))
    for before, after in zip(old, new, strict=True):
        assert [before[name] for name in ("record_uuid", "task", "chunk_id", "status")] == [
            after[name] for name in ("record_uuid", "task", "chunk_id", "status")
        ]
        assert {*before["labels"], *before.get("left_out", ())} == {*after["labels"], *after["left_out"]}
        if before["task"] == "retrieval":
            assert {label: told[by_name] for label, told in before["labels"].items()} == {
                label: told["p_yes"] for label, told in after["labels"].items()
            }


def check_research_run_is_open(run_id: str, topic: str) -> set[str]:
    """Check that a finished research run in the current folder is listed, shown, audited and kept.

    Gives the verdicts on its sentences.
    """
    before = files_of(Path("runs", run_id))
    assert run_id in run("pipeline", "runs", "list").stdout
    assert topic in run("pipeline", "runs", "show", run_id).stdout
    verified = json.loads(run("pipeline", "verify", f"runs/{run_id}", "--offline").stdout)
    run("pipeline", "research", "--run-id", run_id, "--verify-only")
    run("pipeline", "check", f"runs/{run_id}/pipeline.csv")
    after = files_of(Path("runs", run_id))
    assert {name: after[name] for name in before if name.startswith("final/")} == {
        name: content for name, content in before.items() if name.startswith("final/")
    }
    return {each["verdict"] for each in verified["sentences"]}


def check_facts_reversed_are_found(run_id: str, reversed_facts: Mapping[str, str]) -> None:
    """Check that the audit names each fact of the report that is turned round, and lets edits of form pass."""
    report = Path("runs", run_id, "final", "report.md")
    text = report.read_text(encoding="utf-8")
    for old, new in reversed_facts.items():
        assert old in text
        report.write_text(text.replace(old, new), encoding="utf-8")
        done = run("pipeline", "research", "--run-id", run_id, "--verify-only", code=3)
        assert done.stdout.count("is not what the run wrote") == 1
    report.write_text(text.replace("## Background", "## The background").replace("twenty", "twenty,"), encoding="utf-8")
    run("pipeline", "research", "--run-id", run_id, "--verify-only")
