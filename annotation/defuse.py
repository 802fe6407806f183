"""Text from models and web pages made harmless for the annotator's browser, legible and copyable.

Argilla's page puts a text field without Markdown into `innerHTML` as it is (argilla-frontend 2.8.0, TextField, read
2026-11). `plain_text` escapes what would begin a tag or be read as an entity, and only that: the page's copy button and
its search take the text as it is stored. Answers, which are Markdown, are `annotation.rendering`'s.

Source: SECURITY.md#text-of-models-and-pages.
"""

import html
import re
import unicodedata
from itertools import groupby

_MARKS_IN_A_ROW = 4  # Vietnamese, pointed Hebrew and vocalised Arabic need up to three

# All that ends a line or a page somewhere; a form feed taken out would join the words beside it.
_LINE_ENDS = re.compile("\r\n?|[\v\f\x85\u2028\u2029]")
# Embeddings, overrides and isolates reorder what follows; the plain marks U+200E, U+200F and U+061C do not.
_BIDI_CONTROLS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_CONTROLS = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI_CONTROLS}]")
_POSSIBLE_MARKS = re.compile(rf"[^\x00-\x7f\w\s]{{{_MARKS_IN_A_ROW + 1},}}")

# Nothing else after a `<` begins a tag: https://html.spec.whatwg.org/multipage/parsing.html#tag-open-state
_TAG_OR_ENTITY = re.compile(r"<(?=[a-z/!?])|&#?\w+;?", re.IGNORECASE | re.ASCII)


def plain_text(text: str) -> str:
    """The text for a field without Markdown: it is shown exactly, line by line, and copied exactly from the page."""
    return _TAG_OR_ENTITY.sub(_escaped_tag_or_entity, harmless_characters(text))


def _escaped_tag_or_entity(found: re.Match[str]) -> str:
    """The beginning of a tag escaped, and an ampersand that a browser would read as one; `R&D` stays as it is."""
    read = html.unescape(found[0])
    return html.escape(found[0], quote=False) if found[0] == "<" or read != found[0] else found[0]


def one_line(text: str, longest: int = 200) -> str:
    """The text on one line, cut to at most `longest` characters; for titles and host names."""
    words = " ".join(text.split())
    return words if len(words) <= longest else words[: longest - 1].rstrip() + "…"


def harmless_characters(text: str) -> str:
    """The text without control characters, reordering bidi controls and towers of combining marks."""
    text = _CONTROLS.sub("", _LINE_ENDS.sub("\n", text))
    return _POSSIBLE_MARKS.sub(lambda found: _without_towers(found[0]), text)


def _without_towers(text: str) -> str:
    """The text with at most four combining marks in a row."""
    runs = groupby(text, key=lambda character: unicodedata.category(character) in ("Mn", "Me"))
    return "".join(
        "".join(characters)[:_MARKS_IN_A_ROW] if are_marks else "".join(characters) for are_marks, characters in runs
    )
