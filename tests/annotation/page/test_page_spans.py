"""Marks on the context in the page: what she marks is what the export gives, and required marks are asked for."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, Evidence
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import NewUser, set_up
from annotation.push.push import push_records
from exports.csv.write import export_csv
from pipeline.records.schema import Passage, QueryResponse, join_context
from tests.support.page_driver import (
    RECORD_ID,
    answer,
    click,
    complaints,
    focused,
    log_in,
    open_form,
    press,
    shown_element,
    shown_text,
    wait,
)

pytestmark = [pytest.mark.server, pytest.mark.browser]

HINT = "#citejury-marks"
TEXTS = (
    "The first passage 😀 says little.",
    "The second one\r\nsays 5 < 6 & <b>nothing</b> more.",
    "After 😀 and <script>a</script> the honey eased 3 < 4 coughs &amp; helped.",
)
# Marks as her answer has them, each with its words.
MARKS = """const { questions } = document.querySelector('form.questions-form').__vue__.record;
const text = document.querySelector('.record--focus .span-annotation__field').textContent;
return questions.find(({ name }) => name === 'evidence').answer.valuesAnswered
  .map(({ label, start, end }) => [label, text.slice(start, end)])"""
HIGHLIGHTED = """return [...CSS.highlights].filter(([name]) => /^hl-evidence-2d(supports|contradicts)$/.test(name))
  .flatMap(([name, ranges]) => [...ranges].map((range) => [name.slice(14), String(range)])).sort()"""
# From where to where the mouse goes to select the text from the beginning of some words to the end of others.
ENDS = """const field = document.querySelector('.record--focus .span-annotation__field'), node = field.firstChild;
const place = (from, to) => { const range = new Range(); range.setStart(node, from); range.setEnd(node, to);
  return range.getBoundingClientRect(); };
