"""What the pending queue is served from: a row for each record and one for each hold, in Argilla's own database.

Triggers keep the rows of records in step, in the transaction of whatever changes a record or a response, so that no
crash can leave them behind, and a program that writes to the database needs nothing of ours. So do others for a
record's own status: argilla-server 2.8.0 works it out after the response's commit, so that a server that ends in
between leaves a complete record pending. The rule is the server's (`argilla_server/contexts/distribution.py`), but for
records whose assignment says how many submissions they wait for; `patches` gives the server the same rule.
"""

from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession

from annotation.server.sql import run_sql

_queue_metadata = sa.MetaData()

QUEUE = sa.Table(
    "citejury_queue",
    _queue_metadata,
    sa.Column("record_id", sa.Uuid, primary_key=True),
    sa.Column("dataset_id", sa.Uuid, nullable=False),
    sa.Column("answer", sa.String, nullable=False),  # the record's external id up to its colon, else its own id
    sa.Column("heap", sa.SmallInteger, nullable=False),  # 0 to 255, from the answer's last two characters
    sa.Column("passage", sa.Integer, nullable=False),  # its rank; 0 for a whole answer, -1 where it is not ours
    sa.Column("lacking", sa.Integer, nullable=False),  # submissions that it waits for; negative: too many
    sa.Column("pending", sa.SmallInteger, nullable=False),  # 1 while the record's own status is so
    sa.Column("mixed", sa.SmallInteger, nullable=False),  # 1 for what is mixed in among the others at a rate
    # What its assignment says; all NULL where it has none.
    sa.Column("assignment", sa.String),  # as JSON
    sa.Column("purpose", sa.String),
    sa.Column("needed", sa.Integer),  # NULL also where it is as many as its dataset says
    sa.Column("users", sa.String),  # as JSON; NULL also where all members get it
    sa.Column("rate", sa.Double),
)
HOLDS = sa.Table(
    "citejury_holds",
    _queue_metadata,
    sa.Column("dataset_id", sa.Uuid, primary_key=True),
    sa.Column("user_id", sa.Uuid, primary_key=True),
    sa.Column("answer", sa.String, primary_key=True),
    sa.Column("place", sa.Integer, nullable=False),  # among those that the user holds
    sa.Column("ends", sa.BigInteger, nullable=False),  # seconds since 1970, by the database's clock
)


async def upsert(db: AsyncSession, table: sa.Table, rows: Any, changed: dict[str, Any]) -> None:
    insert: Any = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}[db.get_bind().dialect.name]
    added = insert(table).values(rows)
    await db.execute(added.on_conflict_do_update(index_elements=list(table.primary_key), set_=changed))


def assignments_in(dataset_id: UUID, among: sa.Select[tuple[UUID]]) -> sa.Select[tuple[UUID, str]]:
    here = (QUEUE.c.dataset_id == dataset_id, QUEUE.c.assignment.is_not(None), QUEUE.c.record_id.in_(among))
    return sa.select(QUEUE.c.record_id, QUEUE.c.assignment).where(*here)


def prepare(connection: sa.Connection) -> None:
    """A queue of earlier software, which has other columns, is made anew from Argilla's own tables."""
    known = sa.inspect(connection)
    if known.has_table(QUEUE.name) and {each["name"] for each in known.get_columns(QUEUE.name)} != set(QUEUE.c.keys()):
        connection.exec_driver_sql(f"DROP TABLE {QUEUE.name}")
    _queue_metadata.create_all(connection)
    run_sql(connection, __file__)
