"""Every rule of CSV v2 on a file, before and after writing; all violations are told, none of them stops the check.

Source: pipeline/contracts/csv_v2.md#validation.
"""

import csv
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

from pipeline.core.errors import TornFrameError
from pipeline.core.lines import csv_reader, decoded_lines, likely_encoding, open_csv
from pipeline.core.schema import CSV_COLUMNS
from pipeline.csv import rows as rules

_IN_ORDER = list(range(len(CSV_COLUMNS)))


class _AnswerCheck:
    """What is known of one answer while its rows come in."""

    def __init__(self, line: int, cells: list[str], research: bool) -> None:
        self.line = line
        self.shared = cells[: rules.SOURCE_START]
        self.shared_hashes: tuple[int, ...] = ()
        self.problems = rules.shared_problems(self.shared, research)
        self.citations = rules.read_citations(cells[rules.CITATION_LIST])
        self.citation_count = len(self.citations or ())
        self.answer_id, self.model_name = cells[rules.ANSWER_ID], cells[rules.MODEL_NAME]
        self.sources: dict[int, rules.Judged] = {}
        self.results: dict[int, rules.Judged] = {}
        self.pairs: set[tuple[int, int]] = set()
        self.rows = 0
        self.usable = True

    def park(self) -> None:
        """Forget the texts; the next row belongs to another answer."""
        if self.shared:
            self.shared_hashes = tuple(map(hash, self.shared))
        self.shared, self.citations = [], []

    def resume(self, cells: list[str]) -> None:
        shared = cells[: rules.SOURCE_START]
        if tuple(map(hash, shared)) == self.shared_hashes:
            self.shared = shared
        self.citations = rules.read_citations(cells[rules.CITATION_LIST])

    def add(self, cells: list[str], research: bool) -> tuple[rules.Problem, ...]:
        self.rows += 1
        problems = self.problems if cells[: rules.SOURCE_START] == self.shared else self.differing(cells, research)
        source = self.judged(self.sources, "source_id", tuple(cells[rules.SOURCE_START : rules.RESULT_START]))
        result = self.judged(self.results, "result_id", tuple(cells[rules.RESULT_START :]))
        if source.problems or result.problems:
            problems = (*problems, *source.problems, *result.problems)
        if source.number is None or result.number is None:
            self.usable = False
            return problems
        pair = (source.number, result.number)
        if pair in self.pairs:
            problems = (*problems, ("row", f"{_pair_name(pair)} again", "each source with each result once"))
        self.pairs.add(pair)
        return problems

    def differing(self, cells: list[str], research: bool) -> tuple[rules.Problem, ...]:
        shared = cells[: rules.SOURCE_START]
        hashes = self.shared_hashes or tuple(map(hash, self.shared))
        differences = (
            (column, rules.shown(cell), f"what line {self.line} has, the first row of this answer")
            for column, cell, wanted in zip(rules.SHARED_COLUMNS, shared, hashes, strict=True)
            if hash(cell) != wanted
        )
        return (*rules.shared_problems(shared, research), *differences)

    def judged(self, known: dict[int, rules.Judged], column: str, cells: tuple[str, ...]) -> rules.Judged:
        """The part as it was judged when it first came; a second content under the same id is a problem."""
        key = hash(cells)
        part = known.get(key)
        if part is None:
            cited = self.citations
            if cited is None:
                part = rules.Judged(None, ())
            elif column == "source_id":
                part = rules.judge_source(self.answer_id, cited, cells)
            else:
                part = rules.judge_result(self.answer_id, self.model_name, bool(self.citation_count), cells)
            if part.number is not None and any(part.number == other.number for other in known.values()):
                conflict = (
                    column,
                    f"{rules.shown(cells[0])} with other cells",
                    "the same cells wherever this id stands",
                )
                part = part._replace(problems=(*part.problems, conflict))
            known[key] = part
        return part

    def closing_problems(self) -> Iterator[rules.Problem]:
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
        for source in sorted({source for source, _ in self.pairs}):
            for result in sorted(results or {-1}):
                if (source, result) not in self.pairs:
                    yield "row", f"no row for {_pair_name((source, result))}", "each source with each result once"


