"""A model that is asked many questions: each distinct one once, its answers kept, tokens and cost counted.

Research and `pipeline verify` ask through it, so that the same question has the same answer in both.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple, Protocol, TypeVar

from pipeline.errors import InputError, ProviderError
from pipeline.models.completion import CUT_SHORT_ERROR, Structured, plain_reason
from pipeline.models.meter import USED_UP
from pipeline.models.structured import (
    DATA_RULE,
    Asker,
    Spent,
    added,
    ask_structured,
    marked_texts,
    marking_words,
    spent_of,
)
from pipeline.providers.choice import ChosenModel
from pipeline.schema import Price

Value = TypeVar("Value")

_SYSTEM_PROMPT = f"""You are a careful researcher. You work on texts that were collected from the web, and you answer \
in JSON only. You have no tools, and you never write a URL.

{DATA_RULE} read."""

NO_USE = "The model gave no usable answer"
"""How notes begin on a question that the pages' own words answer."""
_LARGER = 4
"""How many times the tokens an answer gets on its second try, after the first was cut short."""


def refuse_unknown_price(chosen: ChosenModel, prices: Mapping[str, Price], max_cost: float | None) -> None:
    """Refuse a limit of cost that cannot be held.

    Raises:
        InputError: the model has no price, and its server states none.
    """
    if max_cost is None or chosen.states_cost or chosen.model in prices:
        return
    raise InputError(
        f"`--max-cost` cannot be held: the price of {chosen.model!r} is not known. Write it into `citejury.toml` as "
        f'`[prices."{chosen.model}"]` with `input` and `output` for a million tokens.'
    )


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
        """Ask through this asker, whose meter holds limits. `may_ask` says before each call whether one is allowed.

        Kept calls are free.
        """
        self.asker = asker
        self.answered = answered
        self.prices = dict(prices or {})
        self.may_ask = may_ask
        self.spent = Spent()
        self.notes: list[str] = []
        self.under_way: dict[str, asyncio.Future[list[str]]] = {}

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

        `purpose` names the question in a note on why there is no answer.

        Raises:
            ProviderError: nobody answered.
        """
        said = await self.answer(task, texts, schema, to_value)
        if said.value is None:
            if said.status == "http_error" and self.may_ask():
                raise ProviderError(f"The model {self.name!r} gave no answer for {purpose}: {said.error}")
            self.note(f"{NO_USE} for {purpose}: {plain_reason(said.error)}")
        return said.value

    async def ask_all(self, asked: Iterable[Awaitable[Value | None]]) -> tuple[list[Value | None], list[ProviderError]]:
        """What comes of several questions in their order, None for each that failed, and the failures.

        Raises:
            ProviderError: all of them failed.
        """
        results = await asyncio.gather(*asked, return_exceptions=True)
        found: list[Value | None] = []
        failures: list[ProviderError] = []
        for result in results:
            if isinstance(result, ProviderError):
                failures.append(result)
            elif isinstance(result, BaseException):
                raise result
            found.append(None if isinstance(result, ProviderError) else result)
        if failures and len(failures) == len(results):
            raise failures[0]
        return found, failures

    async def answer(
        self,
        task: str,
        texts: Sequence[tuple[str, str]],
        schema: Mapping[str, Any],
        to_value: Callable[[Any], Value],
    ) -> Structured[Value]:
        """What the model answers to the task on the texts (name, text), or why there is no value; never an exception.

        An answer that was cut short is asked for once more with four times the tokens.
        """
        prompt = "\n\n".join([task, marking_words(texts), marked_texts(texts), "Answer in JSON now."])
        options = self.asker.options
        said = await self.put(self.asker, prompt, schema, to_value)
        if said.error == CUT_SHORT_ERROR:
            larger = options.model_copy(update={"max_tokens": _LARGER * options.max_tokens})
            wide = Asker(self.asker.client, self.asker.chosen, larger, self.asker.meter)
            wide.forms = self.asker.forms
            said = await self.put(wide, prompt, schema, to_value)
        return said

    async def put(
        self, asker: Asker, prompt: str, schema: Mapping[str, Any], to_value: Callable[[Any], Value]
    ) -> Structured[Value]:
        """What one asker's model answers, after one repair where that is needed; its payloads are counted."""
        said = await ask_structured(_CachedAsker(asker, self), prompt, _SYSTEM_PROMPT, schema, to_value)
        self.spent = added(self.spent, spent_of(said.payloads, self.name, self.prices))
        return said


class _CachedAsker(NamedTuple):
    """Asks what was never answered and is not being asked; takes the rest from what was kept, or waits for it."""

    asker: Asker
    model: Model

    async def ask(self, prompt: str, system: str, schema: Mapping[str, Any], kept: list[str]) -> str:
        """The payload that answers; it and those before it that held no word are appended to `kept`.

        Raises:
            ProviderError: there is none, or the budget allows no further call.
        """
        key = _request_key(self.asker, prompt, system, schema)
        payloads = self.model.answered.get(key)
        while not payloads and (awaited := self.model.under_way.get(key)):
            try:
                payloads = await asyncio.shield(awaited)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if not awaited.cancelled() or task is None or task.cancelling():
                    raise  # else the one who asked was given up, and not this one
        if not payloads:
            under_way = self.model.under_way[key] = asyncio.get_running_loop().create_future()
            try:
                payloads = await self.paid(key, prompt, system, schema)
                under_way.set_result(payloads)
            except ProviderError as error:
                under_way.set_exception(error)
                under_way.exception()  # perhaps nobody else waits for it
                raise
            finally:
                under_way.cancel()  # where it was given up
                del self.model.under_way[key]
        kept += payloads
        return payloads[-1]

    async def paid(self, key: str, prompt: str, system: str, schema: Mapping[str, Any]) -> list[str]:
        """What the model sends, kept under the key.

        Raises:
            ProviderError: there is no answer, or the budget allows no further call.
        """
        if not self.model.may_ask():
            raise ProviderError(USED_UP, "not_recorded", attempts=0)
        payloads: list[str] = []
        await self.asker.ask(prompt, system, schema, payloads)
        self.model.answered[key] = payloads
        return payloads


def _request_key(asker: Asker, prompt: str, system: str, schema: Mapping[str, Any]) -> str:
    """sha256 in hex of all that decides an answer: the model, where it is asked, its limit, and what it sees."""
    chosen = asker.chosen
    limit = str(asker.options.max_tokens)
    parts = (chosen.model, chosen.endpoint.base_url, limit, system, prompt, json.dumps(schema, sort_keys=True))
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
