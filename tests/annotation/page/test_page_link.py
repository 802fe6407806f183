"""Answers given over a bad link: each is stored once, with the value that the annotator gave."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from selenium.common.exceptions import TimeoutException, WebDriverException
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from tests.support.lossy_link import LossyLink, lossy_link
from tests.support.page_campaign import Campaign, campaign
from tests.support.page_driver import (
    RECORD_ID,
    answer,
    enter_password,
    focused,
    kept,
    notice,
    press,
    start_browser,
    wait,
)

pytestmark = [pytest.mark.server, pytest.mark.browser]

LABELS_HERE = LABELS["retrieval"]
BRIEF = 4
SEED = 39  # five of the first twelve answers are lost, in each of the ways
ATTEMPTS = 60


class Annotator:
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
        wait(self.driver, lambda: not kept(self.driver))

    def label_one(self) -> bool:
        driver = self.driver
        try:
            record = wait(driver, lambda: driver.execute_script(RECORD_ID), BRIEF)
            wait(driver, lambda: focused(driver) == f"{LABELS_HERE[0]}_yes", BRIEF)
            # A record that she has answered already comes again where its answer was slow; she answers it the same.
            answers = judgement(record, self.username)
            answer(driver, answers.items())
            press(driver, Keys.RETURN)
            self.given[record] = answers
            wait(driver, lambda: driver.execute_script(RECORD_ID) != record, BRIEF)
        except WebDriverException:
            return False
        return True

    def open_queue(self) -> None:
        for attempt in range(ATTEMPTS):
            patience = BRIEF + attempt  # a slow machine is no loss
            try:
                if not self.logged_in():
                    self.enter(patience)
                self.driver.get(f"{self.link.url}/dataset/{self.work.dataset}/annotation-mode?page=1&status=pending")
                wait(self.driver, lambda: self.driver.execute_script(RECORD_ID), patience)
            except TimeoutException:
                continue
            return
        raise AssertionError(f"The page of {self.username} did not open in {ATTEMPTS} attempts.")

    def logged_in(self) -> bool:
        if not self.driver.current_url.startswith(self.link.url):
            return False
        token = self.driver.execute_script("return localStorage.getItem('auth._token.local')")
        return bool(token) and token != "false" and token not in self.link.revoked

    def enter(self, patience: float) -> None:
        self.driver.get(f"{self.link.url}/sign-in")
        enter_password(self.driver, self.username, self.work.passwords[self.username], patience)

    def lose_login(self) -> None:
        driver = self.driver
        self.link.revoked.add(driver.execute_script("return localStorage.getItem('auth._token.local')"))
        wait(driver, lambda: self.label_one() or "login has expired" in notice(driver))
        wait(driver, lambda: "login has expired" in notice(driver))
        self.open_queue()

    def reload(self) -> None:
        self.driver.refresh()


def judgement(record: str, username: str) -> dict[str, bool]:
    bits = hashlib.sha256(f"{record} {username}".encode()).digest()
    return {label: bits[place] % 2 == 0 for place, label in enumerate(LABELS_HERE)}


def label_over_a_bad_link(owner: Argilla, profiles: Path, records: int, annotators: int) -> None:
    work = campaign(owner, records, annotators)
    with lossy_link(owner.api_url, share=0.2, seed=SEED) as link:
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
    assert len(given) == annotators * records
    assert lost > 0.1 * sent
    assert work.stored() == given


@pytest.mark.rare
def test_every_answer_given_over_a_bad_link_is_stored_once_with_its_value(owner: Argilla, tmp_path: Path) -> None:
    label_over_a_bad_link(owner, tmp_path, records=6, annotators=2)


@pytest.mark.soak
def test_three_hundred_answers_over_a_bad_link_are_stored_once_each(owner: Argilla, tmp_path: Path) -> None:
    label_over_a_bad_link(owner, tmp_path, records=100, annotators=3)
