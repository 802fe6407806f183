"""Answers and contexts as large and as odd as they come: the page stays usable and shows what was written, unharmed."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TaskName
from annotation.argilla.rendering import harmless_characters
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import NewUser, set_up
from annotation.push.push import push_records
from exports.csv.write import export_csv
from pipeline.records.schema import Passage, QueryResponse, Source, join_context
from tests.support.hostile_text import ATTACKS, listening_beacon
from tests.support.page_driver import answer, events, hosts_asked, log_in, open_form, press, screenshot, wait

pytestmark = [pytest.mark.server, pytest.mark.browser]

TASKS: tuple[TaskName, ...] = ("grounding", "generation")
# What can be read in each field, the numbers of lists included, which no text node holds.
READ_FIELDS = """
const read = (node) => {
  if (node.nodeType === Node.TEXT_NODE) return node.data;
  if (["style", "template"].includes(node.localName)) return ""; // Argilla puts its colours there
  const items = node.localName === "ol" ? [...node.children] : [];
  let next = node.localName === "ol" ? node.start : 0;
  return [...node.childNodes].map((child) => {
    if (!items.includes(child)) return read(child);
    if (child.hasAttribute("value")) next = child.value;
    return `${next++}. ${read(child)}`;
  }).join(" ");
};
const fields = document.querySelector(".record--focus .fields");
return Object.fromEntries(fields.__vue__.fields.map(({ name }, place) => [
  name, read(fields.children[place].querySelector(".content-area, .text_field_component__area"))]));
"""
# Whether a cell's words stand on a line each at most, and whether the page is as wide as its window.
CELLS_AND_PAGE = """
const cells = [...document.querySelectorAll(".fields td")];
const lineHeight = parseFloat(getComputedStyle(cells[0]).lineHeight) || 24;
return [cells.every((cell) => cell.clientHeight < 4.5 * lineHeight),
  document.documentElement.scrollWidth <= window.innerWidth];"""
REPEATED = "Honey keeps for years [1], because microbes hardly grow in it; **infants** must not eat it [2].\n\n"
RTL = "العسل لا يفسد. \u200fדבש\u200f \u202eforged\u202c \u2066isolated\u2069"
ZERO_WIDTH = "a\u200bb\u200cc\u200dd\ufeffe \u00adsoft\u00ad"
TABLE = "\n".join(
    [
        "|" + "|".join(f" column {n} " for n in range(40)) + "|",
        "|" + "---|" * 40,
        *("|" + "|".join(f" cell {row} {n} " for n in range(40)) + "|" for row in range(30)),
    ]
)
ITEMS = "\n".join(f"{n}. Item {n} says so [{n % 300 + 1}]." for n in range(1, 5001))
LARGE = {
    "200 kB": (REPEATED * 2100, 2, "A passage."),
    "5,000 items and 300 sources": (ITEMS, 300, "A passage."),
}
MIXED = {
    "40 columns, right to left, zero width, an empty passage": (f"{RTL}\n\n{TABLE}\n\n{ZERO_WIDTH}", 3, " \n"),
}


@pytest.fixture
def beacon() -> Iterator[tuple[str, list[str]]]:
    """The address of a server that the hostile text wants to call, and what it was asked for."""
    with listening_beacon() as found:
        yield found


def words(text: str) -> list[str]:
    """All words and numbers in their order; whatever is markup or not, they have to be there."""
    return re.findall(r"[^\W_]+", text)


def record_of(written: str, sources: int, passage: str, attacks: str) -> QueryResponse:
    text = f"{written}\n\n{attacks}"
    listed = tuple(
        Source(n=n, url=f"https://site{n}.example/a", host=f"site{n}.example", title=f"{RTL} {n}", state="read")
        for n in range(1, sources + 1)
    )
    texts = [passage, attacks, *(f"Passage {n}. {RTL}" for n in range(3, 9))]
    chunks = tuple(
        Passage(
            chunk_id=f"d{n}#0",
            doc_id=f"d{n}",
            chunk_rank=n,
            text=each,
            title=attacks[:200],
            url=f"https://site{n}.example/a",
        )
        for n, each in enumerate(texts, start=1)
    )
    query = f"{RTL} {ZERO_WIDTH} {attacks}"
    return QueryResponse(
        record_uuid=str(uuid4()),
        query=query,
        answer=text,
        sources=listed,
        chunks=chunks,
        context_set=join_context(chunks),
    )


def sent(owner: Argilla, dataset_id: str) -> dict[str, Any]:
    """The record with the answer that the server has of it."""
    (record,) = (record for _, page in owner.record_pages(dataset_id) for record in page)
    return dict(record)


@pytest.mark.parametrize("case", [*(pytest.param(each, marks=pytest.mark.rare) for each in LARGE), *MIXED])
def test_the_form_reacts_the_text_is_whole_and_harmless_and_the_answer_is_stored(
    owner: Argilla, browser: webdriver.Chrome, beacon: tuple[str, list[str]], case: str, tmp_path: Path
) -> None:
    host, calls = beacon
    workspace = f"bad-{uuid4().hex[:8]}"
    record = record_of(*(LARGE | MIXED)[case], ATTACKS.replace("BEACON", host))
    users: list[NewUser] = []
    set_up(owner, workspace, annotators=[workspace], announce=users.append)
    push_records(owner, workspace, [record])
    datasets = find_datasets(owner, workspace)
    log_in(browser, owner.api_url, workspace, users[0].password)
    for task in TASKS:
        open_form(browser, owner.api_url, datasets[task].id)
        shown = browser.execute_script(READ_FIELDS)
        assert words(shown["query"]) == words(harmless_characters(record.query))
        assert words(shown["answer"]) == words(harmless_characters(record.answer))
        if task == "grounding":
            assert all(chunk_is_shown(chunk, shown["context"]) for chunk in record.chunks)
            assert words(shown["sources"]).count("example") == len(record.sources)
        if "columns" in case:
            assert browser.execute_script(CELLS_AND_PAGE) == [True, True]
        screenshot(browser, f"bad-{task}-{case.split()[0]}")
        answer(browser, [(label, False) for label in LABELS[task]])
        press(browser, Keys.RETURN)
        wait(browser, lambda task=task: sent(owner, datasets[task].id)["status"] == "completed")
        assert browser.execute_script("return window.attacked") is None
    assert hosts_asked(events(browser)) == {urlsplit(owner.api_url).netloc}
    assert calls == []
    csv.field_size_limit(2**31 - 1)
    export_csv(owner, workspace, tmp_path / "export")
    for task in TASKS:
        with (tmp_path / "export" / f"{task}.csv").open(encoding="utf-8", newline="") as file:
            (row,) = csv.DictReader(file)
        assert row["answer"] == record.answer


def chunk_is_shown(chunk: Passage, context: str) -> bool:
    """Whether the passage's words stand in the context, one after the other."""
    return " ".join(words(harmless_characters(chunk.text))) in " ".join(words(context))
