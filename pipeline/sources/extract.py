"""A page's bytes turned into the text that is stored, whatever they are: HTML, plain text or PDF."""

import asyncio
import ctypes
import gc
import json
import os
import queue
import re
import signal
import struct
import sys
import threading
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import cache
from importlib import import_module
from itertools import accumulate
from typing import Any, BinaryIO, NamedTuple, NoReturn, Self, cast

from pipeline.core.errors import NotInstalledError
from pipeline.records.causes import Reason
from pipeline.sources.address import Address
from pipeline.sources.decode import decoded, stored_text, unwrapped
from pipeline.sources.headings import Heading, NamedHeading, markdown_headings, placed_in_text, placed_on_pages
from pipeline.sources.html import HtmlText, own_text, read_html
from pipeline.sources.quality import PageSigns, Verdict, count_words, monotony_of, page_verdict
from pipeline.text.words import identifier

_HTML_TYPES = ("text/html", "application/xhtml+xml")
_TEXT_TYPES = tuple(f"application/{name}" for name in ("json", "ld+json", "x-ndjson", "yaml", "toml"))
_UNKNOWN_APPLICATIONS = ("application/octet-stream", "application/download", "application/x-download")
_UNKNOWN_TYPES = ("", "binary/octet-stream", *_UNKNOWN_APPLICATIONS)
_XML_TYPES = ("application/xml", "text/xml", "application/rss+xml", "application/atom+xml")
_HTML_START = re.compile(rb"\s*(?:<!--.{0,2000}?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.I | re.S)


class Extracted(NamedTuple):
    text: str
    """The main text, without control characters, `\\n` between lines. It may be there although the page is useless:
    the words of a wall, or the beginning that a paywall leaves."""
    title: str
    language: str  # ISO 639-1 code of the text's language; empty where it cannot be told
    content_type: str  # The media type that the body was read as, which need not be the one that the server named
    page_starts: tuple[int, ...]  # First code point of each page of a PDF; empty for everything else
    reason: Reason
    detail: str
    headings: tuple[Heading, ...] = ()
    read_share: float | None = None
    """The share of an HTML page's visible words that the text holds; None of other documents and where none is seen.

    Source: pipeline/contracts/records.md#partly-read."""


def extract_document(body: bytes, content_type: str, charset: str, url: str, asked: str = "") -> Extracted:
    """What there is to read in the body; `asked` is the address that redirects led from to `url`, if any.

    A hostile body may take any time and memory, or the process: `Extractor` does this in processes that may be lost.
    """
    kind = _kind_of(body, content_type)
    if not body.strip():
        return _unread(kind, "empty", "the body is empty")
    if kind == "application/pdf":
        return _extract_pdf(body)
    if kind not in (*_HTML_TYPES, "text/plain"):
        return _unread(kind, "not_text", f"it is {kind}")
    text = decoded(body, charset)
    if text.count("\ufffd") > 0.05 * len(text):
        return _unread(kind, "bad_encoding", f"it is not in the charset {charset or 'that it seems to be in'!r}")
    if kind == "text/plain":
        return _extract_plain(text)
    try:
        return _extract_html(text, url, asked or url)
    except RecursionError:
        return _unread(kind, "parser_failed", "it is nested too deep")


def _kind_of(body: bytes, content_type: str) -> str:
    """The media type to read the body as: the one named, or by its first bytes where that says nothing or is wrong."""
    named = content_type.partition(";")[0].strip().lower()
    head = body[:4096]
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
    no_prose = ("text/css", "text/javascript", "text/ecmascript")
    if (named.startswith("text/") and named not in no_prose) or named in (*_TEXT_TYPES, *_UNKNOWN_TYPES):
        return "text/plain" if not _looks_binary(head) else "application/octet-stream"
    return named or "application/octet-stream"


def _looks_binary(head: bytes) -> bool:
    """UTF-16 has many zeros, and says so at its start."""
    fewer, more = sorted((head[::2].count(0), head[1::2].count(0)))
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or more > len(head) // 8 > fewer:
        return False
    return len(re.findall(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]", head)) > len(head) // 50


def _extract_html(page: str, url: str, asked: str) -> Extracted:
    html = read_html(page, url)
    signs = PageSigns(
        html.text, html.title, html.headings, html.markup, html.marked_paid, cache(lambda: own_text(page))
    )
    verdict = page_verdict(signs, Address(asked, url))
    if verdict.reason in ("page", "empty") and (nothing := _says_nothing_itself(html)):
        verdict = Verdict("empty", nothing)
    language = _language_of(html.text) or (html.language if len(html.language) == len("de") else "")
    headings = placed_in_text(html.all_headings, html.text)
    kind = "text/html"
    return Extracted(html.text, html.title, language, kind, (), *verdict, headings, html.read_share)


def _says_nothing_itself(html: HtmlText) -> str:
    """How little the page says where its words are in frames or scripts, or all in navigation; empty where it does."""
    # Scripts may also hold the article as search engines want it, which the text then has.
    if html.visible_words >= (8 if html.elsewhere else 1) or count_words(html.text) >= 150:
        return ""
    words = f"{html.visible_words or 'no'} word{'s' * (html.visible_words != 1)} outside navigation"
    return f"{words}; others may be {html.elsewhere}" if html.elsewhere else words


def _extract_plain(text: str) -> Extracted:
    text = unwrapped(stored_text(text))
    if not text:
        return _unread("text/plain", "empty", "there are only blanks in it")
    if monotony := monotony_of(text):
        return _unread("text/plain", "empty", monotony)
    heading = text.partition("\n")[0]
    title = heading.lstrip("# ") if heading.startswith("#") else ""
    return Extracted(text, title[:300], _language_of(text), "text/plain", (), "page", "", markdown_headings(text))


def _extract_pdf(body: bytes) -> Extracted:
    import pypdfium2

    kind = "application/pdf"
    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError:
        return _unread(kind, "parser_failed", "it is broken, or needs a password")
    with closing(document):
        pages, length = [], 0
        for number in range(len(document)):
            page = _page_text(document, number)
            pages.append(f"{page}\n" if page else "")
            length += len(page)
            if length > 20_000_000:
                break
        title = " ".join(stored_text(document.get_metadata_dict().get("Title", "")).split())
        is_whole, bookmarks = len(pages) == len(document), list(_bookmarks(document))
    text = "".join(pages).rstrip("\n")
    starts = tuple(accumulate(map(len, pages), initial=0))[:-1]
    number_of_pages = f"{len(pages)} page{'s' * (len(pages) != 1)}"
    if not is_whole:
        return _unread(kind, "too_large", f"its text goes on after {number_of_pages}")
    if not text:
        return _unread(kind, "empty", f"no text on its {number_of_pages}, which may be pictures of text")
    if monotony := monotony_of(text):
        return _unread(kind, "empty", monotony)
    headings = placed_on_pages(bookmarks, text, starts)
    return Extracted(text, title, _language_of(text), kind, starts, "page", "", headings)


def _language_of(text: str) -> str:
    from pipeline.text.words import detect_language

    code = detect_language(text[:5_000])
    return "" if code == "und" else code


def _unread(content_type: str, reason: Reason, detail: str) -> Extracted:
    return Extracted("", "", "", content_type, (), reason, detail)


_BROKEN_WORD = re.compile(r"(?<=\w)[-\u00ad\u2010\x02\ufffe]$")
_ENDS_A_LINE = re.compile(r"[.!?…:;。！？」)\]\"”’]$")
_BEGINS_AN_ITEM = re.compile(r"[-*•◦▪–]\s|\(?\d{1,3}(?:\.\d+)*[.)]?\s|[A-Z]\.\s")
_WRITTEN_WITHOUT_BLANKS = re.compile(r"[\u3001-\u30ff\u3400-\u9fff\uff01-\uff60]")


def _bookmarks(document: Any) -> Iterator[NamedHeading]:
    for bookmark in document.get_toc():
        place = bookmark.get_dest()
        if words := " ".join(stored_text(bookmark.get_title()).split()):
            yield NamedHeading(bookmark.level + 1, words, place.get_index() if place else None)


def _page_text(document: Any, number: int) -> str:
    import pypdfium2

    try:
        page = document[number]
        words = page.get_textpage()
        text = _with_letters_of_marks(page, words)
    except pypdfium2.PdfiumError:
        return ""
    words.close()
    page.close()
    lines = [line.strip() for line in re.split(r"[\r\n]+", text)]
    return stored_text("\n".join(_paragraphs([line for line in lines if line])))


def _with_letters_of_marks(page: Any, words: Any) -> str:
    """The page's text with what `/ActualText` says of objects whose glyphs stand for no letter, such as a ligature.

    Source: ISO 32000-1, 14.9.4 (replacement text).
    """
    from pypdfium2 import raw

    missing: list[tuple[int, str]] = []
    objects = [raw.FPDFPage_GetObject(page.raw, index) for index in range(raw.FPDFPage_CountObjects(page.raw))]
    for index, found in enumerate(objects):
        if raw.FPDFPageObj_CountMarks(found) > 0 and raw.FPDFTextObj_GetText(found, words.raw, None, 0) == 2:
            missing += [(index, letters)] if (letters := _actual_text(found)) else []
    text = str(words.get_text_range(errors="replace"))
    # Pdfium's sign for a glyph that stands for no letter is also its sign for a hyphen at a line's end.
    for place in [place for place, letter in enumerate(text) if letter == "\ufffe"]:
        if raw.FPDFText_IsHyphen(words.raw, place) != 1:
            text = f"{text[:place]}\ufffd{text[place + 1 :]}"
    if not missing:
        return text
    places = {ctypes.addressof(each.contents): index for index, each in enumerate(objects)}
    of_letter = [raw.FPDFText_GetTextObject(words.raw, index) for index in range(words.count_chars())]
    known = [places.get(ctypes.addressof(each.contents), -1) if each else -1 for each in of_letter]
    parts: list[str] = []
    position = 0
    for index, letters in missing:
        at = next((place for place, of in enumerate(known) if of > index), len(known))
        parts += [text[position:at], letters]
        position = at
    return "".join([*parts, text[position:]])


def _actual_text(found: Any) -> str:
    from pypdfium2 import raw

    size = ctypes.c_ulong(0)
    for index in range(raw.FPDFPageObj_CountMarks(found)):
        mark = raw.FPDFPageObj_GetMark(found, index)
        letters = (ctypes.c_ushort * 200)()
        if raw.FPDFPageObjMark_GetParamStringValue(mark, b"ActualText", letters, 400, ctypes.byref(size)):
            return bytes(letters)[: max(0, size.value - 2)].decode("utf-16-le", "replace")
    return ""


def _paragraphs(lines: list[str]) -> list[str]:
    """The lines of a page joined to paragraphs: a full line that ends in the middle of a sentence goes on below."""
    lengths = sorted(map(len, lines))
    full = 0.7 * lengths[int(len(lines) * 0.8)] if lines else 0.0
    found: list[str] = []
    last_length = 0
    for line in lines:
        goes_on = (
            found and last_length >= full and not _ENDS_A_LINE.search(found[-1]) and not _BEGINS_AN_ITEM.match(line)
        )
        if found and _BROKEN_WORD.search(found[-1]) and line[0].islower():
            found[-1] = found[-1][:-1] + line
        elif goes_on:
            without = _WRITTEN_WITHOUT_BLANKS.match(found[-1][-1]) and _WRITTEN_WITHOUT_BLANKS.match(line)
            found[-1] = f"{found[-1]}{'' if without else ' '}{line}"
        else:
            found.append(line)
        last_length = len(line)
    return found


_LENGTH = struct.Struct(">I")
_MEMORY_BYTES = 2 << 30
_TOO_MUCH_MEMORY = "reading it takes too much memory"


def main() -> None:
    seconds = float(sys.argv[1])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a parser prints is no answer
    _limit_memory()
    requests: queue.Queue[tuple[dict[str, str], bytes]] = queue.Queue()
    threading.Thread(target=_read_requests, args=(sys.stdin.buffer, requests), daemon=True).start()
    import_module("pypdfium2")  # it takes a second or two to load them, which are not to count for the first document
    import_module("trafilatura")
    identifier()
    gc.freeze()  # or all of it is looked through again for garbage, page by page
    _write_frame(answers, b"")
    _answer_requests(requests, answers, seconds)


def _read_requests(source: BinaryIO, requests: "queue.Queue[tuple[dict[str, str], bytes]]") -> None:
    """At the end of the input the process ends, whatever it is doing."""
    while (head := _read_frame(source)) is not None and (body := _read_frame(source)) is not None:
        requests.put((json.loads(head), body))
    os._exit(0)


def _read_frame(source: BinaryIO) -> bytes | None:
    head = source.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = source.read(length)
    return body if len(body) == length else None


def _answer_requests(
    requests: "queue.Queue[tuple[dict[str, str], bytes]]", answers: BinaryIO, seconds: float
) -> NoReturn:
    while True:
        asked, body = requests.get()
        limit_processor_time(seconds)
        try:
            found = extract_document(body, **asked)
        except MemoryError:
            found = _unread(asked["content_type"], "parser_failed", _TOO_MUCH_MEMORY)
        _write_frame(answers, json.dumps(found._asdict()).encode())


def _write_frame(answers: BinaryIO, frame: bytes) -> None:
    answers.write(_LENGTH.pack(len(frame)) + frame)
    answers.flush()


def _limit_memory() -> None:
    """Limit the process to 2 GiB of addresses; Windows has no such limit."""
    if sys.platform != "win32":
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = _MEMORY_BYTES if most == resource.RLIM_INFINITY else min(_MEMORY_BYTES, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))


def limit_processor_time(seconds: float) -> None:
    """The system ends this process when it has used so much more time: its parent may be gone, and its lock held."""
    if sys.platform != "win32":
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        limit = int(used.ru_utime + used.ru_stime + seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


_KILL = signal.Signals.__members__.get("SIGKILL", signal.SIGTERM)  # Windows has the latter only, which does the same
# How a process ends that has used up its processor time, where the system can limit that.
_TOO_LONG = {-number for name, number in signal.Signals.__members__.items() if name == "SIGXCPU"}


class Worker(NamedTuple):
    process: Process
    requests: asyncio.StreamWriter
    answers: asyncio.StreamReader


class Extractor:
    """Extracts documents in up to `workers` processes, each started when it is needed and used again.

    A document that takes longer than `seconds` of processor time, or four times as long by the clock, ends its process
    and is a `parser_timeout`; one that breaks it, or takes more than 2 GiB of memory where the system can limit that,
    is a `parser_failed`. Nothing is left running when the block ends, or the process that it runs in.
    """

    def __init__(self, workers: int | None = None, seconds: float = 30.0) -> None:
        """Without a number, as many workers as there are processors, at most 4."""
        self.count = workers or min(os.cpu_count() or 1, 4)
        self.seconds = seconds
        self.free: asyncio.LifoQueue[Worker | None] = asyncio.LifoQueue()
        self.running: set[Worker] = set()

    async def __aenter__(self) -> Self:
        for _ in range(self.count):
            self.free.put_nowait(None)
        return self

    async def __aexit__(self, *_: object) -> None:
        for worker in list(self.running):
            await self.end(worker)

    async def extract(self, body: bytes, content_type: str, charset: str, url: str, asked: str = "") -> Extracted:
        """What `extract_document` finds, or that no parser came to an end with it; NotInstalledError: none starts."""
        worker = await self.free.get()
        kept: Worker | None = None
        try:
            if worker is None or worker.process.returncode is not None:
                worker = await self.started(worker)
            named = {"content_type": content_type, "charset": charset, "url": url, "asked": asked}
            # By the clock a document may take so many times longer: a busy machine gives a process little of its time.
            found = await asyncio.wait_for(self.asked(worker, body, named), 4 * self.seconds)
            kept = None if found.detail == _TOO_MUCH_MEMORY else worker  # what it took may never be given back
            return found
        except TimeoutError:
            return self.late(content_type)
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            if worker is not None and await self.end(worker) in _TOO_LONG:
                return self.late(content_type)
            return _unread(content_type, "parser_failed", "the parser broke down on it")
        finally:
            if worker is not None and kept is None:
                await self.end(worker)
            self.free.put_nowait(kept)

    async def started(self, worn_out: Worker | None) -> Worker:
        """A new process, in place of one that has ended by itself."""
        if worn_out is not None:
            await self.end(worn_out)
        command = (sys.executable, "-m", "pipeline.sources.extract", str(self.seconds))
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
        )
        worker = Worker(process, cast(asyncio.StreamWriter, process.stdin), cast(asyncio.StreamReader, process.stdout))
        self.running.add(worker)
        try:
            await worker.answers.readexactly(_LENGTH.size)
        except asyncio.IncompleteReadError:
            await self.end(worker)
            raise NotInstalledError(
                f"The process that reads pages ended with exit code {process.returncode} before its first page; one of "
                "citejury's libraries may be missing or broken."
            ) from None
        return worker

    async def asked(self, worker: Worker, body: bytes, named: dict[str, str]) -> Extracted:
        head = json.dumps(named).encode()
        worker.requests.write(_LENGTH.pack(len(head)) + head + _LENGTH.pack(len(body)))
        worker.requests.write(body)
        await worker.requests.drain()
        (length,) = _LENGTH.unpack(await worker.answers.readexactly(_LENGTH.size))
        if length > (256 << 20):
            raise ValueError(f"an answer of {length} bytes")
        fields = json.loads(await worker.answers.readexactly(length))
        headings = tuple(Heading(*each) for each in fields["headings"])
        return Extracted(**{**fields, "page_starts": tuple(fields["page_starts"]), "headings": headings})

    def late(self, content_type: str) -> Extracted:
        return _unread(content_type, "parser_timeout", f"no parser came to an end with it in {self.seconds:g} s")

    async def end(self, worker: Worker) -> int:
        if worker.process.returncode is None:
            # Not by asyncio's `kill`, which may reap a process that ends just now: how it ended is lost then.
            # https://github.com/python/cpython/issues/87744
            with suppress(ProcessLookupError):
                os.kill(worker.process.pid, _KILL)
        self.running.discard(worker)
        return await worker.process.wait()


if __name__ == "__main__":
    main()
