"""What an annotator gets: her own part where argilla-server's routes are about everybody, and where she starts.

A record's assignment says who gets it and when it is done; argilla-server does not know that. Of what every record is
for, an annotator is told the same.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from argilla_server.api.policies.v1 import DatasetPolicy, authorize
from argilla_server.api.schemas.v1.datasets import DatasetProgress, UsersProgress
from argilla_server.api.schemas.v1.records import Record as RecordSchema
from argilla_server.enums import DatasetStatus, RecordStatus
from argilla_server.errors.future import UnprocessableEntityError
from argilla_server.models import Dataset, MetadataProperty, Record, Response, WorkspaceUser
from fastapi import HTTPException
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse
from sqlalchemy import func, select, update
from sqlalchemy.orm.attributes import set_committed_value

from annotation.argilla.display import HIDDEN, own_answer
from annotation.argilla.labels import DISPUTED
from annotation.argilla.pages import markdown_to_html
from annotation.argilla.tasks import title_of
from annotation.argilla.units import ASSIGNMENT
from annotation.campaign.datasets import (
    JURY_PROPERTY,
    NEW_LINES,
    is_carrying,
    log_in,
    newest_versions,
    place_in_order,
    series_of,
    value_in,
)
from annotation.campaign.replies import REPLY_PROPERTY, Reply, last_replies, replies_in
from annotation.server.patches.practice import standing_as_json
from annotation.server.patches.routes import Asking, Database, Engine, serve_first
from annotation.server.queue.own_work import OwnWork, own_work, with_records
from annotation.server.queue.page import kept_from
from annotation.server.queue.practice import closing_practice, is_practice, standing_in
from annotation.server.search.filters import is_by_status, is_pending_record, split_queue

_OF_RECORD = {
    "id", "dataset_id", "external_id", "fields", "metadata", "responses", "suggestions", "status", "inserted_at",
    "updated_at",
}  # fmt: skip
"""What of a record an annotator gets, by name, of what argilla-server has; fields are those that set-up defined."""
_OF_METADATA = {DISPUTED}  # of a record of ours, whatever somebody has made visible
_OF_LOG = ("name", "settings", "inserted_at")
_HEADING = re.compile(r"^# +(.+)$", re.MULTILINE)


def serve_own_record_only(get_record: Any) -> None:
    """Whoever may see a record also gets its answer as its model wrote it, and nothing else of what is hidden."""

    async def get_own_record(record_id: UUID, db: Database, current_user: Asking) -> Any:
        record = await get_record(db=db, record_id=record_id, current_user=current_user)
        whole = RecordSchema.model_validate(record)
        if not current_user.is_annotator:
            return JSONResponse(jsonable_encoder(whole))
        own = [response for response in whole.responses or [] if response.user_id == current_user.id]
        properties = await db.scalars(select(MetadataProperty).where(MetadataProperty.dataset_id == record.dataset_id))
        visible = {each.name for each in properties if current_user.role in each.allowed_roles}
        metadata = {name: value for name, value in (whole.metadata or {}).items() if name in visible}
        shown = {"responses": own, "metadata": _allowed(whole.metadata, metadata), **_said_of_each(record.dataset)}
        return JSONResponse(jsonable_encoder(whole.model_copy(update=shown), include=_OF_RECORD))

    async def get_written_answer(record_id: UUID, db: Database, current_user: Asking) -> Any:
        record = RecordSchema.model_validate(await get_record(db=db, record_id=record_id, current_user=current_user))
        hidden = (record.metadata or {}).get(HIDDEN)
        originals = hidden.get("originals") if isinstance(hidden, dict) else None
        shown = (record.fields or {}).get("answer")
        answer = originals.get("answer", shown) if isinstance(originals, dict) else shown
        if not isinstance(answer, str):
            raise HTTPException(404, "This record has no answer.")
        return JSONResponse({"answer": own_answer(answer, hidden) if isinstance(hidden, dict) else answer})

    serve_first("/records/{record_id}/answer", get_written_answer, response_class=JSONResponse)
    # A finished response, because the schema's own validator reads database rows only.
    serve_first("/records/{record_id}", get_own_record, response_class=JSONResponse)


def _allowed(metadata: Mapping[str, Any] | None, visible: dict[str, Any] | None) -> dict[str, Any] | None:
    if not visible or HIDDEN not in (metadata or {}):
        return visible
    return {name: value for name, value in visible.items() if name in _OF_METADATA}


def _said_of_each(dataset: Any) -> dict[str, Any]:
    """Controls come later than what they are mixed among, and are done after a number of answers of their own."""
    came = dataset.inserted_at
    return {"inserted_at": came, "updated_at": came, "status": RecordStatus.pending}


async def hide_origin(visible_metadata: Callable[[Any, Any], Awaitable[Any]], record: Any, user: Any) -> Any:
    found = await visible_metadata(record, user)
    if user.is_annotator:
        found = _allowed(record.metadata_, found)
        if "vectors" in record.__dict__ and HIDDEN in (record.metadata_ or {}):
            set_committed_value(record, "vectors", [])
        for name, value in _said_of_each(record.dataset).items():
            set_committed_value(record, name, value)
    return found


def limit_filter(to_filter: Callable[..., Any], filters: Any, user: Any) -> Any:
    """Refuse (422) an annotator's filter by what she is not told of records, but for that of her pending queue."""
    found = to_filter(filters, user=user)
    left, queue_of = split_queue(found)
    told = [each for each in left if is_by_status(each) and not (queue_of and is_pending_record(each))]
    if told and user is not None and user.is_annotator:
        raise UnprocessableEntityError("Annotators cannot search by a record's `status`. Leave it out.")
    return found


