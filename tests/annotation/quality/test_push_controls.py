"""Controls and repeats in Argilla: confirmed ones only, like all other records, and nothing half done."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TASKS
from annotation.argilla.units import ASSIGNMENT, Assignment, assignment_of
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.push.push import PushOptions, push_records
from exports.cli import main
from pipeline.core.errors import ArgillaError
from pipeline.records.run import write_records
from tests.annotation.quality.test_planting import made
from tests.support.export_bench import make_user, read_csv

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

pytestmark = pytest.mark.server


class Study:
    """A workspace of a test's own with two annotators and ten records that are to be labelled."""

    def __init__(self, server: "ServerHandle", owner: Argilla, folder: Path) -> None:
        self.server, self.owner, self.folder = server, owner, folder
        self.workspace = f"controls-{uuid.uuid4().hex[:10]}"
        set_up(owner, self.workspace)
        self.people = [make_user(owner, name) for name in ("anna", "ben")]
        self.workspace_id = owner.find_workspace(self.workspace)
        for person in self.people:
            owner.request("POST", f"/workspaces/{self.workspace_id}/users", json={"user_id": person["id"]})
        push_records(owner, self.workspace, [made(each) for each in range(100, 110)])
        self.datasets = find_datasets(owner, self.workspace)
        write_records(folder / "known.jsonl", [made(each) for each in range(9)])

    def run(self, *words: str) -> Result:
        environment = {"ARGILLA_API_KEY": self.server.owner_api_key, "ARGILLA_API_URL": self.server.url}
        return CliRunner().invoke(main, ["annotation", "controls", *words], env=environment)

    def push(self, text: str, *options: str) -> Result:
        (self.folder / "known.csv").write_text(text, encoding="utf-8")
        files = (str(self.folder / "known.csv"), str(self.folder / "known.jsonl"))
        return self.run("push", *files, "--workspace", self.workspace, *options)

    def records(self, task: str = "generation") -> list[dict[str, Any]]:
        return [each for _, page in self.owner.record_pages(self.datasets[task].id) for each in page]

    def controls(self, task: str = "generation") -> dict[str, tuple[dict[str, Any], Assignment]]:
        found = {each["external_id"]: (each, assignment_of(each)) for each in self.records(task)}
        return {name: pair for name, pair in found.items() if pair[1].purpose != "label"}

    def answer(
        self, person: dict[str, Any], record: dict[str, Any], task: str = "generation", said: str = "no"
    ) -> None:
        values = {label: {"value": said} for label in LABELS[task]}
        with Argilla(self.server.url, person["api_key"]) as hers:
            body = {"status": "submitted", "values": values}
            hers.request("POST", f"/records/{record['id']}/responses", json=body)


@pytest.fixture(scope="module")
def shared(argilla_server: "ServerHandle", owner: Argilla, tmp_path_factory: pytest.TempPathFactory) -> Study:
    return Study(argilla_server, owner, tmp_path_factory.mktemp("study"))


@pytest.fixture
def study(shared: Study) -> Iterator[Study]:
    """The module's study, without controls and with nothing else answered."""
    yield shared
    for task in TASKS:
        if ids := [record["id"] for record, _ in shared.controls(task).values()]:
            shared.owner.request(
                "DELETE", f"/datasets/{shared.datasets[task].id}/records", params={"ids": ",".join(ids)}
            )
    write_records(shared.folder / "known.jsonl", [made(each) for each in range(9)])


@pytest.fixture
def own_study(argilla_server: "ServerHandle", owner: Argilla, tmp_path: Path) -> Study:
    return Study(argilla_server, owner, tmp_path)


def rows(*lines: str) -> str:
    return "\n".join(("confirmed,record_uuid,chunk_id,helpful,topically_relevant", *lines)) + "\n"


def uuid_of(number: int) -> str:
    return made(number).record_uuid


BOTH = rows(f"yes,{uuid_of(1)},,yes,", f"yes,{uuid_of(2)},,no,", f",{uuid_of(3)},,no,")


