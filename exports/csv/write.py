"""Export workspaces: their submitted responses as three CSV files and a manifest, in one folder."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from annotation.campaign.datasets import JuryDataset
from annotation.client import Argilla
from annotation.labels import TASKS, TaskName
from exports.csv._index import Index, IndexWriter, read_index
from exports.csv._provenance import ProvenanceGaps, merge_provenance, provenance_pieces
from exports.csv._remarks import (
    check_not_empty,
    warnings_about,
    warnings_about_doubled,
    warnings_about_marks,
    warnings_about_the_past,
)
from exports.csv._spool import Spool, Table
from exports.csv._update import Update, read_changes
from exports.csv.annotators import Annotators, Pseudonyms, key_path
from exports.csv.compare import Changes, Now, compare_exports
from exports.csv.fetch import Progress, ReadDataset, Reading, read_dataset
from exports.csv.find import check_server, choose_datasets
from exports.csv.folder import (
    CONTROLS_FILE,
    EVIDENCE_FILE,
    MANIFEST_FILE,
    PROVENANCE_FILE,
    file_name,
    has_filter,
    mapping,
    read_manifest,
    staged_folder,
    write_manifest,
)
from exports.csv.history import check_moment
from exports.csv.tables import Piece, table_columns, table_head, write_table
from exports.schema import (
    CONTROL_COLUMNS,
    PROVENANCE_COLUMNS,
    AnnotatorCounts,
    ExportedDataset,
    ExportedFile,
    ExportFilters,
    Manifest,
)
from pipeline.errors import InputError

_EVERYTHING = ExportFilters()


class Export(NamedTuple):
    """What was exported, and what to mind."""

    manifest: Manifest
    """What the folder holds."""
    warnings: list[str]
    """Plain sentences about what is missing; empty where nothing is."""
    key_file: Path | None
    """The file that says who is behind the pseudonyms; None where names stand in the export."""
    changes: Changes | None
    """What changed since the earlier export in the folder; None where there was none."""


class Request(NamedTuple):
    """What an export is to hold."""

    workspaces: tuple[str, ...]
    """The workspaces to read."""
    filters: ExportFilters
    """Which responses and columns."""


def export_csv(
    client: Argilla,
    workspaces: str | Sequence[str],
    out: Path,
    filters: ExportFilters = _EVERYTHING,
    *,
    key_file: Path | None = None,
    progress: Progress = lambda name, read, total: None,
    allow: Callable[[Changes], None] = lambda changes: None,
    discarded_suffice: bool = False,
) -> Export:
    """What was exported to the folder `out`: a file a task, provenance, a manifest; an earlier export is replaced.

    Rows are sorted by record, rank of the passage, passage, annotator and response id: the same data gives the same
    bytes. Of one annotator's responses to one unit in several workspaces the newest is a row; those of several rounds
    or versions of one workspace are a row each.

    Args:
        client: The server, as an owner or admin.
        workspaces: Name of the workspace, or names of several.
        out: Absent, empty, or an earlier export.
        filters: Which responses and columns are wanted.
        key_file: Where pseudonyms are kept; `<out>.annotators.json` if not given. Not touched unless anonymized.
        progress: Told how far the reading is.
        allow: Told what changes in the folder, where it holds an earlier export; raises if that may not be.
        discarded_suffice: Whether discarded responses alone are worth a folder.

    Raises:
        NotFoundError: no such workspace or dataset, or no submitted response in it, or none for something named.
        InputError: a key file was named without pseudonyms, or it is no key file; or no history reaches back to
            `filters.as_of`.
        OutputError: `out` holds something else, or it or the key file cannot be written.
        ArgillaError: the server is too old, does not answer, refuses the key, or its records keep changing.
    """
    names = tuple(dict.fromkeys([workspaces] if isinstance(workspaces, str) else workspaces))
    writing = _Writing(client, out, key_file, progress, allow, discarded_suffice)
    return _write_export(writing, Request(names, filters), is_update=False)


def update_csv(
    client: Argilla,
    out: Path,
    *,
    key_file: Path | None = None,
    progress: Progress = lambda name, read, total: None,
    allow: Callable[[Changes], None] = lambda changes: None,
) -> Export:
    """What the folder `out` holds now: what `export_csv` would write there, asked for what its manifest was asked for.

    Only what changed is read where the server tells and the folder has its index; elsewhere everything is, and a
    warning says so. The arguments are those of `export_csv`.

    Raises:
        InputError: `out` holds no export, or one that cannot be brought up to date.
        NotFoundError, OutputError, ArgillaError: as `export_csv`.
    """
    request = _read_request(out)
    keys = key_path(out, key_file)
    if request.filters.anonymized and not keys.is_file():
        raise InputError(
            f"The export in {out} has pseudonyms, and their key file `{keys}` is not there. Name it with `--key-file`."
        )
    return _write_export(_Writing(client, out, key_file, progress, allow, False), request, is_update=True)


def _read_request(out: Path) -> Request:
    """What the export in the folder was asked for.

    Raises:
        InputError: it holds no export, or one that was made with the former `--since`.
    """
    manifest = read_manifest(out)
    filters = {**mapping(manifest.get("filters"))}
    if filters.pop("since", None) is not None:
        raise InputError(
            f"The export in {out} was made with the former `--since` and cannot be brought up to date. Export to "
            "another folder without `--update`."
        )
    if filters.get("as_of") is not None:
        raise InputError(
            f"The export in {out} is of an earlier moment (`--as-of`), so there is nothing to bring up to date. Export "
            "to another folder without `--update`."
        )
    try:
        return Request(tuple(manifest["workspaces"]), ExportFilters.model_validate(filters))
    except (KeyError, TypeError, ValidationError) as error:
        raise InputError(
            f"`{out}` holds no export of citejury that `--update` could bring up to date. Export without it first."
        ) from error


class _Writing(NamedTuple):
    """What writing an export needs beside the request."""

    client: Argilla
    out: Path
    key_file: Path | None
    progress: Progress
    allow: Callable[[Changes], None]
    discarded_suffice: bool


def _write_export(writing: _Writing, request: Request, *, is_update: bool) -> Export:
    """What was written."""
    client, out, filters = writing.client, writing.out, request.filters
    if writing.key_file is not None and not filters.anonymized:
        raise InputError("`--key-file` is for pseudonyms. Give `--anonymize` too, or leave it out.")
    pseudonyms = Pseudonyms(key_path(out, writing.key_file)) if filters.anonymized else None
    lost = pseudonyms is not None and pseudonyms.is_new and has_filter(out, "anonymized")
    with staged_folder(out) as work:
        new = work / "export"
        check_server(client)
        unrestored = check_moment(client, request.workspaces, filters.as_of) if filters.as_of else 0
        datasets, passed_over = choose_datasets(client, request.workspaces, filters)
        annotators = Annotators(client, pseudonyms)
        is_there = (out / MANIFEST_FILE).is_file()
        earlier = read_index(out) if is_there else None
        with Spool(work / "spool.sqlite") as spool:
            started = datetime.now(UTC)
            reading = Reading(client, filters, annotators, spool, writing.progress)
            update = read_changes(reading, datasets, earlier) if is_update and earlier else None
            read = update.read if update else [read_dataset(reading, dataset) for dataset in datasets]
            finished = datetime.now(UTC)
            if not filters.every_response:
                spool.drop_doubled({dataset.id: dataset.workspace for dataset in datasets})
            gaps = ProvenanceGaps()
            files = _write_files(_Sources(spool, update, earlier), new, datasets, filters, gaps)
            if not (writing.discarded_suffice and any(file.rows for file in files)):
                check_not_empty(files, read, annotators, request.workspaces, filters)
            doubled = _doubled(spool, update)
            manifest = Manifest(
                citejury=version("citejury"),
                server=client.api_url,
                workspaces=request.workspaces,
                datasets=tuple(_described(each, annotators, doubled) for each in read),
                filters=_filters_without_names(filters, read, annotators),
                started=started.isoformat(),
                finished=finished.isoformat(),
                files=tuple(files),
            )
            write_manifest(manifest, new)
            changes = None
            if is_there:
                now = Now(
                    new,
                    None if update else read_index(new),
                    filters,
                    annotators.exported_names(filters.annotators),
                    request.workspaces,
                    frozenset(dataset.id for dataset in datasets),
                    _touched_lines(spool, update) if update else None,
                    spool.is_unsubmitted,
                )
                changes = compare_exports(out, earlier, now)
                writing.allow(changes)
        if pseudonyms is not None:
            pseudonyms.save()  # before the folder is there: pseudonyms without a key would be lost for good
    warnings = gaps.warnings() + warnings_about(files, manifest.datasets, filters, passed_over)
    warnings += warnings_about_marks(read) + warnings_about_doubled(manifest.datasets)
    warnings += warnings_about_the_past(filters, unrestored)
    if is_update and update is None:
        warnings.append(
            "Everything was read: "
            + (
                "this Argilla does not tell what changed, or there is a new pseudonym to give."
                if earlier
                else f"{out} has no index of this version, or its files were changed by hand."
            )
        )
    if lost:
        warnings.append(
            f"The earlier export in {out} had pseudonyms too, and their key file was not there. They began anew: one "
            "that is in both may stand for two people."
        )
    return Export(manifest, warnings, None if pseudonyms is None else pseudonyms.path, changes)


def _described(read: ReadDataset, annotators: Annotators, doubled: Mapping[str, tuple[int, int]]) -> ExportedDataset:
    """What the manifest says of a dataset."""
    dataset, tally = read.dataset, read.tally
    people: dict[str, Counter[str]] = {}
    for (user_id, status), count in sorted(tally.counts.items()):
        people.setdefault(annotators.exported_name(user_id), Counter())[status] += count
    dropped, differing = doubled.get(dataset.id, (0, 0))
    return ExportedDataset(
        task=dataset.task,
        id=dataset.id,
        name=dataset.name,
        workspace=dataset.workspace,
        round=dataset.round,
        guideline_version=dataset.guideline_version,
        records=read.records,
        foreign_records=tally.foreign_records,
        cut_marks=tally.cut_marks,
        lost_marks=len(tally.lost_marks),
        drafts=sum(counts["draft"] for counts in people.values()),
        discarded=sum(counts["discarded"] for counts in people.values()),
        doubled=dropped,
        doubled_differing=differing,
        controls=tally.apart["control"] + tally.apart["repeat"],
        practice=tally.apart["practice"],
        annotators={
            who: AnnotatorCounts(
                submitted=people[who]["submitted"], drafts=people[who]["draft"], discarded=people[who]["discarded"]
            )
            for who in sorted(people)
        },
    )


def _filters_without_names(
    filters: ExportFilters, read: Sequence[ReadDataset], annotators: Annotators
) -> ExportFilters:
    """The filters as the manifest may tell them: where pseudonyms stand in the files, no name stands there either."""
    if not filters.anonymized or not filters.annotators:
        return filters
    exported = {user_id for each in read for user_id, _ in each.tally.exported}
    return filters.model_copy(update={"annotators": tuple(sorted(map(annotators.exported_name, exported)))})


class _Sources(NamedTuple):
    """Where the lines of the files come from."""

    spool: Spool
    """What was read."""
    update: Update | None
    """What is taken over from the earlier export; None where everything was read."""
    earlier: Index | None
    """The index of the earlier export; None where there is none."""

    def rows(self, name: str, table: Table, discarded: bool) -> Iterator[Piece]:
        """The rows of one file in order."""
        fresh = self.spool.rows(table, discarded)
        return self.update.pieces(name, fresh) if self.update else fresh

    def provenance(self, filters: ExportFilters) -> Iterator[Piece]:
        """The rows of provenance in order."""
        told = self.spool.provenance()
        fresh = provenance_pieces(
            merge_provenance(self.update.provenance(told) if self.update else told), filters.spreadsheet_safe
        )
        return self.update.pieces(PROVENANCE_FILE, fresh) if self.update else fresh


def _doubled(spool: Spool, update: Update | None) -> Mapping[str, tuple[int, int]]:
    """By dataset: responses that were left out for a newer one, and those of them with other answers."""
    found = {dataset: Counter(dropped=each[0], differing=each[1]) for dataset, each in spool.doubled().items()}
    for record in update.kept if update else ():
        if record.doubled:
            counts = found.setdefault(record.dataset, Counter())
            counts.update(dropped=record.doubled, differing=record.differing)
    return {dataset: (counts["dropped"], counts["differing"]) for dataset, counts in found.items()}


def _touched_lines(spool: Spool, update: Update) -> Callable[[str], tuple[Iterator[Piece], Iterator[Piece]]]:
    """Gives of a task's file the earlier and the new lines of all units of which anything changed."""
    tables = {file_name(task, discarded=False): task for task in TASKS}
    return lambda name: (update.replaced(name), spool.rows(tables[name], discarded=False))


