"""The export folder: refused when it holds something else, and swapped in as a whole."""

import csv
import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from annotation.argilla.labels import LABELS, OWN_TASKS, Task, TaskName, add_task
from annotation.argilla.task_file import read_task
from exports.csv.schema import ExportedFile, Manifest
from pipeline.core.errors import InputError, OutputError
from pipeline.core.files import locked_folder, sha256_of
from pipeline.core.sentences import sentences
from pipeline.core.spreadsheet import write_workbook
from pipeline.core.tables import unescaped

_say = sentences(__file__)

MANIFEST_FILE = "manifest.json"
EVIDENCE_FILE = "evidence.jsonl"
PROVENANCE_FILE = "provenance.csv"
CONTROLS_FILE = "controls.csv"
INDEX_FILE = "index.jsonl"
HISTORY_FILE = "history.csv"  # Written by a teardown only
WORKBOOK = "export.xlsx"
TASKS_FOLDER = "tasks"  # The files of the tasks that do not come with citejury
_OWN_KEYS = frozenset({"citejury", "datasets", "files"})  # What every manifest of ours has, of whatever version


def file_name(task: TaskName, discarded: bool) -> str:
    return f"{task}_discarded.csv" if discarded else f"{task}.csv"


_OWN_FILES = frozenset(
    (
        *(MANIFEST_FILE, EVIDENCE_FILE, PROVENANCE_FILE, CONTROLS_FILE, INDEX_FILE, HISTORY_FILE, WORKBOOK),
        *(file_name(task, discarded) for task in OWN_TASKS for discarded in (False, True)),
    )
)


