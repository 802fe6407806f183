"""The full-text index is made for a home that has records already, and again when its triggers were lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("argilla_server", reason="The `server` extra is not installed.")

from sqlalchemy import Connection, create_engine

from annotation.embedded import text_index
from annotation.embedded.text_index_sqlite import records_with

TABLES = (
    "CREATE TABLE fields (name TEXT, dataset_id TEXT, settings JSON)",
    "CREATE TABLE records (id TEXT PRIMARY KEY, dataset_id TEXT, fields JSON)",
    """INSERT INTO fields VALUES ('picture', 'd', '{"type": "image"}')""",
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Connection]:
    engine = create_engine(f"sqlite:///{tmp_path / 'argilla.db'}")
    with engine.begin() as connection:
        for statement in TABLES:
            connection.exec_driver_sql(statement)
        yield connection


def add(database: Connection, key: str, said: str) -> None:
    fields = f'{{"query": "{said}", "picture": "hidden"}}'
    database.exec_driver_sql("INSERT INTO records VALUES (?, 'd', ?)", (key, fields))


def start(database: Connection) -> None:
    for statement in text_index.statements("sqlite"):
        database.exec_driver_sql(statement)
    text_index.fill(database)


def found(database: Connection, word: str) -> list[str]:
    return sorted(database.scalars(records_with(word, False, None)))


def test_records_of_before_are_found(database: Connection) -> None:
    add(database, "old", "one")
    start(database)
    add(database, "new", "one")
    assert (found(database, "one"), found(database, "hidden")) == (["new", "old"], [])


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


def test_an_index_in_step_is_left_alone(database: Connection) -> None:
    start(database)
    add(database, "first", "one")
    before = database.exec_driver_sql("SELECT id, words FROM citejury_texts").all()
    database.exec_driver_sql("UPDATE citejury_texts SET field = 'marked'")
    start(database)
    assert database.exec_driver_sql("SELECT id, words FROM citejury_texts WHERE field = 'marked'").all() == before
