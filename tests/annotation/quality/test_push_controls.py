"""Controls and repeats in Argilla: confirmed ones only, like all other records, and nothing half done."""

import json
import uuid
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TASKS
from annotation.argilla.units import ASSIGNMENT, Assignment, assignment_of
from annotation.campaign.datasets import find_datasets
from annotation.push.push import PushOptions, push_records
from exports.cli import main
from pipeline.core.errors import ArgillaError
from pipeline.records.run import write_records
from tests.annotation.quality.test_control_files import made
from tests.support.export_bench import make_user, read_csv

pytestmark = pytest.mark.server


class Study:
    """A workspace of a test's own with two annotators and ten records that are to be labelled."""

    def __init__(self, server, owner: Argilla, folder: Path) -> None:
        self.server, self.owner, self.folder = server, owner, folder
        self.workspace = f"controls-{uuid.uuid4().hex[:10]}"
        self.in_campaign("", "setup", "--yes")
        self.workspace_id = owner.find_workspace(self.workspace)
        self.people = [self.joined(name) for name in ("anna", "ben")]
        write_records(folder / "records.jsonl", [made(each) for each in range(100, 110)])
        self.push()
        self.datasets = find_datasets(owner, self.workspace)
        write_records(folder / "known.jsonl", [made(each) for each in range(9)])

    def joined(self, name: str) -> dict[str, Any]:
        user = make_user(self.owner, name)
        self.owner.request("POST", f"/workspaces/{self.workspace_id}/users", json={"user_id": user["id"]})
        return user

    def run(self, *words: object, code: int = 0) -> Result:
        environment = {"ARGILLA_API_KEY": self.server.owner_api_key, "ARGILLA_API_URL": self.server.url}
        result = CliRunner().invoke(main, list(map(str, words)), env=environment)
        assert result.exit_code == code, result.output
        return result

    def push(self, text: str = "", settings: str = "", dry_run: bool = False, code: int = 0) -> str:
        """Push the records again, with a file of known answers where one is given."""
        (self.folder / "known.csv").write_text(text, encoding="utf-8")
        if text:
            settings += '\nknown = "known.csv"\nrecords = "known.jsonl"'
        return self.in_campaign(settings, "push", "records.jsonl", *["--dry-run"] * dry_run, code=code)

    def in_campaign(self, settings: str, *words: str, code: int = 0) -> str:
        told = f'[campaign]\nlocales = ["en"]\n[campaign.controls]\n{settings}\n'
        (self.folder / "citejury.toml").write_text(told, encoding="utf-8")
        with chdir(self.folder):
            return self.run("annotation", *words, "--workspace", self.workspace, code=code).output

    def records(self, task: str = "generation") -> list[dict[str, Any]]:
        return [each for _, page in self.owner.record_pages(self.datasets[task].id) for each in page]

    def controls(self, task: str = "generation") -> dict[str, tuple[dict[str, Any], Assignment]]:
        found = {each["external_id"]: (each, assignment_of(each)) for each in self.records(task)}
        return {name: pair for name, pair in found.items() if pair[1].purpose != "label"}

    def answer(
        self, person: dict[str, Any], record: dict[str, Any], task: str = "generation", said: str = "no"
    ) -> None:
        body = {"status": "submitted", "values": {label: {"value": said} for label in LABELS[task]}}
        with Argilla(self.server.url, person["api_key"]) as user:
            user.request("POST", f"/records/{record['id']}/responses", json=body)


@pytest.fixture(scope="module")
def shared(argilla_server, owner: Argilla, tmp_path_factory: pytest.TempPathFactory) -> Study:
    return Study(argilla_server, owner, tmp_path_factory.mktemp("study"))


@pytest.fixture
def study(shared: Study) -> Iterator[Study]:
    """The module's study, without controls and with nothing else answered."""
    yield shared
    for task in TASKS:
        if ids := ",".join(record["id"] for record, _ in shared.controls(task).values()):
            shared.owner.request("DELETE", f"/datasets/{shared.datasets[task].id}/records", params={"ids": ids})
    write_records(shared.folder / "known.jsonl", [made(each) for each in range(9)])


