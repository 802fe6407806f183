"""The stages `harvest` and `fetch`: results of the queries that are worth reading, and the text of their pages."""

import asyncio
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from email.utils import parsedate_to_datetime
from functools import lru_cache
from itertools import zip_longest
from time import perf_counter
from typing import Any, NamedTuple
from urllib.parse import urldefrag, urlsplit

from pipeline.asking.gather import Report, gather_pages, missing_pages
from pipeline.citations.addresses import membership_key, site_key
from pipeline.core.errors import ProviderError
from pipeline.research.contracts import ERROR_CODES, Failure, FetchResult, Payload, ToolCall, is_document, put_trace
from pipeline.research.contracts import SearchResults as Answered
from pipeline.research.search import SearchProvider, SearchResults
from pipeline.research.values import AskedQuery, FoundPage, Plan, plan_language
from pipeline.sources.address import PRIMARY, SECONDARY, source_kind
from pipeline.sources.extract import Extractor
from pipeline.sources.fetch import Fetcher
from pipeline.sources.schema import READ, SearchResult
from pipeline.sources.store import Outcome, Store, StoredPage
from pipeline.text.asking import subject_words
from pipeline.text.words import UNSPACED
from pipeline.verifying.values import Page

Note = Callable[[Payload], None]

_MIRROR_LABELS = ("www", "m")


class Harvest(NamedTuple):
    found: tuple[FoundPage, ...]
    """Pages worth reading, new in this round: the queries' first results, then their second ones, and so on."""
    results: int = 0
    dropped: int = 0
    doubled: int = 0
    capped: int = 0
    over_budget: int = 0
    failures: tuple[str, ...] = ()
    asked: tuple[AskedQuery, ...] = ()  # The queries that were answered, in order; empty in runs of earlier versions


async def harvest(
    plan: Plan,
    provider: SearchProvider,
    seen: Sequence[FoundPage],
    k: int,
    per_domain_cap: int,
    budget: int,
    workers: int,
    note: Note = lambda payload: None,
) -> Harvest:
    """The pages that the plan's queries find, `k` results each, the same whatever the order of the answers.

    `seen` are all pages of earlier rounds: none is found again, and they count for `per_domain_cap`, the most pages of
    a site, and `budget`, the most of the run. The user's own documents have no cap.
    """
    queries = list(dict.fromkeys(plan.queries))
    room = asyncio.Semaphore(max(1, workers))

    async def ask(query: str) -> list[SearchResult] | ProviderError:
        async with room:
            return await ask_once(query, provider, k, note)

    answers = await asyncio.gather(*map(ask, queries))
    failures = [answer for answer in answers if isinstance(answer, ProviderError)]
    if failures and len(failures) == len(answers):
        raise failures[0]
    answered = {query: got for query, got in zip(queries, answers, strict=True) if not isinstance(got, ProviderError)}
    words = (word for section in plan.sections for word in subject_words(section, plan_language(plan)))
    names = frozenset(word.text for word in words if word.name)
    candidates = (  # the first results of all queries, then the second ones
        FoundPage(urldefrag(result.url).url, result.title, query, rank)
        for rank, row in enumerate(zip_longest(*answered.values()), start=1)
        for query, result in zip(answered, row, strict=True)
        if result is not None
    )
    chosen = choose(candidates, seen, per_domain_cap, budget, names)
    return chosen._replace(
        results=sum(map(len, answered.values())),
        dropped=sum(got.dropped for got in answered.values() if isinstance(got, SearchResults)),
        failures=tuple(str(failure) for failure in failures),
        asked=tuple(
            AskedQuery(query, tuple(dict.fromkeys(urldefrag(each.url).url for each in got)))
            for query, got in answered.items()
        ),
    )


