"""What is said of people: each rule by hand, and how often it is wrong of attentive simulated annotators."""

import sys
from datetime import timedelta

import numpy as np
import pytest

from annotation.argilla.labels import TaskName
from annotation.quality.submissions import Submission, at_once, floor, highest_floor, too_fast
from tests.support.behaviours import given, guessed_seconds, honest_seconds

TEXTS: tuple[tuple[TaskName, str, int], ...] = (
    ("retrieval", "en", 700),
    ("retrieval", "de", 300),
    ("retrieval", "ja", 120),
    ("grounding", "ja", 480),
    ("generation", "en", 250),
)


def test_five_answers_at_once_are_bulk_and_rows_of_others_too_fast_for_their_text() -> None:
    assert at_once(given([60, 0.2, 0.2, 0.2, 0.2, 60])) == {"d": 5}
    assert at_once(given([60, 0.2, 0.2, 0.2, 60, 1.0, 60])) == {}
    assert too_fast(given([60, *[3.0] * 30]), {"d": 4.0}) == {"d": 30}
    assert too_fast(given([60, *[3.0] * 24, *[9.0] * 6]), {"d": 4.0}) == {}
    assert too_fast(given([60, *[3.0] * 25, *[9.0] * 5]), {"d": 4.0}) == {"d": 25}
    assert too_fast(given([60, *[3.0] * 29]), {"d": 4.0}) == {}
    assert (too_fast(given([2000.0] * 40), {"d": 3000.0}), too_fast(given([0.1] * 40), {"d": 4.0})) == ({}, {})
    assert too_fast([each._replace(is_first=False) for each in given([3.0] * 40)], {"d": 4.0}) == {}
    # An answer takes the time since the one before, wherever that was and whether it was changed later.
    first = given([6.0] * 40)
    between = [Submission("ana", each.at + timedelta(seconds=3), "e") for each in first]
    assert too_fast([*first, *between], {"d": 4.0}) == {"d": 39}
    answers = given([6.0, 3.0] * 40)
    drafts_between = [each._replace(is_first=number % 2 == 1) for number, each in enumerate(answers)]
    assert too_fast(drafts_between, {"d": 4.0}) == {"d": 40}
    assert too_fast([each for each in drafts_between if each.is_first], {"d": 4.0}) == {}
    assert floor("retrieval", "en", 0) == pytest.approx(0.9)
    assert floor("retrieval", "en", 329) == pytest.approx(20 / 6 + 0.9)
    assert floor("retrieval", "en", 10**6) == highest_floor("retrieval") == pytest.approx(5.9)
    assert floor("generation", "ja", 119) == pytest.approx(20 / 6 + 1.5)


def tell(line: str) -> None:
    """A line of a simulation, as `pytest -s` shows it."""
    sys.stdout.write(f"{line}\n")


def share_wrongly_fast(task: TaskName, locale: str, characters: int, units: int, people: int) -> tuple[float, float]:
    """The share of attentive people, and of guessing ones, who are called too fast or in bulk."""
    draw = np.random.default_rng(7)
    wrong = found = 0
    for _ in range(people):
        seconds, length = honest_seconds(draw, task, locale, units, characters)
        floors = {"d": floor(task, locale, length)}
        wrong += bool(too_fast(given(seconds), floors) or at_once(given(seconds)))
        found += bool(too_fast(given(guessed_seconds(draw, task, units)), floors))
    return wrong / people, found / people


def test_attentive_people_are_hardly_ever_called_too_fast_and_others_are() -> None:
    for task, locale, characters in TEXTS[:2]:
        wrong, found = share_wrongly_fast(task, locale, characters, 200, 60)
        assert wrong <= 0.02
        assert found == 1


@pytest.mark.soak
@pytest.mark.parametrize(("task", "locale", "characters"), TEXTS)
def test_attentive_people_of_all_kinds_are_hardly_ever_called_too_fast(task, locale: str, characters: int) -> None:
    for units in (60, 300, 1000):
        wrong, found = share_wrongly_fast(task, locale, characters, units, 1000)
        tell(f"{task} {locale} {characters} characters, {units} units: attentive {wrong:.3f}, guessing {found:.3f}")
        assert wrong <= 0.02
        assert found == 1
