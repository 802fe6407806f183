"""How fast refusals come: at once for who made a mistake, a second later for who is refused again and again.

Who sends nothing but what is refused, one request after another, would otherwise keep the server busy refusing. What is
answered is never delayed, however much comes from one address.
"""

from collections import Counter

_AT_ONCE = 10
"""Refusals to an address within a second that do not wait."""
_WAIT_SECONDS = 1.0


class Pace:
    """The refusals of the current second, by address."""

    def __init__(self) -> None:
        """There is none yet."""
        self.second = 0
        self.counts: Counter[str] = Counter()

    def wait(self, address: str, now: float) -> float:
        """Count a refusal at the moment `now`; how many seconds it is to wait."""
        if int(now) != self.second:
            self.second = int(now)
            self.counts.clear()
        self.counts[address] += 1
        return _WAIT_SECONDS if self.counts[address] > _AT_ONCE else 0.0
