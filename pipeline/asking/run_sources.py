"""A run's answers with the pages that they cite: from the run folder and the store to records for the jury."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeline.asking.index import cited_urls
from pipeline.asking.questions import Tell
from pipeline.asking.run_folder import CITATIONS
from pipeline.citations.addresses import membership_key, site_key, source_domain, without_password
from pipeline.core.errors import InputError
from pipeline.core.prompts import text_digest
from pipeline.records.run import answers_files, answers_of_run, records_from_run, resolved_earlier, write_records
from pipeline.records.schema import QueryResponse
from pipeline.sources.choose import CitedPage, PassageLimits, Shelf, Tally, cited_page, outcome_of
from pipeline.sources.store import Store, StoredPage

if TYPE_CHECKING:
    from pipeline.asking.gather import Gathered
    from pipeline.sources.extract import Extracted, Extractor


_MAX_BYTES = 100_000_000
_SHOWN = 3
MEDIA_TYPES = {
    ".pdf": "application/pdf",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "application/xhtml+xml",
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
}


Added = tuple[str, Path]
"""A URL and the file that the user has of it."""

Fetch = Callable[[Store, Sequence[str]], "Gathered"]
"""Fetches those of the pages, by their keys, that are missing in the store."""


class RunSources(NamedTuple):
    """What came of a run's sources."""

    tally: Tally
    """Pages and records, counted."""
    gathered: "Gathered | None"
    """What came of fetching; None where the store was all there was."""
    uncited: tuple[str, ...] = ()
    """The URLs of the user's files that no answer of the run cites."""


def write_run_records(
    run: Path,
    out: Path,
    store: Store | None,
    limits: PassageLimits,
    fetch: Fetch | None = None,
    added: Sequence[Added] = (),
    tell: Tell = lambda line: None,
) -> RunSources:
    """What came of the run's sources; their records stand in `out`, whole.

    With `fetch` missing pages are fetched into the store first, without it the store is all there is. `added` files go
    into the store before. `tell` hears what the user should know.

    Raises:
        InputError: the run holds no answers, or a file of `added` or its URL cannot be used.
        OutputError: the store or `out` cannot be written.
    """
    targets = resolved_earlier(run / CITATIONS)
    cited: dict[str, CitedPage] = {}  # by the page's key, or by the cited URL where that leads to none
    for url in chain.from_iterable(_citations_of_run(run)):
        page = cited_page(url, targets)
        cited.setdefault(page.key or url, page)
    keys = list(dict.fromkeys(page.key for page in cited.values() if page.key))
    uncited = _add_pages(store, added, targets, keys, tell) if store and added else ()
    gathered = fetch(store, keys) if store and fetch else None
    shelf = Shelf(store, targets, limits)
    tally = Tally()
    for url, page in cited.items():
        outcome = outcome_of(page, shelf.store)
        tally.add_page(site_key(url), url, outcome.reason, outcome.detail)

    def with_pages() -> Iterator[QueryResponse]:
        for record in records_from_run(run):
            selected = shelf.with_pages(record)
            tally.add_record(selected.record, len(selected.left_out))
            yield selected.record

    write_records(out, with_pages())
    return RunSources(tally, gathered, uncited)


def _citations_of_run(run: Path) -> Iterator[tuple[str, ...]]:
    """The cited URLs of each answer: by the index of its file, and from the answers where that does not fit."""
    indexes = [cited_urls(file) for file in answers_files(run)]
    fitting = [index for index in indexes if index is not None]
    if len(fitting) == len(indexes):
        yield from chain.from_iterable(fitting)
    else:
        yield from (stored.citations for stored in answers_of_run(run))


