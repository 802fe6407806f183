import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.citations.addresses import site_key
from pipeline.core.errors import ProviderError
from pipeline.research.contracts import Payload, put_trace
from pipeline.research.pages import Harvest, PagesRead, choose, fetch, harvest, page_key, without_duplicates
from pipeline.research.search import SEARCH_POLICY, SearchApi, tavily
from pipeline.research.values import FoundPage, Plan
from pipeline.sources.extract import Extractor
from pipeline.sources.fetch import Fetcher, FetchPolicy
from pipeline.sources.store import Store, open_store
from pipeline.verifying.values import Page as Said
from tests.support.debian_web import debian_web
from tests.support.scripted_search import Answer, Find, Hit, ScriptedSearch, SearchAsked, debian_search
from tests.support.web import Page, Web

SITES = ("a.example", "www.a.example", "m.a.example", "b.example", "c.co.uk", "de.m.wikipedia.org", "de.wikipedia.org")
POLICY = FetchPolicy(delay=0, retries=0, max_seconds=60)


def many_hits(query: str, k: int) -> list[Hit]:
    """Results in which sites and pages repeat, other ones for each query."""
    number = sum(map(ord, query))
    return [Hit(f"{query} {at}", f"https://{SITES[(number + at) % 7]}/{(number * at) % 5}", "") for at in range(k)]


def gather(
    queries: Sequence[str],
    find: Find = many_hits,
    seen: Sequence[FoundPage] = (),
    cap: int = 3,
    budget: int = 10,
    workers: int = 4,
    notes: list[Payload] | None = None,
    refused: str = "",
) -> Harvest:
    def misbehave(number: int, asked: SearchAsked) -> Answer | None:
        return Answer({"detail": "no"}, 400) if refused and refused in asked.query else None

    with ScriptedSearch(find, misbehave) as server:
        provider = SearchApi(
            tavily(server.base_url), {"TAVILY_API_KEY": "tvly-none"}, SEARCH_POLICY._replace(backoff_seconds=0)
        )
        note = (notes if notes is not None else []).append
        return asyncio.run(harvest(Plan(("s",), tuple(queries)), provider, seen, 6, cap, budget, workers, note))


def test_the_same_pages_are_found_whatever_is_asked_at_once_and_later_rounds_count_earlier_ones() -> None:
    queries = [f"query {number}" for number in range(12)]
    one = gather(queries, workers=1, budget=8)
    assert (one, len(one.found), one.results) == (gather(queries, workers=8, budget=8), 8, 72)
    assert one.results == len(one.found) + one.doubled + one.capped + one.over_budget
    assert [found.rank for found in one.found] == sorted(found.rank for found in one.found)
    first = gather(["one", "two"], budget=5)
    both = [*first.found, *gather(["one", "three"], seen=first.found, budget=8).found]
    assert len(both) <= 8
    assert len({page_key(found.url) for found in both}) == len(both)
    assert max(Counter(site_key(found.url) for found in both).values()) <= 3
    assert gather(["one"], seen=both, budget=len(both)).found == ()


@given(
    st.lists(st.builds(lambda site, path: f"https://{site}/{path}", st.sampled_from(SITES), st.integers(0, 6))),
    st.lists(st.integers(0, 6), max_size=4),
    st.integers(1, 4),
    st.integers(0, 12),
)
def test_no_choice_exceeds_its_cap_or_repeats_a_page(urls: list[str], before: list[int], cap: int, budget: int) -> None:
    seen = [FoundPage(f"https://old.example/{path}", "", "q", 1) for path in dict.fromkeys(before)]
    chosen = choose((FoundPage(url, "", "q", rank) for rank, url in enumerate(urls, start=1)), seen, cap, budget)
    all_urls = [found.url for found in (*seen, *chosen.found)]
    assert len({page_key(url) for url in all_urls}) == len(all_urls)
    assert len(all_urls) <= max(budget, len(seen))
    assert all(count <= cap for site, count in Counter(map(site_key, all_urls)).items() if site != "old.example")
    assert len(chosen.found) + chosen.doubled + chosen.capped + chosen.over_budget == len(urls)


