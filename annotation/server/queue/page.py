"""A page of an annotator's pending queue, which is theirs alone for a while.

Argilla's page (2.8.0) asks for ten records and, on each move, for what comes after those that it has; it shows one at a
time. It gets the passages of one answer instead, at first of two: every record that it has is held from others. A page
of 25 and more, which shows them all at once, gets as many as it asks for, and so does any page of records that are not
ours. A program that lists holds nothing that is more than a page can show, or farther on than anybody leafs.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from argilla_server.models import Record, Response
from sqlalchemy import ColumnElement, and_, exists, func, not_, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from annotation.server.queue import holds as held_answers
from annotation.server.queue.holds import Holds, Openings
from annotation.server.queue.mixed import Mixed, is_begun, is_for, is_limited, lot, read_mixed
from annotation.server.queue.practice import closing_practice, is_practice, practice_queue
from annotation.server.queue.tables import QUEUE

_AT_ONCE = 500  # answers that a statement can hold
_HEAPS = 256  # that an answer's last two characters deal it into, each of about the same size
_FEW = 1000  # with four records in a heap, one query for all of them is cheaper than one for each heap


class _WaitingRecord(NamedTuple):
    record_id: UUID
    answer: str
    passage: int  # its rank; 0 for a whole answer, -1 where the record is not ours


class Queue(NamedTuple):
    db: AsyncSession
    dataset_id: UUID
    user_id: UUID
    narrowing: Sequence[ColumnElement[bool]]  # conditions on records, beside those of the queue
    is_restricted: bool  # whether some of the dataset's records are for others only
    holds: Holds
    openings: Openings


async def queue_page(
    db: AsyncSession, dataset: Any, user_id: UUID, narrowing: Sequence[ColumnElement[bool]], offset: int, limit: int
) -> tuple[list[UUID], int]:
    """Empty where they have answered all that is pending, others hold the rest, or a practice comes first."""
    if is_practice(dataset):
        cases = await practice_queue(db, dataset, user_id, narrowing)
        return cases[offset : offset + limit], len(cases)
    if await closing_practice(db, dataset, user_id):
        return [], 0
    hands_out = limit <= 100 and offset + limit <= 300 and await held_answers.annotates(db, dataset, user_id)
    if hands_out:
        await db.rollback()  # on SQLite, who has read before cannot wait for another writer
        await held_answers.wait_for_turn(db, dataset.id)
    queue = await read_queue(db, dataset.id, user_id, narrowing)
    holds = queue.holds
    held = await _records_of(queue, list(holds.mine))
    waiting = await count_waiting(queue)
    mixed = await _mixed_in(queue, waiting)
    records = await _first_records(queue, mixed, held, offset + limit, limit)
    page = records[offset:]
    if page and limit <= 10 and page[0].passage >= 0:  # of our own the passages of few answers
        first = list(dict.fromkeys(record.answer for record in page))[: 1 if offset else 2]
        page = [record for record in page if record.answer in first]
    if hands_out:
        if not narrowing:
            left = {record.answer for record in held}
            await held_answers.release(db, dataset.id, user_id, [each for each in holds.mine if each not in left])
        # The one before is what they look at while their page asks for the next.
        looked_at = records[max(0, offset - 1) : offset + len(page)]
        await held_answers.hold(db, dataset.id, user_id, [record.answer for record in looked_at], holds)
        await db.commit()
    return [record.record_id for record in page], waiting + (mixed.units_shown(waiting) if mixed else 0)


async def read_queue(
    db: AsyncSession, dataset_id: UUID, user_id: UUID, narrowing: Sequence[ColumnElement[bool]] = ()
) -> Queue:
    holds = await held_answers.read_holds(db, dataset_id, user_id)
    restricted = await is_limited(db, dataset_id, user_id, QUEUE.c.mixed == 0, QUEUE.c.users.is_not(None))
    openings = await held_answers.openings(db, dataset_id, holds)
    return Queue(db, dataset_id, user_id, narrowing, restricted, holds, openings)


async def _mixed_in(queue: Queue, waiting: int) -> Mixed | None:
    """A narrowed queue shows no more of it than the whole one will, or what it leaves out would be told apart."""
    mixed = await read_mixed(queue.db, queue.dataset_id, queue.user_id, queue.holds.mine)
    if mixed is None or not queue.narrowing:
        return mixed
    shown = mixed.shown(await count_waiting(queue._replace(narrowing=())))
    found = Counter(record.answer for record in await _records_of(queue, shown))
    return mixed.narrowed(found, waiting)


async def kept_from(db: AsyncSession, dataset: Any, user_id: UUID) -> list[ColumnElement[bool]]:
    """Records for others only, and of what is mixed in all that neither came to them nor will.

    While a practice comes first, all that they have not begun.
    """
    if await closing_practice(db, dataset, user_id):
        return [exists().where(Response.record_id == Record.id, Response.user_id == user_id)]
    if not await is_limited(db, dataset.id, user_id):
        return []
    queue = await read_queue(db, dataset.id, user_id)
    mixed = await read_mixed(db, dataset.id, user_id, queue.holds.mine)
    shown = mixed.shown(await count_waiting(queue)) if mixed else []
    here = (QUEUE.c.dataset_id == dataset.id, QUEUE.c.assignment.is_not(None))
    apart = and_(QUEUE.c.mixed == 1, QUEUE.c.answer.not_in(shown), ~is_begun(user_id))
    hidden = select(QUEUE.c.record_id).where(*here, or_(not_(is_for(user_id)), apart))
    return [Record.id.not_in(hidden)]


async def _first_records(
    queue: Queue, mixed: Mixed | None, held: Sequence[_WaitingRecord], wanted: int, at_once: int
) -> list[_WaitingRecord]:
    records = list(held)
    if len(records) < wanted and mixed:
        records += await _records_of(queue, mixed.begun)
    if len(records) < wanted:
        async for answer in _not_held(queue, at_once):
            if mixed:
                come, mixed = mixed.before_next(len(answer))
                records += await _records_of(queue, come)
            records += answer
            if len(records) >= wanted:
                break
    return records[:wanted]


async def count_waiting(queue: Queue) -> int:
    """Without what is mixed in. A count in one index, less the user's responses and what others hold, which are few."""
    here, full = lacking(queue), queue.openings.full
    of_record = exists().where(QUEUE.c.record_id == Response.record_id, *here)
    mine = select(Response.record_id).where(Response.user_id == queue.user_id)
    rows = select(func.count()).select_from(QUEUE).where(*here)
    answered = select(func.count(Response.record_id)).where(Response.user_id == queue.user_id, of_record)
    count = int(await queue.db.scalar(rows) or 0) - int(await queue.db.scalar(answered) or 0)
    if full:
        held = rows.where(QUEUE.c.record_id.in_(full), QUEUE.c.record_id.not_in(mine))
        count -= int(await queue.db.scalar(held) or 0)
    return count


