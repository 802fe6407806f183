"""What providers answer, in one form: titles and snippets within its limits, http(s) URLs only.

Source: pipeline/contracts/research.md#searchresult.
"""

import hashlib
import html
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import InputError
from pipeline.research.search import SearchProvider
from pipeline.sources.reading.decode import stored_text
from pipeline.sources.schema import SearchResult
from pipeline.text.sentences import trim_snippet
from pipeline.text.urls import canonical_url

_LONGEST_TITLE = 256
_LONGEST_SNIPPET = 1024
# What search engines put around the words that were found.
_EMPHASIS = re.compile(r"</?(?:strong|b|em|mark|span)(?:\s[^<>]*)?>", re.IGNORECASE)


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
            results[canonical] = SearchResult(title=_plain(title)[:_LONGEST_TITLE], url=canonical, snippet=words)
    return SearchResults(results.values(), dropped)


def _plain(text: object) -> str:
    """The text on one line, without the marks that search engines put around words that match."""
    if not isinstance(text, str):
        return ""
    return " ".join(stored_text(html.unescape(_EMPHASIS.sub("", text[: 4 * _LONGEST_SNIPPET]))).split())


class RecordedSearch:
    """A provider whose answers stand in a file, a line each; what stands there is not asked again.

    A line that a kill tore is passed over, and its query asked again. One process at a time may write to the file.
    """

    def __init__(self, provider: SearchProvider, path: Path) -> None:
        """Read what the file holds; it is made with the first answer."""
        self.provider = provider
        self.name = provider.name
        self.path = path
        self.answers = _read_answers(path)

    async def search(self, query: str, k: int) -> SearchResults:
        """The held answer where there is one, else the provider's.

        Raises:
            ProviderError: as the provider raises; nothing is kept of it.
            InputError: as the provider raises.
        """
        key = answer_key(self.name, query, k)
        if key not in self.answers:
            came = await self.provider.search(query, k)
            answer = SearchResults(came, came.dropped if isinstance(came, SearchResults) else 0)
            self.keep(key, query, answer)
            self.answers[key] = answer
        return self.answers[key]

    def keep(self, key: str, query: str, answer: SearchResults) -> None:
        """Add an answer to the end of the file."""
        results = [result.model_dump(mode="json", by_alias=True, exclude_none=True) for result in answer]
        line = json.dumps({"key": key, "query": query, "dropped": answer.dropped, "results": results})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "ab") as file:
            # A line feed before each line as well: so the one before, which a kill may have torn, ends there.
            file.write(f"\n{line}\n".encode())
            file.flush()
            os.fsync(file.fileno())


def answer_key(name: str, query: str, k: int) -> str:
    """What tells one query to one provider from all others."""
    return hashlib.sha256(json.dumps([name, query, k]).encode()).hexdigest()


def _read_answers(path: Path) -> dict[str, SearchResults]:
    """The answers in the file by their key; empty where there is no file."""
    if not path.is_file():
        return {}
    answers: dict[str, SearchResults] = {}
    for line in path.read_bytes().splitlines():
        try:
            told = json.loads(line)
            results = [SearchResult.model_validate(each) for each in told["results"]]
            answers[told["key"]] = SearchResults(results, int(told["dropped"]))
        except (ValueError, TypeError, KeyError):  # pydantic's ValidationError is a ValueError
            continue
    return answers
