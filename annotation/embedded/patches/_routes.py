"""Our routes before argilla-server's own: one record, a page of records, what changed, and who answered what.

A page, and the rows of answers, are written straight from the tables; what makes them follows below the routes.
"""

import json
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from annotation.display import HIDDEN
from annotation.embedded.patches._assigned_records import told_of
from annotation.units import AT_ONCE, CHANGED_PATH, PAGE_RECORDS, ROWS_PATH, STATES_PATH, labels_and_question

_CURSOR_SEPARATOR = "_"
_MOST_NAMED = 100
_ODD_JSON = {
    "NaN": re.compile(r"[\[:,] ?NaN"),
    "Infinity": re.compile(r"[\[:,] ?-?Infinity"),
    "\\ud": re.compile(r"\\ud(?:[89ab]..(?!\\ud[c-f])|(?<!\\ud[89ab]..\\ud)[c-f])"),
}
"""What Python writes and no other reader of JSON takes: numbers that are none, and halves of a character.

Each after what is found quickly, and in texts it may mean nothing; a page that it is in by chance only takes longer.
"""


def serve_first(path: str, endpoint: Callable[..., Any], method: str = "GET", **options: Any) -> None:
    """Serve requests for the path, before any route of argilla-server's gets them."""
    from argilla_server.api.routes import api_v1

    api_v1.api_route(path, methods=[method], **options)(endpoint)
    api_v1.router.routes.insert(0, api_v1.router.routes.pop())


def serve_own_record_only(get_record: Any) -> None:
    """Give an annotator who asks for one record her own responses and the metadata shown to her.

    argilla-server returns every annotator's responses and all metadata there, though its search endpoint for annotators
    does not. What owners and admins get stays as it is. Whoever may see a record also gets its answer as its model
    wrote it, which is hidden beside the HTML that shows it, and nothing else of what is hidden.
    """
    from argilla_server.api.schemas.v1.records import Record as RecordSchema
    from argilla_server.database import get_async_db
    from argilla_server.models import MetadataProperty, User
    from argilla_server.security import auth
    from fastapi import Depends, HTTPException, Security
    from fastapi.encoders import jsonable_encoder
    from fastapi.responses import JSONResponse
    from sqlalchemy import select
    from sqlalchemy.ext.asyncio import AsyncSession

    async def get_own_record(
        record_id: UUID,
        db: AsyncSession = Depends(get_async_db),  # noqa: B008  # FastAPI's way
        current_user: User = Security(auth.get_current_user),  # noqa: B008
    ) -> Any:
        record = await get_record(db=db, record_id=record_id, current_user=current_user)
        whole = RecordSchema.model_validate(record)
        if not current_user.is_annotator:
            return JSONResponse(jsonable_encoder(whole))
        own = [response for response in whole.responses or [] if response.user_id == current_user.id]
        properties = await db.scalars(select(MetadataProperty).where(MetadataProperty.dataset_id == record.dataset_id))
        visible = {each.name for each in properties if current_user.role in each.allowed_roles}
        metadata = {name: value for name, value in (whole.metadata or {}).items() if name in visible}
        shown = {"responses": own, "metadata": metadata, **told_of(record.dataset)}
        return JSONResponse(jsonable_encoder(whole.model_copy(update=shown)))

    async def get_written_answer(
        record_id: UUID,
        db: AsyncSession = Depends(get_async_db),  # noqa: B008
        current_user: User = Security(auth.get_current_user),  # noqa: B008
    ) -> Any:
        record = RecordSchema.model_validate(await get_record(db=db, record_id=record_id, current_user=current_user))
        hidden = (record.metadata or {}).get(HIDDEN)
        originals = hidden.get("originals") if isinstance(hidden, dict) else None
        shown = (record.fields or {}).get("answer")
        answer = originals.get("answer", shown) if isinstance(originals, dict) else shown
        if not isinstance(answer, str):
            raise HTTPException(404, "This record has no answer.")
        return JSONResponse({"answer": answer})

    serve_first("/records/{record_id}/answer", get_written_answer, response_class=JSONResponse)
    # A finished response, because the schema's own validator reads database rows only.
    serve_first("/records/{record_id}", get_own_record, response_class=JSONResponse)


