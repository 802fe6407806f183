"""The full-text index of both databases: the words of every field of every record, kept in step by triggers.

An index that is not of this version, or whose triggers a migration of Argilla's dropped, is made again at the start.
In SQLite it is FTS5 (https://www.sqlite.org/fts5.html). Each connection that writes records needs the function that the
triggers call; importing this module gives it to all that SQLAlchemy opens, and one without it is refused. PostgreSQL's
own parser (PostgreSQL 15, chapter 12) knows no Japanese and takes words apart at will, so words are found by functions
that say in its language what `words` says. Its index holds the words of a field without their places: a phrase is
looked up by its words and then read in the text, and so is anything in a field with more words than an entry holds.
"""

import hashlib
import unicodedata
from html.entities import html5
from pathlib import Path
from typing import Any
from unicodedata import normalize

import sqlalchemy as sa
from argilla_server.models import Record
from sqlalchemy.dialects.postgresql import TSQUERY
from sqlalchemy.engine import Engine

from annotation.server.home.logs import tell
from annotation.server.search import words
from annotation.server.search.filters import search_connections
from annotation.server.search.query import Group, Not, ParsedQuery, Phrase, read_query

_TEXTS = sa.table("citejury_texts", *map(sa.column, ("id", "record_id", "field", "words", "lexemes")))

_LONGEST_PHRASE = 50  # words; FTS5 follows all of them at once
_SQLITE_TRIGGERS = {
    "citejury_texts_of_new_record": """
        AFTER INSERT ON records BEGIN {insert}; END""",
    "citejury_texts_of_changed_record": """
        AFTER UPDATE OF fields ON records WHEN OLD.fields IS NOT NEW.fields BEGIN {delete}; {insert}; END""",
    "citejury_texts_of_deleted_record": """
        AFTER DELETE ON records BEGIN {delete}; END""",
    "citejury_words_of_new_text": """
        AFTER INSERT ON citejury_texts BEGIN
            INSERT INTO citejury_words (rowid, words) VALUES (NEW.id, NEW.words);
        END""",
    "citejury_words_of_deleted_text": """
        AFTER DELETE ON citejury_texts BEGIN
            INSERT INTO citejury_words (citejury_words, rowid, words) VALUES ('delete', OLD.id, OLD.words);
        END""",
}
_SQLITE_TABLES = (
    "CREATE TABLE IF NOT EXISTS citejury_texts"
    " (id INTEGER PRIMARY KEY, record_id CHAR(32) NOT NULL, field TEXT NOT NULL, words TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS citejury_texts_record ON citejury_texts (record_id)",
    # The words are separated by spaces already; this tokenizer takes all else beyond ASCII as part of a word.
    "CREATE VIRTUAL TABLE IF NOT EXISTS citejury_words USING fts5"
    " (words, content='citejury_texts', content_rowid='id', tokenize='ascii', columnsize=0)",
)
_SQLITE_TEXTS_OF = """
    INSERT INTO citejury_texts (record_id, field, words)
    SELECT record.id, field.key, field.value FROM {records} AS record, json_each(citejury_words_by_field(
        record.fields,
        (SELECT json_group_array(name) FROM fields
         WHERE dataset_id = record.dataset_id AND json_extract(settings, '$.type') = 'image')
    )) AS field"""
_SQLITE_WORDS = sa.table("citejury_words", *map(sa.column, ("rowid", "citejury_words")))

_LONGEST_WORD = 255  # characters; the index takes 2,046 bytes of a word, and what is longer is read in the text
_CHARACTER = """
    CREATE OR REPLACE FUNCTION citejury_character(point bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT CASE WHEN point > 0 AND point <= 1114111 AND NOT point BETWEEN 55296 AND 57343
            THEN chr(point::int) ELSE chr(65533) END
    $$"""
_SHOWN = """
    CREATE OR REPLACE FUNCTION citejury_shown(shown text) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
        SELECT string_agg(CASE
            WHEN piece[1] ~ '^&#[xX].+;' THEN citejury_character(
                ('x' || lpad(substr(piece[1], 4, length(piece[1]) - 4), 16, '0'))::bit(64)::bigint)
            WHEN piece[1] ~ '^&#.+;' THEN citejury_character(substr(piece[1], 3, length(piece[1]) - 3)::bigint)
            ELSE coalesce(entities.characters, piece[1]) END, '' ORDER BY place)
        FROM regexp_matches(shown, '({entity}|[^&]+|&)', 'g') WITH ORDINALITY AS pieces (piece, place)
        LEFT JOIN citejury_entities AS entities ON entities.entity = piece[1]
    $$"""
