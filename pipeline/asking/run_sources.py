"""A run's answers with the pages that they cite: from the run folder and the store to records for the jury."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeline.asking.index import cited_urls, read_unmarked
from pipeline.asking.questions import Tell
from pipeline.citations.addresses import membership_key, site_key, source_domain, without_password
from pipeline.core.errors import InputError
from pipeline.records.causes import state_of
from pipeline.records.citation_form import CITATIONS, longer_readings, resolved_earlier
from pipeline.records.run import answers_files, answers_of_run, read_run_asked, records_from_run, write_records
from pipeline.records.schema import QueryResponse
from pipeline.sources.choose import CitedPage, PassageLimits, Shelf, Tally, archived_as, cited_page, outcome_of
from pipeline.sources.own_files import added_page
from pipeline.sources.store import Store

if TYPE_CHECKING:
    from pipeline.asking.gather import Gathered


Added = tuple[str, Path]
"""A URL and the file that the user has of it."""

Fetch = Callable[[Store, Sequence[str]], "Gathered"]
"""Fetches those of the pages, by their keys, that are missing in the store."""


class RunSources(NamedTuple):
    """Pages and records, counted; `gathered` is None without fetching, `uncited` are added URLs that nobody cites."""

    tally: Tally
    gathered: "Gathered | None"
    uncited: tuple[str, ...] = ()


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
    into the store before; an InputError where one cannot be used.
    """
    targets, longer = resolved_earlier(run / CITATIONS), longer_readings(run / CITATIONS)
    urls = dict.fromkeys(chain.from_iterable(_citations_of_run(run)))
    pages = (cited_page(url, targets) for url in (*urls, *longer.values()))
    keys = list(dict.fromkeys(page.key for page in pages if page.key))
    uncited = _add_pages(store, added, targets, keys, tell) if store and added else ()
    gathered = fetch(store, keys) if store and fetch else None
    # Letters behind a URL were part of it where there is such a page, else prose.
    reasons = {url: outcome_of(cited_page(long, targets), store).reason for url, long in longer.items()}
    targets |= {url: long for url, long in longer.items() if state_of(reasons[url]) == "read"}
    shelf = Shelf(store, targets, limits)
    tally = Tally()
    cited: dict[str, CitedPage] = {}  # by the page's key, or by the cited URL where that leads to none
    for url in urls:
        page = cited_page(url, targets)
        cited.setdefault(page.key or url, page)
    for url, page in cited.items():
        outcome = outcome_of(page, shelf.store)
        archived = archived_as(page, outcome.reason, shelf.store)
        tally.add_page(site_key(url), url, outcome.reason, outcome.detail, archived=archived)

    def with_pages() -> Iterator[QueryResponse]:
        for record in records_from_run(run, read_run_asked(run, read_unmarked)):
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
    """Put the user's files into the store, in every form in which their URLs are cited; those that no answer cites."""
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
                    near = [each for each in cited if site_key(each) == site_key(key)]
                    more = f" Of its site it cites {', '.join(near[:3])}{' and others' if near[3:] else ''}."
                    tell(f"{url} is kept, but no answer of this run cites it.{more if near else ''}")
                    uncited.append(url)
                elif key not in forms:
                    tell(f"{url} is cited as {' and as '.join(forms)}; your file is read for that.")
        return tuple(uncited)

    return asyncio.run(add())
