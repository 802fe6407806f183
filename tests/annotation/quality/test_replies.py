"""Replies to annotators' questions: who gets them, how the status counts, and what becomes of the guidelines."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

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
from tests.support.lossy_link import stock_argilla
from tests.support.page_campaign import Campaign, campaign

QUESTION = "? Does <b>a snippet</b> count,\nor *only* pages?"


def test_a_reply_stands_in_the_guidelines_as_text_whatever_is_in_it() -> None:
    rules = [(QUESTION, "<script>alert(1)</script>\n# No heading\n- [x](javascript:1) https://a.example | b")]
    text = "# Rules\n" + closing_rules("Questions", rules)
    shown = str(markdown_to_html(text))
    assert shown.count("<h1>") == shown.count("<h2>") == 1
    assert not any(tag in shown for tag in ("<script", "<b>", "<em>", "<li>", "<a ", "<table"))
    assert "[x](javascript:1) https://a.example | b" in shown
    assert without_rules(text, "Questions") == without_rules("# Rules\n", "Questions") == "# Rules\n"
    assert closing_rules("Questions", []) == ""


class Case(NamedTuple):
    """A record of a campaign of two people, about which the first of them asks."""

    work: Campaign
    record_id: str
    command: Callable[..., Result]

    @property
    def asker(self) -> str:
        return next(iter(self.work.passwords))

    @property
    def other(self) -> str:
        return list(self.work.passwords)[1]

    def run(self, *words: str, **how: Any) -> Result:
        return self.command("annotation", *words, "--workspace", self.work.workspace, **how)

    def reply(self, *words: str, to: str = QUESTION, **how: Any) -> Result:
        return self.run("reply", self.name_of(to), *words, **how)

    def name_of(self, text: str = QUESTION) -> str:
        return question_id(self.record_id, self.work.ids[self.asker], text)


@pytest.fixture(scope="module")
def records(client: Argilla) -> tuple[Campaign, Iterator[str]]:
    """A campaign, and a record of it for each test."""
    made = campaign(client, records=12, annotators=2)
    return made, (unit.record_id for unit in list(read_units(client, made.dataset)))


@pytest.fixture
def work(records: tuple[Campaign, Iterator[str]], command: Callable[..., Result]) -> Case:
    case = Case(records[0], next(records[1]), command)
    ask(case, QUESTION)
    return case


def as_user(work: Case, username: str) -> Argilla:
    owner = work.work.owner
    users = owner.request("GET", "/users")["items"]
    return Argilla(owner.api_url, next(str(user["api_key"]) for user in users if user["username"] == username))


def ask(work: Case, text: str) -> None:
    values = {"notes": {"value": text}, "misleading": {"value": "no"}}
    with as_user(work, work.asker) as asker:
        body = {"record_id": work.record_id, "status": "draft", "values": values}
        assert not asker.request("POST", "/me/responses/bulk", json={"items": [body]})["items"][0]["error"]


def questions(work: Case) -> dict[str, str]:
    """The reply to each question on the record by its text."""
    status = Status.model_validate_json(work.run("status", "--json").stdout)
    assert any(notice.kind == "questions" for notice in status.notices) == any(not q.reply for q in status.questions)
    return {question.text: question.reply for question in status.questions if question.record_id == work.record_id}


def seen_by(work: Case, username: str) -> tuple[list[Any], list[Any]]:
    """The replies that a person gets on the record, and on their start page."""
    with as_user(work, username) as user:
        on_record = user.request("GET", f"/citejury/records/{work.record_id}/replies")["replies"]
        own = user.request("GET", "/citejury/me/replies")["replies"]
        return on_record, [each["text"] for each in own if each["dataset_id"] == work.work.dataset]


@pytest.mark.server
def test_who_asked_gets_the_reply_and_nobody_else_and_the_question_is_answered(work: Case) -> None:
    assert questions(work) == {QUESTION: ""}
    listed = work.run("reply").stdout
    assert work.name_of() in listed
    assert "| ? Does <b>a snippet</b> count," in listed
    assert work.asker in work.reply("Pages <b>only</b>.").stderr
    assert questions(work) == {QUESTION: "Pages <b>only</b>."}
    on_record, on_start_page = seen_by(work, work.asker)
    assert on_record == [{"question": QUESTION, "text": "Pages <b>only</b>."}]
    assert (on_start_page[-1], seen_by(work, work.other)) == ("Pages <b>only</b>.", ([], []))
    assert work.name_of() not in work.run("reply").stdout
    for username in (work.asker, work.other):
        with as_user(work, username) as user:
            paths = (f"/me/datasets/{work.work.dataset}/metadata-properties", f"/records/{work.record_id}")
            sent = [json.dumps(user.request("GET", path)) for path in paths]
            with pytest.raises(NotAllowedError):
                user.request("GET", f"/datasets/{work.work.dataset}/records")
        assert "Pages <b>only" not in "".join(sent)


@pytest.mark.server
def test_a_reply_for_everyone_names_neither_question_nor_person_and_a_later_reply_replaces_it(work: Case) -> None:
    work.reply("First.")
    work.reply("Second.", "--everyone")
    assert seen_by(work, work.asker)[0] == [{"question": QUESTION, "text": "Second."}]
    assert seen_by(work, work.other) == ([{"question": None, "text": "Second."}], [])
    stranger = next(iter(campaign(work.work.owner, records=1, annotators=1).passwords))
    with as_user(work, stranger) as user, pytest.raises((NotAllowedError, NotFoundError)):
        user.request("GET", f"/citejury/records/{work.record_id}/replies")


@pytest.mark.rare
@pytest.mark.server
def test_another_question_on_the_same_record_is_open_again(work: Case) -> None:
    work.reply("Yes.")
    ask(work, "？もう一つ")
    assert questions(work) == {"？もう一つ": ""}
    work.reply("はい。", to="？もう一つ")
    assert questions(work) == {"？もう一つ": "はい。"}


@pytest.mark.rare
@pytest.mark.server
def test_the_guidelines_get_question_and_reply_as_a_new_version_that_setup_keeps(work: Case) -> None:
    owner, workspace = work.work.owner, work.work.workspace

    def guidelines() -> str:
        return str(owner.request("GET", f"/datasets/{work.work.dataset}")["guidelines"])

    before = guidelines()
    done = work.reply("Yes, it *counts*.", "--guidelines", "--as", "Does a snippet count?")
    assert "Guidelines changed: 1-retrieval-en." in done.stderr, done.output
    assert guidelines().startswith(before)
    assert guidelines().endswith("**Does a snippet count?**\n\nYes, it \\*counts\\*\\.\n")
    assert not set_up(owner, workspace, min_submitted=2).changed
    assert set_up(owner, workspace, round_name="later").changed
    texts = [each["guidelines"] for each in owner.datasets(owner.find_workspace(workspace))]
    assert sum(text.endswith("counts\\*\\.\n") for text in texts) == 2
    assert "Guidelines changed: 1-retrieval-en, later-1-retrieval-en." in work.reply("No.").stderr
    assert guidelines() == before


@pytest.mark.rare
@pytest.mark.server
def test_what_cannot_be_done_is_refused_before_anything_is_kept_and_a_stock_argilla_keeps_the_reply(work: Case) -> None:
    assert "Argilla takes 10,000" in work.reply("long " * 2000, "--guidelines", code=1).stderr
    assert "no question '000000'" in work.run("reply", "000000", "Yes.", code=1).stderr
    assert questions(work) == {QUESTION: ""}
    with stock_argilla(work.work.owner.api_url) as link:
        done = work.reply("Yes.", "--api-url", link.url)
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