def taken_of(budget: int, *urls: str, seen: Sequence[str] = (), names: Sequence[str] = ()) -> list[str]:
    """Which of the URLs, found in this order by one query, are taken."""
    before = [FoundPage(url, "", "q", 1) for url in seen]
    found = (FoundPage(url, "", "q", rank) for rank, url in enumerate(urls, start=1))
    return [each.url for each in choose(found, before, 3, len(before) + budget, names).found]


def test_other_sites_and_offices_go_first_and_documents_of_the_users_stand_as_they_are_found() -> None:
    urls = [f"https://shop.documents.invalid/forum/{number}.html" for number in range(4)]
    assert taken_of(2, *urls, "https://b.documents.invalid/manual.html") == urls[:2]
    assert taken_of(20, *urls) == urls
    first, second, other = "https://a.example/1", "https://www.a.example/2", "https://b.example/"
    assert taken_of(2, first, second, other) == [first, other]
    assert taken_of(3, first, second, other) == [first, second, other]
    assert taken_of(1, second, other, seen=[first]) == [other]
    shop, forum, office = "https://x.example/shop/1", "https://forum.y.org/1", "https://energy.gov/pumps"
    plain = [f"https://{name}.example/" for name in "klmn"]
    assert (taken_of(2, shop, plain[0], office), taken_of(1, forum, plain[0])) == ([plain[0], office], [plain[0]])
    assert taken_of(2, *plain, office) == plain[:2]
    maker = "https://debian.example/"
    assert taken_of(1, *plain[:1], maker) == plain[:1]
    assert taken_of(1, *plain[:1], maker, names=["debian"]) == [maker]
    assert taken_of(1, *plain[:2], maker, names=["debian"]) == plain[:1]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://de.m.wikipedia.org/wiki/A", "https://de.wikipedia.org/wiki/A", True),
        ("http://www.a.example/x/", "https://m.a.example/x", True),
        ("https://m.a.example:8080/x", "https://a.example:8080/x", True),
        ("https://m.com/x", "https://com/x", False),
        ("https://a.example/x", "https://a.example/x?y", False),
        ("https://mail.a.example/", "https://a.example/", False),
    ],
)
def test_mirrored_hosts_are_one_page(one: str, other: str, same: bool) -> None:
    assert (page_key(one) == page_key(other)) == same


def test_a_refused_query_is_told_and_the_others_go_on() -> None:
    notes: list[Payload] = []
    came = gather(["good", "bad", "fine"], notes=notes, workers=1, refused="bad")
    assert {found.query for found in came.found} == {"good", "fine"}
    assert [asked.query for asked in came.asked] == ["good", "fine"]
    assert {found.url for found in came.found} <= {url for asked in came.asked for url in asked.urls}
    assert len(came.failures) == 1
    assert "tavily cannot be searched" in came.failures[0]
    assert [type(note).__name__ for note in notes] == [
        *("ToolCall", "SearchResults"),
        *("ToolCall", "Failure"),
        *("ToolCall", "SearchResults"),
    ]
    with pytest.raises(ProviderError, match="tavily cannot be searched"):
        gather(["bad", "bad too"], refused="bad")


ENGLISH = " ".join(
    f"Hive {number} gave {number * 7 % 40} kilograms of honey in its {number}th year." for number in range(40)
)
JAPANESE = "".join(f"{number}番の巣箱は{number * 7 % 40}キロの蜂蜜を出した。" for number in range(40))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (ENGLISH, ENGLISH.upper().replace(". ", ".\n\n"), True),
        (ENGLISH, f"Our hives this year. {ENGLISH} Share this page with friends and subscribe.", True),
        (JAPANESE, f"共有する。{JAPANESE}", True),
        (ENGLISH, ENGLISH.replace("honey", "wax"), False),
        (ENGLISH, f"{ENGLISH} {JAPANESE}", False),
        (ENGLISH, ENGLISH[: len(ENGLISH) // 2], False),
        ("No honey.", "No honey!", True),
        ("No honey.", "No wax.", False),
    ],
)
def test_pages_that_say_the_same_count_once_and_parts_and_short_ones_stay(one: str, other: str, same: bool) -> None:
    pages = [Said(f"https://{at}.example/", "", "", "", text, "") for at, text in enumerate((one, other))]
    assert list(without_duplicates(pages)) == (pages[:1] if same else pages)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "store.db") as store:
        yield store


