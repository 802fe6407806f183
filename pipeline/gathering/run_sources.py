"""A run's answers with the pages that they cite: from the run folder and the store to records for the jury."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import httpx

from pipeline.asking.run_folder import CITATIONS, csv_file
from pipeline.errors import InputError
from pipeline.gathering.gather import Gathered, Report, gather_pages, missing_pages
from pipeline.recording.files import write_records
from pipeline.recording.run import answers_of_run, records_from_run
from pipeline.records import QueryResponse
from pipeline.sources.choosing.select import PassageLimits
from pipeline.sources.choosing.shelf import CitedPage, Shelf, cited_page
from pipeline.sources.choosing.tally import Tally
from pipeline.sources.fetching.fetch import Fetcher, FetchPolicy, host_of
from pipeline.sources.fetching.redirects import resolved_earlier
from pipeline.sources.reading.extractor import Extractor
from pipeline.sources.store.store import Store
from pipeline.text.urls import site_key, without_password

if TYPE_CHECKING:
    pass

Tell = Callable[[str], None]
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
    cited = cited_pages(run, targets)
    keys = list(dict.fromkeys(page.key for page in cited.values() if page.key))
    if store and added:
        add_pages(store, added, targets, frozenset(keys), tell)
    gathered = fetch(store, keys) if store and fetch else None
    shelf = Shelf(store, targets, limits)
    tally = Tally()
    count_pages(cited, shelf, tally)
    write_records(out, with_pages(records_from_run(run), shelf, tally))
    return RunSources(tally, gathered)


def cited_pages(run: Path, targets: Mapping[str, str]) -> dict[str, CitedPage]:
    """What the answers cite, by the page's key, or by the cited URL where that leads to none; by first appearance."""
    found: dict[str, CitedPage] = {}
    for stored in answers_of_run(run):
        for url in stored.citations:
            page = cited_page(url, targets)
            found.setdefault(page.key or url, page)
    return found


def add_pages(
    store: Store, added: Sequence[Added], targets: Mapping[str, str], cited: frozenset[str], tell: Tell
) -> None:
    """Put the user's files into the store; a URL that no answer cites is told.

    Raises:
        InputError: a URL is none, or a file cannot be read; those before it are stored.
    """
    from pipeline.gathering.added import added_page
    from pipeline.sources.reading.extractor import Extractor

    async def add() -> None:
        async with Extractor() as extractor:
            for url, file in added:
                key = cited_page(url, targets).key
                if not key:
                    shown = without_password(url)
                    raise InputError(
                        f"`--add` wants an http or https URL without a user name, and then a file; {shown!r} is none."
                    )
                store.put_page(await added_page(key, file, extractor))
                if key not in cited:
                    tell(f"{url} is kept, but no answer of this run cites it.")

    asyncio.run(add())


def count_pages(cited: Mapping[str, CitedPage], shelf: Shelf, tally: Tally) -> None:
    """Count what became of every cited page."""
    for url, page in cited.items():
        outcome = shelf.outcome(page)
        tally.add_page(site_key(url), url, outcome.reason, outcome.detail)


def with_pages(records: Iterator[QueryResponse], shelf: Shelf, tally: Tally) -> Iterator[QueryResponse]:
    """The records with their sources' states and passages, counted as they go by."""
    for record in records:
        selected = shelf.with_pages(record)
        tally.add_record(selected.record, len(selected.left_out))
        yield selected.record


class Online(NamedTuple):
    """How the web is asked."""

    client: Callable[[], httpx.AsyncClient]
    """Makes the client, a guarded one."""
    policy: FetchPolicy = FetchPolicy()
    refresh: bool = False
    """Whether pages that are held are asked for again."""


def fetch_missing(
    store: Store, keys: Sequence[str], online: Online, run_id: str, report: Report, begin: Callable[[int], None]
) -> Gathered:
    """What came of fetching the pages that the store lacks; `begin` hears how many, `report` of each."""
    wanted = list(missing_pages(keys, store, online.refresh))
    begin(len(wanted))
    if not wanted:
        return Gathered()
    silent_before = {host_of(page.url) for page in wanted if page.silent}

    async def fetch() -> Gathered:
        async with (
            online.client() as client,
            Fetcher(client, online.policy, silent_before) as fetcher,
            Extractor() as extractor,
        ):
            return await gather_pages(wanted, fetcher, extractor, store, report, run_id)

    return asyncio.run(fetch())


def look_up_targets(run: Path, online: Online, tell: Tell) -> None:
    """Add the targets of Gemini's redirects to the run's `citations.jsonl`, as far as they are missing and found."""
    if not csv_file(run, "gemini").is_file() or not (run / CITATIONS).is_file():
        return
    from pipeline.asking.ask_live import look_up_redirects

    asyncio.run(look_up_redirects(run, online.client, tell))
