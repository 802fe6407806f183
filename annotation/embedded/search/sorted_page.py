"""A page of records in an order that was asked for, the last as fast as the first.

A database that shall leave out many rows sorts all of them first. A page of the second half is therefore taken from
the other end, and turned around.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from argilla_server.enums import SortOrder
from argilla_server.models import Record
from sqlalchemy import ColumnElement, select
from sqlalchemy.ext.asyncio import AsyncSession

from annotation.embedded.search.search_terms import is_by_time, order_terms


async def sorted_page(
    db: AsyncSession,
    dataset_id: UUID,
    wanted: Sequence[ColumnElement[bool]],
    sort: Sequence[Any],
    total: int,
    offset: int,
    limit: int,
) -> list[UUID]:
    """The ids of one page of the `total` records that meet the conditions; those that are equal in order of arrival."""
    backwards = offset > total // 2
    if backwards:
        limit = min(limit, total - offset)
        offset = total - offset - limit
    if limit <= 0:
        return []
    terms = [term for order in sort for term in order_terms(order, dataset_id, backwards)]
    terms += equals_in_order(sort, backwards)
    rows = select(Record.id).where(*wanted).order_by(*terms).offset(offset).limit(limit)
    page = list(await db.scalars(rows))
    return page[::-1] if backwards else page


def equals_in_order(sort: Sequence[Any], backwards: bool) -> list[Any]:
    """What records that the order leaves equal are sorted by: their arrival, the newest first where that was asked for.

    No column stands twice in an order, so that SQLite goes through the index of arrivals instead of sorting.
    """
    by_arrival = [order for order in sort if is_by_time(order) and order.scope.property == "inserted_at"]
    newest_first = bool(by_arrival) and by_arrival[0].order == SortOrder.desc
    columns = [Record.id] if by_arrival else [Record.inserted_at, Record.id]
    return [column.desc() if newest_first != backwards else column.asc() for column in columns]
