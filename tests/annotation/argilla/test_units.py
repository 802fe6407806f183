"""What a record is for, whoever wrote it, and the seconds that an answer took."""

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from annotation.argilla.units import ASSIGNMENT, COMMON, PAUSE, assignment_of, times_taken
from pipeline.core.errors import ArgillaError


@pytest.mark.parametrize("said", ["control", [1], {"purpose": ["control"]}, {"needed": -1}, {"purpose": "theirs"}])
def test_an_assignment_of_somebody_else_is_none(said: Any) -> None:
    assert assignment_of({"id": "r1", "metadata": {ASSIGNMENT: said}}) == COMMON


def test_a_control_that_cannot_be_read_is_named_and_counts_nowhere() -> None:
    record = {"external_id": "r1:c2", "metadata": {ASSIGNMENT: {"purpose": "control", "rate": "much", "new": 1}}}
    with pytest.raises(ArgillaError, match=r"The record 'r1:c2' is a control .* cannot be read: `rate`, `new`\."):
        assignment_of(record)


BEGIN = datetime(2026, 11, 23, 8, tzinfo=UTC)


class Sent(NamedTuple):
    seconds: float
    user_id: str = "ana"

    @property
    def at(self) -> datetime:
        return BEGIN + timedelta(seconds=self.seconds)


def test_an_answer_took_the_time_since_the_same_persons_answer_before_it_or_none_after_a_pause() -> None:
    events = [Sent(90), Sent(0), Sent(30, "ben"), Sent(31, "ben"), Sent(40)]
    assert [taken for _, taken in times_taken(events)] == [None, None, 1.0, 40.0, 50.0]
    assert [event for event, _ in times_taken(events)] == sorted(events)
    pause = PAUSE.total_seconds()
    events = [Sent(0), Sent(pause), Sent(2 * pause - 1), Sent(2 * pause)]
    assert [taken for _, taken in times_taken(events)] == [None, None, pause - 1, 1.0]
