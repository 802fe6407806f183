import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from pipeline.asking.gather import Online
from pipeline.records.run import read_records
from pipeline.sources.fetch import Fetcher, FetchPolicy, SiteMemory
from pipeline.sources.guard import guarded_client
from pipeline.sources.politeness import HostQueue
from tests.support.cited_run import are_stored, read_pages, write_run
from tests.support.dask_cluster import dask_cluster
from tests.support.web import Asked, Page, Web

SITES = 5
# A process that reads text takes two seconds to start, so only few pages have one.
TEXTS = ("/4/1", "/moved/end")
IMAGE = Page(b"\x89PNG", content_type="image/png")
ROBOTS = Page("User-agent: *\nDisallow: /closed", content_type="text/plain")
QUICK = FetchPolicy(delay=0, backoff=0)


def article(path: str) -> Page:
    words = "".join(f"<p>Page {path} tells in part {part} what bees do with nectar and honey.</p>" for part in range(9))
    return Page(f"<html lang='en'><head><title>{path}</title></head><body><article>{words}</article></body></html>")


class SmallWeb:
    """Sites on loopback addresses of their own, so that each is a site to citejury; `holding` pages never come."""

    def __init__(self, opened: ExitStack) -> None:
        self.holding: set[str] = set()
        self.held = threading.Event()
        self.webs: list[Web] = []
        for number in range(SITES):
            host = f"127.0.0.{number + 2}"
            self.webs.append(opened.enter_context(Web({host: self.answer}, host)))

    def answer(self, asked: Asked) -> Page:
        if asked.path in self.holding:
            self.held.set()
            return Page(seconds=600)
        if asked.path == "/robots.txt":
            return ROBOTS
        if asked.path == "/moved":
            return Page(status=301, headers={"Location": self.url(1, "/moved/end")})
        if asked.path in TEXTS:
            return article(asked.path)
        return Page(status=404) if asked.path == "/gone" else IMAGE

    def url(self, site: int, path: str) -> str:
        web = self.webs[site]
        return web.url(web.host, path)

    def addresses(self) -> list[tuple[str, int]]:
        return [web.address for web in self.webs]

    def asked(self, path: str) -> list[int]:
        """How often each site was asked for a path."""
        return [sum(asked.path == path for asked in web.asked) for web in self.webs]

    def cited(self) -> dict[str, list[str]]:
        """Answers with what they cite: pages of all sites, a redirect to another one, pages that cannot be read."""
        pages = [[self.url(site, f"/{site}/{page}") for site in range(SITES)] for page in range(3)]
        strange = [
            self.url(0, "/moved"),
            self.url(2, "/closed"),
            self.url(3, "/gone"),
            "http://ann@10.0.0.1/",
            "ftp://a/",
        ]
        return {f"Answer {number}.": urls for number, urls in enumerate([*pages, strange, pages[0] + strange])}


def words_of(run: Path, web: SmallWeb, scheduler: str) -> list[str]:
    words = ["pipeline", "sources", str(run), "--out", str(run.parent / "records.jsonl"), "--scheduler", scheduler]
    return words + [word for host, port in web.addresses() for word in ("--allow-address", f"{host}:{port}")]


def started(run: Path, web: SmallWeb, scheduler: str) -> Future[Result]:
    pool = ThreadPoolExecutor(1)
    result = pool.submit(CliRunner().invoke, main, words_of(run, web, scheduler))
    pool.shutdown(wait=False)
    return result


@pytest.fixture
def web() -> Iterator[SmallWeb]:
    with ExitStack() as opened:
        yield SmallWeb(opened)


@pytest.mark.rare
def test_a_killed_worker_is_replaced_and_the_records_are_those_of_one_machine(web: SmallWeb, tmp_path: Path) -> None:
    run = write_run(tmp_path / "alone" / "run", web.cited())
    read_pages(run, Online(lambda: guarded_client(web.addresses()), QUICK))
    alone = (tmp_path / "alone" / "records.jsonl").read_bytes()
    for each in web.webs:
        each.asked.clear()
    web.holding.add("/4/1")
    others = [
        url for urls in web.cited().values() for url in urls if url.startswith("http://127.") and "/4/" not in url
    ]
    with dask_cluster(tmp_path, workers=3, places=4) as cluster:
        command = started(write_run(tmp_path / "run", web.cited()), web, cluster.address)
        cluster.wait(web.held.is_set)
        cluster.wait(lambda: are_stored(tmp_path / "store.db", others))
        killed = cluster.worker_at(web.webs[4].port)
        killed.kill()
        killed.wait()
        web.holding.clear()
        made = command.result(timeout=300)
    assert made.exit_code == 0, made.stderr
    assert "go to 3 workers, 12 sites at a time" in made.stderr
    assert (tmp_path / "records.jsonl").read_bytes() == alone
    states = {source.reason for record in read_records(tmp_path / "records.jsonl") for source in record.sources}
    assert states == {"page", "not_text", "robots", "status_404", "refused", "not_web"}
    # One chain a site: robots.txt was asked for once, but where a link was lost, and by the site's own chain only.
    assert (web.asked("/robots.txt"), web.asked("/moved/end")) == ([1, 1, 1, 1, 2], [0, 1, 0, 0, 0])
    assert web.asked("/4/1")[4] == 2
    # No cluster is asked for pages that are held.
    again = CliRunner().invoke(main, words_of(tmp_path / "run", web, "tcp://127.0.0.1:1"))
    assert again.exit_code == 0, again.stderr
    assert (tmp_path / "records.jsonl").read_bytes() == alone


