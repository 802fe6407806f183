"""The words of a text as the search compares them: without case, Unicode forms, punctuation or anything invisible.

A word is a run of letters, digits and their marks. A character of a script that is written without spaces, or an
emoji, is a word by itself, so that 安全 is a phrase of two words and is found within any sentence.
"""

import json
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from html.entities import html5
from typing import Any

# https://spec.commonmark.org/0.31.2/#entity-and-numeric-character-references
_ENTITY = "&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{0,31});"
_RENDERED = '<div class="citejury-answer"'
"""How a rendered answer begins (annotation/argilla/rendering.py); all other fields have `<` before a letter escaped."""
_WITHIN_WORDS = "</?(?:strong|em|code)>"
_NUMBERED = '<li value="([0-9]+)">'
_ASSIGNED = (*range(0x32400), *range(0xE0000, 0xE0200))  # between them and after them is nothing but private use
_VARIATION_SELECTORS = ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
# Scripts written without spaces, by their blocks (https://www.unicode.org/Public/14.0.0/ucd/Blocks.txt), and emoji.
_ALONE = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1100, 0x11FF),  # Hangul Jamo
    (0x1780, 0x17FF),  # Khmer
    (0x2600, 0x27BF),  # emoji among the older symbols
    (0x3005, 0x3007),  # 々〆〇
    (0x3021, 0x3029),
    (0x3041, 0x309F),  # Hiragana
    (0x30A1, 0x30FA),  # Katakana
    (0x30FC, 0x30FF),
    (0x3105, 0x312F),  # Bopomofo
    (0x31A0, 0x31BF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xA000, 0xA48C),  # Yi
    (0xAC00, 0xD7A3),  # Hangul
    (0xF900, 0xFAFF),
    (0x1B000, 0x1B16F),
    (0x1F000, 0x1FAFF),  # emoji
    (0x20000, 0x3FFFD),
)
_GAP = "\ue000"  # a word that no query has: a phrase does not go from one message of a chat to the next

_CATEGORIES = "".join(map(unicodedata.category, map(chr, _ASSIGNED)))
"""Of each assigned code point two letters, a capital and a small one."""

Ranges = tuple[tuple[int, int], ...]


def _ranges_of(*categories: str) -> Ranges:
    runs = re.finditer(f"(?:{'|'.join(f'{category:.<2}' for category in categories)})+", _CATEGORIES)
    return tuple((_ASSIGNED[run.start() // 2], _ASSIGNED[run.end() // 2 - 1]) for run in runs)


def _bracketed(ranges: Ranges) -> str:
    return "".join(chr(low) if low == high else f"{chr(low)}-{chr(high)}" for low, high in ranges)


_BEYOND = r"(?=[\U00010000-\U0010ffff])"
_NEAREST = ((0, 0xFFFF),)
_FURTHER = ((0x10000, sys.maxunicode),)


def _without(ranges: Ranges, removed: Ranges) -> Ranges:
    for first, last in removed:
        cut = (
            ((low, min(high, first - 1)) for low, high in ranges),
            ((max(low, last + 1), high) for low, high in ranges),
        )
        ranges = tuple(sorted((low, high) for part in cut for low, high in part if low <= high))
    return ranges


_INVISIBLE = _ranges_of("Cf") + _VARIATION_SELECTORS
_TOGETHER = _without(_ranges_of("L", "N", "M"), _ALONE)
# The characters beyond U+FFFF apart: Python looks through their ranges one by one, and most texts have none.
_HIDDEN = re.compile(f"[{_bracketed(_without(_INVISIBLE, _FURTHER))}]")
_HIDDEN_BEYOND = re.compile(f"{_BEYOND}[{_bracketed(_without(_INVISIBLE, _NEAREST))}]")
_WORD = re.compile(
    f"(?:[{_bracketed(_without(_TOGETHER, _FURTHER))}]+|{_BEYOND}[{_bracketed(_without(_TOGETHER, _NEAREST))}])+"
    f"|[{_bracketed(_without(_ALONE, _FURTHER))}]|{_BEYOND}[{_bracketed(_without(_ALONE, _NEAREST))}]"
)


def words_of(text: str) -> str:
    if not text.isascii():
        text = _HIDDEN.sub("", text)
        text = _HIDDEN_BEYOND.sub("", text) if max(text, default="") > "\uffff" else text
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def _visible(text: str) -> str:
    if text.startswith(_RENDERED):
        text = re.sub(_WITHIN_WORDS, "", text)
        text = re.sub("<[^>]*>", " ", re.sub(_NUMBERED, r" \1 ", text))
    return re.sub(_ENTITY, _read_entity, text) if "&" in text else text


def _read_entity(found: re.Match[str]) -> str:
    name = found[0][1:]
    if not name.startswith("#"):
        return html5.get(name, found[0])
    point = int(name[2:-1], 16) if name[1] in "xX" else int(name[1:-1])
    return chr(point) if 0 < point <= sys.maxunicode and not 0xD800 <= point <= 0xDFFF else "\N{REPLACEMENT CHARACTER}"


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
