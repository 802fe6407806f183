"""The full-text index is made for a home that has records already, and again when its triggers were lost."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="The server is not installed here.")

from sqlalchemy import Connection, Engine, create_engine

pytestmark = pytest.mark.usefixtures("argilla_library")

TABLES = (
    "CREATE TABLE fields (name TEXT, dataset_id TEXT, settings JSON)",
    "CREATE TABLE records (id TEXT PRIMARY KEY, dataset_id TEXT, fields JSON)",
    """INSERT INTO fields VALUES ('picture', 'd', '{"type": "image"}')""",
)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    from annotation.server.search import text_index

    assert text_index  # what it adds to SQLite is there for connections made after it was imported
    engine = create_engine(f"sqlite:///{tmp_path / 'argilla.db'}")
    with engine.begin() as connection:
        for statement in TABLES:
            connection.exec_driver_sql(statement)
    return engine


@pytest.fixture
def database(engine: Engine) -> Iterator[Connection]:
    with engine.begin() as connection:
        yield connection


def add(database: Connection, key: str, said: str) -> None:
    fields = f'{{"query": "{said}", "picture": "hidden"}}'
    database.exec_driver_sql("INSERT INTO records VALUES (?, 'd', ?)", (key, fields))


def start(database: Connection) -> None:
    from annotation.server.search import text_index

    text_index.prepare(database)


def found(database: Connection, word: str) -> list[str]:
    from annotation.server.search.text_index import records_with

    return sorted(database.scalars(records_with(word, False, None)))


def test_records_of_before_are_found_and_an_index_in_step_is_left_alone(database: Connection) -> None:
    add(database, "old", "one")
    start(database)
    add(database, "new", "one")
    assert (found(database, "one"), found(database, "hidden")) == (["new", "old"], [])
    start(database)
    add(database, "first", "one")
    before = database.exec_driver_sql("SELECT id, words FROM citejury_texts").all()
    database.exec_driver_sql("UPDATE citejury_texts SET field = 'marked'")
    start(database)
    assert database.exec_driver_sql("SELECT id, words FROM citejury_texts WHERE field = 'marked'").all() == before


def test_a_rebuilt_table_is_noticed_at_the_next_start(database: Connection) -> None:
    start(database)
    add(database, "first", "one")
    database.exec_driver_sql("CREATE TABLE rebuilt AS SELECT * FROM records")
    database.exec_driver_sql("DROP TABLE records")
    database.exec_driver_sql("ALTER TABLE rebuilt RENAME TO records")
    add(database, "second", "one")
    assert found(database, "one") != ["first", "second"]
    start(database)
    assert found(database, "one") == ["first", "second"]


def test_who_cannot_read_words_is_refused_and_taken_in_once_the_triggers_are_dropped(engine: Engine) -> None:
    with engine.begin() as database:
        start(database)
        add(database, "first", "one")
    with contextlib.closing(sqlite3.connect(str(engine.url.database))) as plain:
        with pytest.raises(sqlite3.OperationalError, match="no such function: citejury_words_by_field"):
            plain.execute("INSERT INTO records VALUES ('second', 'd', '{}')")
        for name in ("citejury_texts_of_new_record", "citejury_texts_of_changed_record"):
            plain.execute(f"DROP TRIGGER {name}")
        plain.execute("""INSERT INTO records VALUES ('second', 'd', '{"query": "one"}')""")
        plain.commit()
    with engine.begin() as database:
        start(database)
        assert found(database, "one") == ["first", "second"]
