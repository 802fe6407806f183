"""What the batches of all providers share in one start of a run: where they go, how long they wait, one limit."""

import asyncio
from collections.abc import Callable
from typing import Literal, NamedTuple

from pipeline.asking._ledger import Ledger
from pipeline.asking._paused import PausedTurns
from pipeline.asking.ask_live import ProviderSelection
from pipeline.asking.questions import Limits, Tell
from pipeline.asking.run_folder import OpenRun
from pipeline.asking.run_state import RunState
from pipeline.schema import ProviderName

Progress = Callable[[ProviderName, int, int, str], None]
"""Hears how many of a provider's calls are done, of how many, and what is waited for."""


class BatchPolicy(NamedTuple):
    """How batches are sent and waited for.

    `poll_seconds` lie between two looks. A batch whose creation was not answered is looked for during
    `settle_seconds`, then it counts as never made. No batch has more than `requests`, whatever the provider takes, so
    that what is held in memory or lost with a batch has an end. What the provider does not take is sent `attempts`
    times.
    """

    poll_seconds: float = 60.0
    settle_seconds: float = 60.0
    requests: int = 10_000
    attempts: int = 2


class BatchWork(NamedTuple):
    """What the desks of all providers share.

    `woken` is set when a signal ends the waiting. `expected` is what each batch under way will about cost; of those
    `aside` nothing comes in this start. A run that `is_new` can have no batch yet. `tell_counts` hears how far a batch
    is whenever that has changed.
    """

    run: OpenRun
    state: RunState
    selection: ProviderSelection
    ledger: Ledger
    paused: PausedTurns
    policy: BatchPolicy
    limits: Limits
    progress: Progress
    tell: Tell
    woken: asyncio.Event
    expected: dict[str, float]
    aside: set[str]
    is_new: bool
    tell_counts: Tell

    def used(self) -> float:
        """What is spent or under way."""
        return self.state.spent + sum(self.expected.values())

    def room(self, cost: float) -> Literal["now", "later", "never"]:
        """When a batch of this cost can be sent under `--max-cost`: later where only those under way leave no room."""
        limit, used = self.limits.max_cost, self.used()
        if limit is None or used + cost <= limit:
            return "now"
        under_way = sum(self.expected.get(name, 0.0) for name in self.ledger.open.keys() - self.aside)
        return "later" if used - under_way + cost <= limit else "never"

    def is_stopped(self) -> bool:
        """Whether a signal has ended the waiting."""
        return self.state.stopped in ("SIGINT", "SIGTERM")
