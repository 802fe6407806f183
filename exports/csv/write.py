"""Export workspaces: their submitted responses as three CSV files and a manifest, in one folder."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from annotation.campaign.datasets import JuryDataset
from annotation.client import Argilla
from annotation.labels import TASKS
from exports.csv.annotators import Annotators, Pseudonyms, key_path
from exports.csv.fetch import Progress, ReadDataset, Reading, Spool, read_dataset
from exports.csv.find import check_server, choose_datasets, has, in_words
from exports.csv.folder import EVIDENCE_FILE, PROVENANCE_FILE, file_name, has_filter, staged_folder, write_manifest
from exports.csv.provenance import ProvenanceGaps, merge_provenance
from exports.csv.tables import table_columns, utc, write_table
from exports.schema import PROVENANCE_COLUMNS, ExportedDataset, ExportedFile, ExportFilters, Manifest
from pipeline.errors import InputError, NotFoundError
from pipeline.text.terminal import counted

_EVERYTHING = ExportFilters()


def _check_not_empty(
    files: Sequence[ExportedFile],
    read: Sequence[ReadDataset],
    annotators: Annotators,
    workspaces: Sequence[str],
    filters: ExportFilters,
) -> None:
    """Refuse an export without submitted responses, for each task, round, annotator and language that was named.

    Raises:
        NotFoundError: there are none; the message says of whom and when there are some.
    """
    missing = _first_missing(read, annotators, workspaces, filters)
    if missing is None and any(file.rows for file in files if _has_submitted(file)):
        return
    window = f" since {filters.since.isoformat()}" if filters.since else ""
    window += f" before {filters.until.isoformat()}" if filters.until else ""
    raise NotFoundError(
        f"{in_words(workspaces)} {has(workspaces)} no submitted response{missing or ''}{window}"
        f"{' that fits all the options' if _several_kinds(filters) else ''}, so nothing was written. "
        f"{_what_there_is(read, annotators)}"
    )


def _has_submitted(file: ExportedFile) -> bool:
    """Whether the file is one of the three of submitted responses."""
    return file.task is not None and file.file == file_name(file.task, discarded=False)


def _first_missing(
    read: Sequence[ReadDataset], annotators: Annotators, workspaces: Sequence[str], filters: ExportFilters
) -> str | None:
    """The first thing that was named and has no row, in words; None where everything has one.

    What has no submitted response at all comes before what only the other options left without one.
    """
    submitted = [(each.described, each.tally.submitted) for each in read]
    exported = [(each.described, each.tally.exported) for each in read]
    missing = (_first_without_row(found, annotators, workspaces, filters) for found in (submitted, exported))
    return next((each for each in missing if each is not None), None)


def _first_without_row(
    found: Sequence[tuple[ExportedDataset, set[tuple[str, str]]]],
    annotators: Annotators,
    workspaces: Sequence[str],
    filters: ExportFilters,
) -> str | None:
    """The first thing that was named and is in none of the rows (user id, language) of the datasets, in words."""
    full = [dataset for dataset, rows in found if rows]
    rows = [row for _, some in found for row in some]
    people = {name for user_id, _ in rows for name in (user_id, annotators.name(user_id))}
    languages = {language for _, language in rows}
    wanted: list[tuple[str, Iterable[str], set[str]]] = [
        (" to the task {}", filters.tasks, {dataset.task for dataset in full}),
        (" of the round {!r}", filters.rounds, {dataset.round for dataset in full}),
        (" in {!r}", workspaces if len(workspaces) > 1 else (), {dataset.workspace for dataset in full}),
        (" by {!r}", filters.annotators, people),
        (" to a record of the language {!r}", filters.languages, languages),
    ]
    return next((words.format(name) for words, names, there in wanted for name in names if name not in there), None)


def _several_kinds(filters: ExportFilters) -> bool:
    """Whether responses had to fit more than one option."""
    named = (filters.tasks, filters.rounds, filters.annotators, filters.languages, filters.since or filters.until)
    return sum(map(bool, named)) > 1


def _what_there_is(read: Sequence[ReadDataset], annotators: Annotators) -> str:
    """A sentence about the submitted responses of the datasets that were read, whatever else was asked for."""
    there = [(user_id, language) for each in read for user_id, language in each.tally.submitted]
    if not there:
        return "Drafts and discarded responses do not count; export again when someone has submitted."
    stamps = [utc(stamp) for each in read for stamp in each.tally.stamps or ()]
    people = sorted({annotators.name(user_id) for user_id, _ in there})
    languages = sorted({language for _, language in there})
    return (
        f"There are submitted responses by the annotators {', '.join(people)}, to records of the languages "
        f"{', '.join(languages)}, from {min(stamps).isoformat()} to {max(stamps).isoformat()}, in "
        f"{', '.join(_dataset_words(each) for each in read if each.tally.submitted)}."
    )


def _dataset_words(read: ReadDataset) -> str:
    """Workspace, name and round of a dataset."""
    return f"{read.described.workspace}/{read.described.name} (round {read.described.round})"


def _warnings_about(
    files: Sequence[ExportedFile],
    datasets: Sequence[ExportedDataset],
    filters: ExportFilters,
    passed_over: Sequence[str] = (),
) -> list[str]:
    """What the user might miss: empty files, absent tasks, records that are not ours, rounds that were passed over."""
    found = [
        f"{file.file} has only its header: nobody submitted a response to the task {file.task}"
        f"{' that fits the options' if _is_filtered(filters) else ''}."
        for file in files
        if not file.rows and _has_submitted(file)
    ]
    present = {file.task for file in files}
    found += [
        f"There is no dataset for the task {task}, so there is no {file_name(task, discarded=False)}."
        for task in TASKS
        if not filters.tasks and task not in present
    ]
    found += [
        f"{dataset.foreign_records} answered records of the dataset {dataset.name!r} were not pushed by citejury; "
        "they have no record_uuid and are left out."
        for dataset in datasets
        if dataset.foreign_records
    ]
    return found + [
        f"The round {name!r} is left out, because a machine filled in its answers beforehand. Name it with `--round "
        f"{name}` to export it."
        for name in passed_over
    ]


_NAMED_PLACES = 5  # of lost marks; a campaign may have hundreds


def _warnings_about_marks(read: Sequence[ReadDataset]) -> list[str]:
    """What became of marks that are not on the text of one passage; empty where all are."""
    cut, lost = sum(each.tally.cut_marks for each in read), [mark for each in read for mark in each.tally.lost_marks]
    found = []
    if cut:
        found.append(
            f"Cut into the parts of their passages, because they were on a heading or on several passages: "
            f"{counted(cut, 'mark')}; `cut` in {EVIDENCE_FILE} says which."
        )
    if lost:
        places = [f"{record_uuid} by {annotator}" for record_uuid, annotator in dict.fromkeys(lost)]
        whose, more = ", ".join(places[:_NAMED_PLACES]), len(places) - _NAMED_PLACES
        if more > 0:
            whose += f", and {more} more; an export with `--annotator NAME` names those of one annotator"
        found.append(
            f"Left out of {EVIDENCE_FILE}, because they were on no words of a passage: {counted(len(lost), 'mark')} "
            f"({whose})."
        )
    return found


def _is_filtered(filters: ExportFilters) -> bool:
    """Whether some submitted responses may have been left out on request."""
    return bool(filters.since or filters.until or filters.annotators or filters.languages or filters.rounds)


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
    filters: ExportFilters = _EVERYTHING,
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
    _check_request(filters, key_file)
    names = list(dict.fromkeys([workspaces] if isinstance(workspaces, str) else workspaces))
    pseudonyms = Pseudonyms(key_path(out, key_file)) if filters.anonymized else None
    lost = pseudonyms is not None and pseudonyms.is_new and has_filter(out, "anonymized")
    with staged_folder(out) as work:
        check_server(client)
        datasets, passed_over = choose_datasets(client, names, filters)
        annotators = Annotators(client, pseudonyms)
        with Spool(work / "spool.sqlite") as spool:
            started = datetime.now(UTC)
            reading = Reading(client, filters, annotators, spool, progress)
            read = [read_dataset(reading, dataset) for dataset in datasets]
            finished = datetime.now(UTC)
            gaps = ProvenanceGaps()
            files = _write_files(spool, work / "export", datasets, filters, gaps)
        if not (discarded_suffice and any(file.rows for file in files)):
            _check_not_empty(files, read, annotators, names, filters)
        manifest = Manifest(
            citejury=version("citejury"),
            server=client.api_url,
            workspaces=tuple(names),
            datasets=tuple(each.described for each in read),
            filters=_filters_without_names(filters, read, annotators),
            started=started.isoformat(),
            finished=finished.isoformat(),
            files=tuple(files),
        )
        write_manifest(manifest, work / "export")
        if pseudonyms is not None:
            pseudonyms.save()  # before the folder is there: pseudonyms without a key would be lost for good
    warnings = gaps.warnings() + _warnings_about(files, manifest.datasets, filters, passed_over)
    warnings += _warnings_about_marks(read)
    if lost:
        warnings.append(
            f"The earlier export in {out} had pseudonyms too, and their key file was not there. They began anew: one "
            "that is in both may stand for two people."
        )
    return Export(manifest, warnings, None if pseudonyms is None else pseudonyms.path)


def _check_request(filters: ExportFilters, key_file: Path | None) -> None:
    """Refuse a request that makes no sense.

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


