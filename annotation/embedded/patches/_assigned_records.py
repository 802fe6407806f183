"""What argilla-server does not know of records with an assignment: who gets them, and when they are done."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from annotation.assignment import ASSIGNMENT


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


def hide_when_it_came(visible_metadata: Callable[[Any, Any], Awaitable[Any]]) -> Any:
    """The same metadata, and for annotators a record that came and changed when its dataset was made.

    The page shows both times in a menu, and controls come later than the records that they are mixed among.
    """
    from sqlalchemy.orm.attributes import set_committed_value

    async def without_times(record: Any, user: Any) -> Any:
        found = await visible_metadata(record, user)
        if user.is_annotator:
            for name in ("inserted_at", "updated_at"):
                set_committed_value(record, name, record.dataset.inserted_at)
        return found

    return without_times


def _said(record: Any, name: str) -> Any:
    """What the record's assignment says of something; None where it says nothing."""
    said = (record.metadata_ or {}).get(ASSIGNMENT) if isinstance(record.metadata_, Mapping) else None
    return said.get(name) if isinstance(said, Mapping) else None
