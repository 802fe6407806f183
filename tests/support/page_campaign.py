"""A workspace whose annotators label passages in Argilla's page, for tests of our script in it."""

from typing import Any, NamedTuple
from uuid import uuid4

from selenium import webdriver
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.display import to_records
from annotation.argilla.labels import TaskName
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from pipeline.records.schema import Passage, QueryResponse
from tests.support.page_driver import RECORD_ID, answer, log_in, open_form, press, wait

CONTRADICTION = {"topically_relevant": False, "evidence_sufficient": True, "misleading": False}


class Campaign(NamedTuple):
    owner: Argilla
    dataset: str
    passwords: dict[str, str]
    ids: dict[str, str]
    workspace: str

    def stored(self) -> dict[tuple[str, str], tuple[str, dict[str, Any]]]:
        """Status and values of each response, by record and user id; the server holds at most one for each."""
        return {
            (record["id"], response["user_id"]): (
                response["status"],
                {name: each["value"] for name, each in (response["values"] or {}).items()},
            )
            for _, page in self.owner.record_pages(self.dataset)
            for record in page
            for response in record["responses"]
        }

    def statuses(self) -> list[str]:
        return sorted(status for status, _ in self.stored().values())


def campaign(
    owner: Argilla,
    records: int,
    annotators: int,
    locale: str = "en",
    task: TaskName = "retrieval",
    evidence: str | None = None,
) -> Campaign:
    workspace = f"script-{uuid4().hex[:8]}"
    users: list[Any] = []
    names = [f"{workspace}-{number}" for number in range(annotators)]
    set_up(
        owner, workspace, locale, annotators=names, min_submitted=annotators, announce=users.append, evidence=evidence
    )
    dataset = find_datasets(owner, workspace)[task].id
    wording = read_wording(locale)
    bodies = [to_records(passage(number), wording)[task][0] for number in range(records)]
    owner.request("PUT", f"/datasets/{dataset}/records/bulk", json={"items": bodies})
    ids = {user["username"]: user["id"] for user in owner.request("GET", "/users")["items"]}
    return Campaign(owner, dataset, {user.username: user.password for user in users}, ids, workspace)


def passage(number: int) -> QueryResponse:
    text = f"Passage {number}: 1 < 2 && R&D &amp; <b>honey</b>."
    chunk = Passage(chunk_id=f"c{number}#0", doc_id=f"c{number}", chunk_rank=1, text=text)
    return QueryResponse(record_uuid=str(uuid4()), query=f"Query {number}?", answer="A [1].", chunks=(chunk,))


def opened(driver: webdriver.Chrome, work: Campaign, url: str, name: str | None = None) -> str:
    username = name or next(iter(work.passwords))
    log_in(driver, url, username, work.passwords[username])
    open_form(driver, url, work.dataset)
    return str(driver.execute_script(RECORD_ID))


def submit(driver: webdriver.Chrome, answers: dict[str, bool]) -> None:
    answer(driver, answers.items())
    shown = driver.execute_script(RECORD_ID)
    press(driver, Keys.RETURN)
    wait(driver, lambda: driver.execute_script(RECORD_ID) != shown)
