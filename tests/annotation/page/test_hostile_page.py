"""Text that attacks the page runs nothing, calls nobody and hides nothing, with each of two defences alone."""

import csv
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.display import to_records
from annotation.argilla.labels import LABELS, TASKS, TaskName
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from exports.csv.schema import ExportFilters
from exports.csv.write import export_csv
from pipeline.records.schema import Passage, QueryResponse, join_context
from tests.support.hostile_text import ATTACKS, listening_beacon
from tests.support.lossy_link import lossy_link
from tests.support.page_driver import (
    RECORD_ID,
    answer,
    events,
    hosts_asked,
    log_in,
    notice,
    open_form,
    press,
    screenshot,
    shown_text,
    wait,
)

pytestmark = [pytest.mark.server, pytest.mark.browser]

FOCUS = "document.getElementById(arguments[0])?.focus(); return document.activeElement?.id === arguments[0]"


@pytest.fixture
def beacon() -> Iterator[tuple[str, list[str]]]:
    """The address of a server that the hostile text wants to call, and what it was asked for."""
    with listening_beacon() as found:
        yield found


def hostile_record(text: str) -> QueryResponse:
    passages = (Passage(chunk_id="h#0", doc_id="h", chunk_rank=1, text=text, title=text[:300]),)
    return QueryResponse(
        record_uuid=str(uuid4()), query=text, answer=text, chunks=passages, context_set=join_context(passages)
    )


@pytest.mark.parametrize("defence", [pytest.param("both", marks=pytest.mark.rare), "escaping alone", "policy alone"])
def test_hostile_text_runs_nothing_and_calls_nobody(
    owner: Argilla, browser: webdriver.Chrome, beacon: tuple[str, list[str]], defence: str, tmp_path: Path
) -> None:
    host, calls = beacon
    workspace = f"hostile-{uuid4().hex[:8]}"
    record = hostile_record(ATTACKS.replace("BEACON", host))
    password = push(owner, workspace, record, raw=defence == "policy alone")
    with lossy_link(owner.api_url) as link:
        link.left_out = {"content-security-policy"} if defence == "escaping alone" else set()
        log_in(browser, link.url, f"{workspace}-anna", password)
        for task in TASKS:
            dataset = find_datasets(owner, workspace)[task].id
            browser.get(f"{link.url}/dataset/{dataset}/annotation-mode?page=1&status=pending")
            screenshot(browser, f"hostile-{task}-{defence.replace(' ', '-')}")
            # A field of the hostile text may have taken the focus.
            wait(browser, partial(browser.execute_script, FOCUS, f"{LABELS[task][0]}_yes"))
            if defence != "policy alone":
                wait(browser, lambda: "<script>window.attacked = 1; alert(1)</script>" in shown_text(browser))
            answer_and_submit(browser, owner, task)
            assert browser.execute_script("return window.attacked") is None
        asked = hosts_asked(events(browser))
    assert asked == {urlsplit(link.url).netloc}
    assert calls == []
    if defence != "policy alone":
        assert exported(owner, workspace, "generation", tmp_path)["answer"] == record.answer


@pytest.mark.rare
@pytest.mark.parametrize("megabytes", [1, pytest.param(5, marks=pytest.mark.soak)])
def test_megabytes_and_a_tower_of_marks_leave_the_page_usable(
    owner: Argilla, browser: webdriver.Chrome, megabytes: int, tmp_path: Path
) -> None:
    workspace = f"huge-{uuid4().hex[:8]}"
    size = megabytes * 1024 * 1024
    marks = "e" + "\u0301" * (size // 5)
    record = hostile_record("A sentence of a very long page. " * ((size - len(marks)) // 32) + marks)
    password = push(owner, workspace, record, raw=False)
    log_in(browser, owner.api_url, f"{workspace}-anna", password)
    for task in TASKS:
        open_form(browser, owner.api_url, find_datasets(owner, workspace)[task].id)
        answer_and_submit(browser, owner, task)
    assert exported(owner, workspace, "retrieval", tmp_path)["chunk"] == record.chunks[0].text


def push(owner: Argilla, workspace: str, record: QueryResponse, raw: bool) -> str:
    """Her password, once the record is in all three datasets; `raw` puts the text there as it came."""
    users = []
    set_up(owner, workspace, annotators=[f"{workspace}-anna"], announce=users.append)
    datasets = find_datasets(owner, workspace)
    for task, bodies in to_records(record, read_wording("en")).items():
        if raw:
            bodies = [{**body, "fields": dict.fromkeys(body["fields"], record.answer)} for body in bodies]
        owner.request("PUT", f"/datasets/{datasets[task].id}/records/bulk", json={"items": bodies})
    return str(users[0].password)


def answer_and_submit(driver: webdriver.Chrome, owner: Argilla, task: TaskName) -> None:
    answer(driver, [(label, False) for label in LABELS[task]])
    record = driver.execute_script(RECORD_ID)
    press(driver, Keys.RETURN)
    wait(
        driver,
        lambda: "submitted" in [each["status"] for each in owner.request("GET", f"/records/{record}")["responses"]],
    )
    wait(driver, lambda: notice(driver) == "")  # the server has it before the page knows


def exported(owner: Argilla, workspace: str, task: TaskName, folder: Path) -> dict[str, str]:
    csv.field_size_limit(2**31 - 1)
    export_csv(owner, workspace, folder / "export", ExportFilters(tasks=(task,)))
    with (folder / "export" / f"{task}.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    return row
