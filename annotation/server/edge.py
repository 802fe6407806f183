"""What stands between the network and argilla-server: which requests reach it, and in what shape; an ASGI app.

- A name that is not ours gets 421. Ours are localhost, a loopback address, the address that the connection came to or
  that was bound, and what is listed; behind a proxy with HTTPS and without a list those that it passes on, its own.
- A body is read here, whole, before anything else looks at it: 64 KB without a valid log-in, with one what its role
  needs. Whoever sends more gets 413; the rest is dropped, so that a client that still sends gets the answer.
- Of a body without a valid log-in, and of a log-in itself, argilla-server sees 4 KB: it reads it before it asks who
  sends it.
- NUL in an address, places in lists that no list has, and names that no file has get 4xx instead of 500.
- `Range` is dropped, so that files come whole.
- No answer of the API is kept by a cache.

A proxy is believed where the environment says that one with HTTPS stands in front, and it is on this machine or among
`CITEJURY_TRUSTED_PROXIES`. Compose's default there is `gateway`, from which Docker passes on what reaches the port.
"""

import asyncio
import contextlib
import ipaddress
import os
import re
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from annotation.server.home.folder import is_behind_tls
from annotation.server.home.logs import repeats, tell_repeatedly
from pipeline.core.errors import SettingsError

ALLOW_HOSTS_VARIABLE = "CITEJURY_ALLOW_HOSTS"
BOUND_HOST_VARIABLE = "CITEJURY_BOUND_HOST"
_PROXIES_VARIABLE = "CITEJURY_TRUSTED_PROXIES"
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_UNKNOWN_BYTES = 4 * 1024  # what argilla-server sees of a body whose sender nobody has looked up
_ANONYMOUS_BYTES = 64 * 1024
_LAST_PLACE = 2**31 - 1
_NO_STORE = (b"cache-control", b"no-store")

Receive = Callable[[], Awaitable[Any]]


class Names(NamedTuple):
    behind_tls: bool = False  # whether a proxy with HTTPS stands in front
    listed: frozenset[str] = frozenset()  # names that are answered to, wherever a request comes from
    bound: str = ""  # the name that the server was told to listen at
    proxies: tuple[_Network, ...] = ()  # addresses beside this machine's own of whom a proxy's word is believed


def read_names(routes: Path = Path("/proc/net/route")) -> Names:
    listed = os.environ.get(ALLOW_HOSTS_VARIABLE, "").replace(",", " ").split()
    for each in listed:
        if clean_name(each) is None:
            raise SettingsError(f"`{ALLOW_HOSTS_VARIABLE}` lists {each!r}, which is no name of a host without a port.")
    return Names(
        is_behind_tls(),
        frozenset(clean_name(each) or "" for each in listed),
        clean_name(os.environ.get(BOUND_HOST_VARIABLE, "")) or "",
        tuple(_read_proxies(os.environ.get(_PROXIES_VARIABLE, ""), routes)),
    )


def _read_proxies(text: str, routes: Path) -> Iterator[_Network]:
    """Networks; `gateway` is the default route's address, if any. Source: proc_pid_net(5), /proc/net/route."""
    for each in text.replace(",", " ").split():
        if each != "gateway":
            try:
                yield ipaddress.ip_network(each)
            except ValueError as error:
                raise SettingsError(
                    f"`{_PROXIES_VARIABLE}` has {each!r}, which is no address, no network and not the word gateway."
                ) from error
            continue
        with contextlib.suppress(OSError, ValueError):
            for line in routes.read_text(encoding="ascii").splitlines()[1:]:
                _, destination, gateway, *_ = line.split()
                if int(destination, 16) == 0 and int(gateway, 16):
                    yield ipaddress.ip_network(bytes.fromhex(gateway)[::-1])
                    break


def clean_name(text: str) -> str | None:
    """A host's name or address as it is compared: small letters, no brackets, no dot at the end; None if it is none."""
    name = text.strip().lower().removesuffix(".")
    address = address_of(name)
    if address is not None:
        return str(address)
    return name if len(name) <= 253 and _NAME.fullmatch(name) else None


