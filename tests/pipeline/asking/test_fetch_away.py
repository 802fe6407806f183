import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from pipeline.asking.gather import Gathered, Online
from pipeline.records.run import read_records
from pipeline.sources.choose import tally_lines
from pipeline.sources.fetch import Fetcher, FetchPolicy
from pipeline.sources.guard import guarded_client
from pipeline.sources.politeness import AWAY_AFTER
from tests.support.cited_run import read_pages, write_run
from tests.support.web import Asked, Loopback, Page, Site, Web

Came = TypeVar("Came")
QUICK = FetchPolicy(delay=0, backoff=0, retries=0, max_seconds=120)
ARTICLE = "<html><body>" + "<p>Raw honey is safe for adults, say the doctors of the clinic.</p>" * 5 + "</body></html>"
NOBODY = [f"http://gone{number}.example/" for number in range(AWAY_AFTER + 5)]


def with_fetcher(web: Web, job: Callable[[Fetcher], Awaitable[Came]]) -> Came:
    async def go() -> Came:
        async with web.client() as client, Fetcher(client, QUICK) as fetcher:
            return await job(fetcher)

    return asyncio.run(go())


def test_ten_silent_hosts_in_a_row_are_the_network_and_those_that_break_the_protocol_are_there() -> None:
    with Web({"a.example": {"/": "page"}}) as web:

        async def go(fetcher: Fetcher) -> list[bool]:
            away = []
            for url in [*NOBODY[:AWAY_AFTER], web.url("a.example"), *NOBODY[AWAY_AFTER:]]:
                await fetcher.fetch(url)
                away.append(fetcher.network.away)
            return away

        assert with_fetcher(web, go) == [False] * (AWAY_AFTER - 1) + [True] + [False] * 6

    def site(asked: Asked) -> Page:
        broken = asked.path.startswith("/broken")
        return Page("x", headers={"Content-Length": "-1"}) if broken else Page("<p>page")

    with Web({"a.example": site}) as web:

        async def go(fetcher: Fetcher) -> list[str]:
            fetcher.policy = QUICK._replace(retries=2)
            return [(await fetcher.fetch(web.url("a.example", path))).reason for path in ("/broken1", "/broken2", "/")]

        assert with_fetcher(web, go) == ["network", "network", "page"]

    async def everywhere(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async def go(server: Loopback) -> bool:
        async with guarded_client([server.address], resolve=everywhere) as client, Fetcher(client, QUICK) as fetcher:
            urls = [f"http://a{number}.example:{server.port}/" for number in range(AWAY_AFTER + 2)]
            assert {(await fetcher.fetch(url)).reason for url in urls} == {"network"}
            return fetcher.network.away

    with Loopback(hang_up) as server:
        assert not asyncio.run(go(server))


def test_hosts_that_nobody_reached_before_do_not_stop_a_run_that_is_gone_on_with(tmp_path: Path) -> None:
    sites: dict[str, Callable[[Asked], Page]] = {"a.example": lambda asked: Page(ARTICLE)}
    with Web(sites) as web:
        run = write_run(tmp_path / "run", {"One.": [web.url("a.example"), *NOBODY]})
        first = read_pages(run, Online(web.client, QUICK))
        second = read_pages(run, Online(web.client, QUICK))
    assert [first.gathered, second.gathered] == [Gathered(1 + len(NOBODY)), Gathered(len(NOBODY))]
    (record,) = read_records(tmp_path / "records.jsonl")
    assert [source.reason for source in record.sources] == ["page"] + ["no_such_host"] * len(NOBODY)


@pytest.mark.parametrize(
    ("host", "other", "reason"),
    [
        ("a-name.org", "a.example", "no_host_twice"),
        ("a-name.org", "", "no_such_host"),  # it may be our own network
        ("a-name.org", "127.0.0.1", "no_such_host"),  # for an address nobody is asked
        ("a-name.org", "localhost", "no_such_host"),
        ("a-name.invalid", "", "no_host_twice"),  # no network has it
    ],
)
def test_no_such_site_is_said_where_others_were_reached(tmp_path: Path, host: str, other: str, reason: str) -> None:
    with Web({other or "a.example": {"/": ARTICLE}}) as web:
        run = write_run(tmp_path / "run", {"One.": [f"http://{host}/", *([web.url(other)] if other else [])]})
        read_pages(run, Online(web.client, QUICK._replace(retries=1)))
    (record,) = read_records(tmp_path / "records.jsonl")
    assert record.sources[0].reason == reason


def test_what_a_silent_host_was_not_asked_for_comes_first_the_next_time_and_takes_nothing_known_away(
    tmp_path: Path,
) -> None:
    later: list[bool] = []

    def site(asked: Asked) -> Page:
        if asked.path == "/busy" or (asked.path == "/worse" and not later):
            return Page(status=500)
        return Page(ARTICLE) if asked.path == "/good" else Page("x", headers={"Content-Length": "-1"})

    with Web({"a.example": site}) as web:
        paths = ["/worse", "/bad1", "/bad2", "/busy", "/bad3", "/bad4", "/bad5", "/good"]
        run = write_run(tmp_path / "run", {"One.": [web.url("a.example", path) for path in paths]})
        online = Online(web.client, QUICK._replace(per_host=1, robots=False))
        assert "1 of these were not asked" in "\n".join(tally_lines(read_pages(run, online).tally))
        assert web.paths("a.example") == paths[:-1]
        later.append(True)
        read_pages(run, online)
        assert web.paths("a.example")[len(paths) - 1 :] == ["/good", "/worse", "/bad1", "/bad2"]
    (record,) = read_records(tmp_path / "records.jsonl")
    reasons = [source.reason for source in record.sources]
    assert reasons == ["network", "network", "network", "status_500", "network", "network", "network", "page"]


@pytest.mark.rare
def test_an_answer_that_comes_late_sets_all_to_work_again(tmp_path: Path) -> None:
    asked: set[str] = set()
    others_silent, both_asked = asyncio.Event(), asyncio.Event()
    sites: dict[str, Site] = {name: {"/": ARTICLE} for name in ("late.example", "both1.example", "both2.example")}
    with Web(sites) as web:

        async def resolve(host: str, port: int) -> Sequence[str]:
            asked.add(host)
            if len(asked) > AWAY_AFTER:
                others_silent.set()
            if {"both1.example", "both2.example"} <= asked:
                both_asked.set()
            if host == "late.example":
                await others_silent.wait()
            if host.startswith("both"):  # neither goes on without the other
                await both_asked.wait()
            return await web.resolve(host, port)

        first, *both = (web.url(host) for host in sites)
        run = write_run(tmp_path / "run", {"One.": [first, *NOBODY[:AWAY_AFTER], *both]})
        policy = QUICK._replace(concurrency=2, max_seconds=20)
        made = read_pages(run, Online(lambda: guarded_client([web.address], resolve=resolve), policy))
    assert made.gathered
    assert (made.gathered.away, made.tally.by_state()) == (False, {"read": 3, "unreached": AWAY_AFTER})


@pytest.mark.parametrize("status", [pytest.param(500, marks=pytest.mark.rare), 503])
def test_a_robots_file_that_cannot_be_had_is_asked_for_again_by_the_next_run(tmp_path: Path, status: int) -> None:
    answers = [Page(status=status), Page(status=404)]

    def site(asked: Asked) -> Page:
        return answers.pop(0) if asked.path == "/robots.txt" else Page(ARTICLE)

    with Web({"a.example": site}) as web:
        run = write_run(tmp_path / "run", {"One.": [web.url("a.example")]})
        reasons = []
        for _ in range(2):
            read_pages(run, Online(web.client, QUICK))
            (line,) = (tmp_path / "records.jsonl").read_text(encoding="utf-8").splitlines()
            reasons.append(json.loads(line)["sources"][0]["reason"])
    assert reasons == [f"status_{status}", "page"]
