"""Argilla's responses as sorted rows: read over REST page by page, safely while people annotate."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from annotation.client import Argilla
from annotation.display import HIDDEN
from annotation.labels import TASKS, TaskName
from annotation.tasks import task_of
from exports.schema import ExportedDataset, ExportFilters
from exports.spool import Spool, SpooledRow
from exports.tables import csv_line, record_values, response_values, table_columns, utc
from pipeline.errors import ArgillaError, NotFoundError, RecordsMovedError

ATTEMPTS = 5
"""How often a dataset is read again because its records were added or deleted meanwhile."""

Page = tuple[int, list[dict[str, Any]]]
"""The dataset's total at that moment, and some of its records."""

Progress = Callable[[str, int, int], None]
"""Told the dataset's name, the records read so far, and the records it holds."""


class TaskDataset(NamedTuple):
    """A dataset of ours on the server."""

    task: TaskName
    """The task that its annotators do."""
    id: str
    """Its id."""
    name: str
    """Its name."""


class ResponseFilter(NamedTuple):
    """Which responses are wanted, and which columns."""

    filters: ExportFilters
    """What the export was asked for."""
    since: datetime | None
    """Only responses of this moment or later."""

    def wants(self, response: Mapping[str, Any]) -> bool:
        """Whether the response becomes a row: drafts never do, discarded ones on request."""
        statuses = ("submitted", "discarded") if self.filters.discarded else ("submitted",)
        return response["status"] in statuses and (self.since is None or utc(response["updated_at"]) >= self.since)


class Annotators:
    """Names of annotators by user id; an id that the server does not know stands for itself."""

    def __init__(self, client: Argilla) -> None:
        """Ask for the names of all users once."""
        self._client = client
        self._names = client.usernames()

    def name(self, user_id: str) -> str:
        """The name; the server is asked again for an id that is new, once, since users come while we read."""
        if user_id not in self._names:
            self._names = {user_id: user_id, **self._names, **self._client.usernames()}
        return self._names[user_id]


def find_datasets(client: Argilla, workspace: str, tasks: Sequence[TaskName]) -> list[TaskDataset]:
    """The workspace's datasets that citejury set up, for the named tasks or for all, in the order of the tasks.

    Raises:
        NotFoundError: there is no such workspace, no dataset of ours, or none for a named task.
    """
    datasets = client.datasets(client.find_workspace(workspace))
    ours = [
        TaskDataset(task, str(dataset["id"]), str(dataset["name"]))
        for task in TASKS
        for dataset in datasets
        if task_of(dataset) == task
    ]
    missing = [task for task in tasks if task not in {dataset.task for dataset in ours}]
    if missing or not ours:
        wanted = f"for the task {missing[0]}" if missing else "that citejury set up"
        there = ", ".join(f"{dataset.name!r} ({dataset.task})" for dataset in ours) or (
            ", ".join(f"{dataset['name']!r} (not citejury's)" for dataset in datasets) or "none"
        )
        raise NotFoundError(
            f"The workspace {workspace!r} at {client.api_url} has no dataset {wanted}; it has: {there}. "
            "Check `--workspace` and `--task`, or run `citejury annotation setup`."
        )
    return [dataset for dataset in ours if not tasks or dataset.task in tasks]


def read_dataset(
    client: Argilla,
    dataset: TaskDataset,
    annotators: Annotators,
    wanted: ResponseFilter,
    spool: Spool,
    progress: Progress,
) -> ExportedDataset:
    """What was read: the wanted responses of the dataset are in the spool, each record once.

    Pages shift when records are deleted or added meanwhile. So the records are counted by id against the server's
    total, and all is read again when they differ, the total changed on the way, or a page does not follow its last.

    Raises:
        ArgillaError: the records kept changing, or an answer is neither yes nor no.
    """
    for _ in range(ATTEMPTS):
        spool.forget(dataset.id)
        with suppress(RecordsMovedError):
            found = read_once(client, dataset, annotators, wanted, spool, progress)
            if found is not None:
                return found
    raise ArgillaError(
        f"The records of the dataset {dataset.name!r} changed each of the {ATTEMPTS} times they were read. Wait until "
        "nobody pushes or deletes records, then export again."
    )


def read_once(
    client: Argilla,
    dataset: TaskDataset,
    annotators: Annotators,
    wanted: ResponseFilter,
    spool: Spool,
    progress: Progress,
) -> ExportedDataset | None:
    """What was read; None where records were added or deleted meanwhile, so that the spool may lack some.

    Raises:
        RecordsMovedError: records were deleted meanwhile.
        ArgillaError: an answer is neither yes nor no.
    """
    totals: set[int] = set()
    foreign = read = 0
    for total, page in fetched_ahead(client.record_pages(dataset.id)):
        totals.add(total)
        if len(totals) > 1:
            return None
        rows: list[SpooledRow] = []
        for record in page:
            responses = [response for response in record["responses"] or () if wanted.wants(response)]
            if not spool.is_new(dataset.id, record["id"]) or not responses:
                continue
            if is_ours(record):
                rows += spooled_rows(dataset.task, record, responses, annotators, wanted.filters)
            else:
                foreign += 1
        spool.add(dataset.id, rows)
        read += len(page)
        progress(dataset.name, read, total)
    if totals != {spool.count_records(dataset.id)}:
        return None
    return ExportedDataset(
        task=dataset.task, id=dataset.id, name=dataset.name, records=totals.pop(), foreign_records=foreign
    )


def fetched_ahead(pages: Iterator[Page]) -> Iterator[Page]:
    """The same pages; while one is worked on, the next is fetched. Two pages at most are held."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        coming = pool.submit(next, pages, None)
        while (page := coming.result()) is not None:
            coming = pool.submit(next, pages, None)
            yield page


def is_ours(record: Mapping[str, Any]) -> bool:
    """Whether citejury pushed the record: only then its `record_uuid` is known."""
    hidden = (record["metadata"] or {}).get(HIDDEN)
    return isinstance(hidden, dict) and "record_uuid" in hidden


def spooled_rows(
    task: TaskName,
    record: Mapping[str, Any],
    responses: Sequence[Mapping[str, Any]],
    annotators: Annotators,
    filters: ExportFilters,
) -> Iterator[SpooledRow]:
    """One finished row for each response to one record.

    Raises:
        ArgillaError: an answer is neither yes nor no, or the record is not one of ours.
    """
    shared = record_values(task, record)
    for response in responses:
        values = shared | response_values(task, record, response, annotators.name(response["user_id"]))
        discarded = response["status"] == "discarded"
        yield SpooledRow(
            task=task,
            discarded=discarded,
            record_uuid=values["record_uuid"],
            chunk_rank=values["chunk_rank"] or 0,
            chunk_id=values["chunk_id"],
            annotator_id=values["annotator_id"],
            response_id=response["id"],
            line=csv_line([values[column] for column in table_columns(task, filters, discarded)]),
        )
