"""Long texts, bad input, narrow windows, fingers and a link that is gone: all stays in reach, and nothing is lost."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.labels import OWN_TASKS, add_task
from annotation.argilla.task_file import read_task
from annotation.campaign.file import Campaign
from annotation.campaign.people import Passwords
from annotation.campaign.setup import apply_plan, plan_campaign
from annotation.push.push import push_records
from pipeline.records.schema import Passage, QueryResponse, Source, join_context
from tests.support.page_driver import RECORD_ID, complaints, log_in, wait, window_size
from tests.support.task_files import write_claims

pytestmark = [pytest.mark.server, pytest.mark.browser]

SENTENCE = "Honey eased the cough of children a little better than no treatment. "


def long_record(answer: int, passage: int, query: int = 70, sources: int = 30) -> QueryResponse:
    """A record with so many letters in each text, its sources cited one after the other."""
    listed, chunks = [], []
    for n in range(1, sources + 1):
        page = {"url": f"https://site{n}.example/a", "title": f"Page {n}"}
        listed.append(Source(n=n, host=f"site{n}.example", state="read", **page))
        text = SENTENCE * (passage // len(SENTENCE) if n == 1 else 6)
        chunks.append(Passage(chunk_id=f"d{n}#0", doc_id=f"d{n}", chunk_rank=n, text=text.strip(), **page))
    claims = (f"{SENTENCE * (answer // sources // len(SENTENCE))}Claim {n} [{n}]." for n in range(1, sources + 1))
    said = {"query": (SENTENCE * (query // len(SENTENCE) + 1))[:query], "answer": "\n\n".join(claims)}
    return QueryResponse(
        record_uuid=str(uuid4()),
        language="en",
        sources=tuple(listed),
        chunks=tuple(chunks),
        context_set=join_context(chunks),
        **said,
    )


def lists(owner: Argilla, driver: Chrome, records: list[QueryResponse], *more: str) -> dict[str, str]:
    """Datasets by task, of which the browser's annotator has these records."""
    name = f"long-{uuid4().hex[:8]}"
    asked = {"locales": ["en"], "tasks": [*OWN_TASKS, *more], "annotators": [{"name": name}]}
    users: list[Any] = []
    wanted = Campaign.model_validate(asked)
    apply_plan(owner, plan_campaign(owner, wanted, name), Passwords(announce=users.append))
    push_records(owner, name, records, "en")
    log_in(driver, owner.api_url, name, users[0].password)
    return {each["name"].split("-")[1]: each["id"] for each in owner.datasets(owner.find_workspace(name))}


def opened(driver: Chrome, owner: Argilla, dataset: str) -> None:
    driver.get(f"{owner.api_url}/dataset/{dataset}/annotation-mode?page=1&status=pending")
    wait(driver, lambda: driver.execute_script(RECORD_ID))
    wait(driver, lambda: driver.execute_script("return document.activeElement.type === 'radio'"))


STOP = """const each = document.activeElement;
const place = [...document.querySelectorAll(".questions > div")].findIndex((box) => box.contains(each));
const pane = each.getAttribute("role") === "region" && each.closest("[data-citejury-field]")?.dataset.citejuryField;
return place >= 0 ? place : pane || each.getAttribute("role") || each.className || each.tagName"""
ENTER = """document.querySelectorAll(".questions > div")[arguments[0]]
  .querySelector("input, [contenteditable]").focus()"""


def walk(driver: Chrome, until: object, most: int, backwards: bool = False) -> list[object]:
    stops: list[object] = []
    while until not in stops and len(stops) < most:
        keys = ActionChains(driver)
        (
            keys.key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT) if backwards else keys.send_keys(Keys.TAB)
        ).perform()
        stops.append(driver.execute_script(STOP))
    return stops


def test_what_is_read_is_six_steps_from_each_question_and_tab_comes_back(
    owner: Argilla, browser: Chrome, tmp_path: Path
) -> None:
    claims = add_task(read_task(write_claims(tmp_path)))
    datasets = lists(owner, browser, [long_record(9000, 6000)], claims)
    panes = {"retrieval": "region", "generation": "region"}
    with window_size(browser, 1366, 768):
        for task, dataset in datasets.items():
            opened(browser, owner, dataset)
            count = browser.execute_script("return document.querySelectorAll('.questions > div').length")
            pane = panes.get(task, "answer")
            for question in {0, count - 2, count - 1}:
                browser.execute_script(ENTER, question)
                stops = walk(browser, pane, 9, backwards=True)
                assert (task, question, len(stops) <= 6) == (task, question, True), stops
                if question < count - 1:
                    back = walk(browser, question, 9)
                    assert (back[:-1], back[-1]) == ([*stops[-2::-1]], question)
            browser.execute_script("document.querySelector('.breadcrumbs a').focus()")
            circle = walk(browser, "BODY", 60)
            read = ["answer", "tab", "context"] if pane == "answer" else [pane]
            assert [each for each in circle if each in read or isinstance(each, int)] == [*read, *range(count)], (
                task,
                circle,
            )
    assert complaints(browser) == []