def check_folder(folder: Path) -> None:
    """Refuse a folder that is neither absent, nor empty, nor only an earlier export of ours."""
    names = folder_names(folder)
    listed = {*_OWN_FILES, *exported_files(folder)}
    if TASKS_FOLDER in names and (folder / TASKS_FOLDER).is_dir():
        names = names - {TASKS_FOLDER} | {f"{TASKS_FOLDER}/{each.name}" for each in (folder / TASKS_FOLDER).iterdir()}
    foreign = sorted(names - listed)
    if foreign:
        raise OutputError(_say("foreign", folder=folder, name=foreign[0]))
    if names and not read_manifest(folder).keys() >= _OWN_KEYS:
        raise OutputError(_say("no_manifest", folder=folder, manifest_file=MANIFEST_FILE))


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest in the folder, whoever wrote it and in whatever version; empty where there is none."""
    try:
        return mapping(json.loads((folder / MANIFEST_FILE).read_bytes()))
    except (OSError, ValueError):
        return {}


def exported_datasets(folder: Path) -> list[dict[str, Any]]:
    datasets = read_manifest(folder).get("datasets")
    return [mapping(each) for each in (datasets if isinstance(datasets, list) else [])]


def exported_files(folder: Path) -> dict[str, str]:
    """The task of each file that the manifest in the folder lists and that is of one."""
    files = read_manifest(folder).get("files")
    listed = [mapping(each) for each in (files if isinstance(files, list) else [])]
    return {str(each.get("file")): str(each["task"]) for each in listed if each.get("task")}


def write_task(task: Task, folder: Path) -> Path:
    """The file of a task in an export, all but its known answers."""
    path = folder / TASKS_FOLDER / f"{task.name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(task.document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8", newline="\n")
    return path


def add_tasks_of(folders: Iterable[Path]) -> None:
    """Make the tasks known whose files are in these exports.

    Raises:
        InputError: a file of a task is missing that the manifest tells of, or two exports have other questions in it.
    """
    found: dict[TaskName, tuple[Path, Task]] = {}
    for folder in dict.fromkeys(folders):
        files = sorted((folder / TASKS_FOLDER).glob("*.*"))
        for path in (each for each in files if each.suffixes in ([".json"], [".toml"])):
            task = read_task(path)
            earlier, known = found.setdefault(add_task(task), (path, task))
            if known.questions != task.questions:
                raise InputError(_say("other_questions", earlier=earlier, path=path, task=task.name))
        for file, name in exported_files(folder).items():
            if name not in {*OWN_TASKS, *found}:
                raise InputError(_say("no_task", file=folder / file, name=name, tasks_folder=TASKS_FOLDER))


def has_filter(folder: Path, name: str) -> bool:
    """Whether the export in the folder was made with this filter, such as `anonymized`; not where nothing tells."""
    return mapping(read_manifest(folder).get("filters")).get(name) is True


def mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def folder_names(folder: Path) -> set[str]:
    """What the folder holds, by name; empty where it is absent. Refuses a file, the current folder and one above it."""
    if not folder.exists():
        return set()
    if not folder.is_dir():
        raise OutputError(f"`{folder}` is a file. Name a folder to export to.")
    if folder.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise OutputError(f"`{folder}` is the current folder or one above it. Name a folder within it to export to.")
    return {entry.name for entry in folder.iterdir()}


@contextmanager
def staged_folder(
    folder: Path, check: Callable[[Path], None] = check_folder, command: str = "exports csv"
) -> Iterator[Path]:
    """A work folder beside `folder`; its subfolder `export` takes the place of `folder` when the block ends well.

    When it does not, `folder` is as it was. In either case the work folder is gone. What a killed export left is mended
    first: the work folder has the same name each time, and is locked by whoever works in it. `check` raises where
    `folder` holds what may not be replaced; `command` is named to whoever is refused meanwhile.
    """
    check(folder)
    target = folder.resolve()
    work = target.with_name(f".{target.name}.citejury")
    try:
        with made_parents(target), locked_folder(work, command):
            try:
                if (work / "earlier").exists() and not target.exists():  # killed within `_swap`
                    os.rename(work / "earlier", target)
                for left in work.iterdir():
                    if left.is_dir():
                        shutil.rmtree(left)
                    else:
                        left.unlink()
                (work / "export").mkdir()
                yield work
                check(folder)
                _swap(work / "export", target, work / "earlier")
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise OutputError(f"`{folder}` cannot be written: {reason}. Choose another folder.") from error


@contextmanager
def made_parents(target: Path) -> Iterator[None]:
    """The folders above `target` exist; those that were missing go again if nothing is in them at the end."""
    missing = [parent for parent in target.parents if not parent.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        for parent in missing:
            with suppress(OSError):  # it holds something now
                parent.rmdir()


def _swap(new: Path, target: Path, earlier: Path) -> None:
    """Put `new` in the place of `target`, which moves to `earlier`; where that fails, it moves back."""
    if target.exists():
        os.rename(target, earlier)
    try:
        os.rename(new, target)
    finally:
        if earlier.exists() and not target.exists():
            os.rename(earlier, target)


def write_manifest(manifest: Manifest, folder: Path) -> None:
    (folder / MANIFEST_FILE).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8", newline="\n")


def add_workbook(files: list[ExportedFile], folder: Path, spreadsheet_safe: bool) -> None:
    """Write the CSV files in the folder as the sheets of one .xlsx file, and list it."""
    tables = [file for file in files if file.file.endswith(".csv")]
    sheets = ((Path(each.file).stem, _sheet_rows(folder / each.file, each.task, spreadsheet_safe)) for each in tables)
    write_workbook(path := folder / WORKBOOK, sheets)
    rows = sum(each.rows for each in tables)
    files.append(ExportedFile(file=WORKBOOK, task=None, rows=rows, annotators=0, records=0, sha256=sha256_of(path)))


def _sheet_rows(path: Path, task: TaskName | None, spreadsheet_safe: bool) -> Iterator[Sequence[object]]:
    """Texts, but for the labels that are yes or no."""
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv.reader(stream)
        yield (header := next(rows))
        told = {"True": True, "False": False}
        typed = [name in (LABELS[task] if task else ()) for name in header]
        for row in rows:
            cells = map(unescaped, row) if spreadsheet_safe else row
            yield [told.get(cell, cell) if is_label else cell for cell, is_label in zip(cells, typed, strict=True)]
