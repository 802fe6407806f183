"""How much of a text the words and numbers of the sentences of others cover.

It knows nothing of negation, of synonyms, or of what is true, and nothing across languages: an English page covers
little of a German claim.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from heapq import nsmallest
from typing import NamedTuple

from pipeline.text.words import content_words, numbers_in, without_marks

SENTENCES = 5
"""Best sentences that may share the words of a claim among them."""


class Coverage(NamedTuple):
    """How much of a text others cover, each from 0 to 1: the best sentence, the best five together, and its numbers.

    A text without numbers has all of them covered.
    """

    best: float
    best_five: float
    numbers: float


_NOTHING = Coverage(0.0, 0.0, 0.0)


def words_and_numbers(text: str, language: str) -> tuple[frozenset[str], frozenset[str]]:
    """The distinct content words that are no numbers, and the distinct numbers; citation marks count for nothing."""
    plain = without_marks(text)
    numbers = frozenset(numbers_in(plain))
    return frozenset(content_words(plain, language)) - numbers, numbers


class WordIndex:
    """Sentences by their words, so that a claim is compared with those only that share a word with it.

    A sentence is known by its place in the order in which they were given, counted from 0.
    """

    def __init__(self, sentences: Iterable[Set[str]]) -> None:
        """Index the words and numbers of each sentence."""
        self.places: dict[str, list[int]] = {}
        for place, words in enumerate(sentences):
            for word in words:
                self.places.setdefault(word, []).append(place)

    def shared(self, words: Iterable[str]) -> Counter[int]:
        """How many of the words each sentence has, where it has any."""
        shared = Counter[int]()
        for word in words:
            shared.update(self.places.get(word, ()))
        return shared

    def holds(self, place: int, word: str) -> bool:
        """Whether the sentence has the word."""
        places = self.places.get(word, [])
        at = bisect_left(places, place)
        return at < len(places) and places[at] == place

    def count(self, place: int, words: Iterable[str]) -> int:
        """How many of the words the sentence has."""
        return sum(self.holds(place, word) for word in words)

    def count_around(self, place: int, words: Iterable[str], size: int) -> int:
        """How many of the words so many sentences in a row have that this one is among, those that have most."""
        first = place - size + 1
        counts = [0] * size
        for word in words:
            places = self.places.get(word, [])
            at = bisect_left(places, first)
            starts = set[int]()
            while at < len(places) and places[at] < place + size:
                starts.update(range(max(first, places[at] - size + 1), min(place, places[at]) + 1))
                at += 1
            for start in starts:
                counts[start - first] += 1
        return max(counts)


class SentencePlace(NamedTuple):
    """A sentence: by its index among those that were asked, and its place there; both counted from 0."""

    source: int
    sentence: int


def _best_places(words: Iterable[str], indexes: Sequence[WordIndex], count: int = SENTENCES) -> list[SentencePlace]:
    """The sentences with most of the words, the best first, the earlier one where two have as many."""
    wanted = list(words)
    found = []
    for number, index in enumerate(indexes):
        shared = index.shared(wanted)
        best = nsmallest(count, shared, key=lambda sentence: (-shared[sentence], sentence))
        found += [(-shared[sentence], SentencePlace(number, sentence)) for sentence in best]
    return [place for _, place in nsmallest(count, found)]


def cover(
    words: Set[str], numbers: Set[str], indexes: Sequence[WordIndex], count: int = SENTENCES
) -> tuple[Coverage, list[SentencePlace]]:
    """How much of a text with these words and numbers is covered, and by which sentences, the best first.

    All is 0 where no sentence shares a word with it. Of a text of numbers alone these count as its words.
    """
    wanted = words or numbers
    found = _best_places(wanted, indexes, count)
    if not found:
        return _NOTHING, []
    held = [
        {word for word in wanted if indexes[place.source].holds(place.sentence, word)} for place in found[:SENTENCES]
    ]
    best = max(map(len, held)) / len(wanted)
    together = len(set[str]().union(*held)) / len(wanted)
    known = sum(any(number in index.places for index in indexes) for number in numbers)
    return Coverage(best, together, known / len(numbers) if numbers else 1.0), found
