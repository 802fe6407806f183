"""The rule where the decision is: a line under each question, all of it on a key, guidelines beside the record."""

from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.argilla.wording import read_wording
from tests.support.page_campaign import CONTRADICTION, campaign, opened, submit
from tests.support.page_driver import RECORD_ID, answer, click, focused, open_form, press, shown_text, wait, window_size

pytestmark = [pytest.mark.server, pytest.mark.browser]

LABELS_OF_PASSAGES = list(LABELS["retrieval"])
WHOLE = ".citejury-whole"
RULES = "return [...document.querySelectorAll('.citejury-rule > span')].map((line) => line.innerText)"
ICONS = "return [...document.querySelectorAll('.questions .icon-info')].filter((icon) => icon.checkVisibility()).length"
COVERED = """const place = (each) => each.getBoundingClientRect();
const whole = place([...document.querySelectorAll('.citejury-whole')].find((each) => each.checkVisibility()));
return [...document.querySelectorAll('form.questions-form .label-text, .footer-form button')].map(place)
  .filter((other) => other.right > whole.left && other.left < whole.right
    && other.bottom > whole.top && other.top < whole.bottom).length"""
PLACES = """return ['.record__content', '.annotation-guidelines', '.questions'].map((selector) => {
  const found = [...document.querySelectorAll(selector)].find((each) => each.checkVisibility());
  const { left, right, top, bottom } = found?.closest('.panel__content, .questions-form__content, .record__content')
    .getBoundingClientRect() ?? {};
  return found ? [left, right, top, bottom] : null })"""
IN_FOCUS = """const { id, className, textContent } = document.activeElement;
return id || /button--\\w+/.exec(className)?.[0] || className || document.activeElement.tagName"""
BELOW = """const bottom = (selector) => Math.max(...[...document.querySelectorAll(selector)]
  .map((each) => each.getBoundingClientRect().bottom));
return [bottom('.inputs-area') - bottom('.questions-form__content'), bottom('.button--submit') - innerHeight]"""
WIDER = "return document.scrollingElement.scrollWidth - innerWidth"


def first_sentence(text: str) -> str:
    ends = [text.find(end) + 1 for end in (". ", "。") if end in text]
    return text[: min(ends)] if ends else text


def groups(driver: Chrome) -> list[dict[str, Any]]:
    nodes = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    by_id = {node["nodeId"]: node for node in nodes}

    def below(node: dict[str, Any]) -> list[dict[str, Any]]:
        children = [by_id[child] for child in node.get("childIds", ()) if child in by_id]
        return [*children, *(each for child in children for each in below(child))]

    def said(node: dict[str, Any], name: str) -> Any:
        found = {each["name"]: each["value"].get("value") for each in node.get("properties", ())}
        return found.get(name, node.get(name, {}).get("value"))

    def radios(node: dict[str, Any]) -> list[tuple[Any, Any]]:
        return [(said(each, "name"), said(each, "checked")) for each in below(node) if said(each, "role") == "radio"]

    found = [node for node in nodes if said(node, "role") == "radiogroup"]
    return [
        {name: said(node, name) for name in ("name", "description", "required")} | {"radios": radios(node)}
        for node in found
    ]


def test_rules_are_under_each_question_and_guidelines_beside_the_record(owner: Argilla, browser: Chrome) -> None:
    work = campaign(owner, records=3, annotators=1, locale="de")
    with window_size(browser, 1366, 768):
        opened(browser, work, owner.api_url)
        each_question_shows_its_rule_in_a_line_and_all_of_it_on_a_key(browser)
        guidelines_stay_for_the_next(browser)
    with window_size(browser, 400, 800):
        guidelines_cover_a_telephone(browser)


def each_question_shows_its_rule_in_a_line_and_all_of_it_on_a_key(browser: Chrome) -> None:
    wording = read_wording("de")
    questions = [wording.questions["retrieval"][label] for label in LABELS_OF_PASSAGES]
    lines = [first_sentence(each.description) for each in (*questions, wording.notes)]
    assert (browser.execute_script(RULES), browser.execute_script(ICONS)) == (lines, 0)

    press(browser, Keys.ARROW_DOWN, "?")
    examples = wording.examples["retrieval"]
    parts = (questions[1].description, examples.case, *examples.labels[LABELS_OF_PASSAGES[1]].values())
    wait(browser, lambda: all(part in shown_text(browser, WHOLE) for part in parts))
    assert browser.execute_script(COVERED) == 0
    press(browser, "1", "?")  # the focus is with the next question, and so is the key
    wait(browser, lambda: questions[2].description in shown_text(browser, WHOLE))
    assert questions[1].description not in shown_text(browser, WHOLE)
    press(browser, "?")
    wait(browser, lambda: shown_text(browser, WHOLE) == "")
    press(browser, "?", Keys.ESCAPE)
    wait(browser, lambda: shown_text(browser, WHOLE) == "")
    click(browser, lambda: browser.find_element(By.CSS_SELECTOR, ".citejury-rule button"))
    wait(browser, lambda: questions[0].description in shown_text(browser, WHOLE))
    click(browser, lambda: browser.find_element(By.CSS_SELECTOR, ".citejury-rule button"))

    press(browser, Keys.TAB, Keys.TAB, Keys.TAB, Keys.TAB)
    wait(browser, lambda: focused(browser) == "contentId")
    press(browser, "Why?", " g")
    wait(browser, lambda: shown_text(browser, "#contentId") == "Why? g")
    assert (shown_text(browser, WHOLE), shown_text(browser, ".annotation-guidelines")) == ("", "")
    press(browser, Keys.ESCAPE)
    wait(browser, lambda: focused(browser) != "contentId")


