"""Rates that people's labels correct and a judge helps with (exports/contracts/results.md#with-a-judges-help)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from annotation.argilla.labels import LABELS, TaskName
from exports.statistics.distributions import NORMAL_QUANTILE, rounded
from exports.statistics.groups import divided, number_names
from exports.statistics.rates import (
    Values,
    degrees_of,
    few_narratives,
    independent_units,
    rate_ends,
    rate_interval,
    share_ends,
)
from exports.statistics.ratings import BoolArray, FloatArray, IntArray, Ratings
from exports.statistics.results_schema import JudgeHelp, LabelResults, NoHelp, Rate
from exports.statistics.study import Judged, Study
from pipeline.core.sentences import sentences

_say = sentences(__file__)

LEVEL = 0.01  # Of a task: half of it for all groups, half for the judge's own scores
_HALVES = 2
_SCREEN = 2.5  # Standard deviations from which permutations are counted
_PERMUTATIONS = 20  # As large as what was seen, at which a test of the family is just no longer beyond the level
_FAR = 4.0  # Standard deviations by which the records that a sample stands for may differ from those that are there
_FEWEST_EXPECTED = 10.0  # Labelled narratives that a group must be expected to have before it is looked at so


class Division(NamedTuple):
    column: str
    names: tuple[str, ...]
    of_record: IntArray  # Number of each record's value


class Gap(NamedTuple):
    column: str
    name: str
    share: float
    elsewhere: float  # The same of all other records


class Leaning(NamedTuple):
    label: int  # Its column
    by_certainty: bool  # Whether it is how far the score is from one half, and not the score
    share: float


class _Score(NamedTuple):
    label: int
    by_certainty: bool
    units: IntArray  # The units that have it
    ranks: FloatArray  # Their ranks, from 0 to 1; equal scores share the mean of theirs


def uneven_share(narratives: IntArray, labelled: BoolArray, divisions: Sequence[Division], seed: int) -> Gap | None:
    """The group whose share of labelled records differs most, where some differ beyond chance.

    Two tests of each group, corrected by Bonferroni: labelled shares are exchanged among narratives, and which of a
    narrative's records are labelled within it (Mantel & Haenszel 1959).
    """
    tests = [
        (division, group, np.equal(division.of_record, group))
        for division in divisions
        if len(division.names) > 1
        for group in range(len(division.names))
    ]
    n_tests = 2 * len(tests) * _HALVES
    size = _sums(narratives, np.ones(len(narratives)))
    drawn = _sums(narratives, labelled)
    worst: tuple[float, Gap] | None = None
    for division, group, member in tests:
        own = _sums(narratives, member)
        p_between = _between(drawn / size, own - own.sum() / size.sum() * size, n_tests, seed)
        found = _sums(narratives, labelled & member)
        p = min(p_between, _within(size, drawn, own, found)) * n_tests
        if p <= LEVEL and (worst is None or p < worst[0]):
            shares = float(labelled[member].mean()), float(labelled[~member].mean())
            worst = (p, Gap(division.column, division.names[group], *shares))
    return worst and worst[1]


def chosen_by_score(
    narratives: IntArray, records: IntArray, labelled: BoolArray, p_yes: FloatArray, seed: int
) -> Leaning | None:
    """A label by whose P(yes), or its distance from one half, labelled units differ from the rest beyond chance.

    Three tests of each, corrected by Bonferroni: labelled shares are exchanged among narratives, among the records of
    each narrative, and among the units of each record.
    """
    scores = list(_scores(p_yes))
    n_tests = 3 * len(scores) * _HALVES
    for score in scores:
        chosen = labelled[score.units]
        if not chosen.any() or chosen.all():
            continue
        _, narrative = np.unique(narratives[score.units], return_inverse=True)
        _, first, record = np.unique(records[score.units], return_index=True, return_inverse=True)
        shares, ranks = (_means(record, each) for each in (chosen.astype(np.float64), score.ranks))
        size = _sums(narrative, np.ones(len(narrative)))
        parts = _sums(narrative, score.ranks - score.ranks.mean())
        if (
            _exchanged(record, chosen.astype(np.float64), score.ranks) * n_tests <= LEVEL
            or _exchanged(narrative[first], shares, ranks) * n_tests <= LEVEL
            or _between(_sums(narrative, chosen) / size, parts, n_tests, seed) * n_tests <= LEVEL
        ):
            higher = 0.5 + float(score.ranks[chosen].mean() - score.ranks[~chosen].mean())
            return Leaning(score.label, score.by_certainty, higher)
    return None


def _scores(p_yes: FloatArray) -> Iterator[_Score]:
    """What units are ranked by; nothing by which all are alike."""
    for label in range(p_yes.shape[1]):
        units = np.flatnonzero(~np.isnan(p_yes[:, label]))
        given = p_yes[units, label]
        # Equal but for rounding is equal: .3 is as far from one half as .7.
        for by_certainty, each in ((False, given), (True, np.round(np.abs(given - 0.5), 9))):
            _, number, count = np.unique(each, return_inverse=True, return_counts=True)
            if len(count) > 1:
                yield _Score(label, by_certainty, units, ((np.cumsum(count) - count / 2) / len(units))[number])


def _means(numbers: IntArray, each: FloatArray) -> FloatArray:
    return _sums(numbers, each) / _sums(numbers, np.ones(len(numbers)))


def _exchanged(strata: IntArray, shares: FloatArray, scores: FloatArray) -> float:
    """A bound of p (Bennett 1962, J Am Stat Assoc 57:33–45): scores of rare answers are too skew for a normal one."""
    _, strata = np.unique(strata, return_inverse=True)
    size = _sums(strata, np.ones(len(strata)))
    own, score = shares - _means(strata, shares)[strata], scores - _means(strata, scores)[strata]
    variance = float((_sums(strata, own**2) * _sums(strata, score**2) / np.maximum(size - 1, 1)).sum())
    most = float(np.abs(score).max(initial=0.0))
    if variance <= 0 or most <= 0:
        return 1.0
    excess = most * abs(float(own @ score)) / variance
    return min(2 * math.exp(-variance / most**2 * ((1 + excess) * math.log1p(excess) - excess)), 1.0)


def _sums(places: IntArray, each: FloatArray | BoolArray, n: int = 0) -> FloatArray:
    """The sum at each place up to the last one, or of `n` places."""
    found: FloatArray = np.bincount(places, each, n or int(places.max(initial=0)) + 1).astype(np.float64)
    return found


def _between(shares: FloatArray, parts: FloatArray, n_tests: int, seed: int) -> float:
    n = len(shares)
    spread = float(((shares - shares.mean()) ** 2).sum() * (parts**2).sum())
    observed = abs(float(shares @ parts))
    if n < 2 or spread <= 0 or observed < _SCREEN * math.sqrt(spread / (n - 1)):
        return 1.0
    generator = np.random.default_rng(seed)
    permutations = math.ceil(_PERMUTATIONS * n_tests / LEVEL)
    exchanged = shares.copy()
    as_large = 0
    for _ in range(permutations):
        generator.shuffle(exchanged)
        as_large += abs(float(exchanged @ parts)) >= observed - 1e-9
        if as_large >= _PERMUTATIONS:
            return 1.0
    return (1 + as_large) / (1 + permutations)


def _within(size: FloatArray, drawn: FloatArray, own: FloatArray, found: FloatArray) -> float:
    """Two-sided p of how many labelled records the group has, given each narrative's, by the normal approximation."""
    several = size > 1
    size, drawn, own, found = size[several], drawn[several], own[several], found[several]
    variance = float((drawn * (size - drawn) * own * (size - own) / (size**2 * (size - 1))).sum())
    distance = max(abs(float((found - drawn * own / size).sum())) - 0.5, 0.0)
    return math.erfc(distance / math.sqrt(2 * variance)) if variance > 0 else 1.0


