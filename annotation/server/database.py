"""What we add to Argilla's database, SQLite or PostgreSQL, and how all of a SQLite file comes into PostgreSQL.

Added are indexes, and tables that triggers keep in step with Argilla's own. All but the history of responses can be
made again from Argilla's tables, so only that and since when log-ins count go along. PostgreSQL's `COPY` reads ids,
times, truth values and JSON as SQLite spells them (PostgreSQL 15, COPY, "Text Format"): exports have the same bytes.
"""

import contextlib
import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from argilla_server.database import sync_engine
from argilla_server.models import Record
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from annotation.server.patches import access, history
from annotation.server.queue import practice
from annotation.server.queue import tables as queue
from annotation.server.search import text_index
from annotation.server.sql import run_sql
from pipeline.core.errors import CitejuryError, InputError, OutputError, ServerStartError

_LOCK = 0x63697465  # any number; several web processes of ours may start at once on PostgreSQL

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def prepare(connection: Connection) -> None:
    """Create what is missing, in the connection's transaction, which the caller commits."""
    if connection.dialect.name == "postgresql":
        _wait_for_others(connection)
    run_sql(connection, __file__)
    for part in (text_index, queue, practice, access, history):
        part.prepare(connection)


def _wait_for_others(connection: Connection) -> None:
    """Return once no other process prepares the PostgreSQL database; none does until the transaction ends."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})


def move(database: Path, owner_username: str) -> None:
    """Copy a SQLite file's tables into PostgreSQL's, which are there; only the first start's owner gives way."""
    try:
        with contextlib.closing(sqlite3.connect(database)) as source, sync_engine.begin() as target:
            _fill_empty(target, source, owner_username)
    except DBAPIError as error:
        reason = _reason_of(error.orig)
        raise ServerStartError(f"PostgreSQL stopped: {reason}. Nothing of the backup was kept.") from error
    except sqlite3.Error as error:
        raise InputError(f"The database in the backup cannot be read: {error}. Nothing of it was kept.") from error
    sync_engine.dispose()