def serve_record_pages(list_dataset_records: Any) -> None:
    """List a dataset's records in a fraction of the time: for the same people, with the same parameters and refusals.

    argilla-server parses the JSON of each row, makes objects of it for the database and for validation, and writes JSON
    again. Here the database's own text goes into the answer, which means the same, value by value. Vectors, which
    citejury does not use, and pages with texts that are no proper JSON are left to argilla-server.
    """
    from argilla_server.api.handlers.v1.datasets import records as stock
    from argilla_server.api.policies.v1 import DatasetPolicy, authorize
    from argilla_server.api.schemas.v1.records import RecordIncludeParam, Records
    from argilla_server.database import get_async_db
    from argilla_server.enums import RecordInclude
    from argilla_server.models import Dataset, User
    from argilla_server.security import auth
    from fastapi import Depends, Query, Security
    from fastapi.responses import Response
    from sqlalchemy.ext.asyncio import AsyncSession

    async def list_record_page(
        dataset_id: UUID,
        include: RecordIncludeParam | None = Depends(stock.parse_record_include_param),  # noqa: B008  # FastAPI's way
        offset: int = 0,
        limit: int = Query(
            default=stock.LIST_DATASET_RECORDS_LIMIT_DEFAULT, ge=1, le=stock.LIST_DATASET_RECORDS_LIMIT_LE
        ),
        db: AsyncSession = Depends(get_async_db),  # noqa: B008
        current_user: User = Security(auth.get_current_user),  # noqa: B008
    ) -> Any:
        dataset = await Dataset.get_or_raise(db, dataset_id)
        await authorize(current_user, DatasetPolicy.list_records_with_all_responses(dataset))
        wanted = set(include.relationships or ()) if include else set()
        if not (include and include.vectors) and RecordInclude.vectors not in wanted:
            page = await record_page(db, dataset_id, offset, limit, wanted)
            if not any(mark in page and odd.search(page) for mark, odd in _ODD_JSON.items()):
                return Response(page, media_type="application/json")
        return await list_dataset_records(
            db=db, dataset_id=dataset_id, include=include, offset=offset, limit=limit, current_user=current_user
        )

    path = "/datasets/{dataset_id}/records"
    serve_first(path, list_record_page, response_model=Records, response_model_exclude_unset=True)


def serve_status_rows(list_records_with_all_responses: Any) -> None:
    """List who answered which record how, without any text, for `citejury annotation status`.

    argilla-server sends a record's fields and metadata with each list of its responses, which for 20,000 records are
    hundreds of megabytes. Here come ids, states, times and answers, straight from its tables, for those who may read
    them with the texts too: owners, and admins of the workspace. A stock server answers 404 there.
    """
    _serve_pages(ROWS_PATH, _rows_page, list_records_with_all_responses)


def _serve_pages(path: str, page_of: Callable[..., Awaitable[str]], list_records_with_all_responses: Any) -> None:
    """Serve pages of a dataset's records, each from the `next` of the one before on, to those who may read them all.

    `page_of` gives the page as JSON, from the database, the dataset, the place before it (None for the first) and how
    many records it has.
    """
    from argilla_server.api.policies.v1 import authorize
    from argilla_server.database import get_async_db
    from argilla_server.models import Dataset, User
    from argilla_server.security import auth
    from fastapi import Depends, HTTPException, Query, Security
    from fastapi.responses import Response
    from sqlalchemy.ext.asyncio import AsyncSession

    async def list_page(
        dataset_id: UUID,
        after: str | None = None,
        limit: int = Query(default=PAGE_RECORDS, ge=1, le=PAGE_RECORDS),
        db: AsyncSession = Depends(get_async_db),  # noqa: B008  # FastAPI's way
        current_user: User = Security(auth.get_current_user),  # noqa: B008
    ) -> Any:
        dataset = await Dataset.get_or_raise(db, dataset_id)
        await authorize(current_user, list_records_with_all_responses(dataset))
        try:
            place = _read_cursor(after) if after else None
        except ValueError as error:
            raise HTTPException(422, "`after` is not the `next` of a page.") from error
        return Response(await page_of(db, dataset_id, place, limit), media_type="application/json")

    serve_first(path, list_page, response_class=Response)


