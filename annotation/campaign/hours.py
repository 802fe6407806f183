"""How long a study takes: who judges a record how often, and how long a unit takes them.

A pace is measured where annotators have worked already, and assumed from the text elsewhere.

Source: annotation/contracts/planning.md#hours.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

from annotation.argilla.client import Argilla
from annotation.argilla.labels import TASKS, TaskName
from annotation.argilla.tasks import CALIBRATION
from annotation.argilla.units import read_units, record_uuid_of, times_taken
from annotation.campaign.datasets import jury_dataset
from annotation.campaign.file import Campaign, Place
from annotation.campaign.narratives import PlannedNarrative, PlannedRecord, Population
from annotation.campaign.routing import expected_calibration, plan_routes
from pipeline.core.errors import NotFoundError

Cell = tuple[TaskName, str]  # a task and the language of its questions

_LONG = 10.0  # a unit that takes so many medians of its cell was interrupted
FEWEST_TIMED = 10  # timed units of a task with which its pace counts as measured
_BORROWED = 10.0  # timed units of a language that weigh as much as what the task's other languages say
_PERSONS, _UNITS = 0.3, 0.6
"""Standard deviations of logarithms, between persons' paces and between one person's units, behind low and high."""
_SURE = 1.6449  # normal quantile of low and high, which hold nine of ten or more
_ASSUMED_FACTOR = 2.0  # low and high of what was only assumed, as a divisor and a factor


class Work(NamedTuple):
    timed: Mapping[Cell, Sequence[tuple[str, float]]]
    """User id and seconds of each unit whose time is known, by task and language."""
    votes: Mapping[tuple[TaskName, str], Sequence[Mapping[str, bool]]]
    """The submitted labels of each answer in grounding and generation, by task and `record_uuid`."""
    stored: Mapping[str, Place] = MappingProxyType({})
    """Where each record is that the campaign's places hold, by `record_uuid`."""
    with_passages: frozenset[str] = frozenset()


class Pace(NamedTuple):
    factor: float  # times as long as assumed from its text
    spread: float  # low and high are the expected time divided by it and multiplied with it
    timed: int
    """Units whose time was measured in this task and language; 0 where all is from other languages, or assumed."""
    annotators: int
    is_measured: bool


class _Timed(NamedTuple):
    user_id: str
    at: datetime
    cell: Cell
    counts: bool


def read_work(
    argilla: Argilla,
    workspaces: Iterable[str],
    slowly: Callable[[str], object] = lambda dataset: None,
    places: Iterable[Place] = (),
) -> Work:
    """What was done in these workspaces, and what is stored at those of a campaign's `places` that are in them.

    A unit took the time since the same person's submission before, whatever that was, if there was no pause of half an
    hour and no interruption; what was discarded in between is part of it. Only units to be labelled are timed.
    """
    submissions: list[_Timed] = []
    votes: defaultdict[tuple[TaskName, str], list[Mapping[str, bool]]] = defaultdict(list)
    stored: dict[Place, set[str]] = {place: set() for place in places}
    with_passages: set[str] = set()
    found, names = False, list(dict.fromkeys(workspaces))
    for name in names:
        for described in argilla.datasets(argilla.find_workspace(name)):
            dataset = jury_dataset(described, name)
            if dataset is None or dataset.status != "ready":
                continue
            found = True
            slowly(dataset.name)
            here = stored.get(Place(name, dataset.locale, dataset.round), set())
            for unit in read_units(argilla, dataset.id):
                counts = unit.assignment.purpose == "label"
                cell = (dataset.task, dataset.locale)
                submitted = [each for each in unit.answers if each.status == "submitted"]
                submissions += (_Timed(each.user_id, each.at, cell, counts) for each in submitted)
                record_uuid = record_uuid_of(dataset.task, unit)
                here.add(record_uuid)
                if dataset.task == "retrieval":
                    with_passages.add(record_uuid)
                elif counts:
                    votes[dataset.task, unit.external_id] += [each.labels for each in submitted]
    if not found:
        raise NotFoundError(
            f"There is no dataset of citejury in {', '.join(map(repr, names))} on Argilla at {argilla.api_url}, so no "
            "pace can be measured. Check `--from` and `--workspace`, or leave both out."
        )
    by_record = {record_uuid: place for place in reversed(stored) for record_uuid in stored[place]}
    return Work(_timed(submissions), votes, by_record, frozenset(with_passages))


