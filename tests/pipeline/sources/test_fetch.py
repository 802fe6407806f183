import asyncio
import hashlib
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import pytest

from pipeline.records.causes import state_of
from pipeline.sources.fetch import Fetched, Fetcher, FetchPolicy
from pipeline.sources.guard import guarded_client
from pipeline.sources.politeness import SILENT_AFTER
from tests.support.web import Asked, Loopback, Page, Site, Web

Came = TypeVar("Came")
QUICK = FetchPolicy(delay=0, backoff=0)
NO_HOST = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
NO_ANSWER = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


def with_fetcher(web: Web, job: Callable[[Fetcher], Awaitable[Came]], policy: FetchPolicy = QUICK) -> Came:
    async def go() -> Came:
        async with web.client() as client, Fetcher(client, policy) as fetcher:
            return await job(fetcher)

    return asyncio.run(go())


def fetch(site: Site, path: str = "/", policy: FetchPolicy = QUICK) -> tuple[Fetched, list[str]]:
    """What came of one path of a site, and the paths that were asked for."""
    with Web({"a.example": site}) as web:
        came = with_fetcher(web, lambda fetcher: fetcher.fetch(web.url("a.example", path)), policy)
        return came, web.paths("a.example")


def test_a_page_comes_with_all_that_is_known_of_it() -> None:
    headers = {"ETag": '"1"', "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT"}
    page = Page("<p>ü</p>".encode("latin-1"), content_type="Text/HTML; Charset=ISO-8859-1", headers=headers)
    with Web({"a.example": {"/x?y=1": page}}) as web:
        url = web.url("A.example", "/b/../x?y=1#z")
        came = with_fetcher(web, lambda fetcher: fetcher.fetch(url))
        asked = web.asked
    assert came._replace(fetched_at="", seconds=0) == Fetched(
        url=web.url("a.example", "/x?y=1#z"),
        final_url=web.url("a.example", "/x?y=1#z"),
        status=200,
        content_type="text/html",
        charset="ISO-8859-1",
        body=b"<p>\xfc</p>",
        sha256=hashlib.sha256(b"<p>\xfc</p>").hexdigest(),
        etag='"1"',
        last_modified="Sat, 21 Nov 2026 10:00:00 GMT",
    )
    assert came.fetched_at.endswith("+00:00")
    assert came.seconds > 0
    assert [each.path for each in asked] == ["/robots.txt", "/x?y=1"]
    assert {each.headers["user-agent"].partition("/")[0] for each in asked} == {"citejury"}
    assert {each.headers["accept-encoding"] for each in asked} == {"gzip, deflate"}


