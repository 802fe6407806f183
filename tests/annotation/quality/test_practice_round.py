"""The round of practice on a real server, and its commands."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.campaign.datasets import properties_of, read_value, write_value
from annotation.campaign.file import Campaign
from annotation.campaign.people import Passwords
from annotation.campaign.setup import apply_plan, plan_campaign
from annotation.campaign.share import share_sheets
from annotation.push.push import push_records
from annotation.quality.practice import PASS_MARK, prepare_practice
from annotation.server.launch import ServerHandle
from exports.cli import main
from exports.csv.schema import ExportFilters
from exports.csv.write import export_csv
from pipeline.core.errors import ArgillaError, NotAllowedError, NotFoundError
from tests.support.practice_campaign import Practised, practised, yes_to_all
from tests.support.start_bench import record, waiting

if TYPE_CHECKING:
    pass


pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def work(owner: Argilla) -> Practised:
    return practised(owner, tasks=["retrieval", "generation"], cases=2)


def test_what_is_practised_is_closed_and_the_rest_is_open(work: Practised) -> None:
    lists = work.lists("ben")
    assert list(lists)[:2] == ["practice-1-retrieval-en", "practice-3-generation-en"]
    assert lists["1-retrieval-en"]["closed_by"] == lists["practice-1-retrieval-en"]["id"]
    assert lists["1-retrieval-en"]["waiting"] == 0
    assert (lists["2-grounding-en"]["closed_by"], lists["2-grounding-en"]["waiting"]) == (None, 3)
    assert work.queue("ben", "1-retrieval-en") == []
    assert len(work.queue("ben", "2-grounding-en")) == 2  # of two answers at once
    assert len(work.queue("ben", "practice-1-retrieval-en")) == 2


def test_the_pass_mark_opens_the_list_and_a_wrong_answer_may_be_among_them(owner: Argilla) -> None:
    work = practised(owner, tasks=["retrieval"], cases=4)  # 12 answers, 9 of them have to agree
    work.practise("anna", "practice-1-retrieval-en", wrong=3, count=3)
    assert work.queue("anna", "1-retrieval-en") == []
    work.practise("anna", "practice-1-retrieval-en")
    found = work.lists("anna")["practice-1-retrieval-en"]["practice"]
    assert (found["right"], found["known"], found["wanted"], found["opens"]) == (9, 12, 9, True)
    assert len(work.queue("anna", "1-retrieval-en")) == 2
    assert work.queue("ben", "1-retrieval-en") == []


def test_an_answer_that_comes_before_practice_is_refused_however_it_is_sent(owner: Argilla, work: Practised) -> None:
    page = next(owner.record_pages(work.dataset("1-retrieval-en")))[1]
    body = {"status": "submitted", "values": yes_to_all("retrieval")}
    with work.herself("ben") as ben:
        with pytest.raises(ArgillaError, match="opens once you have passed its practice"):
            ben.request("POST", f"/records/{page[0]['id']}/responses", json=body)
        sent = ben.request("POST", "/me/responses/bulk", json={"items": [body | {"record_id": page[0]["id"]}]})
    assert "opens once you have passed its practice" in str(sent["items"][0]["error"])
    (again,) = (
        item for item in next(owner.record_pages(work.dataset("1-retrieval-en")))[1] if item["id"] == page[0]["id"]
    )
    assert again["responses"] == []


def test_the_refusal_before_practice_is_in_the_lists_language(owner: Argilla) -> None:
    work = practised(owner, locales=("de",), tasks=["retrieval"], cases=1)
    record_id = next(owner.record_pages(work.dataset("1-retrieval-de")))[1][0]["id"]
    body = {"status": "submitted", "values": yes_to_all("retrieval")}
    with work.herself("ben") as ben, pytest.raises(ArgillaError, match="sobald Sie die Übung dazu bestanden haben"):
        ben.request("POST", f"/records/{record_id}/responses", json=body)


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
        assert anna.request("POST", again)["attempts"] == 1
        assert waiting(anna, dataset) == [case]
        with pytest.raises(NotFoundError):
            anna.request("GET", explanation)
        work.practise("anna", "practice-1-retrieval-en")
        standing = anna.request("GET", explanation)["standing"]
        assert (standing["right"], standing["opens"], standing["attempts"]) == (3, True, 1)
        with pytest.raises(ArgillaError, match="it is not passed"):
            anna.request("POST", again)
    with work.herself("ben") as ben, pytest.raises(NotFoundError):
        ben.request("GET", explanation)


def test_beginning_anew_is_done_as_a_whole_or_not_at_all(owner: Argilla, argilla_server: "ServerHandle") -> None:
    work = practised(owner, tasks=["retrieval"], cases=2)
    dataset = work.dataset("practice-1-retrieval-en")
    work.practise("anna", "practice-1-retrieval-en", wrong=6)
    (*_, last) = (item["id"] for item in next(owner.record_pages(dataset))[1])
    refuse = (
        f"CREATE TRIGGER refuse_{UUID(last).hex} BEFORE DELETE ON responses WHEN OLD.record_id = '{UUID(last).hex}' "
        "BEGIN SELECT RAISE(ABORT, 'as if killed'); END"
    )
    with closing(sqlite3.connect(argilla_server.home / "data" / "argilla.db", timeout=60)) as database:
        database.execute(refuse)
        try:
            with work.herself("anna") as anna, pytest.raises(ArgillaError):
                anna.request("POST", f"/citejury/datasets/{dataset}/practice/again")
        finally:
            database.execute(f"DROP TRIGGER refuse_{UUID(last).hex}")
    found = work.lists("anna")["practice-1-retrieval-en"]["practice"]
    assert (found["answered"], found["attempts"]) == (2, 0)
    with work.herself("anna") as anna:
        again = anna.request("POST", f"/citejury/datasets/{dataset}/practice/again")
    assert (again["answered"], again["attempts"]) == (0, 1)
    assert {item["status"] for item in next(owner.record_pages(dataset))[1]} == {"pending"}


def test_nothing_that_an_annotator_gets_before_she_submits_has_the_known_answers(work: Practised) -> None:
    dataset = work.dataset("practice-1-retrieval-en")
    with work.herself("ben") as ben:
        case = waiting(ben, dataset)[0]
        seen = [ben.request("GET", path) for path in (f"/records/{case}", f"/datasets/{dataset}", "/me/datasets")]
        with pytest.raises(NotAllowedError):
            ben.request("GET", f"/datasets/{dataset}/records")
        with pytest.raises(NotAllowedError):
            ben.request("GET", f"/citejury/datasets/{dataset}/practice")
    assert "citejury_assignment" not in str(seen)
    assert work.cases[0].explanations["misleading"] not in str(seen)


def test_practice_is_exported_only_by_its_name(owner: Argilla, tmp_path: Path) -> None:
    work = practised(owner, tasks=["retrieval"], cases=1)
    work.practise("anna", "practice-1-retrieval-en")
    with work.herself("anna") as anna:
        for record_id in work.queue("anna", "1-retrieval-en"):
            body = {"status": "submitted", "values": yes_to_all("retrieval")}
            anna.request("POST", f"/records/{record_id}/responses", json=body)
    export_csv(owner, work.workspace, tmp_path / "all")
    rows = (tmp_path / "all" / "retrieval.csv").read_text(encoding="utf-8")
    assert rows.count(",retrieval,") == 2
    assert work.cases[0].record.record_uuid not in rows
    export_csv(owner, work.workspace, tmp_path / "named", ExportFilters(rounds=("practice",)))
    assert work.cases[0].record.record_uuid in (tmp_path / "named" / "retrieval.csv").read_text(encoding="utf-8")


def test_cases_come_once_follow_their_file_and_stay_where_they_are_wanted_no_longer(owner: Argilla) -> None:
    work = practised(owner, tasks=["retrieval"], cases=3)
    assert prepare_practice(owner, work.campaign, work.workspace, work.cases) == (0, 0, 3, 0)
    changed = work.cases[0]._replace(answers={**work.cases[0].answers, "evidence_sufficient": False})
    assert prepare_practice(owner, work.campaign, work.workspace, [changed, work.cases[1]]) == (0, 1, 1, 1)


def test_the_lead_opens_a_list_to_somebody_who_has_not_passed(owner: Argilla) -> None:
    from annotation.quality.practice import open_for, practice_datasets

    work = practised(owner, tasks=["retrieval"], cases=1)
    (dataset,) = practice_datasets(owner, [work.workspace])
    user = next(each["id"] for each in owner.users() if each["username"] == work.names["anna"])
    assert open_for(owner, dataset, user)
    assert not open_for(owner, dataset, user)
    assert len(work.queue("anna", "1-retrieval-en")) == 2
    assert work.queue("ben", "1-retrieval-en") == []
    told = owner.request("GET", f"/citejury/datasets/{dataset.id}/practice")["items"]
    assert [(each["username"], each["opens"], each["opened"]) for each in told] == [
        (work.names["anna"], True, True),
        (work.names["ben"], False, False),
    ]


def test_her_sheet_names_practice_first_and_says_so(owner: Argilla, tmp_path: Path) -> None:
    work = practised(owner, locales=("de",), tasks=["retrieval"], cases=1)
    share_sheets(owner, work.workspace, work.campaign, tmp_path)
    (sheet,) = tmp_path.glob(f"sheet-{work.names['anna']}*.html")
    text = sheet.read_text(encoding="utf-8")
    assert text.index("practice-1-retrieval-de") < text.index(">1-retrieval-de")
    assert "Übung, bitte vor allem anderen" in text


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


def test_until_the_pass_mark_is_written_the_rest_stays_closed(owner: Argilla) -> None:
    work = practised(owner, tasks=["retrieval"], cases=1)
    dataset = work.dataset("practice-1-retrieval-en")
    work.practise("anna", "practice-1-retrieval-en")
    assert len(work.queue("anna", "1-retrieval-en")) == 2
    for each in properties_of(owner, dataset):
        if each["name"].startswith(PASS_MARK):
            owner.request("DELETE", f"/metadata-properties/{each['id']}")
    assert work.queue("anna", "1-retrieval-en") == []
    prepare_practice(owner, work.campaign, work.workspace, work.cases)
    assert len(work.queue("anna", "1-retrieval-en")) == 2


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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argilla_server: ServerHandle) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    return tmp_path


def write_campaign(folder: Path, workspace: str, practice: str) -> None:
    text = f'workspace = "{workspace}"\n[campaign]\nlocales = ["en"]\n[campaign.practice]\n{practice}\n'
    (folder / "citejury.toml").write_text(text, encoding="utf-8")


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["annotation", *words])


def test_setup_brings_the_cases_and_a_second_one_changes_nothing(folder: Path, owner: Argilla) -> None:
    write_campaign(folder, f"practice-{uuid4().hex[:8]}", 'tasks = ["retrieval"]')
    plan = run("setup", "--dry-run")
    assert "opens the rest at 0.75" in plan.output
    first, second = run("setup"), run("setup")
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert "Practice: 8 cases new, 0 changed, 0 there already." in first.output
    assert "Practice: 0 cases new, 0 changed, 8 there already." in second.output
    assert "nothing was changed" in second.output
    assert "practice" not in second.output.partition("Practice:")[0].partition("No work so far")[2]


def test_a_case_without_an_answer_is_refused_before_anything_is_done(folder: Path, owner: Argilla) -> None:
    workspace = f"practice-{uuid4().hex[:8]}"
    write_campaign(folder, workspace, 'file = "cases.toml"')
    (folder / "cases.toml").write_text('[[retrieval]]\nquery = "Who?"\npassages = [{ text = "He." }]\n', "utf-8")
    refused = run("setup")
    assert refused.exit_code == 1
    (line,) = refused.output.strip().splitlines()
    assert "`cases.toml`: case 1 of retrieval has no answer to `topically_relevant`" in line
    assert workspace not in owner.workspaces()


def test_no_record_is_pushed_into_practice(folder: Path, owner: Argilla) -> None:
    work = practised(owner, tasks=["retrieval"], cases=1)
    write_campaign(folder, work.workspace, 'tasks = ["retrieval"]')
    (folder / "records.jsonl").write_text(f"{work.cases[0].record.model_dump_json()}\n", encoding="utf-8")
    pushed = run("push", "records.jsonl", "--round", "practice")
    assert pushed.exit_code == 1
    assert "The round 'practice' is for known cases" in pushed.output


def test_the_lead_sees_who_has_passed_and_opens_the_rest(folder: Path, owner: Argilla) -> None:
    work: Practised = practised(owner, tasks=["retrieval"], cases=1)
    write_campaign(folder, work.workspace, 'tasks = ["retrieval"]')
    work.practise("anna", "practice-1-retrieval-en")
    work.practise("ben", "practice-1-retrieval-en", wrong=3)
    shown = run("practice", "show").output
    rows = [line.split() for line in shown.splitlines() if work.workspace in line]
    assert [row[-1] for row in rows] == ["yes", "no"]
    assert "3 of 3, 3 wanted" in shown
    assert "0 of 3, 3 wanted" in shown
    assert "Next: citejury annotation practice open NAME" in shown
    opened = run("practice", "open", work.names["ben"], "--task", "retrieval")
    assert f"retrieval (en) opened to {work.names['ben']}" in opened.output
    assert "by the lead" in run("practice", "show").output
    assert "practice ·" not in run("status").output
    assert "hold no record" not in run("status").output
    assert len(work.queue("ben", "1-retrieval-en")) == 2
    assert "no practice of that task" in run("practice", "open", work.names["ben"], "--task", "grounding").output
    assert "has no user 'nobody'" in run("practice", "open", "nobody").output


def test_without_practice_the_commands_say_how_to_get_one(folder: Path, owner: Argilla) -> None:
    workspace = f"practice-{uuid4().hex[:8]}"
    (folder / "citejury.toml").write_text(f'workspace = "{workspace}"\n', encoding="utf-8")
    assert run("setup").exit_code == 0
    shown = run("practice", "show")
    assert shown.exit_code == 1
    assert "Add `[campaign.practice]` to citejury.toml and run `citejury annotation setup`" in shown.output
