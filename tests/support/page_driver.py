"""What drives Argilla's page in headless Chromium: a browser, logging in, the form, and what was asked of whom."""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import pytest
from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

T = TypeVar("T")

PATIENCE = 90
POLL = 0.05
# The page renders anew whenever it likes: what it has just taken away will be there again.
NOT_YET = (
    NoSuchElementException,
    StaleElementReferenceException,
    ElementNotInteractableException,
    ElementClickInterceptedException,
)
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
FOCUSED = "return document.activeElement?.id ?? ''"
SHOWN_TEXT = """return [...document.querySelectorAll(arguments[0])]
  .filter((element) => element.checkVisibility()).map((element) => element.innerText).join("")"""
LOGGED_IN = """localStorage.setItem("auth.strategy", "local");
localStorage.setItem("auth._token.local", `Bearer ${arguments[0]}`);
localStorage.setItem("auth._token_expiration.local", Date.now() + 3600000)"""  # as Argilla's own page does
KEPT = "return Object.keys(localStorage).filter((key) => /^citejury:(?!rules:)/.test(key))"  # but rules that were seen


def start_browser(profile: Path, logs_network: bool = False) -> webdriver.Chrome:
    if not (CHROMIUM and DRIVER):
        pytest.skip("Chromium and its driver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    logged = {"browser": "SEVERE"} | ({"performance": "ALL"} if logs_network else {})
    options.set_capability("goog:loggingPrefs", logged)
    options.set_capability("unhandledPromptBehavior", "ignore")
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))


def forget(driver: webdriver.Chrome, url: str) -> None:
    """Make the browser as new for the site: one empty tab, no cookies, nothing kept, no events."""
    tab, *others = driver.window_handles
    for each in others:
        driver.switch_to.window(each)
        driver.close()
    driver.switch_to.window(tab)
    driver.get("about:blank")
    driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": url, "storageTypes": "all"})
    if "performance" in driver.log_types:
        events(driver)
    complaints(driver)


def wait(driver: webdriver.Chrome, condition: Callable[[], T], patience: float = PATIENCE) -> T:
    return WebDriverWait(driver, patience, POLL, NOT_YET).until(lambda _: condition())


def click(driver: webdriver.Chrome, find: Callable[[], WebElement | None]) -> None:
    def clicked() -> bool:
        element = find()
        if element:
            element.click()
        return element is not None

    wait(driver, clicked)


def log_in(driver: webdriver.Chrome, url: str, username: str, password: str) -> None:
    """Have somebody logged in whom the next page finds so: reading and compiling Argilla's page takes seconds."""
    login = {"username": username, "password": password}
    answer = httpx.post(f"{url}/api/v1/token", data=login, timeout=PATIENCE, trust_env=False, verify=False)
    driver.get(f"{url}/favicon.ico")
    driver.execute_script(LOGGED_IN, answer.raise_for_status().json()["access_token"])
    complaints(driver)  # of how Chromium shows a picture


def open_home(driver: webdriver.Chrome, url: str, username: str, password: str) -> None:
    log_in(driver, url, username, password)
    driver.get(url)


def log_in_by_hand(driver: webdriver.Chrome, url: str, username: str, password: str) -> None:
    driver.get(f"{url}/sign-in")
    enter_password(driver, username, password)


def enter_password(driver: webdriver.Chrome, username: str, password: str, patience: float = PATIENCE) -> None:
    def entered() -> bool:
        fields = driver.find_elements(By.CSS_SELECTOR, "input")[:2]
        for field, text in zip(fields, (username, password), strict=False):
            if field.get_attribute("value") != text:
                field.clear()
                field.send_keys(text)
        if len(fields) == 2:
            fields[1].send_keys(Keys.RETURN)
        return len(fields) == 2

    wait(driver, entered, patience)
    wait(driver, lambda: "sign-in" not in driver.current_url, patience)


def open_form(driver: webdriver.Chrome, url: str, dataset_id: str, status: str = "pending") -> None:
    driver.get(f"{url}/dataset/{dataset_id}/annotation-mode?page=1&status={status}")
    wait(driver, lambda: driver.execute_script(RECORD_ID))
    wait(driver, lambda: focused(driver).endswith("_yes"))


@contextmanager
def window_size(driver: webdriver.Chrome, width: int, height: int) -> Iterator[None]:
    """What the page has to show itself in, to the pixel; below 500 a window cannot be made."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )
    try:
        yield
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def focused(driver: webdriver.Chrome) -> str:
    return str(driver.execute_script(FOCUSED))


def shown_text(driver: webdriver.Chrome, selector: str = "body") -> str:
    """What can be read in the elements; empty where there are none."""
    return str(driver.execute_script(SHOWN_TEXT, selector))


def shown_element(driver: webdriver.Chrome, text: str) -> WebElement | None:
    found = driver.find_elements(By.XPATH, f"//*[normalize-space(text())='{text}']")
    return next((element for element in found if element.is_displayed()), None)


def press(driver: webdriver.Chrome, *keys: str) -> None:
    ActionChains(driver).send_keys(*keys).perform()


def answer(driver: webdriver.Chrome, answers: Iterable[tuple[str, bool]]) -> None:
    for label, yes in answers:
        chosen = f"{label}_{'yes' if yes else 'no'}"
        wait(driver, lambda label=label: focused(driver).startswith(f"{label}_"))
        press(driver, "1" if yes else "2")
        wait(driver, lambda chosen=chosen: driver.find_element(By.ID, chosen).is_selected())


def notice(driver: webdriver.Chrome) -> str:
    return shown_text(driver, "#citejury-notice")


def kept(driver: webdriver.Chrome) -> list[str]:
    """Keys of the answers that the browser keeps until the server has them."""
    return list(driver.execute_script(KEPT))


def events(driver: webdriver.Chrome) -> list[dict[str, Any]]:
    """What the browser's network did since the last call."""
    return [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]


def complaints(driver: webdriver.Chrome) -> list[str]:
    """What the browser's console called an error since the last call."""
    return [entry["message"] for entry in driver.get_log("browser")]


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
