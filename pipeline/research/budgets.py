"""How far a run may go: effort by depth, limits of time, tokens and cost, and why it stopped."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from pipeline.models.spent import Spent
from pipeline.research.values import Depth

StopReason = Literal["seconds", "tokens", "cost", "fetches"]
"""Why a run ended before it had done all it wanted: the limit that it reached. Its last round is none."""

ENOUGH_COVERAGE = 0.8


class Effort(NamedTuple):
    """What a depth stands for where nothing else is said."""

    rounds: int
    """The most rounds from queries to checked claims."""
    k: int
    """Results wanted of each query."""
    budget: int
    """The most sources that are read."""


# research-pipeline.md, gap 2.32.
EFFORTS: dict[Depth, Effort] = {
    "brief": Effort(1, 4, 5),
    "medium": Effort(3, 6, 10),
    "deep": Effort(5, 10, 25),
}


class Limits(NamedTuple):
    """Where gathering stops; the report is then written of what is there. None is no limit."""

    seconds: float | None = None
    """Seconds of work, all resumes together."""
    tokens: int | None = None
    """Tokens to and from the model together."""
    cost: float | None = None
    """What the model's answers cost as far as it is known, in USD."""


class Budget:
    """What a run has used of its limits; `seconds` and `spent` tell how much that is now."""

    def __init__(self, limits: Limits, seconds: Callable[[], float], spent: Callable[[], Spent]) -> None:
        """Nothing is held up yet."""
        self.limits = limits
        self.seconds = seconds
        self.spent = spent

    def used_up(self) -> StopReason | None:
        """The first limit that is reached; None where there is none."""
        spent = self.spent()
        if self.limits.seconds is not None and self.seconds() >= self.limits.seconds:
            return "seconds"
        if self.limits.tokens is not None and spent.tokens_in + spent.tokens_out >= self.limits.tokens:
            return "tokens"
        if self.limits.cost is not None and spent.cost >= self.limits.cost:
            return "cost"
        return None

    def seconds_left(self) -> float | None:
        """Seconds until the limit of time; None where there is none."""
        return None if self.limits.seconds is None else max(0.0, self.limits.seconds - self.seconds())
