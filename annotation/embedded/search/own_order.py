"""Each annotator's own order of records: by lot, the same each time, and cheap however many records there are.

A record's id is random, so its first byte deals the records into 256 heaps of about the same size. A user has the heaps
in an order of her own and the records of each heap too. A page then needs the heaps that it is in, and no other record.
"""

import hashlib
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from argilla_server.models import Record
from sqlalchemy import ColumnElement, select
from sqlalchemy.ext.asyncio import AsyncSession

HEAPS = 256
FEW = 1000  # with four records in a heap, one query for all of them is cheaper than one for each heap


def lot(user_id: UUID, drawn: bytes) -> bytes:
    """What the user drew for a heap or a record: the same each time."""
    return hashlib.blake2b(drawn, key=user_id.bytes, digest_size=8).digest()


def place_for(user_id: UUID, record_id: UUID) -> tuple[bytes, bytes]:
    """Where a record stands in this user's own order."""
    return lot(user_id, record_id.bytes[:1]), lot(user_id, record_id.bytes)


def heaps_of(user_id: UUID) -> list[ColumnElement[bool]]:
    """A condition for each heap of records, in the user's own order."""
    firsts = sorted((bytes([number]) for number in range(HEAPS)), key=lambda first: lot(user_id, first))
    return [Record.id.between(UUID(bytes=first + bytes(15)), UUID(bytes=first + b"\xff" * 15)) for first in firsts]


async def own_page(
    db: AsyncSession, user_id: UUID, wanted: Sequence[ColumnElement[bool]], total: int, offset: int, limit: int
) -> list[UUID]:
    """The ids of one page of the records that meet the conditions, of which there are `total`, in the user's order."""

    async def in_order(*heap: Any) -> list[UUID]:
        found = await db.scalars(select(Record.id).where(*wanted, *heap))
        return sorted(found, key=lambda record_id: place_for(user_id, record_id))

    if total <= FEW:
        return (await in_order())[offset : offset + limit]
    page: list[UUID] = []
    for heap in heaps_of(user_id):
        found = await in_order(heap)
        page += found[offset : offset + limit - len(page)]
        offset = max(0, offset - len(found))
        if len(page) == limit:
            break
    return page