def _timed(submissions: Iterable[_Timed]) -> dict[Cell, list[tuple[str, float]]]:
    found: defaultdict[Cell, list[tuple[str, float]]] = defaultdict(list)
    for each, taken in times_taken(submissions):
        if each.counts and taken is not None:
            found[each.cell].append((each.user_id, taken))
    most = {cell: _LONG * median(seconds for _, seconds in times) for cell, times in found.items()}
    return {cell: [each for each in times if each[1] <= most[cell]] for cell, times in found.items()}


def _pace(cell: Cell, population: Population, timed: Mapping[Cell, Sequence[tuple[str, float]]]) -> Pace:
    of_task = {each: taken for each, taken in timed.items() if each[0] == cell[0] and taken}
    count = sum(map(len, of_task.values()))
    own = of_task.get(cell, ())
    if count < FEWEST_TIMED:
        return Pace(1.0, _ASSUMED_FACTOR, len(own), len({user for user, _ in own}), False)
    measured = sum(seconds for taken in of_task.values() for _, seconds in taken)
    assumed = sum(len(taken) * _assumed_seconds(population, each) for each, taken in of_task.items())
    factor = measured / assumed
    if own:
        ratio = sum(seconds for _, seconds in own) / (len(own) * _assumed_seconds(population, cell))
        factor = (len(own) * ratio + _BORROWED * factor) / (len(own) + _BORROWED)
    people = {user for taken in of_task.values() for user, _ in taken}
    error = math.sqrt(_PERSONS**2 / len(people) + _UNITS**2 / count)
    return Pace(factor, math.exp(_SURE * error), len(own), len({user for user, _ in own}), True)


def _assumed_seconds(population: Population, cell: Cell) -> float:
    """By its text; of a language that is not planned as in all of the task."""
    loads = [(record.locale, record.loads[cell[0]]) for record in population.records]
    here = [load for locale, load in loads if locale == cell[1] and load.units] or [load for _, load in loads]
    units = sum(load.units for load in here)
    return sum(load.seconds for load in here) / units if units else 1.0


def measured_likeness(
    population: Population, work: Work, assumed: tuple[float, float], weight: float
) -> tuple[tuple[float, float], tuple[int, int]]:
    """Correlations of votes on one unit, and on two providers' answers to one narrative; and on how many each rests.

    Labels are pooled, each with its own rate, grounding and generation together. What is assumed counts like `weight`
    units or narratives.
    """
    agreement, likeness = _Pooled(), _Pooled()
    providers = {record.record_uuid: record.provider for record in population.records}
    units = 0
    told: set[str] = set()
    for task in TASKS:
        of_task = {uuid: votes for (name, uuid), votes in work.votes.items() if name == task and votes}
        labels = sorted({label for votes in of_task.values() for vote in votes for label in vote})
        units += sum(len(votes) > 1 for votes in of_task.values())
        for label in labels:
            shares = {
                uuid: given for uuid, votes in of_task.items() if (given := [v[label] for v in votes if label in v])
            }
            rate = _mean([_mean(given) for given in shares.values()])
            for given in shares.values():
                agreement.add_group([each - rate for each in given], rate)
            told |= _add_narratives(likeness, population, providers, shares)
    found = (agreement.correlation, likeness.correlation)
    counts = (units, len(told))
    mixed = [
        before if value is None else (count * min(max(value, 0.0), 1.0) + weight * before) / (count + weight)
        for value, count, before in zip(found, counts, assumed, strict=True)
    ]
    return (mixed[0], min(mixed[1], mixed[0])), counts