def _write_files(
    sources: _Sources, folder: Path, datasets: Sequence[JuryDataset], filters: ExportFilters, gaps: ProvenanceGaps
) -> list[ExportedFile]:
    """The files of each task that has a dataset in the order of the tasks, and of provenance.

    Then that of marks where they are asked for, and of answers to controls and repeats where there are some. `gaps`
    counts what is missing in the provenance. Their index lies beside them.
    """
    tasks = [task for task in TASKS if task in {dataset.task for dataset in datasets}]
    bom = filters.spreadsheet_safe
    files: list[ExportedFile] = []
    with IndexWriter(folder, sources.earlier) as index:

        def write(name: str, task: TaskName | None, header: Sequence[str], pieces: Iterable[Piece]) -> None:
            head = table_head(header, bom and bool(header))
            files.append(write_table(folder / name, task, head, pieces, partial(index.spans, len(files), name)))

        for task in tasks:
            for kind in (False, True) if filters.discarded else (False,):
                name = file_name(task, kind)
                write(name, task, table_columns(task, filters, kind), sources.rows(name, task, discarded=kind))
        write(PROVENANCE_FILE, None, PROVENANCE_COLUMNS, gaps.count(sources.provenance(filters)))
        if any(dataset.evidence != "off" for dataset in datasets):
            write(EVIDENCE_FILE, "grounding", (), sources.rows(EVIDENCE_FILE, "evidence", discarded=False))
        controls = sources.rows(CONTROLS_FILE, "controls", discarded=False)
        if (first := next(controls, None)) is not None:
            write(CONTROLS_FILE, None, CONTROL_COLUMNS, chain([first], controls))
        kept, earlier = (sources.update.kept, sources.update.earlier) if sources.update else ((), None)
        index.finish(sources.spool, kept, earlier, files, datasets)
    return files
