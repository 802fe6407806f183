"""Where an annotator starts, what she does not get to, and what an empty queue says, in Argilla's page."""

import contextlib
import sqlite3
from collections.abc import Iterator
from datetime import datetime
from uuid import uuid4

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.argilla.wording import read_wording
from annotation.server.launch import ServerHandle
from tests.support.page_driver import answer, click, focused, open_home, press, shown_text, wait
from tests.support.start_bench import Start, start, waiting

pytestmark = [pytest.mark.server, pytest.mark.browser]

CALIBRATION = ["Textstellenprüfung – Probelauf", "Belegprüfung – Probelauf", "Antwortqualität – Probelauf"]
HEADING = read_wording("de").guidelines["grounding"].partition("\n")[0].removeprefix("# ")
GERMAN = [*CALIBRATION, "Textstellenprüfung", "Belegprüfung", "Antwortqualität"]
# Told before anything of the page runs: what of Argilla's home was ever to be seen, in any frame.
WATCH_FOR_ARGILLAS_HOME = """const look = () => {
  if ([...document.querySelectorAll(".home__container *")].some((each) => each.checkVisibility())) window.seen = true;
  requestAnimationFrame(look);
}; look();"""
SHORT_WAITS = """const { setTimeout: real } = window;
window.setTimeout = (action, wait, ...rest) => real(action, Math.min(wait || 0, 3000), ...rest);"""
TITLES = "return [...document.querySelectorAll('#citejury-home h3')].map((each) => each.textContent)"
LANGUAGE = "return document.documentElement.lang"
# What is painted where nothing is done yet: in the dark Argilla's white would look as if all were.
TRACKS = """document.documentElement.dataset.theme = 'dark';
return [...document.querySelectorAll('.team-progress .progress__bar')]
  .map((each) => getComputedStyle(each).backgroundImage)"""
# What tells her where she is: the last breadcrumb, and the heading that only assistive technology reads.
HEADINGS = """return ['.breadcrumbs li:last-child', '[role=main] > h1']
  .map((each) => document.querySelector(each).textContent.trim())"""
BULK = "return [...document.querySelectorAll('.bulk__container, .annotation-type-switch, .button-settings')]" + (
    ".some((each) => each.checkVisibility())"
)


@pytest.fixture
def watched(request: pytest.FixtureRequest, browser: Chrome) -> Iterator[Chrome]:
    """The browser, which runs a script before each page: by default it keeps whether Argilla's home was seen."""
    script = {"source": getattr(request, "param", WATCH_FOR_ARGILLAS_HOME)}
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", script)
    yield browser
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def enter(driver: Chrome, work: Start, who: str, url: str | None = None) -> None:
    open_home(driver, url or work.owner.api_url, work.names[who], work.passwords[who])


def titles(driver: Chrome) -> list[str]:
    return list(wait(driver, lambda: driver.execute_script(TITLES)))


def open_list(driver: Chrome, work: Start, dataset: str, url: str | None = None) -> None:
    address = f"dataset/{work.datasets()[dataset]}/annotation-mode?page=1&status=pending"
    driver.get(f"{url or work.owner.api_url}/{address}")


def said(driver: Chrome) -> str:
    return wait(driver, lambda: shown_text(driver, "#citejury-empty"))


def answer_record(driver: Chrome, task: str) -> None:
    labels = LABELS[task]  # type: ignore[index]  # one of the tasks
    wait(driver, lambda: focused(driver) == f"{labels[0]}_yes")
    answer(driver, [(label, True) for label in labels])
    press(driver, Keys.RETURN)


def opened_menu(driver: Chrome) -> str:
    if not (text := shown_text(driver, ".user__content")):
        driver.find_element(By.CSS_SELECTOR, ".user__button").click()
    return text


