"""What our script in the annotator's page does: nothing she answers is lost, and she is asked before it could be."""

import hashlib
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import pytest
from selenium import webdriver
from selenium.common.exceptions import TimeoutException, WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.client import Argilla
from annotation.display import to_records
from annotation.embedded.page_script import TEXTS, page_settings, page_texts
from annotation.labels import LABELS
from annotation.setup import find_datasets, set_up
from annotation.wording import LOCALES, locales, read_wording
from pipeline.errors import InputError
from pipeline.records import Passage, QueryResponse
from tests.lossy_link import LossyLink, lossy_link
from tests.page_driver import (
    RECORD_ID,
    answer,
    enter_password,
    focused,
    kept,
    log_in,
    notice,
    open_form,
    press,
    screenshot,
    start_browser,
    wait,
)

if TYPE_CHECKING:
    from annotation.embedded.launch import ServerHandle

SERVER = [pytest.mark.server, pytest.mark.browser]
LABELS_HERE = LABELS["retrieval"]
CONTRADICTION = {"topically_relevant": False, "evidence_sufficient": True, "misleading": False}
BRIEF = 4
# The driver itself says yes to the browser's question.
ASKS_BEFORE_LEAVING = "return !window.dispatchEvent(new Event('beforeunload', { cancelable: true }))"
ATTEMPTS = 60


class Campaign(NamedTuple):
    """A workspace whose annotators label passages."""

    owner: Argilla
    dataset: str
    passwords: dict[str, str]
    ids: dict[str, str]

    def stored(self) -> dict[tuple[str, str], tuple[str, dict[str, Any]]]:
        """Status and values of each response, by record and user id; the server holds at most one for each."""
        return {
            (record["id"], response["user_id"]): (
                response["status"],
                {name: each["value"] for name, each in (response["values"] or {}).items()},
            )
            for _, page in self.owner.record_pages(self.dataset)
            for record in page
            for response in record["responses"]
        }

    def statuses(self) -> list[str]:
        return sorted(status for status, _ in self.stored().values())


@pytest.fixture
def owner(argilla_server: "ServerHandle") -> Iterator[Argilla]:
    with Argilla(argilla_server.url, argilla_server.owner_api_key) as client:
        yield client


def campaign(owner: Argilla, records: int, annotators: int, locale: str = "en") -> Campaign:
    workspace = f"script-{uuid4().hex[:8]}"
    users: list[Any] = []
    names = [f"{workspace}-{number}" for number in range(annotators)]
    set_up(owner, workspace, locale, annotators=names, min_submitted=annotators, announce=users.append)
    dataset = find_datasets(owner, workspace)["retrieval"].id
    wording = read_wording(locale)
    bodies = [to_records(passage(number), wording)["retrieval"][0] for number in range(records)]
    owner.request("PUT", f"/datasets/{dataset}/records/bulk", json={"items": bodies})
    ids = {user["username"]: user["id"] for user in owner.request("GET", "/users")["items"]}
    return Campaign(owner, dataset, {user.username: user.password for user in users}, ids)


def passage(number: int) -> QueryResponse:
    text = f"Passage {number}: 1 < 2 && R&D &amp; <b>honey</b>."
    chunk = Passage(chunk_id=f"c{number}#0", doc_id=f"c{number}", chunk_rank=1, text=text)
    return QueryResponse(record_uuid=str(uuid4()), query=f"Query {number}?", answer="A [1].", chunks=(chunk,))


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[webdriver.Chrome]:
    driver = start_browser(tmp_path / "chromium")
    yield driver
    driver.quit()


def opened(driver: webdriver.Chrome, work: Campaign, url: str, name: str | None = None) -> str:
    """The record that the page shows to an annotator who has logged in."""
    username = name or next(iter(work.passwords))
    log_in(driver, url, username, work.passwords[username])
    open_form(driver, url, work.dataset)
    return str(driver.execute_script(RECORD_ID))


