"""The text of a page's bytes, whatever charset it names or fails to name, and text in the form that is stored."""

import codecs
import re
from collections.abc import Iterator
from itertools import pairwise

import webencodings

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# Browsers look for it in the first 1,024 bytes; pages that put a long comment first mean it all the same.
_PROLOGUE = 4096
_DECLARED = re.compile(
    rb"""<(?:meta|\?xml)\b[^<>]{0,500}?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE
)
_GUESSED = "cp1252 cp932 euc_jp gb18030 big5 cp949 cp1251 koi8_r cp1250 cp1253 cp1255 cp1256"
_SAMPLE = 16_000
# Letters that Polish, Czech, Slovak, Hungarian and Romanian need; no word of the west has their bytes within it.
_OF_1250 = re.compile(rb"[a-z][\x9a\x9c-\x9f\xb3\xb9\xba\xbe\xbf\xe3\xf5\xf8\xfb\xfe][a-z]")
_JIS = re.compile(rb"\x1b\$[@B]")
_SEVERAL_BYTES = ("utf-8", "cp932", "shift_jis", "euc_jp", "gb18030", "big5", "big5hkscs", "euc_kr", "cp949")
_ALL_OR_NOTHING = ("utf-16", "utf-32", "iso2022", "hz")  # no letter behind a wrong one is right


def charset_of(body: bytes, named: str = "") -> str:
    """The Python name of the encoding that a text is in; `named` is the server's word for it, empty without one.

    Source, read 2026-11: https://encoding.spec.whatwg.org/#decode;
    https://html.spec.whatwg.org/#determining-the-character-encoding.
    """
    for mark, name in _MARKS:
        if body.startswith(mark):
            return name
    found = _codec_name(named) or _declared_charset(body[:_PROLOGUE])
    # Servers name Latin-1 by default, whatever the page is; text in it does not fit UTF-8 by chance.
    if found and (found != "cp1252" or not _is_utf8(body)):
        return found
    if _JIS.search(body):
        return "iso2022_jp"
    return "utf-8" if _is_utf8(body) else _guessed_charset(body)


def _codec_name(label: str) -> str:
    found = webencodings.lookup(label.strip(" \t\"'"))
    if found is None or found.name in ("replacement", "x-user-defined"):
        return ""
    return "gb18030" if found.name == "gbk" else found.codec_info.name  # Python's GBK lacks what pages in it hold


def _declared_charset(prologue: bytes) -> str:
    declared = _DECLARED.search(prologue)
    name = _codec_name(declared[1].decode("ascii", "replace")) if declared else ""
    # A declaration that can be read byte by byte is in no encoding of two.
    return "utf-8" if name.startswith(("utf-16", "utf-32")) else name


def _is_utf8(body: bytes) -> bool:
    """A body that was cut within a character does not count as wrong."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _guessed_charset(body: bytes) -> str:
    from charset_normalizer import from_bytes  # slow to import, and seldom wanted

    text = b" ".join(re.sub(rb"<[^<>]*>?", b" ", body[: 8 * _SAMPLE]).split())[:_SAMPLE]
    rows = re.findall(rb"[\x80-\xff]+", text)
    if len(rows) < 64 and not _in_rows(rows):
        return "cp1252"  # too few for the detector
    guess = from_bytes(text, cp_isolation=_GUESSED.split()).best()
    name = _codec_name(guess.encoding) or guess.encoding if guess else "cp1252"
    return "cp1252" if name == "cp1250" and not _OF_1250.search(text) else name


def _in_rows(rows: list[bytes]) -> bool:
    """Whether letters outside ASCII stand in rows, as those of other scripts do; accents stand alone."""
    return sum(map(len, rows)) > 2 * len(rows)


LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff\ufffe\uffff]")
SURROGATE = re.compile(r"[\ud800-\udfff]")
_BULLET = re.compile(r"\s|[-*+•#>|=~`]|\d{1,3}[.)]\s")
_LEAST_WRAPPED, _MOST_WRAPPED = 50, 130


def decoded(body: bytes, charset: str) -> str:
    """The text of the body; what cannot be read at all becomes U+FFFD. `charset` is the server's word, or empty.

    That counts for less than the bytes: text that is UTF-8 throughout is in no other charset by chance, and servers
    name Latin-1 unasked. A few bytes that do not fit make no other charset of the one that the rest is in.
    """
    named = charset_of(body, charset)
    for codec in _likely_codecs(body, named):
        if (text := _but_for_few(body, codec)) is not None:
            return text
    return body.decode(named, errors="replace")


def _but_for_few(body: bytes, codec: str) -> str | None:
    """The text with U+FFFD for single bytes that do not fit; None where these are too many to believe the charset.

    Of several bytes a letter, no more than a tenth may be wrong. One of a byte a letter never fails, as in browsers,
    but for the one that servers name unasked where no accents are in the text.
    """
    try:
        return body.decode(codec)
    except UnicodeDecodeError:
        if codec.startswith(_ALL_OR_NOTHING):
            return None
    text = body.decode(codec, errors="replace")
    if codec not in _SEVERAL_BYTES:
        return None if codec == "cp1252" and _in_rows(re.findall(rb"[\x80-\xff]+", body[:_SAMPLE])) else text
    lost = text.count("\ufffd")
    fitting = sum(char > "\x7f" for char in text) - lost
    return text if fitting and lost <= max(1, fitting // 10) else None


def _likely_codecs(body: bytes, named: str) -> Iterator[str]:
    head = body[:_PROLOGUE]
    if head.count(0) > len(head) // 4:
        yield "utf-16-le" if head[1::2].count(0) > head[::2].count(0) else "utf-16-be"
    if _JIS.search(body):  # in other charsets, which a server may name all the same, no text has these bytes
        yield "iso2022_jp"
    # What is UTF-8 without zeros is not of two bytes a letter, whatever the server says.
    if named.startswith(("iso2022", "hz")) or (
        named.startswith(("utf-16", "utf-32")) and (0 in head or not _is_utf8(body))
    ):
        yield named
    yield "utf-8"
    declared = _declared_charset(head) or named
    yield from (declared, named) if named == "cp1252" else (named, declared)
    yield _guessed_charset(body)


def stored_text(text: str) -> str:
    """Without control characters and lone surrogates. Source: pipeline/contracts/research.md#rules."""
    text = LINE_END.sub("\n", text).replace("\t", " ")
    text = SURROGATE.sub("\ufffd", CONTROL.sub("", text))
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"(?<![ \t\u00a0])[ \t\u00a0]++(?=\n|\Z)", "", text)).strip()


def unwrapped(text: str) -> str:
    """The text with each paragraph on a line of its own, where it was wrapped at some column."""
    return "\n\n".join(_one_line(block) for block in text.split("\n\n"))


def _one_line(paragraph: str) -> str:
    lines = paragraph.split("\n")
    longest = max(map(len, lines))
    if not _LEAST_WRAPPED <= longest <= _MOST_WRAPPED:
        return paragraph
    joined = lines[0]
    for line, following in pairwise(lines):
        is_full = len(line) + 1 + len(following.partition(" ")[0]) > longest
        goes_on = is_full and not _BULLET.match(line) and not _BULLET.match(following)
        joined = f"{joined}{' ' if goes_on else chr(10)}{following}"
    return joined
