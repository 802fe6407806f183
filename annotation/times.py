"""How long an answer took: the one rule behind paces, hours and answers that came too fast."""

from collections.abc import Hashable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

PAUSE = timedelta(minutes=30)
"""Who sends nothing for as long was not at work."""


class Event(Protocol):
    """Somebody sent an answer."""

    @property
    def user_id(self) -> Hashable:
        """Who."""

    @property
    def at(self) -> datetime:
        """When."""


E = TypeVar("E", bound=Event)


def times_taken(events: Iterable[E]) -> Iterator[tuple[E, float | None]]:
    """Each event in order of time with the seconds since the same person's event before it, wherever that was.

    None where that is unknown: for her first one, and after a pause. What of several people's and datasets' answers
    is an event the caller decides: what is left out counts as part of the next one's time.
    """
    earlier: dict[Hashable, datetime] = {}
    for each in sorted(events, key=lambda event: event.at):
        before, earlier[each.user_id] = earlier.get(each.user_id), each.at
        taken = each.at - before if before is not None else PAUSE
        yield each, taken.total_seconds() if taken < PAUSE else None
