"""Every rule of CSV v2 on a file, before and after writing; all violations are told, none of them stops the check.

Source: pipeline/contracts/csv_v2.md#validation.
"""

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import NamedTuple

from pipeline.citations.addresses import ABSOLUTE, GROUNDING_REDIRECT_HOST, host_name, source_domain
from pipeline.core.errors import TornFrameError
from pipeline.core.lines import csv_reader, decoded_lines, likely_encoding, open_csv
from pipeline.core.schema import CSV_COLUMNS, PROVIDERS, RESULTS_OF
from pipeline.csv.rows import (
    ANSWER_ID,
    CITATION_LIST,
    MODEL_NAME,
    RESULT_COLUMNS,
    RESULT_START,
    SHARED_COLUMNS,
    SOURCE_COLUMNS,
    SOURCE_START,
    citation_list,
)

_Problem = tuple[str, str, str]
"""Column, what was found, what was wanted."""
# A refusal or a block is an answer without text, and a narrative need not have a type:
# pipeline/contracts/csv_v2.md#columns.
_MAY_BE_EMPTY = ("narrative_type", "answer_text")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_IN_ORDER = list(range(len(CSV_COLUMNS)))


def shown(cell: str) -> str:
    """The cell for a person: quoted, its control characters escaped, cut where it is long."""
    if not cell:
        return "nothing"
    return repr(cell) if len(cell) <= 80 else f"{cell[:80]!r}… ({len(cell):,} characters)"


def _shared_problems(cells: Sequence[str], research: bool) -> tuple[_Problem, ...]:
    problems: list[_Problem] = _nul_problems(SHARED_COLUMNS, cells)
    for column, cell in zip(SHARED_COLUMNS, cells, strict=True):
        if not cell.strip():
            if column not in _MAY_BE_EMPTY:
                problems.append((column, shown(cell), "a value"))
            continue
        rule = _RULES.get(column)
        wanted = rule(cell) if rule else ""
        if wanted and not (research and column == "model_name" and cell == "pipeline"):
            problems.append((column, shown(cell), wanted))
    return tuple(problems)


def wanted_uuid(cell: str) -> str:
    """What an answer's id should be; empty where it is right."""
    return "" if _UUID.fullmatch(cell) else "a UUID"


def wanted_time(cell: str) -> str:
    try:
        right = "T" in cell and datetime.fromisoformat(cell).tzinfo is not None
    except ValueError:
        right = False
    return "" if right else "an ISO 8601 time with its offset, such as 2025-12-29T17:30:00+00:00"


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


# Numbers stay text: nothing asks for them, and Python refuses to convert integers of over 4,300 digits.
_STRICT_JSON = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)


def wanted_json(cell: str) -> str:
    try:
        _STRICT_JSON.decode(cell)
    except ValueError as error:
        return f"valid JSON ({error})"
    except RecursionError:
        return "JSON that is not nested so deep that it cannot be read"
    return ""


_RULES: dict[str, Callable[[str], str]] = {
    "model_name": lambda cell: (
        "" if cell in PROVIDERS else f"one of {', '.join(PROVIDERS)} (`pipeline` only in a file `pipeline.csv`)"
    ),
    "answer_id": wanted_uuid,
    "answer_timestamp": wanted_time,
    "answer_raw_json": wanted_json,
    "answer_citation_list": lambda cell: (
        "a JSON array of URLs, `[]` where there are none" if _read_citations(cell) is None else ""
    ),
}


class _Judged(NamedTuple):
    """A part of a row: the number in its id, -1 for an empty part and None for no usable number, and its problems."""

    number: int | None
    problems: tuple[_Problem, ...]


