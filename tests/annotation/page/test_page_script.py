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
from tests.support.lossy_link import Forward, LossyLink
from tests.support.page_campaign import CONTRADICTION, Campaign, campaign, opened, passage
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

VALUES = {label: "yes" if yes else "no" for label, yes in CONTRADICTION.items()}
CORRECTION = "#citejury-correction"
HINT = "#citejury-hint"
SCRIPTS = (ROOT / "annotation" / "server" / "page").glob("*.js")
# The driver itself says yes to the browser's question.
ASKS_BEFORE_LEAVING = "return !window.dispatchEvent(new Event('beforeunload', { cancelable: true }))"


class WithoutAnswers(Forward):
    """Gives what is asked for, and breaks off where an answer is sent."""

    def do_POST(self) -> None:
        if "/responses" in self.path:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
        else:
            self.forward()


class TestPage:
    pytestmark = [pytest.mark.server, pytest.mark.browser]

    def test_answers_outlive_server_reload_and_login(self, owner: Argilla, browser: Chrome, link: LossyLink) -> None:
        work = campaign(owner, records=1, annotators=2, locale="de")
        anna, ben = work.passwords
        record = opened(browser, work, link.url, anna)
        token = browser.execute_script("return localStorage.getItem('auth._token.local')")
        link.RequestHandlerClass = WithoutAnswers
        answer(browser, CONTRADICTION.items())
        press(browser, Keys.RETURN)
        wait(browser, lambda: "Noch nicht gespeichert: 1" in notice(browser))
        wait(browser, lambda: "noch nicht fertig" in shown_text(browser, "#citejury-empty"))
        assert "erledigt" not in shown_text(browser, "#citejury-empty")
        assert work.stored() == {}
        link.RequestHandlerClass, link.revoked = Forward, {token}
        assert browser.execute_script(ASKS_BEFORE_LEAVING)
        browser.refresh()
        wait(browser, lambda: "sign-in" in browser.current_url)
        wait(browser, lambda: notice(browser))
        enter_password(browser, ben, work.passwords[ben])
        open_form(browser, link.url, work.dataset)
        answer(browser, [(label, True) for label in CONTRADICTION])
        press(browser, Keys.RETURN)
        wait(browser, lambda: "Sie haben diese Liste ganz erledigt." in shown_text(browser, "#citejury-empty"))
        assert len(kept(browser)) == 1
        assert {user for _, user in work.stored()} == {work.ids[ben]}
        browser.execute_script("localStorage.setItem('auth._token.local', 'false')")
        log_in_by_hand(browser, link.url, anna, work.passwords[anna])
        wait(browser, lambda: not kept(browser))
        assert not browser.execute_script(ASKS_BEFORE_LEAVING)
        assert work.stored()[record, work.ids[anna]] == ("submitted", VALUES)

    def test_drafts_corrections_and_discards_are_kept_as_she_leaves_them(self, owner: Argilla, browser: Chrome) -> None:
        work = campaign(owner, records=3, annotators=1)
        first = opened(browser, work, owner.api_url)
        answer(browser, [("topically_relevant", False)])
        browser.get("about:blank")
        wait(browser, lambda: list(work.stored().values()) == [("draft", {"topically_relevant": "no"})])

        open_form(browser, owner.api_url, work.dataset, "draft")
        assert is_chosen(browser, "topically_relevant_no")
        answer(browser, [("topically_relevant", False), ("evidence_sufficient", True)])
        half = {"topically_relevant": "no", "evidence_sufficient": "yes"}
        wait(browser, lambda: list(work.stored().values()) == [("draft", half)])
        wait(browser, lambda: "Saved as a draft" in notice(browser))
        answer(browser, [("misleading", False)])
        hint = page_texts("en")["evidence_requires_relevance"]  # it is pointed at, and does not block
        wait(browser, lambda: shown_text(browser, HINT) == hint)
        press(browser, Keys.RETURN)
        wait(browser, lambda: list(work.stored().values()) == [("submitted", VALUES)])

        open_form(browser, owner.api_url, work.dataset, "submitted")
        answer(browser, [("topically_relevant", True)])
        wait(browser, lambda: "Changed, but not submitted yet" in shown_text(browser, CORRECTION))
        browser.refresh()
        wait(browser, lambda: is_chosen(browser, "topically_relevant_yes"))
        click(browser, lambda: shown_element(browser, "Drop the change"))
        wait(browser, lambda: is_chosen(browser, "topically_relevant_no"))
        wait(browser, lambda: not shown_text(browser, CORRECTION))
        assert (list(work.stored().values()), kept(browser)) == ([("submitted", VALUES)], [])

        open_form(browser, owner.api_url, work.dataset)
        assert shown_text(browser, HINT) == ""
        self.discard_two(browser, work, first)

    def discard_two(self, browser: Chrome, work: Campaign, first: str) -> None:
        """She is asked for the reason, and what she began to write of it stays."""
        second = browser.execute_script(RECORD_ID)
        press(browser, Keys.BACKSPACE)
        press(browser, "Garbled", Keys.BACKSPACE, "d", Keys.ESCAPE)
        wait(browser, lambda: not browser.find_elements(By.ID, "citejury-dialog"))
        assert (work.statuses(), browser.execute_script(RECORD_ID)) == (["submitted"], second)
        click(browser, lambda: browser.find_element(By.CSS_SELECTOR, ".button--discard"))
        wait(browser, lambda: browser.find_element(By.ID, "citejury-dialog"))
        assert browser.execute_script("return document.activeElement.value") == "Garbled"
        press(browser, Keys.RETURN)
        third = wait(browser, lambda: other_record(browser, second))
        press(browser, Keys.BACKSPACE, Keys.RETURN)
        wait(browser, lambda: "There is no reason yet" in shown_text(browser, "#citejury-dialog"))
        press(browser, Keys.RETURN)
        wait(browser, lambda: work.statuses() == ["discarded", "discarded", "submitted"])
        assert {record: said for (record, _), said in work.stored().items() if record != first} == {
            second: ("discarded", {"notes": "Garbled"}),
            third: ("discarded", {}),
        }

    @pytest.mark.rare
    def test_argillas_page_is_in_the_lists_language_without_what_nobody_uses(
        self, owner: Argilla, browser: Chrome
    ) -> None:
        work = campaign(owner, records=1, annotators=1, locale="de")
        (dataset,) = (
            each for each in owner.datasets(owner.find_workspace(work.workspace)) if "retrieval" in each["name"]
        )
        ((_, (item, *_)),) = owner.record_pages(dataset["id"])
        questions = owner.request("GET", f"/datasets/{dataset['id']}/questions")["items"]
        known = {"question_id": questions[1]["id"], "value": "yes", "score": 0.77, "agent": "some-model"}
        owner.request("PUT", f"/records/{item['id']}/suggestions", json=known)
        opened(browser, work, owner.api_url)
        wait(
            browser,
            lambda: all(name in shown_text(browser) for name in ("Abgesendet", "Verwerfen", "Entwurf speichern")),
        )
        for foreign in ("Gesichert", "Submit", "Discard", "Pending", "Filter", "Sort", " of "):
            assert foreign not in shown_text(browser), foreign
        scored = """return document.querySelector('form.questions-form').__vue__.record.questions
          .map(({ suggestion: one }) => one && [one.agent, one.score?.fixed])"""
        assert [each for each in browser.execute_script(scored) if each and any(each)] == []
        answer(browser, [("topically_relevant", True)])
        wait(browser, lambda: "Sie finden ihn unter „Entwurf“" in notice(browser))
        click(browser, lambda: browser.find_element(By.CSS_SELECTOR, ".record-menu button"))
        wait(browser, lambda: shown_text(browser, ".record-menu__content").strip() == "Fall kopieren")
        browser.get(f"{owner.api_url}/user-settings")
        wait(browser, lambda: "Benutzername" in shown_text(browser))
        assert [
            foreign for foreign in ("API", work.workspace, "nnotator") if foreign in shown_text(browser, "h2, .badge")
        ] == []

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


def is_chosen(driver: Chrome, option: str) -> bool:
    return driver.find_element(By.ID, option).is_selected()


def other_record(driver: Chrome, shown: str) -> str | None:
    now = driver.execute_script(RECORD_ID)
    return str(now) if now and now != shown else None


def test_every_language_has_every_text_and_a_missing_one_is_named(tmp_path: Path) -> None:
    said = set(re.findall(r'\bsay\("(\w+)"', "".join(path.read_text(encoding="utf-8") for path in SCRIPTS)))
    assert said
    assert all(
        said | {rule.name for rules in RULES.values() for rule in rules} <= set(page_texts(locale))
        for locale in locales()
    )
    folder = tmp_path / "locales"
    shutil.copytree(LOCALES, folder)
    german = (folder / "de.toml").read_text(encoding="utf-8")
    (folder / "de.toml").write_text(german.replace("discard_why =", "discard_wy ="), encoding="utf-8")
    with pytest.raises(InputError, match=r"`de\.toml` has no text for the key `page\.discard_why`"):
        page_settings(folder)