def test_she_starts_with_lists_of_her_language_and_is_led_from_one_on(owner: Argilla, watched: Chrome) -> None:
    work = start(owner, records=2, languages=["de", "ja"])
    enter(watched, work, "anna")
    assert titles(watched) == GERMAN
    assert (watched.title, watched.execute_script(LANGUAGE)) == ("Ihre Arbeit · citejury", "de")
    text = shown_text(watched)
    assert HEADING in text
    assert not [foreign for foreign in ("Argilla datasets", "demo", "guide", "-ja") if foreign in text]
    click(watched, lambda: watched.find_element(By.CSS_SELECTOR, "#citejury-home li:nth-child(2) button"))
    wait(watched, lambda: HEADING in shown_text(watched, "#citejury-guidelines"))
    assert watched.find_element(By.ID, "citejury-guidelines").accessible_name == "Richtlinien: Belegprüfung – Probelauf"
    press(watched, Keys.ESCAPE)
    wait(watched, lambda: not watched.find_elements(By.ID, "citejury-guidelines"))
    click(watched, lambda: watched.find_element(By.LINK_TEXT, "Anfangen: Textstellenprüfung – Probelauf"))
    wait(watched, lambda: focused(watched) == "topically_relevant_yes")
    assert (watched.title, watched.execute_script(LANGUAGE)) == ("Textstellenprüfung – Probelauf · citejury", "de")
    assert watched.execute_script(HEADINGS) == ["Textstellenprüfung – Probelauf"] * 2
    assert wait(watched, lambda: watched.execute_script(TRACKS)) == ["none"]
    assert not watched.execute_script(BULK)
    answer_record(watched, "retrieval")
    assert "Sie haben diese Liste ganz erledigt." in said(watched)
    click(watched, lambda: watched.find_element(By.LINK_TEXT, "Als Nächstes: Belegprüfung – Probelauf"))
    wait(watched, lambda: focused(watched) == "support_present_yes")
    click(watched, lambda: watched.find_element(By.CSS_SELECTOR, ".breadcrumbs a"))
    assert sorted(titles(watched)) == sorted(GERMAN)
    menu = wait(watched, lambda: opened_menu(watched))
    assert "Abmelden" in menu
    assert "Dokumentation" not in menu
    watched.get(f"{owner.api_url}/dataset/{work.datasets()['2-grounding-de']}/settings")
    assert sorted(titles(watched)) == sorted(GERMAN)
    assert watched.execute_script("return window.seen ?? false") is False


@pytest.mark.rare
def test_what_is_not_for_annotators_is_not_opened_by_its_address_either(owner: Argilla, watched: Chrome) -> None:
    work = start(owner, languages=["de"])
    enter(watched, work, "anna")
    titles(watched)
    watched.get(f"{owner.api_url}/new/somebody%2Fdata")
    assert titles(watched) == GERMAN
    assert watched.execute_script("return window.seen ?? false") is False
    address = f"dataset/{work.datasets()['2-grounding-de']}/annotation-mode?page=1~10&status=pending"
    watched.get(f"{owner.api_url}/{address}")
    wait(watched, lambda: focused(watched) == "support_present_yes")
    wait(watched, lambda: "page=1&" in watched.current_url)
    assert not watched.execute_script(BULK)
    assert watched.title == "Belegprüfung · citejury"


@pytest.mark.rare
def test_without_a_language_that_of_the_browser_comes_first(owner: Argilla, browser: Chrome) -> None:
    campaign = start(owner)
    name, password = f"{campaign.workspace}-dora", "a password of hers"
    body = {"username": name, "first_name": "d", "role": "annotator", "password": password}
    user = owner.request("POST", "/users", json=body)["id"]
    workspace = owner.find_workspace(campaign.workspace)
    owner.request("POST", f"/workspaces/{workspace}/users", json={"user_id": user})
    open_home(browser, owner.api_url, name, password)
    assert titles(browser)[:2] == ["Retrieval – trial round", "Grounding – trial round"]
    seen = "return [...document.querySelectorAll('#citejury-home h3')].filter((each) => each.checkVisibility()).length"
    assert (browser.execute_script(seen), browser.title) == (6, "Your work · citejury")
    click(browser, lambda: browser.find_element(By.CSS_SELECTOR, "#citejury-home summary"))
    wait(browser, lambda: browser.execute_script(seen) == 18)
    assert titles(browser)[6:8] == ["Retrieval – trial round (German)", "Grounding – trial round (German)"]


