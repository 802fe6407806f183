"""Passages in order of how well they match a question and its answer: BM25 by SQLite's full-text search, in memory.

Source: https://www.sqlite.org/fts5.html#the_bm25_function.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing

from pipeline.words import content_words, without_marks


def rank_passages(query: str, answer: str, texts: Sequence[str], language: str = "") -> list[int]:
    """The places of the texts, the best match first; those that match alike, or not at all, keep their order.

    What is matched are the content words, in every language; the citation marks of the answer are none.
    """
    codes: dict[str, str] = {}
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE VIRTUAL TABLE passages USING fts5(words, content='', tokenize='ascii')")
        rows = ((place, encoded(text, language, codes)) for place, text in enumerate(texts))
        database.executemany("INSERT INTO passages (rowid, words) VALUES (?, ?)", rows)
        known = set(codes)
        asked = sorted(known & {*content_words(query, language), *content_words(without_marks(answer), language)})
        # In single steps rather than one long OR, whose depth SQLite limits.
        scores = [0.0] * len(texts)
        for word in asked:
            for place, score in database.execute(
                "SELECT rowid, bm25(passages) FROM passages WHERE passages MATCH ?", [codes[word]]
            ):
                scores[place] += score
    return sorted(range(len(texts)), key=lambda place: (round(scores[place], 9), place))


def encoded(text: str, language: str, codes: dict[str, str]) -> str:
    """The text's content words, each as a word of ASCII letters and digits that stands for it alone.

    So the search sees the words as they were found here, and none of its own syntax in them.
    """
    return " ".join(codes.setdefault(word, f"w{len(codes)}") for word in content_words(text, language))
