"""What calls to a model take: each is reserved before it starts, kept before it is used, and held against limits.

Calls that run at once would each find room below a limit that all of them together break. So a call starts only where
it fits at its largest beside what was spent and what runs; else it waits until running calls are settled. Where nothing
runs and the limit is not reached, it starts even so: what is spent goes over a limit by one call's size at the most.
"""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol

from pipeline.errors import ProviderError
from pipeline.models.completion import model_content
from pipeline.models.structured import Spent, added
from pipeline.providers.cost import cost_of, price_of, usage_of
from pipeline.providers.http.body import as_object, as_text, load_body
from pipeline.schema import Price
from pipeline.sources.chunk import check_counts_tokens, count_tokens

USED_UP = "The budget for the model is used up."
_PER_MILLION = 1_000_000


class SpendLimits(NamedTuple):
    """What all calls together may take; None is no limit."""

    tokens: int | None = None
    """Tokens to and from the model."""
    cost: float | None = None
    """What the answers cost as far as it is known, in USD."""

    def reached(self, spent: Spent) -> Literal["tokens", "cost"] | None:
        """The first limit that so much reaches; None where it reaches none."""
        if self.tokens is not None and spent.tokens >= self.tokens:
            return "tokens"
        if self.cost is not None and spent.cost >= self.cost:
            return "cost"
        return None


class CallSize(NamedTuple):
    """The most tokens that one call may take."""

    tokens_in: int
    """Tokens of the request, as `o200k_base` counts them."""
    tokens_out: int
    """The longest answer that is asked for."""


class Book(Protocol):
    """Where calls are kept so that a kill leaves them: both are on the disk when they return."""

    def begin(self, most: Spent) -> int:
        """Keep that a call begins which takes so much at the most, and give it a number."""

    def settle(self, number: int, took: Spent) -> None:
        """Keep what the call took; nothing where nobody answered."""


class Meter:
    """Lets calls start as limits allow, and counts what they took.

    `spent` is what answered calls took. `cut_off` is what those may have taken at the most that somebody may have
    answered and nobody heard: they count against the limits too.
    """

    def __init__(
        self,
        model: str,
        prices: Mapping[str, Price] | None = None,
        limits: SpendLimits | None = None,
        at_once: int = 8,
        book: Book | None = None,
        may_ask: Callable[[], bool] = lambda: True,
        heard: Callable[[Spent], None] = lambda spent: None,
    ) -> None:
        """Meter this model; so many calls run at once. `heard` hears what was spent after each.

        Raises:
            NotInstalledError: tokens cannot be counted here.
        """
        check_counts_tokens()
        self.model = model
        self.prices = dict(prices or {})
        self.limits = limits or SpendLimits()
        self.book = book
        self.may_ask = may_ask
        self.heard = heard
        self.spent = Spent()
        self.cut_off = Spent()
        self.slots = asyncio.Semaphore(max(1, at_once))
        self.under_way: list[Spent] = []
        self.settled = asyncio.Event()
        self.answered = False
        self.longer = 1.0
        self.longest = 0
        self.dearest_in = self.dearest_out = math.inf

    def used_up(self) -> Literal["tokens", "cost"] | None:
        """The first limit that is reached; None where there is none."""
        return self.limits.reached(self.committed)

    @property
    def committed(self) -> Spent:
        """What counts against the limits."""
        return added(self.spent, self.cut_off)

    async def call(self, body: Mapping[str, Any], max_tokens: int, send: Callable[[], Awaitable[str]]) -> str:
        """The payload that `send` brings for this body, counted and kept; it is sent when there is room for it.

        All of the body counts as what goes in, the JSON schema and the names of fields too.

        A call that got no answer takes nothing, but for one that ran out of time or whose answer broke off: that one is
        cut off.

        Raises:
            ProviderError: nobody answered, or the budget is used up and nothing was sent.
        """
        size = CallSize(count_tokens(json.dumps(body, ensure_ascii=False)), max_tokens)
        async with self.slots:
            most = await self.reserve(size)
            is_lost = True
            try:
                number = self.book.begin(most) if self.book else 0
                payload = await send()
                took = self.learn(payload, size)
                is_lost = False
            except ProviderError as error:
                is_lost = error.is_lost
                took = Spent()
                raise
            finally:
                self.under_way.remove(most)
                self.settled.set()
                self.settled = asyncio.Event()
                if is_lost:
                    self.cut_off = added(self.cut_off, most)
                else:
                    if self.book:
                        self.book.settle(number, took)
                    self.spent = added(self.spent, took)
                    self.heard(self.spent)
            return payload

    async def reserve(self, size: CallSize) -> Spent:
        """What a call of this size takes at the most, reserved; waits while it does not fit beside running calls.

        Raises:
            ProviderError: the budget is used up, or nobody may be asked any more.
        """
        while self.may_ask() and not self.used_up():
            most = self.most(size)
            if not self.under_way or self.fits(most):
                self.under_way.append(most)
                return most
            await self.settled.wait()
        raise ProviderError(USED_UP, "not_recorded", attempts=0)

    def fits(self, most: Spent) -> bool:
        """Whether a call stays below the limits beside what was spent and what runs; unknown costs never do.

        With a limit, the first call goes alone: it teaches how far sizes are to be trusted.
        """
        if self.limits == SpendLimits():
            return True
        if not self.answered:
            return False
        total = added(self.committed, most)
        for running in self.under_way:
            total = added(total, running)
        if self.limits.tokens is not None and total.tokens > self.limits.tokens:
            return False
        return self.limits.cost is None or (total.cost <= self.limits.cost and not most.unpriced)

    def most(self, size: CallSize) -> Spent:
        """What a call of this size takes at the most, by what the calls so far took of theirs.

        Without a price its cost follows from what answers stated: no token cost more than a whole answer did, shared
        among its tokens of that kind.
        """
        tokens_in, tokens_out = math.ceil(size.tokens_in * self.longer), max(size.tokens_out, self.longest)
        price = price_of(self.prices, self.model)
        if price:
            cost = (tokens_in * price.input + tokens_out * price.output) / _PER_MILLION
        else:
            cost = tokens_in * self.dearest_in + tokens_out * self.dearest_out
        known = math.isfinite(cost)
        return Spent(1, tokens_in, tokens_out, cost if known else 0.0, int(not known))

    def learn(self, payload: str, size: CallSize) -> Spent:
        """What an answer took: as it states, else by our own count; the next calls are taken for as large as it."""
        body = load_body(payload)
        usage = usage_of(body)
        if not (usage.input_tokens or usage.output_tokens):
            said = count_tokens(model_content(payload).content)
            usage = usage._replace(input_tokens=size.tokens_in, output_tokens=said)
        cost = cost_of(usage, price_of(self.prices, as_text(as_object(body).get("model")), self.model))
        self.answered = True
        self.longer = max(self.longer, usage.input_tokens / max(1, size.tokens_in))
        self.longest = max(self.longest, usage.output_tokens)
        if cost is not None:
            self.dearest_in = min(self.dearest_in, cost / max(1, usage.input_tokens))
            self.dearest_out = min(self.dearest_out, cost / max(1, usage.output_tokens))
        return Spent(1, usage.input_tokens, usage.output_tokens, cost or 0.0, int(cost is None))
