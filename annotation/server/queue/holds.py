"""Who is looking at which answer: what keeps two annotators from giving the same last label at once.

A hold is for an answer with all its passages, from when it is handed out for as long as the setting says, and longer
while its page asks for more. It stands for a label that the annotator is about to give.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from argilla_server.enums import ResponseStatus, UserRole
from argilla_server.models import Dataset, DatasetUser, Response, User, WorkspaceUser
from sqlalchemy import delete, exists, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from annotation.server.home.folder import hold_seconds
from annotation.server.queue.tables import HOLDS, QUEUE, upsert

_NOW = {
    "sqlite": "CAST(strftime('%s', 'now') AS INTEGER)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) AS bigint)",
}
DONE = (ResponseStatus.submitted, ResponseStatus.discarded)  # a draft is still being looked at


class Holds(NamedTuple):
    now: int  # seconds since 1970, by the database's clock
    mine: Mapping[str, int]  # answers that the user holds, in the order of handing out, each with its place
    others: Mapping[str, frozenset[UUID]]  # who else holds each answer


class Openings(NamedTuple):
    full: Sequence[UUID]  # records that will have all their labels
    left: Mapping[str, int]  # the smallest number of labels that a record of the answer still needs, by answer


async def wait_for_turn(db: AsyncSession, dataset_id: UUID) -> None:
    """Return when nobody else hands out records of the dataset; it lasts until the transaction ends.

    Forgets the dataset's holds that are over. On SQLite that makes this the one writer. No hold is longer than it would
    be if it began now: a clock that was put back would keep what it is for from everybody, by a day for a day.
    """
    dialect = db.get_bind().dialect.name
    if dialect == "postgresql":
        lock = dataset_id.int >> 65
        await db.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": lock})
    await db.execute(delete(HOLDS).where(HOLDS.c.dataset_id == dataset_id, HOLDS.c.ends <= text(_NOW[dialect])))
    latest = text(f"{_NOW[dialect]} + {hold_seconds()}")
    await db.execute(update(HOLDS).where(HOLDS.c.dataset_id == dataset_id, HOLDS.c.ends > latest).values(ends=latest))


async def read_holds(db: AsyncSession, dataset_id: UUID, user_id: UUID) -> Holds:
    """But those of people who were taken out of the workspace: what they looked at is for the others."""
    now = text(_NOW[db.get_bind().dialect.name])
    workspace = select(Dataset.workspace_id).where(Dataset.id == dataset_id).scalar_subquery()
    is_member = exists().where(WorkspaceUser.user_id == HOLDS.c.user_id, WorkspaceUser.workspace_id == workspace)
    is_owner = exists().where(User.id == HOLDS.c.user_id, User.role == UserRole.owner)
    rows = await db.execute(
        select(HOLDS.c.answer, HOLDS.c.user_id, HOLDS.c.place)
        .where(HOLDS.c.dataset_id == dataset_id, HOLDS.c.ends > now, is_member | is_owner)
        .order_by(HOLDS.c.place)
    )
    mine: dict[str, int] = {}
    others: defaultdict[str, set[UUID]] = defaultdict(set)
    for answer, holder, place in rows.tuples():
        if holder == user_id:
            mine[answer] = place
        else:
            others[answer].add(holder)
    moment = int(await db.scalar(select(now)) or 0)
    return Holds(moment, mine, {answer: frozenset(users) for answer, users in others.items()})


async def openings(db: AsyncSession, dataset_id: UUID, holds: Holds) -> Openings:
    """What the others' holds leave of their answers' records; an answer that the user holds too is theirs as well.

    What is mixed in is for everybody, whoever holds it.
    """
    held = [answer for answer in holds.others if answer not in holds.mine]
    if not held:
        return Openings([], {})
    here = (QUEUE.c.dataset_id == dataset_id, QUEUE.c.answer.in_(held), QUEUE.c.pending == 1, QUEUE.c.mixed == 0)
    replies = await db.execute(
        select(Response.record_id, Response.user_id)
        .join(QUEUE, QUEUE.c.record_id == Response.record_id)
        .where(*here, Response.user_id.in_(frozenset().union(*holds.others.values())), Response.status.in_(DONE))
    )
    replied = set(replies.tuples())
    # Read after the replies: one that is stored in between then counts twice for a moment, and never not at all.
    rows = await db.execute(select(QUEUE.c.record_id, QUEUE.c.answer, QUEUE.c.lacking).where(*here))
    full: list[UUID] = []
    left: dict[str, int] = {}
    for record_id, answer, lacking in rows.tuples():
        open_to_her = lacking - sum((record_id, holder) not in replied for holder in holds.others[answer])
        if open_to_her <= 0:
            full.append(record_id)
        else:
            left[answer] = min(left.get(answer, open_to_her), open_to_her)
    return Openings(full, left)


async def hold(db: AsyncSession, dataset_id: UUID, user_id: UUID, answers: Iterable[str], holds: Holds) -> None:
    ends = holds.now + hold_seconds()
    last = max(holds.mine.values(), default=0)
    rows: list[dict[str, Any]] = [
        {"dataset_id": dataset_id, "user_id": user_id, "answer": answer, "place": place, "ends": ends}
        for place, answer in enumerate(dict.fromkeys(answers), start=last + 1)
    ]
    if rows:
        await upsert(db, HOLDS, rows, {"ends": ends})


async def release(db: AsyncSession, dataset_id: UUID, user_id: UUID, answers: Sequence[str]) -> None:
    """Unless the user left a draft there."""
    if not answers:
        return
    draft = select(QUEUE.c.record_id).join(Response, Response.record_id == QUEUE.c.record_id)
    mine = (Response.user_id == user_id, Response.status == ResponseStatus.draft)
    here = (QUEUE.c.dataset_id == HOLDS.c.dataset_id, QUEUE.c.answer == HOLDS.c.answer)
    await db.execute(
        delete(HOLDS).where(
            HOLDS.c.dataset_id == dataset_id,
            HOLDS.c.user_id == user_id,
            HOLDS.c.answer.in_(answers),
            ~exists(draft.where(*mine, *here).correlate(HOLDS)),
        )
    )


async def annotates(db: AsyncSession, dataset: Any, user_id: UUID) -> bool:
    """Whether the user works on the dataset: an owner who only looks at it must not keep records from others."""
    member = exists().where(WorkspaceUser.workspace_id == dataset.workspace_id, WorkspaceUser.user_id == user_id)
    worked = exists().where(DatasetUser.dataset_id == dataset.id, DatasetUser.user_id == user_id)
    return bool(await db.scalar(select(member | worked)))
