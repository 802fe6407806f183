"""What an annotator's start page shows: her lists in their order, how far she is in each, and their guidelines."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from annotation.campaign.datasets import is_carrying, jury_in, newest_versions, place_in_order, series_of
from annotation.embedded.patches._practice_routes import standing_as_json
from annotation.embedded.patches._routes import serve_first
from annotation.status.practice import Standing

_HEADING = re.compile(r"^# +(.+)$", re.MULTILINE)


def serve_start(get_dataset: Any) -> None:
    """List what an annotator is to work on, in one answer, and give each dataset's guidelines as HTML.

    Her lists are the newest published versions in her languages that hold a record, calibration first. Owners and
    admins, who keep Argilla's own home, get null instead of lists.
    """
    from argilla_server.database import get_async_db
    from argilla_server.models import User
    from argilla_server.security import auth
    from fastapi import Depends, Security
    from sqlalchemy.ext.asyncio import AsyncSession

    async def list_own_work(
        db: AsyncSession = Depends(get_async_db),  # noqa: B008  # FastAPI's way
        current_user: User = Security(auth.get_current_user),  # noqa: B008
    ) -> Any:
        return {"lists": await _lists(db, current_user) if current_user.is_annotator else None}

    async def get_guidelines(
        dataset_id: UUID,
        db: AsyncSession = Depends(get_async_db),  # noqa: B008
        current_user: User = Security(auth.get_current_user),  # noqa: B008
    ) -> Any:
        from annotation.pages import markdown_to_html

        dataset = await get_dataset(db=db, dataset_id=dataset_id, current_user=current_user)
        return {"html": markdown_to_html(dataset.guidelines or "")}

    serve_first("/citejury/me/work", list_own_work)
    serve_first("/citejury/datasets/{dataset_id}/guidelines", get_guidelines)


async def _lists(db: Any, user: Any) -> list[dict[str, Any]]:
    """Her lists in order of the work; datasets that are none of ours come last."""
    from argilla_server.enums import DatasetStatus
    from argilla_server.models import Dataset, MetadataProperty, WorkspaceUser
    from sqlalchemy import select

    from annotation.embedded.queue.own_work import own_work, with_records
    from annotation.embedded.queue.practice import closing_practice, is_practice, standing_in

    member = (WorkspaceUser.workspace_id == Dataset.workspace_id, WorkspaceUser.user_id == user.id)
    published = select(Dataset).where(Dataset.status == DatasetStatus.ready).join(WorkspaceUser, member[0])
    datasets = (await db.scalars(published.where(member[1]))).all()
    filled = await with_records(db, [dataset.id for dataset in datasets])
    columns = select(MetadataProperty.dataset_id, MetadataProperty.name, MetadataProperty.settings)
    properties = (await db.execute(columns.where(MetadataProperty.dataset_id.in_(filled)))).all()
    juries = {
        each: jury_in((row.name, row.settings) for row in properties if row.dataset_id == each) for each in filled
    }
    chosen = _chosen(
        [_described(dataset, user.username in (juries.get(dataset.id) or ())) for dataset in datasets], filled
    )
    by_id = {dataset.id: dataset for dataset in datasets}
    work = await own_work(db, [by_id[each["id"]] for each in chosen], user.id)
    practices = [each["id"] for each in chosen if is_practice(by_id[each["id"]])]
    standings = {each: await standing_in(db, each, user.id) for each in practices}
    closed = {
        each["id"]: await closing_practice(db, by_id[each["id"]], user.id) if practices else None for each in chosen
    }
    return [_list_of(each, work[each["id"]], standings.get(each["id"]), closed[each["id"]]) for each in chosen]


def _described(dataset: Any, is_hers: bool) -> dict[str, Any]:
    """The dataset as `annotation.campaign.datasets` knows it, with its workspace, heading and whether she is for it."""
    heading = _HEADING.search(dataset.guidelines or "")
    return {
        "id": dataset.id,
        "name": dataset.name,
        "metadata": dataset.metadata_,
        "workspace": dataset.workspace_id,
        "heading": heading[1].strip() if heading else "",
        "is_hers": is_hers,
    }


def _chosen(described: Sequence[dict[str, Any]], filled: set[UUID]) -> list[dict[str, Any]]:
    """Those that she works on, in order of the work.

    Where the campaign says in which datasets of a workspace she labels, those; elsewhere all.
    """
    found: list[dict[str, Any]] = []
    for workspace in dict.fromkeys(each["workspace"] for each in described):
        here = [each for each in described if each["workspace"] == workspace and not is_carrying(each)]
        newest: Iterable[Mapping[str, Any]] = newest_versions(here).values()
        ours = [each for each in here if any(each is one for one in newest)]
        hers = [each for each in ours if each["is_hers"]]
        found += hers or ours
        found += [each for each in here if series_of(each) is None]
    return sorted((each for each in found if each["id"] in filled), key=_place)


def _place(described: Mapping[str, Any]) -> tuple[Any, ...]:
    """What the lists are sorted by."""
    series = series_of(described)
    return (0, *place_in_order(series)) if series else (1, described["name"])


def _list_of(
    described: Mapping[str, Any], work: Any, standing: Standing | None, closed_by: UUID | None
) -> dict[str, Any]:
    """One list as the page gets it; `back` is a moment in UTC, `closed_by` the list that has to be passed first."""
    series = series_of(described)
    back = None if work.back is None else datetime.fromtimestamp(work.back, UTC).isoformat()
    return {
        "id": str(described["id"]),
        "name": described["name"],
        "heading": described["heading"],
        "task": series.task if series else None,
        "locale": series.locale if series else None,
        "round": series.round_name if series else None,
        "is_hers": described["is_hers"],
        "done": work.done,
        "total": work.total,
        "drafts": work.drafts,
        "waiting": 0 if closed_by else work.waiting,
        "with_others": 0 if closed_by else work.with_others,
        "back": None if closed_by else back,
        "pace": work.pace,
        "practice": standing and standing_as_json(standing),
        "closed_by": closed_by and str(closed_by),
    }
