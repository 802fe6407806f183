"""Votes go in; values of units and rates by group come out, and what differs beyond chance.

Constants were chosen by simulation; what the intervals cover is in exports/contracts/results.md#simulations.

Source: exports/contracts/results.md#values and #intervals.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from annotation.argilla.labels import TASKS, TaskName
from exports.statistics.consensus import UnitLabel
from exports.statistics.distributions import holm, rounded, student_quantile
from exports.statistics.groups import Denominators, Grouping, Pair, Records
from exports.statistics.ratings import YES_AND_NO, BoolArray, FloatArray, IntArray, MeasuredTask, Ratings, count_votes
from exports.statistics.results_schema import Difference, GroupRate, LabelResults, NoFigure, Rate, RateInterval
from exports.statistics.study import Consensus, FindingDefinition
from pipeline.core.errors import InputError

_NOT = "not "


class Values(NamedTuple):
    records: IntArray  # Number of each unit's record, counted from 0
    values: FloatArray  # Units × labels: from 0 (no) to 1 (yes) but in `OnScale`; NaN where a unit has none
    undecided: BoolArray  # Units × labels: whether the unit has votes on the label and they settle nothing


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
    return Values(unit_places(ratings, places), values, (votes.ratings > 0) & np.isnan(values))


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


_LIKENESS = 0.3  # Correlation within a narrative that is assumed as far as the data say nothing of it
_ASSUMED_NARRATIVES = 2.0  # Narratives with something of the rarer value that the assumption weighs as much as
_ONE_SIDED = 1.645  # Normal quantile of the end that lies nearest to 0 or 1, beyond which the rate cannot be
_IMAGINED = 0.3  # Two imagined differences, one for each group, in squares of the largest possible by chance


def rate_ends(totals: FloatArray, weights: FloatArray, squares: FloatArray) -> tuple[float, float]:
    """The ends of a rate's 95 % interval, from the sums of each of two narratives or more."""
    rate = float(totals.sum()) / float(weights.sum())
    return share_ends(rate, independent_units(totals, weights, squares), len(weights) - 1)


def independent_units(totals: FloatArray, weights: FloatArray, squares: FloatArray) -> float:
    """How many independent units would be as telling as those of two narratives or more (sums of each narrative).

    Their number comes from the design effect (Kish 1965), which few rare values tell badly: it is drawn towards that of
    an assumed correlation.
    """
    n, size = len(weights), float(weights.sum())
    rate = min(max(float(totals.sum()) / size, 0.0), 1.0)
    units = size**2 / float(squares.sum())
    assumed = _design_effect(float((weights**2).sum() / squares.sum()))
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
    return rate * max(root, 0.0) ** 3


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


LEVEL = 0.05  # At a p of this or less after correction a difference is beyond chance
_FLIPS_A_TEST = 40  # For each test of a family at the level, so that the smallest p can survive the correction
_FEWEST_FLIPS = 10_000
_SETTLED = 400  # A test with more flips as large as this needs no more: its p is known to a twentieth, and is not small
_FIRST_LOOK = 10_000  # Flips after which it is first looked which tests are settled; then ten times as many
_NO_SPREAD = 1e-12  # What is left of rounding, of values between 0 and 1
_TIE = 1e-9  # Sums closer than this to each other, as a share of the largest possible one, are equal
_BLOCK = 2**22  # Numbers of a table of contributions: 32 MiB
_SIGNS = 2**19  # Random signs at a time: 4 MiB, which processors keep near
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).astype(np.float64)


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
        return float(self.contributions.sum()) / float(self.weights.sum())

    @property
    def contributions(self) -> FloatArray:
        return self.weights * (self.first - self.second)


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


def n_flips(largest_family: int) -> int:
    return max(_FEWEST_FLIPS, math.ceil(_FLIPS_A_TEST * largest_family / LEVEL))


