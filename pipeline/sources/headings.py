"""The headings of a page with their place in its stored text: what each stretch of it is about, by its own words."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, islice
from typing import Any, NamedTuple


class Heading(NamedTuple):
    start: int  # The code point at which it stands; in a PDF perhaps that at which its page begins
    level: int  # 1 for the highest; what stands below it reaches to the next one of its level or a higher one
    text: str


def headings_above(headings: tuple[Heading, ...], place: int) -> tuple[str, ...]:
    starts, paths = _paths(headings)
    return paths[bisect_right(starts, place)]


def headings_of(headings: tuple[Heading, ...], start: int, end: int) -> tuple[str, ...]:
    first, last = (bisect_right(_paths(headings)[0], place) for place in (start, end - 1))
    return (*headings_above(headings, start), *(heading.text for heading in headings[first:last]))


@lru_cache(maxsize=64)
def _paths(headings: tuple[Heading, ...]) -> tuple[Sequence[int], Sequence[tuple[str, ...]]]:
    paths: list[tuple[str, ...]] = [()]
    above: list[Heading] = []
    for heading in headings:
        above = [*(each for each in above if each.level < heading.level), heading]
        paths.append(tuple(each.text for each in above))
    return [heading.start for heading in headings], paths


LEVELS = {f"h{level}": level for level in range(1, 7)}
_NOT_ITS_OWN = ("nav", "footer", "aside", "form", "dialog", "menu")
_SILENT = ("script", "style", "template", "svg", "math", "head", "noscript", *_NOT_ITS_OWN)
_ANCHOR = 40  # Letters in a row that hardly stand twice on a page
_MOST = 3_000
_RUN = re.compile(r"[^\W_]+")
_NUMBER = re.compile(
    r"^(?:(?:chapter|appendix|section|kapitel|anhang|abschnitt|第)\s*)?[0-9A-Z]{1,3}(?:\.[0-9]+)*[.:章節节]?\s+", re.I
)


class NamedHeading(NamedTuple):
    level: int
    text: str
    page: int | None = None  # Index of the page of a PDF that it is on; None for other documents
    below: str = ""


def html_headings(tree: Any) -> list[NamedHeading]:
    """The headings of a page's tree in order, without those of menus and the like."""
    from lxml.etree import iterwalk

    found: list[tuple[NamedHeading, list[str]]] = []  # each with what is written below it
    written: list[str] = []
    walk = iterwalk(tree, events=("start", "end"))
    for event, element in walk:
        tag = element.tag if isinstance(element.tag, str) else ""
        if event == "end":
            written.append(element.tail or "")
        elif not tag or tag in _SILENT:
            walk.skip_subtree()
        elif tag in LEVELS:
            words = _one_line(element.text_content())
            if words and not any(above.tag in _NOT_ITS_OWN for above in element.iterancestors()):
                written = []
                found.append((NamedHeading(LEVELS[tag], words), written))
            walk.skip_subtree()
        else:
            written.append(element.text or "")
    return [heading._replace(below=_letters("".join(below))[:1_200]) for heading, below in found[:_MOST]]


def placed_in_text(headings: Sequence[NamedHeading], text: str) -> tuple[Heading, ...]:
    """The headings in order, each where it stands in the text, or else where what is below it begins there.

    Finding the main text may leave headings out; one of whose section nothing is left is left out too.
    """
    if not headings:
        return ()
    letters = _letters(text)
    runs = [run.span() for run in _RUN.finditer(text)]
    before = list(accumulate((end - start for start, end in runs), initial=0))
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
            run = bisect_right(before, at) - 1
            place = runs[run][0] + at - before[run]
            found += [Heading(place, each.level, each.text) for each in (*above, heading)]
            last = at
        empty = [] if heading.below else [*empty, heading]
    return tuple(found)


def _letters(text: str) -> str:
    letters = "".join(_RUN.findall(text))
    folded = letters.casefold()
    # Folding the case of a few letters makes two of them.
    return folded if len(folded) == len(letters) else "".join(letter.casefold()[:1] for letter in letters)


def placed_on_pages(headings: Iterable[NamedHeading], text: str, page_starts: Sequence[int]) -> tuple[Heading, ...]:
    """The bookmarks of a PDF, each at the line of its page that has its words, else where its page begins."""
    found: list[Heading] = []
    last = 0
    for heading in headings:
        if heading.page is None or not 0 <= heading.page < len(page_starts):
            continue
        begin = max(last, page_starts[heading.page])
        end = page_starts[heading.page + 1] if heading.page + 1 < len(page_starts) else len(text)
        words, last, at = _bare(heading.text), begin, begin
        for line in text[begin:end].split("\n") if words else ():
            if _bare(line).startswith(words):
                last = at
                break
            at += len(line) + 1
        found.append(Heading(last, heading.level, heading.text))
    return tuple(found[:_MOST])


def markdown_headings(text: str) -> tuple[Heading, ...]:
    """The lines of a plain text that Markdown takes for headings."""
    code = [block.span() for block in re.finditer(r"^(```|~~~).*?^\1", text, flags=re.MULTILINE | re.DOTALL)]
    found = (
        Heading(line.start(), len(line[1]), _one_line(line[2]))
        for line in re.finditer(r"^(#{1,6})\s+(\S.{0,200}?)\s*#*$", text, flags=re.MULTILINE)
        if not any(start <= line.start() < end for start, end in code)
    )
    return tuple(islice(found, _MOST))


def _bare(text: str) -> str:
    return _NUMBER.sub("", _one_line(text)).casefold()


def _one_line(text: str) -> str:
    """The words in one line, without the sign of a link to the heading itself."""
    return re.sub(r"[\s¶#\u00a7🔗]+$", "", " ".join(text.split()))[:200]