_seen: ContextVar[str | None] = ContextVar("_seen", default=None)  # the state of a response that the page answers


def note_what_was_seen(set_request_user: Callable[..., None], request: Any, user: Any) -> None:
    _seen.set(request.headers.get("x-citejury-seen"))
    set_request_user(request, user)


async def refuse_older_state(
    store: Callable[..., Awaitable[Any]], db: Any, engine: Any, response: Any, new: Any
) -> Any:
    """A tab that shows an older state does not overwrite what was answered since; whoever names no state may."""
    now = select(Response.updated_at).where(Response.id == response.id).with_for_update()
    if (seen := _seen.get()) is not None:
        # SQLite has no lock of a row; a write, also of no row, keeps others from writing until this one is stored.
        await db.execute(update(Response).where(Response.id.is_(None)).values(status=Response.status))
        if (await db.execute(now)).scalar_one().isoformat() != seen:
            raise HTTPException(409, "This was answered elsewhere after what is answered here was shown.")
    return await store(db, engine, response, new)


def for_its_users_only(policy: Callable[[Any], Any], record: Any) -> Callable[[Any], Awaitable[bool]]:
    users = _assigned(record, "users")

    async def is_allowed_and_hers(actor: Any) -> bool:
        hers = not isinstance(users, list) or not users or not actor.is_annotator or str(actor.id) in users
        return hers and await policy(record)(actor)

    return is_allowed_and_hers


async def set_status(update: Callable[[Any, Any], Awaitable[Any]], db: Any, record: Any) -> Any:
    needed = _assigned(record, "needed")
    if not isinstance(needed, int) or needed < 1:
        return await update(db, record)
    done = len(record.responses_submitted) >= needed
    record.status = RecordStatus.completed if done else RecordStatus.pending
    return await record.save(db, autocommit=False)


def _assigned(record: Any, name: str) -> Any:
    said = record.metadata_.get(ASSIGNMENT) if isinstance(record.metadata_, Mapping) else None
    return said.get(name) if isinstance(said, Mapping) else None


async def count_what_she_gets(
    count: Callable[..., Awaitable[dict[str, int]]], db: Any, search_engine: Any, user: Any, dataset: Any
) -> dict[str, int]:
    found = await count(db, search_engine, user, dataset)
    kept = await kept_from(db, dataset, user.id)
    if kept:
        of_dataset = select(func.count(Record.id)).where(Record.dataset_id == dataset.id)
        total = int(await db.scalar(of_dataset.where(*kept)) or 0)
        found |= {"total": total, "pending": found["pending"] - found["total"] + total}
    return found


def serve_own_progress(get_dataset_progress: Any) -> None:
    async def get_own_progress(dataset_id: UUID, db: Database, search_engine: Engine, current_user: Asking) -> Any:
        if not current_user.is_annotator:
            return await get_dataset_progress(
                dataset_id=dataset_id, db=db, search_engine=search_engine, current_user=current_user
            )
        dataset = await Dataset.get_or_raise(db, dataset_id)
        await authorize(current_user, DatasetPolicy.get(dataset))
        work = (await own_work(db, [dataset], current_user.id))[dataset_id]
        users = [current_user] if work.done + work.drafts else []
        return DatasetProgress(total=work.total, completed=work.done, pending=work.total - work.done, users=users)

    path = "/datasets/{dataset_id}/progress"
    serve_first(path, get_own_progress, response_model=DatasetProgress, response_model_exclude_unset=True)


