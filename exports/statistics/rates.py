"""Votes go in; values of units and rates by group come out, and what differs beyond chance.

Constants were chosen by simulation; what the intervals cover is in exports/contracts/results.md#simulations.

Source: exports/contracts/results.md#values and #intervals.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from annotation.argilla.labels import TASKS, TaskName
from exports.statistics.consensus import UnitLabel
from exports.statistics.distributions import holm, largest_share, rounded, student_quantile
from exports.statistics.exchange import LEVEL, Ballots, Held, Told, Untold, exchange_p, held_against, n_draws, sides
from exports.statistics.groups import Denominators, Grouping, Pair, Records
from exports.statistics.ratings import (
    MISSING,
    YES_AND_NO,
    BoolArray,
    FloatArray,
    IntArray,
    MeasuredTask,
    Ratings,
    count_votes,
)
from exports.statistics.results_schema import Difference, GroupRate, LabelResults, NoFigure, Rate, RateInterval
from exports.statistics.study import MONTH, Consensus, FindingDefinition
from pipeline.core.errors import InputError

_NOT = "not "


class Values(NamedTuple):
    records: IntArray  # Number of each unit's record, counted from 0
    values: FloatArray  # Units × labels: from 0 (no) to 1 (yes) but in `OnScale`; NaN where a unit has none
    undecided: BoolArray  # Units × labels: whether the unit has votes on the label and they settle nothing
    ballots: Ballots | None = None  # Who gave them; None where no annotator has a part in it


class FindingValues(NamedTuple):
    values: Values  # A unit for each answer with votes on any task; one column
    n_incomplete: int  # Answers without a value on some part
    missing: dict[str, int]  # How many answers lack a value on each of the labels


def unit_values(
    ratings: Ratings, places: Mapping[str, int], consensus: Consensus, decisions: Mapping[UnitLabel, bool | str]
) -> Values:
    """The values of a task's units on its labels, in their orders; `places` numbers the records."""
    votes = count_votes(ratings.values, ratings.units, len(ratings.unit_records))
    with np.errstate(invalid="ignore"):
        share = votes.ones / votes.ratings
    if consensus == "share":
        values = share
    elif consensus == "majority":
        values = np.where(share == 0.5, np.nan, np.where(np.isnan(share), np.nan, share > 0.5))
    else:
        values = np.where((share == 0) | (share == 1), share, np.nan)
        units, labels = {unit: number for number, unit in enumerate(ratings.unit_keys)}, ratings.labels
        for (record, chunk_id, label), decided in decisions.items():
            if (record, chunk_id) in units and label in labels:
                values[units[record, chunk_id], labels.index(label)] = decided is True
    says = np.where(ratings.values == MISSING, np.nan, ratings.values) if consensus == "share" else None
    ballots = Ballots(ratings.units, ratings.response_annotators, says)
    return Values(unit_places(ratings, places), values, (votes.ratings > 0) & np.isnan(values), ballots)


def unit_places(ratings: Ratings, places: Mapping[str, int]) -> IntArray:
    return np.array([places[record] for record in ratings.records], np.int64)[ratings.unit_records]


def finding_values(definition: FindingDefinition, tasks: Mapping[TaskName, Values], n_records: int) -> FindingValues:
    """1 where most votes on one of its parts make an answer count, ½ for a tie, else 0; NaN without votes on a part.

    Not the largest share of votes: one slip on any of several parts would count for a third of an answer each time.
    """
    if not definition.any:
        raise InputError(f"The finding {definition.title!r} names no label. Give at least one in `any`.")
    judged = np.zeros(n_records, np.bool_)
    for task in tasks.values():
        judged[task.records] = True
    parts = [_part_values(part, tasks, n_records) for part in definition.any]
    values = np.stack([part[0][judged] for part in parts], axis=1)
    voted = np.stack([part[1][judged] for part in parts], axis=1)
    lacking = np.isnan(values)
    largest = np.where(lacking, 0, values).max(axis=1)
    told = voted.all(axis=1) & (~lacking.any(axis=1) | (largest == 1))
    value = np.where(told, largest, np.nan)
    missing = {
        _label_of(part): int(count)
        for part, count in zip(
            definition.any, np.count_nonzero(lacking & np.isnan(value)[:, np.newaxis], axis=0), strict=True
        )
    }
    undecided = np.isnan(value) & voted.all(axis=1)
    found = Values(np.flatnonzero(judged), value[:, np.newaxis], undecided[:, np.newaxis])
    return FindingValues(found, int(np.count_nonzero(np.isnan(value))), missing)


