"""A model asked about many units at once, each reply kept as soon as it is there."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from annotation.judge.answers import Judged, ModelAnswer, answer_reader, judgement_of
from annotation.judge.files import Work
from annotation.judge.prompt import Prompt, build_prompt, digest
from annotation.judge.replies import Question, Replies
from annotation.judge.units import Unit
from annotation.labels import TaskName
from pipeline.asking.workers import Course, stop_on_signals
from pipeline.errors import PayloadError
from pipeline.models.completion import Structured
from pipeline.models.spent import Spent, spent_of
from pipeline.models.structured import Asks, ask_structured


class UnitAsker:
    """Asks about one unit. What was answered before is taken from the replies; `further` asks anything else.

    A reply is kept before anything is done with it. `received` is what came from `further`, kept or not: it was paid.
    """

    def __init__(self, unit: Unit, model: str, replies: Replies, further: Asks) -> None:
        """Nothing is asked yet."""
        self.unit = unit
        self.model = model
        self.replies = replies
        self.further = further
        self.received: list[str] = []

    def question(self, prompt: str, system: str, schema: Mapping[str, Any]) -> Question:
        """What identifies the reply to a prompt, the unit's own or a repair's."""
        record_uuid, task, chunk_id = self.unit.key
        return Question(record_uuid, task, chunk_id, self.model, digest(prompt, system, schema))

    async def ask(self, prompt: str, system: str, schema: Mapping[str, Any], kept: list[str]) -> str:
        """The reply; its payloads are appended to `kept`.

        Raises:
            PayloadError: there is none.
        """
        question = self.question(prompt, system, schema)
        payloads = self.replies.find(question)
        if not payloads:
            try:
                await self.further.ask(prompt, system, schema, payloads)
            finally:
                self.received += payloads
            self.replies.keep(question, payloads)
        kept += payloads
        return payloads[-1]

    def is_answered(self, prompt: Prompt) -> bool:
        """Whether the reply to the unit's own prompt was kept."""
        return self.question(prompt.text, prompt.system, prompt.schema) in self.replies.places


class Nobody:
    """Asked where nothing more may be asked."""

    async def ask(self, prompt: str, system: str, schema: Mapping[str, Any], kept: list[str]) -> str:
        """Nothing.

        Raises:
            PayloadError: in any case.
        """
        raise PayloadError("The run was stopped before the model had mended its answer.", "not_recorded")


class Asking:
    """One run: the model, the replies that are there, and what became of the units without one."""

    def __init__(self, work: Work, model: str, replies: Replies, stop_waiting: Callable[[], int]) -> None:
        """Nothing is asked yet."""
        self.work = work
        self.model = model
        self.replies = replies
        self.course = Course(work.limits, self.spent().cost, stop_waiting)
        self.failed: dict[tuple[str, TaskName, str | None], Structured[ModelAnswer]] = {}
        self.done = 0

    def spent(self) -> Spent:
        """What all kept replies of the model took."""
        questions = [question for question in self.replies.places if question.model == self.model]
        payloads = [payload for question in questions for payload in self.replies.find(question)]
        return self.spent_of(payloads)

    def spent_of(self, payloads: Iterable[str]) -> Spent:
        """What the payloads took together."""
        return spent_of(payloads, self.model, self.work.limits.prices)

    async def ask_all(self, asker: Asks, units: Iterator[Unit], total: int) -> None:
        """Nothing; every unit is settled, or the run has been stopped.

        Raises:
            OSError: a reply cannot be kept; the other calls are given up.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self.work.limits.concurrency):
                    self.course.tasks.append(group.create_task(self.ask_some(asker, units, total)))
                with stop_on_signals(self.course, self.work.tell):
                    await asyncio.gather(*self.course.tasks, return_exceptions=True)
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def ask_some(self, asker: Asks, units: Iterator[Unit], total: int) -> None:
        """Nothing; no unit is left in the iterator, which several of these share. After a stop none is asked about."""
        for unit in units:
            prompt = build_prompt(unit)
            about = UnitAsker(unit, self.model, self.replies, asker)
            if about.is_answered(prompt) or self.course.goes_on():
                await self.ask_about(about, prompt)
            self.done += 1
            self.work.report(self.done, total)
            await asyncio.sleep(0)  # a kept reply is never waited for, and a signal is to be heard all the same

    async def ask_about(self, about: UnitAsker, prompt: Prompt) -> None:
        """Nothing; the unit is settled, its replies kept, or it counts as failed."""
        self.course.in_flight += 1
        try:
            said = await read_answer(about, prompt)
        finally:
            self.course.in_flight -= 1
            self.course.spent += self.spent_of(about.received).cost
        if said.status == "http_error":
            self.failed[about.unit.key] = said

    def judged(self, units: Iterator[Unit]) -> Iterator[tuple[Unit, Judged]]:
        """Each settled unit with its judgement, from the kept replies and this run's failures."""
        with asyncio.Runner() as runner:
            for unit in units:
                prompt = build_prompt(unit)
                about = UnitAsker(unit, self.model, self.replies, Nobody())
                failed = self.failed.get(unit.key)
                if failed or about.is_answered(prompt):
                    said = failed or runner.run(read_answer(about, prompt))
                    yield unit, judgement_of(unit, prompt, said, self.model, self.work.explain)


async def read_answer(about: UnitAsker, prompt: Prompt) -> Structured[ModelAnswer]:
    """What the model answers about the unit, after one repair where that is needed."""
    return await ask_structured(about, prompt.text, prompt.system, prompt.schema, answer_reader(about.unit.task))
