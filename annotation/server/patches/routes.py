"""Our routes before argilla-server's own, for owners, admins and their programs: records, who answered what, history.

They are for those who may read a dataset's records with all responses: owners, and admins of the workspace; to erase
history, for owners. A page, and the rows of answers, are written straight from the tables.
"""

import json
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from argilla_server.api.handlers.v1.datasets import records as stock
from argilla_server.api.policies.v1 import DatasetPolicy, WorkspacePolicy, authorize
from argilla_server.api.routes import api_v1
from argilla_server.api.schemas.v1.records import RecordIncludeParam, Records
from argilla_server.database import get_async_db
from argilla_server.enums import RecordInclude
from argilla_server.errors import ForbiddenOperationError
from argilla_server.models import Dataset, Record, User
from argilla_server.models import Response as Answer
from argilla_server.search_engine import SearchEngine, get_search_engine
from argilla_server.security import auth
from fastapi import Depends, HTTPException, Query, Security
from fastapi.responses import Response
from sqlalchemy import String, cast, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from annotation.argilla import units
from annotation.server.patches import history
from annotation.server.patches.events import tell_erased
from annotation.server.patches.history import hyphenated
from annotation.server.queue.tables import assignments_in

Database = Annotated[AsyncSession, Depends(get_async_db)]
Engine = Annotated[SearchEngine, Depends(get_search_engine)]
Asking = Annotated[User, Security(auth.get_current_user)]  # whoever sends the request, logged in

_MODEL = re.compile(r'"model_name": ?("(?:[^"\\]|\\.)*")')  # Within a text its quotation marks are escaped
_UNREACHED = re.compile(r'"sources": ?\{[^{}]*"unreached": ?(\d+)')
_PAGE_CHANGES = 500  # more would keep whoever works at the moment waiting
_ODD_JSON = {
    "NaN": re.compile(r"[\[:,] ?NaN"),
    "Infinity": re.compile(r"[\[:,] ?-?Infinity"),
    "\\ud": re.compile(r"\\ud(?:[89ab]..(?!\\ud[c-f])|(?<!\\ud[89ab]..\\ud)[c-f])"),
}
"""What Python writes and no other reader of JSON takes: numbers that are none, and halves of a character.

Each after what is found quickly, and in texts it may mean nothing; a page that it is in by chance only takes longer.
"""


def serve_first(path: str, endpoint: Callable[..., Any], method: str = "GET", **options: Any) -> None:
    api_v1.api_route(path, methods=[method], **options)(endpoint)
    api_v1.router.routes.insert(0, api_v1.router.routes.pop())


def serve_record_pages(list_dataset_records: Any) -> None:
    """Written from the database's own text, but for vectors, suggestions and texts that are no JSON."""

    async def list_record_page(
        dataset_id: UUID,
        db: Database,
        current_user: Asking,
        include: Annotated[RecordIncludeParam | None, Depends(stock.parse_record_include_param)],
        offset: int = 0,
        limit: int = Query(
            default=stock.LIST_DATASET_RECORDS_LIMIT_DEFAULT, ge=1, le=stock.LIST_DATASET_RECORDS_LIMIT_LE
        ),
    ) -> Any:
        await _check_may_read(dataset_id, db, current_user)
        wanted = set(include.relationships or ()) if include else set()
        if not (include and include.vectors) and wanted <= {RecordInclude.responses}:
            page = await _record_page(db, dataset_id, offset, limit, with_responses=bool(wanted))
            if not any(mark in page and odd.search(page) for mark, odd in _ODD_JSON.items()):
                return Response(page, media_type="application/json")
        return await list_dataset_records(
            db=db, dataset_id=dataset_id, include=include, offset=offset, limit=limit, current_user=current_user
        )

    path = "/datasets/{dataset_id}/records"
    serve_first(path, list_record_page, response_model=Records, response_model_exclude_unset=True)


