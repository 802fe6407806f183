"""A page's bytes turned into the text that is stored, whatever they are: HTML, plain text or PDF."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

from pipeline.sources.headings import Heading
from pipeline.sources.reading._absence import markup_of_404
from pipeline.sources.reading._address import Address
from pipeline.sources.reading._headings import (
    NamedHeading,
    html_headings,
    markdown_headings,
    placed_in_text,
    placed_on_pages,
)
from pipeline.sources.reading._paragraphs import mark_paragraphs
from pipeline.sources.reading._quality import PageSigns, page_verdict
from pipeline.sources.reading._words import monotony_of
from pipeline.sources.reading.decode import decoded, stored_text, unwrapped
from pipeline.sources.schema import Reason

_HTML_TYPES = ("text/html", "application/xhtml+xml")
_TEXT_TYPES = (
    "application/json",
    "application/ld+json",
    "application/x-ndjson",
    "application/yaml",
    "application/toml",
)
_NO_PROSE = ("text/css", "text/javascript", "text/ecmascript")
_UNKNOWN_TYPES = (
    "",
    "application/octet-stream",
    "binary/octet-stream",
    "application/download",
    "application/x-download",
)
_XML_TYPES = ("application/xml", "text/xml", "application/rss+xml", "application/atom+xml")
_HTML_START = re.compile(rb"\s*(?:<!--.{0,2000}?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.I | re.S)
_NOT_TEXT_BYTES = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_SNIFFED = 4096
_MOST_UNREADABLE = 0.05
_LANGUAGE_FROM = 5_000


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
    headings: tuple[Heading, ...] = ()
    """The headings that stand in the text, in order."""


def extract_document(body: bytes, content_type: str, charset: str, url: str, asked: str = "") -> Extracted:
    """What there is to read in the body; `charset` is the one that the server named, or empty.

    `asked` is the address that redirects led from to `url`; empty where that was asked for itself.

    A hostile body may take any time and memory, or the process: `Extractor` does this in processes that may be lost.
    """
    kind = _kind_of(body, content_type)
    if not body.strip():
        return unread(kind, "empty", "the body is empty")
    if kind == "application/pdf":
        return _extract_pdf(body)
    if kind not in (*_HTML_TYPES, "text/plain"):
        return unread(kind, "not_text", f"it is {kind}")
    text = decoded(body, charset)
    if text.count("\ufffd") > _MOST_UNREADABLE * len(text):
        return unread(kind, "bad_encoding", f"it is not in the charset {charset or 'that it seems to be in'!r}")
    return _extract_plain(text) if kind == "text/plain" else _extract_html(text, url, asked or url)


def _kind_of(body: bytes, content_type: str) -> str:
    """The media type to read the body as: the one named, or by its first bytes where that says nothing or is wrong."""
    named = content_type.partition(";")[0].strip().lower()
    head = body[:_SNIFFED]
    if b"%PDF-" in head[:1024]:
        return "application/pdf"
    if _HTML_START.match(head) and (
        named in (*_UNKNOWN_TYPES, *_XML_TYPES, *_HTML_TYPES) or named == "application/pdf"
    ):
        return "text/html"
    if named in _HTML_TYPES:
        return "text/html" if not _looks_binary(head) else "application/octet-stream"
    if named in _XML_TYPES:
        return "text/html"
    if (named.startswith("text/") and named not in _NO_PROSE) or named in (*_TEXT_TYPES, *_UNKNOWN_TYPES):
        return "text/plain" if not _looks_binary(head) else "application/octet-stream"
    return named or "application/octet-stream"


def _looks_binary(head: bytes) -> bool:
    """Whether the first bytes are those of no text in any charset; UTF-16 has many zeros, and says so at its start."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or head[::2].count(0) > len(head) // 8 > head[1::2].count(0):
        return False
    if head[1::2].count(0) > len(head) // 8 > head[::2].count(0):
        return False
    return len(_NOT_TEXT_BYTES.findall(head)) > len(head) // 50


