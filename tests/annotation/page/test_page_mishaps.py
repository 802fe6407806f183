"""What can go wrong in the annotator's page: two tabs, two people, a network that lies, a browser without room."""

import json

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.server.home.folder import DAMAGE_FILE
from annotation.server.launch import ServerHandle
from tests.support.lossy_link import Forward, LossyLink
from tests.support.page_campaign import CONTRADICTION, campaign, opened, submit
from tests.support.page_driver import RECORD_ID, answer, focused, kept, log_in_by_hand, notice, open_form, press, wait

pytestmark = [pytest.mark.server, pytest.mark.browser, pytest.mark.rare]

VALUES = {label: "yes" if yes else "no" for label, yes in CONTRADICTION.items()}
NO_ROOM = """const { setItem } = Storage.prototype;
Storage.prototype.setItem = function (key, value) {
  if (key.startsWith("citejury:")) throw new DOMException("full", "QuotaExceededError");
  setItem.call(this, key, value);
};"""
ONLINE = "window.dispatchEvent(new Event('online'))"  # what the browser says then; the script tries at once
DIALOGS = "return document.querySelectorAll('#citejury-dialog').length"


def test_an_answer_in_one_tab_is_hers_whoever_logs_in_in_another(owner: Argilla, browser: Chrome) -> None:
    work = campaign(owner, records=2, annotators=2)
    anna, ben = work.passwords
    record = opened(browser, work, owner.api_url, anna)
    annas = browser.current_window_handle
    browser.switch_to.new_window("tab")
    browser.get(f"{owner.api_url}/favicon.ico")
    browser.execute_script("localStorage.setItem('auth._token.local', 'false')")
    browser.delete_all_cookies()
    log_in_by_hand(browser, owner.api_url, ben, work.passwords[ben])
    browser.switch_to.window(annas)
    submit(browser, CONTRADICTION)
    wait(browser, lambda: work.stored() == {(record, work.ids[anna]): ("submitted", VALUES)})


def test_no_draft_takes_back_what_another_tab_submitted(owner: Argilla, browser: Chrome, link: LossyLink) -> None:
    work = campaign(owner, records=1, annotators=1)
    (name,) = work.passwords
    keys = {user["username"]: user["api_key"] for user in owner.request("GET", "/users")["items"]}
    with Argilla(owner.api_url, keys[name]) as elsewhere:
        record = opened(browser, work, link.url)
        answer(browser, [("topically_relevant", True)])
        wait(browser, lambda: work.statuses() == ["draft"])
        wait(browser, lambda: not kept(browser))
        values = {label: {"value": said} for label, said in VALUES.items()}
        item = {"record_id": record, "status": "submitted", "values": values}
        elsewhere.request("POST", "/me/responses/bulk", json={"items": [item]})
        asked = link.counts.total()
        answer(browser, [("evidence_sufficient", False)])
        wait(browser, lambda: link.counts.total() > asked)
        wait(browser, lambda: not kept(browser))
        assert list(work.stored().values()) == [("submitted", VALUES)]


class LoginPageOfAHotel(Forward):
    """A network that answers itself, with 200 and a page of its own, until one agrees to its terms."""

    def answer_itself(self) -> None:
        if self.server.share and ("/api/v1/records/" if self.command == "GET" else "/responses") in self.path:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.reply(200, [("Content-Type", "text/html")], b"<html>Welcome to our network</html>")
        else:
            self.forward()

    do_GET = do_POST = answer_itself


def test_a_network_that_answers_itself_has_no_answer(owner: Argilla, browser: Chrome, link: LossyLink) -> None:
    work = campaign(owner, records=2, annotators=1)
    link.RequestHandlerClass = LoginPageOfAHotel
    opened(browser, work, link.url)
    link.share = 1.0
    submit(browser, CONTRADICTION)
    wait(browser, lambda: "Not saved yet: 1" in notice(browser))
    link.share = 0.0
    browser.execute_script(ONLINE)
    wait(browser, lambda: not kept(browser))
    assert work.statuses() == ["submitted"]


