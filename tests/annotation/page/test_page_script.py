"""What our script in the annotator's page does: nothing she answers is lost, and she is asked before it could be."""

import re
import shutil
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.labels import RULES
from annotation.argilla.wording import LOCALES, locales
from annotation.server.page import page_settings, page_texts
from pipeline.core.errors import InputError
from tests.support.lossy_link import lossy_link
from tests.support.page_campaign import CONTRADICTION, campaign, opened, passage, submit
from tests.support.page_driver import (
    RECORD_ID,
    answer,
    click,
    enter_password,
    kept,
    log_in_by_hand,
    notice,
    open_form,
    press,
    shown_element,
    shown_text,
    wait,
)
from tests.support.places import ROOT

HINT = "#citejury-hint"
SCRIPTS = (ROOT / "annotation" / "server" / "page").glob("*.js")
SERVER = [pytest.mark.server, pytest.mark.browser]
# The driver itself says yes to the browser's question.
ASKS_BEFORE_LEAVING = "return !window.dispatchEvent(new Event('beforeunload', { cancelable: true }))"


class TestPage:
    pytestmark = SERVER

    def test_answers_outlive_a_dead_server_a_reload_and_another_login(self, owner: Argilla, browser: Chrome) -> None:
        work = campaign(owner, records=3, annotators=2, locale="de")
        anna, ben = work.passwords
        with lossy_link(owner.api_url) as link:
            record = opened(browser, work, link.url, anna)
            token = browser.execute_script("return localStorage.getItem('auth._token.local')")
            link.share = 1.0
            submit(browser, CONTRADICTION)
            wait(browser, lambda: "Noch nicht gespeichert: 1" in notice(browser))
            assert work.stored() == {}
            link.revoked, link.share = {token}, 0.0
            assert browser.execute_script(ASKS_BEFORE_LEAVING)
            browser.refresh()
            wait(browser, lambda: "sign-in" in browser.current_url)
            wait(browser, lambda: notice(browser))
            enter_password(browser, ben, work.passwords[ben])
            open_form(browser, link.url, work.dataset)
            submit(browser, {**CONTRADICTION, "topically_relevant": True})
            wait(browser, lambda: not notice(browser))
            assert len(kept(browser)) == 1
            assert {user for _, user in work.stored()} == {work.ids[ben]}
            browser.execute_script("localStorage.setItem('auth._token.local', 'false')")
            log_in_by_hand(browser, link.url, anna, work.passwords[anna])
            wait(browser, lambda: not kept(browser))
            assert not browser.execute_script(ASKS_BEFORE_LEAVING)
            values = {label: "yes" if yes else "no" for label, yes in CONTRADICTION.items()}
            assert work.stored()[record, work.ids[anna]] == ("submitted", values)

    def test_a_half_filled_form_becomes_a_draft_until_submitted(self, owner: Argilla, browser: Chrome) -> None:
        work = campaign(owner, records=2, annotators=1)
        record = opened(browser, work, owner.api_url)
        answer(browser, [("topically_relevant", True)])
        wait(browser, lambda: "Saved as a draft" in notice(browser))
        assert work.statuses() == ["draft"]
        answer(browser, [("evidence_sufficient", False), ("misleading", False)])
        press(browser, Keys.RETURN)
        wait(browser, lambda: other_record(browser, record))
        values = {"topically_relevant": "yes", "evidence_sufficient": "no", "misleading": "no"}
        wait(browser, lambda: list(work.stored().values()) == [("submitted", values)])
        answer(browser, [("topically_relevant", False)])
        browser.get("about:blank")
        wait(browser, lambda: work.statuses() == ["draft", "submitted"])

    def test_a_discard_asks_for_the_reason_and_keeps_it(self, owner: Argilla, browser: Chrome) -> None:
        work = campaign(owner, records=3, annotators=1)
        record = opened(browser, work, owner.api_url)
        press(browser, Keys.BACKSPACE)
        press(browser, "Garbled", Keys.BACKSPACE, "d", Keys.ESCAPE)
        wait(browser, lambda: not browser.find_elements(By.ID, "citejury-dialog"))
        assert (work.stored(), browser.execute_script(RECORD_ID)) == ({}, record)
        click(browser, lambda: browser.find_element(By.CSS_SELECTOR, ".button--discard"))
        wait(browser, lambda: browser.find_element(By.ID, "citejury-dialog"))
        assert browser.execute_script("return document.activeElement.value") == "Garbled"
        press(browser, Keys.RETURN)
        wait(browser, lambda: work.statuses() == ["discarded"])
        assert list(work.stored().values()) == [("discarded", {"notes": "Garbled"})]
        second = wait(browser, lambda: other_record(browser, record))
        press(browser, Keys.BACKSPACE, Keys.RETURN)
        wait(browser, lambda: "There is no reason yet" in shown_text(browser, "#citejury-dialog"))
        assert work.statuses() == ["discarded"]
        press(browser, Keys.RETURN)
        wait(browser, lambda: work.statuses() == ["discarded", "discarded"])
        assert work.stored()[second, next(iter(work.ids[name] for name in work.passwords))] == ("discarded", {})

    def test_a_broken_rule_is_pointed_at_and_does_not_block(self, owner: Argilla, browser: Chrome) -> None:
        work = campaign(owner, records=2, annotators=1, locale="ja")
        opened(browser, work, owner.api_url)
        answer(browser, CONTRADICTION.items())
        hint = page_texts("ja")["evidence_requires_relevance"]
        wait(browser, lambda: shown_text(browser, HINT) == hint)
        press(browser, Keys.RETURN)
        wait(browser, lambda: work.statuses() == ["submitted"])
        wait(browser, lambda: shown_text(browser, HINT) == "")

    @pytest.mark.rare
    def test_argillas_german_uses_our_words(self, owner: Argilla, browser: Chrome) -> None:
        work = campaign(owner, records=1, annotators=1, locale="en")
        agent = browser.execute_script("return navigator.userAgent")
        override = "Emulation.setUserAgentOverride"
        browser.execute_cdp_cmd(override, {"userAgent": agent, "acceptLanguage": "de"})
        opened(browser, work, owner.api_url)
        wait(browser, lambda: "Abgesendet" in shown_text(browser))
        assert "Gesichert" not in shown_text(browser)
        answer(browser, [("topically_relevant", True)])
        wait(browser, lambda: "You find it under “Entwurf”" in notice(browser))
        browser.execute_cdp_cmd(override, {"userAgent": agent, "acceptLanguage": "en"})

    @pytest.mark.rare
    def test_what_is_copied_is_what_is_seen(self, owner: Argilla, browser: Chrome) -> None:
        opened(browser, campaign(owner, records=1, annotators=1), owner.api_url)
        permissions = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
        browser.execute_cdp_cmd("Browser.grantPermissions", permissions)
        click(browser, lambda: browser.find_element(By.CSS_SELECTOR, ".record-menu button"))
        click(browser, lambda: shown_element(browser, "Copy record"))
        text = wait(browser, lambda: browser.execute_async_script("navigator.clipboard.readText().then(arguments[0])"))
        assert passage(0).chunks[0].text in text
        assert "&lt;" not in text


def other_record(driver: Chrome, shown: str) -> str | None:
    now = driver.execute_script(RECORD_ID)
    return str(now) if now and now != shown else None


def test_every_language_has_every_text_and_a_missing_one_is_named(tmp_path: Path) -> None:
    said = set(re.findall(r'\bsay\("(\w+)"', "".join(path.read_text(encoding="utf-8") for path in SCRIPTS)))
    assert said
    assert all(said | {rule.name for rule in RULES} <= set(page_texts(locale)) for locale in locales())
    folder = tmp_path / "locales"
    shutil.copytree(LOCALES, folder)
    german = (folder / "de.toml").read_text(encoding="utf-8")
    (folder / "de.toml").write_text(german.replace("discard_why =", "discard_wy ="), encoding="utf-8")
    with pytest.raises(InputError, match=r"`de\.toml` has no text for the key `page\.discard_why`"):
        page_settings(folder)
