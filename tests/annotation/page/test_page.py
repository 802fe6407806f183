"""A person's way: an annotator logs in with a real browser, reads, answers by keyboard, and her answer is exported."""

import csv
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TASKS, TaskName
from annotation.argilla.tasks import dataset_name
from annotation.argilla.wording import read_wording
from annotation.campaign.setup import NewUser, set_up
from annotation.push.push import push_records
from annotation.server.page import page_texts
from exports.csv.schema import ExportFilters
from exports.csv.write import export_csv
from pipeline.records.schema import Passage, Provenance, QueryResponse, Source, join_context
from tests.support.page_driver import (
    answer,
    click,
    events,
    focused,
    forget,
    hosts_asked,
    log_in_by_hand,
    press,
    screenshot,
    shown_element,
    shown_text,
    wait,
)

pytestmark = [pytest.mark.server, pytest.mark.browser]

PASSAGES = (
    Passage(
        chunk_id="0f1e2d3c4b5a6978#0",
        doc_id="0f1e2d3c4b5a6978",
        chunk_rank=1,
        text="Honey found in a tomb was still edible. <b>Water content</b> is below 18 %; few microbes live in it.",
        title="Why honey keeps",
        url="https://food.example/honey",
        origin="snippet",
    ),
    Passage(
        chunk_id="8796a5b4c3d2e1f0#0",
        doc_id="8796a5b4c3d2e1f0",
        chunk_rank=2,
        text="蜂蜜は1歳未満の乳児に与えてはいけません。",
        title="厚生労働省",
        url="https://www.mhlw.go.jp/honey",
        origin="snippet",
    ),
)
RECORD = QueryResponse(
    record_uuid="7f0f5f9e-7d5c-4c61-9a55-4b8e1f8f8a11",
    query="Honey never spoils, so is it safe for everybody?",
    answer="Honey **keeps for years** [1], but infants under one year must not eat it [2].",
    language="en",
    sources=(
        Source(n=1, url="https://food.example/honey", host="food.example", title="Why honey keeps", state="read"),
        Source(n=2, url="https://www.mhlw.go.jp/honey", host="mhlw.go.jp", title="厚生労働省", state="read"),
    ),
    chunks=PASSAGES,
    context_set=join_context(PASSAGES),
    provenance=Provenance(model_name="perplexity", model_version="secret-model-9"),
)
TEXTS: dict[TaskName, dict[str, str]] = {
    "retrieval": {"input_query": RECORD.query},
    "grounding": {"answer": RECORD.answer, "context_set": RECORD.context_set},
    "generation": {"query": RECORD.query, "answer": RECORD.answer},
}
LOCALES = ("en", "de", "ja")
EVERY_LANGUAGE = pytest.mark.parametrize(
    "locale", ["en", *(pytest.param(each, marks=pytest.mark.rare) for each in ("de", "ja"))], indirect=True
)
# Each language has another task in each turn.
TURNS = pytest.mark.parametrize("turn", [0, *(pytest.param(turn, marks=pytest.mark.soak) for turn in (1, 2))])
LANGUAGE = pytest.mark.parametrize("locale", LOCALES[:1], indirect=True)
# The text of the field that she is writing in.
WRITING = """const field = document.activeElement;
return field?.isContentEditable ? field.innerText : null"""
NOTE = "Quelle [2] gilt nur für Säuglinge"


