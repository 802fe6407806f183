"""The history of every response, in Argilla's own database: a change goes in, and nothing that is in it changes.

Triggers add a row in the change's own transaction, and let nobody change it. They fire for whatever changes a response,
cascades and other programs included, and are in plain SQL. A record or dataset that is deleted leaves behind what it
was. Rows hold ids of users and no names, so that whoever is forgotten is so here too. A row goes only with its whole
dataset, once that is gone and `citejury_history_erased` says who wanted it.

Below the tables: the changes page by page, and responses as they were at an earlier moment.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from argilla_server.models import Dataset, Record, Response, Workspace
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    DateTime,
    MetaData,
    String,
    Table,
    Text,
    Uuid,
    cast,
    delete,
    exists,
    func,
    insert,
    select,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncSession

from annotation.server.queue.tables import NOW, UUID_COLUMN

_history_metadata = MetaData()

CHANGES = Table(
    "citejury_history",
    _history_metadata,
    Column("id", BigInteger, primary_key=True),  # in order of the changes of one response
    Column("at", DateTime, nullable=False),
    Column("action", String, nullable=False),  # insert, update, delete; `begin` in the first row, which is no change
    Column("response_id", Uuid),
    Column("record_id", Uuid),
    Column("user_id", Uuid),
    Column("inserted_at", DateTime),  # the response's own
    Column("status_before", String),  # these three are NULL before an insert and after a delete
    Column("values_before", Text),  # as Argilla writes them
    Column("updated_before", DateTime),
    Column("status_after", String),
    Column("values_after", Text),
    Column("updated_after", DateTime),
)
DELETED_RECORDS = Table(
    "citejury_history_records",
    _history_metadata,
    Column("record_id", Uuid, primary_key=True),
    Column("dataset_id", Uuid, nullable=False),
    Column("external_id", String),
)
DELETED_DATASETS = Table(
    "citejury_history_datasets",
    _history_metadata,
    Column("dataset_id", Uuid, primary_key=True),
    Column("name", String, nullable=False),
    Column("workspace_id", Uuid, nullable=False),
    Column("workspace", String),
    Column("metadata", Text),
)
ERASED = Table(
    "citejury_history_erased",
    _history_metadata,
    Column("dataset_id", Uuid, primary_key=True),
    Column("at", DateTime, nullable=False),
    Column("user_id", Uuid),  # who wanted it
)
TABLES = (CHANGES, DELETED_RECORDS, DELETED_DATASETS, ERASED)  # all of them, for whoever moves them

AFTER_COPY = "SELECT setval(pg_get_serial_sequence('citejury_history', 'id'), max(id)) FROM citejury_history"
"""What PostgreSQL needs after rows have come with their numbers."""

_CREATED = (
    "CREATE TABLE IF NOT EXISTS citejury_history (id {id} PRIMARY KEY, at {time} NOT NULL, action VARCHAR NOT NULL, "
    "response_id {uuid}, record_id {uuid}, user_id {uuid}, inserted_at {time}, status_before VARCHAR, "
    "values_before TEXT, updated_before {time}, status_after VARCHAR, values_after TEXT, updated_after {time})",
    "CREATE INDEX IF NOT EXISTS citejury_history_of_record ON citejury_history (record_id)",
    "CREATE TABLE IF NOT EXISTS citejury_history_records (record_id {uuid} PRIMARY KEY, dataset_id {uuid} NOT NULL, "
    "external_id VARCHAR)",
    "CREATE TABLE IF NOT EXISTS citejury_history_datasets (dataset_id {uuid} PRIMARY KEY, name VARCHAR NOT NULL, "
    "workspace_id {uuid} NOT NULL, workspace VARCHAR, metadata TEXT)",
    "CREATE TABLE IF NOT EXISTS citejury_history_erased (dataset_id {uuid} PRIMARY KEY, at {time} NOT NULL, "
    "user_id {uuid})",
)
_BEFORE, _AFTER = (f"status_{side}, values_{side}, updated_{side}" for side in ("before", "after"))

_REFUSAL = "citejury: the history of responses is only added to"
# Recorded before the cascade, which leaves no trace of what its rows belonged to. Looked for first, because SQLite's
# guard against REPLACE refuses what is there already; a conflict is left to PostgreSQL, where two may delete at once.
_KEPT = {
    "records": (
        "INSERT INTO citejury_history_records (record_id, dataset_id, external_id) "
        "SELECT OLD.id, OLD.dataset_id, OLD.external_id "
        "WHERE (EXISTS (SELECT 1 FROM citejury_history WHERE record_id = OLD.id) "
        "OR EXISTS (SELECT 1 FROM responses WHERE record_id = OLD.id)) "
        "AND NOT EXISTS (SELECT 1 FROM citejury_history_records WHERE record_id = OLD.id) "
        "ON CONFLICT (record_id) DO NOTHING"
    ),
    "datasets": (
        "INSERT INTO citejury_history_datasets (dataset_id, name, workspace_id, workspace, metadata) "
        "SELECT OLD.id, OLD.name, OLD.workspace_id, (SELECT name FROM workspaces WHERE id = OLD.workspace_id), "
        "CAST(OLD.metadata AS VARCHAR) "
        "WHERE NOT EXISTS (SELECT 1 FROM citejury_history_datasets WHERE dataset_id = OLD.id) "
        "ON CONFLICT (dataset_id) DO NOTHING"
    ),
    "workspaces": (
        "INSERT INTO citejury_history_datasets (dataset_id, name, workspace_id, workspace, metadata) "
        "SELECT id, name, workspace_id, OLD.name, CAST(metadata AS VARCHAR) FROM datasets "
        "WHERE workspace_id = OLD.id "
        "AND NOT EXISTS (SELECT 1 FROM citejury_history_datasets WHERE dataset_id = datasets.id) "
        "ON CONFLICT (dataset_id) DO NOTHING"
    ),
}
_OF_ERASED = "SELECT 1 FROM citejury_history_erased WHERE dataset_id = OLD.dataset_id"
_IS_ERASED = {
    "citejury_history": (
        "SELECT 1 FROM citejury_history_records AS kept JOIN citejury_history_erased AS erased "
        "ON erased.dataset_id = kept.dataset_id WHERE kept.record_id = OLD.record_id"
    ),
    "citejury_history_records": _OF_ERASED,
    "citejury_history_datasets": _OF_ERASED,
    "citejury_history_erased": "SELECT 1 WHERE false",
}


def _added(dialect: str, event: str) -> str:
    status, answers = ("{0}.status", 'CAST({0}."values" AS VARCHAR)')
    if dialect == "postgresql":
        status, answers = "{0}.status::text", '{0}."values"::text'
    columns, rows = {
        "insert": (_AFTER, ["NEW"]),
        "update": (f"{_BEFORE}, {_AFTER}", ["OLD", "NEW"]),
        "delete": (_BEFORE, ["OLD"]),
    }[event]
    row = rows[-1]
    values = ", ".join(f"{status}, {answers}, {{0}}.updated_at".format(each) for each in rows)
    return (
        f"INSERT INTO citejury_history (at, action, response_id, record_id, user_id, inserted_at, {columns}) VALUES "
        f"({NOW[dialect]}, '{event}', {row}.id, {row}.record_id, {row}.user_id, {row}.inserted_at, {values})"
    )


def statements(dialect: str) -> list[str]:
    """The statements that create the tables where they are missing, and the triggers anew."""
    kinds = {"id": "INTEGER", "time": "DATETIME"}
    if dialect == "postgresql":
        kinds = {"id": "BIGINT GENERATED BY DEFAULT AS IDENTITY", "time": "TIMESTAMP"}
    found = [text.format(**kinds, uuid=UUID_COLUMN[dialect]) for text in _CREATED]
    for name, event, body in (_postgresql_triggers if dialect == "postgresql" else _sqlite_triggers)():
        trigger = f"citejury_history_{name}"
        if dialect == "sqlite":  # made anew, so that one of an older version never stays
            found += [f"DROP TRIGGER IF EXISTS {trigger}", f"CREATE TRIGGER {trigger} {event} BEGIN {body}; END"]
        else:
            made = f"CREATE OR REPLACE FUNCTION {trigger}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body}; END $$"
            found += [made, f"CREATE OR REPLACE TRIGGER {trigger} {event} EXECUTE FUNCTION {trigger}()"]
    return found


def _sqlite_triggers() -> Iterator[tuple[str, str, str]]:
    """Name, event and body of each trigger."""
    for event in ("insert", "update", "delete"):
        yield event, f"AFTER {event.upper()} ON responses", _added("sqlite", event)
    for table, body in _KEPT.items():
        yield f"keep_{table}", f"BEFORE DELETE ON {table}", body
    refuse = f"SELECT RAISE(ABORT, '{_REFUSAL}')"
    for table, is_erased in _IS_ERASED.items():
        name = table.removeprefix("citejury_")
        yield f"fixed_{name}", f"BEFORE UPDATE ON {table}", refuse
        yield f"kept_{name}", f"BEFORE DELETE ON {table} WHEN NOT EXISTS ({is_erased})", refuse
    for each in TABLES:  # REPLACE deletes the row that is in its way, and tells no trigger of it
        (key,) = each.primary_key.columns.keys()
        is_there = f"EXISTS (SELECT 1 FROM {each.name} WHERE {key} = NEW.{key} OR rowid = NEW.rowid)"
        name = each.name.removeprefix("citejury_")
        yield f"unreplaced_{name}", f"BEFORE INSERT ON {each.name} WHEN {is_there}", refuse
    is_alive = "EXISTS (SELECT 1 FROM datasets WHERE id = NEW.dataset_id)"
    yield "erased", f"BEFORE INSERT ON citejury_history_erased WHEN {is_alive}", refuse


def _postgresql_triggers() -> Iterator[tuple[str, str, str]]:
    """Name, event and function's body of each trigger."""
    refuse = f"RAISE EXCEPTION '{_REFUSAL}'"
    for event in ("insert", "update", "delete"):
        added = f"{_added('postgresql', event)}; RETURN NULL"
        yield event, f"AFTER {event.upper()} ON responses FOR EACH ROW", added
    for table, body in _KEPT.items():
        yield f"keep_{table}", f"BEFORE DELETE ON {table} FOR EACH ROW", f"{body}; RETURN OLD"
    for table, is_erased in _IS_ERASED.items():
        name = table.removeprefix("citejury_")
        yield f"fixed_{name}", f"BEFORE UPDATE ON {table} FOR EACH ROW", refuse
        kept = f"IF NOT EXISTS ({is_erased}) THEN {refuse}; END IF; RETURN OLD"
        yield f"kept_{name}", f"BEFORE DELETE ON {table} FOR EACH ROW", kept
        yield f"whole_{name}", f"BEFORE TRUNCATE ON {table} FOR EACH STATEMENT", refuse
    alive = "IF EXISTS (SELECT 1 FROM datasets WHERE id = NEW.dataset_id) THEN " + refuse + "; END IF; RETURN NEW"
    yield "erased", "BEFORE INSERT ON citejury_history_erased FOR EACH ROW", alive


