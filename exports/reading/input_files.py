"""Files as they are given: rows with their lines, names in sentences, and what results say of a file."""

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from annotation.argilla.labels import TaskName
from exports.csv.folder import exported_datasets, exported_files, read_manifest
from exports.csv.schema import Work
from exports.statistics.ratings import InputFile
from pipeline.core.errors import InputError
from pipeline.core.files import sha256_of
from pipeline.core.terminal import counted


def input_file(path: Path, rows: int) -> InputFile:
    """The file as results name it: without its folder, with its hash and the rows that were read of it."""
    task = exported_files(path.parent).get(path.name)
    told = {
        str(each.get("guideline_version") or "") for each in exported_datasets(path.parent) if each.get("task") == task
    }
    return InputFile(
        file=path.name, sha256=sha256_of(path), rows=rows, guidelines=tuple(sorted(told - {""})) if task else ()
    )


def read_work(files: Iterable[Path]) -> dict[TaskName, Work] | None:
    """By task, how far the work was when these files were exported; None where one of their manifests does not tell.

    A dataset of several exports counts once, as the newest tells.
    """
    newest: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {}
    for folder in dict.fromkeys(file.parent for file in files):
        manifest = read_manifest(folder)
        for each in exported_datasets(folder) or [{}]:
            key, told = (str(manifest.get("server")), str(each.get("id"))), (str(manifest.get("finished")), each)
            newest[key] = max(newest.get(key, told), told, key=itemgetter(0))
    return work_by_task(each for _, each in newest.values())


def work_by_task(datasets: Iterable[Mapping[str, Any]]) -> dict[TaskName, Work] | None:
    found: dict[TaskName, Work] = {}
    try:
        for each in datasets:
            task, work = each["task"], Work.model_validate(each["work"])
            found[task] = found[task] + work if task in found else work
    except (KeyError, ValidationError):
        return None
    return found


def display_names(files: Sequence[Path]) -> list[str]:
    """How sentences name each file: without its folder, unless several have the same name."""
    names = [path.name for path in files]
    return [str(path) if names.count(path.name) > 1 else path.name for path in files]


def counted_cells(bad: Sequence[str]) -> str:
    return "1 cell or row" if len(bad) == 1 else f"{len(bad):,} cells or rows"


def nul_sentences(files: Sequence[Path]) -> Iterator[str]:
    for file in files:
        with file.open("rb") as stream:
            found = sum(line.count(b"\0") for line in stream)
        if found:
            yield f"{file.name}: U+FFFD stands for {counted(found, 'NUL character')}, which no text has."


def column_rows(
    path: Path, needed: Sequence[str], advice: str, shown: str, bad: list[str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Each row's place in words and its cells by column; `bad` gets a sentence for each of another length."""
    rows = csv_rows(path)
    _, header = next(rows, (1, []))
    for column in needed:
        if header.count(column) != 1:
            found = header.count(column)
            raise InputError(f"`{path}` needs the column `{column}` once, found it {found} times. {advice}")
    for line, cells in rows:
        if len(cells) == len(header):
            yield f"{shown}, line {line}", dict(zip(header, cells, strict=True))
        else:
            bad.append(f"{shown}, line {line}: found {counted(len(cells), 'cell')}, the header has {len(header)}.")


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Each row with the physical line on which it begins, counted from 1; blank lines are skipped, NUL is U+FFFD.

    Raises:
        InputError: the file cannot be opened, is not UTF-8 (a BOM is allowed), or its quotes do not match.
    """
    csv.field_size_limit(sys.maxsize)
    end = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader((line.replace("\0", "\N{REPLACEMENT CHARACTER}") for line in stream), strict=True)
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
