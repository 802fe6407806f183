"""Orders of records: those that a request asks for, and each annotator's own; also the records nearest to a vector.

An annotator's own order is by lot, the same each time, and cheap however many records there are: a record's id is
random, so its first byte deals the records into 256 heaps of about the same size. A user has the heaps in an order of
her own and the records of each heap too. A page then needs the heaps that it is in, and no other record.
"""

import hashlib
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np
from argilla_server.enums import SortOrder
from argilla_server.errors.future import UnprocessableEntityError
from argilla_server.models import Record, Response, Suggestion
from argilla_server.search_engine import MetadataFilterScope, RecordFilterScope, SuggestionFilterScope
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, String, cast, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from annotation.server.search.filters import (
    TIMES,
    by_code_point,
    elements_at,
    number_in,
    of_record_and_question,
    of_record_and_user,
    text_in,
)

HEAPS = 256
FEW = 1000  # with four records in a heap, one query for all of them is cheaper than one for each heap


def lot(user_id: UUID, drawn: bytes) -> bytes:
    return hashlib.blake2b(drawn, key=user_id.bytes, digest_size=8).digest()


async def own_page(
    db: AsyncSession, user_id: UUID, wanted: Sequence[ColumnElement[bool]], total: int, offset: int, limit: int
) -> list[UUID]:
    async def in_order(*heap: Any) -> list[UUID]:
        found = await db.scalars(select(Record.id).where(*wanted, *heap))
        return sorted(found, key=lambda each: (lot(user_id, each.bytes[:1]), lot(user_id, each.bytes)))

    if total <= FEW:
        return (await in_order())[offset : offset + limit]
    page: list[UUID] = []
    for first in sorted((bytes([number]) for number in range(HEAPS)), key=lambda first: lot(user_id, first)):
        found = await in_order(Record.id.between(UUID(bytes=first + bytes(15)), UUID(bytes=first + b"\xff" * 15)))
        page += found[offset : offset + limit - len(page)]
        offset = max(0, offset - len(found))
        if len(page) == limit:
            break
    return page


def nearest(
    target: Sequence[float], candidates: Sequence[tuple[UUID, Sequence[float]]], least: bool = False
) -> list[tuple[UUID, float]]:
    """The likeness is (1 + cosine) / 2, as Elasticsearch gives it; that of a vector of zeros is 0.5."""
    if not candidates:
        return []
    vectors = np.asarray([vector for _, vector in candidates], dtype=float)
    wanted = np.asarray(target, dtype=float) * (-1.0 if least else 1.0)
    cosines = _unit(vectors) @ _unit(wanted[None])[0]
    best = np.argsort(-cosines, kind="stable")
    return [(candidates[place][0], float((1 + cosines[place]) / 2)) for place in best]


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows with a length of one; rows of zeros stay. Huge numbers are made small first, so that none overflows."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    small = np.divide(vectors, largest, out=np.zeros_like(vectors), where=largest > 0)
    lengths = np.linalg.norm(small, axis=1, keepdims=True)
    rows: NDArray[np.float64] = np.divide(small, lengths, out=small, where=lengths > 0)
    return rows


def check_vector(vector: Sequence[float], settings: Any) -> None:
    if len(vector) != settings.dimensions or not np.isfinite(np.asarray(vector, dtype=float)).all():
        raise UnprocessableEntityError(
            f"A vector for `{settings.name}` has {settings.dimensions} finite numbers; this one has {len(vector)}."
        )


async def sorted_page(
    db: AsyncSession,
    dataset_id: UUID,
    wanted: Sequence[ColumnElement[bool]],
    sort: Sequence[Any],
    total: int,
    offset: int,
    limit: int,
    by_arrival: bool = True,
) -> list[UUID]:
    """Equal ones in order of arrival; without `by_arrival` in that of their ids, which tells nothing."""
    backwards = offset > total // 2
    if backwards:
        limit = min(limit, total - offset)
        offset = total - offset - limit
    if limit <= 0:
        return []
    terms = [term for order in sort for term in _order_terms(order, dataset_id, backwards)]
    terms += _equals_in_order(sort, backwards) if by_arrival else [Record.id.desc() if backwards else Record.id]
    rows = select(Record.id).where(*wanted).order_by(*terms).offset(offset).limit(limit)
    page = list(await db.scalars(rows))
    return page[::-1] if backwards else page


def _equals_in_order(sort: Sequence[Any], backwards: bool) -> list[Any]:
    """The order without a column twice, so that SQLite goes through the index of arrivals instead of sorting."""
    by_arrival = [order for order in sort if _is_by_time(order) and order.scope.property == "inserted_at"]
    newest_first = bool(by_arrival) and by_arrival[0].order == SortOrder.desc
    columns = [Record.id] if by_arrival else [Record.inserted_at, Record.id]
    return [column.desc() if newest_first != backwards else column.asc() for column in columns]


def _order_terms(order: Any, dataset_id: UUID, backwards: bool = False) -> list[Any]:
    is_descending = order.order == SortOrder.desc
    keys = _keys_of(order.scope, is_descending, dataset_id)
    terms = [key.desc() if is_descending != backwards else key.asc() for key in keys]
    if _is_by_time(order):  # each record has one, and SQLite goes through its index only where that is plain
        return terms
    return [term.nulls_first() if backwards else term.nulls_last() for term in terms]


def _is_by_time(order: Any) -> bool:
    return isinstance(order.scope, RecordFilterScope) and order.scope.property in TIMES


def _keys_of(scope: Any, is_descending: bool, dataset_id: UUID) -> list[Any]:
    """Of a list the item that comes first counts; of the responses of several users the mean, or the first text."""
    take = func.max if is_descending else func.min
    if isinstance(scope, RecordFilterScope):
        column = getattr(Record, scope.property)
        is_text = scope.property in ("external_id", "status")
        return [by_code_point(cast(column, String)) if is_text else column]
    if isinstance(scope, MetadataFilterScope):
        return _value_by(take, Record.metadata_, scope.metadata_property)
    if isinstance(scope, SuggestionFilterScope):
        column = getattr(Suggestion, scope.property)
        of_question = of_record_and_question(scope, dataset_id)
        if scope.property in ("value", "score"):
            return [select(key).where(*of_question).scalar_subquery() for key in _value_by(take, column)]
        return [select(by_code_point(cast(column, String))).where(*of_question).scalar_subquery()]
    mine = of_record_and_user(scope)
    if not scope.question:
        return [select(take(by_code_point(cast(Response.status, String)))).where(*mine).scalar_subquery()]
    each = elements_at(Response.values, scope.question, "value")
    of_responses = select(func.avg(number_in(each)), take(text_in(each))).select_from(Response, each).where(*mine)
    return [of_responses.with_only_columns(column).scalar_subquery() for column in of_responses.selected_columns]


def _value_by(take: Any, column: Any, *keys: str) -> list[ColumnElement[Any]]:
    each = elements_at(column, *keys)
    return [select(take(value(each))).select_from(each).scalar_subquery() for value in (number_in, text_in)]
