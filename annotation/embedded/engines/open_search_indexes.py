"""OpenSearch beside PostgreSQL: filled from the database, which stays what counts."""

import asyncio
import sys
from typing import Any

from pipeline.errors import ServerStartError

TRIES = 120
PAUSE_SECONDS = 1.0


async def fill_indexes(anew: bool) -> None:
    """Make OpenSearch's indexes equal to the database: those that hold another number of records, or all of them.

    Nothing where another engine is named.

    Raises:
        ServerStartError: OpenSearch does not answer.
    """
    from argilla_server.cli.search_engine.reindex import Reindexer
    from argilla_server.database import AsyncSessionLocal, async_engine
    from argilla_server.enums import DatasetStatus
    from argilla_server.models import Dataset
    from argilla_server.search_engine import SearchEngine
    from argilla_server.settings import settings
    from sqlalchemy import select

    from annotation.embedded.engines.database import register_engine

    if not settings.search_engine_is_opensearch:
        return
    register_engine()
    async with SearchEngine.get_by_name(settings.search_engine) as engine, AsyncSessionLocal() as db:
        await wait_until_it_answers(engine, settings.elasticsearch)
        for dataset in await db.scalars(select(Dataset).where(Dataset.status == DatasetStatus.ready)):
            if not anew and await indexed(engine, dataset) == await Reindexer.count_dataset_records(db, dataset):
                continue
            sys.stderr.write(f"Filling OpenSearch with the records of {dataset.name!r}.\n")
            fresh = await Reindexer.reindex_dataset(db, engine, dataset.id)
            async for _ in Reindexer.reindex_dataset_records(db, engine, fresh):
                pass
    await async_engine.dispose()


async def wait_until_it_answers(engine: Any, url: str) -> None:
    """Return once OpenSearch is there; it may start later than we do.

    Raises:
        ServerStartError: it does not come.
    """
    for _ in range(TRIES):
        if await engine.ping():
            return
        await asyncio.sleep(PAUSE_SECONDS)
    raise ServerStartError(f"OpenSearch does not answer at {url}; see what it says itself.")


async def indexed(engine: Any, dataset: Any) -> int:
    """Number of the dataset's records in OpenSearch; -1 without an index."""
    from argilla_server.search_engine.commons import es_index_name_for_dataset

    index = es_index_name_for_dataset(dataset)
    if not await engine.client.indices.exists(index=index):
        return -1
    return int((await engine.client.count(index=index))["count"])
