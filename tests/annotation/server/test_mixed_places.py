"""Where controls come in an annotator's work: at their rate from beginning to end, at places that are hers alone."""

from itertools import pairwise
from uuid import UUID

import pytest

pytestmark = pytest.mark.usefixtures("argilla_library")

PEOPLE = 150
UNITS = 450
CONTROLS = 500


def order_of(number: int, rate: float, at_once: int = 1, late: int = 0) -> list[bool]:
    """An annotator's work, unit by unit: whether it is a control; she begins with so many units before there are any.

    `at_once` are the passages of each answer.
    """
    from annotation.server.queue.mixed import Mixed, Places, block_of

    places = Places(b"dataset control", block_of([rate], at_once), 0, tuple(map(str, range(CONTROLS))))
    mixed = Mixed(UUID(int=number), late, 0, places, (), (), dict.fromkeys(places.waiting, at_once))
    expected = mixed.units_shown(UNITS)
    done: list[bool] = []
    for _ in range(UNITS // at_once):
        come, mixed = mixed.before_next(at_once)
        done += [True] * at_once * len(come) + [False] * at_once
    assert sum(done) == expected  # what her counts say beforehand is what comes
    return done


@pytest.mark.parametrize(
    ("rate", "at_once"),
    [
        *((0.1, 1), (0.3, 5), (0.05, 5)),
        *(pytest.param(rate, 1, marks=pytest.mark.rare) for rate in (0.05, 0.15, 0.3, 0.5)),
    ],
)
def test_the_rate_is_kept_in_each_tenth_of_the_work(rate: float, at_once: int) -> None:
    orders = [order_of(number, rate, at_once) for number in range(PEOPLE)]
    length = min(map(len, orders))
    for begin, end in [(tenth * length // 10, (tenth + 1) * length // 10) for tenth in range(10)]:
        share = sum(sum(order[begin:end]) for order in orders) / ((end - begin) * PEOPLE)
        assert share == pytest.approx(rate, abs=0.02)
    for order in orders:
        assert sum(order) / len(order) == pytest.approx(rate, abs=1.5 * at_once / len(order) + 0.01)


def test_no_place_tells_a_control_and_no_two_annotators_have_the_same_places() -> None:
    orders = [order_of(number, 0.1) for number in range(PEOPLE)]
    at_place = [sum(order[place] for order in orders) / PEOPLE for place in range(100)]
    assert max(at_place) < 0.1 + 5 * (0.09 / PEOPLE) ** 0.5
    assert min(at_place) > 0.1 - 4 * (0.09 / PEOPLE) ** 0.5
    assert len({tuple(order) for order in orders}) == PEOPLE
    gaps = [
        later - earlier for order in orders for earlier, later in pairwise(i for i, is_in in enumerate(order) if is_in)
    ]
    assert {2, 3, 17, 18} <= set(gaps)


def test_late_controls_do_not_come_at_once_places_stay_and_repeats_share_the_rate() -> None:
    orders = [order_of(number, 0.1, late=500) for number in range(20)]
    assert max(sum(order[first : first + 20]) for order in orders for first in range(len(order) - 20)) <= 4
    assert all(sum(order) in (49, 50, 51) for order in orders)
    assert order_of(7, 0.2) == order_of(7, 0.2)
    from annotation.server.queue.mixed import block_of, in_her_order

    assert [1 / (1 + block_of(rates, 1)) for rates in ([0.1, 0.1], [0.3, 0.4], [0.5, 0.5], [0.7])] == pytest.approx(
        [0.1, 0.4, 0.5, 0.5]
    )
    weights = {f"control {number}": 0.1 / 200 for number in range(200)} | {
        f"repeat {number}": 0.1 / 20 for number in range(20)
    }
    orders = [in_her_order(UUID(int=number), weights) for number in range(PEOPLE)]
    share = sum(answer.startswith("repeat") for order in orders for answer in order[:6]) / (6 * PEOPLE)
    assert share == pytest.approx(0.47, abs=0.05)  # a little below a half, because their number goes down
    assert len({order[0] for order in orders}) > 50
    assert all(len(order) == 220 for order in orders)
