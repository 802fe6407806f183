import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pipeline.core.errors import InputError, OutputError
from pipeline.sources.store import MIGRATIONS, PACKED, PACKED_ABOVE, PLAIN, VERSION, StoredRun, open_store
from tests.support.store_bench import stored_page


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        pytest.param("", b"", id="nothing"),
        pytest.param("富" * 1365, b"\x00\xff" * 2048, id="just below the limit"),
        pytest.param("Straße \ud800 " * 20_000, os.urandom(50_000), id="large"),
    ],
)
def test_a_page_comes_back_as_it_was_put(tmp_path: Path, text: str, raw: bytes) -> None:
    page = stored_page(text=text, raw=raw)
    with open_store(tmp_path / "runs" / "store.db") as store:
        store.put_page(stored_page(text="An earlier one."))
        store.put_page(page)
        assert (store.page(page.url), list(store.pages())) == (page, [page])
        assert store.page("https://a.de/never-tried") is None


def test_a_page_that_was_never_read_keeps_its_reason_and_surrogates_of_a_header_do_not_stop_it(tmp_path: Path) -> None:
    page = stored_page("https://b.de/", "", b"")._replace(status=None, reason="robots", detail="robots.txt says no.")
    with open_store(tmp_path / "store.db") as store:
        store.put_page(page._replace(title="a\ud800b", etag="\x00"))
    with open_store(tmp_path / "store.db", read_only=True) as store:
        assert store.page("https://b.de/") == page._replace(title="a?b", etag="\x00")


def test_large_fields_alone_are_compressed_and_json_stays_readable(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_store(path) as store:
        store.put_page(stored_page("https://a.de/1", "a" * PACKED_ABOVE, b"b" * (PACKED_ABOVE + 1)))
        store.put_event("r", "error", {"message": "富士山"})
        store.put_run(StoredRun("r", "Höhe", "2026-11-22", report_md="# R\n" * 2000, report_json={"topic": "Höhe"}))
    plain = sqlite3.connect(path)
    text, raw = plain.execute("SELECT text, raw FROM pages").fetchone()
    assert (text[:1], len(text), raw[:1], len(raw) < 100) == (PLAIN, PACKED_ABOVE + 1, PACKED, True)
    assert plain.execute("SELECT payload FROM traces").fetchone() == ('{"message": "富士山"}',)
    report, json_column = plain.execute("SELECT report_md, report_json FROM runs").fetchone()
    assert (report[:1], json_column) == (PACKED, '{"topic": "Höhe"}')
    plain.close()


def test_a_run_and_its_trace_come_back_in_order_and_reading_changes_nothing(tmp_path: Path) -> None:
    first = StoredRun("one", "Impfung", "2026-11-20", "running")
    second = StoredRun("two", "Klima", "2026-11-21", "done", "# Bericht", {"topic": "Klima"}, {"tokensIn": 3})
    with open_store(tmp_path / "store.db") as store:
        for run in (second, first._replace(status="new"), first):
            store.put_run(run)
        for run_id, number in (("one", 1), ("two", 1), ("one", 2)):
            store.put_event(run_id, "tool_call", {"number": number})
        assert store.runs() == [first, second]
        assert [(e.id, e.seq, e.payload) for e in store.events("one")] == [
            ("one#1", 1, {"number": 1}),
            ("one#2", 2, {"number": 2}),
        ]
        assert store.delete_run("one")
        assert not store.delete_run("one")
        assert (store.runs(), store.events("one"), len(store.events("two"))) == ([second], [], 1)
    path = tmp_path / "a folder #1?" / "store.db"
    with pytest.raises(InputError, match="There is no store"), open_store(path, read_only=True):
        pass
    assert not path.parent.exists()
    with open_store(path) as store:
        store.put_page(stored_page())
    with open_store(path, read_only=True) as store:
        assert store.page("https://a.de/x") == stored_page()
        with pytest.raises(OutputError, match="readonly"):
            store.put_page(stored_page("https://a.de/y"))
    assert os.listdir(path.parent) == ["store.db"]


def test_a_store_of_the_first_version_is_brought_up_to_date_without_loss(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    row = ("https://a.de/", PLAIN + b"Alt.", "T", "a.de", "de", "text/html", "0" * 64, "2026-01-01T00:00:00+00:00")
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        for statement in (*MIGRATIONS[0], "PRAGMA user_version = 1"):
            old.execute(statement)
        old.execute("INSERT INTO pages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    with open_store(path) as store:
        page = store.page("https://a.de/")
        assert store.connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    assert page
    assert (page.text, page.final_url, page.raw, page.status, page.reason) == ("Alt.", page.url, b"", None, "page")