_WORDS = """
    CREATE OR REPLACE FUNCTION citejury_words_of(said text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
    DECLARE
        pair text;
    BEGIN
        IF starts_with(said, '{rendered}') THEN
            said := regexp_replace(said, '{within}', '', 'g');
            said := regexp_replace(regexp_replace(said, '{numbered}', ' \\1 ', 'g'), '<[^>]*>', ' ', 'g');
        END IF;
        IF position('&' IN said) > 0 THEN
            said := citejury_shown(said);
        END IF;
        IF octet_length(said) = length(said) THEN
            RETURN btrim(regexp_replace(lower(said COLLATE "C"), '[^a-z0-9]+', ' ', 'g'));
        END IF;
        said := regexp_replace(said, '[{invisible}]', '', 'g');
        IF said IS NOT NFKC NORMALIZED THEN
            said := normalize(said, NFKC);
        END IF;
        said := replace(lower(said COLLATE "und-x-icu"), 'ß', 'ss');
        IF said ~ '[{foldable}]' THEN
            FOREACH pair IN ARRAY string_to_array('{folds}', ' ') LOOP
                said := replace(said, left(pair, 1), substr(pair, 2));
            END LOOP;
        END IF;
        IF said !~ '[{alone}]' THEN
            RETURN btrim(regexp_replace(said, '[^{together}]+', ' ', 'g'));
        END IF;
        RETURN coalesce((
            SELECT string_agg(CASE WHEN run[1] ~ '^[{alone}]' THEN array_to_string(string_to_array(run[1], NULL), ' ')
                ELSE run[1] END, ' ' ORDER BY place)
            FROM regexp_matches(said, '([{alone}]+|[{together}]+)', 'g') WITH ORDINALITY AS runs (run, place)
        ), '');
    END $$"""
_FIELDS = """
    CREATE OR REPLACE FUNCTION citejury_words_by_field(texts json, dataset uuid) RETURNS TABLE (field text, words text)
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
        SELECT key, coalesce((
            SELECT string_agg(citejury_words_of(leaf #>> '{}'), ' {gap} ' ORDER BY place)
            FROM jsonb_path_query(value, 'strict $.**') WITH ORDINALITY AS leaves (leaf, place)
            WHERE jsonb_typeof(leaf) IN ('string', 'number', 'boolean')
        ), '')
        FROM jsonb_each(citejury_json(texts))
        WHERE key NOT IN (SELECT name FROM fields WHERE dataset_id = dataset AND settings ->> 'type' = 'image')
    $$"""
_LEXEMES = """
    CREATE OR REPLACE FUNCTION citejury_lexemes(words text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT CASE WHEN coalesce(sum(octet_length(word)), 0) < {most_bytes}
            THEN array_to_tsvector(coalesce(array_agg(word), ARRAY[]::text[])) END
        FROM (SELECT DISTINCT left(each, {longest}) FROM unnest(string_to_array(words, ' ')) AS each) AS found (word)
    $$"""
_POSTGRESQL_TABLES = (
    "CREATE TABLE IF NOT EXISTS citejury_texts (record_id uuid NOT NULL REFERENCES records (id) ON DELETE CASCADE,"
    " field text NOT NULL, words text NOT NULL, lexemes tsvector)",
    "CREATE INDEX IF NOT EXISTS citejury_texts_record ON citejury_texts (record_id)",
    "CREATE INDEX IF NOT EXISTS citejury_texts_lexemes ON citejury_texts USING gin (lexemes)",
    "CREATE INDEX IF NOT EXISTS citejury_texts_unindexed ON citejury_texts (record_id) WHERE lexemes IS NULL",
)
_ON_RECORD = """
    CREATE OR REPLACE FUNCTION citejury_index_record() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'UPDATE' THEN
            DELETE FROM citejury_texts WHERE record_id = NEW.id;
        END IF;
        INSERT INTO citejury_texts SELECT NEW.id, field, words, citejury_lexemes(words)
            FROM citejury_words_by_field(NEW.fields, NEW.dataset_id);
        RETURN NULL;
    END $$"""
_POSTGRESQL_TRIGGERS = {
    "citejury_new_record": "AFTER INSERT ON records FOR EACH ROW",
    "citejury_changed_record": "AFTER UPDATE OF fields ON records FOR EACH ROW"
    " WHEN (OLD.fields::text IS DISTINCT FROM NEW.fields::text)",
}


@sa.event.listens_for(Engine, "connect")
def _give_words(connection: Any, _: object) -> None:
    if hasattr(connection, "create_function"):
        connection.create_function("citejury_words_by_field", 2, words.words_by_field, deterministic=True)


