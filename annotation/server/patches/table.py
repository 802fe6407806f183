"""Everything that is changed in argilla-server: the table beside this, applied before the server starts.

A function either gets what it stands before, with its arguments, or takes its place, or makes what takes its place.
"""

from collections.abc import Awaitable, Callable
from functools import reduce
from importlib import import_module
from typing import Any

from argilla_server.contexts.webhooks import list_enabled_webhooks
from pydantic import TypeAdapter

from annotation.server.home.damage import stop_writing_once_damaged
from annotation.server.page import change_page
from annotation.server.patches import access, annotator, errors, events, practice, routes
from annotation.server.patches.engine import register_engine
from annotation.server.patches.middleware import surround
from annotation.server.search.filters import check_search
from pipeline.core.sentences import packaged_table

_WEBHOOKS_KNOWN = "citejury_has_webhook"


class _NoEvent:
    async def notify(self, db: Any) -> list[Any]:
        return []


async def _only_for_webhooks(build: Callable[..., Awaitable[Any]], db: Any, event: Any, subject: Any) -> Any:
    if _WEBHOOKS_KNOWN not in db.info:  # looked up once in a session, which is once in a request
        db.info[_WEBHOOKS_KNOWN] = bool(await list_enabled_webhooks(db))
    return await build(db, event, subject) if db.info[_WEBHOOKS_KNOWN] else _NoEvent()


def _build_reader_once(settings: property) -> property:
    """The same property of a row, read by a pydantic reader that is built now."""
    read = TypeAdapter(settings.fget.__annotations__["return"]).validate_python
    return property(lambda row: read(row.settings))


def _wrap(new: Callable[..., Any]) -> "Change":
    def change(before: Any) -> Any:
        return lambda *arguments, **named: new(before, *arguments, **named)

    return change


def _use(new: Callable[..., Any]) -> "Change":
    return lambda _: new


Change = Callable[[Any], Any]
"""Gives what takes the place of what it gets; None where that stays, and what it belongs to is changed."""
_WRAPPED: tuple[Callable[..., Any], ...] = (
    _only_for_webhooks, access.remembered, access.refuse_log_in_of_removed, access.for_members_only,
    events.log_login, events.log_published_dataset, events.log_push, events.log_submission, events.note_who_asks,
    events.log_deleted_dataset, events.log_deleted_record, events.log_deleted_records, events.log_deleted_response,
    events.log_deleted_user, annotator.note_what_was_seen, annotator.refuse_older_state, annotator.for_its_users_only,
    annotator.set_status, annotator.count_what_she_gets, annotator.hide_origin, annotator.limit_filter,
    practice.ask_for_what_is_required, practice.refuse_long_answers, practice.refuse_before_practice,
    errors.shorten_message,
)  # fmt: skip
_USED: tuple[Callable[..., Any], ...] = (
    access.check_elsewhere, access.token_with_epoch, access.by_token, access.by_key, check_search,
    errors.store_in_turn, errors.name_the_kind, errors.name_first_errors,
)  # fmt: skip
_MADE: tuple[Change, ...] = (
    register_engine, stop_writing_once_damaged, change_page, surround, _build_reader_once,
    access.slow_down, access.know_epochs, access.serve_revocation,
    errors.answer_database_errors, errors.log_without_values, errors.answer_type_errors,
    annotator.serve_own_record_only, annotator.serve_own_progress, annotator.serve_own_part_of_users,
    annotator.serve_start, annotator.serve_replies, practice.serve_practice,
    routes.serve_record_pages, routes.serve_status_rows, routes.serve_changes, routes.serve_history,
)  # fmt: skip
_CHANGES = {
    **{new.__name__.lstrip("_"): _wrap(new) for new in _WRAPPED},
    **{new.__name__.lstrip("_"): _use(new) for new in _USED},
    **{change.__name__.lstrip("_"): change for change in _MADE},
}
PATCHES: list[tuple[str, str, str]] = packaged_table(__file__)["patches"]


def apply_patches() -> None:
    for target, _, name in PATCHES:
        if not name:
            continue
        module, _, path = target.partition(":")
        *owners, last = path.split(".")
        owner = reduce(getattr, owners, import_module(f"argilla_server.{module}"))
        changed = _CHANGES[name](getattr(owner, last))
        if changed is not None:
            setattr(owner, last, changed)
