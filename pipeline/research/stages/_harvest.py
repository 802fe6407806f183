"""The stage harvest: the plan's queries put to the search provider, and of its results those that are worth reading."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from time import perf_counter
from typing import NamedTuple
from urllib.parse import urldefrag, urlsplit

from pipeline.errors import ProviderError
from pipeline.research.contracts import ErrorCode, Failure, Payload, ToolCall
from pipeline.research.contracts import SearchResults as Answered
from pipeline.research.search import SearchProvider
from pipeline.research.search.documents import is_document
from pipeline.research.search.results import SearchResults
from pipeline.research.values import AskedQuery, FoundPage, Plan, plan_language
from pipeline.sources.kinds import PRIMARY, SECONDARY, source_kind
from pipeline.sources.schema import SearchResult
from pipeline.text.asking import subject_words
from pipeline.text.urls import membership_key, site_key

Note = Callable[[Payload], None]
"""Hears of each query and each answer, at once."""

_MIRROR_LABELS = ("www", "m")
_ERROR_CODES: Mapping[str, ErrorCode] = {
    "network": "NETWORK_ERROR",
    "timeout": "TIMEOUT",
    "rate_limit": "RATE_LIMITED",
    "bad_response": "PARSE_ERROR",
}


class Harvest(NamedTuple):
    """What the queries brought."""

    found: tuple[FoundPage, ...]
    """Pages worth reading, new in this round: the queries' first results, then their second ones, and so on."""
    results: int = 0
    """Results of all queries together, those without an http(s) URL left out."""
    dropped: int = 0
    """Results without an http(s) URL."""
    doubled: int = 0
    """Results that were found before, or stand for the same page."""
    capped: int = 0
    """Results left out because their site has as many pages as one may have."""
    over_budget: int = 0
    """Results left out because there were enough sources."""
    failures: tuple[str, ...] = ()
    """Why queries were not answered, in words, in the order of the queries."""
    asked: tuple[AskedQuery, ...] = ()
    """The queries that were answered, in order; empty in runs of earlier versions."""


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

    `seen` are all pages of earlier rounds: none of them is found again, and they count for `per_domain_cap`, the most
    pages of one site, and for `budget`, the most pages of the run. The user's own documents have no cap. `workers`
    queries are asked at a time, and `note` hears of each.

    Raises:
        ProviderError: no query was answered.
        InputError: the documents that are searched cannot be read.
    """
    queries = list(dict.fromkeys(plan.queries))
    answers = await _ask_all(queries, provider, k, workers, note)
    failures = [answer for answer in answers if isinstance(answer, ProviderError)]
    if failures and len(failures) == len(answers):
        raise failures[0]
    answered = {query: got for query, got in zip(queries, answers, strict=True) if not isinstance(got, ProviderError)}
    chosen = choose(_by_rank(answered), seen, per_domain_cap, budget, _names_in(plan))
    return chosen._replace(
        results=sum(map(len, answered.values())),
        dropped=sum(got.dropped for got in answered.values() if isinstance(got, SearchResults)),
        failures=tuple(str(failure) for failure in failures),
        asked=tuple(
            AskedQuery(query, tuple(dict.fromkeys(urldefrag(each.url).url for each in got)))
            for query, got in answered.items()
        ),
    )


async def _ask_all(
    queries: Sequence[str], provider: SearchProvider, k: int, workers: int, note: Note
) -> list[list[SearchResult] | ProviderError]:
    """What came of each query, in their order.

    Raises:
        InputError: as the provider raises.
    """
    room = asyncio.Semaphore(max(1, workers))

    async def ask(query: str) -> list[SearchResult] | ProviderError:
        async with room:
            return await ask_once(query, provider, k, note)

    return await asyncio.gather(*map(ask, queries))


async def ask_once(query: str, provider: SearchProvider, k: int, note: Note) -> list[SearchResult] | ProviderError:
    """What came of one query; a failure is a value here.

    Raises:
        InputError: as the provider raises.
    """
    note(ToolCall(tool="search", params={"query": query, "k": k}, provider=provider.name))
    started = perf_counter()
    try:
        results = await provider.search(query, k)
    except ProviderError as failure:
        code = _ERROR_CODES.get(failure.kind, "SEARCH_PROVIDER_UNAVAILABLE")
        note(Failure(code=code, message=str(failure), category="harvest", retried=failure.attempts > 1))
        return failure
    took = round((perf_counter() - started) * 1000)
    note(Answered(query=query, k=k, results_count=len(results), provider=provider.name, latency_ms=took))
    return results


def _by_rank(answers: Mapping[str, Sequence[SearchResult]]) -> Iterator[FoundPage]:
    """The results as pages to read: the first ones of all queries, then the second ones."""
    for rank, row in enumerate(zip_longest(*answers.values()), start=1):
        for query, result in zip(answers, row, strict=True):
            if result is not None:
                yield FoundPage(urldefrag(result.url).url, result.title, query, rank)


def choose(
    candidates: Iterator[FoundPage],
    seen: Sequence[FoundPage],
    per_domain_cap: int,
    budget: int,
    names: Collection[str] = (),
) -> Harvest:
    """The candidates that are taken, in their order, and how many were left out and why.

    Where there are more than places, each place goes to the one that stands first, when each page of the same site that
    was taken before moves it one rank back, a source that answers for what it says one rank forward, and one that sells
    or for which nobody answers one back; at equal ranks to the one that was moved less far back. `names` are those that
    what is asked has, in folded case. The user's own documents have neither site nor kind.

    Source: pipeline/contracts/research.md#sources.
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
            fresh.append(_Candidate(len(fresh), found, site_key(found.url), _handicap(found.url, names)))
        pages.add(key)
    taken: list[_Candidate] = []
    while True:
        with_room = [each for each in fresh if each.is_document or sites[each.site] < per_domain_cap]
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
    """A page that may be taken."""

    place: int
    """Its place among all."""
    found: FoundPage
    site: str
    handicap: int
    """How many ranks its kind moves it back."""

    @property
    def is_document(self) -> bool:
        """Whether it is one of the user's own documents, which stand for no site."""
        return is_document(self.found.url)


def _handicap(url: str, names: Collection[str]) -> int:
    """How many ranks the kind of a source moves it back."""
    kind = source_kind(url, names)
    return (kind in SECONDARY) - (kind in PRIMARY) if not is_document(url) else 0


def _names_in(plan: Plan) -> frozenset[str]:
    """The names in what the plan asks, in folded case."""
    words = (word for section in plan.sections for word in subject_words(section, plan_language(plan)))
    return frozenset(word.text for word in words if word.name)


def page_key(url: str) -> str:
    """The key under which two URLs are the same page: as members of a list of sources are, and a site's mirror too.

    `www.` and `m.` count as mirrors wherever they stand before the part of the host that somebody has registered:
    `de.m.wikipedia.org` is `de.wikipedia.org`.
    """
    key = membership_key(url)
    host = urlsplit(key).hostname or ""
    site = site_key(url)
    labels = host.removesuffix(site).split(".") if host.endswith(f".{site}") else []
    kept = [label for label in labels if label not in _MIRROR_LABELS]
    return key.replace(host, ".".join([*kept[:-1], site]), 1) if kept != labels else key
