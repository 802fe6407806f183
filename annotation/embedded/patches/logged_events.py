"""What is told of argilla-server's own doings: logins, datasets, records that are pushed, submissions.

Its functions are wrapped where it calls them; what they do and return is not changed. (Read in argilla-server 2.8.0.)
"""

import logging
import re
import secrets
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from annotation.embedded.home.event_log import MINUTE, Sums, repeats, tell, tell_all, tell_repeatedly
from annotation.embedded.patches.error_answers import TOLD
from pipeline.text.terminal import counted

SLOW_SECONDS = 5.0
SERVER_ERROR = 500
ID_BYTES = 4
REQUEST_ID_HEADER = b"x-request-id"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
UNEXPECTED = "The server failed. Its log has the reason under the id in the header X-Request-Id."
logger = logging.getLogger(__name__)


Call = Callable[..., Awaitable[Any]]
PUSH_SECONDS = 10.0  # a push sends its batches one after the other


def tell_events() -> None:
    """Wrap argilla-server's functions."""
    tell_logins()
    tell_datasets()
    tell_pushes()
    tell_submissions()


def tell_logins() -> None:
    """Tell who logged in by password, and who failed to; of failures like each other the first, then how many."""
    from argilla_server.contexts import accounts

    failures = repeats()

    async def login(user: Any, db: Any, username: str, *_: Any) -> None:
        if user:
            tell(f"{user.username} logged in")
            return
        # Whoever mistypes may have typed her password into the field for the name, so an unknown one is not told.
        known = await accounts.get_user_by_username(db, username) is not None
        tell_repeatedly(failures, f"login failed: {f'wrong password for {username}' if known else 'unknown user name'}")

    accounts.authenticate_user = after(accounts.authenticate_user, login)


def tell_datasets() -> None:
    """Tell of datasets that open and that are deleted."""
    from argilla_server.contexts import datasets

    async def published(dataset: Any, *_: Any) -> None:
        tell(f"dataset {dataset.name} published")

    async def deleted(dataset: Any, *_: Any) -> None:
        tell(f"dataset {dataset.name} deleted with everything in it")

    datasets.publish_dataset = after(datasets.publish_dataset, published)
    datasets.delete_dataset = after(datasets.delete_dataset, deleted)


def tell_pushes() -> None:
    """Tell how many records came, some seconds after the first of them."""
    from argilla_server.bulk.records_bulk import CreateRecordsBulk, UpsertRecordsBulk

    pushed: Sums[tuple[str, str]] = Sums(PUSH_SECONDS, push_lines)

    async def records(bulk: Any, _: Any, dataset: Any, *__: Any) -> None:
        known = len(getattr(bulk, "updated_item_ids", ()))
        for kind, count in (("new", len(bulk.items) - known), ("known", known)):
            if count:
                pushed.add((dataset.name, kind), count)

    CreateRecordsBulk.create_records_bulk = after(CreateRecordsBulk.create_records_bulk, records)
    UpsertRecordsBulk.upsert_records_bulk = after(UpsertRecordsBulk.upsert_records_bulk, records)


def tell_submissions() -> None:
    """Tell who submitted how many in a minute."""
    from argilla_server.contexts import datasets

    submissions: Sums[tuple[str, str]] = Sums(MINUTE, submission_lines)

    async def responded(response: Any, *_: Any) -> None:
        if response.status == "submitted":  # its record, dataset and user are loaded: search engines need them
            submissions.add((response.record.dataset.name, response.user.username))

    for name in ("create_response", "update_response", "upsert_response"):
        setattr(datasets, name, after(getattr(datasets, name), responded))


def after(function: Call, told: Call) -> Call:
    """The same function; `told` gets its result and its arguments when it has succeeded."""

    async def call(*arguments: Any, **named: Any) -> Any:
        result = await function(*arguments, **named)
        await told(result, *arguments)
        return result

    return call


def submission_lines(counts: Mapping[tuple[str, str], int]) -> list[str]:
    """A line for each dataset: how many were submitted in a minute, and by whom, the busiest first."""
    people: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for (dataset, username), count in counts.items():
        people[dataset].append((count, username))
    return [
        f"{sum(count for count, _ in each)} submitted in {dataset}: "
        + ", ".join(f"{username} {count}" for count, username in sorted(each, key=lambda one: (-one[0], one[1])))
        for dataset, each in sorted(people.items())
    ]


def push_lines(counts: Mapping[tuple[str, str], int]) -> list[str]:
    """A line for each dataset and kind: how many records came."""
    words = {"new": "pushed to", "known": "sent again to"}
    return [f"{counted(count, 'record')} {words[kind]} {dataset}" for (dataset, kind), count in counts.items()]


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
