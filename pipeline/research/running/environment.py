"""What a run works with, opened from its options: the store, the web, a search provider and a model."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

from pipeline.errors import SettingsError
from pipeline.models.asking import Model, refuse_unknown_price
from pipeline.models.structured import Asker, accept_body, choose_model
from pipeline.providers.http.client import ApiClient
from pipeline.research.running.options import EXTRACTIVE, ResearchOptions
from pipeline.research.running.research_run import SILENT, Progress
from pipeline.research.running.runs import STORE
from pipeline.research.search import SearchProvider, search_provider
from pipeline.schema import Price
from pipeline.sources.fetching.fetch import Fetcher, FetchPolicy
from pipeline.sources.fetching.guard import guarded_client
from pipeline.sources.reading.extractor import Extractor
from pipeline.sources.store import Store, open_store


class Environment(NamedTuple):
    """What a run works with."""

    store: Store
    """Where pages, traces and runs are kept."""
    fetcher: Fetcher
    """Fetches pages; unused where the run is offline."""
    extractor: Extractor
    """Turns pages into text."""
    search: SearchProvider
    """Who is asked for pages."""
    model: Model | None = None
    """Who plans, reads and writes; None where the pages' own words do. The run keeps its answers and its budget."""
    report: Progress = SILENT
    """Who hears of it."""


@asynccontextmanager
async def open_environment(
    options: ResearchOptions,
    variables: Mapping[str, str],
    *,
    allowed: Iterable[tuple[str, int]] = (),
    prices: Mapping[str, Price] | None = None,
    search_url: str = "",
    report: Progress = SILENT,
) -> AsyncIterator[Environment]:
    """All that the options name, closed when the block ends; `variables` of the environment hold the keys.

    `allowed` are private addresses that pages may lead to; `search_url` is where tavily and brave are asked instead.

    Raises:
        InputError: the search provider is none (any more), or a limit of cost cannot be held for want of a price.
        SettingsError: a key is missing, or cannot be used.
        NotInstalledError: a library of an extra is missing.
        OutputError: the store cannot be opened.
    """
    async with AsyncExitStack() as stack:
        store = stack.enter_context(open_store(options.runs_dir / STORE))
        search = search_provider(
            options.search,
            documents=options.documents,
            store=store,
            environment=variables,
            base_url=search_url,
            tell=report.tell,
        )
        model = await open_model(options, variables, prices or {}, stack)
        client = await stack.enter_async_context(guarded_client(allowed, connections=options.workers))
        policy = FetchPolicy(concurrency=options.workers, max_seconds=options.fetch_timeout_s)
        fetcher = await stack.enter_async_context(Fetcher(client, policy))
        extractor = await stack.enter_async_context(Extractor())
        yield Environment(store, fetcher, extractor, search, model, report)


async def open_model(
    options: ResearchOptions, variables: Mapping[str, str], prices: Mapping[str, Price], stack: AsyncExitStack
) -> Model | None:
    """The model; None for `extractive`.

    Raises:
        SettingsError: there is no key, or the address is none that a key may be sent to.
        InputError: a limit of cost cannot be held for want of a price.
    """
    if options.model == EXTRACTIVE:
        return None
    try:
        chosen = choose_model(variables, model=options.model, base_url=options.base_url)
    except SettingsError as error:
        raise SettingsError(f"{error} With `--model {EXTRACTIVE}` neither a server nor a key is needed.") from error
    refuse_unknown_price(chosen, prices, options.limits.cost)
    client = await stack.enter_async_context(ApiClient(chosen.endpoint, None, options.workers, accept_body))
    return Model(Asker(client, chosen), {}, prices)
