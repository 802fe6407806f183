"""The history of every response, in Argilla's own database: a change goes in, and nothing that is in it changes.

Triggers add a row in the change's own transaction, and let nobody change it. They fire for whatever changes a response,
cascades and other programs included. A record or dataset that is deleted leaves behind what it was. Rows hold ids of
users and no names, so that whoever is forgotten is so here too. A row goes only with its whole dataset, once that is
gone and `citejury_history_erased` says who wanted it.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from argilla_server.models import Dataset, Record, Response, Workspace
from sqlalchemy.ext.asyncio import AsyncSession

from annotation.server.sql import read_sql, run_sql

_history_metadata = sa.MetaData()

CHANGES = sa.Table(
    "citejury_history",
    _history_metadata,
    # In order of the changes of one response.
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), sa.Identity(), primary_key=True),
    sa.Column("at", sa.DateTime, nullable=False),
    sa.Column("action", sa.String, nullable=False),  # insert, update, delete; `begin` in the first row, no change
    sa.Column("response_id", sa.Uuid),
    sa.Column("record_id", sa.Uuid),
    sa.Column("user_id", sa.Uuid),
    sa.Column("inserted_at", sa.DateTime),  # the response's own
    sa.Column("status_before", sa.String),  # these three are NULL before an insert and after a delete
    sa.Column("values_before", sa.Text),  # as Argilla writes them
    sa.Column("updated_before", sa.DateTime),
    sa.Column("status_after", sa.String),
    sa.Column("values_after", sa.Text),
    sa.Column("updated_after", sa.DateTime),
)
DELETED_RECORDS = sa.Table(
    "citejury_history_records",
    _history_metadata,
    sa.Column("record_id", sa.Uuid, primary_key=True),
    sa.Column("dataset_id", sa.Uuid, nullable=False),
    sa.Column("external_id", sa.String),
)
DELETED_DATASETS = sa.Table(
    "citejury_history_datasets",
    _history_metadata,
    sa.Column("dataset_id", sa.Uuid, primary_key=True),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("workspace_id", sa.Uuid, nullable=False),
    sa.Column("workspace", sa.String),
    sa.Column("metadata", sa.Text),
)
ERASED = sa.Table(
    "citejury_history_erased",
    _history_metadata,
    sa.Column("dataset_id", sa.Uuid, primary_key=True),
    sa.Column("at", sa.DateTime, nullable=False),
    sa.Column("user_id", sa.Uuid),  # who wanted it
)
TABLES = (CHANGES, DELETED_RECORDS, DELETED_DATASETS, ERASED)  # all of them, for whoever moves them

AFTER_COPY = "SELECT setval(pg_get_serial_sequence('citejury_history', 'id'), max(id)) FROM citejury_history"
"""What PostgreSQL needs after rows have come with their numbers."""


def prepare(connection: sa.Connection) -> None:
    _history_metadata.create_all(connection)
    run_sql(connection, __file__)


_DATASET = sa.func.coalesce(Record.dataset_id, DELETED_RECORDS.c.dataset_id)
_CHANGES_WITH_RECORDS = CHANGES.outerjoin(Record, Record.id == CHANGES.c.record_id).outerjoin(
    DELETED_RECORDS, DELETED_RECORDS.c.record_id == CHANGES.c.record_id
)


async def _read_begin(db: AsyncSession) -> datetime:
    first = (
        sa.select(CHANGES.c.at).where(CHANGES.c.action == "begin").order_by(CHANGES.c.id).limit(1)
    )  # else all are read
    began: datetime = (await db.execute(first)).scalar_one()
    return began


async def find_workspace(db: AsyncSession, name: str) -> UUID | None:
    found: UUID | None = await db.scalar(sa.select(Workspace.id).where(Workspace.name == name))
    gone = sa.select(DELETED_DATASETS.c.workspace_id).where(DELETED_DATASETS.c.workspace == name)
    return found if found is not None else await db.scalar(gone)


def _datasets_of(workspace_id: UUID) -> Any:
    return sa.union_all(
        sa.select(Dataset.id).where(Dataset.workspace_id == workspace_id),
        sa.select(DELETED_DATASETS.c.dataset_id).where(DELETED_DATASETS.c.workspace_id == workspace_id),
    )


async def responses_of(db: AsyncSession, record_ids: Sequence[UUID]) -> dict[str, list[str]]:
    now = Response
    columns = (now.id, now.values, now.status, now.record_id, now.user_id)
    found = sa.select(*(sa.cast(each, sa.String) for each in columns), now.inserted_at, now.updated_at)
    found = found.where(now.record_id.in_(record_ids)).order_by(now.inserted_at)
    rows: Sequence[Any] = (await db.execute(found)).all()
    by_record: defaultdict[str, list[str]] = defaultdict(list)
    for response_id, values, status, record_id, user_id, inserted_at, updated_at in rows:
        by_record[key := hyphenated(record_id)].append(
            f'{{"id":"{hyphenated(response_id)}","values":{values or "null"},"status":"{status}",'
            f'"record_id":"{key}","user_id":"{hyphenated(user_id)}",'
            f'"inserted_at":"{inserted_at.isoformat()}","updated_at":"{updated_at.isoformat()}"}}'
        )
    return by_record


def hyphenated(stored: str) -> str:
    """An id as it is written; SQLite keeps its 32 digits only. `UUID` would take five times as long."""
    if "-" in stored:
        return stored
    return f"{stored[:8]}-{stored[8:12]}-{stored[12:16]}-{stored[16:20]}-{stored[20:]}"


async def changes_page(db: AsyncSession, workspace_id: UUID, after: int, limit: int) -> str:
    """`total` counts all, in the first page only; `next` is the `after` of the next page; `datasets` are by id."""
    is_of = _DATASET.in_(_datasets_of(workspace_id))
    unit = sa.literal_column(read_sql(__file__, db.get_bind().dialect.name)["unit_of_record"], sa.String)
    named = sa.func.coalesce(unit, DELETED_RECORDS.c.external_id).label("external_id")
    wanted = sa.select(CHANGES, _DATASET.label("dataset_id"), named).select_from(_CHANGES_WITH_RECORDS)
    in_order = wanted.where(CHANGES.c.id > after, is_of).order_by(CHANGES.c.id).limit(limit)
    rows = (await db.execute(in_order)).all()
    total = None
    if not after:
        total = await db.scalar(sa.select(sa.func.count()).select_from(_CHANGES_WITH_RECORDS).where(is_of))
    items = ",".join(
        f'{{"id":{row.id},"at":"{_written(row.at)}","action":"{row.action}","dataset_id":"{row.dataset_id}",'
        f'"record_id":"{row.record_id}","external_id":{json.dumps(row.external_id)},'
        f'"response_id":"{row.response_id}","user_id":"{row.user_id}",'
        f'"status_before":{json.dumps(row.status_before)},"values_before":{row.values_before or "null"},'
        f'"status_after":{json.dumps(row.status_after)},"values_after":{row.values_after or "null"}}}'
        for row in rows
    )
    page = {
        "begins": _written(await _read_begin(db)),
        "total": total,
        "datasets": await _described(db, {row.dataset_id for row in rows}),
        "next": rows[-1].id if len(rows) == limit else None,
    }
    return f'{json.dumps(page)[:-1]}, "items": [{items}]}}'


async def _described(db: AsyncSession, dataset_ids: Collection[UUID]) -> dict[str, dict[str, Any]]:
    there = sa.select(Dataset.id, Dataset.name, Workspace.name, sa.cast(Dataset.metadata_, sa.String)).join(Workspace)
    kept = DELETED_DATASETS.c
    gone = sa.select(kept.dataset_id, kept.name, kept.workspace, kept.metadata)
    found = {}
    for rows, column, is_gone in ((there, Dataset.id, False), (gone, kept.dataset_id, True)):
        for dataset_id, name, workspace, text in (await db.execute(rows.where(column.in_(dataset_ids)))).tuples():
            metadata = None if text is None else json.loads(text)
            found[str(dataset_id)] = {"name": name, "workspace": workspace, "metadata": metadata, "is_gone": is_gone}
    return found


async def erase(db: AsyncSession, dataset_id: UUID, user_id: UUID) -> None:
    """Without a commit; that it was removed, when and by whom stays."""
    if not await db.scalar(sa.select(sa.exists().where(ERASED.c.dataset_id == dataset_id))):
        moment = datetime.now(UTC).replace(tzinfo=None)
        await db.execute(sa.insert(ERASED).values(dataset_id=dataset_id, at=moment, user_id=user_id))
    records = sa.select(DELETED_RECORDS.c.record_id).where(DELETED_RECORDS.c.dataset_id == dataset_id)
    await db.execute(sa.delete(CHANGES).where(CHANGES.c.record_id.in_(records)))
    for table in (DELETED_RECORDS, DELETED_DATASETS):
        await db.execute(sa.delete(table).where(table.c.dataset_id == dataset_id))


async def deleted_datasets(db: AsyncSession, workspace_id: UUID) -> dict[UUID, str]:
    kept = DELETED_DATASETS.c
    gone = sa.select(kept.dataset_id, kept.name).where(kept.workspace_id == workspace_id)
    return {dataset_id: name for dataset_id, name in (await db.execute(gone)).tuples()}


def _written(moment: datetime) -> str:
    return moment.replace(tzinfo=UTC).isoformat()
