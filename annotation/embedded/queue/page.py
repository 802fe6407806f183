"""A page of an annotator's pending queue, which is hers alone for a while.

Argilla's page (2.8.0) asks for ten records and, on each move, for what comes after those that it has; it shows one at a
time. It gets the passages of one answer each time instead, at first of two: every record that it has is held, and ten
that wait for her would keep ten others from being complete. With one to look at and one ahead she goes on while the
server does not answer. A page of 25 and more, which shows them all at once, gets as many as it asks for, and so does
any page of records that are not ours. A program that lists holds nothing that is more than a page can show, or farther
on than anybody leafs: it would keep the whole dataset from everybody else.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from argilla_server.models import Record, Response
from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from annotation.embedded.queue.holds import (
    Holds,
    Openings,
    annotates,
    hold,
    openings,
    read_holds,
    release,
    wait_for_turn,
)
from annotation.embedded.queue.mixed import Mixed, has_restricted, hidden_from, is_for, is_limited, read_mixed
from annotation.embedded.queue.practice import closing_practice, is_practice, practice_queue
from annotation.embedded.queue.tables import QUEUE
from annotation.embedded.search.filters import is_pending_record, split_queue
from annotation.embedded.search.orders import FEW, HEAPS, lot

_AT_ONCE = 500
_ONE_AT_A_TIME = 10
_MOST_SHOWN = 100
_FARTHEST_LEAFED = 300


class _WaitingRecord(NamedTuple):
    """A record that waits for the annotator."""

    record_id: UUID
    answer: str
    passage: int
    """Its rank; 0 for a whole answer, -1 where the record is not ours."""


class _Queue(NamedTuple):
    """An annotator's queue in a dataset at one moment."""

    db: AsyncSession
    dataset_id: UUID
    user_id: UUID
    narrowing: Sequence[ColumnElement[bool]]
    """Conditions on records, beside those of the queue."""
    is_restricted: bool
    """Whether some of the dataset's records are for others only."""
    holds: Holds
    openings: Openings


class QueuePage(NamedTuple):
    """A page of the queue."""

    record_ids: list[UUID]
    total: int
    """Records that the whole queue can hand her now."""


def filters_beside_the_queue(wanted: Any) -> list[Any] | None:
    """The filters beside the two of a pending queue, "she has not answered" and "the record is pending"; else None."""
    filters, user_id = split_queue(wanted)
    others = [each for each in filters if not is_pending_record(each)]
    return others if user_id is not None and len(others) < len(filters) else None


async def queue_page(
    db: AsyncSession, dataset: Any, user_id: UUID, narrowing: Sequence[ColumnElement[bool]], offset: int, limit: int
) -> QueuePage:
    """The records that wait for her from `offset` on, now held for her; `narrowing` are further conditions on records.

    Empty where she has answered all that is pending, or others hold the rest, or a practice comes first.
    """
    if is_practice(dataset):
        cases = await practice_queue(db, dataset, user_id, narrowing)
        return QueuePage(cases[offset : offset + limit], len(cases))
    if await closing_practice(db, dataset, user_id):
        return QueuePage([], 0)
    leafs = limit <= _MOST_SHOWN and offset + limit <= _FARTHEST_LEAFED
    hands_out = leafs and await annotates(db, dataset, user_id)
    if hands_out:
        await db.rollback()  # on SQLite, who has read before cannot wait for another writer
        await wait_for_turn(db, dataset.id)
    queue = await _read_queue(db, dataset.id, user_id, narrowing)
    holds = queue.holds
    held = await _records_of(queue, list(holds.mine))
    waiting = await _count_waiting(queue)
    mixed = await _mixed_in(queue, waiting)
    records = await _first_records(queue, mixed, held, offset + limit, limit)
    page = _records_at_once(records[offset:], limit, answers=1 if offset else 2)
    if hands_out:
        if not narrowing:
            left = {record.answer for record in held}
            await release(db, dataset.id, user_id, [answer for answer in holds.mine if answer not in left])
        # The one before is what she looks at while her page asks for the next.
        looked_at = records[max(0, offset - 1) : offset + len(page)]
        await hold(db, dataset.id, user_id, [record.answer for record in looked_at], holds)
        await db.commit()
    return QueuePage([record.record_id for record in page], waiting + (mixed.units_shown(waiting) if mixed else 0))


