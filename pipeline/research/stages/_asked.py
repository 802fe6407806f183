"""What a question asks, and how far a text answers it: by which of its words, and by what stands in the headings."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from pipeline.text.asking import SubjectWord, names_subject, subject_words
from pipeline.text.meaning import is_rare
from pipeline.text.words import UNSPACED_RUN, pairs

_LEAST_COMMON = 5
"""Letters at the beginning that two longer words must share."""
_SHORT_ENDINGS = frozenset(["", "s", "e", "n", "es", "en", "er", "ed"])
"""What a word of less than five letters may have more than another one that is the same: `bind` is not `bin`."""
_ENDINGS = 2
"""Letters of a word's end that need not be shared."""
_LONGEST_ENDING = 6
"""Letters of an asked word that another may lack: `verify` of `verification`, but not `Daten` of `Datensicherung`."""
GENERAL_WORTH, _NAME_WORTH, _SCOPE_WORTH = 0.2, 1.5, 0.4
"""What a general word, a name and a word that only says where weigh; another one weighs 1."""
_MOST_OF_A_DEED = 0.27
"""What a word for what is done weighs at most, however rare: who asks often takes another verb than who answers."""
_RARE, _LEAST_RARITY = 0.02, 0.2
"""Share of the pages up to which a word is rare, and what one weighs that every page has."""
_ANCHOR = 0.65
"""Share of the heaviest word's weight from which a word tells what is asked about."""
_MORE_THAN_HALF = 0.5
_COMPOUNDING = ("de", "nl", "sv", "da", "no", "nb")
"""Languages that write compounds in one word, whose parts texts often part again."""
_LEAST_PART = 4
_LEAST_NAMED = 0.5
"""Share of the weight of all names asked that a page must hold."""
_FROM_AROUND = 0.5
"""What a word counts that stands in the passage alone, neither in the statement nor in the headings above it."""


class AskedWord(NamedTuple):
    """One word of what is asked."""

    forms: frozenset[str]
    """The words of the texts that differ from it in their endings only, itself among them; pairs of unspaced signs."""
    weight: float
    """How much it tells of what is asked about."""
    phrase: int
    """Number of the phrase that it belongs to."""
    choice: int
    """Number of the choice that its phrase is one side of; its phrase's where it is none."""
    parts: tuple[frozenset[str], ...] = ()
    """Forms of its parts, all of which say the same together: of a compound, or the pairs of a word of signs."""
    name: bool = False
    """Whether it is a name that says what is asked about, not where, so that what lacks it can hardly be about that."""
    rare: bool = False
    """Whether it is a word that is rare in English, and tells something."""

    def is_in(self, words: frozenset[str]) -> bool:
        """Whether a text with these words has it."""
        if not self.forms.isdisjoint(words):
            return True
        return bool(self.parts) and not any(forms.isdisjoint(words) for forms in self.parts)


def asked_words(
    asked: str, language: str, vocabulary: Iterable[str], shares: Mapping[str, float] | None = None
) -> list[AskedWord]:
    """Each word that is asked, as texts with this vocabulary have it; of Japanese no particle or ending.

    `shares` are the shares of all pages that hold a word, not only of those that were found for the topic, where its
    own words are the frequent ones: a word that stands on every page says little of what is asked.
    """
    known = vocabulary if isinstance(vocabulary, frozenset) else frozenset(vocabulary)
    found: list[AskedWord] = []
    for word in subject_words(asked, language):
        weight = _worth(word) * rarity((shares or {}).get(word.text))
        weight = min(weight, _MOST_OF_A_DEED) if word.deed else weight
        if UNSPACED_RUN.fullmatch(word.text):
            parts = tuple(frozenset([pair]) for pair in pairs(word.text))
            if language != "zh" or all(pair in known for pair in pairs(word.text)):  # a pair may be no word at all
                found.append(AskedWord(frozenset(), weight, word.phrase, word.choice, parts))
        else:
            parts = _compound_parts(word.text, known) if language in _COMPOUNDING else ()
            name = names_subject(word, language)
            rare = not word.general and is_rare(word.text, language)
            found.append(AskedWord(_forms(word.text, known), weight, word.phrase, word.choice, parts, name, rare))
    return found


def _forms(word: str, vocabulary: Iterable[str]) -> frozenset[str]:
    """The words that differ from this one in their endings only, itself among them; not its own first part."""
    shortest = len(word) - _LONGEST_ENDING
    return frozenset(other for other in vocabulary if len(other) >= shortest and _same_stem(word, other)) | {word}


def _compound_parts(word: str, vocabulary: frozenset[str]) -> tuple[frozenset[str], ...]:
    """The forms of the two words that a compound is made of, the second as long as can be; empty for none."""
    for at in range(_LEAST_PART, len(word) - _LEAST_PART + 1):
        first = {each for each in (word[:at], word[:at].removesuffix("s")) if each in vocabulary}
        if first and word[at:] in vocabulary:
            return tuple(
                frozenset(other for other in vocabulary for part in parts if _is_inflected(part, other))
                for parts in (first, {word[at:]})
            )
    return ()


