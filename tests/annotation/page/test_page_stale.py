"""A page that cannot know says so: with a link that is down or a login that is over, no list is called done."""

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from tests.support.lossy_link import Forward, LossyLink
from tests.support.page_campaign import CONTRADICTION, campaign, opened
from tests.support.page_driver import RECORD_ID, answer, click, kept, notice, press, shown_element, shown_text, wait

pytestmark = [pytest.mark.server, pytest.mark.browser, pytest.mark.rare]

DONE = "You have done all of this list"
SHE_COMES_BACK = "document.dispatchEvent(new Event('visibilitychange'))"


class Overloaded(Forward):
    """Refuses what tells of lists and records while the link's share is not 0, and takes everything else."""

    def refuse_or_forward(self) -> None:
        if self.server.share > 0 and self.path.partition("?")[0].endswith(("/records/search", "/me/work")):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.reply(503, [], b"")
        else:
            self.forward()

    do_GET = do_POST = refuse_or_forward


@pytest.fixture
def overloaded(link: LossyLink) -> LossyLink:
    link.RequestHandlerClass = Overloaded
    return link


def in_queue(driver: Chrome) -> str:
    return shown_text(driver, ".wrapper--empty")


def test_records_that_cannot_be_loaded_come_later(owner: Argilla, browser: Chrome, overloaded: LossyLink) -> None:
    record = opened(browser, campaign(owner, records=1, annotators=1), overloaded.url)
    overloaded.share = 0.5
    browser.refresh()
    wait(browser, lambda: "could not be loaded" in notice(browser))
    assert "done" not in shown_text(browser)
    assert "completed" not in shown_text(browser)
    overloaded.share = 0.0
    click(browser, lambda: shown_element(browser, "Try again"))
    wait(browser, lambda: browser.execute_script(RECORD_ID) == record)
    wait(browser, lambda: not notice(browser))


def test_a_list_is_not_called_done_without_its_server(owner: Argilla, browser: Chrome, overloaded: LossyLink) -> None:
    opened(browser, campaign(owner, records=1, annotators=1), overloaded.url)
    answer(browser, CONTRADICTION.items())
    press(browser, Keys.RETURN)
    wait(browser, lambda: DONE in in_queue(browser))
    assert not kept(browser)
    overloaded.share = 0.5
    wait(browser, lambda: browser.execute_script(SHE_COMES_BACK) or "does not answer" in in_queue(browser))
    assert DONE not in shown_text(browser)
    overloaded.share = 0.0
    wait(browser, lambda: DONE in in_queue(browser))
    overloaded.revoked.add(browser.execute_script("return localStorage.getItem('auth._token.local')"))
    wait(browser, lambda: browser.execute_script(SHE_COMES_BACK) or "login has expired" in in_queue(browser))
    assert DONE not in shown_text(browser)
    click(browser, lambda: shown_element(browser, "Log in again"))
    wait(browser, lambda: "sign-in" in browser.current_url)