def serve_changes(list_records_with_all_responses: Any) -> None:
    """Tell what state records are in without their texts, and give some of them whole, for `exports csv --update`.

    For those who may read a dataset's records with all responses: owners, and admins of the workspace. A stock server
    answers 404 there.
    """
    from argilla_server.api.policies.v1 import authorize
    from argilla_server.database import get_async_db
    from argilla_server.models import Dataset, User
    from argilla_server.security import auth
    from fastapi import Depends, HTTPException, Security
    from fastapi.responses import Response
    from sqlalchemy.ext.asyncio import AsyncSession

    async def list_named_records(
        dataset_id: UUID,
        ids: str,
        db: AsyncSession = Depends(get_async_db),  # noqa: B008  # FastAPI's way
        current_user: User = Security(auth.get_current_user),  # noqa: B008
    ) -> Any:
        dataset = await Dataset.get_or_raise(db, dataset_id)
        await authorize(current_user, list_records_with_all_responses(dataset))
        try:
            named = [UUID(record_id) for record_id in ids.split(",")]
        except ValueError as error:
            raise HTTPException(422, "`ids` are not ids of records.") from error
        if len(named) > _MOST_NAMED:
            raise HTTPException(422, f"`ids` are more than {_MOST_NAMED}.")
        items = await _record_items(db, dataset_id, named, {"responses"})
        return Response(f'{{"items":[{items}]}}', media_type="application/json")

    _serve_pages(STATES_PATH, _states_page, list_records_with_all_responses)
    serve_first(CHANGED_PATH, list_named_records, response_class=Response)


async def record_page(
    db: Any, dataset_id: UUID, offset: int, limit: int, wanted: set[str], moment: datetime | None = None
) -> str:
    """The page as JSON: its records in order of arrival, with what is wanted of each, and the dataset's total.

    Responses are those of the moment, UTC without offset, where one is named.
    The rows before the page are counted in the index alone, so that its records are the only ones that are read.
    """
    from argilla_server.models import Record
    from sqlalchemy import func, select

    arrival = (Record.inserted_at, Record.id)
    of_dataset = select(Record.id).where(Record.dataset_id == dataset_id).order_by(*arrival)
    on_page = of_dataset.offset(offset).limit(limit).subquery()
    items = await _record_items(db, dataset_id, select(on_page.c.id), wanted, moment)
    total = await db.scalar(select(func.count(Record.id)).where(Record.dataset_id == dataset_id))
    return f'{{"items":[{items}],"total":{total}}}'


async def _record_items(db: Any, dataset_id: UUID, named: Any, wanted: set[str], moment: datetime | None = None) -> str:
    """The named records (ids, or a query for them) that the dataset holds, as JSON between commas, as they arrived."""
    from argilla_server.models import Record
    from sqlalchemy import String, cast, select

    columns = (
        Record.id,
        Record.status,
        cast(Record.fields, String),
        cast(Record.metadata_, String),
        Record.external_id,
        Record.inserted_at,
        Record.updated_at,
    )
    found = select(*columns).where(Record.dataset_id == dataset_id, Record.id.in_(named))
    rows = (await db.execute(found.order_by(Record.inserted_at, Record.id))).all()
    ids = [row.id for row in rows]
    related = [(name, await rows_of(db, ids, moment)) for name, rows_of in _RELATED.items() if name in wanted]
    items = []
    for record_id, status, fields, metadata, external_id, inserted_at, updated_at in rows:
        key = str(record_id)
        lists = "".join(f'"{name}":[{",".join(by_record[key])}],' for name, by_record in related)
        items.append(
            f'{{"id":"{key}","status":"{status}","fields":{fields},"metadata":{metadata or "null"},'
            f'"external_id":{json.dumps(external_id)},{lists}"dataset_id":"{dataset_id}",'
            f'"inserted_at":"{inserted_at.isoformat()}","updated_at":"{updated_at.isoformat()}"}}'
        )
    return ",".join(items)


