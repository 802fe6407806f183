"""Argilla's datasets and responses as rows in the spool: read over REST page by page, safely while people annotate."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from annotation.argilla.client import Argilla
from annotation.argilla.display import HIDDEN, hidden_metadata
from annotation.argilla.labels import LABELS, TASKS
from annotation.argilla.tasks import PRACTICE, was_suggested
from annotation.argilla.units import Assignment, Purpose, assignment_of
from annotation.campaign.datasets import JuryDataset, current_datasets, guideline_version_at, jury_dataset
from annotation.quality.tally import WatchedDataset, WorkTally
from exports.csv import rows as csv_rows
from exports.csv.annotators import Annotators
from exports.csv.schema import COLUMNS, CONTROL_COLUMNS, ExportFilters, utc
from exports.csv.spool import KeptRecord, Spool, SpooledRow, Table
from pipeline.core.errors import ArgillaError, NotFoundError, RecordsMovedError
from pipeline.core.sentences import sentences

_say = sentences(__file__)


class ChosenDatasets(NamedTuple):
    datasets: list[JuryDataset]
    passed_over: tuple[str, ...]
    """Rounds that are left out because a machine filled in their answers and nobody named them; in order of names."""


def check_server(client: Argilla) -> None:
    """Check that the server is Argilla 2 or later."""
    try:
        answer = client.request("GET", "/version")
    except NotFoundError as error:
        raise ArgillaError(_say("no_version", api_url=client.api_url)) from error
    version = str(answer.get("version")) if isinstance(answer, dict) else repr(answer)
    major = version.partition(".")[0]
    if not major.isdecimal() or int(major) < 2:
        raise ArgillaError(_say("old", api_url=client.api_url, version=version))


def choose_datasets(client: Argilla, workspaces: Sequence[str], filters: ExportFilters) -> ChosenDatasets:
    """The workspaces' datasets that citejury set up and the filters do not leave out.

    Unless they are named, rounds that a machine filled in, whose answers would count as agreement, and practice, whose
    answers are known, are left out; practice is not where every response is wanted.
    """
    ours = [dataset for workspace in workspaces for dataset in _workspace_datasets(client, workspace)]
    wanted = [
        dataset
        for dataset in ours
        if (not filters.tasks or dataset.task in filters.tasks)
        and (dataset.round in filters.rounds if filters.rounds else dataset.round != PRACTICE or filters.every_response)
    ]
    chosen = wanted
    if not filters.suggested and not filters.rounds:
        chosen = [dataset for dataset in wanted if not was_suggested(dataset.round)]
    left_out = [dataset for dataset in wanted if dataset not in chosen]
    passed_over = tuple(sorted({dataset.round for dataset in left_out}))
    if left_out and not chosen:
        raise NotFoundError(
            f"{in_words(workspaces)} at {client.api_url} {has(workspaces)} only datasets whose answers a machine "
            f"filled in beforehand: {', '.join(map(str, left_out))}. Name their round with "
            f"`--round {passed_over[0]}` if you want them."
        )
    tasks, rounds = {dataset.task for dataset in chosen}, {dataset.round for dataset in chosen}
    missing = [f"for the task {task}" for task in filters.tasks if task not in tasks]
    missing += [f"of the round {name!r}" for name in filters.rounds if name not in rounds]
    if missing:
        raise NotFoundError(
            f"{in_words(workspaces)} at {client.api_url} {has(workspaces)} no dataset {missing[0]}"
            f"{' that fits the other options' if filters.tasks and filters.rounds else ''}; there are: "
            f"{', '.join(map(str, ours))}. Check `--workspace`, `--task` and `--round`, or run `citejury annotation "
            "setup`."
        )
    return ChosenDatasets(sorted(chosen, key=lambda dataset: TASKS.index(dataset.task)), passed_over)


def _workspace_datasets(client: Argilla, workspace: str) -> list[JuryDataset]:
    """The workspace's datasets that citejury set up, in order of their names."""
    datasets = current_datasets(client, client.find_workspace(workspace))
    ours = [found for each in datasets if (found := jury_dataset(each, workspace))]
    if not ours:
        there = ", ".join(f"{dataset['name']!r} (not citejury's)" for dataset in datasets) or "none"
        raise NotFoundError(_say("none_of_ours", workspace=workspace, api_url=client.api_url, there=there))
    return ours


