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
LISTED = f"Tea is old [1]. Cocoa is older [2].\n\nReferences:\n[2] {B}\n[1] {A}"


def chat(text: str, *cited: str, **more: Any) -> dict[str, Any]:
    notes = [{"type": "url_citation", "url_citation": {"url": url, "title": "T"}} for url in cited]
    return {"choices": [{"message": {"content": text, "annotations": notes}, "finish_reason": "stop"}], **more}


def agent(text: str) -> dict[str, Any]:
    results = [
        {"id": number, "url": url, "title": "T", "snippet": "s"} for number, url in enumerate((A, B, C), start=1)
    ]
    message = {"type": "message", "content": [{"type": "output_text", "text": text, "annotations": []}]}
    output = [{"type": "search_results", "results": results}, message]
    return {"object": "response", "status": "completed", "output": output}


def messages(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": list(blocks)}


def said(text: str, **citation: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, "citations": [citation]}


def fetched(url: str, title: str) -> dict[str, Any]:
    content = {"type": "web_fetch_result", "url": url, "content": {"type": "document", "title": title}}
    return {"type": "web_fetch_tool_result", "content": content}


def generated(text: str, chunks: list[dict[str, Any]], *segments: tuple[str, int, int], **more: Any) -> dict[str, Any]:
    supports = [
        {"segment": {"startIndex": start, "endIndex": end, "text": words}, "groundingChunkIndices": [0]}
        for words, start, end in segments
    ]
    grounding = {"groundingChunks": chunks, "groundingSupports": supports}
    return {"candidates": [{"content": {"parts": [{"text": text}]}, "groundingMetadata": grounding, **more}]}


LOST, TOKENS = "marks without a source", "tokens of the provider"
DIFFERS = "sources that the answer's own list contradicts"
DOCUMENT = {"retrievedContext": {"uri": A, "title": "a.pdf"}}
KINDS = [
    pytest.param("openai", chat(LISTED), [A, B], LISTED.replace(B, "[2]").replace(A, "[1]"), {}, id="its own list"),
    pytest.param(
        "claude",
        messages(said(LISTED, url=C, title="C", cited_text="c")),
        [A, B, C],
        LISTED.replace(B, "[2]").replace(A, "[1][3]"),
        {},
        id="its own list beside an attached source",
    ),
    pytest.param(
        "perplexity",
        {**chat(f"Tea [1].\n\nSources:\n[1] {B}"), "citations": [A, B]},
        [B, A],
        "Tea [1].\n\nSources:\n[1] [1]\n\n[2]",
        {"sources that the answer's own list contradicts": 2},
        id="a list that contradicts the attached one",
    ),
    pytest.param(
        "openai",
        chat(f'Tea is [old][1], [Milk] ([who][2]).\n\n[1]: {A} "One"\n[2]: {B}\n[milk]: <{C}>\n\nEnd.'),
        [A, B, C],
        "Tea is old [1], Milk [3] [2].\n\nEnd.",
        {},
        id="reference links",
    ),
    pytest.param(
        "claude",
        messages(said(f"Tea is [old][1] and [new][n].\n\n[1]: {A}\n[n]: {B}", url=C, title="C", cited_text="c")),
        [A, C],
        "Tea is old [1] and new.[2]",
        {},
        id="reference links to an entry and to what the provider does not attach",
    ),
    pytest.param(
        "perplexity",
        {**chat("Tea [1]. Milk [2]. Oil [3]."), "citations": ["not a url", A, "https://", "//x", "mailto:a@b"]},
        [A],
        "Tea [4]. Milk [1]. Oil [3].",
        {"citations that are no URL": 4, LOST: 2},
        id="citations that are no URL",
    ),
    pytest.param(
        "perplexity",
        {**chat(f"Tea [1] [2].\n\nSources:\n[1] {B}\n[2] {B}"), "citations": [A, A]},
        [B, A],
        "Tea [1].\n\nSources:\n[1] [1]\n[1] [1]\n\n[2]",
        {"sources that the answer's own list contradicts": 4},
        id="a list that names one source twice",
    ),
    pytest.param(
        "perplexity",
        {**chat("Tea" + "".join(f"[{n}]" for n in range(1, 501))), "citations": [f"{A}/{n}" for n in range(1, 501)]},
        [f"{A}/{n}" for n in range(1, 501)],
        "Tea" + "".join(f"[{n}]" for n in range(1, 501)),
        {},
        id="500 marks",
    ),
    pytest.param(
        "perplexity",
        agent("| City [2] | People |\n|---|---|\n| Bonn | 3 [1] |"),
        [B, A],
        "| City [1] | People |\n|---|---|\n| Bonn | 3 [2] |",
        {},
        id="a mark in a table's head",
    ),
    pytest.param("openai", chat(f"Tea {LONG}."), [LONG], "Tea [1].", {}, id="a URL of 8,000 letters"),
    pytest.param(
        "openai",
        chat("Tea https://p\u0430ypal.com/a, https://exa\u200bmple.com/a and https://example\u202ecom.evil/a."),
        ["https://p\u0430ypal.com/a", "https://exa\u200bmple.com/a", "https://example\u202ecom.evil/a"],
        "Tea [1], [2] and [3].",
        {},
        id="hosts with two alphabets and hidden signs",
    ),
    pytest.param(
        "grok",
        chat("Tea https://p\u0430ypal.com/a or https://example\u202ecom.evil/a.", A),
        [A],
        "Tea https://xn--pypal-4ve.com/a or https://example\ufffdcom.evil/a.\n\n[1]",
        {},
        id="such hosts in the text",
    ),
    pytest.param(
        "openai", chat("Tea [1]. Milk [9]."), [], "Tea [1]. Milk [9].", {"marks without a source": 2}, id="lost"
    ),
    pytest.param(
        "perplexity",
        {**chat(f"Tea [2].\n\n1. {C}\n2. {A}"), "citations": [A, B]},
        [A, B],
        f"Tea [2].\n\n1. {C}\n2. [1]",
        {},
        id="a list of the body beside the provider's numbers",
    ),
    pytest.param("perplexity", agent("Tea [1, 3]."), [A, C], "Tea [1][2].", {}, id="two numbers in one mark"),
    pytest.param("perplexity", agent("Tea [1-2]. Milk 【3】."), [A, B, C], "Tea [1][2]. Milk [3].", {}, id="a range"),
    pytest.param(
        "perplexity", agent("Tea [1, 9]."), [A], "Tea [1][9].", {LOST: 1}, id="of two numbers one that leads nowhere"
    ),
    pytest.param(
        "perplexity", agent("Honey² is 5 m² of Tea¹."), [B, A], "Honey[1] is 5 m² of Tea[2].", {}, id="raised"
    ),
    *(
        pytest.param("perplexity", agent(f"Tea [2]. {code}"), [B], f"Tea [1]. {code}", {}, id=f"an index in {name}")
        for name, code in {
            "code": "Row `row[1]` it is.",
            "a formula": r"Let \(b[1]\), \[c[3]\], $d[1]$ and $$e[3]$$ be.",
            "a comment": "It <!-- [3] --> is.",
            "tags of code": "It is <code>a[1]</code> and <pre>b[3]</pre>.",
            "an indented block": "So:\n\n    b = a[3]\n\nEnd.",
            "a block that is cut off": "So:\n\n~~~\nb = a[3]",
            "a comment that is cut off": "So:\n\n<!-- [3]\n\n[1]",
        }.items()
    ),
    pytest.param(
        "perplexity",
        agent("``Tea'' is 5$ [1].\n\n| ``Milk | 6$ [2] |\n|---|---|\n| Oil'' | \\[3\\] |"),
        [A, B, C],
        "``Tea'' is 5$ [1].\n\n| ``Milk | 6$ [2] |\n|---|---|\n| Oil'' | [3] |",
        {},
        id="backticks of two blocks, money and an escaped mark",
    ),
    pytest.param(
        "perplexity", agent("Tea [cite: 1, 3]. Milk [cite:2]"), [A, C, B], "Tea [1][2]. Milk [3]", {}, id="a cite mark"
    ),
    pytest.param(
        "grok",
        chat('Tea {render_inline_citation citation_id="7"}. Milk<grok:render card_id="b"><a>3</a></grok:render>.', A),
        [A],
        "Tea. Milk.\n\n[1]",
        {TOKENS: 2},
        id="its own tokens",
    ),
    pytest.param("openai", chat("Tea citeturn0search1.", A), [A], "Tea.\n\n[1]", {TOKENS: 1}, id="bare"),
    pytest.param(
        "openai",
        chat("Tea \ue200cite\ue202turn0search1\ue201\ue200x\ue201. [cite_start]Milk \ue200x\ue201is."),
        [],
        "Tea. Milk is.",
        {TOKENS: 4},
        id="tokens behind a blank",
    ),
    pytest.param(
        "claude",
        messages(said("So:\n\n```py\nx = 1", url=A, title="A", cited_text="c")),
        [A],
        "So:\n\n```py\nx = 1\n```\n\n[1]",
        {},
        id="a source of code that is cut off",
    ),
    pytest.param(
        "grok",
        chat(f"Tea [[1]]({B}) or [[2]]({A}).", B),
        [B],
        "Tea [1] or (2).",
        {LOST: 1},
        id="a number beside the list",
    ),
    pytest.param(
        "gemini",
        generated("Tea is old [cite: 4].", []),
        [],
        "Tea is old.",
        {TOKENS: 1},
        id="a cite mark without a list",
    ),
    pytest.param(
        "claude",
        messages(fetched(A, "One"), fetched(B, "Two"), said("Tea is old", document_index=1, type="page_location")),
        [B],
        "Tea is old[1]",
        {},
        id="a fetched page by its place",
    ),
    pytest.param(
        "claude",
        messages(said("Tea", source=A, type="search_result_location")),
        [A],
        "Tea[1]",
        {},
        id="a search result",
    ),
    pytest.param(
        "gemini", generated("Tea. Milk.", [DOCUMENT], ("Tea.", 0, 4)), [A], "Tea.[1] Milk.", {}, id="a document"
    ),
    pytest.param(
        "gemini",
        generated("Tea.", [{"retrievedContext": {"uri": uri}} for uri in ("gs://b/d.pdf", "d.pdf")], ("Tea.", 0, 4)),
        ["gs://b/d.pdf"],
        "Tea.[1]",
        {"citations that are no URL": 1},
        id="documents elsewhere",
    ),
    pytest.param(
        "gemini",
        generated(f"Tea [[1]]({B}).", [DOCUMENT]),
        [A],
        "Tea (1).\n\n[1]",
        {LOST: 1},
        id="a number that links elsewhere",
    ),
    pytest.param(
        "gemini",
        generated("Thé. Lait.", [DOCUMENT], ("Lait.", 5, 10)),
        [A],
        "Thé. Lait.[1]",
        {},
        id="a wrong offset",
    ),
    pytest.param(
        "gemini",
        generated("Tea. Milk.", [], citationMetadata={"citationSources": [{"startIndex": 0, "endIndex": 4, "uri": A}]}),
        [A],
        "Tea.[1] Milk.",
        {},
        id="a recited source",
    ),
    pytest.param(
        "openai",
        chat("Tea.", vertex_ai_grounding_metadata=[{"web": {"uri": A}}]),
        [],
        "Tea.",
        {"field vertex_ai_grounding_metadata[].web.uri": 1},
        id="a field that no rule reads",
    ),
    pytest.param(
        "openai",
        chat("Siehe https://a.example/Köln (Stadt).", "https://a.example/K%C3%B6ln"),
        ["https://a.example/K%C3%B6ln"],
        "Siehe [1] (Stadt).",
        {},
        id="one address in two spellings",
    ),
]

KINDS += [
    pytest.param(
        "perplexity",
        {**chat(f"Tea [1, 3]. Oil [2].\n\nSources:\n[1] {B}\n[2] {A}"), "citations": [A, B, C]},
        [B, A, C],
        "Tea [1][4]. Oil [2].\n\nSources:\n[1] [1]\n[2] [2]\n\n[3]",
        {LOST: 1, DIFFERS: 5},
        id="a number beyond a list that numbers anew",
    ),
    pytest.param(
        "perplexity",
        {**chat(f"Tea [1, 3]. Oil [2].\n\nSources:\n[1] {A}\n[2] {B}"), "citations": [A, B, C]},
        [A, B, C],
        "Tea [1][3]. Oil [2].\n\nSources:\n[1] [1]\n[2] [2]",
        {},
        id="a number beyond a list that agrees",
    ),
    pytest.param(
        "perplexity",
        agent(f"Oil [3].\n\nSources:\n1. {B}\n2. {A}"),
        [B, A, C],
        "Oil [4].\n\nSources:\n1. [1]\n2. [2]\n\n[3]",
        {LOST: 1, DIFFERS: 1},
        id="a number beyond a list that nothing else cites",
    ),
    pytest.param(
        "perplexity",
        {**chat(f"Tea [1]. Oil [2].\n\nSources:\n[1] Tea Post\n[2] {A}"), "citations": [A, B]},
        [A, B],
        "Tea [3]. Oil [1].\n\nSources:\n[3] Tea Post\n[1] [1]\n\n[2]",
        {LOST: 1, DIFFERS: 4},
        id="an entry without a URL",
    ),
    pytest.param(
        "perplexity",
        {**chat("Tea [1]. Oil [2].\n\nSources:\n1. a.example: One\n2. Oil Post, 2024"), "citations": [A, B]},
        [A, B],
        "Tea [1]. Oil [3].\n\nSources:\n1. a.example: One\n2. Oil Post, 2024\n\n[2]",
        {LOST: 1, DIFFERS: 1},
        id="entries without a URL of which one names the site",
    ),
    pytest.param(
        "openai",
        chat(f"## Tea\n\nOld [1].\n\nSources:\n1. {A}\n\n## Oil\n\nOlder [1] [2].\n\n### Sources\n\n1. {B}"),
        [A, B],
        "## Tea\n\nOld [1].\n\nSources:\n1. [1]\n\n## Oil\n\nOlder [2] [3].\n\n### Sources\n\n1. [2]",
        {LOST: 1},
        id="a list in each section",
    ),
    pytest.param(
        "openai",
        chat(f"Tea [1, 5]. Oil [2].\n\nSources:\n[1] {A}\n[2] {B}"),
        [A, B],
        "Tea [1][5]. Oil [2].\n\nSources:\n[1] [1]\n[2] [2]",
        {LOST: 1},
        id="of two numbers one that is listed",
    ),
    pytest.param(
        "openai",
        chat(f"Tea[^tea] Oil[^o] Salt[^s].\n\n[^o]: Oil, {B}\n[^tea]: Tea, {A}\n[^s]: By which we mean all."),
        [B, A],
        "Tea[2] Oil[1] Salt[^s].\n\n[1] Oil, [1]\n[2] Tea, [2]\n[^s]: By which we mean all.",
        {LOST: 1},
        id="footnotes with names",
    ),
    pytest.param(
        "openai",
        chat(f'Tea[2](#r2). Oil[1](#r1).\n\n## References\n<a id="r2"></a>[2] {B}\n<a id="r1"></a>[1] {A}'),
        [A, B],
        'Tea[2]. Oil[1].\n\n## References\n<a id="r2"></a>[2]\n<a id="r1"></a>[1]',
        {},
        id="numbers that lead to anchors",
    ),
    pytest.param(
        "openai",
        chat("Tea【2】, oil［1］, milk[2, 1], salt¹, rye<sup>2</sup> and [^1]. Buy at https://a.example/one."),
        [A],
        "Tea【2】, oil[3], milk[2][3], salt[3], rye<sup>2</sup> and [3]. Buy at [1].",
        {LOST: 6},
        id="lost marks of all forms",
    ),
    pytest.param(
        "openai",
        chat(f"Tea [1].\n\n## Where to go\n\n1. [Tea house]({B})\n2. [Tea garden]({C})", A),
        [B, C, A],
        "Tea [4].\n\n## Where to go\n\n1. Tea house [1]\n2. Tea garden [2]\n\n[3]",
        {LOST: 1},
        id="a list of places beside an attached source",
    ),
    pytest.param(
        "openai",
        chat(f"[1] says that tea is old ({C}). Oil [2].\n\nSources:\n[1] {A}\n[2] {B}"),
        [A, B, C],
        "[1] says that tea is old [3]. Oil [2].\n\nSources:\n[1] [1]\n[2] [2]",
        {},
        id="a sentence that begins with a mark",
    ),
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
