"""Read the three CSV files of seed 001, ours or anyone's, strictly: every bad cell is listed, none is guessed."""

import csv
import hashlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from annotation.labels import LABELS, TASKS, TaskName
from exports.agreement.ratings import MISSING, NO, YES, Ratings
from exports.agreement.schema import InputFile
from exports.collection import Collection, Response
from exports.schema import COLUMNS
from exports.tables import STATUS_COLUMN, utc
from pipeline.errors import BadRowsError, InputError

BOOLEANS: Mapping[str, int] = {
    **dict.fromkeys(("True", "true", "TRUE", "1", "yes"), YES),
    **dict.fromkeys(("False", "false", "FALSE", "0", "no"), NO),
    "": MISSING,
}
"""The spellings that count (`agreement.md` section 2); a blank cell is missing for that label only."""

RANK = re.compile(r"0*[1-9][0-9]*")
SEPARATORS = re.compile(r"[;\t|]")
"""What spreadsheets put between cells where the comma is a decimal point."""


class ReadTables(NamedTuple):
    """What the files of an export say, and what of it does not count."""

    tables: list[Ratings]
    """One for each task that has a file."""
    inputs: list[InputFile]
    """The files, in the order they were given."""
    remarks: list[str]
    """Plain sentences about rows that were left out, for the person at the terminal."""


def export_files(paths: Sequence[Path]) -> list[Path]:
    """The CSV files that the paths name, each once: a folder stands for those of its three task files that it holds.

    Raises:
        InputError: there is no such file or folder, or the folder holds none of the three files.
    """
    files: list[Path] = []
    for path in paths:
        found = (
            [path / f"{task}.csv" for task in TASKS if (path / f"{task}.csv").is_file()] if path.is_dir() else [path]
        )
        if not path.exists():
            raise InputError(f"There is no file or folder `{path}`. Name an export folder or its CSV files.")
        if not found:
            wanted = ", ".join(f"`{task}.csv`" for task in TASKS)
            raise InputError(f"The folder `{path}` holds none of {wanted}. Name the folder that `exports csv` wrote.")
        files += found
    return list({file.resolve(): file for file in files}.values())


def read_tables(files: Sequence[Path]) -> ReadTables:
    """The ratings of all files, by task; the newest response counts where an annotator has several on one unit.

    Raises:
        InputError: a file is no CSV in UTF-8, lacks columns, or its task cannot be told.
        BadRowsError: cells cannot be read; every one of them is listed, for all files together.
    """
    tasks = {path: task_of(path) for path in files}
    collected = {task: Collection(task) for task in TASKS if task in tasks.values()}
    inputs: list[InputFile] = []
    bad: list[str] = []
    for path in files:
        rows = 0
        try:
            for response in read_responses(path, tasks[path]):
                collected[tasks[path]].add(path.name, response)
                rows += 1
        except BadRowsError as error:
            bad += error.rows
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        inputs.append(InputFile(file=path.name, sha256=digest, rows=rows))
    if bad:
        raise BadRowsError(f"{len(bad)} cells or rows cannot be read; mend them or leave the file out:", bad)
    remarks = [remark for collection in collected.values() for remark in collection.remarks()]
    return ReadTables([collection.ratings() for collection in collected.values()], inputs, remarks)


