"""The full-text index of both databases: the words of every field of every record, and what people type to find them.

Each flush of a session that writes a record's fields writes their words, in the same transaction; what came in another
way is taken in at the next start. In SQLite the index is FTS5 (https://www.sqlite.org/fts5.html). PostgreSQL's own
parser knows no Japanese and takes words apart at will, so its index holds our words, without their places: a phrase is
looked up by its words and then read in the text, and so is anything in a field with more words than an entry holds.
"""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from argilla_server.models import Field, Record
from sqlalchemy.dialects.postgresql import ARRAY, TSQUERY
from sqlalchemy.orm import Session

from annotation.server.home.logs import tell
from annotation.server.search import words
from annotation.server.search.filters import search_connections
from annotation.server.sql import run_sql

_COLUMNS = (sa.column("record_id", sa.Uuid()), *map(sa.column, ("id", "field", "words", "lexemes")))
_TEXTS = sa.table("citejury_texts", *_COLUMNS)
_SQLITE_WORDS = sa.table("citejury_words", *map(sa.column, ("rowid", "citejury_words")))

_LONGEST_PHRASE = 50  # words; FTS5 follows all of them at once
_LONGEST_WORD = 255  # characters; PostgreSQL's index takes 2,046 bytes of one; what is longer is read in the text
_MOST_BYTES = 900_000  # of different words in one field; PostgreSQL's index takes a megabyte
_LONGEST_QUERY = 5_000  # characters; what is longer is a passage that was pasted
_MOST_PHRASES = 200
_BATCH = 500  # records


@sa.event.listens_for(Session, "after_flush")
def _write_words(session: Session, _: object) -> None:
    records = [each for each in (*session.new, *session.dirty) if isinstance(each, Record)]
    changed = [each for each in records if sa.inspect(each).attrs.fields.history.has_changes()]
    if changed:
        ids = [each.id for each in changed]
        session.execute(_TEXTS.delete().where(_TEXTS.c.record_id.in_(ids)))
        _add(session, [(each.id, each.dataset_id, each.fields) for each in changed])


def _add(database: Session | sa.Connection, records: Sequence[tuple[Any, ...]]) -> None:
    here = sa.select(Field.dataset_id, Field.name, Field.settings).where(
        Field.dataset_id.in_({each[1] for each in records})
    )
    pictures = {(dataset, name) for dataset, name, how in database.execute(here) if how.get("type") == "image"}
    rows = [
        {"record_id": record_id, "field": name, "words": said}
        for record_id, dataset_id, fields in records
        for name, said in words.words_by_field(fields).items()
        if (dataset_id, name) not in pictures
    ]
    insert = _TEXTS.insert()
    if search_connections.dialect.name == "postgresql":
        entry = sa.func.array_to_tsvector(sa.bindparam("different", type_=ARRAY(sa.Text)))
        insert = insert.values(lexemes=entry)
        rows = [row | {"different": _different(row["words"])} for row in rows]
    if rows:
        database.execute(insert, rows)


def _different(said: str) -> list[str] | None:
    found = list({word[:_LONGEST_WORD] for word in said.split(" ") if word})
    return found if sum(len(word.encode()) for word in found) < _MOST_BYTES else None


def prepare(connection: sa.Connection) -> None:
    run_sql(connection, __file__, "version")
    # What the index is made by: the code of the words and of the index, and Python's edition of Unicode.
    made_by = hashlib.sha256(unicodedata.unidata_version.encode())
    for file in (Path(words.__file__), Path(__file__), Path(__file__).with_suffix(".toml")):
        made_by.update(file.read_bytes())
    version = made_by.hexdigest()
    if connection.execute(sa.text("SELECT version FROM citejury_text_version")).scalars().all() != [version]:
        run_sql(connection, __file__, "of_before")
    run_sql(connection, __file__)
    _take_in(connection)
    forget(connection)
    connection.execute(sa.text("INSERT INTO citejury_text_version VALUES (:version)"), {"version": version})