async def _states_page(db: Any, dataset_id: UUID, after: tuple[datetime, UUID] | None, limit: int) -> str:
    """A page of the records in order of arrival, without texts, as JSON; `next` is the cursor of the next page."""
    from argilla_server.models import Record, Response
    from sqlalchemy import String, cast, select, tuple_

    place = tuple_(Record.inserted_at, Record.id)
    here = [Record.dataset_id == dataset_id, *([place > after] if after else [])]
    wanted = select(Record.id, Record.status, Record.inserted_at, Record.updated_at).where(*here)
    records = (await db.execute(wanted.order_by(Record.inserted_at, Record.id).limit(limit))).all()
    if not records:
        return '{"items":[],"next":null}'
    last = records[-1]
    columns = (
        cast(Response.id, String),
        cast(Response.record_id, String),
        cast(Response.user_id, String),
        Response.status,
        Response.updated_at,
    )
    answers = select(*columns).join(Record, Record.id == Response.record_id)
    of_page = answers.where(*here, place <= (last.inserted_at, last.id))
    by_record: defaultdict[str, list[str]] = defaultdict(list)
    for response_id, record_id, user_id, status, updated_at in await db.execute(of_page):
        by_record[_hyphenated(record_id)].append(
            f'{{"id":"{_hyphenated(response_id)}","user_id":"{_hyphenated(user_id)}","status":"{status}",'
            f'"updated_at":"{updated_at.isoformat()}"}}'
        )
    items = [
        f'{{"id":"{key}","status":"{status}","updated_at":"{updated_at.isoformat()}",'
        f'"responses":[{",".join(by_record[key])}]}}'
        for record_id, status, _, updated_at in records
        for key in [str(record_id)]
    ]
    following = json.dumps(_cursor(last.inserted_at, last.id) if len(records) == limit else None)
    return f'{{"items":[{",".join(items)}],"next":{following}}}'


async def _responses_of(db: Any, record_ids: Sequence[UUID], moment: datetime | None) -> dict[str, list[str]]:
    """The responses to the records as JSON, by record, in order of arrival; empty where there are none.

    Those of the moment where one is named.
    """
    from argilla_server.models import Response
    from sqlalchemy import String, cast, select

    if moment is not None:
        from annotation.embedded.history.pages import responses_at

        return await responses_at(db, record_ids, moment)
    columns = (
        cast(Response.id, String),
        cast(Response.values, String),
        Response.status,
        cast(Response.record_id, String),
        cast(Response.user_id, String),
        Response.inserted_at,
        Response.updated_at,
    )
    found = select(*columns).where(Response.record_id.in_(record_ids)).order_by(Response.inserted_at)
    by_record: defaultdict[str, list[str]] = defaultdict(list)
    for response_id, values, status, record_id, user_id, inserted_at, updated_at in await db.execute(found):
        key = _hyphenated(record_id)
        by_record[key].append(
            f'{{"id":"{_hyphenated(response_id)}","values":{values or "null"},"status":"{status}",'
            f'"record_id":"{key}","user_id":"{_hyphenated(user_id)}",'
            f'"inserted_at":"{inserted_at.isoformat()}","updated_at":"{updated_at.isoformat()}"}}'
        )
    return by_record


async def _suggestions_of(db: Any, record_ids: Sequence[UUID], _: datetime | None) -> dict[str, list[str]]:
    """The suggestions for the records as JSON, by record, in order of arrival; empty where there are none."""
    from argilla_server.models import Suggestion
    from sqlalchemy import select

    found = select(Suggestion.__table__).where(Suggestion.record_id.in_(record_ids)).order_by(Suggestion.inserted_at)
    by_record: defaultdict[str, list[str]] = defaultdict(list)
    for row in await db.execute(found):
        suggestion = {
            "question_id": str(row.question_id),
            "type": row.type,
            "value": row.value,
            "agent": row.agent,
            "score": float(row.score) if isinstance(row.score, int) else row.score,  # SQLite keeps 1.0 as 1
            "id": str(row.id),
            "inserted_at": row.inserted_at.isoformat(),
            "updated_at": row.updated_at.isoformat(),
        }
        # Not the database's text: SQLite keeps a bare number as a number, and rounds it when it writes it out.
        by_record[str(row.record_id)].append(json.dumps(suggestion))
    return by_record


def _hyphenated(stored: str) -> str:
    """An id as it is written; SQLite keeps its 32 digits only. `UUID` would take five times as long."""
    if "-" in stored:
        return stored
    return f"{stored[:8]}-{stored[8:12]}-{stored[12:16]}-{stored[16:20]}-{stored[20:]}"


