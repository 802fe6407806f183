"""Since when a user's log-ins count: a row for everybody whose earlier ones were ended.

An epoch is a moment, so that one that is raised after an older backup was restored is no earlier one again. Log-ins say
the epoch in which they were made; who has no row is in epoch 0, as log-ins are that say none.
"""

import time
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Column, Connection, MetaData, ScalarSelect, Table, Uuid, case, select
from sqlalchemy.dialects import postgresql, sqlite

EPOCHS = Table(
    "citejury_epochs",
    MetaData(),
    Column("user_id", Uuid, primary_key=True),
    Column("epoch", BigInteger, nullable=False),  # seconds since 1970, by the server's clock
)
_TABLE = """
CREATE TABLE IF NOT EXISTS citejury_epochs (user_id {uuid} PRIMARY KEY, epoch BIGINT NOT NULL)
"""
_UUID = {"sqlite": "CHAR(32)", "postgresql": "UUID"}
_INSERT: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


def statements(dialect: str) -> list[str]:
    """The statement that creates the table where it is missing."""
    return [_TABLE.replace("{uuid}", _UUID[dialect])]


def fill(connection: Connection) -> None:
    """Keep nothing of users who are gone."""
    connection.exec_driver_sql("DELETE FROM citejury_epochs WHERE NOT EXISTS (SELECT 1 FROM users WHERE id = user_id)")


def epoch_of(user_id: Any) -> ScalarSelect[int]:
    """A user's epoch as part of a query for users, given their column `id`; NULL where nothing of hers was ended."""
    return select(EPOCHS.c.epoch).where(EPOCHS.c.user_id == user_id).correlate_except(EPOCHS).scalar_subquery()


async def raise_epoch(db: Any, user_id: UUID) -> None:
    """Begin a new epoch of the user's, later than any before, in the session's transaction."""
    now = int(time.time())
    new = _INSERT[db.bind.dialect.name](EPOCHS).values(user_id=user_id, epoch=now)
    later = case((EPOCHS.c.epoch >= now, EPOCHS.c.epoch + 1), else_=now)
    await db.execute(new.on_conflict_do_update(index_elements=[EPOCHS.c.user_id], set_={"epoch": later}))
