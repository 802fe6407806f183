"""Values of units go in; rates by group come out, and what differs between groups beyond chance."""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from annotation.labels import TaskName
from exports.agreement.distributions import holm, rounded
from exports.agreement.ratings import FloatArray, IntArray
from exports.results._cells import Cells, cells_of
from exports.results._comparisons import LEVEL, Comparison, compare, flip_p, n_flips
from exports.results._groups import Grouping, Pair
from exports.results._intervals import difference_ends, rate_ends
from exports.results._values import Values
from exports.results.schema import Denominators, Difference, GroupRate, LabelResults, NoFigure, Rate, RateInterval


class MeasuredColumn(NamedTuple):
    """One label of one task, or a finding."""

    sheet: int
    """Number of the values that it is a column of."""
    column: int
    """Its number there."""
    tasks: tuple[TaskName, ...]
    """The tasks that it comes from."""


class _Test(NamedTuple):
    """One pair of groups on one label or finding."""

    place: int
    """Number of the label or finding."""
    dimension: tuple[str, bool]
    """The column of provenance that the groups differ in, and whether they are crossed with others."""
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
    tests = [test for place, column in enumerate(columns) for test in _tests(place, column, records.divisions, cells)]
    flips = n_flips(max(Counter(test.dimension for test in tests if test.comparable).values(), default=0))
    differences = _differences(tests, flips, seed)
    found = [
        _label(
            column,
            records,
            cells,
            [d for t, d in zip(tests, differences, strict=True) if t.place == place],
        )
        for place, column in enumerate(columns)
    ]
    return Measured(found, flips)


def number_names(names: Sequence[str]) -> IntArray:
    """The number of each name among the sorted different ones."""
    number = {name: place for place, name in enumerate(sorted(set(names)))}
    return np.array([number[name] for name in names], np.int64)


def _tests(
    place: int, column: MeasuredColumn, divisions: Sequence[Grouping], cells: Sequence[Sequence[Cells]]
) -> Iterator[_Test]:
    """Every pair of groups on one label or finding."""
    for division, sheets in zip(divisions, cells, strict=True):
        own = sheets[column.sheet]
        present = [bool(own.units[own.of_group(group), column.column].any()) for group in range(len(division.groups))]
        for pair in division.pairs:
            yield _Test(
                place=place,
                dimension=(pair.column, bool(pair.within)),
                pair=pair,
                names=(division.groups[pair.a][pair.column], division.groups[pair.b][pair.column]),
                without_units=not (present[pair.a] and present[pair.b]),
                comparison=compare(own, pair, column.column),
            )


def _differences(tests: Sequence[_Test], flips: int, seed: int) -> list[Difference]:
    """The difference of each test, with p and its corrections."""
    tested = [place for place, test in enumerate(tests) if test.comparable]
    raw = flip_p([tests[place].comparison.contributions for place in tested], flips, seed)
    families: dict[Hashable, list[int]] = {}
    for number, place in enumerate(tested):
        families.setdefault((tests[place].dimension, tests[place].place), []).append(number)
        families.setdefault(tests[place].dimension, []).append(number)
    corrected: dict[Hashable, dict[int, float]] = {
        family: dict(zip(numbers, holm([raw[number] for number in numbers]), strict=True))
        for family, numbers in families.items()
    }
    p_values = {
        place: (
            raw[number],
            corrected[tests[place].dimension, tests[place].place][number],
            corrected[tests[place].dimension][number] <= LEVEL,
        )
        for number, place in enumerate(tested)
    }
    return [_difference(test, p_values.get(place)) for place, test in enumerate(tests)]


def _difference(test: _Test, p_values: tuple[float, float, bool] | None) -> Difference:
    """One difference, from p, p after Holm over the label's pairs, and whether it stands out."""
    comparison = test.comparison
    n = len(comparison.weights)
    rates = comparison.rates if n else (None, None)
    p, p_holm, stands_out = p_values or (None, None, False)
    ends = difference_ends(comparison.first - comparison.second, comparison.weights) if n > 1 else None
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
        p=_figure(p),
        p_holm=_figure(p_holm),
        stands_out=stands_out,
        undefined=test.undefined,
    )


def _label(
    column: MeasuredColumn,
    records: Records,
    cells: Sequence[Sequence[Cells]],
    differences: Sequence[Difference],
) -> LabelResults:
    """The rates of one label or finding, over all records and by group, beside its differences."""
    rates = [
        _rate(cells[number][column.sheet], group, column.column, records.counts[number].of(group, column.tasks))
        for number, division in enumerate(records.divisions)
        for group in range(len(division.groups))
    ]
    names = [group for division in records.divisions for group in division.groups]
    groups = tuple(GroupRate(by=by, **dict(rate)) for by, rate in zip(names[1:], rates[1:], strict=True))
    return LabelResults(**dict(rates[0]), groups=groups, differences=tuple(differences))


def _rate(cells: Cells, group: int, label: int, denominators: Denominators) -> Rate:
    """The rate of one group on one label."""
    rows = cells.of_group(group)
    units = cells.units[rows, label]
    there = units > 0
    n_units, n_narratives = int(units.sum()), int(np.count_nonzero(there))
    totals, weights = cells.totals[rows, label][there], cells.weights[rows, label][there]
    ends = rate_ends(totals, weights, n_units) if n_narratives > 1 else None
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
    """An interval with these ends."""
    return None if ends is None else RateInterval(low=rounded(ends[0]), high=rounded(ends[1]), method=method)


def _figure(value: float | None) -> float | None:
    """The value without the digits that are rounding of sums."""
    return None if value is None else rounded(value)
