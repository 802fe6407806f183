"""What every answer of argilla-server's app passes, the first to meet a request first; `edge` stands before it.

- `RequestEvents` gives each answer its request's id, and tells what failed or took long.
- `BehindTls`, behind a proxy with HTTPS, believes that one hop and refuses what came in the clear. The nearest proxy's
  word is the last value of `X-Forwarded-Proto`; only the scheme is taken from it, for redirects and for this server's
  own headers; whose word about addresses and host names counts is `edge`'s. Programs on this machine may come without
  a proxy: their requests cross no network.
- `_SafeHeaders` adds a content security policy and its like.
"""

import base64
import hashlib
import ipaddress
import logging
import re
import secrets
import sys
import time
from pathlib import Path
from typing import Any

from annotation.embedded.home.folder import is_behind_tls
from annotation.embedded.home.logs import repeats, tell, tell_all, tell_repeatedly

_SLOW_SECONDS = 5.0
_SERVER_ERROR = 500
TOLD = {503, 507}
"""Statuses that `serve` shows with a sentence of their own, once a minute; those of the database's troubles."""
_ID_BYTES = 4
_PATH_CHARACTERS = 100
_REQUEST_ID_HEADER = b"x-request-id"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_SCHEME_HEADER = b"x-forwarded-proto"
_HEADERS_OF_PROXIES = {_SCHEME_HEADER, b"x-forwarded-for", b"forwarded", b"via", b"x-real-ip"}
_HSTS = (b"strict-transport-security", b"max-age=31536000")  # a year, as OWASP's HTTP headers cheat sheet has it
_REFUSAL = (
    b"This page is for HTTPS only: open its https:// address. Whoever runs it: requests come without the header "
    b"X-Forwarded-Proto of a proxy with HTTPS.\n"
)
_logger = logging.getLogger(__name__)


def surround(app: Any) -> Any:
    """The app behind all of them; only behind a proxy with HTTPS is that demanded."""
    import argilla_server

    page = (Path(argilla_server.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    # The server fills this in when it copies the page; at the root of the site it becomes nothing.
    safe = _SafeHeaders(app, _content_security_policy(page.replace("@@baseUrl@@", "")))
    return RequestEvents(BehindTls(safe) if is_behind_tls() else safe)


class RequestEvents:
    """An ASGI app that answers with another one, gives each answer its request's id, and tells what went wrong."""

    def __init__(self, app: Any, slow_seconds: float = _SLOW_SECONDS) -> None:
        self.app = app
        self.slow_seconds = slow_seconds
        self.slow = repeats()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            tell_all()
            return
        await self.answer(scope, receive, send, secrets.token_hex(_ID_BYTES))

    async def answer(self, scope: Any, receive: Any, send: Any, request_id: str) -> None:
        """Answer one request under its id."""
        status, began = 0, time.monotonic()

        async def send_with_id(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (_REQUEST_ID_HEADER, request_id.encode())]
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        finally:
            error = sys.exception()
            what = f"{scope['method']} {_without_ids(scope['path'])[:_PATH_CHARACTERS]}"
            if (status >= _SERVER_ERROR and status not in TOLD) or isinstance(error, Exception):
                # Its traceback follows in the web's log; uvicorn writes it there.
                _logger.error("request %s failed", request_id)
                reason = f" ({type(error).__name__})" if error else ""
                tell(f"request {request_id} failed{reason}: {what}")
            elif time.monotonic() - began >= self.slow_seconds:
                tell_repeatedly(self.slow, f"slow, more than {self.slow_seconds:g} s: {what}")


def _without_ids(path: str) -> str:
    return _UUID.sub("…", path.removeprefix("/api/v1"))


class BehindTls:
    """An ASGI app that answers what came by HTTPS, and this machine, with another one."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scheme = _forwarded_scheme(scope["headers"])
        if scheme != "https" and not _came_directly(scope):
            await _refuse(send)
            return

        async def send_with_header(message: Any) -> None:
            if message["type"] == "http.response.start" and scheme == "https":
                message["headers"] = [*message.get("headers", ()), _HSTS]
            await send(message)

        await self.app({**scope, "scheme": scheme or "http"}, receive, send_with_header)


def _forwarded_scheme(headers: Any) -> str | None:
    """The scheme that the nearest proxy names, in small letters; None where there is no proxy."""
    values = [value for name, value in headers if name == _SCHEME_HEADER]
    return values[-1].decode("latin-1").split(",")[-1].strip().lower() if values else None


def _came_directly(scope: Any) -> bool:
    """Whether a program on this machine sent the request itself, through no proxy.

    It then comes from a loopback address, or from the very address that it goes to.
    """
    client, server = scope.get("client"), scope.get("server")
    if client is None or any(name in _HEADERS_OF_PROXIES for name, _ in scope["headers"]):
        return False
    if server is not None and client[0] == server[0]:
        return True
    try:
        address = ipaddress.ip_address(client[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


async def _refuse(send: Any) -> None:
    """Answer that this came in the clear; nothing is said about what is here."""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(_REFUSAL)).encode())]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": _REFUSAL})


def _content_security_policy(page: str) -> str:
    """The policy for Argilla's page: everything from this server, its own inline scripts and styles by their hashes."""
    scripts = re.findall(r"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", page, re.DOTALL)
    styles = re.findall(r"<style[^>]*>(.*?)</style>", page, re.DOTALL)
    return "; ".join(
        (
            "default-src 'self'",
            " ".join(("script-src 'self'", *map(_hash_source, scripts))),
            " ".join(("style-src 'self'", *map(_hash_source, styles))),
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "connect-src 'self'",
            "frame-src 'none'",
            "object-src 'none'",
            "form-action 'self'",
            "base-uri 'self'",
            "frame-ancestors 'none'",
        )
    )


def _hash_source(text: str) -> str:
    """An inline script or style as the policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


class _SafeHeaders:
    """An ASGI app that adds security headers to every answer of another one."""

    def __init__(self, app: Any, policy: str) -> None:
        self.app = app
        self.headers = [
            (b"content-security-policy", policy.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
        ]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self.headers]
            await send(message)

        await self.app(scope, receive, send_with_headers)
