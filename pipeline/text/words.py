"""The words and numbers of a text that carry its meaning, in one form for every language; which sentences share most.

Latin and other scripts with spaces give words; Chinese, Japanese, Korean and Thai, which write without them or with
too few, give pairs of neighbouring characters, on which word search works without a dictionary.
"""

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from functools import lru_cache
from heapq import nsmallest
from typing import Any, NamedTuple

from pipeline.core.sentences import packaged_table

ASKS_WITHOUT_BLANKS = re.compile(
    r"何|なぜ|どう(?!しても)|どの|どれ|いつ|どこ|だれ|誰|か$|什么|为什么|怎么|怎样|如何|哪|吗$|多少|是否"
)
# Thai, Lao, Burmese, Khmer, kana, Han and Hangul: https://www.unicode.org/charts/
UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
# Marks that Python does not count among the letters, though words of Arabic and the Indic scripts hold them.
_MARKS = r"\u0300-\u036f\u064b-\u065f\u0900-\u0dff"
# A number as people write it, its groups and decimals joined by point or comma; not the 12 of `B12`.
_NUMBER = rf"(?:(?<![^\W_])|(?<=[{UNSPACED}]))[0-9]+(?:[.,][0-9]+)*"
_LETTERS = rf"(?>(?:[^\W_{UNSPACED}]++|[{_MARKS}]++)+)"
_RUN = rf"[{UNSPACED}\U00020000-\U0003ffff]+"
TOKEN = re.compile(rf"{_NUMBER}|{_RUN}|{_LETTERS}(?:'{_LETTERS})*")
# The same tokens, found in half the time, in a text of ASCII in folded case.
_ASCII_TOKEN = re.compile(r"(?<![a-z0-9])[0-9]+(?:[.,][0-9]+)*|[a-z0-9]++(?:'[a-z0-9]++)*")
NUMBERS = re.compile(_NUMBER)
UNSPACED_RUN = re.compile(_RUN)
_GROUPS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]{1,3}(?:\.[0-9]{3}){2,}(?:,[0-9]+)?")
_GERMAN_GROUPS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+")
_CITATION_MARK = re.compile(r"\[[0-9]{1,6}\]")

LISTS = packaged_table(__file__)
STOP_WORDS = {language: frozenset(LISTS["stop"][language].split()) for language in ("en", "de")}
# Without those of one of the two languages that the other says something with.
STOP_WORDS[""] = (STOP_WORDS["en"] | STOP_WORDS["de"]) - {"bin", "die", "hat", "man", "war"}
_STOP_PAIRS = frozenset(LISTS["stop"]["ja_pairs"].split())


def content_words(text: str, language: str = "") -> list[str]:
    """The words that carry meaning, in order and as often as they occur: folded case, numbers in one form.

    Stop words are those of English and German; `language` (`en`, `de`, ISO 639-1) says which, and without it words that
    only one of them does without are kept. Scripts without spaces give pairs of characters.
    """
    stop_words = STOP_WORDS.get(language, STOP_WORDS[""])
    words: list[str] = []
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    for token in (_ASCII_TOKEN if plain.isascii() else TOKEN).findall(plain):
        if token in stop_words:
            continue
        if token.isascii() and token.isalpha():  # most of all tokens by far
            words.append(token)
        elif NUMBERS.fullmatch(token):
            words.append(plain_number(token))
        elif UNSPACED_RUN.fullmatch(token):
            words += [pair for pair in pairs(token) if pair not in _STOP_PAIRS]
        elif (word := token.removesuffix("'s")) not in stop_words:
            words.append(word)
    return words


def pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(max(1, len(run) - 1))]


def numbers_in(text: str) -> list[str]:
    """The numbers of the text, in order and as often as they occur, with a decimal point and no groups: `1234.5`.

    `1,234.5` and `1.234.567,8` are read as written in English and German; `1.234` alone is a decimal, `3,5` is 3.5.
    Digits inside a word of letters (`B12`) are no number. Marks such as `[1]` count: see `without_marks`.
    """
    return [plain_number(match[0]) for match in NUMBERS.finditer(unicodedata.normalize("NFKC", text))]


def plain_number(written: str) -> str:
    if _GERMAN_GROUPS.fullmatch(written) or (_GROUPS.fullmatch(written) and written.count(".") > 1):
        return written.replace(".", "").replace(",", ".")
    if _GROUPS.fullmatch(written):
        return written.replace(",", "")
    return written.replace(",", ".") if written.count(",") == 1 and "." not in written else written


def without_marks(text: str) -> str:
    return _CITATION_MARK.sub(" ", text)


