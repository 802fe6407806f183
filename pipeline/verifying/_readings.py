"""A statement of a page as it can be opposed: what it speaks of, which side it takes, within which bounds.

A sentence is read whole and up to each of its commas. One that asks, points at another one, shows code, reports what
somebody else says or is not sure has no reading.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from pipeline.text.words import UNSPACED_RUN, without_marks
from pipeline.verifying._opposites import BOUND, BOUND_JAPANESE, HELD, HELD_JAPANESE, IDLE, POLES, RELIEF, stem
from pipeline.verifying._particulars import is_figure
from pipeline.verifying._wording import Wording, wording_of

_MOST_WORDS = 40
"""Words of a statement; a longer one is bound by too much."""
_NEGATING_WORDS = "not no never nor neither none nothing without nie niemals ohne weder kein keine"
_NEGATING = frozenset(_NEGATING_WORDS.split())
# What is advised is good, what has to be is permitted as well; with a negation neither.
_MODALS = {
    "should": ("good",),
    "sollte": ("good",),
    "sollten": ("good",),
    "must": ("good", "permitted"),
    "muss": ("good",),
    "müssen": ("good",),
}
_FLATLY = re.compile(
    r"(?<!\w)(?:never|must not|no (?:study|studies|research|evidence|proof|trial)|nie|niemals"
    r"|keine?n? (?:belege?|nachweis)|any|whatever)(?!\w)"
    r"|決して|(?:証拠|根拠)は",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(r"^\W*(?:never|do not|don't|nie|niemals)(?!\w)", re.IGNORECASE)
_AT_ONCE = re.compile(r"(?<!\w)at once(?!\w)", re.IGNORECASE)
_ABLE = frozenset({"can", "kann", "können"})
"""Who cannot do it does not do it."""
_JAPANESE_ADVICE = re.compile("[てで]はいけ|いでください|[とが](?:よい|いい)(?:です|でしょう)?(?:[。]|$)")
_JAPANESE_LEAVE = re.compile("でき(?:る|ま)|[てで]もよ|[てで]もい|[てで]はいけ")
_NO = r"(?:false|wrong|untrue|a (?:\w+ )?myth)"
_NEIN = r"(?:ein (?:\w+ )?(?:irrtum|mythos|märchen)|falsch)"
# Who says that a saying is wrong denies it.
_DENIED = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?:it is |it's |that is )?an? (?:\w+ )?(?:myth|misconception|fallacy) that (?P<said>.+)",
        rf"the (?:\w+ )?(?:belief|claim|idea|notion|view) that (?P<said>.+) is {_NO}\W*$",
        r"(?:there is )?no (?:study|studies|research|evidence|proof|trial)(?: \w+){0,3} that (?P<said>.+)",
        rf"dass (?P<said>.+), ist {_NEIN}\W*$",
        rf"es ist {_NEIN}, dass (?P<said>.+)",
    )
)
# Without the sentence before it nobody knows of what it speaks.
_POINTS_ELSEWHERE = re.compile(
    r"^\W*(?:it(?! is (?:not )?\w+ to )|this|that|these|those|they|he|she|such|here|there(?! is no)|both|one"
    r"|es(?! ist (?:nicht )?\w+, )|dies\w*|sie|er|das(?= (?:ist|sind|war|hat|kann|wird|gilt|geht))|jene\w*|solche\w*)"
    r"(?!\w)|^\W*(?:こ|そ|あ)(?:れ|の|こ|ちら)",
    re.IGNORECASE,
)
_ASKS = re.compile(r"[?？]\W*$|か[。]?$")
_QUOTED = re.compile(r"\W*[\"“„「«]")
_CODE = re.compile(r"[={}<>\\_|]|\w\(|::|--\w|^\s*[$#>]")
_CUT = re.compile(
    r"\s*(?:[;–—(、]|,(?!\d)|\s-\s)\s*|(?<=\w) (?=(?:and|because|und|weil|sodass)(?!\w))",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"(?:and |but |und |aber )?(?:if|unless|except|when|provided|but|until|while"
    r"|wenn(?! auch)|falls|außer|sofern|aber|jedoch|bis|solange)(?!\w)",
    re.IGNORECASE,
)
_PARTICLES = re.compile("[はがをにのでともへや]+$")
_NO_CONTENT = re.compile("[るたてだいくうすりしれきん]$")
_NO_NOUN = re.compile("[るたてだ]$")
"""The same of one that has a particle behind it."""
_LEAST_KANA = 3


class Reading(NamedTuple):
    """A statement, or its beginning up to a comma."""

    words: tuple[str, ...]
    """Its content words, as stems, in order: those that judge, handle or compare included."""
    tied: frozenset[str]
    """Those of them that stand behind a preposition."""
    poles: frozenset[tuple[str, int]]
    """What it judges or compares, and which side it takes before it is negated."""
    denied: int
    """How often it is negated."""
    is_flat: bool
    """Whether it speaks of every case where it denies."""
    is_absolute: bool
    """Whether it says itself that it does."""
    figures: tuple[str, ...]
    """Its numbers, sorted."""
    bounds: frozenset[str]
    """What limits it: amounts, times, conditions."""
    is_clause: bool
    """Whether it is a whole sentence, or one up to a comma."""
    wording: Wording
    """The same with all that decides."""

    @property
    def tenses(self) -> frozenset[str]:
        """The tenses that auxiliary verbs show."""
        return self.wording.bounds & {"present", "past"}


@lru_cache(maxsize=4_000)
def readings(text: str) -> tuple[Reading, ...]:
    """The statement and its beginnings up to each comma behind which no condition follows; none where it is no use."""
    plain = " ".join(without_marks(text).split())
    denied, start = 0, plain
    if found := next(filter(None, (form.match(plain) for form in _DENIED)), None):
        plain, denied = found["said"], 1
    if any(form.search(plain) for form in (_POINTS_ELSEWHERE, _ASKS, _CODE)) or _QUOTED.match(plain):
        return ()
    whole = wording_of(plain)
    if len(whole.words) > _MOST_WORDS or _is_held(whole):
        return ()
    cuts = list(_CUT.finditer(plain))
    if any(_CONDITION.match(plain[at.end() :]) for at in cuts):
        cuts = []
    parts = {plain: True} | {plain[: at.start()]: bool(at[0].strip()) for at in cuts}
    is_absolute = _FLATLY.search(start) is not None
    read = (_reading_of(part, denied, is_clause, is_absolute) for part, is_clause in parts.items())
    return tuple(each for each in read if each)


def _is_held(wording: Wording) -> bool:
    """Whether somebody else says it, or it is not said for sure."""
    if not HELD.isdisjoint(wording.words):
        return True
    return any(sign in word for sign in HELD_JAPANESE for word in wording.words if UNSPACED_RUN.match(word))


def _reading_of(text: str, denied: int, is_clause: bool, is_absolute: bool) -> Reading | None:
    """What a part of a statement says; None where it says nothing that could be opposed, or judges both ways."""
    wording = wording_of(text)
    words: list[str] = []
    tied: set[str] = set()
    bounds = {*(wording.bounds - {"present", "past"}), *_japanese_bounds(wording)}
    poles = {("good", 1)} if _JAPANESE_ADVICE.search(text) or _IMPERATIVE.search(text) else set[tuple[str, int]]()
    poles |= {("permitted", 1)} if _JAPANESE_LEAVE.search(text) else set()
    figures = []
    negated = denied + sum(word in _NEGATING for word in wording.words)
    for place, word in enumerate(wording.words):
        plain = content_of(word)
        if word in _MODALS:
            poles |= {(about, 1) for about in _MODALS[word]}
        elif wording.written[place].casefold() in RELIEF:
            poles.add(("good", 1))
        elif is_number(word):
            figures.append(word)
        elif word in BOUND:
            if not (word == "once" and _AT_ONCE.search(text)) and not (word in _ABLE and negated):
                bounds.add(word)
        elif word not in _NEGATING and plain and plain not in IDLE and word not in IDLE:
            words.append(plain)
            poles |= {POLES[plain]} if plain in POLES else set()
            if place in wording.links and plain not in POLES:
                tied.add(plain)
    if len({about for about, _ in poles}) < len(poles) or not words:
        return None
    return Reading(
        tuple(words),
        frozenset(tied),
        frozenset(poles),
        negated,
        is_absolute or ("good", 1) in poles,
        is_absolute,
        tuple(sorted(figures)),
        frozenset(bounds),
        is_clause,
        wording,
    )


def _japanese_bounds(wording: Wording) -> set[str]:
    """What limits a Japanese statement."""
    runs = [word for word in wording.words if UNSPACED_RUN.match(word)]
    return {sign for sign in BOUND_JAPANESE if any(sign in run for run in runs)}


def is_number(word: str) -> bool:
    """Whether it is a number, with its sign, or a month."""
    return is_figure(word.removeprefix("-"))


def content_of(word: str) -> str:
    """The stem of a word; of hiragana what is left without particles, empty where that is an ending."""
    if not UNSPACED_RUN.match(word):
        return stem(word)
    if not "\u3041" <= word[0] <= "\u3096":
        return word
    bare = _PARTICLES.sub("", word)
    is_ending = (_NO_CONTENT if bare == word else _NO_NOUN).search(bare)
    return "" if len(bare) < _LEAST_KANA or is_ending else bare
