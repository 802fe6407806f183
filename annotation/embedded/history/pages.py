"""What the history tells: its changes page by page, and responses as they were at an earlier moment."""

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from argilla_server.models import Dataset, Record, Response, Workspace
from sqlalchemy import ColumnElement, String, cast, delete, exists, func, insert, select, union_all
from sqlalchemy.ext.asyncio import AsyncSession

from annotation.embedded.history.tables import CHANGES, DELETED_DATASETS, DELETED_RECORDS, ERASED

_DATASET = func.coalesce(Record.dataset_id, DELETED_RECORDS.c.dataset_id)
_CHANGES_WITH_RECORDS = CHANGES.outerjoin(Record, Record.id == CHANGES.c.record_id).outerjoin(
    DELETED_RECORDS, DELETED_RECORDS.c.record_id == CHANGES.c.record_id
)


async def read_begin(db: AsyncSession) -> datetime:
    """When the history begins, UTC without offset."""
    first = select(CHANGES.c.at).where(CHANGES.c.action == "begin").order_by(CHANGES.c.id).limit(1)  # else all are read
    began: datetime = (await db.execute(first)).scalar_one()
    return began


async def find_workspace(db: AsyncSession, name: str) -> UUID | None:
    """The id of the workspace of this name, also of one that is gone but had datasets; None where there was none."""
    found: UUID | None = await db.scalar(select(Workspace.id).where(Workspace.name == name))
    if found is None:
        found = await db.scalar(select(DELETED_DATASETS.c.workspace_id).where(DELETED_DATASETS.c.workspace == name))
    return found


async def count_lost(db: AsyncSession, workspace_id: UUID, moment: datetime) -> int:
    """Number of the workspace's submitted responses of the moment whose records are deleted by now."""
    gone = select(DELETED_RECORDS.c.record_id).where(DELETED_RECORDS.c.dataset_id.in_(_datasets_of(workspace_id)))
    first = _first_changes(CHANGES.c.record_id.in_(gone), moment)
    wanted = select(func.count()).select_from(CHANGES)
    return int(await db.scalar(wanted.where(CHANGES.c.id.in_(first), CHANGES.c.status_before == "submitted")) or 0)


def _datasets_of(workspace_id: UUID) -> Any:
    """Ids of the workspace's datasets, those that are gone included."""
    return union_all(
        select(Dataset.id).where(Dataset.workspace_id == workspace_id),
        select(DELETED_DATASETS.c.dataset_id).where(DELETED_DATASETS.c.workspace_id == workspace_id),
    )


def _first_changes(wanted: ColumnElement[bool], moment: datetime) -> Any:
    """Ids of the first change of each wanted response after the moment.

    The first in order, not in time: a clock that was set back must not undo a part of what came after.
    """
    later = select(func.min(CHANGES.c.id)).where(wanted, CHANGES.c.at > moment)
    return later.group_by(CHANGES.c.response_id)


async def responses_at(db: AsyncSession, record_ids: Sequence[UUID], moment: datetime) -> dict[str, list[str]]:
    """The responses to the records as they were at the moment, as JSON by record; empty where there were none.

    Changes are read after the responses: what comes in between is among them, and is undone.
    """
    columns = (
        Response.id,
        cast(Response.values, String),
        cast(Response.status, String),
        Response.record_id,
        Response.user_id,
        Response.inserted_at,
        Response.updated_at,
    )
    now = (await db.execute(select(*columns).where(Response.record_id.in_(record_ids)))).tuples().all()
    before = (
        CHANGES.c.response_id,
        CHANGES.c.values_before,
        CHANGES.c.status_before,
        CHANGES.c.record_id,
        CHANGES.c.user_id,
        CHANGES.c.inserted_at,
        CHANGES.c.updated_before,
    )
    first = _first_changes(CHANGES.c.record_id.in_(record_ids), moment)
    undone = (await db.execute(select(*before).where(CHANGES.c.id.in_(first)))).tuples().all()
    changed = {row[0] for row in undone}
    rows = [row for row in now if row[0] not in changed] + [row for row in undone if row[2] is not None]
    by_record: defaultdict[str, list[str]] = defaultdict(list)
    for response_id, values, status, record_id, user_id, inserted, updated in sorted(rows, key=lambda row: row[5]):
        by_record[str(record_id)].append(
            f'{{"id":"{response_id}","values":{values or "null"},"status":"{status}","record_id":"{record_id}",'
            f'"user_id":"{user_id}","inserted_at":"{inserted.isoformat()}","updated_at":"{updated.isoformat()}"}}'
        )
    return by_record


