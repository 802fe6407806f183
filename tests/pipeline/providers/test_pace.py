"""The pace of requests against simulated limits: thousands of calls in simulated time."""

import heapq
import math
import random
from itertools import count
from typing import NamedTuple

import pytest

from pipeline.providers.http.pace import Allowance, Pace


class Bucket:
    """A limit of so many requests a second, of which `most` may come at once."""

    def __init__(self, rate: float, most: int) -> None:
        self.rate, self.most, self.tokens, self.time = rate, most, float(most), 0.0

    def take(self, now: float) -> bool:
        self.tokens = min(self.most, self.tokens + (now - self.time) * self.rate)
        self.time = now
        good = self.tokens >= 1
        self.tokens -= good
        return good

    def retry_after(self) -> int:
        return max(1, math.ceil((1 - self.tokens) / self.rate))

    def left(self) -> Allowance:
        """What OpenAI's headers say, by our rule: what is left, and when the bucket is full."""
        left, reset = int(self.tokens), (self.most - self.tokens) / self.rate
        return Allowance(0.0, 4 * left / reset, reset) if left and reset > 1 else Allowance(0.0 if left else reset)


class Run(NamedTuple):
    seconds: float
    refused: int
    shares: list[float]
    """The share of each run of the calls that were answered when the first came to its end."""


def simulate(bucket: Bucket, runs: int, headers: str, calls: int = 300, seed: int = 0) -> Run:
    """So many runs, each with four calls at once that take .01 to .3 seconds, behind one bucket."""
    chance, order = random.Random(seed), count()
    paces = [Pace(1.0, chance.uniform) for _ in range(runs)]
    left, done, shares, refused, now = [calls] * runs, [0] * runs, list[float](), 0, 0.0
    events: list[tuple[float, int, int, bool | None, float, Allowance]]
    events = [(0.0, next(order), run, None, 0.0, Allowance()) for run in range(runs) for _ in range(4)]
    while events:
        now, _, run, good, sent, said = heapq.heappop(events)
        pace = paces[run]
        if good:
            pace.answer(now, said)
            done[run] += 1
            shares = shares or ([each / sum(done) for each in done] if done[run] == calls else [])
        elif good is not None:
            refused, left[run] = refused + 1, left[run] + 1
            pace.refuse(now, sent, said.seconds if headers else None)
        elif left[run] and not pace.wait(now):
            pace.start(now)
            left[run] -= 1
            passed = bucket.take(now)
            stated = bucket.left() if headers == "all" and passed else Allowance(seconds=bucket.retry_after())
            later = now + (chance.uniform(0.01, 0.3) if passed else 0.002)
            heapq.heappush(events, (later, next(order), run, passed, now, stated if headers else Allowance()))
            continue
        if done[run] < calls and (good is not None or left[run] or pace.wait(now)):
            later = now + pace.wait(now) + chance.uniform(0.0, 0.001)
            heapq.heappush(events, (later, next(order), run, None, 0.0, Allowance()))
        elif done[run] < calls and good is None:  # what is under way may come back
            heapq.heappush(events, (now + 0.05, next(order), run, None, 0.0, Allowance()))
    assert done == [calls] * runs
    return Run(now, refused, shares)


@pytest.mark.parametrize("headers", ["", "retry-after", "all"])
@pytest.mark.parametrize("most", [3, 20])
@pytest.mark.parametrize("rate", [1, 2, 10])
def test_three_hundred_calls_take_little_more_than_the_limit_lets_through(rate: int, most: int, headers: str) -> None:
    least = (300 - most) / rate
    assert max(simulate(Bucket(rate, most), 1, headers, seed=seed).seconds for seed in range(3)) <= 1.25 * least


@pytest.mark.parametrize("headers", ["", "retry-after", "all"])
@pytest.mark.parametrize("rate", [2, 10])
def test_two_runs_come_to_equal_shares_of_a_limit(rate: int, headers: str) -> None:
    found = [simulate(Bucket(rate, 3), 2, headers, seed=seed) for seed in range(8)]
    least = (600 - 3) / rate
    assert sum(each.seconds for each in found) / len(found) <= 1.25 * least
    assert sum(min(each.shares) for each in found) / len(found) >= 0.35


def test_one_that_never_lets_anything_through_is_asked_ever_more_seldom_and_never_gives_up_a_recovery() -> None:
    pace, now, sent = Pace(spread=lambda low, high: high), 0.0, 0
    while now < 900:
        now += pace.wait(now)
        pace.start(now)
        pace.refuse(now, now)
        sent += 1
    assert (15 < sent < 50, pace.refused_since, 0 < pace.wait(now) <= 60) == (True, 0.0, True)
    while pace.wait(now) > 0.2:
        now += pace.wait(now)
        pace.start(now)
        pace.answer(now)
    assert now < 1200


def test_refusals_of_what_was_under_way_together_slow_down_once() -> None:
    pace = Pace(spread=lambda low, high: 1.0)
    for _ in range(40):
        pace.start(0.0)
    for moment in (1.0, 1.1, 1.2):
        pace.refuse(moment, 0.0)
    assert pace.rate(1.2) == pytest.approx(39, rel=0.2)
