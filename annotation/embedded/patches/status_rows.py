"""Who answered which record how, without any text: our own endpoint for `citejury annotation status`.

argilla-server 2.8.0 sends a record's fields and metadata with each list of its responses, which for 20,000 records are
hundreds of megabytes. Here come ids, states, times and answers, straight from its tables, for those who may read them
with the texts too: owners, and admins of the workspace.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from annotation.units import PAGE_RECORDS, ROWS_PATH, labels_and_question

CURSOR_SEPARATOR = "_"


def serve_status_rows() -> None:
    """Add the endpoint to argilla-server's own; a stock server answers 404 there."""
    from argilla_server.api.policies.v1 import DatasetPolicy, authorize
    from argilla_server.api.routes import api_v1
    from argilla_server.database import get_async_db
    from argilla_server.models import Dataset, User
    from argilla_server.security import auth
    from fastapi import Depends, HTTPException, Query, Security
    from fastapi.responses import JSONResponse
    from sqlalchemy.ext.asyncio import AsyncSession

    async def list_status_rows(
        dataset_id: UUID,
        after: str | None = None,
        limit: int = Query(default=PAGE_RECORDS, ge=1, le=PAGE_RECORDS),
        db: AsyncSession = Depends(get_async_db),  # noqa: B008  # FastAPI's way
        current_user: User = Security(auth.get_current_user),  # noqa: B008
    ) -> Any:
        dataset = await Dataset.get_or_raise(db, dataset_id)
        await authorize(current_user, DatasetPolicy.list_records_with_all_responses(dataset))
        try:
            place = read_cursor(after) if after else None
        except ValueError as error:
            raise HTTPException(422, "`after` is not the `next` of a page.") from error
        return JSONResponse(await rows_page(db, dataset_id, place, limit))

    api_v1.get(ROWS_PATH, response_class=JSONResponse)(list_status_rows)


async def rows_page(db: Any, dataset_id: UUID, after: tuple[datetime, UUID] | None, limit: int) -> dict[str, Any]:
    """A page of the dataset's records in order of arrival, and the cursor of the next one; None at the end."""
    from argilla_server.models import Record, Response
    from sqlalchemy import String, cast, select, tuple_

    place = tuple_(Record.inserted_at, Record.id)
    here = [Record.dataset_id == dataset_id, *([place > after] if after else [])]
    wanted = select(Record.id, Record.external_id, Record.status, Record.inserted_at).where(*here)
    records = (await db.execute(wanted.order_by(Record.inserted_at, Record.id).limit(limit))).all()
    if not records:
        return {"items": [], "next": None}
    last = records[-1]
    texts = cast(Response.values, String).label("text")
    answers = select(Response.record_id, Response.user_id, Response.status, Response.updated_at, texts)
    of_page = answers.join(Record, Record.id == Response.record_id).where(*here, place <= (last.inserted_at, last.id))
    items = {
        record.id: {
            "id": str(record.id),
            "external_id": record.external_id,
            "status": record.status.value,
            "responses": [],
        }
        for record in records
    }
    for response in (await db.execute(of_page)).all():
        # One that came between the two queries may belong to a record that came there as well.
        if response.record_id in items:
            items[response.record_id]["responses"].append(response_row(response))
    following = cursor(last.inserted_at, last.id) if len(records) == limit else None
    return {"items": list(items.values()), "next": following}


def response_row(response: Any) -> Mapping[str, Any]:
    """One response without its texts, but for a note that asks something."""
    labels, question = read_values(response.text)
    return {
        "user_id": str(response.user_id),
        "status": response.status.value,
        "updated_at": response.updated_at.isoformat(),
        "labels": labels,
        "question": question,
    }


@lru_cache(maxsize=1024)
def read_values(text: str | None) -> tuple[dict[str, str], str | None]:
    """The same from the JSON of a response's values: with five labels there are few, however many responses."""
    return labels_and_question(json.loads(text) if text else None)


def cursor(inserted_at: datetime, record_id: UUID) -> str:
    """The place of a record in the order of arrival, as one word."""
    return f"{inserted_at.isoformat()}{CURSOR_SEPARATOR}{record_id}"


def read_cursor(text: str) -> tuple[datetime, UUID]:
    """The place that a cursor names.

    Raises:
        ValueError: it is none of ours.
    """
    written, _, record_id = text.partition(CURSOR_SEPARATOR)
    moment = datetime.fromisoformat(written)
    if moment.tzinfo is not None:  # Argilla's stamps have none, and PostgreSQL compares the two kinds with an error
        raise ValueError(f"{written!r} has an offset")
    return moment, UUID(record_id)
