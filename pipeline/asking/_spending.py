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
        self.unknown: set[ProviderName] = set()
        self.moved = asyncio.Event()

    @property
    def is_reached(self) -> bool:
        """Whether the limit leaves nothing to any provider."""
        return self.limit is not None and self.spent >= self.limit

    @property
    def now(self) -> float:
        """The known cost since this start."""
        return self.spent - self.earlier

    @property
    def cannot_hold(self) -> set[ProviderName]:
        """The providers for which the limit cannot be held, for what they cost is not known."""
        return set() if self.limit is None else self.unknown

    def pay(self, provider: ProviderName, cost: float | None) -> None:
        """Count what a reply cost; one of unknown cost as the dearest so far.

        Where none is known no further call to the provider is started under a limit: it could not be held.
        """
        counted = self.dearest.get(provider) if cost is None else cost
        if counted is None:
            self.unknown.add(provider)
        else:
            self.spent += counted
            self.known[provider] += cost is not None
            self.dearest[provider] = max(counted, self.dearest.get(provider, 0.0))

    async def begin(self, provider: ProviderName) -> bool:
        """Wait until the limit has room for a call to the provider, and count it as under way; False: no room any more.

        Each call that began must `end`.
        """
        while not self._is_over(provider) and not self._fits(provider):
            self.moved.clear()
            await self.moved.wait()
        if self._is_over(provider):
            return False
        self.under_way[provider] += 1
        return True

    def end(self, provider: ProviderName) -> None:
        """The call is no longer under way, and what it cost is counted."""
        self.under_way[provider] -= 1
        self.moved.set()

    def _is_over(self, provider: ProviderName) -> bool:
        """Whether no further call to the provider may ever start."""
        return self.is_reached or provider in self.cannot_hold

    def _fits(self, provider: ProviderName) -> bool:
        """Whether a call may start beside those that are under way."""
        if self.limit is None:
            return True
        if self.under_way[provider] >= max(1, self.known[provider]):
            return False
        reserved = sum(number * self.dearest.get(each, 0.0) for each, number in self.under_way.items())
        return self.spent + reserved < self.limit
