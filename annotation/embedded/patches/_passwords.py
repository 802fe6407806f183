"""Passwords are hashed by threads of their own, so that everybody else is answered meanwhile.

bcrypt takes a fifth of a second by intention, and lets go of Python's lock while it works (bcrypt 4.2). As many threads
as half of the processors do it, at the lowest priority, one address after the other: who sends a hundred attempts waits
for her own ones, and somebody elsewhere for one of hers.
"""

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

_MOST_THREADS = 4
_MOST_WAITING = 64  # of one address; more than a class that logs in at once
_LOWEST_PRIORITY = 19
_LOGGED_IN = ""

R = TypeVar("R")

_asking: ContextVar[str] = ContextVar("asking", default=_LOGGED_IN)
"""Whose request is worked on: an address, or nothing for somebody who has logged in."""


class TooManyWaitingError(Exception):
    """As many of one address wait for a thread as may."""


class _Hashed(str):
    """A password that is hashed already."""

    __slots__ = ()


class FairThreads:
    """A few threads, for which those who ask wait in turns."""

    def __init__(self, number: int, most_waiting: int = _MOST_WAITING) -> None:
        """Say how many threads there may be, and how many of one address may wait; threads start when needed."""
        self.threads = ThreadPoolExecutor(number, "passwords", _step_back)
        self.most_waiting = most_waiting
        self.free = number
        self.waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def run(self, who: str, function: Callable[..., R], *arguments: Any) -> R:
        """What the function gives, called in a thread when it is the turn of `who`.

        Raises:
            TooManyWaitingError: too many calls of hers wait already.
        """
        await self._wait(who)
        working = asyncio.get_running_loop().run_in_executor(self.threads, function, *arguments)
        working.add_done_callback(lambda _: self._pass_on())
        return await asyncio.shield(working)  # who leaves does not end the thread's work

    async def _wait(self, who: str) -> None:
        """Return when a thread is free, and taken."""
        if self.free:
            self.free -= 1
            return
        queue = self.waiting.setdefault(who, deque())
        if len(queue) >= self.most_waiting:
            raise TooManyWaitingError
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it came at the same moment
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """Give a thread that is free to whoever has waited for a turn the longest, one address after the other."""
        while self.waiting:
            who, queue = next(iter(self.waiting.items()))
            del self.waiting[who]
            turn = queue.popleft()
            if queue:
                self.waiting[who] = queue
            if not turn.done():
                turn.set_result(None)
                return
        self.free += 1


def _step_back() -> None:
    """Give this thread the lowest priority; only Linux gives one to a thread."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST_PRIORITY)


_fair_threads = FairThreads(max(1, min(_MOST_THREADS, (os.cpu_count() or 1) // 2)))


@contextmanager
def asked_by(who: str) -> Iterator[None]:
    """Passwords in the block are those of an address that has not logged in."""
    token = _asking.set(who)
    try:
        yield
    finally:
        _asking.reset(token)


def check_elsewhere(_: Any) -> Callable[..., Awaitable[Any]]:
    """An `authenticate_user` that keeps neither the server nor a connection of the database while it hashes.

    An unknown user name takes what a known one takes: the same queries and one hash.
    """
    from argilla_server.contexts import accounts

    async def authenticate_user(db: Any, username: str, password: str) -> Any:
        hashed = await _hash_of(db, username)
        known = hashed or accounts._DUMMY_HASH
        right = await _fair_threads.run(_asking.get(), accounts.verify_password, password, known)
        if not right or not hashed:
            return None
        user = await accounts.get_user_by_username(db, username)
        # Whoever has got a new password meanwhile needs that.
        return user if user is not None and user.password_hash == hashed else None

    return authenticate_user


async def _hash_of(db: Any, username: str) -> str | None:
    """The user's password as it is stored; None where there is no such user. The connection is free afterwards."""
    from argilla_server.contexts import accounts

    if "\0" in username:  # nobody's name has it, and PostgreSQL does not take it
        return None
    user = await accounts.get_user_by_username(db, username)
    hashed = None if user is None else str(user.password_hash)
    await db.close()
    return hashed


def hash_first(store: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """A function that stores a user, with the password in what it gets hashed before."""
    from argilla_server.contexts import accounts

    async def store_hashed(db: Any, *arguments: Any, **named: Any) -> Any:
        given = [*arguments, *named.values()]
        for attributes in (each for each in given if isinstance(each, dict) and "password" in each):
            hashed = await _fair_threads.run(_LOGGED_IN, accounts.hash_password, attributes["password"])
            attributes["password"] = _Hashed(hashed)
        return await store(db, *arguments, **named)

    return store_hashed


def hash_once(hash_password: Callable[[str], str]) -> Callable[[str], str]:
    """A `hash_password` that leaves what is hashed already as it is."""
    return lambda password: str(password) if isinstance(password, _Hashed) else hash_password(password)
