"""The one citation form: every provider's marks become `[n]`, numbered by first appearance.

Source: pipeline/contracts/records.md#answer.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from pipeline.citations.addresses import Link, find_links, is_grounding_redirect
from pipeline.citations.placing import place_marks
from pipeline.core.errors import ProviderError
from pipeline.core.schema import PROVIDERS, Answer, Occurrence, StoredAnswer
from pipeline.providers import read_body
from pipeline.providers.http.request import load_body

RESEARCH_RUN = "pipeline"
# The full-width forms are there for reports that people have edited.
_ID_MARK = re.compile(r"[(（](C[0-9]{3}(?:[,，、] ?C[0-9]{3}){0,998})[)）]", re.ASCII)
_NUMBER_MARK = re.compile(r"(?<!\\)\[([0-9]{1,3}(?:, ?[0-9]{1,3}){0,998})\](?!\()", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,3}", re.ASCII)


_NATIVE = re.compile(r"\[(\d{1,6})\]", re.ASCII)
_MARKS = re.compile(r"(?:\[\d+\])+", re.ASCII)
# What OpenAI's file search writes for a file of the account that asked: https://platform.openai.com/docs/assistants
_FILE_MARK = re.compile(r"【[^【】\n]{0,80}†[^【】\n]{0,200}】")
_BRACKETS = {"(": ")", "（": "）"}


class _Edit(NamedTuple):
    """Put `text` in place of the code points from `start` up to `end`."""

    start: int
    end: int
    text: str


def to_one_form(answer: Answer) -> str:
    """The answer's text with its citations as `[n]`, n = position in `answer.citations`, counted from 1.

    A provider's own marker gives way to `[n]`; a sentence that a source is for is followed by it; a link keeps its
    words. Citations that have no place in the text stand in a last line. Links that are not citations become plain
    text without `utm_*`; a provider's redirect host disappears, and so do marks of files that nobody can open.
    """
    text = answer.text
    numbers = {url: index for index, url in enumerate(answer.citations, start=1)}
    placed = [occurrence for occurrence in answer.occurrences if occurrence.placement != "none"]
    spans = _marker_spans(placed, numbers)
    inside = {position for start, end in spans for position in range(start, end)}
    links = [link for link in find_links(text) if link.start not in inside]
    edits = _applicable(
        [
            *(_Edit(start, end, _marks(found)) for (start, end), found in spans.items()),
            *_claim_edits(text, placed, numbers, links),
            *(_link_edit(text, link, numbers) for link in links),
            *_stray_edits(text, spans, links, len(numbers)),
            *(_widened(text, *match.span()) for match in _FILE_MARK.finditer(text) if match.start() not in inside),
        ]
    )
    given = "".join(edit.text for edit in edits)
    homeless = [mark for mark in (f"[{number}]" for number in numbers.values()) if mark not in given]
    text = _splice(text, edits)
    return "\n\n".join(part for part in (text.rstrip() if homeless else text, " ".join(homeless)) if part)


def _marker_spans(placed: Iterable[Occurrence], numbers: dict[str, int]) -> dict[tuple[int, int], set[int]]:
    spans: dict[tuple[int, int], set[int]] = {}
    for occurrence in placed:
        if occurrence.placement == "marker" and occurrence.start is not None and occurrence.end is not None:
            spans.setdefault((occurrence.start, occurrence.end), set()).add(numbers[occurrence.url])
    return spans


def _claim_edits(
    text: str, placed: Iterable[Occurrence], numbers: dict[str, int], links: Iterable[Link]
) -> list[_Edit]:
    """One insertion behind each claim, where Markdown lets it stand; a claim that is a link is left out."""
    link_spans = {(link.start, link.end) for link in links}
    ends: dict[int, set[int]] = {}
    for occurrence in placed:
        start, end = occurrence.start, occurrence.end
        if occurrence.placement != "claim" or end is None or (start, end) in link_spans:
            continue
        while end and text[end - 1].isspace():
            end -= 1
        ends.setdefault(end, set()).add(numbers[occurrence.url])
    placed = place_marks(text, {end: _marks(found) for end, found in ends.items()})
    return [_Edit(each.at, each.at, each.text) for each in placed if each.at is not None]


def _link_edit(text: str, link: Link, numbers: dict[str, int]) -> _Edit:
    mark = f"[{numbers[link.url]}]" if link.url in numbers else ""
    label = link.label.strip()
    shown = mark or _visible_url(link.url) if label in ("", link.url) else f"{label} {mark}" if mark else label
    return _Edit(link.start, link.end, shown) if shown else _widened(text, link.start, link.end)


def _stray_edits(text: str, spans: Iterable[tuple[int, int]], links: Iterable[Link], count: int) -> list[_Edit]:
    """One edit for each native `[n]` that stands for no source and would read as one of the `count` of the list.

    It gets a number beyond the list: a source that nobody can look up is what the jury has to see.
    """
    taken = set(spans)
    if not any(_NATIVE.fullmatch(text, start, end) for start, end in taken):
        return []
    labels = {position for link in links for position in range(link.start, link.end)}
    strays = [match for match in _NATIVE.finditer(text) if match.span() not in taken and match.start() not in labels]
    found = dict.fromkeys(int(match[1]) for match in strays)
    clashing = [number for number in found if number <= count]
    given = {number: index for index, number in enumerate(clashing, start=max(count, *found) + 1)} if found else {}
    return [_Edit(*match.span(), f"[{given[int(match[1])]}]") for match in strays if int(match[1]) in given]


def _widened(text: str, start: int, end: int) -> _Edit:
    """The edit that drops this span with the brackets that hold nothing else and the blanks before it."""
    if start and _BRACKETS.get(text[start - 1]) == text[end : end + 1]:
        start, end = start - 1, end + 1
    while start and text[start - 1] in " \t":
        start -= 1
    return _Edit(start, end, "")


def _visible_url(url: str) -> str:
    """The URL without `utm_*`; empty for a provider's redirect, which names the provider and says nothing else."""
    if is_grounding_redirect(url):
        return ""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    if "utm_" not in parts.query:
        return url
    fields = parse_qsl(parts.query, keep_blank_values=True)
    kept = [(name, value) for name, value in fields if not name.lower().startswith("utm_")]
    return parts._replace(query=urlencode(kept)).geturl()


