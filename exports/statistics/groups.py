"""Provenance goes in; groups of records that may be compared come out (exports/contracts/results.md#groups)."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from exports.statistics.ratings import FloatArray, IntArray, MeasuredTask
from exports.statistics.study import RunCounts, Study
from pipeline.core.schema import Frozen


class Denominators(Frozen):
    """How many questions, answers and responses stand behind a rate; None where the files do not tell."""

    asked: int | None
    """Questions that were put to providers, answered + refused + failed; known from runs."""
    answered: int | None
    """Those that were answered, whether the jury saw the answer or not."""
    refused: int | None
    """Those that the provider refused or blocked."""
    failed: int | None
    """Those without an answer for any other reason."""
    answers: int
    """Answers of the group that were put before the jury on any task."""
    without_citations: int | None
    """Those of them that cite nothing."""
    with_unread_sources: int | None
    """Those of them that cite a source of which no text is held."""
    discarded: int | None
    """Discarded responses to units of the task."""


MOST_PAIRS = 300  # Pairs that differ in one column (25 groups); of more, of a successive column, those of the newest


AskedOf = Callable[[Mapping[str, str]], RunCounts | None]  # What became of the questions behind a group of answers


class Pair(NamedTuple):
    column: str
    within: dict[str, str]  # The level of the other columns that they share
    a: int  # Number of the first, in the order of the column's values
    b: int
    dimension: tuple[str, bool]  # What p is corrected for together: the column, and whether it is crossed
    successive: bool  # Of months, whose changes are a question of their own


class Uncompared(NamedTuple):
    """Pairs that are not compared, as those that differ in their column are more than `MOST_PAIRS`."""

    pairs: int  # All that differ in the column
    left_out: int  # Those of them that are not compared
    successive: str  # The column whose newest values are compared; empty where nothing is
    since: str  # The first of these values, at which the later group of each pair that is compared stands or after it


class Grouping(NamedTuple):
    groups: tuple[dict[str, str], ...]  # By the columns' values; what is not known is empty and last
    of_record: IntArray  # Number of each record's group
    pairs: tuple[Pair, ...]  # The groups that may be compared; none with an unknown value is among them
    uncompared: dict[str, Uncompared]  # Columns with more than `MOST_PAIRS` pairs


def divided(
    by: Sequence[str],
    records: Sequence[str],
    provenance: Mapping[str, Mapping[str, str]],
    successive: Collection[str] = (),
) -> list[Grouping]:
    """All records as one group, then by each of the columns, and, of two or more, by all of them crossed.

    The values of `successive` columns, such as months, are compared with the one before and the first only.
    """
    columns = tuple(dict.fromkeys(by))
    crossed = [(column,) for column in columns] + ([columns] if len(columns) > 1 else [])
    whole = Grouping(({},), np.zeros(len(records), np.int64), (), {})
    return [whole, *(_grouping(division, records, provenance, successive) for division in crossed)]


def _grouping(
    columns: Sequence[str],
    records: Sequence[str],
    provenance: Mapping[str, Mapping[str, str]],
    successive: Collection[str],
) -> Grouping:
    values = [tuple(provenance.get(record, {}).get(column, "") for column in columns) for record in records]
    ordered = sorted(set(values), key=lambda each: [(not value, value) for value in each])
    number = {each: place for place, each in enumerate(ordered)}
    groups = tuple(dict(zip(columns, each, strict=True)) for each in ordered)
    of_record = np.array([number[each] for each in values], np.int64)
    known = [place for place, group in enumerate(groups) if all(group.values())]
    pairs = {
        column: [
            (members[a], members[b])
            for members in _levels(column, groups, known)
            for a, b in combinations(range(len(members)), 2)
            if column not in successive or a in (0, b - 1)
        ]
        for column in columns
    }
    follows = next((column for column in columns if column in successive), "")
    uncompared = {}
    for column, found in pairs.items():
        if len(found) > MOST_PAIRS:
            since = _newest_since([groups[b].get(follows, "") for _, b in found])
            pairs[column] = [(a, b) for a, b in found if since and groups[b][follows] >= since]
            left_out = len(found) - len(pairs[column])
            uncompared[column] = Uncompared(len(found), left_out, follows if since else "", since)
    compared = [
        Pair(
            column,
            {other: value for other, value in groups[a].items() if other != column},
            a,
            b,
            dimension,
            column in successive,
        )
        for column in columns
        for dimension in [(column, len(columns) > 1 and column not in successive)]
        for a, b in pairs[column]
    ]
    return Grouping(groups, of_record, tuple(compared), uncompared)


def _newest_since(values: Sequence[str]) -> str:
    """The first value such that at most `MOST_PAIRS` are it or later; told by values alone, never by what was found."""
    since, total = "", 0
    for value, count in sorted(Counter(values).items(), reverse=True):
        total += count
        if total > MOST_PAIRS:
            break
        since = value
    return since


def _levels(column: str, groups: Sequence[dict[str, str]], known: Sequence[int]) -> list[list[int]]:
    levels: dict[tuple[str, ...], list[int]] = {}
    for place in known:
        level = tuple(value for other, value in groups[place].items() if other != column)
        levels.setdefault(level, []).append(place)
    return [members for _, members in sorted(levels.items())]


Counts = Callable[[int, tuple[MeasuredTask, ...]], Denominators]  # Of one group, by number, from these tasks


class Records(NamedTuple):
    narratives: IntArray  # Number of the narrative of each record
    weights: FloatArray
    divisions: Sequence[Grouping]  # All of them as one group first, then by columns of provenance
    counts: Sequence[Counts]  # What stands behind the groups of each division


def study_records(study: Study, names: Sequence[str], by: Sequence[str]) -> Records:
    divisions = divided(by, names, study.provenance, study.successive)
    sources, read = (_whole_numbers(names, study.provenance, column) for column in ("n_sources", "n_read"))

    def discarded(by: Mapping[str, str], members: IntArray, tasks: tuple[MeasuredTask, ...]) -> int | None:
        if not tasks:
            return None
        if study.discarded is not None:
            counts = study.discarded
            return sum(counts.get((task, names[member]), 0) for task in tasks for member in members.tolist())
        totals, known = study.all_discarded, {table.measured_as for table in study.tables}.intersection(tasks)
        return None if by or not totals.keys() >= known else sum(totals[task] for task in known)

    return Records(
        narratives=number_names([study.narratives.get(name, name) for name in names]),
        weights=np.array([1 / (study.probabilities or {}).get(name, 1.0) for name in names]),
        divisions=divisions,
        counts=[count_groups(division, study.asked_of, sources, read, discarded) for division in divisions],
    )


def count_groups(
    grouping: Grouping,
    asked_of: AskedOf,
    sources: IntArray,
    read: IntArray,
    discarded: Callable[[Mapping[str, str], IntArray, tuple[MeasuredTask, ...]], int | None] = lambda *_: None,
) -> Counts:
    """The denominators of each group; cited sources of each record, and those that were read, are -1 where unknown."""
    members = [np.flatnonzero(grouping.of_record == group) for group in range(len(grouping.groups))]

    @cache
    def count(group: int, tasks: tuple[MeasuredTask, ...]) -> Denominators:
        own, by = members[group], grouping.groups[group]
        cited, known = sources[own], read[own]
        runs = asked_of(by)
        return Denominators(
            asked=runs and runs.asked,
            answered=runs and runs.answered,
            refused=runs and runs.refused,
            failed=runs and runs.failed,
            answers=len(own),
            without_citations=None if (cited < 0).any() else int((cited == 0).sum()),
            with_unread_sources=None if (cited < 0).any() or (known < 0).any() else int((known < cited).sum()),
            discarded=discarded(by, own, tasks),
        )

    return count


def number_names(names: Sequence[str]) -> IntArray:
    number = {name: place for place, name in enumerate(sorted(set(names)))}
    return np.array([number[name] for name in names], np.int64)


def _whole_numbers(records: Sequence[str], provenance: Mapping[str, Mapping[str, str]], column: str) -> IntArray:
    cells = (provenance.get(record, {}).get(column, "") for record in records)
    return np.array([int(cell) if cell.isascii() and cell.isdigit() else -1 for cell in cells], np.int64)
