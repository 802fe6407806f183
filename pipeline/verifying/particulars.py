"""What a sentence says that can be held against another one word for word: its numbers, dates, names and negations.

English, German, Japanese and Chinese; of other languages numbers, ISO dates and names with a capital letter.
"""

import re
from typing import NamedTuple

from pipeline.text.words import NUMBERS, STOP_WORDS, TOKEN, numbers_in, without_marks
from pipeline.verifying.numbers import MONTH_FORM, in_figures

KATAKANA = re.compile(r"[\u30a1-\u30fa\u30fc]{3,}")
NEGATIONS = re.compile(
    r"(?<!\w)(?:not(?!\s+only\b)|never|no|none|nobody|nothing|neither|without|cannot|nicht(?!\s+nur\b)|kein(?:e[mnrs]?)?"
    r"|nie|niemals|nichts|niemand|nirgends|ohne|weder)(?!\w)|(?<=[a-z])n['’]t(?!\w)"
    r"|(?<!少)(?:ない|なかった|なければ|なく)|ませ[んぬ]|[らさわかまが]ず(?=に|、|。)"
    r"|不(?![过過同断斷仅僅但少管])|[没沒]|[無无](?![论論])|未(?![来來])|并非|並非",
    re.IGNORECASE,
)


class Particulars(NamedTuple):
    """What one sentence says; all in one form for every language."""

    figures: frozenset[str]
    """Numbers, those of dates and small ones in words included, and months of dates: `2021`, `month8`, `14`."""
    names: frozenset[str]
    """Words that begin with a capital letter inside the sentence, and katakana words; folded case."""
    negations: int
    """How many words negate."""


def particulars_of(text: str) -> Particulars:
    """The particulars of a sentence; citation marks count for nothing."""
    plain = in_figures(without_marks(text))
    figures = [plain_figure(number) for number in numbers_in(plain)] + MONTH_FORM.findall(plain)
    return Particulars(frozenset(figures), names_in(plain), negations_in(plain))


def names_in(plain: str) -> frozenset[str]:
    """The names; the first word of the text is one only where a capital letter is inside it."""
    names = set(KATAKANA.findall(plain))
    for place, word in enumerate(TOKEN.findall(plain.replace("’", "'"))):
        folded = word.casefold().removesuffix("'s")
        if (
            len(folded) > 1
            and word[0].isupper()
            and folded not in STOP_WORDS[""]
            and (place or word[1:] != word[1:].lower())
        ):
            names.add(folded)
    return frozenset(names)


def negations_in(plain: str) -> int:
    """How many words of the text negate."""
    return len(NEGATIONS.findall(plain))


def plain_figure(word: str) -> str:
    """The word; a number without zeros in front."""
    return word.lstrip("0") or "0" if word.isdecimal() else word


def is_figure(word: str) -> bool:
    """Whether the word is a number or a month."""
    return NUMBERS.fullmatch(word) is not None or MONTH_FORM.fullmatch(word) is not None


def shown_figure(word: str) -> str:
    """The figure as a message names it: a month as its number."""
    return word.removeprefix("month")
