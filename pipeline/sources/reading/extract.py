"""A page's bytes turned into the text that is stored, whatever they are: HTML, plain text or PDF."""

import re
from typing import NamedTuple

from pipeline.sources.reading.decode import decoded, stored_text, unwrapped
from pipeline.sources.reading.quality import verdict_on
from pipeline.sources.store.states import Reason

HTML_TYPES = ("text/html", "application/xhtml+xml")
TEXT_TYPES = ("application/json", "application/ld+json", "application/x-ndjson", "application/yaml", "application/toml")
NO_PROSE = ("text/css", "text/javascript", "text/ecmascript")
UNKNOWN_TYPES = (
    "",
    "application/octet-stream",
    "binary/octet-stream",
    "application/download",
    "application/x-download",
)
XML_TYPES = ("application/xml", "text/xml", "application/rss+xml", "application/atom+xml")
HTML_START = re.compile(rb"\s*(?:<!--.{0,2000}?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.I | re.S)
NOT_TEXT_BYTES = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
SNIFFED = 4096
MOST_UNREADABLE = 0.05
LANGUAGE_FROM = 5_000


class Extracted(NamedTuple):
    """What there is to read in one page."""

    text: str
    """The main text, without control characters, `\\n` between lines. It may be there although the page is useless:
    the words of a wall, or the beginning that a paywall leaves."""
    title: str
    """The page's title; empty where it has none."""
    language: str
    """ISO 639-1 code of the text's language; empty where it cannot be told."""
    content_type: str
    """The media type that the body was read as, which need not be the one that the server named."""
    page_starts: tuple[int, ...]
    """First code point of each page of a PDF; empty for everything else."""
    reason: Reason
    """`page` where the text is worth reading, else why it is not."""
    detail: str
    """Plain words on the reason; empty for `page`."""


def extract_document(body: bytes, content_type: str, charset: str, url: str) -> Extracted:
    """What there is to read in the body; `charset` is the one that the server named, or empty.

    A hostile body may take any time and memory, or the process: `Extractor` does this in processes that may be lost.
    """
    kind = kind_of(body, content_type)
    if not body.strip():
        return unread(kind, "empty", "the body is empty")
    if kind == "application/pdf":
        return extract_pdf(body)
    if kind not in (*HTML_TYPES, "text/plain"):
        return unread(kind, "not_text", f"it is {kind}")
    text = decoded(body, charset)
    if text.count("\ufffd") > MOST_UNREADABLE * len(text):
        return unread(kind, "bad_encoding", f"it is not in the charset {charset or 'that it seems to be in'!r}")
    return extract_plain(text) if kind == "text/plain" else extract_html(text, url)


def kind_of(body: bytes, content_type: str) -> str:
    """The media type to read the body as: the one named, or by its first bytes where that says nothing or is wrong."""
    named = content_type.partition(";")[0].strip().lower()
    head = body[:SNIFFED]
    if b"%PDF-" in head[:1024]:
        return "application/pdf"
    if HTML_START.match(head) and (named in (*UNKNOWN_TYPES, *XML_TYPES, *HTML_TYPES) or named == "application/pdf"):
        return "text/html"
    if named in HTML_TYPES:
        return "text/html" if not looks_binary(head) else "application/octet-stream"
    if named in XML_TYPES:
        return "text/html"
    if (named.startswith("text/") and named not in NO_PROSE) or named in (*TEXT_TYPES, *UNKNOWN_TYPES):
        return "text/plain" if not looks_binary(head) else "application/octet-stream"
    return named or "application/octet-stream"


def looks_binary(head: bytes) -> bool:
    """Whether the first bytes are those of no text in any charset; UTF-16 has many zeros, and says so at its start."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or head[::2].count(0) > len(head) // 8 > head[1::2].count(0):
        return False
    if head[1::2].count(0) > len(head) // 8 > head[::2].count(0):
        return False
    return len(NOT_TEXT_BYTES.findall(head)) > len(head) // 50


def extract_html(page: str, url: str) -> Extracted:
    """What an HTML page says, judged."""
    from pipeline.sources.reading.html_text import read_html

    html = read_html(page, url)
    verdict = verdict_on(html.text, html.title, html.marked_paid)
    language = language_of(html.text) or (html.language if len(html.language) == len("de") else "")
    return Extracted(html.text, html.title, language, "text/html", (), verdict.reason, verdict.detail)


def extract_plain(text: str) -> Extracted:
    """A plain text or Markdown file as it is, lines of wrapped paragraphs joined."""
    text = unwrapped(stored_text(text))
    if not text:
        return unread("text/plain", "empty", "there are only blanks in it")
    heading = text.partition("\n")[0]
    title = heading.lstrip("# ") if heading.startswith("#") else ""
    return Extracted(text, title[:300], language_of(text), "text/plain", (), "page", "")


def extract_pdf(body: bytes) -> Extracted:
    """What a PDF says, with the places of its pages."""
    from pipeline.sources.reading.pdf import UnreadablePdfError, read_pdf

    kind = "application/pdf"
    try:
        pdf = read_pdf(body)
    except UnreadablePdfError as error:
        return unread(kind, "parser_failed", str(error))
    if not pdf.whole:
        return unread(kind, "too_large", f"its text goes on after {len(pdf.page_starts)} pages")
    if not pdf.text:
        return unread(kind, "empty", f"no text on its {len(pdf.page_starts)} pages; they may be pictures of text")
    return Extracted(pdf.text, pdf.title, language_of(pdf.text), kind, pdf.page_starts, "page", "")


def language_of(text: str) -> str:
    """ISO 639-1 code of the text's language, told from its beginning; empty where it cannot be told."""
    from pipeline.text.language import detect_language

    code = detect_language(text[:LANGUAGE_FROM])
    return "" if code == "und" else code


def unread(content_type: str, reason: Reason, detail: str) -> Extracted:
    """A body without anything to read."""
    return Extracted("", "", "", content_type, (), reason, detail)