@pytest.mark.parametrize(
    ("page", "reason", "state"),
    [
        (Page(status=404), "status_404", "gone"),
        (Page(status=410), "status_410", "gone"),
        (Page(status=401), "login", "unread"),
        (Page(status=402), "paywall", "unread"),
        (Page(status=403), "status_403", "unread"),
        (Page(status=403, headers={"cf-mitigated": "challenge"}), "captcha", "unread"),
        (Page(status=451), "status_451", "unread"),
        (Page(status=206, body="part"), "status_206", "unread"),
        (Page(status=300), "status_300", "unread"),
        (Page(""), "empty", "unread"),
        (Page("\u0089PNG", content_type="image/png"), "not_text", "unread"),
        (Page("zip", content_type="application/octet-stream"), "not_text", "unread"),
        (Page("a" * 101), "too_large", "unread"),
        (Page("%PDF-1.7", content_type="application/octet-stream"), "page", "read"),
        (Page("<!DOCTYPE html><p>Seite", content_type="application/octet-stream"), "page", "read"),
        (Page("{}", content_type="application/ld+json"), "page", "read"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_server_answers_has_its_reason_and_state(page: Page, reason: str, state: str) -> None:
    came, paths = fetch({"/": page}, policy=QUICK._replace(max_bytes=100))
    assert (came.reason, state_of(came.reason), paths) == (reason, state, ["/"])
    assert bool(came.body) == bool(came.sha256) == (reason == "page")


@pytest.mark.parametrize(
    ("url", "reason", "state"),
    [
        ("ftp://a.example/", "not_web", "unread"),
        ("no url", "not_a_url", "no_address"),
        ("http://[", "not_a_url", "no_address"),
        ("https://" + "a" * 9000, "too_long", "unread"),
        ("https://a.example/" + "ü" * 7900, "too_long", "unread"),
        ("http://user@a.example/", "refused", "unreached"),
        ("http://10.0.0.1/", "refused", "unreached"),
        ("http://2130706433/", "refused", "unreached"),
        ("http://nowhere.example/", "no_host_twice", "no_such_site"),
    ],
)
def test_a_url_that_leads_nowhere_has_its_reason(url: str, reason: str, state: str) -> None:
    with Web({}) as web:
        came = with_fetcher(web, lambda fetcher: fetcher.fetch(url))
    assert (came.reason, state_of(came.reason), came.status) == (reason, state, None)
    assert came.detail
    assert not web.asked


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ([NO_HOST, ["127.0.0.1"]], "page"),
        ([NO_HOST, NO_HOST], "no_host_twice"),
        ([NO_ANSWER, NO_HOST, NO_HOST], "no_host_twice"),
        ([NO_ANSWER, NO_ANSWER, NO_HOST], "no_such_host"),
        ([NO_ANSWER] * 3, "network"),
    ],
)
def test_a_site_is_missing_only_after_a_second_look_up(found: list[list[str] | OSError], reason: str) -> None:
    policy = QUICK._replace(robots=False)

    async def resolve(host: str, port: int) -> list[str]:
        said = found.pop(0)
        if isinstance(said, OSError):
            raise said
        return said

    async def go(web: Web) -> Fetched:
        async with guarded_client([web.address], resolve=resolve) as client, Fetcher(client, policy) as fetcher:
            return await fetcher.fetch(web.url("a.example"))

    found = list(found)
    with Web({"a.example": {"/": "page"}}) as web:
        assert asyncio.run(go(web)).reason == reason
    assert not found


@pytest.mark.parametrize("path", ["/", "/robots.txt"])
def test_a_redirect_to_no_host_says_nothing_of_the_site_that_redirects(path: str) -> None:
    came, _ = fetch({path: Page(status=302, headers={"Location": "http://nowhere.example/x"})})
    assert (came.reason, "nowhere.example" in came.detail or "robots.txt" in came.detail) == ("network", True)


@pytest.mark.parametrize(
    ("pages", "reason", "requests"),
    [
        ([Page(status=503), Page(status=503), Page("page")], "page", 3),
        ([Page(status=503)], "status_503", 3),
        ([Page(status=429, headers={"Retry-After": "0"}), Page("page")], "page", 2),
        ([Page(status=429, headers={"Retry-After": "3600"}), Page("page")], "status_429", 1),
        ([Page(status=501), Page("page")], "status_501", 1),
    ],
)
def test_what_passes_is_tried_again_and_what_does_not_is_not(pages: list[Page], reason: str, requests: int) -> None:
    left = list(pages)

    def site(asked: Asked) -> Page:
        return Page(status=404) if asked.path == "/robots.txt" else left.pop(0) if left[1:] else left[0]

    came, paths = fetch(site)
    assert (came.reason, len(paths)) == (reason, requests)


def test_a_host_that_stopped_answering_is_asked_nothing_more() -> None:
    connections: list[int] = []

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)

    async def go(server: Loopback) -> list[Fetched]:
        policy = QUICK._replace(retries=0, robots=False)
        async with guarded_client([server.address]) as client, Fetcher(client, policy) as fetcher:
            return [await fetcher.fetch(f"http://127.0.0.1:{server.port}/{number}") for number in range(9)]

    with Loopback(hang_up) as server:
        came = asyncio.run(go(server))
    assert ({each.reason for each in came}, len(connections)) == ({"network"}, SILENT_AFTER)
    assert "not asked again" in came[-1].detail


def test_a_page_that_has_not_changed_has_no_body_and_a_redirect_hears_of_no_condition() -> None:
    def site(asked: Asked) -> Page:
        if asked.path == "/moved":
            return Page(status=301, headers={"Location": "/"})
        return Page(status=304) if asked.headers.get("if-none-match") == '"1"' else Page("new", headers={"ETag": '"2"'})

    with Web({"a.example": site}) as web:
        url = web.url("a.example")

        async def go(fetcher: Fetcher) -> Sequence[Fetched]:
            return [
                await fetcher.fetch(url, etag='"1"'),
                await fetcher.fetch(url, etag='"0"\r\nX: y'),
                await fetcher.fetch(f"{url}moved", etag='"1"', last_modified="Sat, 21 Nov 2026 10:00:00 GMT"),
            ]

        same, other, moved = with_fetcher(web, go, QUICK._replace(robots=False))
    assert (same.not_modified, same.reason, same.body) == (True, "page", b"")
    assert (other.not_modified, other.body, other.etag) == (False, b"new", '"2"')
    assert (moved.not_modified, moved.body, moved.final_url) == (False, b"new", url)


