"""The store of pages, traces and runs: what goes in comes out, whoever else is writing and whatever is killed."""

import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from pipeline.errors import InputError, OutputError
from pipeline.sources.store import StoredPage, StoredRun, open_store
from pipeline.sources.store_file import PACKED, PACKED_ABOVE, PLAIN
from pipeline.sources.store_schema import APPLICATION_ID, MIGRATIONS, VERSION

ROOT = Path(__file__).parents[1]

# What the child processes below share: a page that is as long as its number is high and vouches for itself.
PAGES = """
import os, resource, sys
from hashlib import sha256
from pathlib import Path
from pipeline.sources.store import StoredPage, open_store

def numbered_page(writer, number):
    text = f"Seite {number} von {writer}, 富士山. " * (number * 7 % 500)
    raw = text.encode()
    digest = sha256(raw).hexdigest()
    url = f"https://a.de/{writer}/{number}"
    return StoredPage(url, url, text, "", "a.de", "de", "text/html", digest, "2026-11-22T00:00:00+00:00", raw, digest,
                      200, "page", "")
"""
WRITER = """
with open_store(Path(sys.argv[1])) as store:
    for number in range(int(sys.argv[3])):
        store.put_page(numbered_page(sys.argv[2], number))
        store.put_event("shared run", "fetch_result", {"writer": sys.argv[2], "number": number})
        store.page(f"https://a.de/0/{number}")
        print(number, flush=True)
"""


def stored_page(url: str = "https://a.de/x", text: str = "Text.", raw: bytes = b"<p>Text.</p>") -> StoredPage:
    digests = (sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), sha256(raw).hexdigest())
    return StoredPage(
        url=url,
        final_url=f"{url}?final",
        text=text,
        title="Titel 富士山",
        domain="a.de",
        lang="de",
        content_type="text/html",
        hash=digests[0],
        ts="2026-11-22T05:00:00+00:00",
        raw=raw,
        raw_sha256=digests[1],
        status=200,
        reason="page",
        detail="",
        etag='"x1"',
        last_modified="Sun, 22 Nov 2026 05:00:00 GMT",
        page_starts=(0, 120, 4000),
        added=True,
    )


