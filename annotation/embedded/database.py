"""What we add to Argilla's database, SQLite or PostgreSQL: indexes, and tables that triggers keep in step with its own.

All of it is looked at each start, and can be made again from Argilla's tables, but for the history of responses.
"""

from collections.abc import Callable

from sqlalchemy import Connection, text

from annotation.embedded import epochs
from annotation.embedded.history import tables as history_tables
from annotation.embedded.queue import practice, record_status
from annotation.embedded.queue import tables as queue_tables
from annotation.embedded.search import json_sql, text_index

_LOCK = 0x63697465  # any number; several web processes of ours may start at once on PostgreSQL

# They change nothing; a migration of Argilla's that rebuilds a table drops them, and the next start makes them again.
_INDEXES = {
    # A page of GET /datasets/{id}/records, and the order of arrival.
    "citejury_records_arrival": "records (dataset_id, inserted_at, id)",
    # The pending records of a dataset: the queue, its length, progress.
    "citejury_records_status": "records (dataset_id, status, id)",
    # What a user has answered.
    "citejury_responses_own": "responses (user_id, status, record_id)",
    # Who has submitted what of one record; without it SQLite goes through all submitted responses instead.
    "citejury_responses_of_record": "responses (record_id, status)",
}
_PARTS: tuple[tuple[Callable[[str], list[str]], Callable[[Connection], None] | None], ...] = (
    (json_sql.statements, None),
    (text_index.statements, text_index.fill),
    (queue_tables.statements, queue_tables.fill),
    (record_status.statements, record_status.fill),
    (practice.statements, practice.fill),
    (epochs.statements, epochs.fill),
    (history_tables.statements, history_tables.fill),
)


def prepare(connection: Connection) -> None:
    """Create what is missing, in the connection's transaction, which the caller commits."""
    dialect = connection.dialect.name
    if dialect == "postgresql":
        wait_for_others(connection)
    for name, columns in _INDEXES.items():
        connection.exec_driver_sql(f"CREATE INDEX IF NOT EXISTS {name} ON {columns}")
    queue_tables.drop_outdated(connection)
    for statements, fill in _PARTS:
        for statement in statements(dialect):
            connection.exec_driver_sql(statement)
        if fill is not None:
            fill(connection)


def wait_for_others(connection: Connection) -> None:
    """Return once no other process prepares the PostgreSQL database; none does until the transaction ends."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
