"""Text from models and web pages made harmless for the annotator's browser, legible and copyable.

How Argilla's page shows a text field (argilla-frontend 2.8.0, TextField and MarkdownRenderer, read 2026-11):

- Without Markdown the text goes into `innerHTML` as it is. `plain_text` escapes what would begin a tag or be read as an
  entity, and only that: the page's copy button and its search take the text as it is stored.
- With Markdown it goes through marked (raw HTML, links, images and bare URLs live), KaTeX (`$…$`), highlight.js and
  DOMPurify. `markdown_text` leaves emphasis, headings, lists, tables and code; nothing else can begin.

Neither function depends on how the page finds its code blocks: `markdown_text` treats what looks like code in a way
that is harmless outside of code too. Which way is taken decides about beauty only.

Source: SECURITY.md#text-of-models-and-pages.
"""

import html
import re
import unicodedata
from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

WORD_JOINER = "\u2060"  # invisible, without width; breaks up what would otherwise be markup
_MARKS_IN_A_ROW = 4  # Vietnamese, pointed Hebrew and vocalised Arabic need up to three

# All that ends a line or a page somewhere; a form feed taken out would join the words beside it.
_LINE_ENDS = re.compile("\r\n?|[\v\f\x85\u2028\u2029]")
# Embeddings, overrides and isolates reorder what follows; the plain marks U+200E, U+200F and U+061C do not.
_BIDI_CONTROLS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_CONTROLS = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI_CONTROLS}]")
_POSSIBLE_MARKS = re.compile(rf"[^\x00-\x7f\w\s]{{{_MARKS_IN_A_ROW + 1},}}")

# Beyond these marked takes many seconds, or runs out of stack, and the page with it (tried with the page's own marked).
_LONGEST_MARKDOWN = 100_000
LONGEST_PARAGRAPH = 8_000
_LONGEST_SPACE = 200
_DEEP_NESTING = re.compile(r"^[ \t]*(?:(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))[ \t]*){20}", re.MULTILINE)
_SPACES = re.compile(rf"[^\S\n]{{{_LONGEST_SPACE + 1},}}")
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n")

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_INDENTED = re.compile(r"(?: {4}|\t)")
_PARAGRAPHS = re.compile(r".+?(?:\n[ \t]*\n|\Z)", re.DOTALL)
_BACKTICKS = re.compile(r"`+")
# Where a tag, a link, image, reference or definition, an address, a host name, a closing `$` of a formula begin or end.
_MARKUP = r"<(?=[a-z/!?])|\](?=[(\[:])|:(?=//)|www(?=\.)|@(?=[\w-])|\$(?![a-z0-9{(])"
_MARKUP_IN_CODE = re.compile(_MARKUP, re.IGNORECASE)
# Nothing else after a `<` begins a tag: https://html.spec.whatwg.org/multipage/parsing.html#tag-open-state
_TAG_OR_ENTITY = re.compile(r"<(?=[a-z/!?])|&#?\w+;?", re.IGNORECASE | re.ASCII)
# A backslash before it would escape our entity's `&` and leave the rest to be read.
_MARKUP_IN_TEXT = re.compile(rf"(?<!\\)(\\*)({_MARKUP})", re.IGNORECASE)


def plain_text(text: str) -> str:
    """The text for a field without Markdown: it is shown exactly, line by line, and copied exactly from the page."""
    return _TAG_OR_ENTITY.sub(_escaped_tag_or_entity, harmless_characters(text))


def _escaped_tag_or_entity(found: re.Match[str]) -> str:
    """The beginning of a tag escaped, and an ampersand that a browser would read as one; `R&D` stays as it is."""
    read = html.unescape(found[0])
    return html.escape(found[0], quote=False) if found[0] == "<" or read != found[0] else found[0]


def markdown_text(text: str) -> str:
    """The text for a field with Markdown: emphasis, headings, lists, tables and code stay, all else is shown as text.

    No HTML, link, image, bare URL, e-mail address, reference or formula is left to render. One that the page could not
    render in time is shown without any formatting, line by line as it stands.
    """
    text = _SPACES.sub(" " * _LONGEST_SPACE, harmless_characters(text))
    if not _renders_in_time(text):
        return _fenced(text)
    return "".join(
        _harmless_code(part) if looks_like_code else _MARKUP_IN_TEXT.sub(_escaped_markup, part)
        for looks_like_code, part in code_and_text(text)
    )


def _renders_in_time(text: str) -> bool:
    """Whether the page's Markdown renderer, which is quadratic in many places, can take the text."""
    return (
        len(text) <= _LONGEST_MARKDOWN
        and max(map(len, _BLANK_LINES.split(text))) <= LONGEST_PARAGRAPH
        and _DEEP_NESTING.search(text) is None
    )


def _fenced(text: str) -> str:
    """The text as one block of code, between fences longer than any of its own."""
    longest = max((len(found[0]) for found in _BACKTICKS.finditer(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{_harmless_code(text)}\n{fence}"


def _harmless_code(text: str) -> str:
    """The text with an invisible joiner wherever markup could begin, inside of code or outside."""
    return _MARKUP_IN_CODE.sub(lambda found: found[0] + WORD_JOINER, text)


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


def _escaped_markup(found: re.Match[str]) -> str:
    """The markup with its first character as a numeric entity, after whole pairs of backslashes only."""
    backslashes, markup = found.groups()
    return f"{backslashes[: len(backslashes) // 2 * 2]}&#{ord(markup[0])};{markup[1:]}"


def code_and_text(text: str) -> Iterator[tuple[bool, str]]:
    """The text in parts, each with whether it looks like code; joined they are the text."""
    for in_block, lines in groupby(_lines_with_blocks(text), key=itemgetter(0)):
        block = "".join(line for _, line in lines)
        if in_block:
            yield True, block
        else:
            for paragraph in _PARAGRAPHS.findall(block):
                yield from _spans_and_text(paragraph)


def _lines_with_blocks(text: str) -> Iterator[tuple[bool, str]]:
    """The text's lines, each with whether it belongs to a code block: between fences, or indented by four."""
    fence = ""
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line)
        yield bool(fence or found or _INDENTED.match(line)), line
        if not fence:
            fence = found[1] if found else ""
        elif found and found[1].startswith(fence):
            fence = ""


def _spans_and_text(paragraph: str) -> Iterator[tuple[bool, str]]:
    """The paragraph in parts, each with whether it is a code span: two runs of equally many backticks enclose one.

    Takes time in proportion to the length, whatever the runs.
    """
    runs = [found.span() for found in _BACKTICKS.finditer(paragraph)]
    closers: dict[int, deque[int]] = defaultdict(deque)
    for start, end in runs:
        closers[end - start].append(end)
    place = 0
    for start, end in runs:
        ends = closers[end - start]
        while ends and ends[0] <= max(place, end):
            ends.popleft()
        if start < place or not ends:
            continue
        yield False, paragraph[place:start]
        place = ends.popleft()
        yield True, paragraph[start:place]
    yield False, paragraph[place:]
