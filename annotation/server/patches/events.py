"""What is told of argilla-server's own doings: logins, datasets, records, submissions, and who deleted what.

Its functions are wrapped where it calls them; what they do and return is not changed. The history of responses keeps
what deleted answers said; this is where somebody sees that they went.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextvars import ContextVar
from typing import Any

from argilla_server.contexts import accounts
from argilla_server.models import Record, Response
from sqlalchemy import func, select

from annotation.server.home.logs import MINUTE, EventCounts, repeats, shortened, tell, tell_repeatedly
from pipeline.core.terminal import counted

_SECONDS = 10.0  # a push sends its batches one after the other, and records are deleted a hundred at a time

_Call = Callable[..., Awaitable[Any]]
_asking: ContextVar[str] = ContextVar("_asking", default="somebody")  # the user name of whoever sent the request


def _submission_lines(counts: Mapping[tuple[str, str], int]) -> list[str]:
    people: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for (dataset, username), count in counts.items():
        people[dataset].append((count, username))
    return [
        f"{sum(count for count, _ in each)} submitted in {dataset}: "
        + ", ".join(f"{username} {count}" for count, username in sorted(each, key=lambda one: (-one[0], one[1])))
        for dataset, each in sorted(people.items())
    ]


def _lines(counts: Mapping[tuple[str, str, str], int]) -> list[str]:
    return [f"{before}{counted(count, noun)}{after}" for (before, noun, after), count in counts.items()]


def _name(text: str) -> str:
    return shortened(text, 60)  # of several in one line, so that none pushes the others out


_failures = repeats()
_submissions: EventCounts[tuple[str, str]] = EventCounts(MINUTE, _submission_lines)
_counts: EventCounts[tuple[str, str, str]] = EventCounts(_SECONDS, _lines)


async def log_login(authenticate: _Call, db: Any, username: str, password: str) -> Any:
    user = await authenticate(db, username, password)
    if user:
        tell(f"{user.username} logged in")
        return user
    # Whoever mistypes may have typed her password into the field for the name, so an unknown one is not told.
    # PostgreSQL takes no NUL.
    known = "\0" not in username and await accounts.get_user_by_username(db, username) is not None
    tell_repeatedly(_failures, f"login failed: {f'wrong password for {username}' if known else 'unknown user name'}")
    return user


async def log_published_dataset(publish: _Call, *arguments: Any, **named: Any) -> Any:
    dataset = await publish(*arguments, **named)
    tell(f"dataset {dataset.name} published")
    return dataset


async def log_push(push: _Call, bulk: Any, dataset: Any, *arguments: Any, **named: Any) -> Any:
    pushed = await push(bulk, dataset, *arguments, **named)
    known = len(getattr(pushed, "updated_item_ids", ()))
    for what, count in (("pushed", len(pushed.items) - known), ("sent again", known)):
        if count:
            _counts.add(("", "record", f" {what} to {dataset.name}"), count)
    return pushed


async def log_submission(store: _Call, *arguments: Any, **named: Any) -> Any:
    response = await store(*arguments, **named)
    if response.status == "submitted":  # its record, dataset and user are loaded: search engines need them
        _submissions.add((response.record.dataset.name, response.user.username))
    return response


def note_who_asks(set_request_user: Callable[..., None], request: Any, user: Any) -> None:
    _asking.set(user.username)
    set_request_user(request, user)


async def _count(db: Any, *wanted: Any) -> int:
    found = select(func.count(Response.id)).join(Record, Record.id == Response.record_id).where(*wanted)
    return int(await db.scalar(found))


async def log_deleted_response(delete: _Call, db: Any, search_engine: Any, response: Any) -> Any:
    dataset = response.record.dataset.name
    gone = await delete(db, search_engine, response)
    _counts.add((f"{_name(_asking.get())} deleted ", "answer", f" of {_name(gone.user.username)} in {_name(dataset)}"))
    return gone


async def log_deleted_record(delete: _Call, db: Any, search_engine: Any, record: Any) -> Any:
    answers, dataset = await _count(db, Record.id == record.id), record.dataset.name
    gone = await delete(db, search_engine, record)
    _add_records(dataset, 1, answers)
    return gone


async def log_deleted_records(delete: _Call, db: Any, search_engine: Any, dataset: Any, records_ids: Any) -> None:
    which = (Record.id.in_(records_ids), Record.dataset_id == dataset.id)
    records = int(await db.scalar(select(func.count(Record.id)).where(*which)))
    answers, name = await _count(db, *which), dataset.name
    await delete(db, search_engine, dataset, records_ids)
    _add_records(name, records, answers)


def _add_records(dataset: str, records: int, answers: int) -> None:
    for count, noun, where in ((records, "record", "from"), (answers, "answer", "with records of")):
        if count:
            _counts.add((f"{_name(_asking.get())} deleted ", noun, f" {where} {_name(dataset)}"), count)


async def log_deleted_dataset(delete: _Call, db: Any, search_engine: Any, dataset: Any) -> Any:
    answers = await _count(db, Record.dataset_id == dataset.id)
    gone = await delete(db, search_engine, dataset)
    said = f"dataset {_name(gone.name)} deleted with everything in it"
    tell(f"{said}, {counted(answers, 'answer')}, by {_name(_asking.get())}")
    return gone


def tell_erased(datasets: Collection[str]) -> None:
    for name in datasets:
        tell(f"history of the deleted dataset {_name(name)} erased by {_name(_asking.get())}")


async def log_deleted_user(delete: _Call, db: Any, user: Any) -> Any:
    answers, name = await _count(db, Response.user_id == user.id), user.username
    gone = await delete(db, user)
    tell(f"user {_name(name)} deleted with {counted(answers, 'answer')} by {_name(_asking.get())}")
    return gone
