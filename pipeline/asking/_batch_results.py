"""The results of a batch that has ended: each settles its call, through the code of single calls."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import aclosing
from typing import NamedTuple

from pipeline.asking._batch_calls import BatchCalls
from pipeline.asking._batch_work import BatchWork
from pipeline.asking._ledger import Batch
from pipeline.asking.questions import Call, Reply
from pipeline.errors import ProviderError
from pipeline.providers.batch import BatchApi, BatchResult, BatchState
from pipeline.providers.http.client import ApiClient
from pipeline.providers.http.failure import redact
from pipeline.schema import ProviderName
from pipeline.terminal import counted, printable

# A paused turn is continued at most five times, as in single calls.
_MOST_BODIES = 6


class BatchResults(NamedTuple):
    """Where the results of one provider's batches go; `show` is called after each.

    Where the run `is_ending` its batches, what they did not answer is no failure.
    """

    work: BatchWork
    provider: ProviderName
    api: BatchApi
    calls: BatchCalls
    is_ending: bool
    show: Callable[[], None]

    async def settle(self, client: ApiClient, batch: Batch, state: BatchState, unanswered: set[str]) -> Batch | None:
        """Settle the calls of a batch, and add the ids of those without an answer to `unanswered`.

        The batch as the ledger has it now; None where it cannot be closed in this start.

        Raises:
            ProviderError: the results break off.
        """
        every = set(batch.calls) or self.calls.ids()
        calls = self.calls.among(every)
        strange: list[str] = []
        told: set[str] = set()
        async with aclosing(self.api.results(client, state)) as results:
            async for result in results:
                if self.work.is_stopped():
                    return None
                told.add(result.custom_id)
                call = calls.pop(result.custom_id, None)
                if call and not self.take(call, batch, result):
                    unanswered.add(call.answer_id)
                if result.custom_id not in every:
                    strange.append(result.custom_id)
                self.show()
                await asyncio.sleep(0)
        if strange:
            self.tell_strange(batch, strange)
        if batch.calls:
            unanswered |= calls.keys()
            self.leave_out(calls.values(), "The batch ended before this call was put.")
            return batch
        if strange:
            self.work.aside.add(batch.name)  # a start that asks for them as well collects it
            return None
        return self.work.ledger.note("found", batch._replace(calls=tuple(sorted(told))), batch.batch_id)

    def take(self, call: Call, batch: Batch, result: BatchResult) -> bool:
        """Settle a call by its result; whether it has an answer now."""
        if result.outcome in ("expired", "cancelled"):
            why = redact(result.text) or result.outcome
            self.leave_out([call], f"The batch ended before this call was put: {why}.")
            return False
        if result.outcome == "failed" and self.is_ending:
            return False
        texts = [result.text]
        if result.outcome == "answered":
            texts = [*self.calls.bodies(call, but=batch.name), result.text]
            if len(texts) < _MOST_BODIES and self.calls.is_paused(call, result.text):
                self.calls.keep(call, batch.name, result.text)
                return False
        text = texts[0] if len(texts) == 1 else f"[{','.join(texts)}]"
        reply = Reply(text, result.status, batch.model, len(texts), is_paid=True, batch=batch.name)
        return self.calls.store(call, reply, batch.planned)

    def leave_out(self, calls: Iterable[Call], words: str) -> None:
        """Write down that calls were not put before their batch ended; of one that we end ourselves nothing is said."""
        if not self.is_ending:
            self.calls.fail(calls, ProviderError(words, "timeout", attempts=0))

    def tell_strange(self, batch: Batch, strange: list[str]) -> None:
        """Tell of results that belong to no call of this start."""
        shown = printable(strange[0][:64]) or "no id at all"
        self.work.tell(
            f"{self.provider}: batch {printable(batch.batch_id)} has {counted(len(strange), 'result')} for calls that "
            f"are not asked for (the first: {shown}); passed over, the provider still has them."
        )
