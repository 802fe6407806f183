"""What we add to Argilla's database, SQLite or PostgreSQL: indexes, and tables that triggers keep in step with its own.

All of it can be made again from Argilla's tables, and is looked at each start.
"""

from sqlalchemy import Connection, text

from annotation.embedded.engines import indexes
from annotation.embedded.queue import record_status
from annotation.embedded.queue import tables as queue_tables
from annotation.embedded.search import json_sql, text_index

LOCK = 0x63697465  # any number; several web processes of ours may start at once on PostgreSQL

PARTS = (indexes, json_sql, text_index, record_status, queue_tables)


def prepare(connection: Connection) -> None:
    """Create what is missing, in the connection's transaction, which the caller commits."""
    dialect = connection.dialect.name
    if dialect == "postgresql":
        wait_for_others(connection)
    for part in PARTS:
        for statement in part.statements(dialect):
            connection.exec_driver_sql(statement)
        if hasattr(part, "fill"):
            part.fill(connection)


def wait_for_others(connection: Connection) -> None:
    """Return once no other process prepares the PostgreSQL database; none does until the transaction ends."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})


def register_engine() -> None:
    """Make argilla-server know the engine that `ARGILLA_SEARCH_ENGINE` names as ours.

    Everything that looks up the engine must have called this: the server, its worker, and what fills an index.
    """
    from argilla_server.settings import settings

    import annotation.embedded.engines.search  # noqa: F401  # also teaches the database's connections what triggers call

    if settings.search_engine_is_opensearch:
        import annotation.embedded.engines.open_search  # noqa: F401
