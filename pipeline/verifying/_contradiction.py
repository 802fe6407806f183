"""Whether two sentences say opposite things, told from their words alone: only where it is plain to see.

They have to be about the same in nearly the same words, with the same names; then one number or date that differs
contradicts, and so does a negation in one of them. All else is left undecided.
"""

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from pipeline.text.words import content_words, without_marks
from pipeline.verifying._particulars import in_figures, is_figure, names_in, negations_in, plain_figure, shown_figure

_MOST_WORDS = 160
"""Words of a sentence; a longer one is a list or a table, and no statement."""
_SAME_SUBJECT = 0.6
"""Share of the words of each of the two sentences that the other one has in the same order, where a number differs."""
SAME_WORDING = 0.8
"""The same, where a negation is all that differs."""
_MOST_REPLACED = 3
"""Words that may stand in the place of others in an almost equal sentence; more are another statement."""
_LEAST_SHARED = 2
"""Words besides numbers that both have."""
# What a number after it tells apart, as a name does: another one is another thing.
_LABEL_WORDS = """
chapter section figure table step page part volume version release level option example appendix line item issue number
kapitel abschnitt abbildung tabelle schritt seite teil band stufe ausgabe zeile beispiel anhang nummer no nr
第 図 图 表 章 節 节 例 版 バージョン ページ
"""
_BOUND = re.compile(
    r"(?:over|than|least|most|up to|about|around|nearly|almost|approximately|roughly|some|between|above|below|under|"
    r"über|als|mindestens|höchstens|bis zu|etwa|rund|fast|circa|ca\.|knapp|zwischen|ungefähr|约|約|超|近|およそ|ほぼ)"
    r"\s*[\d]|(?<![\d.,])\d[\d.,]{0,40}\S{0,8}?\s{0,3}(?:以上|以下|未満|未满|多|余|強|弱|or more|or less|oder mehr|\+)",
    re.IGNORECASE,
)


_ENDING = re.compile(r"(?<=[^\W\d_]{3})(?:ing|ed|es|s|en|e|t)$")
_DECIMAL = re.compile(r"\d{1,15}(?:\.\d{1,9})?")
_LEAST_ROUNDED = 100
_MOST_ROUNDED = 0.1
"""Share of a number by which rounding may change it."""
_YEARS = range(1100, 2200)


class Statement(NamedTuple):
    """A sentence in the form in which two are compared."""

    words: tuple[str, ...]
    """Content words without endings, numbers and months, in order."""
    written: tuple[str, ...]
    """The same with their endings."""
    names: frozenset[str]
    """Its names."""
    negations: int
    """How many words negate."""
    is_bound: bool
    """Whether a number is a bound or an estimate."""


class _Difference(NamedTuple):
    """A place where two statements differ: where it begins in each, and the words of each there."""

    start: int
    ours: tuple[str, ...]
    begin: int
    theirs: tuple[str, ...]


def statement_of(text: str) -> Statement:
    """The sentence in the form in which two are compared."""
    plain = in_figures(without_marks(text))
    written = tuple(plain_figure(word) for word in content_words(plain))
    return Statement(
        tuple(map(_stem, written)),
        written,
        frozenset(map(_stem, names_in(plain))),
        negations_in(plain),
        _BOUND.search(plain) is not None,
    )


def _stem(word: str) -> str:
    """The word without the commonest endings of English and German, so that `asks` is `ask`."""
    return _ENDING.sub("", word)


_LABELS = frozenset(map(_stem, _LABEL_WORDS.split()))


def contradiction(claim: Statement, other: Statement) -> str:
    """Why the two cannot both be true, in words; empty where that is not plain to see."""
    if not _about_the_same(claim, other):
        return ""
    differences = _differences_of(claim, other)
    share = _shared_share(claim, differences, other)
    in_figures_only = [each for each in differences if _figures(each.ours) or _figures(each.theirs)]
    if not in_figures_only and share >= SAME_WORDING and (claim.negations - other.negations) % 2:
        return "the page says the opposite: one of the two sentences is negated"
    if len(in_figures_only) != 1 or share < _SAME_SUBJECT or claim.negations != other.negations:
        return ""
    if any(each.ours and each.theirs for each in differences if each not in in_figures_only):
        return ""
    return _other_figure(claim, other, in_figures_only[0])


def replaced(text: str, sentence: str) -> str:
    """What a sentence in almost the same words has in place of words of the text; empty for nothing.

    In a nearly equal sentence one word for another is enough, for none tells a synonym from `higher` for `lower`; else
    there has to be a name or a number on both sides.
    """
    claim, other = statement_of(text), statement_of(sentence)
    if max(len(claim.words), len(other.words)) > _MOST_WORDS:
        return ""
    differences = _differences_of(claim, other)
    share = _shared_share(claim, differences, other)
    for each in differences if share >= _SAME_SUBJECT else ():
        if not (0 < len(each.ours) <= _MOST_REPLACED and 0 < len(each.theirs) <= _MOST_REPLACED):
            continue
        is_one_word = share >= SAME_WORDING and len(each.ours) == len(each.theirs) == 1
        if is_one_word or (
            _is_particular(claim, each.start, each.ours) and _is_particular(other, each.begin, each.theirs)
        ):
            ours = claim.written[each.start : each.start + len(each.ours)]
            theirs = other.written[each.begin : each.begin + len(each.theirs)]
            return f"the cited pages say {' '.join(theirs)!r} where it says {' '.join(ours)!r}"
    return _reordered(claim, other)


