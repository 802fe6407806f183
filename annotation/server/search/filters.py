"""Argilla's search requests as SQL conditions on its own tables: by statuses, as its page asks, and by records' ids.

Whatever else Argilla's API knows, orders, vectors and filters by labels, suggestions, metadata and times, is refused.
"""

from typing import Any
from uuid import UUID

import sqlalchemy as sa
from argilla_server.enums import RecordStatus, ResponseStatus, ResponseStatusFilter
from argilla_server.errors.future import UnprocessableEntityError
from argilla_server.models import Record, Response
from argilla_server.search_engine import AndFilter, RecordFilterScope, ResponseFilterScope
from argilla_server.settings import settings
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine

_PENDING = ResponseStatusFilter.pending.value
_BY = {("response", "status"), ("record", "status"), ("record", "external_id"), ("record", "id")}
REFUSAL = (
    "This server searches texts, and filters by the status of responses and by status and id of records. It knows no "
    "order, vector or other filter: leave it out, or read the records and choose among them."
)

search_connections = create_async_engine(settings.database_url, **settings.database_engine_args)
SearchSession = async_sessionmaker(autocommit=False, expire_on_commit=False, bind=search_connections)


async def check_search(_: Any, query: Any, __: Any) -> None:
    if query.filters and not query.filters.and_:
        query.filters = None
    filters = query.filters.and_ if query.filters else ()
    by = {(each.scope.entity, getattr(each.scope, "property", None)) for each in filters}
    of_questions = any(getattr(each.scope, "question", None) for each in filters)
    has_vector = bool(query.query and query.query.vector)
    if query.sort or has_vector or of_questions or by - _BY or any(each.type != "terms" for each in filters):
        raise UnprocessableEntityError(REFUSAL)


def filter_condition(wanted: Any) -> sa.ColumnElement[bool]:
    values, scope = _values_of(wanted), wanted.scope
    if isinstance(scope, RecordFilterScope):
        condition: sa.ColumnElement[bool] = getattr(Record, scope.property).in_(_stored(scope.property, values))
        return condition
    mine = (Response.user_id == scope.user.id,) if scope.user else ()
    statuses = [ResponseStatus(value) for value in values - {_PENDING} if value in set(ResponseStatus)]
    # Their responses are few beside the records of a large dataset, so they are read once, not sought each time.
    answered = Record.id.in_(sa.select(Response.record_id).where(*mine, Response.status.in_(statuses)))
    begun = sa.exists().where(Response.record_id == Record.id, *mine)
    return sa.or_(answered, ~begun) if _PENDING in values else answered


def _stored(name: str, values: set[str]) -> list[Any]:
    if name == "id":
        return [found for found in map(_uuid_or_none, values) if found]
    if name == "status":
        return [RecordStatus(value) for value in values if value in set(RecordStatus)]
    return [storable(value) for value in values]


def storable(value: str) -> str:
    """The value as a text that PostgreSQL takes; it cannot hold a NUL, and nothing that has one matches."""
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _values_of(wanted: Any) -> set[str]:
    return {str(getattr(value, "value", value)) for value in wanted.values}


def split_queue(wanted: AndFilter | None) -> tuple[list[Any], UUID | None]:
    """The filters but for "this user has not answered", and who the user is; None where that is not asked."""
    filters = list(wanted.filters) if wanted is not None else []
    for place, each in enumerate(filters):
        own = isinstance(each.scope, ResponseFilterScope) and each.scope.user is not None
        if own and _values_of(each) == {_PENDING}:
            return filters[:place] + filters[place + 1 :], each.scope.user.id
    return filters, None


def is_by_status(wanted: Any) -> bool:
    return isinstance(wanted.scope, RecordFilterScope) and wanted.scope.property == "status"


def is_pending_record(wanted: Any) -> bool:
    return is_by_status(wanted) and _values_of(wanted) == {_PENDING}


def _uuid_or_none(value: str) -> UUID | None:
    try:
        return UUID(value)
    except ValueError:
        return None