async def _read_queue(
    db: AsyncSession, dataset_id: UUID, user_id: UUID, narrowing: Sequence[ColumnElement[bool]]
) -> _Queue:
    """Her queue now."""
    holds = await read_holds(db, dataset_id, user_id)
    restricted = await has_restricted(db, dataset_id, user_id)
    return _Queue(db, dataset_id, user_id, narrowing, restricted, holds, await openings(db, dataset_id, holds))


async def _mixed_in(queue: _Queue, waiting: int) -> Mixed | None:
    """What is mixed into her queue, in which so many other records wait; None where nothing is.

    A narrowed queue shows no more of it than the whole one will, or what it leaves out would be told apart.
    """
    mixed = await read_mixed(queue.db, queue.dataset_id, queue.user_id, queue.holds.mine)
    if mixed is None or not queue.narrowing:
        return mixed
    shown = mixed.shown(await _count_waiting(queue._replace(narrowing=())))
    found = Counter(record.answer for record in await _records_of(queue, shown))
    return mixed.narrowed(found, waiting)


async def kept_from(db: AsyncSession, dataset: Any, user_id: UUID) -> list[ColumnElement[bool]]:
    """Conditions on records that leave out what an annotator does not get in the dataset, by no way.

    Those are the records for others only, and of what is mixed in all that neither came to her nor will.
    """
    if not await is_limited(db, dataset.id, user_id):
        return []
    queue = await _read_queue(db, dataset.id, user_id, ())
    mixed = await read_mixed(db, dataset.id, user_id, queue.holds.mine)
    return hidden_from(dataset.id, user_id, mixed.shown(await _count_waiting(queue)) if mixed else [])


async def _first_records(
    queue: _Queue, mixed: Mixed | None, held: Sequence[_WaitingRecord], wanted: int, at_once: int
) -> list[_WaitingRecord]:
    """So many records of the queue from its beginning, which is those that she holds, or all there are."""
    records = list(held[:wanted])
    if len(records) < wanted:
        async for record in _with_mixed(queue, mixed, at_once) if mixed else _not_held(queue, at_once):
            records.append(record)
            if len(records) == wanted:
                break
    return records


def _records_at_once(records: Sequence[_WaitingRecord], limit: int, answers: int) -> list[_WaitingRecord]:
    """Those that go out together: of our own records the passages of so many answers, unless the page shows many."""
    if records and limit <= _ONE_AT_A_TIME and records[0].passage >= 0:
        first = list(dict.fromkeys(record.answer for record in records))[:answers]
        return [record for record in records if record.answer in first]
    return list(records)


async def _count_waiting(queue: _Queue) -> int:
    """Number of records that wait for her: all that lack labels, less those she has answered or others hold.

    Without those that are mixed in. The first is a count in one index; the others look at her responses and at what
    others hold, which are few.
    """
    here = (*_pending(queue), QUEUE.c.mixed == 0, QUEUE.c.lacking > 0)
    of_record = exists().where(QUEUE.c.record_id == Response.record_id, *here)
    full = queue.openings.full
    mine = select(Response.record_id).where(Response.user_id == queue.user_id)
    total = await queue.db.scalar(select(func.count()).select_from(QUEUE).where(*here))
    answered = await queue.db.scalar(
        select(func.count(Response.record_id)).where(Response.user_id == queue.user_id, of_record)
    )
    held = (
        await queue.db.scalar(
            select(func.count())
            .select_from(QUEUE)
            .where(*here, QUEUE.c.record_id.in_(full), QUEUE.c.record_id.not_in(mine))
        )
        if full
        else 0
    )
    return int(total or 0) - int(answered or 0) - int(held or 0)


def _pending(queue: _Queue) -> list[ColumnElement[bool]]:
    """Conditions for the rows of records that are pending, apart from the number of their labels."""
    here: list[ColumnElement[bool]] = [QUEUE.c.dataset_id == queue.dataset_id, QUEUE.c.pending == 1]
    if queue.narrowing:
        here.append(exists().where(Record.id == QUEUE.c.record_id, *queue.narrowing))
    if queue.is_restricted:
        here.append(is_for(queue.user_id))
    return here


