import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import CitejuryError, InputError, ProviderError, SettingsError
from pipeline.research.pages import ask_once, tell_cached
from pipeline.research.run import search_provider
from pipeline.research.search import (
    SEARCH_POLICY,
    DuckDuckGo,
    RunSearch,
    SearchApi,
    SearchResults,
    brave,
    tavily,
)
from pipeline.sources.schema import SearchResult
from pipeline.sources.store import open_store
from tests.support.scripted_search import Answer, Hit, ScriptedSearch, SearchAsked

KEY = "tvly-k3yThatNobodyMaySee-1234567890"
KEYS = {"TAVILY_API_KEY": KEY, "BRAVE_API_KEY": KEY}
QUICK = SEARCH_POLICY._replace(total_seconds=60.0, backoff_seconds=0.0)
HITS = [
    Hit("Honey", "https://honey.example/a?b=1#part", "Raw honey is &amp; <strong>was</strong> safe."),
    Hit("T" * 900, "HTTP://Bees.example:80/x/../y", "word " * 900),
    Hit("No page", "ftp://bees.example/file", "A file."),
    Hit("Nothing", "javascript:alert(1)", ""),
    Hit("Again", "http://bees.example/y", "The same page."),
]


def find(query: str, k: int) -> list[Hit]:
    return HITS


def ask(
    provider: str, *queries: str, misbehave: Callable[[int, SearchAsked], Answer | None] = lambda number, asked: None
) -> tuple[list[SearchResults | ProviderError], ScriptedSearch]:
    """What came of each query, one after the other, and the server that was asked."""
    with ScriptedSearch(find, misbehave) as server:
        api = SearchApi({"tavily": tavily, "brave": brave}[provider](server.base_url), KEYS, QUICK)

        async def run() -> list[SearchResults | ProviderError]:
            came: list[SearchResults | ProviderError] = []
            for query in queries:
                try:
                    came.append(await api.search(query, 5))
                except ProviderError as failure:
                    came.append(failure)
            return came

        return asyncio.run(run()), server


@pytest.mark.parametrize("provider", ["tavily", "brave"])
def test_a_web_search_gives_results_within_the_contract_and_counts_those_without_a_web_address(provider: str) -> None:
    (results,), server = ask(provider, "Is raw honey safe? " * 40)
    assert isinstance(results, SearchResults)
    assert [result.url for result in results] == ["https://honey.example/a?b=1#part", "http://bees.example/y"]
    assert (results[0].snippet, len(results[1].title)) == ("Raw honey is & was safe.", 256)
    assert 500 < len(results[1].snippet or "") <= 1024
    assert results.dropped == 2
    (asked,) = server.asked
    assert (asked.provider, asked.k) == (provider, 5)
    assert len(asked.query) <= 400
    assert asked.headers["x-subscription-token" if provider == "brave" else "authorization"].endswith(KEY)
    assert asked.headers["user-agent"].startswith("citejury/")


PASSING = {
    "429": Answer({"detail": {"error": "Too many requests."}}, 429, {"Retry-After": "0"}),
    "window": Answer(
        {"type": "ErrorResponse"}, 429, {"X-RateLimit-Remaining": "0, 9", "X-RateLimit-Reset": "0, 99999"}
    ),
    "500": Answer("<html>Internal Server Error</html>", 500),
    "cut": Answer({"results": []}, cut=5),
    "portal": Answer("<html>Please log in to the network</html>"),
}


@pytest.mark.parametrize("failure", PASSING)
def test_a_failure_that_may_pass_is_asked_again(failure: str) -> None:
    came, server = ask("tavily", "honey", misbehave=lambda number, asked: PASSING[failure] if number == 1 else None)
    assert isinstance(came[0], SearchResults)
    assert server.queries == ["honey", "honey"]


def test_a_wait_for_a_rate_limit_is_reported(tmp_path: Path) -> None:
    slow = Answer({"detail": {"error": "Too many requests."}}, 429, {"Retry-After": "1"})
    heard: list[str] = []
    with (
        ScriptedSearch(find, lambda number, asked: slow if number == 1 else None) as server,
        open_store(tmp_path / "pages.db") as store,
    ):
        api = search_provider("tavily", store, KEYS, base_url=server.base_url, tell=heard.append)
        asyncio.run(api.search("honey", 5))
    assert heard == ["Waiting for a rate limit; the next request goes out in 1 second."]


WRONG_TOKEN = {"type": "ErrorResponse", "error": {"status": 422, "code": "SUBSCRIPTION_TOKEN_INVALID", "detail": "No."}}
USED_UP = {"detail": {"error": "This request exceeds your plan's set usage limit."}}
LASTING: dict[str, tuple[str, Answer, str, str]] = {
    "wrong key": ("tavily", Answer({"detail": {"error": f"Invalid API key: {KEY}"}}, 401), "auth", "TAVILY_API_KEY"),
    "wrong token": ("brave", Answer(WRONG_TOKEN, 422), "auth", "BRAVE_API_KEY"),
    "plan used up": ("tavily", Answer(USED_UP, 432), "quota", "exceeds your plan's set usage limit"),
    "no results": ("tavily", Answer({"answer": "Yes."}), "bad_response", "something else than search results"),
    "elsewhere": ("brave", Answer("", 302, {"Location": "https://evil.example/"}), "bad_response", "redirects"),
    "month over": (
        "brave",
        Answer(
            {"error": {"code": "RATE_LIMITED"}}, 429, {"X-RateLimit-Remaining": "1, 0", "X-RateLimit-Reset": "1, 86400"}
        ),
        "rate_limit",
        "left alone for 1 day",
    ),
}


