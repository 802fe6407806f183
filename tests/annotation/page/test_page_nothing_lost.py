"""Nothing typed is lost: letters go where the ring is, and an older tab does not overwrite what was submitted since."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from tests.support.lossy_link import LossyLink
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
STORED = "return Object.values(localStorage).join()"
ONLINE = "window.dispatchEvent(new Event('online'))"
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
    press(browser, Keys.ESCAPE, Keys.ENTER)  # that of the number block
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
    wait(browser, lambda: "judged elsewhere" in shown_text(browser, CONFLICT))
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


@pytest.mark.rare
def test_two_tabs_that_are_offline_lose_neither_text(owner: Argilla, browser: Chrome, link: LossyLink) -> None:
    work = campaign(owner, records=2, annotators=1)
    begun = opened(browser, work, link.url)
    tabs = [browser.current_window_handle]
    browser.switch_to.new_window("tab")
    open_form(browser, link.url, work.dataset)
    tabs.append(browser.current_window_handle)
    link.share = 1.0
    for tab, text in zip(tabs, ("from the first", "from the second"), strict=True):
        browser.switch_to.window(tab)
        browser.execute_script("document.getElementById('contentId').focus()")
        press(browser, text)
        wait(browser, lambda text=text: text in str(browser.execute_script(STORED)))
    shown = wait(browser, lambda: shown_text(browser, CONFLICT))
    assert ("from the first" in shown, "from the second" in shown) == (True, True)
    browser.refresh()  # and it is asked again
    wait(browser, lambda: "from the first" in shown_text(browser, CONFLICT))
    click(browser, lambda: browser.find_element(By.XPATH, "//button[.='Those from elsewhere']"))
    wait(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, CONFLICT))
    link.share = 0.0
    browser.execute_script(ONLINE)
    wait(browser, lambda: list(work.stored().values()) == [("draft", {"notes": "from the first"})])

    browser.switch_to.window(tabs[0])  # what another browser has stored since is not overwritten either
    keys = {user["username"]: user["api_key"] for user in owner.request("GET", "/users")["items"]}
    with Argilla(owner.api_url, next(keys[name] for name in work.passwords)) as elsewhere:
        item = {"record_id": begun, "status": "draft", "values": {"notes": {"value": "by telephone"}}}
        elsewhere.request("POST", "/me/responses/bulk", json={"items": [item]})
    press(browser, " tab")
    wait(browser, lambda: "by telephone" in shown_text(browser, CONFLICT))
    assert "from the first tab" in shown_text(browser, CONFLICT)
    click(browser, lambda: browser.find_element(By.XPATH, "//button[.='Those from here']"))
    wait(browser, lambda: list(work.stored().values()) == [("draft", {"notes": "from the first tab"})])


@pytest.mark.rare
def test_a_draft_that_comes_after_a_submission_elsewhere_is_offered(
    owner: Argilla, browser: Chrome, link: LossyLink
) -> None:
    work = campaign(owner, records=1, annotators=1)
    record = opened(browser, work, link.url)
    link.share = 1.0
    browser.execute_script("document.getElementById('contentId').focus()")
    press(browser, "A thought.")
    wait(browser, lambda: "A thought." in str(browser.execute_script(STORED)))
    keys = {user["username"]: user["api_key"] for user in owner.request("GET", "/users")["items"]}
    with Argilla(owner.api_url, next(keys[name] for name in work.passwords)) as elsewhere:
        values = {label: {"value": said} for label, said in VALUES.items()}
        item = {"record_id": record, "status": "submitted", "values": values}
        elsewhere.request("POST", "/me/responses/bulk", json={"items": [item]})
    link.share = 0.0
    browser.execute_script(ONLINE)
    wait(browser, lambda: not kept(browser))
    assert list(work.stored().values()) == [("submitted", VALUES)]
    open_form(browser, link.url, work.dataset, "submitted")
    click(browser, lambda: browser.find_element(By.XPATH, "//button[.='Show the change']"))
    wait(browser, lambda: written(browser).strip() == "A thought.")


def test_of_answers_to_the_same_state_the_server_takes_one(owner: Argilla) -> None:
    work = campaign(owner, records=1, annotators=1)
    keys = {user["username"]: user["api_key"] for user in owner.request("GET", "/users")["items"]}
    (name,) = work.passwords
    ((_, (record,)),) = owner.record_pages(work.dataset)
    with Argilla(owner.api_url, keys[name]) as her:
        first = her.request("POST", f"/records/{record['id']}/responses", json={"status": "draft", "values": {}})

    def put(number: int) -> int:
        body = {"status": "draft", "values": {"notes": {"value": str(number)}}}
        headers = {"X-Argilla-Api-Key": keys[name], "x-citejury-seen": first["updated_at"]}
        url = f"{owner.api_url}/api/v1/responses/{first['id']}"
        return httpx.put(url, json=body, headers=headers, timeout=60, trust_env=False).status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(put, range(8))) == [200] + [409] * 7
