"""What commit 17a5a56 left behind is opened, continued and exported without loss; its README says how it was made."""

import csv
import io
import json
import re
import signal
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import chdir, closing
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from click.testing import CliRunner, Result
from pydantic import SecretStr

from annotation.campaign.file import read_campaign
from annotation.campaign.routing import plan_routes, routing_metadata
from annotation.campaign.standing import as_it_stands
from annotation.client import Argilla
from annotation.wording import read_wording
from exports.cli import main
from tests.support.places import DATA

MADE = DATA / "made_by_17a5a56" / "made.tar.gz"
PROVIDERS = ("openai", "claude", "gemini", "grok", "perplexity")
TASKS = ("retrieval", "grounding", "generation")
DRAFTER = "ben"

Responses = dict[str, dict[str, dict[str, Any]]]
"""By workspace and dataset, external id and user name."""


class Served(NamedTuple):
    """The server on the old home, and the folder with everything else that was made."""

    folder: Path
    environment: Mapping[str, str]
    http: httpx.Client

    def run(self, *words: str, code: int = 0) -> Result:
        """What a command in the campaign's folder said; another exit code fails the test."""
        with chdir(self.folder / "campaign"):
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
        """The header of somebody who logged in with her password."""
        passwords = json.loads((self.folder / "campaign" / "passwords.json").read_text(encoding="utf-8"))
        login = {"username": name, "password": passwords[name]}
        return {"Authorization": f"Bearer {self.call('POST', '/token', data=login)['access_token']}"}

    def datasets(self) -> dict[str, dict[str, Any]]:
        """Every dataset by workspace and name, with its fields and questions."""
        workspaces = {each["id"]: each["name"] for each in self.call("GET", "/me/workspaces")["items"]}
        found = {}
        for dataset in self.call("GET", "/me/datasets")["items"]:
            parts = {part: self.call("GET", f"/datasets/{dataset['id']}/{part}") for part in ("fields", "questions")}
            found[f"{workspaces[dataset['workspace_id']]}/{dataset['name']}"] = dataset | parts
        return found

    def records(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Every record with its responses, by workspace and dataset, and external id."""
        path = "/datasets/{}/records?limit=500&include=responses"
        pages = {name: self.call("GET", path.format(each["id"])) for name, each in self.datasets().items()}
        return {name: {each["external_id"]: each for each in page["items"]} for name, page in pages.items()}

    def responses(self) -> Responses:
        """Every response, in the form of `responses.json`."""
        names = {each["id"]: each["username"] for each in self.call("GET", "/users")["items"]}
        kept = ("status", "values", "updated_at")
        found: Responses = {}
        for dataset, records in self.records().items():
            for external_id, record in records.items():
                for each in record["responses"]:
                    of_record = found.setdefault(dataset, {}).setdefault(external_id, {})
                    of_record[names[each["user_id"]]] = {name: each[name] for name in kept}
        return found


class Seen(NamedTuple):
    """What was on the server at a time."""

    responses: Responses
    datasets: dict[str, dict[str, Any]]
    files: dict[str, bytes]
    """CSV files of the exports and the decisions, by their path in the folder of what was made."""


class Continued(NamedTuple):
    """The server's records after the push, and after it was done again."""

    once: dict[str, dict[str, dict[str, Any]]]
    twice: dict[str, dict[str, dict[str, Any]]]
    set_up: Seen


class Work(NamedTuple):
    """What annotators did then, and the exports after it."""

    submitted: set[tuple[str, str, str]]
    """Task, external id and user name."""
    responses: Responses
    files: dict[str, bytes]


class Renewed(NamedTuple):
    """What setup said before the new versions, the records after them and after another push, and the exports."""

    before: Result
    pushed_once: dict[str, dict[str, dict[str, Any]]]
    pushed_twice: dict[str, dict[str, dict[str, Any]]]
    files: dict[str, bytes]


def unpacked(folder: Path) -> Path:
    """The folder with everything that was made."""
    with tarfile.open(MADE) as archive:
        archive.extractall(folder, filter="data")
    return folder


def run(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == code, result.output
    return result


def raw_rows(file: bytes) -> list[str]:
    """The rows of a CSV file as they stand there, without the header."""
    lines = file.decode("utf-8").split("\n")
    reader = csv.reader(line + "\n" for line in lines[:-1])
    ends = [reader.line_num for _ in reader]
    return ["\n".join(lines[start:end]) for start, end in pairwise(ends)]


def csv_rows(file: bytes) -> list[dict[str, str]]:
    """The rows of a CSV file by column."""
    return list(csv.DictReader(line + "\n" for line in file.decode("utf-8").split("\n")[:-1]))


def unit_of(external_id: str) -> tuple[str, str]:
    """Record and passage of a unit; the passage is empty where the unit is an answer."""
    record_uuid, _, chunk_id = external_id.partition(":")
    return record_uuid, chunk_id


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


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


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All that was made, in the current folder; nobody has touched it yet."""
    monkeypatch.chdir(unpacked(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The old home, served by today's `annotation serve`."""
    pytest.importorskip("argilla_server", reason="the `server` extra is not installed")
    folder = unpacked(tmp_path_factory.mktemp("made"))
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


def exported(served: Served, out: Path) -> dict[str, bytes]:
    """The CSV files of the same exports as those that were made."""
    served.run("exports", "csv", str(out / "export"))
    served.run("exports", "csv", str(out / "export_extended"), "--extended", "--discarded")
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in out.glob("*/*.csv")
        if path.name != "provenance.csv"  # that commit wrote none
    }


@pytest.fixture(scope="module")
def found(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """What the server has before anybody does anything."""
    out = tmp_path_factory.mktemp("found")
    responses, files = served.responses(), exported(served, out)
    words = ("--out", str(out / "decisions.csv"), "--export", str(served.folder / "export_extended"))
    served.run("exports", "adjudicate", "read", *words)
    files |= {path.name: path.read_bytes() for path in out.glob("*.csv")}
    return Seen(responses, served.datasets(), files)


@pytest.fixture(scope="module")
def continued(served: Served, found: Seen) -> Continued:
    """Set up again, which brings the new wording, and the half-done push finished, twice."""
    served.run("annotation", "setup", "--yes", "--passwords", "passwords.json")
    set_up = Seen(served.responses(), served.datasets(), {})
    served.run("annotation", "push", "records.jsonl")
    once = served.records()
    served.run("annotation", "push", "records.jsonl")
    return Continued(once, served.records(), set_up)


@pytest.fixture(scope="module")
def work(served: Served, continued: Continued, tmp_path_factory: pytest.TempPathFactory) -> Work:
    """Ben submits his draft, and everything in English that he has not answered."""
    himself = served.login(DRAFTER)
    user_id = served.call("GET", "/me", headers=himself)["id"]
    submitted = set()
    datasets = served.datasets()
    for dataset in (name for name in datasets if name.startswith("jury/") and name.endswith("-en")):
        labels = [each["name"] for each in datasets[dataset]["questions"]["items"] if each["name"] != "notes"]
        body = {"status": "submitted", "values": {label: {"value": "yes"} for label in labels}}
        for external_id, record in continued.twice[dataset].items():
            mine = [each for each in record["responses"] if each["user_id"] == user_id]
            if any(each["status"] != "draft" for each in mine):
                continue
            method, path = (
                ("PUT", f"/responses/{mine[0]['id']}") if mine else ("POST", f"/records/{record['id']}/responses")
            )
            served.call(method, path, headers=himself, json=body)
            submitted.add((dataset.split("-")[-2], external_id, DRAFTER))
    return Work(submitted, served.responses(), exported(served, tmp_path_factory.mktemp("work")))


@pytest.fixture(scope="module")
def renewed(served: Served, work: Work, tmp_path_factory: pytest.TempPathFactory) -> Renewed:
    """New versions of the grounding datasets, after the work in the old ones; then the records are pushed again."""
    before = served.run("annotation", "setup", "--dry-run")
    served.run("annotation", "setup", "--new-version", "grounding", "--yes", "--passwords", "passwords.json")
    once = served.records()
    served.run("annotation", "push", "records.jsonl")
    return Renewed(before, once, served.records(), exported(served, tmp_path_factory.mktemp("renewed")))


@pytest.mark.server
def test_the_home_is_served_with_every_answer_draft_and_discard(served: Served, found: Seen) -> None:
    stored = json.loads((served.folder / "responses.json").read_text(encoding="utf-8"))
    states = {each["status"] for records in stored.values() for people in records.values() for each in people.values()}
    assert states == {"submitted", "draft", "discarded"}
    assert found.responses == stored


@pytest.mark.server
def test_its_exports_and_decisions_have_the_same_bytes(served: Served, found: Seen) -> None:
    assert len(found.files) == 11
    made = {name: (served.folder / name).read_bytes() for name in found.files}
    today = {
        name: old_columns(content, made[name]) if name.startswith("export_extended/") else content
        for name, content in found.files.items()
    }
    assert today == made


@pytest.mark.server
def test_an_annotator_logs_in_with_her_old_password_and_finds_her_draft(served: Served, found: Seen) -> None:
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


@pytest.mark.server
def test_the_campaign_goes_on_in_its_workspace_and_by_its_rule_of_calibration(
    served: Served, continued: Continued
) -> None:
    """Its people do not share all languages: a new campaign would have a workspace for each, and another rule."""
    campaign = read_campaign(served.folder / "campaign" / "citejury.toml")
    assert campaign is not None
    assert campaign.parts_languages
    with Argilla(served.environment["ARGILLA_API_URL"], SecretStr(served.environment["ARGILLA_API_KEY"])) as argilla:
        standing = as_it_stands(argilla, campaign, "jury")
    assert (standing.parts_languages, standing.calibration and standing.calibration.rule) == (False, 1)
    routings = [
        each["metadata"]["routing"] for each in continued.set_up.datasets.values() if "routing" in each["metadata"]
    ]
    assert routings
    assert all(each == routing_metadata(standing) and "rule" not in each["calibration"] for each in routings)
    assert {name.partition("/")[0] for name in continued.twice} == {"jury", "jury-adjudication"}
    fresh = [(f"new-{number}", ("en", "de")[number % 2]) for number in range(40)]
    bare = {uuid for uuid, _ in fresh[6:]}
    by_old = plan_routes(fresh, {}, standing, "jury", bare)
    assert by_old == plan_routes(fresh, {}, standing, "jury")  # whatever has passages
    by_new = plan_routes(fresh, {}, campaign, "jury", bare)
    assert {place.workspace for place in by_old.values()} == {"jury"}
    assert {place.workspace for place in by_new.values()} == {"jury-en", "jury-de"}


def without_wording(datasets: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The datasets without the texts that annotators read in them, and without when these were changed."""

    def rest(part: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in part.items() if key not in {"title", "description", "updated_at"}}

    return {
        name: {key: value for key, value in rest(dataset).items() if key not in {"guidelines", "last_activity_at"}}
        | {part: [rest(each) for each in dataset[part]["items"]] for part in ("fields", "questions")}
        for name, dataset in datasets.items()
    }


@pytest.mark.server
def test_set_up_again_only_the_wording_changes_and_in_place(served: Served, found: Seen, continued: Continued) -> None:
    assert without_wording(continued.set_up.datasets) == without_wording(found.datasets)
    assert continued.set_up.responses == found.responses
    for name, dataset in continued.set_up.datasets.items():
        if name.startswith("jury/"):
            task, locale = name.split("-")[-2:]
            wording = read_wording(locale)
            assert dataset["guidelines"] == wording.guidelines[task]
            shown = {each["name"]: (each["title"], each["description"]) for each in dataset["questions"]["items"]}
            assert shown == {**wording.questions[task], "notes": wording.notes}
    assert "titles" not in served.run("annotation", "setup", "--dry-run").stdout


@pytest.mark.server
def test_the_rest_of_the_records_goes_in_and_nothing_goes_in_twice(served: Served, continued: Continued) -> None:
    records = json_lines(served.folder / "campaign" / "records.jsonl")
    with_passages = [each for each in records if each["chunks"]]
    units = {
        "retrieval": [
            f"{each['record_uuid']}:{chunk['chunk_id']}" for each in with_passages for chunk in each["chunks"]
        ],
        "grounding": [each["record_uuid"] for each in with_passages],
        "generation": [each["record_uuid"] for each in records],
    }
    for task in TASKS:
        datasets = [name for name in continued.once if name.startswith("jury/") and f"-{task}-" in name]
        assert sorted(unit for name in datasets for unit in continued.once[name]) == sorted(units[task])
    assert continued.twice == continued.once


@pytest.mark.server
def test_old_answers_stay_as_they_were_and_old_rows_have_the_same_bytes(found: Seen, work: Work) -> None:
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


@pytest.mark.server
def test_new_answers_come_out_beside_the_old_ones(found: Seen, work: Work) -> None:
    assert {task for task, _, _ in work.submitted} == set(TASKS)
    for task in TASKS:
        file = f"export_extended/{task}.csv"
        old, new = (
            {(row["record_uuid"], row.get("chunk_id", ""), row["annotator_id"]) for row in csv_rows(files[file])}
            for files in (found.files, work.files)
        )
        expected = {(*unit_of(external_id), who) for which, external_id, who in work.submitted if which == task}
        assert new - old == expected
        assert old <= new
        before, after = (
            {
                (row["record_uuid"], row.get("chunk_id", ""), row["annotator_id"]): row["guideline_version"]
                for row in rows
            }
            for rows in map(csv_rows, (found.files[file], work.files[file]))
        )
        assert {unit: after[unit] for unit in before} == before, "each answer keeps the guidelines that it was given by"
        assert {after[unit] for unit in new - old}.isdisjoint(before.values())


@pytest.mark.server
def test_old_grounding_datasets_go_on_without_the_query_and_a_new_version_shows_it(
    served: Served, found: Seen, renewed: Renewed
) -> None:
    assert "without `query`, which `--new-version grounding` brings" in renewed.before.stdout
    records, datasets = served.records(), served.datasets()
    old = [name for name in found.datasets if name.startswith("jury/") and "-grounding-" in name]
    assert sum(len(records[name]) for name in old) > 1
    for name in old:
        assert {frozenset(each["fields"]) for each in records[name].values()} <= {
            frozenset({"sources", "answer", "context"})
        }
        new = records[f"{name}-v2"]
        assert new.keys() == records[name].keys()
        assert {unit: "query" in each["fields"] for unit, each in new.items()} == dict.fromkeys(new, True)
        assert datasets[f"{name}-v2"]["fields"]["items"][1]["name"] == "query"
        for unit, each in new.items():
            generation = records[name.replace("2-grounding", "3-generation")][unit]
            assert each["fields"]["query"] == generation["fields"]["query"]
            assert each["metadata"] == records[name][unit]["metadata"]


@pytest.mark.server
def test_after_the_new_version_old_rows_have_the_same_bytes_and_nothing_is_pushed_twice(
    work: Work, renewed: Renewed
) -> None:
    assert renewed.files == work.files
    assert renewed.pushed_twice == renewed.pushed_once


@pytest.mark.server
def test_status_counts_the_old_and_the_new_answers(served: Served, work: Work) -> None:
    status = json.loads(served.run("annotation", "status", "--json").stdout)
    done = sum(each["done"] for dataset in status["datasets"] for each in dataset["annotators"])
    answers = [
        each["status"]
        for dataset, records in work.responses.items()
        if dataset.startswith("jury/")
        for people in records.values()
        for each in people.values()
    ]
    assert done == answers.count("submitted")


@pytest.mark.server
def test_the_backup_becomes_a_home_with_the_same_answers(made: Path) -> None:
    pytest.importorskip("argilla_server", reason="the `server` extra is not installed")
    run("annotation", "restore", "backup.zip", "--home", "again")
    answers = []
    for home in ("home", "again"):
        with closing(sqlite3.connect(f"{home}/data/argilla.db")) as database:
            answers.append(database.execute("SELECT * FROM responses ORDER BY id").fetchall())
    assert answers[0]
    assert answers[1] == answers[0]


def test_the_run_goes_on_with_the_missing_answer_and_asks_nobody_again(made: Path) -> None:
    before = {path.name: path.read_bytes() for path in Path("answers").iterdir()}
    options = ("--replay", "payloads", "--providers", ",".join(PROVIDERS))  # the other payloads are not there any more
    run("pipeline", "ask", "narratives.csv", "--out", "answers", *options)
    after = {path.name: path.read_bytes() for path in Path("answers").iterdir()}
    indexes = {f"{provider}.index.jsonl" for provider in PROVIDERS}
    assert after.keys() - before.keys() == indexes
    after = {name: after[name] for name in before}
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"grok.csv", "citations.jsonl", "errors.jsonl", "manifest.json"}
    assert before["errors.jsonl"].count(b"\n") == 1
    assert after["errors.jsonl"] == b""
    assert set(raw_rows(before["grok.csv"])) < set(raw_rows(after["grok.csv"]))
    run_ids = {json.loads(files["manifest.json"])["run_id"] for files in (before, after)}
    assert len(run_ids) == 1
    run("pipeline", "check", *(f"answers/{provider}.csv" for provider in PROVIDERS))


def test_its_answers_are_csv_v2_and_its_stored_bodies_are_read_as_before(made: Path) -> None:
    run("pipeline", "check", *(f"answers/{provider}.csv" for provider in PROVIDERS))
    before = {path.name: path.read_bytes() for path in Path("answers").iterdir()}
    run("pipeline", "reparse", "answers")
    after = {path.name: path.read_bytes() for path in Path("answers").iterdir()}
    indexes = {f"{provider}.index.jsonl" for provider in PROVIDERS}
    assert {name: content for name, content in after.items() if name not in indexes} == before


def test_its_records_are_made_again_from_the_store_without_the_web(made: Path) -> None:
    run("pipeline", "sources", "answers", "--out", "again.jsonl", "--offline")
    old = json_lines(made / "records.jsonl")
    assert any(source["state"] == "read" for each in old for source in each["sources"])
    assert holds_all(json_lines(made / "again.jsonl"), old)


def test_the_baseline_judges_the_old_records_as_before_or_leaves_out_what_it_cannot_tell(made: Path) -> None:
    run("annotation", "judge", "records.jsonl", "--out", "again.jsonl")
    old, new = (json_lines(made / name) for name in ("judgements.jsonl", "again.jsonl"))
    for before, after in zip(old, new, strict=True):
        assert [before[name] for name in ("record_uuid", "task", "chunk_id", "status")] == [
            after[name] for name in ("record_uuid", "task", "chunk_id", "status")
        ]
        assert {*before["labels"]} == {*after["labels"], *after["left_out"]}
        if before["task"] == "retrieval":  # p_yes was called confidence; files that have the old name are read
            assert {label: told["confidence"] for label, told in before["labels"].items()} == {
                label: told["p_yes"] for label, told in after["labels"].items()
            }


def test_agreement_of_the_old_export_has_the_same_figures(made: Path) -> None:
    run("exports", "agreement", "export", "--out", "figures", "--resamples", "200", "--judge", "judgements.jsonl")
    old, new = (csv_rows((made / name).read_bytes()) for name in ("labels.csv", "figures/labels.csv"))
    assert any(row["krippendorff_alpha"] for row in old)
    # Since then intervals that so few responses do not bear are refused, and with them what goes by them.
    judged = re.compile(r"_(low|high|method)$|^p_below|^(refused_intervals|undefined_resamples|warnings)$")
    kept = [name for name in old[0] if not judged.search(name)]
    assert {"krippendorff_alpha", "gwet_ac1", "percent_agreement", "undefined"} <= set(kept)
    assert holds_all(new, [{name: row[name] for name in kept} for row in old])


def test_a_dataset_is_made_of_the_old_export_and_its_decisions(made: Path) -> None:
    pytest.importorskip("datasets", reason="the libraries for datasets are not installed")
    run("exports", "dataset", "dataset", "--from", "export_extended", "--decisions", "decisions.csv")
    assert {path.stem for path in Path("dataset", "parquet").iterdir()} >= set(TASKS)


def test_the_disagreements_of_the_old_export_are_listed(made: Path) -> None:
    run("exports", "adjudicate", "list", "export_extended", "--out", "disagreements.csv")
    assert len(raw_rows(Path("disagreements.csv").read_bytes())) > 0


def test_the_research_run_is_listed_shown_verified_and_audited_again(made: Path) -> None:
    assert "burns" in run("pipeline", "runs", "list").stdout
    assert "Butter or cool water on a burn" in run("pipeline", "runs", "show", "burns").stdout
    verified = json.loads(run("pipeline", "verify", "runs/burns", "--offline").stdout)
    assert {each["verdict"] for each in verified["sentences"]} == {"supported"}
    report = Path("runs/burns/final/report.md").read_bytes()
    run("pipeline", "research", "--run-id", "burns", "--verify-only")
    assert Path("runs/burns/final/report.md").read_bytes() == report
    run("pipeline", "check", "runs/burns/pipeline.csv")


def test_facts_reversed_in_the_old_report_are_found(made: Path) -> None:
    report = Path("runs/burns/final/report.md")
    text = report.read_text(encoding="utf-8")
    for old, new in {
        "twenty minutes": "two minutes",
        "cool and not icy": "icy and not cool",
        "never put": "put",
    }.items():
        assert old in text
        report.write_text(text.replace(old, new), encoding="utf-8")
        done = run("pipeline", "research", "--run-id", "burns", "--verify-only", code=3)
        assert done.stdout.count("is not what the run wrote") == 1
    report.write_text(text.replace("## Background", "## The background").replace("twenty", "twenty,"), encoding="utf-8")
    run("pipeline", "research", "--run-id", "burns", "--verify-only")


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
    claims = checked["value"][0][0]
    (butter,) = (each for each in claims if "one sixth water" in each[0][1])
    butter[1:5] = [then, 0.8, ["its time's reason"], []]
    entries[0]["setup"]["documents"] = str(made / "library")  # which lies elsewhere now
    for path, lines in ((journal, entries), (log, events)):
        path.write_text("".join(f"{json.dumps(each)}\n" for each in lines), encoding="utf-8")
    run("pipeline", "research", "--run-id", "burns")
    assert "one sixth water" not in Path("runs/burns/final/report.md").read_text(encoding="utf-8").split("## Ref")[0]
    assert f"| {now} | its time's reason |" in Path("runs/burns/final/verification.md").read_text(encoding="utf-8")
    run("pipeline", "research", "--run-id", "burns", "--verify-only")


def test_the_history_of_an_old_home_begins_with_its_first_start(served: Served, work: Work, tmp_path: Path) -> None:
    out = tmp_path / "history.csv"
    said = served.run("exports", "history", str(out), "--workspace", "jury")
    assert re.search(r"The history begins at 20\d\d-", said.stderr)
    told = csv_rows(out.read_bytes())
    assert {row["task"] for row in told} == {task for task, _, _ in work.submitted}
    # Of what was there before, only what became of it: Ben's draft was submitted.
    assert {(row["status_before"], row["status_after"]) for row in told if row["action"] == "update"} == {
        ("draft", "submitted")
    }
    assert {row["annotator_id"] for row in told} == {DRAFTER}
    refused = served.run("exports", "csv", str(tmp_path / "past"), "--as-of", "2026-01-01", code=1)
    assert "begins at" in refused.output
