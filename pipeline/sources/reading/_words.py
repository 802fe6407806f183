"""How many words a text has, in scripts without blanks too, and whether it says more than one of them."""

import re
from collections import Counter

_SIGNS_A_WORD = 3
_READ = 10_000
_LEAST_LETTERS = 5
_MANY_LETTERS = 40
_MANY_WORDS = 20
_MOST_OF_ONE_WORD = 0.6
_SHOWN = 80
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ANY_WORD = re.compile(r"[^\W\d_]+")


def count_words(text: str) -> int:
    """Number of words; three signs of scripts that are written without blanks are one."""
    signs = len(_IDEOGRAPH.findall(text))
    return len(_ANY_WORD.findall(_IDEOGRAPH.sub(" ", text))) + -(-signs // _SIGNS_A_WORD)


def monotony_of(text: str) -> str:
    """In plain words how a text says nothing; empty where it says something.

    It has no letter, fewer than five different ones (of at least 40), or more than six of ten words (of at least 20)
    are the same. In scripts without blanks a sign is a word.
    """
    letters = Counter(filter(str.isalpha, text[:_READ].casefold()))
    if not letters:
        return "there are no words in it"
    if len(letters) < _LEAST_LETTERS and letters.total() >= _MANY_LETTERS:
        return f"it has no other letters than {''.join(sorted(letters))!r}"
    signs = _IDEOGRAPH.findall(text[:_READ])
    words = Counter(_ANY_WORD.findall(_IDEOGRAPH.sub(" ", text[:_READ].casefold())) + signs)
    word, times = words.most_common(1)[0]
    if words.total() >= _MANY_WORDS and times > _MOST_OF_ONE_WORD * words.total():
        return f"it says {word[:_SHOWN]!r} {times} times in {words.total()} words"
    return ""
