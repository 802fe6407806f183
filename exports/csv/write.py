"""Export workspaces: their submitted responses as three CSV files and a manifest, in one folder."""

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from annotation.client import Argilla
from annotation.labels import TASKS
from exports.csv.annotators import Annotators
from exports.csv.anonymize import Pseudonyms, key_path
from exports.csv.fetch import Progress, ReadDataset, Reading, read_dataset
from exports.csv.find import TaskDataset, check_server, find_datasets
from exports.csv.folder import file_name, has_filter, staged_folder, write_manifest
from exports.csv.missing import check_not_empty, warnings_about
from exports.csv.spool import Spool
from exports.csv.tables import table_columns, write_table
from exports.schema import ExportedFile, ExportFilters, Manifest
from pipeline.errors import InputError

EVERYTHING = ExportFilters()


class Export(NamedTuple):
    """What was exported, and what to mind."""

    manifest: Manifest
    """What the folder holds."""
    warnings: list[str]
    """Plain sentences about what is missing; empty where nothing is."""
    key_file: Path | None
    """The file that says who is behind the pseudonyms; None where names stand in the export."""


def export_csv(
    client: Argilla,
    workspaces: str | Sequence[str],
    out: Path,
    filters: ExportFilters = EVERYTHING,
    *,
    key_file: Path | None = None,
    progress: Progress = lambda name, read, total: None,
    discarded_suffice: bool = False,
) -> Export:
    """What was exported to the folder `out`: a file a task, its manifest; an earlier export there is replaced.

    Rows are sorted by record, rank of the passage, passage, annotator and response id: the same data gives the same
    bytes. Responses of one annotator to one unit in two workspaces are two rows.

    Args:
        client: The server, as an owner or admin.
        workspaces: Name of the workspace, or names of several.
        out: Absent, empty, or an earlier export.
        filters: Which responses and columns are wanted.
        key_file: Where pseudonyms are kept; `<out>.annotators.json` if not given. Not touched unless anonymized.
        progress: Told how far the reading is.
        discarded_suffice: Whether discarded responses alone are worth a folder.

    Raises:
        NotFoundError: no such workspace or dataset, or no submitted response in it, or none for something named.
        InputError: the time window is empty, a key file was named without pseudonyms, or it is no key file.
        OutputError: `out` holds something else, or it or the key file cannot be written.
        ArgillaError: the server is too old, does not answer, refuses the key, or its records keep changing.
    """
    check_request(filters, key_file)
    names = list(dict.fromkeys([workspaces] if isinstance(workspaces, str) else workspaces))
    pseudonyms = Pseudonyms(key_path(out, key_file)) if filters.anonymized else None
    lost = pseudonyms is not None and pseudonyms.is_new and has_filter(out, "anonymized")
    with staged_folder(out) as work:
        check_server(client)
        datasets, passed_over = find_datasets(client, names, filters)
        annotators = Annotators(client, pseudonyms)
        with Spool(work / "spool.sqlite") as spool:
            started = datetime.now(UTC)
            reading = Reading(client, filters, annotators, spool, progress)
            read = [read_dataset(reading, dataset) for dataset in datasets]
            finished = datetime.now(UTC)
            files = write_files(spool, work / "export", datasets, filters)
        if not (discarded_suffice and any(file.rows for file in files)):
            check_not_empty(files, read, annotators, names, filters)
        manifest = Manifest(
            citejury=version("citejury"),
            server=client.api_url,
            workspaces=tuple(names),
            datasets=tuple(each.described for each in read),
            filters=filters_without_names(filters, read, annotators),
            started=started.isoformat(),
            finished=finished.isoformat(),
            files=tuple(files),
        )
        write_manifest(manifest, work / "export")
        if pseudonyms is not None:
            pseudonyms.save()  # before the folder is there: pseudonyms without a key would be lost for good
    warnings = warnings_about(files, manifest.datasets, filters, passed_over)
    if lost:
        warnings.append(
            f"The earlier export in {out} had pseudonyms too, and their key file was not there. They began anew: one "
            "that is in both may stand for two people."
        )
    return Export(manifest, warnings, None if pseudonyms is None else pseudonyms.path)


def check_request(filters: ExportFilters, key_file: Path | None) -> None:
    """Nothing where the request makes sense.

    Raises:
        InputError: the time window is empty, or a key file was named without pseudonyms.
    """
    if filters.since is not None and filters.until is not None and filters.since >= filters.until:
        raise InputError(
            f"No response is of {filters.since.isoformat()} or later and before {filters.until.isoformat()}. Give "
            "`--until` a later moment than `--since`."
        )
    if key_file is not None and not filters.anonymized:
        raise InputError("`--key-file` is for pseudonyms. Give `--anonymize` too, or leave it out.")


def filters_without_names(filters: ExportFilters, read: Sequence[ReadDataset], annotators: Annotators) -> ExportFilters:
    """The filters as the manifest may tell them: where pseudonyms stand in the files, no name stands there either."""
    if not filters.anonymized or not filters.annotators:
        return filters
    exported = {user_id for each in read for user_id, _ in each.tally.exported}
    return filters.model_copy(update={"annotators": tuple(sorted(map(annotators.shown, exported)))})


def write_files(
    spool: Spool, folder: Path, datasets: Sequence[TaskDataset], filters: ExportFilters
) -> list[ExportedFile]:
    """The files of each task that has a dataset, in the order of the tasks."""
    kinds = (False, True) if filters.discarded else (False,)
    return [
        write_table(
            folder / file_name(task, kind),
            task,
            table_columns(task, filters, kind),
            spool.rows(task, discarded=kind),
            bom=filters.spreadsheet_safe,
        )
        for task in TASKS
        if task in {dataset.task for dataset in datasets}
        for kind in kinds
    ]
