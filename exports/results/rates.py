"""Values of units go in; rates by group come out, and what differs between groups beyond chance."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from annotation.labels import TaskName
from exports.agreement.distributions import holm, rounded
from exports.agreement.ratings import FloatArray, IntArray
from exports.results.comparisons import LEVEL, Comparison, compare, difference_ends, flip_p, n_flips, rate_ends
from exports.results.groups import Grouping, Pair
from exports.results.schema import Denominators, Difference, GroupRate, LabelResults, NoFigure, Rate, RateInterval
from exports.results.values import Cells, Values, cells_of


class MeasuredColumn(NamedTuple):
    """One label of one task, or a finding."""

    sheet: int
    """Number of the values that it is a column of."""
    column: int
    """Its number there."""
    tasks: tuple[TaskName, ...]
    """The tasks that it comes from."""
    not_between: frozenset[str] = frozenset()
    """Columns of provenance whose values are not compared on it."""


class _Test(NamedTuple):
    """One pair of groups on one label or finding."""

    place: int
    """Number of the label or finding."""
    pair: Pair
    """The groups."""
    names: tuple[str, str]
    """Their values in the column."""
    without_units: bool
    """Whether one of them has no unit with a value."""
    comparison: Comparison
    """Their values on the narratives that both have."""

    @property
    def comparable(self) -> bool:
        """Whether they share the two narratives without which there is no p."""
        return len(self.comparison.weights) > 1

    @property
    def undefined(self) -> NoFigure | None:
        """Why there is no p."""
        if self.comparable:
            return None
        if self.without_units:
            return "no_units"
        return "one_narrative" if len(self.comparison.weights) else "no_shared_narrative"


class _PValues(NamedTuple):
    """What sign flips tell of one pair on one label or finding."""

    p: float
    """Without any correction."""
    of_label: float
    """Corrected for the pairs of the label in the dimension."""
    of_all: float
    """Corrected for the pairs of all labels and findings in the dimension."""


class Counts(Protocol):
    """Tells what stands behind the rates of each group of one division."""

    def of(self, group: int, tasks: tuple[TaskName, ...], /) -> Denominators:
        """The denominators of a group's rate that comes from these tasks."""


class Records(NamedTuple):
    """The records that units belong to, and how they are divided."""

    narratives: IntArray
    """Number of the narrative of each record."""
    weights: FloatArray
    """Weight of each record."""
    divisions: Sequence[Grouping]
    """All of them as one group first, then by columns of provenance."""
    counts: Sequence[Counts]
    """What stands behind the groups of each division."""


class Measured(NamedTuple):
    """What was measured."""

    labels: list[LabelResults]
    """The figures of each column, in their order."""
    flips: int
    """Sign flips behind each p, at most."""


def measure_columns(
    sheets: Sequence[Values], columns: Sequence[MeasuredColumn], records: Records, seed: int
) -> Measured:
    """The rates of each column and its differences; p values are corrected for all the columns together."""
    cells = [
        [cells_of(sheet, division, records.narratives, records.weights) for sheet in sheets]
        for division in records.divisions
    ]
    tests = [
        test for division, own in zip(records.divisions, cells, strict=True) for test in _tests(columns, division, own)
    ]
    flips = n_flips(max(Counter(test.pair.dimension for test in tests if test.comparable).values(), default=0))
    differences = _differences(tests, flips, seed)
    found = [_label(column, records, cells, differences[place]) for place, column in enumerate(columns)]
    return Measured(found, flips)


def number_names(names: Sequence[str]) -> IntArray:
    """The number of each name among the sorted different ones."""
    number = {name: place for place, name in enumerate(sorted(set(names)))}
    return np.array([number[name] for name in names], np.int64)


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


def _differences(tests: Sequence[_Test], flips: int, seed: int) -> dict[int, list[Difference]]:
    """The differences on each label or finding by its number, with p and its corrections."""
    tested = [number for number, test in enumerate(tests) if test.comparable]
    found_p = flip_p([tests[number].comparison.contributions for number in tested], flips, seed)
    raw = dict(zip(tested, found_p, strict=True))
    of_label = _corrected(raw, lambda number: (tests[number].pair.dimension, tests[number].place))
    of_all = _corrected(raw, lambda number: tests[number].pair.dimension)
    found: dict[int, list[Difference]] = defaultdict(list)
    for number, test in enumerate(tests):
        p_values = _PValues(raw[number], of_label[number], of_all[number]) if number in raw else None
        found[test.place].append(_difference(test, p_values))
    return found


def _corrected(p_values: Mapping[int, float], family: Callable[[int], Hashable]) -> dict[int, float]:
    """Each p after Holm's correction within its family."""
    members: dict[Hashable, list[int]] = defaultdict(list)
    for number in p_values:
        members[family(number)].append(number)
    return {
        number: p
        for numbers in members.values()
        for number, p in zip(numbers, holm([p_values[each] for each in numbers]), strict=True)
    }


def _difference(test: _Test, p_values: _PValues | None) -> Difference:
    comparison = test.comparison
    n = len(comparison.weights)
    rates = comparison.rates if n else (None, None)
    between = comparison.first - comparison.second
    ends = difference_ends(between, comparison.weights, comparison.units) if n > 1 else None
    return Difference(
        by=test.pair.column,
        within=test.pair.within,
        a=test.names[0],
        b=test.names[1],
        n_narratives=n,
        rate_a=_figure(rates[0]),
        rate_b=_figure(rates[1]),
        difference=_figure(comparison.difference) if n else None,
        interval=_interval(ends, "t"),
        p=_figure(p_values and p_values.p),
        p_holm=_figure(p_values and p_values.of_label),
        stands_out=p_values is not None and p_values.of_all <= LEVEL,
        undefined=test.undefined,
    )


def _label(
    column: MeasuredColumn,
    records: Records,
    cells: Sequence[Sequence[Cells]],
    differences: Sequence[Difference],
) -> LabelResults:
    rates = [
        _rate(cells[number][column.sheet], group, column.column, records.counts[number].of(group, column.tasks))
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
    ends = rate_ends(totals, weights, squares) if n_narratives > 1 else None
    undefined: NoFigure | None = None if n_narratives > 1 else "one_narrative" if n_narratives else "no_units"
    return Rate(
        rate=_figure(float(totals.sum() / weights.sum())) if n_units else None,
        interval=_interval(ends, "wilson"),
        undefined=undefined,
        n_units=n_units,
        n_undecided=int(cells.undecided[rows, label].sum()),
        n_narratives=n_narratives,
        denominators=denominators,
    )


def _interval(ends: tuple[float, float] | None, method: str) -> RateInterval | None:
    return None if ends is None else RateInterval(low=rounded(ends[0]), high=rounded(ends[1]), method=method)


def _figure(value: float | None) -> float | None:
    """The value without the digits that are rounding of sums."""
    return None if value is None else rounded(value)
