"""No work for webhooks where there are none: the one patch of argilla-server's own code.

argilla-server 2.8.0 builds an event for every record and response that is written, with six selects each, before it
looks whether any webhook wants it; that is nine tenths of the time of a bulk upload. Here it looks first, once in a
request. (`argilla_server/webhooks/v1/records.py`, read in 2.8.0.)
"""

from collections.abc import Awaitable, Callable
from typing import Any

KNOWN = "citejury_has_webhook"


class NoEvent:
    """An event that nobody waits for."""

    async def notify(self, db: Any) -> list[Any]:
        """No job."""
        return []


def skip_events_without_webhook() -> None:
    """Let argilla-server build the events of datasets, records and responses only where an enabled webhook exists."""
    from argilla_server.contexts import datasets, records
    from argilla_server.webhooks.v1 import datasets as dataset_events
    from argilla_server.webhooks.v1 import records as record_events
    from argilla_server.webhooks.v1 import responses as response_events

    build_dataset = only_for_webhooks(dataset_events.build_dataset_event)
    build_record = only_for_webhooks(record_events.build_record_event)
    build_response = only_for_webhooks(response_events.build_response_event)
    dataset_events.build_dataset_event = build_dataset
    datasets.build_dataset_event_v1 = build_dataset
    record_events.build_record_event = build_record
    records.build_record_event_v1 = build_record
    datasets.build_record_event_v1 = build_record
    response_events.build_response_event = build_response
    datasets.build_response_event_v1 = build_response


def only_for_webhooks(build: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The same builder, but for an event that goes nowhere where no webhook is enabled."""

    async def build_if_wanted(db: Any, event: Any, subject: Any) -> Any:
        if await has_webhook(db):
            return await build(db, event, subject)
        return NoEvent()

    return build_if_wanted


async def has_webhook(db: Any) -> bool:
    """Whether any webhook is enabled, looked up once in a session, which is once in a request."""
    if KNOWN not in db.info:
        from argilla_server.contexts.webhooks import list_enabled_webhooks

        db.info[KNOWN] = bool(await list_enabled_webhooks(db))
    return bool(db.info[KNOWN])
