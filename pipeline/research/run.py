"""One run under way: what it works with, and its stages begun, kept, logged and traced, and skipped where done."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

from pipeline.core.errors import CitejuryError, InputError, ProviderError, SettingsError
from pipeline.core.schema import Price
from pipeline.core.terminal import stopping_on_signals
from pipeline.models.asking import Model, refuse_unknown_price
from pipeline.models.structured import Asker, Spent, accept_body
from pipeline.providers import choose_model
from pipeline.providers.http.client import ApiClient, waiting
from pipeline.providers.http.failure import redact
from pipeline.research.artefacts import RunFolder, StageDetails, StageEvent
from pipeline.research.contracts import ERROR_CODES, KINDS, ErrorCode, Failure, Payload, SearchName, put_trace
from pipeline.research.documents import LocalSearch, refuse_missing
from pipeline.research.journal import Journal
from pipeline.research.options import EXTRACTIVE, ResearchOptions
from pipeline.research.runs import STORE
from pipeline.research.search import DuckDuckGo, SearchApi, SearchProvider, brave, tavily
from pipeline.research.values import Stage
from pipeline.sources.extract import Extractor
from pipeline.sources.fetch import Fetcher, FetchPolicy
from pipeline.sources.guard import guarded_client
from pipeline.sources.store import Store, open_store

Value = TypeVar("Value")


class Progress(NamedTuple):
    """How the one who waits hears of a run."""

    begin: Callable[[Stage, int], None] = lambda stage, round_: None
    step: Callable[[int, int], None] = lambda done, total: None
    end: Callable[[Stage, int, str], None] = lambda stage, round_, words: None
    """A pass of a stage is done, also one that was done before; what came of it in a few words."""
    spend: Callable[[Spent], None] = lambda spent: None
    tell: Callable[[str], None] = lambda line: None


SILENT = Progress()


class Stopped(CitejuryError):
    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"The run was stopped by {name}.")


class ResearchRun:
    """The stages of one run. A stage is done once its result is in the journal; the log says so a moment later."""

    def __init__(self, folder: RunFolder, journal: Journal, progress: Progress) -> None:
        self.folder = folder
        self.journal = journal
        self.progress = progress
        self.store: Store | None = None
        self.stopped = ""
        self.asking_model = False
        self.notes: list[str] = []
        self.logged = {
            (event.stage, event.details.round or 1) for event in folder.read_log() if event.status == "completed"
        }

    async def run_stage(
        self,
        stage: Stage,
        kind: type[Value],
        work: Callable[[], Awaitable[Value]],
        settle: Callable[[Value], None] = lambda value: None,
        round_: int = 1,
        words: Callable[[Value], str] = lambda value: "",
        *,
        asks_model: bool = False,
    ) -> Value:
        """What the stage gives, from the journal where it is done.

        `settle` writes what follows from the result: twice is the same as once. `words` says what came of it. A signal
        lets a stage that `asks_model` come to its end, so that paid answers are kept.
        """
        try:
            if (stage, round_) not in self.journal.stages:
                self._log(stage, round_, "started", StageDetails())
                self.progress.begin(stage, round_)
                self.asking_model = asks_model
                value = await work()
                self.asking_model = False
                if self.stopped:
                    raise Stopped(self.stopped)
                self.journal.keep_stage(stage, round_, value, kind, tuple(self.notes))
            value = self.journal.stage_value(stage, round_, kind)
            self.notes[:] = self.journal.stages[stage, round_].notes
            if (stage, round_) not in self.logged:
                settle(value)
                self._log(stage, round_, "completed", StageDetails(success=True))
        except BaseException as error:
            self._log_failure(stage, round_, error)
            raise
        self.progress.end(stage, round_, words(value))
        return value

    def _log(self, stage: Stage, round_: int, status: Any, details: StageDetails) -> None:
        if round_ > 1:
            details = StageDetails(**details.model_dump(exclude_unset=True), round=round_)
        now, run_id = datetime.now(UTC), self.folder.run_id
        self.folder.append_log(StageEvent(timestamp=now, run_id=run_id, stage=stage, status=status, details=details))

    def _log_failure(self, stage: Stage, round_: int, error: BaseException) -> None:
        """Of an error that is not ours the kind alone is named: its words may be a page's."""
        words = redact(str(error))[:500] if isinstance(error, CitejuryError) else type(error).__name__
        if self.stopped:
            words = f"stopped by {self.stopped}; the same command goes on"
        self._log(stage, round_, "failed", StageDetails(success=False, error=words))
        if self.store and not self.stopped:
            code: ErrorCode = "INVALID_INPUT" if isinstance(error, InputError) else "INTERNAL_ERROR"
            if isinstance(error, ProviderError):
                code = ERROR_CODES.get(error.kind, "PROVIDER_UNAVAILABLE")
            failure = Failure(code=code, message=words, category=stage, retried=False)
            put_trace(self.store, self.folder.run_id, failure)

    @contextmanager
    def hearing_signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM stop the run (`Stopped`); answers under way are waited for, until a second signal."""
        task = asyncio.current_task()
        if task is None:
            yield
            return
        try:
            with stopping_on_signals(partial(self._stop, task=task)):
                yield
        except asyncio.CancelledError:
            if not self.stopped:
                raise
            task.uncancel()
            raise Stopped(self.stopped) from None

    def _stop(self, name: str, task: "asyncio.Task[Any]") -> None:
        again, self.stopped = bool(self.stopped), name
        if again or not self.asking_model:
            task.cancel()
            return
        words = "Ctrl-C again" if name == "SIGINT" else "a second signal"
        self.progress.tell(f"Stopping: answers under way are waited for and kept; {words} gives them up.")


def put_new_traces(store: Store, run_id: str, payloads: Iterable[Payload]) -> None:
    """Add those of the events that the run's trace does not hold yet, so that a resume tells nothing twice."""
    held = {(event.kind, repr(sorted(event.payload.items()))) for event in store.events(run_id)}
    for payload in payloads:
        shown = payload.model_dump(mode="json", exclude_none=True)
        if (KINDS[type(payload)], repr(sorted(shown.items()))) not in held:
            put_trace(store, run_id, payload)


