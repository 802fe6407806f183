"""The page of an adjudicator: the disputed question with its reason, no other one, and an answer that is taken."""

from typing import Any
from uuid import uuid4

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.campaign.setup import NewUser, set_up
from annotation.push.push import push_records
from annotation.server.launch import ServerHandle
from exports.adjudicate.adjudication import Home, UnitId
from exports.adjudicate.push import push_units
from tests.support.adjudication_data import answer
from tests.support.page_driver import RECORD_ID, complaints, log_in, open_form, press, shown_text, wait
from tests.support.page_driver import answer as choose

pytestmark = [pytest.mark.server, pytest.mark.browser]
ASKED = """return [...document.querySelectorAll('form.questions-form .questions > div')]
  .filter((box) => box.querySelector('[type=radio]')).map((box) => box.querySelector('[type=radio]').name)"""
HINT = "The annotators differ on what is asked here. Please decide; nothing else is asked."
SPLIT = {"r1": ("helpful",), "r2": ("proper_action", "incomplete")}


def test_only_disputed_are_asked(owner: Argilla, argilla_server: ServerHandle, browser: webdriver.Chrome) -> None:
    workspace, made = f"disputed-{uuid4().hex[:8]}", list[NewUser]()
    name = f"{workspace}-dora"
    set_up(owner, workspace, annotators=[f"{workspace}-anna"], announce=made.append)
    set_up(owner, f"{workspace}-other", annotators=[name], announce=made.append)
    password = next(each.password for each in made if each.username == name)
    push_records(owner, workspace, [answer(1), answer(2)])
    home = Home(workspace, (workspace,), ())
    split = {UnitId("generation", record, ""): labels for record, labels in SPLIT.items()}
    push_units(owner, [home], split, "blind", [name])
    (dataset,) = owner.datasets(owner.find_workspace(f"{workspace}-adjudication"))
    log_in(browser, argilla_server.url, name, password)
    open_form(browser, argilla_server.url, dataset["id"])
    decided: dict[str, tuple[str, ...]] = {}

    def answered() -> list[dict[str, Any]]:
        """The records that have a response."""
        return [record for _, page in owner.record_pages(dataset["id"]) for record in page if record["responses"]]

    for _ in SPLIT:
        shown = browser.execute_script(RECORD_ID)
        labels = tuple(wait(browser, lambda: len(found := browser.execute_script(ASKED)) < 5 and found))
        assert shown_text(browser, "#citejury-disputed") == HINT
        choose(browser, [(label, True) for label in labels])
        decided[shown] = labels
        press(browser, Keys.RETURN)
        wait(browser, lambda: len(answered()) == len(decided))
        wait(browser, lambda before=shown: len(decided) == len(SPLIT) or browser.execute_script(RECORD_ID) != before)
    stored = {record["id"]: record for record in answered()}
    assert {stored[shown]["external_id"]: labels for shown, labels in decided.items()} == SPLIT
    answers = {record["external_id"]: record["responses"][0]["values"] for record in stored.values()}
    assert answers == {record: {label: {"value": "yes"} for label in labels} for record, labels in SPLIT.items()}
    assert complaints(browser) == []