def test_each_hop_obeys_its_sites_robots_file_which_is_asked_for_once_and_else_closes_it() -> None:
    closed_to_us = "User-agent: *\nAllow: /\n\nUser-agent: CiteJury\nDisallow: /"
    with Web({"b.example": {"/robots.txt": closed_to_us, "/": "page"}}) as web:
        web.sites["a.example"] = {
            "/robots.txt": "User-agent: *\nDisallow: /closed",
            "/": Page(status=302, headers={"Location": web.url("b.example")}),
        }

        async def go(fetcher: Fetcher) -> list[Fetched]:
            return [await fetcher.fetch(web.url("a.example", path)) for path in ("/", "/closed/x", "/open")]

        came = with_fetcher(web, go)
        paths = web.paths("a.example"), web.paths("b.example")
    assert [each.reason for each in came] == ["robots", "robots", "status_404"]
    assert (came[0].final_url, paths) == (web.url("b.example"), (["/", "/open"], []))
    closed = Page(status=503)
    sites: dict[str, Site] = {"a.example": {"/": "page"}, "b.example": {"/robots.txt": closed, "/": "page"}}
    with Web(sites) as web:

        async def go(fetcher: Fetcher) -> list[Fetched]:
            urls = [web.url(host, f"/?{n}") for host in sites for n in range(5)]
            return await asyncio.gather(*map(fetcher.fetch, urls))

        came = with_fetcher(web, go, QUICK._replace(retries=0))
        robots = [asked.host for asked in web.asked if asked.path == "/robots.txt"]
    assert [each.reason for each in came] == ["status_404"] * 5 + ["status_503"] * 5
    assert "status 503" in came[-1].detail
    assert robots == ["a.example", "b.example"]


def test_the_others_go_on_while_one_host_has_to_wait() -> None:
    sites: dict[str, Site] = {"slow.example": {"/robots.txt": "User-agent: *\nCrawl-delay: 86400", "/": "page"}}
    sites |= {f"h{n}.example": {"/": "page"} for n in range(8)}
    with Web(sites) as web:

        async def go(fetcher: Fetcher) -> tuple[list[str], float]:
            waiting = [asyncio.create_task(fetcher.fetch(web.url("slow.example", path))) for path in ("/", "/", "/")]
            others = [await fetcher.fetch(web.url(host)) for host in sites if host != "slow.example"]
            while not (first := [task for task in waiting if task.done()]):
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            assert len(first) == 1
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            return [each.reason for each in others], fetcher.queue(web.url("slow.example")).delay

        assert with_fetcher(web, go, QUICK._replace(concurrency=1)) == (["page"] * 8, 30.0)


def test_no_more_requests_are_under_way_than_the_policy_allows() -> None:
    under_way: list[str] = []
    most: Counter[str] = Counter()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host = (await reader.readuntil(b"\r\n\r\n")).decode().partition("Host: ")[2][0]
        under_way.append(host)
        for name, count in (*Counter(under_way).items(), ("both", len(under_way))):
            most[name] = max(most[name], count)
        for _ in range(20):  # long enough for everyone who may to come
            await asyncio.sleep(0)
        under_way.remove(host)
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\npage")
        await writer.drain()

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    async def go(server: Loopback) -> list[Fetched]:
        policy = QUICK._replace(robots=False, per_host=2, concurrency=3)
        async with guarded_client([server.address], resolve=resolve) as client, Fetcher(client, policy) as fetcher:
            urls = [f"http://{host}.example:{server.port}/{n}" for n in range(30) for host in "ab"]
            return await asyncio.gather(*map(fetcher.fetch, urls))

    with Loopback(talk) as server:
        came = asyncio.run(go(server))
    assert {each.reason for each in came} == {"page"}
    assert most["both"] <= 3
    assert max(most["a"], most["b"]) <= 2


def test_a_cancelled_fetch_closes_its_connection() -> None:
    hung_up: list[bytes] = []

    async def go() -> None:
        asked, closed = asyncio.Event(), asyncio.Event()

        async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            asked.set()
            hung_up.append(await reader.read())
            writer.close()
            closed.set()

        server = await asyncio.start_server(hang, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        async with server, guarded_client([address]) as client, Fetcher(client, QUICK) as fetcher:
            task = asyncio.create_task(fetcher.fetch(f"http://127.0.0.1:{address[1]}/"))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await closed.wait()

    asyncio.run(go())
    assert hung_up == [b""]