async def _check_may_read(dataset_id: UUID, db: Any, user: Any) -> None:
    dataset = await Dataset.get_or_raise(db, dataset_id)
    await authorize(user, DatasetPolicy.list_records_with_all_responses(dataset))


def serve_status_rows(_: Any) -> None:
    _serve_pages(units.ROWS_PATH, _rows_page)


def _serve_pages(path: str, page_of: Callable[..., Awaitable[str]]) -> None:
    """Serve pages of records, each from the `next` of the one before on; `page_of` gives one as JSON."""

    async def list_page(
        dataset_id: UUID,
        db: Database,
        current_user: Asking,
        after: str | None = None,
        limit: int = Query(default=units.PAGE_RECORDS, ge=1, le=units.PAGE_RECORDS),
    ) -> Any:
        await _check_may_read(dataset_id, db, current_user)
        try:
            place = _read_cursor(after) if after else None
        except ValueError as error:
            raise HTTPException(422, "`after` is not the `next` of a page.") from error
        return Response(await page_of(db, dataset_id, place, limit), media_type="application/json")

    serve_first(path, list_page, response_class=Response)


def serve_changes(_: Any) -> None:
    async def list_named_records(dataset_id: UUID, ids: str, db: Database, current_user: Asking) -> Any:
        await _check_may_read(dataset_id, db, current_user)
        try:
            named = [UUID(record_id) for record_id in ids.split(",")]
        except ValueError as error:
            raise HTTPException(422, "`ids` are not ids of records.") from error
        if len(named) > 100:
            raise HTTPException(422, "`ids` are more than 100.")
        items = await _record_items(db, dataset_id, named, with_responses=True)
        return Response(f'{{"items":[{items}]}}', media_type="application/json")

    _serve_pages(units.STATES_PATH, _states_page)
    serve_first(units.CHANGED_PATH, list_named_records, response_class=Response)


def serve_history(_: Any) -> None:
    async def list_changes(
        workspace: str,
        db: Database,
        current_user: Asking,
        after: int = Query(default=0, ge=0, lt=1 << 63),
        limit: int = Query(default=_PAGE_CHANGES, ge=1, le=_PAGE_CHANGES),
    ) -> Any:
        workspace_id = await _named_workspace(db, workspace, current_user)
        page = await history.changes_page(db, workspace_id, after, limit)
        return Response(page, media_type="application/json")

    async def erase_history(workspace: str, db: Database, current_user: Asking, dataset_id: UUID | None = None) -> Any:
        workspace_id = await _named_workspace(db, workspace, current_user)
        await authorize(current_user, WorkspacePolicy.delete)
        deleted = await history.deleted_datasets(db, workspace_id)
        if dataset_id is not None and dataset_id not in deleted:
            raise HTTPException(404, "No such dataset was deleted there, or its history is gone.")
        erased = deleted if dataset_id is None else {dataset_id: deleted[dataset_id]}
        for each in erased:
            await history.erase(db, each, current_user.id)
        await db.commit()
        tell_erased(erased.values())
        return Response(status_code=204)

    serve_first(units.HISTORY_PATH, list_changes, response_class=Response)
    serve_first(units.HISTORY_PATH, erase_history, "DELETE", response_class=Response)


async def _named_workspace(db: Any, name: str, user: Any) -> UUID:
    if user.is_annotator:
        raise ForbiddenOperationError
    found = await history.find_workspace(db, name)
    if found is None:
        if not user.is_owner:
            raise ForbiddenOperationError
        raise HTTPException(404, "There is no such workspace, and no history of one.")
    await authorize(user, DatasetPolicy.create(found))
    return found


