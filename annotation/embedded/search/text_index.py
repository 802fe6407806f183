"""The full-text index of both databases: the words of every field of every record, kept in step by triggers.

An index that is not of this version, or whose triggers a migration of Argilla's dropped, is made again at the start:
up to a minute for each 100,000 records of a kilobyte.
"""

import hashlib
import unicodedata
from pathlib import Path
from typing import Any

from argilla_server.models import Record
from sqlalchemy import ColumnElement, Connection, and_, false, func, not_, or_, select, text, true

from annotation.embedded.home.event_log import tell
from annotation.embedded.search import _text_index_postgresql as text_index_postgresql
from annotation.embedded.search import _text_index_sqlite as text_index_sqlite
from annotation.embedded.search import _tokenizer as tokenizer
from annotation.embedded.search._query_parser import Group, Not, ParsedQuery, Phrase, read_query
from annotation.embedded.search.json_sql import search_connections

_WORTH_TELLING = 10_000  # records; the index of fewer is made in seconds
_RECORDS_A_MINUTE = 100_000
_DIALECTS: dict[str, Any] = {"sqlite": text_index_sqlite, "postgresql": text_index_postgresql}


def statements(dialect: str) -> list[str]:
    """The statements that make the place where the version of the index is kept; the same for both databases."""
    return ["CREATE TABLE IF NOT EXISTS citejury_text_version (version VARCHAR(64) NOT NULL)"]


def fill(connection: Connection) -> None:
    """Make the index where there is none of this version that has been kept in step."""
    index = _DIALECTS[connection.dialect.name]
    version = _version_of(index)
    kept = connection.execute(text("SELECT version FROM citejury_text_version")).scalars().all()
    if kept == [version] and index.has_triggers(connection):
        return
    records = connection.execute(select(func.count()).select_from(Record)).scalar_one()
    if records >= _WORTH_TELLING:
        minutes = -(-records // _RECORDS_A_MINUTE)
        tell(f"making the search's index for {records:,} records, in about {minutes} min; nothing is served meanwhile")
    index.rebuild(connection)
    forget(connection)
    connection.execute(text("INSERT INTO citejury_text_version VALUES (:version)"), {"version": version})


def forget(connection: Connection) -> None:
    """Let the next `fill` make the index anew."""
    connection.execute(text("DELETE FROM citejury_text_version"))


def _version_of(index: Any) -> str:
    """What the index is made by: the code of the words and of the index, and Python's edition of Unicode."""
    made_by = hashlib.sha256(unicodedata.unidata_version.encode())
    for module in (tokenizer, index):
        made_by.update(Path(str(module.__file__)).read_bytes())
    return made_by.hexdigest()


def text_condition(query: str, field: str | None) -> ColumnElement[bool]:
    """True for a record with what the query asks for; each phrase may be in another field, if none is named."""
    return _condition_for(read_query(query), field)


def _condition_for(wanted: ParsedQuery, field: str | None) -> ColumnElement[bool]:
    """True for a record with what is wanted."""
    match wanted:
        case Phrase(phrase, is_prefix):
            index = _DIALECTS[search_connections.dialect.name]
            found: ColumnElement[bool] = Record.id.in_(index.records_with(phrase, is_prefix, field))
            return found
        case Not(part):
            return not_(_condition_for(part, field))
        case Group(parts, wants_all):
            conditions = [_condition_for(part, field) for part in parts]
            return and_(true(), *conditions) if wants_all else or_(false(), *conditions)
