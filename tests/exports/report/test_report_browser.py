"""`details.html` in a real browser: filters and sorting, phones, no JavaScript, and hostile text that does nothing."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from exports.report.details_page import PRINTED, SHOWN, render_details
from exports.statistics.disagreements import Disagreement
from tests.support.page_driver import start_browser, wait
from tests.support.report_data import HOSTILE, hostile_report_parts, hostile_results, whole_report_parts, with_texts
from tests.support.results_data import results

pytestmark = pytest.mark.browser

VISIBLE = "return [...document.querySelectorAll(arguments[0])].map((each) => each.checkVisibility())"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    driver = start_browser(tmp_path_factory.mktemp("chromium"), logs_network=True)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def disagreements() -> list[Disagreement]:
    return with_texts(
        whole_report_parts()[1],
        ["Honey keeps for years.", "蜂蜜", "שלום", "word " * 200],
        "https://argilla.example/d/1",
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, disagreements: list[Disagreement]) -> Path:
    path = tmp_path_factory.mktemp("report") / "details.html"
    path.write_text(render_details(whole_report_parts()[0], disagreements, results=results()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "details.html"
    agreement, found, remarks = hostile_report_parts()
    text = render_details(agreement, found, remarks=remarks, results=hostile_results())
    path.write_text(text, encoding="utf-8")
    return path


@contextmanager
def as_wide_as(driver: webdriver.Chrome, width: int) -> Iterator[None]:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    yield
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def opened(driver: webdriver.Chrome, path: Path) -> webdriver.Chrome:
    driver.get(path.as_uri())
    return driver


def shown(driver: webdriver.Chrome) -> list[WebElement]:
    script = "return [...document.querySelectorAll('#entries > li')].filter((entry) => entry.offsetHeight > 0)"
    found: list[WebElement] = driver.execute_script(script)
    return found


def values_of(driver: webdriver.Chrome, name: str) -> list[str]:
    """What the entries shown can be filtered or sorted by, in the order of the list."""
    script = "return arguments[1].map((entry) => entry.dataset[arguments[0]])"
    found: list[str] = driver.execute_script(script, name, shown(driver))
    return found


def field(driver: webdriver.Chrome, name: str) -> Select:
    return Select(driver.find_element(By.NAME, name))


def test_the_keyboard_reaches_everything_and_lists_are_sorted_filtered(browser: webdriver.Chrome, report: Path) -> None:
    opened(browser, report)
    browser.execute_script(
        "window.reached = []; addEventListener('focusin', ({target}) =>"
        " window.reached.push(target.name || target.href || target.localName))"
    )
    browser.switch_to.active_element.send_keys(Keys.TAB * 60)
    reached = browser.execute_script("return window.reached")
    assert any(name.endswith("#methods") for name in reached)
    assert {"summary", "div", "task", "order"} <= set(reached)
    for order in ("weight", "share", "entropy"):
        field(browser, "order").select_by_value(order)
        values = [float(value) for value in values_of(browser, order)]
        assert values == sorted(values, reverse=True)
        assert len(set(values)) > 1
    everything = len(shown(browser))
    assert everything == SHOWN
    expected = values_of(browser, "task").count('"retrieval"')
    field(browser, "task").select_by_visible_text("retrieval")
    of_retrieval = values_of(browser, "task")
    assert 5 <= len(of_retrieval) == expected < everything
    assert set(of_retrieval) == {'"retrieval"'}
    labels, languages = (values_of(browser, name) for name in ("label", "language"))
    field(browser, "label").select_by_visible_text(json.loads(labels[0]))
    field(browser, "language").select_by_visible_text(json.loads(languages[0]))
    narrowed = shown(browser)
    assert 0 < len(narrowed) < len(of_retrieval)
    assert browser.find_element(By.ID, "count").text == f"{len(narrowed)} of {everything} shown"
    browser.find_element(By.CSS_SELECTOR, "#filters button").click()
    wait(browser, lambda: len(shown(browser)) == everything)
    pattern = field(browser, "pattern")
    pattern.select_by_index(1)
    chosen = values_of(browser, "pattern")
    assert chosen
    assert len(set(chosen)) == 1
    pattern.select_by_index(0)
    field(browser, "raters").select_by_visible_text("anna")
    assert all("anna" in json.loads(names) for names in values_of(browser, "raters"))
    words = browser.find_element(By.NAME, "words")
    words.send_keys("蜂蜜")
    assert shown(browser)
    assert all("蜂蜜" in (entry.get_attribute("textContent") or "") for entry in shown(browser))
    words.send_keys(" is nowhere")
    assert shown(browser) == []


def test_nothing_is_wider_than_the_screen_or_asked_for(browser: webdriver.Chrome, report: Path, hostile: Path) -> None:
    for path in (report, hostile):
        browser.get_log("performance")
        for width in (400, 1400):
            with as_wide_as(browser, width):
                opened(browser, path)
                assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
        sent = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        assert {*sent} == {path.as_uri()}
        assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.mark.rare
def test_without_javascript_all_but_the_form_is_there(tmp_path_factory: pytest.TempPathFactory, report: Path) -> None:
    driver = start_browser(tmp_path_factory.mktemp("chromium-without"))
    try:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        opened(driver, report)
        entries = shown(driver)
        assert len(entries) == SHOWN
        assert not driver.find_element(By.ID, "filters").is_displayed()
        assert "Honey keeps for years." in entries[0].text  # its query
        text = entries[0].find_element(By.CSS_SELECTOR, ".entry .text")
        assert not text.is_displayed()
        entries[0].find_element(By.TAG_NAME, "summary").click()
        assert text.is_displayed()
    finally:
        driver.quit()


def test_paper_shows_what_is_a_click_away_but_no_long_texts(browser: webdriver.Chrome, report: Path) -> None:
    opened(browser, report)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        tables = browser.execute_script(VISIBLE, "caption")
        assert len(tables) > 10
        assert all(tables)
        assert len(shown(browser)) == PRINTED
        assert all(browser.execute_script(VISIBLE, "#entries > li:nth-child(-n + 30) .facts"))
        long = browser.execute_script(VISIBLE, "details.long:not([open]) > .text")
        assert long
        assert not any(long)
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_hostile_text_is_seen_as_typed_and_does_nothing(browser: webdriver.Chrome, hostile: Path) -> None:
    opened(browser, hostile)
    body = browser.find_element(By.TAG_NAME, "body").text
    assert all(text in body for text in HOSTILE)
    assert browser.title == "What the jury found: generation"
    options = [option.text for option in field(browser, "raters").options]
    field(browser, "raters").select_by_index(1)
    assert set(options) == {"any", *HOSTILE[:4]}
    assert all(options[1] in json.loads(names) for names in values_of(browser, "raters"))
    with pytest.raises(NoAlertPresentException):
        browser.switch_to.alert.accept()
    assert browser.find_elements(By.CSS_SELECTOR, "img, iframe, [onload], [onerror], a[href^='javascript']") == []
    assert len(browser.find_elements(By.TAG_NAME, "script")) == 1
