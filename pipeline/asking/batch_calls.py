"""The calls of one provider in a start with batches: their cost, the items they make, the results that settle them."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from hashlib import sha256
from typing import Literal, NamedTuple

from pipeline.asking.paid_replies import BadResponses, Batch, Ledger, PausedLine, PausedTurns
from pipeline.asking.questions import Call, Limits, ProviderSelection, Reply, Tell, Waits
from pipeline.asking.run import settle_unread, store_failure, store_reply
from pipeline.asking.run_folder import OpenRun
from pipeline.asking.run_state import RunState, Settled
from pipeline.core.errors import InputError, ProviderError
from pipeline.core.files import time_now
from pipeline.core.schema import ProviderName
from pipeline.core.terminal import counted
from pipeline.providers import get_provider
from pipeline.providers.batch import BatchApi, BatchItem, BatchLimits, split_items
from pipeline.providers.cost import Usage, batch_price, cost_of
from pipeline.providers.http.request import load_body

Progress = Callable[[ProviderName, int, int, str], None]
"""Hears how many of a provider's calls are done, of how many, and what is waited for."""


class BatchPolicy(NamedTuple):
    """How batches are sent and waited for.

    `poll_seconds` lie between two looks. A batch whose creation was not answered is looked for during `settle_seconds`,
    then it counts as never made. What is held in memory or lost with a batch ends at `requests`. What the provider does
    not take is sent `attempts` times; rate limits and overload do not count, until `patience` seconds of them.
    """

    poll_seconds: float = 60.0
    settle_seconds: float = 60.0
    requests: int = 10_000
    attempts: int = 2
    patience: float = 900.0


class BatchWork(NamedTuple):
    """What the desks of all providers share; `expected` is what each batch under way will about cost."""

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
    waits: Waits

    def used(self) -> float:
        return self.state.spending.spent + sum(self.expected.values())

    def room(self, cost: float) -> Literal["now", "later", "never"]:
        """When a batch of this cost can be sent under `--max-cost`: later where only those under way leave no room."""
        limit, used = self.limits.max_cost, self.used()
        if limit is None or used + cost <= limit:
            return "now"
        under_way = sum(self.expected.get(name, 0.0) for name in self.ledger.open.keys() - self.aside)
        return "later" if used - under_way + cost <= limit else "never"

    def is_stopped(self) -> bool:
        return self.state.stopped in ("SIGINT", "SIGTERM")


class Chunk(NamedTuple):
    """Items for one batch of one model, and how often they were sent in vain."""

    model: str
    items: tuple[BatchItem, ...]
    tries: int = 0


class Said(NamedTuple):
    """What the user says of a call: the length of its prompt, the longest answer in tokens, the digest of its words."""

    characters: int
    max_tokens: int
    digest: str


