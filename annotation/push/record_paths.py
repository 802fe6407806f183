"""The files and run folders that are pushed: checked as a whole first, then read record by record."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from annotation.push.naming_check import check_naming
from annotation.push.record_sources import read_source
from pipeline.errors import BadRowsError, InputError
from pipeline.records import QueryResponse


class CheckedPaths(NamedTuple):
    """What the paths hold."""

    languages: tuple[tuple[str, str], ...]
    """`record_uuid` and language of each record, in order."""
    problems: tuple[str, ...]
    """A line for each part of a file that is no record: file, line, reason."""
    without_passages: int
    """How many records have no passage, and so no unit of retrieval and grounding."""
    naming: tuple[str, ...]
    """A line for each answer that tells annotators who wrote it: `record_uuid` and where."""


def check_paths(paths: Sequence[Path]) -> CheckedPaths:
    """What the paths hold, and every line that is no record; no text is kept in memory.

    Raises:
        InputError: a path is missing, empty, not text or not CSV v2, or nothing in any of them is a record.
    """
    languages: list[tuple[str, str]] = []
    naming: list[str] = []
    problems: list[str] = []
    without_passages = 0
    for path in paths:
        for record in read_source(path, problems):
            languages.append((record.record_uuid, record.language))
            without_passages += not record.chunks
            naming += [f"{record.record_uuid}: {name!r} in {excerpt!r}" for name, excerpt in check_naming(record)]
    if problems and not languages:
        raise BadRowsError("No line is a record:", problems)
    if not languages:
        names = ", ".join(repr(str(path)) for path in paths)
        raise InputError(f"There is no record in {names}: a header and no rows. Name what holds answers.")
    return CheckedPaths(tuple(languages), tuple(problems), without_passages, tuple(dict.fromkeys(naming)))


def records_of(paths: Sequence[Path]) -> Iterator[QueryResponse]:
    """The records of all paths; what is none, which `check_paths` lists, is passed over.

    Raises:
        InputError: a path is missing, empty, not text or not CSV v2.
    """
    for path in paths:
        yield from read_source(path, [])
