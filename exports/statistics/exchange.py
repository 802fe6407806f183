"""Two groups against each other: whole answers exchanged within narratives, and what annotators alone make differ.

Constants were chosen by simulation. Source: exports/contracts/results.md#differences.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from exports.statistics.distributions import NORMAL_QUANTILE, SMALLEST_P, student_quantile, sum_tails
from exports.statistics.ratings import BoolArray, FloatArray, IntArray


class Ballots(NamedTuple):
    """Who judged the units of a sheet: a row for each vote."""

    units: IntArray  # Row of the sheet
    people: IntArray  # Number of the annotator; where units are of several tasks, another one in each
    values: FloatArray | None  # Votes × labels, NaN where missing; None where they do not tell how people differ


class Side(NamedTuple):
    """Both groups' answers on the narratives that they share, for labels with the same units and votes."""

    labels: IntArray
    units: IntArray  # Rows of the sheet
    votes: IntArray  # Rows of the ballots
    answers: IntArray  # Answer of each unit, counted from 0
    narratives: IntArray  # Of each answer, rising from 0
    first: BoolArray  # Whether an answer is of the first group
    weights: FloatArray  # Of each answer: that of one of its units
    shares: FloatArray  # What each narrative counts, 1 in all


class Held(NamedTuple):
    """What one label's difference is held against."""

    values: FloatArray  # What each answer adds to the difference, were it in the first group
    observed: float  # The difference, as far as its annotators allow
    side: Side
    leniency: float = 0.0  # What of the difference annotators make who did not judge both groups alike
    left: FloatArray | None = None  # What each narrative adds to the rest; None where all of it is left
    telling: int | None = None  # Narratives that tell how annotators differ; None where all of it is left


class Untold(NamedTuple):
    """Why a difference cannot be told from what annotators make."""

    reason: Literal["other_annotators", "few_judged_by_both", "majority_hides_annotators"]
    telling: int | None = None  # Narratives that tell how annotators differ, where they are too few


_ASSUMED_AGREEMENT = 0.667  # Correlation of two votes on a unit, by which they are weighed against those on other units
_ALIKE = 1e-9  # Where so small a part of the votes is another person's, annotators judged both groups alike
_NEARLY_ALIKE, _FEWEST_TELLING = 0.2, 5  # So it counts for alike where fewer narratives tell how annotators differ


def sides(
    values: FloatArray, ballots: Ballots | None, records: IntArray, told: "Told", shares: Sequence[FloatArray]
) -> Iterator[Side]:
    """Labels together that have the same units and votes; those without two shared narratives are left out."""
    units = np.flatnonzero(told.of_record[records] >= 0)
    votes = np.flatnonzero(np.isin(ballots.units, units)) if ballots else np.empty(0, np.int64)
    batches: dict[bytes, list[int]] = defaultdict(list)
    for label in range(values.shape[1]):
        if len(shares[label]) > 1:
            given = ~np.isnan(values[units, label])
            voted = ~np.isnan(ballots.values[votes, label]) if ballots and ballots.values is not None else given[:0]
            batches[given.tobytes() + voted.tobytes()].append(label)
    for labels in batches.values():
        given = units[~np.isnan(values[units, labels[0]])]
        first, place = told.of_record[records[given]] == 0, told.narratives[records[given]]
        both = np.intersect1d(place[first], place[~first])
        given = given[np.isin(place, both)]
        order = np.argsort(told.narratives[records[given]] * len(told.narratives) + records[given], kind="stable")
        given = given[order]
        starts = np.flatnonzero(np.diff(records[given], prepend=-1))
        of_answer = records[given[starts]]
        cast = votes[np.isin(ballots.units[votes], given)] if ballots else votes
        if ballots and ballots.values is not None:
            cast = cast[~np.isnan(ballots.values[cast, labels[0]])]
        yield Side(
            labels=np.array(labels),
            units=given,
            votes=cast,
            answers=np.cumsum(np.diff(records[given], prepend=-1) != 0) - 1,
            narratives=np.searchsorted(both, told.narratives[of_answer]),
            first=told.of_record[of_answer] == 0,
            weights=told.weights[of_answer],
            shares=shares[labels[0]],
        )


class Told(NamedTuple):
    """Of every record."""

    of_record: IntArray  # 0 of the first group, 1 of the second, else -1
    narratives: IntArray
    weights: FloatArray


