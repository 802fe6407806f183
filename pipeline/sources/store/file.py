"""The store's file: how it is opened, how large fields are packed, and what SQLite's errors mean to the user."""

import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pipeline.errors import CitejuryError, InputError, OutputError

APPLICATION_ID = 0x63697465
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE pages (url TEXT PRIMARY KEY, text BLOB, title TEXT, domain TEXT, lang TEXT, content_type TEXT,"
        " hash TEXT, ts DATETIME)",
        "CREATE TABLE traces (id TEXT, ts DATETIME, kind TEXT, payload JSON)",
        "CREATE TABLE runs (id TEXT PRIMARY KEY, topic TEXT, report_md BLOB, report_json JSON, metrics JSON,"
        " created_at DATETIME)",
        f"PRAGMA application_id = {APPLICATION_ID}",
    ),
    (
        "ALTER TABLE pages ADD COLUMN final_url TEXT NOT NULL DEFAULT ''",
        "UPDATE pages SET final_url = url",
        "ALTER TABLE pages ADD COLUMN raw BLOB",
        "ALTER TABLE pages ADD COLUMN raw_sha256 TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE pages ADD COLUMN status INTEGER",
        "ALTER TABLE pages ADD COLUMN reason TEXT NOT NULL DEFAULT 'page'",
        "ALTER TABLE pages ADD COLUMN detail TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE pages ADD COLUMN etag TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE pages ADD COLUMN last_modified TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE pages ADD COLUMN page_starts JSON NOT NULL DEFAULT '[]'",
        "ALTER TABLE pages ADD COLUMN added INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE traces ADD COLUMN run_id TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE traces ADD COLUMN seq INTEGER NOT NULL DEFAULT 0",
        "CREATE INDEX traces_of_run ON traces (run_id, seq)",
        "ALTER TABLE runs ADD COLUMN status TEXT NOT NULL DEFAULT ''",
    ),
)
VERSION = len(MIGRATIONS)


def store_version(connection: sqlite3.Connection, name: str) -> int:
    """The version of the store, 0 for an empty file; `name` stands for the file in messages.

    Raises:
        InputError: it is another program's database, or of a version that is not known here.
    """
    facts = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    with connection:
        connection.execute("BEGIN")  # one moment's facts, although another process may be making the store
        application, version, objects = (connection.execute(fact).fetchone()[0] for fact in facts)
    if application != APPLICATION_ID and (application or version or objects):
        raise InputError(f"{name!r} is a database, but no store of citejury's. Name another file; it was not touched.")
    if version > VERSION:
        raise InputError(
            f"The store {name!r} was written by a newer citejury: its version is {version}, and versions up to "
            f"{VERSION} can be read here. Update citejury; the store was not touched."
        )
    return int(version)


def migrate(connection: sqlite3.Connection, name: str) -> None:
    """Bring the store to today's version, all steps in one transaction; another process may do the same at once.

    Raises:
        InputError: it is no store, or a newer one.
    """
    if store_version(connection, name) == VERSION:
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for reached, step in enumerate(MIGRATIONS[version:], start=version + 1):
            for statement in (*step, f"PRAGMA user_version = {reached}"):
                connection.execute(statement)


BUSY_SECONDS = 60.0
"""How long a write waits for other processes; each of theirs takes milliseconds."""

PLAIN, PACKED = b"\x00", b"\x01"
PACKED_ABOVE = 4096
# The fastest level: pages are packed between two answers of the network, and level 6 takes several times as long to
# save another sixth.
PACKING_LEVEL = 1

DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
UNUSABLE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def opened(path: Path, read_only: bool) -> sqlite3.Connection:
    """A connection to the store, brought to today's version; every statement is a transaction of its own.

    Raises:
        InputError: it is no store or a newer one; or it is to be read and is not there, or older and cannot be changed.
        sqlite3.Error: what `told_plainly` translates.
    """
    if read_only and not path.is_file():
        raise InputError(f"There is no store {str(path)!r} to read.")
    changeable = not read_only or all(os.access(place, os.W_OK) for place in (path, path.parent))
    if not read_only:
        make_folder(path.parent)
    with ExitStack() as unless_opened:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?{'mode=rwc' if changeable else reading_mode(path)}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
        )
        unless_opened.callback(connection.close)
        prepare(connection, path, changeable)
        if read_only:
            connection.execute("PRAGMA query_only = 1")
        unless_opened.pop_all()
    return connection


def make_folder(folder: Path) -> None:
    """Make the folder and those above it.

    Raises:
        OutputError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"The folder {str(folder)!r} cannot be made: {error.strerror}.") from error


def reading_mode(path: Path) -> str:
    """How to read a store that cannot be changed here: without a lock unless somebody is writing to it elsewhere."""
    log = path.with_name(f"{path.name}-wal")
    return "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"


def prepare(connection: sqlite3.Connection, path: Path, changeable: bool) -> None:
    """Bring the store to today's version, or see that it is, and set how it is written.

    Raises:
        InputError: it is no store or a newer one, or an older one that cannot be changed here.
    """
    if changeable:
        migrate(connection, str(path))
        # Readers and the one writer at a time do not wait for each other; without a sync for each page a loss of power
        # may cost the last of them, but never tears the file: https://www.sqlite.org/wal.html
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    elif store_version(connection, str(path)) != VERSION:
        raise InputError(
            f"The store {str(path)!r} is of an older version and cannot be brought up to date where it is. Copy it to "
            "a folder that can be written."
        )


@contextmanager
def told_plainly(path: Path) -> Iterator[None]:
    """Turn SQLite's errors in the block into ours.

    Raises:
        InputError: the file is no store or is damaged.
        OutputError: it cannot be opened or written, the disk is full, or others keep it locked.
    """
    try:
        yield
    except zlib.error as error:
        raise InputError(f"The store {str(path)!r} is damaged: a field cannot be unpacked ({error}).") from error
    except sqlite3.Error as error:
        plain = plain_error(error, path)
        if plain is None:
            raise
        raise plain from error


def plain_error(error: sqlite3.Error, path: Path) -> CitejuryError | None:
    """What the error means to the user; None for a mistake of ours."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the upper bits say more than is needed
    if code in DAMAGED:
        return InputError(f"{str(path)!r} is no store, or a damaged one: {error}. Name another file, or move it away.")
    if code in LOCKED:
        return OutputError(
            f"The store {str(path)!r} is still locked by another process after {BUSY_SECONDS:.0f} seconds. Try again "
            "when that has ended."
        )
    if code in UNUSABLE:
        return OutputError(
            f"The store {str(path)!r} cannot be used: {error}. Look at the disk and at who may write to the folder; "
            "what was stored before is safe."
        )
    return None


def pack(field: bytes) -> bytes:
    """The field behind a byte that says whether it is compressed, which it is above 4 KiB."""
    return PLAIN + field if len(field) <= PACKED_ABOVE else PACKED + zlib.compress(field, PACKING_LEVEL)


def unpack(packed: bytes | None) -> bytes:
    """The field that `pack` was given; empty for a column that nobody has filled.

    Raises:
        zlib.error: it is damaged.
    """
    if not packed:
        return b""
    return zlib.decompress(packed[1:]) if packed[:1] == PACKED else packed[1:]


def storable(text: str) -> str:
    """The text as UTF-8 can hold it: lone surrogates, which web pages and servers can send, become `?`."""
    return text.encode("utf-8", "replace").decode()