def in_words(workspaces: Sequence[str]) -> str:
    """The workspaces as the beginning of a sentence."""
    return f"The workspace{'s' if len(workspaces) > 1 else ''} {', '.join(map(repr, workspaces))}"


def has(workspaces: Sequence[str]) -> str:
    """The verb that follows them."""
    return "have" if len(workspaces) > 1 else "has"


_ATTEMPTS = 5
_Page = TypeVar("_Page")

Progress = Callable[[str, int, int], None]
"""Told the workspace and name of the dataset, the records read so far, and the records it holds."""


class Reading(NamedTuple):
    client: Argilla
    filters: ExportFilters
    annotators: Annotators
    spool: Spool
    progress: Progress
    watched: Mapping[str, WatchedDataset]
    """By id, those that annotators can work in."""

    def tally(self, dataset: JuryDataset) -> "Tally":
        watched = self.watched.get(dataset.id)
        return Tally(WorkTally(watched) if watched else None)


class Tally:
    """Whose responses there are in which languages, and which of them the filters let through."""

    def __init__(self, work: WorkTally | None = None) -> None:
        self.work = work
        """How far the work on all its units is, whatever was asked for; None where nobody can work in it."""
        self.submitted: set[tuple[str, str]] = set()
        """User id and language of every submitted response, whatever was asked for."""
        self.exported: set[tuple[str, str]] = set()  # The same of those that fit the filters
        self.counts: Counter[tuple[str, str]] = Counter()
        """Responses that fit the filters but for their status, by user id and status."""
        self.stamps: tuple[str, str] | None = None
        """The first and the last `updated_at` of a submitted response, as the server writes them."""
        self.foreign_records = 0  # Records with responses that citejury did not push
        self.cut_marks = 0  # Marks on more than the text of one passage
        self.lost_marks: list[tuple[str, str]] = []  # Record and annotator of each mark on no passage's text
        self.apart: Counter[Purpose] = Counter()
        """Submitted responses that fit the filters, to records that are kept out of the tasks' files, by purpose."""

    def add_work(self, record: Mapping[str, Any], assignment: Assignment) -> None:
        if self.work:
            answers = [(each["user_id"], each["status"]) for each in record["responses"]]
            self.work.add_work(record["id"], assignment, answers)

    def add(self, response: Mapping[str, Any], language: str, wanted: bool) -> None:
        if wanted:
            self.counts[response["user_id"], response["status"]] += 1
        if response["status"] != "submitted":
            return
        whose, stamp = (response["user_id"], language), response["updated_at"]
        self.submitted.add(whose)
        first, last = self.stamps or (stamp, stamp)
        self.stamps = min(first, stamp), max(last, stamp)
        if wanted:
            self.exported.add(whose)

    def add_marks(self, record: KeptRecord) -> None:
        self.cut_marks += record.cut
        self.lost_marks += [(record.record_uuid, annotator_id) for annotator_id in json.loads(record.lost or "[]")]


class ReadDataset(NamedTuple):
    dataset: JuryDataset
    records: int
    tally: Tally


def read_dataset(reading: Reading, dataset: JuryDataset) -> ReadDataset:
    """What was read: the wanted responses of the dataset are in the spool, each record once.

    Pages shift when records are deleted or added meanwhile. So the records are counted by id against the server's
    total, and all is read again when they differ, the total changed on the way, or a page does not follow its last.
    """
    for _ in range(_ATTEMPTS):
        reading.spool.forget(dataset.id)
        with suppress(RecordsMovedError):
            found = _read_once(reading, dataset)
            if found is not None:
                return found
    raise ArgillaError(_say("moving", name=dataset.name, times=_ATTEMPTS))


def _read_once(reading: Reading, dataset: JuryDataset) -> ReadDataset | None:
    """What was read; None where records were added or deleted meanwhile, so that the spool may lack some."""
    tally = reading.tally(dataset)
    totals: set[int] = set()
    read = 0
    for total, page in fetched_ahead(reading.client.record_pages(dataset.id)):
        totals.add(total)
        if len(totals) > 1:
            return None
        new_ids = reading.spool.keep_new(dataset.id, [record["id"] for record in page])
        new = [record for record in page if record["id"] in new_ids]
        read_records(reading, dataset, new, tally)
        for record in new:
            tally.add_work(record, assignment_of(record))
        read += len(page)
        reading.progress(f"{dataset.workspace}/{dataset.name}", read, total)
    if totals != {reading.spool.count_records(dataset.id)}:
        return None
    return ReadDataset(dataset, totals.pop(), tally)


