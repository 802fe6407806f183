"""Who stands out: whole votes on a record, exchanged among people who judged the same units of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.argilla.labels import LABELS, TaskName
from exports.statistics.agreement import measure_agreement, measure_task
from exports.statistics.agreement_schema import AnnotatorAgreement
from exports.statistics.annotators import measure_exchange
from exports.statistics.ratings import Ratings, ScaledLabel, ScaleName
from tests.support.agreement_data import Row, ratings_of, ratings_of_matrix
from tests.support.juries import Jury, jury_ratings

RESAMPLES = 20


def rows_of(*units: str, passages: int = 1) -> Ratings:
    """Each unit a word with an answer for anna, ben, carla, dan: 1, 0, or `.` for none; so many to a record."""
    rows = [
        Row(f"r{number // passages:03d}", name, (int(answer),), chunk=f"c{number % passages}")
        for number, unit in enumerate(units)
        for name, answer in zip(("anna", "ben", "carla", "dan"), unit, strict=False)
        if answer != "."
    ]
    return ratings_of(rows, "retrieval")


AGREED = ["000", "111"] * 10


def of_person(ratings: Ratings, name: str) -> AnnotatorAgreement:
    found = measure_task(ratings, RESAMPLES, 0).annotators_vs_rest
    return next(each for each in found if each.rater == name and each.label == "topically_relevant")


def test_whole_records_are_exchanged_among_those_who_judged_the_same_units_and_agreement_names_nobody() -> None:
    ratings = rows_of(*["001", "110"] * 5, *AGREED)
    carla, anna = of_person(ratings, "carla"), of_person(ratings, "anna")
    # Three people on the only label with answers: three comparisons.
    assert (carla.p, carla.p_holm) == (pytest.approx(3**-10, abs=1e-9), pytest.approx(3 * 3**-10, abs=1e-9))
    # Both others say otherwise on 10 of 30 units. In a third of the exchanges they are alone, else one of two differs.
    assert carla.disagreement == pytest.approx(10 / 30)
    assert carla.expected_disagreement == pytest.approx(10 * (1 / 3 * 1 + 2 / 3 * 1 / 2) / 30)
    # The others never differ among themselves: 1 on 10 records, 0 on 20 and on an imagined one; t of 29 is 2.045.
    half = 2.045 / 30 * np.sqrt(10 * (1 - 1 / 3) ** 2 + 21 * (1 / 3) ** 2)
    ends = (1 / 3 - half, 1 / 3, 1 / 3 + half)
    assert (carla.excess_low, carla.excess, carla.excess_high) == pytest.approx(ends, abs=1e-4)
    assert (carla.stands_out, carla.examples, anna.p, anna.stands_out) == (
        True,
        ("r000:c0", "r001:c0", "r002:c0"),
        1,
        False,
    )
    apart, together = (of_person(rows_of(*["001"] * 5, *AGREED, passages=size), "carla").p for size in (1, 5))
    assert (apart, together) == (pytest.approx(3**-5, abs=1e-9), pytest.approx(1 / 3))
    # dan judged one passage of each record only, so carla can be exchanged with anna and ben alone.
    ratings = rows_of(*["0010", "000."] * 4, *["1111", "000."] * 10, passages=2)
    carla, dan = of_person(ratings, "carla"), of_person(ratings, "dan")
    assert carla.p == pytest.approx(3**-4, abs=1e-9)
    assert (dan.p, dan.stands_out, dan.undefined["p"], dan.disagreement is None) == (None, False, "no_exchange", False)
    anna, carla = of_person(rows_of("1..", ".0.", "..1"), "anna"), of_person(rows_of(*AGREED), "carla")
    assert (anna.disagreement, anna.expected_disagreement, anna.p) == (None, None, None)
    assert anna.undefined["disagreement"] == anna.undefined["p"] == "no_pairable_items"
    assert (carla.p, carla.p_holm, carla.disagreement, carla.stands_out) == (1, 1, 0, False)


@pytest.mark.parametrize("units", [["01", "10", "11", "00"] * 10, ["01..", "..10", "11..", "..01"] * 10])
def test_of_two_who_differ_nobody_can_be_told(units: list[str]) -> None:
    for each in measure_task(rows_of(*units), RESAMPLES, 0).annotators_vs_rest:
        assert (each.p, each.p_holm, each.stands_out) == (None, None, False)
        if each.label == "topically_relevant":
            assert each.undefined["p"] == each.undefined["p_holm"] == "no_exchange"


def test_in_a_file_of_three_tasks_each_has_a_third_of_the_chance_to_name_somebody() -> None:
    # Five lone dissents: p = 3⁻⁵ = .0041, of three comparisons .0123; six: .0041.
    def table(task: TaskName, dissents: int) -> Ratings:
        ratings = rows_of(*["001"] * dissents, *AGREED[:2])
        values = np.full((len(ratings.values), len(LABELS[task])), -1, dtype=np.int8)
        values[:, 0] = ratings.values[:, 0]
        return ratings._replace(task=task, values=values)

    def named(*tables: Ratings) -> dict[str, list[tuple[str, float]]]:
        tasks = measure_agreement(tables, (), RESAMPLES).tasks
        return {
            task: [(each.rater, each.p_holm or 1) for each in found.annotators_vs_rest if each.stands_out]
            for task, found in tasks.items()
        }

    tables = [table("retrieval", 4), table("grounding", 5), table("generation", 5)]
    assert named(tables[0]) == {"retrieval": [("carla", pytest.approx(3 * 3**-4))]}
    dissenting = [("carla", pytest.approx(3 * 3**-5))]
    assert named(*tables) == {"retrieval": [], "grounding": dissenting, "generation": dissenting}


def test_nobody_is_named_for_a_point_however_sure_it_is() -> None:
    random = np.random.default_rng(1)
    errors = random.random((2500, 3)) < (0.02, 0.02, 0.04)
    ratings = ratings_of_matrix((errors ^ (random.random((2500, 1)) < 0.3)).astype(float))
    for least, named in ((0.03, []), (0.0, ["a002"])):
        found = measure_task(ratings, RESAMPLES, 0, least_excess=least).annotators_vs_rest
        assert [each.rater for each in found if each.stands_out] == named
    sure = min(found, key=lambda each: each.p_holm or 1)
    assert 0 < (sure.excess_low or 0) < (sure.excess or 0) < 0.03


@pytest.mark.parametrize(("scale", "apart"), [("nominal", 1.0), ("ordinal", 0.25), ("interval", 0.25)])
def test_labels_on_scales_name_who_is_always_a_step_away(scale: ScaleName, apart: float) -> None:
    codes = np.tile([0, 1, 2, 3], 4)[:, np.newaxis] + [0, 0, 1]
    jury = jury_ratings(Jury(records=16, annotators=3), "retrieval", np.random.default_rng(0))
    values, places = ("1", "2", "3", "4", "5"), np.arange(1.0, 6)
    label = ScaledLabel(
        "score", scale, "identity", values, places, jury.units, jury.response_annotators, codes.reshape(-1)
    )
    scaled = jury._replace(values=jury.values[:, :0], own_labels=(), scaled=(label,))
    anna, ben, carla = measure_task(scaled, RESAMPLES, 0).annotators_vs_rest
    assert (carla.disagreement, carla.excess) == pytest.approx((apart, apart))
    assert (carla.stands_out, len(carla.examples), carla.lone_dissents, carla.undefined["bias_index"]) == (
        *(True, 3, None),
        "not_boolean",
    )
    assert (anna.stands_out, ben.stands_out) == (False, False)


def exchanged(ratings: Ratings, random: np.random.Generator) -> Ratings:
    """The whole votes on each record dealt out anew among those who judged the same units of it; one by one."""
    values = ratings.values.copy()
    records = ratings.unit_records[ratings.units]
    for record in np.unique(records):
        by_units: dict[tuple[int, ...], list[np.ndarray]] = {}
        for person in range(len(ratings.annotators)):
            rows = np.flatnonzero((records == record) & (ratings.response_annotators == person))
            by_units.setdefault(tuple(ratings.units[rows].tolist()), []).append(rows)
        for blocks in by_units.values():
            for place, other in enumerate(random.permutation(len(blocks))):
                values[blocks[place]] = ratings.values[blocks[other]]
    return ratings._replace(values=values)


@pytest.mark.parametrize(
    "jury",
    [
        Jury(records=14, annotators=4, seats=3, error=0.2),
        Jury(records=6, passages=4, annotators=5, seats=4, error=0.2),
        Jury(records=6, passages=3, annotators=4, seats=3, error=0.2, by_passage=True),
        Jury(records=10, annotators=9, seats=8, error=0.3),
    ],
)
def test_p_is_the_share_of_exchanges_that_differ_as_much_when_they_are_made_one_by_one(jury: Jury) -> None:
    random = np.random.default_rng(0)
    ratings = jury_ratings(jury, "retrieval", random)
    exact = measure_exchange(ratings)
    as_much = np.zeros((3, jury.annotators))
    draws = 300
    for _ in range(draws):
        drawn = measure_exchange(exchanged(ratings, random))
        as_much += [new.disagreement >= old.disagreement - 1e-9 for new, old in zip(drawn, exact, strict=True)]
    for label, found in enumerate(exact):
        told = np.isfinite(found.p)
        assert np.abs(found.p - as_much[label] / draws)[told] == pytest.approx(0, abs=0.12)


def test_p_is_that_of_adding_up_one_record_after_the_other() -> None:
    """The transform against plain convolution, on more records than the window of the transform holds."""
    ratings = ratings_of_matrix((np.random.default_rng(3).random((6000, 3)) < 0.3).astype(float))
    (found, *_) = measure_exchange(ratings)
    votes = ratings.values[:, 0].reshape(-1, 3)
    alone = (votes.sum(axis=1, keepdims=True) == 1) & (votes == 1) | (votes.sum(axis=1, keepdims=True) == 2) & (
        votes == 0
    )
    masses = np.ones(1)
    for _ in range(int(alone.any(axis=1).sum())):
        masses = np.convolve(masses, [2 / 3, 1 / 3])
    assert found.p == pytest.approx([masses[count:].sum() for count in alone.sum(axis=0)], abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_neither_names_nor_which_answer_is_yes_change_who_stands_out(seed: int) -> None:
    random = np.random.default_rng(seed)
    ratings = jury_ratings(Jury(records=12, annotators=4, seats=3, error=0.2), "retrieval", random)
    found = measure_exchange(ratings)
    flipped = measure_exchange(ratings._replace(values=1 - ratings.values))
    turned = ratings._replace(response_annotators=3 - ratings.response_annotators)
    for one, two, three in zip(found, flipped, measure_exchange(turned), strict=True):
        assert (two.p.tolist(), three.p[::-1].tolist()) == (one.p.tolist(), one.p.tolist())
