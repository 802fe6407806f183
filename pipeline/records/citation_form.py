"""The one citation form: every provider's marks become `[n]`, numbered by first appearance.

Source: pipeline/contracts/records.md#answer.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.citations.addresses import Link, is_grounding_redirect, links_of, shown_url
from pipeline.citations.marks import CID, Mark, find_marks, raised_numbers
from pipeline.citations.placing import missing_fence, place_marks
from pipeline.core.errors import InputError, ProviderError
from pipeline.core.files import staged_file
from pipeline.core.schema import PROVIDERS, Answer, Occurrence, StoredAnswer
from pipeline.providers import read_body
from pipeline.providers.answer import build_answer, link_occurrences, reference_occurrences
from pipeline.providers.http.request import load_body
from pipeline.records.schema import line_without_place

CITATIONS = "citations.jsonl"
RESEARCH_RUN = "pipeline"


_INTERVAL = re.compile(r"\[\d+, ?\d+\]", re.ASCII)
_NATIVE = re.compile(r"\[\d{1,3}\]", re.ASCII)
_MARKS = re.compile(r"(?:\[\d+\])+", re.ASCII)
_UTM = re.compile(r"(?<=[?&])utm_[^&]*&?", re.IGNORECASE)
# What OpenAI's file search writes for a file of the account that asked: https://platform.openai.com/docs/assistants
_FILE_MARK = re.compile(r"【[^【】\n]{0,80}†[^【】\n]{0,200}】")
_BRACKETS = {"(": ")", "（": "）"}


class _Edit(NamedTuple):
    """Put `text` in place of the code points from `start` up to `end`."""

    start: int
    end: int
    text: str


class OneForm(NamedTuple):
    text: str
    without_place: tuple[int, ...]
    """The numbers of the citations to which the answer's own text does not refer: those of the last line."""


def to_one_form(answer: Answer) -> OneForm:
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
    links = [link for link in links_of(text, answer.citations) if link.start not in inside]
    beyond = _numbers_beyond(text, placed, links, len(numbers))
    edits = _applicable(
        [
            *(
                _Edit(start, end, _marks(found) + beyond.pop(start, _Edit(start, end, "")).text)
                for (start, end), found in spans.items()
            ),
            *beyond.values(),
            *_claim_edits(text, placed, numbers, links),
            *(_link_edit(text, link, numbers) for link in links),
            *(_widened(text, *match.span()) for match in _FILE_MARK.finditer(text) if match.start() not in inside),
        ]
    )
    given = "".join(edit.text for edit in edits)
    homeless = tuple(number for number in numbers.values() if f"[{number}]" not in given)
    text, line = _splice(text, edits), line_without_place(homeless)
    own = text.rstrip() + missing_fence(text.rstrip()) if line else text
    return OneForm("\n\n".join(part for part in (own, line) if part), homeless)


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
    put = place_marks(text, {end: _marks(found) for end, found in ends.items()})
    return [_Edit(each.at, each.at, each.text) for each in put if each.at is not None]


def _link_edit(text: str, link: Link, numbers: dict[str, int]) -> _Edit:
    if link.kind == "definition":  # nothing shows it
        return _Edit(len(text[: link.start].rstrip()), link.end, "")
    mark = f"[{numbers[link.url]}]" if link.url in numbers else ""
    # A number in a label would read as a source of the list.
    label = _NATIVE.sub(lambda found: f"({found[0][1:-1]})", link.label.strip())
    shown = mark or _visible_url(link.url) if label in ("", link.url) else f"{label} {mark}" if mark else label
    return _Edit(link.start, link.end, shown) if shown else _widened(text, link.start, link.end)


def _numbers_beyond(text: str, placed: Iterable[Occurrence], links: Iterable[Link], count: int) -> dict[int, _Edit]:
    """By its start, each mark with numbers that stand for no source and would read as some of the `count` of the list.

    They get numbers beyond the list: a source that nobody can look up is what the jury has to see.
    """
    known: dict[int, set[str]] = {}
    for each in placed:
        if each.placement == "marker" and each.start is not None:
            known.setdefault(each.start, set()).add(each.number)
    labels = {position for link in links for position in range(link.start, link.end)}
    lost: dict[Mark, list[int]] = {}
    for mark in find_marks(text, raised_numbers(text)):
        numbers = [int(each) for each in mark.ids if each.isdecimal()]
        is_read = mark.start in labels or "" in known.get(mark.start, ())
        if not is_read and not _FILE_MARK.fullmatch(text, mark.start, mark.end):
            lost[mark] = [number for number in numbers if str(number) not in known.get(mark.start, ())]
    # Where nothing else is a mark, `[1, 2]` is an interval more often than two sources.
    if not any(map(any, known.values())) and all(_INTERVAL.fullmatch(text, mark.start, mark.end) for mark in lost):
        return {}
    found = dict.fromkeys(number for numbers in lost.values() for number in numbers)
    clashing = [number for number in found if number <= count]
    given = {number: index for index, number in enumerate(clashing, start=max(count, *found, 0) + 1)}
    return {
        mark.start: _Edit(mark.start, mark.end, "".join(f"[{given.get(number, number)}]" for number in numbers))
        for mark, numbers in lost.items()
        if (mark.start in known and numbers) or any(number in given for number in numbers)
    }


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
    address, sign, fragment = url.partition("#")
    kept = _UTM.sub("", address)
    return shown_url((address if kept == address else kept.rstrip("?&")) + sign + fragment)


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
    """The text after these edits; of the same marks twice in a row one is left, but in an entry of a list."""
    parts: list[str] = []
    position = 0
    last, is_entry = "", False
    for edit in edits:
        between = text[position : edit.start]
        if is_entry or not (edit.text == last and _MARKS.fullmatch(last) and not between.strip(" \t")):
            parts += [between, edit.text]
        last, is_entry = edit.text, not text[text.rfind("\n", 0, edit.start) + 1 : edit.start].strip()
        position = max(position, edit.end)
    return "".join([*parts, text[position:]])