def serve_own_part_of_users(get_dataset_users_progress: Any) -> None:
    async def get_own_part(dataset_id: UUID, db: Database, current_user: Asking) -> Any:
        everybody = await get_dataset_users_progress(dataset_id=dataset_id, db=db, current_user=current_user)
        if current_user.is_annotator:
            everybody.users = [user for user in everybody.users if user.username == current_user.username]
        return everybody

    serve_first("/datasets/{dataset_id}/users/progress", get_own_part, response_model=UsersProgress)


def serve_replies(get_record: Any) -> None:
    kept = select(MetadataProperty.dataset_id, MetadataProperty.name, MetadataProperty.settings)
    replies = kept.where(MetadataProperty.name.startswith(REPLY_PROPERTY, autoescape=True))

    async def get_replies(record_id: UUID, db: Database, current_user: Asking) -> Any:
        record = await get_record(db=db, record_id=record_id, current_user=current_user)
        found = (await db.execute(replies.where(MetadataProperty.dataset_id == record.dataset_id))).all()
        return {"replies": [_shown(each, current_user) for _, each in _readable(found, current_user, str(record_id))]}

    async def list_own_replies(db: Database, current_user: Asking) -> Any:
        hers = select(Dataset.id).join(WorkspaceUser, WorkspaceUser.workspace_id == Dataset.workspace_id)
        of_hers = hers.where(WorkspaceUser.user_id == current_user.id)
        found = (await db.execute(replies.where(MetadataProperty.dataset_id.in_(of_hers)))).all()
        readable = _readable(found, current_user)
        mine = [(str(dataset), each) for dataset, each in readable if each.user_id == str(current_user.id)]
        said = [({"dataset_id": dataset, "record": each.external_id}, each) for dataset, each in mine]
        return {"replies": [place | _shown(each, current_user) for place, each in said]}

    serve_first("/citejury/records/{record_id}/replies", get_replies)
    serve_first("/citejury/me/replies", list_own_replies)


def _readable(found: Any, user: Any, record_id: str | None = None) -> Iterator[tuple[UUID, Reply]]:
    for dataset_id in dict.fromkeys(row.dataset_id for row in found):
        here = replies_in((row.name, row.settings) for row in found if row.dataset_id == dataset_id)
        for each in last_replies(here.values()):
            may = not user.is_annotator or each.for_all or each.user_id == str(user.id)
            if may and record_id in (None, each.record_id):
                yield dataset_id, each


def _shown(reply: Reply, user: Any) -> dict[str, Any]:
    mine = reply.user_id == str(user.id) or not user.is_annotator
    return {"question": reply.question if mine else None, "text": reply.text}


def serve_start(get_dataset: Any) -> None:
    """Lists are the newest published versions in her languages that hold a record; null for owners and admins."""

    async def list_own_work(db: Database, current_user: Asking) -> Any:
        return {"lists": await _lists(db, current_user) if current_user.is_annotator else None}

    async def get_guidelines(dataset_id: UUID, db: Database, current_user: Asking) -> Any:
        dataset = await get_dataset(db=db, dataset_id=dataset_id, current_user=current_user)
        return {"html": markdown_to_html(dataset.guidelines or "")}

    async def list_rules(db: Database, current_user: Asking) -> Any:
        return {"rules": await _rules(db, current_user) if current_user.is_annotator else []}

    serve_first("/citejury/me/work", list_own_work)
    serve_first("/citejury/me/rules", list_rules)
    serve_first("/citejury/datasets/{dataset_id}/guidelines", get_guidelines)


async def _lists(db: Any, user: Any) -> list[dict[str, Any]]:
    member = (WorkspaceUser.workspace_id == Dataset.workspace_id, WorkspaceUser.user_id == user.id)
    published = select(Dataset).where(Dataset.status == DatasetStatus.ready).join(WorkspaceUser, member[0])
    datasets = {dataset.id: dataset for dataset in await db.scalars(published.where(member[1]))}
    filled = await with_records(db, list(datasets))
    columns = select(MetadataProperty.dataset_id, MetadataProperty.name, MetadataProperty.settings)
    properties = (await db.execute(columns.where(MetadataProperty.dataset_id.in_(filled)))).all()
    described: list[dict[str, Any]] = []  # as `annotation.campaign.datasets` knows them, and more
    for each in datasets.values():
        of_dataset = [(row.name, row.settings) for row in properties if row.dataset_id == each.id]
        jury = value_in(of_dataset, JURY_PROPERTY) if each.id in filled else None
        heading = _HEADING.search(each.guidelines or "")
        known = {"id": each.id, "name": each.name, "metadata": each.metadata_, "workspace": each.workspace_id}
        more = {"heading": heading[1].strip() if heading else "", "is_hers": user.username in (jury or ())}
        described.append(known | more)
    chosen = _chosen(described, filled)
    work = await own_work(db, [datasets[each["id"]] for each in chosen], user.id)
    practices = [each["id"] for each in chosen if is_practice(datasets[each["id"]])]
    found = []
    for one in chosen:
        closed_by = await closing_practice(db, datasets[one["id"]], user.id) if practices else None
        standing = await standing_in(db, one["id"], user.id) if one["id"] in practices else None
        found.append(_list_of(one, work[one["id"]], standing and standing_as_json(standing), closed_by))
    return found


