"""The round of practice on a real server, and its commands."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from annotation.argilla.client import Argilla
from annotation.campaign.datasets import properties_of, read_value, write_value
from annotation.campaign.file import Campaign, Practice
from annotation.campaign.people import Passwords
from annotation.campaign.setup import apply_plan, plan_campaign
from annotation.campaign.share import share_sheets
from annotation.push.push import push_records
from annotation.quality.practice import PASS_MARK, cases_of, open_for, practice_datasets, prepare_practice
from exports.csv.schema import ExportFilters
from exports.csv.write import export_csv
from pipeline.core.errors import ArgillaError, NotAllowedError, NotFoundError
from tests.support.practice_campaign import Practised, practised, yes_to_all
from tests.support.start_bench import record, waiting

pytestmark = pytest.mark.server
YES = {"status": "submitted", "values": yes_to_all("retrieval")}


@pytest.fixture(scope="module")
def work(owner: Argilla) -> Practised:
    return practised(owner, tasks=["retrieval", "generation"], cases=2)


def test_what_is_practised_is_closed_and_tells_no_answers_the_rest_open(work: Practised, owner: Argilla) -> None:
    lists = work.lists("ben")
    assert list(lists)[:2] == ["practice-1-retrieval-en", "practice-3-generation-en"]
    assert lists["1-retrieval-en"]["closed_by"] == lists["practice-1-retrieval-en"]["id"]
    assert lists["1-retrieval-en"]["waiting"] == 0
    assert (lists["2-grounding-en"]["closed_by"], lists["2-grounding-en"]["waiting"]) == (None, 3)
    assert work.queue("ben", "1-retrieval-en") == []
    assert len(work.queue("ben", "2-grounding-en")) == 2  # of two answers at once
    assert len(work.queue("ben", "practice-1-retrieval-en")) == 2
    dataset = work.dataset("1-retrieval-en")
    record_id = next(owner.record_pages(dataset))[1][0]["id"]
    with work.herself("ben") as ben:
        with pytest.raises(ArgillaError, match="opens once you have passed its practice"):
            ben.request("POST", f"/records/{record_id}/responses", json=YES)
        sent = ben.request("POST", "/me/responses/bulk", json={"items": [YES | {"record_id": record_id}]})
        assert "opens once you have passed its practice" in str(sent["items"][0]["error"])
        for body in ({"query": {}}, {"query": {"text": {"q": "answer"}}}, {"query": {"text": {"q": record_id}}}):
            found = ben.request("POST", f"/me/datasets/{dataset}/records/search", json=body)
            assert (found["items"], found["total"]) == ([], 0), body
        assert ben.request("GET", f"/me/datasets/{dataset}/metrics")["responses"]["total"] == 0
    assert not [item for _, page in owner.record_pages(dataset) for item in page if item["responses"]]
    dataset = work.dataset("practice-1-retrieval-en")
    with work.herself("ben") as ben:
        case = waiting(ben, dataset)[0]
        seen = [ben.request("GET", path) for path in (f"/records/{case}", f"/datasets/{dataset}", "/me/datasets")]
        for path in (f"/datasets/{dataset}/records", f"/citejury/datasets/{dataset}/practice"):
            with pytest.raises(NotAllowedError):
                ben.request("GET", path)
    assert "citejury_assignment" not in str(seen)
    assert work.cases[0].explanations["misleading"] not in str(seen)


@pytest.mark.rare
def test_the_pass_mark_opens_the_list_and_a_wrong_answer_may_be_among_them(owner: Argilla) -> None:
    work = practised(owner, tasks=["retrieval"], cases=4)  # 12 answers, 9 of them have to agree
    work.practise("anna", "practice-1-retrieval-en", wrong=3, count=3)
    assert work.queue("anna", "1-retrieval-en") == []
    work.practise("anna", "practice-1-retrieval-en")
    found = work.lists("anna")["practice-1-retrieval-en"]["practice"]
    assert (found["right"], found["known"], found["wanted"], found["opens"]) == (9, 12, 9, True)
    assert (len(work.queue("anna", "1-retrieval-en")), work.queue("ben", "1-retrieval-en")) == (2, [])


def test_who_has_passed_stays_passed_when_the_mark_is_of_an_earlier_version_and_cases_come(owner: Argilla) -> None:
    work = practised(owner, tasks=["retrieval"], cases=6)
    dataset = work.dataset("practice-1-retrieval-en")
    write_value(owner, dataset, PASS_MARK, "citejury: pass mark", 0.5)  # as it was written before
    for who, wrong in (("anna", 8), ("ben", 18)):
        work.practise(who, "practice-1-retrieval-en", wrong=wrong)
    of_anna = work.lists("anna")["practice-1-retrieval-en"]["practice"]
    assert (of_anna["opens"], of_anna["labels"], of_anna["passed"]) == (True, [], False)
    whole = work.campaign.model_copy(update={"practice": Practice(tasks=("retrieval",))})
    assert prepare_practice(owner, whole, work.workspace, cases_of(whole)).new > 0
    of_anna, of_ben = (work.lists(who)["practice-1-retrieval-en"]["practice"] for who in ("anna", "ben"))
    assert (of_anna["opens"], of_anna["passed"], len(work.queue("anna", "1-retrieval-en"))) == (True, True, 2)
    assert (of_ben["opens"], of_ben["passed"], work.queue("ben", "1-retrieval-en")) == (False, False, [])
    assert len(of_ben["labels"]) == 3


@pytest.mark.rare
def test_refusal_and_sheet_are_in_the_lists_language_with_practice_first(owner: Argilla, tmp_path: Path) -> None:
    work = practised(owner, locales=("de",), tasks=["retrieval"], cases=1)
    record_id = next(owner.record_pages(work.dataset("1-retrieval-de")))[1][0]["id"]
    with work.herself("ben") as ben, pytest.raises(ArgillaError, match="sobald Sie die Übung dazu bestanden haben"):
        ben.request("POST", f"/records/{record_id}/responses", json=YES)
    share_sheets(owner, work.workspace, work.campaign, tmp_path)
    (sheet,) = tmp_path.glob(f"sheet-{work.names['anna']}*.html")
    text = sheet.read_text(encoding="utf-8")
    assert text.index("practice-1-retrieval-de") < text.index(">1-retrieval-de")
    assert "Übung, bitte vor allem anderen" in text


@pytest.mark.rare
def test_whoever_fails_begins_anew_and_her_corrections_after_the_explanation_do_not_count(owner: Argilla) -> None:
    work = practised(owner, tasks=["retrieval"], cases=1)
    dataset = work.dataset("practice-1-retrieval-en")
    again = f"/citejury/datasets/{dataset}/practice/again"
    with work.herself("anna") as anna:
        (case,) = waiting(anna, dataset)
        explanation = f"/citejury/records/{case}/practice"
        with pytest.raises(NotFoundError):
            anna.request("GET", explanation)
        with pytest.raises(ArgillaError, match="once all its cases are answered"):
            anna.request("POST", again)
        work.practise("anna", "practice-1-retrieval-en", wrong=2)
        told = anna.request("GET", explanation)
        assert [label["hers"] is label["known"] for label in told["labels"]] == [False, False, True]
        assert all(label["why"] for label in told["labels"])
        (mine,) = anna.request("GET", f"/records/{case}")["responses"]
        known = {label["name"]: {"value": "yes" if label["known"] else "no"} for label in told["labels"]}
        anna.request("PUT", f"/responses/{mine['id']}", json={"status": "submitted", "values": known})
        assert anna.request("GET", explanation)["standing"]["right"] == 1
        assert (anna.request("POST", again)["attempts"], waiting(anna, dataset)) == (1, [case])
        with pytest.raises(NotFoundError):
            anna.request("GET", explanation)
        work.practise("anna", "practice-1-retrieval-en")
        standing = anna.request("GET", explanation)["standing"]
        assert (standing["right"], standing["opens"], standing["attempts"]) == (3, True, 1)
        with pytest.raises(ArgillaError, match="it is not passed"):
            anna.request("POST", again)
    with work.herself("ben") as ben, pytest.raises(NotFoundError):
        ben.request("GET", explanation)


@pytest.mark.rare
def test_beginning_anew_is_done_as_a_whole_or_not_at_all(owner: Argilla, argilla_server) -> None:
    work = practised(owner, tasks=["retrieval"], cases=2)
    dataset = work.dataset("practice-1-retrieval-en")
    work.practise("anna", "practice-1-retrieval-en", wrong=6)
    last = UUID(next(owner.record_pages(dataset))[1][-1]["id"]).hex
    refuse = (
        f"CREATE TRIGGER refuse_{last} BEFORE DELETE ON responses WHEN OLD.record_id = '{last}' "
        "BEGIN SELECT RAISE(ABORT, 'as if killed'); END"
    )
    again = f"/citejury/datasets/{dataset}/practice/again"
    with closing(sqlite3.connect(argilla_server.home / "data" / "argilla.db", timeout=60)) as database:
        database.execute(refuse)
        try:
            with work.herself("anna") as anna, pytest.raises(ArgillaError):
                anna.request("POST", again)
        finally:
            database.execute(f"DROP TRIGGER refuse_{last}")
    found = work.lists("anna")["practice-1-retrieval-en"]["practice"]
    assert (found["answered"], found["attempts"]) == (2, 0)
    with work.herself("anna") as anna:
        begun = anna.request("POST", again)
    assert (begun["answered"], begun["attempts"]) == (0, 1)
    assert {item["status"] for item in next(owner.record_pages(dataset))[1]} == {"pending"}


@pytest.mark.rare
def test_the_rest_is_closed_without_pass_mark_and_practice_exported_by_name(owner: Argilla, tmp_path: Path) -> None:
    work = practised(owner, tasks=["retrieval"], cases=1)
    work.practise("anna", "practice-1-retrieval-en")
    for each in properties_of(owner, work.dataset("practice-1-retrieval-en")):
        if each["name"].startswith(PASS_MARK):
            owner.request("DELETE", f"/metadata-properties/{each['id']}")
    assert work.queue("anna", "1-retrieval-en") == []
    prepare_practice(owner, work.campaign, work.workspace, work.cases)
    assert len(work.queue("anna", "1-retrieval-en")) == 2
    with work.herself("anna") as anna:
        for record_id in work.queue("anna", "1-retrieval-en"):
            anna.request("POST", f"/records/{record_id}/responses", json=YES)
    texts = []
    for name, filters in (("all", ExportFilters()), ("named", ExportFilters(rounds=("practice",)))):
        export_csv(owner, work.workspace, tmp_path / name, filters)
        texts.append((tmp_path / name / "retrieval.csv").read_text(encoding="utf-8"))
    assert texts[0].count(",retrieval,") == 2
    assert [work.cases[0].record.record_uuid in text for text in texts] == [False, True]


@pytest.mark.rare
def test_cases_come_once_follow_their_file_and_stay_where_they_are_wanted_no_longer(owner: Argilla) -> None:
    work = practised(owner, tasks=["retrieval"], cases=3)
    assert prepare_practice(owner, work.campaign, work.workspace, work.cases) == (0, 0, 3, 0)
    changed = work.cases[0]._replace(answers={**work.cases[0].answers, "evidence_sufficient": False})
    assert prepare_practice(owner, work.campaign, work.workspace, [changed, work.cases[1]]) == (0, 1, 1, 1)


@pytest.mark.rare
def test_the_practice_of_one_campaign_closes_no_other(owner: Argilla, work: Practised) -> None:
    names = {work.names[who]: who for who in ("anna", "ben")}
    plain = Campaign.model_validate({"locales": ["en"], "annotators": [{"name": name} for name in names]})
    other, group = f"other-{work.workspace}", f"{work.workspace}-day"
    for workspace in (other, group):
        apply_plan(owner, plan_campaign(owner, plain, workspace), Passwords(announce=lambda user: None))
        push_records(owner, workspace, [record("en", number) for number in range(3)], "en")
    with work.herself("ben") as ben:
        found = {
            workspace: waiting(ben, dataset["id"])
            for workspace in (other, group)
            for dataset in owner.datasets(owner.find_workspace(workspace))
            if dataset["name"] == "1-retrieval-en"
        }
    assert len(found[other]) == 2
    assert found[group] == []  # a group of the same campaign


@pytest.mark.parametrize("requests", [0, 1, 2, 3])
def test_a_value_that_is_replaced_is_there_when_the_command_is_killed(
    owner: Argilla, work: Practised, monkeypatch: pytest.MonkeyPatch, requests: int
) -> None:
    dataset = work.dataset("practice-3-generation-en")
    write_value(owner, dataset, "kept", "kept", "a")
    write_value(owner, dataset, "kept", "kept", "b")
    assert read_value(owner, dataset, "kept") == "b"
    left = requests
    send = owner.request

    def die(method: str, *given: Any, **named: Any) -> Any:
        nonlocal left
        if method != "GET" and (left := left - 1) < 0:
            raise KeyboardInterrupt
        return send(method, *given, **named)

    with monkeypatch.context() as killed:
        killed.setattr(owner, "request", die)
        with suppress(KeyboardInterrupt):
            write_value(owner, dataset, "kept", "kept", "c")
    assert read_value(owner, dataset, "kept") == ("c" if requests >= 2 else "b")
    for value in ("d", "e"):
        write_value(owner, dataset, "kept", "kept", value)
        assert read_value(owner, dataset, "kept") == value


def write_campaign(workspace: str, practice: str) -> None:
    text = f'workspace = "{workspace}"\n[campaign]\nlocales = ["en"]\n[campaign.practice]\n{practice}\n'
    Path("citejury.toml").write_text(text, encoding="utf-8")


@pytest.fixture
def run(command):
    return lambda *words, code=0: command("annotation", *words, code=code).output


def test_setup_brings_the_cases_and_a_second_one_changes_nothing(run, owner: Argilla, workspace: str) -> None:
    write_campaign(workspace, 'file = "cases.toml"')
    Path("cases.toml").write_text('[[retrieval]]\nquery = "Who?"\npassages = [{ text = "He." }]\n', "utf-8")
    (line,) = run("setup", code=1).strip().splitlines()
    assert "`cases.toml`: case 1 of retrieval has no answer to `topically_relevant`" in line
    assert workspace not in owner.workspaces()
    write_campaign(workspace, 'tasks = ["retrieval"]')
    assert "opens the rest at 0.75" in run("setup", "--dry-run")
    first, second = run("setup"), run("setup")
    assert "Practice: 9 cases new, 0 changed, 0 there already." in first
    assert "Practice: 0 cases new, 0 changed, 9 there already." in second
    assert "nothing was changed" in second
    assert "practice" not in second.partition("Practice:")[0].partition("No work so far")[2]


def test_the_lead_sees_who_has_passed_and_opens_the_rest(run, owner: Argilla) -> None:
    work = practised(owner, tasks=["retrieval"], cases=1)
    write_campaign(work.workspace, 'tasks = ["retrieval"]')
    work.practise("anna", "practice-1-retrieval-en")
    work.practise("ben", "practice-1-retrieval-en", wrong=3)
    shown = run("practice")
    rows = [line.split() for line in shown.splitlines() if work.workspace in line]
    assert [row[-1] for row in rows] == ["yes", "no"]
    for part in ("3 of 3, 3 wanted", "0 of 3, 3 wanted", "Next: citejury annotation practice --open NAME"):
        assert part in shown
    opened = run("practice", "--open", work.names["ben"], "--task", "retrieval")
    assert f"retrieval (en) opened to {work.names['ben']}" in opened
    assert "by the lead" in run("practice")
    (dataset,) = practice_datasets(owner, [work.workspace])
    ids = {each["username"]: each["id"] for each in owner.users()}
    assert not open_for(owner, dataset, ids[work.names["ben"]])  # it is open already
    standings = owner.request("GET", f"/citejury/datasets/{dataset.id}/practice")["items"]
    assert [(each["username"], each["opens"], each["opened"]) for each in standings] == [
        (work.names["anna"], True, False),
        (work.names["ben"], True, True),
    ]
    status = run("status")
    assert ("practice ·" in status, "hold no record" in status) == (False, False)
    assert len(work.queue("ben", "1-retrieval-en")) == 2
    assert "no practice of that task" in run("practice", "--open", work.names["ben"], "--task", "grounding", code=1)
    assert "has no user 'nobody'" in run("practice", "--open", "nobody", code=1)
    Path("records.jsonl").write_text(f"{work.cases[0].record.model_dump_json()}\n", encoding="utf-8")
    assert "The round 'practice' is for known cases" in run("push", "records.jsonl", "--round", "practice", code=1)


def test_without_practice_the_commands_say_how_to_get_one(run, ready: str) -> None:
    Path("citejury.toml").write_text(f'workspace = "{ready}"\n', encoding="utf-8")
    said = run("practice", code=1)
    assert "Add `[campaign.practice]` to citejury.toml and run `citejury annotation setup`" in said
