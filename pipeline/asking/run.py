"""A run: every narrative put to every provider, and what comes back written down before the next call.

Source: pipeline/contracts/run_folder.md#resuming.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pipeline.asking.index import append_indexed, read_index
from pipeline.asking.paid_replies import (
    BAD_RESPONSES,
    BadResponse,
    BadResponses,
    PausedLine,
    PausedTurns,
    of_no_answer,
    refuse_open_batches,
    token_shares,
)
from pipeline.asking.questions import NO_LIMITS, AnswerSource, Call, Limits, Questions, Reply, Report, Tell, Turn
from pipeline.asking.run_folder import (
    ERRORS,
    OpenRun,
    RunManifest,
    open_run,
    read_errors,
    standing_errors,
    write_errors,
    write_manifest,
)
from pipeline.asking.run_state import RunState, Settled
from pipeline.asking.summary import summarise_run
from pipeline.core.errors import InputError, ProviderError
from pipeline.core.files import append_line, locked_folder, time_now
from pipeline.core.schema import PROVIDERS, Answer, ErrorLine, Price, ProviderName, StoredAnswer
from pipeline.core.terminal import stopping_on_signals
from pipeline.csv.file import answers_file, error_bytes
from pipeline.providers import get_provider, read_body
from pipeline.providers.cost import Usage, batch_price, cost_of, price_advice, price_of
from pipeline.providers.http.failure import unreadable_error
from pipeline.providers.http.request import load_body


async def ask_narratives(
    questions: Questions,
    out: Path,
    source: AnswerSource,
    report: Report = lambda call, total: None,
    tell: Tell = lambda line: None,
    limits: Limits = NO_LIMITS,
) -> RunManifest:
    """Put the questions to the source, and give the manifest of the run in `out`.

    Calls answered earlier are not put again; what failed earlier is. `report` hears of every call when it is settled.
    SIGINT, SIGTERM and the known cost stop the run in good order: the manifest says so, and the same questions asked
    again go on.

    Raises: OutputError where the folder holds something else, or is in use; InputError where its answers are to other
    narratives or of another model, batches hold some of the calls, or nothing at all was answered.
    """

    async def settle(run: OpenRun, state: RunState) -> None:
        await _ask_all(run, source, state, report, tell)

    return await settle_run(questions, out, settle, limits, source.stop, tell, one_by_one=True)


async def settle_run(
    questions: Questions,
    out: Path,
    settle: Callable[[OpenRun, RunState], Awaitable[None]],
    limits: Limits = NO_LIMITS,
    stop_waiting: Callable[[], int] = lambda: 0,
    tell: Tell = lambda line: None,
    one_by_one: bool = False,
) -> RunManifest:
    """Open the run in the folder, let `settle` write down what becomes of its calls, and give the run's manifest.

    `settle` records each settled call in the state; `tell` hears what takes long. Calls that are put `one_by_one` are
    none that a batch holds. Errors as `ask_narratives`.
    """
    with locked_folder(out):
        if one_by_one:
            refuse_open_batches(out, questions.providers)
        run = open_run(out, questions, limits.compress, tell)
        standing = standing_errors(read_errors(out), questions)
        write_errors(out, standing)
        state = RunState(limits, stop_waiting=stop_waiting)
        options = [arm.options or questions.options for arm in questions.asked_arms()]
        state.longest = max(each.max_tokens if each else 0 for each in options)
        _count_earlier(run, state)
        try:
            await settle(run, state)
        except OSError:
            if questions.options:  # nobody is paid for a stored payload
                tell(f"Spent since this start: about {state.spending.now:.2f} USD, as far as that is known.")
            raise
        manifest = _finish_run(run, state, [*standing, *state.errors])
    if not manifest.answers and not manifest.stopped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in manifest.errors.items())
        unpriced = sum(each.unpriced for each in manifest.providers.values())
        replies = "1 reply" if unpriced == 1 else f"{unpriced} replies"
        unknown = f"; that of {replies} that cannot be read is not known" if unpriced else ""
        raise InputError(
            f"Nothing was answered ({kinds}); the reasons are in `{ERRORS}` in {str(out)!r}. "
            f"Known cost: {manifest.cost:.2f} USD{unknown}."
        )
    return manifest


async def _ask_all(run: OpenRun, source: AnswerSource, state: RunState, report: Report, tell: Tell) -> None:
    """Settle every call that is not answered yet; each provider has as many under way as the limits say."""
    shared = [run.questions.calls(run.manifest.run_id, provider) for provider in run.questions.providers]
    desk = _Desk(run, source, state, BadResponses(run.out), PausedTurns(run.out), report, set())
    try:
        async with asyncio.TaskGroup() as group:
            for calls in shared:
                for _ in range(state.limits.concurrency):
                    state.tasks.append(group.create_task(desk.work(calls)))
            with stopping_on_signals(partial(state.stop, tell=tell)):
                await asyncio.gather(*state.tasks, return_exceptions=True)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    for calls in shared:  # what a stop has left over
        state.kept += sum(call.answer_id in run.answered[call.provider] for call in calls)
    kept = {each for each in desk.paused.places if any(each in ids for ids in run.answered.values())}
    desk.paused.forget(kept | desk.ended)
    for line in desk.paused.told_anew():
        tell(line)
    for provider in sorted(state.spending.refused):
        state.priceless[provider] = models = tuple(sorted(state.spending.unknown[provider]))
        tell(
            f"{provider}: what a reply cost is not known, so `--max-cost` cannot be held; it is asked no further. What "
            f"is missing is a price, for the reply states no cost: write it into {price_advice(*models)}"
        )


class _Desk(NamedTuple):
    """Where the calls of a run are settled, by several workers."""

    run: OpenRun
    source: AnswerSource
    state: RunState
    unread: BadResponses
    paused: PausedTurns
    report: Report
    ended: set[str]

    async def work(self, calls: Iterator[Call]) -> None:
        run, state, total = self.run, self.state, self.run.questions.calls_each()
        for call in calls:
            if call.answer_id in run.answered[call.provider]:
                state.kept += 1
            elif old := settle_unread(run, call, self.unread, state.limits):
                state.record(call, old)
            else:
                async with state.starting(call) as may:
                    if not may:
                        return
                    state.record(call, await self.answer(call))
            self.report(call, total)
            await asyncio.sleep(0)  # a stored payload is never waited for, and a signal is to be heard all the same

    async def answer(self, call: Call) -> Settled:
        """Append a call's answer or error to the folder; cancelled in between it writes nothing but paused bodies."""
        out, requested = self.run.out, time_now()

        def keep(digest: str, body: str) -> None:
            line = PausedLine(answer_id=call.answer_id, batch="", text=body, digest=digest, model=call.model)
            if kept := self.paused.keep(line):
                self.state.record_paused(kept)

        try:
            reply = await self.source.answer(call, Turn(partial(self.paused.bodies, call.answer_id), keep))
        except ProviderError as failure:
            return store_failure(out, call, None, failure, requested)
        self.paused.give_up(call.answer_id)
        settled = store_reply(out, call, reply, requested)
        if settled.answer and call.answer_id in self.paused.places:
            self.ended.add(call.answer_id)
        return settled


