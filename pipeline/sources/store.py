"""The store: pages, traces and runs in one SQLite file, safe for several processes at once.

Source: pipeline/contracts/research.md#the-store.
"""

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pipeline.core.errors import InputError, OutputError
from pipeline.core.files import output_errors
from pipeline.core.sentences import packaged_table
from pipeline.records.causes import Archived
from pipeline.sources.headings import Heading

TraceKind = Literal[
    "tool_call",
    "search_result",
    "fetch_result",
    "chunk_made",
    "claim_made",
    "verify_result",
    "writer_finalized",
    "error",
]
"""What a trace event tells (pipeline/contracts/research.md#traces)."""


class StoredPage(NamedTuple):
    url: str  # The canonical URL that was asked for: the key
    final_url: str  # Where redirects led; the URL itself where there were none
    text: str
    title: str
    domain: str  # `source_domain` of the URL
    lang: str
    content_type: str
    hash: str
    ts: str  # When it was fetched or added: ISO 8601, UTC
    raw: bytes  # The body, decompressed; empty where there is none
    raw_sha256: str
    status: int | None
    reason: str
    detail: str
    etag: str = ""  # The server's `ETag`, for asking whether the page has changed; empty where it gave none
    last_modified: str = ""
    page_starts: tuple[int, ...] = ()
    """Where each page of a PDF begins in the text, in code points; empty for other documents."""
    added: bool = False
    headings: tuple[Heading, ...] = ()
    read_share: float | None = None
    """The share of its visible words that the text holds; None where nobody has measured it."""


class Outcome(NamedTuple):
    """What came of one URL, as far as it matters for another fetch; the fields are those of `StoredPage`."""

    reason: str
    detail: str = ""
    added: bool = False
    etag: str = ""
    last_modified: str = ""
    read_share: float | None = None
    ts: str = ""


class StoredEvent(NamedTuple):
    id: str
    run_id: str
    seq: int  # Its place in the run, counted from 1
    ts: str  # When it was stored: ISO 8601, UTC
    kind: TraceKind
    payload: dict[str, Any]


class StoredRun(NamedTuple):
    id: str
    topic: str
    created_at: str
    status: str = ""
    report_md: str = ""
    report_json: Mapping[str, Any] = {}
    """The report as pipeline/contracts/research.md#report has it; empty before there is one."""
    metrics: Mapping[str, Any] = {}


def _upsert(table: str, columns: tuple[str, ...]) -> str:
    marks = ", ".join("?" * len(columns))
    changes = ", ".join(f"{column} = excluded.{column}" for column in columns[1:])
    names = ", ".join(columns)
    return f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT ({columns[0]}) DO UPDATE SET {changes}"


_SELECT_PAGE = f"SELECT {', '.join(StoredPage._fields)} FROM pages WHERE url = ?"
_SELECT_TEXT = _SELECT_PAGE.replace(" raw,", " x'' AS raw,")
_SELECT_OUTCOME = f"SELECT {', '.join(Outcome._fields)} FROM pages WHERE url = ?"
_SELECT_EVENTS = f"SELECT {', '.join(StoredEvent._fields)} FROM traces WHERE run_id = ? ORDER BY seq"
_SELECT_RUNS = f"SELECT {', '.join(StoredRun._fields)} FROM runs ORDER BY created_at, id"
_PUT_PAGE = _upsert("pages", StoredPage._fields)
_PUT_RUN = _upsert("runs", StoredRun._fields)
# One statement, so that two processes that write one run's trace never get the same place.
_PUT_EVENT = """
INSERT INTO traces (id, run_id, seq, ts, kind, payload)
SELECT :run_id || '#' || next, :run_id, next, :ts, :kind, :payload
FROM (SELECT coalesce(max(seq), 0) + 1 AS next FROM traces WHERE run_id = :run_id)
"""


