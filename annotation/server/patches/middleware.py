"""What every answer of argilla-server's app passes, the first to meet a request first; `edge` stands before it.

- `RequestEvents` gives each answer its request's id, and tells what failed or took long.
- `BehindTls`, behind a proxy with HTTPS, refuses what came in the clear. The nearest proxy's word is the last value of
  `X-Forwarded-Proto`; only the scheme is taken from it. Programs on this machine may come without a proxy.
- Behind them a content security policy and its like are added.
"""

import logging
import re
import secrets
import sys
import time
from pathlib import Path
from typing import Any

from annotation.argilla.pages import policy_source
from annotation.server.edge import address_of
from annotation.server.home.folder import is_behind_tls
from annotation.server.home.logs import repeats, tell, tell_all, tell_repeatedly

TOLD = {503, 507}
"""Statuses that `serve` shows with a sentence of their own, once a minute; those of the database's troubles."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_SCHEME_HEADER = b"x-forwarded-proto"
_HEADERS_OF_PROXIES = {_SCHEME_HEADER, b"x-forwarded-for", b"forwarded", b"via", b"x-real-ip"}
_REFUSAL = (
    b"This page is for HTTPS only: open its https:// address. Whoever runs it: requests come without the header "
    b"X-Forwarded-Proto of a proxy with HTTPS.\n"
)
_logger = logging.getLogger(__name__)


def surround(app: Any) -> Any:
    import argilla_server

    page = (Path(argilla_server.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    # The server fills this in when it copies the page; at the root of the site it becomes nothing.
    policy = _content_security_policy(page.replace("@@baseUrl@@", ""))
    safe = (
        (b"content-security-policy", policy.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
    )

    async def answer_safely(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, _adding(send, *safe))

    return RequestEvents(BehindTls(answer_safely) if is_behind_tls() else answer_safely)


def _adding(send: Any, *headers: tuple[bytes, bytes]) -> Any:
    async def send_with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *headers]
        await send(message)

    return send_with_headers


class RequestEvents:
    def __init__(self, app: Any, slow_seconds: float = 5.0) -> None:
        self.app = app
        self.slow_seconds = slow_seconds
        self.slow = repeats()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            tell_all()
            return
        status, began, request_id = 0, time.monotonic(), secrets.token_hex(4)

        async def send_and_look(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, receive, _adding(send_and_look, (b"x-request-id", request_id.encode())))
        finally:
            error = sys.exception()
            what = f"{scope['method']} {_UUID.sub('…', scope['path'].removeprefix('/api/v1'))[:100]}"
            if (status >= 500 and status not in TOLD) or isinstance(error, Exception):
                # Its traceback follows in the web's log; uvicorn writes it there.
                _logger.error("request %s failed", request_id)
                reason = f" ({type(error).__name__})" if error else ""
                tell(f"request {request_id} failed{reason}: {what}")
            elif time.monotonic() - began >= self.slow_seconds:
                tell_repeatedly(self.slow, f"slow, more than {self.slow_seconds:g} s: {what}")


class BehindTls:
    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        named = [value for name, value in scope["headers"] if name == _SCHEME_HEADER]  # the nearest proxy's comes last
        scheme = named[-1].decode("latin-1").split(",")[-1].strip().lower() if named else ""
        if scheme != "https" and not _came_directly(scope):
            headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(_REFUSAL))]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": _REFUSAL})  # which says nothing about what is here
            return
        if scheme == "https":  # for a year, as OWASP's HTTP headers cheat sheet has it
            send = _adding(send, (b"strict-transport-security", b"max-age=31536000"))
        await self.app({**scope, "scheme": scheme or "http"}, receive, send)


def _came_directly(scope: Any) -> bool:
    """From a loopback address, or from the very address that it goes to, through no proxy."""
    client, server = scope.get("client"), scope.get("server")
    if client is None or any(name in _HEADERS_OF_PROXIES for name, _ in scope["headers"]):
        return False
    if server is not None and client[0] == server[0]:
        return True
    address = address_of(client[0])
    return address is not None and address.is_loopback


def _content_security_policy(page: str) -> str:
    inline = (r"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", r"<style[^>]*>(.*?)</style>")
    scripts, styles = (" ".join(["'self'", *map(policy_source, re.findall(of, page, re.DOTALL))]) for of in inline)
    return (
        f"default-src 'self'; script-src {scripts}; style-src {styles}; "
        "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; frame-src 'none'; object-src 'none'; "
        "form-action 'self'; base-uri 'self'; frame-ancestors 'none'"
    )
