"""What is typed into the search box is read as Lucene reads it, and words are the same in Python and in PostgreSQL."""

import json
from collections.abc import Iterator
from contextlib import closing
from html.entities import html5
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("uvicorn", reason="The server is not installed here.")
psycopg2 = pytest.importorskip("psycopg2", reason="The `postgresql` extra is not installed.")

from annotation.argilla.rendering import rendered_answer  # noqa: E402
from annotation.server.search.query import EVERYTHING, NOTHING, Group, Not, ParsedQuery, Phrase, read_query  # noqa: E402
from annotation.server.search.words import visible, words_by_field, words_of  # noqa: E402
from tests.support.nasty_answers import NASTY_ANSWERS  # noqa: E402
from tests.support.postgresql import running_postgresql  # noqa: E402

A, B, C = map(Phrase, "abc")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("a b", Group((A, B), wants_all=True)),
        ("a +b", Group((A, B), wants_all=True)),
        ("a | b c", Group((Group((A, B), wants_all=False), C), wants_all=True)),
        ("a (b | c)", Group((A, Group((B, C), wants_all=False)), wants_all=True)),
        ("a -b", Group((A, Not(B)), wants_all=True)),
        ("- a", A),
        ("--a", A),
        ('"a b"~2 c', Group((Phrase("a b"), C), wants_all=True)),
        ("a~1 b", Group((A, B), wants_all=True)),
        ("a* b", Group((Phrase("a", is_prefix=True), B), wants_all=True)),
        (r"a\*", A),
        ("a-b", Phrase("a b")),
        ("安全", Phrase("安 全")),
        ("((a", A),
        ('a "b', Group((A, B), wants_all=True)),
        ("a | ... b", Group((A, B), wants_all=True)),
        ("*", EVERYTHING),
        ("", NOTHING),
        ('() | "" !', NOTHING),
    ],
)
def test_a_query_is_read_as_lucene_reads_it(query: str, expected: ParsedQuery) -> None:
    assert read_query(query) == expected


@given(st.text(st.sampled_from('ab"()|+-*~\\ '), max_size=40))
def test_no_text_is_an_error(query: str) -> None:
    assert isinstance(read_query(query), Phrase | Not | Group)


def test_chats_are_read_by_message_pictures_not_and_of_rendered_answers_the_words() -> None:
    fields = '{"talk": [{"role": "user", "content": "R&amp;D?"}], "picture": "x", "number": "\\u0000\\ud800 7"}'
    assert words_by_field(fields, '["picture"]') == '{"talk": "user \ue000 r d", "number": "7"}'
    answer = "9. **Hon**・*ey* R&D\n3. `a`b <li>\n\n| x |\n|---|\n| y |"
    fields = json.dumps({"answer": rendered_answer(answer).html})
    assert words_by_field(fields, "[]") == '{"answer": "9 hon ey r d 3 ab li x y"}'
    assert words_of(visible(rendered_answer("安**全**な**B**です").html)) == words_of("安全なBです")


@pytest.fixture(scope="module")
def postgresql(argilla_library: None) -> Iterator[Any]:
    from annotation.server.search.text_index import function_statements

    with running_postgresql() as url, closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        for statement in function_statements()[:4]:
            cursor.execute(statement)
        for name, read in html5.items():
            cursor.execute("INSERT INTO citejury_entities VALUES (%s, %s)", (f"&{name}", read))
        yield cursor


LETTERS = st.characters(exclude_categories=["Cs", "Cn"], exclude_characters="\0")
PIECES = st.one_of(
    LETTERS, st.sampled_from(["&amp;", "&#8364;", "&#x41;", "&#0;", "&notit;", "ß", "ΟΔΟΣ", "安全", "\u2060"])
)

ANSWERS = st.lists(st.sampled_from(NASTY_ANSWERS), max_size=20).map(
    lambda pieces: rendered_answer("".join(pieces)).html
)


@pytest.mark.rare
@given(texts=st.lists(st.lists(PIECES, max_size=20).map("".join) | ANSWERS, min_size=1, max_size=20))
@settings(max_examples=60)
def test_postgresql_finds_the_same_words(postgresql: Any, texts: list[str]) -> None:
    postgresql.execute(
        "SELECT citejury_words_of(each) FROM unnest(%s) WITH ORDINALITY AS t (each, n) ORDER BY n", (texts,)
    )
    assert [words for (words,) in postgresql.fetchall()] == [words_of(visible(text)) for text in texts]
