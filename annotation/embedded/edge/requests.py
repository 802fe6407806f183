"""Which requests reach argilla-server, and in what shape: an ASGI app before its own.

- A name that is not ours gets 421 (`names`), and the client's address is the real one behind a trusted proxy.
- A body is read here, whole, before anything else looks at it: 64 KB without a valid log-in, with one what its role
  needs. Whoever sends more gets 413, by the length that is announced or by what has come; the rest is
  dropped, and read for a second at most, so that the answer is not lost to a client that is still sending.
- Of a body without a valid log-in, and of a log-in itself, argilla-server sees 4 KB: it would take half a second to
  find 20,000 fields in a form of 64 KB (starlette), before it asks who sends it.
- NUL in an address, places in lists that no list has, and names that no file has get 4xx; argilla-server answers them
  with 500.
- `Range` is dropped, so that files come whole: starlette 0.46.2 needs seconds for a long one (CVE-2025-62727).
- No answer of the API is kept by a cache.
"""

import asyncio
import contextlib
import re
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from annotation.embedded.edge._pace import Pace
from annotation.embedded.edge.names import Names, is_answered_to, real_client
from annotation.embedded.home.event_log import repeats, tell_repeatedly

_UNKNOWN_BYTES = 4 * 1024
"""What argilla-server sees of a body whose sender nobody has looked up."""
_ANONYMOUS_BYTES = 64 * 1024
_ROLE_BYTES = {"annotator": 2 * 1024 * 1024, "admin": 64 * 1024 * 1024, "owner": 64 * 1024 * 1024}
"""What a body may have with a log-in.

An annotator sends at most 100 responses at once. `push` sends 8 MB, or one record that is longer (`BATCH_BYTES`).
"""
_DROPPED_BYTES = 8 * 1024 * 1024
_DROPPING_SECONDS = 1.0
"""How long, and how much, what still comes is read after a refusal: to close before loses the answer to a reset."""
_LAST_PLACE = 2**31 - 1
_PLACES = ("offset", "limit")
_WHOLE_NUMBER = re.compile(r"([+-]?\d[\d_]*)(?:\.0+)?")
"""What pydantic takes for one."""
_LONGEST_NAME = 255  # bytes of a file's name
_LONGEST_PATH = 2_000
_API = "/api/"
_LOG_IN = "/token"
_BODY_HEADERS = {b"content-length", b"transfer-encoding"}
_LOGIN_HEADERS = {b"authorization", b"x-argilla-api-key"}
_DROPPED = {b"range", b"if-range"}
_NO_STORE = (b"cache-control", b"no-store")


class _Refusal(NamedTuple):
    """Why a request goes no further."""

    status: int
    sentence: str
    event: str = ""
    """What the server's events say of it, once a minute; nothing where it is the client's matter alone."""


_OTHER_NAME = _Refusal(
    421,
    "This server does not answer under the name in the address. Whoever runs it allows a name with `serve --allow-host "
    "NAME`, or with CITEJURY_ALLOW_HOSTS in docker/.env.",
    "refused: requests for a name that `--allow-host` does not list",
)
_NUL = _Refusal(400, "An address has no NUL character.")
_NO_PLACE = _Refusal(422, f"`offset` and `limit` are whole numbers from 0 to {_LAST_PLACE}.")
_NO_FILE = _Refusal(404, "There is no page with an address as long as this.")
_UNKNOWN = _Refusal(401, "Could not validate credentials")  # argilla-server's own words
_LARGE = _Refusal(
    413,
    "This is more than the server reads at once. Send less, in several requests.",
    "refused: a request that is too large for who sent it",
)
_ANONYMOUS = _Refusal(
    413,
    f"Without a log-in the server reads {_ANONYMOUS_BYTES // 1024} KB at most. Send a valid token or API key.",
    "refused: a large request without a log-in",
)
_BUSY = _Refusal(503, "The server is too busy just now, so nothing was read. Try again.")

Receive = Callable[[], Awaitable[Any]]


