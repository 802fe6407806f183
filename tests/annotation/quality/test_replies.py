"""Replies to annotators' questions: who gets them, how the status counts, and what becomes of the guidelines."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.pages import markdown_to_html
from annotation.argilla.units import read_units
from annotation.campaign.replies import closing_rules, question_id, without_rules
from annotation.campaign.setup import set_up
from annotation.quality.schema import Status
from exports.cli import main
from pipeline.core.errors import NotAllowedError, NotFoundError
from tests.support.lossy_link import Forward, lossy_link
from tests.support.page_campaign import Campaign, campaign

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

QUESTION = "? Does <b>a snippet</b> count,\nor *only* pages?"


def test_a_reply_stands_in_the_guidelines_as_text_whatever_is_in_it() -> None:
    rules = [(QUESTION, "<script>alert(1)</script>\n# No heading\n- [x](javascript:1) https://a.example | b")]
    text = "# Rules\n" + closing_rules("Questions", rules)
    shown = str(markdown_to_html(text))
    assert shown.count("<h1>") == shown.count("<h2>") == 1
    assert not any(tag in shown for tag in ("<script", "<b>", "<em>", "<li>", "<a ", "<table"))
    assert "[x](javascript:1) https://a.example | b" in shown
    assert without_rules(text, "Questions") == "# Rules\n"


def test_guidelines_without_replies_stay_as_they_are() -> None:
    assert closing_rules("Questions", []) == ""
    assert without_rules("# Rules\n", "Questions") == "# Rules\n"


class Case(NamedTuple):
    """A record of a campaign of two people, about which the first of them asks."""

    owner: Argilla
    work: Campaign
    record_id: str

    @property
    def workspace(self) -> str:
        return self.work.workspace

    @property
    def dataset(self) -> str:
        return self.work.dataset


@pytest.fixture(scope="module")
def records(client: Argilla) -> tuple[Campaign, Iterator[str]]:
    """A campaign, and a record of it for each test."""
    made = campaign(client, records=12, annotators=2)
    return made, (unit.record_id for unit in list(read_units(client, made.dataset)))


@pytest.fixture
def work(
    owner: Argilla,
    records: tuple[Campaign, Iterator[str]],
    monkeypatch: pytest.MonkeyPatch,
    argilla_server: "ServerHandle",
) -> Case:
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    case = Case(owner, records[0], next(records[1]))
    ask(case, QUESTION)
    return case


def asker_and_other(work: Case) -> tuple[str, str]:
    first, second = work.work.passwords
    return first, second


def key_of(work: Case, username: str) -> str:
    users = work.owner.request("GET", "/users")["items"]
    return next(str(user["api_key"]) for user in users if user["username"] == username)


def ask(work: Case, text: str) -> None:
    values = {"notes": {"value": text}, "misleading": {"value": "no"}}
    with Argilla(work.owner.api_url, key_of(work, asker_and_other(work)[0])) as herself:
        body = {"record_id": work.record_id, "status": "draft", "values": values}
        assert not herself.request("POST", "/me/responses/bulk", json={"items": [body]})["items"][0]["error"]


def run(work: Case, *words: str) -> Result:
    return CliRunner().invoke(main, ["annotation", *words, "--workspace", work.workspace])


def questions(work: Case) -> dict[str, str]:
    """The reply to each question on the record by its text."""
    status = Status.model_validate_json(run(work, "status", "--json").stdout)
    assert any(notice.kind == "questions" for notice in status.notices) == any(not q.reply for q in status.questions)
    return {question.text: question.reply for question in status.questions if question.record_id == work.record_id}


def seen_by(work: Case, username: str) -> tuple[list[Any], list[Any]]:
    """What the server tells a person on the record, and on her start page."""
    with Argilla(work.owner.api_url, key_of(work, username)) as herself:
        on_record = herself.request("GET", f"/citejury/records/{work.record_id}/replies")["replies"]
        own = herself.request("GET", "/citejury/me/replies")["replies"]
        return on_record, [each["text"] for each in own if each["dataset_id"] == work.dataset]


def name_of(work: Case, text: str = QUESTION) -> str:
    return question_id(work.record_id, work.work.ids[asker_and_other(work)[0]], text)


@pytest.mark.server
def test_who_asked_gets_the_reply_and_nobody_else_and_the_question_is_answered(work: Case) -> None:
    asker, other = asker_and_other(work)
    assert questions(work) == {QUESTION: ""}
    listed = run(work, "reply")
    assert name_of(work) in listed.stdout
    assert "| ? Does <b>a snippet</b> count," in listed.stdout
    done = run(work, "reply", name_of(work), "Pages <b>only</b>.")
    assert done.exit_code == 0, done.output
    assert asker in done.stderr
    assert questions(work) == {QUESTION: "Pages <b>only</b>."}
    on_record, on_start_page = seen_by(work, asker)
    assert on_record == [{"question": QUESTION, "text": "Pages <b>only</b>."}]
    assert on_start_page[-1] == "Pages <b>only</b>."
    assert seen_by(work, other) == ([], [])
    assert name_of(work) not in run(work, "reply").stdout


@pytest.mark.server
def test_a_reply_for_everyone_names_neither_question_nor_person_and_a_later_reply_replaces_it(work: Case) -> None:
    asker, other = asker_and_other(work)
    run(work, "reply", name_of(work), "First.")
    run(work, "reply", name_of(work), "Second.", "--everyone")
    assert seen_by(work, asker)[0] == [{"question": QUESTION, "text": "Second."}]
    assert seen_by(work, other) == ([{"question": None, "text": "Second."}], [])


@pytest.mark.server
def test_another_question_on_the_same_record_is_open_again(work: Case) -> None:
    run(work, "reply", name_of(work), "Yes.")
    ask(work, "？もう一つ")
    assert questions(work) == {"？もう一つ": ""}
    assert run(work, "reply", name_of(work, "？もう一つ"), "はい。").exit_code == 0
    assert questions(work) == {"？もう一つ": "はい。"}


@pytest.mark.server
def test_an_annotator_finds_no_reply_of_others_by_any_way_of_the_server(work: Case) -> None:
    asker, other = asker_and_other(work)
    run(work, "reply", name_of(work), "Said to one person.")
    for username in (asker, other):
        with Argilla(work.owner.api_url, key_of(work, username)) as herself:
            paths = (f"/me/datasets/{work.dataset}/metadata-properties", f"/records/{work.record_id}")
            sent = [json.dumps(herself.request("GET", path)) for path in paths]
            with pytest.raises(NotAllowedError):
                herself.request("GET", f"/datasets/{work.dataset}/records")
        assert "Said to one person" not in "".join(sent)


@pytest.mark.server
def test_who_is_not_of_the_workspace_gets_no_reply(work: Case, owner: Argilla) -> None:
    run(work, "reply", name_of(work), "Yes.", "--everyone")
    stranger = next(iter(campaign(owner, records=1, annotators=1).passwords))
    with (
        Argilla(work.owner.api_url, key_of(work, stranger)) as herself,
        pytest.raises((NotAllowedError, NotFoundError)),
    ):
        herself.request("GET", f"/citejury/records/{work.record_id}/replies")


@pytest.mark.server
def test_the_guidelines_get_question_and_reply_as_a_new_version_that_setup_keeps(work: Case) -> None:
    before = work.owner.request("GET", f"/datasets/{work.dataset}")["guidelines"]
    words = ("reply", name_of(work), "Yes, it *counts*.", "--guidelines", "--as", "Does a snippet count?")
    done = run(work, *words)
    assert "Guidelines changed: 1-retrieval-en." in done.stderr, done.output
    after = work.owner.request("GET", f"/datasets/{work.dataset}")["guidelines"]
    assert after.startswith(before)
    assert after.endswith("**Does a snippet count?**\n\nYes, it \\*counts\\*\\.\n")
    again = set_up(work.owner, work.workspace, min_submitted=2)
    assert not [step for step in again.steps if step.done != "kept"]
    later = set_up(work.owner, work.workspace, round_name="later")
    assert later.changed
    texts = [each["guidelines"] for each in work.owner.datasets(work.owner.find_workspace(work.workspace))]
    assert sum(text.endswith("counts\\*\\.\n") for text in texts) == 2
    assert "Guidelines changed: 1-retrieval-en, later-1-retrieval-en." in run(work, *words[:2], "No.").stderr
    assert work.owner.request("GET", f"/datasets/{work.dataset}")["guidelines"] == before


@pytest.mark.server
def test_guidelines_that_would_be_too_long_are_refused_before_anything_is_kept(work: Case) -> None:
    refused = run(work, "reply", name_of(work), "long " * 2000, "--guidelines")
    assert refused.exit_code == 1
    assert "Argilla takes 10,000" in refused.stderr
    assert questions(work) == {QUESTION: ""}


@pytest.mark.server
def test_a_stock_argilla_keeps_the_reply_and_the_lead_is_told_that_it_shows_none(work: Case) -> None:
    class StockArgilla(Forward):
        """The same server without our routes."""

        def do_GET(self) -> None:
            self.path = self.path.replace("/citejury/", "/unknown/")
            self.forward()

    with lossy_link(work.owner.api_url) as link:
        link.RequestHandlerClass = StockArgilla
        done = run(work, "reply", name_of(work), "Yes.", "--api-url", link.url)
    assert "shows replies nowhere but in guidelines" in done.stderr
    assert questions(work) == {QUESTION: "Yes."}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("3fa2c1",), "There is no reply"),
        (("3fa2c1", " "), "There is no reply"),
        (("--everyone",), "need a question"),
        (("3fa2c1", "Yes.", "--as", "x"), "Give `--guidelines`"),
    ],
)
def test_options_that_do_not_fit_are_refused_at_once(words: tuple[str, ...], said: str) -> None:
    refused = CliRunner().invoke(main, ["annotation", "reply", *words])
    assert refused.exit_code == 2
    assert said in refused.stderr


@pytest.mark.server
def test_a_question_that_is_not_there_is_named(work: Case) -> None:
    refused = run(work, "reply", "000000", "Yes.")
    assert refused.exit_code == 1
    assert "no question '000000'" in refused.stderr
