"""Full-text search with SQLite's FTS5: texts with titles and headings in, ranked by BM25 for the words of a question.

Words are the product's own: stop words and words that fit any question are left out, forms of one word count as one,
and Chinese, Japanese, Korean and Thai are searched by pairs of characters.

Source: https://www.sqlite.org/fts5.html#the_bm25_function
"""

import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pipeline.text.asking import is_general, stem, subject_words
from pipeline.text.words import NUMBERS, UNSPACED_RUN, content_words, pairs, text_language

MOST_QUERY_WORDS = 64
# Words of Indic scripts hold marks, which would part them otherwise.
_CREATE = """
CREATE VIRTUAL TABLE texts
USING fts5(title, headings, text, content='', tokenize = "unicode61 remove_diacritics 2 categories 'L* N* M* Co'")
"""
_ADD = "INSERT INTO texts (rowid, title, headings, text) VALUES (?, ?, ?, ?)"
_LEAST_STEM, _LEAST_ROOT = 5, 3
"""Letters of a stem by whose beginning all forms of a word are found, and of one to which usual endings are added."""
_ENDING = re.compile(r"(?:ing|ed|es|er|ly|e|s)$")
_ENDINGS = ("", "e", "s", "es", "ed", "er", "ers", "ing", "ly")
_INFLECTED = ("de", "ja")  # Languages whose short words are searched in all of their forms too


class SearchWord(NamedTuple):
    word: str
    query: str


class FullText:
    def __init__(self) -> None:
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.execute(_CREATE)
        self.count = 0

    def add(self, texts: Iterable[tuple[str, str, str]]) -> None:
        """Add texts, each as title, headings and text; their numbers count from 0 in the order in which they come."""
        self.database.execute("BEGIN")
        for text in texts:
            self.count += 1
            self.database.execute(_ADD, (self.count, *map(_searchable, text)))
        self.database.execute("COMMIT")

    def ranked(self, query: str, weights: tuple[float, float, float]) -> Iterator[int]:
        """The numbers of the texts that match, the best first; `weights` are of title, headings and text."""
        best = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts, {:f}, {:f}, {:f}), rowid"
        return (rowid - 1 for (rowid,) in self.database.execute(best.format(*weights), [query]))

    def holding(self, query: str) -> set[int]:
        found = self.database.execute("SELECT rowid FROM texts WHERE texts MATCH ?", [query])
        return {rowid - 1 for (rowid,) in found}


def search_words(question: str) -> list[SearchWord]:
    """The words that a question is searched by, each once, at most 64; where all fit any question, all of them."""
    language = text_language(question, "")
    if language in _INFLECTED:
        asked = subject_words(question, language)
        words = [word.text for word in asked if not word.general] or [word.text for word in asked]
    else:
        words = [word for word in content_words(question) if not is_general(word)] or content_words(question)
        words += NUMBERS.findall(question)  # the index has the numbers of its texts as they are written
    found = {_in_any_form(word, language): word for word in reversed(words)}
    return [SearchWord(word, query) for query, word in reversed(found.items())][:MOST_QUERY_WORDS]


def any_of(words: Sequence[SearchWord]) -> str:
    return " OR ".join(word.query for word in words)


def _in_any_form(word: str, language: str) -> str:
    """A word in the index's own syntax, whatever its ending is; of a short one only with usual endings."""
    if UNSPACED_RUN.fullmatch(word):
        return _phrase(" ".join(pairs(word)) if len(word) > 1 else word)
    if not word.isalpha() or (language == "ja" and word.isascii()):
        return _phrase(word)
    root = _ENDING.sub("", word)
    if language in _INFLECTED or len(root) >= _LEAST_STEM:
        return f"{_phrase(stem(word))}*"
    forms = {word, *(f"{root}{ending}" for ending in _ENDINGS if len(root) >= _LEAST_ROOT)}
    return f"({' OR '.join(map(_phrase, sorted(forms)))})"


def _phrase(word: str) -> str:
    """A word or several in a row in the index's own syntax: whatever they hold is searched for as it stands."""
    # A sign of an unspaced script alone is the beginning of all of its pairs.
    beginning = "*" if len(word) == 1 and UNSPACED_RUN.fullmatch(word) else ""
    return f'"{word}"{beginning}'


def _searchable(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold().encode(errors="replace").decode()
    return UNSPACED_RUN.sub(lambda run: f" {' '.join(pairs(run[0]))} ", plain)
