"""Who is asked for pages on a query: a query in, at most `k` titles, URLs and snippets out, the best first.

`search_provider` below gives the one of a name; read it first. `_api` asks Brave and Tavily, `_duckduckgo` DuckDuckGo,
`_local` the user's own documents, which `documents` reads into the store; `results` brings what they say into one form
and keeps it for a run that goes on.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, get_args

from pipeline.errors import InputError
from pipeline.research.contracts import SearchName

if TYPE_CHECKING:
    from pipeline.sources.schema import SearchResult
    from pipeline.sources.store import Store


class SearchProvider(Protocol):
    """Somebody who knows pages."""

    name: str
    """One of `SearchName`."""

    async def search(self, query: str, k: int) -> "list[SearchResult]":
        """At most `k` pages for the query, the best first; empty where there are none.

        Raises:
            ProviderError: the provider does not answer, or refuses; what was asked before is not lost.
            InputError: the documents that are searched cannot be read.
        """
        ...


def search_provider(
    name: str,
    *,
    documents: Path | None = None,
    store: "Store | None" = None,
    environment: Mapping[str, str],
    base_url: str = "",
    tell: Callable[[str], None] = lambda line: None,
) -> SearchProvider:
    """The provider of this name, not asked yet; `environment` holds the keys, as `os.environ` does.

    `local` searches the folder `documents`, or every page that the store holds where none is named; documents go into
    the store when they are first searched. `base_url` is where tavily and brave are asked instead of their own address;
    `tell` hears of documents that are left out.

    Raises:
        InputError: there is no such provider (any more), or no folder `documents`, or `local` has no store.
        SettingsError: its key is missing or none.
        NotInstalledError: its library is missing.
    """
    if name == "local":
        from pipeline.research.search._local import LocalSearch

        if store is None:
            raise InputError("The provider `local` needs the store that its pages are in.")
        return LocalSearch(documents, store, tell)
    if documents is not None:
        raise InputError(f"Documents are searched by the provider `local`; {name!r} searches the web. Leave out one.")
    if name == "duckduckgo":
        from pipeline.research.search._duckduckgo import DuckDuckGo

        return DuckDuckGo()
    if name in ("tavily", "brave"):
        from pipeline.research.search._api import SearchApi, brave, tavily

        return SearchApi((tavily if name == "tavily" else brave)(base_url), environment)
    others = ", ".join(each for each in get_args(SearchName) if each != "bing")
    if name == "bing":
        raise InputError(f"Microsoft retired the Bing Search API on 2025-08-11. Choose one of {others}.")
    raise InputError(f"There is no search provider {name!r}. Choose one of {others}.")
