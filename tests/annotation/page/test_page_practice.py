"""Practice in Argilla's page: it comes first, explains each case after its submission, and opens the list."""

from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from tests.support.page_driver import (
    RECORD_ID,
    answer,
    click,
    complaints,
    focused,
    open_home,
    press,
    shown_text,
    wait,
    window_size,
)
from tests.support.practice_campaign import practised

pytestmark = pytest.mark.server

CASES = """
[[retrieval]]
query = "Wie hoch ist der Turm?"
passages = [{ text = "Der Turm ist 57 Meter hoch." }]
topically_relevant = { answer = "yes", why = "Die Höhe steht <b onclick=alert(1)>da</b>." }
evidence_sufficient = { answer = "yes", why = "Mehr braucht es nicht." }
misleading = { answer = "no", why = "Wer das liest, weiß die Höhe." }

[[retrieval]]
query = "Wie alt ist der Turm?"
passages = [{ text = "Der Turm ist 57 Meter hoch." }]
topically_relevant = { answer = "no", why = "Es geht um die Höhe." }
evidence_sufficient = { answer = "no", why = "Das Alter fehlt." }
misleading = { answer = "no", why = "Niemand hält 57 Meter für ein Alter." }
"""
# Where the part of the explanation that scrolls ends.
LOWEST_TEXT = "return document.querySelector('#citejury-practice > div').getBoundingClientRect().bottom"
ALL_NO = {"topically_relevant": False, "evidence_sufficient": False, "misleading": False}


def dialog(driver: Chrome) -> str:
    return wait(driver, lambda: shown_text(driver, "#citejury-practice[open]"))


def submit_case(driver: Chrome, answers: dict[str, bool]) -> str:
    wait(driver, lambda: focused(driver) == "topically_relevant_yes")
    answer(driver, answers.items())
    press(driver, Keys.RETURN)
    return dialog(driver)


@pytest.mark.rare
def test_practice_opens_its_list(
    owner: Argilla, browser: Chrome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cases.toml").write_text(CASES, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    work = practised(owner, locales=("de",), tasks=["retrieval"], file="cases.toml")
    open_home(browser, owner.api_url, work.names["anna"], work.passwords["anna"])
    wait(browser, lambda: "Anfangen: Textstellenprüfung – Übung" in shown_text(browser, "#citejury-home"))
    assert "Öffnet die Liste „Textstellenprüfung“: 5 von 6 Urteilen" in shown_text(browser, "#citejury-home")
    browser.get(f"{owner.api_url}/dataset/{work.dataset('1-retrieval-de')}/annotation-mode?page=1&status=pending")
    wait(browser, lambda: "sobald Sie die Übung dazu bestanden haben" in shown_text(browser, "#citejury-empty"))
    click(browser, lambda: browser.find_element(By.LINK_TEXT, "Zur Übung: Textstellenprüfung – Übung"))

    said = submit_case(browser, ALL_NO)
    for words in (
        *("1 von 3 Urteilen stimmen überein.", "✗ weicht ab", "✓ stimmt überein", "Ihr Urteil: Nein"),
        *("Richtig: Ja", "Die Höhe steht <b onclick=alert(1)>da</b>."),
    ):
        assert words in said
    assert browser.find_elements(By.CSS_SELECTOR, "#citejury-practice b") == []
    assert focused(browser) == "citejury-practice-title"
    shown = shown_text(browser, "#citejury-practice details")
    case, explained = (
        browser.find_element(By.CSS_SELECTOR, f"#citejury-practice {part}") for part in ("details", "section")
    )
    assert case.rect["x"] + case.rect["width"] <= explained.rect["x"]
    assert "Wie hoch ist der Turm?" in shown
    assert "Wie alt" not in shown
    with window_size(browser, 400, 700):
        wide = (
            "const all = document.querySelector('#citejury-practice > div'); return all.scrollWidth > all.clientWidth"
        )
        assert not browser.execute_script(wide)
        wait(browser, lambda: "57 Meter" in shown_text(browser, "#citejury-practice details"))
        button = browser.find_element(By.CSS_SELECTOR, "#citejury-practice .citejury-next")
        assert browser.execute_script(LOWEST_TEXT) <= button.location["y"]
    press(browser, Keys.ESCAPE)
    wait(browser, lambda: browser.find_elements(By.ID, "citejury-practice") == [])
    said = submit_case(browser, ALL_NO)
    assert "3 von 3 Urteilen stimmen überein." in said
    assert browser.find_element(By.CSS_SELECTOR, "#citejury-practice .citejury-next").accessible_name == "Zum Ergebnis"
    press(browser, Keys.RETURN)

    wait(browser, lambda: "4 von 6 Urteilen stimmen überein, nötig sind 5" in shown_text(browser, "#citejury-empty"))
    marks = shown_text(browser, "#citejury-empty .citejury-marks")
    assert "✗ Sagt die Textstelle" in marks
    assert "Ja: 0 von 1 richtig · Nein: 1 von 1 richtig · 0 von 100 Punkten, nötig sind 100" in marks
    for sufficient, told in ((False, "5 von 6 Urteilen stimmen überein, aber"), (True, "6 von 6 Urteilen stimmen")):
        click(browser, lambda: browser.find_element(By.CSS_SELECTOR, "#citejury-empty .citejury-again"))
        for answers in ({"topically_relevant": True, "evidence_sufficient": sufficient, "misleading": False}, ALL_NO):
            submit_case(browser, answers)
            click(browser, lambda: browser.find_element(By.CSS_SELECTOR, "#citejury-practice .citejury-next"))
        wait(browser, lambda told=told: told in shown_text(browser, "#citejury-empty"))
    click(browser, lambda: browser.find_element(By.LINK_TEXT, "Als Nächstes: Textstellenprüfung"))
    wait(browser, lambda: focused(browser) == "topically_relevant_yes")
    assert browser.execute_script(RECORD_ID)
    assert complaints(browser) == []