def _fill_empty(target: Any, source: sqlite3.Connection, owner_username: str) -> None:
    # Tables that others refer to come first.
    columns = {table.name: tuple(table.columns.keys()) for table in (*Record.metadata.sorted_tables, access.EPOCHS)}
    there = {name for (name,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    _wait_for_others(target)
    target.exec_driver_sql(f"LOCK TABLE {', '.join(columns)} IN SHARE ROW EXCLUSIVE MODE")
    _refuse_used_database(target, owner_username)
    target.exec_driver_sql("DELETE FROM users")
    # A trigger would take each record that is complete for pending until its last response has come, and for given now.
    kept = {table.name: tuple(table.columns.keys()) for table in history.TABLES}
    for table in columns | kept:  # our triggers; those that hold rows of two tables together stay
        target.exec_driver_sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    for table, names in columns.items():
        if table in there:  # one of ours is not in a backup of software that did not have it
            _copy_table(source, target, table, names)
    for table in kept:
        target.exec_driver_sql(f"DELETE FROM {table}")  # it noted that it begins when this database was made
    if kept.keys() <= there:  # else the backup is of software that kept none, and it begins now
        for table, names in kept.items():
            _copy_table(source, target, table, names)
        target.exec_driver_sql(history.AFTER_COPY)
    for table in columns | kept:
        target.exec_driver_sql(f"ALTER TABLE {table} ENABLE TRIGGER USER")
    text_index.forget(target)
    prepare(target)
    target.exec_driver_sql(f"ANALYZE {', '.join(columns)}")


def _refuse_used_database(target: Any, owner_username: str) -> None:
    others = target.execute(text("SELECT count(*) FROM users WHERE username <> :name"), {"name": owner_username})
    found = {"users beside the owner": others.scalar_one()}
    for table in ("workspaces", "webhooks"):
        found[table] = target.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()
    if any(found.values()):
        counts = ", ".join(f"{what}: {count}" for what, count in found.items() if count)
        raise OutputError(
            f"The database is in use already ({counts}), and nothing in it is overwritten. Restore into a stack that "
            "is new; this one's volumes go with `docker compose -f docker/compose.yaml down --volumes`, and all "
            "answers in them."
        )


def _copy_table(source: sqlite3.Connection, target: Any, table: str, columns: tuple[str, ...]) -> None:
    import psycopg2

    named = ", ".join(f'"{column}"' for column in columns)
    copied = said = 0
    with target.connection.cursor() as cursor:
        for batch in _batches(source.execute(f"SELECT rowid, {named} FROM {table}")):
            try:
                cursor.copy_expert(f"COPY {table} ({named}) FROM STDIN", StringIO("\n".join(batch.values()) + "\n"))
            except psycopg2.Error as error:
                raise _copy_error(error, source, table, list(batch)) from error
            copied += len(batch)
            if copied - said >= 20_000:
                sys.stderr.write(f"{table}: {copied:,} so far\n")
                said = copied
    sys.stderr.write(f"{table}: {copied:,}\n")


def _batches(rows: Iterable[tuple[Any, ...]]) -> Iterator[dict[int, str]]:
    """What `COPY` reads, by the `rowid` that comes first in a row, in batches of some megabytes or of one row."""
    batch: dict[int, str] = {}
    size = 0
    for rowid, *values in rows:
        line = "\t".join(r"\N" if value is None else str(value).translate(_ESCAPES) for value in values)
        if batch and size + len(line) > 4 << 20:  # a record may be any size, so its text is measured
            yield batch
            batch, size = {}, 0
        batch[rowid] = line
        size += len(line)
    if batch:
        yield batch


def _copy_error(error: Any, source: sqlite3.Connection, table: str, rowids: list[int]) -> CitejuryError:
    reason = _reason_of(error)
    match = re.search(r"^COPY \w+, line (\d+)(?:, column (\w+))?", error.diag.context or "", re.MULTILINE)
    # https://www.postgresql.org/docs/15/errcodes-appendix.html: data, integrity, limits
    if match is None or (error.pgcode or "")[:2] not in ("22", "23", "54"):
        return ServerStartError(f"PostgreSQL stopped in the middle of `{table}`: {reason}. Nothing of it was kept.")
    column = f", `{match[2]}`" if match[2] else ""
    return InputError(
        f"PostgreSQL cannot keep {_row_name(source, table, rowids[int(match[1]) - 1])} (table `{table}`{column}): "
        f"{reason}. It knows no NaN, no infinite number and no NUL character, which SQLite takes. Correct it on the "
        "old server, make the backup again, and restore that; nothing of this one was kept."
    )


def _reason_of(error: Any) -> str:
    """What PostgreSQL says of an error, without the values that it is about."""
    return error.diag.message_primary or "the connection was lost"


def _row_name(source: sqlite3.Connection, table: str, rowid: int) -> str:
    columns = {each[1] for each in source.execute(f"PRAGMA table_info({table})")}
    if table == "records" or "record_id" in columns:
        reference = "id" if table == "records" else "record_id"
        found = source.execute(
            "SELECT coalesce(external_id, records.id), datasets.name FROM records "
            f"JOIN datasets ON datasets.id = dataset_id WHERE records.id = (SELECT {reference} FROM {table} "
            "WHERE rowid = ?)",
            (rowid,),
        ).fetchone()
        if found is not None:  # the history knows records that are gone
            return f"what belongs to the record {_quoted(found[0])} of the dataset {_quoted(found[1])}"
    name = next((each for each in ("username", "name") if each in columns), "rowid")
    (found,) = source.execute(f"SELECT {name} FROM {table} WHERE rowid = ?", (rowid,)).fetchone()
    return f"the row of {_quoted(str(found))}"


def _quoted(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:80] + "…")
