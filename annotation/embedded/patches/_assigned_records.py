"""What argilla-server does not know of records with an assignment: who gets them, and when they are done."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from annotation.units import ASSIGNMENT


def for_its_users_only(policy: Callable[[Any], Callable[[Any], Awaitable[bool]]]) -> Any:
    """The same permission, but for annotators whom the record is not for."""

    def permission(record: Any) -> Callable[[Any], Awaitable[bool]]:
        is_allowed = policy(record)
        users = _said(record, "users")
        named = users if isinstance(users, list) else []

        async def is_allowed_and_hers(actor: Any) -> bool:
            hers = not named or not actor.is_annotator or str(actor.id) in named
            return hers and await is_allowed(actor)

        return is_allowed_and_hers

    return permission


def wait_for_as_many_as_assigned(update: Callable[[Any, Any], Awaitable[Any]]) -> Any:
    """The same change of a record's status, but for records whose assignment says how many submissions they need."""
    from argilla_server.enums import RecordStatus

    async def update_status(db: Any, record: Any) -> Any:
        needed = _said(record, "needed")
        if not isinstance(needed, int) or needed < 1:
            return await update(db, record)
        done = len(record.responses_submitted) >= needed
        record.status = RecordStatus.completed if done else RecordStatus.pending
        return await record.save(db, autocommit=False)

    return update_status


def count_what_she_gets(count: Callable[..., Awaitable[dict[str, int]]]) -> Any:
    """The same counts of a user's responses, but for records that are kept from an annotator."""
    from argilla_server.models import Record
    from sqlalchemy import func, select

    async def count_hers(db: Any, search_engine: Any, user: Any, dataset: Any) -> dict[str, int]:
        from annotation.embedded.queue.page import kept_from

        found = await count(db, search_engine, user, dataset)
        kept = await kept_from(db, dataset, user.id)
        if kept:
            of_dataset = select(func.count(Record.id)).where(Record.dataset_id == dataset.id)
            total = int(await db.scalar(of_dataset.where(*kept)) or 0)
            found |= {"total": total, "pending": found["pending"] - found["total"] + total}
        return found

    return count_hers


def hide_what_tells(visible_metadata: Callable[[Any, Any], Awaitable[Any]]) -> Any:
    """The same metadata, and for annotators a record that is as `told_of` says.

    The page shows both times in a menu, and controls come later than the records that they are mixed among. Whether a
    record is done tells how many answers it waits for, which of controls and repeats is a number of their own.
    """
    from sqlalchemy.orm.attributes import set_committed_value

    async def as_told(record: Any, user: Any) -> Any:
        found = await visible_metadata(record, user)
        if user.is_annotator:
            for name, value in told_of(record.dataset).items():
                set_committed_value(record, name, value)
        return found

    return as_told


def told_of(dataset: Any) -> dict[str, Any]:
    """What an annotator is told of each record of the dataset, whatever it is for: when it came, and its status."""
    from argilla_server.enums import RecordStatus

    return {
        "inserted_at": dataset.inserted_at,
        "updated_at": dataset.inserted_at,
        "status": RecordStatus.pending,
    }


def sort_by_what_she_is_told(to_sort: Callable[..., list[Any]]) -> Any:
    """The same orders, but for an annotator's by what she is not told of records: they are equal in that."""

    def orders(sort: list[Any], user: Any) -> list[Any]:
        found = to_sort(sort, user=user)
        hers = user is not None and user.is_annotator
        return [order for order in found if not (hers and _is_untold(order.scope))]

    return orders


def filter_by_what_she_is_told(to_filter: Callable[..., Any]) -> Any:
    """The same filter; refuses an annotator's by what she is not told of records, but for that of her pending queue.

    Raises:
        UnprocessableEntityError: hers is such a one; the server answers 422.
    """
    from argilla_server.errors.future import UnprocessableEntityError

    from annotation.embedded.search.filters import is_pending_record, split_queue

    def condition(filters: Any, user: Any) -> Any:
        found = to_filter(filters, user=user)
        if user is not None and user.is_annotator:
            left, queue_of = split_queue(found)
            for each in left:
                if _is_untold(each.scope) and not (queue_of is not None and is_pending_record(each)):
                    name = each.scope.property
                    raise UnprocessableEntityError(f"Annotators cannot search by a record's `{name}`. Leave it out.")
        return found

    return condition


def _is_untold(scope: Any) -> bool:
    """Whether the scope is something of a record that annotators are not told."""
    from argilla_server.search_engine import RecordFilterScope

    return isinstance(scope, RecordFilterScope) and scope.property in ("inserted_at", "updated_at", "status")


def _said(record: Any, name: str) -> Any:
    """What the record's assignment says of something; None where it says nothing."""
    said = (record.metadata_ or {}).get(ASSIGNMENT) if isinstance(record.metadata_, Mapping) else None
    return said.get(name) if isinstance(said, Mapping) else None