def _marks(numbers: Iterable[int]) -> str:
    return "".join(f"[{number}]" for number in sorted(numbers))


def _applicable(edits: Iterable[_Edit]) -> list[_Edit]:
    """The edits in order; of two that overlap the one that begins first holds, insertions always do."""
    chosen: list[_Edit] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start >= position or edit.start == edit.end:
            chosen.append(edit)
            position = max(position, edit.end)
    return chosen


def _splice(text: str, edits: Iterable[_Edit]) -> str:
    """The text after these edits; the same marks twice with nothing between them are put once."""
    parts: list[str] = []
    position = 0
    last = ""
    for edit in edits:
        between = text[position : edit.start]
        if not (edit.text == last and _MARKS.fullmatch(last) and not between.strip(" \t")):
            parts += [between, edit.text]
        last = edit.text
        position = max(position, edit.end)
    return "".join([*parts, text[position:]])


class Mark(NamedTuple):
    """One citation mark of a report: the code points from `start` up to `end`."""

    start: int
    end: int
    numbers: tuple[int, ...]
    """The references that it names, in its order; `C001` is 1."""


def read_marks(text: str) -> Iterator[Mark]:
    """Every citation mark in order of place: `(C001, C002)` where there is one of these, else `[1]` and `[1, 2]`."""
    pattern = _ID_MARK if _ID_MARK.search(text) else _NUMBER_MARK
    for match in pattern.finditer(text):
        yield Mark(*match.span(), tuple(map(int, _NUMBER.findall(match[1]))))


def answer_from_report(stored: StoredAnswer) -> Answer:
    """The answer of a research run; a mark with a number of no reference stays text, for the jury to see."""
    titles = _reference_titles(stored.answer_raw_json)
    count = len(stored.citations)
    placed = [
        Occurrence(
            url=stored.citations[number - 1],
            title=titles.get(stored.citations[number - 1], ""),
            start=mark.start,
            end=mark.end,
            placement="marker",
        )
        for mark in read_marks(stored.answer_text)
        if all(1 <= each <= count for each in mark.numbers)
        for number in mark.numbers
    ]
    cited = {occurrence.url for occurrence in placed}
    unplaced = (Occurrence(url=url, title=titles.get(url, "")) for url in stored.citations if url not in cited)
    return Answer(
        text=stored.answer_text, citations=stored.citations, domains=stored.domains, occurrences=(*placed, *unplaced)
    )


def _reference_titles(report_json: str) -> dict[str, str]:
    try:
        listed = json.loads(report_json)["reportJson"]["references"]
        return {str(each["url"]): str(each["title"]) for each in listed if each.get("title")}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def read_stored(stored: StoredAnswer, body: Any = None) -> Answer:
    """The answer as its stored payload tells it; from the CSV's own columns where no reader knows the payload.

    `body` is the payload's JSON, which is read here where it is None.
    """
    if stored.model_name == RESEARCH_RUN:
        return answer_from_report(stored)
    if stored.model_name in PROVIDERS:
        try:
            answer = read_body(stored.model_name, load_body(stored.answer_raw_json) if body is None else body)
        except ProviderError:
            return _answer_from_columns(stored)
        if answer.text == stored.answer_text and answer.citations == stored.citations:
            return answer
    return _answer_from_columns(stored)


def _answer_from_columns(stored: StoredAnswer) -> Answer:
    """The answer that the columns hold: a citation's places are its links in the text."""
    links = [
        Occurrence(url=link.url, start=link.start, end=link.end, placement="claim")
        for link in find_links(stored.answer_text)
        if link.url in stored.citations
    ]
    linked = {occurrence.url for occurrence in links}
    return Answer(
        text=stored.answer_text,
        citations=stored.citations,
        domains=stored.domains,
        occurrences=(*links, *(Occurrence(url=url) for url in stored.citations if url not in linked)),
        search_results=stored.search_results,
    )