def read(
    web: Web, store: Store, urls: Sequence[str], notes: list[tuple[str, str]] | None = None, run_id: str = "run"
) -> PagesRead:
    found = [FoundPage(url, "Title", "query", 1) for url in urls]

    async def run() -> PagesRead:
        async with web.client() as client, Fetcher(client, POLICY) as fetcher, Extractor() as extractor:
            note = (lambda url, reason: notes.append((url, reason))) if notes is not None else lambda url, reason: None
            return await fetch(found, fetcher, extractor, store, 4, note, run_id)

    return asyncio.run(run())


def article(*sentences: str) -> str:
    words = "".join(f"<p>{sentence} </p>" for sentence in sentences)
    return (
        f"<html lang='en'><head><title>{sentences[0][:20]}</title></head><body><article>{words}</article></body></html>"
    )


BEES = [
    f"In year {year} the bees of hive {year * 7 % 13} brought {year % 40} kilograms of honey home."
    for year in range(20)
]


def test_pages_are_read_once_in_order_and_what_could_not_be_read_is_told(store: Store) -> None:
    bees: dict[str, Page | str | bytes] = {
        "/": article(*BEES),
        "/gone": Page("gone", 410),
        "/image": Page(b"\x89PNG\r\n\x1a\n\0\0", content_type="image/png"),
    }
    sites = {
        "bees.test": bees,
        "hive.test": {"/new": article(*(sentence.replace("honey", "wax") for sentence in reversed(BEES)))},
        "copy.test": {"/": article("Bees, copied from somebody else without a word about it.", *BEES)},
    }
    with Web(sites) as web:
        bees["/moved"] = Page(status=301, headers={"Location": web.url("hive.test", "/new")})
        urls = [web.url("bees.test", path) for path in ("/gone", "/", "/moved", "/image")]
        urls += [web.url("copy.test"), web.url("nobody.test")]
        notes: list[tuple[str, str]] = []
        first = read(web, store, urls, notes)
        asked = len(web.asked)
        again = read(web, store, urls[:-1])
        read(web, store, urls[:-1], run_id="another run")
        assert len(web.asked) == asked
    assert [(page.url, page.site) for page in first.pages] == [(urls[1], "bees.test"), (urls[2], "hive.test")]
    assert ({page.lang for page in first.pages}, first.pages[0].text.count("kilograms")) == ({"en"}, 20)
    assert [(page.url, page.reason) for page in first.unread] == [
        (urls[0], "status_410"),
        (urls[3], "not_text"),
        (urls[5], "no_such_host"),
    ]
    assert (first.cached, first.fetched, again.cached, again.fetched) == (0, 6, 5, 0)
    assert again.pages == first.pages
    assert sorted(url for url, _ in notes) == sorted(urls)
    events = [event.payload for event in store.events("run")]
    assert [event["cached"] for event in events] == [False] * 6, "a page is told once in a run, when it was fetched"
    assert [event.payload["cached"] for event in store.events("another run")] == [True] * 5
    assert all({"url", "bytes", "latency_ms", "robots_respected"} <= set(event) for event in events)


@pytest.mark.rare
def test_debians_documentation_is_found_and_read_in_three_languages_and_its_mirror_counts_once(store: Store) -> None:
    queries = (
        "How does apt check the signature of a repository?",
        "Wie prüft apt die Signatur?",
        "パッケージの署名を検証",
    )
    with debian_web() as web, ScriptedSearch(debian_search(web, mirrors=True)) as server:
        provider = SearchApi(tavily(server.base_url), {"TAVILY_API_KEY": "tvly-none"})
        note = partial(put_trace, store, "run")
        found = asyncio.run(harvest(Plan(("s",), queries), provider, (), 4, 2, 8, 3, note)).found
        came = read(web, store, [each.url for each in found])
    assert max(Counter(site_key(each.url) for each in found).values()) == 2
    assert {"en", "de", "ja"} == {page.lang for page in came.pages}
    mirrored = {each.url for each in found if "mirror.test" in each.url}
    assert mirrored
    assert mirrored == {each.url for each in found} - {page.url for page in came.pages}
    assert not came.unread
    kinds = Counter(event.kind for event in store.events("run"))
    assert kinds == {"tool_call": 3, "search_result": 3, "fetch_result": len(found)}
