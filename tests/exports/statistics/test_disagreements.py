import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.argilla.labels import LABELS
from exports.statistics.disagreements import Disagreement, find_disagreements, rank_together
from exports.statistics.ratings import Ratings
from exports.statistics.table import coefficients, totals
from tests.support.places import SHARED

NAMES = ("anna", "ben", "carla", "dora", "emil")
ROWS = st.lists(st.text("01- ", min_size=5, max_size=5), max_size=12)
CASES = SHARED / "iaa-cases"


def ratings(*rows: str) -> Ratings:
    """One row a unit, one character an annotator, for the label `helpful`: 1, 0, - blank; other labels are all no."""
    given = [(unit, rater, mark) for unit, row in enumerate(rows) for rater, mark in enumerate(row) if mark != " "]
    values = np.zeros((len(given), len(LABELS["generation"])), dtype=np.int8)
    values[:, LABELS["generation"].index("helpful")] = [{"1": 1, "0": 0, "-": -1}[mark] for *_, mark in given]
    return Ratings(
        task="generation",
        annotators=NAMES,
        records=tuple(f"r{unit:03}" for unit in range(len(rows))),
        unit_records=np.arange(len(rows)),
        unit_chunks=("",) * len(rows),
        unit_languages=("en",) * len(rows),
        units=np.array([unit for unit, _, _ in given], dtype=np.int64),
        response_annotators=np.array([rater for _, rater, _ in given], dtype=np.int64),
        values=values,
        moments=np.zeros(len(given), dtype=np.int64),
        rounds=(),
        response_rounds=np.full(len(given), -1),
        n_duplicates=0,
        discards=None,
    )


def alpha(rows: list[str]) -> float | None:
    ones = np.array([row.count("1") for row in rows], dtype=np.int64)
    zeros = np.array([row.count("0") for row in rows], dtype=np.int64)
    return coefficients(totals(zeros, ones))["krippendorff_alpha"]


def by_record(found: list[Disagreement]) -> dict[str, Disagreement]:
    return {item.record_uuid: item for item in found}


@given(ROWS)
def test_exactly_the_units_with_votes_on_both_sides_are_found(rows: list[str]) -> None:
    found = find_disagreements(ratings(*rows))
    expected = [f"r{unit:03}" for unit, row in enumerate(rows) if "1" in row and "0" in row]
    assert sorted(item.record_uuid for item in found) == expected


@given(ROWS)
def test_influence_is_alpha_less_alpha_without_the_unit(rows: list[str]) -> None:
    whole = alpha(rows)
    for item in find_disagreements(ratings(*rows)):
        unit = int(item.record_uuid[1:])
        without = alpha(rows[:unit] + rows[unit + 1 :])
        assert whole is not None
        assert item.influence == (None if without is None else pytest.approx(whole - without, abs=1e-12))


@given(ROWS)
def test_contributions_add_up_to_one(rows: list[str]) -> None:
    found = find_disagreements(ratings(*rows))
    assert not found or math.fsum(item.contribution for item in found) == pytest.approx(1)


@given(ROWS)
def test_the_weightiest_come_first(rows: list[str]) -> None:
    found = find_disagreements(ratings(*rows))
    keys = [
        (-math.inf if item.influence is None else -abs(item.influence), -item.contribution, item.record_uuid)
        for item in found
    ]
    assert keys == sorted(keys)


def test_a_unit_without_which_alpha_is_undefined_comes_first() -> None:
    found = find_disagreements(ratings("00", "00", "10"))
    assert [(item.record_uuid, item.influence) for item in found] == [("r002", None)]


def test_patterns_name_the_annotators_and_are_counted() -> None:
    found = by_record(find_disagreements(ratings("001", "001", "100", "11 ", "00 1", "1-0")))
    assert (found["r000"].pattern, found["r000"].pattern_count) == ("carla yes; anna, ben no", 2)
    assert (found["r002"].pattern, found["r002"].pattern_count) == ("anna yes; ben, carla no", 1)
    assert (found["r005"].pattern, found["r005"].votes) == ("anna yes; carla no", {"anna": True, "carla": False})


def test_a_lone_dissenter_is_named_with_her_reliability_elsewhere() -> None:
    # Elsewhere carla agrees with the others twice (r001, r002) of three times (r003); on r004 the others tie.
    found = by_record(find_disagreements(ratings("001", "111", "000", "110", "101")))
    assert found["r000"].lone_dissenter == "carla"
    assert found["r000"].dissenter_reliability == pytest.approx(2 / 3)


@pytest.mark.parametrize("row", ["10", "1100", "1-0"])
def test_nobody_dissents_alone_in_a_tie(row: str) -> None:
    (found,) = find_disagreements(ratings(row, "11", "00"))
    assert (found.lone_dissenter, found.dissenter_reliability) == (None, None)


def test_a_dissenter_met_nowhere_else_has_no_reliability() -> None:
    (found,) = find_disagreements(ratings("001"))
    assert (found.lone_dissenter, found.dissenter_reliability) == ("carla", None)


def test_posterior_and_entropy_are_there_only_where_the_model_is_identified() -> None:
    rows = ["111", "000", "001"] * 10
    identified, refused = find_disagreements(ratings(*rows)), find_disagreements(ratings("01", "10", "11"))
    assert all(item.posterior is not None and item.entropy is not None for item in identified)
    assert all(0 <= (item.entropy or 0) <= 1 for item in identified)
    assert {(item.posterior, item.entropy) for item in refused} == {(None, None)}


def test_other_labels_of_the_unit_that_are_in_disagreement_are_named() -> None:
    split = ratings("10", "11")
    split.values[0] = 1
    split.values[1] = [0, 1, 0, 1, 1]
    found = find_disagreements(split)
    assert [(item.label, item.other_labels) for item in found] == [
        ("proper_action", ("helpful",)),
        ("helpful", ("proper_action",)),
    ]


def test_labels_and_number_can_be_limited() -> None:
    rows = ratings("10", "11", "01")
    assert len(find_disagreements(rows)) == 2
    assert find_disagreements(rows, top=1) == find_disagreements(rows)[:1]
    assert find_disagreements(rows, labels=["incomplete"]) == []


def test_names_and_order_of_annotators_do_not_change_the_ranking() -> None:
    rows = ["0010", "1 10", "11 0", "0001", "1111"]
    turned = [row[::-1] for row in rows]
    found, mirrored = (find_disagreements(ratings(*group)) for group in (rows, turned))
    assert [(item.record_uuid, item.influence) for item in found] == [
        (item.record_uuid, item.influence) for item in mirrored
    ]


def test_of_several_tasks_the_weightiest_come_first() -> None:
    (one,) = find_disagreements(ratings("00", "00", "10"))
    heavy, light, light_too, undefined = (
        one.model_copy(update={"influence": influence, "contribution": contribution})
        for influence, contribution in ((-0.3, 0.1), (0.2, 0.1), (0.2, 0.5), (None, 0.1))
    )
    assert rank_together([[light, light_too], [heavy], [undefined]]) == [undefined, heavy, light_too, light]
