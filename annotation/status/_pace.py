"""How fast the work goes, and when it is done: from the moments of the submissions alone."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from annotation.labels import TaskName
from annotation.units import PAUSE, times_taken

TODAY = timedelta(hours=24)
_LONGEST_FORECAST = timedelta(days=3650)
NOTHING_WANTING = "nothing is wanting"
NOBODY_LEFT = "no annotators are left for what is wanting"
KEPT_OUT = "what is wanting waits for people who have not passed its practice"
NO_WORK = "nobody who is to go on submitted anything in the last 24 hours"
TOO_LONG = "more than ten years at today's pace"


class Submission(NamedTuple):
    """A response was submitted."""

    user_id: str
    """By whom."""
    at: datetime
    """When, in UTC."""
    dataset_id: str
    """Where."""
    is_first: bool = True
    """Whether it is as it was first sent, so that its time tells how long it took; a draft or a correction is not."""
    is_apart: bool = False
    """Whether it is to a control, a repeat or a practised case, which take time and are none of what is wanting."""


class Work(NamedTuple):
    """What was done in the last 24 hours, and how long the part of it took whose time can be told."""

    units: int = 0
    """Submissions."""
    timed: int = 0
    """Those that follow another one of the same person without a pause."""
    seconds: float = 0.0
    """How long these took."""

    @property
    def per_hour(self) -> float | None:
        """Units an hour of work; None where no time can be told."""
        return round(self.timed * 3600 / self.seconds, 1) if self.seconds else None


class Backlog(NamedTuple):
    """What one dataset lacks, and who can add to it."""

    task: TaskName
    members: frozenset[str]
    """User ids of its annotators."""
    needed: int
    """Submissions that are wanting."""
    reachable: int
    """Those of them for which annotators are left."""
    today: Work
    """What was done in it in the last 24 hours."""


class Forecast(NamedTuple):
    """When the work is done, or why that cannot be told."""

    finish: datetime | None
    """The moment."""
    reason: str
    """Why there is none; empty where there is one."""


def work_today(submissions: Iterable[Submission], now: datetime) -> dict[tuple[str, str], Work]:
    """What each person did in each dataset in the 24 hours up to `now`, by user id and dataset id.

    A unit took the time since the same person's submission before, in whichever dataset that was; so work that goes
    back and forth between datasets is counted once. The first unit after a pause has no time. Records that somebody
    discards are no submissions: the time for them is part of what the next submission took.
    """
    begin = now - TODAY
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0, 0.0])
    for each, taken in times_taken(each for each in submissions if each.at > begin - PAUSE):
        if each.at <= begin:
            continue
        work = found[each.user_id, each.dataset_id]
        work[0] += not each.is_apart
        if taken is not None:
            work[1] += 1
            work[2] += taken
    return {place: Work(int(units), int(timed), seconds) for place, (units, timed, seconds) in found.items()}


def together(works: Iterable[Work]) -> Work:
    """The sum of several people's or datasets' work."""
    units, timed, seconds = 0, 0, 0.0
    for work in works:
        units, timed, seconds = units + work.units, timed + work.timed, seconds + work.seconds
    return Work(units, timed, seconds)


def forecasts(backlogs: Sequence[Backlog], now: datetime) -> list[Forecast]:
    """When each dataset is done, given in the order of the work, if each day from `now` on is like the last 24 hours.

    Datasets that share annotators are worked off one after the other by all who were at work in any of them. A unit
    weighs what its task took in the last 24 hours, where that is known, else the mean of the tasks that are known.
    """
    weights = _weights(backlogs)
    found: dict[int, Forecast] = {}
    for line in _lines(backlogs):
        done = sum(backlogs[index].today.units * weights[backlogs[index].task] for index in line)
        before = 0.0
        for index in line:
            before += backlogs[index].reachable * weights[backlogs[index].task]
            found[index] = _forecast(backlogs[index], before, done, now)
    return [found[index] for index in range(len(backlogs))]


def _forecast(backlog: Backlog, before: float, done: float, now: datetime) -> Forecast:
    """When one dataset is done, given the work up to its end and that of the last 24 hours."""
    if not backlog.needed:
        return Forecast(None, NOTHING_WANTING)
    if not backlog.reachable:
        return Forecast(None, NOBODY_LEFT)
    if not done:
        return Forecast(None, NO_WORK)
    if before / done > _LONGEST_FORECAST / TODAY:
        return Forecast(None, TOO_LONG)
    return Forecast(now + TODAY * (before / done), "")


def last_of(found: Sequence[Forecast]) -> Forecast:
    """When all of it is done: with the last of what can be; why not, where one of them has no end."""
    for reason in (NO_WORK, TOO_LONG):
        if any(each.reason == reason for each in found):
            return Forecast(None, reason)
    ends = [each.finish for each in found if each.finish is not None]
    if ends:
        return Forecast(max(ends), "")
    is_stuck = any(each.reason == NOBODY_LEFT for each in found)
    return Forecast(None, NOBODY_LEFT if is_stuck else NOTHING_WANTING)


def _weights(backlogs: Iterable[Backlog]) -> Mapping[TaskName, float]:
    """Seconds that a unit of each task took in the last 24 hours, or what stands for them."""
    by_task: defaultdict[TaskName, list[Work]] = defaultdict(list)
    for backlog in backlogs:
        by_task[backlog.task].append(backlog.today)
    sums = {task: together(works) for task, works in by_task.items()}
    known = {task: work.seconds / work.timed for task, work in sums.items() if work.seconds}
    mean = sum(known.values()) / len(known) if known else 1.0
    return {task: known.get(task, mean) for task in sums}


def _lines(backlogs: Sequence[Backlog]) -> list[list[int]]:
    """The indexes of the datasets that share annotators, directly or through others, in the order given."""
    lines: list[tuple[set[str], list[int]]] = []
    for index, backlog in enumerate(backlogs):
        shared = [line for line in lines if line[0] & backlog.members]
        lines = [line for line in lines if not line[0] & backlog.members]
        people = set(backlog.members).union(*(line[0] for line in shared))
        lines.append((people, sorted([index, *(each for line in shared for each in line[1])])))
    return [line for _, line in lines]
