"""The batches of one provider in one start of a run: found again, sent, waited for, collected."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from functools import partial

from pipeline.asking.batch_calls import BatchCalls, BatchWork, Chunk
from pipeline.asking.paid_replies import Batch, run_prefix
from pipeline.asking.questions import Call, Reply
from pipeline.core.errors import InputError, ProviderError
from pipeline.core.files import time_now
from pipeline.core.schema import ProviderName
from pipeline.core.terminal import counted, printable
from pipeline.providers.batch import BatchApi, BatchResult, BatchState
from pipeline.providers.http.client import ApiClient, RetryPolicy
from pipeline.providers.http.failure import ENDING, ends_the_provider, error_kind, is_limit, redact

_PASSING = ("rate_limit", "server", "network", "timeout")
# The statuses of what a provider does not have any more.
_GONE = (404, 410)


class BatchDesk:
    """The batches of one provider in one start."""

    def __init__(self, work: BatchWork, provider: ProviderName, api: BatchApi, doubt: str) -> None:
        """Check what the ledger says of the provider's batches; report `doubt` once a batch is sent."""
        self.shared, self.provider, self.api, self.doubt = work, provider, api, doubt
        seconds = min(1.0, work.policy.poll_seconds)
        policy = RetryPolicy(backoff_seconds=seconds, patience_seconds=work.policy.patience)
        waits = partial(work.waits, provider)
        # What a failure means for the other batches is decided here: one of them may be gone.
        self.client = ApiClient(
            work.selection.endpoints[provider], policy, 1, waits=waits, ends=lambda failure, status: False
        )
        self.refused_since: float | None = None
        self.overloaded: dict[str, ProviderError] = {}
        self.calls = BatchCalls(work, provider, api)
        self.calls.check(work.ledger.of(provider), work.expected)
        self.chunks: Iterator[Chunk] = iter(())
        self.waiting: list[Chunk] = []
        self.put_off: list[Chunk] = []
        self.tries: dict[str, int] = {}
        self.given_up: dict[str, float] = {}
        self.states: dict[str, BatchState] = {}
        self.unanswered: dict[str, set[str]] = {}
        self.undecided = 0
        self.are_missing = work.ledger.torn
        self.begun = time_now()
        self.strangers: set[str] = set()
        self.has_listed = self.is_ending = self.is_full = self.is_met = False
        self.troubles: set[str] = set()
        self.unread: Counter[str] = Counter()
        self.looks_away = 0

    def tell(self, words: str) -> None:
        self.shared.tell(f"{self.provider}: {words}")

    def open(self) -> list[Batch]:
        return [batch for batch in self.shared.ledger.of(self.provider) if batch.name not in self.shared.aside]

    def is_left(self) -> bool:
        return bool(self.shared.ledger.of(self.provider) or self.waiting or self.put_off)

    def claimed(self) -> set[str]:
        return {answer_id for batch in self.shared.ledger.of(self.provider) for answer_id in batch.calls}

    # The work of a start

    async def work(self) -> None:
        """Find, send and collect until nothing is left to come, or a signal ends the waiting."""
        self.plan()
        self.tell_open()
        self.are_missing |= bool(self.waiting) and not self.shared.is_new  # a ledger that lost whole lines looks well
        while (self.open() or self.waiting or self.put_off or self.undecided) and not self.shared.is_stopped():
            await self.find()
            await self.send()
            await self.collect_all()
            self.show()
            await self.rest()

    def plan(self) -> None:
        self.chunks, self.put_off = self.calls.fresh(self.claimed()), []
        self.waiting = [chunk for chunk in (next(self.chunks, None),) if chunk]

    async def end_all(self) -> None:
        """End the batches under way, and collect what they have answered."""
        self.is_ending = True
        self.tell_open()
        asked: set[str] = set()
        while (self.open() or self.undecided) and not self.shared.is_stopped():
            await self.find()
            for batch in self.open():
                if batch.batch_id and batch.name not in asked and await self.end(batch):
                    asked.add(batch.name)
            await self.collect_all()
            self.show()
            await self.rest()

    def may_send(self) -> bool:
        """Whether it is known of every call which batch it is in."""
        known = all(batch.batch_id and batch.calls for batch in self.open())
        return self.has_listed and known and not self.undecided and not self.shared.is_stopped()

    async def rest(self) -> None:
        if not self.is_met:
            self.troubles.clear()
        self.is_met = False
        if self.shared.is_stopped() or not (self.open() or self.waiting or self.put_off or self.undecided):
            return
        now = asyncio.get_running_loop().time()
        lost = [moment - now for moment in self.given_up.values() if moment > now]
        can_send = self.waiting and self.may_send() and not self.is_full
        seconds = 0.0 if can_send else self.shared.policy.poll_seconds
        try:
            await asyncio.wait_for(self.shared.woken.wait(), max(0.01, min([seconds, *lost])))
        except TimeoutError:
            return

    def show(self) -> None:
        states = [self.states[batch.name] for batch in self.open() if batch.name in self.states]
        done = self.calls.settled() + sum(state.done for state in states)
        total = self.shared.run.questions.calls_each()
        words = "1 batch under way" if len(states) == 1 else f"{len(states)} batches under way" if states else ""
        self.shared.progress(self.provider, min(done, total), total, words)

    def tell_open(self) -> None:
        """Report the batches that an earlier start has sent."""
        for batch in self.open():
            size = f"{counted(len(batch.calls), 'call')}, " if batch.calls else ""
            sent = f"{size}sent {batch.planned[:10]} {batch.planned[11:16]} UTC."
            if batch.batch_id:
                self.tell(f"batch {printable(batch.batch_id)} is under way: {sent}")
            else:
                self.tell(f"a batch may be under way, of which no answer has come: {sent} It is looked for.")

    def meet(self, failure: ProviderError) -> None:
        """Report once that the provider cannot be asked; where that lasts, leave its batches to a later start."""
        words = printable(str(failure)).rstrip(".")
        if words not in self.troubles:
            self.troubles.add(words)
            self.tell(f"{words}. {'What is under way there is not lost.' if self.open() else 'It is asked again.'}")
        self.is_met = True
        self.looks_away += failure.kind in ("network", "timeout")
        is_lasting = failure.kind not in _PASSING or self.looks_away >= self.shared.policy.attempts
        nothing_known = not self.has_listed and not self.open() and is_lasting
        is_over = failure.kind in (*ENDING, "missing_key") or self.client.gate.shut is not None
        if is_over or nothing_known:
            self.shared.aside.update(batch.name for batch in self.open())
            self.undecided = 0
            self.fail_rest(failure)

    # Finding and sending

    async def find(self) -> None:
        """Look at the provider for batches of which the ledger has no id, and give up those that are not there."""
        shared = self.shared
        lost = {batch.name: batch for batch in self.open() if not batch.batch_id}
        now = asyncio.get_running_loop().time()
        for name in lost:
            self.given_up.setdefault(name, now + shared.policy.settle_seconds)
        first = not self.has_listed and (not self.is_ending or shared.ledger.torn)
        if not (lost or self.undecided or first):
            self.has_listed = True
            return
        try:
            async with self.client as client:
                found, undecided = await self.look_through(client, lost)
        except ProviderError as failure:
            self.meet(failure)
            return
        self.has_listed = True
        if undecided and undecided != self.undecided and not self.is_ending:
            batches, pronoun = ("1 batch", "it has") if undecided == 1 else (f"{undecided} batches", "they have")
            self.tell(f"{batches} under way there may be this run's; nothing is sent before {pronoun} ended.")
        self.undecided = undecided
        self.are_missing &= bool(undecided)
        for batch in found:
            self.given_up.pop(batch.name, None)
            self.tell(f"found the batch {printable(batch.batch_id)}, of which no answer had come.")
        for batch in lost.values():
            if batch.name in self.given_up and self.given_up[batch.name] <= now and not undecided:
                self.give_up(batch)

    async def look_through(self, client: ApiClient, lost: Mapping[str, Batch]) -> tuple[list[Batch], int]:
        """The batches that were found, and how many without names may be ours, which shows when they have ended.

        `lost` are those that were sent and not answered for; they are known by their name, or where the provider keeps
        none by their size and the custom ids of their results. One that has the run's name and is not in the ledger,
        which may have lost lines, counts as found; so, where some may be missing, does one with the id of a call of
        this start, and that was not made after its beginning. The ledger knows what was found when this returns.
        """
        ledger, left, undecided = self.shared.ledger, dict(lost), 0
        found: list[Batch] = []
        prefix = run_prefix(self.shared.run.manifest.run_id)
        every = self.calls.ids() if self.are_missing and not self.api.is_named else set[str]()
        async with aclosing(self.api.listed(client)) as states:
            async for state in states:
                is_known = state.batch_id in ledger.batch_ids or state.batch_id in self.strangers
                if is_known or _is_before(state.created, self.shared.run.manifest.started):
                    continue
                ids = set[str]() if _is_before(self.begun, state.created) else every
                if self.api.is_named:
                    name = state.name if state.name in left or state.name.startswith(prefix) else ""
                elif state.total > len(ids) and not any(
                    len(each.calls) == state.total and not _is_before(state.created, each.planned)
                    for each in left.values()
                ):
                    continue
                elif state.status == "working":
                    undecided += 1
                    continue
                else:
                    first = await self.first_id(client, state)
                    name = next((name for name, batch in left.items() if first in batch.calls), "")
                    name = name or (f"{prefix}{state.batch_id}" if first in ids else "")
                if name in left:
                    found.append(ledger.note("created", left.pop(name), state.batch_id))
                elif name:
                    found.append(ledger.note("found", Batch(name, self.provider, time_now()), state.batch_id))
                elif ids:  # looked for among all calls of this start: it is another run's
                    self.strangers.add(state.batch_id)
        return found, undecided

    async def first_id(self, client: ApiClient, state: BatchState) -> str:
        if state.status == "failed":
            return ""
        try:
            async with aclosing(self.api.results(client, state)) as results:
                async for result in results:
                    return result.custom_id
        except ProviderError as failure:
            if failure.status not in _GONE:
                raise
        return ""

    def give_up(self, batch: Batch) -> None:
        """Take it that a batch was never made, and send its calls again unless they were sent often enough."""
        del self.given_up[batch.name]
        self.drop(batch)
        calls, tries = self.calls.among(batch.calls).values(), self.tries.pop(batch.name, 0) + 1
        if self.is_ending:
            return
        if tries < self.shared.policy.attempts:
            self.waiting += self.calls.again(calls, tries)
            return
        words = "The provider neither answered when the batch was made, nor has it."
        self.calls.fail(calls, self.overloaded.get(batch.name) or ProviderError(words, "network", attempts=tries))

    async def send(self) -> None:
        if self.put_off and not self.open():
            self.waiting, self.put_off = [*self.waiting, *self.put_off], []
        while self.may_send():
            chunk = self.waiting.pop(0) if self.waiting else next(self.chunks, None)
            if chunk is None:
                return
            items = tuple(item for item in chunk.items if not self.calls.is_settled(item.custom_id))
            chunk = chunk._replace(items=items)
            if not items:
                continue
            if self.is_within_cost(chunk):
                await self.submit(chunk)
            elif self.is_full:
                self.waiting.insert(0, chunk)
                return

    def is_within_cost(self, chunk: Chunk) -> bool:
        """Whether the batch can be sent under `--max-cost` now; where it never can, nothing more is sent."""
        shared, limit = self.shared, self.shared.limits.max_cost
        cost = self.calls.cost_of_items(chunk) or 0.0
        room, was_full = shared.room(cost), self.is_full
        size = f"a batch of {counted(len(chunk.items), 'call')}"
        self.is_full = room == "later"
        if self.is_full and not was_full:
            self.tell(
                f"{size} waits until others have ended: with them it is expected to go beyond `--max-cost` {limit:g}."
            )
        if room == "never":
            used = shared.used()
            beside = f" beside {used:.2f} USD that are spent or under way" if used else ""
            ending = f"beyond `--max-cost` {limit:g}{beside}; it was not sent."
            shared.tell(f"{size} to {self.provider} is expected to cost about {cost:.2f} USD, {ending}")
            shared.state.stopped = shared.state.stopped or "max_cost"
            self.waiting, self.put_off, self.chunks = [], [], iter(())
        return room == "now"

    async def submit(self, chunk: Chunk) -> None:
        """Send one batch: the ledger has it before the provider does."""
        shared = self.shared
        digest = self.calls.digest(chunk.items)
        name = shared.ledger.next_name(shared.run.manifest.run_id, self.provider, digest)
        ids = tuple(item.custom_id for item in chunk.items)
        batch = Batch(name, self.provider, time_now(), model=chunk.model, said=digest, calls=ids)
        if self.doubt:
            self.tell(f"{self.doubt}.")
            self.doubt = ""
        cost = self.calls.cost_of_items(chunk)
        shared.expected[name] = cost or 0.0  # before anything is waited for: other providers send meanwhile
        shared.ledger.plan(batch)
        self.tries[name] = chunk.tries
        try:
            async with self.client as client:
                state = await self.api.submit(client, name, chunk.items)
        except InputError:
            self.drop(batch)
            raise
        except ProviderError as failure:
            if failure.is_lost:
                self.given_up[name] = asyncio.get_running_loop().time() + shared.policy.settle_seconds
                if is_limit(failure):
                    self.tries[name] -= self.is_patient()
                    self.overloaded[name] = failure
                self.tell(f"{printable(str(failure))} It is looked for before it is sent again.")
            else:
                self.refuse(batch, chunk, failure)
            return
        self.refused_since = None
        self.states[name] = state
        shared.ledger.note("created", batch, state.batch_id)
        about = f", about {cost:.2f} USD at batch prices" if cost is not None else ""
        self.tell(f"{counted(len(ids), 'call')} sent as batch {printable(state.batch_id)}{about}.")

    def drop(self, batch: Batch) -> None:
        self.shared.ledger.end("dropped", batch)
        self.shared.expected.pop(batch.name, None)

    def refuse(self, batch: Batch, chunk: Chunk, failure: ProviderError) -> None:
        """Write down that the provider did not take a batch; it is sent again where that may help."""
        self.drop(batch)
        others = any(each.batch_id for each in self.open())
        if ends_the_provider(failure, failure.status):
            self.calls.fail(self.calls.among(batch.calls).values(), failure)
            self.fail_rest(failure)
        elif is_limit(failure) and (others or self.is_patient()):
            self.put_off.append(chunk)  # there is room when another batch has ended
            self.meet(failure)
        elif failure.kind in _PASSING and chunk.tries + 1 < self.shared.policy.attempts:
            self.put_off.append(chunk._replace(tries=chunk.tries + 1))
        else:
            self.calls.fail(self.calls.among(batch.calls).values(), failure)

    def is_patient(self) -> bool:
        """Whether creations of batches were refused for less time than is waited."""
        now = asyncio.get_running_loop().time()
        self.refused_since = now if self.refused_since is None else self.refused_since
        return now - self.refused_since < self.shared.policy.patience and not self.client.gate.shut

    def fail_rest(self, failure: ProviderError) -> None:
        self.waiting, self.put_off, self.chunks = [], [], iter(())
        claimed = self.claimed()
        if not self.is_ending:
            self.calls.fail((call for call in self.calls if call.answer_id not in claimed), failure)

    async def end(self, batch: Batch) -> bool:
        try:
            async with self.client as client:
                await self.api.cancel(client, batch.batch_id)
        except ProviderError as failure:
            if failure.kind in (*_PASSING, *ENDING) or not failure.status:
                self.meet(failure)
                return False
        return True

    # Collecting

    async def collect_all(self) -> None:
        for batch in self.open():
            if not batch.batch_id or batch.name in self.shared.aside or self.shared.is_stopped():
                continue
            try:
                async with self.client as client:
                    state = await self.api.look(client, batch.batch_id)
                    before = self.states.get(batch.name)
                    if state.status == "working" and (state.done, state.failed) != (
                        (before.done, before.failed) if before else (0, 0)
                    ):
                        failed = f", {state.failed} failed" if state.failed else ""
                        calls = counted(state.total or len(batch.calls), "call")
                        words = f"batch {printable(batch.batch_id)}, {state.done} of {calls} answered{failed}."
                        self.shared.tell_counts(f"{self.provider}: {words}")
                    self.states[batch.name] = state
                    if state.status != "working":
                        await self.collect(client, batch, state)
                self.unread.pop(batch.name, None)
            except ProviderError as failure:
                if failure.status in _GONE:
                    self.lose(batch, failure)
                else:
                    self.meet(failure)
                    self.leave_unread(batch, failure)

    def leave_unread(self, batch: Batch, failure: ProviderError) -> None:
        """Leave a batch to a later start whose state or results cannot be had for a reason that lasts."""
        self.unread[batch.name] += failure.kind not in _PASSING
        if self.unread[batch.name] >= self.shared.policy.attempts and batch.name not in self.shared.aside:
            self.shared.aside.add(batch.name)
            calls = counted(len(batch.calls), "call")
            self.tell(f"batch {printable(batch.batch_id)} is left to a later start; its {calls} may be paid.")

    def lose(self, batch: Batch, failure: ProviderError) -> None:
        """Leave a batch that the provider does not know any more; its calls may be paid, so they are not sent again."""
        words = f"{self.provider} has no batch {printable(batch.batch_id)} any more ({printable(str(failure))})"
        if self.is_ending:
            self.shared.ledger.end("collected", batch, batch.calls)
            self.shared.tell(f"{words}: it is given up, and the next start sends its calls anew.")
            return
        self.shared.aside.add(batch.name)
        self.shared.tell(f"{words}: its {counted(len(batch.calls), 'call')} may be paid. `--batch-cancel` gives it up.")

    async def collect(self, client: ApiClient, batch: Batch, state: BatchState) -> None:
        """Settle the calls of a batch that has ended; only then the ledger says so."""
        if state.status == "failed":
            self.take_refusal(batch, state)
            return
        self.states.pop(batch.name, None)
        unanswered = self.unanswered.setdefault(batch.name, set())
        settled = await self.settle(client, batch, state, unanswered)
        if settled:
            self.close(settled, unanswered)
            self.waiting, self.put_off = [*self.waiting, *self.put_off], []
        if settled and not batch.calls and not self.is_ending:
            self.plan()  # what waited was made before it was known what the batch holds

    async def settle(self, client: ApiClient, batch: Batch, state: BatchState, unanswered: set[str]) -> Batch | None:
        """Settle the calls of a batch; what the ledger has of it now, None where it cannot be closed in this start."""
        every = set(batch.calls) or self.calls.ids()
        calls = self.calls.among(every)
        strange: list[str] = []
        seen: set[str] = set()
        async with aclosing(self.api.results(client, state)) as results:
            async for result in results:
                if self.shared.is_stopped():
                    return None
                seen.add(result.custom_id)
                call = calls.pop(result.custom_id, None)
                if call and not self.take(call, batch, result):
                    unanswered.add(call.answer_id)
                if result.custom_id not in every:
                    strange.append(result.custom_id)
                self.show()
                await asyncio.sleep(0)
        if strange:
            shown = printable(strange[0][:64]) or "no id at all"
            ending = f"that are not asked for (the first: {shown}); passed over, the provider still has them."
            self.tell(f"batch {printable(batch.batch_id)} has {counted(len(strange), 'result')} for calls {ending}")
        if batch.calls:
            unanswered |= calls.keys()
            self.leave_out(calls.values(), "The batch ended before this call was put.")
            return batch
        if strange:
            self.shared.aside.add(batch.name)  # a start that asks for them as well collects it
            return None
        return self.shared.ledger.note("found", batch._replace(calls=tuple(sorted(seen))), batch.batch_id)

    def take(self, call: Call, batch: Batch, result: BatchResult) -> bool:
        """Settle a call by its result, through the code of single calls; whether it has an answer now."""
        if result.outcome in ("expired", "cancelled"):
            why = redact(result.text) or result.outcome
            self.leave_out([call], f"The batch ended before this call was put: {why}.")
            return False
        if result.outcome == "failed" and self.is_ending:
            return False
        texts = [result.text]
        if result.outcome == "answered":
            texts = [*self.calls.bodies(call, but=batch.name), result.text]
            # A paused turn is continued at most five times, as in single calls.
            if len(texts) < 6 and self.calls.is_paused(call, result.text):
                self.calls.keep(call, batch.name, result.text)
                return False
        text = texts[0] if len(texts) == 1 else f"[{','.join(texts)}]"
        reply = Reply(text, result.status, batch.model, len(texts), is_paid=True, batch=batch.name)
        return self.calls.store(call, reply, batch.planned)

    def leave_out(self, calls: Iterable[Call], words: str) -> None:
        if not self.is_ending:
            self.calls.fail(calls, ProviderError(words, "timeout", attempts=0))

    def take_refusal(self, batch: Batch, state: BatchState) -> None:
        """Settle the calls of a batch that the provider refused as a whole; with others under way it is tried again."""
        words = f"The provider refused the batch: {redact(state.reason) or 'it gives no reason'}"
        calls = self.calls.among(batch.calls).values()
        others = any(each.batch_id and each.name != batch.name for each in self.open())
        if others and not self.is_ending:
            self.put_off += self.calls.again(calls)
        elif not self.is_ending:
            self.calls.fail(calls, ProviderError(words, error_kind(None, state.reason)))
        self.close(batch, set(batch.calls))

    def close(self, batch: Batch, unanswered: set[str]) -> None:
        """Write down and report that a batch is collected; what its paused turns go on with waits to be sent."""
        self.shared.ledger.end("collected", batch, sorted(unanswered))
        self.shared.expected.pop(batch.name, None)
        paused = [] if self.is_ending else self.calls.among(unanswered).values()
        going_on = [call for call in paused if self.calls.bodies(call)]
        self.waiting += self.calls.again(going_on)
        left = len(unanswered) - len(going_on)
        parts = [f"{counted(len(batch.calls) - len(unanswered), 'answer')} collected"]
        parts += [f"{left} not answered"] if left else []
        parts += [f"{len(going_on)} paused, to be finished in another batch"] if going_on else []
        self.tell(f"batch {printable(batch.batch_id)} has ended, {', '.join(parts)}.")


def _is_before(first: str, second: str) -> bool:
    """Whether one moment is before the other, by clocks that may be apart; not where either is unknown."""
    try:
        moments = [datetime.fromisoformat(each) for each in (first, second)]
    except ValueError:
        return False
    earlier, later = (each if each.tzinfo else each.replace(tzinfo=UTC) for each in moments)
    return earlier + timedelta(hours=1 if "T" in first else 24) < later