def submit(driver: webdriver.Chrome, answers: dict[str, bool]) -> None:
    answer(driver, answers.items())
    shown = driver.execute_script(RECORD_ID)
    press(driver, Keys.RETURN)
    wait(driver, lambda: driver.execute_script(RECORD_ID) != shown)


class TestPage:
    pytestmark = SERVER

    def test_answers_outlive_a_dead_server_a_reload_and_a_login_of_somebody_else(
        self, owner: Argilla, browser: webdriver.Chrome
    ) -> None:
        work = campaign(owner, records=3, annotators=2, locale="de")
        anna, ben = work.passwords
        with lossy_link(owner.api_url) as link:
            record = opened(browser, work, link.url, anna)
            token = browser.execute_script("return localStorage.getItem('auth._token.local')")
            link.share = 1.0
            submit(browser, CONTRADICTION)
            wait(browser, lambda: "Noch nicht gespeichert: 1" in notice(browser))
            screenshot(browser, "unsaved-de")
            assert work.stored() == {}
            link.share, link.revoked = 0.0, {token}
            assert browser.execute_script(ASKS_BEFORE_LEAVING)
            browser.refresh()
            wait(browser, lambda: "sign-in" in browser.current_url)
            wait(browser, lambda: notice(browser))
            enter_password(browser, ben, work.passwords[ben])
            open_form(browser, link.url, work.dataset)
            submit(browser, {**CONTRADICTION, "topically_relevant": True})
            assert not notice(browser)
            assert len(kept(browser)) == 1
            assert set(work.stored()) == {(each, work.ids[ben]) for each, _ in work.stored()}
            browser.execute_script("localStorage.setItem('auth._token.local', 'false')")
            log_in(browser, link.url, anna, work.passwords[anna])
            wait(browser, lambda: not kept(browser))
            assert not browser.execute_script(ASKS_BEFORE_LEAVING)
            values = {label: "yes" if yes else "no" for label, yes in CONTRADICTION.items()}
            assert work.stored()[record, work.ids[anna]] == ("submitted", values)

    def test_a_half_filled_form_becomes_a_draft_and_its_submission_replaces_it(
        self, argilla_server: "ServerHandle", owner: Argilla, browser: webdriver.Chrome
    ) -> None:
        work = campaign(owner, records=2, annotators=1)
        record = opened(browser, work, argilla_server.url)
        answer(browser, [("topically_relevant", True)])
        wait(browser, lambda: work.statuses() == ["draft"])
        wait(browser, lambda: "Saved as a draft" in notice(browser))
        answer(browser, [("evidence_sufficient", False), ("misleading", False)])
        press(browser, Keys.RETURN)
        wait(browser, lambda: browser.execute_script(RECORD_ID) != record)
        (stored,) = work.stored().values()
        assert stored == (
            "submitted",
            {"topically_relevant": "yes", "evidence_sufficient": "no", "misleading": "no"},
        )
        answer(browser, [("topically_relevant", False)])
        browser.get("about:blank")
        wait(browser, lambda: work.statuses() == ["draft", "submitted"])

    def test_a_discard_asks_for_the_reason_and_keeps_it(
        self, argilla_server: "ServerHandle", owner: Argilla, browser: webdriver.Chrome
    ) -> None:
        work = campaign(owner, records=3, annotators=1)
        record = opened(browser, work, argilla_server.url)
        press(browser, Keys.BACKSPACE)
        press(browser, "Garbled", Keys.BACKSPACE, "d", Keys.ESCAPE)
        wait(browser, lambda: not browser.find_elements(By.ID, "citejury-dialog"))
        assert (work.stored(), browser.execute_script(RECORD_ID)) == ({}, record)
        browser.find_element(By.CSS_SELECTOR, ".button--discard").click()
        press(browser, "Garbled", Keys.RETURN)
        wait(browser, lambda: work.statuses() == ["discarded"])
        assert list(work.stored().values()) == [("discarded", {"notes": "Garbled"})]
        second = wait(browser, lambda: other_record(browser, record))
        press(browser, Keys.BACKSPACE, Keys.RETURN)
        assert "There is no reason yet" in browser.find_element(By.ID, "citejury-dialog").text
        assert work.statuses() == ["discarded"]
        press(browser, Keys.RETURN)
        wait(browser, lambda: work.statuses() == ["discarded", "discarded"])
        assert work.stored()[second, next(iter(work.ids[name] for name in work.passwords))] == ("discarded", {})

    @pytest.mark.parametrize("locale", locales())
    def test_a_broken_rule_is_pointed_at_before_submit_and_does_not_block(
        self, argilla_server: "ServerHandle", owner: Argilla, browser: webdriver.Chrome, locale: str
    ) -> None:
        work = campaign(owner, records=2, annotators=1, locale=locale)
        opened(browser, work, argilla_server.url)
        answer(browser, CONTRADICTION.items())
        hint = page_texts(LOCALES / f"{locale}.toml")["evidence_requires_relevance"]
        wait(browser, lambda: browser.find_element(By.ID, "citejury-hint").text == hint)
        screenshot(browser, f"hint-{locale}")
        press(browser, Keys.RETURN)
        wait(browser, lambda: work.statuses() == ["submitted"])
        wait(browser, lambda: browser.find_element(By.ID, "citejury-hint").text == "")

    def test_what_is_copied_is_what_is_seen(
        self, argilla_server: "ServerHandle", owner: Argilla, browser: webdriver.Chrome
    ) -> None:
        work = campaign(owner, records=1, annotators=1)
        opened(browser, work, argilla_server.url)
        browser.execute_cdp_cmd(
            "Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
        )
        browser.find_element(By.CSS_SELECTOR, ".record-menu button").click()
        wait(browser, lambda: named(browser, "Copy record")).click()
        text = wait(browser, lambda: browser.execute_async_script("navigator.clipboard.readText().then(arguments[0])"))
        assert passage(0).chunks[0].text in text
        assert "&lt;" not in text