const from = node.data.lastIndexOf(arguments[0]), to = node.data.lastIndexOf(arguments[1]) + arguments[1].length;
const pane = field.closest('[role=region]');
pane.scrollTop += place(from, from + 1).top - pane.getBoundingClientRect().top - pane.clientHeight / 3;
const [first, last] = [place(from, from + 1), place(to - 1, to)];
return [first.left + 1, first.top + first.height / 2, last.right - 1, last.top + last.height / 2]"""


class Jury:
    def __init__(self, owner: Argilla, evidence: Evidence, locale: str = "en", *texts: str) -> None:
        self.owner, self.workspace = owner, f"spans-{uuid4().hex[:8]}"
        users: list[NewUser] = []
        name = f"{self.workspace}-anna"
        set_up(owner, self.workspace, locale, annotators=[name], announce=users.append, evidence=evidence)
        (self.user,) = users
        chunks = tuple(
            Passage(chunk_id=f"d#{rank}", doc_id="d", chunk_rank=rank, text=text, title=f"Page {rank}")
            for rank, text in enumerate(texts or TEXTS, start=1)
        )
        record = QueryResponse(
            record_uuid=str(uuid4()), query="Q?", answer="A.", chunks=chunks, context_set=join_context(chunks)
        )
        push_records(owner, self.workspace, [record])
        self.dataset = find_datasets(owner, self.workspace)["grounding"].id

    def opened(self, driver: Chrome, url: str) -> None:
        log_in(driver, url, self.user.username, self.user.password)
        open_form(driver, url, self.dataset)

    def responses(self) -> list[dict[str, Any]]:
        ((_, (record,)),) = self.owner.record_pages(self.dataset)
        return list(record["responses"])

    def exported(self, out: Path) -> list[tuple[str, int, str]]:
        export_csv(self.owner, self.workspace, out)
        rows = [json.loads(line) for line in (out / "evidence.jsonl").read_text(encoding="utf-8").splitlines()]
        return [(row["label"], row["chunk_rank"], row["text"]) for row in rows]


def drag(driver: Chrome, first: str, last: str) -> None:
    begin_x, begin_y, end_x, end_y = driver.execute_script(ENDS, first, last)
    actions = ActionBuilder(driver)
    pointer = actions.pointer_action
    pointer.move_to_location(begin_x, begin_y).pointer_down().move_to_location(end_x, end_y).pointer_up()
    actions.perform()


def judge(driver: Chrome, **yes: bool) -> None:
    answer(driver, [(label, yes.get(label, False)) for label in LABELS["grounding"]])


def marks(driver: Chrome) -> list[list[str]]:
    return list(driver.execute_script(MARKS))


def test_marks_come_back_and_are_exported_word_for_word(owner: Argilla, browser: Chrome, tmp_path: Path) -> None:
    work = Jury(owner, "required")
    work.opened(browser, owner.api_url)
    record = browser.execute_script(RECORD_ID)
    judge(browser, support_present=True, contradicted_claim_present=True, unsupported_claim_present=True)
    press(browser, Keys.RETURN)
    wait(browser, lambda: "Still missing: backs, contradicts." in shown_text(browser, HINT))
    assert (browser.execute_script(RECORD_ID), focused(browser)) == (record, "evidence-2dsupports")
    drag(browser, "honey", "coughs")
    wait(browser, lambda: "Choose a mark under the question first" in shown_text(browser, HINT))
    press(browser, Keys.RETURN)
    wait(browser, lambda: "Still missing: backs, contradicts." in shown_text(browser, HINT))
    press(browser, "1")
    drag(browser, "honey", "coughs")
    wait(browser, lambda: marks(browser) == [["supports", "honey eased 3 < 4 coughs"]])
    wait(browser, lambda: "Still missing: contradicts." in shown_text(browser, HINT))
    wait(browser, lambda: [each["status"] for each in work.responses()] == ["draft"])
    open_form(browser, owner.api_url, work.dataset, status="draft")
    wait(browser, lambda: browser.execute_script(HIGHLIGHTED) == [["supports", "honey eased 3 < 4 coughs"]])
    press(browser, "M")
    wait(browser, lambda: marks(browser) == [])
    click(browser, lambda: browser.find_element(By.CSS_SELECTOR, "label[for=evidence-2dsupports]"))
    drag(browser, "script>a", "the honey")
    click(browser, lambda: browser.find_element(By.CSS_SELECTOR, "label[for=evidence-2dcontradicts]"))
    drag(browser, "4", "&amp")
    first, second = ["supports", "script>a</script> the honey"], ["contradicts", "4 coughs &amp"]
    wait(browser, lambda: marks(browser) == [first, second])
    wait(browser, lambda: not shown_text(browser, HINT))
    click(browser, lambda: browser.find_element(By.CSS_SELECTOR, ".button--submit"))
    wait(browser, lambda: [each["status"] for each in work.responses()] == ["submitted"])
    assert work.exported(tmp_path / "out") == [("supports", 3, first[1]), ("contradicts", 3, second[1])]
    assert complaints(browser) == []


@pytest.mark.rare
def test_a_corrected_mark_outlives_a_reload_and_is_taken_back_with_the_change(owner: Argilla, browser: Chrome) -> None:
    work = Jury(owner, "optional")
    work.opened(browser, owner.api_url)
    judge(browser, support_present=True)
    click(browser, lambda: browser.find_element(By.CSS_SELECTOR, "label[for=evidence-2dsupports]"))
    drag(browser, "honey", "coughs")
    sent = ["supports", "honey eased 3 < 4 coughs"]
    wait(browser, lambda: marks(browser) == [sent])
    click(browser, lambda: browser.find_element(By.CSS_SELECTOR, ".button--submit"))
    wait(browser, lambda: [each["status"] for each in work.responses()] == ["submitted"])
    values = work.responses()[0]["values"]
    open_form(browser, owner.api_url, work.dataset, status="submitted")
    wait(browser, lambda: browser.execute_script(HIGHLIGHTED) == [sent])
    click(browser, lambda: browser.find_element(By.CSS_SELECTOR, "label[for=evidence-2dcontradicts]"))
    drag(browser, "little", "little")
    changed = [["contradicts", "little"], sent]
    wait(browser, lambda: browser.execute_script(HIGHLIGHTED) == changed)
    wait(browser, lambda: shown_text(browser, "#citejury-correction"))
    browser.refresh()
    wait(browser, lambda: browser.execute_script(HIGHLIGHTED) == changed)
    assert sorted(marks(browser)) == changed
    assert [(each["status"], each["values"]) for each in work.responses()] == [("submitted", values)]
    click(browser, lambda: shown_element(browser, "Drop the change"))
    wait(browser, lambda: browser.execute_script(HIGHLIGHTED) == [sent])
    assert marks(browser) == [sent]
    wait(browser, lambda: not shown_text(browser, "#citejury-correction"))


@pytest.mark.rare
def test_a_mark_over_a_heading_is_split_or_refused(owner: Argilla, browser: Chrome, tmp_path: Path) -> None:
    long = "Many words. " * 6000  # more than one text node holds
    work = Jury(owner, "optional", "de", long, *TEXTS[1:])
    work.opened(browser, owner.api_url)
    drag(browser, "nothing", "more.")
    wait(browser, lambda: "Wählen Sie zuerst unter der Frage eine Markierung" in shown_text(browser, HINT))
    click(browser, lambda: browser.find_element(By.CSS_SELECTOR, "label[for=evidence-2dcontradicts]"))
    drag(browser, "nothing", "After")
    wait(browser, lambda: "in 2 Markierungen geteilt" in shown_text(browser, HINT))
    assert marks(browser) == [["contradicts", "nothing</b> more."], ["contradicts", "After"]]
    drag(browser, "Textstelle 3", "Page 3")
    wait(browser, lambda: "Wählen Sie Wörter der Textstelle selbst" in shown_text(browser, HINT))
    drag(browser, "Textstelle 2", "second")
    wait(browser, lambda: "auf den Wörtern daneben" in shown_text(browser, HINT))
    parts = [["contradicts", "nothing</b> more."], ["contradicts", "After"], ["contradicts", "The second"]]
    assert marks(browser) == parts
    browser.execute_script("document.getElementById('support_present_yes').focus()")
    judge(browser, support_present=True)
    press(browser, Keys.RETURN)
    wait(browser, lambda: [each["status"] for each in work.responses()] == ["submitted"])
    assert work.exported(tmp_path / "out") == [
        ("contradicts", 2, "The second"),
        ("contradicts", 2, "nothing</b> more."),
        ("contradicts", 3, "After"),
    ]


@pytest.mark.rare
def test_words_are_marked_by_keyboard(owner: Argilla, browser: Chrome, tmp_path: Path) -> None:
    work = Jury(owner, "optional", "ja", "蜂蜜は咳を和らげた。", "Honey eased coughs, it says.")
    work.opened(browser, owner.api_url)
    judge(browser, support_present=True)
    press(browser, "1", "m")
    assert browser.execute_script("return document.activeElement.matches('.span-annotation__field')")
    press(browser, "m")
    wait(browser, lambda: marks(browser) == [["supports", "蜂蜜"]])
    press(browser, "M")
    wait(browser, lambda: marks(browser) == [])
    select(browser, "Honey")
    press(browser, Keys.ARROW_RIGHT)
    assert browser.execute_script("return String(getSelection())") == "eased"
    ActionChains(browser).key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT).key_up(Keys.SHIFT).send_keys("m").perform()
    wait(browser, lambda: marks(browser) == [["supports", "eased coughs"]])
    select(browser, "eased")
    press(browser, "M")
    wait(browser, lambda: marks(browser) == [])
    press(browser, Keys.RETURN)
    wait(browser, lambda: [each["status"] for each in work.responses()] == ["submitted"])
    assert work.exported(tmp_path / "out") == []


def select(driver: Chrome, words: str) -> None:
    driver.execute_script(
        """const node = document.querySelector('.record--focus .span-annotation__field').firstChild;
        const from = node.data.indexOf(arguments[0]);
        getSelection().setBaseAndExtent(node, from, node, from + arguments[0].length)""",
        words,
    )
