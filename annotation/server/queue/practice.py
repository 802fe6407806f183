"""Practice on our server: first answers, the queue of cases, and what is closed to people until they pass.

A person's first submitted answers to each case are kept by triggers, in the transaction that submits them, because the
explanation follows: what they change afterwards does not count.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from argilla_server.enums import DatasetStatus, UserRole
from argilla_server.models import Dataset, MetadataProperty, Record, Response, User, Workspace, WorkspaceUser
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import selectinload

from annotation.argilla.tasks import PRACTICE, round_of
from annotation.argilla.units import Assignment, as_answers, assignment_of, labels_and_question
from annotation.campaign.datasets import series_of, value_in, version_of
from annotation.quality.practice import CLOSED_ROUNDS, OPENED, PASS_MARK, PASSED, Standing, standing
from annotation.server.queue.holds import DONE
from annotation.server.queue.tables import QUEUE
from annotation.server.sql import run_sql

_FIRST = sa.Table(
    "citejury_first_answers",
    sa.MetaData(),
    sa.Column("record_id", sa.Uuid, primary_key=True),
    sa.Column("user_id", sa.Uuid, primary_key=True),
    sa.Column("attempt", sa.Integer, primary_key=True),  # 0 is the one that counts; earlier ones from 1
    sa.Column("answers", sa.String, nullable=False),  # the response's values as JSON
)


def prepare(connection: sa.Connection) -> None:
    """What was submitted while no trigger was there is kept, and nothing of records that are gone."""
    _FIRST.create(connection, checkfirst=True)
    run_sql(connection, __file__)


def is_practice(dataset: Any) -> bool:
    return round_of({"metadata": dataset.metadata_}) == PRACTICE


async def practice_queue(
    db: AsyncSession, dataset: Any, user_id: UUID, narrowing: Sequence[sa.ColumnElement[bool]] = ()
) -> list[UUID]:
    """The cases that the user has not begun, in the order of their file; others' work makes no difference to them."""
    begun = sa.exists().where(Response.record_id == Record.id, Response.user_id == user_id)
    wanted = sa.select(Record.id).where(Record.dataset_id == dataset.id, ~begun, *narrowing)
    return list((await db.scalars(wanted.order_by(Record.inserted_at, Record.id))).all())


async def closing_practice(db: AsyncSession, dataset: Any, user_id: UUID) -> UUID | None:
    """The practice that keeps the dataset closed to the user; None where it is open to them.

    It is open to all but annotators, and outside calibration and production. The practice may be in the workspace that
    groups' workspaces are named after. One version that is passed is enough.
    """
    series = series_of({"metadata": dataset.metadata_})
    if series is None or series.round_name not in CLOSED_ROUNDS:
        return None
    here = str(await db.scalar(sa.select(Workspace.name).where(Workspace.id == dataset.workspace_id)))
    wanted = (
        sa.select(Dataset, Workspace.name)
        .join(Workspace, Workspace.id == Dataset.workspace_id)
        .join(WorkspaceUser, WorkspaceUser.workspace_id == Dataset.workspace_id)
        .where(WorkspaceUser.user_id == user_id, Dataset.status == DatasetStatus.ready)
        .where(Dataset.metadata_["round"].as_string() == PRACTICE)
    )
    versions = [
        each
        for each, home in (await db.execute(wanted)).tuples()
        if (here == home or here.startswith(f"{home}-"))
        and (its := series_of({"metadata": each.metadata_}))
        and its[:2] == series[:2]
    ]
    if not versions or await db.scalar(sa.select(User.role).where(User.id == user_id)) != UserRole.annotator:
        return None
    versions.sort(key=lambda each: version_of({"metadata": each.metadata_}), reverse=True)
    for each in versions:
        if (await standing_in(db, each.id, user_id)).opens:
            return None
    closing: UUID = versions[0].id
    return closing


async def standing_in(db: AsyncSession, dataset_id: UUID, user_id: UUID) -> Standing:
    return (await standings_in(db, dataset_id, [user_id]))[user_id]