def settle_unread(run: OpenRun, call: Call, unread: BadResponses, limits: Limits) -> Settled | None:
    """Settle the call by its reply that could not be read, by today's rules; None where there is none to use."""
    if limits.retry_bad or run.questions.options is None:
        return None
    kept = unread.find(call.answer_id)
    if kept is None:
        return None
    settled = store_reply(run.out, call, kept.reply(), kept.timestamp, is_old=True)
    if settled.answer:  # an earlier start has paid for it
        run.answered[call.provider].add(call.answer_id)
    return settled


def store_reply(out: Path, call: Call, reply: Reply, requested: str, is_old: bool = False) -> Settled:
    """Append to the folder the answer that the reply holds, or the error that says why it holds none.

    A success that was paid for and cannot be read is kept with its body, unless it `is_old` and kept already.
    """
    try:
        if reply.fault:
            raise ProviderError(reply.fault)
        if reply.status is not None and reply.status >= 400:
            raise unreadable_error(reply.text, reply.status)
        body = load_body(reply.text)
        answer = read_body(call.provider, body)
    except ProviderError as failure:
        is_unread = reply.is_paid and failure.kind == "bad_response" and (reply.status or 200) < 400
        bad = BadResponse.of(call, reply, requested)
        if is_unread and not is_old:
            append_line(out / BAD_RESPONSES, bad.model_dump_json())
        settled = store_failure(out, call, reply, failure, requested)
        usage = bad.usage() if is_unread else Usage()
        return settled._replace(usage=usage, is_unread=is_unread, is_old=is_old, model=reply.model)
    stored = _stored_answer(call, reply, answer, requested)
    usage_of = get_provider(call.provider).usage
    usage = usage_of(body)
    append_indexed(answers_file(out, call.provider), stored, answer, usage)
    paused = tuple(usage_of(each) for each in body[:-1]) if reply.is_paid and isinstance(body, list) else ()
    return Settled(answer=stored, usage=usage, paused=paused, is_old=is_old)


