"""A page that cannot know says so: with a link that is down or a login that is over, no list is called done."""

from collections.abc import Iterator

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from tests.support.lossy_link import Forward, LossyLink, lossy_link
from tests.support.page_campaign import CONTRADICTION, campaign, opened
from tests.support.page_driver import (
    RECORD_ID,
    answer,
    click,
    kept,
    notice,
    press,
    screenshot,
    shown_element,
    shown_text,
    wait,
)

pytestmark = [pytest.mark.server, pytest.mark.browser]

DONE = "You have done all of this list"
SHE_COMES_BACK = "document.dispatchEvent(new Event('visibilitychange'))"


class Overloaded(Forward):
    """Refuses what tells of lists and records while the link's share is not 0, and takes everything else."""

    def refuses(self) -> bool:
        path = self.path.partition("?")[0]
        return self.server.share > 0 and path.endswith(("/records/search", "/me/work"))

    def do_GET(self) -> None:
        if self.refuses():
            self.reply(503, [], b"")
        else:
            self.forward()

    def do_POST(self) -> None:
        if self.refuses():
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.reply(503, [], b"")
        else:
            self.forward()


@pytest.fixture
def link(owner: Argilla) -> Iterator[LossyLink]:
    with lossy_link(owner.api_url) as found:
        found.RequestHandlerClass = Overloaded
        yield found


def in_queue(driver: webdriver.Chrome) -> str:
    """What the empty queue says."""
    return shown_text(driver, ".wrapper--empty")


def test_records_that_cannot_be_loaded_are_said_to_be_so_and_come_when_the_server_is_back(
    owner: Argilla, browser: webdriver.Chrome, link: LossyLink
) -> None:
    work = campaign(owner, records=1, annotators=1)
    record = opened(browser, work, link.url)
    link.share = 0.5
    browser.refresh()
    wait(browser, lambda: "could not be loaded" in notice(browser))
    screenshot(browser, "stale-en")
    assert "done" not in shown_text(browser)
    assert "completed" not in shown_text(browser)
    link.share = 0.0
    click(browser, lambda: shown_element(browser, "Try again"))
    wait(browser, lambda: browser.execute_script(RECORD_ID) == record)
    wait(browser, lambda: not notice(browser))


def test_a_list_that_was_done_is_not_called_so_once_the_server_is_silent_or_her_login_is_over(
    owner: Argilla, browser: webdriver.Chrome, link: LossyLink
) -> None:
    work = campaign(owner, records=1, annotators=1)
    opened(browser, work, link.url)
    answer(browser, CONTRADICTION.items())
    press(browser, Keys.RETURN)
    wait(browser, lambda: DONE in in_queue(browser))
    assert not kept(browser)
    link.share = 0.5
    wait(browser, lambda: browser.execute_script(SHE_COMES_BACK) or "does not answer" in in_queue(browser))
    assert DONE not in shown_text(browser)
    link.share = 0.0
    wait(browser, lambda: DONE in in_queue(browser))
    link.revoked.add(browser.execute_script("return localStorage.getItem('auth._token.local')"))
    wait(browser, lambda: browser.execute_script(SHE_COMES_BACK) or "login has expired" in in_queue(browser))
    screenshot(browser, "stale-login-en")
    assert DONE not in shown_text(browser)
    click(browser, lambda: shown_element(browser, "Log in again"))
    wait(browser, lambda: "sign-in" in browser.current_url)
