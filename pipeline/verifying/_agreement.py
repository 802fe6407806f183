"""Whether a page's sentence says what a claim does, told from their words alone: only where it is plain to see.

It does where it has all words of the claim in the same order, and what it has besides stands apart: before it, after
it, or in an aside between commas, and qualifies nothing. One circumstance ("In 2021 ...") may be elsewhere, with its
preposition. Japanese is compared by phrases in any order, for particles say who does what.
"""

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

from pipeline.text.words import UNSPACED_RUN
from pipeline.verifying._particulars import is_figure
from pipeline.verifying._wording import Wording, decides, qualifies, without

MOST_WORDS = 160
"""Words of a sentence; a longer one is a list or a table, and no statement."""
_LEAST_WORDS = 3
_LONGEST_NAME = 8
_LONGEST_CIRCUMSTANCE = 8
_LEAST_UNSPACED = 0.5
"""Share of a sentence's words in scripts without spaces from which it is one of these."""


class Difference(NamedTuple):
    """A place where two sentences differ: from and to in the claim, from and to in the other."""

    start: int
    end: int
    begin: int
    stop: int


def differences(claim: Wording, other: Wording) -> list[Difference]:
    """Where the words of the two differ, in order."""
    same = SequenceMatcher(None, claim.words, other.words, autojunk=False)
    return [Difference(*places) for step, *places in same.get_opcodes() if step != "equal"]


def says(claim: Wording, other: Wording) -> bool:
    """Whether a page's sentence says all that a claim does."""
    if not _LEAST_WORDS <= len(claim.words) <= MOST_WORDS or len(other.words) > MOST_WORDS:
        return False
    if is_unspaced(claim):
        return "".join(claim.words) == "".join(other.words) or (
            _is_one_clause(claim) and _is_one_clause(other) and sorted(_phrases(claim)) == sorted(_phrases(other))
        )
    if any(tense in claim.bounds and tense not in other.bounds for tense in ("present", "past")) and (
        not {"present", "past"}.isdisjoint(other.bounds)
    ):
        return False
    if not {*claim.words} - {"by"} <= {*other.words}:
        return False
    return (
        _is_part(claim, other)
        or any(_is_part(*rest) for rest in _without_circumstance(claim, other))
        or any(_is_part(each, rest) for own, rest in _without_circumstance(claim, other, 0) for each in _turned(own))
        or any(_is_part(own, each) for rest, own in _without_circumstance(other, claim, 0) for each in _turned(rest))
        or any(_is_part(active, other) for active in _active(claim))
        or any(_is_part(claim, active) for active in _active(other))
    )


def _turned(fronted: Wording) -> Iterator[Wording]:
    """What a circumstance stood before, as it is, and as German has it without one: the verb behind the subject."""
    yield fronted
    if len(fronted.words) <= _LEAST_WORDS:
        return
    for end in range(2, min(_LONGEST_NAME, len(fronted.words)) + 1):
        order = (*range(1, end), 0, *range(end, len(fronted.words)))
        words, written = (tuple(each[at] for at in order) for each in (fronted.words, fronted.written))
        yield fronted._replace(words=words, written=written)


def _active(passive: Wording) -> Iterator[Wording]:
    """An English sentence in the passive as the active ones that it may be: `X was made by Y in Z` as `Y made X in Z`.

    Where the name behind `by` ends cannot be told, so there are several.
    """
    for place, word in enumerate(passive.words):
        if word != "by" or place < _LEAST_WORDS - 1 or place - 1 not in passive.links:
            continue
        for end in range(place + 2, min(place + _LONGEST_NAME, len(passive.words)) + 1):
            order = (*range(place + 1, end), place - 1, *range(place - 1), *range(end, len(passive.words)))
            words, written = (tuple(each[at] for at in order) for each in (passive.words, passive.written))
            yield Wording(words, written, frozenset({0, len(words)}), frozenset())


def _is_part(claim: Wording, other: Wording) -> bool:
    """Whether the other one has the words of the claim in the same order, and all else in it may be left out."""
    found = differences(claim, other)
    return all(each.start == each.end and may_be_left_out(each, claim, other) for each in found)


def may_be_left_out(difference: Difference, claim: Wording, other: Wording) -> bool:
    """Whether words of a page's sentence that a claim lacks change nothing of what the rest of it says."""
    left_out = other.words[difference.begin : difference.stop]
    if not (difference.begin in other.stops and difference.stop in other.stops):
        clause = min(stop for stop in other.stops if stop > difference.begin)
        if difference.end < len(claim.words) or difference.begin not in other.stops or clause > difference.stop:
            return False
        left_out = other.words[difference.begin : clause]
    if not difference.begin and not figures_in(left_out):  # Only a time may go before: "In the film, ..." is no aside.
        return False
    return not any(map(qualifies, left_out))


def _without_circumstance(claim: Wording, other: Wording, at: int | None = None) -> Iterator[tuple[Wording, Wording]]:
    """Both without the same circumstance, where the claim begins or ends with it and it stands elsewhere in the other.

    It has its preposition in both, which a name that changes its role has not.
    """
    size = len(claim.words)
    longest = min(_LONGEST_CIRCUMSTANCE, size - _LEAST_WORDS + 1)
    for start, end in (
        *((0, end) for end in range(1, longest + 1)),
        *((size - k, size) for k in range(1, longest + 1)),
    ):
        block = claim.words[start:end]
        if start != at and at is not None:
            continue
        if qualifies(block[0]) or not (decides(block[0]) or start in claim.links):
            continue
        for place in range(len(other.words) - len(block) + 1):
            is_it = other.words[place : place + len(block)] == block
            is_elsewhere = (place in other.stops) == (start > 0)
            if is_it and is_elsewhere and (decides(block[0]) or place in other.links):
                yield without(claim, start, end), without(other, place, place + len(block))


def is_unspaced(claim: Wording) -> bool:
    """Whether it is written without spaces."""
    return sum(UNSPACED_RUN.match(word) is not None for word in claim.words) >= _LEAST_UNSPACED * len(claim.words)


def _phrases(claim: Wording) -> list[tuple[str, ...]]:
    """The phrases of a Japanese sentence, each up to its particle; what `の` joins is one."""
    phrases: list[tuple[str, ...]] = []
    phrase: list[str] = []
    for place, word in enumerate(claim.words, start=1):
        phrase.append(word)
        is_particle = "\u3041" <= word[0] <= "\u3093" and word[-1] != "の"
        if is_particle or place == len(claim.words):
            phrases.append(tuple(phrase))
            phrase = []
    return phrases


def _is_one_clause(claim: Wording) -> bool:
    """Whether each particle is in a Japanese sentence once: then the order of its phrases tells nothing."""
    particles = [phrase[-1] for phrase in _phrases(claim)]
    return len(set(particles)) == len(particles) and claim.stops <= {0, len(claim.words)}


def shared_share(claim: Wording, other: Wording) -> float:
    """Share of the words of each of the two that the other one has, the smaller one."""
    shared = len({*claim.words} & {*other.words})
    return shared / max(1, len({*claim.words}), len({*other.words}))


def figures_in(words: tuple[str, ...]) -> list[str]:
    """The numbers and months among the words."""
    return [word for word in words if is_figure(word.removeprefix("-"))]
