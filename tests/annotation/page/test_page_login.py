"""What the log-in page says to somebody who has typed a wrong password."""

import uuid

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.server.launch import ServerHandle
from tests.support.logins import MOST, wrong
from tests.support.page_driver import shown_text, wait

pytest.importorskip("uvicorn", reason="The server is not installed here.")

ERROR = ".form__error"
HAMMERING = {"en": "127.0.0.77", "de": "127.0.0.78", "ja": "127.0.0.79"}  # none is the browser's


@pytest.mark.server
@pytest.mark.rare
@pytest.mark.parametrize(
    ("language", "mistake", "sentence"),
    [
        ("en", "Wrong username or password", "Too many wrong passwords. Please wait a minute, then try again."),
        (
            "de",
            "Falscher Benutzername",
            "Zu viele falsche Passwörter. Bitte warten Sie eine Minute und versuchen Sie es dann noch einmal.",
        ),
        (
            "ja",
            "ユーザー名またはパスワードが間違っています",
            "パスワードの間違いが続きました。1分ほど待ってから、もう一度お試しください。",
        ),
    ],
)
def test_who_must_wait_is_told_so_in_her_language(
    argilla_server: ServerHandle, browser: Chrome, language: str, mistake: str, sentence: str
) -> None:
    name = f"anna-{uuid.uuid4().hex[:8]}"
    assert wrong(argilla_server, HAMMERING[language], *[name] * MOST) == [401] * MOST
    agent = browser.execute_script("return navigator.userAgent")
    override = "Emulation.setUserAgentOverride"
    browser.execute_cdp_cmd(override, {"userAgent": agent, "acceptLanguage": language})
    try:
        browser.get(f"{argilla_server.url}/sign-in")
        enter(browser, f"{name}-else")
        wait(browser, lambda: mistake in shown_text(browser, ERROR))
        enter(browser, name)
        wait(browser, lambda: shown_text(browser, ERROR) == sentence)
    finally:
        browser.execute_cdp_cmd(override, {"userAgent": agent, "acceptLanguage": "en"})


def enter(driver: Chrome, username: str) -> None:
    wait(driver, lambda: len(driver.find_elements(By.CSS_SELECTOR, "input")) >= 2)
    for field, text in zip(driver.find_elements(By.CSS_SELECTOR, "input")[:2], (username, "wrong"), strict=True):
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(text)
    field.send_keys(Keys.RETURN)
