"""Rows on their way to sorted files, kept on disk: memory does not grow with the export.

A database holds what they are sorted by; their lines, a hundred times as long, stand one after another in a file.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
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
        place INTEGER, length INTEGER
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
    """Two files of rows in no order that gives them back sorted; it is a context manager."""

    def __init__(self, path: Path) -> None:
        """Make the files `path` and `path`.lines, which must not exist; whoever made their folder removes them."""
        self._lines = path.with_name(f"{path.name}.lines").open("x+b")
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.executescript(SCHEMA)
        self._database.execute("BEGIN")

    def __enter__(self) -> Self:
        """The spool itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the files."""
        self._database.close()
        self._lines.close()

    def keep_new(self, dataset: str, record_ids: Sequence[str]) -> set[str]:
        """Those of the records that were not met before; they are from now on."""
        marks = ", ".join("?" * len(record_ids))
        found = f"SELECT id FROM records WHERE dataset = ? AND id IN ({marks})"
        new = set(record_ids).difference(*self._database.execute(found, (dataset, *record_ids)))
        self._database.executemany("INSERT INTO records VALUES (?, ?)", ((dataset, record_id) for record_id in new))
        return new

    def count_records(self, dataset: str) -> int:
        """Distinct records of the dataset that were met."""
        (count,) = self._database.execute("SELECT count(*) FROM records WHERE dataset = ?", (dataset,)).fetchone()
        return int(count)

    def add(self, dataset: str, rows: list[SpooledRow]) -> None:
        """Keep the rows of some records of the dataset."""
        place = self._lines.tell()
        kept = []
        for *keys, line in rows:
            kept.append((dataset, *keys, place, len(line)))
            place += len(line)
        self._lines.write(b"".join(row.line for row in rows))
        self._database.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", kept)

    def forget(self, dataset: str) -> None:
        """Drop everything of the dataset, to read it again."""
        for table in ("records", "rows"):
            self._database.execute(f"DELETE FROM {table} WHERE dataset = ?", (dataset,))

    def rows(self, task: TaskName, discarded: bool) -> Iterator[tuple[str, str, bytes]]:
        """Record, annotator and line of each row of one file, sorted by code point (design 4.5)."""
        self._lines.flush()
        file = self._lines.fileno()
        found = self._database.execute(
            "SELECT record_uuid, annotator_id, length, place FROM rows WHERE task = ? AND discarded = ? "
            f"ORDER BY {ORDER}",
            (task, discarded),
        )
        for record_uuid, annotator_id, length, place in found:
            yield record_uuid, annotator_id, os.pread(file, length, place)
