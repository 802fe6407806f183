"""Export a workspace: its submitted responses as three CSV files and a manifest, in one folder."""

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from annotation.client import Argilla
from annotation.labels import TASKS, TaskName
from exports.fetch import Annotators, Progress, ResponseFilter, TaskDataset, find_datasets, read_dataset
from exports.folder import file_name, staged_folder, write_manifest
from exports.schema import ExportedDataset, ExportedFile, ExportFilters, Manifest
from exports.spool import Spool
from exports.tables import table_columns, write_table
from pipeline.errors import NotFoundError


class Export(NamedTuple):
    """What was exported, and what to mind."""

    manifest: Manifest
    """What the folder holds."""
    warnings: list[str]
    """Plain sentences about what is missing; empty where nothing is."""


def export_csv(
    client: Argilla,
    workspace: str,
    out: Path,
    *,
    tasks: Sequence[TaskName] = (),
    since: datetime | None = None,
    text_pair: bool = False,
    extended: bool = False,
    discarded: bool = False,
    progress: Progress = lambda name, read, total: None,
) -> Export:
    """What was exported to the folder `out`: a file a task, its manifest; an earlier export there is replaced.

    Rows are sorted by record, rank of the passage, passage and annotator: the same data gives the same bytes.

    Args:
        client: The server, as an owner or admin.
        workspace: Name of the workspace.
        out: Absent, empty, or an earlier export.
        tasks: Only these; all when empty.
        since: Only responses submitted at this moment or later.
        text_pair: Append the columns `text` and `text_pair`.
        extended: Append statuses, ids, times, broken rules and provenance.
        discarded: Write discarded responses too, to `<task>_discarded.csv`.
        progress: Told how far the reading is.

    Raises:
        NotFoundError: no such workspace or dataset, or no submitted response in it, or none for a named task.
        OutputError: `out` holds something else, or cannot be written.
        ArgillaError: the server does not answer, refuses the key, or its records keep changing.
    """
    filters = ExportFilters(
        tasks=tuple(tasks),
        since=None if since is None else since.isoformat(),
        text_pair=text_pair,
        extended=extended,
        discarded=discarded,
    )
    with staged_folder(out) as work:
        datasets = find_datasets(client, workspace, tasks)
        annotators = Annotators(client)
        wanted = ResponseFilter(filters, since)
        with Spool(work / "spool.sqlite") as spool:
            started = datetime.now(UTC)
            read = [read_dataset(client, dataset, annotators, wanted, spool, progress) for dataset in datasets]
            finished = datetime.now(UTC)
            files = write_files(spool, work / "export", datasets, filters)
        check_not_empty(files, workspace, filters)
        manifest = Manifest(
            citejury=version("citejury"),
            server=client.api_url,
            workspace=workspace,
            datasets=tuple(read),
            filters=filters,
            started=started.isoformat(),
            finished=finished.isoformat(),
            files=tuple(files),
        )
        write_manifest(manifest, work / "export")
    return Export(manifest, warnings_about(files, read, filters))


def write_files(
    spool: Spool, folder: Path, datasets: Sequence[TaskDataset], filters: ExportFilters
) -> list[ExportedFile]:
    """The files of each task that has a dataset, in the order of the tasks."""
    kinds = (False, True) if filters.discarded else (False,)
    return [
        write_table(
            folder / file_name(task, kind), task, table_columns(task, filters, kind), spool.rows(task, discarded=kind)
        )
        for task in TASKS
        if task in {dataset.task for dataset in datasets}
        for kind in kinds
    ]


def check_not_empty(files: Sequence[ExportedFile], workspace: str, filters: ExportFilters) -> None:
    """Nothing where there are submitted responses, for each task that was named.

    Raises:
        NotFoundError: there are none.
    """
    rows = {file.task: file.rows for file in files if file.file == file_name(file.task, discarded=False)}
    empty = [task for task in filters.tasks if not rows[task]]
    if not empty and any(rows.values()):
        return
    task = f" to the task {empty[0]}" if empty else ""
    since = f" since {filters.since}" if filters.since else ""
    raise NotFoundError(
        f"The workspace {workspace!r} has no submitted response{task}{since}, so nothing was written. Drafts and "
        "discarded responses do not count; export again when someone has submitted."
    )


def warnings_about(
    files: Sequence[ExportedFile], datasets: Sequence[ExportedDataset], filters: ExportFilters
) -> list[str]:
    """What the user might miss: empty files, absent tasks, records that are not ours."""
    found = [
        f"{file.file} has only its header: nobody submitted a response to the task {file.task}."
        for file in files
        if not file.rows and file.file == file_name(file.task, discarded=False)
    ]
    present = {file.task for file in files}
    found += [
        f"The workspace has no dataset for the task {task}, so there is no {file_name(task, discarded=False)}."
        for task in TASKS
        if not filters.tasks and task not in present
    ]
    found += [
        f"{dataset.foreign_records} answered records of the dataset {dataset.name!r} were not pushed by citejury; "
        "they have no record_uuid and are left out."
        for dataset in datasets
        if dataset.foreign_records
    ]
    return found
