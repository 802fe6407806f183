"""Answers changed after they were sent: the browser keeps the change until she submits or drops it."""

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from tests.support.lossy_link import LossyLink
from tests.support.page_campaign import CONTRADICTION, Campaign, campaign, opened, submit
from tests.support.page_driver import (
    RECORD_ID,
    answer,
    click,
    kept,
    log_in,
    notice,
    open_form,
    press,
    shown_element,
    shown_text,
    wait,
)

pytestmark = [pytest.mark.server, pytest.mark.browser, pytest.mark.rare]

VALUES = {label: "yes" if yes else "no" for label, yes in CONTRADICTION.items()}
CORRECTED = VALUES | {"topically_relevant": "yes"}
CHANGED = "Changed, but not submitted yet"
CORRECTIONS = "return Object.keys(localStorage).filter((key) => key.startsWith('citejury-correction:')).length"


def in_form(driver: Chrome) -> str:
    return shown_text(driver, "#citejury-correction")


def is_chosen(driver: Chrome, option: str) -> bool:
    return driver.find_element(By.ID, option).is_selected()


def changed(driver: Chrome, work: Campaign, link: LossyLink, status: str = "submitted") -> str:
    open_form(driver, link.url, work.dataset, status)
    answer(driver, [("topically_relevant", True)])
    wait(driver, lambda: CHANGED in in_form(driver))
    return str(driver.execute_script(RECORD_ID))


def test_a_correction_is_kept_until_it_is_sent_or_dropped(owner: Argilla, browser: Chrome, link: LossyLink) -> None:
    work = campaign(owner, records=2, annotators=1)
    first = opened(browser, work, link.url)
    submit(browser, CONTRADICTION)
    wait(browser, lambda: work.statuses() == ["submitted"])
    assert changed(browser, work, link) == first
    browser.refresh()
    wait(browser, lambda: is_chosen(browser, "topically_relevant_yes"))
    wait(browser, lambda: CHANGED in in_form(browser))
    assert [work.stored()[key] for key in work.stored()] == [("submitted", VALUES)]

    open_form(browser, link.url, work.dataset)
    wait(browser, lambda: f"{CHANGED}: 1" in notice(browser))
    assert browser.execute_script(RECORD_ID) != first
    click(browser, lambda: shown_element(browser, "Open the record"))
    wait(browser, lambda: browser.execute_script(RECORD_ID) == first)
    wait(browser, lambda: is_chosen(browser, "topically_relevant_yes"))
    wait(browser, lambda: CHANGED not in notice(browser))

    click(browser, lambda: shown_element(browser, "Drop the change"))
    wait(browser, lambda: is_chosen(browser, "topically_relevant_no"))
    wait(browser, lambda: not in_form(browser))
    assert browser.execute_script(CORRECTIONS) == 0
    assert not kept(browser)

    changed(browser, work, link)
    link.share = 1.0
    press(browser, Keys.RETURN)
    wait(browser, lambda: "Not saved yet: 1" in notice(browser))
    assert browser.execute_script(CORRECTIONS) == 0
    assert [work.stored()[key] for key in work.stored()] == [("submitted", VALUES)]
    link.share = 0.0
    browser.execute_script("window.dispatchEvent(new Event('online'))")
    wait(browser, lambda: not kept(browser))
    assert [work.stored()[key] for key in work.stored()] == [("submitted", CORRECTED)]


def test_a_correction_is_hers_and_another_tab_only_offers_it(owner: Argilla, browser: Chrome, link: LossyLink) -> None:
    work = campaign(owner, records=1, annotators=2)
    anna, ben = work.passwords
    for name in (ben, anna):
        opened(browser, work, link.url, name)
        answer(browser, CONTRADICTION.items())
        press(browser, Keys.RETURN)
        wait(browser, lambda name=name: work.ids[name] in {user for _, user in work.stored()})
        wait(browser, lambda: not kept(browser))
        if name == ben:
            browser.execute_script("localStorage.setItem('auth._token.local', 'false')")
            browser.delete_all_cookies()
    changed(browser, work, link)
    browser.switch_to.new_window("tab")
    open_form(browser, link.url, work.dataset, "submitted")
    wait(browser, lambda: "another tab" in in_form(browser))
    assert is_chosen(browser, "topically_relevant_no")
    click(browser, lambda: shown_element(browser, "Show the change"))
    wait(browser, lambda: is_chosen(browser, "topically_relevant_yes"))
    wait(browser, lambda: CHANGED in in_form(browser))

    browser.execute_script("localStorage.setItem('auth._token.local', 'false')")
    browser.delete_all_cookies()
    log_in(browser, link.url, ben, work.passwords[ben])
    open_form(browser, link.url, work.dataset, "submitted")
    assert is_chosen(browser, "topically_relevant_no")
    assert (in_form(browser), notice(browser), browser.execute_script(CORRECTIONS)) == ("", "", 1)
    assert [said for _, said in work.stored().values()] == [VALUES, VALUES]


def test_what_was_sent_later_elsewhere_counts_and_the_correction_is_offered(
    owner: Argilla, browser: Chrome, link: LossyLink
) -> None:
    work = campaign(owner, records=1, annotators=1)
    (name,) = work.passwords
    record = opened(browser, work, link.url)
    answer(browser, CONTRADICTION.items())
    press(browser, Keys.RETURN)
    wait(browser, lambda: work.statuses() == ["submitted"])
    changed(browser, work, link)
    later = VALUES | {"misleading": "yes"}
    keys = {user["username"]: user["api_key"] for user in owner.request("GET", "/users")["items"]}
    with Argilla(owner.api_url, keys[name]) as elsewhere:
        values = {label: {"value": said} for label, said in later.items()}
        item = {"record_id": record, "status": "submitted", "values": values}
        elsewhere.request("POST", "/me/responses/bulk", json={"items": [item]})
    browser.refresh()
    wait(browser, lambda: "changed elsewhere" in notice(browser))
    assert is_chosen(browser, "topically_relevant_no")
    assert is_chosen(browser, "misleading_yes")
    assert (browser.execute_script(CORRECTIONS), list(work.stored().values())) == (1, [("submitted", later)])


@pytest.mark.parametrize("note", [{}, {"notes": "Absatz 3?"}])
def test_an_undone_discard_keeps_the_note(owner: Argilla, browser: Chrome, note: dict[str, str]) -> None:
    work = campaign(owner, records=1, annotators=1, locale="de")
    opened(browser, work, owner.api_url)
    browser.execute_script("document.getElementById('contentId').focus()")
    press(browser, *note.values(), Keys.ESCAPE, Keys.BACKSPACE)
    press(browser, "Zeichensalat", Keys.RETURN)
    wait(browser, lambda: work.statuses() == ["discarded"])
    open_form(browser, owner.api_url, work.dataset, "discarded")
    answer(browser, CONTRADICTION.items())
    wait(browser, lambda: "noch nicht abgesendet" in in_form(browser))
    browser.refresh()
    wait(browser, lambda: is_chosen(browser, "misleading_no"))
    wait(browser, lambda: "noch nicht abgesendet" in in_form(browser))
    assert list(work.stored().values()) == [("discarded", {"notes": "\n".join([*note.values(), "Zeichensalat"])})]
    press(browser, Keys.RETURN)
    wait(browser, lambda: list(work.stored().values()) == [("submitted", VALUES | note)])
    assert browser.execute_script(CORRECTIONS) == 0