def address_of(text: str) -> _Address | None:
    """An address, also in brackets; IPv4 inside IPv6 is taken out. None if it is none."""
    try:
        found = ipaddress.ip_address(text.strip().removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def is_answered_to(scope: Any, names: Names) -> bool:
    """Whether the request asks for one of our names; a request that names none, or several, does not."""
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
    if host.startswith("[") or host.count(":") == 1:
        host = re.sub(r":\d{1,5}$", "", host)
    name = clean_name(host)
    if name is None:
        return False
    address = address_of(name)
    if name == "localhost" or name.endswith(".localhost") or (address is not None and address.is_loopback):
        return True
    reached = address_of(scope["server"][0]) if scope.get("server") else None
    if name in names.listed or name == names.bound or (address is not None and address == reached):
        return True
    came_by_proxy = any(header == b"x-forwarded-proto" for header, _ in scope["headers"])
    return names.behind_tls and not names.listed and came_by_proxy


def real_client(scope: Any, names: Names) -> Any:
    """Of several proxies each names who came to it; the last address that is no trusted proxy's is the client's."""
    client = scope.get("client")
    if client is None or not names.behind_tls or not _is_trusted(address_of(client[0]), scope, names):
        return client
    said = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for").decode("latin-1")
    for text in reversed(said.split(",")):
        address = address_of(text)
        if address is None:  # what is further to the left was said by nobody whom we trust
            return client
        client = (str(address), 0)
        if not _is_trusted(address, scope, names):
            break
    return client


def _is_trusted(address: _Address | None, scope: Any, names: Names) -> bool:
    if address is None:
        return False
    if address.is_loopback or (scope.get("server") and address == address_of(scope["server"][0])):
        return True
    return any(address in network for network in names.proxies if network.version == address.version)


class _Refusal(NamedTuple):
    status: int
    sentence: str
    event: str = ""  # what the server's events say of it, once a minute; nothing where it is the client's matter alone


_OTHER_NAME = _Refusal(
    421,
    "This server does not answer under the name in the address. Whoever runs it allows a name with `serve --allow-host "
    "NAME`, or with CITEJURY_ALLOW_HOSTS in docker/.env.",
    "refused: requests for a name that `--allow-host` does not list",
)
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


class Pace:
    def __init__(self) -> None:
        self.second = 0
        self.counts: Counter[str] = Counter()

    def wait(self, address: str, now: float) -> float:
        if int(now) != self.second:
            self.second = int(now)
            self.counts.clear()
        self.counts[address] += 1
        return 1.0 if self.counts[address] > 10 else 0.0


class Edge:
    def __init__(self, app: Any, names: Names) -> None:
        self.app = app
        self.names = names
        self.refused = repeats()
        self.pace = Pace()

    async def __call__(self, scope: Any, receive: Receive, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        kept = [(name, value) for name, value in scope["headers"] if name not in (b"range", b"if-range")]
        scope = {**scope, "headers": kept, "client": real_client(scope, self.names)}
        body = _to_the_last(receive)
        found: _Refusal | deque[bytes] | None = self.refusal_of_head(scope)
        if found is None and any(name in (b"content-length", b"transfer-encoding") for name, _ in kept):
            found = await self.read(scope, body)
            if found is None:
                return
        if isinstance(found, _Refusal):
            await self.refuse(found, scope, body, send)
            return
        whole = receive if found is None else _again(found, receive)
        await self.app(scope, whole, _unstored(send) if _is_of_api(scope) else send)

    def refusal_of_head(self, scope: Any) -> _Refusal | None:
        if not is_answered_to(scope, self.names):
            return _OTHER_NAME
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            return _Refusal(400, "An address has no NUL character.")
        if not _is_of_api(scope):  # to ask the disk for a file of a longer name than one may have is an error
            parts = scope["path"].encode(errors="replace").split(b"/")
            is_long = max(map(len, parts)) > 255 or sum(map(len, parts)) + len(parts) > 2_000
            return _Refusal(404, "There is no page with an address as long as this.") if is_long else None
        # What is no number is argilla-server's to refuse.
        asked = parse_qsl(scope["query_string"].decode("latin-1"))
        values = [value.strip() for name, value in asked if name in ("offset", "limit")]
        numbers = [re.fullmatch(r"([+-]?\d[\d_]*)(?:\.0+)?", each) for each in values]  # what pydantic takes for one
        for each in (found[1].replace("_", "") for found in numbers if found):
            if len(each) > len(str(_LAST_PLACE)) + 1 or not 0 <= int(each) <= _LAST_PLACE:
                return _Refusal(422, f"`offset` and `limit` are whole numbers from 0 to {_LAST_PLACE}.")
        return None

    async def read(self, scope: Any, receive: Receive) -> deque[bytes] | _Refusal | None:
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
                is_unknown = came > _UNKNOWN_BYTES and most == _ANONYMOUS_BYTES  # and refused in argilla-server's words
                return _Refusal(401, "Could not validate credentials") if is_unknown else pieces
            message = await receive()
            if message["type"] != "http.request":
                return None
            pieces.append(message.get("body", b""))
            came += len(pieces[-1])
            more = message.get("more_body", False)

    async def most_bytes(self, scope: Any) -> int | _Refusal:
        """How large the body may be with the log-in that it carries; the user is looked up as argilla-server does."""
        has_login = any(name in (b"authorization", b"x-argilla-api-key") for name, _ in scope["headers"])
        if scope["path"].rstrip("/").endswith("/token") or not has_login:
            return _ANONYMOUS_BYTES
        from argilla_server.database import AsyncSessionLocal
        from argilla_server.errors import ForbiddenOperationError, UnauthorizedError
        from argilla_server.security import auth
        from fastapi.security import SecurityScopes
        from sqlalchemy.exc import SQLAlchemyError
        from starlette.requests import Request

        try:
            async with AsyncSessionLocal() as db:
                request = Request({**scope, "state": {}})
                user = await auth.get_current_user(SecurityScopes(), request, db, None, None)
                # An annotator sends 100 responses at most; `push` 8 MB, or one record that is longer (`BATCH_BYTES`).
                return (2 if user.is_annotator else 64) * 1024 * 1024
        except SQLAlchemyError:
            return _BUSY
        except (UnauthorizedError, ForbiddenOperationError):  # the latter where she is in no workspace
            return _ANONYMOUS_BYTES

    async def refuse(self, refusal: _Refusal, scope: Any, receive: Receive, send: Any) -> None:
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
        came, more = 0, True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):  # to close before loses the answer to a reset
                while more and came < 8 * 1024 * 1024:
                    message = await receive()
                    came += len(message.get("body", b""))
                    more = message.get("more_body", False)
        await send({"type": "http.response.body", "body": b""})


def _is_of_api(scope: Any) -> bool:
    return bool(scope["path"].startswith("/api/"))


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


def _again(pieces: deque[bytes], receive: Receive) -> Receive:
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
    async def send_unstored(message: Any) -> None:
        if message["type"] == "http.response.start":
            others = [pair for pair in message.get("headers", ()) if pair[0].lower() != b"cache-control"]
            message["headers"] = [*others, _NO_STORE]
        await send(message)

    return send_unstored
