"""The words of all fields in SQLite's full-text index, FTS5, kept by triggers (https://www.sqlite.org/fts5.html).

Each connection that writes records needs the function that the triggers call; importing this module gives it to all
that SQLAlchemy opens. One without it is refused, so the index cannot fall behind.
"""

from typing import Any

from sqlalchemy import Connection, Select, column, event, func, select, table
from sqlalchemy.engine import Engine

from annotation.embedded.search._tokenizer import words_by_field

_LONGEST_PHRASE = 50  # words; FTS5 follows all of them at once
_TRIGGERS = {
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
_TABLES = (
    "CREATE TABLE IF NOT EXISTS citejury_texts"
    " (id INTEGER PRIMARY KEY, record_id CHAR(32) NOT NULL, field TEXT NOT NULL, words TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS citejury_texts_record ON citejury_texts (record_id)",
    # The words are separated by spaces already; this tokenizer takes all else beyond ASCII as part of a word.
    "CREATE VIRTUAL TABLE IF NOT EXISTS citejury_words USING fts5"
    " (words, content='citejury_texts', content_rowid='id', tokenize='ascii', columnsize=0)",
)
_TEXTS_OF = """
    INSERT INTO citejury_texts (record_id, field, words)
    SELECT record.id, field.key, field.value FROM {records} AS record, json_each(citejury_words_by_field(
        record.fields,
        (SELECT json_group_array(name) FROM fields
         WHERE dataset_id = record.dataset_id AND json_extract(settings, '$.type') = 'image')
    )) AS field"""
_NEW_RECORD = "(SELECT NEW.id AS id, NEW.fields AS fields, NEW.dataset_id AS dataset_id)"

_texts = table("citejury_texts", column("id"), column("record_id"), column("field"), column("words"))
_words = table("citejury_words", column("rowid"), column("citejury_words"))


def _install(connection: Any, _: object = None) -> None:
    """Teach a SQLite connection, plain or SQLAlchemy's, the function that the triggers call."""
    if hasattr(connection, "create_function"):
        connection.create_function("citejury_words_by_field", 2, words_by_field, deterministic=True)


event.listen(Engine, "connect", _install)


def _trigger_statements() -> list[str]:
    """The statements that make the triggers anew."""
    parts = {
        "insert": _TEXTS_OF.replace("{records}", _NEW_RECORD),
        "delete": "DELETE FROM citejury_texts WHERE record_id = OLD.id",
    }
    made = []
    for name, body in _TRIGGERS.items():
        for part, statement in parts.items():
            body = body.replace(f"{{{part}}}", statement)
        made += [f"DROP TRIGGER IF EXISTS {name}", f"CREATE TRIGGER {name} {body}"]
    return made


def has_triggers(connection: Connection) -> bool:
    """Whether all of them are there; a migration of Argilla's that rebuilds its table drops them with it."""
    names = ", ".join(f"'{name}'" for name in _TRIGGERS)
    found = connection.exec_driver_sql(
        f"SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND name IN ({names})"
    )
    return bool(found.scalar_one() == len(_TRIGGERS))


def rebuild(connection: Connection) -> None:
    """Make the triggers and read the texts of all records anew."""
    dropped = ("DROP TABLE IF EXISTS citejury_words", "DROP TABLE IF EXISTS citejury_texts")
    for statement in (*dropped, *_TABLES, *_trigger_statements(), _TEXTS_OF.replace("{records}", "records")):
        connection.exec_driver_sql(statement)


def records_with(phrase: str, is_prefix: bool, field: str | None) -> Select[Any]:
    """The ids of records that have the phrase, words with one space between, in the field or in any."""
    begun = phrase.split(" ", _LONGEST_PHRASE)
    is_whole = len(begun) <= _LONGEST_PHRASE
    wanted = f'"{" ".join(begun[:_LONGEST_PHRASE])}"' + ("*" if is_prefix and is_whole else "")
    found = select(_texts.c.record_id).join_from(_words, _texts, _texts.c.id == _words.c.rowid)
    found = found.where(_words.c.citejury_words.op("MATCH")(wanted))
    if not is_whole:
        found = found.where(func.instr(" " + _texts.c.words + " ", f" {phrase}{'' if is_prefix else ' '}") > 0)
    return found if field is None else found.where(_texts.c.field == field)
