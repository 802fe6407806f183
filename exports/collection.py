"""Responses gathered row by row into the arrays that agreement is computed from."""

from array import array
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np

from annotation.labels import LABELS, TaskName
from exports.agreement.ratings import EPOCH, MICROSECOND, IntArray, LabelArray, Ratings

DUPLICATES_SHOWN = 10


class Response(NamedTuple):
    """One row of a file."""

    line: int
    """The physical line on which the row begins, counted from 1."""
    record_uuid: str
    """Id of the record."""
    chunk_id: str
    """Id of the passage in retrieval; empty in the other tasks."""
    annotator_id: str
    """Who answered."""
    created_at: datetime
    """When; a time without offset is taken as UTC."""
    labels: tuple[int, ...]
    """The labels of the task in their order: 1 yes, 0 no, -1 missing."""
    language: str
    """Language code; empty where the file has none."""
    round: str
    """Name of the round; empty where the file names none."""
    status: str
    """`submitted`, unless the file itself says otherwise."""


class Collection:
    """The responses to one task, gathered row by row in arrays: a million rows fit."""

    def __init__(self, task: TaskName) -> None:
        """Nothing gathered yet."""
        self.task = task
        self.units: dict[tuple[str, str], int] = {}
        self.annotators: dict[str, int] = {}
        self.rounds: dict[str, int] = {}
        self.rows: dict[tuple[int, int], int] = {}
        self.languages: list[str] = []
        self.unit, self.annotator, self.moment, self.round = array("q"), array("q"), array("q"), array("q")
        self.values = array("b")
        self.duplicates: list[str] = []
        self.discards: dict[str, int] | None = None
        self.not_submitted = 0

    def tell_discards(self) -> None:
        """Note that the files tell which responses were discarded."""
        self.discards = self.discards or {}

    def add(self, file: str, response: Response) -> None:
        """Gather one response; of two by the same annotator on the same unit the newer stays, of equals the later."""
        if response.status != "submitted":
            self.not_submitted += 1
            if response.status == "discarded":
                self.tell_discards()
                assert self.discards is not None
                self.discards[response.annotator_id] = self.discards.get(response.annotator_id, 0) + 1
            return
        unit = self.units.setdefault((response.record_uuid, response.chunk_id), len(self.units))
        if unit == len(self.languages):
            self.languages.append(response.language)
        annotator = self.annotators.setdefault(response.annotator_id, len(self.annotators))
        named = self.rounds.setdefault(response.round, len(self.rounds)) if response.round else -1
        moment = (response.created_at - EPOCH) // MICROSECOND
        row = self.rows.setdefault((unit, annotator), len(self.rows))
        if row == len(self.unit):
            self.unit.append(unit)
            self.annotator.append(annotator)
            self.moment.append(moment)
            self.round.append(named)
            self.values.extend(response.labels)
            return
        self.duplicates.append(f"{file}, line {response.line}")
        if moment >= self.moment[row]:
            width = len(response.labels)
            self.moment[row], self.round[row] = moment, named
            self.values[row * width : (row + 1) * width] = array("b", response.labels)

    def ratings(self) -> Ratings:
        """What was gathered, as arrays in the order that `Ratings` promises."""
        keys = list(self.units)
        order = sorted(range(len(keys)), key=keys.__getitem__)
        place = np.empty(len(keys), dtype=np.int64)
        place[order] = np.arange(len(keys))
        names = sorted(self.annotators)
        seat = np.array([names.index(name) for name in self.annotators], dtype=np.int64)
        units = place[np.array(self.unit, dtype=np.int64)] if self.unit else np.empty(0, dtype=np.int64)
        people = seat[np.array(self.annotator, dtype=np.int64)] if self.unit else np.empty(0, dtype=np.int64)
        rows = np.lexsort((people, units))
        moments = np.array(self.moment, dtype=np.int64)[rows]
        rounds, response_rounds = ordered_rounds(list(self.rounds), np.array(self.round, dtype=np.int64)[rows], moments)
        records = sorted({record for record, _ in keys})
        numbers = {record: number for number, record in enumerate(records)}
        values: LabelArray = np.array(self.values, dtype=np.int8).reshape(-1, len(LABELS[self.task]))
        return Ratings(
            task=self.task,
            annotators=tuple(names),
            records=tuple(records),
            unit_records=np.array([numbers[keys[at][0]] for at in order], dtype=np.int64),
            unit_chunks=tuple(keys[at][1] for at in order),
            unit_languages=tuple(self.languages[at] for at in order),
            units=units[rows],
            response_annotators=people[rows],
            values=values[rows],
            moments=moments,
            rounds=rounds,
            response_rounds=response_rounds,
            n_duplicates=len(self.duplicates),
            discards=None if self.discards is None else dict(sorted(self.discards.items())),
        )

    def remarks(self) -> list[str]:
        """Plain sentences about the rows that do not count; empty where all do."""
        found: list[str] = []
        if self.duplicates:
            more = len(self.duplicates) - DUPLICATES_SHOWN
            places = self.duplicates[:DUPLICATES_SHOWN] + ([f"and {more} more"] if more > 0 else [])
            found.append(
                f"{self.task}: {len(self.duplicates)} rows repeat a unit and annotator; the newest `created_at` of "
                f"each counts. Repeated at: {'; '.join(places)}."
            )
        if self.not_submitted:
            found.append(f"{self.task}: {self.not_submitted} rows are not submitted responses and do not count.")
        return found


def ordered_rounds(names: Sequence[str], numbers: IntArray, moments: IntArray) -> tuple[tuple[str, ...], IntArray]:
    """The rounds in order of their first response, those of one moment by name, and each response's new number."""
    first = {name: int(moments[numbers == number].min()) for number, name in enumerate(names) if number in numbers}
    ordered = sorted(first, key=lambda name: (first[name], name))
    renumbered = np.array([ordered.index(name) if name in first else -1 for name in names] + [-1], dtype=np.int64)
    return tuple(ordered), renumbered[numbers]
