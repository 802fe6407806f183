"""Passwords: wrong ones are counted, and hashes are made by threads of their own.

Counted are a minute's wrong passwords of a user name at an address, of a name everywhere, and of an address, in the
queue's Redis, so for all processes together; the minute begins with the first. Ten of the same name at the same address
are the end for a minute. Ten of a name, or of an address, are no reason to refuse somebody who has typed theirs right:
an owner whose name is tried elsewhere, a colleague in the same house. So a name at an address then has three attempts
instead of ten, and a wrong one is answered like a refusal, a second later. Keys are digests, because people type
passwords where names belong. Where Redis does not answer nothing is counted, and log-in goes on.

bcrypt takes a fifth of a second by intention, and lets go of Python's lock (bcrypt 4.2). Half as many threads as
processors do it, at the lowest priority, one address after the other: who sends a hundred waits for their own.
"""

import asyncio
import hashlib
import hmac
import ipaddress
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from redis.asyncio import Redis
from redis.exceptions import RedisError

from annotation.server.edge import address_of
from annotation.server.home.logs import repeats, tell_repeatedly

_ANSWER_SECONDS = 2.0

R = TypeVar("R")

_COUNTED_SECONDS = 60
_MOST, _FEW = 10, 3  # attempts a minute; few where a name or an address is tried a lot


class TooManyWaitingError(Exception):
    """As many of one address wait for a thread as may."""


class FairThreads:
    """One piece of work of an address at a time stands in line for a thread, so that nobody waits for a crowd."""

    def __init__(self, number: int, most_waiting: int = 64) -> None:  # more than a class that logs in at once
        self.threads = ThreadPoolExecutor(number, "passwords", _step_back)
        self.most_waiting = most_waiting
        self.asked: Counter[str] = Counter()
        self.turns: dict[str, asyncio.Lock] = {}

    async def run(self, who: str, function: Callable[..., R], *arguments: Any) -> R:
        if self.asked[who] > self.most_waiting:
            raise TooManyWaitingError
        self.asked[who] += 1
        try:
            async with self.turns.setdefault(who, asyncio.Lock()):
                return await asyncio.get_running_loop().run_in_executor(self.threads, function, *arguments)
        finally:
            self.asked[who] -= 1
            if not self.asked[who]:
                del self.asked[who], self.turns[who]


def _step_back() -> None:
    """Give this thread the lowest priority; only Linux gives one to a thread."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)


class _Attempt(NamedTuple):
    keys: tuple[str, str, str]  # of the name at the address, of the name, of the address
    wait: float  # seconds until it may be tried; 0 where it may


class WrongPasswords:
    def __init__(self, url: str, secret: str) -> None:
        self.redis = Redis.from_url(url, socket_timeout=_ANSWER_SECONDS, socket_connect_timeout=_ANSWER_SECONDS)
        self.secret = secret.encode()
        self.troubles = repeats()

    async def begin(self, username: str, address: str) -> _Attempt:
        """Counted before anybody looks whether it is right, so that many at once are no more than one by one."""
        counted = (("both", username, address), ("name", username), (address,))
        digests = [hmac.digest(self.secret, json.dumps(each).encode(), hashlib.sha256).hex() for each in counted]
        pair, name, place = (f"citejury:wrong-attempts:{digest}" for digest in digests)
        (number, wait), (of_name, _), (of_place, _) = await self._add((pair, 1), (name, 0), (place, 0))
        most = _FEW if max(of_name, of_place) >= _MOST else _MOST
        return _Attempt((pair, name, place), wait if number > most else 0.0)

    async def was_right(self, attempt: _Attempt) -> None:
        await self._add((attempt.keys[0], -1))

    async def was_wrong(self, attempt: _Attempt) -> float:
        """Seconds until the name and the address have fewer than ten; 0 where they had."""
        found = await self._add(*((key, 1) for key in attempt.keys[1:]))
        return max((wait for number, wait in found if number > _MOST), default=0.0)

    async def _add(self, *keys: tuple[str, int]) -> list[tuple[int, float]]:
        """Of each key what is counted in its minute by now, and the seconds that are left of that."""
        try:
            async with self.redis.pipeline() as asked:
                for key, number in keys:
                    asked.incrby(key, number)
                    asked.expire(key, _COUNTED_SECONDS, lt=True)  # a clock that was put back makes none longer
                    asked.ttl(key)
                said = await asked.execute()
        except RedisError:
            tell_repeatedly(self.troubles, "wrong passwords are not counted: the queue does not answer")
            return [(0, 0.0)] * len(keys)
        return [(number, max(1.0, left)) for number, left in zip(said[::3], said[2::3], strict=True)]


def network_of(client: tuple[str, int] | None) -> str:
    """The address that attempts are counted under: IPv4 as it is, of IPv6 the network."""
    address = address_of(client[0]) if client else None
    if address is None:
        return client[0] if client else ""
    if address.version == 4:
        return str(address)
    # Who has one address of a network has all of them.
    return str(ipaddress.ip_network((int(address), 64), strict=False))
