"""Wrong passwords, counted: who has typed ten in a minute waits, and who knows hers gets in.

Counted are the last minute's wrong passwords of a user name at an address, of a user name everywhere, and of an
address, in the queue's Redis, so for all processes of the server together. Ten of the same name at the same address are
the end for a minute: what comes then is refused unread. Ten of a name, or of an address, are no reason to refuse
somebody who has typed hers right: an owner whose name is tried elsewhere, a colleague in the same house. So a name at
an address then has three attempts instead of ten, and a wrong one is answered like a refusal. Who is refused gets her
answer a second later, which keeps a loop from turning fast.

Keys are digests, because people type passwords where names belong; they expire after the minute. Where Redis does not
answer nothing is counted, and log-in goes on.
"""

import asyncio
import hashlib
import hmac
import ipaddress
import json
import math
from typing import Annotated, Any, NamedTuple

from annotation.embedded.home.event_log import repeats, tell_repeatedly
from annotation.embedded.patches._passwords import TooManyWaitingError, asked_by
from annotation.embedded.patches._routes import serve_first

_MOST_WRONG = 10
_FEW = 3
_WINDOW_SECONDS = 60
_REFUSAL_SECONDS = 1.0
_ANSWER_SECONDS = 2.0
_NETWORK_BITS = 64  # of IPv6; who has one address of a network has all of them
_REFUSAL = "Too many wrong passwords. Wait a minute, then try again."

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


class _Attempt(NamedTuple):
    """An attempt to log in that is counted as wrong until it turns out to be right."""

    keys: tuple[str, str, str]
    """Of the name at the address, of the name, of the address."""
    time: str
    """When it began, as it is counted; empty where nothing is counted."""
    wait: float
    """Seconds until it may be tried; 0 where it may."""


class WrongPasswords:
    """The counts of wrong passwords in a Redis."""

    def __init__(self, url: str, secret: str) -> None:
        """Name the Redis, and the secret of this server's digests; it is connected to when it is needed."""
        from redis.asyncio import Redis

        self.redis = Redis.from_url(url, socket_timeout=_ANSWER_SECONDS, socket_connect_timeout=_ANSWER_SECONDS)
        self.secret = secret.encode()
        self.troubles = repeats()

    async def begin(self, username: str, address: str) -> _Attempt:
        """An attempt that may be made, counted, or one that must wait."""
        pair, name, place = (self._key(*part) for part in (("both", username, address), ("name", username), (address,)))
        wait, time = await self._run(_BEGIN, keys := (pair, name, place))
        return _Attempt(keys, time, wait)

    async def was_right(self, attempt: _Attempt) -> None:
        """Count it no longer."""
        from redis.exceptions import RedisError

        if attempt.time:
            try:
                await self.redis.lrem(attempt.keys[0], 1, attempt.time)
            except RedisError:
                self._tell_trouble()

    async def was_wrong(self, attempt: _Attempt) -> float:
        """Seconds until the name and the address have fewer than ten of those before it; 0 where they have."""
        wait, _ = await self._run(_WRONG, attempt.keys)
        return wait

    async def _run(self, script: str, keys: tuple[str, str, str]) -> tuple[float, str]:
        """Seconds to wait, and the time; nothing where Redis does not answer."""
        from redis.exceptions import RedisError

        try:
            microseconds, time = await self.redis.eval(script, len(keys), *keys, _WINDOW_SECONDS, _MOST_WRONG, _FEW)
        except RedisError:
            self._tell_trouble()
            return 0.0, ""
        return int(microseconds) / 1e6, time.decode()

    def _key(self, *parts: str) -> str:
        """The key of a count."""
        digest = hmac.digest(self.secret, json.dumps(parts).encode(), hashlib.sha256)
        return f"citejury:wrong-passwords:{digest.hex()}"

    def _tell_trouble(self) -> None:
        """Tell that nothing is counted."""
        tell_repeatedly(self.troubles, "wrong passwords are not counted: the queue does not answer")


def network_of(client: tuple[str, int] | None) -> str:
    """The address that attempts are counted under: IPv4 as it is, of IPv6 the network."""
    try:
        address = ipaddress.ip_address(client[0] if client else "")
    except ValueError:
        return client[0] if client else ""
    address = getattr(address, "ipv4_mapped", None) or address
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((int(address), _NETWORK_BITS), strict=False))


def slow_down(create_token: Any) -> None:
    """Serve log-in so that wrong passwords are counted; argilla-server's own route stays behind it."""
    from argilla_server.api.schemas.v1.oauth2 import Token
    from argilla_server.database import get_async_db
    from argilla_server.errors import UnauthorizedError
    from argilla_server.security.settings import settings as security_settings
    from argilla_server.settings import settings
    from fastapi import Depends, Form, Request
    from fastapi.responses import JSONResponse
    from sqlalchemy.ext.asyncio import AsyncSession

    wrong = WrongPasswords(settings.redis_url, security_settings.secret_key)
    refusals = repeats()

    async def refuse(db: Any, address: str, seconds: float) -> Any:
        await db.close()  # its connection is for others meanwhile
        tell_repeatedly(refusals, f"login refused: too many wrong passwords from {address}")
        await asyncio.sleep(_REFUSAL_SECONDS)
        headers = {"Retry-After": str(max(1, math.ceil(seconds)))}
        return JSONResponse({"detail": _REFUSAL}, 429, headers=headers)

    async def create_counted_token(
        request: Request,
        username: Annotated[str, Form()],
        password: Annotated[str, Form()],
        db: AsyncSession = Depends(get_async_db),  # noqa: B008  # FastAPI's way
    ) -> Any:
        address = network_of(request.scope.get("client"))
        attempt = await wrong.begin(username, address)
        if attempt.wait:
            return await refuse(db, address, attempt.wait)
        try:
            with asked_by(address):
                token = await create_token(db=db, username=username, password=password)
        except UnauthorizedError:
            wait = await wrong.was_wrong(attempt)
            if wait:
                return await refuse(db, address, wait)
            raise
        except TooManyWaitingError:
            await wrong.was_right(attempt)  # or not; nobody has looked
            return await refuse(db, address, _REFUSAL_SECONDS)
        await wrong.was_right(attempt)
        return token

    serve_first("/token", create_counted_token, "POST", status_code=201, response_model=Token)
