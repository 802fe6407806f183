import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Iterable, Iterator

import pytest

from pipeline.records.causes import state_of
from pipeline.sources.exchange import MAX_PIECES, read_body
from pipeline.sources.fetch import Fetched, Fetcher, FetchPolicy
from pipeline.sources.guard import guarded_client
from tests.support.hostile_web import HOW_IT_ENDS, REFUSED, ROBOTS_SIZE, SLOW, HostileWeb
from tests.support.web import Loopback

MB = 1_000_000
QUICK = FetchPolicy(max_bytes=MB, delay=0, retries=0, backoff=0)


@pytest.fixture(scope="module")
def web() -> Iterator[HostileWeb]:
    with HostileWeb() as server:
        yield server


def fetch_all(web: HostileWeb, names: Iterable[str], policy: FetchPolicy = QUICK) -> dict[str, Fetched]:
    async def go() -> dict[str, Fetched]:
        async with web.client() as client, Fetcher(client, policy) as fetcher:
            asked = {name: asyncio.create_task(fetcher.fetch(web.url(name))) for name in names}
            return {name: await task for name, task in asked.items()}

    return asyncio.run(go())


def test_every_attack_ends_with_its_reason_and_a_redirect_before_its_robots_file(web: HostileWeb) -> None:
    came = fetch_all(web, HOW_IT_ENDS, QUICK._replace(robots=False))
    assert {name: each.reason for name, each in came.items()} == {name: end for name, (_, end) in HOW_IT_ENDS.items()}
    assert all(state_of(each.reason) for each in came.values())
    assert all(each.detail and not each.body for each in came.values() if each.reason != "page")
    assert came["short-length"].body == b"page"
    names = [f"to-{name}" for name in REFUSED]
    assert {each.reason for each in fetch_all(web, names).values()} == {"refused"}


def test_a_body_without_end_takes_no_more_memory_than_it_may_and_a_server_no_more_time(web: HostileWeb) -> None:
    tracemalloc.start()
    came = fetch_all(web, ["gzip-bomb", "deflate-bomb", "endless", "image"], QUICK._replace(robots=False))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [each.reason for each in came.values()] == ["too_large", "too_large", "too_large", "not_text"]
    # Each body is there twice at most, beside what the server in this process sends.
    assert peak < 24 * MB
    came = fetch_all(web, [*SLOW, "hints"], QUICK._replace(robots=False, max_seconds=2))
    wanted = {name: end for name, (_, end) in SLOW.items()}
    assert {name: each.reason for name, each in came.items()} == {**wanted, "hints": "timeout"}


def test_redirects_without_end_and_a_robots_file_of_100_mb_are_read_as_far_as_they_count(web: HostileWeb) -> None:
    came = fetch_all(web, ["stairs"])["stairs"]
    assert (came.reason, came.status, came.final_url) == ("redirects", 302, f"{web.url('stairs')}11")
    assert fetch_all(web, ["robots-huge"])["robots-huge"].reason == "robots"
    assert web.sent < ROBOTS_SIZE / 2


def test_an_address_that_changes_after_the_first_look_up_is_refused_and_the_judged_one_is_used(web: HostileWeb) -> None:
    came = fetch_all(web, ["flip"])["flip"]  # robots.txt came from the first address; its connection was closed
    assert (came.reason, web.looked_up.count("flip.example")) == ("refused", 2)
    assert "169.254.169.254" in came.detail
    came = fetch_all(web, ["flip-once"], QUICK._replace(robots=False))["flip-once"]
    assert (came.reason, web.looked_up.count("flip-once.example")) == ("page", 1)


def test_one_attacker_keeps_nobody_else_waiting(web: HostileWeb) -> None:
    async def go() -> Fetched:
        async with web.client() as client, Fetcher(client, QUICK._replace(robots=False, concurrency=2)) as fetcher:
            held = asyncio.create_task(fetcher.fetch(web.url("mute")))
            good = await fetcher.fetch(web.url("good"))
            assert not held.done()
            held.cancel()
            with pytest.raises(asyncio.CancelledError):
                await held
            return good

    assert asyncio.run(go()).reason == "page"


def test_tls_that_is_none_is_told_as_such_and_a_body_in_crumbs_is_given_up() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()

    async def go(server: Loopback) -> Fetched:
        async with guarded_client([server.address]) as client, Fetcher(client, QUICK) as fetcher:
            return await fetcher.fetch(f"https://127.0.0.1:{server.port}/")

    with Loopback(plain) as server:
        came = asyncio.run(go(server))
    assert (came.reason, came.detail.split(" (")[0]) == ("network", "no secure connection can be made")

    async def crumbs() -> AsyncIterator[bytes]:
        while True:
            yield b"a"

    body = asyncio.run(read_body(crumbs(), "", 10 * MB))
    assert (body.fault, len(body.content)) == ("too_slow", MAX_PIECES + 1)