@pytest.mark.rare
def test_an_owner_keeps_argillas_home_and_who_has_no_workspace_reads_so(owner: Argilla, browser: Chrome) -> None:
    browser.get(f"{owner.api_url}/sign-in")
    wait(browser, lambda: browser.title == "Log in · citejury")
    name, password = f"owner-{owner.api_url[-5:]}", "a password of hers"
    owner.request("POST", "/users", json={"username": name, "first_name": "o", "role": "owner", "password": password})
    open_home(browser, owner.api_url, name, password)
    wait(browser, lambda: shown_text(browser, ".home__container"))
    assert browser.find_elements(By.ID, "citejury-home") == []
    person = {"username": f"early-{uuid4()}", "first_name": "Early", "role": "annotator", "password": "long enough"}
    owner.request("POST", "/users", json=person)
    open_home(browser, owner.api_url, person["username"], person["password"])
    wait(browser, lambda: "There is nothing for you to do yet." in shown_text(browser, "#citejury-home"))


@pytest.mark.rare
@pytest.mark.parametrize("watched", [SHORT_WAITS], indirect=True, ids=["hasty"])
def test_an_empty_queue_says_who_has_the_rest(owner: Argilla, argilla_server: ServerHandle, watched: Chrome) -> None:
    work = start(owner, languages=["de"])
    dataset = work.datasets()["1-retrieval-de"]
    with Argilla(owner.api_url, work.keys["ben"]) as ben:
        assert len(waiting(ben, dataset)) == 2
    enter(watched, work, "anna")
    wait(watched, lambda: "sind gerade bei anderen" in shown_text(watched, "#citejury-home"))
    open_list(watched, work, "1-retrieval-de")
    (found,) = (each for each in work.lists("anna") if each["id"] == dataset)
    back = datetime.fromisoformat(found["back"]).astimezone()
    reason = f"Die letzten 2 sind gerade bei anderen; spätestens um {back.hour}:{back:%M} sind sie wieder frei."
    assert reason in said(watched)
    assert work.names["ben"] not in shown_text(watched)
    assert watched.find_element(By.LINK_TEXT, "Als Nächstes: Textstellenprüfung – Probelauf").is_displayed()
    with contextlib.closing(sqlite3.connect(argilla_server.home / "data" / "argilla.db", timeout=60)) as database:
        database.execute("UPDATE citejury_holds SET ends = 1 WHERE dataset_id = ?", (dataset.replace("-", ""),))
        database.commit()
    wait(watched, lambda: focused(watched) == "topically_relevant_yes")


@pytest.mark.rare
def test_a_list_that_is_done_leads_to_the_next_one_and_the_last_to_thanks(owner: Argilla, browser: Chrome) -> None:
    work = start(owner, records=2, languages=["de"])
    for name in ("calibration-1-retrieval-de", "calibration-2-grounding-de", "calibration-3-generation-de"):
        work.answer("anna", name, 1)
    for name in ("2-grounding-de", "3-generation-de"):
        work.answer("ben", name, 1)
    enter(browser, work, "anna")
    click(browser, lambda: browser.find_element(By.LINK_TEXT, "Weiter: Textstellenprüfung"))
    answer_record(browser, "retrieval")
    assert "Sie haben diese Liste ganz erledigt." in said(browser)
    assert "Als Nächstes" not in said(browser)
    click(browser, lambda: browser.find_element(By.CSS_SELECTOR, "#citejury-empty a"))
    wait(browser, lambda: "Sie haben alles erledigt" in shown_text(browser, "#citejury-home"))
    assert browser.execute_script("return document.querySelectorAll('#citejury-home .citejury-done').length") == 4
    open_list(browser, work, "2-grounding-de")
    assert "Andere haben diese Liste fertiggestellt; für Sie ist nichts mehr übrig." in said(browser)
    assert "Vielen Dank" not in said(browser)


@pytest.mark.rare
def test_who_did_nothing_because_others_did_all_is_not_thanked(owner: Argilla, browser: Chrome) -> None:
    work = start(owner, records=1, calibration=0, languages=["de"])
    for name in ("1-retrieval-de", "2-grounding-de", "3-generation-de"):
        work.answer("ben", name, 1)
    enter(browser, work, "anna")
    wait(browser, lambda: "Andere haben alles erledigt" in shown_text(browser, "#citejury-home"))
    assert "Vielen Dank" not in shown_text(browser, "#citejury-home")
