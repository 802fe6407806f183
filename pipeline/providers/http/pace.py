"""How fast one API may be asked: learned from its headers and refusals, without a clock or a network of its own."""

import math
import random
from collections.abc import Callable
from typing import NamedTuple

# By a refusal the rate falls to this share; while nothing is known yet and nothing was let through, to the second.
_DOWN, _BLIND = 0.85, 0.5
# It grows with the square of the time since, and is back after so many seconds times the root of the rate: those who
# ask less come back sooner, so that several who share a limit come to equal shares. Twice as slowly where the wait that
# was asked for costs so many requests or more.
_BACK, _DEAR = 2.5, 10
# Between the first two refusals it doubles in so many seconds.
_DOUBLES = 1.0
_SLOWEST = 60.0
# A limit with nothing left that is full again so soon is not waited for once the rate is known.
_SOON = 2.0


class Allowance(NamedTuple):
    """What the headers of a response leave: no request for `pause` seconds, then `rate` a second for `seconds`."""

    pause: float = 0.0
    rate: float = math.inf
    seconds: float = 0.0


NOTHING_SAID = Allowance()


class Pace:
    """Requests a second to one API. All moments are seconds of one clock, which the caller reads.

    Until the first refusal only headers slow it down. A rate limit counts once for all that was under way.
    """

    def __init__(self, unit: float = 1.0, spread: Callable[[float, float], float] = random.uniform) -> None:
        """`unit` is the wait after a refusal of which nothing is known, in seconds; `spread` draws between two."""
        self.unit, self.spread = max(unit, 0.001), spread
        self.base, self.is_learning = math.inf, True
        self.begun = self.lowered = self.next = self.opens = -math.inf
        self.sent = self.passed = 0
        self.left, self.left_until = math.inf, -math.inf
        self.asked = 0.0
        self.refused_since: float | None = None

    def rate(self, now: float) -> float:
        grown = self.base
        if self.base < math.inf:
            units = max(0.0, now - self.lowered) / self.unit
            back = _BACK * math.sqrt(max(1.0, self.base * self.unit)) * (1 + min(1.0, self.asked * self.base / _DEAR))
            squared = min(units / back, 1e6) ** 2
            grown *= 2.0 ** min(units / _DOUBLES, 60) if self.is_learning else 1 + (1 / _DOWN - 1) * squared
        return min(grown, self.left) if now < self.left_until else grown

    def wait(self, now: float) -> float:
        """Seconds until the next request may be sent; 0 where it may now."""
        return max(0.0, self.next - now, self.opens - now)

    def start(self, now: float) -> None:
        if not self.sent:
            self.begun = now
        self.sent += 1
        self.next = max(self.next, now) + self.spread(0.98, 1.02) / self.rate(now)

    def answer(self, now: float, allowance: Allowance = NOTHING_SAID) -> None:
        """A request was let through, whatever came of it."""
        self.passed += 1
        self.refused_since = None
        self.left, self.left_until = allowance.rate, now + allowance.seconds
        if allowance.pause > _SOON * self.unit or self.base == math.inf:
            self.opens = max(self.opens, now + allowance.pause)

    def refuse(self, now: float, started: float, seconds: float | None = None) -> None:
        """A request that was sent at `started` was refused; `seconds` are the wait that was asked for, if any."""
        if self.refused_since is None:
            self.refused_since = now
        rate = self.rate(now)
        self.asked = seconds or 0.0
        self.opens = max(self.opens, now + self.asked)
        if started < self.lowered:
            return
        if self.base == math.inf:
            self.base = max(1, self.sent - 1) / max(self.unit, now - self.begun)
        else:
            self.base = self._lower(rate, max(1 / rate, now - self.lowered))
            self.is_learning = False
        self.base = max(self.base, 1 / (_SLOWEST * self.unit))
        self.lowered, self.passed = self.opens, 0
        self.next = self.opens if seconds else now + self.spread(0.3, 1.0) / self.base

    def _lower(self, rate: float, seconds: float) -> float:
        """Below the rate that was refused; where that is far above what was let through, to the middle of both."""
        if not self.passed:
            return self.base * (_BLIND if self.is_learning else _DOWN)
        seen = self.passed / seconds
        return _DOWN * (rate if seen > 0.8 * rate else (seen + rate) / 2)