def _add_narratives(
    pooled: "_Pooled", population: Population, providers: Mapping[str, str], shares: Mapping[str, Sequence[bool]]
) -> set[str]:
    """Add a label's shares of yes, those of different providers to a narrative; gives the narratives that have two."""
    by_provider: defaultdict[str, list[float]] = defaultdict(list)
    for uuid, given in shares.items():
        if uuid in providers:
            by_provider[providers[uuid]].append(_mean(given))
    rates = {provider: _mean(values) for provider, values in by_provider.items()}
    told = set()
    for narrative in population.narratives:
        of = {
            each.provider: _mean(shares[each.record_uuid]) for each in narrative.records if each.record_uuid in shares
        }
        if len(of) > 1:
            told.add(narrative.key)
            count = min(len(by_provider[provider]) for provider in of)
            # A provider's own mean takes part of what its answers share; with n of them one nth.
            scale = count / (count - 1) if count > 1 else 1.0
            rate = _mean([rates[provider] for provider in of])
            pooled.add_group([share - rates[provider] for provider, share in of.items()], rate, scale)
    return told


class _Pooled:
    """A correlation within groups over several labels: products of deviations over variances of votes."""

    def __init__(self) -> None:
        self.products = self.variances = 0.0

    def add_group(self, deviations: Sequence[float], rate: float, scale: float = 1.0) -> None:
        count = len(deviations)
        if count > 1:
            pairs = (sum(deviations) ** 2 - sum(each**2 for each in deviations)) / (count - 1)
            self.products += scale * pairs
            self.variances += count * rate * (1 - rate)

    @property
    def correlation(self) -> float | None:
        return self.products / self.variances if self.variances else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


class Jury:
    def __init__(
        self, population: Population, campaign: Campaign | None, overlap: int | None, work: Work | None
    ) -> None:
        given = campaign.overlap if campaign else {}
        self.overlap: dict[TaskName, int] = {task: overlap or given.get(task, 1) for task in TASKS}
        self.campaign = campaign
        self._rule = campaign.calibration if campaign else None
        self.locales = Counter(record.locale for record in population.records)
        cells = [(task, locale) for task in TASKS for locale in sorted(self.locales)]
        timed = work.timed if work else {}
        self.paces = {cell: _pace(cell, population, timed) for cell in cells}
        self.stored = work.stored if work else {}
        self.without_passages = self.stored.keys() - work.with_passages if work else frozenset[str]()
        self._held = Counter(place.locale for place in self.stored.values())
        self._calibrated = Counter(place.locale for place in self.stored.values() if place.round_name == CALIBRATION)
        places = [(record.locale, self.stored.get(record.record_uuid)) for record in population.records]
        self._new = Counter(locale for locale, place in places if place is None)
        self._back = Counter(locale for locale, place in places if place and place.round_name == CALIBRATION)

    def calibration(self, records: Sequence[PlannedRecord]) -> frozenset[str]:
        """`record_uuid` of each record that a push puts into calibration."""
        if self.campaign is None:
            return frozenset()
        languages = [(record.record_uuid, record.locale) for record in records]
        without = {record.record_uuid for record in records if not record.loads["grounding"].units}
        routes = plan_routes(languages, self.stored, self.campaign, "", without | self.without_passages)
        return frozenset(record_uuid for record_uuid, place in routes.items() if place.round_name == CALIBRATION)

    def judges_calibration(self, locale: str) -> int:
        wanted = self._rule.overlap if self._rule else None
        return wanted or max(1, len(self.campaign.jury(locale)) if self.campaign else 1)

    def hours_of(self, narrative: PlannedNarrative, shares: Mapping[str, float]) -> float:
        """With this share of each language's records in calibration."""
        seconds = 0.0
        for record in narrative.records:
            share = shares[record.locale]
            judges = self.judges_calibration(record.locale) if share else 0
            for task, load in record.loads.items():
                votes = share * judges + (1 - share) * self.overlap[task]
                seconds += load.seconds * self.paces[task, record.locale].factor * votes
        return seconds / 3600

    def shares(self, records: Mapping[str, int]) -> dict[str, float]:
        """What part of so many records of each language is for calibration, about; what Argilla holds stays there."""
        shares = dict.fromkeys(self.locales, 0.0)
        for locale, count in records.items() if self.campaign else ():
            if count:
                part, held = count / self.locales[locale], (self._held[locale], self._calibrated[locale])
                new = expected_calibration(self._rule, part * self._new[locale], *held)
                shares[locale] = (part * self._back[locale] + new) / count
        return shares
