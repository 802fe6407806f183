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


@lru_cache(maxsize=64)
def _paths(headings: tuple[Heading, ...]) -> tuple[Sequence[int], Sequence[tuple[str, ...]]]:
    """Where the headings stand, and what is above the text behind each of them, the highest first."""
    paths = []
    above: list[Heading] = []
    for heading in headings:
        above = [*(each for each in above if each.level < heading.level), heading]
        paths.append(tuple(each.text for each in above))
    return [heading.start for heading in headings], paths
