"""What the project lead says about a record, in the page of who asked."""

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from annotation.argilla.client import Argilla
from annotation.argilla.units import read_units
from annotation.quality.questions import read_questions, reply_to
from tests.support.page_campaign import campaign
from tests.support.page_driver import RECORD_ID, complaints, open_home, shown_text, wait, window_size

pytestmark = [pytest.mark.server, pytest.mark.browser]


@pytest.mark.rare
def test_she_is_told_on_her_start_page_and_reads_it_on_the_record_as_text(owner: Argilla, browser: Chrome) -> None:
    work = campaign(owner, records=2, annotators=1, locale="de")
    ((name, password),) = work.passwords.items()
    record_id = next(read_units(owner, work.dataset)).record_id
    key = next(user["api_key"] for user in owner.request("GET", "/users")["items"] if user["username"] == name)
    with Argilla(owner.api_url, key) as herself:
        body = {"record_id": record_id, "status": "draft", "values": {"notes": {"value": "? Zählt ein <b>Auszug</b>"}}}
        herself.request("POST", "/me/responses/bulk", json={"items": [body]})
    (asked,) = read_questions(owner, [work.workspace])
    reply_to(owner, asked, 'Ja. <img src=x onerror="document.title=1"> \u202egnihtyna', [work.workspace])

    open_home(browser, owner.api_url, name, password)
    wait(browser, lambda: "Ihre Projektleitung hat zu Ihren Fragen geschrieben" in shown_text(browser))
    assert "Fall zeigen: ? Zählt ein <b>Auszug</b>" in shown_text(browser, "#citejury-home .citejury-replies")
    browser.find_element(By.CSS_SELECTOR, "#citejury-home .citejury-replies a").click()
    wait(browser, lambda: browser.execute_script(RECORD_ID) == record_id)
    said = wait(browser, lambda: shown_text(browser, ".citejury-replies"))
    assert said.startswith("Von Ihrer Projektleitung")
    assert 'onerror="document.title=1">' in said
    assert not browser.find_elements(By.CSS_SELECTOR, ".citejury-replies :is(img, b)")
    with window_size(browser, 400, 800):
        assert browser.execute_script("return document.scrollingElement.scrollWidth - innerWidth") <= 0
    browser.get(f"{owner.api_url}/")
    wait(browser, lambda: shown_text(browser, "#citejury-home .citejury-lists"))
    assert not browser.find_elements(By.CSS_SELECTOR, "#citejury-home .citejury-replies")
    assert not complaints(browser)