class Store:
    """An open store. Every call is one short transaction: after a kill each of them happened wholly or not at all.

    It belongs to the thread that opened it. All methods raise `OutputError` where the store cannot be written or stays
    locked by others, and `InputError` where the file is damaged.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        """Use `open_store`."""
        self.connection = connection
        self.path = path

    def page(self, url: str, with_raw: bool = True) -> StoredPage | None:
        """The page under this canonical URL, its body only `with_raw`; None where nobody has tried it."""
        with _store_errors(self.path):
            row = self.connection.execute(_SELECT_PAGE if with_raw else _SELECT_TEXT, [url]).fetchone()
            if row is None:
                return None
            columns: dict[str, Any] = dict(zip(StoredPage._fields, row, strict=True))
            columns |= {
                "text": _unpack(columns["text"]).decode("utf-8", "surrogatepass"),
                "raw": _unpack(columns["raw"]),
                "page_starts": tuple(json.loads(columns["page_starts"])),
                "added": bool(columns["added"]),
                "headings": tuple(Heading(*each) for each in json.loads(columns["headings"])),
            }
            return StoredPage(**columns)

    def outcome(self, url: str) -> Outcome | None:
        """Without any of its text; None where nobody has tried it."""
        with _store_errors(self.path):
            row = self.connection.execute(_SELECT_OUTCOME, [url]).fetchone()
            if row is None:
                return None
            outcome = Outcome(*row)
            return outcome._replace(added=bool(outcome.added))

    def archived(self, url: str) -> Archived:
        """What an archive said of the page under this canonical URL; empty where none was asked."""
        with _store_errors(self.path):
            row = self.connection.execute("SELECT said FROM archived WHERE url = ?", [url]).fetchone()
        return row[0] if row else ""

    def put_archived(self, url: str, said: Archived, archive: str) -> None:
        ts = datetime.now(UTC).isoformat(timespec="seconds")
        with _store_errors(self.path):
            self.connection.execute("INSERT OR REPLACE INTO archived VALUES (?, ?, ?, ?)", [url, said, archive, ts])

    def put_page(self, page: StoredPage) -> None:
        self.put_row(row_from_page(page))

    def put_row(self, row: tuple[Any, ...]) -> None:
        """Keep a page that `row_from_page` has packed, in another thread perhaps."""
        with _store_errors(self.path):
            self.connection.execute(_PUT_PAGE, row)

    def pages(self) -> Iterator[StoredPage]:
        """All pages by URL, one at a time; no lock is held between two."""
        with _store_errors(self.path):
            urls = [url for (url,) in self.connection.execute("SELECT url FROM pages ORDER BY url")]
        return (page for page in map(self.page, urls) if page is not None)

    def put_event(self, run_id: str, kind: TraceKind, payload: Mapping[str, Any]) -> None:
        """Add an event to the end of the run's trace; its `seq` follows on."""
        ts = datetime.now(UTC).isoformat(timespec="milliseconds")
        with _store_errors(self.path):
            self.connection.execute(
                _PUT_EVENT, {"run_id": run_id, "ts": ts, "kind": kind, "payload": _json_text(payload)}
            )

    def events(self, run_id: str) -> list[StoredEvent]:
        with _store_errors(self.path):
            rows = self.connection.execute(_SELECT_EVENTS, [run_id]).fetchall()
            return [StoredEvent(*row)._replace(payload=json.loads(row[-1])) for row in rows]

    def put_run(self, run: StoredRun) -> None:
        with _store_errors(self.path):
            columns = run._asdict() | {
                "topic": _storable(run.topic),
                "report_md": _pack(run.report_md.encode("utf-8", "surrogatepass")),
                "report_json": _json_text(run.report_json),
                "metrics": _json_text(run.metrics),
            }
            self.connection.execute(_PUT_RUN, tuple(columns.values()))

    def runs(self) -> list[StoredRun]:
        with _store_errors(self.path):
            rows = [dict(zip(StoredRun._fields, row, strict=True)) for row in self.connection.execute(_SELECT_RUNS)]
            for row in rows:
                row["report_md"] = _unpack(row["report_md"]).decode("utf-8", "surrogatepass")
                row |= {name: json.loads(row[name]) for name in ("report_json", "metrics")}
            return [StoredRun(**row) for row in rows]

    def delete_run(self, run_id: str) -> bool:
        """Remove the run and its trace, and say whether there was anything; pages belong to no run and stay."""
        with _store_errors(self.path), self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            runs = self.connection.execute("DELETE FROM runs WHERE id = ?", [run_id]).rowcount
            events = self.connection.execute("DELETE FROM traces WHERE run_id = ?", [run_id]).rowcount
        return runs + events > 0


@contextmanager
def open_store(path: Path, read_only: bool = False) -> Iterator[Store]:
    """The store in this file, made with its folders where there is none yet, and closed when the block ends.

    With `read_only` it opens from a folder that cannot be written too, where it leaves no file behind. InputError where
    the file is no store, damaged, of a newer citejury, or not there; OutputError where it is locked or unusable.
    """
    if read_only and not path.is_file():
        raise InputError(f"There is no store {str(path)!r} to read.")
    changeable = not read_only or all(os.access(place, os.W_OK) for place in (path, path.parent))
    if not read_only:
        with output_errors(f"The folder {str(path.parent)!r} cannot be made"):
            path.parent.mkdir(parents=True, exist_ok=True)
    address = f"{path.absolute().as_uri()}?{'mode=rwc' if changeable else _reading_mode(path)}"
    with ExitStack() as until_end:
        with _store_errors(path):
            # Every statement is a transaction of its own.
            connection = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
            until_end.callback(connection.close)
            _prepare(connection, path, changeable)
            if read_only:
                connection.execute("PRAGMA query_only = 1")
        yield Store(connection, path)


