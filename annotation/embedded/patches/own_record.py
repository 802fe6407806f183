"""Argilla's leak, closed: an annotator who asks for one record gets her own responses and the metadata shown to her.

argilla-server 2.8.0 returns every annotator's responses and all metadata at `GET /api/v1/records/{id}`, though its
search endpoint for annotators does not (design 6).
"""

from typing import Any
from uuid import UUID

PATH = "/records/{record_id}"


def serve_own_record_only() -> None:
    """Put our route before argilla-server's own; what owners and admins get stays as it is."""
    from argilla_server.api.handlers.v1.records import get_record
    from argilla_server.api.routes import api_v1
    from argilla_server.api.schemas.v1.records import Record as RecordSchema
    from argilla_server.database import get_async_db
    from argilla_server.models import User
    from argilla_server.security import auth
    from fastapi import Depends, Security
    from fastapi.encoders import jsonable_encoder
    from fastapi.responses import JSONResponse
    from sqlalchemy.ext.asyncio import AsyncSession

    async def get_own_record(
        record_id: UUID,
        db: AsyncSession = Depends(get_async_db),  # noqa: B008  # FastAPI's way
        current_user: User = Security(auth.get_current_user),  # noqa: B008
    ) -> Any:
        record = await get_record(db=db, record_id=record_id, current_user=current_user)
        whole = RecordSchema.model_validate(record)
        if not current_user.is_annotator:
            return JSONResponse(jsonable_encoder(whole))
        own = [response for response in whole.responses or [] if response.user_id == current_user.id]
        shown = await names_shown_to(current_user, record.dataset_id, db)
        metadata = {name: value for name, value in (whole.metadata or {}).items() if name in shown}
        return JSONResponse(jsonable_encoder(whole.model_copy(update={"responses": own, "metadata": metadata})))

    # A finished response, because the schema's own validator reads database rows only.
    api_v1.get(PATH, response_class=JSONResponse)(get_own_record)
    api_v1.router.routes.insert(0, api_v1.router.routes.pop())


async def names_shown_to(user: Any, dataset_id: UUID, db: Any) -> set[str]:
    """Names of the dataset's metadata properties that this user's role may see."""
    from argilla_server.models import MetadataProperty
    from sqlalchemy import select

    properties = await db.scalars(select(MetadataProperty).where(MetadataProperty.dataset_id == dataset_id))
    return {each.name for each in properties if user.role in each.allowed_roles}
