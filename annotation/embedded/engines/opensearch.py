"""OpenSearch as the search engine, with citejury's queue and counts, which come from the database.

Argilla's own engine finds the records of texts, filters and sorts. What annotators are given next, and how far they
are, it knows only by and by and not by user under overlap; those answers come from Argilla's tables, as they do
without OpenSearch. Its indexes are filled from the database, which stays what counts.
"""

import asyncio
import sys
from typing import Any
from uuid import UUID

from argilla_server.cli.search_engine.reindex import Reindexer
from argilla_server.database import AsyncSessionLocal, async_engine
from argilla_server.enums import DatasetStatus
from argilla_server.models import Dataset
from argilla_server.search_engine import SearchEngine
from argilla_server.search_engine.commons import es_index_name_for_dataset
from argilla_server.search_engine.opensearch import OpenSearchEngine
from argilla_server.settings import settings
from sqlalchemy import select

from annotation.embedded.engines.sql import SqlSearchEngine, is_closed, named_record
from annotation.embedded.queue.mixed import is_limited
from annotation.embedded.queue.page import filters_beside_the_queue
from annotation.embedded.search.json_sql import SearchSession
from pipeline.errors import ServerStartError

_TRIES = 120
_PAUSE_SECONDS = 1.0


class OpenSearchBesideDatabase(OpenSearchEngine):  # type: ignore[misc]  # argilla-server has no types
    """Argilla's engine, but for the queue and the counts."""

    get_dataset_progress = SqlSearchEngine.get_dataset_progress
    get_dataset_user_progress = SqlSearchEngine.get_dataset_user_progress

    async def search(
        self,
        dataset: Any,
        query: Any = None,
        filter: Any = None,
        sort: Any = None,
        offset: int = 0,
        limit: int = 100,
        user_id: UUID | None = None,
    ) -> Any:
        """The records of one page and the number of all that match.

        A queue without a text query, and a user's search for a record's whole id, are citejury's; so is whatever an
        annotator searches where records are for named users, or mixed in among the others, or behind a practice.
        """
        queue = user_id is not None and not sort and not query and filters_beside_the_queue(filter) is not None
        named = user_id is not None and await named_record(dataset, query, user_id) is not None
        kept = user_id is not None and (
            await _is_limited(dataset, user_id) or await is_closed(dataset, filter, user_id)
        )
        engine = SqlSearchEngine().search if queue or named or kept else super().search
        return await engine(
            dataset=dataset, query=query, filter=filter, sort=sort, offset=offset, limit=limit, user_id=user_id
        )

    def _configure_index_settings(self) -> dict[str, Any]:
        """Settings of a new index, with k-NN: OpenSearch 2.19 takes no vectors without, and it cannot come later."""
        return {**super()._configure_index_settings(), "index.knn": True}


async def _is_limited(dataset: Any, user_id: UUID | None) -> bool:
    """Whether something of the dataset is kept from the user."""
    if user_id is None:
        return False
    async with SearchSession() as db:
        return await is_limited(db, dataset.id, user_id)


async def fill_indexes(anew: bool) -> None:
    """Make OpenSearch's indexes equal to the database: those that hold another number of records, or all of them.

    Raises:
        ServerStartError: OpenSearch does not answer.
    """
    async with SearchEngine.get_by_name(settings.search_engine) as engine, AsyncSessionLocal() as db:
        await _wait_for_opensearch(engine, settings.elasticsearch)
        for dataset in await db.scalars(select(Dataset).where(Dataset.status == DatasetStatus.ready)):
            if not anew and await _count_indexed(engine, dataset) == await Reindexer.count_dataset_records(db, dataset):
                continue
            sys.stderr.write(f"Filling OpenSearch with the records of {dataset.name!r}.\n")
            fresh = await Reindexer.reindex_dataset(db, engine, dataset.id)
            async for _ in Reindexer.reindex_dataset_records(db, engine, fresh):
                pass
    await async_engine.dispose()


async def _wait_for_opensearch(engine: Any, url: str) -> None:
    """Return once OpenSearch is there; it may start later than we do.

    Raises:
        ServerStartError: it does not come.
    """
    for _ in range(_TRIES):
        if await engine.ping():
            return
        await asyncio.sleep(_PAUSE_SECONDS)
    raise ServerStartError(f"OpenSearch does not answer at {url}; see what it says itself.")


async def _count_indexed(engine: Any, dataset: Any) -> int:
    """Number of the dataset's records in OpenSearch; -1 without an index."""
    index = es_index_name_for_dataset(dataset)
    if not await engine.client.indices.exists(index=index):
        return -1
    return int((await engine.client.count(index=index))["count"])
