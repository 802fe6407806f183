import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.display import source_of
from exports.cli import main
from pipeline.asking.gather import HostQueues, Online, Wanted
from pipeline.asking.run_sources import RunSources
from pipeline.citations.addresses import canonical_url
from pipeline.records.run import read_records
from pipeline.records.schema import QueryResponse
from pipeline.sources.choose import Tally, tally_lines
from pipeline.sources.fetch import FetchPolicy
from tests.support.cited_run import are_stored, cited_answer, read_pages, sonar_answer, write_run
from tests.support.web import Asked, Page, Site, Web

HONEY = "Raw honey is safe for adults, say the doctors of the clinic. Babies below one year must not eat it at all."
BEES = "Bees make honey from the nectar of flowers. A hive of bees makes thirty kilograms of honey in a good year."
POLICY = FetchPolicy(delay=0, retries=0, max_seconds=30)
REDIRECT = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/abc"


def article(text: str, title: str = "Honey") -> str:
    words = "".join(f"<p>{text} Paragraph {number} of the page about it.</p>" for number in range(4))
    body = f"<article><h1>{title}</h1>{words}</article>"
    return f"<html lang='en'><head><title>{title}</title></head><body>{body}</body></html>"


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    sites: dict[str, Site] = {
        "good.test": {"/honey": article(HONEY), "/bees": article(BEES, "Bees")},
        "mixed.test": {
            "/image": Page(b"\x89PNG\r\n\x1a\n\0\0", content_type="image/png"),
            "/robots.txt": Page("User-agent: *\nDisallow: /closed", content_type="text/plain"),
            "/closed": article(HONEY),
            "/forbidden": Page("no", 403),
        },
    }
    with Web(sites) as web:
        yield web


def read_web(run: Path, web: Web, refresh: bool = False) -> RunSources:
    return read_pages(run, Online(web.client, POLICY, refresh))


def records_in(folder: Path) -> list[QueryResponse]:
    return list(read_records(folder / "records.jsonl"))


def command(run: Path, *options: str, out: str = "records.jsonl") -> Result:
    words = ["pipeline", "sources", str(run), "--out", str(run.parent / out), *options]
    return CliRunner().invoke(main, words)


class ReadRun(NamedTuple):
    """A run whose pages were read once for several tests."""

    run: Path
    urls: list[str]
    made: RunSources
    records: dict[str, QueryResponse]
    """By provider."""


