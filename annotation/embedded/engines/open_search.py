"""OpenSearch as the search engine, with citejury's queue and counts, which come from the database.

Argilla's own engine finds the records of texts, filters and sorts. What annotators are given next, and how far they
are, it knows only by and by and not by user under overlap; those answers come from Argilla's tables, as they do
without OpenSearch. Importing this module registers it in the place of Argilla's.
"""

from typing import Any
from uuid import UUID

from argilla_server.constants import SEARCH_ENGINE_OPENSEARCH
from argilla_server.search_engine import SearchEngine
from argilla_server.search_engine.opensearch import OpenSearchEngine

from annotation.embedded.engines.search import SqlSearchEngine
from annotation.embedded.queue.page import filters_beside_the_queue

DATABASE = SqlSearchEngine()


class OpenSearchBesideDatabase(OpenSearchEngine):  # type: ignore[misc]  # argilla-server has no types
    """Argilla's engine, but for the queue and the counts."""

    async def get_dataset_progress(self, dataset: Any) -> dict[str, int]:
        """`total` and the number of records by status; empty for a draft."""
        return await DATABASE.get_dataset_progress(dataset)

    async def get_dataset_user_progress(self, dataset: Any, user: Any) -> dict[str, int]:
        """`total` records and the number of this user's responses by status; empty for a draft."""
        return await DATABASE.get_dataset_user_progress(dataset, user)

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
        """The records of one page and the number of all that match; a queue without a text query is citejury's."""
        queue = user_id is not None and not sort and not query and filters_beside_the_queue(filter) is not None
        engine = DATABASE.search if queue else super().search
        return await engine(
            dataset=dataset, query=query, filter=filter, sort=sort, offset=offset, limit=limit, user_id=user_id
        )

    def _configure_index_settings(self) -> dict[str, Any]:
        """Settings of a new index, with k-NN: OpenSearch 2.19 takes no vectors without, and it cannot come later."""
        return {**super()._configure_index_settings(), "index.knn": True}


SearchEngine.register(SEARCH_ENGINE_OPENSEARCH)(OpenSearchBesideDatabase)
