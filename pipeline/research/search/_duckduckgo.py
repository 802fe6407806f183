"""DuckDuckGo, through the library ddgs: DuckDuckGo has no interface of its own for search."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

from pipeline.errors import ErrorKind, NotInstalledError, ProviderError
from pipeline.providers.failure import redact
from pipeline.research.search.results import RawResult, SearchResults, readable_results

_ATTEMPTS = 3
_TIMEOUT_SECONDS = 20
_BACKOFF_SECONDS = 5.0
_NO_RESULTS = "No results found"

_Ask = Callable[[str, int], list[dict[str, Any]]]
"""From a query and the number of results wanted to what ddgs gives; runs in a thread, and raises what ddgs raises."""


class DuckDuckGo:
    """DuckDuckGo as a search provider: one query at a time, for it refuses those who ask fast.

    The library tells a refusal from a query without results only where DuckDuckGo says so.
    """

    name = "duckduckgo"

    def __init__(self, ask: _Ask | None = None, backoff: float = _BACKOFF_SECONDS) -> None:
        """Find the library; `backoff` are the seconds before a second try of a query.

        Raises:
            NotInstalledError: ddgs is not installed.
        """
        self.ask = ask or _ddgs_text()
        self.backoff = backoff
        self.turn = asyncio.Lock()

    async def search(self, query: str, k: int) -> SearchResults:
        """At most `k` results, the best first.

        Raises:
            ProviderError: DuckDuckGo does not answer, or refuses.
        """
        async with self.turn:
            found = await self.found(query, k)
        return readable_results((RawResult(each.get("title"), each.get("href"), each.get("body")) for each in found), k)

    async def found(self, query: str, k: int) -> list[dict[str, Any]]:
        """What ddgs gives, empty where it says that there is nothing.

        Raises:
            ProviderError: every try failed.
        """
        from ddgs.exceptions import DDGSException

        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await asyncio.to_thread(self.ask, query, k)
            except DDGSException as error:
                if _NO_RESULTS in str(error):
                    return []
                if attempt == _ATTEMPTS:
                    raise _refusal(error) from error
            await asyncio.sleep(self.backoff * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.0))
        raise AssertionError("there is at least one attempt")


def _ddgs_text() -> _Ask:
    """What asks DuckDuckGo through ddgs.

    Raises:
        NotInstalledError: ddgs is not installed.
    """
    try:
        from ddgs import DDGS
    except ImportError as error:
        raise NotInstalledError(
            "Searching with duckduckgo needs the library ddgs. Run `pip install '.[research]'` in the checkout of "
            "citejury, or choose another provider with `--search`."
        ) from error

    def ask(query: str, k: int) -> list[dict[str, Any]]:
        # Its own default mixes a dozen engines; and `wt-wt` is its name for no region.
        found: list[dict[str, Any]] = DDGS(timeout=_TIMEOUT_SECONDS).text(
            query, region="wt-wt", max_results=k, backend="duckduckgo"
        )
        return found

    return ask


def _refusal(error: Exception) -> ProviderError:
    """The error for a query that nobody answered."""
    from ddgs.exceptions import RatelimitException, TimeoutException

    kind: ErrorKind = "network"
    if isinstance(error, RatelimitException):
        kind = "rate_limit"
    elif isinstance(error, TimeoutException):
        kind = "timeout"
    words = redact(str(error)) or "it gives no reason"
    return ProviderError(
        f"duckduckgo cannot be searched: {words.rstrip('.')}. Try again later, or choose another provider with "
        "`--search`.",
        kind,
        attempts=_ATTEMPTS,
    )
