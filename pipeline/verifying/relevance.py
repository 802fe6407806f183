"""How much a text says of what is asked: by its words, whatever their endings, weighed by how rare they are."""

import math
import re
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from pipeline.text.words import ASKS_WITHOUT_BLANKS, content_words

LEAST_COMMON = 5
"""Letters at the beginning that two longer words must share."""
ENDINGS = 2
"""Letters of a word's end that need not be shared."""
LEAST_WEIGHT = 0.2
"""What a word weighs that every text has."""
MOST_RARITY = 1.5
"""What a word's rarity counts at most."""
NAME_WORTH = 1.0
"""What a name counts beside its rarity."""
HIRAGANA = re.compile(r"[\u3041-\u3096]")
WRITTEN_WORD = re.compile(r"[^\W_]+")
WITHOUT_BLANKS_FROM = "\u3000"
"""Scripts without blanks begin here; their words are pairs of signs, which have no endings."""


class AskedWord(NamedTuple):
    """One word of what is asked."""

    forms: frozenset[str]
    """The words of the texts that differ from it in their endings only, itself among them."""
    weight: float
    """How rare these are in the texts."""


def asked_words(asked: str, language: str, texts: Sequence[frozenset[str]]) -> list[AskedWord]:
    """Each word that is asked, as the texts (their words) have it; of Japanese no pair with an ending or a particle.

    It weighs the logarithm of the number of texts over those that have it, up to a limit: pages are found for the
    topic's own words, so these are the frequent ones, and a rare verb says less. A name weighs more. A word that no
    text has weighs as much as the heaviest of the others: people do not ask in the words of those who answer.
    """
    words = dict.fromkeys(content_words(ASKS_WITHOUT_BLANKS.sub(" ", asked), language))
    plain = [word for word in words if not HIRAGANA.search(word)] or list(words)
    vocabulary = frozenset[str]().union(*texts)
    names = names_in(asked, language)
    found: list[AskedWord] = []
    unknown: list[frozenset[str]] = []
    for word in plain:
        forms = frozenset(other for other in vocabulary if same_stem(word, other)) | {word}
        holding = sum(not forms.isdisjoint(words_of) for words_of in texts)
        if holding:
            rarity = min(MOST_RARITY, math.log((len(texts) + 1) / (holding + 1)))
            found.append(AskedWord(forms, LEAST_WEIGHT + rarity + NAME_WORTH * (word in names)))
        elif word < WITHOUT_BLANKS_FROM:
            unknown.append(forms)
    heaviest = max((word.weight for word in found), default=LEAST_WEIGHT)
    return [*found, *(AskedWord(forms, heaviest) for forms in unknown)]


def names_in(asked: str, language: str) -> frozenset[str]:
    """The words that a capital letter marks, in folded case; the first one only where it has more than one capital.

    In German these are the nouns, the first word among them.
    """
    written = WRITTEN_WORD.findall(asked)
    return frozenset(
        word.casefold()
        for place, word in enumerate(written)
        if any(letter.isupper() for letter in word[1:]) or (word[:1].isupper() and (place or language == "de"))
    )


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
