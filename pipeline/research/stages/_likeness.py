"""Whether two statements say the same, in the same or in other words."""

from typing import NamedTuple

from pipeline.text.asking import stem
from pipeline.text.words import content_words, numbers_in

_SAME = 0.7
"""Share of the words of the shorter one, those of the topic aside, from which it says nothing of its own."""
_LEAST_OWN = 3
"""Words beside the topic's by which two statements are compared; with fewer, all words are."""


class Said(NamedTuple):
    """What a statement says, as it is compared."""

    words: frozenset[str]
    """The stems of its content words, numbers left out."""
    numbers: frozenset[str]


def said(text: str, language: str) -> Said:
    """The statement as it is compared."""
    numbers = frozenset(numbers_in(text))
    return Said(frozenset(map(stem, content_words(text, language))) - numbers, numbers)


def says_again(one: Said, other: Said, topic: frozenset[str] = frozenset()) -> bool:
    """Whether one of the two says nothing that the other does not: no number, and hardly a word.

    Words of the topic, by their stems, count for nothing where enough others are left, for all statements have them.
    """
    first, second = one.words - topic, other.words - topic
    if min(len(first), len(second)) < _LEAST_OWN:
        first, second = one.words, other.words
    shorter, longer = sorted((Said(first, one.numbers), Said(second, other.numbers)), key=lambda each: len(each.words))
    if not shorter.words or not shorter.numbers <= longer.numbers:
        return False
    return len(shorter.words & longer.words) >= _SAME * len(shorter.words)


def stems_of(text: str, language: str) -> frozenset[str]:
    """The stems of the content words of a topic."""
    return frozenset(map(stem, content_words(text, language)))
