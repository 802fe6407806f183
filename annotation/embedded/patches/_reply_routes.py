"""A lead's replies over REST: on the record, to who asked or to all who get it; and where each of a person's own is."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from annotation.campaign.replies import REPLY_PROPERTY, Reply, last_replies, replies_in
from annotation.embedded.patches._routes import serve_first


def serve_replies(get_record: Any) -> None:
    """Give an annotator the replies to her questions, and those that are for all who get a record, without who asked.

    Owners and admins get what anybody does on a record. A stock server answers 404 on both.
    """
    from argilla_server.database import get_async_db
    from argilla_server.models import Dataset, MetadataProperty, User, WorkspaceUser
    from argilla_server.security import auth
    from fastapi import Depends, Security
    from sqlalchemy import select
    from sqlalchemy.ext.asyncio import AsyncSession

    kept = select(MetadataProperty.dataset_id, MetadataProperty.name, MetadataProperty.settings)
    replies = kept.where(MetadataProperty.name.startswith(REPLY_PROPERTY, autoescape=True))

    async def get_replies(
        record_id: UUID,
        db: AsyncSession = Depends(get_async_db),  # noqa: B008  # FastAPI's way
        current_user: User = Security(auth.get_current_user),  # noqa: B008
    ) -> Any:
        record = await get_record(db=db, record_id=record_id, current_user=current_user)
        found = (await db.execute(replies.where(MetadataProperty.dataset_id == record.dataset_id))).all()
        return {"replies": [_shown(each, current_user) for _, each in _readable(found, current_user, str(record_id))]}

    async def list_own_replies(
        db: AsyncSession = Depends(get_async_db),  # noqa: B008
        current_user: User = Security(auth.get_current_user),  # noqa: B008
    ) -> Any:
        hers = select(Dataset.id).join(WorkspaceUser, WorkspaceUser.workspace_id == Dataset.workspace_id)
        of_hers = hers.where(WorkspaceUser.user_id == current_user.id)
        found = (await db.execute(replies.where(MetadataProperty.dataset_id.in_(of_hers)))).all()
        return {
            "replies": [
                {"dataset_id": str(dataset_id), "record": each.external_id, **_shown(each, current_user)}
                for dataset_id, each in _readable(found, current_user)
                if each.user_id == str(current_user.id)
            ]
        }

    serve_first("/citejury/records/{record_id}/replies", get_replies)
    serve_first("/citejury/me/replies", list_own_replies)


def _readable(found: Any, user: Any, record_id: str | None = None) -> Iterator[tuple[UUID, Reply]]:
    """The last reply to each question that the user may read, on one record or on all, with its dataset."""
    for dataset_id in dict.fromkeys(row.dataset_id for row in found):
        here = replies_in((row.name, row.settings) for row in found if row.dataset_id == dataset_id)
        for each in last_replies(here.values()):
            may = not user.is_annotator or each.for_all or each.user_id == str(user.id)
            if may and record_id in (None, each.record_id):
                yield dataset_id, each


def _shown(reply: Reply, user: Any) -> dict[str, Any]:
    """The reply as the user gets it: with the question to who asked it, and to owners and admins."""
    mine = reply.user_id == str(user.id) or not user.is_annotator
    return {"question": reply.question if mine else None, "text": reply.text}