async def _record_page(db: Any, dataset_id: UUID, offset: int, limit: int, *, with_responses: bool) -> str:
    """Rows before the page are counted in the index alone, so that its records are the only ones that are read."""
    of_dataset = select(Record.id).where(Record.dataset_id == dataset_id).order_by(Record.inserted_at, Record.id)
    on_page = of_dataset.offset(offset).limit(limit).subquery()
    items = await _record_items(db, dataset_id, select(on_page.c.id), with_responses=with_responses)
    total = await db.scalar(select(func.count(Record.id)).where(Record.dataset_id == dataset_id))
    return f'{{"items":[{items}],"total":{total}}}'


async def _record_items(db: Any, dataset_id: UUID, named: Any, *, with_responses: bool) -> str:
    texts = (cast(Record.fields, String), cast(Record.metadata_, String))
    columns = (Record.id, Record.status, *texts, Record.external_id, Record.inserted_at, Record.updated_at)
    found = select(*columns).where(Record.dataset_id == dataset_id, Record.id.in_(named))
    rows = (await db.execute(found.order_by(Record.inserted_at, Record.id))).all()
    ids = [row.id for row in rows]
    answers = await history.responses_of(db, ids) if with_responses else None
    items = []
    for record_id, status, fields, metadata, external_id, inserted_at, updated_at in rows:
        key = str(record_id)
        lists = f'"responses":[{",".join(answers[key])}],' if answers is not None else ""
        items.append(
            f'{{"id":"{key}","status":"{status}","fields":{fields},"metadata":{metadata or "null"},'
            f'"external_id":{json.dumps(external_id)},{lists}"dataset_id":"{dataset_id}",'
            f'"inserted_at":"{inserted_at.isoformat()}","updated_at":"{updated_at.isoformat()}"}}'
        )
    return ",".join(items)


async def _states_page(db: Any, dataset_id: UUID, after: tuple[datetime, UUID] | None, limit: int) -> str:
    place = tuple_(Record.inserted_at, Record.id)
    here = [Record.dataset_id == dataset_id, *([place > after] if after else [])]
    wanted = select(Record.id, Record.status, Record.inserted_at, Record.updated_at).where(*here)
    records = (await db.execute(wanted.order_by(Record.inserted_at, Record.id).limit(limit))).all()
    if not records:
        return '{"assignments":{},"items":[],"next":null}'
    last = records[-1]
    ids = (cast(each, String) for each in (Answer.id, Answer.record_id, Answer.user_id))
    answers = select(*ids, Answer.status, Answer.updated_at).join(Record, Record.id == Answer.record_id)
    of_page = answers.where(*here, place <= (last.inserted_at, last.id))
    by_record: defaultdict[str, list[str]] = defaultdict(list)
    for response_id, record_id, user_id, status, updated_at in await db.execute(of_page):
        by_record[hyphenated(record_id)].append(
            f'{{"id":"{hyphenated(response_id)}","user_id":"{hyphenated(user_id)}","status":"{status}",'
            f'"updated_at":"{updated_at.isoformat()}"}}'
        )
    items = [
        f'{{"id":"{key}","status":"{status}","updated_at":"{updated_at.isoformat()}",'
        f'"responses":[{",".join(by_record[key])}]}}'
        for record_id, status, _, updated_at in records
        for key in [str(record_id)]
    ]
    page_ids = select(Record.id).where(*here, place <= (last.inserted_at, last.id))
    assigned = await _assigned(db, dataset_id, page_ids)
    following = json.dumps(f"{last.inserted_at.isoformat()}_{last.id}" if len(records) == limit else None)
    return f'{{"assignments":{assigned},"items":[{",".join(items)}],"next":{following}}}'


async def _assigned(db: Any, dataset_id: UUID, record_ids: Any) -> str:
    assignments = (await db.execute(assignments_in(dataset_id, record_ids))).tuples()
    return "{" + ",".join(f'"{record_id}":{said}' for record_id, said in assignments) + "}"


