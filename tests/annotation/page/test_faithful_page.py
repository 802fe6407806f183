"""Annotators see of an answer what its model wrote: all but markup that took effect, in its order, nothing else."""

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from uuid import uuid4

import httpx
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.display import to_records
from annotation.argilla.rendering import rendered_answer
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from pipeline.records.schema import Provenance, QueryResponse
from tests.support.nasty_answers import NASTY_ANSWERS
from tests.support.page_driver import RECORD_ID, click, events, log_in, open_form, press, shown_text, wait
from tests.support.real_answers import real_answers
from tests.support.seen_answers import RENDER_ALL, faults, has_tower

pytestmark = [pytest.mark.server, pytest.mark.browser]

ANSWER = """# Wann? ##

9. November **1989** [1]
3. Oktober 1990 `a*b` und 5~10 %

- 5 °C
- **「重要」**です [2]

| a | b |
|---|---|
| &amp; | 2*3*4 |

<b>x</b> \\[1\\] \u202everkehrt
"""
SHOWN = ".fields .content-area > .markdown-render"
BUTTON = ".citejury-written-button"
CLIPBOARD = "navigator.clipboard.readText().then(arguments[0])"
GENERATED, A_BATCH = 400, 200


class Opened(NamedTuple):
    url: str
    dataset: str
    username: str
    password: str


def opened(owner: Argilla, answers: Sequence[str]) -> Opened:
    workspace = f"faithful-{uuid4().hex[:8]}"
    users: list = []
    set_up(owner, workspace, annotators=[f"{workspace}-anna"], announce=users.append)
    dataset = find_datasets(owner, workspace)["generation"].id
    wording = read_wording("en")
    secret = Provenance(model_name="secretive", model_version="s-9")
    bodies = [
        to_records(QueryResponse(record_uuid=str(uuid4()), query="Q?", answer=answer, provenance=secret), wording)
        for answer in answers
    ]
    items = [body["generation"][0] for body in bodies]
    owner.request("PUT", f"/datasets/{dataset}/records/bulk", json={"items": items})
    return Opened(owner.api_url, dataset, users[0].username, users[0].password)


def show(driver: Chrome, work: Opened) -> None:
    log_in(driver, work.url, work.username, work.password)
    open_form(driver, work.url, work.dataset)
    wait(driver, lambda: driver.find_element(By.CSS_SELECTOR, BUTTON))


def generated(count: int) -> Iterator[str]:
    choose = random.Random(20261122)
    for _ in range(count):
        yield "".join(choose.choices(NASTY_ANSWERS, k=choose.randint(2, 30)))


def test_every_character_but_markup_that_took_effect_is_seen(owner: Argilla, browser: Chrome) -> None:
    real = [answer for answers in real_answers().values() for answer in answers]
    answers = [each for each in (*generated(GENERATED), *real) if rendered_answer(each).html and not has_tower(each)]
    show(browser, opened(owner, ["One answer."]))
    found = []
    for start in range(0, len(answers), A_BATCH):
        batch = answers[start : start + A_BATCH]
        shown = browser.execute_script(RENDER_ALL, [rendered_answer(answer).html for answer in batch])
        for answer, each in zip(batch, shown, strict=True):
            found += [(answer, fault) for fault in faults(answer, each["pieces"])]
            assert each["foreign"] == []
    assert len(answers) > GENERATED
    assert not found, f"{len(found)} of {len(answers)}: {sorted(found, key=lambda pair: len(pair[0]))[:5]}"


def test_an_answer_is_shown_and_copied_as_it_was_written_or_seen(owner: Argilla, browser: Chrome) -> None:
    work = opened(owner, [ANSWER])
    show(browser, work)
    assert "9." not in shown_text(browser, f"{SHOWN} li:not([value])")
    numbers = browser.execute_script(f"return [...document.querySelectorAll('{SHOWN} li')].map((each) => each.value)")
    assert numbers == [9, 3, 0]
    asked = f"/records/{browser.execute_script(RECORD_ID)}/answer"
    assert not any(asked in str(event) for event in events(browser))
    button = browser.find_element(By.CSS_SELECTOR, BUTTON)
    assert button.get_attribute("aria-pressed") == "false"
    press(browser, "w")
    wait(browser, lambda: button.get_attribute("aria-pressed") == "true")
    assert shown_text(browser, f"{SHOWN} .citejury-text") == ANSWER.replace("\u202e", "")
    click(browser, lambda: button)
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, f"{SHOWN} table"))
    assert button.get_attribute("aria-pressed") == "false"
    browser.execute_cdp_cmd(
        "Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    )
    browser.execute_script(
        "document.querySelector('.text_field_component:has(.markdown-render) .text_field_component__copy-button')"
        ".click()"
    )
    wait(browser, lambda: browser.execute_async_script(CLIPBOARD) == ANSWER)
    browser.execute_script(f"getSelection().selectAllChildren(document.querySelector('{SHOWN} .citejury-answer'))")
    ActionChains(browser).key_down(Keys.CONTROL).send_keys("c").key_up(Keys.CONTROL).perform()
    copied = wait(browser, lambda: text if (text := browser.execute_async_script(CLIPBOARD)) != ANSWER else None)
    assert "9. November 1989 [1]\n3. Oktober 1990 a*b und 5~10 %" in copied.replace("\n\n", "\n")
    assert "&amp;\t2*3*4" in copied
    assert "<strong>" not in copied


def test_the_answer_as_written_is_given_to_members_only_and_nothing_else_that_is_hidden(owner: Argilla) -> None:
    work, other = opened(owner, [ANSWER]), opened(owner, ["No."])

    def keys(work: Opened) -> dict[str, str]:
        body = {"username": work.username, "password": work.password}
        token = httpx.post(f"{work.url}/api/v1/token", data=body).json()["access_token"]
        return {"Authorization": f"Bearer {token}"}

    (record,) = owner.request("GET", f"/datasets/{work.dataset}/records")["items"]
    path = f"{work.url}/api/v1/records/{record['id']}/answer"
    assert httpx.get(path, headers=keys(work)).json() == {"answer": ANSWER}
    assert httpx.get(path, headers=keys(other)).status_code == 403
    assert httpx.get(path).status_code == 401