def words_and_numbers(text: str, language: str) -> tuple[frozenset[str], frozenset[str]]:
    plain = without_marks(text)
    numbers = frozenset(numbers_in(plain))
    return frozenset(content_words(plain, language)) - numbers, numbers


class WordIndex:
    """Sentences by their words, each known by its place in the order in which they were given, counted from 0."""

    def __init__(self, sentences: Iterable[Set[str]]) -> None:
        self.places: dict[str, list[int]] = {}
        for place, words in enumerate(sentences):
            for word in words:
                self.places.setdefault(word, []).append(place)

    def shared(self, words: Iterable[str]) -> Counter[int]:
        """How many of the words each sentence has, where it has any."""
        shared = Counter[int]()
        for word in words:
            shared.update(self.places.get(word, ()))
        return shared

    def holds(self, place: int, word: str) -> bool:
        places = self.places.get(word, [])
        at = bisect_left(places, place)
        return at < len(places) and places[at] == place

    def count(self, place: int, words: Iterable[str]) -> int:
        return sum(self.holds(place, word) for word in words)

    def count_around(self, place: int, words: Iterable[str], size: int) -> int:
        """How many of the words so many sentences in a row have that this one is among, those that have most."""
        first = place - size + 1
        counts = [0] * size
        for word in words:
            places = self.places.get(word, [])
            at = bisect_left(places, first)
            starts = set[int]()
            while at < len(places) and places[at] < place + size:
                starts.update(range(max(first, places[at] - size + 1), min(place, places[at]) + 1))
                at += 1
            for start in starts:
                counts[start - first] += 1
        return max(counts)


class SentencePlace(NamedTuple):
    """By its index among those that were asked, and its place there; both counted from 0."""

    source: int
    sentence: int


def nearest_sentences(words: Set[str], indexes: Sequence[WordIndex], count: int) -> list[SentencePlace]:
    """The sentences that share most of the words, the best first; none that shares no word."""
    most = []
    for number, index in enumerate(indexes):
        shared = index.shared(words)
        best = nsmallest(count, ((-times, place) for place, times in shared.items()))
        most += [(times, SentencePlace(number, place)) for times, place in best]
    return [place for _, place in nsmallest(count, most)]


_KANA = re.compile(r"[\u3041-\u3096\u30a1-\u30fa]")
_HAN = re.compile(r"[\u3400-\u9fff]")

_MIN_LETTERS, _MIN_IDEOGRAPHS = 20, 8
_NOT_PROSE = re.compile(r"https?://\S+|\[\d+\]|[\W\d_]+")
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def detect_language(text: str) -> str:
    """ISO 639-1 code of the language that the text is in; `und` where it is too short or too unclear to say.

    Below 20 letters (8 in scripts that write a word in one or two signs), or below a probability of one half, nothing
    is claimed: on "Hello" detectors disagree.
    """
    prose = _NOT_PROSE.sub(" ", text).strip()
    letters = len(prose.replace(" ", ""))
    if letters < _MIN_LETTERS and len(_IDEOGRAPH.findall(prose)) < _MIN_IDEOGRAPHS:
        return "und"
    code, probability = identifier().classify(prose)
    return str(code) if float(probability) >= 0.5 else "und"


@lru_cache(maxsize=1)
def identifier() -> Any:
    """The detector with its packaged model, loaded once (0.6 s), of languages with an ISO 639-1 code."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    detector = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    detector.set_languages([code for code in detector.nb_classes if len(code) == 2])
    return detector


def known_languages() -> list[str]:
    return sorted(set(identifier().nb_classes))


def text_language(text: str, otherwise: str) -> str:
    """ISO 639-1 code of a short text's language: by a detector, else by its script, else the one given."""
    found = detect_language(text)
    if found in ("und", "zh") and 2 * len(_IDEOGRAPH.findall(text)) > sum(map(str.isalpha, text)):
        is_japanese = otherwise == "ja" or _KANA.search(text)
        found = "ja" if is_japanese else "zh" if _HAN.search(text) else found
    return otherwise if found == "und" else found


class Languages(NamedTuple):
    """In which languages a question is put and answered: ISO 639-1 codes, `und` where neither can be told."""

    asked: str
    answered: str

    @property
    def differ(self) -> bool:
        return self.asked != self.answered

    def __str__(self) -> str:
        return f"{self.asked} answered in {self.answered}" if self.differ else self.asked


@lru_cache(maxsize=4096)  # the answers to a question mostly come together
def exchange_languages(query: str, answered: str) -> Languages:
    """Of a query, and an answer in a known language or `und`; what is too short to tell is in the other's language."""
    asked = text_language(query, answered)
    return Languages(asked, asked if answered == "und" else answered)
