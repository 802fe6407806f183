import json
from typing import Any

import pytest

from pipeline.core.errors import ProviderError
from pipeline.core.schema import ProviderName
from pipeline.providers import read_payload
from pipeline.records.citation_form import to_one_form
from tests.support.places import cases

A, B, C = "https://a.example/one", "https://b.example/two", "https://c.example/three"
LONG = "https://a.example/" + "x" * 8000


def chat(text: str, *cited: str, **more: Any) -> dict[str, Any]:
    notes = [{"type": "url_citation", "url_citation": {"url": url, "title": "T"}} for url in cited]
    return {"choices": [{"message": {"content": text, "annotations": notes}, "finish_reason": "stop"}], **more}


LOST = "marks without a source"
KINDS = [
    *(pytest.param(*list(case.values())[1:], id=case["id"]) for case in cases("citation_kinds")),
    pytest.param(
        "perplexity",
        {**chat("Tea" + "".join(f"[{n}]" for n in range(1, 501))), "citations": [f"{A}/{n}" for n in range(1, 501)]},
        [f"{A}/{n}" for n in range(1, 501)],
        "Tea" + "".join(f"[{n}]" for n in range(1, 501)),
        {},
        id="500 marks",
    ),
    pytest.param("openai", chat(f"Tea {LONG}."), [LONG], "Tea [1].", {}, id="a URL of 8,000 letters"),
]
FORMS = cases("source_lists")
LISTS = [
    *(f"{heading}\n1. {B}\n2. {A}" for heading in FORMS["headings"]),
    *(f"Sources:\n{first}{B}\n{first.replace('1', '2').replace('¹', '²')}{A}" for first in FORMS["openings"]),
    *(f"Sources: {line}" for line in (f"[1] {B}, [2] {A}", f"1. {B} 2. {A}", f"(1) {B}; (2) {A}")),
    f"Sources: [1] {B}\n[2] {A}",
    f"## Sources\n\n1. {B}\n1. {A}",
    f"<h3>Sources</h3>\n<ol>\n<li><a href='{B}'>Two</a></li>\n<li><a href='{A}'>One</a></li>\n</ol>",
    f"Sources:\n<ol><li>{B}</li><li>{A}</li></ol>",
    f"> **Sources**\n>\n> 1. {B}\n> 2. {A}",
    f"Sources\n\n| n | page |\n|---|---|\n| 1 | {B} |\n| 2 | {A} |",
]
NO_LISTS = [
    f"1. Open [the tea house]({B}).\n2. Open [the garden]({A}).",
    f"Contents\n\n1. [Tea]({B})\n2. [Oil]({A})",
    f"## Sources of protein\n\n1. [Beans]({B})\n2. [Nuts]({A})",
    f"[1] says that tea is old ({B}).\n[2] shows that oil is ({A}).",
    f"[1]によると、茶は古い（{B}）。\n\n[2]は油が古いとする（{A}）。",
    f"### Sources\n\n1. Tea leaves [1]\n2. Oil plants [2], see {A}",
    f"```\nSources:\n[1] {B}\n[2] {A}\n```",
    f"The sources say so:\n[1] and [2], as {B} and {A} do.",
]


@pytest.mark.parametrize("listed", LISTS)
def test_an_answers_own_list_goes_before_the_providers_in_every_form(listed: str) -> None:
    raised = "¹²" if "¹" in listed else ("[1]", "[2]")
    text = f"Cocoa is old{raised[0]}. Coffee is old{raised[1]}.\n\n{listed}\n\nThat is all."
    answer = read_payload("perplexity", json.dumps({**chat(text), "citations": [A, B, C]}))
    places = [(each.url, each.number) for each in answer.occurrences if each.start is not None][:2]
    assert (places, LOST in answer.unread) == ([(B, "1"), (A, "2")], False)


@pytest.mark.parametrize("text", NO_LISTS)
def test_what_only_looks_like_a_source_list_leaves_the_providers_numbers(text: str) -> None:
    answer = read_payload("perplexity", json.dumps({**chat(f"{text}\n\nTea is old [1][2]."), "citations": [A, B, C]}))
    assert [(each.url, each.number) for each in answer.occurrences if each.start is not None][-2:] == [
        (A, "1"),
        (B, "2"),
    ]


@pytest.mark.parametrize(("provider", "body", "citations", "form", "unread"), KINDS)
def test_every_kind_of_citation_is_read_or_counted(
    provider: ProviderName, body: dict[str, Any], citations: list[str], form: str, unread: dict[str, int]
) -> None:
    answer = read_payload(provider, json.dumps(body))
    assert (list(answer.citations), to_one_form(answer).text, answer.unread) == (citations, form, unread)


@pytest.mark.parametrize("end", ["\r", "\r\n"])
@pytest.mark.parametrize("listed", [*LISTS, *NO_LISTS])
def test_lines_may_end_in_any_way(listed: str, end: str) -> None:
    def read(text: str) -> tuple[Any, ...]:
        answer = read_payload("perplexity", json.dumps({**chat(text), "citations": [A, B, C]}))
        return answer.citations, [(each.url, each.number, each.placement) for each in answer.occurrences], answer.unread

    text = f"Tea\n[1] [2](https://d.example/four).\n\n{listed}\n\nThat is [3] all."
    assert read(text.replace("\n", end)) == read(text)


def test_a_payload_that_breaks_its_reader_is_one_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.providers.answer.own_list", lambda text, cites_numbers=True: [][0])
    with pytest.raises(ProviderError, match=r"cannot read this payload \(IndexError\)"):
        read_payload("openai", json.dumps(chat("Tea.")))