def _add_pages(
    store: Store, added: Sequence[Added], targets: Mapping[str, str], cited: Sequence[str], tell: Tell
) -> tuple[str, ...]:
    """Put the user's files into the store, under every form in which their URLs are cited; those that no answer cites.

    Raises:
        InputError: a URL is none, or a file cannot be read; those before it are stored.
    """
    from pipeline.sources.extract import Extractor  # what reads pages is not loaded where none is added

    async def add() -> tuple[str, ...]:
        uncited: list[str] = []
        async with Extractor() as extractor:
            for url, file in added:
                key = cited_page(url, targets).key
                if not key:
                    shown = without_password(url)
                    raise InputError(
                        f"`--add` wants an http or https URL without a user name, and then a file; {shown!r} is none."
                    )
                page = await added_page(key, file, extractor)
                # The cited pages that the URL names: itself, or those that differ in scheme, `www.`, last slash only.
                same = membership_key(key)
                forms = (key,) if key in cited else tuple(each for each in cited if membership_key(each) == same)
                for form in forms or (key,):
                    store.put_page(page._replace(url=form, final_url=form, domain=source_domain(form)))
                if not forms:
                    tell(f"{url} is kept, but no answer of this run cites it.{_near(key, cited)}")
                    uncited.append(url)
                elif key not in forms:
                    tell(f"{url} is cited as {' and as '.join(forms)}; your file is read for that.")
        return tuple(uncited)

    return asyncio.run(add())


def _near(key: str, cited: Sequence[str]) -> str:
    """A sentence on what is cited of the same site; empty where nothing is."""
    site = site_key(key)
    near = [each for each in cited if site_key(each) == site]
    return f" Of its site it cites {', '.join(near[:_SHOWN])}{' and others' if near[_SHOWN:] else ''}." if near else ""


async def added_page(key: str, file: Path, extractor: "Extractor") -> StoredPage:
    """The user's file as the page under this key; it wins over the web for good.

    What makes a fetched page useless, such as a notice of cookies on it, is the user's to judge: only a file without
    any text is refused.

    Raises:
        InputError: the file is missing, too large, of a kind that is not read, or holds no text.
    """
    body = read_file(file)
    media_type = _media_type_of(file, body)
    extracted = await extractor.extract(body, media_type, "", key)
    if not extracted.text.strip():
        why = extracted.detail or extracted.reason
        raise InputError(f"{str(file)!r} holds no text that can be read ({why}); save the page anew, or as plain text.")
    return _page_of_file(key, body, extracted)


def read_file(file: Path) -> bytes:
    """The file's bytes.

    Raises:
        InputError: there is no such file, or it is too large.
    """
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise InputError(f"{str(file)!r} is larger than {_MAX_BYTES:,} bytes; that is no page.")
        return file.read_bytes()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise InputError(f"There is no file {str(file)!r} to add; `--add` wants the URL and then the file.") from error


def _media_type_of(file: Path, body: bytes) -> str:
    """The file's media type, by its beginning or its name."""
    beginning = body[:1024].lstrip().lower()
    if beginning.startswith(b"%pdf-"):
        return "application/pdf"
    named = MEDIA_TYPES.get(file.suffix.lower(), "")
    if named:
        return named
    if beginning.startswith((b"<!doctype html", b"<html")):
        return "text/html"
    if b"\0" in body[:1024]:
        raise InputError(f"{str(file)!r} is none of PDF, HTML, Markdown and plain text; nothing else is read.")
    return "text/plain"


def _page_of_file(key: str, body: bytes, extracted: "Extracted") -> StoredPage:
    return StoredPage(
        url=key,
        final_url=key,
        text=extracted.text,
        title=extracted.title,
        domain=source_domain(key),
        lang=extracted.language,
        content_type=extracted.content_type,
        hash=text_digest(extracted.text),
        ts=datetime.now(UTC).isoformat(timespec="seconds"),
        raw=body,
        raw_sha256=hashlib.sha256(body).hexdigest(),
        status=None,
        reason="added",
        detail="",
        page_starts=extracted.page_starts,
        headings=extracted.headings,
        added=True,
    )
