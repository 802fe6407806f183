"""Argilla's search engine without an index: every answer comes from Argilla's own tables.

argilla-server calls a search engine after each write, to keep its index in step, and for each search and progress.
Here the writes need nothing, so that nothing can be out of step.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from argilla_server.api.schemas.v1.metadata_properties import TermsMetadataMetrics
from argilla_server.enums import MetadataPropertyType
from argilla_server.errors.future import UnprocessableEntityError
from argilla_server.models import Record, Response
from argilla_server.search_engine import SearchEngine, SearchResponseItem, SearchResponses
from sqlalchemy import ColumnElement, false, func, select

from annotation.argilla.display import opaque_id
from annotation.server.home.folder import ENGINE_NAME
from annotation.server.queue.page import kept_from, queue_page
from annotation.server.queue.tables import QUEUE
from annotation.server.search.filters import (
    REFUSAL,
    SearchSession,
    filter_condition,
    is_pending_record,
    split_queue,
    storable,
)
from annotation.server.search.text_index import text_condition


class _SqlSearchEngine(SearchEngine):  # type: ignore[misc]  # argilla-server has no types
    @classmethod
    async def new_instance(cls) -> "_SqlSearchEngine":
        return cls()

    async def ping(self) -> bool:
        return True  # the database is reached by each answer itself

    async def info(self) -> dict[str, str]:
        return {"name": ENGINE_NAME, "description": "answers from the server's own database"}

    async def keep_no_index(self, *_: Any, **__: Any) -> None:
        """There is no index to keep in step."""

    close = create_index = delete_index = configure_metadata_property = configure_index_vectors = keep_no_index
    index_records = partial_record_update = delete_records = keep_no_index
    update_record_response = delete_record_response = keep_no_index
    update_record_suggestion = delete_record_suggestion = keep_no_index

    async def get_dataset_progress(self, dataset: Any) -> dict[str, int]:
        if dataset.is_draft:
            return {}
        counts = await _count_by(Record.status, Record.dataset_id == dataset.id)
        return {"total": sum(counts.values()), **counts}

    async def get_dataset_user_progress(self, dataset: Any, user: Any) -> dict[str, int]:
        if dataset.is_draft:
            return {}
        records = await _count_by(Record.status, Record.dataset_id == dataset.id)
        mine = (Response.user_id == user.id, Response.record_id == Record.id, Record.dataset_id == dataset.id)
        return {"total": sum(records.values()), **await _count_by(Response.status, *mine)}

    async def search(
        self,
        dataset: Any,
        query: Any = None,
        filter: Any = None,
        sort: Any = None,
        offset: int = 0,
        limit: int = 100,
        user_id: UUID | None = None,
    ) -> Any:
        """A user's queue is in their own order; all else in that of arrival, or, for users, one that tells nothing."""
        conditions = [] if query is None else [text_condition(query.q, query.field)]
        filters, queue_of = split_queue(filter)
        conditions += [filter_condition(each) for each in filters if not (queue_of and is_pending_record(each))]
        async with SearchSession() as db:
            if user_id is not None and query is not None:  # as links to a record search for it
                found = await _named(db, dataset, query.q, await kept_from(db, dataset, user_id))
                if found is not None:
                    return _response([found][offset:], 1)
            if queue_of is not None:
                return _response(*await queue_page(db, dataset, queue_of, conditions, offset, limit))
            wanted = [Record.dataset_id == dataset.id, *conditions]
            wanted += await kept_from(db, dataset, user_id) if user_id is not None else []
            order = (Record.inserted_at, Record.id) if user_id is None else (Record.id,)
            page = await db.scalars(select(Record.id).where(*wanted).order_by(*order).offset(offset).limit(limit))
            total = await db.scalar(select(func.count(Record.id)).where(*wanted))
            return _response(page.all(), total or 0)

    async def refuse(self, *_: Any, **__: Any) -> None:
        raise UnprocessableEntityError(REFUSAL)

    similarity_search = refuse

    async def compute_metrics_for(self, metadata_property: Any) -> Any:
        """Of terms, which the page asks for as it opens an adjudicator's list."""
        if str(metadata_property.type) != MetadataPropertyType.terms:
            raise UnprocessableEntityError(REFUSAL)
        async with SearchSession() as db:
            own = select(Record.metadata_).where(Record.dataset_id == metadata_property.dataset_id)
            given = [(each or {}).get(metadata_property.name) or () for each in await db.scalars(own)]
        counts = Counter(term for each in given for term in (each if isinstance(each, list) else [each]))
        values = [{"term": term, "count": count} for term, count in counts.most_common()]
        return TermsMetadataMetrics(total=counts.total(), values=values)


def _response(page: Sequence[UUID], total: int) -> Any:
    return SearchResponses(items=[SearchResponseItem(record_id=record) for record in page], total=total)


async def _named(db: Any, dataset: Any, text: str, kept: Sequence[ColumnElement[bool]]) -> UUID | None:
    """By its id here or the external one, which under one of an earlier version is what this one would have given."""
    here = select(Record.id, Record.fields).where(Record.dataset_id == dataset.id, *kept)
    is_id = re.fullmatch("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text)
    named = Record.id == UUID(text) if is_id else false()
    found: UUID | None = await db.scalar(here.where((Record.external_id == storable(text)) | named))
    answer, _, of_passage = text.rpartition(":")
    if found is None and re.fullmatch("[0-9a-f]{16}", of_passage):
        of_answer = here.join(QUEUE, QUEUE.c.record_id == Record.id).where(QUEUE.c.dataset_id == dataset.id)
        for record_id, fields in (await db.execute(of_answer.where(QUEUE.c.answer == storable(answer)))).tuples():
            if opaque_id(answer, str(fields.get("chunk"))) == text:
                return UUID(str(record_id))
    return found


async def _count_by(status: Any, *wanted: ColumnElement[bool]) -> dict[str, int]:
    async with SearchSession() as db:
        rows = await db.execute(select(status, func.count()).where(*wanted).group_by(status))
        return {each.value: count for each, count in rows.tuples()}


def register_engine(_: object = None) -> None:
    SearchEngine.register(ENGINE_NAME)(_SqlSearchEngine)