def _reordered(claim: Statement, other: Statement) -> str:
    """That a sentence in almost the same words has the figures of the other one in another order; years may move.

    Words with a digit, such as `python3`, count as figures do.
    """
    ours, theirs = (
        [word for word in each.words if any(map(str.isdecimal, word)) and not _is_year(word)] for each in (claim, other)
    )
    shared = (Counter(claim.words) & Counter(other.words)).total()
    if (
        sorted(ours) != sorted(theirs)
        or ours == theirs
        or shared < SAME_WORDING * max(map(len, (claim.words, other.words)))
    ):
        return ""
    shown_ours, shown_theirs = (", ".join(map(shown_figure, each)) for each in (ours, theirs))
    return f"the cited pages have its figures in another order: {shown_theirs}, not {shown_ours}"


def _is_year(word: str) -> bool:
    """Whether the word may be a year."""
    return len(word) == len("1999") and word.isdecimal() and int(word) in _YEARS


def _is_particular(statement: Statement, place: int, words: Sequence[str]) -> bool:
    """Whether a name or a figure is among these words, or they are the statement's first word, which may be a name."""
    return (not place and len(words) == 1) or any(is_figure(word) or word in statement.names for word in words)


def _differences_of(claim: Statement, other: Statement) -> list[_Difference]:
    """Where the words of the two differ, in order."""
    same = SequenceMatcher(None, claim.words, other.words, autojunk=False)
    return [
        _Difference(start, claim.words[start:end], begin, other.words[begin:stop])
        for step, start, end, begin, stop in same.get_opcodes()
        if step != "equal"
    ]


def _shared_share(claim: Statement, differences: Sequence[_Difference], other: Statement) -> float:
    """Share of the words of each of the two that stands in the other one in the same order; 0 for too few words."""
    differing = [word for each in differences for word in each.ours]
    shared = len(claim.words) - len(differing)
    if shared - len(_figures(claim.words)) + len(_figures(differing)) < _LEAST_SHARED:
        return 0.0
    return shared / max(len(claim.words), len(other.words))


def _about_the_same(claim: Statement, other: Statement) -> bool:
    """Whether the two can be compared: same names, same beginning, and not too long."""
    if not 0 < max(len(claim.words), len(other.words)) <= _MOST_WORDS or claim.names != other.names:
        return False
    return claim.words[:1] == other.words[:1] or (
        bool(claim.words and other.words) and claim.words[0] in other.words and other.words[0] in claim.words
    )


def _other_figure(claim: Statement, other: Statement, difference: _Difference) -> str:
    """That the figures of the only place where the two differ in one contradict; empty where they need not."""
    ours, theirs = _figures(difference.ours), _figures(difference.theirs)
    comparable = len(ours) == len(theirs) and is_figure(difference.ours[-1]) and is_figure(difference.theirs[-1])
    if not comparable or claim.is_bound or other.is_bound:
        return ""
    if not (difference.start and difference.begin):  # A date that a sentence begins with says when it was so.
        return ""
    if _tells_apart(claim, difference.start) or _tells_apart(other, difference.begin):
        return ""
    if any(is_rounded(one, another) for one, another in zip(ours, theirs, strict=True) if one != another):
        return ""
    ours_shown, theirs_shown = ("-".join(map(shown_figure, figures_)) for figures_ in (ours, theirs))
    return f"the page says {theirs_shown}, not {ours_shown}"


def _tells_apart(statement: Statement, place: int) -> bool:
    """Whether a number at this place tells one thing from another: it follows a label, a name or the first word."""
    return place == 1 or statement.words[place - 1] in _LABELS or statement.words[place - 1] in statement.names


def is_rounded(one: str, another: str) -> bool:
    """Whether one of two numbers may be the other one, rounded or cut off; never of small ones, years and months."""
    values = [float(number) for number in (one, another) if _DECIMAL.fullmatch(number)]
    if len(values) < 2 or min(values) < _LEAST_ROUNDED or all(value in _YEARS for value in values):
        return False
    digits = [len(number.replace(".", "").strip("0")) for number in (one, another)]
    unit = 10.0 ** (len(str(int(values[digits.index(min(digits))]))) - min(digits))
    return digits[0] != digits[1] and abs(values[0] - values[1]) < min(unit, _MOST_ROUNDED * max(values))


def _figures(words: Sequence[str]) -> list[str]:
    """The numbers and months among the words."""
    return [word for word in words if is_figure(word)]
