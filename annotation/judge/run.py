"""Records to judgements, and a sample of rejected quotes beside them.

The file follows from records and replies alone, in the order of records, tasks and ranks: a run that was killed and
started again, or whose replies came in another order, gives the same bytes.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from heapq import nsmallest
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from annotation.argilla.labels import OWN_TASKS, TaskName
from annotation.judge.judgements import FullJudgement, Judged, Unit, units_of
from annotation.judge.model import ModelAnswer, Prompt, build_prompt, digest, judgement_of, read_answer
from annotation.push.record_sources import read_source
from pipeline.asking.questions import NO_LIMITS, Limits, Tell
from pipeline.asking.run_state import RunState
from pipeline.core.errors import BadRowsError, InputError, OutputError, ProviderError
from pipeline.core.files import staged_file
from pipeline.core.schema import Frozen
from pipeline.core.terminal import run_together
from pipeline.models.asking import Replies, open_replies
from pipeline.models.completion import STATUSES, Status, Structured
from pipeline.models.structured import Asker, Asks, Spent, accept_body, ask_structured, spent_of
from pipeline.providers import ChosenModel
from pipeline.providers.http.client import ApiClient, RetryPolicy, waiting
from pipeline.records.run import numbered_lines

_Key = tuple[str, TaskName, str | None]


class Work(NamedTuple):
    """`sample` rejected quotes are written beside `out`; `report` hears how many units are done, and of how many."""

    records: Path
    out: Path
    tasks: Sequence[TaskName] = OWN_TASKS
    sample: int = 0
    limits: Limits = NO_LIMITS
    report: Callable[[int, int], None] = lambda done, total: None
    tell: Tell = lambda line: None

    def units(self) -> Iterator[Unit]:
        """Each unit once, in the order of records, tasks and ranks; what is no record is passed over."""
        seen: set[_Key] = set()
        for record in read_source(self.records, []):
            for unit in units_of(record, self.tasks):
                if unit.key not in seen:
                    seen.add(unit.key)
                    yield unit


class Tally(NamedTuple):
    """Judgements by status; by site and status, one of several sites at each; and by the rules that they break."""

    units: Counter[Status]
    sites: Counter[tuple[str, Status]]
    broken_rules: Counter[str]
    rejected: int


def _check_work(work: Work, model: str) -> tuple[int, tuple[str, ...]]:
    problems: list[str] = []
    records = without_passages = 0
    found: Counter[_Key] = Counter()
    for record in read_source(work.records, problems):
        records += 1
        without_passages += not record.chunks
        found.update(unit.key for unit in units_of(record, work.tasks))
    if problems and not records:
        raise BadRowsError("No line is a record:", problems)
    if not found:
        tasks = ", ".join(work.tasks)
        raise InputError(
            f"There is nothing to judge in {str(work.records)!r}: {records} records, none with a unit of {tasks}. Give "
            "records with passages, or other tasks."
        )
    _refuse_other_file(work, model)
    if without_passages:
        work.tell(f"{without_passages} of {records} records have no passages: annotators see them in generation only.")
    if repeated := found.total() - len(found):
        work.tell(f"{repeated} units stand in the records more than once; the first of each is judged.")
    return len(found), tuple(problems)


def _refuse_other_file(work: Work, model: str) -> None:
    """Check that `work.out` is free or holds judgements of the model."""
    out = work.out
    for path in (out, beside(out, "raw"), beside(out, "sample")):
        if path.resolve() == work.records.resolve():
            raise OutputError(f"{str(path)!r} would be written, but it is the records; name another `--out`.")
        if path.exists() and not path.is_file():
            raise OutputError(f"{str(path)!r} would be written, but it is no file; name another `--out`.")
    if not out.exists():
        return
    try:
        judged_by = [FullJudgement.model_validate_json(line).model for _, line in islice(numbered_lines(out), 1)]
    except (InputError, ValidationError) as error:
        raise OutputError(f"{str(out)!r} holds something else than judgements; name another `--out`.") from error
    if judged_by and judged_by[0] != model:
        raise OutputError(f"{str(out)!r} holds judgements by {judged_by[0]!r}, not {model!r}; name another `--out`.")


def beside(out: Path, what: str) -> Path:
    return out.with_name(f"{out.name}.{what}.jsonl")


def _write_judgements(work: Work, judged: Iterable[tuple[Unit, Judged]]) -> Tally:
    tally = Tally(Counter(), Counter(), Counter(), 0)
    sample: list[tuple[str, bytes]] = []
    with staged_file(work.out) as file:
        for unit, (judgement, rejected) in judged:
            file.write(_line(judgement) + b"\n")
            tally.units[judgement.status] += 1
            tally.sites.update((site, judgement.status) for site in unit.sites)
            tally.broken_rules.update(judgement.broken_rules)
            tally = tally._replace(rejected=tally.rejected + len(rejected))
            if work.sample and rejected:
                # An order that has nothing to do with the quotes, and is the same each time.
                placed = [(sha256(line).hexdigest(), line) for line in map(_line, rejected)]
                sample = nsmallest(work.sample, [*sample, *placed], key=itemgetter(0))
    if work.sample:
        with staged_file(beside(work.out, "sample")) as file:
            file.writelines(line + b"\n" for _, line in sample)
    return tally


def _line(value: Frozen) -> bytes:
    return value.model_dump_json().encode("utf-8", "backslashreplace")


def status_table(tally: Tally) -> list[list[str]]:
    """A heading and a row for each site with a judgement that failed: how many have which status; most first."""
    counts: dict[str, Counter[Status]] = {}
    for (site, status), count in tally.sites.items():
        counts.setdefault(site, Counter())[status] += count
    failing = [site for site in counts if counts[site].total() > counts[site]["ok"]]
    order = sorted(failing, key=lambda site: (-counts[site].total(), site))
    return [["site", *STATUSES], *([site, *(str(counts[site][status]) for status in STATUSES)] for site in order)]


class _Question(NamedTuple):
    record_uuid: str
    task: str
    chunk_id: str | None
    model: str
    prompt_sha256: str


@dataclass
class _UnitAsker:
    """What was answered before is taken from the replies; `further` asks anything else.

    A reply is kept before anything is done with it. `received` is what came from `further`, kept or not: it was paid.
    """

    unit: Unit
    model: str
    replies: Replies[_Question]
    further: Asks
    received: list[str] = field(default_factory=list)

    def question(self, prompt: str, system: str, schema: Mapping[str, Any]) -> _Question:
        record_uuid, task, chunk_id = self.unit.key
        return _Question(record_uuid, task, chunk_id, self.model, digest(prompt, system, schema))

    async def ask(self, prompt: str, system: str, schema: Mapping[str, Any], kept: list[str]) -> str:
        """The reply, or ProviderError; its payloads are appended to `kept`."""
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
        return self.question(prompt.text, prompt.system, prompt.schema) in self.replies.places

    async def answer(self, prompt: Prompt) -> Structured[ModelAnswer]:
        read = partial(read_answer, self.unit.task)
        return await ask_structured(self, prompt.text, prompt.system, prompt.schema, read)


class _Nobody:
    async def ask(self, prompt: str, system: str, schema: Mapping[str, Any], kept: list[str]) -> str:
        raise ProviderError("The run was stopped before the model had mended its answer.", "not_recorded")


class _Asking:
    def __init__(self, work: Work, model: str, replies: Replies[_Question], stop_waiting: Callable[[], int]) -> None:
        self.work = work
        self.model = model
        self.replies = replies
        self.state = RunState(work.limits, self.spent().cost, stop_waiting)
        self.failed: dict[_Key, Structured[ModelAnswer]] = {}
        self.done = 0

    def spent(self) -> Spent:
        questions = [question for question in self.replies.places if question.model == self.model]
        payloads = [payload for question in questions for payload in self.replies.find(question)]
        return self.spent_of(payloads)

    def spent_of(self, payloads: Iterable[str]) -> Spent:
        return spent_of(payloads, self.model, self.work.limits.prices)

    async def ask_some(self, asker: Asks, units: Iterator[Unit], total: int) -> None:
        """Settle the units of the iterator, which several of these share. After a stop none is asked about."""
        for unit in units:
            prompt = build_prompt(unit)
            about = _UnitAsker(unit, self.model, self.replies, asker)
            if about.is_answered(prompt) or self.state.may_start_call():
                self.state.in_flight += 1
                try:
                    said = await about.answer(prompt)
                finally:
                    self.state.in_flight -= 1
                    self.state.spending.spent += self.spent_of(about.received).cost
                if said.status == "http_error":
                    self.failed[unit.key] = said
            self.done += 1
            self.work.report(self.done, total)
            await asyncio.sleep(0)  # a kept reply is never waited for, and a signal is to be heard all the same

    def judged(self, units: Iterator[Unit]) -> Iterator[tuple[Unit, Judged]]:
        """Each settled unit with its judgement, from the kept replies and this run's failures."""
        with asyncio.Runner() as runner:
            for unit in units:
                prompt = build_prompt(unit)
                about = _UnitAsker(unit, self.model, self.replies, _Nobody())
                failed = self.failed.get(unit.key)
                if failed or about.is_answered(prompt):
                    said = failed or runner.run(about.answer(prompt))
                    yield unit, judgement_of(unit, prompt, said, self.model)


