"""Search services that are asked over HTTP with a key: Brave and Tavily."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from pipeline.errors import ErrorKind, ProviderError, SettingsError
from pipeline.providers.body import as_object, as_objects
from pipeline.providers.http.client import ApiClient, RetryPolicy
from pipeline.providers.request import Endpoint, ProviderRequest, read_base_url
from pipeline.research.search.results import RawResult, SearchResults, readable_results

MOST_AT_ONCE = 5
SEARCH_POLICY = RetryPolicy(attempts=4, total_seconds=90.0, read_seconds=30.0, connect_seconds=15.0)
_ADVICE: dict[ErrorKind, str] = {
    "auth": "Look at the key in `{variable}`.",
    "quota": "Its plan is used up: raise it, or choose another provider with `--search`.",
}
_OTHER_ADVICE = "Try again later, or choose another provider with `--search`."
_LONGEST_QUERY = 400
_MOST_RESULTS = 20
_MOST_BRAVE_WORDS = 50


class SearchService(NamedTuple):
    """How a search service is asked, and how its answers are read."""

    name: str
    base_url: str
    key_variable: str
    """The variable of the environment that holds the key."""
    key_header: str
    to_request: Callable[[str, int], ProviderRequest]
    """From a query and the number of results wanted to the request."""
    raw_results: Callable[[Any], Iterable[RawResult] | None]
    """From a body to the results in it; None where it is no answer of this service."""


class SearchApi:
    """A search provider that is asked over HTTP."""

    def __init__(
        self, service: SearchService, environment: Mapping[str, str], policy: RetryPolicy = SEARCH_POLICY
    ) -> None:
        """Find the key and prepare the client; the first query sends first.

        Raises:
            SettingsError: the environment holds no key for it, or its address is none that a key may be sent to.
        """
        self.service = service
        self.name = service.name
        key = environment.get(service.key_variable, "").strip()
        if not key:
            raise SettingsError(f"There is no key for {service.name}; set `{service.key_variable}`.")
        url = read_base_url(service.name, service.base_url)
        endpoint = Endpoint(service.name, url, key, service.key_variable, service.key_header)
        self.client = ApiClient(endpoint, policy, MOST_AT_ONCE)

    async def search(self, query: str, k: int) -> SearchResults:
        """At most `k` results, the best first.

        Raises:
            ProviderError: the service does not answer, refuses, or answers something else.
        """
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
    """Brave; at `base_url` where that is given.

    Source: https://api-dashboard.search.brave.com/app/documentation/web-search/get-started, read 2026-11.
    """
    url = base_url or "https://api.search.brave.com"
    return SearchService("brave", url, "BRAVE_API_KEY", "x-subscription-token", _ask_brave, _brave_results)


def _ask_brave(query: str, k: int) -> ProviderRequest:
    """The request for a query, web pages alone and no marks around words that match."""
    words = " ".join(query.split()[:_MOST_BRAVE_WORDS])[:_LONGEST_QUERY]
    wanted = {"q": words, "count": min(k, _MOST_RESULTS), "result_filter": "web", "text_decorations": "false"}
    return ProviderRequest(f"/res/v1/web/search?{urlencode(wanted, errors='replace')}", {}, {}, "GET")


def _brave_results(body: Any) -> Iterator[RawResult] | None:
    """The results of an answer, none where it has no part `web`; None where it is no answer of Brave's."""
    fields = as_object(body)
    if fields.get("type") != "search" and "web" not in fields:
        return None
    results = as_objects(as_object(fields.get("web")).get("results"))
    return (RawResult(each.get("title"), each.get("url"), each.get("description")) for each in results)


def tavily(base_url: str = "") -> SearchService:
    """Tavily; at `base_url` where that is given.

    Source: https://docs.tavily.com/documentation/api-reference/endpoint/search, read 2026-11.
    """
    url = base_url or "https://api.tavily.com"
    return SearchService("tavily", url, "TAVILY_API_KEY", "authorization", _ask_tavily, _tavily_results)


def _ask_tavily(query: str, k: int) -> ProviderRequest:
    """The request for a query; the cheapest depth, whose content is an excerpt of each page."""
    body = {"query": query[:_LONGEST_QUERY], "max_results": min(k, _MOST_RESULTS), "search_depth": "basic"}
    return ProviderRequest("/search", {}, body)


def _tavily_results(body: Any) -> Iterator[RawResult] | None:
    """The results of an answer; None where it is none."""
    fields = as_object(body)
    if not isinstance(fields.get("results"), list):
        return None
    results = as_objects(fields["results"])
    return (RawResult(each.get("title"), each.get("url"), each.get("content")) for each in results)
