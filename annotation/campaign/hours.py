"""How long a study takes: who judges a record how often, and how long a unit takes them.

A pace is measured where annotators have worked already, and assumed from the text elsewhere.

Source: annotation/contracts/planning.md#hours.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from statistics import median
from typing import NamedTuple

from annotation.argilla.client import Argilla
from annotation.argilla.labels import OWN_TASKS, TaskName, is_of_passages
from annotation.argilla.tasks import CALIBRATION
from annotation.argilla.units import read_units, times_taken
from annotation.campaign.datasets import every_dataset
from annotation.campaign.file import Campaign
from annotation.campaign.narratives import PlannedNarrative, PlannedRecord, Population
from annotation.campaign.routing import expected_calibration, plan_routes
from pipeline.core.errors import NotFoundError
from pipeline.text.words import Languages

Cell = tuple[TaskName, str]  # a task and the language of its questions
Times = Mapping[Cell, Sequence[tuple[str, float]]]
"""User id and seconds of each unit whose time is known, by task and language."""

_LONG = 10.0  # a unit that takes so many medians of its cell was interrupted
FEWEST_TIMED = 10  # timed units of a task with which its pace counts as measured
_PERSONS, _UNITS = 0.3, 0.6
"""Standard deviations of logarithms, between persons' paces and between one person's units, behind low and high."""
_SURE = 1.6449  # normal quantile of low and high, which hold nine of ten or more
_ASSUMED_FACTOR = 2.0  # low and high of what was only assumed, as a divisor and a factor


class Pace(NamedTuple):
    factor: float  # times as long as assumed from its text
    spread: float  # low and high are the expected time divided by it and multiplied with it
    timed: int  # units whose time was measured; 0 where they were too few, and the pace is assumed
    annotators: int


class _Timed(NamedTuple):
    user_id: str
    at: datetime
    cell: Cell
    counts: bool


def read_times(argilla: Argilla, workspaces: Iterable[str], slowly: Callable[[str], object] = lambda _: None) -> Times:
    """The times of what was done in these workspaces.

    A unit took the time since the same person's submission before, whatever that was, if there was no pause of half an
    hour and no interruption; what was discarded in between is part of it. Only units to be labelled are timed.
    """
    submissions: list[_Timed] = []
    names = list(dict.fromkeys(workspaces))
    datasets = [each for name in names for each in every_dataset(argilla, name) if each.status == "ready"]
    if not datasets:
        raise NotFoundError(
            f"There is no dataset of citejury in {', '.join(map(repr, names))} on Argilla at {argilla.api_url}, so no "
            "pace can be measured. Check `--from` and `--workspace`, or leave both out."
        )
    for dataset in datasets:
        slowly(dataset.name)
        for unit in read_units(argilla, dataset.id):
            cell, counts = (dataset.task, dataset.locale), unit.assignment.purpose == "label"
            done = (each for each in unit.answers if each.status == "submitted")
            submissions += (_Timed(each.user_id, each.at, cell, counts) for each in done)
    found: defaultdict[Cell, list[tuple[str, float]]] = defaultdict(list)
    for each, taken in times_taken(submissions):
        if each.counts and taken is not None:
            found[each.cell].append((each.user_id, taken))
    most = {cell: _LONG * median(seconds for _, seconds in times) for cell, times in found.items()}
    return {cell: [each for each in times if each[1] <= most[cell]] for cell, times in found.items()}


def _pace(task: TaskName, population: Population, times: Times) -> Pace:
    """What all languages of the task took, as a part of what was assumed for them."""
    of_task = {cell: taken for cell, taken in times.items() if cell[0] == task and taken}
    count = sum(map(len, of_task.values()))
    if count < FEWEST_TIMED:
        return Pace(1.0, _ASSUMED_FACTOR, 0, 0)
    measured = sum(seconds for taken in of_task.values() for _, seconds in taken)
    assumed = sum(len(taken) * _assumed_seconds(population, cell) for cell, taken in of_task.items())
    users = len({user for taken in of_task.values() for user, _ in taken})
    return Pace(measured / assumed, math.exp(_SURE * math.sqrt(_PERSONS**2 / users + _UNITS**2 / count)), count, users)


def _assumed_seconds(population: Population, cell: Cell) -> float:
    """By its text; of a language that is not planned as in all of the task."""
    loads = [(record.locale, record.loads[cell[0]]) for record in population.records]
    here = [load for locale, load in loads if locale == cell[1] and load.units] or [load for _, load in loads]
    units = sum(load.units for load in here)
    return sum(load.seconds for load in here) / units if units else 1.0


class Jury:
    """Who judges how often, and how fast; a campaign's calibration is counted as that of a new one."""

    def __init__(self, population: Population, campaign: Campaign | None, overlap: int | None, times: Times) -> None:
        given = campaign.overlap if campaign else {}
        self.tasks = campaign.tasks if campaign else OWN_TASKS
        self.overlap: dict[TaskName, int] = {task: overlap or given.get(task, 1) for task in self.tasks}
        self.campaign = campaign
        self.rule = campaign.calibration if campaign else None
        self.locales = Counter(record.locale for record in population.records)
        self.paces = {task: _pace(task, population, times) for task in self.tasks}

    def calibration(self, records: Sequence[PlannedRecord]) -> frozenset[str]:
        """`record_uuid` of each record that a push puts into calibration."""
        if self.campaign is None:
            return frozenset()
        languages = [(record.record_uuid, Languages(record.locale, record.locale)) for record in records]
        without = {record.record_uuid for record in records if not record.passages}
        routes = plan_routes(languages, {}, self.campaign, "", without)
        return frozenset(record_uuid for record_uuid, place in routes.items() if place.round_name == CALIBRATION)

    def judges_calibration(self, locale: str) -> int:
        wanted = self.rule.overlap if self.rule else None
        return wanted or max(1, len(self.campaign.jury(locale)) if self.campaign else 1)

    def hours_of(self, narrative: PlannedNarrative, part: float) -> float:
        """What the narrative takes on average where this part of all records is planned."""
        seconds = 0.0
        for record in narrative.records:
            planned = part * self.locales[record.locale]
            share = expected_calibration(self.rule, planned) / planned
            for task in self.tasks:
                load = record.loads[task]
                votes = share * self.judges_calibration(record.locale) + (1 - share) * self.overlap[task]
                seconds += load.seconds * self.paces[task].factor * votes
        return seconds / 3600


def votes_of_answers(overlap: Mapping[TaskName, int]) -> int:
    """The fewest votes that an answer gets from a task about answers; about passages where there is no such task."""
    return min([votes for task, votes in overlap.items() if not is_of_passages(task)] or overlap.values())
