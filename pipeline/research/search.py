"""Search on the web: Brave, Tavily and DuckDuckGo, what they answer in one form, and a file that keeps it for a run."""

import asyncio
import hashlib
import html
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlencode

from pipeline.citations.addresses import canonical_url
from pipeline.core.errors import InputError, NotInstalledError, ProviderError, SettingsError
from pipeline.core.files import append_line
from pipeline.core.schema import ErrorKind
from pipeline.providers.http.client import ApiClient, RetryPolicy, waiting
from pipeline.providers.http.failure import redact
from pipeline.providers.http.request import Endpoint, ProviderRequest, as_object, as_objects, read_base_url
from pipeline.research.contracts import Payload, ToolCall, put_trace
from pipeline.sources.decode import stored_text
from pipeline.sources.schema import SearchResult
from pipeline.sources.store import Store
from pipeline.text.sentences import trim_snippet

_LONGEST_SNIPPET = 1024
# What search engines put around the words that were found.
_EMPHASIS = re.compile(r"</?(?:strong|b|em|mark|span)(?:\s[^<>]*)?>", re.IGNORECASE)


class SearchProvider(Protocol):
    name: str

    async def search(self, query: str, k: int) -> list[SearchResult]:
        """At most `k` pages for the query, the best first; a ProviderError where nobody answers or refuses."""
        ...


class RawResult(NamedTuple):
    """One result as the provider words it; a value that is no text counts as empty."""

    title: object
    url: object
    snippet: object


class SearchResults(list[SearchResult]):
    """The results that can be used, in the provider's order, and how many others there were."""

    def __init__(self, results: Iterable[SearchResult] = (), dropped: int = 0) -> None:
        """`dropped` results had no http(s) URL."""
        super().__init__(results)
        self.dropped = dropped


def readable_results(raw: Iterable[RawResult], k: int) -> SearchResults:
    """The first `k` results that have an http(s) URL, each URL once, and how many of all have none."""
    results: dict[str, SearchResult] = {}
    dropped = 0
    for title, url, snippet in raw:
        try:
            canonical = canonical_url(url.strip()) if isinstance(url, str) else ""
        except InputError:
            canonical = ""
        if not canonical:
            dropped += 1
        elif canonical not in results and len(results) < k:
            words = trim_snippet(_plain(snippet), _LONGEST_SNIPPET) or None
            results[canonical] = SearchResult(title=_plain(title)[:256], url=canonical, snippet=words)
    return SearchResults(results.values(), dropped)


def _plain(text: object) -> str:
    """The text on one line, without the marks that search engines put around words that match."""
    if not isinstance(text, str):
        return ""
    return " ".join(stored_text(html.unescape(_EMPHASIS.sub("", text[: 4 * _LONGEST_SNIPPET]))).split())


@dataclass(eq=False)
class RunSearch:
    """A run's search: its answers stand in a file, a line each, and what stands there is not asked again."""

    provider: SearchProvider
    path: Path
    store: Store
    run_id: str
    may_ask: Callable[[], bool] = lambda: True  # Once it says no, nobody is asked

    def __post_init__(self) -> None:
        self.name = self.provider.name
        self.answers: dict[str, SearchResults] = {}
        for line in self.path.read_bytes().splitlines() if self.path.is_file() else ():
            with suppress(ValueError, TypeError, KeyError):  # pydantic's ValidationError is a ValueError
                kept = json.loads(line)
                results = [SearchResult.model_validate(each) for each in kept["results"]]
                self.answers[kept["key"]] = SearchResults(results, int(kept["dropped"]))
        self.answered = set(self.answers)
        events = (event.payload for event in self.store.events(self.run_id) if event.kind == "search_result")
        self.traced = {self._key(payload["query"], payload["k"]) for payload in events}

    async def search(self, query: str, k: int) -> SearchResults:
        """At most `k` pages for the query, the best first; none where nobody may be asked any more."""
        key = self._key(query, k)
        if key not in self.answers:
            if not self.may_ask():
                return SearchResults()
            came = await self.provider.search(query, k)
            answer = SearchResults(came, came.dropped if isinstance(came, SearchResults) else 0)
            self._keep(key, query, answer)
            self.answers[key] = answer
        return self.answers[key]

    def note(self, payload: Payload) -> None:
        """Add the event to the run's trace, unless an earlier start has: a question once it was answered."""
        shown = payload.model_dump()
        asked = shown.get("params", shown)
        known = self.answered if isinstance(payload, ToolCall) else self.traced
        if "query" not in asked or self._key(asked["query"], asked["k"]) not in known:
            put_trace(self.store, self.run_id, payload)

    def _key(self, query: str, k: int) -> str:
        return hashlib.sha256(json.dumps([self.name, query, k]).encode()).hexdigest()

    def _keep(self, key: str, query: str, answer: SearchResults) -> None:
        results = [result.model_dump(mode="json", by_alias=True, exclude_none=True) for result in answer]
        line = json.dumps({"key": key, "query": query, "dropped": answer.dropped, "results": results})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        append_line(self.path, f"\n{line}")  # so the line before, which a kill may have torn, ends there


MOST_AT_ONCE = 5
SEARCH_POLICY = RetryPolicy(
    attempts=4, total_seconds=90.0, read_seconds=30.0, connect_seconds=15.0, patience_seconds=90.0
)
_ADVICE: dict[ErrorKind, str] = {
    "auth": "Look at the key in `{variable}`.",
    "no_permission": "Look at what the key in `{variable}` may do.",
    "quota": "Its plan is used up: raise it, or choose another provider with `--search`.",
}
_OTHER_ADVICE = "Try again later, or choose another provider with `--search`."
_LONGEST_QUERY = 400
_MOST_RESULTS = 20


