"""The link of a disagreement in a report: it shows that record, to whomever, whatever has become of it."""

from pathlib import Path
from uuid import uuid4

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from annotation.argilla.client import Argilla
from annotation.argilla.display import to_records, unit_id
from annotation.argilla.labels import LABELS
from annotation.argilla.wording import read_wording
from annotation.server.launch import ServerHandle
from exports.csv.write import export_csv
from exports.report.files import collect_disagreements
from pipeline.records.schema import Passage, QueryResponse
from tests.support.measured_files import measure_files
from tests.support.page_campaign import Campaign, campaign
from tests.support.page_driver import RECORD_ID, enter_password, log_in, wait

pytestmark = [pytest.mark.server, pytest.mark.browser, pytest.mark.rare]


def differ(work: Campaign, record_id: str) -> None:
    keys = {user["username"]: user["api_key"] for user in work.owner.request("GET", "/users")["items"]}
    for place, username in enumerate(work.passwords):
        first, *others = LABELS["retrieval"]
        said = {first: {"value": "yes" if place else "no"}, **{label: {"value": "no"} for label in others}}
        with Argilla(work.owner.api_url, keys[username]) as herself:
            body = {"record_id": record_id, "status": "submitted", "values": said}
            assert not herself.request("POST", "/me/responses/bulk", json={"items": [body]})["items"][0]["error"]


def linked(work: Campaign, folder: Path) -> str:
    export_csv(work.owner, work.workspace, folder)
    ((found,), _) = collect_disagreements(measure_files([folder], 100).tables, [folder])
    assert found.record_id == ""  # all of it comes from the three files and the manifest
    return found.link


def quoted_passage() -> QueryResponse:
    chunk = Passage(chunk_id="0a#cited_text0~1 & 2", doc_id="0a", chunk_rank=1, text="Quoted.")
    return QueryResponse(record_uuid=str(uuid4()), query="Quoted?", answer="A [1].", chunks=(chunk,))


def shows(driver: Chrome, record_id: str) -> bool:
    return bool(driver.execute_script(RECORD_ID) == record_id)


def test_it_shows_the_record_to_its_annotators_and_to_the_owner_who_logs_in_for_it(
    argilla_server: ServerHandle, owner: Argilla, browser: Chrome, tmp_path: Path
) -> None:
    work = campaign(owner, records=4, annotators=2)
    body = to_records(quoted_passage(), read_wording("en"))["retrieval"][0]
    body["external_id"] = unit_id(body)  # as earlier versions pushed it
    owner.request("PUT", f"/datasets/{work.dataset}/records/bulk", json={"items": [body]})
    records = [record for _, page in owner.record_pages(work.dataset) for record in page]
    (record,) = [record for record in records if record["external_id"] == body["external_id"]]
    differ(work, record["id"])  # it is complete now, and in nobody's queue
    link = linked(work, tmp_path / "export")
    assert link.startswith(f"{argilla_server.url}/dataset/{work.dataset}/annotation-mode?record=")
    name = next(iter(work.passwords))
    log_in(browser, argilla_server.url, name, work.passwords[name])
    browser.get(link)
    wait(browser, lambda: shows(browser, record["id"]))
    assert "submitted" in browser.find_element(By.TAG_NAME, "body").text.lower()
    browser.delete_all_cookies()
    browser.execute_script("localStorage.clear(); sessionStorage.clear()")
    browser.get(link)
    enter_password(browser, argilla_server.owner_username, argilla_server.owner_password)
    wait(browser, lambda: shows(browser, record["id"]))
