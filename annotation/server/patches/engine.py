"""Argilla's search engine without an index: every answer comes from Argilla's own tables.

argilla-server calls a search engine after each write, to keep its index in step, and for each search, progress and
metric. Here the writes need nothing, so that nothing can be out of step.
"""

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from argilla_server.enums import MetadataPropertyType
from argilla_server.models import Record, Response, Vector
from argilla_server.search_engine import (
    AndFilter,
    FloatMetadataMetrics,
    IntegerMetadataMetrics,
    SearchEngine,
    SearchResponseItem,
    SearchResponses,
    TermsMetrics,
    TextQuery,
)
from sqlalchemy import ColumnElement, false, func, select, true

from annotation.argilla.display import opaque_id
from annotation.server.home.folder import ENGINE_NAME
from annotation.server.queue.page import filters_beside_the_queue, kept_from, queue_page
from annotation.server.queue.practice import closing_practice
from annotation.server.queue.tables import QUEUE
from annotation.server.search import filters as search_filters
from annotation.server.search.orders import check_vector, nearest, own_page, sorted_page
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
        """Without `sort` a user gets their own order, the same each time; without `user_id` that of arrival."""
        text = query if isinstance(query, str) else getattr(query, "q", None)
        if user_id is not None and text:  # as links to a record search for it
            async with search_filters.SearchSession() as db:
                found = await _named(db, dataset, text, await kept_from(db, dataset, user_id))
            if found is not None:
                return SearchResponses(items=[SearchResponseItem(record_id=found)][offset:], total=1)
        beside = filters_beside_the_queue(filter)
        if user_id is not None and not sort and beside is not None:
            narrowing = _conditions(dataset, query, AndFilter(filters=beside)) if query or beside else []
            async with search_filters.SearchSession() as db:
                page, total = await queue_page(db, dataset, user_id, narrowing, offset, limit)
            return SearchResponses(items=[SearchResponseItem(record_id=record) for record in page], total=total)
        wanted = _conditions(dataset, query, filter)
        async with search_filters.SearchSession() as db:
            waits = search_filters.split_queue(filter)[1] is not None
            if user_id is not None and waits and await closing_practice(db, dataset, user_id) is not None:
                return SearchResponses(items=[], total=0)
            kept = await kept_from(db, dataset, user_id) if user_id is not None else []
            wanted += kept
            total = await _count_matching(db, dataset, query, filter, kept)
            if user_id is not None and not sort:
                page = await own_page(db, user_id, wanted, total, offset, limit)
            else:
                page = await sorted_page(
                    db, dataset.id, wanted, sort or (), total, offset, limit, by_arrival=user_id is None
                )
        return SearchResponses(items=[SearchResponseItem(record_id=record) for record in page], total=total)

    async def similarity_search(
        self,
        dataset: Any,
        vector_settings: Any,
        value: list[float] | None = None,
        record: Any = None,
        query: Any = None,
        filter: Any = None,
        max_results: int = 100,
        order: Any = None,
        threshold: float | None = None,
    ) -> Any:
        target = value if value else record.vector_value_by_vector_settings(vector_settings)
        check_vector(target, vector_settings)
        wanted = [Vector.vector_settings_id == vector_settings.id, *_conditions(dataset, query, filter)]
        if record is not None:
            wanted.append(Vector.record_id != record.id)
        rows = select(Vector.record_id, Vector.value).join(Record, Record.id == Vector.record_id).where(*wanted)
        async with search_filters.SearchSession() as db:
            candidates = (await db.execute(rows)).tuples().all()
        found = nearest(target, candidates, str(getattr(order, "value", order)) == "least_similar")
        kept = [pair for pair in found if threshold is None or pair[1] >= threshold][:max_results]
        items = [SearchResponseItem(record_id=each, score=score) for each, score in kept]
        return SearchResponses(items=items, total=len(items))

    async def compute_metrics_for(self, metadata_property: Any) -> Any:
        here = Record.dataset_id == metadata_property.dataset_id
        each = search_filters.elements_at(Record.metadata_, metadata_property.name)
        number, term = search_filters.number_in(each), search_filters.text_in(each)
        async with search_filters.SearchSession() as db:
            if metadata_property.type == MetadataPropertyType.terms:  # those of a list count one by one
                rows = select(term, func.count()).select_from(Record, each).where(here, term.is_not(None))
                found = await db.execute(rows.group_by(term).order_by(func.count().desc(), term))
                values = [TermsMetrics.TermCount(term=text, count=count) for text, count in found.tuples()]
                return TermsMetrics(total=sum(value.count for value in values), values=values)
            ends = select(func.min(number), func.max(number)).select_from(Record, each)
            low, high = (await db.execute(ends.where(here))).one()
        whole = metadata_property.type == MetadataPropertyType.integer
        return (IntegerMetadataMetrics if whole else FloatMetadataMetrics)(min=low, max=high)


async def _named(db: Any, dataset: Any, text: str, kept: Sequence[ColumnElement[bool]]) -> UUID | None:
    """By its id here or the external one, which under one of an earlier version is what this one would have given."""
    here = select(Record.id, Record.fields).where(Record.dataset_id == dataset.id, *kept)
    is_id = re.fullmatch("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text)
    named = Record.id == UUID(text) if is_id else false()
    found: UUID | None = await db.scalar(here.where((Record.external_id == search_filters.storable(text)) | named))
    answer, _, of_passage = text.rpartition(":")
    if found is None and re.fullmatch("[0-9a-f]{16}", of_passage):
        of_answer = here.join(QUEUE, QUEUE.c.record_id == Record.id).where(QUEUE.c.dataset_id == dataset.id)
        for record_id, fields in (
            await db.execute(of_answer.where(QUEUE.c.answer == search_filters.storable(answer)))
        ).tuples():
            if opaque_id(answer, str(fields.get("chunk"))) == text:
                return UUID(str(record_id))
    return found


def _conditions(dataset: Any, query: Any, wanted: Any) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = [Record.dataset_id == dataset.id]
    if query is not None:
        text = TextQuery(q=query) if isinstance(query, str) else query
        found.append(text_condition(text.q, text.field))
    if wanted is not None:
        found.append(search_filters.filter_condition(wanted, dataset.id))
    return found


async def _count_matching(
    db: Any, dataset: Any, query: Any, wanted: Any, kept: Sequence[ColumnElement[bool]] = ()
) -> int:
    """Of a queue all less those that the user has answered: much cheaper than to look at each record for a response."""
    filters, user_id = search_filters.split_queue(wanted)
    found = [*_conditions(dataset, query, AndFilter(filters=filters)), *kept]
    total = await db.scalar(select(func.count(Record.id)).where(*found))
    if user_id is not None:
        total -= await db.scalar(
            select(func.count(Record.id)).where(*found, search_filters.answered_by(user_id, true()))
        )
    return int(total)


async def _count_by(status: Any, *wanted: ColumnElement[bool]) -> dict[str, int]:
    async with search_filters.SearchSession() as db:
        rows = await db.execute(select(status, func.count()).where(*wanted).group_by(status))
        return {each.value: count for each, count in rows.tuples()}


def register_engine(_: object = None) -> None:
    SearchEngine.register(ENGINE_NAME)(_SqlSearchEngine)
