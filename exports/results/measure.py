"""A study goes in; every figure of `results.json` comes out: rates, by group, and what differs between groups."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from annotation.labels import LABELS, TASKS, TaskName
from exports.agreement.distributions import holm, rounded
from exports.agreement.ratings import IntArray
from exports.agreement.schema import InputFile
from exports.results._cells import Cells, cells_of
from exports.results._comparisons import LEVEL, Comparison, compare, flip_p, n_flips
from exports.results._denominators import GroupCounts
from exports.results._groups import MOST_GROUPS, Grouping, Pair, groupings, whole
from exports.results._intervals import difference_ends, rate_ends
from exports.results._values import FindingValues, finding_values, tasks_of, unit_values
from exports.results.schema import (
    Denominators,
    Difference,
    Finding,
    GroupRate,
    LabelResults,
    NoFigure,
    Rate,
    RateInterval,
    Results,
    TaskResults,
)
from exports.results.study import SERIOUS_PROBLEM, Consensus, FindingDefinition, Study


class _Column(NamedTuple):
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


def measure_results(
    study: Study,
    *,
    by: Sequence[str] = ("model_name",),
    consensus: Consensus = "share",
    findings: Mapping[str, FindingDefinition] = {"serious_problem": SERIOUS_PROBLEM},
    inputs: Sequence[InputFile] = (),
    seed: int = 0,
) -> Results:
    """What the jury found: the same arguments give the same figures to the last digit.

    Args:
        study: Votes, and what is known of the records beside them.
        by: Columns of provenance to group by: each alone, and two or more also crossed.
        consensus: How the votes on a unit become its value.
        findings: Composite findings by name.
        inputs: The files that it comes from.
        seed: Of the sign flips.

    Raises:
        InputError: a finding names a label that no task has.
    """
    tables = {table.task: table for table in study.tables}
    tables = {task: tables[task] for task in TASKS if task in tables}
    records = sorted({*study.narratives, *(record for table in tables.values() for record in table.records)})
    places = {record: place for place, record in enumerate(records)}
    tasks = {task: unit_values(table, places, consensus, study.decisions or {}) for task, table in tables.items()}
    composite = {name: finding_values(definition, tasks, len(records)) for name, definition in findings.items()}
    sheets = [*tasks.values(), *(each.values for each in composite.values())]
    columns = [
        _Column(sheet, column, (task,)) for sheet, task in enumerate(tasks) for column in range(len(LABELS[task]))
    ]
    columns += [
        _Column(len(tasks) + number, 0, tasks_of(definition.any)) for number, definition in enumerate(findings.values())
    ]
    narratives = _numbers([study.narratives.get(record, record) for record in records])
    weights = np.array([1 / (study.probabilities or {}).get(record, 1.0) for record in records])
    divisions = [whole(len(records)), *groupings(by, records, study.provenance)]
    cells = [[cells_of(sheet, division, narratives, weights) for sheet in sheets] for division in divisions]
    counts = [GroupCounts(study, records, division) for division in divisions]
    tests = [test for place, column in enumerate(columns) for test in _tests(place, column, divisions, cells)]
    flips = n_flips(max(Counter(test.dimension for test in tests if test.comparable).values(), default=0))
    differences = _differences(tests, flips, seed)
    found = [
        _label(
            column, divisions, cells, counts, [d for t, d in zip(tests, differences, strict=True) if t.place == place]
        )
        for place, column in enumerate(columns)
    ]
    judged = np.unique(np.concatenate([np.empty(0, np.int64), *(task.records for task in tasks.values())]))
    latest = max((table.latest for table in tables.values() if table.latest is not None), default=None)
    labels = iter(found)
    return Results(
        latest_response=None if latest is None else latest.isoformat(),
        seed=seed,
        flips=flips,
        by=tuple(dict.fromkeys(by)),
        consensus=consensus,
        weighted=study.probabilities is not None,
        inputs=tuple(inputs),
        n_records=len(judged),
        n_narratives=len(np.unique(narratives[judged])),
        tasks={task: TaskResults(labels={label: next(labels) for label in LABELS[task]}) for task in tasks},
        findings={name: _finding(next(labels), definition, composite[name]) for name, definition in findings.items()},
        remarks=tuple(_remarks(divisions[1:])),
    )


def _numbers(names: Sequence[str]) -> IntArray:
    """The number of each name among the sorted different ones."""
    number = {name: place for place, name in enumerate(sorted(set(names)))}
    return np.array([number[name] for name in names], np.int64)


def _tests(
    place: int, column: _Column, divisions: Sequence[Grouping], cells: Sequence[Sequence[Cells]]
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
    column: _Column,
    divisions: Sequence[Grouping],
    cells: Sequence[Sequence[Cells]],
    counts: Sequence[GroupCounts],
    differences: Sequence[Difference],
) -> LabelResults:
    """The rates of one label or finding, over all records and by group, beside its differences."""
    rates = [
        _rate(cells[number][column.sheet], group, column.column, counts[number].of(group, column.tasks))
        for number, division in enumerate(divisions)
        for group in range(len(division.groups))
    ]
    names = [group for division in divisions for group in division.groups]
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


def _finding(label: LabelResults, definition: FindingDefinition, values: FindingValues) -> Finding:
    """A finding's figures beside its definition."""
    return Finding(
        **dict(label),
        title=definition.title,
        any=definition.any,
        n_incomplete=values.n_incomplete,
        missing=values.missing,
    )


def _interval(ends: tuple[float, float] | None, method: str) -> RateInterval | None:
    """An interval with these ends."""
    return None if ends is None else RateInterval(low=rounded(ends[0]), high=rounded(ends[1]), method=method)


def _figure(value: float | None) -> float | None:
    """The value without the digits that are rounding of sums."""
    return None if value is None else rounded(value)


def _remarks(divisions: Sequence[Grouping]) -> Iterator[str]:
    """What cannot be told about groups."""
    for division in divisions:
        columns = " × ".join(f"`{column}`" for column in division.groups[0]) if division.groups else ""
        if division.uncompared:
            yield (
                f"{division.uncompared:,} groups by {columns} are not compared with each other: more than "
                f"{MOST_GROUPS} make {division.uncompared * (division.uncompared - 1) // 2:,} pairs."
            )
        for group, n_records in zip(division.groups, np.bincount(division.of_record), strict=True):
            if len(group) == 1 and not all(group.values()):
                one = int(n_records) == 1
                which = "1 record is not known; it is" if one else f"{n_records:,} records is not known; they are"
                yield f"The {columns} of {which} compared with none."