class Environment(NamedTuple):
    store: Store
    fetcher: Fetcher
    extractor: Extractor
    search: SearchProvider
    model: Model | None = None
    """Who plans, reads and writes; None where the pages' own words do. The run keeps its answers and its budget."""
    report: Progress = SILENT


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
    if options.search == "local":
        refuse_missing(options.documents)  # before the store is brought up to date
    async with AsyncExitStack() as stack:
        store = stack.enter_context(open_store(options.runs_dir / STORE))
        search = search_provider(options.search, store, variables, options.documents, search_url, report.tell)
        model = await open_model(options, variables, prices or {}, stack, report.tell)
        client = await stack.enter_async_context(guarded_client(allowed, connections=options.workers))
        policy = FetchPolicy(concurrency=options.workers, max_seconds=options.fetch_timeout_s)
        fetcher = await stack.enter_async_context(Fetcher(client, policy))
        extractor = await stack.enter_async_context(Extractor())
        yield Environment(store, fetcher, extractor, search, model, report)


async def open_model(
    options: ResearchOptions,
    variables: Mapping[str, str],
    prices: Mapping[str, Price],
    stack: AsyncExitStack,
    tell: Callable[[str], None] = SILENT.tell,
) -> Model | None:
    if options.model == EXTRACTIVE:
        return None
    try:
        chosen = choose_model(variables, model=options.model, base_url=options.base_url)
    except SettingsError as error:
        raise SettingsError(f"{error} With `--model {EXTRACTIVE}` neither a server nor a key is needed.") from error
    refuse_unknown_price(chosen, prices, options.limits.cost)
    client = ApiClient(chosen.endpoint, None, options.workers, accept_body, waits=waiting(tell))
    await stack.enter_async_context(client)
    return Model(Asker(client, chosen), {}, prices)


def search_provider(
    name: str,
    store: Store,
    environment: Mapping[str, str],
    documents: Path | None = None,
    base_url: str = "",
    tell: Callable[[str], None] = lambda line: None,
) -> SearchProvider:
    """The provider of this name, not asked yet.

    `local` searches the folder `documents`, or every page that the store holds where none is named. `base_url` is where
    tavily and brave are asked instead of their own address; `tell` hears of documents that are left out.
    """
    if name == "local":
        return LocalSearch(documents, store, tell)
    if documents is not None:
        raise InputError(f"Documents are searched by the provider `local`; {name!r} searches the web. Leave out one.")
    if name == "duckduckgo":
        return DuckDuckGo()
    if name in ("tavily", "brave"):
        return SearchApi((tavily if name == "tavily" else brave)(base_url), environment, tell=tell)
    others = ", ".join(each for each in get_args(SearchName) if each != "bing")
    if name == "bing":
        raise InputError(f"Microsoft retired the Bing Search API on 2025-08-11. Choose one of {others}.")
    raise InputError(f"There is no search provider {name!r}. Choose one of {others}.")
