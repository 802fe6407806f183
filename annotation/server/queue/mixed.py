"""Controls and repeats among an annotator's other work: where they come, so that nobody can tell which they are.

An annotator's other units are dealt into blocks, each as long as leaves the rate's share for what is mixed in, and
before a unit of each block, drawn by lot, comes an answer that is mixed in. So the share is kept from the first unit to
the last, the places are the same each time and another annotator's are others. Without other units nothing comes.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from math import ceil, inf, log1p
from typing import NamedTuple
from uuid import UUID

from argilla_server.enums import UserRole
from argilla_server.models import Response, User
from sqlalchemy import ColumnElement, exists, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from annotation.server.queue.tables import QUEUE

_PLACES = 2**64


def lot(user_id: UUID, drawn: bytes) -> bytes:
    return hashlib.blake2b(drawn, key=user_id.bytes, digest_size=8).digest()


class Places(NamedTuple):
    lot: bytes  # what the places of the blocks are drawn with
    block: float  # how many other units come with each answer that is mixed in
    given: int  # answers that the user has begun or holds
    waiting: tuple[str, ...]  # the others, in the user's order

    def places_before(self, user_id: UUID, unit: int) -> int:
        # The work begins anywhere in a block; else no control would ever be the last unit that a block can hold.
        first = self._drawn(user_id, b"first", ceil(self.block))
        return self._places(user_id, first + unit) - self._places(user_id, first)

    def _places(self, user_id: UUID, unit: int) -> int:
        number = int(unit / self.block)
        begin, end = ceil(number * self.block), ceil((number + 1) * self.block)
        return number + (begin + self._drawn(user_id, number.to_bytes(8), end - begin) < unit)

    def _drawn(self, user_id: UUID, what: bytes, of: int) -> int:
        return int.from_bytes(lot(user_id, self.lot + what)) * of // _PLACES


class Mixed(NamedTuple):
    user_id: UUID
    before: int  # the user's other units that are answered or held
    held_units: int  # those of them that are only held
    places: Places
    held: tuple[str, ...]  # answers that the user holds
    begun: tuple[str, ...]  # answers that the user has begun and does not hold
    units: Mapping[str, int]  # how many records of each answer wait for the user

    def before_next(self, units: int) -> tuple[list[str], "Mixed"]:
        after = self.before + units
        first = max(self.places.places_before(self.user_id, self.before), self.places.given)
        count = max(0, self.places.places_before(self.user_id, after) - first)
        come, waiting = self.places.waiting[:count], self.places.waiting[count:]
        left = self.places._replace(given=self.places.given + count, waiting=waiting)
        return list(come), self._replace(before=after, places=left)

    def shown(self, waiting: int) -> list[str]:
        return [*self.held, *self.begun, *self.before_next(waiting - self.held_units)[0]]

    def units_shown(self, waiting: int) -> int:
        return sum(self.units[answer] for answer in self.shown(waiting))

    def narrowed(self, units: Mapping[str, int], waiting: int) -> "Mixed":
        held = tuple(answer for answer in self.held if answer in units)
        others = [answer for answer in units if answer not in held]
        block = max(1.0, waiting / max(1, len(others)) * (1 - 1e-9))  # so that the last place is not lost to rounding
        others.sort(key=lambda answer: lot(self.user_id, answer.encode()))
        places = Places(b"narrowed", block, 0, tuple(others))
        return self._replace(before=0, held_units=0, places=places, held=held, begun=(), units=units)


async def read_mixed(db: AsyncSession, dataset_id: UUID, user_id: UUID, holds: Mapping[str, int]) -> Mixed | None:
    """What is mixed into the queue of the user, who holds these answers; None where there is nothing for them."""
    here = (QUEUE.c.dataset_id == dataset_id, QUEUE.c.assignment.is_not(None), QUEUE.c.mixed == 1)
    columns = (QUEUE.c.record_id, QUEUE.c.answer, QUEUE.c.purpose, QUEUE.c.rate, QUEUE.c.pending, is_begun(user_id))
    rows = (await db.execute(select(*columns).where(*here, is_for(user_id)))).tuples().all()
    if not rows or not await _is_annotator(db, user_id):
        return None
    purposes: dict[str, str] = {}
    rates: defaultdict[str, float] = defaultdict(float)
    units: defaultdict[str, int] = defaultdict(int)
    waiting: defaultdict[str, int] = defaultdict(int)
    for _, answer, purpose, rate, pending, answered in rows:
        purposes[answer] = purpose
        rates[purpose] = max(rates[purpose], rate or 0.0)
        units[answer] += 1
        waiting[answer] += pending and not answered
    begun = {answer for _, answer, *_, answered in rows if answered}
    before, held_units = await _other_units(db, dataset_id, user_id, holds)
    new = [answer for answer in purposes if waiting[answer] and answer not in begun and answer not in holds]
    answers = Counter(purposes.values())
    weights = {purpose: rates[purpose] / count for purpose, count in answers.items()}
    places = Places(
        dataset_id.bytes + b"control",  # whatever it is
        block_of(rates.values(), sum(units.values()) / len(units)),
        sum(answer in begun or answer in holds for answer in purposes),
        in_her_order(user_id, {answer: weights[purposes[answer]] for answer in new}),
    )
    held = tuple(answer for answer in holds if waiting.get(answer))
    left = tuple(sorted(answer for answer in begun if waiting[answer] and answer not in holds))
    return Mixed(user_id, before, held_units, places, held, left, waiting)


def block_of(rates: Iterable[float], size: float) -> float:
    """The highest rate counts for all kinds together, so that a second kind takes no more of the work."""
    share = min(0.5, max(rates, default=0.0))
    return max(1.0, size * (1 - share) / share) if share > 0 else float(_PLACES)


def in_her_order(user_id: UUID, weights: Mapping[str, float]) -> tuple[str, ...]:
    """By lot, as likely as their weights; the order stays as it is where others come or go."""

    def wait(answer: str) -> tuple[float, bytes]:
        drawn = lot(user_id, answer.encode())
        passed = -log1p(-int.from_bytes(drawn) / _PLACES)  # exponential races: the first to come wins by its weight
        return passed / weights[answer] if weights[answer] > 0 else inf, drawn

    return tuple(sorted(weights, key=wait))


async def _is_annotator(db: AsyncSession, user_id: UUID) -> bool:
    return bool(await db.scalar(select(User.role).where(User.id == user_id)) == UserRole.annotator)


async def _other_units(db: AsyncSession, dataset_id: UUID, user_id: UUID, holds: Mapping[str, int]) -> tuple[int, int]:
    here = (QUEUE.c.dataset_id == dataset_id, QUEUE.c.mixed == 0)
    answered = await db.scalar(
        select(func.count(Response.record_id))
        .join(QUEUE, QUEUE.c.record_id == Response.record_id)
        .where(Response.user_id == user_id, *here)
    )
    held = (*here, QUEUE.c.pending == 1, QUEUE.c.answer.in_(list(holds)), ~is_begun(user_id))
    held_units = await db.scalar(select(func.count()).select_from(QUEUE).where(*held)) if holds else 0
    return int(answered or 0) + int(held_units or 0), int(held_units or 0)


def is_begun(user_id: UUID) -> ColumnElement[bool]:
    return exists().where(Response.record_id == QUEUE.c.record_id, Response.user_id == user_id)


def is_for(user_id: UUID) -> ColumnElement[bool]:
    return or_(QUEUE.c.users.is_(None), QUEUE.c.users.like(f"%{user_id}%"))


async def is_limited(db: AsyncSession, dataset_id: UUID, user_id: UUID, *which: ColumnElement[bool]) -> bool:
    """Whether the user is an annotator, from whom some record with an assignment may be kept, or some of those."""
    assigned = select(QUEUE.c.record_id).where(QUEUE.c.dataset_id == dataset_id, QUEUE.c.assignment.is_not(None))
    return await db.scalar(assigned.where(*which).limit(1)) is not None and await _is_annotator(db, user_id)