def flip_p(contributions: Sequence[FloatArray], flips: int, seed: int) -> list[float]:
    """Two-sided p of each sum of contributions, when each contribution keeps or changes its sign by chance.

    All flips are counted where they are fewer than `flips`; otherwise they are random, the same for all sums, and the
    observed one counts among them. A p that is not small may rest on fewer; a sum so large that a p of 1/(flips + 1) is
    certain (Hoeffding's bound) gets it without any.
    """
    sizes = [-np.sort(-np.abs(each[np.abs(each) > _NO_SPREAD])) for each in contributions]
    observed = [abs(float(each.sum())) for each in contributions]
    found = [math.nan] * len(sizes)
    random: list[int] = []
    for place, size in enumerate(sizes):
        limit = observed[place] - _TIE * float(size.sum())
        if len(size) == 0:
            found[place] = 1.0
        elif 2 ** len(size) <= flips:
            found[place] = _exact_p(size, limit)
        elif 2 * math.exp(-(limit**2) / (2 * float((size**2).sum()))) < 1 / (flips + 1):
            found[place] = 1 / (flips + 1)
        else:
            random.append(place)
    for places in _alike(random, sizes):
        limits = [observed[place] - _TIE * float(sizes[place].sum()) for place in places]
        for place, p in zip(places, _random_p([sizes[place] for place in places], limits, flips, seed), strict=True):
            found[place] = p
    return found