def misfit(narratives: IntArray, probabilities: FloatArray, divisions: Sequence[Division]) -> Gap | None:
    """The group that a sample with these inclusion probabilities (NaN: not labelled) misses most, if any."""
    stands_for, n_narratives = _stands_for(narratives, probabilities)
    worst: tuple[float, Gap] | None = None
    for division in divisions:
        for group, name in enumerate(division.names if len(division.names) > 1 else ()):
            member = np.equal(division.of_record, group)
            part = float(member.mean())
            expected = part * n_narratives
            if expected < _FEWEST_EXPECTED:
                continue
            distance = _distance(narratives, stands_for, member - part, n_narratives)
            if distance > _FAR and (worst is None or distance > worst[0]):
                shares = float(stands_for[member].mean()), float(stands_for[~member].mean())
                worst = (distance, Gap(division.column, name, *shares))
    return worst and worst[1]


def misfit_by_score(narratives: IntArray, probabilities: FloatArray, p_yes: FloatArray) -> Leaning | None:
    """The label by whose scores a sample with these inclusion probabilities misses the judged units most."""
    worst: tuple[float, Leaning] | None = None
    for score in _scores(p_yes):
        given = probabilities[score.units]
        if np.isnan(given).all():
            continue
        _, narrative = np.unique(narratives[score.units], return_inverse=True)
        stands_for, n_narratives = _stands_for(narrative, given)
        centred = score.ranks - score.ranks.mean()
        distance = _distance(narrative, stands_for, centred, n_narratives)
        if n_narratives >= _FEWEST_EXPECTED and distance > _FAR and (worst is None or distance > worst[0]):
            worst = (distance, Leaning(score.label, score.by_certainty, 0.5 + float((stands_for * centred).mean())))
    return worst and worst[1]


