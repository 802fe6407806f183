"""Argilla's responses as sorted rows: read over REST page by page, safely while people annotate."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

from annotation.client import Argilla
from annotation.dataset_log import guideline_version_at
from annotation.display import HIDDEN
from annotation.labels import LABELS
from exports.csv.annotators import Annotators
from exports.csv.find import TaskDataset
from exports.csv.spool import Spool, SpooledRow
from exports.csv.tables import LINE_END, csv_cells, record_values, response_values, table_columns, utc
from exports.schema import COLUMNS, ExportedDataset, ExportFilters
from pipeline.errors import ArgillaError, RecordsMovedError

ATTEMPTS = 5
"""How often a dataset is read again because its records were added or deleted meanwhile."""

Page = tuple[int, list[dict[str, Any]]]
"""The dataset's total at that moment, and some of its records."""

Progress = Callable[[str, int, int], None]
"""Told the workspace and name of the dataset, the records read so far, and the records it holds."""


class Reading(NamedTuple):
    """What reading a dataset needs beside the dataset."""

    client: Argilla
    """The server."""
    filters: ExportFilters
    """Which responses are wanted, and which columns."""
    annotators: Annotators
    """Their names."""
    spool: Spool
    """Where the rows go."""
    progress: Progress
    """Told how far the reading is."""


class Tally:
    """Whose responses there are in which languages, and which of them the filters let through."""

    def __init__(self) -> None:
        """Nothing met yet."""
        self.submitted: set[tuple[str, str]] = set()
        """User id and language of every submitted response, whatever was asked for."""
        self.exported: set[tuple[str, str]] = set()
        """The same of those that are rows now."""
        self.stamps: tuple[str, str] | None = None
        """The first and the last `updated_at` of a submitted response, as the server writes them."""

    def add(self, response: Mapping[str, Any], language: str, wanted: bool) -> None:
        """Count a response; only submitted ones do."""
        if response["status"] != "submitted":
            return
        whose, stamp = (response["user_id"], language), response["updated_at"]
        self.submitted.add(whose)
        first, last = self.stamps or (stamp, stamp)
        self.stamps = min(first, stamp), max(last, stamp)
        if wanted:
            self.exported.add(whose)


class ReadDataset(NamedTuple):
    """A dataset that was read."""

    described: ExportedDataset
    """What the manifest says of it."""
    tally: Tally
    """Whose responses it holds."""


def read_dataset(reading: Reading, dataset: TaskDataset) -> ReadDataset:
    """What was read: the wanted responses of the dataset are in the spool, each record once.

    Pages shift when records are deleted or added meanwhile. So the records are counted by id against the server's
    total, and all is read again when they differ, the total changed on the way, or a page does not follow its last.

    Raises:
        ArgillaError: the records kept changing, or an answer is neither yes nor no.
    """
    for _ in range(ATTEMPTS):
        reading.spool.forget(dataset.id)
        with suppress(RecordsMovedError):
            found = read_once(reading, dataset)
            if found is not None:
                return found
    raise ArgillaError(
        f"The records of the dataset {dataset.name!r} changed each of the {ATTEMPTS} times they were read. Wait until "
        "nobody pushes or deletes records, then export again."
    )


def read_once(reading: Reading, dataset: TaskDataset) -> ReadDataset | None:
    """What was read; None where records were added or deleted meanwhile, so that the spool may lack some.

    Raises:
        RecordsMovedError: records were deleted meanwhile.
        ArgillaError: an answer is neither yes nor no.
    """
    tally = Tally()
    totals: set[int] = set()
    foreign = read = 0
    for total, page in fetched_ahead(reading.client.record_pages(dataset.id)):
        totals.add(total)
        if len(totals) > 1:
            return None
        new = reading.spool.keep_new(dataset.id, [record["id"] for record in page])
        answered = [(record, counted_responses(record, reading.filters)) for record in page if record["id"] in new]
        ours = [(record, responses) for record, responses in answered if responses and is_ours(record)]
        foreign += sum(1 for record, responses in answered if responses and not is_ours(record))
        reading.spool.add(dataset.id, page_rows(reading, dataset, ours, tally))
        read += len(page)
        reading.progress(f"{dataset.workspace}/{dataset.name}", read, total)
    if totals != {reading.spool.count_records(dataset.id)}:
        return None
    return ReadDataset(
        ExportedDataset(
            task=dataset.task,
            id=dataset.id,
            name=dataset.name,
            workspace=dataset.workspace,
            round=dataset.round,
            guideline_version=dataset.guideline_version,
            records=totals.pop(),
            foreign_records=foreign,
        ),
        tally,
    )


