"""Values of units go in; rates by group come out, and what differs between groups beyond chance."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from annotation.argilla.labels import TaskName
from exports.statistics.comparisons import LEVEL, Comparison, compare, difference_ends, flip_p, n_flips, rate_ends
from exports.statistics.distributions import holm, rounded
from exports.statistics.groups import Denominators, Grouping, Pair, Records
from exports.statistics.results_schema import Difference, GroupRate, LabelResults, NoFigure, Rate, RateInterval
from exports.statistics.values import Cells, Values, cells_of


class MeasuredColumn(NamedTuple):
    sheet: int  # Number of the values that it is a column of
    column: int
    tasks: tuple[TaskName, ...]  # The tasks that it comes from
    not_between: frozenset[str] = frozenset()  # Columns of provenance whose values are not compared on it


class _Test(NamedTuple):
    place: int  # Number of the label or finding
    pair: Pair
    names: tuple[str, str]  # Their values in the column
    without_units: bool  # Whether one of them has no unit with a value
    comparison: Comparison  # Their values on the narratives that both have


def measure_columns(
    sheets: Sequence[Values], columns: Sequence[MeasuredColumn], records: Records, seed: int
) -> tuple[list[LabelResults], int]:
    """The figures of each column and how many flips are behind a p, at most; p is corrected for all columns."""
    cells = [
        [cells_of(sheet, division, records.narratives, records.weights) for sheet in sheets]
        for division in records.divisions
    ]
    parts = zip(records.divisions, cells, strict=True)
    tests = [test for division, own in parts for test in _tests(columns, division, own)]
    tested = [number for number, test in enumerate(tests) if len(test.comparison.weights) > 1]
    flips = n_flips(max(Counter(tests[number].pair.dimension for number in tested).values(), default=0))
    raw = dict(
        zip(tested, flip_p([tests[number].comparison.contributions for number in tested], flips, seed), strict=True)
    )
    of_label = _corrected(raw, lambda number: (tests[number].pair.dimension, tests[number].place))
    of_all = _corrected(raw, lambda number: tests[number].pair.dimension)
    differences: dict[int, list[Difference]] = defaultdict(list)
    for number, test in enumerate(tests):
        p_values = (raw[number], of_label[number], of_all[number]) if number in raw else None
        differences[test.place].append(_difference(test, p_values))
    return [_label(column, records, cells, differences[place]) for place, column in enumerate(columns)], flips


def _tests(columns: Sequence[MeasuredColumn], division: Grouping, cells: Sequence[Cells]) -> Iterator[_Test]:
    for sheet, own in enumerate(cells if division.pairs else ()):
        places = [(place, column) for place, column in enumerate(columns) if column.sheet == sheet]
        empty = [np.count_nonzero(own.units[own.of_group(group)], axis=0) == 0 for group in range(len(division.groups))]
        for pair in division.pairs:
            comparisons = list(compare(own, pair))
            for place, column in places:
                if pair.column in column.not_between:
                    continue
                yield _Test(
                    place=place,
                    pair=pair,
                    names=(division.groups[pair.a][pair.column], division.groups[pair.b][pair.column]),
                    without_units=bool(empty[pair.a][column.column] or empty[pair.b][column.column]),
                    comparison=comparisons[column.column],
                )


def _corrected(p_values: Mapping[int, float], family: Callable[[int], Hashable]) -> dict[int, float]:
    members: dict[Hashable, list[int]] = defaultdict(list)
    for number in p_values:
        members[family(number)].append(number)
    return {
        number: p
        for numbers in members.values()
        for number, p in zip(numbers, holm([p_values[each] for each in numbers]), strict=True)
    }


def _difference(test: _Test, p_values: tuple[float, float, float] | None) -> Difference:
    comparison = test.comparison
    n = len(comparison.weights)
    rates = comparison.rates if n else (None, None)
    between = comparison.first - comparison.second
    undefined: NoFigure | None = None
    if n < 2:
        undefined = "no_units" if test.without_units else "one_narrative" if n else "no_shared_narrative"
    return Difference(
        by=test.pair.column,
        within=test.pair.within,
        a=test.names[0],
        b=test.names[1],
        n_narratives=n,
        rate_a=_figure(rates[0]),
        rate_b=_figure(rates[1]),
        difference=_figure(comparison.difference) if n else None,
        interval=rate_interval(difference_ends(between, comparison.weights, comparison.units) if n > 1 else None, "t"),
        p=_figure(p_values and p_values[0]),
        p_holm=_figure(p_values and p_values[1]),
        stands_out=p_values is not None and p_values[2] <= LEVEL,
        undefined=undefined,
    )


def _label(
    column: MeasuredColumn, records: Records, cells: Sequence[Sequence[Cells]], differences: Sequence[Difference]
) -> LabelResults:
    rates = [
        _rate(cells[number][column.sheet], group, column.column, records.counts[number](group, column.tasks))
        for number, division in enumerate(records.divisions)
        for group in range(len(division.groups))
    ]
    names = [group for division in records.divisions for group in division.groups]
    groups = tuple(GroupRate(by=by, **dict(rate)) for by, rate in zip(names[1:], rates[1:], strict=True))
    return LabelResults(**dict(rates[0]), groups=groups, differences=tuple(differences))


def _rate(cells: Cells, group: int, label: int, denominators: Denominators) -> Rate:
    rows = cells.of_group(group)
    units = cells.units[rows, label]
    there = units > 0
    n_units, n_narratives = int(units.sum()), int(np.count_nonzero(there))
    totals, weights, squares = (each[rows, label][there] for each in (cells.totals, cells.weights, cells.squares))
    undefined: NoFigure | None = None if n_narratives > 1 else "one_narrative" if n_narratives else "no_units"
    return Rate(
        rate=_figure(float(totals.sum() / weights.sum())) if n_units else None,
        interval=rate_interval(rate_ends(totals, weights, squares) if n_narratives > 1 else None),
        undefined=undefined,
        n_units=n_units,
        n_undecided=int(cells.undecided[rows, label].sum()),
        n_narratives=n_narratives,
        denominators=denominators,
    )


def rate_interval(ends: tuple[float, float] | None, method: str = "wilson") -> RateInterval | None:
    return None if ends is None else RateInterval(low=rounded(ends[0]), high=rounded(ends[1]), method=method)


def _figure(value: float | None) -> float | None:
    return None if value is None else rounded(value)