def _stands_for(narratives: IntArray, probabilities: FloatArray) -> tuple[FloatArray, int]:
    """How many of all each stands for, 0 where it is not labelled, and how many narratives are labelled."""
    labelled = ~np.isnan(probabilities)
    stands_for = np.where(labelled, 1 / np.where(labelled, probabilities, 1.0), 0.0)
    return stands_for * (len(narratives) / stands_for.sum()), len(np.unique(narratives[labelled]))


def _distance(narratives: IntArray, stands_for: FloatArray, centred: FloatArray, n_narratives: int) -> float:
    """Standard deviations by which the sum of what is centred, as the labelled ones stand for it, is off 0."""
    each = stands_for * centred
    seen = float((_sums(narratives, each) ** 2).sum())
    by_chance = float((centred**2).mean()) * len(centred) ** 2 / n_narratives
    return abs(float(each.sum())) / math.sqrt(max(seen, by_chance))


def _divisions_of(
    columns: Sequence[str], records: Sequence[str], provenance: Mapping[str, Mapping[str, str]]
) -> Iterator[Division]:
    for column in dict.fromkeys(columns):
        values = [provenance.get(record, {}).get(column, "") for record in records]
        names = tuple(sorted(set(values)))
        number = {name: place for place, name in enumerate(names)}
        yield Division(column, names, np.array([number[value] for value in values], np.int64))


FEWEST_NARRATIVES = 30  # Labelled ones of a group: of fewer it is not known well enough what the judge errs by
_FEWEST_RESTED_ON = 10.0  # The normal interval is taken where the variance rests on so many labelled units, of
_FEWEST_LABELLED = 40  # So many
_WIDEST = 1.02  # Where the interval would be wider than so many times that of people alone, the judge does not count


class Units(NamedTuple):
    narratives: IntArray
    voted: BoolArray
    values: FloatArray  # What it is worth by their votes; NaN where they settle nothing, or there are none
    weights: FloatArray
    p_yes: FloatArray  # The judge's probability of yes; NaN where it did not judge


class Powered(NamedTuple):
    rate: float
    ends: tuple[float, float]
    method: str
    weight: float  # How much the judge counts: 0 not at all