def _extract_html(page: str, url: str, asked: str) -> Extracted:
    """What an HTML page says, judged."""
    html = read_html(page, url)
    signs = PageSigns(
        html.text, html.title, html.headings, html.markup, html.marked_paid, cache(lambda: _own_text(page))
    )
    verdict = page_verdict(signs, Address(asked, url))
    language = _language_of(html.text) or (html.language if len(html.language) == len("de") else "")
    headings = placed_in_text(html.all_headings, html.text)
    return Extracted(html.text, html.title, language, "text/html", (), verdict.reason, verdict.detail, headings)


def _extract_plain(text: str) -> Extracted:
    """A plain text or Markdown file as it is, lines of wrapped paragraphs joined."""
    text = unwrapped(stored_text(text))
    if not text:
        return unread("text/plain", "empty", "there are only blanks in it")
    if monotony := monotony_of(text):
        return unread("text/plain", "empty", monotony)
    heading = text.partition("\n")[0]
    title = heading.lstrip("# ") if heading.startswith("#") else ""
    return Extracted(text, title[:300], _language_of(text), "text/plain", (), "page", "", markdown_headings(text))


def _extract_pdf(body: bytes) -> Extracted:
    """What a PDF says, with the places of its pages."""
    kind = "application/pdf"
    try:
        pdf = _read_pdf(body)
    except UnreadablePdfError as error:
        return unread(kind, "parser_failed", str(error))
    pages = f"{len(pdf.page_starts)} page{'s' * (len(pdf.page_starts) != 1)}"
    if not pdf.whole:
        return unread(kind, "too_large", f"its text goes on after {pages}")
    if not pdf.text:
        return unread(kind, "empty", f"no text on its {pages}, which may be pictures of text")
    if monotony := monotony_of(pdf.text):
        return unread(kind, "empty", monotony)
    headings = placed_on_pages(pdf.bookmarks, pdf.text, pdf.page_starts)
    return Extracted(pdf.text, pdf.title, _language_of(pdf.text), kind, pdf.page_starts, "page", "", headings)


def _language_of(text: str) -> str:
    """ISO 639-1 code of the text's language, told from its beginning; empty where it cannot be told."""
    from pipeline.text.language import detect_language

    code = detect_language(text[:_LANGUAGE_FROM])
    return "" if code == "und" else code


def unread(content_type: str, reason: Reason, detail: str) -> Extracted:
    """A body without anything to read."""
    return Extracted("", "", "", content_type, (), reason, detail)


_NO_TEXT = frozenset(("script", "style", "template", "svg", "math", "head", "select", "iframe", "object", "canvas"))
_BLOCKS = """address article aside blockquote br dd details div dl dt fieldset figcaption figure footer form h1
h2 h3 h4 h5 h6 header hr li main nav ol p pre section summary table tr ul"""
_BREAKS = frozenset(_BLOCKS.split())
_CELLS = ("td", "th")
_BETWEEN_CELLS = " | "
_BREAK = "\u2424"  # the symbol for a line end, as trafilatura makes blanks of line ends
# Of what trafilatura makes its fallback; of nested ones the outermost.
_FALLBACK_BLOCKS = "//*[{0}][not(ancestor::*[{0}])]".format(
    " or ".join(f"self::{name}" for name in ("article", "blockquote", "code", "p", "pre", "q", "quote"))
)
_TEXT_IN_SCRIPTS = re.compile(r"application/ld\+json|data-preloaded", re.I)
_SURELY_ONE_BLOCK = 50
_LINES_SEEN = 200
_BLANKS = re.compile(r"\s+")
_XML_DECLARATION = re.compile(r"\A\s*<\?xml[^>]{0,200}\?>")
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
_NOT_FREE = re.compile(r"\"isAccessibleForFree\"\s*:\s*\"?false", re.I)
_LEAST_MAIN_TEXT = 100
_LONGEST_TITLE = 300
_MOST_HEADINGS = 3
# No menu is as long as that, whatever is beside it.
_LONG_LIST, _LINKS_OF_A_LIST = 200_000, 0.5
_SECTION_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_NO_LETTERS = re.compile(r"[^a-z0-9]+")
_LEAST_OWN_PROSE = 40
# What stands on all pages of a site; links besides.
_NOT_ITS_OWN = ("nav", "footer", "aside", "button", "select", "option", "label", "noscript", "dialog", "menu", "a")


