"""Nothing typed is lost: letters go where the ring is, and an older tab does not overwrite what was submitted since."""

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from tests.support.page_campaign import CONTRADICTION, campaign, opened, submit
from tests.support.page_driver import (
    RECORD_ID,
    answer,
    click,
    focused,
    kept,
    notice,
    open_form,
    press,
    shown_text,
    wait,
)

pytestmark = [pytest.mark.server, pytest.mark.browser]

VALUES = {label: "yes" if yes else "no" for label, yes in CONTRADICTION.items()}
WRITTEN = "return document.getElementById('contentId').innerText"
CONFLICT = "#citejury-conflict"


def written(driver: Chrome) -> str:
    return str(driver.execute_script(WRITTEN))


def other(driver: Chrome, shown: str) -> bool:
    return driver.execute_script(RECORD_ID) not in (None, shown)


@pytest.mark.parametrize("locale", ["en", pytest.param("ja", marks=pytest.mark.rare)])
def test_letters_after_the_last_answer_go_into_the_notes(owner: Argilla, browser: Chrome, locale: str) -> None:
    work = campaign(owner, records=3, annotators=1, task="generation", locale=locale)
    first = opened(browser, work, owner.api_url)
    press(browser, *"11111")
    wait(browser, lambda: focused(browser) == "contentId")
    press(browser, "? why is this so", Keys.BACKSPACE, "o", Keys.RETURN, "g")
    wait(browser, lambda: written(browser).split() == ["?", "why", "is", "this", "so", "g"])
    assert shown_text(browser, ".annotation-guidelines") == ""
    assert not browser.find_elements(By.ID, "citejury-dialog")
    assert browser.execute_script(RECORD_ID) == first
    press(browser, Keys.ESCAPE, Keys.RETURN)
    wait(browser, lambda: other(browser, first))
    ((status, values),) = wait(browser, lambda: list(work.stored().values()))
    assert (status, values.pop("notes").split()) == ("submitted", ["?", "why", "is", "this", "so", "g"])
    assert values == dict.fromkeys(LABELS["generation"], "yes")

    second = browser.execute_script(RECORD_ID)
    press(browser, *"11111")
    wait(browser, lambda: focused(browser) == "contentId")
    press(browser, Keys.ARROW_UP)  # nothing is typed, and the keys are the form's
    wait(browser, lambda: focused(browser).startswith(LABELS["generation"][-1]))
    press(browser, "1")
    wait(browser, lambda: focused(browser) == "contentId")
    press(browser, Keys.RETURN)
    wait(browser, lambda: other(browser, second))
    wait(browser, lambda: work.statuses() == ["submitted", "submitted"])

    press(browser, *"11111")
    wait(browser, lambda: focused(browser) == "contentId")
    press(browser, "half a note")
    browser.get("about:blank")  # she leaves it without a word
    wait(
        browser,
        lambda: (
            ("draft", dict.fromkeys(LABELS["generation"], "yes") | {"notes": "half a note"}) in work.stored().values()
        ),
    )
    assert work.statuses() == ["draft", "submitted", "submitted"]


def test_a_reload_comes_back_to_what_was_begun_and_from_there_to_the_queue(owner: Argilla, browser: Chrome) -> None:
    work = campaign(owner, records=3, annotators=1)
    first = opened(browser, work, owner.api_url)
    submit(browser, CONTRADICTION)
    begun = browser.execute_script(RECORD_ID)
    answer(browser, [("topically_relevant", False)])
    for _ in range(2):
        browser.refresh()
        wait(browser, lambda: browser.execute_script(RECORD_ID) == begun)
        wait(browser, lambda: browser.find_element(By.ID, "topically_relevant_no").is_selected())
        box = browser.find_element(By.CSS_SELECTOR, ".search-area.active input")
        wait(browser, lambda box=box: box.get_property("value") == "")  # and not the record's id
    answer(browser, CONTRADICTION.items())
    wait(browser, lambda: focused(browser) == "contentId")
    press(browser, Keys.RETURN)
    wait(browser, lambda: browser.execute_script(RECORD_ID) not in (None, first, begun))
    wait(browser, lambda: work.statuses() == ["submitted", "submitted"])
    assert "search" not in browser.current_url


