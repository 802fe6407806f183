"""argilla-server 2.8.0 as it comes, on SQLite and a real OpenSearch, to compare our search engine with."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from annotation.embedded.home.folder import read_or_make_secrets
from tests.benchmarks.bare_server import serve_unpatched, unpatched_server
from tests.support.opensearch_server import running_opensearch
from tests.support.places import ROOT

CHECKOUT = ROOT
ENGINE = "opensearch-with-vectors"


@contextlib.contextmanager
def argilla_on_opensearch(folder: Path) -> Iterator[tuple[str, str]]:
    """Its address and the owner's key; everything ends with the block. The test skips where there is no OpenSearch."""
    with running_opensearch(folder) as url:
        settings = {"ARGILLA_SEARCH_ENGINE": ENGINE, "ARGILLA_ELASTICSEARCH": url, "PYTHONPATH": str(CHECKOUT)}
        home = folder / "argilla"
        with unpatched_server(home, script=__file__, settings=settings) as owner:
            yield owner.api_url, read_or_make_secrets(home).owner_api_key


def register_engine() -> None:
    """Register Argilla's own OpenSearch engine, which says `index.knn: false` also where vectors are to be searched.

    OpenSearch 2.19 refuses to map a vector then: "Cannot set modelId or method parameters when index.knn setting is
    false".
    """
    from argilla_server.search_engine import SearchEngine
    from argilla_server.search_engine.opensearch import OpenSearchEngine

    class WithVectors(OpenSearchEngine):  # type: ignore[misc]  # argilla-server has no types
        async def _create_index_request(self, index_name: str, mappings: Any, settings: Any) -> None:
            vectors = any(each.get("type") == "knn_vector" for each in mappings["properties"].values())
            await super()._create_index_request(index_name, mappings, settings | {"index.knn": vectors})

    SearchEngine.register(ENGINE)(WithVectors)


if __name__ == "__main__":
    register_engine()
    serve_unpatched(int(sys.argv[1]))
