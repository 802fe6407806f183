"""How much a sentence says of what is asked: by its words, whatever their endings, weighed by how rare they are."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

LEAST_COMMON = 5
"""Letters at the beginning that two longer words must share."""
LEAST_WEIGHT = 0.2
"""What a word weighs that every text has."""
ENDINGS = 2
"""Letters of a word's end that need not be shared."""


class Match(NamedTuple):
    """How much of what is asked a text has."""

    share: float
    """Share of the asked words' weight, from 0 to 1."""
    words: int
    """How many of them it has."""


def matching(asked: Sequence[str], words: Iterable[str], weights: Mapping[str, float]) -> Match:
    """How much of the asked words a text with these words has; nothing where nothing is asked."""
    held = set(words)
    found = [word for word in asked if word in held or any(same_stem(word, other) for other in held)]
    total = sum(weights.get(word, 1.0) for word in asked)
    return Match(sum(weights.get(word, 1.0) for word in found) / total if total else 0.0, len(found))


@lru_cache(maxsize=100_000)
def same_stem(first: str, second: str) -> bool:
    """Whether two words of letters differ in their endings only: `Paket` and `Paketen`, `verify` and `verification`.

    Words that begin alike for five letters and for all but two of the shorter one count as the same; in shorter ones,
    one must be the beginning of the other. Words of scripts without blanks are never the same unless they are equal.
    """
    if first == second:
        return True
    shorter, longer = sorted((first, second), key=len)
    if not (shorter.isalpha() and longer.isalpha()) or ord(shorter[0]) >= 0x3000:
        return False
    if len(shorter) < LEAST_COMMON:
        return len(shorter) > ENDINGS and longer.startswith(shorter) and len(longer) - len(shorter) <= ENDINGS
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(shorter, longer, strict=False)))
    return common >= max(LEAST_COMMON, len(shorter) - ENDINGS)


def word_weights(asked: Sequence[str], texts: Sequence[frozenset[str]]) -> dict[str, float]:
    """How rare each asked word is in the texts: the logarithm of their number over those that have it, and a little."""
    held = Counter(word for words in texts for word in asked if matching([word], words, {}).words)
    return {word: LEAST_WEIGHT + math.log((len(texts) + 1) / (held[word] + 1)) for word in asked}