async def ask_once(query: str, provider: SearchProvider, k: int, note: Note) -> list[SearchResult] | ProviderError:
    """What came of one query; a failure is a value here."""
    note(ToolCall(tool="search", params={"query": query, "k": k}, provider=provider.name))
    started = perf_counter()
    try:
        results = await provider.search(query, k)
    except ProviderError as failure:
        code = ERROR_CODES.get(failure.kind, "SEARCH_PROVIDER_UNAVAILABLE")
        note(Failure(code=code, message=str(failure), category="harvest", retried=failure.attempts > 1))
        return failure
    took = round((perf_counter() - started) * 1000)
    note(Answered(query=query, k=k, results_count=len(results), provider=provider.name, latency_ms=took))
    return results


def choose(
    candidates: Iterator[FoundPage], seen: Sequence[FoundPage], cap: int, budget: int, names: Collection[str] = ()
) -> Harvest:
    """The candidates that are taken, in order, and how many were left out (pipeline/contracts/research.md#sources).

    Each place goes to the one that stands first, when each page of the same site taken before moves it one rank back, a
    source that answers for what it says one rank forward, and one that sells or for which nobody answers one back; at
    equal ranks to the one moved less. `names` are those that what is asked has, in folded case.
    """
    pages = {page_key(found.url) for found in seen}
    sites = Counter(site_key(found.url) for found in seen if not is_document(found.url))
    fresh: list[_Candidate] = []
    doubled = 0
    for found in candidates:
        key = page_key(found.url)
        if key in pages:
            doubled += 1
        else:
            kind = "document" if is_document(found.url) else source_kind(found.url, names)
            handicap = (kind in SECONDARY) - (kind in PRIMARY)
            fresh.append(_Candidate(len(fresh), found, site_key(found.url), handicap, kind == "document"))
        pages.add(key)
    taken: list[_Candidate] = []
    while True:
        with_room = [each for each in fresh if each.is_document or sites[each.site] < cap]
        if not with_room or len(seen) + len(taken) >= budget:
            break
        back = {each: each.handicap + sites[each.site] for each in with_room}
        best = min(with_room, key=lambda each: (each.found.rank + back[each], back[each], each.place))
        fresh.remove(best)
        taken.append(best)
        sites[best.site] += not best.is_document
    chosen = tuple(each.found for each in sorted(taken))
    return Harvest(chosen, doubled=doubled, capped=len(fresh) - len(with_room), over_budget=len(with_room))


class _Candidate(NamedTuple):
    place: int
    found: FoundPage
    site: str
    handicap: int  # How many ranks its kind moves it back
    is_document: bool


def page_key(url: str) -> str:
    """The key under which two URLs are the same page; mirrors count as their site, as `de.m.wikipedia.org` does."""
    key = membership_key(url)
    host = urlsplit(key).hostname or ""
    site = site_key(url)
    labels = host.removesuffix(site).split(".") if host.endswith(f".{site}") else []
    kept = [label for label in labels if label not in _MIRROR_LABELS]
    return key.replace(host, ".".join([*kept[:-1], site]), 1) if kept != labels else key


# So many words in a row are hardly the same in two texts by chance.
_SHINGLE = 6
# Share of the words in a row of both together that both have.
_SAME = 0.7
_FEWEST = 30
# More than a deep run reads, so that none is cut up again in each round.
_PAGES_KEPT = 32
_TOKEN = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")


_Shingled = tuple[int, frozenset[int]]
"""Checksums of a text: of all words, and of words in a row; none of these for one that is too short."""


@lru_cache(maxsize=_PAGES_KEPT)
def _shingled(text: str) -> _Shingled:
    words = _TOKEN.findall(text.casefold())
    rows = (" ".join(words[at : at + _SHINGLE]) for at in range(len(words) - _SHINGLE + 1))
    shingles = frozenset(zlib.crc32(row.encode(errors="replace")) for row in rows)
    whole = zlib.crc32(" ".join(words).encode(errors="replace"))
    return whole, shingles if len(words) >= _FEWEST else frozenset()


def _same(one: _Shingled, other: _Shingled) -> bool:
    (whole, rows), (other_whole, other_rows) = one, other
    shared = len(rows & other_rows)
    return whole == other_whole or (bool(shared) and shared >= _SAME * (len(rows) + len(other_rows) - shared))


