"""Provenance goes in; groups of records come out, and which of them may be compared.

Source: exports/contracts/results.md#groups.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from exports.agreement.ratings import IntArray

MOST_GROUPS = 40
"""Known groups that are compared pair by pair; of more, only the rates are given."""


class Pair(NamedTuple):
    """Two groups that may be compared."""

    column: str
    """What they differ in."""
    within: dict[str, str]
    """The level of the other columns that they share."""
    a: int
    """Number of the first, in the order of the column's values."""
    b: int
    """Number of the second."""


class Grouping(NamedTuple):
    """One division of the records."""

    groups: tuple[dict[str, str], ...]
    """The value of each column, in the order of their values; what is not known is empty and comes last."""
    of_record: IntArray
    """Number of each record's group."""
    pairs: tuple[Pair, ...]
    """The groups that may be compared; none with an unknown value is among them."""
    uncompared: int
    """Known groups that are not compared since they are more than `MOST_GROUPS`; 0 where they are."""


def whole(n_records: int) -> Grouping:
    """All records as one group."""
    return Grouping(({},), np.zeros(n_records, np.int64), (), 0)


def groupings(by: Sequence[str], records: Sequence[str], provenance: Mapping[str, Mapping[str, str]]) -> list[Grouping]:
    """The records by each of the columns, and, of two or more, by all of them crossed."""
    columns = tuple(dict.fromkeys(by))
    divisions = [(column,) for column in columns] + ([columns] if len(columns) > 1 else [])
    return [_grouping(division, records, provenance) for division in divisions]


def _grouping(columns: Sequence[str], records: Sequence[str], provenance: Mapping[str, Mapping[str, str]]) -> Grouping:
    """The records by the values of these columns together."""
    values = [tuple(provenance.get(record, {}).get(column, "") for column in columns) for record in records]
    ordered = sorted(set(values), key=lambda each: [(not value, value) for value in each])
    number = {each: place for place, each in enumerate(ordered)}
    groups = tuple(dict(zip(columns, each, strict=True)) for each in ordered)
    of_record = np.array([number[each] for each in values], np.int64)
    known = [place for place, group in enumerate(groups) if all(group.values())]
    if len(known) > MOST_GROUPS:
        return Grouping(groups, of_record, (), len(known))
    return Grouping(groups, of_record, tuple(_pairs(columns, groups, known)), 0)


def _pairs(columns: Sequence[str], groups: Sequence[dict[str, str]], known: Sequence[int]) -> Iterator[Pair]:
    """The known groups that differ in one column alone: by column, then by the level of the others."""
    for column in columns:
        levels: dict[tuple[str, ...], list[int]] = {}
        for place in known:
            levels.setdefault(tuple(groups[place][other] for other in columns if other != column), []).append(place)
        for _, members in sorted(levels.items()):
            within = {other: value for other, value in groups[members[0]].items() if other != column}
            for a, b in combinations(members, 2):
                yield Pair(column, within, a, b)
