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


def test_controls_count_by_label_and_together_and_repeats_against_what_was_said_before() -> None:
    discarded = answer("ben", {}, "discarded")
    unit = Unit("1", "r:1", True, (answer("anna", RELEVANT), answer("carl", RELEVANT, "draft"), discarded), CONTROL)
    found = scored(unit, Unit("2", "q:1", False, (answer("dora", RELEVANT),)))  # the latter is to be labelled
    counts = {who: (each.controls, each.repeats, each.discarded) for who, each in found.items()}
    assert counts == {"anna": (1, 0, 0), "ben": (0, 0, 1)}
    anna = found["anna"]
    assert (anna.together.sensitivity, anna.together.specificity) == (share(1, 2), None)
    assert list(anna.labels["retrieval"]) == ["topically_relevant", "misleading"]
    assert anna.labels["retrieval"]["misleading"].sensitivity == share(0, 1)
    first = Unit("1", "r:1", False, (answer("anna", RELEVANT), answer("ben", dict.fromkeys(RELEVANT, True))))
    purpose = Assignment(purpose="repeat", needed=1, users=("anna",), repeats="r:1")
    again = Unit("2", "s:1", True, (answer("anna", RELEVANT | {"misleading": True}),), purpose)
    found = scored(first, again)
    assert list(found) == ["anna"]
    assert (found["anna"].repeats, found["anna"].controls) == (1, 0)
    assert found["anna"].together.consistency == share(2, 3)
    assert found["anna"].labels["retrieval"]["misleading"].consistency == share(0, 1)
    assert scored(Unit("1", "r:1", True, (answer("anna", RELEVANT, "draft"),)), again) == {}


def controls(known: list[bool], given: list[bool], label: str = "misleading") -> list[Unit]:
    units = []
    for place, (value, said) in enumerate(zip(known, given, strict=True)):
        purpose = Assignment(purpose="control", answers={label: value})
        units.append(Unit(f"{label} {place}", f"{label}:{place}", True, (answer("anna", {label: said}),), purpose))
    return units


def test_who_always_says_the_same_or_is_wrong_beyond_chance_is_noticed() -> None:
    right = controls([True, False] * 5, [True, False] * 5, "topically_relevant")
    assert scored(*right, *controls([True, False] * 4, [False] * 8))["anna"].notices == ()
    notices = scored(*right, *controls([True, False] * 5, [False] * 10))["anna"].notices
    assert [str(notice) for notice in notices] == [
        "gives the same answer to `misleading` (retrieval) whatever is shown: 0 of 10 answers to controls differ"
    ]
    labels = {"misleading": [True] * 8, "evidence_sufficient": [False] * 8}
    units = [unit for label, given in labels.items() for unit in controls([True, False] * 4, given, label)]
    assert [notice.habit for notice in scored(*units)["anna"].notices] == ["same_always"]
    known = [True, False] * 10
    assert scored(*controls(known, [*known[:15], *(not each for each in known[15:])]))["anna"].notices == ()
    notices = scored(*controls(known, [*known[:10], *(not each for each in known[10:])]))["anna"].notices
    assert list(map(str, notices)) == ["answers controls wrongly more often than one time in five: 10 of 20 answers"]
    assert scored(*controls([False] * 30, [False] * 30))["anna"].notices == ()  # always the same, and right


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0)],
)
def test_intervals_are_those_of_wilson(count: int, of: int, low: float, high: float) -> None:
    """Oracle: statsmodels 0.14, `proportion_confint(method="wilson")`."""
    found = share(count, of)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)
