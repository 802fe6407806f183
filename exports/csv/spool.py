"""What an export has read, on disk: rows in no order that come back sorted, and what each record was like."""

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from annotation.argilla.labels import TaskName
from annotation.argilla.units import Purpose
from exports.csv.rows import Piece
from pipeline.core.terminal import counted

_SCHEMA, _DOUBLED = (Path(__file__).with_name(name).read_text("utf-8") for name in ("spool.sql", "doubled.sql"))
_ORDER = "record_uuid, chunk_rank, chunk_id, annotator_id, response_id, place"

Table = TaskName | Literal["evidence", "controls"]


class SpooledRow(NamedTuple):
    """One response or mark with its finished line; sorted by `record_uuid` and the four fields after it."""

    table: Table
    discarded: bool
    record_uuid: str
    chunk_rank: int
    chunk_id: str
    annotator_id: str
    response_id: str
    line: bytes
    record_id: str = ""
    at: str = ""  # When the response last changed, as the server writes it
    labels: str = ""


class KeptRecord(NamedTuple):
    """What a record was like when it was read; all but its provenance stands in the index."""

    dataset: str
    id: str
    task: TaskName
    state: str
    record_uuid: str = ""  # Empty where it is not ours
    chunk_id: str = ""
    language: str = ""
    cut: int = 0
    lost: str = ""  # JSON: who made each mark on no passage's text; empty where there is none
    doubled: int = 0
    differing: int = 0
    purpose: Purpose = "label"  # What it is for, where that keeps it out of the tasks' files; else `label`
    told: tuple[str, ...] | None = None  # Its provenance; None where none of its responses is in a file


_INDEXED = KeptRecord._fields[:-1]


