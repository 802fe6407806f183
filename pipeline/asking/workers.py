"""The calls of a run put to all providers at once, until they are settled or somebody says stop."""

import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pipeline.asking.questions import Limits, Report, Tell
from pipeline.asking.resume import Begun
from pipeline.asking.settle import Settled, settle_call
from pipeline.providers.body import load_body
from pipeline.providers.calls import Answerer, Call
from pipeline.providers.http.cost import cost_of, price_of, usage_of
from pipeline.schema import ErrorLine, StoredAnswer

StopReason = Literal["", "SIGINT", "SIGTERM", "max_cost"]


class Course:
    """How far a run has come: what it has spent, what failed, and why no further call is to be started."""

    def __init__(self, limits: Limits, spent: float = 0.0, stop_waiting: Callable[[], int] = lambda: 0) -> None:
        """Begin with what the answers in the folder have cost."""
        self.stop_waiting = stop_waiting
        self.limits = limits
        self.spent = spent
        self.errors: list[ErrorLine] = []
        self.settled = 0
        self.in_flight = 0
        self.stopped: StopReason = ""
        self.tasks: list[asyncio.Task[None]] = []

    def goes_on(self) -> bool:
        """Whether another call may be started; the known cost is looked at now."""
        limit = self.limits.max_cost
        if not self.stopped and limit is not None and self.spent >= limit:
            self.stopped = "max_cost"
        return not self.stopped

    def take_in(self, call: Call, settled: Settled) -> None:
        """Nothing; the call counts."""
        self.settled += 1
        if settled.error:
            self.errors.append(settled.error)
        if settled.answer and self.limits.max_cost is not None:
            self.spent += known_cost(settled.answer, self.limits, call.model)

    def stop(self, reason: StopReason, tell: Tell) -> None:
        """Nothing; no further request is sent, and the second time those under way are given up."""
        if self.stopped in ("SIGINT", "SIGTERM"):
            for task in self.tasks:
                task.cancel()
            return
        self.stopped = reason
        again = "Ctrl-C again" if reason == "SIGINT" else "a second signal"
        under_way = self.in_flight - self.stop_waiting()
        tell(f"Stopping: {under_way} calls under way are finished and kept; {again} gives them up.")


def known_cost(answer: StoredAnswer, limits: Limits, model: str) -> float:
    """What the answer cost; 0 where that is not known."""
    price = price_of(limits.prices, answer.model_version, model)
    return cost_of(usage_of(load_body(answer.answer_raw_json)), price) or 0.0


async def put_calls(out: Path, begun: Begun, answerer: Answerer, course: Course, report: Report, tell: Tell) -> None:
    """Nothing; every call that is not answered yet is settled, or the course says why not.

    Each provider has as many calls under way as the limits say; none waits for another provider.

    Raises:
        OutputError, OSError: a result cannot be written; the other calls are given up.
    """
    shared = [begun.questions.calls(begun.manifest.run_id, provider) for provider in begun.questions.providers]
    try:
        async with asyncio.TaskGroup() as group:
            for calls in shared:
                for _ in range(course.limits.concurrency):
                    work = put_some(out, begun, calls, answerer, course, report)
                    course.tasks.append(group.create_task(work))
            with stop_on_signals(course, tell):
                await asyncio.gather(*course.tasks, return_exceptions=True)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    for calls in shared:  # what a stop has left over
        course.settled += sum(call.answer_id in begun.answered[call.provider] for call in calls)


async def put_some(
    out: Path, begun: Begun, calls: Iterator[Call], answerer: Answerer, course: Course, report: Report
) -> None:
    """Nothing; no call is left in the iterator, which several of these share, or the course has been stopped."""
    total = begun.questions.calls_each()
    for call in calls:
        if call.answer_id in begun.answered[call.provider]:
            course.settled += 1
            report(call, total)
            continue
        if not course.goes_on():
            return
        course.in_flight += 1
        try:
            course.take_in(call, await settle_call(out, call, answerer))
        finally:
            course.in_flight -= 1
        report(call, total)
        await asyncio.sleep(0)  # a stored payload is never waited for, and a signal is to be heard all the same


@contextmanager
def stop_on_signals(course: Course, tell: Tell) -> Iterator[None]:
    """SIGINT and SIGTERM stop the course in good order while the block runs.

    Only the main thread hears signals, and Windows knows no such handlers: there Ctrl-C ends the process at once, and
    the folder is resumed like after any kill.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, course.stop, "SIGINT", tell)
    loop.add_signal_handler(signal.SIGTERM, course.stop, "SIGTERM", tell)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        loop.remove_signal_handler(signal.SIGTERM)
