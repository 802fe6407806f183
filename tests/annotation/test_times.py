"""The seconds that an answer took."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from annotation.times import PAUSE, times_taken

BEGIN = datetime(2026, 11, 23, 8, tzinfo=UTC)


class Sent(NamedTuple):
    user_id: str
    at: datetime


def sent(seconds: float, user_id: str = "ana") -> Sent:
    return Sent(user_id, BEGIN + timedelta(seconds=seconds))


def test_an_answer_took_the_time_since_the_same_persons_answer_before_it() -> None:
    events = [sent(90), sent(0), sent(30, "ben"), sent(31, "ben"), sent(40)]
    assert [taken for _, taken in times_taken(events)] == [None, None, 1.0, 40.0, 50.0]
    assert [event for event, _ in times_taken(events)] == sorted(events, key=lambda each: each.at)


def test_after_a_pause_the_time_is_unknown() -> None:
    pause = PAUSE.total_seconds()
    events = [sent(0), sent(pause), sent(2 * pause - 1), sent(2 * pause)]
    assert [taken for _, taken in times_taken(events)] == [None, None, pause - 1, 1.0]
