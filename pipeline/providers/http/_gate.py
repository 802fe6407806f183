"""How fast one provider may be asked, learnt from what it answers; and the door that shuts when asking is useless."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from pipeline.errors import ProviderError


class Gate:
    """One provider's door: at most `most` calls at a time, fewer after a refusal for speed, none before `opens`."""

    def __init__(self, most: int) -> None:
        """An open door for `most` calls at a time."""
        self.slots = asyncio.Semaphore(most)
        self.most = most
        self.allowed = most
        self.under_way = 0
        self.opens = 0.0
        self.narrowed = 0.0
        self.good_answers = 0
        self.shut: ProviderError | None = None
        self.moved = asyncio.Condition()
        self.stopped = False
        self.resting: set[asyncio.Task[Any] | None] = set()

    @asynccontextmanager
    async def turn(self, sent: int, patience: float) -> AsyncIterator[float]:
        """The time on the loop's clock at which a request may be sent, once it may; the turn ends with the block.

        `sent` requests were made for the call so far; `patience` is the longest wait that makes sense, in seconds.

        Raises:
            ProviderError: the provider's door is shut, or opens only after the longest wait that makes sense.
        """
        with self.rests():
            async with self.moved:
                await self.moved.wait_for(lambda: self.under_way < self.allowed)
                self.under_way += 1
        try:
            with self.rests():
                await self.wait_until_open(sent, patience)
            yield asyncio.get_running_loop().time()
        finally:
            self.under_way -= 1
            async with self.moved:
                self.moved.notify(max(1, self.allowed - self.under_way))

    async def wait_until_open(self, sent: int, patience: float) -> None:
        """Wait until nothing forbids a start any more.

        Raises:
            ProviderError: the door is shut, or opens only after the longest wait that makes sense.
        """
        while True:
            if self.shut is not None:
                raise ProviderError(str(self.shut), self.shut.kind, status=self.shut.status, attempts=sent)
            wait = self.opens - asyncio.get_running_loop().time()
            if wait <= 0:
                return
            if wait > patience:
                words = f"The provider asked to be left alone for {wait:.0f} seconds more, longer than a call may take."
                raise ProviderError(words, "rate_limit", attempts=sent)
            await asyncio.sleep(wait)

    async def rest(self, seconds: float) -> None:
        """Wait so long; a stop ends it, and the task with it."""
        with self.rests():
            await asyncio.sleep(seconds)

    @contextmanager
    def rests(self) -> Iterator[None]:
        """The task has nothing on the way to the provider while the block runs."""
        task = asyncio.current_task()
        self.resting.add(task)
        try:
            yield
        finally:
            self.resting.discard(task)

    def stop(self) -> int:
        """How many tasks were cancelled because they wait to send something; what is on its way comes to its end."""
        self.stopped = True
        tasks = [task for task in self.resting if task is not None and task.cancel()]
        return len(tasks)

    def pause(self, seconds: float) -> None:
        """Let nothing start for so long; an earlier, longer pause stays."""
        self.opens = max(self.opens, asyncio.get_running_loop().time() + seconds)

    def narrow(self, started: float) -> None:
        """Let half as many through, once for all the requests that were under way at the first refusal."""
        if started >= self.narrowed:
            self.allowed = max(1, self.allowed // 2)
            self.narrowed = asyncio.get_running_loop().time()
            self.good_answers = 0

    def widen(self) -> None:
        """Count a good answer; a round of them lets one more through."""
        self.good_answers += 1
        if self.good_answers >= self.allowed and self.allowed < self.most:
            self.allowed += 1
            self.good_answers = 0

    def close(self, failure: ProviderError) -> None:
        """Fail every further call as this one failed, unsent; the first reason stays."""
        if self.shut is None:
            words = f"{str(failure).rstrip('.')}. So nothing more is asked of this provider in this run."
            self.shut = ProviderError(words, failure.kind, status=failure.status)