def row_from_page(page: StoredPage) -> tuple[Any, ...]:
    columns = page._asdict() | {
        "text": _pack(page.text.encode("utf-8", "surrogatepass")),
        "raw": _pack(page.raw),
        "page_starts": json.dumps(page.page_starts),
        "headings": json.dumps(page.headings, ensure_ascii=False),
    }
    return tuple(_storable(value) if isinstance(value, str) else value for value in columns.values())


def _json_text(value: Mapping[str, Any]) -> str:
    return _storable(json.dumps(value, ensure_ascii=False))


APPLICATION_ID = 0x63697465
"""The four letters `cite` in the file's header (https://www.sqlite.org/pragma.html#pragma_application_id)."""
MIGRATIONS: list[list[str]] = packaged_table(__file__)["steps"]
VERSION = len(MIGRATIONS)
_LACKING = {2: "'[]' AS headings, NULL AS read_share", 3: "NULL AS read_share"}
"""What the pages of a store lack that can be read as it is, by the store's version."""


def _store_version(connection: sqlite3.Connection, name: str) -> int:
    facts = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    with connection:
        connection.execute("BEGIN")  # one moment's facts, although another process may be making the store
        application, version, objects = (connection.execute(fact).fetchone()[0] for fact in facts)
    if application != APPLICATION_ID and (application or version or objects):
        raise InputError(f"{name!r} is a database, but no store of citejury's. Name another file; it was not touched.")
    if version > VERSION:
        ending = f"and versions up to {VERSION} can be read here. Update citejury; the store was not touched."
        raise InputError(f"The store {name!r} was written by a newer citejury: its version is {version}, {ending}")
    return int(version)


def _migrate(connection: sqlite3.Connection, name: str) -> None:
    """All steps in one transaction; another process may do the same at once."""
    if _store_version(connection, name) == VERSION:
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for reached, step in enumerate(MIGRATIONS[version:], start=version + 1):
            for statement in (*step, f"PRAGMA user_version = {reached}"):
                connection.execute(statement)


_BUSY_SECONDS = 60.0  # How long a write waits for other processes; each of theirs takes milliseconds

PLAIN, PACKED = b"\x00", b"\x01"
PACKED_ABOVE = 4096

_DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_UNUSABLE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def _reading_mode(path: Path) -> str:
    """Without a lock unless somebody is writing to it elsewhere."""
    log = path.with_name(f"{path.name}-wal")
    return "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"


def _prepare(connection: sqlite3.Connection, path: Path, changeable: bool) -> None:
    if changeable:
        _migrate(connection, str(path))
        # Readers and the one writer at a time do not wait for each other; without a sync for each page a loss of power
        # may cost the last of them, but never tears the file: https://www.sqlite.org/wal.html
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    elif (version := _store_version(connection, str(path))) in (2, 3, 4):
        connection.execute(MIGRATIONS[4][0].replace("TABLE", "TEMP TABLE", 1))
        if lacking := _LACKING.get(version):
            connection.execute(f"CREATE TEMP VIEW pages AS SELECT *, {lacking} FROM main.pages")
    elif version != VERSION:
        ending = "where it is. Copy it to a folder that can be written."
        raise InputError(f"The store {str(path)!r} is of an older version and cannot be brought up to date {ending}")


@contextmanager
def _store_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except zlib.error as error:
        raise InputError(f"The store {str(path)!r} is damaged: a field cannot be unpacked ({error}).") from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the upper bits say more than is needed
        if code in _DAMAGED:
            why = f"is no store, or a damaged one: {error}. Name another file, or move it away."
            raise InputError(f"{str(path)!r} {why}") from error
        if code in _LOCKED:
            ending = f"after {_BUSY_SECONDS:.0f} seconds. Try again when that has ended."
            raise OutputError(f"The store {str(path)!r} is still locked by another process {ending}") from error
        if code in _UNUSABLE:
            advice = "Look at the disk and at who may write to the folder; what was stored before is safe."
            raise OutputError(f"The store {str(path)!r} cannot be used: {error}. {advice}") from error
        raise


def _pack(field: bytes) -> bytes:
    """The field behind a byte that says whether it is compressed, which it is above 4 KiB."""
    # Pages are packed between two answers of the network; level 6 takes several times as long to save another sixth.
    return PLAIN + field if len(field) <= PACKED_ABOVE else PACKED + zlib.compress(field, 1)


def _unpack(packed: bytes | None) -> bytes:
    if not packed:
        return b""
    return zlib.decompress(packed[1:]) if packed[:1] == PACKED else packed[1:]


def _storable(text: str) -> str:
    """Lone surrogates, which web pages and servers can send, become `?`."""
    return text.encode("utf-8", "replace").decode()