def report_marks(text: str) -> list[Mark]:
    """The marks of a research run's report: those of ids such as `(C001)` where there is one, else those of numbers."""
    marks = [mark for mark in find_marks(text) if mark.ids and text[mark.start] != "\\"]
    return [mark for mark in marks if CID.fullmatch(mark.ids[0])] or [mark for mark in marks if mark.ids[0].isdecimal()]


def reference_numbers(mark: Mark) -> tuple[int, ...]:
    """The references that a mark names; `C001` is 1."""
    return tuple(int(each.removeprefix("C")) for each in mark.ids)


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
        for mark in report_marks(stored.answer_text)
        if all(1 <= each <= count for each in reference_numbers(mark))
        for number in reference_numbers(mark)
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
    retrieved: tuple[str, ...] = ()
    if stored.model_name == RESEARCH_RUN:
        return answer_from_report(stored)
    if stored.model_name in PROVIDERS:
        try:
            answer = read_body(stored.model_name, load_body(stored.answer_raw_json) if body is None else body)
        except ProviderError:
            return _answer_from_columns(stored)
        if answer.text == stored.answer_text and answer.citations == stored.citations:
            return answer
        retrieved = answer.retrieved
    return _answer_from_columns(stored, retrieved)


def _answer_from_columns(stored: StoredAnswer, retrieved: tuple[str, ...] = ()) -> Answer:
    """The answer that the columns hold: `[n]` is the n-th citation, unless the text has a list of its own."""
    text, urls = stored.answer_text, stored.citations
    numbers = dict(enumerate(urls, start=1))
    occurrences = [*link_occurrences(text, links_of(text, urls), ()), *reference_occurrences(text, numbers, {})]
    is_attached = any(url not in text for url in urls)
    results = stored.search_results
    read = build_answer(text, urls, occurrences, retrieved=retrieved, search_results=results, is_attached=is_attached)
    known = tuple(each for each in read.occurrences if each.url in urls)
    return read.model_copy(update={"citations": urls, "domains": stored.domains, "occurrences": known})


def resolved_earlier(path: Path) -> dict[str, str]:
    """The targets in a `citations.jsonl` by the redirect's URL."""
    return _by_url(path, "resolved_url")


def longer_readings(path: Path) -> dict[str, str]:
    """By their URL the citations behind which letters stand that may be prose: the URLs with them."""
    return _by_url(path, "longer_url")


def _by_url(path: Path, field: str) -> dict[str, str]:
    """A field of the lines that have it; torn lines are passed over, for the file is derived."""
    if not path.is_file():
        return {}
    with open(path, "rb") as file:
        with_it = (raw for raw in file if f'"{field}"'.encode() in raw)  # most lines have none, and need no reading
        lines = [line for line in map(_read_citation, with_it) if line and line.get(field)]
    return {line["url"]: line[field] for line in lines}


def read_citations(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a `citations.jsonl`, one at a time; an InputError for one that is none."""
    with open(path, "rb") as file:
        for number, raw in enumerate(file, start=1):
            line = _read_citation(raw)
            if line is None:
                advice = "Remove the file; it is derived from the answers."
                raise InputError(f"Line {number} of {str(path)!r} is no citation. {advice}")
            yield line


def _read_citation(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict):
        return None
    texts = (line.get("url"), line.get("resolved_url", ""), line.get("longer_url", ""))
    return line if all(isinstance(text, str) for text in texts) else None


def write_resolved(path: Path, targets: Mapping[str, str]) -> None:
    """Write the targets beside their redirects' URLs; a line that has one already keeps it."""
    with staged_file(path) as file:
        for line in read_citations(path):
            target = "" if line.get("resolved_url") else targets.get(line["url"], "")
            line = {**line, "resolved_url": target} if target else line
            file.write((json.dumps(line, ensure_ascii=False) + "\n").encode())