def guidelines_stay_for_the_next(browser: Chrome) -> None:
    press(browser, "g")
    wait(browser, lambda: beside(browser))
    browser.execute_script("document.getElementById(arguments[0]).focus()", f"{LABELS_OF_PASSAGES[0]}_yes")
    submit(browser, CONTRADICTION)
    wait(browser, lambda: beside(browser))
    browser.refresh()
    wait(browser, lambda: beside(browser))
    wait(browser, lambda: focused(browser).endswith("_yes"))
    press(browser, "g")
    wait(browser, lambda: browser.execute_script(PLACES)[1] is None)


def guidelines_cover_a_telephone(browser: Chrome) -> None:
    wait(browser, lambda: browser.execute_script("return innerWidth") == 400)
    assert browser.execute_script(WIDER) <= 0
    press(browser, "g")
    sheet = wait(browser, lambda: browser.execute_script(PLACES)[1])
    assert (sheet[0], sheet[1]) == (0, 400)
    assert sheet[3] - sheet[2] > 700
    press(browser, Keys.ESCAPE)
    wait(browser, lambda: browser.execute_script(PLACES)[1] is None)


@pytest.mark.rare
def test_tab_goes_from_question_to_question_and_a_screen_reader_hears_which(owner: Argilla, browser: Chrome) -> None:
    work = campaign(owner, records=2, annotators=1)
    record = opened(browser, work, owner.api_url)
    first, second, third = (f"{label}_yes" for label in LABELS_OF_PASSAGES)
    stops = [first, second, third, "contentId", "button--discard", "button--draft"]

    def walk(count: int, *keys: str) -> list[str]:
        seen = [str(browser.execute_script(IN_FOCUS))]
        for _ in range(count):
            press(browser, *keys)
            seen.append(str(browser.execute_script(IN_FOCUS)))
        return seen

    assert walk(5, Keys.TAB) == stops
    press(browser, Keys.TAB)
    assert not browser.execute_script("return Boolean(document.activeElement.closest('form.questions-form'))")
    open_form(browser, owner.api_url, work.dataset)
    assert (walk(3, Keys.ARROW_DOWN)[:3], walk(3, Keys.ARROW_UP)[1:]) == (stops[:3], [third, second, first])

    wording = read_wording("en").questions["retrieval"]
    unanswered = {"required": True, "radios": [("Yes", "false"), ("No", "false")]}
    told = [(wording[label].title, first_sentence(wording[label].description)) for label in LABELS_OF_PASSAGES]
    assert groups(browser) == [{"name": title, "description": rule, **unanswered} for title, rule in told]
    answer(browser, CONTRADICTION.items())
    chosen = [[("Yes", str(yes).lower()), ("No", str(not yes).lower())] for yes in CONTRADICTION.values()]
    assert [each["radios"] for each in groups(browser)] == chosen
    press(browser, Keys.ARROW_UP, Keys.ARROW_UP)  # what is chosen already stays chosen, and the next question comes
    wait(browser, lambda: focused(browser).startswith(LABELS_OF_PASSAGES[1]))
    press(browser, "1")
    wait(browser, lambda: focused(browser).startswith(LABELS_OF_PASSAGES[2]))
    press(browser, "1", Keys.RETURN)
    wait(browser, lambda: browser.execute_script(RECORD_ID) not in (None, record))
    values = {"topically_relevant": "no", "evidence_sufficient": "yes", "misleading": "yes"}
    wait(browser, lambda: list(work.stored().values()) == [("submitted", values)])


@pytest.mark.rare
@pytest.mark.parametrize("locale", ["de", "en", "ja"])
def test_all_questions_of_grounding_and_the_buttons_are_in_view(locale: str, owner: Argilla, browser: Chrome) -> None:
    work = campaign(owner, records=1, annotators=1, locale=locale, task="grounding")
    with window_size(browser, 1366, 768):
        opened(browser, work, owner.api_url)
        answers, buttons = browser.execute_script(BELOW)
        assert answers <= 0
        assert buttons <= 0
    with window_size(browser, 400, 800):
        assert browser.execute_script(WIDER) <= 0


def beside(driver: Chrome) -> bool:
    places: list[list[float] | None] = driver.execute_script(PLACES)
    seen = [place for place in places if place]
    if len(seen) < len(places):
        return False
    record, guidelines, questions = seen
    apart = record[1] <= guidelines[0] < guidelines[1] <= questions[0]
    return apart and all(right - left > 340 for left, right, _, _ in seen) and guidelines[3] - guidelines[2] > 600
