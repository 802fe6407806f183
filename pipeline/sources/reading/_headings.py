"""The headings of a page with their place in its stored text: what each stretch of it is about, by its own words."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pipeline.sources.headings import Heading

_LEVELS = {f"h{level}": level for level in range(1, 7)}
_NOT_ITS_OWN = ("nav", "footer", "aside", "form", "dialog", "menu")
_SILENT = ("script", "style", "template", "svg", "math", "head", "noscript", *_NOT_ITS_OWN)
_LONGEST = 200
_ANCHOR = 40
"""Letters in a row that hardly stand twice on a page."""
_LONGEST_BELOW = 1_200
_MOST = 3_000
_PERMALINK = re.compile(r"[\s¶#\u00a7🔗]+$")
_NUMBER = re.compile(
    r"^(?:(?:chapter|appendix|section|kapitel|anhang|abschnitt|第)\s*)?[0-9A-Z]{1,3}(?:\.[0-9]+)*[.:章節节]?\s+", re.I
)
_MARKDOWN = re.compile(r"^(#{1,6})\s+(\S.{0,200}?)\s*#*$", re.MULTILINE)


class NamedHeading(NamedTuple):
    """A heading whose place in the text is not known yet."""

    level: int
    """1 for the highest."""
    text: str
    """Its words in one line."""
    page: int | None = None
    """Index of the page of a PDF that it is on; None for other documents."""
    below: str = ""
    """The first letters of what stands between it and the next one; empty for a PDF."""


def html_headings(tree: Any) -> list[NamedHeading]:
    """The headings of a page's tree in order, without those of menus and the like."""
    from lxml.etree import iterwalk

    found: list[tuple[int, NamedHeading]] = []
    stream: list[str] = []
    length = 0
    walk = iterwalk(tree, events=("start", "end"))
    for event, element in walk:
        tag = element.tag if isinstance(element.tag, str) else ""
        written = element.text if event == "start" else element.tail
        if event == "start" and (not tag or tag in _SILENT):
            walk.skip_subtree()
            continue
        if event == "start" and tag in _LEVELS:
            words = _one_line(element.text_content())
            if words and not any(above.tag in _NOT_ITS_OWN for above in element.iterancestors()):
                found.append((length, NamedHeading(_LEVELS[tag], words)))
            walk.skip_subtree()
            continue
        letters = _letters(written or "")
        stream.append(letters)
        length += len(letters)
    below = "".join(stream)
    ends = [place for place, _ in found[1:]] + [length]
    return [
        heading._replace(below=below[place : min(end, place + _LONGEST_BELOW)])
        for (place, heading), end in zip(found[:_MOST], ends, strict=False)
    ]


def placed_in_text(headings: Sequence[NamedHeading], text: str) -> tuple[Heading, ...]:
    """The headings in order, each where it stands in the text, or else where what is below it begins there.

    Finding the main text of a page may leave headings out; one of whose section nothing is left is left out too.
    """
    if not headings:
        return ()
    places = [place for place, sign in enumerate(text) if sign.isalnum()]
    letters = "".join(text[place] for place in places).casefold()
    if len(letters) != len(places):  # folding the case of a few letters makes two of them
        letters = "".join(text[place].casefold()[:1] for place in places)
    found: list[Heading] = []
    last = 0
    empty: list[NamedHeading] = []
    for heading in headings:
        own = _letters(heading.text)
        at = letters.find(own + heading.below[:_ANCHOR], last) if heading.below else -1
        for begin in range(0, len(heading.below), _ANCHOR) if at < 0 else ():
            anchor = heading.below[begin : begin + _ANCHOR]
            at = letters.find(anchor, last) if len(anchor) == _ANCHOR or not begin else -1
            if at >= 0:
                break
        if at >= 0:
            above = (each for each in empty if each.level < heading.level)
            found += [Heading(places[at], each.level, each.text) for each in (*above, heading)]
            last = at
        empty = [] if heading.below else [*empty, heading]
    return tuple(found)


def _letters(text: str) -> str:
    """The letters and digits of a text, each in one form."""
    return "".join(sign.casefold()[:1] for sign in text if sign.isalnum())


def placed_on_pages(headings: Iterable[NamedHeading], text: str, page_starts: Sequence[int]) -> tuple[Heading, ...]:
    """The bookmarks of a PDF, each at the line of its page that has its words, else where its page begins."""
    found: list[Heading] = []
    last = 0
    for heading in headings:
        if heading.page is None or not 0 <= heading.page < len(page_starts):
            continue
        begin = max(last, page_starts[heading.page])
        end = page_starts[heading.page + 1] if heading.page + 1 < len(page_starts) else len(text)
        last = next(_lines_with(_bare(heading.text), text, begin, end), begin)
        found.append(Heading(last, heading.level, heading.text))
    return tuple(found[:_MOST])


def markdown_headings(text: str) -> tuple[Heading, ...]:
    """The lines of a plain text that Markdown takes for headings."""
    found = (Heading(line.start(), len(line[1]), _one_line(line[2])) for line in _MARKDOWN.finditer(text))
    return tuple(found)[:_MOST]


def _lines_with(words: str, text: str, begin: int, end: int) -> Iterator[int]:
    """Where lines begin in this stretch of the text that are these words, or begin with them."""
    at = begin
    for line in text[begin:end].split("\n"):
        if words and _bare(line).startswith(words):
            yield at
        at += len(line) + 1


def _bare(text: str) -> str:
    """The heading without its number, in folded case."""
    return _NUMBER.sub("", _one_line(text)).casefold()


def _one_line(text: str) -> str:
    """The words in one line, without the sign of a link to the heading itself."""
    return _PERMALINK.sub("", " ".join(text.split()))[:_LONGEST]
