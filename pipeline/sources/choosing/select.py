"""Which passages of the pages that an answer cites its record gets (pipeline/contracts/records.md#passages).

Texts that the payload carries are all kept. Of the pages that were read each gets its best passage, then the best of
the rest follow, up to a number of passages and of tokens.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from pipeline.records import Passage, QueryResponse, defuse_separator, join_context
from pipeline.sources.schema import Chunk
from pipeline.text.words import content_words, without_marks

_SEARCH = "SELECT rowid, bm25(passages) FROM passages WHERE passages MATCH ?"
_OTHER = "x"
_DIGITS = 9
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
        rows = ((place, _encoded(text, language, codes)) for place, text in enumerate(texts))
        database.executemany("INSERT INTO passages (rowid, words) VALUES (?, ?)", rows)
        # The score of many words is the sum of theirs, and one search for all of them takes time with their square.
        for code in codes.values():
            for place, score in database.execute(_SEARCH, [code]):
                scores[place] += score
    return sorted(range(len(texts)), key=lambda place: (round(scores[place], _DIGITS), place))


def _encoded(text: str, language: str, codes: dict[str, str]) -> str:
    """The text's content words, each that is asked for as its code, the others as one more that nobody asks for.

    So the search sees the words as they were found here, and none of its own syntax in them; how long the text is
    counts as well.
    """
    return " ".join([codes.get(word, _OTHER) for word in content_words(text, language)])


class PassageLimits(NamedTuple):
    """How much of the pages one record gets; what its payload carries is not counted."""

    passages: int = 5
    """Passages of pages, unless more pages were read: then one of each."""
    context_tokens: int = 2000
    """Tokens of them together, of `o200k_base`."""
    chunk_tokens: int = 250
    """Tokens of one passage."""


class PageChunks(NamedTuple):
    """A page that was read: its chunks in the order of its text."""

    url: str
    """The page's URL, as its passages name it."""
    doc_id: str
    """Id of the document."""
    title: str
    """The page's title; empty where it has none."""
    chunks: Sequence[Chunk]
    """None of them empty."""


class ChunkPlace(NamedTuple):
    """Where a chunk is: the page among the pages and the chunk among its chunks, both counted from 0."""

    page: int
    position: int


class Candidate(NamedTuple):
    """One chunk of a page."""

    place: ChunkPlace
    chunk: Chunk

    @property
    def page(self) -> int:
        """The page that it is from."""
        return self.place.page


class Selected(NamedTuple):
    """A record with its passages, and the pages of which the tokens left none."""

    record: QueryResponse
    left_out: tuple[str, ...]


def select_passages(record: QueryResponse, pages: Sequence[PageChunks], limits: PassageLimits) -> Selected:
    """The record with the best passages of these pages beside those it has, all in the order of their rank.

    A text that stands on two pages is taken from the first, and not again where the payload carries it. A page whose
    best passage does not fit into the tokens is left out.
    """
    held = record.chunks
    candidates = list(distinct_chunks(pages, (passage.text for passage in held)))
    texts = [*(passage.text for passage in held), *(candidate.chunk.text for candidate in candidates)]
    language = "" if record.language == "und" else record.language
    order = rank_passages(record.query, record.answer, texts, language)
    chosen = _choose([candidates[place - len(held)] for place in order if place >= len(held)], limits)
    ranked = [
        held[place] if place < len(held) else passage_of(pages, candidates[place - len(held)])
        for place in order
        if place < len(held) or candidates[place - len(held)].place in chosen
    ]
    passages = tuple(passage.model_copy(update={"chunk_rank": rank}) for rank, passage in enumerate(ranked, start=1))
    left_out = sorted({candidate.page for candidate in candidates} - {page for page, _ in chosen})
    return Selected(
        record.model_copy(update={"chunks": passages, "context_set": join_context(passages)}),
        tuple(pages[page].url for page in left_out),
    )


def distinct_chunks(pages: Sequence[PageChunks], held: Iterable[str]) -> Iterator[Candidate]:
    """The chunks page by page; of those that differ in white space and case alone the first, none of the texts held."""
    seen = {_plain(text) for text in held}
    for number, page in enumerate(pages):
        for position, chunk in enumerate(page.chunks):
            if _plain(chunk.text) not in seen:
                seen.add(_plain(chunk.text))
                yield Candidate(ChunkPlace(number, position), chunk)


def _plain(text: str) -> str:
    """The text without what a copy of it may change."""
    return " ".join(text.casefold().split())


def _choose(ranked: Sequence[Candidate], limits: PassageLimits) -> set[ChunkPlace]:
    """The best one of each page, then the best of the rest, as far as the limits go; `ranked` has the best first."""
    best: dict[int, Candidate] = {}
    for candidate in ranked:
        best.setdefault(candidate.page, candidate)
    firsts = {candidate.place for candidate in best.values()}
    chosen: set[ChunkPlace] = set()
    tokens = 0
    for place, chunk in [*best.values(), *(candidate for candidate in ranked if candidate.place not in firsts)]:
        wanted = place in firsts or len(chosen) < limits.passages
        if wanted and tokens + chunk.tokens <= limits.context_tokens:
            chosen.add(place)
            tokens += chunk.tokens
    return chosen


def passage_of(pages: Sequence[PageChunks], candidate: Candidate) -> Passage:
    """The candidate as a passage, its rank still open."""
    page = pages[candidate.page]
    return Passage(
        chunk_id=f"{page.doc_id}#{candidate.place.position}",
        doc_id=page.doc_id,
        chunk_rank=1,
        text=defuse_separator(candidate.chunk.text),
        title=page.title,
        url=page.url,
        origin="page",
    )
