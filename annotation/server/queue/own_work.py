"""What an annotator has done in datasets, what is left for them, and how fast they are; nobody else's part is told.

Every figure is a count in an index or goes through their own responses only, however many records there are.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from statistics import median
from typing import Any, NamedTuple
from uuid import UUID

from argilla_server.database import AsyncSessionLocal
from argilla_server.enums import ResponseStatus
from argilla_server.models import Response
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from annotation.argilla.units import times_taken
from annotation.server.home.folder import hold_seconds
from annotation.server.queue.holds import DONE, wait_for_turn
from annotation.server.queue.mixed import is_begun, read_mixed
from annotation.server.queue.page import count_waiting, lacking, read_queue
from annotation.server.queue.practice import is_practice, practice_queue
from annotation.server.queue.tables import HOLDS, QUEUE


class _Done(NamedTuple):
    user_id: UUID
    at: datetime
    dataset_id: UUID


class OwnWork(NamedTuple):
    submitted: int  # records that they have submitted
    discarded: int  # records that they have discarded
    drafts: int  # records that they have begun
    waiting: int  # records that they have not begun and can be given now
    with_others: int
    """Records that they have not begun, and that others are giving their last labels, or will leave to them."""
    back: int | None
    """When the last of these is left to them at the latest, in seconds since 1970; None where there are none."""
    pace: float | None  # median seconds from one of the last answers to the next; None where there are too few to tell

    @property
    def done(self) -> int:
        return self.submitted + self.discarded

    @property
    def total(self) -> int:
        return self.done + self.drafts + self.waiting + self.with_others


async def own_work(db: AsyncSession, datasets: Sequence[Any], user_id: UUID) -> dict[UUID, OwnWork]:
    wanted = (
        select(QUEUE.c.dataset_id, Response.status, func.count())
        .join(QUEUE, QUEUE.c.record_id == Response.record_id)
        .where(Response.user_id == user_id)
        .group_by(QUEUE.c.dataset_id, Response.status)
    )
    counts = {(dataset_id, status): count for dataset_id, status, count in (await db.execute(wanted)).tuples()}
    paces = await _paces(db, user_id)
    found = {}
    for each in datasets:
        submitted, discarded, drafts = (counts.get((each.id, status), 0) for status in (*DONE, ResponseStatus.draft))
        waiting, with_others, back = await _left(db, each, user_id)
        pace = paces.get(each.id)
        found[each.id] = OwnWork(submitted, discarded, drafts, waiting, with_others, back, pace)
    return found


async def with_records(db: AsyncSession, dataset_ids: Sequence[UUID]) -> set[UUID]:
    return {
        dataset_id
        for dataset_id in dataset_ids
        if await db.scalar(select(QUEUE.c.record_id).where(QUEUE.c.dataset_id == dataset_id).limit(1))
    }


async def _left(db: AsyncSession, dataset: Any, user_id: UUID) -> tuple[int, int, int | None]:
    if is_practice(dataset):
        return len(await practice_queue(db, dataset, user_id)), 0, None
    queue = await read_queue(db, dataset.id, user_id)
    waiting, with_others, back = await count_waiting(queue), 0, None
    if queue.openings.full:
        held = (*lacking(queue), QUEUE.c.record_id.in_(queue.openings.full), ~is_begun(user_id))
        with_others = int(await db.scalar(select(func.count()).select_from(QUEUE).where(*held)) or 0)
        others = (HOLDS.c.dataset_id == dataset.id, HOLDS.c.user_id != user_id)
        held_by_others = (*others, HOLDS.c.answer.in_(select(QUEUE.c.answer).where(*held)))
        back = await db.scalar(select(func.max(HOLDS.c.ends)).where(*held_by_others)) if with_others else None
    latest = queue.holds.now + hold_seconds()
    if back is not None and back > latest:  # the clock was put back, and nobody may open this list for a day
        async with AsyncSessionLocal() as turn:
            await wait_for_turn(turn, dataset.id)
            await turn.commit()
        back = latest
    mixed = await read_mixed(db, dataset.id, user_id, queue.holds.mine)
    return waiting + (mixed.units_shown(waiting) if mixed else 0), with_others, back


async def _paces(db: AsyncSession, user_id: UUID) -> dict[UUID, float]:
    """A record took the time since the one before, in whichever dataset that was; discarded ones count too."""
    wanted = (
        select(QUEUE.c.dataset_id, Response.updated_at)
        .join(QUEUE, QUEUE.c.record_id == Response.record_id)
        .where(Response.user_id == user_id, Response.status.in_(DONE))
        .order_by(Response.updated_at.desc())
        .limit(500)
    )
    done = [_Done(user_id, moment, dataset_id) for dataset_id, moment in (await db.execute(wanted)).tuples()]
    found: defaultdict[UUID, list[float]] = defaultdict(list)
    for each, taken in times_taken(done):
        if taken is not None:
            found[each.dataset_id].append(taken)
    return {dataset_id: median(seconds) for dataset_id, seconds in found.items() if len(seconds) >= 3}