def test_an_older_tab_does_not_overwrite_what_was_submitted_since(owner: Argilla, browser: Chrome) -> None:
    work = campaign(owner, records=1, annotators=1)
    opened(browser, work, owner.api_url)
    older = browser.current_window_handle
    browser.switch_to.new_window("tab")
    open_form(browser, owner.api_url, work.dataset)
    answer(browser, CONTRADICTION.items())
    press(browser, Keys.RETURN)
    wait(browser, lambda: work.statuses() == ["submitted"])
    newer = browser.current_window_handle

    browser.switch_to.window(older)
    answer(browser, [(label, True) for label in CONTRADICTION])
    press(browser, "Mine", Keys.ESCAPE, Keys.RETURN)
    wait(browser, lambda: "answered elsewhere" in shown_text(browser, CONFLICT))
    assert "Mine" in shown_text(browser, CONFLICT)
    browser.execute_script("window.dispatchEvent(new Event('pagehide'))")  # the notice is written anew
    assert "Not saved" not in notice(browser)
    assert list(work.stored().values()) == [("submitted", VALUES)]
    click(browser, lambda: browser.find_element(By.XPATH, "//button[.='Those from elsewhere']"))
    wait(browser, lambda: shown_text(browser, "#citejury-empty"))
    assert (list(work.stored().values()), kept(browser)) == ([("submitted", VALUES)], [])

    open_form(browser, owner.api_url, work.dataset, "submitted")
    browser.switch_to.window(newer)
    open_form(browser, owner.api_url, work.dataset, "submitted")
    answer(browser, (CONTRADICTION | {"misleading": True}).items())
    press(browser, Keys.RETURN)
    wait(browser, lambda: list(work.stored().values()) == [("submitted", VALUES | {"misleading": "yes"})])
    browser.switch_to.window(older)
    answer(browser, [("topically_relevant", True)])
    press(browser, Keys.RETURN)
    wait(browser, lambda: shown_text(browser, CONFLICT))
    click(browser, lambda: browser.find_element(By.XPATH, "//button[.='Those from here']"))
    chosen = VALUES | {"topically_relevant": "yes"}
    wait(browser, lambda: list(work.stored().values()) == [("submitted", chosen)])


@pytest.mark.rare
def test_a_correction_waits_beside_what_was_submitted_elsewhere(owner: Argilla, browser: Chrome) -> None:
    work = campaign(owner, records=1, annotators=1, locale="de")
    opened(browser, work, owner.api_url)
    answer(browser, CONTRADICTION.items())
    press(browser, Keys.RETURN)
    wait(browser, lambda: work.statuses() == ["submitted"])
    tabs = [browser.current_window_handle]
    browser.switch_to.new_window("tab")
    tabs.append(browser.current_window_handle)
    for tab in tabs:
        browser.switch_to.window(tab)
        open_form(browser, owner.api_url, work.dataset, "submitted")
    answer(browser, (CONTRADICTION | {"misleading": True}).items())
    press(browser, Keys.RETURN)
    wait(browser, lambda: list(work.stored().values()) == [("submitted", VALUES | {"misleading": "yes"})])
    browser.switch_to.window(tabs[0])
    answer(browser, [("topically_relevant", True)])
    wait(browser, lambda: shown_text(browser, "#citejury-correction"))
    browser.refresh()
    wait(browser, lambda: "anderswo" in notice(browser))
    wait(browser, lambda: shown_text(browser, "#citejury-correction"))
    assert browser.find_element(By.ID, "misleading_yes").is_selected()
    click(browser, lambda: browser.find_element(By.XPATH, "//button[.='Änderung zeigen']"))
    wait(browser, lambda: browser.find_element(By.ID, "topically_relevant_yes").is_selected())
