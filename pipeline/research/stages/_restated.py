"""Whether a report still says what its run wrote, or else what its pages say word for word.

No hash: stops, commas, blanks, capitals, typographic forms and umlauts written in two letters may change, headings and
the order of sentences too. A number, a sign, a negation, a name or any other word may not.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from pipeline.text.normal_form import INVISIBLE
from pipeline.text.words import UNSPACED, plain_number, without_marks
from pipeline.verifying.claim import check_sentence
from pipeline.verifying.page_text import PageText
from pipeline.verifying.values import ReadReport, Sentence, Verdict

PageOf = Callable[[str], PageText | None]
"""Gives the text of the page with a canonical URL; None where it cannot be read."""

_MOST_JOINED = 4
"""Sentences of a report that may have been one before, or the other way round."""
_EDITED_FROM = 0.5
"""Share of its words that a sentence has from one of the run, from which it counts as an edit of that one."""
_SHOWN = 80
_BETWEEN = "\x1f"
_PAGES_KEPT = 32
# Of signs those that say something: a minus, a range, a comparison, a unit, a currency. Others are punctuation.
_TOKEN = re.compile(
    r"\d+(?:[.,]\d+)*"
    rf"|(?<![^\W{UNSPACED}])[-−–](?=[\d.,$€£¥])"
    r"|(?<=\d)\s?[-−–—~〜～]\s?(?=\d)"
    rf"|[{UNSPACED}]|(?:[^\W\d_{UNSPACED}]|[\u0300-\u036f])+"
    r"|[+±▲△~≈<>≤≥=≠%‰°€$£¥₹\u00a7#&@×÷/*^?]"
)
_HIDDEN = re.compile(f"[{INVISIBLE}]+")
_POWER = re.compile(r"(?<=\d)(?=[⁰¹²³⁴-⁹⁻])")
"""Where a power begins, whose digits become plain ones: `10²` is not 102."""
_RANGE = re.compile(r"\s?[-−–—~〜～]\s?")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "æ": "ae"})
_TWO_LETTERS = re.compile(r"(?<![aeiouyq])([aou])e")
_TURNED = re.compile(
    r"(?:wu(?:e)?rde|ko(?:e)?nnte|mo(?:e)?chte|mu(?:e)?sste|du(?:e)?rfte|ha(?:e)?tte|bra(?:e)?uchte|wa(?:e)?re)(?:n|st|t)?"
    r"|scho(?:e)?n|fo(?:e)?rder\w*|za(?:e)?hle?\w*|dru(?:e)?ck\w*"
)
"""German words that an umlaut makes another one of: `konnte` and `könnte`, `fordern` and `fördern`."""


class Restated(NamedTuple):
    """What came of the sentences of a report that cite something."""

    sentences: int = 0
    """How many there are."""
    weaker: int = 0
    """Those that stand as the run wrote them, and whose pages' words alone do not support them."""
    unread: int = 0
    """Those of which nothing can be told: nobody knows what the run wrote, and no page could be read."""
    problems: tuple[str, ...] = ()
    """Those that neither the run nor their pages say: line, beginning and what is wrong."""


def restated(report: ReadReport, written: ReadReport | None, page_of: PageOf) -> Restated:
    """The report held against the one that its run wrote, and where it says something else, against its pages.

    A sentence that looks like an edit of one of the run has to stand on its pages word for word, for an edit that
    reverses a fact keeps nearly all words; another one has to be supported. Without `written`, the run's own report,
    the pages alone decide, and only what they contradict or are silent on is a problem.
    """
    cited = [sentence for sentence in report.sentences if sentence.paragraph_urls]
    held = _wordings(written.sentences) if written else []
    pages = {url: page_of(url) for sentence in cited for url in sentence.paragraph_urls}
    weaker = unread = 0
    problems: list[str] = []
    for sentence, as_written in zip(cited, _standing(cited, held), strict=True):
        own = [page for url in sentence.paragraph_urls if (page := pages[url])]
        if as_written:
            weaker += bool(own) and not any(_stands_on(sentence.text, page) for page in own)
        elif not own and written is None:
            unread += 1
        elif problem := _problem(sentence, own, [wording for _, wording in held] if written else None):
            problems.append(problem)
    return Restated(len(cited), weaker, unread, tuple(problems))


def _stands_on(text: str, page: PageText) -> bool:
    """Whether a page has the text word for word, or says it in the same words."""
    return _wording_of_page(page).holds(words_said(text)) or check_sentence(text, [page]).verdict == "supported"


