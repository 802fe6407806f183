"""The one citation form: every provider's marks become `[n]`, numbered by first appearance (design 4.3)."""

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from pipeline.links import Link, find_links
from pipeline.schema import Answer, Occurrence
from pipeline.urls import is_grounding_redirect


class Edit(NamedTuple):
    """Put `text` in place of the code points from `start` up to `end`."""

    start: int
    end: int
    text: str


def to_one_form(answer: Answer) -> str:
    """The answer's text with its citations as `[n]`, n = position in `answer.citations`, counted from 1.

    A provider's own marker gives way to `[n]`; a sentence that a source is for is followed by it; a link keeps its
    words. Citations that have no place in the text stand in a last line. Links that are not citations become plain
    text without `utm_*`; a provider's redirect host disappears.
    """
    numbers = {url: index for index, url in enumerate(answer.citations, start=1)}
    placed = [occurrence for occurrence in answer.occurrences if occurrence.placement != "none"]
    links = find_links(answer.text)
    edits = [
        *marker_edits(placed, numbers),
        *claim_edits(answer.text, placed, numbers, links),
        *link_edits(links, placed, numbers),
    ]
    text = apply_edits(answer.text, edits)
    shown = {occurrence.url for occurrence in placed} | {link.url for link in links}
    homeless = [f"[{number}]" for url, number in numbers.items() if url not in shown]
    return "\n\n".join(part for part in (text, " ".join(homeless)) if part)


def marker_edits(placed: Iterable[Occurrence], numbers: dict[str, int]) -> list[Edit]:
    """One edit for each marker span; sources that share a span stand side by side in order of number."""
    spans: dict[tuple[int, int], set[int]] = {}
    for occurrence in placed:
        if occurrence.placement == "marker" and occurrence.start is not None and occurrence.end is not None:
            spans.setdefault((occurrence.start, occurrence.end), set()).add(numbers[occurrence.url])
    return [Edit(start, end, marks(found)) for (start, end), found in spans.items()]


def claim_edits(text: str, placed: Iterable[Occurrence], numbers: dict[str, int], links: Iterable[Link]) -> list[Edit]:
    """One insertion behind each claim, before the white space that ends it; a claim that is a link is left out."""
    link_spans = {(link.start, link.end) for link in links}
    ends: dict[int, set[int]] = {}
    for occurrence in placed:
        if (
            occurrence.placement != "claim"
            or occurrence.end is None
            or (occurrence.start, occurrence.end) in link_spans
        ):
            continue
        end = len(text[: occurrence.end].rstrip())
        ends.setdefault(end, set()).add(numbers[occurrence.url])
    return [Edit(end, end, marks(found)) for end, found in ends.items()]


def link_edits(links: Iterable[Link], placed: Iterable[Occurrence], numbers: dict[str, int]) -> list[Edit]:
    """One edit for each link outside a marker: its words and, where it is cited, its number."""
    markers = [
        (occurrence.start, occurrence.end)
        for occurrence in placed
        if occurrence.placement == "marker" and occurrence.start is not None and occurrence.end is not None
    ]
    inside = set().union(*(range(start, end) for start, end in markers)) if markers else set()
    return [Edit(link.start, link.end, link_text(link, numbers)) for link in links if link.start not in inside]


def link_text(link: Link, numbers: dict[str, int]) -> str:
    """What a reader sees in place of a link: label and number, or the bare address where it is not cited."""
    mark = f"[{numbers[link.url]}]" if link.url in numbers else ""
    label = link.label.strip()
    if not label or label == link.url:
        return mark or visible_url(link.url)
    return f"{label} {mark}" if mark else label


def visible_url(url: str) -> str:
    """The URL without `utm_*`; empty for a provider's redirect, which names the provider and says nothing else."""
    if is_grounding_redirect(url):
        return ""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    if "utm_" not in parts.query:
        return url
    kept = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if not is_tracking(name)]
    return parts._replace(query=urlencode(kept)).geturl()


def is_tracking(name: str) -> bool:
    """Whether a query parameter only tells who sent the reader."""
    return name.lower().startswith("utm_")


def marks(numbers: Iterable[int]) -> str:
    """`[1][3]` for 3 and 1."""
    return "".join(f"[{number}]" for number in sorted(numbers))


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text after all edits; of two that overlap the one that begins first holds, insertions always do."""
    parts: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start < position:
            if edit.start == edit.end:
                parts.append(edit.text)
            continue
        parts += [text[position : edit.start], edit.text]
        position = edit.end
    parts.append(text[position:])
    return "".join(parts)