_RELATED = {"responses": _responses_of, "suggestions": _suggestions_of}
"""What can stand in each record beside its own columns, in the order of argilla-server's body."""


async def _rows_page(db: Any, dataset_id: UUID, after: tuple[datetime, UUID] | None, limit: int) -> str:
    """A page of the dataset's records in order of arrival as JSON; `next` is the cursor of the next page.

    `items` are lists: id, external id, whether it is pending, and responses, each a list as well: the number of its
    user in `users`, its status, when it was changed last, whether it is as it was first sent, and the number of what it
    says in `values`, of which there are few. `assignments` are by record id. `annotation.units` reads them.
    """
    from argilla_server.models import Record, Response
    from sqlalchemy import String, cast, select, tuple_

    from annotation.embedded.queue.tables import assignments_in

    place = tuple_(Record.inserted_at, Record.id)
    here = [Record.dataset_id == dataset_id, *([place > after] if after else [])]
    as_stored = (cast(Record.id, String), Record.external_id, cast(Record.status, String))
    wanted = select(*as_stored, cast(Record.inserted_at, String)).where(*here)
    records = (await db.execute(wanted.order_by(Record.inserted_at, Record.id).limit(limit))).tuples().all()
    if not records:
        return '{"users":[],"values":[],"assignments":{},"items":[],"next":null}'
    last = datetime.fromisoformat(records[-1][3]), UUID(records[-1][0])
    columns = (
        cast(Response.record_id, String),
        cast(Response.user_id, String),
        cast(Response.status, String),
        cast(Response.inserted_at, String),
        cast(Response.updated_at, String),
        cast(Response.values, String),
    )
    answers = select(*columns).join(Record, Record.id == Response.record_id)
    of_page = answers.where(*here, place <= last)
    users: dict[str, int] = {}
    values: dict[str | None, int] = {}
    by_record: defaultdict[str, list[str]] = defaultdict(list)
    for record_id, user_id, status, inserted_at, updated_at, text in (await db.execute(of_page)).tuples():
        user, value = users.setdefault(user_id, len(users)), values.setdefault(text, len(values))
        is_first = 1 if inserted_at[:19] == updated_at[:19] else int(_is_at_once(inserted_at, updated_at))
        by_record[record_id].append(f'[{user},"{status}","{updated_at}",{is_first},{value}]')
    items = [
        # A response that came between the two queries may belong to a record that came there as well.
        f'["{_hyphenated(record_id)}",{json.dumps(external_id)},{int(status == "pending")},'
        f"[{','.join(by_record.get(record_id, ()))}]]"
        for record_id, external_id, status, _ in records
    ]
    read = [labels_and_question(json.loads(text) if text else None) for text in values]
    page_ids = select(Record.id).where(*here, place <= last)
    assignments = (await db.execute(assignments_in(dataset_id, page_ids))).tuples()
    assigned = ",".join(f'"{record_id}":{said}' for record_id, said in assignments)
    following = json.dumps(_cursor(*last) if len(records) == limit else None)
    return (
        f'{{"users":{json.dumps(list(map(_hyphenated, users)))},"values":{json.dumps(read)},'
        f'"assignments":{{{assigned}}},"items":[{",".join(items)}],"next":{following}}}'
    )


def _is_at_once(inserted_at: str, updated_at: str) -> bool:
    """Whether a response was not changed after it came; its two stamps may then be some moments apart."""
    return datetime.fromisoformat(updated_at) - datetime.fromisoformat(inserted_at) < AT_ONCE


def _cursor(inserted_at: datetime, record_id: UUID) -> str:
    """The place of a record in the order of arrival, as one word."""
    return f"{inserted_at.isoformat()}{_CURSOR_SEPARATOR}{record_id}"


def _read_cursor(text: str) -> tuple[datetime, UUID]:
    """The place that a cursor names.

    Raises:
        ValueError: it is none of ours.
    """
    written, _, record_id = text.partition(_CURSOR_SEPARATOR)
    moment = datetime.fromisoformat(written)
    if moment.tzinfo is not None:  # Argilla's stamps have none, and PostgreSQL compares the two kinds with an error
        raise ValueError(f"{written!r} has an offset")
    return moment, UUID(record_id)