def _wordings(sentences: Iterable[Sentence]) -> list[tuple[frozenset[str], "_Wording"]]:
    """What stands with each set of sources, stretch by stretch."""
    stretches = groupby(sentences, key=lambda each: frozenset(each.paragraph_urls))
    return [(urls, _Wording(each.text for each in stretch)) for urls, stretch in stretches]


class _Wording:
    """A text as the words of its sentences, one after the other."""

    def __init__(self, sentences: Iterable[str]) -> None:
        self.sentences = [words for each in sentences if (words := words_said(each))]
        self.words: list[str] = []
        self.bounds = {0}
        for words in self.sentences:
            self.words += words
            self.bounds.add(len(self.words))

    def holds(self, words: Sequence[str]) -> bool:
        """Whether the words stand there in this order, one behind the other."""
        return _in_a_row(words) in _in_a_row(self.words)

    def says(self, words: Sequence[str]) -> bool:
        """Whether the words are one sentence or several whole ones in order."""
        wanted, size = list(words), len(words)
        return any(
            start + size in self.bounds and self.words[start : start + size] == wanted for start in sorted(self.bounds)
        )


def _in_a_row(words: Sequence[str]) -> str:
    """The words as a text in which a run of whole ones can be looked up."""
    return f"{_BETWEEN}{_BETWEEN.join(words)}{_BETWEEN}"


@lru_cache(_PAGES_KEPT)
def _wording_of_page(page: PageText) -> _Wording:
    """The page's sentences, read once; citation marks count for nothing."""
    return _Wording(map(without_marks, page.sentences))


def words_said(text: str) -> tuple[str, ...]:
    """The words, numbers and telling signs of a text, in order, each in the one form of all ways to write it."""
    seen = _POWER.sub("^", _HIDDEN.sub("", text))
    plain = unicodedata.normalize("NFKC", seen).casefold()
    return tuple(_one_form(found[0]) for found in _TOKEN.finditer(plain))


def _one_form(token: str) -> str:
    """The token as it is compared: numbers without groups, dashes alike, letters without marks, umlauts as vowels."""
    if token[0].isdecimal():
        return plain_number(token)
    if _RANGE.fullmatch(token):
        return "-"
    if not token.isalpha() or (token.isascii() and not _TWO_LETTERS.search(token)):
        return token
    spelt = token.translate(_UMLAUTS)
    plain = "".join(sign for sign in unicodedata.normalize("NFD", spelt) if not "\u0300" <= sign <= "\u036f")
    return plain if _TURNED.fullmatch(plain) else _TWO_LETTERS.sub(r"\1", plain)


def _standing(cited: Sequence[Sentence], held: Sequence[tuple[frozenset[str], _Wording]]) -> list[bool]:
    """Whether each sentence, alone or with its next ones, is what the run wrote with the same sources."""
    words = [words_said(each.text) for each in cited]
    stands = [not each for each in words]
    for start, sentence in enumerate(cited):
        urls = frozenset(sentence.paragraph_urls)
        own = [wording for sources, wording in held if sources == urls]
        for end in range(start + 1, min(len(cited), start + _MOST_JOINED) + 1):
            if stands[start] or frozenset(cited[end - 1].paragraph_urls) != urls:
                break
            together = [word for each in words[start:end] for word in each]
            if any(wording.says(together) for wording in own):
                stands[start:end] = [True] * (end - start)
    return stands


def _problem(sentence: Sentence, pages: Sequence[PageText], written: Sequence[_Wording] | None) -> str:
    """What is wrong with a sentence that is not as the run wrote it; empty for nothing."""
    words = words_said(sentence.text)
    if any(_wording_of_page(page).says(words) for page in pages):
        return ""
    finding = check_sentence(sentence.text, pages)
    passing: tuple[Verdict, ...] = ("supported", "cannot_tell") if written is None else ("supported",)
    edited = any(_is_edit(words, other) for each in written or () for other in each.sentences)
    if finding.verdict in passing and not edited:
        return ""
    shown = sentence.text if len(sentence.text) <= _SHOWN else f"{sentence.text[: _SHOWN - 1]}…"
    why = "; ".join(finding.problems) or "they do not have these words in this order"
    other = "" if written is None else "is not what the run wrote, and "
    return f"line {sentence.line}, {shown!r}, {other}does not stand on the pages that it cites: {why}."


def _is_edit(words: Sequence[str], other: Sequence[str]) -> bool:
    """Whether a sentence has so many words of another one that it may be made of it; cut ones too."""
    return len({*words} & {*other}) >= _EDITED_FROM * len({*words})