@pytest.fixture(scope="module")
def locale(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def task(locale: str, turn: int) -> TaskName:
    return TASKS[(LOCALES.index(locale) + turn) % len(TASKS)]


@pytest.fixture(scope="module")
def annotator(owner: Argilla, locale: str) -> NewUser:
    users: list[NewUser] = []
    set_up(owner, f"page-{locale}", locale, annotators=[f"erika-{locale}"], announce=users.append)
    report = push_records(owner, f"page-{locale}", [RECORD])
    assert {task: report.tasks[task].new for task in TASKS} == {"retrieval": 2, "grounding": 1, "generation": 1}
    return users[0]


@pytest.fixture(scope="module")
def logged_in(chromium: webdriver.Chrome, owner: Argilla, annotator: NewUser) -> webdriver.Chrome:
    forget(chromium, owner.api_url)
    log_in_by_hand(chromium, owner.api_url, annotator.username, annotator.password)
    wait(chromium, lambda: dataset_links(chromium))
    return chromium


def dataset_links(driver: webdriver.Chrome) -> dict[str, str]:
    cards = driver.find_elements(By.CSS_SELECTOR, "a[href*='/dataset/']")
    return {line: card.get_attribute("href") for card in cards for line in card.text.splitlines()}


def open_dataset(driver: webdriver.Chrome, owner: Argilla, task: TaskName, locale: str) -> None:
    driver.get(owner.api_url)
    driver.get(wait(driver, lambda: dataset_links(driver).get(page_texts(locale)[f"task_{task}"])))
    wait(driver, lambda: focused(driver) == f"{LABELS[task][0]}_yes")


def answer_by_keyboard(driver: webdriver.Chrome, answers: dict[str, bool], note: str) -> None:
    answer(driver, answers.items())
    press(driver, Keys.TAB)
    wait(driver, lambda: driver.execute_script(WRITING) is not None)
    press(driver, note)
    wait(driver, lambda: note in (driver.execute_script(WRITING) or ""))
    press(driver, Keys.ESCAPE)
    wait(driver, lambda: driver.execute_script(WRITING) is None)


def exported_rows(owner: Argilla, locale: str, task: TaskName, folder: Path) -> list[dict[str, str]]:
    export_csv(owner, f"page-{locale}", folder, ExportFilters(tasks=(task,)))
    with (folder / f"{task}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@EVERY_LANGUAGE
@TURNS
def test_what_an_annotator_answers_by_keyboard_is_the_row_that_is_exported(
    logged_in: webdriver.Chrome, owner: Argilla, annotator: NewUser, locale: str, task: TaskName, tmp_path: Path
) -> None:
    driver, wording = logged_in, read_wording(locale)
    open_dataset(driver, owner, task, locale)
    titles = [wording.questions[task][label].title for label in LABELS[task]]
    wait(driver, lambda: all(title in shown_text(driver) for title in titles))
    assert RECORD.provenance.model_version not in driver.page_source
    screenshot(driver, f"{task}-{locale}")
    answers = {label: index % 2 == 0 for index, label in enumerate(LABELS[task])}
    answer_by_keyboard(driver, answers, NOTE)
    screenshot(driver, f"{task}-{locale}-answered")

    before = datetime.now(UTC)
    press(driver, Keys.RETURN)
    left = 1 if task == "retrieval" else 0
    wait(driver, lambda: queue_size(owner, annotator, task, locale) == left)
    after = datetime.now(UTC)

    (row,) = exported_rows(owner, locale, task, tmp_path / "export")
    assert {label: row[label] for label in LABELS[task]} == {label: str(yes) for label, yes in answers.items()}
    assert TEXTS[task].items() <= row.items()
    shared = {"record_uuid": RECORD.record_uuid, "annotator_id": annotator.username, "task": task, "language": "en"}
    assert (shared | {"notes": NOTE}).items() <= row.items()
    assert before <= datetime.fromisoformat(row["created_at"]) <= after
    if task == "retrieval":
        judged = next(passage for passage in PASSAGES if passage.chunk_id == row["chunk_id"])
        assert (row["chunk"], row["doc_id"], row["chunk_rank"]) == (judged.text, judged.doc_id, str(judged.chunk_rank))


def queue_size(owner: Argilla, annotator: NewUser, task: TaskName, locale: str) -> int:
    """How many records of the task nobody has answered; each waits for one response."""
    datasets = owner.datasets(owner.find_workspace(f"page-{locale}"))
    dataset = next(each for each in datasets if each["name"] == dataset_name(task, locale))
    records = [record for _, page in owner.record_pages(dataset["id"]) for record in page]
    return sum(not any(each["status"] == "submitted" for each in record["responses"]) for record in records)


@EVERY_LANGUAGE
@TURNS
def test_the_guidelines_are_a_click_away_and_in_her_language(
    logged_in: webdriver.Chrome, owner: Argilla, locale: str, task: TaskName
) -> None:
    driver = logged_in
    driver.get(owner.api_url)
    driver.get(wait(driver, lambda: dataset_links(driver).get(page_texts(locale)[f"task_{task}"])))
    click(driver, lambda: shown_element(driver, "Guidelines"))
    heading = read_wording(locale).guidelines[task].splitlines()[0].lstrip("# ")
    wait(driver, lambda: heading in shown_text(driver))
    screenshot(driver, f"{task}-{locale}-guidelines")


@LANGUAGE
def test_a_half_filled_form_is_kept_as_a_draft_and_found_again(
    logged_in: webdriver.Chrome, owner: Argilla, locale: str
) -> None:
    driver = logged_in
    open_dataset(driver, owner, "retrieval", locale)
    answer(driver, [("topically_relevant", False)])
    ActionChains(driver).key_down(Keys.CONTROL).send_keys("s").key_up(Keys.CONTROL).perform()
    drafts = f"{driver.current_url.split('?')[0]}?page=1&status=draft"
    wait(driver, lambda: "draft" in statuses(owner, locale))
    driver.get(drafts)
    wait(driver, lambda: driver.find_element(By.ID, "topically_relevant_no").is_selected())


def statuses(owner: Argilla, locale: str) -> set[str]:
    datasets = owner.datasets(owner.find_workspace(f"page-{locale}"))
    dataset = next(each for each in datasets if each["name"] == dataset_name("retrieval", locale))
    return {
        response["status"]
        for _, page in owner.record_pages(dataset["id"])
        for record in page
        for response in record["responses"]
    }


@LANGUAGE
def test_the_page_showed_no_error_and_asked_no_other_host(logged_in: webdriver.Chrome, owner: Argilla) -> None:
    found = events(logged_in)
    assert hosts_asked(found) == {urlsplit(owner.api_url).netloc}
    failed = [
        (event["params"]["response"]["status"], event["params"]["response"]["url"])
        for event in found
        if event["method"] == "Network.responseReceived" and event["params"]["response"]["status"] >= 400
    ]
    assert failed == []
