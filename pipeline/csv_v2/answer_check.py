"""The rules of CSV v2 on the rows of one answer together, in whatever order they come (seed 000, design 4.1).

Once another answer's rows come in, only numbers and hashes are kept, so that memory follows the number of rows and not
their size. What repeats on the rows of an answer is judged once.
"""

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from pipeline.csv_v2.cell_rules import Problem, result_problems, shared_problems, shown, source_problems
from pipeline.csv_v2.rows import (
    ANSWER_ID,
    CITATION_LIST,
    MODEL_NAME,
    RESULT_START,
    SHARED_COLUMNS,
    SOURCE_START,
    citation_list,
)


class Judged(NamedTuple):
    """A part of a row as it was judged when it first stood there."""

    number: int | None
    """The number in its id; -1 for an empty part, None where it has no usable number."""
    problems: tuple[Problem, ...]


class AnswerCheck:
    """What is known of one answer while its rows come in."""

    def __init__(self, line: int, cells: list[str], research: bool) -> None:
        self.line = line
        self.shared = cells[:SOURCE_START]
        self.shared_hashes: tuple[int, ...] = ()
        self.problems = shared_problems(self.shared, research)
        self.citations = citations_of(cells)
        self.citation_count = len(self.citations or ())
        self.model_name = cells[MODEL_NAME]
        self.sources: dict[int, Judged] = {}
        self.results: dict[int, Judged] = {}
        self.pairs: set[tuple[int, int]] = set()
        self.rows = 0
        self.usable = True

    def park(self) -> None:
        """Forget the texts; the next row belongs to another answer."""
        if self.shared:
            self.shared_hashes = tuple(map(hash, self.shared))
        self.shared, self.citations = [], []

    def resume(self, cells: list[str]) -> None:
        """Take up the answer again with a row that stands apart from the others."""
        shared = cells[:SOURCE_START]
        if tuple(map(hash, shared)) == self.shared_hashes:
            self.shared = shared
        self.citations = citations_of(cells)

    def add(self, cells: list[str], research: bool) -> tuple[Problem, ...]:
        """The problems of one more row."""
        self.rows += 1
        problems = self.problems if cells[:SOURCE_START] == self.shared else self.differing(cells, research)
        source_cells = tuple(cells[SOURCE_START:RESULT_START])
        source_key = hash(source_cells)
        source = self.sources.get(source_key)
        if source is None:
            source = self.judge_source(source_key, source_cells, cells[ANSWER_ID])
        result_cells = tuple(cells[RESULT_START:])
        result_key = hash(result_cells)
        result = self.results.get(result_key)
        if result is None:
            result = self.judge_result(result_key, result_cells, cells[ANSWER_ID])
        if source.problems or result.problems:
            problems = (*problems, *source.problems, *result.problems)
        if source.number is None or result.number is None:
            self.usable = False
            return problems
        pair = (source.number, result.number)
        if pair in self.pairs:
            problems = (*problems, ("row", f"{pair_name(pair)} again", "each source with each result once"))
        self.pairs.add(pair)
        return problems

    def differing(self, cells: list[str], research: bool) -> tuple[Problem, ...]:
        """The problems of shared cells that are not those of the answer's first row."""
        shared = cells[:SOURCE_START]
        hashes = self.shared_hashes or tuple(map(hash, self.shared))
        differences = (
            (column, shown(cell), f"what line {self.line} has, the first row of this answer")
            for column, cell, wanted in zip(SHARED_COLUMNS, shared, hashes, strict=True)
            if hash(cell) != wanted
        )
        return (*shared_problems(shared, research), *differences)

    def judge_source(self, key: int, cells: tuple[str, ...], answer_id: str) -> Judged:
        """The source's number and problems, remembered under the key."""
        judged = Judged(None, ())
        if self.citations is not None:
            judged = Judged(*source_problems(cells, answer_id, self.citations))
        return remember(self.sources, key, judged, "source_id", cells[0])

    def judge_result(self, key: int, cells: tuple[str, ...], answer_id: str) -> Judged:
        """The result's number and problems, remembered under the key."""
        judged = Judged(None, ())
        if self.citations is not None:
            judged = Judged(*result_problems(cells, answer_id, self.model_name, cites=self.citation_count > 0))
        return remember(self.results, key, judged, "result_id", cells[0])

    def closing_problems(self) -> Iterator[Problem]:
        """What is wrong with the answer as a whole; nothing where its ids or its list cannot be read."""
        if not self.usable:
            return
        sources = {source for source, _ in self.pairs} - {-1}
        results = {result for _, result in self.pairs} - {-1}
        if len(sources) != self.citation_count:
            wanted = f"{self.citation_count}, the length of `answer_citation_list`"
            yield "source_id", f"{len(sources)} distinct sources", wanted
        if results and max(results) + 1 != len(results):
            gap = next(number for number in count() if number not in results)
            yield "result_id", f"no result {gap}", f"every number from 0 to {max(results)}"
        wanted_rows = max(1, self.citation_count) * max(1, len(results))
        if self.rows != wanted_rows:
            wanted = f"{wanted_rows} ({self.citation_count} citations, {len(results)} results)"
            yield "row", f"{self.rows} rows of this answer", wanted
        yield from self.missing_pairs(results)

    def missing_pairs(self, results: set[int]) -> Iterator[Problem]:
        """Each source that stands without one of the results."""
        for source in sorted({source for source, _ in self.pairs}):
            for result in sorted(results or {-1}):
                if (source, result) not in self.pairs:
                    yield "row", f"no row for {pair_name((source, result))}", "each source with each result once"


def citations_of(cells: list[str]) -> list[str] | None:
    """The row's cited URLs; None where the cell cannot be read, which is told as a problem of its own."""
    try:
        return citation_list(cells[CITATION_LIST])
    except ValueError:
        return None


def pair_name(pair: tuple[int, int]) -> str:
    """The pair in words."""
    source, result = pair
    return (
        f"source {source} with result {result}" if result >= 0 else f"source {source}" if source >= 0 else "no source"
    )


def remember(known: dict[int, Judged], key: int, judged: Judged, column: str, part_id: str) -> Judged:
    """The part as judged; a second content under the same id is a problem."""
    if judged.number is not None and any(judged.number == other.number for other in known.values()):
        conflict = (column, f"{shown(part_id)} with other cells", "the same cells wherever this id stands")
        judged = judged._replace(problems=(*judged.problems, conflict))
    known[key] = judged
    return judged
