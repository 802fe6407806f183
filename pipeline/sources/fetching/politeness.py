"""How often one host is asked: so many requests at a time, so long apart, and not at all once it stopped answering."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pipeline.sources.fetching.exchange import Exchange

# After so many questions in a row to which a host gave no whole answer, it is asked nothing more.
SILENT_AFTER = 3
UNREACHABLE = frozenset({"network", "no_such_host", "timeout"})


class HostQueue:
    """The requests to one host, in the order in which they came."""

    def __init__(self, at_once: int, delay: float) -> None:
        """A host that was asked nothing yet; `delay` are the seconds between the beginnings of two requests."""
        self.slots = asyncio.Semaphore(at_once)
        self.delay = delay
        self.opens = 0.0
        self.silence: list[Exchange] = []
        self.reached = False

    @asynccontextmanager
    async def turn(self, everyone: asyncio.Semaphore, follows: bool = False) -> AsyncIterator[None]:
        """One request's turn, once host and `everyone` have room for it.

        Who waits for a host takes nobody else's room meanwhile. What follows a redirect does not wait for the delay:
        together they are one question to the host.
        """
        clock = asyncio.get_running_loop().time
        async with self.slots:
            while True:
                if not follows and (wait := self.opens - clock()) > 0:
                    await asyncio.sleep(wait)
                async with everyone:
                    if follows or self.opens <= clock():
                        self.opens = max(self.opens, clock() + self.delay)
                        yield
                        return

    def pause(self, seconds: float) -> None:
        """Let no request begin for so long; an earlier, longer pause stays."""
        self.opens = max(self.opens, asyncio.get_running_loop().time() + seconds)

    def learn(self, came: Exchange) -> None:
        """Note whether the host answered one question, however often that was asked."""
        self.silence = [*self.silence, came] if came.reason in UNREACHABLE else []

    def given_up(self) -> Exchange | None:
        """What a further request would come to, where the host has not answered for long; None where it is asked."""
        if len(self.silence) < SILENT_AFTER:
            return None
        last = self.silence[-1]
        return last._replace(detail=f"{last.detail}; not asked again after {len(self.silence)} failures", seconds=0.0)