async def _rows_page(db: Any, dataset_id: UUID, after: tuple[datetime, UUID] | None, limit: int) -> str:
    """A page of the dataset's records in order of arrival as JSON; `next` is the cursor of the next page.

    `items` are lists: id, external id, whether it is pending, and responses, each a list as well: the number of its
    user in `users`, its status, when it was changed last, whether it is as it was first sent, and the number of what it
    says in `values`, of which there are few. `assignments` are by record id, and so are `models`, who wrote the
    answers, where somebody responded, and `unreached`, of how many sources no page could be reached.
    `annotation.argilla.units` reads them.
    """
    place = tuple_(Record.inserted_at, Record.id)
    here = [Record.dataset_id == dataset_id, *([place > after] if after else [])]
    as_stored = (cast(Record.id, String), Record.external_id, cast(Record.status, String))
    wanted = select(*as_stored, cast(Record.inserted_at, String)).where(*here)
    records = (await db.execute(wanted.order_by(Record.inserted_at, Record.id).limit(limit))).tuples().all()
    if not records:
        return '{"users":[],"values":[],"assignments":{},"models":{},"unreached":{},"items":[],"next":null}'
    last = datetime.fromisoformat(records[-1][3]), UUID(records[-1][0])
    columns = (Answer.record_id, Answer.user_id, Answer.status, Answer.inserted_at, Answer.updated_at, Answer.values)
    answers = select(*(cast(each, String) for each in columns)).join(Record, Record.id == Answer.record_id)
    of_page = answers.where(*here, place <= last)
    users: dict[str, int] = {}
    values: dict[str | None, int] = {}
    by_record: defaultdict[str, list[str]] = defaultdict(list)
    for record_id, user_id, status, inserted_at, updated_at, text in (await db.execute(of_page)).tuples():
        user, value = users.setdefault(user_id, len(users)), values.setdefault(text, len(values))
        # Not changed after it came; its two stamps may then be some moments apart.
        is_first = inserted_at[:19] == updated_at[:19] or (
            datetime.fromisoformat(updated_at) - datetime.fromisoformat(inserted_at) < units.AT_ONCE
        )
        by_record[record_id].append(f'[{user},"{status}","{updated_at}",{int(is_first)},{value}]')
    items = [
        # A response that came between the two queries may belong to a record that came there as well.
        f'["{hyphenated(record_id)}",{json.dumps(external_id)},{int(status == "pending")},'
        f"[{','.join(by_record.get(record_id, ()))}]]"
        for record_id, external_id, status, _ in records
    ]
    read = [units.labels_and_question(json.loads(text) if text else None) for text in values]
    page_ids = select(Record.id).where(*here, place <= last)
    assigned = await _assigned(db, dataset_id, page_ids)
    responded = Record.id.in_(select(Answer.record_id).join(Record, Record.id == Answer.record_id).where(*here))
    told = cast(Record.metadata_, String)
    kept = select(cast(Record.id, String), told).where(*here, place <= last, responded | told.contains('"unreached"'))
    written = [(each, text or "") for each, text in (await db.execute(kept)).tuples()]
    models, unreached = (
        ",".join(f'"{hyphenated(each)}":{found[1]}' for each, text in written if (found := what.search(text)))
        for what in (_MODEL, _UNREACHED)
    )
    following = json.dumps(f"{last[0].isoformat()}_{last[1]}" if len(records) == limit else None)
    return (
        f'{{"users":{json.dumps(list(map(hyphenated, users)))},"values":{json.dumps(read)},'
        f'"assignments":{assigned},"models":{{{models}}},"unreached":{{{unreached}}},"items":[{",".join(items)}],"next":{following}}}'
    )


def _read_cursor(text: str) -> tuple[datetime, UUID]:
    written, _, record_id = text.partition("_")
    moment = datetime.fromisoformat(written)
    if moment.tzinfo is not None:  # Argilla's stamps have none, and PostgreSQL compares the two kinds with an error
        raise ValueError(f"{written!r} has an offset")
    return moment, UUID(record_id)