@pytest.fixture(scope="module")
def read_run(web: Web, tmp_path_factory: pytest.TempPathFactory) -> ReadRun:
    run = tmp_path_factory.mktemp("read") / "run"
    honey = web.url("good.test", "/honey")
    pages = [honey, *(web.url("mixed.test", path) for path in ("/image", "/closed", "/forbidden", "/missing"))]
    strange = ["http://nobody.test/", "http://ann:secret@good.test/", "http://10.0.0.1/", "ftp://good.test/a"]
    write_run(run, [cited_answer(0, "Is honey safe?", "Honey is safe for adults.", [*pages, *strange])])
    write_run(run, [cited_answer(1, "Is honey safe?", "Yes, it is safe.", [REDIRECT], "gemini")])
    results = {honey: "Honey, says a snippet.", web.url("mixed.test", "/missing"): "Another."}
    write_run(run, [sonar_answer("It is safe[1][2].", results)])
    line = {"answer_id": "a", "n": 1, "url": REDIRECT, "resolved_url": honey}
    (run / "citations.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    made = read_web(run, web)
    records = {record.provenance.model_name: record for record in records_in(run.parent)}
    return ReadRun(run, [*pages, *strange], made, records)


def test_each_source_ends_in_one_state_and_its_passages_are_of_the_page_that_was_read(read_run: ReadRun) -> None:
    record = read_run.records["openai"]
    found = [f"{source.state} {source.reason}" for source in record.sources]
    assert (record.sources[0].read_share, record.sources[1].read_share) == (1, None)
    assert found[:5] == ["read page", "unread not_text", "unread robots", "unread status_403", "gone status_404"]
    # With this policy nothing is looked up twice.
    assert found[5:] == ["unreached no_such_host", "unreached refused", "unreached refused", "unread not_web"]
    assert {(chunk.url, chunk.title, chunk.origin) for chunk in record.chunks} == {(read_run.urls[0], "Honey", "page")}
    assert "must not eat it" in record.context_set
    lines = "\n".join(tally_lines(read_run.made.tally))
    assert "Cited pages: 9 (1 read, 4 unread, 3 unreached, 1 gone)." in lines
    assert all(line in lines for line in ("unread (robots)", "gone (status_404)", "unread (not_web) ftp:"))
    assert "Not reached: 3 of 9. That says nothing about these pages" in lines
    record = read_run.records["gemini"]
    source, chunk = record.sources[0], record.chunks[0]
    assert (source.url, source.page_url, source.host) == (REDIRECT, read_run.urls[0], "good.test")
    assert (chunk.url, source_of(chunk, record.sources)) == (read_run.urls[0], source)
    record = read_run.records["perplexity"]
    assert [(source.state, source.reason) for source in record.sources] == [("read", "page"), ("read", "snippet")]
    assert {chunk.origin for chunk in record.chunks} == {"page", "snippet"}
    assert [chunk.chunk_rank for chunk in record.chunks] == list(range(1, len(record.chunks) + 1))
    assert len({chunk.chunk_id for chunk in record.chunks}) == len(record.chunks)


def test_the_store_alone_says_the_same_in_another_process_that_knows_no_network(read_run: ReadRun) -> None:
    out = read_run.run.with_name("offline.jsonl")
    words = ["pipeline", "sources", str(read_run.run), "--out", str(out), "--offline"]
    code = (
        f"import sys\nfrom exports.cli import main\nmain({words!r}, standalone_mode=False)\n"
        "assert not {'httpx', 'httpcore', 'trafilatura'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert out.read_bytes() == read_run.run.with_name("records.jsonl").read_bytes()


def test_a_page_is_fetched_once_a_passing_failure_is_tried_again_and_refreshing_loses_nothing(tmp_path: Path) -> None:
    tries: list[str] = []
    pages = {"/honey": Page(article(HONEY), headers={"ETag": '"1"'}), "/lost": Page(article(BEES))}

    def good(asked: Asked) -> Page:
        unchanged = asked.headers.get("if-none-match") == '"1"'
        return Page(status=304) if unchanged else pages.get(asked.path, Page(status=404))

    def moody(asked: Asked) -> Page:
        if asked.path == "/robots.txt":
            return Page(status=404)
        tries.append(asked.path)
        return Page(article(BEES)) if tries.count("/moody") > 1 else Page("later", 503)

    with Web({"good.test": good, "moody.test": moody}) as web:
        honey, same, lost, gone = (web.url("good.test", path) for path in ("/honey", "/honey#a", "/lost", "/gone"))
        answers = {"One.": [honey, same, web.url("moody.test", "/moody")], "Two.": [honey, lost], "Three.": [gone]}
        run = write_run(tmp_path / "run", answers)
        read_web(run, web)
        assert [source.reason for source in records_in(tmp_path)[0].sources] == ["page", "page", "status_503"]
        read_web(run, web)
        assert web.paths("good.test") == ["/honey", "/lost", "/gone"]
        before = (tmp_path / "records.jsonl").read_bytes()
        del pages["/lost"]
        made = read_web(run, web, refresh=True)
        assert web.paths("good.test") == ["/honey", "/lost", "/gone"] * 2
    assert (tries, (tmp_path / "records.jsonl").read_bytes()) == (["/moody"] * 3, before)
    assert made.gathered is not None
    assert made.gathered.kept == (lost,)
    first, second, third = records_in(tmp_path)
    assert [source.state for source in first.sources] == ["read"] * 3
    assert len({chunk.text for chunk in first.chunks}) == len(first.chunks)
    assert (bool(second.chunks), third.chunks, third.sources[0].state) == (True, (), "gone")


def test_what_could_not_be_reached_is_tried_again_with_the_options_of_each_later_run(tmp_path: Path) -> None:
    with Web({"127.0.0.1": {"/honey": article(HONEY)}}) as web, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and nobody listens on it
        urls = [web.url("127.0.0.1", "/honey"), f"http://127.0.0.1:{closed.getsockname()[1]}/", "http://[::"]
        run = write_run(tmp_path / "run", {"Honey is safe.": urls})
        refused = command(run)
        assert "unreached (refused)" in refused.stderr
        assert "`--allow-address` opens a private server" in refused.stderr
        states = [source.state for source in records_in(tmp_path)[0].sources]
        assert states == ["unreached", "unreached", "no_address"]
        read = command(run, "--allow-address", f"127.0.0.1:{web.port}")
    assert (read.exit_code, [each.reason for each in records_in(tmp_path)[0].sources][:2]) == (0, ["page", "refused"])


def test_a_file_of_the_user_is_the_page_for_good(tmp_path: Path) -> None:
    paywalled, other = "https://paper.test/article", "https://other.test/"
    run = write_run(tmp_path / "run", {"Honey is safe.": [f"{paywalled}#top"]})
    (tmp_path / "page.txt").write_text(HONEY, encoding="utf-8")
    (tmp_path / "empty.txt").write_text(" \n", encoding="utf-8")
    (tmp_path / "page.docx").write_bytes(bytes(range(256)))
    file = str(tmp_path / "page.txt")
    result = command(run, "--offline", "--add", paywalled, file, "--add", other, file)
    assert result.exit_code == 0, result.stderr
    assert f"{other} is kept, but no answer of this run cites it." in result.stderr
    (record,) = records_in(tmp_path)
    assert (record.sources[0].reason, record.context_set) == ("added", HONEY)
    assert (command(run, "--offline").exit_code, records_in(tmp_path)) == (0, [record])
    unread = ([paywalled, str(tmp_path / name)] for name in ("nowhere.pdf", "empty.txt", "page.docx"))
    for bad in (["paper", file], *unread):
        assert command(run, "--offline", "--add", *bad, out="other.jsonl").exit_code == 1
        assert not (tmp_path / "other.jsonl").exists()


@pytest.mark.rare
def test_a_file_is_read_for_every_form_of_its_url_and_what_is_cited_of_a_wrong_site_is_said(tmp_path: Path) -> None:
    forms = ["http://www.paper.test/article/", "https://paper.test/article"]
    cited = [*forms, "https://paper.test/c", "https://paper.test/d"]
    run = write_run(tmp_path / "run", {"Honey is safe.": cited})
    (tmp_path / "page.txt").write_text(HONEY, encoding="utf-8")
    file, wrong = str(tmp_path / "page.txt"), "https://paper.test/artikle"
    result = command(run, "--offline", "--add", wrong, file)
    near = f"Of its site it cites {', '.join(cited[:3])} and others"
    assert f"{wrong} is kept, but no answer of this run cites it. {near}" in result.stderr
    assert result.stderr.index("Cited pages: 4") < result.stderr.index(f"No answer cites what you added for {wrong}")
    assert [source.state for source in records_in(tmp_path)[0].sources] == ["unfetched"] * 4
    result = command(run, "--offline", "--add", "https://www.paper.test/article", file)
    assert f"is cited as {forms[0]} and as {forms[1]}; your file is read for that." in result.stderr
    assert "No answer cites" not in result.stderr
    assert [source.reason for source in records_in(tmp_path)[0].sources] == ["added", "added", "not_tried", "not_tried"]


def test_what_a_server_sends_instead_of_a_page_is_no_passage(tmp_path: Path) -> None:
    front = "<title>The paper</title><h1>Today</h1>" + "".join(f"<p><a href='/{n}'>{BEES}</a></p>" for n in range(9))
    moved = "<meta http-equiv='refresh' content='0; url=/honey'><p>The page has moved.</p>"
    pages: dict[str, Page | str | bytes] = {
        "/": front,
        "/news/why-honey-never-spoils": Page(status=301, headers={"Location": "/"}),
        "/gone": "<title>The paper</title><h1>Sorry</h1><p>This article no longer exists.</p>" + front,
        "/moved": moved,
        "/honey": article(HONEY),
        "/loop": "<meta http-equiv='refresh' content='0; url=/loop'><p>Moment</p>",
        "/live": "<meta http-equiv='refresh' content='5; url=/live'>" + article(BEES),
    }
    with Web({"good.test": pages}) as web:
        paths = ("/news/why-honey-never-spoils", "/gone", "/moved", "/loop", "/live")
        urls = [web.url("good.test", path) for path in paths]
        read_web(write_run(tmp_path / "run", {"One.": urls}), web)
    (record,) = records_in(tmp_path)
    found = [f"{source.state} {source.reason}" for source in record.sources]
    assert found == ["unread home_page", "gone soft_404", "read page", "unread redirects", "read page"]
    assert {chunk.url for chunk in record.chunks} == {urls[2], urls[4]}
    assert "Raw honey is safe" in record.context_set


def test_without_a_store_and_offline_nobody_has_tried_yet(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"Honey is safe.": ["https://a.test/"]})
    result = command(run, "--offline")
    assert result.exit_code == 0
    assert "There is no store" in result.stderr
    assert (records_in(tmp_path)[0].sources[0].reason, sorted(tmp_path.glob("store*"))) == ("not_tried", [])
    named = command(run, "--offline", "--store", str(tmp_path / "named.db"))
    assert (named.exit_code, "named.db" in named.stderr) == (1, True)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--offline", "--refresh"], 2, "leave one out"),
        (["--allow-address", "127.0.0.1"], 2, "ADDRESS:PORT"),
        (["--allow-address", "here:80"], 2, "ADDRESS:PORT"),
        (["--passages", "0"], 2, "--passages"),
    ],
)
def test_options_that_cannot_be_are_refused(tmp_path: Path, options: Sequence[str], code: int, words: str) -> None:
    result = command(write_run(tmp_path / "run", {"Honey.": []}), *options)
    assert (result.exit_code, words in result.stderr, (tmp_path / "store.db").exists()) == (code, True, False)