def prepare(connection: Connection) -> None:
    """Create the tables where they are missing and the triggers anew, and note when the history begins.

    What was answered before has none.
    """
    dialect = connection.dialect.name
    for statement in statements(dialect):
        connection.exec_driver_sql(statement)
    connection.exec_driver_sql(
        f"INSERT INTO citejury_history (at, action) SELECT {NOW[dialect]}, 'begin' "
        "WHERE NOT EXISTS (SELECT 1 FROM citejury_history WHERE action = 'begin')"
    )


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
    gone = select(DELETED_DATASETS.c.workspace_id).where(DELETED_DATASETS.c.workspace == name)
    return found if found is not None else await db.scalar(gone)


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


async def responses_of(db: AsyncSession, record_ids: Sequence[UUID], moment: datetime | None) -> dict[str, list[str]]:
    """The responses to the records as JSON, by record, in order of arrival; empty where there are none.

    Where a moment is named, as they were then. Changes are read after the responses: what comes in between is among
    them, and is undone.
    """
    now, then = Response, CHANGES.c
    columns = (now.id, now.values, now.status, now.record_id, now.user_id)
    found = select(*(cast(each, String) for each in columns), now.inserted_at, now.updated_at)
    found = found.where(now.record_id.in_(record_ids)).order_by(now.inserted_at)
    rows: Sequence[Any] = (await db.execute(found)).all()
    if moment is not None:
        before = (then.response_id, then.values_before, then.status_before, then.record_id, then.user_id)
        first = _first_changes(then.record_id.in_(record_ids), moment)
        changes = select(*(cast(each, String) for each in before), then.inserted_at, then.updated_before)
        undone = (await db.execute(changes.where(then.id.in_(first)))).all()
        changed = {row[0] for row in undone}
        rows = [row for row in rows if row[0] not in changed] + [row for row in undone if row[2] is not None]
        rows = sorted(rows, key=lambda row: row[5])
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
            kept_metadata = None if metadata is None else json.loads(metadata)
            said = {"name": name, "workspace": workspace, "metadata": kept_metadata, "is_gone": is_gone}
            found[str(dataset_id)] = said
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
    return moment.replace(tzinfo=UTC).isoformat()
