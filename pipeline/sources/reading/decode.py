"""The text of a page's bytes, whatever charset it names or fails to name, and text in the form that is stored."""

import re
from collections.abc import Iterator
from itertools import pairwise

from pipeline.sources.reading.charset import PROLOGUE, charset_of, declared_charset, guessed_charset

SEVEN_BIT = ("iso2022", "hz", "utf-16", "utf-32")
LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff\ufffe\uffff]")
SURROGATE = re.compile(r"[\ud800-\udfff]")
BLANKS_AT_END = re.compile(r"(?<![ \t\u00a0])[ \t\u00a0]++(?=\n|\Z)")
MANY_NEWLINES = re.compile(r"\n{3,}")
BULLET = re.compile(r"\s|[-*+•#>|=~`]|\d{1,3}[.)]\s")
LEAST_WRAPPED, MOST_WRAPPED = 50, 130


def decoded(body: bytes, charset: str) -> str:
    """The text of the body; what cannot be read at all becomes U+FFFD.

    `charset` is the server's word, or empty. It counts for less than the bytes: text that is UTF-8 throughout is in no
    other charset by chance, and servers name Latin-1 unasked.
    """
    named = charset_of(body, charset)
    for codec in likely_codecs(body, named):
        try:
            return body.decode(codec)
        except UnicodeDecodeError:
            continue
    return body.decode(named, errors="replace")


def likely_codecs(body: bytes, named: str) -> Iterator[str]:
    """Python's names of the codecs to try, the likeliest first."""
    head = body[:PROLOGUE]
    if head.count(0) > len(head) // 4:
        yield "utf-16-le" if head[1::2].count(0) > head[::2].count(0) else "utf-16-be"
    if named.startswith(SEVEN_BIT):
        yield named
    yield "utf-8"
    if named == "cp1252":
        yield declared_charset(head) or named
    yield named
    yield guessed_charset(body)


def stored_text(text: str) -> str:
    """The text with `\\n` for every line end and without control characters (seed 004 §3) and lone surrogates.

    A tab becomes a blank, blanks at the end of a line go, and more than one empty line becomes one.
    """
    text = LINE_END.sub("\n", text).replace("\t", " ")
    text = SURROGATE.sub("\ufffd", CONTROL.sub("", text))
    return MANY_NEWLINES.sub("\n\n", BLANKS_AT_END.sub("", text)).strip()


def unwrapped(text: str) -> str:
    """The text with each paragraph on a line of its own, where it was wrapped at some column.

    A line goes on in the next one where the two do not begin like an item of a list, a quote or a table, and the next
    one's first word would have made it longer than the paragraph's longest line, which has 50 to 130 characters.
    """
    return "\n\n".join(one_line(block) for block in text.split("\n\n"))


def one_line(paragraph: str) -> str:
    """The paragraph's lines joined with blanks where it is wrapped, else the paragraph itself."""
    lines = paragraph.split("\n")
    longest = max(map(len, lines))
    if not LEAST_WRAPPED <= longest <= MOST_WRAPPED:
        return paragraph
    joined = lines[0]
    for line, following in pairwise(lines):
        is_full = len(line) + 1 + len(following.partition(" ")[0]) > longest
        goes_on = is_full and not BULLET.match(line) and not BULLET.match(following)
        joined = f"{joined}{' ' if goes_on else chr(10)}{following}"
    return joined