class Spool:
    """Files of what was read; it is a context manager."""

    def __init__(self, path: Path) -> None:
        """Make the files `path` and `path`.lines, which must not exist; whoever made their folder removes them."""
        self._lines = path.with_name(f"{path.name}.lines").open("x+b")
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.executescript(_SCHEMA)
        self.database.execute("BEGIN")
        self.mended: Counter[str] = Counter()
        """By dataset: rows in which U+FFFD stands for a NUL, at which some readers of CSV end a cell."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.database.close()
        self._lines.close()

    def warnings(self) -> list[str]:
        total = self.mended.total()
        told = f"U+FFFD stands for NUL characters in {counted(total, 'row')}: some readers of CSV end a text at a NUL."
        return [told] if total else []

    def keep_new(self, dataset: str, record_ids: Sequence[str]) -> set[str]:
        """Those of the records that were not met before; they are from now on."""
        marks = ", ".join("?" * len(record_ids))
        found = f"SELECT id FROM met WHERE dataset = ? AND id IN ({marks})"
        new = set(record_ids).difference(*self.database.execute(found, (dataset, *record_ids)))
        self.database.executemany("INSERT INTO met VALUES (?, ?)", ((dataset, record_id) for record_id in new))
        return new

    def count_records(self, dataset: str) -> int:
        (count,) = self.database.execute("SELECT count(*) FROM met WHERE dataset = ?", (dataset,)).fetchone()
        return int(count)

    def add_records(self, records: Iterable[KeptRecord]) -> None:
        rows = [
            (*each[:-1], each.record_uuid, None if each.told is None else json.dumps(each.told)) for each in records
        ]
        told = [row[-2:] for row in rows if row[-1] is not None]
        self.database.executemany("INSERT OR IGNORE INTO told (record_uuid, cells) VALUES (?, ?)", told)
        number = "(SELECT number FROM told WHERE (record_uuid, cells) = (?, ?))"
        self.database.executemany(f"INSERT INTO records VALUES ({'?, ' * len(_INDEXED)}{number})", rows)

    def add(self, dataset: str, rows: list[SpooledRow]) -> None:
        place = self._lines.tell()
        kept, lines = [], []
        for row in rows:
            if b"\0" in row.line:
                self.mended[dataset] += 1
                row = row._replace(line=row.line.replace(b"\0", "\ufffd".encode()))
            lines.append(row.line)
            keys = (row.record_id, *row[:7], row.at, row.labels)
            kept.append((dataset, *keys, place, len(row.line)))
            place += len(row.line)
        self._lines.write(b"".join(lines))
        self.database.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * 13)})", kept)

    def add_unsubmitted(self, dataset: str, task: TaskName, units: Iterable[tuple[str, str, str]]) -> None:
        """Keep which units (record, passage, annotator) somebody has as a draft or discarded."""
        rows = ((dataset, task, *unit) for unit in units)
        self.database.executemany("INSERT INTO unsubmitted VALUES (?, ?, ?, ?, ?)", rows)

    def is_unsubmitted(self, task: TaskName, record_uuid: str, chunk_id: str, annotator_id: str) -> bool:
        unit = (task, record_uuid, chunk_id, annotator_id)
        found = "SELECT 1 FROM unsubmitted WHERE (task, record_uuid, chunk_id, annotator_id) = (?, ?, ?, ?)"
        return self.database.execute(found, unit).fetchone() is not None

    def drop_doubled(self, workspaces: Mapping[str, str]) -> None:
        """Drop responses that their annotator gave anew in another workspace, with their marks; the records count them.

        Versions and rounds of one workspace stay beside each other. `workspaces` has that of each dataset, by its id.
        """
        self.database.executemany("INSERT INTO workspaces VALUES (?, ?)", workspaces.items())
        doubled = self.database.execute(_DOUBLED).fetchall()
        self.database.executemany("DELETE FROM rows WHERE rowid = ?", ((row,) for row, *_ in doubled))
        self.database.executemany(
            "DELETE FROM rows WHERE kind = 'evidence' AND record_uuid = "
            "(SELECT record_uuid FROM records WHERE (dataset, id) = (?, ?)) AND response_id = ?",
            ((dataset, record_id, response_id) for _, dataset, record_id, response_id, _ in doubled),
        )
        self.database.executemany(
            "UPDATE records SET doubled = doubled + 1, differing = differing + ? WHERE (dataset, id) = (?, ?)",
            ((differs, dataset, record_id) for _, dataset, record_id, _, differs in doubled),
        )

    def doubled(self) -> Mapping[str, tuple[int, int]]:
        """By dataset: responses that were dropped for a newer one, and those of them with other answers."""
        found = "SELECT dataset, sum(doubled), sum(differing) FROM records GROUP BY dataset"
        return {dataset: (dropped, differing) for dataset, dropped, differing in self.database.execute(found)}

    def provenance(self) -> Iterator[tuple[str, Sequence[str]]]:
        """What each dataset says of where each record that is in a file comes from, in order of records."""
        found = self.database.execute(
            "SELECT record_uuid, cells FROM told WHERE number IN (SELECT told FROM records) ORDER BY record_uuid, cells"
        )
        for record_uuid, cells in found:
            yield record_uuid, json.loads(cells)

    def records(self) -> Iterator[tuple[Any, ...]]:
        yield from self.database.execute(f"SELECT {', '.join(_INDEXED)} FROM records ORDER BY dataset, id")

    def forget(self, dataset: str) -> None:
        self.mended.pop(dataset, None)
        for table in ("met", "records", "rows", "unsubmitted"):
            self.database.execute(f"DELETE FROM {table} WHERE dataset = ?", (dataset,))

    def rows(self, table: Table, discarded: bool) -> Iterator[Piece]:
        self._lines.flush()
        file = self._lines.fileno()
        found = self.database.execute(
            "SELECT record_uuid, chunk_rank, chunk_id, annotator_id, length, place FROM rows "
            f"WHERE kind = ? AND discarded = ? ORDER BY {_ORDER}",
            (table, discarded),
        )
        for record_uuid, chunk_rank, chunk_id, annotator_id, length, place in found:
            yield Piece(record_uuid, chunk_rank, chunk_id, (annotator_id,), 1, os.pread(file, length, place))
