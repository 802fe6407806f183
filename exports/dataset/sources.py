"""What the manifests beside export files tell: which guidelines annotators had, and whether texts are the originals."""

from collections.abc import Sequence
from pathlib import Path

from annotation.labels import TASKS, TaskName
from exports.csv.folder import has_filter, mapping, read_manifest
from pipeline.errors import InputError


def check_originals(files: Sequence[Path]) -> None:
    """Nothing where the texts are as they were exported.

    Raises:
        InputError: a file was written for spreadsheets, which changes texts.
    """
    for file in files:
        if has_filter(file.parent, "spreadsheet_safe"):
            raise InputError(
                f"`{file}` was exported with `--spreadsheet-safe`, which changes texts. Export it again without, to "
                "make a dataset of it."
            )


def guideline_versions(files: Sequence[Path]) -> dict[TaskName, tuple[str, ...]]:
    """Versions of the guidelines by task, sorted; only of tasks for which a manifest beside the files tells."""
    found: dict[str, set[str]] = {}
    for folder in {file.parent for file in files}:
        datasets = read_manifest(folder).get("datasets")
        for dataset in map(mapping, datasets if isinstance(datasets, list) else ()):
            task, version = dataset.get("task"), dataset.get("guideline_version")
            if isinstance(task, str) and isinstance(version, str) and version:
                found.setdefault(task, set()).add(version)
    return {task: tuple(sorted(found[task])) for task in TASKS if task in found}
