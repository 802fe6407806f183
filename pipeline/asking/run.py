"""Narratives times providers into a run folder, resumable after a kill at any moment.

Source: pipeline/contracts/run_folder.md#resuming.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from pipeline.asking.questions import NO_LIMITS, AnswerSource, Call, Limits, Questions, Report, Tell
from pipeline.asking.resume import Begun, Settled, answer_call, begin_run, standing_errors, time_now
from pipeline.asking.run_folder import (
    ERRORS,
    RunManifest,
    csv_file,
    locked_folder,
    read_errors,
    write_errors,
    write_manifest,
)
from pipeline.asking.summary import summarise_run
from pipeline.csv_v2.file import read_answers
from pipeline.errors import InputError
from pipeline.interrupts import stopping_on_signals
from pipeline.providers.body import load_body
from pipeline.providers.cost import cost_of, price_of, usage_of
from pipeline.schema import PROVIDERS, ErrorLine, StoredAnswer

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


async def put_calls(out: Path, begun: Begun, source: AnswerSource, course: Course, report: Report, tell: Tell) -> None:
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
                    work = put_some(out, begun, calls, source, course, report)
                    course.tasks.append(group.create_task(work))
            with stopping_on_signals(partial(course.stop, tell=tell)):
                await asyncio.gather(*course.tasks, return_exceptions=True)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    for calls in shared:  # what a stop has left over
        course.settled += sum(call.answer_id in begun.answered[call.provider] for call in calls)


async def put_some(
    out: Path, begun: Begun, calls: Iterator[Call], source: AnswerSource, course: Course, report: Report
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
            course.take_in(call, await answer_call(out, call, source))
        finally:
            course.in_flight -= 1
        report(call, total)
        await asyncio.sleep(0)  # a stored payload is never waited for, and a signal is to be heard all the same


__all__ = ["NO_LIMITS", "Limits", "Questions", "Report", "Tell", "ask_narratives"]


async def ask_narratives(
    questions: Questions,
    out: Path,
    source: AnswerSource,
    report: Report = lambda call, total: None,
    tell: Tell = lambda line: None,
    limits: Limits = NO_LIMITS,
) -> RunManifest:
    """The manifest of the run; its folder holds one CSV a provider, errors, citations and the manifest.

    Calls answered earlier are not put again; what failed earlier is. `report` hears of every call when it is settled.
    SIGINT, SIGTERM and the known cost stop the run in good order: the manifest says so, and the same questions asked
    again go on. A signal also stops the source's calls that only wait.

    Raises:
        OutputError: the folder holds something else, or is in use.
        InputError: answers in the folder are to other narratives or of another model, or nothing at all was answered.
    """
    with locked_folder(out):
        begun = begin_run(out, questions)
        standing = standing_errors(read_errors(out), begun)
        write_errors(out, standing)
        course = Course(limits, spent_earlier(out, begun, limits), source.stop)
        await put_calls(out, begun, source, course, report, tell)
        manifest = finish_run(out, begun, course, [*standing, *course.errors])
    if not manifest.answers and not manifest.stopped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in manifest.errors.items())
        raise InputError(f"Nothing was answered ({kinds}); the reasons are in `{ERRORS}` in {str(out)!r}.")
    return manifest


def spent_earlier(out: Path, begun: Begun, limits: Limits) -> float:
    """The known cost of the answers in the folder; it is looked up only where there is a limit to hold."""
    if limits.max_cost is None:
        return 0.0
    return sum(
        known_cost(answer, limits, begun.questions.models.get(provider, ""))
        for provider in PROVIDERS
        if begun.answered[provider]
        for answer in read_answers(csv_file(out, provider))
    )


def finish_run(out: Path, begun: Begun, course: Course, errors: Sequence[ErrorLine]) -> RunManifest:
    """The run's manifest, written with answers, errors and citations in their final order.

    It counts as finished unless calls are left that a stop kept from being settled.
    """
    write_errors(out, sorted(errors, key=lambda error: (PROVIDERS.index(error.provider), error.row, error.repeat)))
    unsettled = begun.questions.calls_each() * len(begun.questions.providers) - course.settled
    manifest = summarise_run(out, begun, errors, course.limits.prices)
    changes = {
        "finished": None if unsettled else time_now(),
        "stopped": course.stopped if unsettled else "",
        "unsettled": unsettled,
    }
    manifest = manifest.model_copy(update=changes)
    write_manifest(out, manifest)
    return manifest