@pytest.fixture
def own_study(argilla_server, owner: Argilla, tmp_path: Path) -> Study:
    return Study(argilla_server, owner, tmp_path)


def rows(*lines: str) -> str:
    return "\n".join(("confirmed,record_uuid,chunk_id,helpful,topically_relevant", *lines)) + "\n"


def uuid_of(number: int) -> str:
    return made(number).record_uuid


BOTH = rows(f"yes,{uuid_of(1)},,yes,", f"yes,{uuid_of(2)},,no,", f",{uuid_of(3)},,no,")


def test_confirmed_controls_go_in_like_other_records_and_others_do_not(study: Study) -> None:
    assert "Nothing was written (dry run)." in study.push(BOTH, dry_run=True)
    assert study.controls() == {}
    assert "Controls: 2; not confirmed in the file and left out: 1." in study.push(BOTH, "rate = 0.2")
    found = study.controls()
    assert {assignment.answers["helpful"] for _, assignment in found.values()} == {True, False}
    for record, assignment in found.values():
        assert (assignment.purpose, assignment.kind, assignment.needed, assignment.rate) == ("control", "known", 2, 0.2)
        assert record["external_id"] not in {uuid_of(each) for each in range(9)}
        assert uuid.UUID(record["external_id"]).version == 4
        assert record["metadata"]["citejury"]["record_uuid"] == record["external_id"]
    assert len({frozenset(record["fields"]) for record in study.records()}) == 1
    assert [len(study.records(task)) for task in TASKS] == [30, 10, 12]


def test_pushing_again_changes_nothing_and_other_answers_or_rates_are_taken(study: Study) -> None:
    study.push(BOTH)
    before = study.records()
    study.push(BOTH)
    assert study.records() == before
    turned = BOTH.replace(",yes,\n", ",?,\n").replace(",no,\n", ",yes,\n").replace(",?,\n", ",no,\n")
    assert "About 30% of each annotator's units" in study.push(turned, "rate = 0.3")
    assert len(study.records()) == len(before)
    now = {name: assignment for name, (_, assignment) in study.controls().items()}
    then = {each["external_id"]: assignment_of(each) for each in before}
    assert all(each.answers["helpful"] is not then[name].answers["helpful"] for name, each in now.items())
    assert {assignment.rate for _, assignment in study.controls().values()} == {0.3}


def test_unusable_files_are_refused_whole_and_controls_made_from_annotators_records_named(study: Study) -> None:
    for text, reason in (
        (rows("yes,nobody,,yes,", f"yes,{uuid_of(1)},,yes,"), "there is no record 'nobody'"),
        (rows(f"yes,{uuid_of(1)},,yes,", f"yes,{uuid_of(2)},,yes,"), "`helpful` (generation, en): 2 controls with yes"),
    ):
        said = study.push(text, code=1)
        assert (reason in said, "Traceback" in said, study.controls()) == (True, False, {})
    assert "annotators get too" not in study.push(BOTH, dry_run=True)
    write_records(study.folder / "known.jsonl", [made(each) for each in (1, 2, 100)])
    text = rows(f"yes,{uuid_of(1)},,yes,", f"yes,{uuid_of(2)},,no,", f"yes,{uuid_of(100)},,no,")
    assert "Warning: 1 control made from records that annotators get too." in study.push(text, dry_run=True)


def test_a_label_with_one_answer_only_is_not_counted(study: Study) -> None:
    text = f"record_uuid,helpful,incomplete\n{uuid_of(1)},yes,no\n{uuid_of(2)},yes,yes\n{uuid_of(3)},yes,\n"
    assert "Not counted: `helpful` (generation, en): 3 controls with yes, as none has no." in study.push(text)
    known = [dict(assignment.answers) for _, assignment in study.controls().values()]
    assert sorted(map(str, known)) == ["{'incomplete': False}", "{'incomplete': True}"]


