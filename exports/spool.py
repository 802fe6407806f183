"""Rows on their way to sorted files, kept on disk: memory does not grow with the export."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from annotation.labels import TaskName

SCHEMA = """
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    CREATE TABLE records (dataset TEXT, id TEXT, PRIMARY KEY (dataset, id)) WITHOUT ROWID;
    CREATE TABLE rows (
        dataset TEXT, task TEXT, discarded INTEGER,
        record_uuid TEXT, chunk_rank INTEGER, chunk_id TEXT, annotator_id TEXT, response_id TEXT,
        line BLOB
    );
"""
ORDER = "record_uuid, chunk_rank, chunk_id, annotator_id, response_id"


class SpooledRow(NamedTuple):
    """One response, with what it is sorted by and its finished line."""

    task: TaskName
    """The task, which has a file of its own."""
    discarded: bool
    """Whether it belongs among the discarded ones."""
    record_uuid: str
    """First sort key."""
    chunk_rank: int
    """Second sort key; 0 outside retrieval."""
    chunk_id: str
    """Third sort key; empty outside retrieval."""
    annotator_id: str
    """Fourth sort key."""
    response_id: str
    """Last sort key: settles the order where all others are equal."""
    line: bytes
    """The row as a line of CSV in UTF-8, its line end included."""


class Spool:
    """A file of rows in no order that gives them back sorted; it is a context manager."""

    def __init__(self, path: Path) -> None:
        """Make the file, which must not exist; whoever made its folder removes it."""
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.executescript(SCHEMA)
        self._database.execute("BEGIN")

    def __enter__(self) -> Self:
        """The spool itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the file."""
        self._database.close()

    def is_new(self, dataset: str, record_id: str) -> bool:
        """Whether the record was not met before; it is from now on."""
        added = self._database.execute("INSERT OR IGNORE INTO records VALUES (?, ?)", (dataset, record_id))
        return added.rowcount == 1

    def count_records(self, dataset: str) -> int:
        """Distinct records of the dataset that were met."""
        (count,) = self._database.execute("SELECT count(*) FROM records WHERE dataset = ?", (dataset,)).fetchone()
        return int(count)

    def add(self, dataset: str, rows: list[SpooledRow]) -> None:
        """Keep the rows of some records of the dataset."""
        self._database.executemany(
            "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", ((dataset, *row) for row in rows)
        )

    def forget(self, dataset: str) -> None:
        """Drop everything of the dataset, to read it again."""
        for table in ("records", "rows"):
            self._database.execute(f"DELETE FROM {table} WHERE dataset = ?", (dataset,))

    def rows(self, task: TaskName, discarded: bool) -> Iterator[tuple[str, str, bytes]]:
        """Record, annotator and line of each row of one file, sorted by code point (design 4.5)."""
        found = self._database.execute(
            f"SELECT record_uuid, annotator_id, line FROM rows WHERE task = ? AND discarded = ? ORDER BY {ORDER}",
            (task, discarded),
        )
        yield from found
