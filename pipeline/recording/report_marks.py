"""A research report read as an answer: its marks `(C001, C002)` or `[1, 2]` are occurrences of its references."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from pipeline.schema import Answer, Occurrence, StoredAnswer

# The full-width forms are there for reports that people have edited.
ID_MARK = re.compile(r"[(（](C[0-9]{3}(?:[,，、] ?C[0-9]{3}){0,998})[)）]", re.ASCII)
NUMBER_MARK = re.compile(r"(?<!\\)\[([0-9]{1,3}(?:, ?[0-9]{1,3}){0,998})\](?!\()", re.ASCII)
NUMBER = re.compile(r"[0-9]{1,3}", re.ASCII)


class Mark(NamedTuple):
    """One citation mark of a report: the code points from `start` up to `end`."""

    start: int
    end: int
    numbers: tuple[int, ...]
    """The references that it names, in its order; `C001` is 1."""


def read_marks(text: str) -> Iterator[Mark]:
    """Every citation mark in order of place: `(C001, C002)` where there is one of these, else `[1]` and `[1, 2]`."""
    pattern = ID_MARK if ID_MARK.search(text) else NUMBER_MARK
    for match in pattern.finditer(text):
        yield Mark(*match.span(), tuple(map(int, NUMBER.findall(match[1]))))


def answer_from_report(stored: StoredAnswer) -> Answer:
    """The answer of a research run: each id or number of a mark is the reference with this number.

    A mark of which some number is no reference's stays text, for the jury to see.
    """
    titles = reference_titles(stored.answer_raw_json)
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
        text=stored.answer_text,
        citations=stored.citations,
        domains=stored.domains,
        occurrences=(*placed, *unplaced),
    )


def reference_titles(report_json: str) -> dict[str, str]:
    """The titles of the references by URL, as `final/report.json` has them; empty where it cannot be read."""
    try:
        listed = json.loads(report_json)["reportJson"]["references"]
        return {str(each["url"]): str(each["title"]) for each in listed if each.get("title")}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
