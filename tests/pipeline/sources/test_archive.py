from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from exports.cli import main
from pipeline.asking.gather import Online
from pipeline.records.run import read_records
from pipeline.sources.archive import read_timemap
from pipeline.sources.choose import tally_lines
from pipeline.sources.exchange import Exchange
from pipeline.sources.fetch import FetchPolicy
from pipeline.sources.store import MIGRATIONS, Store, open_store
from tests.support.cited_run import read_pages, write_run
from tests.support.web import Asked, Page, Web

QUICK = FetchPolicy(delay=0, backoff=0, retries=1, max_seconds=20)
# https://www.rfc-editor.org/rfc/rfc7089#section-5, shortened
SEEN = (
    '<http://a.example/x>;rel="original",\n<http://archive.example/timemap/http://a.example/x>; rel="self";'
    'type="application/link-format",\n<http://archive.example/2000/http://a.example/x>; rel="first last memento"'
)
NOTHING = '<http://a.example/x>; rel="original", <http://archive.example/timegate/http://a.example/x>; rel="timegate"'


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, SEEN, "seen"),
        (200, "<http://x>; rel=memento; datetime=x", "seen"),
        (200, NOTHING, "never"),
        (200, "", "never"),
        (404, "", "never"),
        (200, f'{NOTHING}, <http://archive.example/timemap/2>; rel="timemap"', "unknown"),
        (200, "<html>Log in to our network, rel=next</html>", "unknown"),
        (429, "", "unknown"),
        (503, "", "unknown"),
        (403, "", "unknown"),
    ],
)
def test_only_a_clear_answer_of_the_archive_says_whether_it_has_seen_a_page(status: int, body: str, said: str) -> None:
    assert read_timemap(Exchange(status, {}, body.encode())) == said
    assert read_timemap(Exchange(status, {}, body.encode(), reason="timeout")) == "unknown"


def archive(held: str = "", answers: Callable[[], bool] = lambda: True) -> Callable[[Asked], Page]:
    """An archive that has `https://example.com/` and the pages whose path ends so; 503 where it does not answer."""

    def site(asked: Asked) -> Page:
        if asked.path == "/robots.txt":
            return Page(status=404)
        if not answers():
            return Page(status=503)
        is_held = asked.path.endswith(("https://example.com/", held or "nothing"))
        return Page(SEEN, content_type="application/link-format") if is_held else Page(status=404)

    return site


def said_of(folder: Path) -> list[str]:
    return [f"{source.state} {source.archived}".strip() for record in read_records(folder) for source in record.sources]


def test_what_an_archive_says_is_kept_with_the_page_and_an_unclear_answer_is_asked_for_again(tmp_path: Path) -> None:
    awake: list[bool] = []
    sites = {"a.example": lambda asked: Page(status=404), "archive.example": archive("/old", lambda: bool(awake))}
    with Web(sites) as web:
        cited = [web.url("a.example", "/old"), web.url("a.example", "/made-up"), "http://[", web.url("nobody.example")]
        run = write_run(tmp_path / "run", {"One.": cited})
        online = Online(web.client, QUICK, archive=web.url("archive.example", "/timemap/link/"))
        lines = "\n".join(tally_lines(read_pages(run, online._replace(archive="")).tally))
        assert "archive" not in lines
        assert said_of(tmp_path / "records.jsonl")[:2] == ["gone", "gone"]
        read_pages(run, online)
        assert said_of(tmp_path / "records.jsonl") == ["gone unknown", "gone unknown", "no_address", "no_such_site"]
        awake.append(True)
        lines = "\n".join(tally_lines(read_pages(run, online).tally))
        assert "Of 2 pages that are gone an archive has seen 1 and never 1;" in lines
        asked = len(web.paths("archive.example"))
        read_pages(run, online)
        assert len(web.paths("archive.example")) == asked
    assert said_of(tmp_path / "records.jsonl")[:2] == ["gone seen", "gone never"]


def test_what_is_no_archive_never_says_that_a_page_never_was(tmp_path: Path) -> None:
    with Web({"a.example": lambda asked: Page(status=404)}) as web:
        run = write_run(tmp_path / "run", {"One.": [web.url("a.example", "/x")]})
        heard: list[str] = []
        for archive in (web.url("a.example", "/not-an-archive/"), "http://nobody.example/"):
            read_pages(run, Online(web.client, QUICK, archive=archive, tell=heard.append))
    assert said_of(tmp_path / "records.jsonl") == ["gone unknown"]
    why = ["it does not have https://example.com/ either, so it may be no archive", "there is no host of this name"]
    assert [line.partition("pages: ")[2].partition(", looked up")[0] for line in heard] == why


def test_the_commands_ask_the_archive_that_is_named_as_far_as_the_guard_lets_them(tmp_path: Path) -> None:
    with Web({"127.0.0.1": archive("/old")}) as web:
        cited = web.url("127.0.0.1", "/made-up")
        (tmp_path / "report.md").write_text(f"Honey is safe [1].\n\n[1]: {cited}\n", encoding="utf-8")
        run = write_run(tmp_path / "run", {"Honey is safe.": [cited]})
        words = ["--archive-url", web.url("127.0.0.1", "/timemap/link/")]
        words += ["--allow-address", f"127.0.0.1:{web.port}"]
        made = CliRunner().invoke(main, ["pipeline", "sources", str(run), "--out", f"{tmp_path}/r.jsonl", *words])
        assert (made.exit_code, said_of(tmp_path / "r.jsonl")) == (0, ["gone never"])
        checked = CliRunner().invoke(main, ["pipeline", "verify", str(tmp_path / "report.md"), *words])
    assert '"archived": "never"' in checked.stdout
    refused = CliRunner().invoke(main, ["pipeline", "sources", str(run), "--out", "x", "--offline", "--archive"])
    assert (refused.exit_code, "leave one out" in refused.stderr) == (2, True)
    words = ["pipeline", "sources", str(run), "--out", "x", "--archive-url", "nonsense"]
    refused = CliRunner().invoke(main, words)
    assert (refused.exit_code, "'nonsense' is not an http or https URL" in refused.stderr) == (2, True)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_store_of_before_is_read_without_and_gets_the_table_when_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    path = tmp_path / "store.db"
    with open_store(path) as store:
        for step in range(len(MIGRATIONS), version, -1):
            undo(store, step)
    with monkeypatch.context() as closed:
        closed.setattr("os.access", lambda place, mode: False)  # to the root user nothing is read-only
        with open_store(path, read_only=True) as store:
            assert store.archived("http://a.example/") == ""
    with open_store(path) as store:
        store.put_archived("http://a.example/", "never", "http://archive.example/")
        assert store.archived("http://a.example/") == "never"


def undo(store: Store, step: int) -> None:
    """Take back what a step of the migrations added."""
    for statement in MIGRATIONS[step - 1]:
        words = statement.split()
        table, name = words[2], words[5] if words[0] == "ALTER" else ""
        store.connection.execute(f"ALTER TABLE {table} DROP COLUMN {name}" if name else f"DROP TABLE {table}")
    store.connection.execute(f"PRAGMA user_version = {step - 1}")
