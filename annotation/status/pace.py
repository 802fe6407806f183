"""How fast the jury works, and when it is done at that pace: from the times of submissions alone, without a clock."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

TODAY = timedelta(hours=24)
PAUSE = timedelta(minutes=30)
"""Who submits nothing for longer was not at work."""
LONGEST_FORECAST = timedelta(days=3650)


class Submission(NamedTuple):
    """A response was submitted."""

    user_id: str
    """By whom."""
    at: datetime
    """When, in UTC."""
    dataset_id: str
    """Where."""


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


class Forecast(NamedTuple):
    """When the work is done, or why that cannot be told."""

    finish: datetime | None
    """The moment."""
    reason: str
    """Why there is none; empty where there is one."""


def work_today(submissions: Iterable[Submission], now: datetime) -> dict[tuple[str, str], Work]:
    """What each person did in each dataset in the 24 hours up to `now`, by user id and dataset id.

    A unit took the time since the same person's submission before, in whichever dataset that was; so work that goes
    back and forth between datasets is counted once. The first unit after a pause has no time.
    """
    begin = now - TODAY
    earlier: dict[str, datetime] = {}
    found: defaultdict[tuple[str, str], Work] = defaultdict(Work)
    for each in sorted(each for each in submissions if each.at > begin - PAUSE):
        before, earlier[each.user_id] = earlier.get(each.user_id), each.at
        if each.at <= begin:
            continue
        work = found[each.user_id, each.dataset_id]
        taken = each.at - before if before is not None else PAUSE
        is_timed = taken < PAUSE
        seconds = taken.total_seconds() if is_timed else 0.0
        found[each.user_id, each.dataset_id] = Work(work.units + 1, work.timed + is_timed, work.seconds + seconds)
    return dict(found)


def together(works: Iterable[Work]) -> Work:
    """The sum of several people's or datasets' work."""
    units, timed, seconds = 0, 0, 0.0
    for work in works:
        units, timed, seconds = units + work.units, timed + work.timed, seconds + work.seconds
    return Work(units, timed, seconds)


def forecast(needed: int, reachable: int, done_today: int, now: datetime) -> Forecast:
    """When all is done that can be, if each day from `now` on brings as many submissions as the last 24 hours.

    `needed` submissions are wanting; for `reachable` of them there are annotators who have not settled the record yet.
    """
    if not needed:
        return Forecast(None, "nothing is wanting")
    if not reachable:
        return Forecast(None, "no annotators are left for what is wanting")
    if not done_today:
        return Forecast(None, "nobody submitted anything in the last 24 hours")
    if reachable / done_today > LONGEST_FORECAST / TODAY:
        return Forecast(None, "more than ten years at today's pace")
    return Forecast(now + TODAY * (reachable / done_today), "")
