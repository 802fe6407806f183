"""What a question is about: its words without those by which people ask, compare and order (`words.toml`)."""

import re
import unicodedata
from typing import NamedTuple

from pipeline.text import words as text_words

_ASKED_BY = {language: frozenset(text_words.LISTS["asked"][language].split()) for language in ("en", "de")}
_EITHER = _ASKED_BY["en"] | _ASKED_BY["de"]
_WITHOUT_BLANKS = {language: re.compile(text_words.LISTS["asked"][language], re.VERBOSE) for language in ("ja", "zh")}
_KATAKANA = r"\u30a1-\u30fa\u30fc"
_HAN = r"\u3400-\u9fff々"
_SIGNS = re.compile(rf"[{_KATAKANA}]{{2,}}|[{_HAN}]+|[{text_words.UNSPACED}]")
_PIECE = re.compile(rf"{text_words.TOKEN.pattern}|[^\w\s]")
_UNSPACED_SIGN, _HAN_SIGN = re.compile(f"[{text_words.UNSPACED}]"), re.compile(f"[{_HAN}]")
_LETTERS_OF_ONE = frozenset("bcdefghijklmnopqrstuvwxyz")
_WHEN = ("when", "while", "during", "wenn", "während", "beim")
_WHERE = frozenset(["in", "on", "under", "within", "at", "for", "unter", "auf", "bei", "im", "für"])
_ARTICLES = frozenset(["a", "an", "the", "der", "die", "das", "dem", "den", "einem", "einer", "ein", "eine"])
_LEAST_STEM = 5
_ENDING = re.compile(r"(?:ations?|ungen|ung|ingly|ing|ies|ied|ed|es|en|er|em|s|e|n|y)$")
# Signs at the end of a Japanese word that make an adjective or a verb of it.
_SUFFIXES = re.compile(r"(?<=..)[化的性用式]$")
_LONG_VOWEL = re.compile(rf"(?<=[{_KATAKANA}]{{3}})ー$")
"""Sign at the end of a longer loan word that half of all writers leave out: サーバー, サーバ."""
_OF_A_VERB = re.compile("する|すれ|し|さ|でき")  # What makes a verb of the Japanese noun before it
_CUT_SHORT = re.compile(r"[a-z]{1,6}'(?:d|ll|m|re|t|ve)")
"""Two English words in one, of which the second is cut short: `I've`, `we're`."""


class SubjectWord(NamedTuple):
    text: str  # The word; of Japanese and Chinese signs of one kind in a row
    general: bool
    name: bool  # Whether a capital letter marks it as a name; in German a noun is none
    scope: bool  # Whether it only says where, when or for what: `in Debian`, `when installing`
    deed: bool = False
    """Whether its form marks it as what is done or how, no noun, and nouns say what it is done to.

    In German a small letter does, of which names of programs have one too; in Japanese する behind it.
    """


def stem(word: str) -> str:
    """The word without its ending, at least five letters of it; a short one, a number and signs as they are."""
    if len(word) <= _LEAST_STEM or not word.isalpha() or _UNSPACED_SIGN.match(word):
        return word
    cut = _ENDING.sub("", word)
    return cut if len(cut) >= _LEAST_STEM else word[:_LEAST_STEM]


def is_general(word: str, language: str = "") -> bool:
    return word in _ASKED_BY.get(language, _EITHER if not language else frozenset())


def names_subject(word: SubjectWord, language: str) -> bool:
    """Whether the word says by a name what is asked about; among signs a word of letters mostly does."""
    name = word.name or (language in _WITHOUT_BLANKS and word.text.isascii() and word.text.isalpha())
    # A shorter one is often no name (`PC`), and written in many ways.
    return name and not word.scope and len(word.text.removesuffix("s")) >= 3


def subject_words(asked: str, language: str) -> list[SubjectWord]:
    found: dict[str, SubjectWord] = {}
    # A phrase is words that nothing parts; it has a number.
    phrase, scope, noun_before, before, first = 0, -1, -1, "", True
    no_subject = text_words.STOP_WORDS.get(language, text_words.STOP_WORDS[""]) | {"or", "versus", "vs", "than", "oder"}
    plain = unicodedata.normalize("NFKC", text_words.ASKS_WITHOUT_BLANKS.sub(" ", asked)).replace("’", "'")
    for piece in _PIECE.finditer(plain):
        written = piece[0]
        word = written.casefold().removesuffix("'s")
        if _UNSPACED_SIGN.match(written):
            for part, general, deed in _unspaced_words(written, language):
                phrase += general or not part
                if part:
                    found.setdefault(part, SubjectWord(part, general, False, False, deed=deed))
                    phrase += general
        elif not re.match(r"\w", written):
            phrase += written not in "-/·'"
        elif word in _ARTICLES:
            continue
        elif word in no_subject or len(word) == 1 or _CUT_SHORT.fullmatch(word):
            phrase += word not in _LETTERS_OF_ONE
        else:
            inner = any(letter.isupper() for letter in written[1:])
            named = inner or (written[:1].isupper() and not first and language != "de")
            general = not named and is_general(word, language)
            text = text_words.plain_number(word) if text_words.NUMBERS.fullmatch(word) else word
            deed = language == "de" and not named and not written[:1].isupper()
            phrase += general or (deed and noun_before == phrase)
            scope = phrase if before in _WHEN or (before in _WHERE and written[:1].isupper()) else scope
            found.setdefault(text, SubjectWord(text, general, named, phrase == scope, deed=deed))
            noun_before = -1 if deed else phrase
            phrase += general
        before, first = word, False
    lone = all(word.scope or word.general for word in found.values())
    nouns = any(not (word.deed or word.scope or word.general) for word in found.values())
    return [word._replace(scope=word.scope and not lone, deed=word.deed and nouns) for word in found.values()]


def _unspaced_words(run: str, language: str) -> list[tuple[str, bool, bool]]:
    """Each with whether it is a general one or a deed; an empty one for a particle."""
    general = _WITHOUT_BLANKS.get(language, _WITHOUT_BLANKS["ja"])
    words: list[tuple[str, bool, bool]] = []
    last = 0
    for common in [*general.finditer(run), None]:
        for signs in _SIGNS.finditer(run, last, common.start() if common else len(run)):
            deed = language == "ja" and bool(_OF_A_VERB.match(run, signs.end()))
            words += [(_plain(each, deed), False, deed) for each in _cut(signs[0], language)]
        if common:
            words.append((common[0], True, False))
            last = common.end()
    return words


def _plain(signs: str, deed: bool) -> str:
    """The word without an ending; 化 is one in 自動化する, while 仮想化 alone names a thing."""
    return _LONG_VOWEL.sub("", signs if signs.endswith("化") and not deed else _SUFFIXES.sub("", signs))


def _cut(signs: str, language: str) -> list[str]:
    """Signs of one kind as words: kana as they are, many Han signs in pairs; an empty one for a single other sign."""
    if len(signs) == 1:
        return [""]
    most = 2 if language == "zh" else 4  # more Han signs in a row are taken for pairs, as in Chinese all are
    return text_words.pairs(signs) if _HAN_SIGN.match(signs) and len(signs) > most else [signs]


def stems_of(text: str, language: str) -> frozenset[str]:
    return frozenset(map(stem, text_words.content_words(text, language)))
