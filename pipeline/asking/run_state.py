"""How far a run has come while it works: what is settled and spent, and why no further call is started."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field

from pipeline.asking.questions import Call, Limits, Tell
from pipeline.core.schema import PROVIDERS, ErrorLine, Frozen, Price, ProviderName, StoredAnswer
from pipeline.providers.cost import Usage, batch_price, cost_of, price_of

if TYPE_CHECKING:
    from pipeline.asking.paid_replies import PausedLine

StopReason = Literal["", "SIGINT", "SIGTERM", "max_cost", "batch"]


class LastStart(Frozen):
    """What the last start of a run did, beside what its folder holds in all."""

    kept: int = 0
    """Calls that had an answer already and were not put again."""
    new: int = 0
    """Calls that were answered."""
    failed: int = 0
    """Calls that were put and not answered."""
    unread: int = 0
    """Calls whose reply, kept by an earlier start, cannot be read, and which were not put again."""
    errors: dict[str, int] = Field(default_factory=dict)
    """Both of these by kind of error; errors of calls that this start did not ask for are left out."""
    cost: float = 0.0
    """Known cost of the replies that it bought, in USD; 0 for stored payloads, which nobody is paid for."""
    unpriced: int = 0
    """Replies that it bought whose cost is not known, and which `cost` leaves out."""
    missing: dict[ProviderName, dict[str, int]] | None = None
    """Calls that have no answer at its end, unread ones too, by provider and kind of error; null before it was kept."""
    unreadable: int | None = None
    """Those whose reply is kept and cannot be read; only `--retry bad_response` puts them again; null as above."""
    silent: dict[ProviderName, dict[str, int]] = Field(default_factory=dict)
    """Providers that answered none of their calls, with the number of these by kind of error."""
    priceless: dict[ProviderName, tuple[str, ...]] = Field(default_factory=dict)
    """Where the want of a price alone ended the asking under a limit of cost: the models without one, by provider."""


class Settled(NamedTuple):
    """What stands on the disk for a call: an answer or an error, and the usage that the body states.

    `paused` is that of the bodies before the last of a turn that was paused, which counted when they came. `is_unread`
    says of an error that its reply is kept and cannot be read, `is_old` that an earlier start kept it, `is_lost` that
    a reply which may have to be paid for never came; `model` is the one that was asked for then.
    """

    answer: StoredAnswer | None = None
    error: ErrorLine | None = None
    usage: Usage = Usage()
    paused: tuple[Usage, ...] = ()
    is_unread: bool = False
    is_old: bool = False
    is_lost: bool = False
    model: str = ""


class RunState:
    """How far a run has come: what it has spent, what failed, and why no further call is to be started."""

    def __init__(self, limits: Limits, spent: float = 0.0, stop_waiting: Callable[[], int] = lambda: 0) -> None:
        self.stop_waiting = stop_waiting
        self.limits = limits
        self.token_shares: dict[ProviderName, float] = {}  # of those who are asked in batches
        self.spending = Spending(limits.max_cost, spent)
        self.errors: list[ErrorLine] = []
        self.kept = 0
        self.unread: Counter[ProviderName] = Counter()
        self.unreadable = 0
        self.beside_cost, self.beside_unpriced = 0.0, 0  # of what was paid now and is in no new answer
        self.longest = 0  # the most tokens that an answer may have
        self.answered: Counter[ProviderName] = Counter()
        self.in_flight = 0
        self.stopped: StopReason = ""
        self.priceless: dict[ProviderName, tuple[str, ...]] = {}
        self.tasks: list[asyncio.Task[None]] = []

    @property
    def settled(self) -> int:
        return self.kept + self.answered.total() + len(self.errors)

    def last_start(self) -> LastStart:
        """What this start did, without what its answers cost."""
        failed: dict[ProviderName, Counter[str]] = {}
        for error in self.errors:
            failed.setdefault(error.provider, Counter())[error.kind] += 1
        missing = {each: dict(failed[each].most_common()) for each in PROVIDERS if each in failed}
        silent = {
            each: dict(failed[each])
            for each in PROVIDERS
            if each in failed and not self.answered[each] and failed[each].total() > self.unread[each]
        }
        return LastStart(
            kept=self.kept,
            new=self.answered.total(),
            failed=len(self.errors) - self.unread.total(),
            unread=self.unread.total(),
            unreadable=self.unreadable,
            errors=dict(Counter[str](error.kind for error in self.errors)),
            cost=round(self.beside_cost, 8),
            unpriced=self.beside_unpriced,
            missing=missing,
            silent=silent,
            priceless={} if self.stopped else self.priceless,
        )

    def may_start_call(self) -> bool:
        if not self.stopped and self.spending.is_reached:
            self.stopped = "max_cost"
        return not self.stopped

    @asynccontextmanager
    async def starting(self, call: Call) -> AsyncIterator[bool]:
        """Wait until the call may be put, which the block does then; False where it may not any more."""
        begun = self.may_start_call() and await self.spending.begin(call.provider)
        if not self.may_start_call() or not begun:
            if begun:
                self.spending.end(call.provider)
            yield False
            return
        self.in_flight += 1
        try:
            yield True
        finally:
            self.in_flight -= 1
            self.spending.end(call.provider)

    def record(self, call: Call, settled: Settled) -> None:
        if settled.error:
            self.errors.append(settled.error)
            self.unread[call.provider] += settled.is_old
            self.unreadable += settled.is_unread
        if settled.answer:
            self.answered[call.provider] += 1
        if settled.is_old:
            return
        if settled.answer or settled.is_unread:
            model = settled.answer.model_version if settled.answer else settled.model
            price = price_of(self.limits.prices, model, call.model)
            price = batch_price(price, self.token_shares.get(call.provider))
            cost = cost_of(settled.usage, price)
            earlier = [cost_of(usage, price) for usage in settled.paused]
            paid = sum(each or 0.0 for each in earlier)
            self.spending.pay(call.provider, cost, self.most(price), call.model or model, paid)
            if settled.is_unread:
                self.beside_cost += cost or 0.0
                self.beside_unpriced += cost is None
            else:  # the answer's bill holds them
                self.beside_cost -= paid
                self.beside_unpriced -= earlier.count(None)
        elif settled.is_lost and call.provider in self.spending.dearest:
            self.spending.pay(call.provider, None)

    def record_paused(self, line: "PausedLine") -> None:
        usage, price = line.bill(self.limits.prices)
        cost = cost_of(usage, price)
        self.spending.spent += (self.most(price) or 0.0) if cost is None else cost
        self.beside_cost += cost or 0.0
        self.beside_unpriced += cost is None

    def most(self, price: Price | None) -> float | None:
        """What the longest answer with one search costs, which counts where a reply does not say what it took."""
        return cost_of(Usage(0, self.longest, 1), price)

    def stop(self, reason: StopReason, tell: Tell) -> None:
        """Let no further request be sent; the second time, give up those under way."""
        if self.stopped in ("SIGINT", "SIGTERM"):
            for task in self.tasks:
                task.cancel()
            return
        self.stopped = reason
        again = "Ctrl-C again" if reason == "SIGINT" else "a second signal"
        under_way = self.in_flight - self.stop_waiting()
        tell(f"Stopping: {under_way} calls under way are finished and kept; {again} gives them up.")


class Spending:
    """The known cost of a run. A call under way counts as the dearest answer of its provider so far.

    A provider has no more calls under way than known costs, and the first goes alone. So a limit is passed by what is
    under way at the most, and by one call unless there are dearer ones than all before.
    """

    def __init__(self, limit: float | None, spent: float = 0.0) -> None:
        self.limit = limit
        self.spent = self.earlier = spent
        self.dearest: dict[ProviderName, float] = {}
        self.known: Counter[ProviderName] = Counter()
        self.under_way: Counter[ProviderName] = Counter()
        self.unknown: dict[ProviderName, set[str]] = {}  # with the models that want a price
        self.refused: set[ProviderName] = set()
        self.moved = asyncio.Event()

    @property
    def is_reached(self) -> bool:
        return self.limit is not None and self.spent >= self.limit

    @property
    def now(self) -> float:
        return self.spent - self.earlier

    def pay(
        self, provider: ProviderName, cost: float | None, most: float | None = None, model: str = "", paid: float = 0.0
    ) -> None:
        """Count what a model's reply cost; one of unknown cost as the dearest so far, or as the `most` one may cost.

        `paid` of it was counted before. Where neither is known no further call to the provider is started under a
        limit: it could not be held.
        """
        if cost is not None:
            self.spent += cost - paid
            self.known[provider] += 1
            self.dearest[provider] = max(cost, self.dearest.get(provider, 0.0))
            return
        guesses = [each for each in (self.dearest.get(provider), most) if each is not None]
        if guesses:
            self.spent += max(guesses)
        else:
            self.unknown.setdefault(provider, set()).add(model)

    async def begin(self, provider: ProviderName) -> bool:
        """Wait until the limit has room for a call, and count it as under way until its `end`; False for no room."""
        while not self._is_over(provider) and not self._fits(provider):
            self.moved.clear()
            await self.moved.wait()
        if self._is_over(provider):
            if not self.is_reached:
                self.refused.add(provider)
            return False
        self.under_way[provider] += 1
        return True

    def end(self, provider: ProviderName) -> None:
        self.under_way[provider] -= 1
        self.moved.set()

    def _is_over(self, provider: ProviderName) -> bool:
        return self.is_reached or (self.limit is not None and provider in self.unknown)

    def _fits(self, provider: ProviderName) -> bool:
        if self.limit is None:
            return True
        if self.under_way[provider] >= max(1, self.known[provider]):
            return False
        reserved = sum(number * self.dearest.get(each, 0.0) for each, number in self.under_way.items())
        return self.spent + reserved < self.limit
