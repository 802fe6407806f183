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

from pipeline.citations.addresses import GROUNDING_REDIRECT_HOST, host_name, source_domain
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
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://.")
_SHOWN_LENGTH = 80
_RESEARCH_FILE = "pipeline.csv"
_IN_ORDER = list(range(len(CSV_COLUMNS)))


def shown(cell: str) -> str:
    """The cell for a person: quoted, its control characters escaped, cut where it is long."""
    if not cell:
        return "nothing"
    return repr(cell) if len(cell) <= _SHOWN_LENGTH else f"{cell[:_SHOWN_LENGTH]!r}… ({len(cell):,} characters)"


def _shared_problems(cells: Sequence[str], research: bool) -> tuple[_Problem, ...]:
    """The problems of the 11 cells that all rows of an answer share; in a research run's file `pipeline` is a model."""
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


def _wanted_model(cell: str) -> str:
    """What a model name should be; empty where it is right."""
    return "" if cell in PROVIDERS else f"one of {', '.join(PROVIDERS)} (`pipeline` only in a file `pipeline.csv`)"


def wanted_uuid(cell: str) -> str:
    """What an answer's id should be; empty where it is right."""
    return "" if _UUID.fullmatch(cell) else "a UUID"


def wanted_time(cell: str) -> str:
    """What a time should be; empty where it is right."""
    try:
        right = "T" in cell and datetime.fromisoformat(cell).tzinfo is not None
    except ValueError:
        right = False
    return "" if right else "an ISO 8601 time with its offset, such as 2025-12-29T17:30:00+00:00"


def _refuse_constant(name: str) -> None:
    """Refuse NaN and Infinity, which Python's reader takes for JSON.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{name} is no JSON value")


# Numbers stay text: nothing asks for them, and Python refuses to convert integers of over 4,300 digits.
_STRICT_JSON = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)


def wanted_json(cell: str) -> str:
    """What a raw body should be; empty where it is right."""
    try:
        _STRICT_JSON.decode(cell)
    except ValueError as error:
        return f"valid JSON ({error})"
    except RecursionError:
        return "JSON that is not nested so deep that it cannot be read"
    return ""


def _wanted_list(cell: str) -> str:
    """What a citation list should be; empty where it is right."""
    try:
        citation_list(cell)
    except ValueError:
        return "a JSON array of URLs, `[]` where there are none"
    return ""


_RULES: dict[str, Callable[[str], str]] = {
    "model_name": _wanted_model,
    "answer_id": wanted_uuid,
    "answer_timestamp": wanted_time,
    "answer_raw_json": wanted_json,
    "answer_citation_list": _wanted_list,
}


def _source_problems(
    cells: Sequence[str], answer_id: str, citations: Sequence[str]
) -> tuple[int | None, tuple[_Problem, ...]]:
    """The number in the `source_id` (-1 for an empty source, None for none that counts) and the source's problems."""
    source_id, url, domain = cells
    if not any(cells):
        if not citations:
            return -1, ()
        return None, (("source_id", "nothing", f"one of the {len(citations)} entries of `answer_citation_list`"),)
    problems = _nul_problems(SOURCE_COLUMNS, cells)
    index = _number_after(source_id, f"{answer_id}_source_")
    if index is None or index >= len(citations):
        wanted = f"'{answer_id}_source_' and a number from 0, below {len(citations)}"
        problems.append(("source_id", shown(source_id), wanted if citations else "nothing, as there are no citations"))
        return None, tuple(problems)
    if url != citations[index]:
        wanted = f"{shown(citations[index])}, entry {index} of `answer_citation_list`"
        problems.append(("source_url", shown(url), wanted))
    elif not _SCHEME.match(url):
        problems.append(("source_url", shown(url), "a full URL with its scheme"))
    host = source_domain(url)
    if host == GROUNDING_REDIRECT_HOST and (not domain or host_name(domain).removeprefix("www.") != domain):
        problems.append(("source_domain", shown(domain), "the site behind the redirect, without `www.`"))
    elif host not in (domain, GROUNDING_REDIRECT_HOST):
        problems.append(("source_domain", shown(domain), shown(host)))
    return index, tuple(problems)


