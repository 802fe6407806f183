"""The order of an annotator's pending queue: what was begun is finished before anything new is begun.

First the answers that she holds. Then those that lack the fewest labels, counted as if everybody gives the labels that
she holds records for; among equals first those that have labels already, then those that somebody looks at. The rest is
by lot, an order of her own that is the same each time. All passages of an answer come together, by rank.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

from argilla_server.models import Record, Response
from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.ext.asyncio import AsyncSession

from annotation.embedded.queue.holds import Holds, Openings
from annotation.embedded.queue.tables import QUEUE
from annotation.embedded.search.own_order import FEW, HEAPS, lot

AT_ONCE = 500


class Waiting(NamedTuple):
    """A record that waits for the annotator."""

    record_id: UUID
    answer: str
    passage: int
    """Its rank; 0 for a whole answer, -1 where the record is not ours."""


class Queue(NamedTuple):
    """An annotator's queue in a dataset at one moment."""

    db: AsyncSession
    dataset_id: UUID
    user_id: UUID
    needed: int
    """Labels that complete a record."""
    narrowing: Sequence[ColumnElement[bool]]
    """Conditions on records, beside those of the queue."""
    holds: Holds
    openings: Openings


def pending(queue: Queue) -> list[ColumnElement[bool]]:
    """Conditions for the rows of records that are pending, apart from the number of their labels."""
    here: list[ColumnElement[bool]] = [QUEUE.c.dataset_id == queue.dataset_id, QUEUE.c.pending == 1]
    if queue.narrowing:
        here.append(exists().where(Record.id == QUEUE.c.record_id, *queue.narrowing))
    return here


def waiting(queue: Queue) -> list[ColumnElement[bool]]:
    """Conditions for the rows of records that wait for her, apart from the number of their labels."""
    answered = exists().where(Response.record_id == QUEUE.c.record_id, Response.user_id == queue.user_id)
    full = [QUEUE.c.record_id.not_in(queue.openings.full)] if queue.openings.full else []
    return [*pending(queue), ~answered, *full]


async def not_held(queue: Queue, at_once: int) -> AsyncIterator[Waiting]:
    """The records that wait for her in answers that she does not hold, in her order, read as many answers at a time."""
    seen = set(queue.holds.mine)
    for left in range(1, queue.needed + 1):
        async for answers in lacking(queue, left):
            new = [answer for answer in answers if answer not in seen]
            seen.update(new)
            for some in portions(new, at_once):
                for record in await records_of(queue, some):
                    yield record


async def lacking(queue: Queue, left: int) -> AsyncIterator[list[str]]:
    """The answers with a record that lacks so many labels, in her order: in one list or, if they are many, in heaps."""
    columns = select(QUEUE.c.answer, QUEUE.c.heap).where(*waiting(queue), QUEUE.c.labels == queue.needed - left)
    found = (await queue.db.execute(columns.limit(FEW + 1))).tuples().all()
    if len(found) <= FEW:
        yield by_lot(queue.user_id, found)
    else:
        for heap in sorted(range(HEAPS), key=lambda number: lot(queue.user_id, bytes([number]))):
            yield by_lot(queue.user_id, (await queue.db.execute(columns.where(QUEUE.c.heap == heap))).tuples().all())
    held = [answer for answer, count in queue.openings.left.items() if count == left]
    yield sorted(held, key=lambda answer: lot(queue.user_id, answer.encode()))


def by_lot(user_id: UUID, answers: Iterable[tuple[str, int]]) -> list[str]:
    """The answers, each once, in her order; each comes with its heap."""
    places = {answer: (lot(user_id, bytes([heap])), lot(user_id, answer.encode())) for answer, heap in answers}
    return sorted(places, key=places.__getitem__)


async def records_of(queue: Queue, answers: Sequence[str]) -> list[Waiting]:
    """The records of the answers that wait for her, answer by answer, passages by rank."""
    if not answers:
        return []
    columns = select(QUEUE.c.record_id, QUEUE.c.answer, QUEUE.c.passage)
    # The sum keeps SQLite from reading every pending record in the order of labels instead of these answers.
    lacking_labels = QUEUE.c.labels + 0 < queue.needed
    found = columns.where(*waiting(queue), lacking_labels, QUEUE.c.answer.in_(answers))
    rows = (await queue.db.execute(found)).tuples()
    places = {answer: place for place, answer in enumerate(answers)}
    return sorted((Waiting(*row) for row in rows), key=lambda each: (places[each.answer], each.passage, each.record_id))


def portions(answers: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """The answers in portions of a size that a statement can hold."""
    size = min(size, AT_ONCE)
    return (answers[first : first + size] for first in range(0, len(answers), size))