def held_against(values: FloatArray, ballots: Ballots | None, side: Side) -> list[Held] | Untold:
    """One for each label."""
    pull = _Pull(side)
    totals = pull.summed(values[np.ix_(side.units, side.labels)])
    alike = [_held(side, pull.spread(totals)[:, column]) for column in range(len(side.labels))]
    if ballots is None:
        return alike
    crossed = _Crossed(values, ballots, side, pull)
    if crossed.balanced:
        return alike
    if crossed.told:
        return crossed.held(totals)
    if ballots.values is not None:
        return crossed.why
    alone = _Crossed(values, ballots._replace(values=np.zeros((len(ballots.units), values.shape[1]))), side, pull)
    return Untold("majority_hides_annotators") if alone.told else alone.why


def paired(differences: FloatArray | IntArray) -> Held:
    """One answer of either group a narrative, which differ so."""
    answers = np.arange(2 * len(differences))
    first, shares = answers % 2 == 0, np.full(len(differences), 1 / max(len(differences), 1))
    side = Side(answers[:1], answers, answers[:0], answers, answers // 2, first, np.ones(len(answers)), shares)
    return _held(side, np.repeat(np.asarray(differences, np.float64), 2) * np.where(first, 0.5, -0.5))


def _held(side: Side, values: FloatArray) -> Held:
    return Held(values, float(values[side.first].sum()), side)


class _Pull:
    """How much each answer of a side counts in the difference; answers of unequal weight by a ratio's first terms."""

    def __init__(self, side: Side) -> None:
        self.side, places = side, side.narratives
        self.sizes = side.weights * np.bincount(side.answers)
        whole = np.bincount(places, self.sizes)
        count, ahead = np.bincount(places), np.bincount(places, side.first)
        self.each = side.shares * count**2 / (ahead * (count - ahead) * whole)
        share = np.bincount(places, self.sizes * side.first) / whole
        self.by_answer = self.each[places] * (side.first - share[places])
        self.whole = whole

    def summed(self, of_unit: FloatArray) -> FloatArray:
        """Answers × labels: weighted sums over their units."""
        return self.side.weights[:, np.newaxis] * _summed(self.side.answers, of_unit, len(self.side.first))

    def spread(self, totals: FloatArray) -> FloatArray:
        """What each answer adds to the difference if it is in the first group; nothing in all within a narrative."""
        places = self.side.narratives
        means = _summed(places, totals, len(self.whole)) / self.whole[:, np.newaxis]
        found: FloatArray = self.each[places, np.newaxis] * (totals - means[places] * self.sizes[:, np.newaxis])
        return found


def _summed(places: IntArray, columns: FloatArray, count: int) -> FloatArray:
    found = [np.bincount(places, column, count).astype(np.float64) for column in columns.T]
    return np.array(found).reshape(columns.shape[1], count).T


class _Crossed:
    """Votes as a sum of narrative, group and annotator, by least squares; leniency is what an annotator adds.

    Votes on a unit are alike as `_ASSUMED_AGREEMENT` says (generalised least squares, Fuller & Battese 1973).
    """

    def __init__(self, values: FloatArray, ballots: Ballots, side: Side, pull: _Pull) -> None:
        self.side, self.pull = side, pull
        unit = np.searchsorted(np.sort(side.units), ballots.units[side.votes])
        unit = np.argsort(side.units)[unit]
        _, person = np.unique(ballots.people[side.votes], return_inverse=True)
        n_units, n_people = len(side.units), int(person.max(initial=-1)) + 1
        votes = np.bincount(unit, minlength=n_units)
        of_unit: FloatArray = pull.by_answer[side.answers] * side.weights[side.answers]
        more: FloatArray = np.bincount(person, (of_unit / np.maximum(votes, 1))[unit], n_people).astype(np.float64)
        unlike = float(np.abs(more).sum()) / 2
        self.balanced = unlike < _ALIKE
        if self.balanced:
            return
        self.who: FloatArray
        self.shares: FloatArray | None = None
        if ballots.values is None:  # A row for each unit, of what its annotators are on average
            rows, alike = np.arange(n_units), np.zeros(n_units)
            parts = np.bincount(unit * n_people + person, 1 / votes[unit], n_units * n_people).astype(np.float64)
            self.who = parts.reshape(n_units, n_people)
            says: FloatArray = values[np.ix_(side.units, side.labels)]
        else:
            rows, self.who = unit, np.eye(n_people)[person]
            says = ballots.values[np.ix_(side.votes, side.labels)]
            self.shares = _summed(unit, says, n_units) / np.maximum(votes, 1)[:, np.newaxis]
            alike = 1 - np.sqrt((1 - _ASSUMED_AGREEMENT) / (1 + (votes - 1) * _ASSUMED_AGREEMENT))
        self.rows, self.narrative, self.alike = rows, side.narratives[side.answers[rows]], alike[rows]
        self.per_unit = np.bincount(rows, minlength=n_units)
        is_told = self._solve(says, more, of_unit)
        self.told = is_told and self.telling >= _FEWEST_TELLING
        self.why = Untold("few_judged_by_both", int(self.telling)) if is_told else Untold("other_annotators")
        self.balanced = not self.told and unlike < _NEARLY_ALIKE

    def _solve(self, says: FloatArray, more: FloatArray, of_unit: FloatArray) -> bool:
        """Whether votes tell how much leniency there is in the difference, in which annotators weigh so much more."""
        design = self._apart(np.column_stack([self.who, self.side.first[self.side.answers[self.rows]]]))
        inverse = np.linalg.pinv(design.T @ design, rcond=1e-10, hermitian=True)
        wanted = np.append(more, 0.0)
        telling = inverse @ wanted
        is_told = float(np.abs(design.T @ (design @ telling) - wanted).max()) < 1e-6 * float(np.abs(more).max())
        says = self._apart(says)
        fitted = inverse @ (design.T @ says)
        self.lenient = fitted[:-1]
        self.effects = more @ self.lenient
        self.noise = (design @ telling)[:, np.newaxis] * (says - design @ fitted)
        self._weigh(design @ telling, of_unit / np.maximum(self.per_unit, 1))
        return is_told

    def _apart(self, columns: FloatArray) -> FloatArray:
        """The columns less what a narrative has in common, votes on a unit weighed as alike as they are."""
        means = _summed(self.rows, columns, len(self.per_unit)) / np.maximum(self.per_unit, 1)[:, np.newaxis]
        own = columns - self.alike[:, np.newaxis] * means[self.rows]
        level = 1 - self.alike
        n = len(self.side.shares)
        common = _summed(self.narrative, level[:, np.newaxis] * own, n)
        common /= np.bincount(self.narrative, level**2, n)[:, np.newaxis]
        found: FloatArray = own - level[:, np.newaxis] * common[self.narrative]
        return found

    def _weigh(self, telling: FloatArray, plain: FloatArray) -> None:
        """How many narratives tell the leniencies, and how much wider they make the variance by the design alone."""
        means = np.bincount(self.rows, telling, len(self.per_unit)) / np.maximum(self.per_unit, 1)
        own = telling - self.alike * means[self.rows]
        by_narrative = np.bincount(self.narrative, own**2, len(self.side.shares))
        self.telling = round(float(by_narrative.sum() ** 2 / (by_narrative**2).sum()), 6)

        def variance(each: FloatArray) -> float:
            together = np.bincount(self.rows, each)
            alone = float((each**2).sum())
            return _ASSUMED_AGREEMENT * float((together**2).sum()) + (1 - _ASSUMED_AGREEMENT) * alone

        self.wider = variance(plain[self.rows] - own) / variance(plain[self.rows])

    def held(self, totals: FloatArray) -> list[Held]:
        """By the shares of votes, also where a value is no such share, as a finding's is not: only they can be told."""
        n_units, valued = len(self.side.units), totals
        totals = valued if self.shares is None else self.pull.summed(self.shares)
        effects = self.effects + self.pull.by_answer @ (valued - totals)
        effects[np.abs(effects) < _ALIKE] = 0.0  # What is left of rounding
        of_unit = _summed(self.rows, self.who @ self.lenient, n_units) / np.maximum(self.per_unit, 1)[:, np.newaxis]
        left = totals - self.pull.summed(of_unit)
        places, n = self.side.narratives, len(self.side.shares)
        plain = _summed(places, self.pull.by_answer[:, np.newaxis] * left, n)
        whole = plain - _summed(self.narrative, self.noise, n)
        spread = self.pull.spread(left)
        quantile = student_quantile(max(1, int(self.telling) - 1)) / NORMAL_QUANTILE
        found = []
        for column in range(len(self.side.labels)):
            before, after = (float(np.var(each[:, column])) for each in (plain, whole))
            measured = after / before if before > 0 else 1.0
            ratio = 1 + max(0.0, (self.wider + measured) / 2 - 1) * quantile**2
            own = _held(self.side, spread[:, column])
            each = whole[:, column] / self.side.shares
            middle = float(self.side.shares @ each)
            stretch = math.sqrt(ratio / measured) if measured > 0 else 1.0
            found.append(
                own._replace(
                    observed=own.observed / math.sqrt(ratio),
                    leniency=float(effects[column]),
                    telling=int(self.telling),
                    left=middle + (each - middle) * max(1.0, stretch),
                )
            )
        return found


LEVEL = 0.05  # At a p of this or less after correction a difference is beyond chance
_DRAWS_A_TEST = 40  # For each test of a family at the level, so that the smallest p can survive the correction
_FIRST_LOOK, _FEWEST_DRAWS = 1_000, 10_000
_SETTLED = 200  # A test with more exchanges in its smaller tail needs no more: its p is not small
_MANY_DIFFER = 20  # Of so many narratives on, exchanges with the same difference count half (mid-p)
_TIE = 1e-9  # Sums closer than this to each other, as a share of the largest possible one, are equal
_MOST_STEPS = 4096  # A narrative's sums lie on a grid of so many steps at most, or exchanges are sampled
_MOST_WORK, _MOST_CHANCES = 10**6, 4000  # Of finding a narrative's sums, and of adding those of all up
_NEAR = 1e-6  # Of a step: less is rounding
_AT_ONCE = 2**21  # Random numbers


def n_draws(largest_family: int) -> int:
    return max(_FEWEST_DRAWS, math.ceil(_DRAWS_A_TEST * largest_family / LEVEL))


def exchange_p(tests: Sequence[Held], draws: int, seed: int) -> list[float]:
    """Two-sided p, twice the smaller tail, if any of a narrative's answers could as well be of the other group.

    All exchanges count where a narrative's answers lie on a grid; else they are sampled, the same for all tests with as
    many answers in each narrative, and a difference so large that the smallest p is certain (Hoeffding's bound) gets it
    without any.
    """
    found = [_exact_p(test) for test in tests]
    left: dict[bytes, list[int]] = defaultdict(list)
    for place, test in enumerate(tests):
        if found[place] is None and _is_far(test, draws):
            found[place] = 2 / (draws + 1)
        elif found[place] is None:
            of = test.side.narratives
            left[np.stack([np.bincount(of), np.bincount(of, test.side.first)]).tobytes()].append(place)
    for places in left.values():
        sampled = _sampled_p([tests[place] for place in places], draws, seed)
        for place, p in zip(places, sampled, strict=True):
            found[place] = p
    return [1.0 if p is None else p for p in found]


def _exact_p(test: Held) -> float | None:
    """Over all exchanges; None where a narrative's sums lie on no coarse grid."""
    side, starts = test.side, np.flatnonzero(np.diff(test.side.narratives, prepend=-1))
    least = np.minimum.reduceat(test.values, starts)
    excess = test.values - least[side.narratives]
    step = _step(excess)
    if step is None:
        return 1.0 if float(np.abs(test.values).max(initial=0)) < _TIE else None
    steps = np.rint(excess / step).astype(np.int64)
    taken = np.bincount(side.narratives, side.first).astype(np.int64)
    kinds: dict[tuple[tuple[int, ...], int], int] = defaultdict(int)
    for own, ahead in zip(np.split(steps, starts[1:]), taken.tolist(), strict=True):
        kinds[tuple(sorted(own.tolist())), ahead] += bool(own.any())
    if any(sum(own) > _MOST_STEPS or len(own) * ahead * sum(own) > _MOST_WORK for own, ahead in kinds):
        return None
    width = max(sum(own) for own, _ in kinds) + 1
    chances = np.array([_subset_chances(own, ahead, width) for own, ahead in kinds])
    there = np.flatnonzero(chances.any(axis=0))
    if chances.shape[0] * len(there) > _MOST_CHANCES:
        return None
    total = (test.observed - float(taken @ least)) / step
    sums = np.array([math.ceil(total - _NEAR), math.floor(total + _NEAR) + 1])
    met = np.tile(np.array(list(kinds.values())), (2, 1))
    above, beyond = sum_tails(there, chances[:, there], met, sums).tolist()
    if sum(kinds.values()) >= _MANY_DIFFER:
        above = beyond = (above + beyond) / 2
    return min(1.0, 2 * max(min(float(above), 1 - float(beyond)), SMALLEST_P))


def _step(excess: FloatArray) -> float | None:
    """The greatest number of which all are multiples; None where it is small, or all are 0."""
    largest = float(excess.max(initial=0.0))
    if largest < _TIE:
        return None
    step = 0.0
    for value in np.unique(np.round(excess / largest, 9)).tolist():
        rest = value
        while rest > _NEAR:
            step, rest = rest, abs(step - rest * round(step / rest))
        if 0 < step < 1 / _MOST_STEPS:
            return None
    return step * largest


@lru_cache(maxsize=4096)
def _subset_chances(values: tuple[int, ...], taken: int, width: int) -> FloatArray:
    """How likely each sum of so many of the values is, from 0 to less than the width."""
    ways = np.zeros((taken + 1, width))
    ways[0, 0] = 1
    for value in values:
        ways[1:, value:] += ways[:-1, : width - value].copy()
    chances: FloatArray = ways[taken] / math.comb(len(values), taken)
    return chances


def _is_far(test: Held, draws: int) -> bool:
    places, count = test.side.narratives, np.bincount(test.side.narratives)
    ordered = test.values[np.lexsort((test.values, places))]
    rank = np.arange(len(places)) - np.repeat(np.cumsum(count) - count, count)
    ahead = np.bincount(places, test.side.first)[places]
    ends = [np.bincount(places, ordered * chosen) for chosen in (rank >= count[places] - ahead, rank < ahead)]
    squares = float(((ends[0] - ends[1]) ** 2).sum())
    return squares > 0 and math.exp(-2 * test.observed**2 / squares) < 1 / (draws + 1)


def _sampled_p(tests: Sequence[Held], draws: int, seed: int) -> FloatArray:
    side = tests[0].side
    table = np.stack([test.values for test in tests], axis=1)
    observed = np.array([test.observed for test in tests])
    near = _TIE * np.abs(table).sum(axis=0)
    counts, made, left = np.zeros((2, len(tests))), np.zeros(len(tests)), np.arange(len(tests))
    drawn = _exchanger(side, table, seed)
    rows, done, look = max(1, _AT_ONCE // len(side.first)), 0, _FIRST_LOOK
    while done < draws and len(left):
        some = min(rows, min(look, draws) - done)
        sums = drawn(some, left)
        counts[0, left] += np.count_nonzero(sums >= (observed - near)[left], axis=0)
        counts[1, left] += np.count_nonzero(sums <= (observed + near)[left], axis=0)
        done += some
        made[left] = done
        if done == look:
            left, look = left[counts[:, left].min(axis=0) < _SETTLED], look * 10
    found: FloatArray = np.minimum(1.0, 2 * (1 + counts.min(axis=0)) / (1 + made))
    return found


def _exchanger(side: Side, table: FloatArray, seed: int) -> Callable[[int, IntArray], FloatArray]:
    """Sums over those that fall to the first group, of so many exchanges and of some columns of the table."""
    generator = np.random.default_rng(seed)
    count = np.bincount(side.narratives)
    ahead = np.bincount(side.narratives, side.first).astype(np.int64)
    starts = np.cumsum(count) - count
    halves, others = starts[count == 2], [int(size) for size in np.unique(count) if size > 2]
    middles, sides_of = table[halves] + table[halves + 1], table[halves] - table[halves + 1]

    def sums(rows: int, columns: IntArray) -> FloatArray:
        drawn = np.frombuffer(generator.bytes(rows * -(-len(halves) // 8)), np.uint8).reshape(rows, -1)
        signs = np.unpackbits(drawn, axis=1, count=len(halves)).astype(np.float64)
        own = sides_of[:, columns]
        found: FloatArray = signs @ own + (middles[:, columns] - own).sum(axis=0) / 2
        for size in others:
            narratives = np.flatnonzero(count == size)
            keys = generator.random((rows, len(narratives), size))
            last = np.take_along_axis(np.sort(keys, axis=2), (ahead[narratives] - 1)[np.newaxis, :, np.newaxis], axis=2)
            places = (starts[narratives][:, np.newaxis] + np.arange(size)).reshape(-1)
            found += (keys <= last).reshape(rows, -1).astype(np.float64) @ table[np.ix_(places, columns)]
        return found

    return sums
