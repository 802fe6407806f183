"""The full-text index is made for a home that has records already, and takes in what came without it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="The server is not installed here.")

from sqlalchemy import Connection, create_engine

pytestmark = pytest.mark.usefixtures("argilla_library")

TABLES = (
    "CREATE TABLE fields (name TEXT, dataset_id TEXT, settings JSON)",
    "CREATE TABLE records (id TEXT PRIMARY KEY, dataset_id TEXT, fields JSON)",
    f"""INSERT INTO fields VALUES ('picture', '{0:032}', '{{"type": "image"}}')""",
)
OF_BEFORE = (
    "CREATE TABLE citejury_text_version (version VARCHAR(64) NOT NULL)",
    "INSERT INTO citejury_text_version VALUES ('of other software')",
    "CREATE TABLE citejury_texts (id INTEGER PRIMARY KEY, record_id CHAR(32), field TEXT, words TEXT)",
    "CREATE TRIGGER citejury_texts_of_new_record AFTER INSERT ON records BEGIN "
    "INSERT INTO citejury_texts (words) VALUES (citejury_words_by_field(NEW.fields, '[]')); END",
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Connection]:
    with create_engine(f"sqlite:///{tmp_path / 'argilla.db'}").begin() as connection:
        for statement in TABLES:
            connection.exec_driver_sql(statement)
        yield connection


def add(database: Connection, key: int, said: str) -> None:
    fields = f'{{"query": "{said}", "picture": "hidden"}}'
    database.exec_driver_sql("INSERT INTO records VALUES (?, ?, ?)", (f"{key:032}", f"{0:032}", fields))


def start(database: Connection) -> None:
    from annotation.server.search import text_index

    text_index.prepare(database)


def found(database: Connection, word: str) -> list[int]:
    from annotation.server.search.text_index import records_with

    return sorted(int(each.hex) for each in database.scalars(records_with(word, False, None)))


def test_records_of_before_are_found_and_an_index_in_step_is_left_alone(database: Connection) -> None:
    add(database, 1, "one")
    start(database)
    assert (found(database, "one"), found(database, "hidden")) == ([1], [])
    database.exec_driver_sql("UPDATE citejury_texts SET field = 'marked'")
    add(database, 2, "one")
    assert found(database, "one") == [1]
    start(database)
    assert found(database, "one") == [1, 2]
    marks = "SELECT field FROM citejury_texts ORDER BY id"
    assert database.exec_driver_sql(marks).scalars().all() == ["marked", "query"]


def test_a_record_that_goes_takes_its_words_along_and_one_that_went_unseen_at_the_next_start(
    database: Connection,
) -> None:
    for key in (1, 2, 3):
        add(database, key, "one")
    start(database)
    database.exec_driver_sql("DELETE FROM records WHERE id LIKE '%1'")
    assert found(database, "one") == [2, 3]
    database.exec_driver_sql("DROP TRIGGER citejury_texts_of_gone_record")
    database.exec_driver_sql("DELETE FROM records WHERE id LIKE '%2'")
    start(database)
    assert found(database, "one") == [3]


def test_the_index_of_other_software_and_its_triggers_are_replaced(database: Connection) -> None:
    add(database, 1, "one")
    for statement in OF_BEFORE:
        database.exec_driver_sql(statement)
    with pytest.raises(Exception, match="no such function"):
        add(database, 2, "two")
    start(database)
    add(database, 2, "two")
    assert found(database, "one") == [1]