async def standings_in(db: AsyncSession, dataset_id: UUID, user_ids: Sequence[UUID]) -> dict[UUID, Standing]:
    known = await _known_answers(db, dataset_id)
    kept = sa.select(MetadataProperty.name, MetadataProperty.settings).where(MetadataProperty.dataset_id == dataset_id)
    values = (await db.execute(kept)).tuples().all()
    pass_mark, opened, passed = (value_in(values, name) for name in (PASS_MARK, OPENED, PASSED))
    found = {}
    for user_id in user_ids:
        hers = (Response.user_id == user_id, Response.record_id.in_(known), Response.status.in_(DONE))
        answered = int(await db.scalar(sa.select(sa.func.count()).select_from(Response).where(*hers)) or 0)
        first = await _first_answers(db, list(known), user_id)
        attempts = await _attempts(db, list(known), user_id)
        answers = {str(case): labels for case, labels in known.items()}
        found[user_id] = standing(
            *(answers, first, answered, pass_mark, attempts),
            opened=str(user_id) in (opened or ()),
            passed=str(user_id) in (passed or ()),
        )
    return found


async def _known_answers(db: AsyncSession, dataset_id: UUID) -> dict[UUID, Mapping[str, bool | str]]:
    """Out of the queue: PostgreSQL stops at a NUL in any record's own metadata."""
    wanted = sa.select(QUEUE.c.record_id, QUEUE.c.assignment)
    rows = await db.execute(wanted.where(QUEUE.c.dataset_id == dataset_id, QUEUE.c.purpose == PRACTICE))
    return {record_id: Assignment.model_validate_json(written).answers for record_id, written in rows.tuples()}


async def _first_answers(db: AsyncSession, cases: Sequence[UUID], user_id: UUID) -> dict[str, dict[str, bool | str]]:
    wanted = sa.select(_FIRST.c.record_id, _FIRST.c.answers).where(
        _FIRST.c.record_id.in_(cases), _FIRST.c.user_id == user_id, _FIRST.c.attempt == 0
    )
    found = {}
    for record_id, written in (await db.execute(wanted)).tuples():
        labels, _ = labels_and_question(json.loads(written))
        found[str(record_id)] = as_answers(labels)
    return found


async def _attempts(db: AsyncSession, cases: Sequence[UUID], user_id: UUID) -> int:
    wanted = sa.select(sa.func.max(_FIRST.c.attempt)).where(_FIRST.c.record_id.in_(cases), _FIRST.c.user_id == user_id)
    return int(await db.scalar(wanted) or 0)


async def explained(db: AsyncSession, record: Any, user_id: UUID) -> dict[str, Any] | None:
    first = (await _first_answers(db, [record.id], user_id)).get(str(record.id))
    case = assignment_of({"metadata": record.metadata_})
    if first is None or case.purpose != PRACTICE:
        return None
    labels = [
        {"name": label, "known": known, "hers": first.get(label), "why": case.explanations.get(label, "")}
        for label, known in case.answers.items()
    ]
    return {"labels": labels}


async def set_aside(db: AsyncSession, dataset_id: UUID, user_id: UUID) -> list[Any]:
    """In one transaction: a response that stayed would be taken for a first answer at the server's next start."""
    cases = list(await _known_answers(db, dataset_id))
    here = (_FIRST.c.record_id.in_(cases), _FIRST.c.user_id == user_id)
    number = await _attempts(db, cases, user_id) + 1
    wanted = sa.select(Response).where(Response.user_id == user_id, Response.record_id.in_(cases))
    wanted = wanted.options(selectinload(Response.record).selectinload(Record.dataset), selectinload(Response.user))
    responses = list((await db.scalars(wanted)).all())
    await db.execute(sa.update(_FIRST).where(*here, _FIRST.c.attempt == 0).values(attempt=number))
    for response in responses:
        await response.delete(db, autocommit=False)
    await db.commit()
    return responses