def test_a_control_of_retrieval_comes_with_all_passages_of_its_answer(study: Study) -> None:
    first, second = (made(1).chunks[each].chunk_id for each in (0, 2))
    study.push(rows(f"yes,{uuid_of(1)},{first},,yes", f"yes,{uuid_of(1)},{second},,no"))
    found = study.controls("retrieval")
    assert len({name.partition(":")[0] for name in found}) == 1
    assert sorted(str(dict(assignment.answers)) for _, assignment in found.values()) == [
        "{'topically_relevant': False}",
        "{'topically_relevant': True}",
        "{}",
    ]


def test_a_control_that_changed_after_it_was_answered_is_refused(study: Study) -> None:
    study.push(BOTH)
    for record, _ in study.controls().values():
        study.answer(study.people[0], record)
    changed = [made(each).model_copy(update={"answer": "Another answer."}) for each in range(9)]
    write_records(study.folder / "known.jsonl", changed)
    assert "refused: 2" in study.push(BOTH, code=1)
    assert all("Another" not in record["fields"]["answer"] for record, _ in study.controls().values())


def test_an_annotator_cannot_tell_by_when_a_record_came_nor_search_by_it(study: Study) -> None:
    study.push(BOTH)
    records = study.records()
    path = f"/me/datasets/{study.datasets['generation'].id}/records/search"
    with Argilla(study.server.url, study.people[0]["api_key"]) as anna:

        def search(**query: Any) -> list[dict[str, Any]]:
            found = anna.request("POST", path, params={"limit": 50}, json=query)["items"]
            return [item["record"] for item in found]

        seen = [*search(), *(anna.request("GET", f"/records/{record['id']}") for record in records)]
        assert {each["id"] for each in seen} >= {record["id"] for record, _ in study.controls().values()}
        assert len({(each["inserted_at"], each["updated_at"]) for each in seen}) == 1
        assert len({each["inserted_at"] for each in records}) > 1
        found = [each["id"] for each in search()]
        assert found == sorted(found)
        for name, said in (("inserted_at", "searches texts"), ("updated_at", "searches texts"), ("status", "`status`")):
            scope = {"entity": "record", "property": name}
            with pytest.raises(ArgillaError, match="searches texts"):
                search(sort=[{"scope": scope, "order": "asc"}])
            with pytest.raises(ArgillaError, match=said):
                search(filters={"and": [{"type": "terms", "values": ["completed"], "scope": scope}]})


def test_no_annotator_tells_a_control_by_its_status_and_one_pushed_again_waits_for_new(
    own_study: Study,
) -> None:
    study = own_study
    study.push(BOTH)
    anna = study.people[0]
    for record in study.records():
        study.answer(anna, record)
    assert {record["status"] for record in study.records()} == {"pending", "completed"}
    with Argilla(study.server.url, anna["api_key"]) as user:
        path = f"/me/datasets/{study.datasets['generation'].id}/records/search"
        seen = [item["record"] for item in user.request("POST", path, params={"limit": 50}, json={})["items"]]
        seen += [user.request("GET", f"/records/{record['id']}") for record in study.records()]
        filters = [
            {"type": "terms", "scope": {"entity": entity, "property": "status"}, "values": [value]}
            for entity, value in (("response", "submitted"), ("record", "pending"))
        ]
        with pytest.raises(ArgillaError, match="`status`"):
            user.request("POST", path, json={"filters": {"and": filters}})
    assert {each["status"] for each in seen} == {"pending"}
    for record, _ in study.controls().values():
        study.answer(study.people[1], record)
    assert {record["status"] for record, _ in study.controls().values()} == {"completed"}
    study.joined("carl")
    study.push(BOTH)
    assert {(record["status"], said.needed) for record, said in study.controls().values()} == {("pending", 3)}