def _filters_without_names(
    filters: ExportFilters, read: Sequence[ReadDataset], annotators: Annotators
) -> ExportFilters:
    """The filters as the manifest may tell them: where pseudonyms stand in the files, no name stands there either."""
    if not filters.anonymized or not filters.annotators:
        return filters
    exported = {user_id for each in read for user_id, _ in each.tally.exported}
    return filters.model_copy(update={"annotators": tuple(sorted(map(annotators.exported_name, exported)))})


def _write_files(
    spool: Spool, folder: Path, datasets: Sequence[JuryDataset], filters: ExportFilters, gaps: ProvenanceGaps
) -> list[ExportedFile]:
    """The files of each task that has a dataset in the order of the tasks, of provenance, and of marks where asked for.

    `gaps` counts what is missing in the provenance.
    """
    bom = filters.spreadsheet_safe
    kinds = (False, True) if filters.discarded else (False,)
    files = [
        write_table(
            folder / file_name(task, kind),
            task,
            table_columns(task, filters, kind),
            spool.rows(task, discarded=kind),
            bom=bom,
        )
        for task in TASKS
        if task in {dataset.task for dataset in datasets}
        for kind in kinds
    ]
    told = gaps.rows(merge_provenance(spool.provenance()), filters.spreadsheet_safe)
    files.append(write_table(folder / PROVENANCE_FILE, None, PROVENANCE_COLUMNS, told, bom=bom))
    if any(dataset.evidence != "off" for dataset in datasets):
        files.append(write_table(folder / EVIDENCE_FILE, "grounding", (), spool.rows("evidence", discarded=False)))
    return files