def _waiting(queue: _Queue) -> list[ColumnElement[bool]]:
    """Conditions for the rows of records that wait for her, apart from the number of their labels."""
    answered = exists().where(Response.record_id == QUEUE.c.record_id, Response.user_id == queue.user_id)
    full = [QUEUE.c.record_id.not_in(queue.openings.full)] if queue.openings.full else []
    return [*_pending(queue), ~answered, *full]


async def _with_mixed(queue: _Queue, mixed: Mixed, at_once: int) -> AsyncIterator[_WaitingRecord]:
    """The same as `_not_held`, with the answers that are mixed in at their places."""
    for record in await _records_of(queue, mixed.begun):
        yield record
    async for answer in _by_answer(_not_held(queue, at_once)):
        come, mixed = mixed.before_next(len(answer))
        for record in [*await _records_of(queue, come), *answer]:
            yield record


async def _by_answer(records: AsyncIterator[_WaitingRecord]) -> AsyncIterator[list[_WaitingRecord]]:
    """The records of each answer together, which stand beside each other."""
    answer: list[_WaitingRecord] = []
    async for record in records:
        if answer and record.answer != answer[0].answer:
            yield answer
            answer = []
        answer.append(record)
    if answer:
        yield answer


async def _not_held(queue: _Queue, at_once: int) -> AsyncIterator[_WaitingRecord]:
    """The records that wait for her in answers that she does not hold, in her order, read as many answers at a time."""
    seen = set(queue.holds.mine)
    for left in range(1, await _most_lacking(queue) + 1):
        async for answers in _lacking(queue, left):
            new = [answer for answer in answers if answer not in seen]
            seen.update(new)
            for some in _portions(new, at_once):
                for record in await _records_of(queue, some):
                    yield record


async def _most_lacking(queue: _Queue) -> int:
    """The largest number of labels that a record lacks."""
    here = (QUEUE.c.dataset_id == queue.dataset_id, QUEUE.c.pending == 1, QUEUE.c.mixed == 0)
    return await queue.db.scalar(select(func.max(QUEUE.c.lacking)).where(*here)) or 0


async def _lacking(queue: _Queue, left: int) -> AsyncIterator[list[str]]:
    """The answers with a record that lacks so many labels, in her order: in one list or, if they are many, in heaps."""
    columns = select(QUEUE.c.answer, QUEUE.c.heap).where(*_waiting(queue), QUEUE.c.mixed == 0, QUEUE.c.lacking == left)
    found = (await queue.db.execute(columns.limit(FEW + 1))).tuples().all()
    if len(found) <= FEW:
        yield _by_lot(queue.user_id, found)
    else:
        for heap in sorted(range(HEAPS), key=lambda number: lot(queue.user_id, bytes([number]))):
            yield _by_lot(queue.user_id, (await queue.db.execute(columns.where(QUEUE.c.heap == heap))).tuples().all())
    held = [answer for answer, count in queue.openings.left.items() if count == left]
    yield sorted(held, key=lambda answer: lot(queue.user_id, answer.encode()))


def _by_lot(user_id: UUID, answers: Iterable[tuple[str, int]]) -> list[str]:
    """The answers, each once, in her order; each comes with its heap."""
    places = {answer: (lot(user_id, bytes([heap])), lot(user_id, answer.encode())) for answer, heap in answers}
    return sorted(places, key=places.__getitem__)


async def _records_of(queue: _Queue, answers: Sequence[str]) -> list[_WaitingRecord]:
    """The records of the answers that wait for her, answer by answer, passages by rank."""
    if not answers:
        return []
    columns = select(QUEUE.c.record_id, QUEUE.c.answer, QUEUE.c.passage)
    # The sum keeps SQLite from reading every pending record in the order of labels instead of these answers.
    lacking_labels = QUEUE.c.lacking + 0 > 0
    found = columns.where(*_waiting(queue), lacking_labels, QUEUE.c.answer.in_(answers))
    rows = (await queue.db.execute(found)).tuples()
    places = {answer: place for place, answer in enumerate(answers)}
    return sorted(
        (_WaitingRecord(*row) for row in rows), key=lambda each: (places[each.answer], each.passage, each.record_id)
    )


def _portions(answers: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """The answers in portions of a size that a statement can hold."""
    size = min(size, _AT_ONCE)
    return (answers[first : first + size] for first in range(0, len(answers), size))