def _part_values(part: str, tasks: Mapping[TaskName, Values], n_records: int) -> tuple[FloatArray, BoolArray]:
    """By the votes' majority, ½ for a tie, NaN without one, of passages the largest; and whether there are votes."""
    label = _label_of(part)
    task_name = _task_of(part)
    values, voted = np.full(n_records, np.nan), np.zeros(n_records, np.bool_)
    task = tasks.get(task_name)
    if task is not None:
        column = YES_AND_NO[task_name].index(label)
        own = 1 - task.values[:, column] if part.startswith(_NOT) else task.values[:, column]
        settled = np.where(np.isnan(own) | (own == 0.5), own, own > 0.5)
        np.fmax.at(values, task.records, settled)
        voted[task.records[~np.isnan(own) | task.undecided[:, column]]] = True
    return values, voted


def own_findings(
    definition: FindingDefinition, tables: Mapping[MeasuredTask, Ratings], rows: Mapping[TaskName, IntArray]
) -> Ballots | None:
    """What each annotator finds on their own, on the rows of each task's units; None where some lack a part of one."""
    people = sorted({name for task in rows for name in tables[task].annotators})
    keys, says, needed = [], [], np.zeros(max((int(each.max(initial=-1)) for each in rows.values()), default=-1) + 1)
    for part in definition.any if len(rows) == len(tasks_of(definition.any)) else ():
        task = _task_of(part)
        table, units = tables[task], rows[task]
        votes = table.values[:, YES_AND_NO[task].index(_label_of(part))]
        given = np.flatnonzero(votes != MISSING)
        person = np.searchsorted(people, table.annotators)[table.response_annotators[given]]
        keys.append(units[table.units[given]] * len(people) + person)
        says.append(votes[given] != part.startswith(_NOT))
        needed += np.bincount(units[np.unique(table.units[given])], minlength=len(needed))
    found, place = np.unique(np.concatenate([np.empty(0, np.int64), *keys]), return_inverse=True)
    if not len(found) or (np.bincount(place) < needed[found // len(people)]).any():
        return None
    yes = np.bincount(place, np.concatenate(says)) > 0
    return Ballots(found // len(people), found % len(people), yes[:, np.newaxis].astype(np.float64))


def _label_of(part: str) -> str:
    return part.removeprefix(_NOT).strip()


def _task_of(part: str) -> TaskName:
    label = _label_of(part)
    found = next((task for task in TASKS if label in YES_AND_NO[task]), None)
    if found is None:
        there = ", ".join(label for task in TASKS for label in YES_AND_NO[task])
        raise InputError(f"A finding names the label {label!r}, which no task has. The labels are {there}.")
    return found


def tasks_of(labels: Sequence[str]) -> tuple[TaskName, ...]:
    return tuple(dict.fromkeys(map(_task_of, labels)))


class Cells(NamedTuple):
    """One row for each group and narrative that have a unit together, sorted by group, then by narrative."""

    narratives: IntArray
    starts: IntArray  # Where the rows of each group begin, and the end of the last: groups + 1
    units: FloatArray  # Cells × labels: units with a value
    undecided: FloatArray  # Cells × labels: units with votes that settle nothing
    weights: FloatArray  # Cells × labels: sum of the weights of units with a value
    squares: FloatArray  # Cells × labels: sum of their squares
    totals: FloatArray  # Cells × labels: sum of weight times value

    def of_group(self, group: int) -> slice:
        return slice(int(self.starts[group]), int(self.starts[group + 1]))


def _cells_of(values: Values, grouping: Grouping, narratives: IntArray, weights: FloatArray) -> Cells:
    """The sums of each group and narrative; `narratives` and `weights` are by record."""
    width = int(narratives.max(initial=0)) + 1
    keys = grouping.of_record[values.records] * width + narratives[values.records]
    found, cell = np.unique(keys, return_inverse=True)
    given = ~np.isnan(values.values)
    weight = weights[values.records][:, np.newaxis] * given
    return Cells(
        narratives=found % width,
        starts=np.searchsorted(found // width, np.arange(len(grouping.groups) + 1)),
        units=_sums(cell, len(found), given),
        undecided=_sums(cell, len(found), values.undecided),
        weights=_sums(cell, len(found), weight),
        squares=_sums(cell, len(found), weight**2),
        totals=_sums(cell, len(found), weight * np.where(given, values.values, 0)),
    )


def _sums(cell: IntArray, n_cells: int, columns: FloatArray | BoolArray) -> FloatArray:
    found: Sequence[FloatArray] = [
        np.bincount(cell, column, n_cells).astype(np.float64) for column in np.asarray(columns, np.float64).T
    ]
    return np.ascontiguousarray(np.array(found).reshape(len(found), n_cells).T)


_LIKENESS = 0.3  # Correlation within a narrative of what groups are imagined to differ in
_ASSUMED_NARRATIVES = 0.5  # Narratives with something of the rarer value as which it weighs that all are copies
_FEW = 3  # With fewer such narratives the bound is exact
_UNEVEN, _ENOUGH = 2, 5  # Narratives as telling as one of this many, and fewer than so many, have no interval
_ONE_SIDED = 1.645  # Normal quantile of the end that lies nearest to 0 or 1, beyond which the rate cannot be
_IMAGINED = 0.3  # Two imagined differences, one for each group, in squares of the largest possible by chance


def rate_ends(totals: FloatArray, weights: FloatArray, squares: FloatArray) -> tuple[float, float]:
    """The ends of a rate's 95 % interval, from the sums of each of two narratives or more."""
    rate = float(totals.sum()) / float(weights.sum())
    ends = share_ends(rate, independent_units(totals, weights, squares), degrees_of(weights))
    return _within_narratives(ends, totals, weights)


def _effective_narratives(weights: FloatArray) -> float:
    """How many narratives of equal weight would be as telling (Kish 1965)."""
    return float(weights.sum()) ** 2 / float((weights**2).sum())


def degrees_of(weights: FloatArray) -> int:
    return max(1, round(_effective_narratives(weights)) - 1)


def is_uneven(weights: FloatArray) -> bool:
    """Whether so few narratives hold most of it that no interval can be trusted."""
    effective = _effective_narratives(weights)
    return effective < _ENOUGH and len(weights) > _UNEVEN * effective


def few_narratives(totals: FloatArray, weights: FloatArray) -> tuple[bool, bool]:
    """Whether the exact bound holds at the upper end, as few narratives have any of it, and at the lower end."""
    return bool(np.count_nonzero(totals > 0) < _FEW), bool(np.count_nonzero(totals < weights) < _FEW)


def _within_narratives(ends: tuple[float, float], totals: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """The ends, no nearer than the exact bound of narratives where few have any of the rarer value.

    A mean of shares is at most the share of narratives with any, of which Clopper & Pearson (1934) give the bound.
    """
    low, high = ends
    at_upper, at_lower = few_narratives(totals, weights)
    narratives = _effective_narratives(weights)
    if at_upper:
        some = int(np.count_nonzero(totals > 0))
        high = max(high if some else 0.0, largest_share(some, narratives))
    if at_lower:
        some = int(np.count_nonzero(totals < weights))
        low = min(low if some else 1.0, 1 - largest_share(some, narratives))
    return low, high


def independent_units(totals: FloatArray, weights: FloatArray, squares: FloatArray) -> float:
    """How many independent units would be as telling as those of two narratives or more (sums of each narrative).

    Their number comes from the design effect (Kish 1965), which few rare values tell badly: it is drawn towards that of
    narratives whose units are copies.
    """
    n, size = len(weights), float(weights.sum())
    rate = min(max(float(totals.sum()) / size, 0.0), 1.0)
    units = size**2 / float(squares.sum())
    assumed = float((weights**2).sum() / squares.sum())
    found = 0.0
    if 0 < rate < 1:
        variance = n / (n - 1) * float(((totals - rate * weights) ** 2).sum()) / size**2
        found = variance * units / (rate * (1 - rate))
    telling = min(np.count_nonzero(totals > 0), np.count_nonzero(totals < weights))
    effect = (telling * found + _ASSUMED_NARRATIVES * assumed) / (telling + _ASSUMED_NARRATIVES)
    return units / effect


def share_ends(rate: float, independent: float, degrees: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share, with Student's t; near 0 and 1, where it is too wide, a Poisson count's end.

    Source: Wilson 1927; Franco et al. 2019; Brown, Cai & DasGupta 2001; Wilson & Hilferty 1931.
    """
    rate = min(max(rate, 0.0), 1.0)
    t2 = student_quantile(degrees) ** 2
    centre = (rate + t2 / (2 * independent)) / (1 + t2 / independent)
    half = math.sqrt(t2 * (rate * (1 - rate) / independent + t2 / (4 * independent**2))) / (1 + t2 / independent)
    low = min(centre - half, _rare_end(rate, independent))
    high = max(centre + half, 1 - _rare_end(1 - rate, independent))
    return max(low, 0.0), min(high, 1.0)


def _design_effect(units: float) -> float:
    """The design effect of so many units a narrative that have the assumed correlation."""
    return 1 + (units - 1) * _LIKENESS


def _rare_end(rate: float, units: float) -> float:
    """The 5 % point of a gamma variable with the mean of the count, by Wilson and Hilferty's cube, as a rate."""
    count = rate * units
    if count <= 0:
        return 0.0
    root = 1 - 1 / (9 * count) - _ONE_SIDED * math.sqrt((1 - rate) / (9 * count))
    least = (
        math.exp((math.log(0.05) + math.lgamma(1 + count)) / count) / count
    )  # The cube is 0 where the count is small
    return rate * max(root**3, least)


def _mean_ends(totals: FloatArray, weights: FloatArray, farthest: float) -> tuple[float, float] | None:
    """The ends of a mean, at most so far from 0, by Student's t over two narratives or more, if they vary."""
    n, mean = len(weights), float(totals.sum()) / float(weights.sum())
    error = math.sqrt(n / (n - 1) * float(((totals - mean * weights) ** 2).sum())) / float(weights.sum())
    half = student_quantile(n - 1) * error
    return None if error < _NO_SPREAD else (max(mean - half, -farthest), min(mean + half, farthest))


def difference_ends(
    differences: FloatArray, weights: FloatArray, units: float, bounded: bool = True, farthest: float = math.inf
) -> tuple[float, float] | None:
    """The ends by Student's t over two narratives or more; `units` is how many a group has in one, on average.

    Without bounds nothing is imagined, and there are none where narratives do not vary.
    Two more are imagined, one for each group: narratives without a difference do not make it certain that there is none
    (after Bonett & Price 2012).
    """
    share = weights / weights.sum()
    mean = float(share @ differences)
    if not bounded:
        return _mean_ends(weights * differences, weights, 2 * farthest)
    n = 1 / float((share**2).sum())
    squares = n * float((share * (differences - mean) ** 2).sum()) + 2 * _IMAGINED * _design_effect(units) / units
    half = student_quantile(len(differences) - 1) * math.sqrt(squares / ((n + 1) * (n + 2)))
    return max(mean - half, -1.0), min(mean + half, 1.0)


_NO_SPREAD = 1e-12  # What is left of rounding, of values between 0 and 1


class Comparison(NamedTuple):
    """One label of two groups, on the narratives in which both have a unit with a value; one row each."""

    first: FloatArray
    second: FloatArray
    weights: FloatArray  # Weight of the narrative: the mean weight of a group's units, on average of both
    units: float  # Units that a group has in a narrative, on average; one number

    @property
    def rates(self) -> tuple[float, float]:
        total = float(self.weights.sum())
        return float(self.weights @ self.first) / total, float(self.weights @ self.second) / total

    @property
    def difference(self) -> float:
        """The weighted mean of first − second."""
        return float(self.weights @ (self.first - self.second)) / float(self.weights.sum())


def _compare(cells: Cells, pair: Pair) -> Iterator[Comparison]:
    a, b = cells.of_group(pair.a), cells.of_group(pair.b)
    _, left, right = np.intersect1d(cells.narratives[a], cells.narratives[b], assume_unique=True, return_indices=True)
    left, right = left + a.start, right + b.start
    both = (cells.units[left] > 0) & (cells.units[right] > 0)
    for label, rows in enumerate(both.T):
        first, second = left[rows], right[rows]
        units_a, units_b = cells.units[first, label], cells.units[second, label]
        weights_a, weights_b = cells.weights[first, label], cells.weights[second, label]
        yield Comparison(
            first=cells.totals[first, label] / weights_a,
            second=cells.totals[second, label] / weights_b,
            weights=(weights_a / units_a + weights_b / units_b) / 2,
            units=float(np.mean(units_a + units_b)) / 2 if rows.any() else 0.0,
        )


def within_reach(compared: Sequence[Difference]) -> list[bool]:
    """Whether each of these differences, which have a p, could stand out, were every narrative to speak for it.

    Of answers that not the same people judged, only narratives that tell how these differ speak.
    """
    smallest = {place: _smallest_p(telling_narratives(each)) for place, each in enumerate(compared)}
    corrected = _corrected(smallest, lambda place: compared[place].by == MONTH)
    return [each.stands_out or corrected[place] <= LEVEL for place, each in enumerate(compared)]


def telling_narratives(found: Difference) -> int:
    return found.n_narratives if found.n_telling is None else min(found.n_narratives, found.n_telling)


def narratives_needed(compared: Sequence[Difference]) -> int:
    """The fewest common narratives with which each of these differences could stand out."""
    largest = max(Counter(each.by == MONTH for each in compared).values())
    narratives = 1
    while largest * _smallest_p(narratives) > LEVEL:
        narratives += 1
    return narratives


def _smallest_p(n_narratives: int) -> float:
    """The p of the two exchanges of one answer each in which all narratives point one way."""
    return 2.0 ** (1 - n_narratives)


class MeasuredColumn(NamedTuple):
    sheet: int  # Number of the values that it is a column of
    column: int
    tasks: tuple[MeasuredTask, ...]  # The tasks that it comes from
    not_between: frozenset[str] = frozenset()  # Columns of provenance whose values are not compared on it
    label: str = ""  # The label on a scale of which it is one column of several
    ends: tuple[float, float] = (0.0, 1.0)  # What 0 and 1 stand for
    bounded: bool = True  # Whether they are the ends of the scale
    farthest: float = math.inf  # What a mean that is not can be from 0

    def told(self, value: float) -> float:
        return self.ends[0] + value * (self.ends[1] - self.ends[0])

    def apart(self, difference: float) -> float:
        return difference * (self.ends[1] - self.ends[0])


class _Test(NamedTuple):
    place: int  # Number of the label or finding
    pair: Pair
    names: tuple[str, str]  # Their values in the column
    without_units: bool  # Whether one of them has no unit with a value
    comparison: Comparison  # Their values on the narratives that both have
    held: Held | Untold | None  # What the difference is held against; None of one narrative


def measure_columns(
    sheets: Sequence[Values], columns: Sequence[MeasuredColumn], records: Records, seed: int
) -> tuple[list[LabelResults], int]:
    """The figures of each column and how many exchanges are behind a p, at most; p is corrected for all columns."""
    cells = [
        [_cells_of(sheet, division, records.narratives, records.weights) for sheet in sheets]
        for division in records.divisions
    ]
    parts = zip(records.divisions, cells, strict=True)
    tests = [test for division, own in parts for test in _tests(columns, division, own, sheets, records)]
    tested = {number: test.held for number, test in enumerate(tests) if isinstance(test.held, Held)}
    draws = n_draws(max(Counter(tests[number].pair.successive for number in tested).values(), default=0))
    raw = dict(zip(tested, exchange_p(list(tested.values()), draws, seed), strict=True))
    families = [column.label or place for place, column in enumerate(columns)]
    of_label = _corrected(raw, lambda number: (tests[number].pair.dimension, families[tests[number].place]))
    of_all = _corrected(raw, lambda number: tests[number].pair.successive)
    differences: dict[int, list[Difference]] = defaultdict(list)
    for number, test in enumerate(tests):
        p_values = (raw[number], of_label[number], of_all[number]) if number in raw else None
        differences[test.place].append(_difference(test, columns[test.place], p_values))
    return [_label(column, records, cells, differences[place]) for place, column in enumerate(columns)], draws


def _tests(
    columns: Sequence[MeasuredColumn],
    division: Grouping,
    cells: Sequence[Cells],
    sheets: Sequence[Values],
    records: Records,
) -> Iterator[_Test]:
    for sheet, own in enumerate(cells if division.pairs else ()):
        places = [(place, column) for place, column in enumerate(columns) if column.sheet == sheet]
        empty = [np.count_nonzero(own.units[own.of_group(group)], axis=0) == 0 for group in range(len(division.groups))]
        for pair in division.pairs:
            comparisons = list(_compare(own, pair))
            held = _held(sheets[sheet], division, pair, records, comparisons)
            for place, column in places:
                if pair.column in column.not_between:
                    continue
                yield _Test(
                    place=place,
                    pair=pair,
                    names=(division.groups[pair.a][pair.column], division.groups[pair.b][pair.column]),
                    without_units=bool(empty[pair.a][column.column] or empty[pair.b][column.column]),
                    comparison=comparisons[column.column],
                    held=held.get(column.column),
                )


def _held(
    sheet: Values, division: Grouping, pair: Pair, records: Records, comparisons: Sequence[Comparison]
) -> dict[int, Held | Untold]:
    """What the difference of each label is held against, of those on two narratives or more."""
    of_record = np.where(division.of_record == pair.a, 0, np.where(division.of_record == pair.b, 1, -1))
    told = Told(of_record, records.narratives, records.weights)
    shares = [each.weights / each.weights.sum() if len(each.weights) else each.weights for each in comparisons]
    found: dict[int, Held | Untold] = {}
    for side in sides(sheet.values, sheet.ballots, sheet.records, told, shares):
        held = held_against(sheet.values, sheet.ballots, side)
        own = [held] * len(side.labels) if isinstance(held, Untold) else held
        found |= zip(side.labels.tolist(), own, strict=True)
    return found


def _corrected(p_values: Mapping[int, float], family: Callable[[int], Hashable]) -> dict[int, float]:
    members: dict[Hashable, list[int]] = defaultdict(list)
    for number in p_values:
        members[family(number)].append(number)
    return {
        number: p
        for numbers in members.values()
        for number, p in zip(numbers, holm([p_values[each] for each in numbers]), strict=True)
    }


def _difference(test: _Test, column: MeasuredColumn, p_values: tuple[float, float, float] | None) -> Difference:
    comparison = test.comparison
    n = len(comparison.weights)
    rates = tuple(map(column.told, comparison.rates)) if n else (None, None)
    between, ends, leniency = comparison.first - comparison.second, None, 0.0
    undefined: NoFigure | None = "no_units" if test.without_units else "one_narrative" if n else "no_shared_narrative"
    if isinstance(test.held, Untold):
        undefined = test.held.reason
    elif test.held is not None:
        leniency, left = test.held.leniency, test.held.left
        if left is not None:
            between = left + comparison.difference - leniency - float(test.held.side.shares @ left)
        ends = difference_ends(between, comparison.weights, comparison.units, column.bounded, column.farthest)
        undefined = None if ends else "no_variation"
    return Difference(
        by=test.pair.column,
        within=test.pair.within,
        a=test.names[0],
        b=test.names[1],
        n_narratives=n,
        rate_a=_figure(rates[0]),
        rate_b=_figure(rates[1]),
        difference=_figure(column.apart(comparison.difference - leniency)) if n else None,
        leniency=_figure(column.apart(leniency))
        if isinstance(test.held, Held) and test.held.left is not None
        else None,
        n_telling=test.held and test.held.telling,
        interval=rate_interval(ends and (column.apart(ends[0]), column.apart(ends[1])), "t"),
        p=_figure(p_values and p_values[0]),
        p_holm=_figure(p_values and p_values[1]),
        p_all=_figure(p_values and p_values[2]),
        stands_out=p_values is not None and p_values[2] <= LEVEL,
        undefined=undefined,
    )


def _label(
    column: MeasuredColumn, records: Records, cells: Sequence[Sequence[Cells]], differences: Sequence[Difference]
) -> LabelResults:
    rates = [
        _rate(cells[number][column.sheet], group, column, records.counts[number](group, column.tasks))
        for number, division in enumerate(records.divisions)
        for group in range(len(division.groups))
    ]
    names = [group for division in records.divisions for group in division.groups]
    groups = tuple(GroupRate(by=by, **dict(rate)) for by, rate in zip(names[1:], rates[1:], strict=True))
    return LabelResults(**dict(rates[0]), groups=groups, differences=tuple(differences))


def _rate(cells: Cells, group: int, column: MeasuredColumn, denominators: Denominators) -> Rate:
    rows, label = cells.of_group(group), column.column
    units = cells.units[rows, label]
    there = units > 0
    n_units, n_narratives = int(units.sum()), int(np.count_nonzero(there))
    totals, weights, squares = (each[rows, label][there] for each in (cells.totals, cells.weights, cells.squares))
    undefined: NoFigure | None = "one_narrative" if n_narratives else "no_units"
    ends, method = None, "t"
    if n_narratives > 1 and is_uneven(weights):
        undefined = "uneven_narratives"
    elif n_narratives > 1:
        if column.bounded:
            ends = rate_ends(totals, weights, squares)
            method = "narratives" if any(few_narratives(totals, weights)) else "wilson"
        else:
            ends = _mean_ends(totals, weights, column.farthest)
        undefined = None if ends else "no_variation"
    return Rate(
        rate=_figure(column.told(float(totals.sum() / weights.sum()))) if n_units else None,
        interval=rate_interval(ends and (column.told(ends[0]), column.told(ends[1])), method),
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
