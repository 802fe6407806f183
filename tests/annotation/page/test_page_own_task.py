"""A task from a file in Argilla's page: its name, values by key, practice, and its own words on a broken rule."""

from pathlib import Path

from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.labels import add_task
from annotation.argilla.task_file import read_task
from tests.support.page_driver import RECORD_ID, complaints, focused, open_home, press, shown_text, wait
from tests.support.practice_campaign import practised
from tests.support.task_files import PRACTICE, write_claims


def open_list(driver: Chrome, url: str, dataset_id: str) -> None:
    driver.get(f"{url}/dataset/{dataset_id}/annotation-mode?page=1&status=pending")
    wait(driver, lambda: driver.execute_script(RECORD_ID))
    wait(driver, lambda: focused(driver) == "accuracy_wrong")


def test_a_task_from_a_file_is_practised_and_answered_by_keys(owner: Argilla, browser: Chrome, tmp_path: Path) -> None:
    path = write_claims(tmp_path)
    path.write_text(path.read_text(encoding="utf-8") + PRACTICE, encoding="utf-8")
    work = practised(owner, asked=(add_task(read_task(path)),))
    open_home(browser, owner.api_url, work.names["anna"], work.passwords["anna"])
    wait(browser, lambda: "Claims – practice" in shown_text(browser, "body"))
    open_list(browser, owner.api_url, work.dataset("practice-4-claims-en"))
    press(browser, "3", "1", "4", "1", Keys.RETURN)
    told = wait(browser, lambda: shown_text(browser, "#citejury-practice[open]"))
    assert "3 of 4 judgements agree." in told
    assert all(words in told for words in ("How good is it?", "Your judgement: 4", "Right: 5", "Your judgement: Right"))
    press(browser, Keys.RETURN)
    open_list(browser, owner.api_url, work.dataset("4-claims-en"))
    press(browser, "3", "2", "5", "2")
    wait(browser, lambda: shown_text(browser, "#citejury-hint") == "Please check: what is right is complete.")
    press(browser, Keys.RETURN)
    stored = wait(
        browser,
        lambda: [
            {name: each["value"] for name, each in response["values"].items()}
            for _, page in owner.record_pages(work.dataset("4-claims-en"))
            for record in page
            for response in record["responses"]
            if response["status"] == "submitted"
        ],
    )
    assert stored == [{"accuracy": "right", "kind": "opinion", "stars": 5, "complete": "no"}]
    assert complaints(browser) == []