def prediction_powered(units: Units) -> Powered:
    """The rate with the judge's help, from two narratives with values or more (Angelopoulos, Duchi & Zrnic 2023).

    People's weighted mean, less λ times by how much the judge's mean on what they labelled is above its mean on all; λ
    makes the variance of this over narratives smallest (arXiv:2311.01453).
    """
    _, cluster = np.unique(units.narratives, return_inverse=True)
    n = int(cluster.max()) + 1
    valued, judged = ~np.isnan(units.values), ~np.isnan(units.p_yes)
    both = units.voted & judged
    totals = _sums(cluster[valued], (units.weights * units.values)[valued], n)
    weights = _sums(cluster[valued], units.weights[valued], n)
    squares = _sums(cluster[valued], units.weights[valued] ** 2, n)
    there = weights > 0
    rate = float(totals.sum() / weights.sum())
    independent = independent_units(totals[there], weights[there], squares[there])
    degrees, few = degrees_of(weights[there]), any(few_narratives(totals[there], weights[there]))
    own = rate_ends(totals[there], weights[there], squares[there])
    alone = Powered(rate, own, "narratives" if few else "wilson", 0.0)
    more = int(np.count_nonzero(judged & ~units.voted))
    if not more or not both.any() or np.ptp(units.p_yes[judged]) == 0:
        return alone
    clustered = len(cluster) > n
    people, judge, excess = _parts(units, cluster, n, rate)
    weight = _weight(units, people, judge, clustered)
    powered = rate - weight * excess
    errors = people - weight * judge
    if not clustered and degrees + 1 >= _FEWEST_LABELLED and _rests_on(errors[there]) >= _FEWEST_RESTED_ON:
        half = NORMAL_QUANTILE * math.sqrt(float((errors**2).sum()))
        found = Powered(powered, (max(powered - half, 0.0), min(powered + half, 1.0)), "normal", weight)
    else:
        squares_alone = float((people**2).sum())
        kept = float((errors**2).sum()) / squares_alone if squares_alone else 1.0
        ends = share_ends(powered, independent / kept, degrees)
        if few:  # The bound by narratives holds whatever the judge says
            ends = min(ends[0], own[0]), max(ends[1], own[1])
        found = Powered(powered, ends, "wilson", weight)
    own_width, width = (each.ends[1] - each.ends[0] for each in (alone, found))
    return found if width <= _WIDEST * own_width else alone


def _parts(units: Units, cluster: IntArray, n: int, rate: float) -> tuple[FloatArray, FloatArray, float]:
    """By narrative its part of people's mean and of the judge's on labelled units less all; and that difference."""
    valued, judged = ~np.isnan(units.values), ~np.isnan(units.p_yes)
    both, more = units.voted & judged, judged & ~units.voted
    size = int(np.count_nonzero(judged))
    share = units.weights[valued] / units.weights[valued].sum()
    people = _sums(cluster[valued], share * (units.values[valued] - rate), n)
    own = units.weights[both] / units.weights[both].sum()
    here, everywhere = float(own @ units.p_yes[both]), float(units.p_yes[judged].mean())
    equal = bool(np.ptp(units.weights[both]) < 1e-12)
    judge = _sums(cluster[both], own * (units.p_yes[both] - here), n)
    for part, centre in ((both, here), (more, float(units.p_yes[more].mean()))):
        around = units.p_yes[part] - (centre if equal else everywhere)
        judge -= _sums(cluster[part], around / size, n)
    return people, judge, here - everywhere


def _weight(units: Units, people: FloatArray, judge: FloatArray, clustered: bool) -> float:
    """λ, from 0 to all judged ÷ those not labelled; without clusters the variance is of all, as `ppi-python` has it."""
    judged = ~np.isnan(units.p_yes)
    p_yes = units.p_yes[judged]
    size, more = len(p_yes), int(np.count_nonzero(judged & ~units.voted))
    covariance = float(people @ judge)
    variance = float((judge**2).sum())
    if not clustered and bool(np.ptp(units.weights[units.voted]) < 1e-12):
        variance = float(np.var(p_yes, ddof=1)) * more / (size * (size - more))
    return min(max(covariance / variance, 0.0), size / more) if variance > 0 else 0.0


def _rests_on(errors: FloatArray) -> float:
    """How many units of equal size a sum of squares would rest on as well."""
    squares = errors**2
    return float(squares.sum() ** 2 / (squares**2).sum()) if squares.any() else 0.0


_STRATA = ("model_name", "language", "narrative_type")  # Labelled alike, whatever results are grouped by
_PROBABILITY = "inclusion_probability"


class _Sheet(NamedTuple):
    records: IntArray
    voted: BoolArray
    values: FloatArray  # What it is worth by their votes; NaN where there is no value
    p_yes: FloatArray  # The judge's probability of yes; NaN where it did not judge