class _AnswerCheck:
    """What is known of one answer while its rows come in."""

    def __init__(self, line: int, cells: list[str], research: bool) -> None:
        self.line = line
        self.shared = cells[:SOURCE_START]
        self.shared_hashes: tuple[int, ...] = ()
        self.problems = _shared_problems(self.shared, research)
        self.citations = _read_citations(cells[CITATION_LIST])
        self.citation_count = len(self.citations or ())
        self.answer_id, self.model_name = cells[ANSWER_ID], cells[MODEL_NAME]
        self.sources: dict[int, _Judged] = {}
        self.results: dict[int, _Judged] = {}
        self.pairs: set[tuple[int, int]] = set()
        self.rows = 0
        self.usable = True

    def park(self) -> None:
        """Forget the texts; the next row belongs to another answer."""
        if self.shared:
            self.shared_hashes = tuple(map(hash, self.shared))
        self.shared, self.citations = [], []

    def resume(self, cells: list[str]) -> None:
        shared = cells[:SOURCE_START]
        if tuple(map(hash, shared)) == self.shared_hashes:
            self.shared = shared
        self.citations = _read_citations(cells[CITATION_LIST])

    def add(self, cells: list[str], research: bool) -> tuple[_Problem, ...]:
        self.rows += 1
        problems = self.problems if cells[:SOURCE_START] == self.shared else self.differing(cells, research)
        source = self.judged(self.sources, "source_id", tuple(cells[SOURCE_START:RESULT_START]), self.judge_source)
        result = self.judged(self.results, "result_id", tuple(cells[RESULT_START:]), self.judge_result)
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

    def differing(self, cells: list[str], research: bool) -> tuple[_Problem, ...]:
        shared = cells[:SOURCE_START]
        hashes = self.shared_hashes or tuple(map(hash, self.shared))
        differences = (
            (column, shown(cell), f"what line {self.line} has, the first row of this answer")
            for column, cell, wanted in zip(SHARED_COLUMNS, shared, hashes, strict=True)
            if hash(cell) != wanted
        )
        return (*_shared_problems(shared, research), *differences)

    def judged(
        self,
        known: dict[int, _Judged],
        column: str,
        cells: tuple[str, ...],
        judge: Callable[[tuple[str, ...], Sequence[str]], _Judged],
    ) -> _Judged:
        """The part as it was judged when it first came; a second content under the same id is a problem."""
        key = hash(cells)
        part = known.get(key)
        if part is None:
            part = _Judged(None, ()) if self.citations is None else judge(cells, self.citations)
            if part.number is not None and any(part.number == other.number for other in known.values()):
                conflict = (column, f"{shown(cells[0])} with other cells", "the same cells wherever this id stands")
                part = part._replace(problems=(*part.problems, conflict))
            known[key] = part
        return part

    def judge_source(self, cells: tuple[str, ...], citations: Sequence[str]) -> _Judged:
        source_id, url, domain = cells
        if not any(cells):
            if not citations:
                return _Judged(-1, ())
            entries = f"one of the {len(citations)} entries of `answer_citation_list`"
            return _Judged(None, (("source_id", "nothing", entries),))
        problems = _nul_problems(SOURCE_COLUMNS, cells)
        index = _number_after(source_id, f"{self.answer_id}_source_")
        if index is None or index >= len(citations):
            wanted = f"'{self.answer_id}_source_' and a number from 0, below {len(citations)}"
            wanted = wanted if citations else "nothing, as there are no citations"
            return _Judged(None, (*problems, ("source_id", shown(source_id), wanted)))
        if url != citations[index]:
            wanted = f"{shown(citations[index])}, entry {index} of `answer_citation_list`"
            problems.append(("source_url", shown(url), wanted))
        elif not ABSOLUTE.match(url):
            problems.append(("source_url", shown(url), "a full URL with its scheme"))
        host = source_domain(url)
        if host == GROUNDING_REDIRECT_HOST and (not domain or host_name(domain).removeprefix("www.") != domain):
            problems.append(("source_domain", shown(domain), "the site behind the redirect, without `www.`"))
        elif host not in (domain, GROUNDING_REDIRECT_HOST):
            problems.append(("source_domain", shown(domain), shown(host)))
        return _Judged(index, tuple(problems))

    def judge_result(self, cells: tuple[str, ...], _citations: Sequence[str]) -> _Judged:
        if not any(cells):
            return _Judged(-1, ())
        problems = _nul_problems(RESULT_COLUMNS, cells)
        has_none = self.model_name == RESULTS_OF
        if not has_none or not self.citation_count:
            wanted = "nothing, as the answer has no citation" if has_none else f"nothing but for {RESULTS_OF.title()}"
            strange = [
                (column, shown(cell), wanted) for column, cell in zip(RESULT_COLUMNS, cells, strict=True) if cell
            ]
            return _Judged(None, (*problems, *strange))
        result_id, url, domain, _, _, rank = cells
        index = _number_after(result_id, f"{self.answer_id}_result_")
        if index is None:
            wanted = f"'{self.answer_id}_result_' and a number from 0"
            return _Judged(None, (*problems, ("result_id", shown(result_id), wanted)))
        if rank != str(index + 1):
            problems.append(("result_rank", shown(rank), f"'{index + 1}', one more than the number in `result_id`"))
        if domain != source_domain(url):
            problems.append(("result_domain", shown(domain), shown(source_domain(url))))
        return _Judged(index, tuple(problems))

    def closing_problems(self) -> Iterator[_Problem]:
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