def run_child(code: str, *arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", PAGES + code, *map(str, arguments)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )


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
        assert store.page(page.url) == page
        assert list(store.pages()) == [page]
        assert store.page("https://a.de/never-tried") is None


def test_a_page_that_was_never_read_keeps_its_reason(tmp_path: Path) -> None:
    page = stored_page("https://b.de/", "", b"")._replace(status=None, reason="robots", detail="robots.txt says no.")
    with open_store(tmp_path / "store.db") as store:
        store.put_page(page)
    with open_store(tmp_path / "store.db", read_only=True) as store:
        assert store.page("https://b.de/") == page


def test_lone_surrogates_of_a_header_do_not_stop_a_page(tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as store:
        store.put_page(stored_page()._replace(title="a\ud800b", etag="\x00"))
        kept = store.page("https://a.de/x")
    assert kept
    assert (kept.title, kept.etag) == ("a?b", "\x00")


def test_large_fields_alone_are_compressed_and_json_stays_readable(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_store(path) as store:
        store.put_page(stored_page("https://a.de/1", "a" * PACKED_ABOVE, b"b" * (PACKED_ABOVE + 1)))
        store.put_event("r", "error", {"message": "富士山"})
        store.put_run(StoredRun("r", "Höhe", "2026-11-22", report_md="# R\n" * 2000, report_json={"topic": "Höhe"}))
    plain = sqlite3.connect(path)
    text, raw = plain.execute("SELECT text, raw FROM pages").fetchone()
    assert (text[:1], len(text)) == (PLAIN, PACKED_ABOVE + 1)
    assert (raw[:1], len(raw) < 100) == (PACKED, True)
    assert plain.execute("SELECT payload FROM traces").fetchone() == ('{"message": "富士山"}',)
    report, json_column = plain.execute("SELECT report_md, report_json FROM runs").fetchone()
    assert (report[:1], json_column) == (PACKED, '{"topic": "Höhe"}')
    plain.close()


def test_the_tables_begin_with_the_columns_of_the_seed(tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as store:
        columns = {
            table: [name for _, name, *_ in store.connection.execute(f"PRAGMA table_info({table})")]
            for table in ("pages", "traces", "runs")
        }
    assert columns["pages"][:8] == ["url", "text", "title", "domain", "lang", "content_type", "hash", "ts"]
    assert columns["traces"] == ["id", "ts", "kind", "payload", "run_id", "seq"]
    assert columns["runs"] == ["id", "topic", "report_md", "report_json", "metrics", "created_at", "status"]


def test_a_run_and_its_trace_come_back_in_order_and_go_together(tmp_path: Path) -> None:
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


def test_a_store_of_the_first_version_is_brought_up_to_date_without_loss(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    old = sqlite3.connect(path)
    for statement in MIGRATIONS[0]:
        old.execute(statement)
    row = ("https://a.de/", PLAIN + b"Alt.", "T", "a.de", "de", "text/html", "0" * 64, "2026-01-01T00:00:00+00:00")
    old.execute("INSERT INTO pages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    old.execute("PRAGMA user_version = 1")
    old.commit()
    old.close()
    with open_store(path) as store:
        page = store.page("https://a.de/")
        assert store.connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    assert page
    assert (page.text, page.final_url, page.raw, page.status, page.reason) == (
        "Alt.",
        "https://a.de/",
        b"",
        None,
        "page",
    )


def database(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Not a database, but long enough to be taken for the header of one. " * 3, "is no store, or a damaged one"),
        (("CREATE TABLE songs (name)",), "no store of citejury's"),
        (("PRAGMA user_version = 3",), "no store of citejury's"),
        ((f"PRAGMA application_id = {APPLICATION_ID}", f"PRAGMA user_version = {VERSION + 1}"), "a newer citejury"),
    ],
    ids=["text", "another program's", "another program's, empty", "newer"],
)
def test_what_is_no_store_is_refused_and_left_alone(
    tmp_path: Path, content: bytes | tuple[str, ...], message: str, read_only: bool
) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(content) if isinstance(content, bytes) else database(path, *content)
    before = path.read_bytes()
    with pytest.raises(InputError, match=message), open_store(path, read_only):
        pass
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["store.db"]


def test_a_damaged_field_is_told(tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as store:
        store.put_page(stored_page())
        store.connection.execute("UPDATE pages SET text = x'01ffff'")
        with pytest.raises(InputError, match="is damaged"):
            store.page("https://a.de/x")


def test_reading_needs_a_store_and_changes_nothing(tmp_path: Path) -> None:
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


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(OutputError, match="cannot be made"), open_store(tmp_path / "file" / "store.db"):
        pass
    with pytest.raises(OutputError, match="unable to open"), open_store(tmp_path):
        pass


def test_a_store_that_others_keep_locked_is_told(tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as store, open_store(tmp_path / "store.db") as other:
        store.connection.execute("PRAGMA busy_timeout = 1")
        other.connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(OutputError, match="locked by another process"):
            store.put_page(stored_page())
        other.connection.execute("COMMIT")
        store.put_page(stored_page())


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that other users can get to, which pytest's own cannot."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)
        os.chmod(name, 0o755)


def test_a_store_in_a_folder_that_cannot_be_written_is_read_and_nothing_is_left_there(public_folder: Path) -> None:
    for name, step in (("store.db", VERSION), ("old.db", 1)):
        with open_store(public_folder / name) as store:
            store.put_page(stored_page())
            store.connection.execute(f"PRAGMA user_version = {step}")
        os.chmod(public_folder / name, stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    os.chmod(public_folder, 0o555)
    code = """
if os.geteuid() == 0:
    os.setuid(65534)  # to the root user nothing is read-only
folder = Path(sys.argv[1])
with open_store(folder / "store.db", read_only=True) as store:
    print([page.text for page in store.pages()])
for name, read_only in (("old.db", True), ("store.db", False), ("new.db", False)):
    try:
        with open_store(folder / name, read_only):
            print("opened")
    except Exception as error:
        print(type(error).__name__, str(error).replace(str(folder), ""))
print(sorted(os.listdir(folder)))
"""
    said, _ = run_child(code, public_folder).communicate(timeout=120)
    lines = said.splitlines()
    assert lines[0] == "['Text.']"
    assert lines[1].startswith("InputError The store '/old.db' is of an older version")
    assert lines[2].startswith("OutputError The store '/store.db' cannot be used: attempt to write a readonly database")
    assert lines[3].startswith("OutputError The store '/new.db' cannot be used: unable to open database file")
    assert lines[4] == "['old.db', 'store.db']"


def test_a_full_disk_is_told_and_what_was_stored_before_is_safe(tmp_path: Path) -> None:
    code = """
from pipeline.errors import OutputError
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
with open_store(Path(sys.argv[1])) as store:
    kept = 0
    try:
        while True:
            page = numbered_page("a", kept)
            store.put_page(page._replace(raw=os.urandom(9_000)))
            kept += 1
    except OutputError as error:
        print(kept, error)
"""
    path = tmp_path / "store.db"
    said, _ = run_child(code, path).communicate(timeout=120)
    kept, _, message = said.partition(" ")
    assert "cannot be used" in message
    with open_store(path) as store:
        assert len(list(store.pages())) == int(kept) > 10


def test_four_processes_write_at_once_and_one_of_them_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "new" / "store.db"
    count = 40
    writers = [run_child(WRITER, path, who, count) for who in range(3)]
    with run_child(WRITER, path, "killed", 100_000) as killed:
        assert killed.stdout
        told = [killed.stdout.readline() for _ in range(15)]
        killed.kill()
        told += killed.stdout.readlines()
    for writer in writers:
        said, _ = writer.communicate(timeout=300)
        assert (writer.returncode, said.split()) == (0, [str(number) for number in range(count)])
    with open_store(path, read_only=True) as store:
        assert store.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        pages = {page.url: page for page in store.pages()}
        events = store.events("shared run")
    assert all(sha256(page.raw).hexdigest() == page.raw_sha256 == page.hash for page in pages.values())
    assert all(page.text.encode() == page.raw for page in pages.values())
    assert {f"https://a.de/{who}/{number}" for who in range(3) for number in range(count)} <= set(pages)
    acknowledged = [int(line) for line in told if line.endswith("\n")]
    assert {f"https://a.de/killed/{number}" for number in acknowledged} <= set(pages)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert len(events) >= 3 * count + len(acknowledged)


def test_a_store_stays_readable_beside_a_writer_that_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with run_child(WRITER, path, "w", 100_000) as writer:
        assert writer.stdout
        assert writer.stdout.readline() == "0\n"
        with open_store(path, read_only=True) as store:
            assert store.page("https://a.de/w/0")
        writer.kill()
    with open_store(path, read_only=True) as store:
        assert store.page("https://a.de/w/0")
    assert os.listdir(tmp_path) == ["store.db"]
