"""Passwords: wrong ones are counted, and hashes are made by threads of their own.

Counted are the last minute's wrong passwords of a user name at an address, of a name everywhere, and of an address, in
the queue's Redis, so for all processes together. Ten of the same name at the same address are the end for a minute.
Ten of a name, or of an address, are no reason to refuse somebody who has typed theirs right: an owner whose name is
tried elsewhere, a colleague in the same house. So a name at an address then has three attempts instead of ten, and a
wrong one is answered like a refusal, a second later. Keys are digests, because people type passwords where names
belong. Where Redis does not answer nothing is counted, and log-in goes on.

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
from collections import deque
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

# Times are microseconds of Redis's own clock, newest first; one from before a jump back of the clock counts nothing.
_TIMES = """
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local window, many, few = tonumber(ARGV[1]) * 1000000, tonumber(ARGV[2]), tonumber(ARGV[3])
local function left(key, number)  -- until fewer than so many are of the last minute; 0 where they are
  local age = now - (tonumber(redis.call('LINDEX', key, number - 1)) or -1)
  if age < 0 or age > now or age >= window then return 0 end
  return window - age
end
local function add(key)
  redis.call('LPUSH', key, string.format('%.0f', now))
  redis.call('LTRIM', key, 0, many - 1)
  redis.call('EXPIRE', key, ARGV[1])
end
local strict = math.max(left(KEYS[2], many), left(KEYS[3], many))
"""
_BEGIN = f"""{_TIMES}
local wait = left(KEYS[1], many)
if strict > 0 then wait = math.max(wait, left(KEYS[1], few)) end
if wait == 0 then add(KEYS[1]) end
return {{string.format('%.0f', wait), string.format('%.0f', now)}}
"""
_WRONG = f"""{_TIMES}
add(KEYS[2])
add(KEYS[3])
return {{string.format('%.0f', strict), ''}}
"""


class TooManyWaitingError(Exception):
    """As many of one address wait for a thread as may."""


class FairThreads:
    def __init__(self, number: int, most_waiting: int = 64) -> None:  # more than a class that logs in at once
        self.threads = ThreadPoolExecutor(number, "passwords", _step_back)
        self.most_waiting = most_waiting
        self.free = number
        self.waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def run(self, who: str, function: Callable[..., R], *arguments: Any) -> R:
        await self._wait(who)
        working = asyncio.get_running_loop().run_in_executor(self.threads, function, *arguments)
        working.add_done_callback(lambda _: self._pass_on())
        return await asyncio.shield(working)  # who leaves does not end the thread's work

    async def _wait(self, who: str) -> None:
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
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)


class _Attempt(NamedTuple):
    keys: tuple[str, str, str]  # of the name at the address, of the name, of the address
    time: str  # when it began, as it is counted; empty where nothing is counted
    wait: float  # seconds until it may be tried; 0 where it may


class WrongPasswords:
    def __init__(self, url: str, secret: str) -> None:
        self.redis = Redis.from_url(url, socket_timeout=_ANSWER_SECONDS, socket_connect_timeout=_ANSWER_SECONDS)
        self.secret = secret.encode()
        self.troubles = repeats()

    async def begin(self, username: str, address: str) -> _Attempt:
        counted = (("both", username, address), ("name", username), (address,))
        digests = [hmac.digest(self.secret, json.dumps(each).encode(), hashlib.sha256).hex() for each in counted]
        pair, name, place = (f"citejury:wrong-passwords:{digest}" for digest in digests)
        wait, time = await self._run(_BEGIN, keys := (pair, name, place))
        return _Attempt(keys, time, wait)

    async def was_right(self, attempt: _Attempt) -> None:
        if attempt.time:
            try:
                await self.redis.lrem(attempt.keys[0], 1, attempt.time)
            except RedisError:
                self._tell_trouble()

    async def was_wrong(self, attempt: _Attempt) -> float:
        """Seconds until the name and the address have fewer than ten; 0 where they have."""
        wait, _ = await self._run(_WRONG, attempt.keys)
        return wait

    async def _run(self, script: str, keys: tuple[str, str, str]) -> tuple[float, str]:
        try:
            microseconds, time = await self.redis.eval(script, len(keys), *keys, 60, 10, 3)  # seconds, many, few
        except RedisError:
            self._tell_trouble()
            return 0.0, ""
        return int(microseconds) / 1e6, time.decode()

    def _tell_trouble(self) -> None:
        tell_repeatedly(self.troubles, "wrong passwords are not counted: the queue does not answer")


def network_of(client: tuple[str, int] | None) -> str:
    """The address that attempts are counted under: IPv4 as it is, of IPv6 the network."""
    address = address_of(client[0]) if client else None
    if address is None:
        return client[0] if client else ""
    if address.version == 4:
        return str(address)
    # Who has one address of a network has all of them.
    return str(ipaddress.ip_network((int(address), 64), strict=False))