class Helped:
    def __init__(
        self, study: Study, judged: Judged, tasks: Mapping[TaskName, Values], by: Sequence[str], seed: int
    ) -> None:
        self.study, self.judged, self.by, self.seed = study, judged, by, seed
        self.remarks: list[str] = []
        self.figures: dict[tuple[TaskName, str, frozenset[tuple[str, str]]], dict[str, object]] = {}
        self.records = sorted(judged.narratives)
        self.narratives = number_names([judged.narratives[record] for record in self.records])
        weights = np.array([1 / (study.probabilities or {}).get(record, 1.0) for record in self.records])
        tables = {table.task: table for table in study.tables}
        for task, values in tasks.items():
            sheet = _sheet(tables[task], values, judged, {record: place for place, record in enumerate(self.records)})
            refusal = self._remark(task, sheet)
            for division in divided(by, self.records, judged.provenance):
                groups = division.of_record[sheet.records]
                for number, group in enumerate(division.groups):
                    own = np.flatnonzero(groups == number)
                    records = sheet.records[own]
                    for place, label in enumerate(LABELS[task]):
                        columns = sheet.voted[own, place], sheet.values[own, place]
                        p_yes = sheet.p_yes[own, place]
                        units = Units(self.narratives[records], *columns, weights[records], p_yes)
                        self.figures[task, label, frozenset(group.items())] = self._figures(units, refusal)

    def add_to(self, task: TaskName, label: str, found: LabelResults) -> LabelResults:
        """A rate has no help where the judge says nothing on the label or people did not label any."""

        def fields(rate: Rate, by: Mapping[str, str]) -> dict[str, object]:
            return self.figures.get((task, label, frozenset(by.items())), {}) if rate.n_units else {}

        groups = tuple(group.model_copy(update=fields(group, group.by)) for group in found.groups)
        return found.model_copy(update={**fields(found, {}), "groups": groups})

    def _remark(self, task: TaskName, sheet: _Sheet) -> bool:
        voted = sheet.voted.any(axis=1)
        lacking = int(np.count_nonzero(voted & np.isnan(sheet.p_yes).all(axis=1)))
        if lacking:
            self.remarks.append(
                f"{task}: of {int(np.count_nonzero(voted)):,} labelled units {lacking:,} have no judgement of "
                f"{self.judged.judge}; people's labels on them count all the same."
            )
        if gap := self._gap(sheet):
            self.remarks.append(_refusal(task, gap, self.study.probabilities is not None))
            return True
        if leaning := self._leaning(sheet):
            self.remarks.append(_refusal_by_score(task, leaning))
        return bool(leaning)

    def _figures(self, units: Units, refused: bool) -> dict[str, object]:
        judged = ~np.isnan(units.p_yes)
        n_narratives = len(np.unique(units.narratives[~np.isnan(units.values) & judged]))
        reason: NoHelp | None = None
        if not judged.any():
            reason = "not_judged"
        elif refused:
            reason = "not_a_random_part"
        elif n_narratives < FEWEST_NARRATIVES:
            reason = "few_narratives"
        elif not (judged & ~units.voted).any():
            reason = "all_labelled"
        found = None if reason else prediction_powered(units)
        behind = JudgeHelp(
            judge=self.judged.judge,
            n_judged=int(np.count_nonzero(judged)),
            n_labelled=int(np.count_nonzero(judged & units.voted)),
            n_narratives=n_narratives,
            weight=None if found is None else rounded(found.weight),
            undefined=reason,
        )
        if found is None:
            return {"judge_help": behind}
        return {
            "rate_ppi": rounded(found.rate),
            "interval_ppi": rate_interval(found.ends, found.method),
            "judge_help": behind,
        }

    def _gap(self, sheet: _Sheet) -> Gap | None:
        was_judged, was_voted = (np.zeros(len(self.records), np.bool_) for _ in range(2))
        was_judged[sheet.records[~np.isnan(sheet.p_yes).all(axis=1)]] = True
        was_voted[sheet.records[sheet.voted.any(axis=1)]] = True
        columns = [*self.by, *_STRATA]
        probabilities, provenance = self.study.probabilities, self.judged.provenance
        if probabilities is None:
            return self._uneven(np.flatnonzero(was_judged), was_voted, provenance, columns)
        sampled = self.judged.sampled or probabilities
        drawn = np.array([record in sampled for record in self.records])
        known = {
            record: {**provenance.get(record, {}), _PROBABILITY: f"{sampled[record]:g}"}
            for record in self.records
            if record in sampled
        }
        gap = self._uneven(np.flatnonzero(was_judged & drawn), was_voted, known, [*columns, _PROBABILITY])
        chosen = np.flatnonzero(was_judged)
        names = [self.records[place] for place in chosen.tolist()]
        given = np.array([probabilities.get(name, np.nan) for name in names])
        given[~was_voted[chosen]] = np.nan
        if gap or np.isnan(given).all():
            return gap
        _, numbers = np.unique(self.narratives[chosen], return_inverse=True)
        return misfit(numbers, given, list(_divisions_of(columns, names, provenance)))

    def _uneven(
        self, chosen: IntArray, voted: BoolArray, known: Mapping[str, Mapping[str, str]], columns: Sequence[str]
    ) -> Gap | None:
        if not len(chosen):
            return None
        names = [self.records[place] for place in chosen.tolist()]
        _, numbers = np.unique(self.narratives[chosen], return_inverse=True)
        return uneven_share(numbers, voted[chosen], list(_divisions_of(columns, names, known)), self.seed)

    def _leaning(self, sheet: _Sheet) -> Leaning | None:
        was_judged = np.logical_not(np.isnan(sheet.p_yes).all(axis=1))
        voted = np.any(sheet.voted, axis=1)
        probabilities = self.study.probabilities
        sampled = self.judged.sampled or probabilities
        in_sample = np.array([sampled is None or record in sampled for record in self.records])
        own = np.flatnonzero(was_judged & in_sample[sheet.records])
        of = sheet.records[own]
        found = chosen_by_score(self.narratives[of], of, voted[own], sheet.p_yes[own], self.seed)
        if found or probabilities is None:
            return found
        own = np.flatnonzero(was_judged)
        of = sheet.records[own]
        given = np.array([probabilities.get(record, np.nan) for record in self.records])[of]
        given[~voted[own]] = np.nan
        return misfit_by_score(self.narratives[of], given, sheet.p_yes[own])