def store_failure(out: Path, call: Call, reply: Reply | None, failure: ProviderError, requested: str) -> Settled:
    attempts = reply.attempts if reply else failure.attempts
    error = ErrorLine(
        narrative_id=call.narrative.narrative_id,
        row=call.row,
        provider=call.provider,
        model=call.model or (reply.model if reply else ""),
        kind=failure.kind,
        status=reply.status if reply else failure.status,
        message=str(failure),
        attempts=0 if failure.kind in ("not_recorded", "missing_key") else attempts,
        timestamp=requested,
        repeat=call.repeat,
        arm=call.arm,
    )
    with open(out / ERRORS, "ab") as file:
        file.write(error_bytes(error))
    return Settled(error=error, is_lost=failure.is_lost)


def _stored_answer(call: Call, reply: Reply, answer: Answer, timestamp: str) -> StoredAnswer:
    return StoredAnswer(
        narrative_id=call.narrative.narrative_id,
        narrative_type=call.narrative.narrative_type,
        narrative_prompt=call.narrative.prompt,
        model_name=call.provider,
        model_version=answer.model or call.model or reply.model or "unknown",
        answer_id=call.answer_id,
        answer_prompt=call.prompt,
        answer_text=answer.text,
        answer_raw_json=reply.text,
        answer_timestamp=timestamp,
        citations=answer.citations,
        domains=answer.domains,
        search_results=answer.search_results,
    )


def _count_earlier(run: OpenRun, state: RunState) -> None:
    """Count under a limit what all replies in the folder cost; unknown costs come last, as the dearest at the least."""
    if state.limits.max_cost is None:
        return
    prices, shares = state.limits.prices, token_shares(run.out)
    unknown: Counter[tuple[ProviderName, float | None, str]] = Counter()

    def count(provider: ProviderName, model: str, usage: Usage, price: Price | None) -> None:
        cost = cost_of(usage, price)
        if cost is None:
            unknown[provider, state.most(price), model] += 1
        else:
            state.spending.pay(provider, cost)

    for provider in PROVIDERS:
        for line in read_index(answers_file(run.out, provider)) if run.answered[provider] else ():
            model = run.manifest.model_of(line, provider) or line.model_version
            price = price_of(prices, line.model_version, model)
            count(provider, model, line.usage, batch_price(price, shares.get(line.answer_id, 1.0)))
    for paid in of_no_answer(run.out):
        count(paid.provider, paid.model, *paid.bill(prices))
    for provider, most, model in unknown.elements():
        state.spending.pay(provider, None, most, model)
    state.spending.earlier = state.spending.spent


def _finish_run(run: OpenRun, state: RunState, errors: Sequence[ErrorLine]) -> RunManifest:
    in_order = sorted(errors, key=lambda each: (PROVIDERS.index(each.provider), each.row, each.arm, each.repeat))
    write_errors(run.out, in_order)
    unsettled = run.questions.calls_each() * len(run.questions.providers) - state.settled
    changes = {
        "finished": None if unsettled else time_now(),
        "stopped": state.stopped or ("max_cost" if state.spending.refused else "") if unsettled else "",
        "unsettled": unsettled,
    }
    manifest = summarise_run(run, errors, state.limits.prices, state.last_start()).model_copy(update=changes)
    write_manifest(run.out, manifest)
    return manifest
