"""Argilla's search requests as SQL conditions and orders on its own tables, and its JSON columns read in SQL.

The semantics are those of Argilla's Elasticsearch engine (`argilla_server/search_engine/commons.py`, read in 2.8.0).

SQLite has `json_each` (https://www.sqlite.org/json1.html); for PostgreSQL, `citejury_each` does the same, and never
fails on what Argilla's JSON columns may hold and PostgreSQL's own functions refuse: `\\u0000` and halves of characters.
"""

import contextlib
import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import sqlalchemy as sa
from argilla_server.enums import RecordStatus, ResponseStatus, ResponseStatusFilter
from argilla_server.errors.future import UnprocessableEntityError
from argilla_server.models import Question, Record, Response, Suggestion
from argilla_server.search_engine import (
    AndFilter,
    MetadataFilterScope,
    RecordFilterScope,
    ResponseFilterScope,
    SuggestionFilterScope,
    TermsFilter,
)
from argilla_server.settings import settings
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine

_TIME = re.compile(
    r"(?P<date>[0-9]{4}(?:-[0-9]{2}){0,2})"
    r"(?:[T ](?P<time>[0-9]{2}(?::[0-9]{2}){0,2})?(?:(?<=:[0-9]{2}:[0-9]{2})[.,](?P<fraction>[0-9]{1,9}))?"
    r"(?P<offset>Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
TIMES = ("inserted_at", "updated_at")
_PENDING = ResponseStatusFilter.pending.value

search_connections = create_async_engine(settings.database_url, **settings.database_engine_args)
SearchSession = async_sessionmaker(autocommit=False, expire_on_commit=False, bind=search_connections)

_ON_POSTGRESQL = search_connections.dialect.name == "postgresql"
# Each with the backslashes before it that belong in pairs, which are kept.
_UNREADABLE = (
    r"(?<!\\)((?:\\\\)*)(?:\\u0000|\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]..)"
)
_READ_JSON = r"""
    CREATE OR REPLACE FUNCTION citejury_json(data json) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT (CASE WHEN position('\u' IN data::text) = 0 THEN data::text
            ELSE regexp_replace(data::text, '{unreadable}', '\1\\ufffd', 'g') END)::jsonb
    $$"""
_EACH = """
    CREATE OR REPLACE FUNCTION citejury_each(data json, path text) RETURNS TABLE (value text, type text)
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT item #>> '{}', CASE jsonb_typeof(item)
            WHEN 'string' THEN 'text'
            WHEN 'number' THEN CASE WHEN abs((item #>> '{}')::numeric) < 1e308 THEN 'real' ELSE 'huge' END
            ELSE jsonb_typeof(item) END
        FROM jsonb_path_query(citejury_json(data), path::jsonpath) AS found,
            jsonb_array_elements(CASE jsonb_typeof(found) WHEN 'array' THEN found ELSE jsonb_build_array(found) END)
            AS items (item)
    $$"""


def prepare(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":
        for statement in (_READ_JSON.replace("{unreadable}", _UNREADABLE), _EACH):
            connection.exec_driver_sql(statement)


def elements_at(column: Any, *keys: str) -> sa.TableValuedAlias:
    """SQL for a table of the values at a path, columns `value` and `type`: one row for a scalar, one for each item."""
    each = sa.func.citejury_each if _ON_POSTGRESQL else sa.func.json_each
    return each(column, "$" + "".join(f'."{key}"' for key in keys)).table_valued("value", "type", joins_implicitly=True)


def number_in(elements: sa.TableValuedAlias) -> sa.ColumnElement[float]:
    return sa.case((elements.c.type.in_(("integer", "real")), sa.cast(elements.c.value, sa.Float)))


def text_in(elements: sa.TableValuedAlias) -> sa.ColumnElement[str]:
    return sa.case((elements.c.type == "text", by_code_point(sa.cast(elements.c.value, sa.String))))


def by_code_point(column: Any) -> sa.ColumnElement[str]:
    """SQL for a text that compares as in SQLite and in the stock server's engines, not by the rules of a language."""
    compared: sa.ColumnElement[str] = column.collate("C") if _ON_POSTGRESQL else column
    return compared


def filter_condition(wanted: Any, dataset_id: UUID) -> sa.ColumnElement[bool]:
    if isinstance(wanted, AndFilter):
        return sa.and_(sa.true(), *(filter_condition(each, dataset_id) for each in wanted.filters))
    scope = wanted.scope
    if isinstance(scope, RecordFilterScope):
        return _record_condition(wanted, scope.property)
    if isinstance(scope, MetadataFilterScope):
        return _json_condition(wanted, Record.metadata_, scope.metadata_property)
    if isinstance(scope, SuggestionFilterScope):
        return _suggestion_condition(wanted, scope, dataset_id)
    return _response_condition(wanted, scope)


def _record_condition(wanted: Any, name: str) -> sa.ColumnElement[bool]:
    column: Any = getattr(Record, name)
    if not isinstance(wanted, TermsFilter):
        if name in TIMES:
            return _between(wanted, column, lambda low: span_of(low).first, lambda high: span_of(high).last)
        text = sa.cast(column, sa.String)
        if name == "id":
            plain = by_code_point(sa.func.replace(text, "-", ""))
            return _between(wanted, plain, lambda bound: storable(bound).replace("-", ""))
        return _between(wanted, by_code_point(text), storable)
    values: list[Any] = [storable(value) for value in wanted.values]
    if name == "id":
        values = [found for found in map(_uuid_or_none, values) if found]
    elif name == "status":
        values = [RecordStatus(value) for value in values if value in set(RecordStatus)]
    elif name in TIMES:
        return sa.or_(*(column.between(*span_of(value)) for value in values))
    condition: sa.ColumnElement[bool] = column.in_(values)
    return condition


def storable(value: Any) -> str:
    """The value as a text that PostgreSQL takes; it cannot hold a NUL, and nothing that has one matches."""
    return str(value).replace("\0", "\N{REPLACEMENT CHARACTER}")


def _response_condition(wanted: Any, scope: Any) -> sa.ColumnElement[bool]:
    if scope.question:
        return _response_exists(scope, _json_condition(wanted, Response.values, scope.question, "value"))
    if scope.property != "status" or not isinstance(wanted, TermsFilter):
        raise UnprocessableEntityError("A response filter needs a question, or the property `status` with its terms.")
    values = _statuses_in(wanted)
    statuses = [ResponseStatus(value) for value in values - {_PENDING} if value in set(ResponseStatus)]
    named = Response.status.in_(statuses)
    answered = answered_by(scope.user.id, named) if scope.user else _response_exists(scope, named)
    return sa.or_(~_response_exists(scope, sa.true()), answered) if _PENDING in values else answered


def _statuses_in(wanted: Any) -> set[str]:
    return {str(getattr(value, "value", value)) for value in wanted.values}


def split_queue(wanted: Any) -> tuple[list[Any], UUID | None]:
    """The filters but for "this user has not answered", and who the user is; None where that is not asked."""
    filters = list(wanted.filters) if isinstance(wanted, AndFilter) else [wanted] if wanted is not None else []
    for place, each in enumerate(filters):
        scope: Any = getattr(each, "scope", None)
        own = isinstance(scope, ResponseFilterScope) and scope.property == "status" and scope.user is not None
        if own and isinstance(each, TermsFilter) and _statuses_in(each) == {_PENDING}:
            return filters[:place] + filters[place + 1 :], scope.user.id
    return filters, None


def is_pending_record(wanted: Any) -> bool:
    scope = getattr(wanted, "scope", None)
    own = isinstance(scope, RecordFilterScope) and scope.property == "status"
    return own and isinstance(wanted, TermsFilter) and _statuses_in(wanted) == {_PENDING}


def answered_by(user_id: UUID, condition: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """A user's responses are few beside the records of a large dataset, so they are read once, not sought each time."""
    found: sa.ColumnElement[bool] = Record.id.in_(
        sa.select(Response.record_id).where(Response.user_id == user_id, condition)
    )
    return found


def _response_exists(scope: Any, condition: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    return sa.exists(sa.select(Response.id).where(*of_record_and_user(scope), condition))


def of_record_and_user(scope: Any) -> list[sa.ColumnElement[bool]]:
    mine = [Response.user_id == scope.user.id] if scope.user else []
    return [Response.record_id == Record.id, *mine]


def _suggestion_condition(wanted: Any, scope: Any, dataset_id: UUID) -> sa.ColumnElement[bool]:
    column = getattr(Suggestion, scope.property)
    if scope.property in ("value", "score"):
        condition = _json_condition(wanted, column)
    elif isinstance(wanted, TermsFilter):
        condition = sa.cast(column, sa.String).in_([storable(value) for value in wanted.values])
    else:
        condition = _between(wanted, by_code_point(sa.cast(column, sa.String)), storable)
    return sa.exists(sa.select(Suggestion.id).where(*of_record_and_question(scope, dataset_id), condition))


def of_record_and_question(scope: Any, dataset_id: UUID) -> list[sa.ColumnElement[bool]]:
    question = sa.select(Question.id).where(Question.dataset_id == dataset_id, Question.name == scope.question)
    return [Suggestion.record_id == Record.id, Suggestion.question_id == question.scalar_subquery()]


def _json_condition(wanted: Any, column: Any, *keys: str) -> sa.ColumnElement[bool]:
    each = elements_at(column, *keys)
    if isinstance(wanted, TermsFilter):
        numbers = [number for number in map(number_or_none, wanted.values) if number is not None]
        texts = [storable(value) for value in wanted.values]
        condition = sa.or_(text_in(each).in_(texts), number_in(each).in_(numbers))
    else:
        condition = sa.or_(_between(wanted, text_in(each), storable), _between_numbers(wanted, number_in(each)))
    return sa.exists(sa.select(1).select_from(each).where(condition))


def _between(wanted: Any, column: Any, low_of: Any, high_of: Any = None) -> sa.ColumnElement[bool]:
    low = [column >= low_of(wanted.ge)] if wanted.ge is not None else []
    high = [column <= (high_of or low_of)(wanted.le)] if wanted.le is not None else []
    return sa.and_(column.is_not(None), *low, *high)


def _between_numbers(wanted: Any, column: Any) -> sa.ColumnElement[bool]:
    """Never where an end of it is a word."""
    ends = [end for end in (wanted.ge, wanted.le) if end is not None]
    if any(number_or_none(end) is None for end in ends):
        return sa.false()
    return _between(wanted, column, number_or_none)


def number_or_none(value: Any) -> float | None:
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def _uuid_or_none(value: str) -> UUID | None:
    with contextlib.suppress(ValueError):
        return UUID(value)
    return None


class TimeSpan(NamedTuple):
    first: datetime
    last: datetime


def span_of(value: Any) -> TimeSpan:
    written = str(value)
    try:
        is_number = isinstance(value, int | float) or re.fullmatch(r"-?[0-9]+(?:\.[0-9]+)?", written)
        if is_number and not re.fullmatch("[0-9]{4}", written):  # milliseconds, and no year
            moment = datetime.fromtimestamp(float(written) / 1000, UTC).replace(tzinfo=None)
            return TimeSpan(moment, moment)
        read = _TIME.fullmatch(written)
        if read is None:
            raise ValueError(written)
        return _written_span(read)
    except (ValueError, OverflowError, OSError) as error:
        raise UnprocessableEntityError(f"`{value}` is not a time in ISO 8601.") from error


def _written_span(read: re.Match[str]) -> TimeSpan:
    date, time, offset = read["date"], read["time"] or "", read["offset"] or "Z"
    day = date + "0000-01-01"[len(date) :]
    first, last = (
        datetime.fromisoformat(f"{day}T{time}{rest[len(time) :]}{offset}").astimezone(UTC).replace(tzinfo=None)
        for rest in ("00:00:00", "23:59:59")
    )
    if not read["fraction"]:
        return TimeSpan(first, last + timedelta(microseconds=999_999))
    nanoseconds = int(read["fraction"].ljust(9, "0"))
    # Argilla's own times have microseconds; nothing between two of them may count as either.
    return TimeSpan(
        first + timedelta(microseconds=-(-nanoseconds // 1000)), first + timedelta(microseconds=nanoseconds // 1000)
    )