def other_record(driver: webdriver.Chrome, shown: str) -> str | None:
    now = driver.execute_script(RECORD_ID)
    return str(now) if now and now != shown else None


def named(driver: webdriver.Chrome, text: str) -> Any:
    found = driver.find_elements(By.XPATH, f"//*[normalize-space(text())='{text}']")
    return next((element for element in found if element.is_displayed()), None)


class Annotator:
    """Somebody who answers all she is given over a bad link, as fast as the page lets her."""

    def __init__(self, work: Campaign, link: LossyLink, username: str, profile: Path) -> None:
        self.work, self.link, self.username = work, link, username
        self.driver = start_browser(profile)
        self.given: dict[str, dict[str, bool]] = {}

    def label_all(self, records: int) -> None:
        """Answer every record; after a third of them the login ends, and after two thirds she reloads the page."""
        self.open_queue()
        upsets = {records // 3: self.lose_login, 2 * records // 3: self.reload}
        while len(self.given) < records:
            upsets.pop(len(self.given), lambda: None)()
            if not self.label_one() and len(self.given) < records:
                self.open_queue()
        wait(self.driver, lambda: not kept(self.driver), patience=90)

    def label_one(self) -> bool:
        """Whether a record could be answered and another one came."""
        driver = self.driver
        try:
            record = wait(driver, lambda: driver.execute_script(RECORD_ID), BRIEF)
            wait(driver, lambda: focused(driver) == f"{LABELS_HERE[0]}_yes", BRIEF)
            # A record that she has answered already comes again where its answer was slow; she answers it the same.
            answers = self.given[record] = judgement(record, self.username)
            answer(driver, answers.items())
            press(driver, Keys.RETURN)
            wait(driver, lambda: driver.execute_script(RECORD_ID) != record, BRIEF)
        except WebDriverException:
            return False
        return True

    def open_queue(self) -> None:
        """The queue of what she has not answered, after as many attempts as the link takes."""
        for _ in range(ATTEMPTS):
            try:
                if not self.logged_in():
                    self.enter()
                self.driver.get(f"{self.link.url}/dataset/{self.work.dataset}/annotation-mode?page=1&status=pending")
                wait(self.driver, lambda: self.driver.execute_script(RECORD_ID), BRIEF)
            except TimeoutException:
                continue
            return
        raise AssertionError(f"The page of {self.username} did not open in {ATTEMPTS} attempts.")

    def logged_in(self) -> bool:
        if not self.driver.current_url.startswith(self.link.url):
            return False
        token = self.driver.execute_script("return localStorage.getItem('auth._token.local')")
        return bool(token) and token != "false" and token not in self.link.revoked

    def enter(self) -> None:
        self.driver.get(f"{self.link.url}/sign-in")
        enter_password(self.driver, self.username, self.work.passwords[self.username], BRIEF)

    def lose_login(self) -> None:
        """The login ends in the middle of her work: she answers one more, and logs in when she is told to."""
        driver = self.driver
        self.link.revoked.add(driver.execute_script("return localStorage.getItem('auth._token.local')"))
        self.label_one()
        wait(driver, lambda: "login has expired" in notice(driver))
        self.open_queue()

    def reload(self) -> None:
        self.driver.refresh()


def judgement(record: str, username: str) -> dict[str, bool]:
    """What this annotator thinks of the record: the same whenever she is asked."""
    bits = hashlib.sha256(f"{record} {username}".encode()).digest()
    return {label: bits[place] % 2 == 0 for place, label in enumerate(LABELS_HERE)}


def label_over_a_bad_link(owner: Argilla, profiles: Path, records: int) -> None:
    """Three annotators answer all records over a link that loses a fifth of the requests for records and answers."""
    work = campaign(owner, records, annotators=3)
    with lossy_link(owner.api_url, share=0.2, seed=7) as link:
        people = [Annotator(work, link, name, profiles / name) for name in work.passwords]
        try:
            with ThreadPoolExecutor(len(people)) as pool:
                list(pool.map(lambda each: each.label_all(records), people))
        finally:
            for each in people:
                each.driver.quit()
        sent, lost = link.answers.total(), link.answers.total() - link.answers[""]
    given = {
        (record, work.ids[each.username]): ("submitted", {name: "yes" if yes else "no" for name, yes in said.items()})
        for each in people
        for record, said in each.given.items()
    }
    assert len(given) == 3 * records
    assert lost > 0.1 * sent
    assert work.stored() == given


@pytest.mark.server
@pytest.mark.browser
def test_every_answer_given_over_a_bad_link_is_stored_once_with_its_value(owner: Argilla, tmp_path: Path) -> None:
    label_over_a_bad_link(owner, tmp_path, records=20)


@pytest.mark.server
@pytest.mark.browser
@pytest.mark.soak
def test_three_hundred_answers_over_a_bad_link_are_stored_once_each(owner: Argilla, tmp_path: Path) -> None:
    label_over_a_bad_link(owner, tmp_path, records=100)


def test_every_language_has_every_text_and_a_missing_one_is_named(tmp_path: Path) -> None:
    assert all(set(page_texts(LOCALES / f"{locale}.toml")) == set(TEXTS) for locale in locales())
    folder = tmp_path / "locales"
    shutil.copytree(LOCALES, folder)
    german = (folder / "de.toml").read_text(encoding="utf-8")
    (folder / "de.toml").write_text(german.replace("discard_why =", "discard_wy ="), encoding="utf-8")
    with pytest.raises(InputError, match=r"`de\.toml` has no text for the key `page\.discard_why`"):
        page_settings(folder)
