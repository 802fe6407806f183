"""Every change of every response as one CSV file, in their order (exports/contracts/csv.md#history)."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TaskName, task_named
from annotation.argilla.tasks import round_of, task_of
from annotation.argilla.units import HISTORY_PATH
from exports.csv.annotators import Annotators, pseudonyms_of
from exports.csv.fetch import Progress, fetched_ahead
from exports.csv.rows import LINE_END, answer_cell, csv_cells, csv_line, table_head
from exports.csv.schema import HISTORY_COLUMNS, ExportFilters, utc
from pipeline.core.errors import ArgillaError, NotFoundError, OutputError
from pipeline.core.files import output_errors, staged_file


class HistoryExport(NamedTuple):
    begins: datetime | None
    """When the server's history begins, since when all is known; None where no workspace was named."""
    changes: Mapping[tuple[TaskName, str], int]
    foreign: int  # Changes that are in no file, because their dataset is not one of citejury's
    key_file: Path | None


def export_history(
    client: Argilla,
    workspaces: Sequence[str],
    out: Path,
    filters: ExportFilters,
    *,
    key_file: Path | None = None,
    progress: Progress = lambda name, read, total: None,
) -> HistoryExport:
    """What was written to the file `out`, which appears whole or not at all; an earlier history there is replaced.

    An owner may name a workspace that is deleted. Of `filters` tasks, rounds, annotators, pseudonyms and apostrophes
    hold. Pseudonyms are kept in `key_file`, `<out>.annotators.json` if not given.

    Raises:
        InputError: a key file was named without pseudonyms, or it is no key file.
        NotFoundError: no such workspace, and none that was deleted.
        ArgillaError: the server is a stock Argilla.
        OutputError: the file is something else, or cannot be written.
    """
    pseudonyms = pseudonyms_of(out, key_file, filters.anonymized)
    _refuse_other_file(out)
    annotators = Annotators(client, pseudonyms)
    counts: Counter[tuple[TaskName | None, str]] = Counter()
    begins = None
    with output_errors(f"`{out}` cannot be written", "Choose another file."), staged_file(out) as file:
        file.write(table_head(HISTORY_COLUMNS, bom=filters.spreadsheet_safe))
        for workspace in dict.fromkeys(workspaces):
            read = 0
            for page in fetched_ahead(_pages(client, workspace)):
                begins = utc(page["begins"])
                annotators.meet({each["user_id"] for each in page["items"]})
                for change in page["items"]:
                    dataset = page["datasets"][change["dataset_id"]]
                    counts[task_of(dataset), change["action"]] += _write(file, change, dataset, annotators, filters)
                read += len(page["items"])
                progress(workspace, read, page["of"])
        if pseudonyms is not None:
            pseudonyms.save()  # before the file is there: pseudonyms without a key would be lost for good
    ours = {(task, kind): count for (task, kind), count in counts.items() if task and count}
    return HistoryExport(begins, ours, counts.total() - sum(ours.values()), pseudonyms.path if pseudonyms else None)


def _write(
    file: BinaryIO,
    change: Mapping[str, Any],
    dataset: Mapping[str, Any],
    annotators: Annotators,
    filters: ExportFilters,
) -> bool:
    """Write the rows of the change, where its dataset is ours; whether it fits the filters."""
    task = task_of(dataset)
    if (
        (filters.tasks and task not in filters.tasks)
        or (filters.rounds and round_of(dataset) not in filters.rounds)
        or (filters.annotators and not annotators.names_of(change["user_id"]) & set(filters.annotators))
    ):
        return False
    for row in _rows(change, dataset, task, annotators, filters) if task else ():
        cells = csv_cells(row, HISTORY_COLUMNS, filters.spreadsheet_safe)
        file.write(cells.replace(b"\0", "\ufffd".encode()) + LINE_END)
    return True


def _refuse_other_file(out: Path) -> None:
    if not out.is_file():
        return
    with output_errors(f"`{out}` cannot be read", "Choose another file."), out.open("rb") as stream:
        begins_so = stream.read(3 + len(csv_line(HISTORY_COLUMNS))).removeprefix(b"\xef\xbb\xbf")
    if begins_so and not begins_so.startswith(csv_line(HISTORY_COLUMNS)):
        raise OutputError(f"`{out}` is there already and is no history of citejury's. Choose another file.")


def _pages(client: Argilla, workspace: str) -> Iterator[dict[str, Any]]:
    """The workspace's changes page by page in their order, each page with how many there are in all (`of`)."""
    after, total = 0, 0
    while after is not None:
        try:
            page = client.request("GET", HISTORY_PATH, params={"workspace": workspace, "after": after})
        except NotFoundError as error:
            client.find_workspace(workspace)  # says what there is, where that is the reason
            raise _no_history(client) from error
        total = page["total"] if after == 0 else total
        yield page | {"of": total}
        after = page["next"]


def has_history(client: Argilla, workspace: str) -> bool:
    """Whether the server has any change of a response in the workspace; a stock Argilla has none."""
    try:
        page = client.request("GET", HISTORY_PATH, params={"workspace": workspace, "limit": 1})
    except NotFoundError:
        return False
    return bool(page["total"])


def _no_history(client: Argilla) -> ArgillaError:
    return ArgillaError(
        f"Argilla at {client.api_url} keeps no history of responses; only citejury's own server does (`citejury "
        "annotation serve`, or docker/)."
    )


def _rows(
    change: Mapping[str, Any],
    dataset: Mapping[str, Any],
    task: TaskName,
    annotators: Annotators,
    filters: ExportFilters,
) -> Iterator[dict[str, str | int]]:
    record_uuid, _, chunk_id = (change["external_id"] or "").partition(":")
    before, after = (change[side] or {} for side in ("values_before", "values_after"))
    questions = list(dict.fromkeys((*LABELS[task], *before, *after)))
    for question in [each for each in questions if each in before or each in after] or [""]:
        yield dict(
            change=change["id"],
            at=utc(change["at"]).isoformat(),
            action=change["action"],
            record_uuid=record_uuid,
            chunk_id=chunk_id,
            task=task,
            label=question,
            value_before=_cell(before, question, task),
            value_after=_cell(after, question, task),
            status_before=change["status_before"] or "",
            status_after=change["status_after"] or "",
            annotator_id=annotators.exported_name(change["user_id"]),
            response_id="" if filters.anonymized else change["response_id"],
            workspace=dataset["workspace"] or "",
            dataset=dataset["name"],
            round=round_of(dataset),
        )


def _cell(values: Mapping[str, Any], question: str, task: TaskName) -> str:
    """An answer as a cell: as in the task's file, and marks as JSON."""
    if question not in values:
        return ""
    value = (values[question] or {}).get("value")
    if question in LABELS[task] and value is not None:
        return answer_cell(task_named(task).by_name[question], value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