def _take_in(connection: sa.Connection) -> None:
    new = ~sa.exists().where(_TEXTS.c.record_id == Record.id)
    ids = connection.scalars(sa.select(Record.id).where(new)).all()
    if len(ids) >= 10_000:  # fewer take seconds
        minutes = -(-len(ids) // 100_000)
        tell(f"making the search's index for {len(ids):,} records, in about {minutes} min; nothing is served meanwhile")
    columns = sa.select(Record.id, Record.dataset_id, Record.fields)
    for first in range(0, len(ids), _BATCH):
        batch = columns.where(Record.id.in_(ids[first : first + _BATCH]))
        _add(connection, [tuple(row) for row in connection.execute(batch)])


def forget(connection: sa.Connection) -> None:
    connection.execute(sa.text("DELETE FROM citejury_text_version"))


def records_with(phrase: str, is_prefix: bool, field: str | None) -> sa.Select[Any]:
    found = (_sqlite_phrase if search_connections.dialect.name == "sqlite" else _postgresql_phrase)(phrase, is_prefix)
    return found if field is None else found.where(_TEXTS.c.field == field)


def _sqlite_phrase(phrase: str, is_prefix: bool) -> sa.Select[Any]:
    begun = phrase.split(" ", _LONGEST_PHRASE)
    is_whole = len(begun) <= _LONGEST_PHRASE
    wanted = f'"{" ".join(begun[:_LONGEST_PHRASE])}"' + ("*" if is_prefix and is_whole else "")
    found = sa.select(_TEXTS.c.record_id).join_from(_SQLITE_WORDS, _TEXTS, _TEXTS.c.id == _SQLITE_WORDS.c.rowid)
    found = found.where(_SQLITE_WORDS.c.citejury_words.op("MATCH")(wanted))
    if is_whole:
        return found
    return found.where(sa.func.instr(" " + _TEXTS.c.words + " ", f" {phrase}{'' if is_prefix else ' '}") > 0)


def _postgresql_phrase(phrase: str, is_prefix: bool) -> sa.Select[Any]:
    single = phrase.split(" ")
    lexemes = [f"'{word[:_LONGEST_WORD]}'" for word in dict.fromkeys(single[:-1] if is_prefix else single)]
    lexemes += [f"'{single[-1][:_LONGEST_WORD]}':*"] if is_prefix else []
    indexed: sa.ColumnElement[bool] = _TEXTS.c.lexemes.op("@@")(sa.cast(" & ".join(lexemes), TSQUERY))
    in_text = sa.func.strpos(" " + _TEXTS.c.words + " ", f" {phrase}{'' if is_prefix else ' '}") > 0
    is_exact = len(single) == 1 and len(phrase) <= _LONGEST_WORD
    found = indexed if is_exact else sa.and_(indexed, in_text)
    return sa.select(_TEXTS.c.record_id).where(sa.or_(found, sa.and_(_TEXTS.c.lexemes.is_(None), in_text)))


def text_condition(query: str, field: str | None) -> sa.ColumnElement[bool]:
    """All of `words`, `"a phrase"`, `begin*` and `-without`; `*` finds everything, and no word finds nothing."""
    if query.strip() == "*":
        return sa.true()
    pieces: list[tuple[str, str]] = re.findall(r'(-?)("[^"]*"|[^\s"]+)', query)
    if len(query) > _LONGEST_QUERY or len(pieces) > _MOST_PHRASES:
        pieces = [("", query)]
    found = []
    for sign, piece in pieces:
        if phrase := words.words_of(piece):
            # The beginning of a word has two letters, or it is most of the index.
            is_prefix = piece.endswith("*") and len(phrase) > 1
            condition: sa.ColumnElement[bool] = Record.id.in_(records_with(phrase, is_prefix, field))
            found.append(sa.not_(condition) if sign else condition)
    return sa.and_(*found) if found else sa.false()
