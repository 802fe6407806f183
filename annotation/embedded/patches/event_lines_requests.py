"""What is told of requests: those that failed on the server's side, each under an id, and those that took long."""

import logging
import re
import secrets
import sys
import time
from typing import Any

from annotation.embedded.home.event_lines import tell
from annotation.embedded.patches.database_errors import TOLD
from annotation.embedded.patches.event_lines_sums import repeats, tell_all, tell_repeatedly

SLOW_SECONDS = 5.0
SERVER_ERROR = 500
ID_BYTES = 4
REQUEST_ID_HEADER = b"x-request-id"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
UNEXPECTED = "The server failed. Its log has the reason under the id in the header X-Request-Id."

logger = logging.getLogger(__name__)


def keep_reasons_in_the_log() -> None:
    """Let argilla-server answer a failure of its own without the error's text.

    That text may be a statement of the database with the values in it. (`GenericServerError` in argilla-server 2.8.0.)
    """
    from argilla_server.errors.base_errors import GenericServerError

    def name_the_kind(answer: Any, error: Exception) -> None:
        answer.type = f"{type(error).__module__}.{type(error).__name__}"
        answer.message = UNEXPECTED

    GenericServerError.__init__ = name_the_kind


class RequestEvents:
    """An ASGI app that answers with another one, gives each answer its request's id, and tells what went wrong."""

    def __init__(self, app: Any, slow_seconds: float = SLOW_SECONDS) -> None:
        """Keep the app, and from how many seconds on a request is told."""
        self.app = app
        self.slow_seconds = slow_seconds
        self.slow = repeats()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request; at the end of the server, write what is counted and not yet told."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            tell_all()
            return
        await self.answer(scope, receive, send, secrets.token_hex(ID_BYTES))

    async def answer(self, scope: Any, receive: Any, send: Any, request_id: str) -> None:
        """Answer one request under its id."""
        status, began = 0, time.monotonic()

        async def send_with_id(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (REQUEST_ID_HEADER, request_id.encode())]
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        finally:
            error = sys.exception()
            what = f"{scope['method']} {shortened(scope['path'])}"
            if (status >= SERVER_ERROR and status not in TOLD) or isinstance(error, Exception):
                # Its traceback follows in the web's log; uvicorn writes it there.
                logger.error("request %s failed", request_id)
                reason = f" ({type(error).__name__})" if error else ""
                tell(f"request {request_id} failed{reason}: {what}")
            elif time.monotonic() - began >= self.slow_seconds:
                tell_repeatedly(self.slow, f"slow, more than {self.slow_seconds:g} s: {what}")


def shortened(path: str) -> str:
    """The path without the ids in it and without Argilla's prefix, so that calls of a kind look alike."""
    return UUID.sub("…", path.removeprefix("/api/v1"))