def _is_inflected(word: str, other: str) -> bool:
    """Whether the other word is this one with an ending."""
    return other.startswith(word) and len(other) - len(word) <= _ENDINGS


def _worth(word: SubjectWord) -> float:
    """How much the word tells by its kind."""
    if word.general:
        return GENERAL_WORTH
    return (_NAME_WORTH if word.name else 1.0) * (_SCOPE_WORTH if word.scope else 1.0)


def rarity(share: float | None) -> float:
    """What a word's weight is multiplied with where this share of all pages has it; 1 where nobody knows."""
    if share is None or share <= _RARE:
        return 1.0
    return max(_LEAST_RARITY, math.log(1 / share) / math.log(1 / _RARE))


def share_of(asked: Sequence[AskedWord], words: frozenset[str]) -> float:
    """The share of the asked words' weight that a text with these words has, from 0 to 1; 0 where nothing is asked."""
    return _credit(asked, {word: 1.0 for word in asked if word.is_in(words)})


def holds_names(asked: Sequence[AskedWord], words: frozenset[str]) -> bool:
    """Whether a page with these words holds half of the names that are asked, by weight; of a choice those of a side.

    Of the pages that words and meaning find for "How do I write an Ansible playbook?" none has Ansible where the
    documents do not treat it, and yet some of them are near.
    """
    names = [word for word in asked if word.name]
    return not names or share_of(names, words) >= _LEAST_NAMED


def side_of(asked: Sequence[AskedWord], words: frozenset[str]) -> int:
    """Number of the phrase of a choice that a text with these words speaks of most; -1 where nothing is to choose."""
    held = {word: 1.0 for word in asked if word.is_in(words)}
    return max(sorted(sides_of(asked)), key=lambda phrase: _phrase_share(asked, held, phrase), default=-1)


def sides_of(asked: Sequence[AskedWord]) -> set[int]:
    """The numbers of the phrases that are sides of a choice."""
    phrases: dict[int, set[int]] = {}
    for word in asked:
        phrases.setdefault(word.choice, set()).add(word.phrase)
    return {phrase for own in phrases.values() if len(own) > 1 for phrase in own}


def anchors(asked: Sequence[AskedWord]) -> list[AskedWord]:
    """The words that tell what is asked about."""
    heaviest = max((word.weight for word in asked), default=0.0)
    return [word for word in asked if word.weight >= _ANCHOR * heaviest]


def relevance(asked: Sequence[AskedWord], near: frozenset[str], around: frozenset[str]) -> float:
    """How far a statement answers what is asked, from 0 to 1.

    `near` are its words with those of the headings above it, `around` those of its passage, which count half. It is 0
    unless a word that tells what is asked about is near, with more than half of its phrase; of a question with a choice
    one of its sides.
    """
    held = {word: _FROM_AROUND for word in asked if word.is_in(around)}
    held |= {word: 1.0 for word in asked if word.is_in(near)}
    sides = sides_of(asked)
    phrases = {word.phrase for word in anchors(asked) if held.get(word) == 1}
    phrases = phrases & sides if sides else phrases
    if not any(_phrase_share(asked, held, phrase) > _MORE_THAN_HALF for phrase in phrases):
        return 0.0
    return _credit(asked, held)


def _phrase_share(asked: Iterable[AskedWord], held: Mapping[AskedWord, float], phrase: int) -> float:
    """The share of a phrase that is held, from 0 to 1."""
    own = [word for word in asked if word.phrase == phrase]
    return sum(word.weight * held.get(word, 0.0) for word in own) / sum(word.weight for word in own)


def _credit(asked: Iterable[AskedWord], held: Mapping[AskedWord, float]) -> float:
    """The share of what is asked that is held, from 0 to 1; of a choice that of its best side."""
    sides: dict[int, dict[int, tuple[float, float]]] = {}
    for word in asked:
        got, of = sides.setdefault(word.choice, {}).get(word.phrase, (0.0, 0.0))
        sides[word.choice][word.phrase] = (got + word.weight * held.get(word, 0.0), of + word.weight)
    best = [max(choice.values(), key=lambda side: side[0] / side[1]) for choice in sides.values()]
    total = sum(of for _, of in best)
    return round(sum(got for got, _ in best) / total, 4) if total else 0.0


def _same_stem(first: str, second: str) -> bool:
    """Whether two words of letters differ in their endings only: `Paket` and `Paketen`, `verify` and `verification`.

    Words that begin alike for five letters and for all but two of the shorter one count as the same; in shorter ones,
    one must be the other one with a usual ending. Words of scripts without blanks are the same where they are equal.
    """
    if first[:2] != second[:2]:
        return False
    shorter, longer = sorted((first, second), key=len)
    if not (shorter.isalpha() and longer.isalpha()) or UNSPACED_RUN.match(shorter):
        return first == second
    if len(shorter) < _LEAST_COMMON:
        return len(shorter) > _ENDINGS and longer.startswith(shorter) and longer[len(shorter) :] in _SHORT_ENDINGS
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(shorter, longer, strict=False)))
    return common >= max(_LEAST_COMMON, len(shorter) - _ENDINGS)
