import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exports.statistics.disagreements import Disagreement, find_disagreements, rank_together
from exports.statistics.ratings import Ratings
from exports.statistics.table import coefficients, totals
from tests.support.agreement_data import Row, ratings_of

ROWS = st.lists(st.text("01- ", min_size=5, max_size=5), max_size=12)


def ratings(*rows: str) -> Ratings:
    """One row a unit, one character an annotator, for the label `helpful`: 1, 0, - blank; other labels are all no."""
    return ratings_of(
        [
            Row(f"r{unit:03}", name, (0, 0, {"1": 1, "0": 0, "-": -1}[mark], 0, 0))
            for unit, row in enumerate(rows)
            for name, mark in zip(("anna", "ben", "carla", "dora", "emil"), row, strict=False)
            if mark != " "
        ]
    )


def alpha(rows: list[str]) -> float | None:
    ones = np.array([row.count("1") for row in rows], dtype=np.int64)
    zeros = np.array([row.count("0") for row in rows], dtype=np.int64)
    return coefficients(totals(zeros, ones))["krippendorff_alpha"]


def by_record(found: list[Disagreement]) -> dict[str, Disagreement]:
    return {item.record_uuid: item for item in found}


@given(ROWS)
def test_units_with_votes_on_both_sides_are_found_with_their_influence_the_weightiest_first(rows: list[str]) -> None:
    found, whole = find_disagreements(ratings(*rows)), alpha(rows)
    expected = [f"r{unit:03}" for unit, row in enumerate(rows) if "1" in row and "0" in row]
    assert sorted(item.record_uuid for item in found) == expected
    assert not found or math.fsum(item.contribution for item in found) == pytest.approx(1)
    for item in found:
        unit = int(item.record_uuid[1:])
        without = alpha(rows[:unit] + rows[unit + 1 :])
        assert whole is not None
        assert item.influence == (None if without is None else pytest.approx(whole - without, abs=1e-12))
    keys = [
        (-math.inf if item.influence is None else -abs(item.influence), -item.contribution, item.record_uuid)
        for item in found
    ]
    assert keys == sorted(keys)


def test_patterns_name_the_annotators_and_a_posterior_is_there_where_the_model_is_identified() -> None:
    found = by_record(find_disagreements(ratings("001", "001", "100", "11 ", "00 1", "1-0")))
    assert (found["r000"].pattern, found["r000"].pattern_count) == ("carla yes; anna, ben no", 2)
    assert (found["r002"].pattern, found["r002"].pattern_count) == ("anna yes; ben, carla no", 1)
    assert (found["r005"].pattern, found["r005"].votes) == ("anna yes; carla no", {"anna": True, "carla": False})
    rows = ["111", "000", "001"] * 10
    identified, refused = find_disagreements(ratings(*rows)), find_disagreements(ratings("01", "10", "11"))
    assert all(item.posterior is not None and item.entropy is not None for item in identified)
    assert all(0 <= (item.entropy or 0) <= 1 for item in identified)
    assert {(item.posterior, item.entropy) for item in refused} == {(None, None)}


@pytest.mark.parametrize(
    ("rows", "dissenter", "reliability"),
    [
        # Elsewhere carla agrees with the others twice (r001, r002) of three times (r003); on r004 the others tie.
        (("001", "111", "000", "110", "101"), "carla", 2 / 3),
        (("001",), "carla", None),
        (("10", "11", "00"), None, None),
        (("1100", "11", "00"), None, None),
        (("1-0", "11", "00"), None, None),
    ],
)
def test_a_lone_dissenter_is_named(rows: tuple[str, ...], dissenter: str | None, reliability: float | None) -> None:
    found = by_record(find_disagreements(ratings(*rows)))["r000"]
    assert (found.lone_dissenter, found.dissenter_reliability) == (dissenter, reliability)


def test_other_labels_in_disagreement_are_named_and_labels_and_number_can_be_limited() -> None:
    split = ratings("10", "11")
    split.values[0] = 1
    split.values[1] = [0, 1, 0, 1, 1]
    assert [(item.label, item.other_labels) for item in find_disagreements(split)] == [
        ("proper_action", ("helpful",)),
        ("helpful", ("proper_action",)),
    ]
    rows = ratings("10", "11", "01")
    assert (len(find_disagreements(rows)), find_disagreements(rows, top=1)) == (2, find_disagreements(rows)[:1])
    assert find_disagreements(rows, labels=["incomplete"]) == []


def test_the_order_of_annotators_changes_no_rank_and_of_several_tasks_the_weightiest_come_first() -> None:
    rows = ["0010", "1 10", "11 0", "0001", "1111"]
    found, mirrored = (
        [(item.record_uuid, item.influence) for item in find_disagreements(ratings(*group))]
        for group in (rows, [row[::-1] for row in rows])
    )
    assert found == mirrored
    (one,) = find_disagreements(ratings("00", "00", "10"))  # without it alpha is undefined
    heavy, light, light_too = (
        one.model_copy(update={"influence": influence, "contribution": contribution})
        for influence, contribution in ((-0.3, 0.1), (0.2, 0.1), (0.2, 0.5))
    )
    assert one.influence is None
    assert rank_together([[light, light_too], [heavy], [one]]) == [one, heavy, light_too, light]