def _alike(places: Sequence[int], sizes: Sequence[FloatArray]) -> Iterator[list[int]]:
    """The places in batches whose sums get the same signs, whatever else is tested, and fit a block."""
    ordered = sorted(places, key=lambda place: len(sizes[place]))
    for length, batch in groupby(ordered, key=lambda place: _signs(len(sizes[place]))):
        members, width = list(batch), max(1, _BLOCK // length)
        yield from (members[start : start + width] for start in range(0, len(members), width))


def _signs(contributions: int) -> int:
    """How many signs are drawn for so many contributions: up to a quarter more, in whole bytes."""
    step = max(8, 1 << max(0, contributions.bit_length() - 3))
    return -(-contributions // step) * step


def _exact_p(sizes: FloatArray, limit: float) -> float:
    sums = sizes[:1]
    for size in sizes[1:]:
        sums = np.concatenate([sums + size, sums - size])
    return float(np.mean(np.abs(sums) >= limit))


def _random_p(sizes: Sequence[FloatArray], limits: Sequence[float], flips: int, seed: int) -> FloatArray:
    """A sum of sizes with random signs is twice that of a random choice of them, less their total."""
    table = np.zeros((_signs(len(sizes[0])), len(sizes)))
    for place, size in enumerate(sizes):
        table[: len(size), place] = size
    totals, limit = table.sum(axis=0), np.array(limits)
    as_large, made = np.zeros(len(sizes)), np.zeros(len(sizes))
    left = np.arange(len(sizes))
    own, high, low = table, (totals + limit) / 2, (totals - limit) / 2
    generator = np.random.default_rng(seed)
    rows = max(1, _SIGNS // len(table))
    chosen = np.empty((rows, len(table) // 8, 8))
    done, look = 0, _FIRST_LOOK
    while done < flips and len(left):
        count = min(rows, min(look, flips) - done)
        drawn = np.frombuffer(generator.bytes(rows * len(table) // 8), np.uint8).reshape(rows, -1)
        np.take(_BITS, drawn, axis=0, out=chosen, mode="clip")
        sums = chosen.reshape(rows, -1)[:count] @ own
        as_large[left] += np.count_nonzero((sums >= high) | (sums <= low), axis=0)
        done += count
        made[left] = done
        if done == look:
            left, look = left[as_large[left] < _SETTLED], look * 10
            own, high, low = (
                np.ascontiguousarray(each[..., left]) for each in (table, (totals + limit) / 2, (totals - limit) / 2)
            )
    return (1 + as_large) / (1 + made)


def within_reach(compared: Sequence[Difference]) -> list[bool]:
    """Whether each of these differences, which have a p, could stand out, were every narrative to speak for it."""
    dimensions: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for place, found in enumerate(compared):
        dimensions[found.by, bool(found.within)].append(place)
    reached = [False] * len(compared)
    for places in dimensions.values():
        corrected = holm([_smallest_p(compared[place].n_narratives) for place in places])
        for place, p in zip(places, corrected, strict=True):
            reached[place] = p <= LEVEL
    return reached


def narratives_needed(compared: Sequence[Difference]) -> int:
    """The fewest common narratives with which a difference of the largest dimension could stand out."""
    dimensions = [(found.by, bool(found.within)) for found in compared]
    largest = max(map(dimensions.count, set(dimensions)))
    narratives = 1
    while largest * _smallest_p(narratives) > LEVEL:
        narratives += 1
    return narratives


def _smallest_p(n_narratives: int) -> float:
    """The p of the two sign flips in which all narratives point one way."""
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


def measure_columns(
    sheets: Sequence[Values], columns: Sequence[MeasuredColumn], records: Records, seed: int
) -> tuple[list[LabelResults], int]:
    """The figures of each column and how many flips are behind a p, at most; p is corrected for all columns."""
    cells = [
        [_cells_of(sheet, division, records.narratives, records.weights) for sheet in sheets]
        for division in records.divisions
    ]
    parts = zip(records.divisions, cells, strict=True)
    tests = [test for division, own in parts for test in _tests(columns, division, own)]
    tested = [number for number, test in enumerate(tests) if len(test.comparison.weights) > 1]
    flips = n_flips(max(Counter(tests[number].pair.dimension for number in tested).values(), default=0))
    raw = dict(
        zip(tested, flip_p([tests[number].comparison.contributions for number in tested], flips, seed), strict=True)
    )
    families = [column.label or place for place, column in enumerate(columns)]
    of_label = _corrected(raw, lambda number: (tests[number].pair.dimension, families[tests[number].place]))
    of_all = _corrected(raw, lambda number: tests[number].pair.dimension)
    differences: dict[int, list[Difference]] = defaultdict(list)
    for number, test in enumerate(tests):
        p_values = (raw[number], of_label[number], of_all[number]) if number in raw else None
        differences[test.place].append(_difference(test, columns[test.place], p_values))
    return [_label(column, records, cells, differences[place]) for place, column in enumerate(columns)], flips


def _tests(columns: Sequence[MeasuredColumn], division: Grouping, cells: Sequence[Cells]) -> Iterator[_Test]:
    for sheet, own in enumerate(cells if division.pairs else ()):
        places = [(place, column) for place, column in enumerate(columns) if column.sheet == sheet]
        empty = [np.count_nonzero(own.units[own.of_group(group)], axis=0) == 0 for group in range(len(division.groups))]
        for pair in division.pairs:
            comparisons = list(_compare(own, pair))
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


def _difference(test: _Test, column: MeasuredColumn, p_values: tuple[float, float, float] | None) -> Difference:
    comparison = test.comparison
    n = len(comparison.weights)
    rates = tuple(map(column.told, comparison.rates)) if n else (None, None)
    between = comparison.first - comparison.second
    sums = (between, comparison.weights, comparison.units, column.bounded, column.farthest)
    ends = difference_ends(*sums) if n > 1 else None
    undefined: NoFigure | None = None if ends else "no_variation"
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
        difference=_figure(column.apart(comparison.difference)) if n else None,
        interval=rate_interval(ends and (column.apart(ends[0]), column.apart(ends[1])), "t"),
        p=_figure(p_values and p_values[0]),
        p_holm=_figure(p_values and p_values[1]),
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
    ends = None
    if n_narratives > 1:
        ends = rate_ends(totals, weights, squares) if column.bounded else _mean_ends(totals, weights, column.farthest)
        undefined = None if ends else "no_variation"
    return Rate(
        rate=_figure(column.told(float(totals.sum() / weights.sum()))) if n_units else None,
        interval=rate_interval(
            ends and (column.told(ends[0]), column.told(ends[1])), "wilson" if column.bounded else "t"
        ),
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