class Outcome(NamedTuple):
    """`stopped` says why units are left: `SIGINT`, `SIGTERM` or `max_cost`; empty where none are."""

    tally: Tally
    problems: tuple[str, ...]
    unsettled: int = 0
    stopped: str = ""
    spent: Spent = Spent()


def judge_records(work: Work, chosen: ChosenModel, attempts: int = 2) -> Outcome:
    """What came of asking a model; the judgements stand in `work.out`, its replies beside it.

    What was answered before is not asked again. A signal or the known cost stops the run in good order: units that are
    not settled then have no line, and the same call again goes on.
    """
    total, problems = _check_work(work, chosen.model)
    client = ApiClient(
        chosen.endpoint, RetryPolicy(attempts), work.limits.concurrency, accept_body, waits=waiting(work.tell)
    )
    with open_replies(beside(work.out, "raw"), _Question, "annotation judge") as replies:
        asking = _Asking(work, chosen.model, replies, client.stop)

        async def ask() -> None:
            async with client:
                asker, units = Asker(client, chosen), work.units()
                workers = (asking.ask_some(asker, units, total) for _ in range(work.limits.concurrency))
                await run_together(asking.state.tasks, workers, partial(asking.state.stop, tell=work.tell))

        asyncio.run(ask())
        tally = _write_judgements(work, asking.judged(work.units()))
        unsettled = total - tally.units.total()
        return Outcome(tally, problems, unsettled, asking.state.stopped if unsettled else "", asking.spent())
