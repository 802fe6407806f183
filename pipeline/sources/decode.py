"""The text of a page's bytes, whatever charset it names or fails to name, and text in the form that is stored."""

import codecs
import re
from collections.abc import Iterator

BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
META_CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})|encoding=[\"']([\w.-]{2,40})[\"']", re.I
)
META_WITHIN = 4096
GUESSED_FROM = 65_536
HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
FEW = 64
ESCAPES = (b"\x1b$B", b"\x1b$@", b"\x1b(J")
SEVEN_BIT = ("iso2022", "hz", "utf_16", "utf_32")
WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
}
"""What a charset's name means on the web, by Python's names. Source: https://encoding.spec.whatwg.org/#names-and-labels"""

LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff\ufffe\uffff]")
SURROGATE = re.compile(r"[\ud800-\udfff]")
BLANKS_AT_END = re.compile(r"(?<![ \t\u00a0])[ \t\u00a0]++(?=\n|\Z)")
MANY_NEWLINES = re.compile(r"\n{3,}")
BULLET = re.compile(r"\s|[-*+•#>|=~`]|\d{1,3}[.)]\s")
LEAST_WRAPPED, MOST_WRAPPED = 50, 100


def decoded(body: bytes, charset: str) -> str:
    """The text of the body; what cannot be read at all becomes U+FFFD.

    It is read by its byte order mark, as UTF-8 where it is that, then in the charset that the header or the page names,
    then by the look of it.
    """
    for mark, codec in BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return body.decode(codec, errors="replace")
    for codec in likely_codecs(body, charset):
        try:
            return body.decode(codec)
        except UnicodeDecodeError:
            continue
    return body.decode(next(named_codecs(body, charset), "utf-8"), errors="replace")


def likely_codecs(body: bytes, charset: str) -> Iterator[str]:
    """Python's names of the codecs to try, the likeliest first."""
    named = sorted(named_codecs(body, charset), key=lambda codec: codec == "cp1252")  # what servers say unasked
    head = body[:META_WITHIN]
    if head.count(0) > len(head) // 4:
        yield "utf_16_le" if head[1::2].count(0) > head[::2].count(0) else "utf_16_be"
    yield from (codec for codec in named if codec.startswith(SEVEN_BIT))
    if any(escape in head for escape in ESCAPES):
        yield "iso2022_jp"
    yield "utf-8"
    yield from named
    guess = guessed_codec(body)
    if guess:
        yield guess


def named_codecs(body: bytes, charset: str) -> Iterator[str]:
    """The codecs that the header and the page name; names that Python does not know, and UTF-7, are left out."""
    in_page = META_CHARSET.search(body[:META_WITHIN])
    labels = [charset, (in_page[1] or in_page[2]).decode("ascii", "replace") if in_page else ""]
    for label in labels:
        try:
            info = codecs.lookup(label.strip())
            "".encode(label.strip())  # a LookupError for codecs that are no charset, such as `rot13`
        except (LookupError, ValueError):
            continue
        codec = WIDER.get(info.name, info.name).replace("-", "_")
        if codec == "utf_16" and label is not charset:
            continue  # a page that names UTF-16 in ASCII is not in UTF-16
        if codec not in ("utf_7", "utf_8", "utf_8_sig"):
            yield codec


def guessed_codec(body: bytes) -> str:
    """The codec that the body looks like; empty where it looks like none."""
    from charset_normalizer import from_bytes

    runs = HIGH_BYTES.findall(body[:GUESSED_FROM])
    if len(runs) < FEW and sum(map(len, runs)) <= 2 * len(runs):
        return "cp1252"  # accents stand alone, letters of other scripts in rows; too little for a detector
    best = from_bytes(body[:GUESSED_FROM], steps=3).best()
    return WIDER.get(best.encoding, best.encoding) if best else ""


def stored_text(text: str) -> str:
    """The text with `\\n` for every line end and without control characters (seed 004 §3) and lone surrogates.

    A tab becomes a blank, blanks at the end of a line go, and more than one empty line becomes one.
    """
    text = LINE_END.sub("\n", text).replace("\t", " ")
    text = SURROGATE.sub("\ufffd", CONTROL.sub("", text))
    return MANY_NEWLINES.sub("\n\n", BLANKS_AT_END.sub("", text)).strip()


def unwrapped(text: str) -> str:
    """The text with each paragraph on a line of its own, where it was wrapped at some column.

    A paragraph is wrapped if every line but its last is 50 to 100 characters long and none begins like an item of a
    list, a quote or a table.
    """
    return "\n\n".join(one_line(block) for block in text.split("\n\n"))


def one_line(paragraph: str) -> str:
    """The paragraph's lines joined with blanks where it is wrapped, else the paragraph itself."""
    lines = paragraph.split("\n")
    wrapped = all(LEAST_WRAPPED <= len(line) <= MOST_WRAPPED for line in lines[:-1]) and len(lines[-1]) <= MOST_WRAPPED
    return " ".join(lines) if wrapped and not any(BULLET.match(line) for line in lines) else paragraph