def _sheet(ratings: Ratings, values: Values, judged: Judged, places: Mapping[str, int]) -> _Sheet:
    labels = ratings.labels
    units = {unit: row for row, unit in enumerate(ratings.unit_keys)}
    n_voted = len(units)
    said = judged.tasks.get(ratings.task, {})
    for unit in said:
        units.setdefault(unit, len(units))
    p_yes = np.full((len(units), len(labels)), np.nan)
    column = {label: place for place, label in enumerate(labels)}
    for unit, by_label in said.items():
        for label, probability in by_label.items():
            p_yes[units[unit], column[label]] = probability
    given = np.full((len(units), len(labels)), np.nan)
    given[:n_voted] = values.values
    voted = np.zeros(given.shape, np.bool_)
    voted[:n_voted] = ~np.isnan(values.values) | values.undecided
    records = np.array([places[record] for record, _ in units], np.int64)
    return _Sheet(records, voted, given, p_yes)


def _refusal(task: TaskName, gap: Gap, weighted: bool) -> str:
    where = f"`{gap.column}` is {gap.name!r}" if gap.name else f"`{gap.column}` is not known"
    here, elsewhere = (f"{100 * share:.0f} %" for share in (gap.share, gap.elsewhere))
    shares = f"{here} of the records where {where} and {elsewhere} of the others"
    if not weighted:
        return _say("not_random", task=task, shares=shares)
    if gap.column == _PROBABILITY:
        shares = f"{here} of the sample where the probability is {gap.name} and {elsewhere} of the rest"
        return f"{task}: people labelled {shares}: no random part of it, so there are no rates with the judge's help."
    return _say("not_random_weighted", task=task, shares=shares)


def _refusal_by_score(task: TaskName, leaning: Leaning) -> str:
    label = LABELS[task][leaning.label]
    what = f"P(yes) of `{label}` further from one half" if leaning.by_certainty else f"P(yes) of `{label}` higher"
    return _say("by_score", task=task, what=what, share=100 * leaning.share)
