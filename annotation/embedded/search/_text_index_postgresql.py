"""The words of all fields in PostgreSQL's full-text index, kept by triggers (PostgreSQL 15, chapter 12).

PostgreSQL's own parser knows no Japanese and takes words apart at will, so words are found by functions here, which
say in its language what `_tokenizer.py` says in Python. Its index holds the words of a field without their places: a
phrase is looked up by its words and then read in the text, and so is anything in a field with more words than an entry
holds.
"""

from collections.abc import Iterator
from html.entities import html5
from typing import Any
from unicodedata import normalize

from sqlalchemy import ColumnElement, Connection, Select, and_, cast, column, func, or_, select, table
from sqlalchemy.dialects.postgresql import TSQUERY

from annotation.embedded.search._tokenizer import (
    ALONE,
    ASSIGNED,
    GAP,
    INVISIBLE,
    NUMBERED,
    RENDERED,
    TOGETHER,
    WITHIN_WORDS,
    bracketed,
)

_LONGEST_WORD = 255  # characters; the index takes 2,046 bytes of a word, and what is longer is read in the text
_MOST_BYTES = 900_000  # of different words in one field; the index takes a megabyte
_ENTITY = "&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{0,31});"
_CHARACTER = """
    CREATE OR REPLACE FUNCTION citejury_character(point bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT CASE WHEN point > 0 AND point <= 1114111 AND NOT point BETWEEN 55296 AND 57343
            THEN chr(point::int) ELSE chr(65533) END
    $$"""
_ENTITIES = "CREATE TABLE IF NOT EXISTS citejury_entities (entity text PRIMARY KEY, characters text NOT NULL)"
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
_TEXTS = (
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
_TRIGGERS = {
    "citejury_new_record": "AFTER INSERT ON records FOR EACH ROW",
    "citejury_changed_record": "AFTER UPDATE OF fields ON records FOR EACH ROW"
    " WHEN (OLD.fields::text IS DISTINCT FROM NEW.fields::text)",
}
_ALL_RECORDS = """
    INSERT INTO citejury_texts SELECT records.id, field, words, citejury_lexemes(words)
    FROM records, citejury_words_by_field(records.fields, records.dataset_id)"""

_texts = table("citejury_texts", column("record_id"), column("field"), column("words"), column("lexemes"))


def _folds() -> Iterator[str]:
    """Each small letter that folding case changes further, followed by what it becomes."""
    for letter in map(chr, ASSIGNED):
        if letter.casefold() != letter == letter.lower() == normalize("NFKC", letter) and letter != "ß":
            yield letter + letter.casefold()


def function_statements() -> list[str]:
    """The statements that make the functions, or make them anew."""
    pairs = list(_folds())
    parts = {
        "entity": _ENTITY,
        "folds": " ".join(pairs),
        "foldable": "".join(pair[0] for pair in pairs),
        "invisible": bracketed(INVISIBLE),
        "alone": bracketed(ALONE),
        "together": bracketed(TOGETHER),
        "gap": GAP,
        "rendered": RENDERED,
        "within": WITHIN_WORDS,
        "numbered": NUMBERED,
        "most_bytes": str(_MOST_BYTES),
        "longest": str(_LONGEST_WORD),
    }
    made = []
    for statement in (_CHARACTER, _ENTITIES, _SHOWN, _WORDS, _FIELDS, _LEXEMES, _ON_RECORD):
        for part, text in parts.items():
            statement = statement.replace(f"{{{part}}}", text)
        made.append(statement)
    return made


def has_triggers(connection: Connection) -> bool:
    """Whether all of them are there."""
    names = ", ".join(f"'{name}'" for name in _TRIGGERS)
    found = connection.exec_driver_sql(
        f"SELECT count(*) FROM pg_trigger WHERE tgrelid = 'records'::regclass AND tgname IN ({names})"
    )
    return bool(found.scalar_one() == len(_TRIGGERS))


def rebuild(connection: Connection) -> None:
    """Make the functions and triggers and read the texts of all records anew; nobody writes records meanwhile."""
    connection.exec_driver_sql("LOCK TABLE records IN SHARE ROW EXCLUSIVE MODE")
    triggers = [
        statement
        for name, when in _TRIGGERS.items()
        for statement in (
            f"DROP TRIGGER IF EXISTS {name} ON records",
            f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION citejury_index_record()",
        )
    ]
    for statement in ("DROP TABLE IF EXISTS citejury_texts", *_TEXTS, *function_statements(), *triggers):
        connection.exec_driver_sql(statement)
    entities = [{"entity": f"&{name}", "characters": read} for name, read in html5.items() if name.endswith(";")]
    kept = table("citejury_entities", column("entity"), column("characters"))
    connection.execute(kept.delete())
    connection.execute(kept.insert(), entities)
    connection.exec_driver_sql(_ALL_RECORDS)


def records_with(phrase: str, is_prefix: bool, field: str | None) -> Select[Any]:
    """The ids of records that have the phrase, words with one space between, in the field or in any."""
    single = phrase.split(" ")
    lexemes = [f"'{word[:_LONGEST_WORD]}'" for word in dict.fromkeys(single[:-1] if is_prefix else single)]
    lexemes += [f"'{single[-1][:_LONGEST_WORD]}':*"] if is_prefix else []
    indexed: ColumnElement[bool] = _texts.c.lexemes.op("@@")(cast(" & ".join(lexemes), TSQUERY))
    in_text = func.strpos(" " + _texts.c.words + " ", f" {phrase}{'' if is_prefix else ' '}") > 0
    unindexed = and_(_texts.c.lexemes.is_(None), in_text)
    is_exact = len(single) == 1 and len(phrase) <= _LONGEST_WORD
    found = select(_texts.c.record_id).where(or_(indexed if is_exact else and_(indexed, in_text), unindexed))
    return found if field is None else found.where(_texts.c.field == field)
