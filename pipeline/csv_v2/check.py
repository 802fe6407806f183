"""Every rule of CSV v2 on a file, before and after writing; all violations are told, none of them stops the check.

Source: seed 000 "Validation Rules" and "Data Integrity Constraints"; the row count as in design 4.1.
"""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from pipeline.csv_v2.answer_check import AnswerCheck
from pipeline.csv_v2.cell_rules import Problem, shown
from pipeline.csv_v2.lines import csv_reader, decoded_lines, likely_encoding, open_csv
from pipeline.csv_v2.rows import ANSWER_ID
from pipeline.schema import CSV_COLUMNS

RESEARCH_FILE = "pipeline.csv"
IN_ORDER = list(range(len(CSV_COLUMNS)))


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


def check_file(path: Path) -> list[Violation]:
    """Every violation in the file, in the order of the rows, those of whole answers last; empty where it is right.

    Raises:
        InputError: there is no such file, or it is a folder.
    """
    violations: list[Violation] = []
    check_rows(path, violations.append)
    return violations


def check_rows(path: Path, tell: Callable[[Violation], None]) -> Counts:
    """How many rows and answers the file holds and how many violations were told, each as soon as it is known.

    Raises:
        InputError: there is no such file, or it is a folder.
    """
    told = 0

    def violation(line: int, problem: Problem) -> None:
        nonlocal told
        told += 1
        tell(Violation(str(path), line, *problem))

    answers: dict[str, AnswerCheck] = {}
    current: AnswerCheck | None = None
    current_id = ""
    rows = 0
    research = path.name == RESEARCH_FILE
    for line, cells in well_formed_rows(path, violation):
        rows += 1
        answer_id = cells[ANSWER_ID]
        if current is None or answer_id != current_id:
            current, current_id = turn_to_answer(answers, current, line, cells, research), answer_id
        for problem in current.add(cells, research):
            violation(line, problem)
    for answer in answers.values():
        for problem in answer.closing_problems():
            violation(answer.line, problem)
    return Counts(rows, len(answers), told)


def turn_to_answer(
    answers: dict[str, AnswerCheck], last: AnswerCheck | None, line: int, cells: list[str], research: bool
) -> AnswerCheck:
    """The answer of a row that does not follow a row of its own."""
    if last is not None:
        last.park()
    known = answers.get(cells[ANSWER_ID])
    if known is not None:
        known.resume(cells)
        return known
    answers[cells[ANSWER_ID]] = new = AnswerCheck(line, cells, research)
    return new


def well_formed_rows(path: Path, violation: Callable[[int, Problem], None]) -> Iterator[tuple[int, list[str]]]:
    """The rows that have a cell for each column, in the contract's order; all else is told as a violation.

    Without one of the 20 columns no row can be judged, and none is given.
    """
    order: list[int] | None = None
    width = 0
    for line, cells in readable_rows(path, violation):
        if not width:
            width = len(cells)
            order = column_order(line, cells, violation)
        elif len(cells) != width:
            violation(line, ("row", f"{len(cells)} cells", f"{width}, as in the header"))
        elif order is IN_ORDER:
            yield line, cells
        elif order:
            yield line, [cells[place] for place in order]
    if not width:
        violation(1, ("row", "an empty file", f"a header with the {len(CSV_COLUMNS)} columns"))


def readable_rows(path: Path, violation: Callable[[int, Problem], None]) -> Iterator[tuple[int, list[str]]]:
    """The rows with the lines they begin on; bytes that are no UTF-8 and rows that are no CSV are told."""

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
            except csv.Error as error:
                violation(line, ("row", f"no CSV: {error}", "every quotation mark doubled, every cell closed"))
                continue
            if cells:
                yield line, cells


def column_order(line: int, header: list[str], violation: Callable[[int, Problem], None]) -> list[int] | None:
    """Where each of the 20 columns stands; None where one is missing. What is wrong with the header is told."""
    if tuple(header) == CSV_COLUMNS:
        return IN_ORDER
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
