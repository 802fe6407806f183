"""Text that attacks the page or is huge and odd: it runs nothing, calls nobody, hides nothing, and can be answered."""

import csv
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.display import to_records
from annotation.argilla.labels import LABELS, TASKS, TaskName
from annotation.argilla.rendering import harmless_characters
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import NewUser, set_up
from annotation.push.push import push_records
from exports.csv.write import export_csv
from pipeline.records.schema import Passage, QueryResponse, Source, join_context
from tests.support.hostile_text import ATTACKS, listening_beacon
from tests.support.lossy_link import LossyLink
from tests.support.page_driver import answer, events, hosts_asked, log_in, notice, open_form, press, shown_text, wait

pytestmark = [pytest.mark.server, pytest.mark.browser]

FOCUS = "document.getElementById(arguments[0])?.focus(); return document.activeElement?.id === arguments[0]"
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
const areas = fields.querySelectorAll(".content-area, .text_field_component__area");
return Object.fromEntries(fields.__vue__.fields.map(({ name }, place) => [name, read(areas[place])]));
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
# What is answered, how many sources it has, and the first passage.
LARGE = {
    "200 kB": (REPEATED * 2100, 2, "A passage."),
    "5,000 items and 300 sources": (ITEMS, 300, "A passage."),
    "a megabyte with a tower of marks": ("A sentence. " * 70_000 + "e" + "\u0301" * 100_000, 2, "A passage."),
}
MIXED = {"40 columns, right to left, zero width, an empty passage": (f"{RTL}\n\n{TABLE}\n\n{ZERO_WIDTH}", 3, " \n")}


def words(text: str) -> list[str]:
    """All words and numbers in their order; whatever is markup or not, they have to be there."""
    return re.findall(r"[^\W_]+", text)


def record_of(written: str, sources: int, passage: str, attacks: str) -> QueryResponse:
    def page(n: int) -> dict[str, str]:
        return {"url": f"https://site{n}.example/a", "title": f"{RTL} {n}"}

    texts = [passage, attacks, *(f"Passage {n}. {RTL}" for n in range(3, 9))]
    chunks = tuple(
        Passage(chunk_id=f"d{n}#0", doc_id=f"d{n}", chunk_rank=n, text=each, **page(n) | {"title": attacks[:200]})
        for n, each in enumerate(texts, start=1)
    )
    listed = [Source(n=n, host=f"site{n}.example", state="read", **page(n)) for n in range(1, sources + 1)]
    said = {"query": f"{RTL} {ZERO_WIDTH} {attacks}", "answer": f"{written}\n\n{attacks}"}
    return QueryResponse(
        record_uuid=str(uuid4()), sources=tuple(listed), chunks=chunks, context_set=join_context(chunks), **said
    )


def record_in(owner: Argilla, dataset: str) -> dict[str, Any]:
    ((_, (record,)),) = owner.record_pages(dataset)
    return dict(record)


def exported_answer(owner: Argilla, workspace: str, task: TaskName, folder: Path) -> str:
    csv.field_size_limit(2**31 - 1)
    export_csv(owner, workspace, folder / "export")
    with (folder / "export" / f"{task}.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    return row["answer"]


@pytest.mark.parametrize(
    ("defence", "tasks"),
    [
        ("escaping alone", ["grounding"]),
        pytest.param("escaping alone", ["retrieval", "generation"], marks=pytest.mark.rare),
        pytest.param("policy alone", TASKS, marks=pytest.mark.rare),
    ],
)
def test_hostile_text_runs_nothing_and_calls_nobody(
    owner: Argilla, browser: Chrome, link: LossyLink, defence: str, tasks: Sequence[TaskName], tmp_path: Path
) -> None:
    workspace, users = f"hostile-{uuid4().hex[:8]}", list[NewUser]()
    set_up(owner, workspace, annotators=[f"{workspace}-anna"], announce=users.append)
    datasets = find_datasets(owner, workspace)
    with listening_beacon() as (host, calls):
        text = ATTACKS.replace("BEACON", host)
        chunks = (Passage(chunk_id="h#0", doc_id="h", chunk_rank=1, text=text, title=text[:300]),)
        record = QueryResponse(
            record_uuid=str(uuid4()), query=text, answer=text, chunks=chunks, context_set=join_context(chunks)
        )
        for task, bodies in to_records(record, read_wording("en")).items():
            if defence == "policy alone":  # the text as it came
                bodies = [{**body, "fields": dict.fromkeys(body["fields"], text)} for body in bodies]
            owner.request("PUT", f"/datasets/{datasets[task].id}/records/bulk", json={"items": bodies})
        link.left_out = {"content-security-policy"} if defence == "escaping alone" else set()
        log_in(browser, link.url, f"{workspace}-anna", users[0].password)
        for task in tasks:
            browser.get(f"{link.url}/dataset/{datasets[task].id}/annotation-mode?page=1&status=pending")
            # A field of the hostile text may have taken the focus.
            wait(browser, partial(browser.execute_script, FOCUS, f"{LABELS[task][0]}_yes"))
            if defence == "escaping alone":
                wait(browser, lambda: "<script>window.attacked = 1; alert(1)</script>" in shown_text(browser))
            answer(browser, [(label, False) for label in LABELS[task]])
            press(browser, Keys.RETURN)
            wait(browser, lambda task=task: record_in(owner, datasets[task].id)["status"] == "completed")
            wait(browser, lambda: not notice(browser))  # the server has it before the page knows
            assert browser.execute_script("return window.attacked") is None
        assert (hosts_asked(events(browser)), calls) == ({urlsplit(link.url).netloc}, [])
    if defence == "escaping alone":
        assert exported_answer(owner, workspace, tasks[-1], tmp_path) == text


@pytest.mark.rare
@pytest.mark.parametrize("case", [*LARGE, *MIXED])
def test_large_odd_text_is_whole_and_harmless(owner: Argilla, browser: Chrome, case: str, tmp_path: Path) -> None:
    workspace, users = f"bad-{uuid4().hex[:8]}", list[NewUser]()
    set_up(owner, workspace, annotators=[workspace], announce=users.append)
    datasets = find_datasets(owner, workspace)
    with listening_beacon() as (host, calls):
        record = record_of(*(LARGE | MIXED)[case], ATTACKS.replace("BEACON", host))
        push_records(owner, workspace, [record])
        log_in(browser, owner.api_url, workspace, users[0].password)
        for task in TASKS[1:]:
            open_form(browser, owner.api_url, datasets[task].id)
            shown = browser.execute_script(READ_FIELDS)
            assert words(shown["query"]) == words(harmless_characters(record.query))
            assert words(shown["answer"]) == words(harmless_characters(record.answer))
            if task == "grounding":
                context = " ".join(words(shown["context"]))
                assert all(" ".join(words(harmless_characters(chunk.text))) in context for chunk in record.chunks)
                assert words(shown["sources"]).count("example") == len(record.sources)
            if "columns" in case:
                assert browser.execute_script(CELLS_AND_PAGE) == [True, True]
            answer(browser, [(label, False) for label in LABELS[task]])
            press(browser, Keys.RETURN)
            wait(browser, lambda task=task: record_in(owner, datasets[task].id)["status"] == "completed")
            assert browser.execute_script("return window.attacked") is None
        assert (hosts_asked(events(browser)), calls) == ({urlsplit(owner.api_url).netloc}, [])
    for task in TASKS[1:]:
        assert exported_answer(owner, workspace, task, tmp_path / task) == record.answer