async def _rules(db: Any, user: Any) -> list[dict[str, Any]]:
    """Of each task and language of hers the version of its rules, and what changed in them, oldest first.

    `is_new` where she has not answered since. Rounds of a task have the same rules.
    """
    of_hers = select(Dataset).where(Dataset.status == DatasetStatus.ready)
    of_hers = of_hers.join(WorkspaceUser, WorkspaceUser.workspace_id == Dataset.workspace_id)
    datasets = list(await db.scalars(of_hers.where(WorkspaceUser.user_id == user.id)))
    answers = select(Record.dataset_id, func.max(Response.updated_at)).join(Response, Response.record_id == Record.id)
    answered = await db.execute(answers.where(Response.user_id == user.id).group_by(Record.dataset_id))
    last = {dataset_id: moment for dataset_id, moment in answered.tuples()}
    columns = select(MetadataProperty.dataset_id, *(getattr(MetadataProperty, name) for name in _OF_LOG))
    properties = (
        await db.execute(columns.where(MetadataProperty.dataset_id.in_([each.id for each in datasets])))
    ).all()
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for each in datasets:
        described = {"name": each.name, "metadata": each.metadata_}
        if (series := series_of(described)) is None:
            continue
        log = log_in({name: getattr(row, name) for name in _OF_LOG} for row in properties if row.dataset_id == each.id)
        known = {"id": str(each.id), "task": series.task, "locale": series.locale, "title": title_of(described)}
        changes = list(_changes(str((each.metadata_ or {}).get("guideline_version")), log, last.get(each.id)))
        mine = {**known, "answered": each.id in last, "last": last.get(each.id), "changes": changes}
        other = found.get((series.task, series.locale))
        # Where she answered last she knows the most.
        if other is None or (mine["last"] and (not other["last"] or mine["last"] > other["last"])):
            found[series.task, series.locale] = mine
    return [{name: value for name, value in each.items() if name != "last"} for each in found.values()]


def _changes(version: str, log: Iterable[Mapping[str, Any]], last: datetime | None) -> Iterator[dict[str, Any]]:
    """The first is the version with which the dataset was made."""
    yield {"version": version, "html": "", "is_new": False}
    for entry in log:
        value = json.loads(entry["settings"]["values"][0])
        if value.get("guideline_version", version) != version:
            version = value["guideline_version"]
            html = markdown_to_html("\n".join(value.get(NEW_LINES, ())))
            yield {"version": version, "html": html, "is_new": last is not None and entry["inserted_at"] > last}


def _chosen(described: Sequence[dict[str, Any]], filled: set[UUID]) -> list[dict[str, Any]]:
    """Where the campaign says in which datasets of a workspace she labels, those; elsewhere all."""

    def place(each: Mapping[str, Any]) -> tuple[Any, ...]:
        series = series_of(each)
        return (0, *place_in_order(series)) if series else (1, each["name"])

    found: list[dict[str, Any]] = []
    for workspace in dict.fromkeys(each["workspace"] for each in described):
        here = [each for each in described if each["workspace"] == workspace and not is_carrying(each)]
        newest: Iterable[Mapping[str, Any]] = newest_versions(here).values()
        ours = [each for each in here if any(each is one for one in newest)]
        hers = [each for each in ours if each["is_hers"]]
        found += hers or ours
        found += [each for each in here if series_of(each) is None]
    return sorted((each for each in found if each["id"] in filled), key=place)


def _list_of(
    described: Mapping[str, Any], work: OwnWork, practice: dict[str, Any] | None, closed_by: UUID | None
) -> dict[str, Any]:
    series = series_of(described)
    back = None if work.back is None else datetime.fromtimestamp(work.back, UTC).isoformat()
    return {
        "id": str(described["id"]),
        "name": described["name"],
        "heading": described["heading"],
        "task": series.task if series else None,
        "title": series and title_of(described),
        "locale": series.locale if series else None,
        "round": series.round_name if series else None,
        "is_hers": described["is_hers"],
        "done": work.done,
        "total": work.total,
        "drafts": work.drafts,
        "waiting": 0 if closed_by else work.waiting,
        "with_others": 0 if closed_by else work.with_others,
        "back": None if closed_by else back,
        "pace": work.pace,
        "practice": practice,
        "closed_by": closed_by and str(closed_by),
    }
