"""What is counted of controls and repeats."""

from datetime import UTC, datetime

import pytest

from annotation.argilla.units import Answer, Assignment, Unit
from annotation.quality.scores import AnnotatorScores, ControlTally, score_tallies, share

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
RELEVANT = {"topically_relevant": True, "evidence_sufficient": False, "misleading": False}
CONTROL = Assignment(purpose="control", answers={"topically_relevant": True, "misleading": True}, kind="known")


def answer(who: str, labels: dict[str, bool], status: str = "submitted") -> Answer:
    return Answer(who, status, NOON, labels, None)


def scored(*units: Unit) -> dict[str, AnnotatorScores]:
    tally = ControlTally("retrieval")
    for unit in units:
        tally.add(unit)
    return {each.annotator: each for each in score_tallies([tally], {})}


def test_answers_to_controls_count_by_label_and_together() -> None:
    unit = Unit("1", "r:1", True, (answer("anna", RELEVANT),), CONTROL)
    found = scored(unit)["anna"]
    assert (found.controls, found.repeats, found.discarded) == (1, 0, 0)
    assert found.together.sensitivity == share(1, 2)
    assert found.together.specificity is None
    assert list(found.labels["retrieval"]) == ["topically_relevant", "misleading"]
    assert found.labels["retrieval"]["misleading"].sensitivity == share(0, 1)


def test_a_control_without_known_answer_to_a_label_says_nothing_of_it() -> None:
    unit = Unit("1", "r:1", True, (answer("anna", RELEVANT),), CONTROL)
    assert "evidence_sufficient" not in scored(unit)["anna"].labels["retrieval"]


def test_drafts_do_not_count_and_discards_are_counted_as_such() -> None:
    unit = Unit("1", "r:1", True, (answer("anna", RELEVANT, "draft"), answer("ben", {}, "discarded")), CONTROL)
    found = scored(unit)
    assert list(found) == ["ben"]
    assert (found["ben"].controls, found["ben"].discarded) == (0, 1)


def test_a_repeat_is_compared_with_what_the_same_person_said_before() -> None:
    first = Unit("1", "r:1", False, (answer("anna", RELEVANT), answer("ben", dict.fromkeys(RELEVANT, True))))
    again = Unit(
        "2",
        "s:1",
        True,
        (answer("anna", RELEVANT | {"misleading": True}),),
        Assignment(purpose="repeat", needed=1, users=("anna",), repeats="r:1"),
    )
    found = scored(first, again)
    assert list(found) == ["anna"]
    assert (found["anna"].repeats, found["anna"].controls) == (1, 0)
    assert found["anna"].together.consistency == share(2, 3)
    assert found["anna"].labels["retrieval"]["misleading"].consistency == share(0, 1)


def test_a_repeat_of_a_withdrawn_answer_says_nothing() -> None:
    first = Unit("1", "r:1", True, (answer("anna", RELEVANT, "draft"),))
    again = Unit("2", "s:1", True, (answer("anna", RELEVANT),), Assignment(purpose="repeat", repeats="r:1"))
    assert scored(first, again) == {}


def test_units_that_are_to_be_labelled_say_nothing() -> None:
    assert scored(Unit("1", "r:1", False, (answer("anna", RELEVANT),))) == {}


def controls(known: list[bool], given: list[bool], label: str = "misleading") -> list[Unit]:
    return [
        Unit(
            f"{label} {place}",
            f"{label}:{place}",
            True,
            (answer("anna", {label: said}),),
            Assignment(purpose="control", answers={label: value}),
        )
        for place, (value, said) in enumerate(zip(known, given, strict=True))
    ]


def test_who_always_says_the_same_to_one_label_is_noticed_from_five_controls_of_each_answer_on() -> None:
    right = controls([True, False] * 5, [True, False] * 5, "topically_relevant")
    assert scored(*right, *controls([True, False] * 4, [False] * 8))["anna"].notices == ()
    notices = scored(*right, *controls([True, False] * 5, [False] * 10))["anna"].notices
    assert [str(notice) for notice in notices] == [
        "gives the same answer to `misleading` (retrieval) whatever is shown: 0 of 10 answers to controls differ"
    ]


def test_who_always_says_the_same_to_all_labels_is_noticed_as_that() -> None:
    labels = {"misleading": [True] * 8, "evidence_sufficient": [False] * 8}
    units = [unit for label, given in labels.items() for unit in controls([True, False] * 4, given, label)]
    assert [notice.habit for notice in scored(*units)["anna"].notices] == ["same_always"]


def test_who_is_wrong_more_often_than_one_time_in_five_beyond_chance_is_noticed() -> None:
    known = [True, False] * 10
    assert scored(*controls(known, [*known[:15], *(not each for each in known[15:])]))["anna"].notices == ()
    notices = scored(*controls(known, [*known[:10], *(not each for each in known[10:])]))["anna"].notices
    assert list(map(str, notices)) == ["answers controls wrongly more often than one time in five: 10 of 20 answers"]


def test_always_the_same_is_nothing_to_notice_where_it_is_right() -> None:
    assert scored(*controls([False] * 30, [False] * 30))["anna"].notices == ()


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0)],
)
def test_intervals_are_those_of_wilson(count: int, of: int, low: float, high: float) -> None:
    """Oracle: statsmodels 0.14, `proportion_confint(method="wilson")`."""
    found = share(count, of)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)
