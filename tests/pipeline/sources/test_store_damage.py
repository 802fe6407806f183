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

from pipeline.core.errors import InputError, OutputError
from pipeline.sources.store import APPLICATION_ID, VERSION, open_store
from tests.support.places import ROOT
from tests.support.store_bench import stored_page

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


def run_child(code: str, *arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", PAGES + code, *map(str, arguments)], stdout=subprocess.PIPE, text=True, cwd=ROOT
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
    assert (path.read_bytes(), os.listdir(tmp_path)) == (before, ["store.db"])


def test_a_damaged_field_a_lock_and_a_folder_that_cannot_be_are_named(tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as store, open_store(tmp_path / "store.db") as other:
        store.connection.execute("PRAGMA busy_timeout = 1")
        other.connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(OutputError, match="locked by another process"):
            store.put_page(stored_page())
        other.connection.execute("COMMIT")
        store.put_page(stored_page())
        store.connection.execute("UPDATE pages SET text = x'01ffff'")
        with pytest.raises(InputError, match="is damaged"):
            store.page("https://a.de/x")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(OutputError, match="cannot be made"), open_store(tmp_path / "file" / "store.db"):
        pass
    with pytest.raises(OutputError, match="unable to open"), open_store(tmp_path):
        pass


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that other users can get to, which pytest's own cannot."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)
        os.chmod(name, 0o755)


def test_a_store_in_a_folder_that_cannot_be_written_is_read_and_nothing_is_left_there(public_folder: Path) -> None:
    for name, step in (("store.db", VERSION), ("old.db", 1), ("without_shares.db", 3)):
        with open_store(public_folder / name) as store:
            store.put_page(stored_page())
            if step == 3:
                store.connection.execute("ALTER TABLE pages DROP COLUMN read_share")
            store.connection.execute(f"PRAGMA user_version = {step}")
        os.chmod(public_folder / name, stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    os.chmod(public_folder, 0o555)
    code = """
if os.geteuid() == 0:
    os.setuid(65534)  # to the root user nothing is read-only
folder = Path(sys.argv[1])
for name in ("store.db", "without_shares.db"):
    with open_store(folder / name, read_only=True) as store:
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
    assert lines[:2] == ["['Text.']"] * 2
    assert lines[2].startswith("InputError The store '/old.db' is of an older version")
    assert lines[3].startswith("OutputError The store '/store.db' cannot be used: attempt to write a readonly database")
    assert lines[4].startswith("OutputError The store '/new.db' cannot be used: unable to open database file")
    assert lines[5] == "['old.db', 'store.db', 'without_shares.db']"


def test_a_full_disk_is_told_and_what_was_stored_before_is_safe(tmp_path: Path) -> None:
    code = """
from pipeline.core.errors import OutputError
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
        with open_store(path, read_only=True) as store:
            assert store.page("https://a.de/killed/0")
        killed.kill()
        told += killed.stdout.readlines()
    for writer in writers:
        said, _ = writer.communicate(timeout=300)
        assert (writer.returncode, said.split()) == (0, [str(number) for number in range(count)])
    with open_store(path, read_only=True) as store:
        assert store.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert store.page("https://a.de/killed/0")
        pages = {page.url: page for page in store.pages()}
        events = store.events("shared run")
    assert all(sha256(page.raw).hexdigest() == page.raw_sha256 == page.hash for page in pages.values())
    assert all(page.text.encode() == page.raw for page in pages.values())
    assert {f"https://a.de/{who}/{number}" for who in range(3) for number in range(count)} <= set(pages)
    acknowledged = [int(line) for line in told if line.endswith("\n")]
    assert {f"https://a.de/killed/{number}" for number in acknowledged} <= set(pages)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert len(events) >= 3 * count + len(acknowledged)
    assert os.listdir(path.parent) == ["store.db"]
