"""Whether a page's sentence says the opposite of a claim, told from their words alone: only where it is plain to see.

All words of the claim are the sentence's, in the same order, but for numbers, dates, units or currencies, each in the
place of another one, or but for a negation. All else is left undecided: a word for another may be a synonym.
"""

import re
from collections.abc import Sequence

from pipeline.verifying._agreement import (
    MOST_WORDS,
    Difference,
    differences,
    figures_in,
    is_unspaced,
    may_be_left_out,
    shared_share,
)
from pipeline.verifying._particulars import is_figure, shown_figure
from pipeline.verifying._wording import Wording, negates, wording_of

_SAME_SUBJECT = 0.6
"""Share of the words of each of the two sentences that the other one has."""
_LEAST_SHARED = 2
"""Words besides figures that both have."""
# What a number after it tells apart, as a name does: another one is another thing.
_LABEL_WORDS = """
chapter section figure table step page part volume version release level option example appendix line item issue number
kapitel abschnitt abbildung tabelle schritt seite teil band stufe ausgabe zeile beispiel anhang nummer no nr
type phase category class grade stage round season day group level model typ phase klasse stufe runde saison tag
第 図 图 表 章 節 节 例 版 バージョン ページ
"""
# Of a line one is never another one.
_UNIT_WORDS = """
second minute hour day week month year decade century sekunde minute stunde tag woche monat jahr jahrzehnt
秒 分 時間 日 週 月 年
mm cm metre km mile miles yard foot inch meile マイル
mg gram kg kilo tonne pound ounce キロ トン
celsius fahrenheit kelvin
percentage basis
hectare acre
liter gallon millilitre リットル
$ € £ ¥ franc franken rupee 億円 億ドル 万円 万ドル
third quarter half drittel viertel hälfte
million billion 万 億 兆
"""
_UNITS = [frozenset(wording_of(" ".join(line.split())).words) for line in _UNIT_WORDS.strip().splitlines()]
_LABELS = frozenset(wording_of(_LABEL_WORDS).words)
# What happens once: only then does another date contradict.
_ONCE_WORDS = """
born died dead death founded established opened inaugurated built completed invented discovered signed published
released launched introduced adopted enacted ratified granted abolished began ended started killed
geboren starb gestorben gegründet eröffnet eingeweiht gebaut erbaut erfunden entdeckt unterzeichnet veröffentlicht
eingeführt verabschiedet begann endete
"""
_ONCE_JAPANESE = (
    "生まれ",
    "生誕",
    "死去",
    "死亡",
    "設立",
    "創業",
    "創立",
    "建設",
    "完成",
    "開業",
    "開館",
    "発売",
    "発表",
    "署名",
    "発見",
    "発明",
    "開始",
    "建て",
    "建于",
    "建成",
    "成立",
    "出生",
)
_ONCE = frozenset(wording_of(_ONCE_WORDS).words)
_DECIMAL = re.compile(r"-?\d{1,15}(?:\.\d{1,9})?")
_LEAST_ROUNDED = 100
_MOST_ROUNDED = 0.1
"""Share of a number by which rounding may change it."""
_ABOUT = 0.2
"""The same of an estimate."""
_YEARS = range(1100, 2200)


def contradiction(claim: Wording, other: Wording) -> str:
    """Why the two cannot both be true, in words; empty where that is not plain to see."""
    if max(len(claim.words), len(other.words)) > MOST_WORDS or shared_share(claim, other) < _SAME_SUBJECT:
        return ""
    shared = {*claim.words} & {*other.words}
    if len(shared) - len(figures_in(tuple(shared))) < _LEAST_SHARED:
        return ""
    found = differences(claim, other)
    if _is_denied(claim, other):
        return "one of the two sentences is negated"
    changed = [each for each in found if each.end > each.start]
    if not all(may_be_left_out(each, claim, other) for each in found if each not in changed):
        return ""
    if not all(_is_other_particular(each, claim, other) for each in changed) or not _is_one_fact(changed, claim, other):
        return ""
    ours, theirs = (
        ", ".join(_shown(wording, start, end) for start, end in spans)
        for wording, spans in (
            (claim, [(each.start, each.end) for each in changed]),
            (other, [(each.begin, each.stop) for each in changed]),
        )
    )
    return f"the page says {theirs}, not {ours}"


def other_units(claim: Wording, others: Sequence[Wording]) -> list[str]:
    """The units, currencies and fractions of a claim that none of the others has, though one has another of the kind.

    As the claim writes them.
    """
    theirs = frozenset[str]().union(*(each.words for each in others))
    return [
        claim.written[place]
        for place, word in enumerate(claim.words)
        if word not in theirs and any(word in units and units & theirs for units in _UNITS)
    ]


def _is_denied(claim: Wording, other: Wording) -> bool:
    """Whether both have the same words in the same order, and one more negation is in one of them."""
    plain = [[word for word in each.words if not negates(word)] for each in (claim, other)]
    if any(_negates_nothing(each) for each in (claim, other)):
        return False
    denials = [sum(negates(word) and word not in _INDEFINITE for word in each.words) for each in (claim, other)]
    return plain[0] == plain[1] and sum(denials) % 2 == 1