def lacking(queue: Queue) -> list[ColumnElement[bool]]:
    return [*_pending(queue), QUEUE.c.mixed == 0, QUEUE.c.lacking > 0]


def _pending(queue: Queue) -> list[ColumnElement[bool]]:
    here: list[ColumnElement[bool]] = [QUEUE.c.dataset_id == queue.dataset_id, QUEUE.c.pending == 1]
    if queue.narrowing:
        here.append(exists().where(Record.id == QUEUE.c.record_id, *queue.narrowing))
    if queue.is_restricted:
        here.append(is_for(queue.user_id))
    return here


def _waiting(queue: Queue) -> list[ColumnElement[bool]]:
    full = [QUEUE.c.record_id.not_in(queue.openings.full)] if queue.openings.full else []
    return [*_pending(queue), ~is_begun(queue.user_id), *full]


async def _not_held(queue: Queue, at_once: int) -> AsyncIterator[list[_WaitingRecord]]:
    """Answer by answer in the user's order, without what they hold and what is mixed in."""
    here = (QUEUE.c.dataset_id == queue.dataset_id, QUEUE.c.pending == 1, QUEUE.c.mixed == 0)
    most_lacking = await queue.db.scalar(select(func.max(QUEUE.c.lacking)).where(*here)) or 0
    seen, size = set(queue.holds.mine), min(at_once, _AT_ONCE)
    for left in range(1, most_lacking + 1):
        async for answers in _lacking(queue, left):
            new = [answer for answer in answers if answer not in seen]
            seen.update(new)
            for first in range(0, len(new), size):
                records = await _records_of(queue, new[first : first + size])
                for _, of_answer in groupby(records, key=lambda record: record.answer):
                    yield list(of_answer)


async def _lacking(queue: Queue, left: int) -> AsyncIterator[list[str]]:
    """Answers with a record that lacks so many labels, in the user's order: one list or, if they are many, heaps."""
    columns = select(QUEUE.c.answer, QUEUE.c.heap).where(*_waiting(queue), QUEUE.c.mixed == 0, QUEUE.c.lacking == left)
    found = (await queue.db.execute(columns.limit(_FEW + 1))).tuples().all()
    if len(found) <= _FEW:
        yield _by_lot(queue.user_id, found)
    else:
        for heap in sorted(range(_HEAPS), key=lambda number: lot(queue.user_id, bytes([number]))):
            yield _by_lot(queue.user_id, (await queue.db.execute(columns.where(QUEUE.c.heap == heap))).tuples().all())
    held = [answer for answer, count in queue.openings.left.items() if count == left]
    yield sorted(held, key=lambda answer: lot(queue.user_id, answer.encode()))


def _by_lot(user_id: UUID, answers: Iterable[tuple[str, int]]) -> list[str]:
    places = {answer: (lot(user_id, bytes([heap])), lot(user_id, answer.encode())) for answer, heap in answers}
    return sorted(places, key=places.__getitem__)


async def _records_of(queue: Queue, answers: Sequence[str]) -> list[_WaitingRecord]:
    if not answers:
        return []
    columns = select(QUEUE.c.record_id, QUEUE.c.answer, QUEUE.c.passage)
    # The sum keeps SQLite from reading every pending record in the order of labels instead of these answers.
    lacking_labels = QUEUE.c.lacking + 0 > 0
    found = columns.where(*_waiting(queue), lacking_labels, QUEUE.c.answer.in_(answers))
    rows = [_WaitingRecord(*row) for row in (await queue.db.execute(found)).tuples()]
    places = {answer: place for place, answer in enumerate(answers)}
    return sorted(rows, key=lambda each: (places[each.answer], each.passage, each.record_id))
