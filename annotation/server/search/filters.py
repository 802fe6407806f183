"""Argilla's search requests as SQL conditions and orders on its own tables, and its JSON columns read in SQL.

The semantics are those of Argilla's Elasticsearch engine (`argilla_server/search_engine/commons.py`, read in 2.8.0).

SQLite has `json_each` (https://www.sqlite.org/json1.html); for PostgreSQL, `citejury_each` does the same, and never
fails on what Argilla's JSON columns may hold and PostgreSQL's own functions refuse: `\\u0000` and halves of characters.
"""

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

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
from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    String,
    TableValuedAlias,
    and_,
    case,
    cast,
    exists,
    false,
    func,
    or_,
    select,
    true,
)
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine

_MILLISECONDS = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_YEAR = re.compile(r"[0-9]{4}")
_TIME = re.compile(
    r"(?P<date>[0-9]{4}(?:-[0-9]{2}){0,2})"
    r"(?:[T ](?P<time>[0-9]{2}(?::[0-9]{2}){0,2})?(?:(?<=:[0-9]{2}:[0-9]{2})[.,](?P<fraction>[0-9]{1,9}))?"
    r"(?P<offset>Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_FIRST_DATE = "0000-01-01"
_FIRST_TIME = "00:00:00"
_LAST_TIME = "23:59:59"
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


def prepare(connection: Connection) -> None:
    """Make PostgreSQL's functions, or make them anew."""
    if connection.dialect.name == "postgresql":
        for statement in (_READ_JSON.replace("{unreadable}", _UNREADABLE), _EACH):
            connection.exec_driver_sql(statement)


def elements_at(column: Any, *keys: str) -> TableValuedAlias:
    """SQL for a table of the values at a path, columns `value` and `type`: one row for a scalar, one for each item."""
    each = func.citejury_each if _ON_POSTGRESQL else func.json_each
    return each(column, "$" + "".join(f'."{key}"' for key in keys)).table_valued("value", "type", joins_implicitly=True)


def number_in(elements: TableValuedAlias) -> ColumnElement[float]:
    """SQL for a row's number; NULL where it is none."""
    return case((elements.c.type.in_(("integer", "real")), cast(elements.c.value, Float)))


def text_in(elements: TableValuedAlias) -> ColumnElement[str]:
    """SQL for a row's text; NULL where it is none."""
    return case((elements.c.type == "text", by_code_point(cast(elements.c.value, String))))


def by_code_point(column: Any) -> ColumnElement[str]:
    """SQL for a text that compares as in SQLite and in the stock server's engines, not by the rules of a language."""
    compared: ColumnElement[str] = column.collate("C") if _ON_POSTGRESQL else column
    return compared


def filter_condition(wanted: Any, dataset_id: UUID) -> ColumnElement[bool]:
    """True for a record that the filter wants."""
    if isinstance(wanted, AndFilter):
        return and_(true(), *(filter_condition(each, dataset_id) for each in wanted.filters))
    scope = wanted.scope
    if isinstance(scope, RecordFilterScope):
        return _record_condition(wanted, scope.property)
    if isinstance(scope, MetadataFilterScope):
        return _json_condition(wanted, Record.metadata_, scope.metadata_property)
    if isinstance(scope, SuggestionFilterScope):
        return _suggestion_condition(wanted, scope, dataset_id)
    return _response_condition(wanted, scope)


def _record_condition(wanted: Any, name: str) -> ColumnElement[bool]:
    column: Any = getattr(Record, name)
    if not isinstance(wanted, TermsFilter):
        if name in TIMES:
            return _between(wanted, column, lambda low: span_of(low).first, lambda high: span_of(high).last)
        plain = by_code_point(func.replace(cast(column, String), "-", "") if name == "id" else cast(column, String))
        return _between(
            wanted, plain, lambda bound: storable(bound).replace("-", "") if name == "id" else storable(bound)
        )
    values: list[Any] = [storable(value) for value in wanted.values]
    if name == "id":
        values = [UUID(value) for value in values if _is_uuid(value)]
    elif name == "status":
        values = [RecordStatus(value) for value in values if value in set(RecordStatus)]
    elif name in TIMES:
        return or_(*(column.between(*span_of(value)) for value in values))
    condition: ColumnElement[bool] = column.in_(values)
    return condition


def storable(value: Any) -> str:
    """The value as a text that PostgreSQL takes; it cannot hold a NUL, and nothing that has one matches."""
    return str(value).replace("\0", "\N{REPLACEMENT CHARACTER}")


def _response_condition(wanted: Any, scope: Any) -> ColumnElement[bool]:
    if scope.question:
        return _response_exists(scope, _json_condition(wanted, Response.values, scope.question, "value"))
    if scope.property != "status" or not isinstance(wanted, TermsFilter):
        raise UnprocessableEntityError("A response filter needs a question, or the property `status` with its terms.")
    values = _statuses_in(wanted)
    statuses = [ResponseStatus(value) for value in values - {_PENDING} if value in set(ResponseStatus)]
    named = Response.status.in_(statuses)
    answered = answered_by(scope.user.id, named) if scope.user else _response_exists(scope, named)
    return or_(~_response_exists(scope, true()), answered) if _PENDING in values else answered


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
    """Whether the filter wants pending records and nothing else."""
    scope = getattr(wanted, "scope", None)
    own = isinstance(scope, RecordFilterScope) and scope.property == "status"
    return own and isinstance(wanted, TermsFilter) and _statuses_in(wanted) == {_PENDING}


def answered_by(user_id: UUID, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """True for a record with such a response of the user.

    Her responses are few beside the records of a large dataset, so they are read once instead of sought each time.
    """
    found: ColumnElement[bool] = Record.id.in_(select(Response.record_id).where(Response.user_id == user_id, condition))
    return found


def _response_exists(scope: Any, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    return exists(select(Response.id).where(*of_record_and_user(scope), condition))


def of_record_and_user(scope: Any) -> list[ColumnElement[bool]]:
    """Conditions that keep the responses of the record in question, and of the scope's user where there is one."""
    mine = [Response.user_id == scope.user.id] if scope.user else []
    return [Response.record_id == Record.id, *mine]


def _suggestion_condition(wanted: Any, scope: Any, dataset_id: UUID) -> ColumnElement[bool]:
    column = getattr(Suggestion, scope.property)
    if scope.property in ("value", "score"):
        condition = _json_condition(wanted, column)
    elif isinstance(wanted, TermsFilter):
        condition = cast(column, String).in_([storable(value) for value in wanted.values])
    else:
        condition = _between(wanted, by_code_point(cast(column, String)), storable)
    return exists(select(Suggestion.id).where(*of_record_and_question(scope, dataset_id), condition))


def of_record_and_question(scope: Any, dataset_id: UUID) -> list[ColumnElement[bool]]:
    """Conditions that keep the suggestions of the record in question for the scope's question."""
    question = select(Question.id).where(Question.dataset_id == dataset_id, Question.name == scope.question)
    return [Suggestion.record_id == Record.id, Suggestion.question_id == question.scalar_subquery()]


def _json_condition(wanted: Any, column: Any, *keys: str) -> ColumnElement[bool]:
    """True where the JSON value at the path, or one item of it where it is a list, is wanted."""
    each = elements_at(column, *keys)
    if isinstance(wanted, TermsFilter):
        numbers = [number for number in map(number_or_none, wanted.values) if number is not None]
        texts = [storable(value) for value in wanted.values]
        condition = or_(text_in(each).in_(texts), number_in(each).in_(numbers))
    else:
        condition = or_(_between(wanted, text_in(each), storable), _between_numbers(wanted, number_in(each)))
    return exists(select(1).select_from(each).where(condition))


def _between(wanted: Any, column: Any, low_of: Any, high_of: Any = None) -> ColumnElement[bool]:
    """True where the column lies in the range, both ends included."""
    low = [column >= low_of(wanted.ge)] if wanted.ge is not None else []
    high = [column <= (high_of or low_of)(wanted.le)] if wanted.le is not None else []
    return and_(column.is_not(None), *low, *high)


def _between_numbers(wanted: Any, column: Any) -> ColumnElement[bool]:
    """True where the column's number lies in the range; never where an end of it is a word."""
    ends = [end for end in (wanted.ge, wanted.le) if end is not None]
    if any(number_or_none(end) is None for end in ends):
        return false()
    return _between(wanted, column, number_or_none)


def number_or_none(value: Any) -> float | None:
    """The value as a number; None where it is none."""
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def _is_uuid(value: str) -> bool:
    try:
        UUID(value)
    except ValueError:
        return False
    return True


class TimeSpan(NamedTuple):
    """The first and the last microsecond of what a time names, as Argilla's tables have them: UTC without offset."""

    first: datetime
    last: datetime


def span_of(value: Any) -> TimeSpan:
    """What the value names.

    Raises:
        UnprocessableEntityError: it is no time; the server answers 422.
    """
    written = str(value)
    try:
        if not _YEAR.fullmatch(written) and (isinstance(value, int | float) or _MILLISECONDS.fullmatch(written)):
            moment = datetime.fromtimestamp(float(written) / 1000, UTC).replace(tzinfo=None)
            return TimeSpan(moment, moment)
        read = _TIME.fullmatch(written)
        if read is None:
            raise ValueError(written)
        return _written_span(read)
    except (ValueError, OverflowError, OSError) as error:
        raise UnprocessableEntityError(f"`{value}` is not a time in ISO 8601.") from error


def _written_span(read: re.Match[str]) -> TimeSpan:
    """The span of a date with or without a time; `ValueError` or `OverflowError` where the calendar has none."""
    date, time, offset = read["date"], read["time"] or "", read["offset"] or "Z"
    day = date + _FIRST_DATE[len(date) :]
    first, last = (
        datetime.fromisoformat(f"{day}T{time}{rest[len(time) :]}{offset}").astimezone(UTC).replace(tzinfo=None)
        for rest in (_FIRST_TIME, _LAST_TIME)
    )
    if not read["fraction"]:
        return TimeSpan(first, last + timedelta(microseconds=999_999))
    nanoseconds = int(read["fraction"].ljust(9, "0"))
    # Argilla's own times have microseconds; nothing between two of them may count as either.
    return TimeSpan(
        first + timedelta(microseconds=-(-nanoseconds // 1000)), first + timedelta(microseconds=nanoseconds // 1000)
    )