def task_of(path: Path) -> TaskName:
    """The task of a CSV file, told by its columns, and by its first `task` cell where they fit several.

    Raises:
        InputError: the file cannot be read, or has the columns of no task.
    """
    rows = csv_rows(path)
    _, header = next(rows, (1, []))
    if len(header) == 1 and (mark := SEPARATORS.search(header[0])):
        raise InputError(f"`{path}` is separated by {mark[0]!r} instead of commas. Save it as comma-separated CSV.")
    _, first = next(rows, (2, []))
    if not header:
        raise InputError(f"`{path}` is empty: it has no header line. Export it again.")
    doubled = sorted({name for name in header if header.count(name) > 1 and any(name in COLUMNS[t] for t in TASKS)})
    if doubled:
        raise InputError(f"`{path}` has the column `{doubled[0]}` more than once. Keep one of them.")
    fitting = [task for task in TASKS if set(COLUMNS[task]) <= set(header)]
    named = [task for task in fitting if dict(zip(header, first, strict=False)).get("task") == task]
    if fitting:
        return (named or fitting)[0]
    nearest = max(TASKS, key=lambda task: len(set(LABELS[task]) & set(header)))
    missing = ", ".join(f"`{name}`" for name in COLUMNS[nearest] if name not in header)
    raise InputError(f"`{path}` is not an export of any task: for {nearest} it lacks {missing}. Export it again.")


def read_responses(path: Path, task: TaskName) -> Iterator[Response]:
    """The rows of one file in their order; a row with a bad cell is left out and listed at the end.

    Raises:
        InputError: the file is no CSV in UTF-8.
        BadRowsError: after the last row: some cells could not be read; each is listed with line and column.
    """
    rows = csv_rows(path)
    _, header = next(rows)
    bad: list[str] = []
    for line, cells in rows:
        if len(cells) != len(header):
            bad.append(f"{path.name}, line {line}: found {len(cells)} cells, the header has {len(header)}.")
            continue
        row = dict(zip(header, cells, strict=True))
        problems = bad_cells(row, task)
        if problems:
            bad += [f"{path.name}, line {line}, {problem}" for problem in problems]
            continue
        yield Response(
            line=line,
            record_uuid=row["record_uuid"],
            chunk_id=row["chunk_id"] if task == "retrieval" else "",
            annotator_id=row["annotator_id"],
            created_at=utc(row["created_at"]),
            labels=tuple(BOOLEANS[row[label]] for label in LABELS[task]),
            language=row["language"],
            round=row.get("round", ""),
            status=row.get(STATUS_COLUMN, "submitted"),
        )
    if bad:
        raise BadRowsError(f"`{path}` has {len(bad)} cells or rows that cannot be read:", bad)


def bad_cells(row: Mapping[str, str], task: TaskName) -> list[str]:
    """What is wrong in one row, a sentence a cell; empty where nothing is."""
    found = [
        f"`{label}`: found {row[label]!r}, expected True or False, or nothing where it was not answered."
        for label in LABELS[task]
        if row[label] not in BOOLEANS
    ]
    needed = ("record_uuid", "annotator_id", *(("chunk_id",) if task == "retrieval" else ()))
    found += [f"`{column}`: is empty, every row needs one." for column in needed if not row[column].strip()]
    if row["task"] != task:
        found.append(f"`task`: found {row['task']!r}, expected {task!r} as in the columns.")
    if task == "retrieval" and not RANK.fullmatch(row["chunk_rank"]):
        found.append(f"`chunk_rank`: found {row['chunk_rank']!r}, expected a whole number from 1.")
    try:
        utc(row["created_at"])
    except (ValueError, OverflowError):
        found.append(f"`created_at`: found {row['created_at']!r}, expected a time such as 2025-03-08T23:43:00+00:00.")
    return found


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Each row with the physical line on which it begins, counted from 1; blank lines are skipped.

    Raises:
        InputError: the file cannot be opened, is not UTF-8 (a BOM is allowed), or its quotes do not match.
    """
    csv.field_size_limit(sys.maxsize)
    end = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            for cells in reader:
                if cells:
                    yield end + 1, cells
                end = reader.line_num
    except UnicodeDecodeError as error:
        raise InputError(
            f"`{path}` is not UTF-8 on line {end + 1} or below: {error.reason}. Save it as UTF-8."
        ) from error
    except csv.Error as error:
        raise InputError(f"`{path}`, line {end + 1}, is not CSV: {error}. Export it again.") from error
    except OSError as error:
        raise InputError(f"`{path}` cannot be read: {error.strerror}.") from error