def _nul_problems(columns: Sequence[str], cells: Sequence[str]) -> list[_Problem]:
    return [
        (column, f"a NUL character in {shown(cell)}", "text")
        for column, cell in zip(columns, cells, strict=True)
        if "\0" in cell
    ]


def _number_after(text: str, prefix: str) -> int | None:
    number = text.removeprefix(prefix)
    return int(number) if number != text and re.fullmatch(r"0|[1-9][0-9]{0,8}", number) else None


def _read_citations(cell: str) -> list[str] | None:
    """The cited URLs of an `answer_citation_list`; None where it cannot be read."""
    try:
        return citation_list(cell)
    except ValueError:
        return None


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

    def violation(line: int, problem: _Problem) -> None:
        nonlocal violations
        violations += 1
        tell(Violation(str(path), line, *problem))

    answers: dict[str, _AnswerCheck] = {}
    current: _AnswerCheck | None = None
    rows = 0
    research = path.name == "pipeline.csv"
    for line, cells in _well_formed_rows(path, violation):
        rows += 1
        answer_id = cells[ANSWER_ID]
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


def _well_formed_rows(path: Path, violation: Callable[[int, _Problem], None]) -> Iterator[tuple[int, list[str]]]:
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


def _readable_rows(path: Path, violation: Callable[[int, _Problem], None]) -> Iterator[tuple[int, list[str]]]:
    def damaged(line: int, raw: bytes, at: int) -> None:
        found = f"0x{raw[at]:02x}, byte {at + 1} of the line, which looks like {likely_encoding(raw).name}"
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


def _column_order(line: int, header: list[str], violation: Callable[[int, _Problem], None]) -> list[int] | None:
    if tuple(header) == CSV_COLUMNS:
        return _IN_ORDER
    missing = [column for column in CSV_COLUMNS if column not in header]
    surplus = [name for place, name in enumerate(header) if name not in CSV_COLUMNS or name in header[:place]]
    for column in missing:
        violation(line, (column, "nothing in the header", "this column; no row was judged without it"))
    for name in surplus:
        violation(line, ("row", f"the column {shown(name)}", "each of the 20 columns once and no other"))
    if missing:
        return None
    if not surplus:
        place = next(place for place, name in enumerate(header) if name != CSV_COLUMNS[place])
        violation(line, (header[place], f"column {place + 1}", f"{CSV_COLUMNS[place]!r} in this place"))
    return [header.index(column) for column in CSV_COLUMNS]
