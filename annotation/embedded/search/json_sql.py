"""Reading JSON columns in SQL, the same way in both databases.

SQLite has `json_each` (https://www.sqlite.org/json1.html); for PostgreSQL, `citejury_each` does the same, and never
fails on what Argilla's JSON columns may hold and PostgreSQL's own functions refuse: `\\u0000` and halves of characters.
"""

from typing import Any

from argilla_server.settings import settings
from sqlalchemy import ColumnElement, Float, String, TableValuedAlias, case, cast, func, select
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine

search_connections = create_async_engine(settings.database_url, **settings.database_engine_args)
SearchSession = async_sessionmaker(autocommit=False, expire_on_commit=False, bind=search_connections)

_ON_POSTGRESQL = search_connections.dialect.name == "postgresql"
_NUMBERS = ("integer", "real")
_TEXT = "text"
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


def statements(dialect: str) -> list[str]:
    """The statements that make PostgreSQL's functions, or make them anew."""
    return [_READ_JSON.replace("{unreadable}", _UNREADABLE), _EACH] if dialect == "postgresql" else []


def elements_at(column: Any, *keys: str) -> TableValuedAlias:
    """SQL for a table of the values at a path, columns `value` and `type`: one row for a scalar, one for each item."""
    each = func.citejury_each if _ON_POSTGRESQL else func.json_each
    path = "$" + "".join(f'."{key}"' for key in keys)
    return each(column, path).table_valued("value", "type", joins_implicitly=True)


def number_in(elements: TableValuedAlias) -> ColumnElement[float]:
    """SQL for a row's number; NULL where it is none."""
    return case((elements.c.type.in_(_NUMBERS), cast(elements.c.value, Float)))


def text_in(elements: TableValuedAlias) -> ColumnElement[str]:
    """SQL for a row's text; NULL where it is none."""
    return case((elements.c.type == _TEXT, by_code_point(cast(elements.c.value, String))))


def value_by(take: Any, column: Any, *keys: str) -> list[ColumnElement[Any]]:
    """SQL to sort by what `take`, as `func.min`, takes of the numbers at a path, and then of the texts."""
    each = elements_at(column, *keys)
    return [select(take(value(each))).select_from(each).scalar_subquery() for value in (number_in, text_in)]


def by_code_point(column: Any) -> ColumnElement[str]:
    """SQL for a text that compares as in SQLite and in the stock server's engines, not by the rules of a language."""
    compared: ColumnElement[str] = column.collate("C") if _ON_POSTGRESQL else column
    return compared
