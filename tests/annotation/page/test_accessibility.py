"""No page shuts anybody out: axe-core finds nothing serious in them, light or dark, and 400 pixels are enough."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TASKS, TaskName
from annotation.argilla.wording import read_wording
from annotation.campaign.share import render_page, share_sheets
from annotation.quality.summary import read_status
from annotation.quality.text import render_page as render_status
from exports.report.details_page import render_details
from exports.report.files import FigureOptions, measure_and_write
from tests.support.accessibility import harmful_barriers, in_light_and_dark, load_axe
from tests.support.export_folders import campaign as each_campaign
from tests.support.export_folders import write_export
from tests.support.page_campaign import CONTRADICTION, campaign, opened
from tests.support.page_driver import answer, log_in, open_form, press, shown_text, wait, window_size
from tests.support.practice_campaign import practised
from tests.support.report_data import whole_report_parts
from tests.support.results_data import results

pytestmark = [pytest.mark.server, pytest.mark.browser]


@pytest.fixture(scope="module")
def axe() -> str:
    return load_axe()


def check(driver: Chrome, axe: str, name: str) -> None:
    for theme in in_light_and_dark(driver):
        assert (name, theme, harmful_barriers(driver, axe)) == (name, theme, [])


def fits_a_telephone(driver: Chrome, name: str) -> None:
    with window_size(driver, 400, 800):
        assert driver.execute_script("return document.scrollingElement.scrollWidth - innerWidth") <= 0, name


@pytest.mark.rare
def test_log_in_and_home_shut_nobody_out(owner: Argilla, browser: Chrome, axe: str) -> None:
    work = campaign(owner, records=1, annotators=1, locale="de")
    browser.get(f"{owner.api_url}/sign-in")
    wait(browser, lambda: browser.find_element(By.CSS_SELECTOR, "input[type=password]"))
    check(browser, axe, "sign-in")
    fits_a_telephone(browser, "sign-in")
    opened(browser, work, owner.api_url)
    browser.get(owner.api_url)
    wait(browser, lambda: "Retrieval" in shown_text(browser, "#citejury-home"))
    check(browser, axe, "home")
    fits_a_telephone(browser, "home")


@pytest.mark.rare
def test_what_practice_explains_shuts_nobody_out(owner: Argilla, browser: Chrome, axe: str) -> None:
    work = practised(owner, tasks=["retrieval"], cases=2)
    work.practise("anna", "practice-1-retrieval-en", wrong=1, count=1)
    log_in(browser, owner.api_url, work.names["anna"], work.passwords["anna"])
    open_form(browser, owner.api_url, work.dataset("practice-1-retrieval-en"), "submitted")
    wait(browser, lambda: shown_text(browser, "#citejury-explained"))
    check(browser, axe, "explained")
    open_form(browser, owner.api_url, work.dataset("practice-1-retrieval-en"))
    answer(browser, CONTRADICTION.items())
    press(browser, Keys.RETURN)
    wait(browser, lambda: shown_text(browser, "#citejury-practice"))
    check(browser, axe, "practice")


@pytest.mark.parametrize("task", ["retrieval", *(pytest.param(each, marks=pytest.mark.rare) for each in TASKS[1:])])
def test_a_tasks_page_shuts_nobody_out_in_any_state(task: TaskName, owner: Argilla, browser: Chrome, axe: str) -> None:
    work = campaign(owner, records=1, annotators=1, locale="ja", task=task)
    opened(browser, work, owner.api_url)
    for label in LABELS[task]:
        press(browser, "1" if CONTRADICTION.get(label, True) else "2")
    wait(browser, lambda: browser.find_element(By.CSS_SELECTOR, ".button--submit").is_enabled())
    wait(browser, lambda: work.statuses() == ["draft"] and shown_text(browser, "#citejury-notice"))
    fits_a_telephone(browser, task)
    browser.execute_script("document.querySelector('form.questions-form input').focus()")
    press(browser, "?", "g")
    wait(browser, lambda: shown_text(browser, ".citejury-whole dl") and shown_text(browser, ".annotation-guidelines"))
    check(browser, axe, f"{task}-answered-with-rules")
    press(browser, "g", Keys.ESCAPE, Keys.BACKSPACE)
    wait(browser, lambda: browser.find_element(By.CSS_SELECTOR, "#citejury-dialog"))
    check(browser, axe, f"{task}-discard")
    press(browser, Keys.ESCAPE)


@pytest.mark.rare
def test_panes_search_and_a_narrow_window_shut_nobody_out(owner: Argilla, browser: Chrome, axe: str) -> None:
    work = campaign(owner, records=1, annotators=1, task="grounding")
    opened(browser, work, owner.api_url)
    press(browser, "n", "l")
    browser.find_element(By.CSS_SELECTOR, ".search-area, .search__icon, [class*=search] svg").click()
    check(browser, axe, "search-and-sources")
    for width, height in ((683, 384), (400, 800)):
        with window_size(browser, width, height):
            open_form(browser, owner.api_url, work.dataset)
            check(browser, axe, f"bar-{width}")
            press(browser, "q")
            check(browser, axe, f"all-questions-{width}")
    browser.get(f"{owner.api_url}/user-settings")
    wait(browser, lambda: shown_text(browser, "main, .wrapper, [role=main], .user-settings"))
    check(browser, axe, "settings")


@pytest.mark.rare
def test_marks_that_are_required_shut_nobody_out(owner: Argilla, browser: Chrome, axe: str) -> None:
    work = campaign(owner, records=1, annotators=1, locale="de", task="grounding", evidence="required")
    opened(browser, work, owner.api_url)
    answer(browser, ((label, label == "support_present") for label in LABELS["grounding"]))
    press(browser, Keys.RETURN)
    wait(browser, lambda: browser.find_element(By.CSS_SELECTOR, "#citejury-marks.needed").is_displayed())
    check(browser, axe, "marks-missing")
    fits_a_telephone(browser, "marks-missing")


@pytest.mark.rare
def test_sheets_guides_and_reports_shut_nobody_out(owner: Argilla, browser: Chrome, axe: str, tmp_path: Path) -> None:
    work = campaign(owner, records=1, annotators=1, locale="de")
    share_sheets(owner, work.workspace, None, tmp_path, work.passwords)
    status = read_status(owner, [work.workspace], datetime.now(UTC))
    (tmp_path / "status.html").write_text(render_status(status), encoding="utf-8")
    report = render_details(*whole_report_parts(), results=results())
    (tmp_path / "details.html").write_text(report, encoding="utf-8")
    folder = write_export(tmp_path / "export", each_campaign(narratives=12))
    for code in ("de", "ja"):
        options = FigureOptions(resamples=100, language=code)
        measure_and_write([folder], tmp_path / code, options)
        (tmp_path / code / "report.html").rename(tmp_path / f"report-{code}.html")
    (tmp_path / "guidelines-ja.html").write_text(render_page("grounding", read_wording("ja")), encoding="utf-8")
    for page in sorted(tmp_path.glob("*.html")):
        browser.get(page.as_uri())
        name = page.stem.removesuffix(page.stem[-9:]) if page.stem.startswith("sheet") else page.stem
        check(browser, axe, name)
        browser.execute_script("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        check(browser, axe, f"{name}-opened")
        fits_a_telephone(browser, name)