class HtmlText(NamedTuple):
    """What an HTML page says."""

    text: str
    """The main text, one paragraph, list item or table row a line; all visible text where no main text is found."""
    title: str
    """The page's title; empty where it has none."""
    language: str
    """The language that the page names, such as `de`; empty where it names none."""
    marked_paid: bool
    """Whether the page marks itself as not free to read."""
    headings: str = ""
    """Its first main headings, one a line."""
    markup: str = ""
    """What in its markup says that it stands for pages that are not there; empty where nothing does."""
    all_headings: tuple[NamedHeading, ...] = ()
    """All of its headings in order, those of menus left out."""


def read_html(page: str, url: str) -> HtmlText:
    """What the page says. Comments of readers and hidden parts are left out; nothing is fetched."""
    import trafilatura

    tree = _parsed(page)
    if tree is None:
        return HtmlText("", "", "", False)
    title, language = _title_of(tree), (tree.get("lang") or "").split("-")[0].lower()
    first = tree.xpath("//h1")[:_MOST_HEADINGS]
    headings = "\n".join(" ".join(each.text_content().split())[:_LONGEST_TITLE] for each in first)
    markup = markup_of_404(tree, page)
    _drop_hidden(tree)
    all_headings = tuple(html_headings(tree))
    if _is_long_list_of_links(tree):
        return HtmlText(_all_text(page), title, language, bool(_NOT_FREE.search(page)), headings, markup, all_headings)
    mark_paragraphs(tree)
    _keep_named_sections(tree)
    blocks = "".join(_unparted(block.text_content()) for block in tree.xpath(_FALLBACK_BLOCKS))
    found = trafilatura.extract(tree, url=url, include_comments=False) or ""
    text = "\n".join(line for line in map(str.strip, stored_text(found).split("\n")) if line)
    if len(text) < _LEAST_MAIN_TEXT:
        text = _all_text(page) or text
    elif _may_be_glued(text, blocks, page) and _unparted(parted := _parted_text(page)) == _unparted(text):
        text = parted
    return HtmlText(text, title, language, bool(_NOT_FREE.search(page)), headings, markup, all_headings)


def _is_long_list_of_links(tree: Any) -> bool:
    """Whether it is an index or a table of contents, with no main text: to look for one may take half a minute."""
    length = len(tree.text_content())
    return length > _LONG_LIST and sum(len(link.text_content()) for link in tree.iter("a")) > _LINKS_OF_A_LIST * length


def _keep_named_sections(tree: Any) -> None:
    """Take the ids off sections that are named after their heading and hold prose of their own.

    trafilatura takes a section for what surrounds a text by parts of its id: `shared`, `cookie`, `related`.
    """
    for section in tree.xpath("//section[@id] | //div[@id]"):
        heading = next((child for child in section if child.tag in _SECTION_HEADINGS), None)
        if heading is None or _NO_LETTERS.sub("", heading.text_content().casefold()) != _NO_LETTERS.sub(
            "", section.get("id")
        ):
            continue
        linked = sum(len(link.text_content()) for link in section.xpath("./p//a"))
        if sum(len(paragraph.text_content()) for paragraph in section.xpath("./p")) - linked >= _LEAST_OWN_PROSE:
            del section.attrib["id"]


def _own_text(page: str) -> str:
    """The visible text of the page outside links and what stands on all pages of its site, a block a line."""
    tree = _parsed(page)
    _drop_hidden(tree)
    for element in tree.xpath("//" + " | //".join(_NOT_ITS_OWN)):
        if element.getparent() is not None:
            element.drop_tree()
    return _visible_text(tree)


def _all_text(page: str) -> str:
    """All visible text of the page, parsed anew: looking for the main text takes a tree apart."""
    tree = _parsed(page)
    _drop_hidden(tree)
    return _visible_text(tree)


