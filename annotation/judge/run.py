"""Records to judgements.

The file follows from records and replies alone, in the order of records, tasks and ranks: a run that was killed and
started again, or whose replies came in another order, gives the same bytes.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from annotation.judge._answers import BASELINE, Judged, ModelAnswer, answer_reader, baseline_judgement, judgement_of
from annotation.judge._baseline import JUDGES
from annotation.judge._prompt import Prompt, build_prompt, digest
from annotation.judge._units import Unit
from annotation.judge.files import Tally, Work, beside, check_work, write_judgements
from annotation.labels import TaskName
from pipeline.asking.run_state import RunState
from pipeline.errors import ProviderError
from pipeline.models.completion import Structured
from pipeline.models.replies import Replies, open_replies
from pipeline.models.structured import Asker, Asks, Spent, accept_body, ask_structured, spent_of
from pipeline.providers.choice import ChosenModel
from pipeline.providers.http.client import ApiClient, RetryPolicy
from pipeline.terminal import stopping_on_signals


class _Question(NamedTuple):
    """What identifies a reply: the unit, the model, and the digest of all that the model sees."""

    record_uuid: str
    task: str
    chunk_id: str | None
    model: str
    prompt_sha256: str


class _UnitAsker:
    """Asks about one unit. What was answered before is taken from the replies; `further` asks anything else.

    A reply is kept before anything is done with it. `received` is what came from `further`, kept or not: it was paid.
    """

    def __init__(self, unit: Unit, model: str, replies: Replies[_Question], further: Asks) -> None:
        """Start with nothing asked."""
        self.unit = unit
        self.model = model
        self.replies = replies
        self.further = further
        self.received: list[str] = []

    def question(self, prompt: str, system: str, schema: Mapping[str, Any]) -> _Question:
        """What identifies the reply to a prompt, the unit's own or a repair's."""
        record_uuid, task, chunk_id = self.unit.key
        return _Question(record_uuid, task, chunk_id, self.model, digest(prompt, system, schema))

    async def ask(self, prompt: str, system: str, schema: Mapping[str, Any], kept: list[str]) -> str:
        """The reply; its payloads are appended to `kept`.

        Raises:
            ProviderError: there is none.
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


class _Nobody:
    """Asked where nothing more may be asked."""

    async def ask(self, prompt: str, system: str, schema: Mapping[str, Any], kept: list[str]) -> str:
        """Refuse to ask.

        Raises:
            ProviderError: in any case.
        """
        raise ProviderError("The run was stopped before the model had mended its answer.", "not_recorded")


class _Asking:
    """One run: the model, the replies that are there, and what became of the units without one."""

    def __init__(self, work: Work, model: str, replies: Replies[_Question], stop_waiting: Callable[[], int]) -> None:
        """Start with nothing asked."""
        self.work = work
        self.model = model
        self.replies = replies
        self.state = RunState(work.limits, self.spent().cost, stop_waiting)
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
        """Settle every unit, unless the run is stopped.

        Raises:
            OSError: a reply cannot be kept; the other calls are given up.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self.work.limits.concurrency):
                    self.state.tasks.append(group.create_task(self.ask_some(asker, units, total)))
                with stopping_on_signals(partial(self.state.stop, tell=self.work.tell)):
                    await asyncio.gather(*self.state.tasks, return_exceptions=True)
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def ask_some(self, asker: Asks, units: Iterator[Unit], total: int) -> None:
        """Settle the units of the iterator, which several of these share. After a stop none is asked about."""
        for unit in units:
            prompt = build_prompt(unit)
            about = _UnitAsker(unit, self.model, self.replies, asker)
            if about.is_answered(prompt) or self.state.may_start_call():
                await self.ask_about(about, prompt)
            self.done += 1
            self.work.report(self.done, total)
            await asyncio.sleep(0)  # a kept reply is never waited for, and a signal is to be heard all the same

    async def ask_about(self, about: _UnitAsker, prompt: Prompt) -> None:
        """Settle the unit and keep its replies, or count it as failed."""
        self.state.in_flight += 1
        try:
            said = await _read_answer(about, prompt)
        finally:
            self.state.in_flight -= 1
            self.state.spending.spent += self.spent_of(about.received).cost
        if said.status == "http_error":
            self.failed[about.unit.key] = said

    def judged(self, units: Iterator[Unit]) -> Iterator[tuple[Unit, Judged]]:
        """Each settled unit with its judgement, from the kept replies and this run's failures."""
        with asyncio.Runner() as runner:
            for unit in units:
                prompt = build_prompt(unit)
                about = _UnitAsker(unit, self.model, self.replies, _Nobody())
                failed = self.failed.get(unit.key)
                if failed or about.is_answered(prompt):
                    said = failed or runner.run(_read_answer(about, prompt))
                    yield unit, judgement_of(unit, prompt, said, self.model, self.work.explain)


async def _read_answer(about: _UnitAsker, prompt: Prompt) -> Structured[ModelAnswer]:
    """What the model answers about the unit, after one repair where that is needed."""
    return await ask_structured(about, prompt.text, prompt.system, prompt.schema, answer_reader(about.unit.task))


class Outcome(NamedTuple):
    """What came of a run: the tally, a line for each part that is no record, units left over, and what it took.

    `stopped` says why units are left: `SIGINT`, `SIGTERM` or `max_cost`; empty where none are.
    """

    tally: Tally
    problems: tuple[str, ...]
    unsettled: int = 0
    stopped: str = ""
    spent: Spent = Spent()


def judge_by_words(work: Work) -> Outcome:
    """What came of judging without a model; the judgements stand in `work.out`.

    Raises:
        InputError: the records cannot be read, or there is nothing to judge.
        OutputError: something else stands at the place to write to.
    """
    checked = check_work(work, _takes_words, BASELINE)

    def judged() -> Iterator[tuple[Unit, Judged]]:
        for done, unit in enumerate(work.units(_takes_words), start=1):
            yield unit, baseline_judgement(unit)
            work.report(done, checked.units)

    return Outcome(write_judgements(work, judged()), checked.problems)


def judge_by_model(work: Work, chosen: ChosenModel, attempts: int = 2) -> Outcome:
    """What came of asking a model; the judgements stand in `work.out`, its replies beside it.

    What was answered before is not asked again. A signal or the known cost stops the run in good order: units that are
    not settled then have no line, and the same call again goes on.

    Raises:
        InputError: the records cannot be read, or there is nothing to judge.
        OutputError: something else stands at the place to write to, or another process is writing there.
        SettingsError: the key cannot be used.
    """
    checked = check_work(work, _takes_model, chosen.model)
    client = ApiClient(chosen.endpoint, RetryPolicy(attempts), work.limits.concurrency, accept_body)
    with open_replies(beside(work.out, "raw"), _Question, "annotation judge") as replies:
        asking = _Asking(work, chosen.model, replies, client.stop)

        async def ask() -> None:
            async with client:
                await asking.ask_all(Asker(client, chosen), work.units(_takes_model), checked.units)

        asyncio.run(ask())
        tally = write_judgements(work, asking.judged(work.units(_takes_model)))
        unsettled = checked.units - tally.units.total()
        return Outcome(tally, checked.problems, unsettled, asking.state.stopped if unsettled else "", asking.spent())


def _takes_words(unit: Unit) -> bool:
    """Whether the judge without a model judges the unit."""
    return unit.task in JUDGES


def _takes_model(unit: Unit) -> bool:
    """Whether a model is asked about the unit: not about grounding without passages, which annotators never see."""
    return unit.task != "grounding" or bool(unit.passages)
