"""What the words of pages decide about a sentence, without a model, and which pages contradict each other by them.

A claim is `supported` where a page says it in the same words: whole sentences of it are the same in normal form. It is
`contradicted` where all words of a sentence are the same, in the same order, but for one number, unit, date or
negation, and both cannot be true. It is `not_found` where no sentence of the pages shares a word with it. All else is
`cannot_tell`, with the nearest sentences: a word in the place of another one may be a synonym. A page that says both,
or calls the sentence wrong, contradicts nobody.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from pipeline.text import words as text_words
from pipeline.text.normal_form import straighten
from pipeline.text.sentences import sentence_spans
from pipeline.verifying.figures import WORDS, in_figures, shown_figure, with_signs
from pipeline.verifying.page_text import PageText, same_form
from pipeline.verifying.values import Checked, Quote, Verdict

_UNITS = [[each.split() for each in line.split("|")] for line in WORDS["units"].strip().splitlines()]
_SAME_UNIT = {word: names[0] for line in _UNITS for names in line for word in names}
_DIMENSION = {names[0]: number for number, line in enumerate(_UNITS) for names in line}
_LINES = [line.split() for line in WORDS["kinds"].strip().splitlines()]
_ABOUT, _BOUNDS, _HEDGES, _PARTLY, _LABELS, _STARTS = (
    frozenset(word for first, *words in _LINES if first == name for word in words)
    for name in ("about", "bound", "hedge", "partly", "label", "start")
)
_REWRITTEN = [(re.compile(form, re.IGNORECASE), plain) for form, plain in WORDS["rewritten"]]
_JAPANESE = [(re.compile(form), plain) for form, plain in WORDS["japanese"]]
_CHINESE = [(re.compile(r"不(?![过過同断斷仅僅但少管])|[没沒]有?|未(?![来來])|并非|並非"), " not ")]
_KANA = re.compile("[ぁ-んァ-ヺ]")
_WORDS_UNSPACED = sorted(
    (
        each
        for each in {*_SAME_UNIT, *_ABOUT, *_BOUNDS, *_HEDGES, *_LABELS, *_STARTS}
        if text_words.UNSPACED_RUN.match(each)
    ),
    key=len,
    reverse=True,
)
_PART = re.compile(
    r"(?:[12]\d{3} )?month\d{1,2}(?: \d{1,2}(?![\w.,]))?"
    rf"|(?<![-/:#.])(?<![^\W{text_words.UNSPACED}])(?:minus_)?\d++(?>(?:[.,]\d++)*)(?![-/:]\w|[^\W{text_words.UNSPACED}]|\.\s+\w)|\d+\.(?=\s+\w)"
    rf"|{'|'.join(_WORDS_UNSPACED)}|[{text_words.UNSPACED}]|[$€£¥%‰\xa7#<>≤≥+±=]"
    rf"|[^\W{text_words.UNSPACED}]+(?:[-'/:.,&][^\W{text_words.UNSPACED}]+)*"
)
_YEAR = re.compile(r"1[1-9]\d\d|2[01]\d\d")
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,9})?")

_LOOSE_MARK = re.compile(r"\s+\[\d{1,6}\]|(?<![\w\s])\[\d{1,6}\]")
_QUOTED = re.compile(r"\"[^\"]*\"[.!]?|[「『][^」』]*[」』]。?")
_ORDERS = re.compile(r"(?:please |bitte )?(?:do not|don't|never|[a-zäöü]+n sie)(?!\w)", re.IGNORECASE)
_ENDS = re.compile(r"[.!。！｡][\"'”’»」』)\]\s]*(?:\[\d+\]\s*)*$")
_REFUTES, _MYTHS, _DENIES = (
    re.compile(WORDS["patterns"][name], re.IGNORECASE | re.VERBOSE) for name in ("refutes", "myths", "denies")
)
_ITEM = re.compile(r"\s*(?:[-•*·‣–]\s|\(?\d{1,2}[.)]\s|[\"“„«「『])")


def stands_on(text: str, page: PageText) -> int | None:
    """The place of the page's sentence that says the text in the same words, or of the first of several; else None.

    These are whole sentences that follow each other. A question says nothing, nor does what the page calls wrong.
    """
    plain = straighten(text).strip()
    plain = plain.strip('"') if _QUOTED.fullmatch(plain) and plain.endswith('"') else text
    wanted = [same_form(_LOOSE_MARK.sub("", plain[start:end])) for start, end in sentence_spans(plain)]
    if not wanted or any(each.endswith("?") for each in wanted):
        return None
    if (
        sum(len(token) if text_words.UNSPACED_RUN.match(token) else 1 for token in text_words.TOKEN.findall(wanted[0]))
        < 3
    ):
        return None  # a heading or a name
    for place in page.places_by_form.get(wanted[0], ()):
        run = range(place, place + len(wanted))
        if (
            run.stop <= len(page.sentences)
            and all(at in page.places_by_form.get(form, ()) for at, form in zip(run, wanted, strict=True))
            and not any(page.text[page.spans[at][1] : page.spans[at + 1][0]].strip() for at in run[:-1])
            and not _is_disclaimed(page, run)
        ):
            return place
    return None


def _is_disclaimed(page: PageText, run: range) -> bool:
    if run.stop < len(page.sentences) and _REFUTES.search(page.sentences[run.stop]):
        return True
    at = run.start
    while at and run.start - at < 30 and _ITEM.match(page.sentences[at]):
        at -= 1
    before = page.sentences[at if at < run.start else at - 1] if run.start else ""
    lists = at < run.start or before.endswith((":", "："))
    if lists and _DENIES.search(before):
        return True
    return (lists or not _ENDS.search(before)) and _MYTHS.search(before) is not None


class _Statement(NamedTuple):
    words: tuple[str, ...]  # Folded case, units by one name, numbers and dates in one form; negations are left out
    written: tuple[str, ...]
    denied: tuple[str, ...]  # The word behind each negation; empty at the end of the sentence

    @property
    def is_plain(self) -> bool:
        """Whether it says something, without a hedge, of something that it names."""
        if not 4 <= len(self.words) <= 160:
            return False
        german = ("der", "die", "das", "dem", "den", "diesem", "dieser", "jedem")  # `an` before one is not the article
        opens = self.words[0] in _STARTS and not (self.words[0] == "an" and self.words[1] in german)
        return not opens and _HEDGES.isdisjoint(self.words)


@lru_cache(maxsize=20_000)
def _statement_of(text: str) -> _Statement:
    plain = straighten(unicodedata.normalize("NFC", text_words.without_marks(text))).strip()
    is_japanese = _KANA.search(plain)
    names_nothing = is_japanese and "は" not in plain
    if names_nothing or plain.endswith(("?", "？")) or _QUOTED.fullmatch(plain) or _ORDERS.match(plain):
        return _Statement((), (), ())
    plain = with_signs(plain)
    for form, same in (*_REWRITTEN, *(_JAPANESE if is_japanese else _CHINESE)):
        plain = form.sub(same, plain)
    words, written, denied = [], [], []
    was_denied = False
    for part in _PART.findall(in_figures(plain)):
        word = _plain(part)
        if was_denied:
            denied.append(word)
        was_denied = word == "not"
        if not was_denied:
            words.append(word)
            written.append(part.replace("minus_", "-"))
    return _Statement(tuple(words), tuple(written), (*denied, *([""] if was_denied else [])))


def _plain(part: str) -> str:
    word = part.casefold()
    sign, number = ("-", word.removeprefix("minus_")) if word.startswith("minus_") else ("", word)
    return sign + text_words.plain_number(number) if number[:1].isdigit() else _SAME_UNIT.get(word, word)


def denials(text: str) -> int:
    return len(_statement_of(text).denied)


def contradiction(claim: str, other: str) -> str:
    """Why the two sentences cannot both be true, in words; empty where that is not plain to see."""
    ours, theirs = _statement_of(claim), _statement_of(other)
    if not (ours.is_plain and theirs.is_plain):
        return ""
    if ours.words == theirs.words:
        denied = ours.denied + theirs.denied
        is_denied = len(denied) == 1 and denied[0] not in _PARTLY and not denied[0][:1].isdigit()
        return "one of the two sentences is negated" if is_denied else ""
    if ours.denied != theirs.denied or len(ours.words) != len(theirs.words):
        return ""
    differ = [at for at, pair in enumerate(zip(ours.words, theirs.words, strict=True)) if pair[0] != pair[1]]
    if len(differ) > 1 or not _excludes(ours, theirs, differ[0]):
        return ""
    return f"the page says {_shown(theirs, differ[0])}, not {_shown(ours, differ[0])}"


def _excludes(ours: _Statement, theirs: _Statement, at: int) -> bool:
    one, another = ours.words[at], theirs.words[at]
    beside = (*ours.words[max(0, at - 1) : at], *ours.words[at + 1 : at + 2])
    if all("month" in each for each in (one, another)) or all(map(_YEAR.fullmatch, (one, another))):
        # At the beginning a date says what happened then, perhaps not then alone.
        return at >= 2 and re.sub(r"\d+", "", one) == re.sub(r"\d+", "", another)
    if _NUMBER.fullmatch(one) and _NUMBER.fullmatch(another):
        if float(one) == float(another):  # `0` and `0.0`, `7` and `007`
            return False
        # A number tells one thing from another where it opens, or stands beside a label or a name.
        is_label = not at or not _LABELS.isdisjoint(beside) or ours.written[at - 1][0].isupper()
        near = {*ours.words[max(0, at - 3) : at], *ours.words[at + 1 : at + 3]}
        is_about = not _ABOUT.isdisjoint(ours.words) and _differ_by(one, another) <= 0.2
        return not (is_label or is_about or near & _BOUNDS or _is_rounded(one, another))
    return (
        one in _DIMENSION
        and _DIMENSION[one] == _DIMENSION.get(another)
        and any(_NUMBER.fullmatch(each) for each in beside)
    )


def _differ_by(one: str, another: str) -> float:
    values = float(one), float(another)
    return abs(values[0] - values[1]) / max(map(abs, values))


def _is_rounded(one: str, another: str) -> bool:
    """Whether one of two numbers may be the other one, rounded, cut off, or with a point between its thousands."""
    if one.replace(".", "") == another.replace(".", ""):
        return True
    decimals = [len(number.partition(".")[2]) for number in (one, another)]
    difference = abs(float(one) - float(another))
    if decimals[0] != decimals[1] and difference <= 10.0 ** -min(decimals):
        return True
    coarse, fine = sorted((one, another), key=lambda number: len(number.replace(".", "").strip("-0")))
    digits = [len(number.replace(".", "").strip("-0")) for number in (coarse, fine)]
    if digits[0] == digits[1] or min(abs(float(one)), abs(float(another))) < 100:
        return False
    unit = 10.0 ** (len(str(abs(int(float(coarse))))) - digits[0])
    return difference < unit and _differ_by(one, another) < 0.1


def _shown(statement: _Statement, at: int) -> str:
    word = statement.words[at]
    if "month" in word:
        return " ".join(map(shown_figure, reversed(statement.written[at].split())))
    start = at - (word in _DIMENSION and at > 0 and _NUMBER.fullmatch(statement.words[at - 1]) is not None)
    end = at + 1 + (word in _DIMENSION and start == at)
    return " ".join(statement.written[start:end])


def opposing(text: str, pages: Sequence[PageText]) -> dict[text_words.SentencePlace, str]:
    """The sentences of the pages that contradict a text, and why; None where they do so in more than one way."""
    words = frozenset[str]().union(*text_words.words_and_numbers(text, ""))
    found: dict[text_words.SentencePlace, str] = {}
    for place in text_words.nearest_sentences(words, [page.index for page in pages], 12):
        page, at = pages[place.source], place.sentence
        reason = contradiction(text, page.sentences[at]) if _ENDS.search(page.sentences[at]) else ""
        if reason and not _is_disclaimed(page, range(at, at + 1)):
            found[place] = reason
    return found if len({*found.values()}) == 1 else {}


_NEAREST = 5  # Sentences that a finding shows


class Finding(NamedTuple):
    verdict: Verdict
    score: float  # From 0 to 1, for ranking: how much of its words the pages have, together; no chance of being right
    problems: tuple[str, ...] = ()
    places: tuple[text_words.SentencePlace, ...] = ()
    """The sentences that come nearest to it, the best first: the index of the page, and of the sentence on it."""
    against: tuple[Quote, ...] = ()


def check_sentence(text: str, pages: Sequence[PageText]) -> Finding:
    """What the pages that a sentence cites say of it; `cannot_tell` where none can be compared with it."""
    words = frozenset[str]().union(*text_words.words_and_numbers(text, ""))
    if not any(page.sentences for page in pages):
        return Finding("cannot_tell", 0.0, ("no text of a cited page could be read",))
    if not words:
        return Finding("cannot_tell", 0.0, ("the sentence says nothing that could be looked up",))
    places = text_words.nearest_sentences(words, [page.index for page in pages], _NEAREST)
    if not places:
        languages = {page.lang for page in pages if page.sentences} - {"und"}
        own = text_words.detect_language(text) if languages else "und"
        if own != "und" and languages - {own}:
            why = "the cited pages are in another language, so the words cannot be compared"
            return Finding("cannot_tell", 0.0, (why,))
        return Finding("not_found", 0.0, ("no sentence of the cited pages has one of its words",))
    said = [
        text_words.SentencePlace(at, place)
        for at, page in enumerate(pages)
        if (place := stands_on(text, page)) is not None
    ]
    if said:
        return Finding("supported", 1.0, (), tuple(dict.fromkeys((*said, *places)))[:_NEAREST])
    against = {pages[place.source].quote(place.sentence): reason for place, reason in opposing(text, pages).items()}
    if against:
        reasons = (f"{reason}: {quote.text[:300]!r}" for quote, reason in against.items())
        return Finding("contradicted", 0.0, tuple(dict.fromkeys(reasons)), tuple(places), tuple(against))
    why = "no sentence of the cited pages says it in the same words"
    return Finding("cannot_tell", _score(words, pages, places), (why,), tuple(places))


def _score(words: frozenset[str], pages: Sequence[PageText], places: Sequence[text_words.SentencePlace]) -> float:
    known = sum(any(word in page.index.places for page in pages) for word in words)
    alone = max(pages[place.source].index.count(place.sentence, words) for place in places)
    together = max(pages[place.source].index.count_around(place.sentence, words, 3) for place in places)
    return round((known + alone + together) / (3 * len(words)), 4)


def is_covered(text: str, page: PageText) -> bool:
    words = frozenset[str]().union(*text_words.words_and_numbers(text, ""))
    shared = page.index.shared(words)
    return bool(shared) and max(shared.values()) * 2 >= len(words)


class Disagreement(NamedTuple):
    claim_ids: tuple[str, ...]
    sides: tuple[tuple[Quote, ...], tuple[Quote, ...]]
    """What pages say, each page once a side; neither is empty, and no page is on both."""


def contrary(text: str, own: Sequence[PageText], others: Sequence[PageText]) -> tuple[Quote, ...]:
    """The sentences of other pages that contradict a text which pages of its own say, but of no page that says it too.

    None where its own pages contradict it or call it wrong.
    """
    same = ((page, place) for page in own for place in page.places_by_form.get(same_form(text), ()))
    if opposing(text, own) or any(_is_disclaimed(page, range(place, place + 1)) for page, place in same):
        return ()
    return tuple(
        page.quote(place.sentence)
        for page in others
        for place in opposing(text, [page])
        if stands_on(text, page) is None
    )


def is_other_edition(title: str, other: str) -> bool:
    names = [re.sub(r"[\d.]+", "", each).casefold().split() for each in (title, other)]
    return bool(names[0]) and names[0] == names[1] and text_words.numbers_in(title) != text_words.numbers_in(other)


def disagreements(claims: Iterable[Checked]) -> list[Disagreement]:
    found: list[tuple[list[str], list[Quote], list[Quote]]] = []
    for checked in claims:
        own = checked.claim.quotes
        urls = {quote.url for quote in own}
        against = [quote for quote in checked.against if quote.url not in urls]
        if not (own and against):
            continue
        met = (each for each in found if overlap((*own, *against), (*each[1], *each[2])))
        ids, one, other = sides = next(met, ([], [], []))
        if not ids:
            found.append(sides)
        ids.append(checked.claim.id)
        first, second = (against, own) if overlap(own, other) or overlap(against, one) else (own, against)
        for side, rival, quotes in ((one, other, first), (other, one, second)):
            for quote in quotes:
                if quote.url not in {known.url for known in (*side, *rival)}:
                    side.append(quote)
    return [Disagreement(tuple(ids), (tuple(one), tuple(other))) for ids, one, other in found]


def single_source(checked: Iterable[Checked], sites: Mapping[str, str]) -> list[Checked]:
    return [
        each
        for each in checked
        if each.verdict == "supported" and len({sites.get(url, url) for url in each.supporters}) == 1
    ]


def overlap(quotes: Iterable[Quote], others: Sequence[Quote]) -> bool:
    return any(
        one.url == other.url and one.start < other.end and other.start < one.end for one in quotes for other in others
    )


def disputed_ids(claims: Sequence[Checked]) -> frozenset[str]:
    found = disagreements(claims)
    ids = {name for each in found for name in each.claim_ids}
    quotes = [quote for each in found for side in each.sides for quote in side]
    quotes += [quote for each in claims if each.claim.id in ids for quote in each.against]
    return frozenset(ids) | {each.claim.id for each in claims if overlap(each.claim.quotes, quotes)}
