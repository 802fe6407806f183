"""Rules that have changed since somebody last worked: the page says so once, and what is new."""

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from annotation.argilla.client import Argilla
from annotation.argilla.units import read_units
from annotation.argilla.wording import read_wording
from annotation.quality.questions import read_questions, reply_to
from tests.support.page_campaign import CONTRADICTION, Campaign, campaign, submit
from tests.support.page_driver import RECORD_ID, click, complaints, open_home, shown_text, wait

pytestmark = [pytest.mark.server, pytest.mark.browser]

CHANGED = "#citejury-changed[open]"
LOOKED = "return Object.keys(localStorage).filter((name) => name.startsWith('citejury:rules:')).length"


def decide(work: Campaign, rule: str) -> None:
    (asked,) = read_questions(work.owner, [work.workspace])
    reply_to(work.owner, asked, "Ja, das zählt.", [work.workspace], rule=rule)


def close(driver: Chrome, dialog: str) -> None:
    click(driver, lambda: driver.find_element(By.CSS_SELECTOR, f"{dialog} > button"))
    wait(driver, lambda: not driver.find_elements(By.CSS_SELECTOR, dialog))


def test_a_change_of_rules_is_shown_once_to_whoever_worked_before_with_what_is_new_and_the_guidelines_a_click_away(
    owner: Argilla, browser: Chrome
) -> None:
    work = campaign(owner, records=3, annotators=2, locale="de")
    (name, password), (other, others) = work.passwords.items()
    record_id = next(read_units(owner, work.dataset)).record_id
    key = next(user["api_key"] for user in owner.request("GET", "/users")["items"] if user["username"] == name)
    with Argilla(owner.api_url, key) as herself:
        body = {"record_id": record_id, "status": "draft", "values": {"notes": {"value": "? Zählt das"}}}
        herself.request("POST", "/me/responses/bulk", json={"items": [body]})
    decide(work, "Zählt ein Bild?")

    open_home(browser, owner.api_url, name, password)
    said = wait(browser, lambda: shown_text(browser, CHANGED))
    list_name = read_wording("de").titles["retrieval"]
    assert f"Die Regeln haben sich geändert, seit Sie zuletzt gearbeitet haben: {list_name}\n" in said
    assert "Zählt ein Bild?" in said
    assert "Ja, das zählt." in said
    assert said.count("Textstelle") == 1  # in the name of the task; the rest of the rules is as it was
    click(browser, lambda: browser.find_element(By.CSS_SELECTOR, f"{CHANGED} section button"))
    guidelines = "#citejury-guidelines[open]"
    wait(browser, lambda: "So gehen Sie vor" in shown_text(browser, guidelines))
    close(browser, guidelines)
    close(browser, CHANGED)

    browser.get(f"{owner.api_url}/dataset/{work.dataset}/annotation-mode?page=1&status=pending")
    wait(browser, lambda: browser.execute_script(RECORD_ID))
    decide(work, "Zählt eine Karte?")  # while the list is open, and she goes on
    submit(browser, CONTRADICTION)
    wait(browser, lambda: "submitted" in work.statuses())
    assert shown_text(browser, CHANGED) == ""
    browser.refresh()
    said = wait(browser, lambda: shown_text(browser, CHANGED))
    assert "Zählt eine Karte?" in said
    assert "Zählt ein Bild?" not in said
    close(browser, CHANGED)

    open_home(browser, owner.api_url, other, others)  # who has not worked yet
    wait(browser, lambda: shown_text(browser, "#citejury-home .citejury-lists"))
    wait(browser, lambda: browser.execute_script(LOOKED))
    assert shown_text(browser, CHANGED) == ""
    assert complaints(browser) == []