def _may_be_glued(text: str, blocks: str, page: str) -> bool:
    """Whether the text may be trafilatura's fallback, which is slow to make: a heading tells that it is not.

    The fallback is the text in scripts, or else that of the blocks alone, or of all of the page where they have little.
    """
    lines = [_unparted(line) for line in text.split("\n", _LINES_SEEN)[:_LINES_SEEN]]
    has_blocks = any(len(line) > _LEAST_MAIN_TEXT and line in blocks for line in lines)
    if _TEXT_IN_SCRIPTS.search(page) or not has_blocks:
        return True
    return all(line[:_SURELY_ONE_BLOCK] in blocks for line in lines)


def _unparted(text: str) -> str:
    """The text without what parts its blocks."""
    return "".join(text.replace("|", " ").split())


def _parted_text(page: str) -> str:
    """What trafilatura falls back on for short pages, a block a line: it glues blocks without a blank between them."""
    import trafilatura

    tree = _parsed(page)
    _drop_hidden(tree)
    mark_paragraphs(tree)
    for element in tree.iter(*_BREAKS, *_CELLS):
        if element.tag in _BREAKS:
            element.text = _BREAK + (element.text or "")
            element.tail = _BREAK + (element.tail or "")
        elif _follows_a_cell(element):
            element.text = _BETWEEN_CELLS + (element.text or "")
    return _lines_of(trafilatura.baseline(tree)[1].replace(_BREAK, "\n"))


def _lines_of(text: str) -> str:
    """The lines of the text that hold anything, with single blanks."""
    lines = (" ".join(line.split()) for line in stored_text(text).split("\n"))
    return "\n".join(line for line in lines if line)


def _follows_a_cell(element: Any) -> bool:
    """Whether it is a cell of a table's row, and not the first one."""
    before = element.getprevious()
    return element.tag in _CELLS and before is not None and before.tag in _CELLS


def _parsed(page: str) -> Any:
    """The page's tree, mended where it can be; None where there is nothing in it."""
    import trafilatura
    from lxml.etree import ParserError
    from lxml.html import HTMLParser, document_fromstring

    page = _XML_DECLARATION.sub("", page)
    tree = trafilatura.load_html(page)  # None for what it takes for a fragment
    if tree is not None:
        return tree
    try:
        return document_fromstring(page, parser=HTMLParser(remove_comments=True, remove_pis=True, no_network=True))
    except ParserError:
        return None


def _title_of(tree: Any) -> str:
    """The title that the page gives to be shown, else its own, else its first heading."""
    for path in ("//meta[@property='og:title']/@content", "//head/title/text()", "//title/text()", "//h1//text()"):
        title = " ".join(stored_text(" ".join(tree.xpath(path)[:20])).split())
        if title:
            return title[:_LONGEST_TITLE]
    return ""


def _visible_text(tree: Any) -> str:
    """All text of the page that a browser would show, a block a line; scripts are left out."""
    from lxml.etree import iterwalk

    parts: list[str] = []
    walk = iterwalk(tree, events=("start", "end"))
    for event, element in walk:
        name = element.tag if isinstance(element.tag, str) else ""
        if name in _BREAKS:
            parts.append("\n")
        elif event == "start" and _follows_a_cell(element):
            parts.append(_BETWEEN_CELLS)
        if event == "end":
            parts.append(_BLANKS.sub(" ", element.tail or ""))
        elif not name or name in _NO_TEXT:
            walk.skip_subtree()
        else:
            parts.append(_BLANKS.sub(" ", element.text or ""))
    return _lines_of("".join(parts))


def _drop_hidden(tree: Any) -> None:
    """Take out what the page keeps from view: no reader sees it, and no judge is to be talked to behind their back.

    A body that is hidden stays: a script shows it when the page has loaded.
    """
    for element in tree.xpath("//*[@hidden or @style]"):
        is_hidden = element.get("hidden") is not None or _HIDDEN.search(element.get("style") or "")
        if is_hidden and element.tag not in ("html", "body"):
            element.drop_tree()


