"""What a run has spent, and which call a limit of cost lets start beside those that are under way."""

import asyncio
from collections import Counter

from pipeline.schema import ProviderName


class Spending:
    """The known cost of a run. A call under way counts as the dearest answer of its provider so far.

    A provider has no more calls under way than known costs, and the first goes alone. So a limit is passed by what is
    under way at the most, and by one call unless there are dearer ones than all before.
    """

    def __init__(self, limit: float | None, spent: float = 0.0) -> None:
        """Begin with what was spent earlier; without a limit every call may start."""
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
        """Whether the limit leaves nothing to any provider."""
        return self.limit is not None and self.spent >= self.limit

    @property
    def now(self) -> float:
        """The known cost since this start."""
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
        """Wait until the limit has room for a call to the provider, and count it as under way; False: no room any more.

        Each call that began must `end`. A provider is `refused` where only the want of a known cost leaves no room.
        """
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
        """The call is no longer under way, and what it cost is counted."""
        self.under_way[provider] -= 1
        self.moved.set()

    def _is_over(self, provider: ProviderName) -> bool:
        """Whether no further call to the provider may ever start."""
        return self.is_reached or (self.limit is not None and provider in self.unknown)

    def _fits(self, provider: ProviderName) -> bool:
        """Whether a call may start beside those that are under way."""
        if self.limit is None:
            return True
        if self.under_way[provider] >= max(1, self.known[provider]):
            return False
        reserved = sum(number * self.dearest.get(each, 0.0) for each, number in self.under_way.items())
        return self.spent + reserved < self.limit