def _result_problems(
    cells: Sequence[str], answer_id: str, model_name: str, cites: bool
) -> tuple[int | None, tuple[_Problem, ...]]:
    """The number in the `result_id` (-1 for an empty result, None for none that counts) and the result's problems."""
    if not any(cells):
        return -1, ()
    problems = _nul_problems(RESULT_COLUMNS, cells)
    if model_name != RESULTS_OF or not cites:
        has_none = model_name == RESULTS_OF
        wanted = "nothing, as the answer has no citation" if has_none else f"nothing but for {RESULTS_OF.title()}"
        problems += [(column, shown(cell), wanted) for column, cell in zip(RESULT_COLUMNS, cells, strict=True) if cell]
        return None, tuple(problems)
    result_id, url, domain, _, _, rank = cells
    index = _number_after(result_id, f"{answer_id}_result_")
    if index is None:
        problems.append(("result_id", shown(result_id), f"'{answer_id}_result_' and a number from 0"))
        return None, tuple(problems)
    if rank != str(index + 1):
        problems.append(("result_rank", shown(rank), f"'{index + 1}', one more than the number in `result_id`"))
    if domain != source_domain(url):
        problems.append(("result_domain", shown(domain), shown(source_domain(url))))
    return index, tuple(problems)


def _nul_problems(columns: Sequence[str], cells: Sequence[str]) -> list[_Problem]:
    """A problem for each cell with a NUL character."""
    return [
        (column, f"a NUL character in {shown(cell)}", "text")
        for column, cell in zip(columns, cells, strict=True)
        if "\0" in cell
    ]


def _number_after(text: str, prefix: str) -> int | None:
    """The number that the text is made of after the prefix; None where it is anything else."""
    number = text.removeprefix(prefix)
    return int(number) if number != text and _NUMBER.fullmatch(number) else None


class _Judged(NamedTuple):
    """A part of a row as it was judged when it first stood there."""

    number: int | None
    """The number in its id; -1 for an empty part, None where it has no usable number."""
    problems: tuple[_Problem, ...]


class _AnswerCheck:
    """What is known of one answer while its rows come in."""

    def __init__(self, line: int, cells: list[str], research: bool) -> None:
        self.line = line
        self.shared = cells[:SOURCE_START]
        self.shared_hashes: tuple[int, ...] = ()
        self.problems = _shared_problems(self.shared, research)
        self.citations = _citations_of(cells)
        self.citation_count = len(self.citations or ())
        self.model_name = cells[MODEL_NAME]
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
        """Take up the answer again with a row that stands apart from the others."""
        shared = cells[:SOURCE_START]
        if tuple(map(hash, shared)) == self.shared_hashes:
            self.shared = shared
        self.citations = _citations_of(cells)

    def add(self, cells: list[str], research: bool) -> tuple[_Problem, ...]:
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
            problems = (*problems, ("row", f"{_pair_name(pair)} again", "each source with each result once"))
        self.pairs.add(pair)
        return problems

    def differing(self, cells: list[str], research: bool) -> tuple[_Problem, ...]:
        """The problems of shared cells that are not those of the answer's first row."""
        shared = cells[:SOURCE_START]
        hashes = self.shared_hashes or tuple(map(hash, self.shared))
        differences = (
            (column, shown(cell), f"what line {self.line} has, the first row of this answer")
            for column, cell, wanted in zip(SHARED_COLUMNS, shared, hashes, strict=True)
            if hash(cell) != wanted
        )
        return (*_shared_problems(shared, research), *differences)

    def judge_source(self, key: int, cells: tuple[str, ...], answer_id: str) -> _Judged:
        """The source's number and problems, remembered under the key."""
        judged = _Judged(None, ())
        if self.citations is not None:
            judged = _Judged(*_source_problems(cells, answer_id, self.citations))
        return _remember(self.sources, key, judged, "source_id", cells[0])

    def judge_result(self, key: int, cells: tuple[str, ...], answer_id: str) -> _Judged:
        """The result's number and problems, remembered under the key."""
        judged = _Judged(None, ())
        if self.citations is not None:
            judged = _Judged(*_result_problems(cells, answer_id, self.model_name, cites=self.citation_count > 0))
        return _remember(self.results, key, judged, "result_id", cells[0])

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
        yield from self.missing_pairs(results)

    def missing_pairs(self, results: set[int]) -> Iterator[_Problem]:
        """Each source that stands without one of the results."""
        for source in sorted({source for source, _ in self.pairs}):
            for result in sorted(results or {-1}):
                if (source, result) not in self.pairs:
                    yield "row", f"no row for {_pair_name((source, result))}", "each source with each result once"


