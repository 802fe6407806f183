"""What the manifests beside export files tell: which guidelines annotators had, and whether texts are the originals."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from annotation.labels import TASKS, TaskName
from exports.folder import MANIFEST_FILE
from pipeline.errors import InputError


def check_originals(files: Sequence[Path]) -> None:
    """Nothing where the texts are as they were exported.

    Raises:
        InputError: a file was written for spreadsheets, which changes texts.
    """
    for file in files:
        if mapping(manifest_beside(file).get("filters")).get("spreadsheet_safe") is True:
            raise InputError(
                f"`{file}` was exported with `--spreadsheet-safe`, which changes texts. Export it again without, to "
                "make a dataset of it."
            )


def guideline_versions(files: Sequence[Path]) -> dict[TaskName, tuple[str, ...]]:
    """Versions of the guidelines by task, sorted; only of tasks for which a manifest beside the files tells."""
    found: dict[str, set[str]] = {}
    for folder in {file.parent: file for file in files}.values():
        datasets = manifest_beside(folder).get("datasets")
        for dataset in map(mapping, datasets if isinstance(datasets, list) else ()):
            task, version = dataset.get("task"), dataset.get("guideline_version")
            if isinstance(task, str) and isinstance(version, str) and version:
                found.setdefault(task, set()).add(version)
    return {task: tuple(sorted(found[task])) for task in TASKS if task in found}


def manifest_beside(file: Path) -> dict[str, Any]:
    """The manifest in the file's folder, of whatever version; empty where there is none."""
    try:
        return mapping(json.loads((file.parent / MANIFEST_FILE).read_bytes()))
    except (OSError, ValueError):
        return {}


def mapping(value: object) -> dict[str, Any]:
    """The value where it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}