def prepare(connection: sa.Connection) -> None:
    connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS citejury_text_version (version VARCHAR(64) NOT NULL)")
    # What the index is made by: the code of the words and of the index, and Python's edition of Unicode.
    made_by = hashlib.sha256(unicodedata.unidata_version.encode())
    for file in (words.__file__, __file__):
        made_by.update(Path(file).read_bytes())
    version = made_by.hexdigest()
    kept = connection.execute(sa.text("SELECT version FROM citejury_text_version")).scalars().all()
    if kept == [version] and _has_triggers(connection):
        return
    records = connection.execute(sa.select(sa.func.count()).select_from(Record)).scalar_one()
    if records >= 10_000:  # the index of fewer is made in seconds
        minutes = -(-records // 100_000)
        tell(f"making the search's index for {records:,} records, in about {minutes} min; nothing is served meanwhile")
    (_rebuild_sqlite if connection.dialect.name == "sqlite" else _rebuild_postgresql)(connection)
    forget(connection)
    connection.execute(sa.text("INSERT INTO citejury_text_version VALUES (:version)"), {"version": version})


def forget(connection: sa.Connection) -> None:
    connection.execute(sa.text("DELETE FROM citejury_text_version"))


def _has_triggers(connection: sa.Connection) -> bool:
    """Whether all of them are there; in SQLite, a migration of Argilla's that rebuilds its table drops them with it."""
    triggers, known = _SQLITE_TRIGGERS, "sqlite_master WHERE type = 'trigger' AND name"
    if connection.dialect.name == "postgresql":
        triggers, known = _POSTGRESQL_TRIGGERS, "pg_trigger WHERE tgrelid = 'records'::regclass AND tgname"
    names = ", ".join(f"'{name}'" for name in triggers)
    return bool(connection.exec_driver_sql(f"SELECT count(*) FROM {known} IN ({names})").scalar_one() == len(triggers))


def _rebuild_sqlite(connection: sa.Connection) -> None:
    made = ["DROP TABLE IF EXISTS citejury_words", "DROP TABLE IF EXISTS citejury_texts", *_SQLITE_TABLES]
    new_record = "(SELECT NEW.id AS id, NEW.fields AS fields, NEW.dataset_id AS dataset_id)"
    insert = _SQLITE_TEXTS_OF.replace("{records}", new_record)
    for name, body in _SQLITE_TRIGGERS.items():
        filled = body.replace("{insert}", insert)
        filled = filled.replace("{delete}", "DELETE FROM citejury_texts WHERE record_id = OLD.id")
        made += [f"DROP TRIGGER IF EXISTS {name}", f"CREATE TRIGGER {name} {filled}"]
    for statement in (*made, _SQLITE_TEXTS_OF.replace("{records}", "records")):
        connection.exec_driver_sql(statement)


def function_statements() -> list[str]:
    pairs = [  # each small letter that folding case changes further, followed by what it becomes
        letter + letter.casefold()
        for letter in map(chr, words.ASSIGNED)
        if letter.casefold() != letter == letter.lower() == normalize("NFKC", letter) and letter != "ß"
    ]
    parts = {
        "entity": words.ENTITY,
        "folds": " ".join(pairs),
        "foldable": "".join(pair[0] for pair in pairs),
        "invisible": words.bracketed(words.INVISIBLE),
        "alone": words.bracketed(words.ALONE),
        "together": words.bracketed(words.TOGETHER),
        "gap": words.GAP,
        "rendered": words.RENDERED,
        "within": words.WITHIN_WORDS,
        "numbered": words.NUMBERED,
        "most_bytes": "900000",  # of different words in one field; the index takes a megabyte
        "longest": str(_LONGEST_WORD),
    }
    made = []
    entities = "CREATE TABLE IF NOT EXISTS citejury_entities (entity text PRIMARY KEY, characters text NOT NULL)"
    for statement in (_CHARACTER, entities, _SHOWN, _WORDS, _FIELDS, _LEXEMES, _ON_RECORD):
        for part, said in parts.items():
            statement = statement.replace(f"{{{part}}}", said)
        made.append(statement)
    return made


def _rebuild_postgresql(connection: sa.Connection) -> None:
    connection.exec_driver_sql("LOCK TABLE records IN SHARE ROW EXCLUSIVE MODE")
    triggers = [
        statement
        for name, when in _POSTGRESQL_TRIGGERS.items()
        for statement in (
            f"DROP TRIGGER IF EXISTS {name} ON records",
            f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION citejury_index_record()",
        )
    ]
    for statement in ("DROP TABLE IF EXISTS citejury_texts", *_POSTGRESQL_TABLES, *function_statements(), *triggers):
        connection.exec_driver_sql(statement)
    entities = [{"entity": f"&{name}", "characters": read} for name, read in html5.items() if name.endswith(";")]
    kept = sa.table("citejury_entities", sa.column("entity"), sa.column("characters"))
    connection.execute(kept.delete())
    connection.execute(kept.insert(), entities)
    connection.exec_driver_sql(
        "INSERT INTO citejury_texts SELECT records.id, field, words, citejury_lexemes(words) "
        "FROM records, citejury_words_by_field(records.fields, records.dataset_id)"
    )


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
    return _condition_for(read_query(query), field)


def _condition_for(wanted: ParsedQuery, field: str | None) -> sa.ColumnElement[bool]:
    match wanted:
        case Phrase(phrase, is_prefix):
            found: sa.ColumnElement[bool] = Record.id.in_(records_with(phrase, is_prefix, field))
            return found
        case Not(part):
            return sa.not_(_condition_for(part, field))
        case Group(parts, wants_all):
            conditions = [_condition_for(part, field) for part in parts]
            return sa.and_(sa.true(), *conditions) if wants_all else sa.or_(sa.false(), *conditions)