def _citations_of(cells: list[str]) -> list[str] | None:
    """The row's cited URLs; None where the cell cannot be read, which is told as a problem of its own."""
    try:
        return citation_list(cells[CITATION_LIST])
    except ValueError:
        return None


def _pair_name(pair: tuple[int, int]) -> str:
    """The pair in words."""
    source, result = pair
    return (
        f"source {source} with result {result}" if result >= 0 else f"source {source}" if source >= 0 else "no source"
    )


def _remember(known: dict[int, _Judged], key: int, judged: _Judged, column: str, part_id: str) -> _Judged:
    """The part as judged; a second content under the same id is a problem."""
    if judged.number is not None and any(judged.number == other.number for other in known.values()):
        conflict = (column, f"{shown(part_id)} with other cells", "the same cells wherever this id stands")
        judged = judged._replace(problems=(*judged.problems, conflict))
    known[key] = judged
    return judged


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
    """What a file holds."""

    rows: int
    answers: int
    violations: int


def check_rows(path: Path, tell: Callable[[Violation], None]) -> Counts:
    """How many rows and answers the file holds and how many violations were told, each as soon as it is known.

    Raises:
        InputError: there is no such file, or it is a folder.
    """
    told = 0

    def violation(line: int, problem: _Problem) -> None:
        nonlocal told
        told += 1
        tell(Violation(str(path), line, *problem))

    answers: dict[str, _AnswerCheck] = {}
    current: _AnswerCheck | None = None
    current_id = ""
    rows = 0
    research = path.name == _RESEARCH_FILE
    for line, cells in _well_formed_rows(path, violation):
        rows += 1
        answer_id = cells[ANSWER_ID]
        if current is None or answer_id != current_id:
            current, current_id = _turn_to_answer(answers, current, line, cells, research), answer_id
        for problem in current.add(cells, research):
            violation(line, problem)
    for answer in answers.values():
        for problem in answer.closing_problems():
            violation(answer.line, problem)
    return Counts(rows, len(answers), told)


def _turn_to_answer(
    answers: dict[str, _AnswerCheck], last: _AnswerCheck | None, line: int, cells: list[str], research: bool
) -> _AnswerCheck:
    """The answer of a row that does not follow a row of its own."""
    if last is not None:
        last.park()
    known = answers.get(cells[ANSWER_ID])
    if known is not None:
        known.resume(cells)
        return known
    answers[cells[ANSWER_ID]] = new = _AnswerCheck(line, cells, research)
    return new


def _well_formed_rows(path: Path, violation: Callable[[int, _Problem], None]) -> Iterator[tuple[int, list[str]]]:
    """The rows that have a cell for each column, in the contract's order; all else is told as a violation.

    Without one of the 20 columns no row can be judged, and none is given.
    """
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
    """The rows with the lines they begin on; bytes that are no UTF-8, rows that are no CSV, a torn frame are told."""

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
    """Where each of the 20 columns stands; None where one is missing. What is wrong with the header is told."""
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
