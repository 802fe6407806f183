"""What a good report on a topic holds, written from the pages before any run: `tests/data/research/*.toml`.

A fact is found in a text by words that any honest wording of it has: regular expressions, all of one set within two
sentences on end. Whether the sets fit is tested against the pages, against a rewording and against the rest of the
corpus.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from tests.support.places import DATA

KEYS = DATA / "research"
Corpus = Literal["manuals", "handbuch", "handobukku", "articles"]
Key = Literal["tuned", "held", "everyday"]
NAMES: tuple[Key, ...] = ("tuned", "held", "everyday")


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class About(_Entry):
    """A place that is about the topic."""

    page: str
    """The page's path in its corpus; `*` stands for anything."""
    under: tuple[str, ...] = ()
    """Headings whose sections are meant, with all below them; none where the whole page is."""


class Fact(_Entry):
    """Something that a good report says."""

    fact: str
    """The fact in a sentence, for people."""
    page: str
    """A page that says it, as in `About`."""
    also: tuple[str, ...] = ()
    """Pages that say it in a place which is not about the topic."""
    said: tuple[tuple[str, ...], ...]
    """Sets of regular expressions: the fact is told where all of one set are found, in any order and case."""
    false: tuple[str, ...] = ()
    """The same of what contradicts the fact; empty where nothing is known to."""
    contrary: str = ""
    """A sentence that contradicts it, where `false` is not empty."""
    reworded: str
    """The fact in words that are not the page's, in which it must be found."""

    def told_in(self, text: str) -> bool:
        """Whether the text says so."""
        plain = plain_text(text)
        return any(all(_searched(each, plain) for each in words) for words in self.said)

    def denied_in(self, text: str) -> bool:
        """Whether the text says the contrary."""
        plain = plain_text(text)
        return bool(self.false) and all(_searched(each, plain) for each in self.false)


class Question(_Entry):
    """A question put to a corpus."""

    question: str
    """What is asked, as a person would type it."""
    language: Literal["en", "de", "ja"]
    """The language of the question, the pages and the report."""
    corpus: Corpus
    """The pages that are searched: a folder of `tests.support.research_pages`."""
    about: tuple[About, ...] = ()
    """Places that are about it; none where no page of the corpus is."""


class Topic(Question):
    """A question with what a good report on it says."""

    name: str
    """A short name for tables."""
    fact: tuple[Fact, ...] = ()
    """What a good report says."""


@cache
def topics(name: Key) -> tuple[Topic, ...]:
    """The topics of a key; numbers and rules are chosen on `tuned`, and measured on the others.

    Those of `held` call their subjects by their ordinary names, those of `everyday` do not.
    """
    entries = tomllib.loads((KEYS / f"{name}.toml").read_text(encoding="utf-8"))
    return tuple(Topic.model_validate(entry) for entry in entries["topic"])


@cache
def everyday_questions(corpus: Corpus) -> tuple[Question, ...]:
    """Questions in everyday words, put to this corpus; all of them count as fitted."""
    entries = TypeAdapter(tuple[Question, ...]).validate_json((KEYS / "questions.json").read_bytes())
    return tuple(each for each in entries if each.corpus == corpus)


def told(facts: Sequence[Fact], sentences: Sequence[str]) -> Iterator[Fact]:
    """The facts that sentences on end tell, each within two of them."""
    windows = [*sentences, *(" ".join(pair) for pair in pairwise(sentences))]
    return (fact for fact in facts if any(map(fact.told_in, windows)))


@lru_cache(maxsize=64)
def plain_text(text: str) -> str:
    """The text in one form of letters and quotation marks, with single blanks."""
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text).translate(_PLAIN)).strip()


_PLAIN = str.maketrans("’‘ʼ“”„‐‑", "'''\"\"\"--")


def _searched(pattern: str, text: str) -> bool:
    return bool(_compiled(pattern).search(text))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