def without_duplicates(pages: Sequence[Page]) -> tuple[Page, ...]:
    """The pages of which none says the same as one before it, in their order."""
    kept: dict[Page, _Shingled] = {}
    for page in pages:
        text = _shingled(page.text)
        if not any(_same(text, known) for known in kept.values()):
            kept[page] = text
    return tuple(kept)


class Unread(NamedTuple):
    url: str
    reason: str
    detail: str  # The same in plain words; empty where there is nothing to add. May hold words of the server's.


class PagesRead(NamedTuple):
    pages: tuple[Page, ...] = ()
    """Those that were read, in the order in which they were found; of pages that say the same the first."""
    unread: tuple[Unread, ...] = ()
    duplicates: tuple[Any, ...] = ()  # of earlier versions: checkpoints keep fields by their place
    cached: int = 0
    fetched: int = 0
    away: bool = False


async def fetch(
    found: Sequence[FoundPage],
    fetcher: Fetcher,
    extractor: Extractor,
    store: Store,
    workers: int,
    note: Report = lambda url, reason: None,
    run_id: str = "",
    refresh: bool = False,
) -> PagesRead:
    """The pages' text; what the store has is asked again where it failed for a while, or once a run to `refresh`."""
    urls = list(dict.fromkeys(page.url for page in found))
    old = set(urls) - fetched_by(run_id, store) if refresh else set()
    missing = [page for url in urls for page in missing_pages([url], store, url in old)]
    asked = {page.url for page in missing}
    tell_cached([url for url in urls if url not in asked], store, note, run_id)
    gathered = await gather_pages(missing, fetcher, extractor, store, note, run_id, workers)
    read, unread = _read_pages(urls, store, gathered.kept if refresh else ())
    cached = len(urls) - len(missing)
    return PagesRead(without_duplicates(read), unread, (), cached, gathered.fetched, gathered.away)


def tell_cached(urls: Sequence[str], store: Store, note: Report, run_id: str) -> None:
    """Say of pages that they come from the store; the trace of a run that has told where one came from keeps to it."""
    told = {event.payload["url"] for event in store.events(run_id) if event.kind == "fetch_result"}
    for url in urls:
        outcome = store.outcome(url) or Outcome("not_tried")
        note(url, outcome.reason)
        if url not in told:
            event = FetchResult(url=url, status=None, bytes=0, latency_ms=0, robots_respected=True, cached=True)
            put_trace(store, run_id, event)


def fetched_by(run_id: str, store: Store) -> set[str]:
    events = (event.payload for event in store.events(run_id) if event.kind == "fetch_result")
    return {str(payload["url"]) for payload in events if payload.get("reason") == "page"}


def _read_pages(urls: Sequence[str], store: Store, outdated: Collection[str]) -> tuple[list[Page], tuple[Unread, ...]]:
    """The pages as the store has them, and those of which it has no text or an outdated one; in the URLs' order."""
    pages: list[Page] = []
    unread: list[Unread] = []
    for url in urls:
        stored = store.page(url, with_raw=False)
        if url in outdated:
            unread.append(Unread(url, "not_tried", "It could not be fetched anew, and the cache is off."))
        elif stored and stored.reason in READ and stored.text.strip():
            site = site_key(stored.final_url or stored.url)  # where it was redirected, the one that answered
            page = Page(stored.url, stored.title, site, stored.lang, stored.text, stored.ts, stored.headings)
            pages.append(page._replace(changed=_changed_on(stored), read_share=stored.read_share))
        else:
            unread.append(Unread(url, stored.reason, stored.detail) if stored else Unread(url, "not_tried", ""))
    return pages, tuple(unread)


def _changed_on(stored: StoredPage) -> str:
    """The day on which its server says that it last changed, before it was read; empty where it says none."""
    try:
        day = parsedate_to_datetime(stored.last_modified).date().isoformat()
    except ValueError:
        return ""
    return day if day < stored.ts[:10] else ""
