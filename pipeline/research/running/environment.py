"""What a run works with, opened from its options: the store, the web, a search provider and a model.

The model is asked for JSON; every answered call is kept, tokens and cost are counted, failures are told.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from hashlib import sha256
from typing import Any, NamedTuple, Protocol, TypeVar

from pipeline.errors import InputError, ProviderError
from pipeline.models.completion import CUT_SHORT_ERROR, Structured
from pipeline.models.structured import (
    DATA_RULE,
    OPENROUTER_URL,
    Asker,
    Spent,
    accept_body,
    added,
    ask_structured,
    choose_model,
    marked_texts,
    marking_words,
    spent_of,
)
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

Value = TypeVar("Value")

_SYSTEM_PROMPT = f"""You are a careful researcher. You work on texts that were collected from the web, and you answer \
in JSON only. You have no tools, and you never write a URL.

{DATA_RULE} read."""

_LARGER = 4
"""How many times the tokens an answer gets on its second try, after the first was cut short."""


class _AnsweredCalls(Protocol):
    """The calls of a run that were answered, kept where a kill leaves them; a `dict` is one that forgets."""

    def get(self, key: str, /) -> list[str] | None:
        """The payloads of the call, the answer last; None where it was never answered."""

    def __setitem__(self, key: str, payloads: list[str], /) -> None:
        """Keep the payloads of the call before anything is done with them."""


class Model:
    """One model for a whole run. `notes` are what a reader of the report must know of how it was asked."""

    def __init__(
        self,
        asker: Asker,
        answered: _AnsweredCalls,
        prices: Mapping[str, Price] | None = None,
        may_ask: Callable[[], bool] = lambda: True,
    ) -> None:
        """Ask through this asker. `may_ask` says before each call whether the budget allows it; kept calls are free."""
        self.asker = asker
        self.answered = answered
        self.prices = dict(prices or {})
        self.may_ask = may_ask
        self.spent = Spent()
        self.notes: list[str] = []

    @property
    def name(self) -> str:
        """The model's id, such as `openai/gpt-oss-120b`."""
        return self.asker.chosen.model

    def note(self, words: str) -> None:
        """Add the words to the notes, once."""
        if words not in self.notes:
            self.notes.append(words)

    async def ask(
        self,
        task: str,
        texts: Sequence[tuple[str, str]],
        schema: Mapping[str, Any],
        to_value: Callable[[Any], Value],
        purpose: str,
    ) -> Value | None:
        """What the model answers to the task on the texts (name, text), read by `to_value`; None where it is no use.

        An answer that was cut short is asked for once more with four times the tokens. `purpose` names the question
        in a note on why there is no answer.

        Raises:
            ProviderError: nobody answered.
        """
        prompt = "\n\n".join([task, marking_words(texts), marked_texts(texts), "Answer in JSON now."])
        options = self.asker.options
        said = await self.put(self.asker, prompt, schema, to_value)
        if said.error == CUT_SHORT_ERROR:
            larger = options.model_copy(update={"max_tokens": _LARGER * options.max_tokens})
            wide = Asker(self.asker.client, self.asker.chosen, larger)
            said = await self.put(wide, prompt, schema, to_value)
        if said.value is None:
            if said.status == "http_error" and self.may_ask():
                raise ProviderError(f"The model {self.name!r} gave no answer for {purpose}: {said.error}")
            self.note(f"The model gave no usable answer for {purpose}: {said.error}")
        return said.value

    async def put(
        self, asker: Asker, prompt: str, schema: Mapping[str, Any], to_value: Callable[[Any], Value]
    ) -> Structured[Value]:
        """What one asker's model answers, after one repair where that is needed; its payloads are counted."""
        said = await ask_structured(_CachedAsker(asker, self), prompt, _SYSTEM_PROMPT, schema, to_value)
        self.spent = added(self.spent, spent_of(said.payloads, self.name, self.prices))
        return said


class _CachedAsker:
    """Asks what was never answered; takes the rest from the calls that were kept."""

    def __init__(self, asker: Asker, model: Model) -> None:
        """Ask for this model, within its budget."""
        self.asker = asker
        self.model = model

    async def ask(self, prompt: str, system: str, schema: Mapping[str, Any], kept: list[str]) -> str:
        """The payload that answers; it and those before it that held no word are appended to `kept`.

        Raises:
            ProviderError: there is none, or the budget allows no further call.
        """
        key = _request_key(self.asker, prompt, system, schema)
        payloads = self.model.answered.get(key)
        if not payloads:
            if not self.model.may_ask():
                raise ProviderError("The run's budget is used up.", "not_recorded", attempts=0)
            payloads = []
            await self.asker.ask(prompt, system, schema, payloads)
            self.model.answered[key] = payloads
        kept += payloads
        return payloads[-1]


def _request_key(asker: Asker, prompt: str, system: str, schema: Mapping[str, Any]) -> str:
    """sha256 in hex of all that decides an answer: the model, where it is asked, its limit, and what it sees."""
    chosen = asker.chosen
    limit = str(asker.options.max_tokens)
    parts = (chosen.model, chosen.endpoint.base_url, limit, system, prompt, json.dumps(schema, sort_keys=True))
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


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
            options.search, documents=options.documents, store=store, environment=variables, base_url=search_url
        )
        model = await open_model(options, variables, prices or {}, stack)
        client = await stack.enter_async_context(guarded_client(allowed, connections=options.workers))
        fetcher = await stack.enter_async_context(Fetcher(client, FetchPolicy(concurrency=options.workers)))
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
    chosen = choose_model(variables, model=options.model, base_url=options.base_url)
    if options.limits.cost is not None and chosen.endpoint.base_url != OPENROUTER_URL and options.model not in prices:
        raise InputError(
            f"`--max-cost` cannot be held: the price of {options.model!r} is not known. Write it into `citejury.toml` "
            f'as `[prices."{options.model}"]` with `input` and `output` for a million tokens.'
        )
    client = await stack.enter_async_context(ApiClient(chosen.endpoint, None, options.workers, accept_body))
    return Model(Asker(client, chosen), {}, prices)