async def changes_page(db: AsyncSession, workspace_id: UUID, after: int, limit: int) -> str:
    """A page of the changes in the workspace from the one after `after` on, in their order, as JSON.

    `next` is the `after` of the next page, null at the end; `total` counts those from the first one on, and is null in
    later pages. `datasets` says by id what the items name.
    """
    is_of = _DATASET.in_(_datasets_of(workspace_id))
    named = func.coalesce(Record.external_id, DELETED_RECORDS.c.external_id).label("external_id")
    wanted = select(CHANGES, _DATASET.label("dataset_id"), named).select_from(_CHANGES_WITH_RECORDS)
    in_order = wanted.where(CHANGES.c.id > after, is_of).order_by(CHANGES.c.id).limit(limit)
    rows = (await db.execute(in_order)).all()
    total = None
    if not after:
        total = await db.scalar(select(func.count()).select_from(_CHANGES_WITH_RECORDS).where(is_of))
    items = ",".join(
        f'{{"id":{row.id},"at":"{_written(row.at)}","action":"{row.action}","dataset_id":"{row.dataset_id}",'
        f'"record_id":"{row.record_id}","external_id":{json.dumps(row.external_id)},'
        f'"response_id":"{row.response_id}","user_id":"{row.user_id}",'
        f'"status_before":{json.dumps(row.status_before)},"values_before":{row.values_before or "null"},'
        f'"status_after":{json.dumps(row.status_after)},"values_after":{row.values_after or "null"}}}'
        for row in rows
    )
    page = {
        "begins": _written(await read_begin(db)),
        "total": total,
        "datasets": await _described(db, {row.dataset_id for row in rows}),
        "next": rows[-1].id if len(rows) == limit else None,
    }
    return f'{json.dumps(page)[:-1]}, "items": [{items}]}}'


async def _described(db: AsyncSession, dataset_ids: Collection[UUID]) -> dict[str, dict[str, Any]]:
    """Name, workspace and metadata of each dataset by id, and whether it is gone."""
    there = select(Dataset.id, Dataset.name, Workspace.name, cast(Dataset.metadata_, String)).join(Workspace)
    kept = DELETED_DATASETS.c
    gone = select(kept.dataset_id, kept.name, kept.workspace, kept.metadata)
    found = {}
    for rows, column, is_gone in ((there, Dataset.id, False), (gone, kept.dataset_id, True)):
        for dataset_id, name, workspace, metadata in (await db.execute(rows.where(column.in_(dataset_ids)))).tuples():
            told = {
                "name": name,
                "workspace": workspace,
                "metadata": None if metadata is None else json.loads(metadata),
                "is_gone": is_gone,
            }
            found[str(dataset_id)] = told
    return found


async def erase(db: AsyncSession, dataset_id: UUID, user_id: UUID) -> None:
    """Remove the history of a dataset that is gone; that it was removed, when and by whom stays.

    Without a commit. It is done already where nothing is left.
    """
    if not await db.scalar(select(exists().where(ERASED.c.dataset_id == dataset_id))):
        moment = datetime.now(UTC).replace(tzinfo=None)
        await db.execute(insert(ERASED).values(dataset_id=dataset_id, at=moment, user_id=user_id))
    records = select(DELETED_RECORDS.c.record_id).where(DELETED_RECORDS.c.dataset_id == dataset_id)
    await db.execute(delete(CHANGES).where(CHANGES.c.record_id.in_(records)))
    for table in (DELETED_RECORDS, DELETED_DATASETS):
        await db.execute(delete(table).where(table.c.dataset_id == dataset_id))


async def deleted_datasets(db: AsyncSession, workspace_id: UUID) -> dict[UUID, str]:
    """Names by id of the workspace's datasets that were deleted and have their history still."""
    kept = DELETED_DATASETS.c
    gone = select(kept.dataset_id, kept.name).where(kept.workspace_id == workspace_id)
    return {dataset_id: name for dataset_id, name in (await db.execute(gone)).tuples()}


def _written(moment: datetime) -> str:
    """The moment as ISO 8601 with its offset."""
    return moment.replace(tzinfo=UTC).isoformat()