def test_an_ordinary_push_leaves_controls_as_they_are(study: Study) -> None:
    study.push(BOTH)
    before = study.controls()
    shorter = [made(each).model_copy(update={"chunks": made(each).chunks[:2]}) for each in range(100, 110)]
    report = push_records(study.owner, study.workspace, shorter, options=PushOptions(dry_run=True))
    assert not any(line.startswith("generation") for line in report.left_over)
    assert (push_records(study.owner, study.workspace, [made(100)]).left_over, study.controls()) == ((), before)


def test_status_and_report_say_how_each_annotator_answers_controls(own_study: Study, tmp_path: Path) -> None:
    study = own_study
    study.push(BOTH)
    anna, ben = study.people
    for record, assignment in study.controls().values():
        study.answer(anna, record, said="yes" if assignment.answers["helpful"] else "no")
        study.answer(ben, record, said="yes")
    for record in study.records()[:3]:
        for person in study.people:
            study.answer(person, record)
    status = json.loads(study.run("annotation", "status", "--workspace", study.workspace, "--json").stdout)
    scores = {each["annotator"]: each["together"]["specificity"] for each in status["controls"]}
    assert [(scores[person["username"]]["count"], scores[person["username"]]["of"]) for person in (anna, ben)] == [
        (1, 1),
        (0, 1),
    ]
    out = tmp_path / "out"
    exported = study.run("exports", "csv", out, "--workspace", study.workspace, "--task", "generation")
    assert "4 responses to controls and repeats (controls.csv)" in exported.output
    assert {row["record_uuid"] for row in read_csv(out / "generation.csv")}.isdisjoint(study.controls())
    assert len(read_csv(out / "controls.csv")) == 4
    study.run("exports", "results", out, "--out", tmp_path / "figures")
    study.run("exports", "results", out, "--out", tmp_path / "results")
    study.run("exports", "dataset", tmp_path / "data", "--from", out)
    for folder in ("figures", "results", "data"):
        written = [path.read_bytes() for path in (tmp_path / folder).rglob("*") if path.is_file()]
        assert written
        assert not [name for name in study.controls() if any(name.encode() in content for content in written)]


@pytest.mark.rare
def test_repeats_are_for_one_person_and_come_once(own_study: Study) -> None:
    study = own_study
    anna = study.people[0]
    for task, said in (("generation", "yes"), ("retrieval", "no")):
        for record in study.records(task):
            study.answer(anna, record, task, said)
    study.push(settings="repeats = 0.5")  # nothing was answered so long ago
    assert study.controls() == {}
    said = study.push(settings="repeats = 0.2\ndistance = 3")
    assert "About 10% of each annotator's units" in said
    assert f"in 3-generation-en nothing else is left for {anna['username']}." in said
    found = study.controls()
    by_id = {each["external_id"]: each for each in study.records()}
    assert len(found) == 2
    for record, assignment in found.values():
        assert (assignment.purpose, assignment.users, assignment.needed) == ("repeat", (anna["id"],), 1)
        assert record["fields"] == by_id[assignment.repeats]["fields"]
        assert ASSIGNMENT not in by_id[assignment.repeats]["metadata"]
    passages = study.controls("retrieval")
    assert (len(passages), len({name.partition(":")[0] for name in passages})) == (6, 2)
    assert "Repeats: 0 units new" in study.push(settings="repeats = 0.2\ndistance = 3")
    assert study.controls() == found


def test_a_control_in_a_language_that_nobody_of_the_campaign_reads_is_refused(study: Study) -> None:
    german = {"query": "Die Stadt Bielefeld gibt es gar nicht.", "language": "de"}
    known = [made(each) for each in range(3)] + [made(3).model_copy(update=german)]
    write_records(study.folder / "known.jsonl", known)
    said = study.push(BOTH.replace(f",{uuid_of(3)},,no", f"yes,{uuid_of(3)},,no"), code=1)
    assert "The campaign has no list in de, where a control belongs" in said
    assert study.controls() == {}
