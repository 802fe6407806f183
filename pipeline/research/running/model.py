"""The model of a research run: asked for JSON, every answered call kept, tokens and cost counted, failures told."""

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Protocol, TypeVar

from pipeline.errors import ProviderError
from pipeline.models.completion import CUT_SHORT_ERROR, Structured
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
from pipeline.schema import Price

Value = TypeVar("Value")

SYSTEM_PROMPT = f"""You are a careful researcher. You work on texts that were collected from the web, and you answer \
in JSON only. You have no tools, and you never write a URL.

{DATA_RULE} read."""

LARGER = 4
"""How many times the tokens an answer gets on its second try, after the first was cut short."""


class AnsweredCalls(Protocol):
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
        answered: AnsweredCalls,
        prices: Mapping[str, Price] | None = None,
        goes_on: Callable[[], bool] = lambda: True,
    ) -> None:
        """Nothing is asked yet. `goes_on` says before each call whether the budget allows it; kept calls are free."""
        self.asker = asker
        self.answered = answered
        self.prices = dict(prices or {})
        self.goes_on = goes_on
        self.spent = Spent()
        self.notes: list[str] = []

    @property
    def name(self) -> str:
        """The model's id, such as `openai/gpt-oss-120b`."""
        return self.asker.chosen.model

    def note(self, words: str) -> None:
        """Nothing; the words stand among the notes, once."""
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
            larger = options.model_copy(update={"max_tokens": LARGER * options.max_tokens})
            wide = Asker(self.asker.client, self.asker.chosen, larger)
            said = await self.put(wide, prompt, schema, to_value)
        if said.value is None:
            if said.status == "http_error" and self.goes_on():
                raise ProviderError(f"The model {self.name!r} gave no answer for {purpose}: {said.error}")
            self.note(f"The model gave no usable answer for {purpose}: {said.error}")
        return said.value

    async def put(
        self, asker: Asker, prompt: str, schema: Mapping[str, Any], to_value: Callable[[Any], Value]
    ) -> Structured[Value]:
        """What one asker's model answers, after one repair where that is needed; its payloads are counted."""
        said = await ask_structured(KeptAsker(asker, self), prompt, SYSTEM_PROMPT, schema, to_value)
        self.spent = added(self.spent, spent_of(said.payloads, self.name, self.prices))
        return said


class KeptAsker:
    """Asks what was never answered; takes the rest from the calls that were kept."""

    def __init__(self, asker: Asker, model: Model) -> None:
        """Nothing is asked yet."""
        self.asker = asker
        self.model = model

    async def ask(self, prompt: str, system: str, schema: Mapping[str, Any], kept: list[str]) -> str:
        """The payload that answers; it and those before it that held no word are appended to `kept`.

        Raises:
            ProviderError: there is none, or the budget allows no further call.
        """
        key = request_key(self.asker, prompt, system, schema)
        payloads = self.model.answered.get(key)
        if not payloads:
            if not self.model.goes_on():
                raise ProviderError("The run's budget is used up.", "not_recorded", attempts=0)
            payloads = []
            await self.asker.ask(prompt, system, schema, payloads)
            self.model.answered[key] = payloads
        kept += payloads
        return payloads[-1]


def request_key(asker: Asker, prompt: str, system: str, schema: Mapping[str, Any]) -> str:
    """sha256 in hex of all that decides an answer: the model, where it is asked, its limit, and what it sees."""
    chosen = asker.chosen
    limit = str(asker.options.max_tokens)
    parts = (chosen.model, chosen.endpoint.base_url, limit, system, prompt, json.dumps(schema, sort_keys=True))
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