class Edge:
    """An ASGI app that answers with another one what may go in, and refuses the rest."""

    def __init__(self, app: Any, names: Names) -> None:
        """Keep the app, and under which names it answers."""
        self.app = app
        self.names = names
        self.refused = repeats()
        self.pace = Pace()

    async def __call__(self, scope: Any, receive: Receive, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        kept = [(name, value) for name, value in scope["headers"] if name not in _DROPPED]
        scope = {**scope, "headers": kept, "client": real_client(scope, self.names)}
        body = _to_the_last(receive)
        found: _Refusal | deque[bytes] | None = self.refusal_of_head(scope)
        if found is None and any(name in _BODY_HEADERS for name, _ in kept):
            found = await self.read(scope, body)
            if found is None:
                return
        if isinstance(found, _Refusal):
            await self.refuse(found, scope, body, send)
            return
        whole = receive if found is None else _again(found, receive)
        await self.app(scope, whole, _unstored(send) if _is_of_api(scope) else send)

    def refusal_of_head(self, scope: Any) -> _Refusal | None:
        """Why the request goes no further, by all that stands before its body."""
        if not is_answered_to(scope, self.names):
            return _OTHER_NAME
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            return _NUL
        if not _is_of_api(scope) and _names_no_file(scope["path"]):
            return _NO_FILE
        return _NO_PLACE if _is_of_api(scope) and _names_no_place(scope["query_string"]) else None

    async def read(self, scope: Any, receive: Receive) -> deque[bytes] | _Refusal | None:
        """The whole body in pieces; None where the client has gone."""
        announced = next((int(value) for name, value in scope["headers"] if name == b"content-length"), 0)
        most, came, more, pieces = _UNKNOWN_BYTES, 0, True, deque[bytes]()
        while True:
            if max(announced, came) > most == _UNKNOWN_BYTES:
                found = await self.most_bytes(scope)
                if isinstance(found, _Refusal):
                    return found
                most = found
            if max(announced, came) > most:
                return _ANONYMOUS if most == _ANONYMOUS_BYTES else _LARGE
            if not more:
                return _UNKNOWN if came > _UNKNOWN_BYTES and most == _ANONYMOUS_BYTES else pieces
            message = await receive()
            if message["type"] != "http.request":
                return None
            pieces.append(message.get("body", b""))
            came += len(pieces[-1])
            more = message.get("more_body", False)

    async def most_bytes(self, scope: Any) -> int | _Refusal:
        """How large the request's body may be with the log-in that it carries, if that is valid and none is wanted."""
        from sqlalchemy.exc import SQLAlchemyError

        if scope["path"].rstrip("/").endswith(_LOG_IN) or not any(
            name in _LOGIN_HEADERS for name, _ in scope["headers"]
        ):
            return _ANONYMOUS_BYTES
        try:
            role = await _role_of_login(scope)
        except SQLAlchemyError:
            return _BUSY
        return _ANONYMOUS_BYTES if role is None else _ROLE_BYTES[role]

    async def refuse(self, refusal: _Refusal, scope: Any, receive: Receive, send: Any) -> None:
        """Answer why, drop what still comes for a moment, and end the connection."""
        client = scope.get("client")
        await asyncio.sleep(self.pace.wait(client[0] if client else "", asyncio.get_running_loop().time()))
        if refusal.event:
            tell_repeatedly(self.refused, refusal.event)
        text = refusal.sentence.replace("\\", "\\\\").replace('"', '\\"')
        body = f'{{"detail": "{text}"}}' if _is_of_api(scope) else f"{refusal.sentence}\n"
        kind = b"application/json" if _is_of_api(scope) else b"text/plain; charset=utf-8"
        headers = [
            (b"content-type", kind),
            (b"content-length", str(len(body.encode())).encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"connection", b"close"),
            _NO_STORE,
        ]
        await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await send({"type": "http.response.body", "body": body.encode(), "more_body": True})
        await _drop(receive)
        await send({"type": "http.response.body", "body": b""})


async def _role_of_login(scope: Any) -> str | None:
    """The role of the user whose token or API key the request carries, looked up as argilla-server does; else None."""
    from argilla_server.database import AsyncSessionLocal
    from argilla_server.errors import ForbiddenOperationError, UnauthorizedError
    from argilla_server.security import auth
    from fastapi.security import SecurityScopes
    from starlette.requests import Request

    async with AsyncSessionLocal() as db:
        try:
            user = await auth.get_current_user(SecurityScopes(), Request({**scope, "state": {}}), db, None, None)
        except (UnauthorizedError, ForbiddenOperationError):  # the latter where she is in no workspace
            return None
        return str(user.role.value)


def _is_of_api(scope: Any) -> bool:
    """Whether the request is for the REST API, and not for a file of the page."""
    return bool(scope["path"].startswith(_API))


def _names_no_file(path: str) -> bool:
    """Whether the path is longer than a file's may be; to ask the disk for it is an error."""
    parts = path.encode(errors="replace").split(b"/")
    return max(map(len, parts)) > _LONGEST_NAME or sum(map(len, parts)) + len(parts) > _LONGEST_PATH


def _names_no_place(query: bytes) -> bool:
    """Whether a query names a place in a list that no list has; what is no number is argilla-server's to refuse."""
    values = (value.strip() for name, value in parse_qsl(query.decode("latin-1")) if name in _PLACES)
    numbers = [found[1].replace("_", "") for each in values if (found := _WHOLE_NUMBER.fullmatch(each))]
    return any(len(each) > len(str(_LAST_PLACE)) + 1 or not 0 <= int(each) <= _LAST_PLACE for each in numbers)


def _to_the_last(receive: Receive) -> Receive:
    """What gives the pieces of a body, and after the last one does not wait for the client to go."""
    is_whole = False

    async def give() -> Any:
        nonlocal is_whole
        if is_whole:
            return {"type": "http.disconnect"}
        message = await receive()
        is_whole = not message.get("more_body", False)
        return message

    return give


async def _drop(receive: Receive) -> None:
    """Read what is left of a body, within bounds, and keep none of it."""
    came, more = 0, True
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DROPPING_SECONDS):
            while more and came < _DROPPED_BYTES:
                message = await receive()
                came += len(message.get("body", b""))
                more = message.get("more_body", False)


def _again(pieces: deque[bytes], receive: Receive) -> Receive:
    """What gives the pieces of a body that was read, and then whatever comes."""
    is_given = False

    async def give() -> Any:
        nonlocal is_given
        if is_given:
            return await receive()
        piece = pieces.popleft() if pieces else b""
        is_given = not pieces
        return {"type": "http.request", "body": piece, "more_body": not is_given}

    return give


def _unstored(send: Any) -> Any:
    """What sends an answer that no cache keeps."""

    async def send_unstored(message: Any) -> None:
        if message["type"] == "http.response.start":
            others = [pair for pair in message.get("headers", ()) if pair[0].lower() != b"cache-control"]
            message["headers"] = [*others, _NO_STORE]
        await send(message)

    return send_unstored