def fetched_ahead(pages: Iterator[_Page]) -> Iterator[_Page]:
    """The same pages; while one is worked on, the next is fetched. Two pages at most are held."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        coming = pool.submit(next, pages, None)
        while (page := coming.result()) is not None:
            coming = pool.submit(next, pages, None)
            yield page


def exported_statuses(filters: ExportFilters) -> tuple[str, ...]:
    """The statuses of responses that are rows: drafts never are, discarded ones on request."""
    return ("submitted", "discarded") if filters.discarded else ("submitted",)


def is_ours(record: Mapping[str, Any]) -> bool:
    """Whether citejury pushed the record: only then its `record_uuid` is known."""
    hidden = (record["metadata"] or {}).get(HIDDEN)
    return isinstance(hidden, dict) and "record_uuid" in hidden


def record_state(reading: Reading, record: Mapping[str, Any]) -> str:
    """A hash of what the record's rows depend on: itself, and its responses of the statuses that are exported.

    It needs no texts: whatever changes them, changes a time. Names count too, since rows hold them.
    """
    statuses = exported_statuses(reading.filters)
    responses = sorted(
        (each["id"], each["status"], each["updated_at"], reading.annotators.known_name(each["user_id"]))
        for each in record["responses"]
        if each["status"] in statuses
    )
    text = json.dumps((record["status"], record["updated_at"], responses))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def read_records(
    reading: Reading, dataset: JuryDataset, records: Sequence[dict[str, Any]], tally: Tally
) -> list[KeptRecord]:
    """Those of the records that have responses; the wanted ones are in the spool, and each response is counted."""
    chosen = [_choose(reading, dataset, record, tally) for record in records if record["responses"]]
    reading.annotators.meet({each["user_id"] for found in chosen for each in (*found.rows, *found.controls)})
    kept: list[KeptRecord] = []
    spooled: list[SpooledRow] = []
    for record, rows, controls, purpose in chosen:
        marks = [
            (each, csv_rows.exported_marks(dataset, record, each, reading.annotators.exported_name(each["user_id"])))
            for each in rows
            if dataset.evidence != "off"
        ]
        kept.append(
            _kept_record(reading, dataset, record, rows, [found for _, found in marks])._replace(purpose=purpose)
        )
        tally.add_marks(kept[-1])
        spooled += _record_rows(reading, dataset, record, rows) if rows else ()
        spooled += _control_rows(reading, dataset, record, controls)
        spooled += (
            _beside("evidence", record, response, row.model_dump(), csv_rows.evidence_line(row))
            for response, found in marks
            for row in found.rows
        )
    reading.spool.add_records(kept)
    reading.spool.add(dataset.id, spooled)
    reading.spool.add_unsubmitted(
        dataset.id,
        dataset.task,
        (
            (each.record_uuid, each.chunk_id, reading.annotators.known_name(response["user_id"]))
            for each, found in zip(kept, chosen, strict=True)
            for response in found.record["responses"]
            if each.record_uuid and response["status"] != "submitted"
        ),
    )
    return kept


class _Chosen(NamedTuple):
    record: dict[str, Any]
    rows: list[dict[str, Any]]
    controls: list[dict[str, Any]]
    purpose: Purpose


def _choose(reading: Reading, dataset: JuryDataset, record: dict[str, Any], tally: Tally) -> _Chosen:
    filters, responses = reading.filters, record["responses"]
    statuses = exported_statuses(filters)
    if not is_ours(record):
        tally.foreign_records += any(response["status"] in statuses for response in responses)
        return _Chosen(record, [], [], "label")
    language = record["metadata"][HIDDEN].get("language") or "und"
    purpose = assignment_of(record).purpose
    wanted = [response for response in responses if wants(reading, response, language)]
    submitted = [response for response in wanted if response["status"] == "submitted"]
    controls = submitted if purpose in {"control", "repeat"} else []
    is_wanted = {"label": True, "practice": dataset.round in filters.rounds or filters.every_response}
    if not is_wanted.get(purpose, filters.with_controls):
        tally.apart[purpose] += len(submitted)
        return _Chosen(record, [], controls, purpose)
    for response in responses:
        tally.add(response, language, response in wanted)
    return _Chosen(record, [each for each in wanted if each["status"] in statuses], controls, "label")


def _control_rows(
    reading: Reading, dataset: JuryDataset, record: Mapping[str, Any], responses: Sequence[Mapping[str, Any]]
) -> Iterator[SpooledRow]:
    for response in responses:
        annotator_id = reading.annotators.exported_name(response["user_id"])
        for row in csv_rows.control_rows(dataset, record, assignment_of(record), response, annotator_id):
            cells = csv_rows.csv_cells(row, CONTROL_COLUMNS, reading.filters.spreadsheet_safe)
            yield _beside("controls", record, response, row, cells + csv_rows.LINE_END)


def _beside(
    table: Table, record: Mapping[str, Any], response: Mapping[str, Any], row: Mapping[str, Any], line: bytes
) -> SpooledRow:
    return SpooledRow(
        table=table,
        discarded=False,
        record_uuid=row["record_uuid"],
        chunk_rank=row.get("chunk_rank", hidden_metadata(record).get("chunk_rank") or 0),
        chunk_id=row["chunk_id"],
        annotator_id=row["annotator_id"],
        response_id=response["id"],
        line=line,
        record_id=record["id"],
    )


def wants(reading: Reading, response: Mapping[str, Any], language: str) -> bool:
    filters = reading.filters
    if filters.languages and language not in filters.languages:
        return False
    if filters.annotators and not reading.annotators.names_of(response["user_id"]) & set(filters.annotators):
        return False
    return filters.until is None or utc(response["updated_at"]) < filters.until


def _kept_record(
    reading: Reading,
    dataset: JuryDataset,
    record: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    marks: Sequence[csv_rows.ExportedMarks],
) -> KeptRecord:
    hidden = record["metadata"][HIDDEN] if is_ours(record) else {}
    lost = [
        reading.annotators.exported_name(row["user_id"])
        for row, found in zip(rows, marks, strict=False)
        for _ in range(found.lost)
    ]
    return KeptRecord(
        dataset=dataset.id,
        id=record["id"],
        task=dataset.task,
        state=record_state(reading, record),
        record_uuid=hidden.get("record_uuid", ""),
        chunk_id=hidden.get("chunk_id") or "",
        language=hidden.get("language") or "und",
        told=csv_rows.provenance_cells(record) if rows else None,
        cut=sum(found.cut for found in marks),
        lost=json.dumps(lost) if lost else "",
    )


def _record_rows(
    reading: Reading, dataset: JuryDataset, record: Mapping[str, Any], responses: Sequence[Mapping[str, Any]]
) -> Iterator[SpooledRow]:
    task, filters = dataset.task, reading.filters
    shared = csv_rows.record_values(task, record, filters.extended)
    if filters.extended:
        shared |= {"round": dataset.round, "dataset_id": dataset.id, "workspace": dataset.workspace}
        shared["dataset_version"] = dataset.version
    n_texts = COLUMNS[task].index(LABELS[task][0])
    # Once: they are long, and the same in every row.
    texts = csv_rows.csv_cells(shared, COLUMNS[task][:n_texts], filters.spreadsheet_safe)
    columns = {kind: csv_rows.table_columns(task, filters, kind)[n_texts:] for kind in (False, True)}
    for response in responses:
        annotator_id = reading.annotators.exported_name(response["user_id"])
        values = shared | csv_rows.response_values(task, record, response, annotator_id, filters.extended)
        if filters.extended:
            values["guideline_version"] = guideline_version_at(dataset.metadata, response["updated_at"])
        if filters.anonymized:
            values["response_id"] = ""  # whoever may read the server finds the person by it
        discarded = response["status"] == "discarded"
        others = csv_rows.csv_cells(values, columns[discarded], filters.spreadsheet_safe)
        yield SpooledRow(
            table=task,
            discarded=discarded,
            record_uuid=values["record_uuid"],
            chunk_rank=values["chunk_rank"] or 0,
            chunk_id=values["chunk_id"],
            annotator_id=annotator_id,
            response_id=response["id"],
            line=texts + b"," + others + csv_rows.LINE_END,
            record_id=record["id"],
            at=response["updated_at"],
            labels=",".join(values[label] for label in LABELS[task]),
        )
