"""The words of a text as the search compares them: without case, Unicode forms, punctuation or anything invisible.

A word is a run of letters, digits and their marks. A character of a script that is written without spaces, or an
emoji, is a word by itself, so that 安全 is a phrase of two words and is found within any sentence.
"""

import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from unicodedata import category, east_asian_width, normalize

# https://spec.commonmark.org/0.31.2/#entity-and-numeric-character-references
_ENTITY = "&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{0,31});"
_RENDERED = '<div class="citejury-answer"'
"""How a rendered answer begins (annotation/argilla/rendering.py); all other fields have `<` before a letter escaped."""
_WITHIN_WORDS = "</?(?:strong|em|code)>"
_NUMBERED = '<li value="([0-9]+)">'
_VARIATION_SELECTORS = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
# Narrow scripts without spaces (https://www.unicode.org/Public/14.0.0/ucd/Blocks.txt): Thai and Lao, Myanmar, Khmer.
_ALONE = (range(0x0E00, 0x0F00), range(0x1000, 0x10A0), range(0x1780, 0x1800))
_GAP = "\ue000"  # a word that no query has: a phrase does not go from one message of a chat to the next


class _Signs(dict[int, str]):
    """By code point what is left of a character: itself, nothing, a space, or itself between spaces."""

    def __missing__(self, point: int) -> str:
        sign = chr(point)
        kind = category(sign)
        if kind == "Cf" or any(point in each for each in _VARIATION_SELECTORS):
            self[point] = ""
        elif kind[0] not in "LNM" and kind != "So":
            self[point] = " "
        elif east_asian_width(sign) == "W" or any(point in each for each in _ALONE):
            self[point] = f" {sign} "
        else:
            self[point] = " " if kind == "So" else sign
        return self[point]


_SIGNS = _Signs()


def words_of(text: str) -> str:
    if text.isascii():
        return " ".join(re.findall("[a-z0-9]+", text.lower()))
    return " ".join(normalize("NFKC", text).casefold().translate(_SIGNS).split())


def _visible(text: str) -> str:
    if text.startswith(_RENDERED):
        text = re.sub(_WITHIN_WORDS, "", text)
        text = re.sub("<[^>]*>", " ", re.sub(_NUMBERED, r" \1 ", text))
    return re.sub(_ENTITY, lambda found: html.unescape(found[0]), text) if "&" in text else text


def words_by_field(fields: Mapping[str, Any]) -> dict[str, str]:
    """A field may be a text or hold texts, as a chat does; the keys of an object are no words of it."""
    gap = f" {_GAP} "
    return {name: gap.join(words_of(_visible(leaf)) for leaf in _leaves_of(value)) for name, value in fields.items()}


def _leaves_of(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting.extend(reversed(each.values()))
        elif isinstance(each, list):
            waiting.extend(reversed(each))
        elif each is not None:
            yield each if isinstance(each, str) else json.dumps(each)
