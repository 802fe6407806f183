"""One claim against the text of the pages that it cites, without a model.

A claim is `supported` where a page says it in the same words, and `contradicted` where a sentence says the same but for
one number, unit, date or negation (`_rules.py`). It is `not_found` where no sentence of the pages shares a word with
it. All else is `cannot_tell`, with the nearest sentences.
"""

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.text.coverage import SENTENCES, SentencePlace, cover, words_and_numbers
from pipeline.text.language import detect_language
from pipeline.verifying._rules import opposing, stands_on
from pipeline.verifying.page_text import PageText
from pipeline.verifying.values import Quote, Verdict

_TOGETHER = 3
"""Sentences that follow each other and may say a claim together."""
_WORTH_A_LOOK = 0.5
"""Share of a claim's words that one sentence of a page has to have that it does not cite."""
_UNREADABLE = "no text of a cited page could be read"
_NO_CONTENT = "the sentence says nothing that could be looked up"
_OTHER_LANGUAGE = "the cited pages are in another language, so the words cannot be compared"
_NO_WORDS = "no sentence of the cited pages has one of its words"
_OTHER_WORDS = "no sentence of the cited pages says it in the same words"
_SHOWN_SENTENCE = 300


class Finding(NamedTuple):
    """What pages say of a text."""

    verdict: Verdict
    """What can be told from the words alone."""
    score: float
    """From 0 to 1, for ranking: how much of its words the pages have, together; no chance of being right."""
    problems: tuple[str, ...] = ()
    """Why it is not supported, in words; empty where it is."""
    places: tuple[SentencePlace, ...] = ()
    """The sentences that come nearest to it, the best first: the index of the page, and of the sentence on it."""
    against: tuple[Quote, ...] = ()
    """Ranges of the pages that say otherwise."""


def check_sentence(text: str, pages: Sequence[PageText]) -> Finding:
    """What the pages that a sentence cites say of it; `cannot_tell` where none can be compared with it."""
    words = frozenset[str]().union(*words_and_numbers(text, ""))
    if not any(page.sentences for page in pages):
        return Finding("cannot_tell", 0.0, (_UNREADABLE,))
    if not words:
        return Finding("cannot_tell", 0.0, (_NO_CONTENT,))
    _, places = cover(words, frozenset(), [page.index for page in pages], SENTENCES)
    if not places and _in_other_language(text, pages):
        return Finding("cannot_tell", 0.0, (_OTHER_LANGUAGE,))
    if not places:
        return Finding("not_found", 0.0, (_NO_WORDS,))
    said = [SentencePlace(at, place) for at, page in enumerate(pages) if (place := stands_on(text, page)) is not None]
    if said:
        return Finding("supported", 1.0, (), tuple(dict.fromkeys((*said, *places)))[:SENTENCES])
    against = {pages[place.source].quote(place.sentence): reason for place, reason in opposing(text, pages).items()}
    if against:
        reasons = (f"{reason}: {quote.text[:_SHOWN_SENTENCE]!r}" for quote, reason in against.items())
        return Finding("contradicted", 0.0, tuple(dict.fromkeys(reasons)), tuple(places), tuple(against))
    return Finding("cannot_tell", _score(words, pages, places), (_OTHER_WORDS,), tuple(places))


def _score(words: frozenset[str], pages: Sequence[PageText], places: Sequence[SentencePlace]) -> float:
    """Mean share of the words that the pages have, that one sentence has, and that three in a row have."""
    known = sum(any(word in page.index.places for page in pages) for word in words)
    alone = max(pages[place.source].index.count(place.sentence, words) for place in places)
    together = max(pages[place.source].index.count_around(place.sentence, words, _TOGETHER) for place in places)
    return round((known + alone + together) / (3 * len(words)), 4)


def is_covered(text: str, page: PageText) -> bool:
    """Whether a sentence of the page has enough of the words of a text that it is worth to look what it says of it."""
    words = frozenset[str]().union(*words_and_numbers(text, ""))
    shared = page.index.shared(words)
    return bool(shared) and max(shared.values()) >= _WORTH_A_LOOK * len(words)


def _in_other_language(text: str, pages: Sequence[PageText]) -> bool:
    """Whether one of the pages is known to be in another language than the text."""
    languages = {page.lang for page in pages if page.sentences} - {"und"}
    own = detect_language(text) if languages else "und"
    return own != "und" and bool(languages - {own})
