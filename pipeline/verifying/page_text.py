"""The text of a page, read once: its sentences, their words, and its normal form for quotes."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from functools import cached_property, lru_cache

from pipeline.text.normal_form import NormalForm, normal_form, normalise
from pipeline.text.sentences import sentence_spans
from pipeline.text.words import UNSPACED_RUN, WordIndex, detect_language, words_and_numbers
from pipeline.verifying.figures import SCALES
from pipeline.verifying.values import Page, Quote

_CUT_BEFORE = re.compile(r"(?:\d[.,]|[-−–+])\d$")
_CUT_BEHIND = re.compile(rf"\d(?:[.,]\d|[ -]?(?:{'|'.join(SCALES)}))", re.IGNORECASE)
_MARK = re.compile(r"\s*\[\d{1,6}\]")
_BULLET = re.compile(r"(?:[-•*·‣–]\s+(?!\d)|#+\s+)+")
_WIDE = {0xFEE0 + code: code for code in range(0x21, 0x7F)}  # letters and signs of full width


class PageText:
    """A page that any number of claims can be checked against; what it costs is in proportion to the text."""

    def __init__(self, text: str, url: str = "", lang: str = "") -> None:
        """Cut the text into sentences, a repeated one once. Without `lang` (ISO 639-1) the language is told from it."""
        self.text = text
        self.url = url
        self.known_lang = lang
        spans: dict[str, tuple[int, int]] = {}
        for start, end in sentence_spans(text, lang):
            spans.setdefault(text[start:end], (start, end))
        self.sentences = list(spans)
        self.spans = list(spans.values())
        self.index = WordIndex(frozenset[str]().union(*words_and_numbers(each, "")) for each in self.sentences)

    @cached_property
    def lang(self) -> str:
        """ISO 639-1 code of the page's language; `und` where it cannot be told."""
        return self.known_lang or detect_language(self.text[:5_000])

    @cached_property
    def form(self) -> NormalForm:
        """The text as quotes are looked up in it (pipeline/contracts/evidence.md#snippets)."""
        return normal_form(self.text)

    def around_spans(self, place: int) -> list[tuple[int, int]]:
        """Where the sentence and those of its neighbours stand that nothing but white space parts from it."""
        start, end = self.spans[place]
        near = self.spans[max(0, place - 1) : place + 2]
        return [
            each for each in near if not self.text[each[1] : start].strip() and not self.text[end : each[0]].strip()
        ]

    def sentences_at(self, span: tuple[int, int]) -> list[str]:
        """The sentences that a span of the text reaches into, in order."""
        first = bisect_right(self.spans, span[0], key=lambda each: each[1])
        return self.sentences[first : bisect_left(self.spans, span[1], key=lambda each: each[0])]

    def ends_words(self, span: tuple[int, int]) -> bool:
        """Whether the span of the text begins and ends where words and numbers do."""
        start, end = span
        cuts_number = _CUT_BEFORE.search(self.text[max(0, start - 2) : start + 1]) or _CUT_BEHIND.match(
            self.text[max(0, end - 1) : end + 12]  # such as ` million`
        )
        return not (cuts_number or self.is_within_word(start) or self.is_within_word(end))

    def is_within_word(self, at: int) -> bool:
        """Whether a word goes on across this place; scripts without spaces have no such place."""
        sides = self.text[at - 1 : at + 1] if at else ""
        return len(sides) == 2 and sides.isalnum() and not UNSPACED_RUN.search(sides)

    @cached_property
    def places_by_form(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for place, sentence in enumerate(self.sentences):
            for form in {same_form(sentence), same_form(_MARK.sub("", sentence))}:
                places.setdefault(form, []).append(place)
        return places

    def quote(self, place: int) -> Quote:
        start, end = self.spans[place]
        return Quote(self.url, self.text[start:end], start, end)


def same_form(sentence: str) -> str:
    """Normal form, without the bullet in front, backticks and the mark at its end; a question keeps its own."""
    plain = unicodedata.normalize("NFC", sentence).translate(_WIDE).replace("`", "")
    return normalise(_BULLET.sub("", plain.strip())).rstrip(".。．｡! ")


@lru_cache(maxsize=32)  # more than the budget of a deep run, so that none is read for each claim
def read_page(page: Page) -> PageText:
    return PageText(page.text, page.url, page.lang)
