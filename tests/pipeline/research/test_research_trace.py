"""The trace of a run that was killed and went on: each thing that happened is told, and told once."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.research.pages import ask_once, tell_cached
from pipeline.research.search import RunSearch
from pipeline.sources.schema import SearchResult
from pipeline.sources.store import Store, open_store

PAGE = "https://a.example/"


class OneResult:
    """A search that always finds the same page."""

    name = "one"

    async def search(self, query: str, k: int) -> list[SearchResult]:
        return [SearchResult(title="A", url=PAGE)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "store.db") as opened:
        yield opened


def started(folder: Path, store: Store) -> RunSearch:
    return RunSearch(OneResult(), folder / "searches.jsonl", store, "sun")


def kinds(store: Store) -> list[str]:
    return [event.kind for event in store.events("sun")]


def test_a_query_whose_answer_a_kill_left_untold_is_told_by_the_next_start(store: Store, tmp_path: Path) -> None:
    killed = started(tmp_path / "sun", store)
    asyncio.run(killed.search("sun", 3))
    for _ in range(2):
        search = started(tmp_path / "sun", store)
        asyncio.run(ask_once("sun", search, 3, search.note))
        assert kinds(store) == ["search_result"]


def test_where_a_page_came_from_is_told_once_and_its_reader_hears_of_it_each_time(store: Store) -> None:
    heard: list[str] = []
    for _ in range(2):
        tell_cached([PAGE], store, lambda url, reason: heard.append(url), "sun")
    assert kinds(store) == ["fetch_result"]
    assert heard == [PAGE, PAGE]
