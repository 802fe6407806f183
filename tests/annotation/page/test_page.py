"""A person's way: somebody logs in with a real browser, reads, answers by keyboard, and the answer is exported."""

import csv
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TASKS, TaskName
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import NewUser, set_up
from annotation.push.push import push_records
from annotation.server.page import page_texts
from exports.csv.schema import ExportFilters
from exports.csv.write import export_csv
from pipeline.records.schema import Passage, Provenance, QueryResponse, Source, join_context
from tests.support.page_driver import answer, events, focused, hosts_asked, log_in_by_hand, press, shown_text, wait

pytestmark = [pytest.mark.server, pytest.mark.browser]

HONEY = "Honey found in a tomb was still edible. <b>Water content</b> is below 18 %; few microbes live in it."
TEXTS = (HONEY, "蜂蜜は1歳未満の乳児に与えてはいけません。")
URLS = ("https://food.example/honey", "https://www.mhlw.go.jp/honey")
PASSAGES = tuple(
    Passage(chunk_id=f"{n}a#0", doc_id=f"{n}a", chunk_rank=n, text=text, title="厚生労働省", url=url, origin="snippet")
    for n, (text, url) in enumerate(zip(TEXTS, URLS, strict=True), start=1)
)
RECORD = QueryResponse(
    record_uuid="7f0f5f9e-7d5c-4c61-9a55-4b8e1f8f8a11",
    query="Honey never spoils, so is it safe for everybody?",
    answer="Honey **keeps for years** [1], but infants under one year must not eat it [2].",
    language="en",
    sources=tuple(Source(n=n, url=url, host=urlsplit(url).netloc, state="read") for n, url in enumerate(URLS, start=1)),
    chunks=PASSAGES,
    context_set=join_context(PASSAGES),
    provenance=Provenance(model_name="perplexity", model_version="secret-model-9"),
)
SHOWN: dict[TaskName, dict[str, str]] = {
    "retrieval": {"input_query": RECORD.query},
    "grounding": {"answer": RECORD.answer, "context_set": RECORD.context_set},
    "generation": {"query": RECORD.query, "answer": RECORD.answer},
}
# Each language with a task of its own, and all others.
FIRST = dict(zip(("en", "de", "ja"), TASKS, strict=True))
OTHERS = [(locale, task) for locale in FIRST for task in TASKS if FIRST[locale] != task]
# The text of the field that has the focus.
WRITING = """const field = document.activeElement;
return field?.isContentEditable ? field.innerText : null"""
NOTE = "Quelle [2] gilt nur für Säuglinge"


def dataset_links(driver: Chrome) -> dict[str, str]:
    cards = driver.find_elements(By.CSS_SELECTOR, "a[href*='/dataset/']")
    return {line: card.get_attribute("href") for card in cards for line in card.text.splitlines()}


@pytest.mark.parametrize(
    ("locale", "task"),
    [
        ("en", FIRST["en"]),
        *(pytest.param(locale, FIRST[locale], marks=pytest.mark.rare) for locale in ("de", "ja")),
        *(pytest.param(*pair, marks=pytest.mark.soak) for pair in OTHERS),
    ],
)
def test_what_an_annotator_answers_by_keyboard_is_the_row_that_is_exported(
    owner: Argilla, browser: Chrome, locale: str, task: TaskName, tmp_path: Path
) -> None:
    workspace, wording, users = f"page-{locale}-{task}", read_wording(locale), list[NewUser]()
    set_up(owner, workspace, locale, annotators=[f"erika of {workspace}"], announce=users.append)
    report = push_records(owner, workspace, [RECORD])
    assert {task: report.tasks[task].new for task in TASKS} == {"retrieval": 2, "grounding": 1, "generation": 1}
    log_in_by_hand(browser, owner.api_url, users[0].username, users[0].password)
    browser.get(wait(browser, lambda: dataset_links(browser).get(page_texts(locale)[f"task_{task}"])))
    wait(browser, lambda: focused(browser) == f"{LABELS[task][0]}_yes")
    titles = [wording.questions[task][label].title for label in LABELS[task]]
    wait(browser, lambda: all(title in shown_text(browser) for title in titles))
    assert RECORD.provenance.model_version not in browser.page_source
    answers = {label: index % 2 == 0 for index, label in enumerate(LABELS[task])}
    answer(browser, answers.items())
    wait(browser, lambda: browser.execute_script(WRITING) is not None)
    press(browser, NOTE)
    wait(browser, lambda: NOTE in (browser.execute_script(WRITING) or ""))
    press(browser, Keys.ESCAPE)
    wait(browser, lambda: browser.execute_script(WRITING) is None)

    dataset, before = find_datasets(owner, workspace)[task].id, datetime.now(UTC)
    press(browser, Keys.RETURN)
    wait(browser, lambda: "submitted" in statuses(owner, dataset))
    after = datetime.now(UTC)
    export_csv(owner, workspace, tmp_path, ExportFilters(tasks=(task,)))
    with (tmp_path / f"{task}.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert {label: row[label] for label in LABELS[task]} == {label: str(yes) for label, yes in answers.items()}
    told = {"record_uuid": RECORD.record_uuid, "annotator_id": users[0].username, "task": task, "language": "en"}
    assert (SHOWN[task] | told | {"notes": NOTE}).items() <= row.items()
    assert before <= datetime.fromisoformat(row["created_at"]) <= after
    if task == "retrieval":
        judged = next(passage for passage in PASSAGES if passage.chunk_id == row["chunk_id"])
        assert (row["chunk"], row["doc_id"], row["chunk_rank"]) == (judged.text, judged.doc_id, str(judged.chunk_rank))
    found = events(browser)
    assert hosts_asked(found) == {urlsplit(owner.api_url).netloc}
    came = [each["params"]["response"] for each in found if each["method"] == "Network.responseReceived"]
    assert [(each["status"], each["url"]) for each in came if each["status"] >= 400] == []


def statuses(owner: Argilla, dataset: str) -> set[str]:
    records = [record for _, page in owner.record_pages(dataset) for record in page]
    return {response["status"] for record in records for response in record["responses"]}