def test_a_server_that_answers_nothing_stops_nobody(owner: Argilla, browser: Chrome, link: LossyLink) -> None:
    work = campaign(owner, records=3, annotators=1)
    opened(browser, work, link.url)
    link.gate.clear()
    answer(browser, CONTRADICTION.items())
    shown = browser.execute_script(RECORD_ID)
    press(browser, Keys.RETURN)
    wait(browser, lambda: browser.execute_script(RECORD_ID) != shown)
    wait(browser, lambda: "Not saved yet: 1" in notice(browser))
    link.gate.set()
    browser.execute_script(ONLINE)
    wait(browser, lambda: not kept(browser))
    assert work.statuses() == ["submitted"]


def test_an_answer_that_the_server_never_takes_stops_no_other(owner: Argilla, browser: Chrome) -> None:
    work = campaign(owner, records=3, annotators=1)
    shown = opened(browser, work, owner.api_url)
    ids = [item["id"] for _, page in owner.record_pages(work.dataset) for item in page]
    record = next(each for each in ids if each != shown)  # a later answer about the same one would make it outdated
    (user_id,) = (work.ids[name] for name in work.passwords)
    bad = {"key": f"citejury:{user_id}:{record}-bad", "user": user_id, "record": record, "response": None, "tries": 1}
    bad |= {"status": "submitted", "values": {"nonsense": {"value": 1}}, "at": 0, "due": 0}
    browser.execute_script("localStorage.setItem(arguments[0], arguments[1])", bad["key"], json.dumps(bad))
    wait(browser, lambda: "The server refuses your judgements: 1" in notice(browser))
    browser.execute_script("localStorage.setItem('citejury:damaged', '{')")
    open_form(browser, owner.api_url, work.dataset)
    submit(browser, CONTRADICTION)
    wait(browser, lambda: work.statuses() == ["submitted"])
    wait(browser, lambda: "The server refuses your judgements: 1" in notice(browser))
    assert bad["key"] in kept(browser)


def test_a_damaged_server_is_told_and_retried(argilla_server: ServerHandle, owner: Argilla, browser: Chrome) -> None:
    said = "nimmt zurzeit keine Urteile an"
    work = campaign(owner, records=2, annotators=1, locale="de")
    noted = argilla_server.home / DAMAGE_FILE
    opened(browser, work, owner.api_url)
    try:
        noted.write_text('{"found": "f", "advice": "a", "answer": "The database is damaged."}', encoding="utf-8")
        answer(browser, CONTRADICTION.items())
        press(browser, Keys.RETURN)
        wait(browser, lambda: said in notice(browser))
        assert kept(browser)
        assert work.statuses() == []
    finally:
        noted.unlink()
    browser.execute_script(ONLINE)
    wait(browser, lambda: work.statuses() == ["submitted"])
    wait(browser, lambda: said not in notice(browser))


def test_a_browser_without_room_keeps_it_while_open(owner: Argilla, browser: Chrome, link: LossyLink) -> None:
    work = campaign(owner, records=2, annotators=1)
    opened(browser, work, link.url)
    browser.execute_script(NO_ROOM)
    link.share = 1.0
    submit(browser, CONTRADICTION)
    wait(browser, lambda: "Not saved yet: 1" in notice(browser))
    link.share = 0.0
    browser.execute_script(ONLINE)
    wait(browser, lambda: not notice(browser))
    assert work.statuses() == ["submitted"]


def test_the_dialog_opens_once_and_has_a_name(owner: Argilla, browser: Chrome) -> None:
    work = campaign(owner, records=1, annotators=1)
    opened(browser, work, owner.api_url)
    before = focused(browser)
    press(browser, Keys.BACKSPACE)
    dialog = wait(browser, lambda: browser.find_element(By.ID, "citejury-dialog"))
    assert dialog.accessible_name.startswith("Discard this record?")
    assert dialog.find_element(By.TAG_NAME, "textarea").accessible_name.startswith("Discard this record?")
    press(browser, Keys.TAB, Keys.BACKSPACE, "1")
    assert browser.execute_script(DIALOGS) == 1
    press(browser, Keys.ESCAPE)
    wait(browser, lambda: browser.execute_script(DIALOGS) == 0)
    wait(browser, lambda: focused(browser) == before)
    assert work.stored() == {}
