"""How long answers take: the time between two of them, and how fast people read."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

PAUSE = timedelta(minutes=30)
"""Who sends nothing for as long was not at work."""
CHARACTERS_A_MINUTE: Mapping[str, int] = {"en": 987, "de": 920, "ja": 357}
"""Mean speed of adults who read a text aloud, by its language.

Source: Trauzettel-Klosinski and Dietz 2012, IOVS 53(9), table 2 (IReST).
"""
CHARACTERS_A_MINUTE_OF_ALPHABETS = 882
"""The same, mean of 14 languages with alphabets."""


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
