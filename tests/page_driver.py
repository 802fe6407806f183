"""What drives Argilla's page in headless Chromium: a browser, logging in, the form, and what was asked of whom."""

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

T = TypeVar("T")

PATIENCE = 30
POLL = 0.05
SCREENSHOTS = Path(__file__).parents[1] / "screenshots"
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,900",
)
RECORD_ID = "return document.querySelector('form.questions-form')?.__vue__?.record?.id"
KEPT = "return Object.keys(localStorage).filter((key) => key.startsWith('citejury:'))"


def start_browser(profile: Path) -> webdriver.Chrome:
    """A browser that nobody has logged in with yet."""
    if not (CHROMIUM and DRIVER):
        pytest.skip("Chromium and its driver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    options.set_capability("unhandledPromptBehavior", "ignore")
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))


def wait(driver: webdriver.Chrome, condition: Callable[[], T], patience: float = PATIENCE) -> T:
    """What the condition gives, as soon as it is true."""
    return WebDriverWait(driver, patience, POLL).until(lambda _: condition())


def log_in(driver: webdriver.Chrome, url: str, username: str, password: str) -> None:
    driver.get(f"{url}/sign-in")
    enter_password(driver, username, password)


def enter_password(driver: webdriver.Chrome, username: str, password: str, patience: float = PATIENCE) -> None:
    name, secret = wait(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "input"), patience)[:2]
    name.send_keys(username)
    secret.send_keys(password, Keys.RETURN)
    wait(driver, lambda: "sign-in" not in driver.current_url, patience)


def open_form(driver: webdriver.Chrome, url: str, dataset_id: str, status: str = "pending") -> None:
    driver.get(f"{url}/dataset/{dataset_id}/annotation-mode?page=1&status={status}")
    wait(driver, lambda: driver.execute_script(RECORD_ID))
    wait(driver, lambda: focused(driver).endswith("_yes"))


def focused(driver: webdriver.Chrome) -> str:
    return str(driver.switch_to.active_element.get_attribute("id"))


def press(driver: webdriver.Chrome, *keys: str) -> None:
    ActionChains(driver).send_keys(*keys).perform()


def answer(driver: webdriver.Chrome, answers: Iterable[tuple[str, bool]]) -> None:
    """The labels answered by keyboard, from the first question on."""
    for label, yes in answers:
        press(driver, "1" if yes else "2")
        wait(driver, driver.find_element(By.ID, f"{label}_{'yes' if yes else 'no'}").is_selected)


def notice(driver: webdriver.Chrome) -> str:
    """What our notice says; empty where there is none."""
    return "".join(each.text for each in driver.find_elements(By.ID, "citejury-notice"))


def kept(driver: webdriver.Chrome) -> list[str]:
    """Keys of the answers that the browser keeps until the server has them."""
    return list(driver.execute_script(KEPT))


def events(driver: webdriver.Chrome) -> list[dict[str, Any]]:
    """What the browser's network did since the last call."""
    return [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]


def hosts_asked(found: list[dict[str, Any]]) -> set[str]:
    """The hosts that requests went out to; those that the content policy held back are none."""
    blocked = {
        event["params"]["requestId"]
        for event in found
        if event["method"] == "Network.loadingFailed" and event["params"].get("blockedReason") == "csp"
    }
    sent = {
        event["params"]["request"]["url"]
        for event in found
        if event["method"] == "Network.requestWillBeSent" and event["params"]["requestId"] not in blocked
    }
    return {urlsplit(url).netloc for url in sent if url.startswith(("http", "ws"))}


def screenshot(driver: webdriver.Chrome, name: str) -> None:
    SCREENSHOTS.mkdir(exist_ok=True)
    driver.save_screenshot(str(SCREENSHOTS / f"{name}.png"))
