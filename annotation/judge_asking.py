"""A model asked about many units at once, each reply kept as soon as it is there."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple

from annotation.judge_answers import Judged, ModelAnswer, answer_reader, judgement_of
from annotation.judge_files import Work
from annotation.judge_prompt import Prompt, build_prompt
from annotation.judge_replies import Question, Replies
from annotation.judge_units import Unit
from pipeline.completion import Structured, read_structured
from pipeline.cost import Usage, cost_of, price_of, usage_of
from pipeline.errors import PayloadError
from pipeline.providers.body import as_object, as_text, load_body
from pipeline.workers import Course, stop_on_signals

Ask = Callable[[str, str, dict[str, Any]], Awaitable[str]]
"""From prompt, system prompt and JSON Schema to the payload of the reply; raises `PayloadError` where there is none."""
Put = Callable[[Unit, Prompt, str], Awaitable[str]]
"""From a unit, its prompt and the text to put, which is the prompt's or a repair's, to the payload of the reply."""


class Spent(NamedTuple):
    """What replies took: tokens, the known cost, and how many replies have a cost that is not known."""

    replies: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0


class Asking:
    """One run: the units, the replies that are there, and what became of those that failed."""

    def __init__(self, work: Work, model: str, ask: Ask, replies: Replies, stop_waiting: Callable[[], int]) -> None:
        """Nothing is asked yet."""
        self.work = work
        self.model = model
        self.ask = ask
        self.replies = replies
        self.course = Course(work.limits, 0.0, stop_waiting)
        self.failed: dict[tuple[str, str, str | None], Structured[ModelAnswer]] = {}
        self.done = 0

    def spent(self) -> Spent:
        """What all kept replies of the model took."""
        total = Spent()
        for question in self.replies.places:
            if question.model == self.model:
                usage, cost = self.cost(self.replies.find(question) or "")
                total = Spent(
                    total.replies + 1,
                    total.input_tokens + usage.input_tokens,
                    total.output_tokens + usage.output_tokens,
                    total.cost + (cost or 0.0),
                    total.unpriced + (cost is None),
                )
        return total

    def cost(self, payload: str) -> tuple[Usage, float | None]:
        """What a reply took, and what it cost as far as that is known."""
        body = load_body(payload)
        named = as_text(as_object(body).get("model"))
        usage = usage_of(body)
        return usage, cost_of(usage, price_of(self.work.limits.prices, named, self.model))

    async def ask_all(self, units: Iterator[Unit], total: int) -> None:
        """Nothing; every unit is settled, or the run has been stopped.

        Raises:
            OSError: a reply cannot be kept; the other calls are given up.
        """
        self.course.spent = self.spent().cost
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self.work.limits.concurrency):
                    self.course.tasks.append(group.create_task(self.ask_some(units, total)))
                with stop_on_signals(self.course, self.work.tell):
                    await asyncio.gather(*self.course.tasks, return_exceptions=True)
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def ask_some(self, units: Iterator[Unit], total: int) -> None:
        """Nothing; no unit is left in the iterator, which several of these share. After a stop none is asked about."""
        for unit in units:
            prompt = build_prompt(unit)
            if self.reply_to(unit, prompt, prompt.text) is not None or self.course.goes_on():
                said = await self.read(unit, prompt, self.put)
                if said.status == "http_error":
                    self.failed[unit.key] = said
            self.done += 1
            self.work.report(self.done, total)
            await asyncio.sleep(0)  # a kept reply is never waited for, and a signal is to be heard all the same

    async def read(self, unit: Unit, prompt: Prompt, put: Put) -> Structured[ModelAnswer]:
        """What the model says about the unit, after one repair where that is needed."""

        async def reply(text: str) -> str:
            return await put(unit, prompt, text)

        try:
            payload = await reply(prompt.text)
        except PayloadError as error:
            return Structured(None, "http_error", f"provider_error: {error}", ())
        return await read_structured(payload, answer_reader(unit.task), reply)

    async def put(self, unit: Unit, prompt: Prompt, text: str) -> str:
        """The model's reply to a text, kept before anything is done with it; one that was kept is not asked for again.

        Raises:
            PayloadError: there is none.
        """
        kept = self.reply_to(unit, prompt, text)
        if kept is not None:
            return kept
        self.course.in_flight += 1
        try:
            payload = await self.ask(text, prompt.system, prompt.schema)
            self.replies.keep(self.question(unit, prompt, text), payload)
        finally:
            self.course.in_flight -= 1
        self.course.spent += self.cost(payload)[1] or 0.0
        return payload

    async def put_back(self, unit: Unit, prompt: Prompt, text: str) -> str:
        """The reply to a text that was kept; nobody is asked.

        Raises:
            PayloadError: there is none.
        """
        kept = self.reply_to(unit, prompt, text)
        if kept is None:
            raise PayloadError("The run was stopped before the model had mended its answer.", "not_recorded")
        return kept

    def question(self, unit: Unit, prompt: Prompt, text: str) -> Question:
        """What identifies the reply to a text."""
        return Question(unit.record.record_uuid, unit.task, unit.chunk_id, self.model, prompt.digest(text))

    def reply_to(self, unit: Unit, prompt: Prompt, text: str) -> str | None:
        """The kept reply to a text; None where there is none."""
        return self.replies.find(self.question(unit, prompt, text))

    def judged(self, units: Iterator[Unit]) -> Iterator[tuple[Unit, Judged]]:
        """Each settled unit with its judgement, from the kept replies and this run's failures."""
        with asyncio.Runner() as runner:
            for unit in units:
                prompt = build_prompt(unit)
                failed = self.failed.get(unit.key)
                if failed or self.reply_to(unit, prompt, prompt.text) is not None:
                    said = failed or runner.run(self.read(unit, prompt, self.put_back))
                    yield unit, judgement_of(unit, prompt, said, self.model, self.work.explain)
