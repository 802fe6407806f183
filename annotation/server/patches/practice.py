"""Practice over REST, and what is asked of an answer before it is stored, beside what argilla-server asks.

Nothing is answered before its practice is passed. An adjudicator is asked for the labels on which annotators differ.
Marks on the context are asked for where a dataset requires them: Argilla's own `required` would ask for a mark on every
record. No answer is longer than people write: each change of it stands in the history and in every backup.
"""

import html
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from argilla_server.api.policies.v1 import DatasetPolicy, authorize
from argilla_server.contexts import distribution
from argilla_server.enums import ResponseStatus, UserRole
from argilla_server.errors.future import UnprocessableEntityError
from argilla_server.models import Dataset, Response, User, WorkspaceUser
from fastapi import HTTPException
from fastapi.encoders import jsonable_encoder
from sqlalchemy import select

from annotation.argilla.labels import DISPUTED, EVIDENCE, missing_marks
from annotation.argilla.marks import is_on_words
from annotation.argilla.tasks import MARKED_FIELD
from annotation.quality.practice import STANDINGS_PATH, Standing
from annotation.server.page import page_texts
from annotation.server.patches.routes import Asking, Database, Engine, serve_first
from annotation.server.queue import practice as queue_practice


def standing_as_json(standing: Standing) -> dict[str, Any]:
    labels = [each._asdict() for each in standing.labels]
    return {**standing._asdict(), "labels": labels, "opens": standing.opens, "may_repeat": standing.may_repeat}


def serve_practice(get_record: Any) -> None:
    async def get_explanations(record_id: UUID, db: Database, current_user: Asking) -> Any:
        record = await get_record(db=db, record_id=record_id, current_user=current_user)
        found = await queue_practice.explained(db, record, current_user.id)
        if found is None:
            raise HTTPException(404, "There is no explanation of this record, or none before you have submitted it.")
        return found | {
            "standing": standing_as_json(await queue_practice.standing_in(db, record.dataset_id, current_user.id))
        }

    async def begin_anew(dataset_id: UUID, db: Database, search_engine: Engine, current_user: Asking) -> Any:
        dataset = await _practice(db, dataset_id, current_user)
        if not (await queue_practice.standing_in(db, dataset.id, current_user.id)).may_repeat:
            raise HTTPException(422, "A practice can be repeated once all its cases are answered and it is not passed.")
        for response in await queue_practice.set_aside(db, dataset.id, current_user.id):
            await distribution.update_record_status(search_engine, response.record_id)
            await search_engine.delete_record_response(response)
        return standing_as_json(await queue_practice.standing_in(db, dataset.id, current_user.id))

    async def list_standings(dataset_id: UUID, db: Database, current_user: Asking) -> Any:
        dataset = await _practice(db, dataset_id, current_user)
        await authorize(current_user, DatasetPolicy.list_records_with_all_responses(dataset))
        members = select(User.id, User.username).join(WorkspaceUser, WorkspaceUser.user_id == User.id)
        here = (WorkspaceUser.workspace_id == dataset.workspace_id, User.role == UserRole.annotator)
        names = dict((await db.execute(members.where(*here).order_by(User.username))).tuples().all())
        found = (await queue_practice.standings_in(db, dataset.id, list(names))).items()
        items = [{"user_id": str(each), "username": names[each], **standing_as_json(how)} for each, how in found]
        return {"items": items}

    serve_first("/citejury/records/{record_id}/practice", get_explanations)
    serve_first(f"{STANDINGS_PATH}/again", begin_anew, "POST")
    serve_first(STANDINGS_PATH, list_standings)


async def _practice(db: Any, dataset_id: UUID, user: Any) -> Any:
    dataset = await Dataset.get_or_raise(db, dataset_id)
    await authorize(user, DatasetPolicy.get(dataset))
    if not queue_practice.is_practice(dataset):
        raise HTTPException(404, "This dataset is no practice.")
    return dataset


async def refuse_before_practice(
    store: Callable[..., Awaitable[Any]], db: Any, search_engine: Any, record: Any, user: Any, response: Any
) -> Any:
    closed = user.is_annotator and await queue_practice.closing_practice(db, record.dataset, user.id)
    if closed and not await Response.get_by(db, record_id=record.id, user_id=user.id):
        raise UnprocessableEntityError(page_texts(record.dataset.metadata_["locale"])["practice_closed"])
    return await store(db, search_engine, record, user, response)


Check = Callable[[Any, Any], None]  # a check of a response, and of the record it is to


class _Asked:
    def __init__(self, record: Any, disputed: list[str]) -> None:
        self._record = record
        questions = [
            SimpleNamespace(name=each.name, required=each.name in disputed, parsed_settings=each.parsed_settings)
            for each in record.dataset.questions
        ]
        self.dataset = SimpleNamespace(questions=questions)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._record, name)


def ask_for_what_is_required(validate: Check, response: Any, record: Any) -> None:
    """Marks on nothing but a passage's heading do not count: they say nothing of what decided."""
    disputed = (record.metadata_ or {}).get(DISPUTED)
    validate(response, _Asked(record, disputed) if disputed else record)
    required = (record.dataset.metadata_ or {}).get(EVIDENCE) == "required"
    if not required or response.status != ResponseStatus.submitted:
        return
    values = {name: each["value"] for name, each in jsonable_encoder(response.values).items()}
    shown = html.unescape(record.fields[MARKED_FIELD])
    marks = [mark for mark in values.get(EVIDENCE) or [] if is_on_words(shown, mark["start"], mark["end"])]
    if missing := missing_marks(values | {EVIDENCE: marks}):
        needed = " and ".join(f"one `{mark}`, because `{label}` is yes" for label, mark in missing)
        raise UnprocessableEntityError(
            f"This answer needs marks on the words of the context that decided: {needed}. Mark them, then submit again."
        )


def refuse_long_answers(validate: Check, response: Any, record: Any) -> None:
    limits = ((str, 20_000, "A note has 20,000 characters"), (list, 1_000, "An answer has 1,000 marks"))
    for each in (response.values or {}).values():
        for kind, most, what in limits:
            if isinstance(each.value, kind) and len(each.value) > most:
                raise UnprocessableEntityError(f"{what} at most, and this one has {len(each.value):,}.")
    validate(response, record)
