"""Passages in order of how well they match a question and its answer: BM25 by SQLite's full-text search, in memory.

Source: https://www.sqlite.org/fts5.html#the_bm25_function.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing

from pipeline.text.words import content_words, without_marks

SEARCH = "SELECT rowid, bm25(passages) FROM passages WHERE passages MATCH ?"
OTHER = "x"
DIGITS = 9
"""Scores that differ in later digits only are ties: the sum of the same numbers depends on their order."""


def rank_passages(query: str, answer: str, texts: Sequence[str], language: str = "") -> list[int]:
    """The places of the texts, the best match first; those that match alike, or not at all, keep their order.

    What is matched are the content words, in every language; the citation marks of the answer are none.
    """
    asked = {*content_words(query, language), *content_words(without_marks(answer), language)}
    codes = {word: f"w{number}" for number, word in enumerate(sorted(asked))}
    scores = [0.0] * len(texts)
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE VIRTUAL TABLE passages USING fts5(words, content='', tokenize='ascii')")
        rows = ((place, encoded(text, language, codes)) for place, text in enumerate(texts))
        database.executemany("INSERT INTO passages (rowid, words) VALUES (?, ?)", rows)
        # The score of many words is the sum of theirs, and one search for all of them takes time with their square.
        for code in codes.values():
            for place, score in database.execute(SEARCH, [code]):
                scores[place] += score
    return sorted(range(len(texts)), key=lambda place: (round(scores[place], DIGITS), place))


def encoded(text: str, language: str, codes: dict[str, str]) -> str:
    """The text's content words, each that is asked for as its code, the others as one more that nobody asks for.

    So the search sees the words as they were found here, and none of its own syntax in them; how long the text is
    counts as well.
    """
    return " ".join([codes.get(word, OTHER) for word in content_words(text, language)])