_BROKEN_WORD = re.compile(r"(?<=\w)[-\u00ad\u2010\x02\ufffe]$")
_ENDS_A_LINE = re.compile(r"[.!?…:;。！？」)\]\"”’]$")
_BEGINS_AN_ITEM = re.compile(r"[-*•◦▪–]\s|\(?\d{1,3}(?:\.\d+)*[.)]?\s|[A-Z]\.\s")
_WRITTEN_WITHOUT_BLANKS = re.compile(r"[\u3001-\u30ff\u3400-\u9fff\uff01-\uff60]")
_FULL_LINE = 0.7
_AMONG_THE_LONGEST = 0.8
_LONGEST_TEXT = 20_000_000


class _PdfText(NamedTuple):
    """What a PDF says."""

    text: str
    """The text of its pages, each on a new line."""
    title: str
    """The title in its properties; empty where it has none."""
    page_starts: tuple[int, ...]
    """First code point of each page, in order; an empty page begins where the next one does."""
    whole: bool
    """Whether all pages are there: reading ends behind 20 million characters."""
    bookmarks: tuple[NamedHeading, ...] = ()
    """Its table of contents, as far as it has one to click on."""


class UnreadablePdfError(ValueError):
    """The file is broken, or needs a password."""


def _read_pdf(body: bytes) -> _PdfText:
    """The text of the PDF, paragraphs joined from their lines and words from their halves.

    Raises:
        UnreadablePdfError: it is broken, or needs a password.
    """
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        raise UnreadablePdfError("it is broken, or needs a password") from error
    try:
        pages, length = [], 0
        for number in range(len(document)):
            pages.append(_page_text(document, number))
            length += len(pages[-1])
            if length > _LONGEST_TEXT:
                break
        title = " ".join(stored_text(document.get_metadata_dict().get("Title", "")).split())
        text, page_starts = _joined(pages)
        return _PdfText(text, title, page_starts, len(pages) == len(document), tuple(_bookmarks(document)))
    finally:
        document.close()


def _bookmarks(document: Any) -> Iterator[NamedHeading]:
    """The PDF's table of contents in order; what of it leads nowhere has no page."""
    for bookmark in document.get_toc():
        place = bookmark.get_dest()
        page = place.get_index() if place else None
        if words := " ".join(stored_text(bookmark.get_title()).split()):
            yield NamedHeading(bookmark.level + 1, words, page)


def _page_text(document: Any, number: int) -> str:
    """The text of one page, a paragraph a line; empty for a page without text, or one that cannot be read."""
    import pypdfium2

    try:
        page = document[number]
        words = page.get_textpage()
        text = words.get_text_range(errors="replace")
    except pypdfium2.PdfiumError:
        return ""
    words.close()
    page.close()
    lines = [line.strip() for line in re.split(r"[\r\n]+", text)]
    return stored_text("\n".join(_paragraphs([line for line in lines if line])))


def _paragraphs(lines: list[str]) -> list[str]:
    """The lines of a page joined to paragraphs: a full line that ends in the middle of a sentence goes on below."""
    lengths = sorted(map(len, lines))
    full = _FULL_LINE * lengths[int(len(lines) * _AMONG_THE_LONGEST)] if lines else 0.0
    found: list[str] = []
    last_length = 0
    for line in lines:
        goes_on = (
            found and last_length >= full and not _ENDS_A_LINE.search(found[-1]) and not _BEGINS_AN_ITEM.match(line)
        )
        if found and _BROKEN_WORD.search(found[-1]) and line[0].islower():
            found[-1] = found[-1][:-1] + line
        elif goes_on:
            found[-1] = found[-1] + _between(found[-1], line) + line
        else:
            found.append(line)
        last_length = len(line)
    return found


def _between(line: str, following: str) -> str:
    """What joins two lines: a blank, or nothing in scripts that are written without."""
    without = _WRITTEN_WITHOUT_BLANKS.match(line[-1]) and _WRITTEN_WITHOUT_BLANKS.match(following)
    return "" if without else " "


def _joined(pages: list[str]) -> tuple[str, tuple[int, ...]]:
    with_text = [f"{page}\n" if page else "" for page in pages]
    starts = list(accumulate((len(page) for page in with_text), initial=0))
    return "".join(with_text).rstrip("\n"), tuple(starts[:-1])