def _pair_name(pair: tuple[int, int]) -> str:
    source, result = pair
    return (
        f"source {source} with result {result}" if result >= 0 else f"source {source}" if source >= 0 else "no source"
    )


class Violation(NamedTuple):
    """One cell, row or answer that breaks a rule."""

    file: str
    line: int
    """The physical line on which the row begins, counted from 1; an answer's is that of its first row."""
    column: str
    """The column; `row` where the whole row is meant."""
    found: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.column}: found {self.found}, wanted {self.wanted}"


class Counts(NamedTuple):
    rows: int
    answers: int
    violations: int


def check_rows(path: Path, tell: Callable[[Violation], None]) -> Counts:
    """How many rows, answers and violations the file holds; `tell` hears of each violation as soon as it is known."""
    violations = 0

    def violation(line: int, problem: rules.Problem) -> None:
        nonlocal violations
        violations += 1
        tell(Violation(str(path), line, *problem))

    answers: dict[str, _AnswerCheck] = {}
    current: _AnswerCheck | None = None
    rows = 0
    research = path.name == "pipeline.csv"
    for line, cells in _well_formed_rows(path, violation):
        rows += 1
        answer_id = cells[rules.ANSWER_ID]
        if current is None or answer_id != current.answer_id:
            if current:
                current.park()
            current = answers.get(answer_id)
            if current:
                current.resume(cells)
            else:
                current = answers[answer_id] = _AnswerCheck(line, cells, research)
        for problem in current.add(cells, research):
            violation(line, problem)
    for answer in answers.values():
        for problem in answer.closing_problems():
            violation(answer.line, problem)
    return Counts(rows, len(answers), violations)


def _well_formed_rows(path: Path, violation: Callable[[int, rules.Problem], None]) -> Iterator[tuple[int, list[str]]]:
    """The rows that have a cell for each column, in the contract's order; none where a column is missing."""
    order: list[int] | None = None
    width = 0
    for line, cells in _readable_rows(path, violation):
        if not width:
            width = len(cells)
            order = _column_order(line, cells, violation)
        elif len(cells) != width:
            violation(line, ("row", f"{len(cells)} cells", f"{width}, as in the header"))
        elif order is _IN_ORDER:
            yield line, cells
        elif order:
            yield line, [cells[place] for place in order]
    if not width:
        violation(1, ("row", "an empty file", f"a header with the {len(CSV_COLUMNS)} columns"))


def _readable_rows(path: Path, violation: Callable[[int, rules.Problem], None]) -> Iterator[tuple[int, list[str]]]:
    def damaged(line: int, raw: bytes, at: int) -> None:
        likely = likely_encoding(raw).name or "nothing known"
        found = f"0x{raw[at]:02x}, byte {at + 1} of the line, which looks like {likely}"
        violation(line, ("row", found, "UTF-8"))

    with open_csv(path) as file:
        rows = csv_reader(decoded_lines(file, damaged))
        while True:
            line = rows.line_num + 1
            try:
                cells = next(rows)
            except StopIteration:
                return
            except TornFrameError:
                violation(line, ("row", "the end of the file in the middle of a frame", "the rest of the answer"))
                return
            except csv.Error as error:
                violation(line, ("row", f"no CSV: {error}", "every quotation mark doubled, every cell closed"))
                continue
            if cells:
                yield line, cells


def _column_order(line: int, header: list[str], violation: Callable[[int, rules.Problem], None]) -> list[int] | None:
    if tuple(header) == CSV_COLUMNS:
        return _IN_ORDER
    missing = [column for column in CSV_COLUMNS if column not in header]
    surplus = [name for place, name in enumerate(header) if name not in CSV_COLUMNS or name in header[:place]]
    for column in missing:
        violation(line, (column, "nothing in the header", "this column; no row was judged without it"))
    for name in surplus:
        violation(line, ("row", f"the column {rules.shown(name)}", "each of the 20 columns once and no other"))
    if missing:
        return None
    if not surplus:
        place = next(place for place, name in enumerate(header) if name != CSV_COLUMNS[place])
        violation(line, (header[place], f"column {place + 1}", f"{CSV_COLUMNS[place]!r} in this place"))
    return [header.index(column) for column in CSV_COLUMNS]
