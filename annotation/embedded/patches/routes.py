"""Pages of a dataset's records as argilla-server lists them, in a fraction of its time.

argilla-server 2.8.0 parses the JSON of each row, makes objects of it for the database and for validation, and writes
JSON again. Here the database's own text goes into the answer, which means the same, value by value. Vectors, which
citejury does not use, and pages with texts that are no proper JSON are left to argilla-server.
"""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

PATH = "/datasets/{dataset_id}/records"
ODD_JSON = {
    "NaN": re.compile(r"[\[:,] ?NaN"),
    "Infinity": re.compile(r"[\[:,] ?-?Infinity"),
    "\\ud": re.compile(r"\\ud(?:[89ab]..(?!\\ud[c-f])|(?<!\\ud[89ab]..\\ud)[c-f])"),
}
"""What Python writes and no other reader of JSON takes: numbers that are none, and halves of a character.

Each after what is found quickly, and in texts it may mean nothing; a page that it is in by chance only takes longer.
"""


def serve_record_pages() -> None:
    """Put our route before argilla-server's own: for the same people, with the same parameters and refusals."""
    from argilla_server.api.handlers.v1.datasets import records as stock
    from argilla_server.api.policies.v1 import DatasetPolicy, authorize
    from argilla_server.api.routes import api_v1
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
            if not any(mark in page and odd.search(page) for mark, odd in ODD_JSON.items()):
                return Response(page, media_type="application/json")
        return await stock.list_dataset_records(
            db=db, dataset_id=dataset_id, include=include, offset=offset, limit=limit, current_user=current_user
        )

    api_v1.get(PATH, response_model=Records, response_model_exclude_unset=True)(list_record_page)
    api_v1.router.routes.insert(0, api_v1.router.routes.pop())


async def record_page(db: Any, dataset_id: UUID, offset: int, limit: int, wanted: set[str]) -> str:
    """The page as JSON: its records in order of arrival, with what is wanted of each, and the dataset's total.

    The rows before the page are counted in the index alone, so that its records are the only ones that are read.
    """
    from argilla_server.models import Record
    from sqlalchemy import String, cast, func, select

    columns = (
        Record.id,
        Record.status,
        cast(Record.fields, String),
        cast(Record.metadata_, String),
        Record.external_id,
        Record.inserted_at,
        Record.updated_at,
    )
    arrival = (Record.inserted_at, Record.id)
    of_dataset = select(Record.id).where(Record.dataset_id == dataset_id).order_by(*arrival)
    on_page = of_dataset.offset(offset).limit(limit).subquery()
    rows = (await db.execute(select(*columns).join(on_page, on_page.c.id == Record.id).order_by(*arrival))).all()
    ids = [row.id for row in rows]
    related = [(name, await rows_of(db, ids)) for name, rows_of in RELATED.items() if name in wanted]
    items = []
    for record_id, status, fields, metadata, external_id, inserted_at, updated_at in rows:
        key = str(record_id)
        lists = "".join(f'"{name}":[{",".join(by_record[key])}],' for name, by_record in related)
        items.append(
            f'{{"id":"{key}","status":"{status}","fields":{fields},"metadata":{metadata or "null"},'
            f'"external_id":{json.dumps(external_id)},{lists}"dataset_id":"{dataset_id}",'
            f'"inserted_at":"{inserted_at.isoformat()}","updated_at":"{updated_at.isoformat()}"}}'
        )
    total = await db.scalar(select(func.count(Record.id)).where(Record.dataset_id == dataset_id))
    return f'{{"items":[{",".join(items)}],"total":{total}}}'


async def responses_of(db: Any, record_ids: Sequence[UUID]) -> dict[str, list[str]]:
    """The responses to the records as JSON, by record, in order of arrival; empty where there are none."""
    from argilla_server.models import Response
    from sqlalchemy import String, cast, select

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
        key = hyphenated(record_id)
        by_record[key].append(
            f'{{"id":"{hyphenated(response_id)}","values":{values or "null"},"status":"{status}",'
            f'"record_id":"{key}","user_id":"{hyphenated(user_id)}",'
            f'"inserted_at":"{inserted_at.isoformat()}","updated_at":"{updated_at.isoformat()}"}}'
        )
    return by_record


async def suggestions_of(db: Any, record_ids: Sequence[UUID]) -> dict[str, list[str]]:
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


def hyphenated(stored: str) -> str:
    """An id as it is written; SQLite keeps its 32 digits only. `UUID` would take five times as long."""
    if "-" in stored:
        return stored
    return f"{stored[:8]}-{stored[8:12]}-{stored[12:16]}-{stored[16:20]}-{stored[20:]}"


RELATED = {"responses": responses_of, "suggestions": suggestions_of}
"""What can stand in each record beside its own columns, in the order of argilla-server's body."""
