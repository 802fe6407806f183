"""The longest real reports as records of grounding, their passages taken from the reports' own paragraphs."""

import json
import re
from typing import Any
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid4, uuid5

import pytest

from annotation.argilla.client import Argilla
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import NewUser, set_up
from annotation.push.push import push_records
from pipeline.records.schema import Passage, QueryResponse, Source, join_context
from tests.support.places import SHARED

REPORTS = SHARED / "corpora" / "reports" / "open_deep_research_gpt-4.1.jsonl"
# Visible height of the answer's text or of the field that is named, wherever it scrolls.
SEEN = """const fields = document.querySelector(".record--focus .fields");
const place = fields.__vue__.fields.findIndex(({ name }) => name === (arguments[0] || "answer"));
const area = [...fields.querySelectorAll(".content-area, .text_field_component__area")][place];
const form = document.querySelector("form.questions-form").getBoundingClientRect();
const isBar = getComputedStyle(document.querySelector("form.questions-form")).position === "fixed";
let { top, bottom } = area.getBoundingClientRect();
for (let box = area; box; box = box.parentElement) {
  if (box !== area && getComputedStyle(box).overflowY === "visible") continue;
  const around = box.getBoundingClientRect();
  [top, bottom] = [Math.max(top, around.top), Math.min(bottom, around.bottom)];
}
return Math.max(0, Math.min(bottom, innerHeight, isBar ? form.top : Infinity) - Math.max(0, top))"""
_SOURCE = re.compile(r"^\s*(?:[-*] )?\[?(\d{1,3})[\].] *(.+?) *(?:[:(]|-)? *(https?://[^\s)]+)", re.MULTILINE)
_LIST = re.compile(r"^#+ *\W*(?:sources|references|参考|来源|资料).*$", re.MULTILINE | re.IGNORECASE)
_MARK = re.compile(r"\[(\d{1,3})\]")


def long_reports(count: int) -> list[QueryResponse]:
    if not REPORTS.is_file():
        pytest.skip("the corpus of reports is not at hand")
    reports = [json.loads(line) for line in REPORTS.read_text(encoding="utf-8").splitlines()]
    listed = [each for each in reports if _MARK.search(each["article"]) and _SOURCE.search(each["article"])]
    return [_record(each) for each in sorted(listed, key=lambda each: -len(each["article"]))[:count]]


def _record(report: dict[str, Any]) -> QueryResponse:
    article = report["article"]
    found = list(_LIST.finditer(article))
    answer, rest = (article[: found[-1].start()], article[found[-1].end() :]) if found else (article, article)
    places = {int(n): (title.strip(" []:"), url) for n, title, url in _SOURCE.findall(rest)}
    sources = tuple(
        Source(n=n, url=url, host=urlsplit(url).netloc or "x.example", title=title, state="read")
        for n, (title, url) in sorted(places.items())
    )
    chunks: list[Passage] = []
    for source in sources:
        paragraphs = [each for each in answer.split("\n") if f"[{source.n}]" in each]
        text = _MARK.sub("", " ".join(paragraphs))[:700].strip()
        if text:
            doc = f"d{source.n}"
            named = {"chunk_id": f"{doc}#0", "doc_id": doc, "url": source.url, "title": source.title}
            chunks.append(Passage(chunk_rank=len(chunks) + 1, text=text, **named))
    return QueryResponse(
        record_uuid=str(uuid5(NAMESPACE_URL, f"report-{report['id']}")),
        query=report["prompt"],
        answer=answer.strip(),
        language="en",
        sources=sources,
        chunks=tuple(chunks),
        context_set=join_context(chunks),
    )


def reports_campaign(owner: Argilla, records: list[QueryResponse], locale: str = "en") -> dict[str, Any]:
    workspace = f"reports-{uuid4().hex[:8]}"
    users: list[NewUser] = []
    set_up(owner, workspace, locale, annotators=[workspace], announce=users.append)
    push_records(owner, workspace, records)
    datasets = {task: dataset.id for task, dataset in find_datasets(owner, workspace).items()}
    return {"username": users[0].username, "password": users[0].password, "datasets": datasets, "workspace": workspace}
