"""The server behind a proxy with HTTPS: the one hop that is believed, and what came in the clear refused.

The nearest proxy's word is the last value of `X-Forwarded-Proto`; only the scheme is taken from it, for redirects and
for this server's own headers. Addresses and host names of such headers are not believed, and nothing here needs them.
Programs on this machine may come without a proxy: their requests cross no network.
"""

import ipaddress
import os
from typing import Any

BEHIND_TLS_VARIABLE = "CITEJURY_BEHIND_TLS"
NO = {"", "0", "no", "off", "false"}
SCHEME_HEADER = b"x-forwarded-proto"
HEADERS_OF_PROXIES = {SCHEME_HEADER, b"x-forwarded-for", b"forwarded", b"via", b"x-real-ip"}
HSTS = (b"strict-transport-security", b"max-age=31536000")  # a year, as OWASP's HTTP headers cheat sheet has it
REFUSAL = (
    b"This page is for HTTPS only: open its https:// address. Whoever runs it: requests come without the header "
    b"X-Forwarded-Proto of a proxy with HTTPS.\n"
)


def is_behind_tls() -> bool:
    """Whether the environment says that a proxy with HTTPS stands in front; `0`, `no`, `off` and `false` say no."""
    return os.environ.get(BEHIND_TLS_VARIABLE, "").strip().lower() not in NO


class BehindTls:
    """An ASGI app that answers what came by HTTPS, and this machine, with another one."""

    def __init__(self, app: Any) -> None:
        """Keep the app."""
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scheme = forwarded_scheme(scope["headers"])
        if scheme != "https" and not came_directly(scope):
            await refuse(send)
            return

        async def send_with_header(message: Any) -> None:
            if message["type"] == "http.response.start" and scheme == "https":
                message["headers"] = [*message.get("headers", ()), HSTS]
            await send(message)

        await self.app({**scope, "scheme": scheme or "http"}, receive, send_with_header)


def forwarded_scheme(headers: Any) -> str | None:
    """The scheme that the nearest proxy names, in small letters; None where there is no proxy."""
    values = [value for name, value in headers if name == SCHEME_HEADER]
    return values[-1].decode("latin-1").split(",")[-1].strip().lower() if values else None


def came_directly(scope: Any) -> bool:
    """Whether a program on this machine sent the request itself, through no proxy.

    It then comes from a loopback address, or from the very address that it goes to.
    """
    client, server = scope.get("client"), scope.get("server")
    if client is None or any(name in HEADERS_OF_PROXIES for name, _ in scope["headers"]):
        return False
    if server is not None and client[0] == server[0]:
        return True
    try:
        address = ipaddress.ip_address(client[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


async def refuse(send: Any) -> None:
    """Answer that this came in the clear; nothing is said about what is here."""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(REFUSAL)).encode())]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": REFUSAL})
