"""How much a text says of what is asked: by its words, whatever their endings, weighed by how rare they are."""

import math
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

LEAST_COMMON = 5
"""Letters at the beginning that two longer words must share."""
ENDINGS = 2
"""Letters of a word's end that need not be shared."""
LEAST_WEIGHT = 0.2
"""What a word weighs that every text has."""
WITHOUT_BLANKS_FROM = "\u3000"
"""Scripts without blanks begin here; their words are pairs of signs, which have no endings."""


class AskedWord(NamedTuple):
    """One word of what is asked."""

    forms: frozenset[str]
    """The words of the texts that differ from it in their endings only, itself among them."""
    weight: float
    """How rare these are in the texts."""


def asked_words(asked: Sequence[str], texts: Sequence[frozenset[str]]) -> list[AskedWord]:
    """Each word that is asked, as the texts (their words) have it.

    It weighs the logarithm of the number of texts over those that have it, and a little more.
    """
    vocabulary = frozenset[str]().union(*texts)
    found = []
    for word in dict.fromkeys(asked):
        forms = frozenset(other for other in vocabulary if same_stem(word, other)) | {word}
        holding = sum(not forms.isdisjoint(words) for words in texts)
        found.append(AskedWord(forms, LEAST_WEIGHT + math.log((len(texts) + 1) / (holding + 1))))
    return found


def share_of(asked: Sequence[AskedWord], words: frozenset[str]) -> float:
    """The share of the asked words' weight that a text with these words has, from 0 to 1; 0 where nothing is asked."""
    total = sum(word.weight for word in asked)
    return sum(word.weight for word in asked if not word.forms.isdisjoint(words)) / total if total else 0.0


def same_stem(first: str, second: str) -> bool:
    """Whether two words of letters differ in their endings only: `Paket` and `Paketen`, `verify` and `verification`.

    Words that begin alike for five letters and for all but two of the shorter one count as the same; in shorter ones,
    one must be the beginning of the other. Words of scripts without blanks are never the same unless they are equal.
    """
    if first[:2] != second[:2]:
        return False
    shorter, longer = sorted((first, second), key=len)
    if not (shorter.isalpha() and longer.isalpha()) or shorter >= WITHOUT_BLANKS_FROM:
        return first == second
    if len(shorter) < LEAST_COMMON:
        return len(shorter) > ENDINGS and longer.startswith(shorter) and len(longer) - len(shorter) <= ENDINGS
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(shorter, longer, strict=False)))
    return common >= max(LEAST_COMMON, len(shorter) - ENDINGS)