def test_where_the_network_is_away_everything_is_untried(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # the port is taken, and nobody listens on it, here or on the other addresses
        places = [f"127.0.0.{number}:{silent.getsockname()[1]}" for number in range(1, 13)]
        run = write_run(tmp_path / "run", {"Honey is safe.": [f"http://{place}/" for place in places]})
        result = command(run, *(word for place in places for word in ("--allow-address", place)))
    assert result.exit_code == 1
    assert "The network is away." in result.stderr
    assert {source.reason for source in records_in(tmp_path)[0].sources} == {"not_tried"}


@pytest.mark.rare
def test_killed_in_the_middle_it_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    seconds = {"/slow": 600.0}

    def site(asked: Asked) -> Page:
        if asked.path == "/robots.txt":
            return Page(status=404)
        return Page(article(HONEY), seconds=seconds.get(asked.path, 0))

    with Web({"127.0.0.1": site}) as web:
        paths = ["/slow", "/first"]
        run = write_run(tmp_path / "run", {"Honey is safe.": [web.url("127.0.0.1", path) for path in paths]})
        words = ["pipeline", "sources", str(run), "--out", str(tmp_path / "records.jsonl")]
        words += ["--allow-address", f"127.0.0.1:{web.port}"]
        killed = subprocess.Popen([sys.executable, "-c", f"from exports.cli import main; main({words!r})"])
        try:
            # The one page is stored and the other asked for: either may come first.
            wait_until(lambda: "/slow" in web.paths("127.0.0.1"), killed)
            wait_until(lambda: are_stored(tmp_path / "store.db", [web.url("127.0.0.1", "/first")]), killed)
        finally:
            killed.send_signal(signal.SIGKILL)
            killed.wait()
        assert not (tmp_path / "records.jsonl").exists()
        seconds.clear()
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, result.stderr
        assert "not the public web" in result.stderr
        assert sorted(web.paths("127.0.0.1")) == ["/first", "/slow", "/slow"]
    assert [source.reason for source in records_in(tmp_path)[0].sources] == ["page", "page"]


def wait_until(reached: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    for _ in range(4000):
        with suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"it ended with {process.wait(timeout=0.03)} before it was killed")
        if reached():
            return
    raise AssertionError("it never came to the place where it is to be killed")


def test_hosts_are_asked_in_turn_and_every_failure_is_counted_however_many_there_are() -> None:
    many = [Wanted(f"https://many.test/{number}") for number in range(3)]
    queues = HostQueues([Wanted("https://one.test/"), *many], lanes=2)
    first, *others = (queues.take() for _ in range(4))
    assert first
    assert [first[0].url, *(each and each[0].url for each in others)] == [
        "https://many.test/0",
        "https://one.test/",
        "https://many.test/1",
        None,
    ]
    queues.hosts.appendleft(first[1])
    assert queues.take() == (many[2], first[1])
    tally = Tally()
    for number in range(130):
        tally.add_page(f"site{number % 13}.test", f"https://x.test/\x1b[2J{number}", "robots", "robots.txt says no")
    lines = list(tally_lines(tally))
    assert "  3 other sites: 30 unread (robots)" in lines
    assert "  and 30 more; each record's `sources` name state and reason of all." in lines
    assert not any("\x1b" in line for line in lines)


def test_no_password_is_shown(tmp_path: Path) -> None:
    secret = ["http://ann:secret@good.test/a@b", "ftp://ann:sec:ret@good.test/", "http://[::1:secret@x/", "http://a@b/"]
    run = write_run(tmp_path / "run", {"Honey is safe.": secret})
    shown = command(run, "--offline").stderr
    assert ("secret" in shown, "sec:ret" in shown) == (False, False)
    assert all(part in shown for part in ("http://ann:…@good.test/a@b", "ftp://ann:…@good.test/", " http://a@b/"))
    refused = command(run, "--offline", "--add", secret[0], str(run), out="other.jsonl")
    assert (refused.exit_code, "secret" in refused.stderr) == (1, False)


SHORT, LONG = "https://honey.test/wiki/", "https://honey.test/wiki/蜂蜜"
BODY = {"choices": [{"message": {"content": f"出典 {LONG} です。"}, "finish_reason": "stop"}], "model": "m"}


def run(*words: str) -> str:
    done = CliRunner().invoke(main, ["pipeline", *words])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_longer_reading_is_taken_where_its_page_was_read(tmp_path: Path) -> None:
    (tmp_path / "payloads" / "openai").mkdir(parents=True)
    (tmp_path / "payloads" / "openai" / "N1.json").write_text(json.dumps(BODY), encoding="utf-8")
    (tmp_path / "n.csv").write_text("narrative_id,prompt\nN1,Is honey safe?\n", encoding="utf-8")
    page, records, asked = tmp_path / "page.txt", tmp_path / "records.jsonl", tmp_path / "run"
    page.write_text("蜂蜜は一歳から安全です。" * 20, encoding="utf-8")
    run("ask", str(tmp_path / "n.csv"), "--replay", str(tmp_path / "payloads"), "--out", str(asked))
    (line,) = map(json.loads, (asked / "citations.jsonl").read_text(encoding="utf-8").splitlines())
    assert (line["url"], line["longer_url"]) == (SHORT, LONG)
    for added, reason in (((), "not_tried"), (("--add", LONG, str(page)), "added")):
        shown = run("sources", str(asked), "--out", str(records), "--offline", *added)
        (source,) = json.loads(records.read_text(encoding="utf-8"))["sources"]
        assert (source["url"], source["reason"]) == (SHORT, reason)
        assert source["page_url"] == (canonical_url(LONG) if added else "")
        assert "No answer cites" not in shown
