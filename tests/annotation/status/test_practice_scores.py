"""What first answers came to, when that opens the rest, and how often it opens to whom."""

from math import comb

import pytest

from annotation.campaign.file import Campaign, Practice
from annotation.labels import TASKS
from annotation.status.practice import cases_of, standing

KNOWN = {"a": {"x": True, "y": False}, "b": {"x": False, "y": True}}


def test_what_was_not_answered_agrees_with_nothing() -> None:
    found = standing(KNOWN, {"a": {"x": True}}, answered=1, pass_mark=0.5)
    assert (found.right, found.known, found.wanted, found.is_whole, found.opens) == (1, 4, 2, False, False)


@pytest.mark.parametrize(("first", "opens"), [({"x": True, "y": True}, False), ({"x": True, "y": False}, True)])
def test_the_mark_opens_the_rest_once_every_case_is_answered(first: dict[str, bool], opens: bool) -> None:
    found = standing(KNOWN, {"a": first, "b": {"x": False, "y": False}}, answered=2, pass_mark=0.75)
    assert (found.wanted, found.opens, found.may_repeat) == (3, opens, not opens)
    assert standing(KNOWN, {"a": first}, answered=1, pass_mark=0.1).opens is False


def test_the_lead_opens_it_to_somebody_and_nothing_to_practise_keeps_nobody_out() -> None:
    assert standing(KNOWN, {}, answered=0, pass_mark=1, opened=True).opens
    assert standing({}, {}, answered=0, pass_mark=1).opens


def test_a_share_of_a_whole_number_wants_just_that_many() -> None:
    labels = {str(number): True for number in range(10)}
    assert [standing({"a": labels}, {}, 0, mark / 10).wanted for mark in range(1, 11)] == list(range(1, 11))


def test_a_careful_person_passes_our_practice_at_once_and_a_guessing_one_hardly_ever() -> None:
    practice = Practice()
    cases = cases_of(Campaign(locales=("en",), practice=practice))
    shares = {}
    for task in TASKS:
        known = {case.record.record_uuid: case.answers for case in cases if case.task == task}
        wanted = standing(known, {}, 0, practice.pass_mark)
        shares[task] = (
            wanted.wanted,
            wanted.known,
            reaching(wanted.known, wanted.wanted, 0.9),
            reaching(wanted.known, wanted.wanted, 0.5),
        )
    assert shares["retrieval"] == (18, 24, pytest.approx(0.993, abs=0.0006), pytest.approx(0.011, abs=0.0006))
    assert shares["grounding"] == (30, 40, pytest.approx(0.998, abs=0.0006), pytest.approx(0.001, abs=0.0006))
    assert shares["generation"] == shares["grounding"]


@pytest.mark.parametrize("known", [{}, KNOWN])
def test_before_set_up_has_written_a_pass_mark_nothing_opens_but_by_the_lead(known: dict[str, dict[str, bool]]) -> None:
    found = standing(known, known, answered=2, pass_mark=None)
    assert (found.opens, found.may_repeat) == (False, False)
    assert standing(known, {}, answered=0, pass_mark=None, opened=True).opens


def reaching(answers: int, wanted: int, right: float) -> float:
    """How likely it is that so many of independent answers, each right with this probability, are right."""
    return sum(comb(answers, n) * right**n * (1 - right) ** (answers - n) for n in range(wanted, answers + 1))
