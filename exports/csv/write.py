"""Export workspaces: their submitted responses as a CSV file a task and a manifest, in one folder."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from annotation.argilla.client import Argilla
from annotation.argilla.labels import OWN_TASKS, TASKS, TaskName, task_named
from annotation.campaign.datasets import JuryDataset
from annotation.quality.tally import WorkTally, find_watched
from exports.csv import schema
from exports.csv.annotators import Annotators, key_path, pseudonyms_of
from exports.csv.compare import Changes, Now, compare_exports
from exports.csv.fetch import Progress, ReadDataset, Reading, check_server, choose_datasets, has, in_words, read_dataset
from exports.csv.folder import (
    CONTROLS_FILE,
    EVIDENCE_FILE,
    MANIFEST_FILE,
    PROVENANCE_FILE,
    add_workbook,
    file_name,
    has_filter,
    mapping,
    read_manifest,
    staged_folder,
    write_manifest,
    write_task,
)
from exports.csv.rows import (
    Piece,
    ProvenanceGaps,
    merge_provenance,
    provenance_pieces,
    table_columns,
    table_head,
    write_table,
)
from exports.csv.spool import Spool
from exports.csv.update import Index, IndexWriter, Update, read_changes, read_index
from pipeline.core.errors import InputError, NotFoundError
from pipeline.core.files import sha256_of
from pipeline.core.sentences import sentences
from pipeline.core.terminal import counted

_say = sentences(__file__)


def _check_not_empty(
    files: Sequence[schema.ExportedFile],
    read: Sequence[ReadDataset],
    annotators: Annotators,
    workspaces: Sequence[str],
    filters: schema.ExportFilters,
) -> None:
    """Refuse an export without submitted responses, for each task, round, annotator and language that was named."""
    # What has no submitted response at all comes before what only the other options left without one.
    submitted = [(each.dataset, each.tally.submitted) for each in read]
    exported = [(each.dataset, each.tally.exported) for each in read]
    lacking = (_first_without_row(found, annotators, workspaces, filters) for found in (submitted, exported))
    missing = next((each for each in lacking if each is not None), None)
    if missing is None and any(file.rows for file in files if _has_submitted(file)):
        return
    window = f" before {filters.until.isoformat()}" if filters.until else ""
    named = (filters.tasks, filters.rounds, filters.annotators, filters.languages, filters.until)
    raise NotFoundError(
        f"{in_words(workspaces)} {has(workspaces)} no submitted response{missing or ''}{window}"
        f"{' that fits all the options' if sum(map(bool, named)) > 1 else ''}, so nothing was written. "
        f"{_what_there_is(read, annotators)}"
    )


def _has_submitted(file: schema.ExportedFile) -> bool:
    return file.task is not None and file.file == file_name(file.task, discarded=False)


def _first_without_row(
    found: Sequence[tuple[JuryDataset, set[tuple[str, str]]]],
    annotators: Annotators,
    workspaces: Sequence[str],
    filters: schema.ExportFilters,
) -> str | None:
    """The first thing that was named and is in none of the rows (user id, language) of the datasets, in words."""
    full = [dataset for dataset, rows in found if rows]
    rows = [row for _, some in found for row in some]
    people = {name for user_id, _ in rows for name in annotators.names_of(user_id)}
    languages = {language for _, language in rows}
    wanted: list[tuple[str, Iterable[str], set[str]]] = [
        (" to the task {}", filters.tasks, {dataset.task for dataset in full}),
        (" of the round {!r}", filters.rounds, {dataset.round for dataset in full}),
        (
            " in {!r}",
            workspaces if len(workspaces) > 1 and not filters.whole_campaign else (),
            {dataset.workspace for dataset in full},
        ),
        (" by {!r}", filters.annotators, people),
        (" to a record of the language {!r}", filters.languages, languages),
    ]
    return next((words.format(name) for words, names, there in wanted for name in names if name not in there), None)


def _what_there_is(read: Sequence[ReadDataset], annotators: Annotators) -> str:
    """A sentence about the submitted responses of the datasets that were read, whatever else was asked for."""
    there = [(user_id, language) for each in read for user_id, language in each.tally.submitted]
    if not there:
        return "Drafts and discarded responses do not count; export again when someone has submitted."
    stamps = [schema.utc(stamp) for each in read for stamp in each.tally.stamps or ()]
    people = sorted({annotators.name(user_id) for user_id, _ in there})
    languages = sorted({language for _, language in there})
    full = [each.dataset for each in read if each.tally.submitted]
    return (
        f"There are submitted responses by the annotators {', '.join(people)}, to records of the languages "
        f"{', '.join(languages)}, from {min(stamps).isoformat()} to {max(stamps).isoformat()}, in "
        f"{', '.join(f'{each.workspace}/{each.name} (round {each.round})' for each in full)}."
    )


def _warnings_about(
    files: Sequence[schema.ExportedFile],
    datasets: Sequence[schema.ExportedDataset],
    filters: schema.ExportFilters,
    passed_over: Sequence[str] = (),
) -> list[str]:
    is_filtered = filters.until or filters.annotators or filters.languages or filters.rounds
    found = [
        _say("only_header", name=file.file, task=file.task, fitting=" that fits the options" if is_filtered else "")
        for file in files
        if not file.rows and _has_submitted(file)
    ]
    present = {file.task for file in files}
    found += [
        f"There is no dataset for the task {task}, so there is no {file_name(task, discarded=False)}."
        for task in TASKS
        if not filters.tasks and task not in present and present <= {None, *OWN_TASKS}
    ]
    found += [
        _say("foreign", records=dataset.foreign_records, name=dataset.name)
        for dataset in datasets
        if dataset.foreign_records
    ]
    return found + [_say("suggested", name=name) for name in passed_over]


def _warnings_about_doubled(datasets: Sequence[schema.ExportedDataset]) -> list[str]:
    dropped, differing = (sum(getattr(each, name) for each in datasets) for name in ("doubled", "doubled_differing"))
    if not dropped:
        return []
    where = ", ".join(f"{each.workspace}/{each.name}" for each in datasets if each.doubled)
    return [
        f"{counted(dropped, 'response')} {'is' if dropped == 1 else 'are'} left out ({where}), because the same "
        f"annotator answered the same unit later in another workspace; {differing:,} of them with other labels. Export "
        "one workspace at a time to have them."
    ]


_NAMED_PLACES = 5  # of lost marks; a campaign may have hundreds


def _warnings_about_marks(read: Sequence[ReadDataset]) -> list[str]:
    cut, lost = sum(each.tally.cut_marks for each in read), [mark for each in read for mark in each.tally.lost_marks]
    found = []
    if cut:
        found.append(_say("cut", marks=counted(cut, "mark"), evidence_file=EVIDENCE_FILE))
    if lost:
        places = [f"{record_uuid} by {annotator}" for record_uuid, annotator in dict.fromkeys(lost)]
        whose, more = ", ".join(places[:_NAMED_PLACES]), len(places) - _NAMED_PLACES
        if more > 0:
            whose += f", and {more} more; an export with `--annotator NAME` names those of one annotator"
        found.append(_say("lost", evidence_file=EVIDENCE_FILE, marks=counted(len(lost), "mark"), whose=whose))
    return found


_EVERYTHING = schema.ExportFilters()


class Export(NamedTuple):
    manifest: schema.Manifest
    warnings: list[str]
    key_file: Path | None
    changes: Changes | None


def export_csv(
    client: Argilla,
    workspaces: str | Sequence[str],
    out: Path,
    filters: schema.ExportFilters = _EVERYTHING,
    *,
    key_file: Path | None = None,
    progress: Progress = lambda name, read, total: None,
    allow: Callable[[Changes], None] = lambda changes: None,
    discarded_suffice: bool = False,
    languages: Mapping[str, Collection[str]] = {},
) -> Export:
    """What was exported to the folder `out`: a file a task, provenance, a manifest; an earlier export is replaced.

    Rows are sorted by record, rank of the passage, passage, annotator and response id: the same data gives the same
    bytes. Of one annotator's responses to one unit in several workspaces the newest is a row; those of several rounds
    or versions of one workspace are a row each. Pseudonyms are kept in `key_file`, `<out>.annotators.json` if not
    given. `allow` is given what changes in an earlier export, and raises if that may not be. With `discarded_suffice`
    discarded responses alone are worth a folder. `languages` says in which somebody labels, by user name: all for those
    who are not named.

    Raises:
        NotFoundError: no such workspace or dataset, or no submitted response in it, or none for something named.
        InputError: the key file is none or not wanted.
        OutputError: `out` holds something else, or it or the key file cannot be written.
        ArgillaError: the server is too old, does not answer, refuses the key, or its records keep changing.
    """
    names = tuple(dict.fromkeys([workspaces] if isinstance(workspaces, str) else workspaces))
    return _write_export(_Writing(client, names, filters, out, key_file, progress, allow, discarded_suffice, languages))


def update_csv(
    client: Argilla,
    out: Path,
    *,
    key_file: Path | None = None,
    progress: Progress = lambda name, read, total: None,
    allow: Callable[[Changes], None] = lambda changes: None,
    languages: Mapping[str, Collection[str]] = {},
) -> Export:
    """What the folder `out` holds now: what `export_csv` would write there, asked for what its manifest was asked for.

    Only what changed is read where the server tells and the folder has its index; elsewhere everything is, and a
    warning says so.
    """
    workspaces, filters = _read_request(out)
    keys = key_path(out, key_file)
    if filters.anonymized and not keys.is_file():
        raise InputError(_say("no_key", out=out, key=keys))
    wanted = _Writing(client, workspaces, filters, out, key_file, progress, allow, languages=languages, is_update=True)
    return _write_export(wanted)


def _read_request(out: Path) -> tuple[tuple[str, ...], schema.ExportFilters]:
    manifest = read_manifest(out)
    filters = {**mapping(manifest.get("filters"))}
    if filters.pop("since", None) is not None:
        raise InputError(_say("since", out=out))
    if filters.pop("as_of", None) is not None:
        raise InputError(_say("as_of", out=out))
    try:
        return tuple(manifest["workspaces"]), schema.ExportFilters.model_validate(filters)
    except (KeyError, TypeError, ValidationError) as error:
        raise InputError(_say("no_export", out=out)) from error


class _Writing(NamedTuple):
    client: Argilla
    workspaces: tuple[str, ...]
    filters: schema.ExportFilters
    out: Path
    key_file: Path | None
    progress: Progress
    allow: Callable[[Changes], None]
    discarded_suffice: bool = False
    languages: Mapping[str, Collection[str]] = {}
    is_update: bool = False


def _write_export(writing: _Writing) -> Export:
    client, workspaces, filters, out = writing[:4]
    pseudonyms = pseudonyms_of(out, writing.key_file, filters.anonymized)
    lost = pseudonyms is not None and pseudonyms.is_new and has_filter(out, "anonymized")
    with staged_folder(out) as work:
        new = work / "export"
        check_server(client)
        datasets, passed_over = choose_datasets(client, workspaces, filters)
        found = find_watched(client, workspaces, (), writing.languages)
        watched = {each.dataset.id: each for each in found if each.dataset.is_ready}
        annotators = Annotators(client, pseudonyms)
        is_there = (out / MANIFEST_FILE).is_file()
        earlier = read_index(out) if is_there else None
        with Spool(work / "spool.sqlite") as spool:
            started = datetime.now(UTC)
            reading = Reading(client, filters, annotators, spool, writing.progress, watched)
            update = read_changes(reading, datasets, earlier) if writing.is_update and earlier else None
            read = update.read if update else [read_dataset(reading, dataset) for dataset in datasets]
            finished = datetime.now(UTC)
            if not filters.every_response:
                spool.drop_doubled({dataset.id: dataset.workspace for dataset in datasets})
            gaps = ProvenanceGaps()
            files, index = _write_files(spool, update, new, datasets, filters, gaps)
            if not (writing.discarded_suffice and any(file.rows for file in files)):
                _check_not_empty(files, read, annotators, workspaces, filters)
            doubled = spool.doubled()
            manifest = schema.Manifest(
                citejury=version("citejury"),
                server=client.api_url,
                workspaces=workspaces,
                datasets=tuple(_described(each, annotators, doubled) for each in read),
                filters=_filters_without_names(filters, read, annotators),
                started=started.isoformat(),
                finished=finished.isoformat(),
                files=tuple(files),
            )
            write_manifest(manifest, new)
            changes = None
            if is_there:
                asked = annotators.exported_names(filters.annotators)
                now = Now(index, update, filters, asked, workspaces, {each.id for each in datasets}, spool)
                changes = compare_exports(out, earlier, now)
                writing.allow(changes)
        if pseudonyms is not None:
            pseudonyms.save()  # before the folder is there: pseudonyms without a key would be lost for good
    warnings = gaps.warnings() + _warnings_about(files, manifest.datasets, filters, passed_over)
    warnings += _warnings_about_marks(read) + spool.warnings() + _warnings_about_doubled(manifest.datasets)
    warnings += _warnings_about_the_earlier(out, writing.is_update and update is None, earlier is not None, lost)
    return Export(manifest, warnings, None if pseudonyms is None else pseudonyms.path, changes)


def _warnings_about_the_earlier(out: Path, all_was_read: bool, has_index: bool, key_is_lost: bool) -> list[str]:
    warnings = []
    if all_was_read:
        known = "this Argilla does not tell what changed, or there is a new pseudonym to give."
        unknown = f"{out} has no index of this version, or its files were changed by hand."
        warnings.append(f"Everything was read: {known if has_index else unknown}")
    if key_is_lost:
        warnings.append(_say("key_lost", out=out))
    return warnings


def _described_task(task: TaskName, folder: Path) -> schema.ExportedFile:
    path = write_task(task_named(task), folder)
    lines, name = path.read_bytes().count(b"\n"), path.relative_to(folder).as_posix()
    return schema.ExportedFile(file=name, task=task, rows=lines, annotators=0, records=0, sha256=sha256_of(path))


def _work(tally: WorkTally) -> schema.Work:
    """As `annotation status` counts it; of a superseded version nothing is open any more."""
    return schema.Work(
        done=tally.reached,
        of=tally.reached if tally.watched.is_superseded else tally.records,
        wanting=tally.needed,
        nobody_left=len(tally.unreachable),
        drafts=tally.total("draft"),
        discarded=tally.total("discarded"),
    )


def _described(
    read: ReadDataset, annotators: Annotators, doubled: Mapping[str, tuple[int, int]]
) -> schema.ExportedDataset:
    dataset, tally = read.dataset, read.tally
    people: dict[str, Counter[str]] = {}
    for (user_id, status), count in sorted(tally.counts.items()):
        people.setdefault(annotators.exported_name(user_id), Counter())[status] += count
    dropped, differing = doubled.get(dataset.id, (0, 0))
    return schema.ExportedDataset(
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
            who: schema.AnnotatorCounts(
                submitted=people[who]["submitted"], drafts=people[who]["draft"], discarded=people[who]["discarded"]
            )
            for who in sorted(people)
        },
        work=_work(tally.work) if tally.work else None,
    )


def _filters_without_names(
    filters: schema.ExportFilters, read: Sequence[ReadDataset], annotators: Annotators
) -> schema.ExportFilters:
    """The filters as the manifest may tell them: where pseudonyms stand in the files, no name stands there either."""
    if not filters.anonymized or not filters.annotators:
        return filters
    exported = {user_id for each in read for user_id, _ in each.tally.exported}
    return filters.model_copy(update={"annotators": tuple(sorted(map(annotators.exported_name, exported)))})


def _write_files(
    spool: Spool,
    update: Update | None,
    folder: Path,
    datasets: Sequence[JuryDataset],
    filters: schema.ExportFilters,
    gaps: ProvenanceGaps,
) -> tuple[list[schema.ExportedFile], Index]:
    """The files by task, then provenance, marks where asked for, and controls and repeats where there are some."""
    tasks = [task for task in TASKS if task in {dataset.task for dataset in datasets}]
    bom = filters.spreadsheet_safe
    files: list[schema.ExportedFile] = []
    with IndexWriter(folder) as index:

        def with_kept(name: str, fresh: Iterator[Piece]) -> Iterator[Piece]:
            return update.pieces(name, fresh) if update else fresh

        def write(name: str, task: TaskName | None, header: Sequence[str], pieces: Iterable[Piece]) -> None:
            head = table_head(header, bom and bool(header))
            files.append(write_table(folder / name, task, head, pieces, partial(index.add, len(files))))

        for task in tasks:
            for kind in (False, True) if filters.discarded else (False,):
                name = file_name(task, kind)
                write(name, task, table_columns(task, filters, kind), with_kept(name, spool.rows(task, kind)))
        provenance = provenance_pieces(merge_provenance(spool.provenance()), bom)
        write(PROVENANCE_FILE, None, schema.PROVENANCE_COLUMNS, gaps.count(with_kept(PROVENANCE_FILE, provenance)))
        if any(dataset.evidence != "off" for dataset in datasets):
            write(EVIDENCE_FILE, "grounding", (), with_kept(EVIDENCE_FILE, spool.rows("evidence", discarded=False)))
        controls = with_kept(CONTROLS_FILE, spool.rows("controls", discarded=False))
        if (first := next(controls, None)) is not None:
            write(CONTROLS_FILE, None, schema.CONTROL_COLUMNS, chain([first], controls))
        files += [_described_task(task, folder) for task in tasks if task not in OWN_TASKS]
        written = index.finish(spool, files, datasets)
    if filters.excel:
        add_workbook(files, folder, bom)
    return files, written
