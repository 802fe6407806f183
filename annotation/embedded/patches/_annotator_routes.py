"""Routes on which an annotator gets her own part where argilla-server's are about everybody."""

from typing import Any
from uuid import UUID

from annotation.embedded.patches._routes import serve_first


def serve_own_progress(get_dataset_progress: Any) -> None:
    """Give an annotator who asks how far a dataset is how far she is herself."""
    from argilla_server.api.policies.v1 import DatasetPolicy, authorize
    from argilla_server.api.schemas.v1.datasets import DatasetProgress
    from argilla_server.database import get_async_db
    from argilla_server.models import Dataset, User
    from argilla_server.search_engine import SearchEngine, get_search_engine
    from argilla_server.security import auth
    from fastapi import Depends, Security
    from sqlalchemy.ext.asyncio import AsyncSession

    from annotation.embedded.queue.own_work import own_work

    async def get_own_progress(
        dataset_id: UUID,
        db: AsyncSession = Depends(get_async_db),  # noqa: B008  # FastAPI's way
        search_engine: SearchEngine = Depends(get_search_engine),  # noqa: B008
        current_user: User = Security(auth.get_current_user),  # noqa: B008
    ) -> Any:
        if not current_user.is_annotator:
            return await get_dataset_progress(
                dataset_id=dataset_id, db=db, search_engine=search_engine, current_user=current_user
            )
        dataset = await Dataset.get_or_raise(db, dataset_id)
        await authorize(current_user, DatasetPolicy.get(dataset))
        work = (await own_work(db, [dataset], current_user.id))[dataset_id]
        users = [current_user] if work.done + work.drafts else []
        return DatasetProgress(total=work.total, completed=work.done, pending=work.total - work.done, users=users)

    serve_first(
        "/datasets/{dataset_id}/progress",
        get_own_progress,
        response_model=DatasetProgress,
        response_model_exclude_unset=True,
    )


def serve_own_part_of_users(get_dataset_users_progress: Any) -> None:
    """Give an annotator who asks what each person did in a dataset the row that is her own."""
    from argilla_server.api.schemas.v1.datasets import UsersProgress
    from argilla_server.database import get_async_db
    from argilla_server.models import User
    from argilla_server.security import auth
    from fastapi import Depends, Security
    from sqlalchemy.ext.asyncio import AsyncSession

    async def get_own_part(
        dataset_id: UUID,
        db: AsyncSession = Depends(get_async_db),  # noqa: B008  # FastAPI's way
        current_user: User = Security(auth.get_current_user),  # noqa: B008
    ) -> Any:
        everybody = await get_dataset_users_progress(dataset_id=dataset_id, db=db, current_user=current_user)
        if current_user.is_annotator:
            everybody.users = [user for user in everybody.users if user.username == current_user.username]
        return everybody

    serve_first("/datasets/{dataset_id}/users/progress", get_own_part, response_model=UsersProgress)
