"""Whether two statements of different pages say opposite things of the same subject in the same circumstances.

It is told where one has all content words of the other but for a negation, a word of the opposite (`_opposites.py`),
another value of the same measure, or another year of what happens once.
"""

from functools import lru_cache
from typing import NamedTuple

from pipeline.text.words import UNSPACED_RUN
from pipeline.verifying._contradiction import contradiction, is_rounded
from pipeline.verifying._opposites import HANDLING, IDLE, POLES, stem, stems
from pipeline.verifying._readings import Reading, content_of, is_number, readings
from pipeline.verifying._wording import Wording, wording_of

_LEAST_SHARED = 2
_LEAST_SIGNS = 3
"""Signs of a name that is written without blanks."""
_MAY_MISS_FROM = 5
"""Words of a statement of which one may be missing in the other."""
_MOST_BESIDES = {"good": 3}
"""Words that the longer statement has besides, by what they judge; 1 elsewhere."""
# Where who stands before whom decides.
_ORDERED = frozenset({"degree", "speed", "quality", "size", "caused", "promoted", "won"})
_MEASURES = tuple(
    stems(line)
    for line in (
        "long length lang länge 長 全長",
        "high height tall elevation hoch höhe 高 標高",
        "wide width breit breite 幅",
        "deep depth tief tiefe 深 水深",
        "area cover covers fläche 面積",
        "weigh weight heavy wiegt gewicht schwer 重",
        "inhabitants population einwohner einwohnerzahl 人口",
    )
)
_INHABITANTS = len(_MEASURES) - 1
"""The one measure without a unit."""
_UNITS = stems(
    "metre km kilometre metern mm cm mile foot feet square hectare acre kg mg gram tonne ton pound celsius fahrenheit "
    "litre quadratkilometer quadratmeter hektar tonnen 平方 平方キロ ヘクタール トン 人 年"
)
_HAPPENED = tuple(
    stems(line)
    for line in (
        "founded established gegründet 設立 創立 創業",
        "opened inaugurated eröffnet eingeweiht 開業 開館 開通",
        "built completed constructed erbaut gebaut 建設 完成 建",
        "invented erfunden 発明",
        "discovered entdeckt 発見",
        "born geboren 生",
        "died gestorben 死去 死亡",
        "abolished abgeschafft 廃止",
    )
)
_OUTSIDE_NAMES = frozenset({"", "die", "das", "by"}) | IDLE | _UNITS | frozenset[str]().union(*_MEASURES, *_HAPPENED)
"""Words beside a name that are no part of it."""
_YEARS = range(1100, 2200)
_LEAST_APART = 0.03
"""Share by which two measures of one thing differ at least: less is another way to measure."""
_LEAST_APART_ABOUT = 0.2
"""The same where one of them is rough."""


def opposition(one: str, other: str) -> str:
    """Why two statements of different pages cannot both be right, in words; empty where that is not plain to see."""
    first, second = wording_of(one), wording_of(other)
    if plain := contradiction(first, second):
        return plain
    if len(_stems_of(first) & _stems_of(second)) < _least_shared(one):
        return ""
    pairs = ((mine, theirs) for mine in readings(one) for theirs in readings(other))
    return next(filter(None, (_opposed(*pair) for pair in pairs)), "")


@lru_cache(maxsize=4_000)
def _stems_of(wording: Wording) -> frozenset[str]:
    """The content words of a sentence, as stems."""
    return frozenset(map(content_of, wording.words)) - IDLE - {""}


def _least_shared(text: str) -> int:
    """How many content words two statements have in common at least; a name without blanks may be one."""
    return 1 if UNSPACED_RUN.search(text) else _LEAST_SHARED


def _opposed(one: Reading, other: Reading) -> str:
    """Why the two readings cannot both be right; empty where they can."""
    if one.tenses ^ other.tenses == frozenset({"present", "past"}):
        return ""
    return _other_side(one, other) or _other_measure(one, other) or _other_year(one, other)


def _other_side(one: Reading, other: Reading) -> str:
    """Why the two take opposite sides: by a negation, or by words of the opposite."""
    judged = frozenset(about for about, _ in one.poles) & frozenset(about for about, _ in other.poles)
    short, long = sorted((one, other), key=lambda each: len(_core(each, judged)))
    if one.figures != other.figures or not _are_opposite(one, other, judged):
        return ""
    if not _are_bound_alike(one, other) or not _is_about_the_same(short, long, judged):
        return ""
    if judged & _ORDERED:
        shared = _core(one, judged) & _core(other, judged)
        if _order(one, shared) != _order(other, shared):
            return ""
    return "the two pages judge it the opposite way" if judged else "one of the two pages denies what the other says"


def _are_opposite(one: Reading, other: Reading, judged: frozenset[str]) -> bool:
    """Whether the two are on opposite sides of all that both judge; where they judge nothing, whether one denies."""
    denies = [-1 if each.denied % 2 else 1 for each in (one, other)]
    if not judged:
        return denies[0] != denies[1]
    sides = [
        {about: sign * side for about, side in each.poles} for each, sign in zip((one, other), denies, strict=True)
    ]
    return all(sides[0][about] != sides[1][about] for about in judged)


def _are_bound_alike(one: Reading, other: Reading) -> bool:
    """Whether the two speak of the same amounts, times and conditions, or what is denied is denied of all of them."""
    if one.bounds == other.bounds:
        return True
    return any(
        each.is_absolute and each.denied % 2 and not each.bounds and not rival.denied
        for each, rival in ((one, other), (other, one))
    )


