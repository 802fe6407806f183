"""The rows of one table as responses, checked strictly: every bad cell is listed, none is guessed."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple

from annotation.labels import LABELS, TaskName
from exports.agreement.ratings import MISSING, NO, YES
from exports.csv.tables import FORMULA_STARTS, STATUS_COLUMN, utc
from exports.reading.collection import Response

BOOLEANS: Mapping[str, int] = {
    **dict.fromkeys(("True", "true", "TRUE", "1", "yes"), YES),
    **dict.fromkeys(("False", "false", "FALSE", "0", "no"), NO),
    "": MISSING,
}
"""The spellings that count (`agreement.md` section 2); a blank cell is missing for that label only."""

STATUSES = ("submitted", "discarded", "draft", "pending")
RANK = re.compile(r"0*[1-9][0-9]{0,17}")
"""A whole number from 1 that fits 64 bits."""
KNOWN_COMBINATIONS = 10_000
"""So many are remembered; a table with more is checked anew from there on, and memory stays bounded."""


class Few(NamedTuple):
    """What is read from the cells of which a table has few different combinations."""

    labels: tuple[int, ...]
    """The labels of the task in their order: 1 yes, 0 no, -1 missing."""
    status: str
    """Status of the response."""


class TableRows(NamedTuple):
    """A table that is no file: what `ResponseReader` reads."""

    task: TaskName
    """Its task."""
    source: str
    """What stands before a row's position in a sentence, such as `frame 1, row`."""
    header: tuple[str, ...]
    """Its columns."""
    rows: Iterable[Sequence[str]]
    """The cells of each row, as text."""


def needed_columns(task: TaskName) -> tuple[str, ...]:
    """The columns without which a row is no rating: ids, labels, annotator, time."""
    passage = ("chunk_id",) if task == "retrieval" else ()
    return ("record_uuid", *passage, *LABELS[task], "annotator_id", "created_at")


class ResponseReader:
    """Reads the rows of one table; it looks its columns up once, and checks each combination of labels once."""

    def __init__(self, task: TaskName, header: Sequence[str], source: str, bad: list[str]) -> None:
        """Prepare to read.

        Args:
            task: The task that the rows should be of.
            header: The columns; `needed_columns` are among them, others may be.
            source: What stands before the line in a sentence, such as `retrieval.csv, line`.
            bad: Where a sentence for each bad cell is added.
        """
        self.task, self.header, self.source, self.bad = task, header, source, bad
        place = {name: number for number, name in enumerate(header)}
        closed = (*LABELS[task], *(name for name in ("task", "chunk_rank", STATUS_COLUMN) if name in place))
        self.few_cells = itemgetter(*(place[name] for name in closed))
        self.status_at = place.get(STATUS_COLUMN)
        self.known: dict[tuple[str, ...], Few] = {}
        self.record, self.annotator, self.created = (place[n] for n in ("record_uuid", "annotator_id", "created_at"))
        self.chunk = place["chunk_id"] if task == "retrieval" else None
        self.language, self.round = place.get("language"), place.get("round")

    def read(self, rows: Iterable[tuple[int, Sequence[str]]]) -> Iterator[Response]:
        """The responses in the order of their rows (line, cells); a row with a bad cell is left out and told."""
        width, few_cells, record_at, annotator_at = len(self.header), self.few_cells, self.record, self.annotator
        unit_at = self.record if self.chunk is None else self.chunk
        for line, cells in rows:
            if len(cells) != width:
                self.bad.append(f"{self.source} {line}: found {len(cells)} cells, the header has {width}.")
                continue
            few = self.known.get(few_cells(cells))
            record, unit, annotator = cells[record_at], cells[unit_at], cells[annotator_at]
            created = moment_or_none(cells[self.created])
            if few is None or created is None or not (record.strip() and unit.strip() and annotator.strip()):
                problems = bad_cells(dict(zip(self.header, cells, strict=True)), self.task)
                if problems or created is None:
                    self.bad += [f"{self.source} {line}, {problem}" for problem in problems]
                    continue
                few = self.learn(cells)
            yield Response(
                line,
                cells,
                record if record[0] != "'" else unescaped(record),
                "" if self.chunk is None else unescaped(unit),
                annotator if annotator[0] != "'" else unescaped(annotator),
                created,
                few.labels,
                "" if self.language is None else cells[self.language],
                "" if self.round is None else cells[self.round],
                few.status,
            )

    def learn(self, cells: Sequence[str]) -> Few:
        """What the cells of a good row say of which there are few different combinations; it is remembered."""
        combination = self.few_cells(cells)
        labels = tuple(BOOLEANS[cell] for cell in combination[: len(LABELS[self.task])])
        few = Few(labels, "submitted" if self.status_at is None else cells[self.status_at])
        if len(self.known) < KNOWN_COMBINATIONS:
            self.known[combination] = few
        return few


def bad_cells(row: Mapping[str, str], task: TaskName) -> list[str]:
    """What is wrong in one row, a sentence a cell; empty where nothing is."""
    found = [
        f"`{label}`: found {row[label]!r}, expected True or False, or nothing where it was not answered."
        for label in LABELS[task]
        if row[label] not in BOOLEANS
    ]
    needed = ("record_uuid", "annotator_id", *(("chunk_id",) if task == "retrieval" else ()))
    found += [f"`{column}`: is empty, every row needs one." for column in needed if not row[column].strip()]
    if row.get("task", task) != task:
        found.append(f"`task`: found {row['task']!r}, expected {task!r} as in the columns.")
    if task == "retrieval" and not RANK.fullmatch(row.get("chunk_rank", "1")):
        found.append(f"`chunk_rank`: found {row['chunk_rank']!r}, expected a whole number from 1.")
    if row.get(STATUS_COLUMN, "submitted") not in STATUSES:
        found.append(f"`{STATUS_COLUMN}`: found {row[STATUS_COLUMN]!r}, expected one of {', '.join(STATUSES)}.")
    if moment_or_none(row["created_at"]) is None:
        found.append(f"`created_at`: found {row['created_at']!r}, expected a time such as 2025-03-08T23:43:00+00:00.")
    return found


def moment_or_none(stamp: str) -> datetime | None:
    """The moment in UTC that an ISO 8601 text names; without offset it is UTC; None where it is no such text."""
    try:
        return utc(stamp)
    except (ValueError, OverflowError):
        return None


def unescaped(text: str) -> str:
    """An id without the apostrophe that `exports csv --spreadsheet-safe` put before it, if it did.

    So an export for spreadsheets has the annotators, units and order of any other, and can be read together with it.
    """
    return text[1:] if text[0] == "'" and text.startswith(FORMULA_STARTS, 1) else text
