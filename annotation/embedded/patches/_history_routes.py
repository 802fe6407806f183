"""Our routes to the history of responses: what changed, what was there at a moment, and the end of what was deleted.

For those who may read a dataset's records with all responses, which are owners and admins of the workspace; to erase,
for owners. A stock server answers 404 there.
"""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from annotation.client import AS_OF_PATH
from annotation.embedded.patches._logged_deletions import tell_erased
from annotation.embedded.patches._routes import record_page, serve_first
from annotation.units import HISTORY_PATH, HISTORY_STATE_PATH, PAGE_RECORDS

_PAGE_CHANGES = 500  # more would keep whoever works at the moment waiting


def serve_history(_: Any) -> None:
    """Serve the history of a workspace's responses, and let that of a dataset go that is deleted."""
    from argilla_server.api.policies.v1 import DatasetPolicy, WorkspacePolicy, authorize
    from argilla_server.database import get_async_db
    from argilla_server.errors import ForbiddenOperationError
    from argilla_server.models import User
    from argilla_server.security import auth
    from fastapi import Depends, HTTPException, Query, Security
    from fastapi.responses import Response
    from sqlalchemy.ext.asyncio import AsyncSession

    from annotation.embedded.history import pages

    async def named_workspace(db: AsyncSession, name: str, current_user: User) -> UUID:
        # Whoever may not read is told the same of a workspace that is there and of one that is not.
        if current_user.is_annotator:
            raise ForbiddenOperationError
        found = await pages.find_workspace(db, name)
        if found is None:
            if not current_user.is_owner:
                raise ForbiddenOperationError
            raise HTTPException(404, "There is no such workspace, and no history of one.")
        await authorize(current_user, DatasetPolicy.create(found))
        return found

    async def list_changes(
        workspace: str,
        after: int = Query(default=0, ge=0, lt=1 << 63),
        limit: int = Query(default=_PAGE_CHANGES, ge=1, le=_PAGE_CHANGES),
        db: AsyncSession = Depends(get_async_db),  # noqa: B008  # FastAPI's way
        current_user: User = Security(auth.get_current_user),  # noqa: B008
    ) -> Any:
        workspace_id = await named_workspace(db, workspace, current_user)
        page = await pages.changes_page(db, workspace_id, after, limit)
        return Response(page, media_type="application/json")

    async def tell_state(
        workspace: str,
        moment: str,
        db: AsyncSession = Depends(get_async_db),  # noqa: B008
        current_user: User = Security(auth.get_current_user),  # noqa: B008
    ) -> Any:
        workspace_id = await named_workspace(db, workspace, current_user)
        state = {
            "begins": (await pages.read_begin(db)).replace(tzinfo=UTC).isoformat(),
            "now": datetime.now(UTC).isoformat(),
            "lost": await pages.count_lost(db, workspace_id, _read_moment(moment)),
        }
        return Response(json.dumps(state), media_type="application/json")

    async def erase_history(
        workspace: str,
        dataset_id: UUID | None = None,
        db: AsyncSession = Depends(get_async_db),  # noqa: B008
        current_user: User = Security(auth.get_current_user),  # noqa: B008
    ) -> Any:
        workspace_id = await named_workspace(db, workspace, current_user)
        await authorize(current_user, WorkspacePolicy.delete)
        deleted = await pages.deleted_datasets(db, workspace_id)
        if dataset_id is not None and dataset_id not in deleted:
            raise HTTPException(404, "No such dataset was deleted there, or its history is gone.")
        erased = deleted if dataset_id is None else {dataset_id: deleted[dataset_id]}
        for each in erased:
            await pages.erase(db, each, current_user.id)
        await db.commit()
        tell_erased(erased.values())
        return Response(status_code=204)

    serve_first(HISTORY_PATH, list_changes, response_class=Response)
    serve_first(HISTORY_PATH, erase_history, "DELETE", response_class=Response)
    serve_first(HISTORY_STATE_PATH, tell_state, response_class=Response)


def serve_past_responses(list_records_with_all_responses: Any) -> None:
    """Serve a dataset's records with the responses of an earlier moment."""
    from argilla_server.api.policies.v1 import authorize
    from argilla_server.database import get_async_db
    from argilla_server.models import Dataset, User
    from argilla_server.security import auth
    from fastapi import Depends, HTTPException, Query, Security
    from fastapi.responses import Response
    from sqlalchemy.ext.asyncio import AsyncSession

    from annotation.embedded.history import pages

    async def list_records_at(
        dataset_id: UUID,
        moment: str,
        offset: int = Query(default=0, ge=0, lt=1 << 63),
        limit: int = Query(default=500, ge=1, le=PAGE_RECORDS),
        db: AsyncSession = Depends(get_async_db),  # noqa: B008
        current_user: User = Security(auth.get_current_user),  # noqa: B008
    ) -> Any:
        dataset = await Dataset.get_or_raise(db, dataset_id)
        await authorize(current_user, list_records_with_all_responses(dataset))
        at = _read_moment(moment)
        if at < await pages.read_begin(db):
            raise HTTPException(422, "The history of responses begins later than `moment`.")
        page = await record_page(db, dataset_id, offset, limit, {"responses"}, at)
        return Response(page, media_type="application/json")

    serve_first(AS_OF_PATH, list_records_at, response_class=Response)


def _read_moment(written: str) -> datetime:
    """The moment, UTC without offset, as the database keeps it.

    Raises:
        HTTPException: it is none.
    """
    from fastapi import HTTPException

    try:
        moment = datetime.fromisoformat(written)
        return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    except (ValueError, OverflowError) as error:
        raise HTTPException(422, "`moment` is no time in ISO 8601.") from error