@pytest.mark.parametrize("failure", LASTING)
def test_a_failure_that_lasts_is_told_at_once_with_what_to_do_and_without_the_key(failure: str) -> None:
    provider, answer, kind, words = LASTING[failure]
    came, server = ask(provider, "one", "two", misbehave=lambda number, asked: answer)
    for each in came:
        assert isinstance(each, ProviderError)
        assert each.kind == kind
        assert KEY not in str(each)
    assert words in str(came[0])
    assert server.queries == (["one", "two"] if kind == "bad_response" else ["one"])


@pytest.mark.parametrize(("name", "attempts"), [("brave", QUICK.attempts), ("duckduckgo", 3)])
def test_a_server_that_is_down_is_named_in_the_end(monkeypatch: pytest.MonkeyPatch, name: str, attempts: int) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        monkeypatch.setenv("DDGS_PROXY", address)
        if name == "duckduckgo":
            pytest.importorskip("ddgs", reason="the extra `research` is not installed")
        provider = SearchApi(brave(address), KEYS, QUICK) if name == "brave" else DuckDuckGo(backoff=0.0)
        with pytest.raises(ProviderError, match=rf"{name} cannot be searched.*Try again later") as failure:
            asyncio.run(provider.search("honey", 3))
    assert (failure.value.kind, failure.value.attempts) == ("network", attempts)


@pytest.mark.parametrize(
    ("name", "given", "error", "words"),
    [
        ("bing", {}, InputError, "retired the Bing Search API on 2025-08-11.*duckduckgo, tavily, brave, local"),
        ("yahoo", {}, InputError, "no search provider 'yahoo'"),
        ("tavily", {}, SettingsError, "set `TAVILY_API_KEY`"),
        ("brave", {"environment": {"BRAVE_API_KEY": "two words"}}, SettingsError, "`BRAVE_API_KEY` holds white space"),
        ("brave", {"base_url": "http://brave.example", "environment": KEYS}, SettingsError, "https://host/path"),
        ("tavily", {"base_url": "nowhere", "environment": KEYS}, SettingsError, "https://host/path"),
        ("tavily", {"documents": Path(".")}, InputError, "searches the web"),
    ],
)
def test_a_provider_that_cannot_be_had_says_why(
    name: str, given: dict[str, Any], error: type[CitejuryError], words: str, tmp_path: Path
) -> None:
    with open_store(tmp_path / "store.db") as store, pytest.raises(error, match=words):
        search_provider(name, store, **{"environment": {}, **given})


def test_duckduckgo_asks_again_when_it_is_refused_and_knows_an_empty_answer() -> None:
    pytest.importorskip("ddgs", reason="the extra `research` is not installed")
    from ddgs.exceptions import DDGSException, RatelimitException

    asked: list[str] = []

    def ddgs(query: str, k: int) -> list[dict[str, Any]]:
        asked.append(query)
        if query == "nothing":
            raise DDGSException("No results found.")
        if query == "never" or asked.count(query) == 1:
            raise RatelimitException("https://html.duckduckgo.com/html/ 202 Ratelimit")
        return [{"title": hit.title, "href": hit.url, "body": hit.snippet} for hit in HITS]

    async def run() -> SearchResults:
        provider = DuckDuckGo(ddgs, backoff=0.0)
        assert await provider.search("nothing", 3) == []
        with pytest.raises(ProviderError, match=r"202 Ratelimit\. Try again later") as refused:
            await provider.search("never", 3)
        assert refused.value.kind == "rate_limit"
        return await provider.search("honey", 1)

    assert [result.url for result in asyncio.run(run())] == ["https://honey.example/a?b=1#part"]
    assert asked == ["nothing", "never", "never", "never", "honey", "honey"]


def test_an_answer_that_was_kept_is_not_asked_for_again_and_a_torn_one_is(tmp_path: Path) -> None:
    kept = tmp_path / "run" / "searches.jsonl"
    with ScriptedSearch(find) as server, open_store(tmp_path / "store.db") as store:

        def search(query: str) -> SearchResults:
            provider = RunSearch(SearchApi(tavily(server.base_url), KEYS, QUICK), kept, store, "run")
            return asyncio.run(provider.search(query, 5))

        first, _ = search("one"), search("two")
        kept.write_bytes(kept.read_bytes()[:-40])
        again = search("one")
        assert (list(again), again.dropped, server.queries) == (list(first), 2, ["one", "two"])
        search("two")
        search("two")
        search("one")
        assert server.queries == ["one", "two", "two"]
    assert KEY.encode() not in kept.read_bytes()


class OneResult:
    name = "one"

    async def search(self, query: str, k: int) -> list[SearchResult]:
        return [SearchResult(title="A", url="https://a.example/")]


def test_what_a_kill_left_out_of_the_trace_is_there_after_the_next_start_and_once(tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as store:

        def started() -> RunSearch:
            return RunSearch(OneResult(), tmp_path / "sun" / "searches.jsonl", store, "sun")

        asyncio.run(started().search("sun", 3))  # killed before it was written down
        heard: list[str] = []
        for _ in range(2):
            search = started()
            asyncio.run(ask_once("sun", search, 3, search.note))
            tell_cached(["https://a.example/"], store, lambda url, reason: heard.append(url), "sun")
            assert [event.kind for event in store.events("sun")] == ["search_result", "fetch_result"]
    assert heard == ["https://a.example/"] * 2