@pytest.mark.rare
def test_a_scheduler_that_is_not_there_is_one_plain_line(web: SmallWeb, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens on it
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        made = CliRunner().invoke(main, words_of(write_run(tmp_path / "run", web.cited()), web, address))
    lines = [line for line in made.stderr.splitlines() if not line.startswith("Warning: pages may lead")]
    assert made.exit_code == 1
    assert len(lines) == 1, made.stderr
    assert lines[0].startswith(f"Error: No Dask scheduler answers at '{address}'.")
    assert not (tmp_path / "records.jsonl").exists()


@pytest.mark.rare
def test_a_scheduler_that_goes_away_costs_nothing_that_was_read(web: SmallWeb, tmp_path: Path) -> None:
    web.holding.add("/4/1")
    urls = [web.url(4, "/4/1"), web.url(0, "/0/0")]
    with dask_cluster(tmp_path, workers=1, places=4) as cluster:
        command = started(write_run(tmp_path / "run", {"Answer.": urls}), web, cluster.address)
        cluster.wait(web.held.is_set)
        cluster.wait(lambda: are_stored(tmp_path / "store.db", urls[1:]))
        cluster.kill()
        made = command.result(timeout=300)
    assert made.exit_code == 1
    assert made.stderr.splitlines()[-1].startswith(f"Error: The Dask scheduler at {cluster.address} is gone.")
    assert "Traceback" not in made.stderr, made.stderr
    assert not (tmp_path / "records.jsonl").exists()


def test_without_a_scheduler_nothing_of_the_cluster_is_loaded(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"Answer.": []})
    words = ["pipeline", "sources", str(run), "--out", str(tmp_path / "records.jsonl")]
    code = f"""
import sys
from exports.cli import main
main({words!r}, standalone_mode=False)
assert "pipeline.asking.gather" in sys.modules
assert not {{"distributed", "dask", "tornado"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_fetcher_that_keeps_to_a_site_gives_other_sites_back_and_another_one_goes_on(web: SmallWeb) -> None:
    async def go() -> None:
        async with guarded_client(web.addresses()) as client:
            async with Fetcher(client, QUICK) as first:
                first.keep_to("127.0.0.2", SiteMemory())
                left = await first.fetch(web.url(0, "/moved"))
            async with Fetcher(client, QUICK) as second:
                second.keep_to("127.0.0.3", SiteMemory())
                came = await second.fetch(web.url(0, "/moved"), trail=left.onward)
        assert left.onward is not None
        assert (left.onward.url, left.onward.seen) == (web.url(1, "/moved/end"), (web.url(0, "/moved"),))
        assert (came.reason, came.url, came.final_url) == ("page", web.url(0, "/moved"), web.url(1, "/moved/end"))
        assert came.seconds > left.seconds

    asyncio.run(go())
    assert (web.webs[0].paths("127.0.0.2"), web.webs[1].paths("127.0.0.3")) == (["/moved"], ["/moved/end"])


def test_whoever_goes_on_with_a_site_knows_its_robots_and_waits_as_long_as_whoever_stopped(web: SmallWeb) -> None:
    async def go() -> None:
        policy = QUICK._replace(delay=0.2)
        memory = SiteMemory()
        clock = asyncio.get_running_loop().time
        async with guarded_client(web.addresses()) as client:
            for page in range(2):
                begun = clock()
                async with Fetcher(client, policy) as fetcher:
                    fetcher.keep_to("127.0.0.2", memory)
                    assert (await fetcher.fetch(web.url(0, f"/0/{page}"))).reason == "not_text"
                    memory = fetcher.memory()
                assert clock() - begun >= policy.delay
        queue = HostQueue(1, 0.0)
        queue.remember(memory.hosts["127.0.0.2"]._replace(delay=30.0, wait=1.0))
        assert queue.opens >= clock() + 29

    asyncio.run(go())
    assert web.asked("/robots.txt")[0] == 1
