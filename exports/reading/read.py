"""Read the three CSV files strictly: every bad cell is listed, none is guessed (exports/contracts/csv.md)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from annotation.argilla.labels import LABELS, TASKS, TaskName
from exports.csv.folder import CONTROLS_FILE, PROVENANCE_FILE, file_name
from exports.csv.schema import COLUMNS, STATUS_COLUMN
from exports.reading.collection import Collection, Response, ResponseReader, TableRows
from exports.reading.input_files import counted_cells, csv_rows, display_names, input_file
from exports.statistics.ratings import InputFile, Ratings
from pipeline.core.errors import BadRowsError, InputError

_SEPARATORS = re.compile(r"[;\t|]")  # What spreadsheets put between cells where the comma is a decimal point


_DISCARDED = "_discarded"  # What names of files end with that hold discarded responses


class ReadTables(NamedTuple):
    tables: list[Ratings]  # One for each task that has a file
    inputs: list[InputFile]
    remarks: list[str]  # Plain sentences about rows that were left out, for the person at the terminal


def export_files(paths: Sequence[Path]) -> list[Path]:
    """The CSV files that the paths name, each once; a folder stands for its tasks' files, discarded responses too.

    A `provenance.csv` or `controls.csv` among them, as `export/*.csv` names it, is passed over: it has no ratings.

    Raises:
        InputError: there is no such file or folder, or the folder holds none of the files.
    """
    files: list[Path] = []
    for path in paths:
        if not path.exists():
            raise InputError(f"There is no file or folder `{path}`. Name an export folder or its CSV files.")
        if path.name in (PROVENANCE_FILE, CONTROLS_FILE) and path.is_file() and len(paths) > 1:
            continue
        found = _files_of(path) if path.is_dir() else [path]
        if not found:
            wanted = ", ".join(f"`{task}.csv`" for task in TASKS)
            raise InputError(f"The folder `{path}` holds none of {wanted}. Name the folder that `exports csv` wrote.")
        files += found
    return list({file.resolve(): file for file in files}.values())


def _files_of(folder: Path) -> list[Path]:
    names = [file_name(task, discarded) for task in TASKS for discarded in (False, True)]
    return [folder / name for name in names if (folder / name).is_file()]


def read_tables(files: Sequence[Path], frames: Sequence[TableRows] = ()) -> ReadTables:
    """The ratings of all files and frames, by task; of several by one annotator on one unit the newest counts.

    Raises:
        InputError: a file is no CSV in UTF-8, lacks columns, or its task cannot be told.
        BadRowsError: cells cannot be read; every one of them is listed, for all files together.
    """
    tasks = {path: task_of(path) for path in files}
    wanted = {*tasks.values(), *(frame.task for frame in frames)}
    collected = {task: Collection(task) for task in TASKS if task in wanted}
    bad: list[str] = []
    names = dict(zip(files, display_names(files), strict=True))
    inputs = [_read_into(collected[tasks[path]], path, names[path], bad) for path in files]
    for frame in frames:
        collected[frame.task].begin(frame.source)
        for response in ResponseReader(frame.task, frame.header, frame.source, bad).read(enumerate(frame.rows)):
            collected[frame.task].add(response)
    if bad:
        raise BadRowsError(f"{counted_cells(bad)} cannot be read; mend what is wrong or leave the file out:", bad)
    gathered = [collection.finish() for collection in collected.values()]
    remarks = [remark for found in gathered for remark in found.remarks]
    return ReadTables([found.ratings for found in gathered], inputs, remarks)


def _read_into(collection: Collection, path: Path, name: str, bad: list[str]) -> InputFile:
    rows = 0
    source = f"{name}, line"
    collection.begin(source)
    if holds_discarded(path):
        collection.tell_discards()
    try:
        for response in read_responses(path, collection.task, source):
            collection.add(response)
            rows += 1
    except BadRowsError as error:
        bad += error.rows
    return input_file(path, rows)


def task_of(path: Path) -> TaskName:
    """The task of a CSV file: by its columns, then its first `task` cell or its name; InputError where none fits."""
    rows = csv_rows(path)
    _, header = next(rows, (1, []))
    if len(header) == 1 and (mark := _SEPARATORS.search(header[0])):
        raise InputError(f"`{path}` is separated by {mark[0]!r} instead of commas. Save it as comma-separated CSV.")
    _, first = next(rows, (2, []))
    if not header:
        raise InputError(f"`{path}` is empty: it has no header line. Export it again.")
    doubled = sorted({name for name in header if header.count(name) > 1 and any(name in COLUMNS[t] for t in TASKS)})
    if doubled:
        raise InputError(f"`{path}` has the column `{doubled[0]}` more than once. Keep one of them.")
    named = dict(zip(header, first, strict=False)).get("task") or path.stem.removesuffix(_DISCARDED)
    return fitting_task(header, named, COLUMNS, f"`{path}`", "Export it again.")


def fitting_task(
    header: Sequence[str], named: str | None, columns: Mapping[TaskName, Sequence[str]], where: str, advice: str
) -> TaskName:
    """The task whose columns are all in the header; where several are, the named one, else the first."""
    fitting = [task for task in TASKS if set(columns[task]) <= set(header)]
    if fitting:
        return next((task for task in fitting if task == named), fitting[0])
    nearest = max(TASKS, key=lambda task: (task == named, len(set(LABELS[task]) & set(header))))
    missing = ", ".join(f"`{name}`" for name in columns[nearest] if name not in header)
    raise InputError(f"{where} is not an export of any task: for {nearest} it lacks {missing}. {advice}")


def read_responses(path: Path, task: TaskName, source: str | None = None) -> Iterator[Response]:
    """The rows of one file in their order; `source` stands before the line in a sentence about a cell.

    Raises:
        InputError: the file is no CSV in UTF-8, or one of discarded responses that does not say so in its rows.
        BadRowsError: after the last row: some cells could not be read; each is listed with line and column.
    """
    rows = csv_rows(path)
    _, header = next(rows)
    if holds_discarded(path) and STATUS_COLUMN not in header:
        raise InputError(
            f"`{path}` has no column `{STATUS_COLUMN}`, which would tell its discarded responses from ratings. "
            "Export it again with `--discarded`, or give it another name if its rows are ratings."
        )
    bad: list[str] = []
    yield from ResponseReader(task, header, source or f"{path.name}, line", bad).read(rows)
    if bad:
        raise BadRowsError(f"`{path}` has {counted_cells(bad)} that cannot be read:", bad)


def holds_discarded(path: Path) -> bool:
    """Whether the file's name says that it holds discarded responses, as `exports csv --discarded` names them."""
    return path.stem.endswith(_DISCARDED)
