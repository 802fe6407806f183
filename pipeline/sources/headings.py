"""The headings of a page, and which of them a place of its text stands under."""

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple


class Heading(NamedTuple):
    """A heading of a page, with its place in the stored text."""

    start: int
    """The code point at which it stands; in a PDF perhaps that at which its page begins."""
    level: int
    """1 for the highest; what stands below it reaches to the next one of its level or a higher one."""
    text: str
    """Its words in one line."""


def headings_above(headings: tuple[Heading, ...], place: int) -> tuple[str, ...]:
    """The headings above a place of the text, the highest first; empty where none are known."""
    starts, paths = _paths(headings)
    at = bisect_right(starts, place)
    return paths[at - 1] if at else ()


def headings_of(headings: tuple[Heading, ...], start: int, end: int) -> tuple[str, ...]:
    """The headings above this stretch of the text and within it, in order."""
    first, last = (bisect_right(_paths(headings)[0], place) for place in (start, end - 1))
    return (*headings_above(headings, start), *(heading.text for heading in headings[first:last]))


class Section(NamedTuple):
    """A stretch of a page below one of its headings, all lower ones included."""

    heading: str
    """The heading; the page's title for the whole page."""
    start: int
    """First code point."""
    end: int
    """The code point after the last one."""


def sections_above(headings: tuple[Heading, ...], place: int, title: str, length: int) -> list[Section]:
    """What this place of a text of this length is a part of: the whole page first, then ever smaller sections."""
    found = [Section(title, 0, length)]
    starts, _ = _paths(headings)
    above: list[int] = []
    for at in range(bisect_right(starts, place)):
        above = [*(each for each in above if headings[each].level < headings[at].level), at]
    for at in above:
        own = headings[at]
        end = next((each.start for each in headings[at + 1 :] if each.level <= own.level), length)
        found.append(Section(own.text, own.start, end))
    return found


@lru_cache(maxsize=64)
def _paths(headings: tuple[Heading, ...]) -> tuple[Sequence[int], Sequence[tuple[str, ...]]]:
    """Where the headings stand, and what is above the text behind each of them, the highest first."""
    paths = []
    above: list[Heading] = []
    for heading in headings:
        above = [*(each for each in above if each.level < heading.level), heading]
        paths.append(tuple(each.text for each in above))
    return [heading.start for heading in headings], paths
