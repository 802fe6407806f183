"""What the user of an export might miss: what has no response, what was left out, and why."""

from collections.abc import Iterable, Sequence

from annotation.campaign.datasets import JuryDataset
from annotation.labels import TASKS
from exports.csv.annotators import Annotators
from exports.csv.fetch import ReadDataset
from exports.csv.find import has, in_words
from exports.csv.folder import EVIDENCE_FILE, file_name
from exports.csv.tables import utc
from exports.schema import ExportedDataset, ExportedFile, ExportFilters
from pipeline.errors import NotFoundError
from pipeline.terminal import counted


def warnings_about_the_past(filters: ExportFilters, unrestored: int) -> list[str]:
    """A sentence about what an export of an earlier moment cannot restore; none where it is of now.

    `unrestored` submitted responses were to records that are deleted.
    """
    if filters.as_of is None:
        return []
    lost = (
        f"{counted(unrestored, 'submitted response')} of that moment cannot be restored, because their records or "
        "datasets were deleted since (`citejury exports history` has what they said). "
        if unrestored
        else ""
    )
    return [
        f"Responses are as they were at {filters.as_of.isoformat()}. {lost}All else is as it is now: texts, metadata, "
        "names of annotators, suggestions, and `record_status` in `--extended`."
    ]


def check_not_empty(
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
    window = f" before {filters.until.isoformat()}" if filters.until else ""
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
    submitted = [(each.dataset, each.tally.submitted) for each in read]
    exported = [(each.dataset, each.tally.exported) for each in read]
    missing = (_first_without_row(found, annotators, workspaces, filters) for found in (submitted, exported))
    return next((each for each in missing if each is not None), None)


def _first_without_row(
    found: Sequence[tuple[JuryDataset, set[tuple[str, str]]]],
    annotators: Annotators,
    workspaces: Sequence[str],
    filters: ExportFilters,
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


def _several_kinds(filters: ExportFilters) -> bool:
    """Whether responses had to fit more than one option."""
    named = (filters.tasks, filters.rounds, filters.annotators, filters.languages, filters.until)
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
    return f"{read.dataset.workspace}/{read.dataset.name} (round {read.dataset.round})"


def warnings_about(
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


def warnings_about_doubled(datasets: Sequence[ExportedDataset]) -> list[str]:
    """What was left out because its annotator answered the same unit again elsewhere; empty where nothing was."""
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


def warnings_about_marks(read: Sequence[ReadDataset]) -> list[str]:
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
    return bool(filters.until or filters.annotators or filters.languages or filters.rounds)
