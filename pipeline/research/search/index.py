"""Passages of pages in a full-text index, for search without a provider: BM25, in every language.

Scripts that write without spaces go in as pairs of neighbouring characters, as `pipeline.text.words` has them.

Source: https://www.sqlite.org/fts5.html#the_bm25_function.
"""

import sqlite3
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from pipeline.text.words import NUMBERS, UNSPACED_RUN, content_words, pairs

# About as long as three paragraphs: so the best place of a long PDF counts as much as a short page.
PASSAGE = 1500
# A word in the title says more about a page than one in its text.
TITLE_WEIGHT, TEXT_WEIGHT = 3.0, 1.0
# Words of Indic scripts hold marks, which would part them otherwise.
CREATE = """
CREATE VIRTUAL TABLE passages
USING fts5(title, text, content='', tokenize = "unicode61 remove_diacritics 2 categories 'L* N* M* Co'")
"""
ADD = "INSERT INTO passages (rowid, title, text) VALUES (?, ?, ?)"
SEARCH = f"""
SELECT rowid FROM passages WHERE passages MATCH ?
ORDER BY bm25(passages, {TITLE_WEIGHT}, {TEXT_WEIGHT}), rowid LIMIT ?
"""
# Of a page with many passages some matter, and the others should not hide the pages that come after it.
PASSAGES_A_RESULT = 50
MOST_QUERY_WORDS = 64


class Place(NamedTuple):
    """A passage of a page."""

    url: str
    """The page's URL."""
    start: int
    """First code point of the passage."""
    end: int
    """The code point after the last one."""


class PassageIndex:
    """Pages cut into passages, searchable by the words that they hold."""

    def __init__(self) -> None:
        """An index without pages, in memory."""
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.execute(CREATE)
        self.places: list[Place] = []

    def add(self, url: str, title: str, text: str) -> None:
        """Add a page."""
        heading = searchable(title)
        self.database.execute("BEGIN")
        for start, end in passage_spans(text):
            self.places.append(Place(url, start, end))
            self.database.execute(ADD, (len(self.places), heading, searchable(text[start:end])))
        self.database.execute("COMMIT")

    def best(self, query: str, k: int) -> list[Place]:
        """The best passage of each of the `k` pages that match best; empty where no page holds a word of the query."""
        # Numbers as they are written too: the index has those of its pages as they stand there.
        asked = list(dict.fromkeys([*content_words(query), *NUMBERS.findall(query)]))[:MOST_QUERY_WORDS]
        if not asked:
            return []
        words = " OR ".join(map(phrase, asked))
        found: dict[str, Place] = {}
        for (rowid,) in self.database.execute(SEARCH, (words, k * PASSAGES_A_RESULT)):
            place = self.places[rowid - 1]
            found.setdefault(place.url, place)
            if len(found) == k:
                break
        return list(found.values())


def searchable(text: str) -> str:
    """The text as the index takes it: one case, one form of each letter, spaces between pairs of unspaced scripts."""
    plain = unicodedata.normalize("NFKC", text).casefold().encode(errors="replace").decode()
    return UNSPACED_RUN.sub(lambda run: f" {' '.join(pairs(run[0]))} ", plain)


def phrase(word: str) -> str:
    """A content word in the index's own syntax: whatever it holds is searched for as it stands."""
    # A letter of an unspaced script alone is the beginning of all of its pairs.
    beginning = "*" if len(word) == 1 and UNSPACED_RUN.fullmatch(word) else ""
    return f'"{word}"{beginning}'


def passage_spans(text: str) -> Iterator[tuple[int, int]]:
    """Places of the passages, without gaps: each ends at the end of a line, unless the line is too long for that."""
    start = 0
    while start < len(text):
        end = start + PASSAGE
        if end < len(text):
            line_end = text.rfind("\n", start, end)
            end = line_end + 1 if line_end > start else end
        yield start, min(end, len(text))
        start = end
