"""Long texts, bad input, narrow windows, fingers and a link that is gone: all stays in reach, and nothing is lost."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, OWN_TASKS, add_task
from annotation.argilla.task_file import read_task
from annotation.campaign.file import Campaign
from annotation.campaign.people import Passwords
from annotation.campaign.setup import apply_plan, plan_campaign
from annotation.push.push import push_records
from pipeline.records.schema import Passage, QueryResponse, Source, join_context
from tests.support.long_reports import SEEN
from tests.support.lossy_link import LossyLink
from tests.support.page_campaign import CONTRADICTION, campaign, submit
from tests.support.page_campaign import opened as opened_queue
from tests.support.page_driver import (
    RECORD_ID,
    answer,
    complaints,
    kept,
    log_in,
    notice,
    press,
    shown_text,
    wait,
    window_size,
)
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


VALUES = {label: "yes" if yes else "no" for label, yes in CONTRADICTION.items()}
# What is kept, an hour older.
HOUR = """Object.keys(localStorage).filter((key) => key.startsWith("citejury:")).forEach((key) => {
  const entry = JSON.parse(localStorage[key]);
  localStorage[key] = JSON.stringify({ ...entry, at: entry.at - 3600000, due: entry.due - 3600000 });
})"""
OVER = "return document.scrollingElement.scrollWidth - innerWidth"
PRESSED = """const [selector, text] = arguments;
const each = [...document.querySelectorAll(selector)]
  .find((found) => found.checkVisibility({ visibilityProperty: true }) && (!text || found.innerText.includes(text)));
each.scrollIntoView({ block: "center", behavior: "instant" });
const { left, top, width, height } = each.getBoundingClientRect();
const [x, y] = [left + width / 2, top + height / 2];
return [x, y, width, height, each.contains(document.elementFromPoint(x, y))]"""


@contextmanager
def fingers(driver: Chrome, width: int, height: int) -> Iterator[None]:
    with window_size(driver, width, height):
        driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
        yield
        driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def tap(driver: Chrome, selector: str, text: str = "") -> None:
    def tapped() -> bool:
        x, y, width, height, is_free = driver.execute_script(PRESSED, selector, text)
        if not is_free:
            return False
        assert min(width, height) >= 23.5, (selector, width, height)
        driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
        driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        return True

    wait(driver, tapped, 20)


@pytest.mark.rare
@pytest.mark.parametrize(("width", "height"), [(400, 800), (320, 640)])
def test_everything_can_be_done_with_a_finger(owner: Argilla, browser: Chrome, width: int, height: int) -> None:
    texts = [long_record(9000, 2000, 300), long_record(60_000, 200_000, 3000, 80)]
    datasets = lists(owner, browser, texts)

    def expanded(selector: str) -> str:
        return str(browser.execute_script("return document.querySelector(arguments[0]).ariaExpanded", selector))

    with fingers(browser, width, height):
        opened(browser, owner, datasets["grounding"])
        assert browser.execute_script(OVER) <= 0
        wait(browser, lambda: browser.execute_script(SEEN) >= 0.12 * height)
        for _ in range(2):
            tap(browser, ".citejury-next")
        wait(browser, lambda: "[2]: passage 1" in shown_text(browser, ".citejury-status"))
        tap(browser, "#citejury-tab-sources")
        wait(browser, lambda: "site2.example" in shown_text(browser, "[data-citejury-field=sources]"))
        tap(browser, ".citejury-more")
        wait(browser, lambda: expanded(".citejury-more") == "true")
        tap(browser, ".citejury-more")
        tap(browser, ".citejury-current .citejury-rule button")
        wait(browser, lambda: shown_text(browser, ".citejury-whole"))
        tap(browser, ".citejury-current .citejury-rule button")
        first = browser.execute_script(RECORD_ID)
        tap(browser, ".pagination__button:last-child")
        wait(browser, lambda: browser.execute_script(RECORD_ID) not in (None, first))
        tap(browser, ".pagination__button:first-child")
        wait(browser, lambda: browser.execute_script(RECORD_ID) == first)
        tap(browser, ".panel.--mobile .panel__header, .panel.--mobile button")
        wait(browser, lambda: shown_text(browser, ".annotation-guidelines"))
        tap(browser, ".panel.--mobile .panel__header, .panel.--mobile button")
        wait(browser, lambda: not shown_text(browser, ".annotation-guidelines"))
        for label in LABELS["grounding"]:
            tap(
                browser, f"[for={label}_no], .label-text:has(+ #{label}_no), .input-button:has(#{label}_no) .label-text"
            )
            wait(browser, lambda label=label: browser.find_element(By.ID, f"{label}_no").is_selected())
        tap(browser, "#contentId")
        press(browser, "By finger")
        tap(browser, ".button--discard")
        tap(browser, "#citejury-dialog button", "Do not discard")
        tap(browser, ".citejury-all")
        wait(browser, lambda: expanded(".citejury-all") == "true")
        tap(browser, ".citejury-all")
        tap(browser, ".button--submit")
        wait(browser, lambda: browser.execute_script(RECORD_ID) not in (None, first))
        answered = owner.request("GET", f"/records/{first}")["responses"]
        assert [(each["status"], each["values"]["notes"]["value"]) for each in answered] == [("submitted", "By finger")]
        opened(browser, owner, datasets["generation"])
        tap(browser, ".citejury-step:nth-of-type(2), .citejury-step + .citejury-step")
        marked = "return [...CSS.highlights.get('citejury-sentence') || []].map(String).join('')"
        wait(browser, lambda: "[1]" in str(browser.execute_script(marked)))
    assert complaints(browser) == []


@pytest.mark.rare
def test_an_hour_without_a_link_loses_nothing(owner: Argilla, browser: Chrome, link: LossyLink) -> None:
    work = campaign(owner, records=5, annotators=1)
    opened_queue(browser, work, link.url)
    link.share = 1.0
    submit(browser, CONTRADICTION)
    answer(browser, CONTRADICTION.items())
    press(browser, Keys.ESCAPE, Keys.RETURN)  # more than two at a time are handed out to nobody
    wait(browser, lambda: "Not saved yet: 2" in notice(browser))
    browser.execute_script(HOUR)
    browser.refresh()
    wait(browser, lambda: "Not saved yet: 2" in notice(browser))
    assert (len(kept(browser)), work.statuses()) == (2, [])
    link.share = 0.0
    browser.execute_script("window.dispatchEvent(new Event('online'))")
    wait(browser, lambda: work.statuses() == ["submitted", "submitted"])
    wait(browser, lambda: kept(browser) == [])
    assert [values for _, values in work.stored().values()] == [VALUES] * 2