def fetched_ahead(pages: Iterator[Page]) -> Iterator[Page]:
    """The same pages; while one is worked on, the next is fetched. Two pages at most are held."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        coming = pool.submit(next, pages, None)
        while (page := coming.result()) is not None:
            coming = pool.submit(next, pages, None)
            yield page


def counted_responses(record: Mapping[str, Any], filters: ExportFilters) -> list[dict[str, Any]]:
    """The record's responses of a status that is exported: drafts never are, discarded ones on request."""
    statuses = ("submitted", "discarded") if filters.discarded else ("submitted",)
    return [response for response in record["responses"] or () if response["status"] in statuses]


def is_ours(record: Mapping[str, Any]) -> bool:
    """Whether citejury pushed the record: only then its `record_uuid` is known."""
    hidden = (record["metadata"] or {}).get(HIDDEN)
    return isinstance(hidden, dict) and "record_uuid" in hidden


def page_rows(
    reading: Reading,
    dataset: TaskDataset,
    answered: Sequence[tuple[dict[str, Any], list[dict[str, Any]]]],
    tally: Tally,
) -> list[SpooledRow]:
    """A finished row for each wanted response to the records of a page; each response is counted.

    Raises:
        ArgillaError: an answer is neither yes nor no.
    """
    chosen: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    for record, responses in answered:
        language = record["metadata"][HIDDEN].get("language") or "und"
        wanted = [wants(reading, response, language) for response in responses]
        for response, is_wanted in zip(responses, wanted, strict=True):
            tally.add(response, language, is_wanted)
        kept = [response for response, is_wanted in zip(responses, wanted, strict=True) if is_wanted]
        if kept:
            chosen.append((record, kept))
    reading.annotators.meet({response["user_id"] for _, kept in chosen for response in kept})
    return [row for record, kept in chosen for row in record_rows(reading, dataset, record, kept)]


def wants(reading: Reading, response: Mapping[str, Any], language: str) -> bool:
    """Whether the response fits the filters."""
    filters = reading.filters
    if filters.languages and language not in filters.languages:
        return False
    user_id = response["user_id"]
    if filters.annotators and not {user_id, reading.annotators.name(user_id)} & set(filters.annotators):
        return False
    if filters.since is None and filters.until is None:
        return True
    moment = utc(response["updated_at"])
    return (filters.since is None or moment >= filters.since) and (filters.until is None or moment < filters.until)


def record_rows(
    reading: Reading, dataset: TaskDataset, record: Mapping[str, Any], responses: Sequence[Mapping[str, Any]]
) -> Iterator[SpooledRow]:
    """One finished row for each response to one record.

    Raises:
        ArgillaError: an answer is neither yes nor no, or the record is not one of ours.
    """
    task, filters = dataset.task, reading.filters
    shared = record_values(task, record, filters.extended)
    if filters.extended:
        shared |= {"round": dataset.round, "dataset_id": dataset.id, "workspace": dataset.workspace}
        shared["dataset_version"] = dataset.version
    n_texts = COLUMNS[task].index(LABELS[task][0])
    # Once: they are long, and the same in every row.
    texts = csv_cells(shared, COLUMNS[task][:n_texts], filters.spreadsheet_safe)
    columns = {kind: table_columns(task, filters, kind)[n_texts:] for kind in (False, True)}
    for response in responses:
        annotator_id = reading.annotators.shown(response["user_id"])
        values = shared | response_values(task, record, response, annotator_id, filters.extended)
        if filters.extended:
            values["guideline_version"] = guideline_version_at(dataset.metadata, response["updated_at"])
        if filters.anonymized:
            values["response_id"] = ""  # whoever may read the server finds the person by it
        discarded = response["status"] == "discarded"
        others = csv_cells(values, columns[discarded], filters.spreadsheet_safe)
        yield SpooledRow(
            task=task,
            discarded=discarded,
            record_uuid=values["record_uuid"],
            chunk_rank=values["chunk_rank"] or 0,
            chunk_id=values["chunk_id"],
            annotator_id=annotator_id,
            response_id=response["id"],
            line=texts + b"," + others + LINE_END,
        )