def _negates_nothing(statement: Wording) -> bool:
    """Whether a word of negation goes with a number or another word: `no fewer than`, `not only`, `No 1`."""
    pairs = zip(statement.words, statement.words[1:], strict=False)
    return any(negates(one) and (_is_number(another) or another in _NOT_DENIED) for one, another in pairs)


_NOT_DENIED = frozenset({"fewer", "less", "more", "only", "nur", "doubt", "zweifel", "weniger", "mehr"})
_INDEFINITE = frozenset({"any", "ein", "eine", "einen"})


def _is_other_particular(difference: Difference, claim: Wording, other: Wording) -> bool:
    """Whether figures or units stand in the place of others that they cannot be."""
    ours = claim.words[difference.start : difference.end]
    theirs = other.words[difference.begin : difference.stop]
    if len(ours) != len(theirs):
        return False
    for place, (one, another) in enumerate(zip(ours, theirs, strict=True)):
        if one == another:
            continue
        if any(one in units and another in units for units in _UNITS):
            continue
        if not (_is_number(one) and _is_number(another)) or one.startswith("month") != another.startswith("month"):
            return False
        if not {"bound", "ordinal"}.isdisjoint(claim.bounds | other.bounds) or is_rounded(one, another):
            return False
        if "about" in claim.bounds | other.bounds and _is_near(one, another):
            return False
        if _tells_apart(claim, difference.start + place) or _tells_apart(other, difference.begin + place):
            return False
    return True


def _is_one_fact(changed: Sequence[Difference], claim: Wording, other: Wording) -> bool:
    """Whether one thing differs, if in several places: a number, a unit, the parts of a date, or which is where.

    Another number at another time, or in another unit, may be right as well.
    """
    pairs = [
        (one, another)
        for each in changed
        for one, another in zip(claim.words[each.start : each.end], other.words[each.begin : each.stop], strict=True)
        if one != another
    ]
    ours, theirs = sorted(one for one, _ in pairs), sorted(another for _, another in pairs)
    dates = [word for pair in pairs for word in pair if "month" in word or _is_year(word)]
    if dates and _ONCE.isdisjoint(claim.words) and not any(word in "".join(claim.words) for word in _ONCE_JAPANESE):
        return False
    is_date = len(changed) == 1 and all(map(_is_number, ours + theirs)) and any("month" in word for word in ours)
    return len(set(pairs)) == 1 or is_date or (bool(pairs) and ours == theirs)


def _is_number(word: str) -> bool:
    """Whether it is a number, with its sign, or a month."""
    return is_figure(word.removeprefix("-"))


def _tells_apart(statement: Wording, place: int) -> bool:
    """Whether a figure at this place tells one thing or time from another: it opens, or follows a label or a name."""
    if not place or (place == 1 and place not in statement.links and not is_unspaced(statement)):
        return True
    before = statement.written[place - 1]
    is_year = _is_year(statement.words[place]) or statement.words[place].startswith("month")
    is_name = before[0].isupper() and not is_year
    return place not in statement.links and (statement.words[place - 1] in _LABELS or is_name)


def _is_year(word: str) -> bool:
    """Whether the word may be a year."""
    return len(word) == len("1999") and word.isdecimal() and int(word) in _YEARS


def is_rounded(one: str, another: str) -> bool:
    """Whether one of two numbers may be the other one, rounded, cut off, or with a point between its thousands."""
    if one.replace(".", "") == another.replace(".", ""):
        return True
    values = [float(number) for number in (one, another) if _DECIMAL.fullmatch(number)]
    if len(values) < 2:
        return False
    decimals = [len(number.partition(".")[2]) for number in (one, another)]
    if decimals[0] != decimals[1] and abs(values[0] - values[1]) <= 10.0 ** -min(decimals):
        return True
    if min(values) < _LEAST_ROUNDED or all(value in _YEARS for value in values):
        return False
    digits = [len(number.replace(".", "").strip("0")) for number in (one, another)]
    unit = 10.0 ** (len(str(int(values[digits.index(min(digits))]))) - min(digits))
    return digits[0] != digits[1] and abs(values[0] - values[1]) < min(unit, _MOST_ROUNDED * max(values))


def _is_near(one: str, another: str) -> bool:
    """Whether an estimate of one may be the other; never of years."""
    if _is_year(one) and _is_year(another):
        return False
    values = [float(number) for number in (one, another) if _DECIMAL.fullmatch(number)]
    return len(values) == 2 and abs(values[0] - values[1]) <= _ABOUT * max(map(abs, values))


def _shown(statement: Wording, start: int, end: int) -> str:
    """These words as they are written; a unit with the word before it."""
    words = statement.written[start:end]
    if start and not _is_number(statement.words[start]):
        words = (statement.written[start - 1], *words)
    return " ".join(map(shown_figure, words))