def _core(reading: Reading, judged: frozenset[str]) -> frozenset[str]:
    """What a reading speaks of: without the words that judge, and then without those that only handle something."""
    return frozenset(
        word
        for word in reading.words
        if not (word in POLES and POLES[word][0] in judged) and not (judged and word in HANDLING)
    )


def _is_about_the_same(short: Reading, long: Reading, judged: frozenset[str]) -> bool:
    """Whether one speaks of all that the other one speaks of, and of little besides that could make a difference.

    What is denied flatly is denied under every circumstance; else a circumstance of one alone makes it another case.
    """
    core = _core(short, judged)
    shared = core & _core(long, judged)
    besides = _core(long, judged) - shared
    missing = len(core) - len(shared)
    if len(shared) < _LEAST_SHARED or missing > (len(core) >= _MAY_MISS_FROM) or (missing and besides):
        return False
    if besides & long.tied and not (short.denied % 2 and short.is_flat):
        return False
    if not judged and (len(shared) <= _LEAST_SHARED or not short.is_clause):
        return False
    return len(besides) <= max((_MOST_BESIDES.get(about, 1) for about in judged), default=1)


def _order(reading: Reading, shared: frozenset[str]) -> list[str]:
    """The shared words in the order in which the statement has them."""
    return list(dict.fromkeys(word for word in reading.words if word in shared))


class _Value(NamedTuple):
    """A value that a reading gives of something."""

    measure: int
    """Which measure, or which event."""
    unit: str
    """In which unit; empty for a year."""
    value: str
    """The number."""
    of: frozenset[str]
    """What the reading speaks of besides."""


def _other_measure(one: Reading, other: Reading) -> str:
    """Why the two give different values of the same measure of the same thing."""
    mine, theirs = _measured(one), _measured(other)
    if not (mine and theirs) or mine[:2] != theirs[:2] or not _is_same_thing(mine, theirs, one, other):
        return ""
    values = float(mine.value), float(theirs.value)
    apart = abs(values[0] - values[1]) / max(1e-9, *map(abs, values))
    is_about = "about" in one.wording.bounds | other.wording.bounds
    if is_rounded(mine.value, theirs.value) or apart <= (_LEAST_APART_ABOUT if is_about else _LEAST_APART):
        return ""
    return f"the two pages give {mine.value} and {theirs.value} for the same"


def _measured(reading: Reading) -> _Value | None:
    """The value that a reading gives, where it has exactly one number and one measure."""
    if not reading.figures:
        return None
    words = reading.wording.words
    places = [at for at, word in enumerate(words) if is_number(word)]
    if len(places) != 1 or not {"bound", "ordinal"}.isdisjoint(reading.wording.bounds) or reading.denied:
        return None
    value = words[places[0]]
    units = [stem(word) for word in words[places[0] + 1 : places[0] + 3] if stem(word) in _UNITS]
    said = {*map(content_of, words)}
    measures = [number for number, names in enumerate(_MEASURES) if names & said]
    if (
        len(measures) != 1
        or not (units or measures == [_INHABITANTS])
        or not value.removeprefix("-").replace(".", "", 1).isdecimal()
    ):
        return None
    rest = frozenset(reading.words) - _MEASURES[measures[0]] - _UNITS
    return _Value(measures[0], " ".join(units), value, rest)


def _other_year(one: Reading, other: Reading) -> str:
    """Why the two date what happens once differently."""
    mine, theirs = _happened(one), _happened(other)
    if not (mine and theirs) or mine.measure != theirs.measure or mine.value == theirs.value:
        return ""
    if not _is_same_thing(mine, theirs, one, other):
        return ""
    return f"the two pages date it to {mine.value} and {theirs.value}"


def _happened(reading: Reading) -> _Value | None:
    """What happened in which year; None where that is not plain."""
    if not reading.figures:
        return None
    words = reading.wording.words
    years = [word for word in words if word.isdecimal() and len(word) == len("1999") and int(word) in _YEARS]
    if len(years) != 1 or reading.denied:
        return None
    said = {*map(content_of, words)}
    events = [number for number, names in enumerate(_HAPPENED) if names & said]
    if len(events) != 1:
        return None
    return _Value(events[0], "", years[0], frozenset(reading.words) - _HAPPENED[events[0]] - _UNITS)


def _is_same_thing(mine: _Value, theirs: _Value, one: Reading, other: Reading) -> bool:
    """Whether one speaks of nothing else than the other one, and both name it alone."""
    short, long = sorted((mine.of, theirs.of), key=len)
    if any(UNSPACED_RUN.match(word) for word in short):
        is_name = sum(map(len, short)) >= _LEAST_SIGNS
    else:
        is_name = len(short) >= _LEAST_SHARED
    return is_name and short <= long and _names_alone(short, one) and _names_alone(short, other)


def _names_alone(names: frozenset[str], reading: Reading) -> bool:
    """Whether these words stand together in the reading, and no other one belongs to them."""
    wording = reading.wording
    words = [content_of(word) for word in wording.words]
    at = sorted(words.index(name) for name in names if name in words)
    if not at:
        return False
    first, end = at[0], at[-1] + 1
    if not {*words[first:end]} <= names | IDLE | {""}:
        return False
    parted = wording.links | wording.stops
    is_verb = end < len(words) and wording.written[end].endswith(("ed", "es"))
    before = first in parted or _is_outside(words[first - 1])
    return before and (end in parted or is_verb or _is_outside(words[end]))


def _is_outside(word: str) -> bool:
    """Whether the word belongs to no name beside it."""
    return word in _OUTSIDE_NAMES or is_number(word)
