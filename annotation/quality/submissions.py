"""What the moments and the answers of submissions show: how fast the work goes, when it is done, and who does not read.

How often each rule is wrong: annotation/contracts/status.md#what-needs-a-look.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from annotation.argilla.labels import LABELS, TaskName
from annotation.argilla.units import CHARACTERS_A_MINUTE, CHARACTERS_A_MINUTE_OF_ALPHABETS, PAUSE, times_taken

_TODAY = timedelta(hours=24)
_NOTHING_WANTING = "nothing is wanting"
NOBODY_LEFT = "no annotators are left for what is wanting"
KEPT_OUT = "what is wanting waits for people who have not passed its practice"
_NO_WORK = "nobody who is to go on submitted anything in the last 24 hours"
_TOO_LONG = "more than ten years at today's pace"


class Submission(NamedTuple):
    user_id: str
    at: datetime
    dataset_id: str
    is_first: bool = True  # its time shows how long it took; that of a draft or a correction does not
    is_apart: bool = False
    """Whether it is to a control, a repeat or a practised case, which take time and are none of what is missing."""


class Work(NamedTuple):
    """What was done in the last 24 hours, and how long the part of it took whose time is known."""

    units: int = 0
    timed: int = 0  # those that follow another one of the same person without a pause
    seconds: float = 0.0

    @property
    def per_hour(self) -> float | None:
        """Units an hour of work; None where no time can be told."""
        return round(self.timed * 3600 / self.seconds, 1) if self.seconds else None


class Backlog(NamedTuple):
    task: TaskName
    members: frozenset[str]
    needed: int
    reachable: int  # those of them for which annotators are left
    today: Work


class Forecast(NamedTuple):
    finish: datetime | None
    reason: str  # why there is none; empty where there is one


def work_today(submissions: Iterable[Submission], now: datetime) -> dict[tuple[str, str], Work]:
    """What each person did in each dataset in the 24 hours up to `now`, by user id and dataset id.

    A unit took the time since the same person's submission before, in whichever dataset that was; so work that goes
    back and forth between datasets is counted once. The first unit after a pause has no time. Records that somebody
    discards are no submissions: the time for them is part of what the next submission took.
    """
    begin = now - _TODAY
    found: defaultdict[tuple[str, str], list[Work]] = defaultdict(list)
    for each, taken in times_taken(each for each in submissions if each.at > begin - PAUSE):
        if each.at > begin:
            work = Work(int(not each.is_apart), int(taken is not None), taken or 0.0)
            found[each.user_id, each.dataset_id].append(work)
    return {place: together(works) for place, works in found.items()}


def together(works: Iterable[Work]) -> Work:
    return Work(*map(sum, zip(*works, strict=True)))


def paces(submissions: Iterable[Submission], tasks: Mapping[str, TaskName]) -> dict[tuple[str, TaskName], float]:
    """Seconds that a unit of a task took each person, by user id, and everybody, as nobody's id; of all days.

    Without those tasks of which nothing was timed. `tasks` are by dataset id.
    """
    found: defaultdict[tuple[str, TaskName], list[float]] = defaultdict(list)
    for each, taken in times_taken(submissions):
        for who in (each.user_id, "") if taken is not None else ():
            found[who, tasks[each.dataset_id]].append(taken or 0.0)
    return {of: fmean(seconds) for of, seconds in found.items()}


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
            reason = _NO_WORK if not done else _TOO_LONG if before / done > 3650 else ""
            if not backlogs[index].reachable:
                reason = NOBODY_LEFT if backlogs[index].needed else _NOTHING_WANTING
            found[index] = Forecast(None if reason else now + _TODAY * (before / done), reason)
    return [found[index] for index in range(len(backlogs))]


def last_of(found: Sequence[Forecast]) -> Forecast:
    """When all of it is done: with the last of what can be; why not, where one of them has no end."""
    for reason in (_NO_WORK, _TOO_LONG):
        if any(each.reason == reason for each in found):
            return Forecast(None, reason)
    ends = [each.finish for each in found if each.finish is not None]
    if ends:
        return Forecast(max(ends), "")
    is_stuck = any(each.reason == NOBODY_LEFT for each in found)
    return Forecast(None, NOBODY_LEFT if is_stuck else _NOTHING_WANTING)


def _weights(backlogs: Sequence[Backlog]) -> Mapping[TaskName, float]:
    """Seconds that a unit of each task took in the last 24 hours, or what stands for them."""
    tasks = dict.fromkeys(each.task for each in backlogs)
    sums = {task: together(each.today for each in backlogs if each.task == task) for task in tasks}
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


_AT_ONCE = timedelta(seconds=1)
"""An answer that follows the one before sooner was not given by reading: the page alone takes .4 s to the next record,
and each question a key."""
_WINDOW, _FAST_OF_WINDOW = 30, 25


def at_once(given: Iterable[Submission]) -> Counter[str]:
    """How many of one person's answers came in bulk, by dataset: each within a second of another, five or more."""
    in_order = sorted(given)
    near = [after.at - before.at < _AT_ONCE for before, after in pairwise(in_order)]
    beside = [any(pair) for pair in zip([False, *near], [*near, False], strict=True)]
    counts = Counter(each.dataset_id for each, is_near in zip(in_order, beside, strict=True) if is_near)
    return Counter({dataset_id: count for dataset_id, count in counts.items() if count >= 5})


def too_fast(given: Iterable[Submission], floors: Mapping[str, float]) -> Counter[str]:
    """How many of one person's answers stand in a row of 30 of which 25 took less than their dataset's floor.

    By dataset; datasets without such a row are missing. `floors` are in seconds, by dataset id. An answer took the
    time since the same person's answer before, in whichever dataset, also where that one was changed later. Not timed
    are those that follow a pause, came in bulk, or were changed later, as drafts and corrections are.
    """
    timed: defaultdict[str, list[bool]] = defaultdict(list)
    for each, taken in times_taken(given):
        if each.is_first and taken is not None and taken >= _AT_ONCE.total_seconds():
            timed[each.dataset_id].append(taken < floors.get(each.dataset_id, 0.0))
    counts = Counter({dataset_id: _in_fast_rows(fast) for dataset_id, fast in timed.items()})
    return Counter({dataset_id: count for dataset_id, count in counts.items() if count})


def _in_fast_rows(fast: Sequence[bool]) -> int:
    inside = [False] * len(fast)
    for begin in range(len(fast) - _WINDOW + 1):
        if sum(fast[begin : begin + _WINDOW]) >= _FAST_OF_WINDOW:
            inside[begin : begin + _WINDOW] = [True] * _WINDOW
    return sum(is_fast and is_inside for is_fast, is_inside in zip(fast, inside, strict=True))


def floor(task: TaskName, locale: str, characters: float) -> float:
    """Seconds below which nobody has read a text of so many characters and answered the task's questions about it.

    The text that decides is taken in at most six times as fast as by the mean reader of the language, of a longer one
    only what is read in 30 seconds; each question takes a key.
    """
    reading = characters * 60 / CHARACTERS_A_MINUTE.get(locale, CHARACTERS_A_MINUTE_OF_ALPHABETS)
    return min(reading, 30.0) / 6 + 0.3 * len(LABELS[task])


def highest_floor(task: TaskName) -> float:
    return floor(task, "en", 1e9)
