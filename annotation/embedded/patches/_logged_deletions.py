"""What is told of deletions: who deleted what, and how many answers went with it.

The history of responses keeps what they said; this is where somebody sees that they went.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextvars import ContextVar
from typing import Any

from annotation.embedded.home.event_log import EventCounts, tell
from pipeline.terminal import counted

_SECONDS = 10.0  # records are deleted a hundred at a time
_LONGEST_NAME = 60  # of several in one line, so that none pushes the others out

_Call = Callable[..., Awaitable[Any]]
_asking: ContextVar[str] = ContextVar("_asking", default="somebody")
"""The user name of whoever sent the request."""


def note_who_asks(set_request_user: Callable[..., None]) -> Callable[..., None]:
    """Remember who sends a request once she is known."""

    def set_and_note(request: Any, user: Any) -> None:
        _asking.set(user.username)
        set_request_user(request, user)

    return set_and_note


def _name(text: str) -> str:
    """A name, its beginning where it is long."""
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


def _response_lines(counts: Mapping[tuple[str, str, str], int]) -> list[str]:
    """A line for each who deleted, whose and where."""
    return [
        f"{_name(who)} deleted {counted(count, 'answer')} of {_name(whose)} in {_name(dataset)}"
        for (who, whose, dataset), count in counts.items()
    ]


def _record_lines(counts: Mapping[tuple[str, str, str], int]) -> list[str]:
    """A line for each who deleted and where: records, and the answers that went with them."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    for (who, dataset, what), count in counts.items():
        found.setdefault((who, dataset), {})[what] = count
    return [
        f"{_name(who)} deleted {counted(each.get('record', 0), 'record')} with "
        f"{counted(each.get('answer', 0), 'answer')} from {_name(dataset)}"
        for (who, dataset), each in found.items()
    ]


_responses: EventCounts[tuple[str, str, str]] = EventCounts(_SECONDS, _response_lines)
_records: EventCounts[tuple[str, str, str]] = EventCounts(_SECONDS, _record_lines)


async def _count(db: Any, *wanted: Any) -> int:
    """Number of responses that meet the conditions."""
    from argilla_server.models import Record, Response
    from sqlalchemy import func, select

    found = select(func.count(Response.id)).join(Record, Record.id == Response.record_id).where(*wanted)
    return int(await db.scalar(found))


def log_deleted_response(delete_response: _Call) -> _Call:
    """Tell whose answers were deleted, some seconds after the first."""

    async def delete(db: Any, search_engine: Any, response: Any) -> Any:
        dataset = response.record.dataset.name
        gone = await delete_response(db, search_engine, response)
        _responses.add((_asking.get(), gone.user.username, dataset))
        return gone

    return delete


def log_deleted_record(delete_record: _Call) -> _Call:
    """Tell of a record that is deleted, and of the answers that go with it."""
    from argilla_server.models import Record

    async def delete(db: Any, search_engine: Any, record: Any) -> Any:
        answers, dataset = await _count(db, Record.id == record.id), record.dataset.name
        gone = await delete_record(db, search_engine, record)
        _add_records(dataset, 1, answers)
        return gone

    return delete


def log_deleted_records(delete_records: _Call) -> _Call:
    """Tell of records that are deleted, and of the answers that go with them."""
    from argilla_server.models import Record
    from sqlalchemy import func, select

    async def delete(db: Any, search_engine: Any, dataset: Any, records_ids: Any) -> None:
        which = (Record.id.in_(records_ids), Record.dataset_id == dataset.id)
        records = int(await db.scalar(select(func.count(Record.id)).where(*which)))
        answers, name = await _count(db, *which), dataset.name
        await delete_records(db, search_engine, dataset, records_ids)
        _add_records(name, records, answers)

    return delete


def _add_records(dataset: str, records: int, answers: int) -> None:
    """Count deleted records and the answers that went with them."""
    for what, count in (("record", records), ("answer", answers)):
        if count:
            _records.add((_asking.get(), dataset, what), count)


def log_deleted_dataset(delete_dataset: _Call) -> _Call:
    """Tell of a dataset that is deleted, and of the answers that go with it."""
    from argilla_server.models import Record

    async def delete(db: Any, search_engine: Any, dataset: Any) -> Any:
        answers = await _count(db, Record.dataset_id == dataset.id)
        gone = await delete_dataset(db, search_engine, dataset)
        told = f"dataset {_name(gone.name)} deleted with everything in it"
        tell(f"{told}, {counted(answers, 'answer')}, by {_name(_asking.get())}")
        return gone

    return delete


def tell_erased(datasets: Collection[str]) -> None:
    """Tell of each deleted dataset whose history is erased, and by whom."""
    for name in datasets:
        tell(f"history of the deleted dataset {_name(name)} erased by {_name(_asking.get())}")


def log_deleted_user(delete_user: _Call) -> _Call:
    """Tell of a user who is deleted, and of the answers that go with her."""
    from argilla_server.models import Response

    async def delete(db: Any, user: Any) -> Any:
        answers, name = await _count(db, Response.user_id == user.id), user.username
        gone = await delete_user(db, user)
        tell(f"user {_name(name)} deleted with {counted(answers, 'answer')} by {_name(_asking.get())}")
        return gone

    return delete