class SearchService(NamedTuple):
    name: str
    base_url: str
    key_variable: str
    key_header: str
    to_request: Callable[[str, int], ProviderRequest]
    raw_results: Callable[[Any], Iterable[RawResult] | None]
    """From a body to the results in it; None where it is no answer of this service."""


class SearchApi:
    def __init__(
        self,
        service: SearchService,
        environment: Mapping[str, str],
        policy: RetryPolicy = SEARCH_POLICY,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.service = service
        self.name = service.name
        key = environment.get(service.key_variable, "").strip()
        if not key:
            raise SettingsError(f"There is no key for {service.name}; set `{service.key_variable}`.")
        url = read_base_url(service.name, service.base_url)
        endpoint = Endpoint(service.name, url, key, service.key_variable, service.key_header)
        self.client = ApiClient(endpoint, policy, MOST_AT_ONCE, waits=waiting(tell))

    async def search(self, query: str, k: int) -> SearchResults:
        try:
            response = await self.client.send(self.service.to_request(query, k))
        except ProviderError as failure:
            advice = _ADVICE.get(failure.kind, _OTHER_ADVICE).format(variable=self.service.key_variable)
            words = f"{self.name} cannot be searched: {str(failure).rstrip('.')}. {advice}"
            raise ProviderError(words, failure.kind, status=failure.status, attempts=failure.attempts) from None
        finally:
            # Nobody closes a search provider, and a run may ask it again after minutes.
            await self.client.close()
        raw = self.service.raw_results(response.body)
        if raw is None:
            raise ProviderError(f"{self.name} answered with something else than search results. {_OTHER_ADVICE}")
        return readable_results(raw, k)


def brave(base_url: str = "") -> SearchService:
    """Source: https://api-dashboard.search.brave.com/app/documentation/web-search/get-started, read 2026-11."""

    def ask(query: str, k: int) -> ProviderRequest:
        words = " ".join(query.split()[:50])[:_LONGEST_QUERY]
        wanted = {"q": words, "count": min(k, _MOST_RESULTS), "result_filter": "web", "text_decorations": "false"}
        return ProviderRequest(f"/res/v1/web/search?{urlencode(wanted, errors='replace')}", {}, {}, "GET")

    def results(body: Any) -> Iterator[RawResult] | None:
        fields = as_object(body)
        if fields.get("type") != "search" and "web" not in fields:
            return None
        found = as_objects(as_object(fields.get("web")).get("results"))
        return (RawResult(each.get("title"), each.get("url"), each.get("description")) for each in found)

    url = base_url or "https://api.search.brave.com"
    return SearchService("brave", url, "BRAVE_API_KEY", "x-subscription-token", ask, results)


def tavily(base_url: str = "") -> SearchService:
    """Source: https://docs.tavily.com/documentation/api-reference/endpoint/search, read 2026-11."""

    def ask(query: str, k: int) -> ProviderRequest:
        # The cheapest depth, whose content is an excerpt of each page.
        body = {"query": query[:_LONGEST_QUERY], "max_results": min(k, _MOST_RESULTS), "search_depth": "basic"}
        return ProviderRequest("/search", {}, body)

    def results(body: Any) -> Iterator[RawResult] | None:
        found = as_object(body).get("results")
        if not isinstance(found, list):
            return None
        return (RawResult(each.get("title"), each.get("url"), each.get("content")) for each in as_objects(found))

    url = base_url or "https://api.tavily.com"
    return SearchService("tavily", url, "TAVILY_API_KEY", "authorization", ask, results)


_ATTEMPTS = 3

_Ask = Callable[[str, int], list[dict[str, Any]]]
"""From a query and the number of results wanted to what ddgs gives; runs in a thread, and raises what ddgs raises."""


class DuckDuckGo:
    """DuckDuckGo, one query at a time, for it refuses those who ask fast, and does not always say that it does."""

    name = "duckduckgo"

    def __init__(self, ask: _Ask | None = None, backoff: float = 5.0) -> None:
        """`backoff` are the seconds before a second try of a query."""
        self.ask = ask or _ddgs_text()
        self.backoff = backoff
        self.turn = asyncio.Lock()

    async def search(self, query: str, k: int) -> SearchResults:
        async with self.turn:
            found = await self._found(query, k)
        return readable_results((RawResult(each.get("title"), each.get("href"), each.get("body")) for each in found), k)

    async def _found(self, query: str, k: int) -> list[dict[str, Any]]:
        from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException

        kinds: dict[type[Exception], ErrorKind] = {RatelimitException: "rate_limit", TimeoutException: "timeout"}
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await asyncio.to_thread(self.ask, query, k)
            except DDGSException as error:
                if "No results found" in str(error):
                    return []
                if attempt == _ATTEMPTS:
                    words = (redact(str(error)) or "it gives no reason").rstrip(".")
                    kind: ErrorKind = next((kinds[each] for each in kinds if isinstance(error, each)), "network")
                    words = f"duckduckgo cannot be searched: {words}. {_OTHER_ADVICE}"
                    raise ProviderError(words, kind, attempts=_ATTEMPTS) from error
            await asyncio.sleep(self.backoff * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.0))
        raise AssertionError("there is at least one attempt")


def _ddgs_text() -> _Ask:
    try:
        from ddgs import DDGS
    except ImportError as error:
        raise NotInstalledError(
            "Searching with duckduckgo needs the library ddgs. Run `pip install '.[research]'` in the checkout of "
            "citejury, or choose another provider with `--search`."
        ) from error

    def ask(query: str, k: int) -> list[dict[str, Any]]:
        # Its own default mixes a dozen engines; and `wt-wt` is its name for no region.
        found: list[dict[str, Any]] = DDGS(timeout=20).text(query, region="wt-wt", max_results=k, backend="duckduckgo")
        return found

    return ask