def test_confirmed_controls_go_in_like_other_records_and_others_do_not(study: Study) -> None:
    dry = study.push(BOTH, "--dry-run")
    assert (dry.exit_code, study.controls()) == (0, {})
    assert "Nothing was written (dry run)." in dry.output
    done = study.push(BOTH, "--rate", "0.2")
    assert done.exit_code == 0, done.output
    assert "Confirmed: 2 controls; not confirmed and left out: 1." in done.output
    found = study.controls()
    assert {assignment.answers["helpful"] for _, assignment in found.values()} == {True, False}
    for record, assignment in found.values():
        assert (assignment.purpose, assignment.kind, assignment.needed, assignment.rate) == ("control", "known", 2, 0.2)
        assert record["external_id"] not in {uuid_of(each) for each in range(9)}
        assert uuid.UUID(record["external_id"]).version == 4
        assert record["metadata"]["citejury"]["record_uuid"] == record["external_id"]
    other = next(each for each in study.records() if each["external_id"] not in found)
    assert {frozenset(record["fields"]) for record, _ in found.values()} == {frozenset(other["fields"])}
    assert [len(study.records(task)) for task in TASKS] == [30, 10, 12]


def test_pushing_again_changes_nothing_and_other_answers_or_rates_are_taken(study: Study) -> None:
    assert study.push(BOTH).exit_code == 0
    before = study.records()
    again = study.push(BOTH)
    assert (again.exit_code, study.records()) == (0, before)
    turned = BOTH.replace(",yes,\n", ",?,\n").replace(",no,\n", ",yes,\n").replace(",?,\n", ",no,\n")
    assert study.push(turned, "--rate", "0.3").exit_code == 0
    assert len(study.records()) == len(before)
    now = {name: assignment for name, (_, assignment) in study.controls().items()}
    then = {each["external_id"]: assignment_of(each) for each in before}
    assert all(each.answers["helpful"] is not then[name].answers["helpful"] for name, each in now.items())
    assert {each.rate for each in now.values()} == {0.3}
    kept = study.push(turned)
    assert "About 30% of each annotator's units" in kept.output
    assert {assignment.rate for _, assignment in study.controls().values()} == {0.3}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (rows("yes,nobody,,yes,", f"yes,{uuid_of(1)},,yes,"), "there is no record 'nobody'"),
        (rows(f"yes,{uuid_of(1)},,yes,", f"yes,{uuid_of(2)},,yes,"), "`helpful` (generation, en): 2 controls with yes"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_and_nothing_is_half_done(study: Study, text: str, reason: str) -> None:
    done = study.push(text)
    assert (done.exit_code, study.controls()) == (1, {})
    assert reason in done.output
    assert "Traceback" not in done.output


def test_controls_made_from_what_annotators_get_are_told_before_anything_is_written(study: Study) -> None:
    write_records(study.folder / "known.jsonl", [made(each) for each in (1, 2, 100)])
    told = rows(f"yes,{uuid_of(1)},,yes,", f"yes,{uuid_of(2)},,no,", f"yes,{uuid_of(100)},,no,")
    assert "Warning: 1 control made from records that annotators get too." in study.push(told, "--dry-run").output
    assert "annotators get too" not in study.push(BOTH, "--dry-run").output


def test_a_label_may_be_left_out_by_name(study: Study) -> None:
    text = f"record_uuid,helpful,incomplete\n{uuid_of(1)},yes,no\n{uuid_of(2)},yes,yes\n{uuid_of(3)},yes,\n"
    done = study.push(text, "--skip-label", "helpful")
    assert done.exit_code == 0, done.output
    assert "Left out, because every label that they tell is skipped: 1 control." in done.output
    told = [dict(assignment.answers) for _, assignment in study.controls().values()]
    assert sorted(each["incomplete"] for each in told) == [False, True]
    assert {*told[0], *told[1]} == {"incomplete"}
    assert study.push(text, "--skip-label", "nice").exit_code == 2


def test_a_control_of_retrieval_comes_with_all_passages_of_its_answer(study: Study) -> None:
    first, second = (made(1).chunks[each].chunk_id for each in (0, 2))
    done = study.push(rows(f"yes,{uuid_of(1)},{first},,yes", f"yes,{uuid_of(1)},{second},,no"))
    assert done.exit_code == 0, done.output
    found = study.controls("retrieval")
    assert len({name.partition(":")[0] for name in found}) == 1
    assert sorted(str(dict(assignment.answers)) for _, assignment in found.values()) == [
        "{'topically_relevant': False}",
        "{'topically_relevant': True}",
        "{}",
    ]


def test_a_control_that_changed_after_it_was_answered_is_refused(study: Study) -> None:
    assert study.push(BOTH).exit_code == 0
    for record, _ in study.controls().values():
        study.answer(study.people[0], record)
    changed = [made(each).model_copy(update={"answer": "Another answer."}) for each in range(9)]
    write_records(study.folder / "known.jsonl", changed)
    done = study.push(BOTH)
    assert done.exit_code == 1
    assert "Controls refused: 2" in done.output
    assert all("Another" not in record["fields"]["answer"] for record, _ in study.controls().values())


def test_an_annotator_cannot_tell_by_when_a_record_came(study: Study) -> None:
    assert study.push(BOTH).exit_code == 0
    with Argilla(study.server.url, study.people[0]["api_key"]) as anna:
        path = f"/me/datasets/{study.datasets['generation'].id}/records/search"
        told = [item["record"] for item in anna.request("POST", path, params={"limit": 50}, json={})["items"]]
        told += [anna.request("GET", f"/records/{record['id']}") for record in study.records()]
    assert {each["id"] for each in told} >= {record["id"] for record, _ in study.controls().values()}
    assert len({(each["inserted_at"], each["updated_at"]) for each in told}) == 1
    assert len({each["inserted_at"] for each in study.records()}) > 1


def test_an_annotator_cannot_search_by_when_a_record_came_or_whether_it_is_done(study: Study) -> None:
    assert study.push(BOTH).exit_code == 0
    path = f"/me/datasets/{study.datasets['generation'].id}/records/search"
    last = max(record["inserted_at"] for record in study.records())
    with Argilla(study.server.url, study.people[0]["api_key"]) as anna:

        def search(**query: Any) -> list[str]:
            found = anna.request("POST", path, params={"limit": 50}, json=query)["items"]
            return [item["record"]["id"] for item in found]

        hers = search()
        for name in ("inserted_at", "updated_at", "status"):
            scope = {"entity": "record", "property": name}
            assert search(sort=[{"scope": scope, "order": "asc"}]) == hers
            assert search(sort=[{"scope": scope, "order": "desc"}]) == hers
            for wanted in ({"type": "range", "ge": last}, {"type": "terms", "values": ["completed"]}):
                with pytest.raises(ArgillaError, match=f"cannot search by a record's `{name}`"):
                    search(filters={"and": [{**wanted, "scope": scope}]})
        status = {"entity": "response", "property": "status"}
        equal = search(sort=[{"scope": status, "order": "asc"}])
        assert equal == sorted(equal)


def test_an_annotator_cannot_tell_by_its_status_what_a_record_was(own_study: Study) -> None:
    study = own_study
    assert study.push(BOTH).exit_code == 0
    anna = study.people[0]
    for record in study.records():
        study.answer(anna, record)
    assert {record["status"] for record in study.records()} == {"pending", "completed"}
    dataset = study.datasets["generation"].id
    with Argilla(study.server.url, anna["api_key"]) as hers:
        path = f"/me/datasets/{dataset}/records/search"
        told = [item["record"] for item in hers.request("POST", path, params={"limit": 50}, json={})["items"]]
        told += [hers.request("GET", f"/records/{record['id']}") for record in study.records()]
        answered = {"type": "terms", "scope": {"entity": "response", "property": "status"}, "values": ["submitted"]}
        open_ = {"type": "terms", "scope": {"entity": "record", "property": "status"}, "values": ["pending"]}
        with pytest.raises(ArgillaError, match="`status`"):
            hers.request("POST", path, json={"filters": {"and": [answered, open_]}})
    assert {each["status"] for each in told} == {"pending"}


def test_controls_pushed_again_wait_for_who_joined_since(own_study: Study) -> None:
    study = own_study
    assert study.push(BOTH).exit_code == 0
    for record, _ in study.controls().values():
        for person in study.people:
            study.answer(person, record)
    assert {record["status"] for record, _ in study.controls().values()} == {"completed"}
    carl = make_user(study.owner, "carl")
    study.owner.request("POST", f"/workspaces/{study.workspace_id}/users", json={"user_id": carl["id"]})
    assert study.push(BOTH).exit_code == 0
    assert {(record["status"], said.needed) for record, said in study.controls().values()} == {("pending", 3)}


def test_an_ordinary_push_leaves_controls_as_they_are(study: Study) -> None:
    assert study.push(BOTH).exit_code == 0
    before = study.controls()
    shorter = [made(each).model_copy(update={"chunks": made(each).chunks[:2]}) for each in range(100, 110)]
    report = push_records(study.owner, study.workspace, shorter, options=PushOptions(dry_run=True))
    assert not any(line.startswith("generation") for line in report.left_over)
    assert push_records(study.owner, study.workspace, [made(100)]).left_over == ()
    assert study.controls() == before


def test_status_and_report_say_how_each_annotator_answers_controls(own_study: Study, tmp_path: Path) -> None:
    study = own_study
    assert study.push(BOTH).exit_code == 0
    anna, ben = study.people
    for record, assignment in study.controls().values():
        study.answer(anna, record, said="yes" if assignment.answers["helpful"] else "no")
        study.answer(ben, record, said="yes")
    for record in study.records()[:3]:
        for person in study.people:
            study.answer(person, record)
    environment = {"ARGILLA_API_KEY": study.server.owner_api_key, "ARGILLA_API_URL": study.server.url}
    words = ["annotation", "status", "--workspace", study.workspace, "--json"]
    told = json.loads(CliRunner().invoke(main, words, env=environment).stdout)["controls"]
    scores = {each["annotator"]: each["together"] for each in told}
    assert scores[ben["username"]]["specificity"] | {"low": 0, "high": 0} == {"count": 0, "of": 1, "low": 0, "high": 0}
    assert scores[anna["username"]]["specificity"]["count"] == 1
    out = tmp_path / "out"
    words = ["exports", "csv", str(out), "--workspace", study.workspace, "--task", "generation"]
    exported = CliRunner().invoke(main, words, env=environment)
    assert exported.exit_code == 0, exported.output
    assert "4 responses to controls and repeats (controls.csv)" in exported.output
    assert {row["record_uuid"] for row in read_csv(out / "generation.csv")}.isdisjoint(study.controls())
    assert len(read_csv(out / "controls.csv")) == 4
    for command, folder in (("agreement", "figures"), ("results", "results"), ("dataset", "data")):
        source = ["--from", str(out)] if command == "dataset" else [str(out), "--out"]
        made_there = str(tmp_path / folder)
        words = ["exports", command, *([made_there, *source] if command == "dataset" else [*source, made_there])]
        done = CliRunner().invoke(main, words, env=environment)
        assert done.exit_code == 0, done.output
        written = [path.read_bytes() for path in (tmp_path / folder).rglob("*") if path.is_file()]
        assert written
        assert not [name for name in study.controls() if any(name.encode() in content for content in written)]


def test_repeats_are_hers_alone_and_come_once(own_study: Study) -> None:
    study = own_study
    anna = study.people[0]
    for record in study.records():
        study.answer(anna, record, said="yes")
    for record in study.records("retrieval"):
        study.answer(anna, record, "retrieval")
    early = study.run("repeat", "--workspace", study.workspace, "--share", "0.5", "--distance", "30")
    assert (early.exit_code, study.controls()) == (0, {})
    options = ("--workspace", study.workspace, "--share", "0.2", "--distance", "3", "--rate", "0.1")
    done = study.run("repeat", *options)
    assert done.exit_code == 0, done.output
    assert "About 10% of each annotator's units" in done.output
    assert f"in 3-generation-en nothing else is left for {anna['username']}." in done.output
    found = study.controls()
    by_id = {each["external_id"]: each for each in study.records()}
    assert len(found) == 2
    for record, assignment in found.values():
        assert (assignment.purpose, assignment.users, assignment.needed) == ("repeat", (anna["id"],), 1)
        assert record["fields"] == by_id[assignment.repeats]["fields"]
        assert ASSIGNMENT not in by_id[assignment.repeats]["metadata"]
    passages = study.controls("retrieval")
    assert len(passages) == 6
    assert len({name.partition(":")[0] for name in passages}) == 2
    again = study.run("repeat", *options)
    assert "New: 0 units" in again.output
    assert len(study.controls()) == 2