class BatchCalls:
    """What one provider is asked in one start: every call is settled once, and none is held in memory for it."""

    def __init__(self, work: BatchWork, provider: ProviderName, api: BatchApi) -> None:
        self.run, self.state, self.selection, self.paused = work.run, work.state, work.selection, work.paused
        self.provider, self.api, self.limits = provider, api, work.limits
        self.batch_limits = BatchLimits(min(api.limits.requests, work.policy.requests), api.limits.bytes)
        work.state.token_shares[provider] = api.token_price
        self.answered = set(work.run.answered[provider])
        self.unread = BadResponses(work.run.out)
        self.failed: set[str] = set()
        self.models: list[str] = []
        self.said: dict[str, Said] = {}

    def __iter__(self) -> Iterator[Call]:
        return self.run.questions.calls(self.run.manifest.run_id, self.provider)

    def ids(self) -> set[str]:
        return {call.answer_id for call in self}

    def among(self, answer_ids: Iterable[str]) -> dict[str, Call]:
        """Those of the calls that are not settled yet, by their ids."""
        wanted = {answer_id for answer_id in answer_ids if not self.is_settled(answer_id)}
        return {call.answer_id: call for call in self if call.answer_id in wanted} if wanted else {}

    def is_settled(self, answer_id: str) -> bool:
        return answer_id in self.answered or answer_id in self.failed

    def settled(self) -> int:
        return len(self.answered) + len(self.failed)

    def check(self, batches: Iterable[Batch], expected: dict[str, float]) -> None:
        """Refuse batches under way with other calls, models, prompts or options; `expected` gets what each costs."""
        out = str(self.run.out)
        batches = list(batches)
        words = {batch.name: sha256() for batch in batches}
        owners = {answer_id: batch for batch in batches for answer_id in batch.calls}
        for call in self:
            batch = owners.pop(call.answer_id, None)
            if batch and batch.model not in ("", call.model):
                raise InputError(
                    f"{out!r} has a batch under way at {self.provider} for the model {batch.model!r}, and "
                    f"{call.model!r} is asked for now. Ask for that one; so `--batch-cancel` ends the batch, too."
                )
            if batch:
                said = self._said(call)
                words[batch.name].update(said.digest.encode())
                cost = self.cost(call.model, [said]) or 0.0
                expected[batch.name] = expected.get(batch.name, 0.0) + cost
            self.state.kept += call.answer_id in self.answered
            is_open = not batch and call.answer_id not in self.answered
            if is_open and (old := settle_unread(self.run, call, self.unread, self.limits)):
                self._note(call, old)
            if call.model not in self.models:
                self.models.append(call.model)
        if owners:
            raise InputError(
                f"{out!r} has batches under way at {self.provider} with {counted(len(owners), 'call')} that are not "
                "asked for now. Give narratives, prompts, `--max-rows` and `--repeats` as they were; nothing was sent."
            )
        if any(batch.said and batch.said != words[batch.name].hexdigest() for batch in batches):
            raise InputError(
                f"{out!r} has a batch under way at {self.provider} that was put with other prompts or options. Give "
                "them as they were, also to end it with `--batch-cancel`; nothing was sent."
            )

    # Items

    def fresh(self, claimed: Collection[str]) -> Iterator[Chunk]:
        """The calls that are neither settled nor `claimed` by a batch, in batches within the limits; one by one."""
        for model in self.models:
            calls = (call for call in self if call.model == model and call.answer_id not in claimed)
            yield from self._chunks(model, (call for call in calls if not self.is_settled(call.answer_id)), 0)

    def again(self, calls: Iterable[Call], tries: int = 0) -> list[Chunk]:
        several, chunks = list(calls), list[Chunk]()
        for model in self.models:
            chunks += self._chunks(model, (call for call in several if call.model == model), tries)
        return chunks

    def _chunks(self, model: str, calls: Iterable[Call], tries: int) -> Iterator[Chunk]:
        for items in split_items(map(self._item, calls), self.batch_limits):
            yield Chunk(model, items, tries)

    def _item(self, call: Call) -> BatchItem:
        self.said[call.answer_id] = self._said(call)
        request = self.selection.request(call)
        for text in self.bodies(call):
            request = get_provider(self.provider).next_request(request, load_body(text)) or request
        return BatchItem(call.answer_id, request)

    def bodies(self, call: Call, but: str = "") -> list[str]:
        """The bodies of the call's paused turn, `but` for what came in one batch; none where it is none."""
        is_paused = call.answer_id in self.paused.places
        return self.paused.bodies(call.answer_id, self.selection.said(call), but) if is_paused else []

    def keep(self, call: Call, batch: str, text: str) -> None:
        digest = self.selection.said(call)
        line = PausedLine(answer_id=call.answer_id, batch=batch, text=text, digest=digest, model=call.model)
        if kept := self.paused.keep(line):
            self.state.record_paused(kept)

    def _said(self, call: Call) -> Said:
        return Said(len(call.prompt), (call.options or self.selection.options).max_tokens, self.selection.said(call))

    def digest(self, items: Iterable[BatchItem]) -> str:
        return sha256("".join(self.said[item.custom_id].digest for item in items).encode()).hexdigest()

    def is_paused(self, call: Call, text: str) -> bool:
        try:
            request = self.selection.request(call)
            return get_provider(self.provider).next_request(request, load_body(text)) is not None
        except ProviderError:
            return False

    # Cost

    def cost_of_items(self, chunk: Chunk) -> float | None:
        return self.cost(chunk.model, [self.said[item.custom_id] for item in chunk.items])

    def cost(self, model: str, calls: list[Said]) -> float | None:
        """What calls to a model will about cost: the longest answers and one search each."""
        price = self.limits.prices.get(model)
        characters, tokens_out = sum(each.characters for each in calls), sum(each.max_tokens for each in calls)
        usage = Usage(characters // 4, tokens_out, len(calls))  # a token of English has about four characters
        return cost_of(usage, batch_price(price, self.api.token_price))

    # What becomes of calls

    def store(self, call: Call, reply: Reply, requested: str) -> bool:
        """Write down what the reply to a call holds, which a start that was killed may have done; whether an answer."""
        kept = self.unread.find(call.answer_id)
        is_old = kept is not None and kept.timestamp == requested
        self.paused.give_up(call.answer_id)
        return self._note(call, store_reply(self.run.out, call, reply, requested, is_old))

    def fail(self, calls: Iterable[Call], failure: ProviderError) -> None:
        for call in calls:
            if not self.is_settled(call.answer_id):
                self._note(call, store_failure(self.run.out, call, None, failure, time_now()))

    def _note(self, call: Call, settled: Settled) -> bool:
        (self.answered if settled.answer else self.failed).add(call.answer_id)
        self.state.record(call, settled)
        return settled.answer is not None
