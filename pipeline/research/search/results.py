"""What providers answer, in the one form of seed 004: titles and snippets within its limits, http(s) URLs only."""

import html
import re
from collections.abc import Iterable
from typing import NamedTuple

from pipeline.errors import InputError
from pipeline.sources.reading.decode import stored_text
from pipeline.sources.schema import SearchResult
from pipeline.text.trimming import trim_snippet
from pipeline.text.urls import canonical_url

LONGEST_TITLE = 256
LONGEST_SNIPPET = 1024
# What search engines put around the words that were found.
EMPHASIS = re.compile(r"</?(?:strong|b|em|mark|span)(?:\s[^<>]*)?>", re.IGNORECASE)


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
            words = trim_snippet(plain(snippet), LONGEST_SNIPPET) or None
            results[canonical] = SearchResult(title=plain(title)[:LONGEST_TITLE], url=canonical, snippet=words)
    return SearchResults(results.values(), dropped)


def plain(text: object) -> str:
    """The text on one line, without the marks that search engines put around words that match."""
    if not isinstance(text, str):
        return ""
    return " ".join(stored_text(html.unescape(EMPHASIS.sub("", text[: 4 * LONGEST_SNIPPET]))).split())
