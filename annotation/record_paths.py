"""The files and run folders that are pushed: checked as a whole first, then read record by record."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import BadRowsError
from pipeline.record_files import read_records
from pipeline.records import QueryResponse


class CheckedPaths(NamedTuple):
    """What the paths hold."""

    records: int
    problems: tuple[str, ...]
    """A line for each line of a file that is no record: file, line, reason."""


def check_paths(paths: Sequence[Path]) -> CheckedPaths:
    """How many records the paths hold, and every line that is none; nothing is kept in memory.

    Raises:
        InputError: a path is missing, empty or not text, or none of all lines is a record.
    """
    records, problems = 0, []
    for path in paths:
        try:
            for _ in read_records(path):
                records += 1
        except BadRowsError as error:
            problems += [f"{path.name}, {row}" for row in error.rows]
    if problems and not records:
        raise BadRowsError("No line is a record:", problems)
    return CheckedPaths(records, tuple(problems))


def records_of(paths: Sequence[Path]) -> Iterator[QueryResponse]:
    """The records of all paths; lines that are none, which `check_paths` lists, are passed over.

    Raises:
        InputError: a path is missing, empty or not text.
    """
    for path in paths:
        with suppress(BadRowsError):
            yield from read_records(path)
