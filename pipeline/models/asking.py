"""A model that is asked many questions: each distinct one once, its answers kept, tokens and cost counted.

Calls that run at once would each find room below a limit that all of them together break. So a call starts only where
it fits at its largest beside what was spent and what runs; else it waits until running calls are settled. Where nothing
runs and the limit is not reached, it starts even so: what is spent goes over a limit by one call's size at the most.
"""

import asyncio
import json
import math
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from pipeline.core.errors import InputError, OutputError, ProviderError
from pipeline.core.files import Place, append_line, cut_off, output_errors, read_at
from pipeline.core.schema import Price
from pipeline.core.sentences import packaged_table
from pipeline.models import structured
from pipeline.models.completion import CUT_SHORT_ERROR, Structured, model_content, plain_reason
from pipeline.providers import ChosenModel
from pipeline.providers.cost import cost_of, price_of, usage_of
from pipeline.providers.http.request import as_object, as_text, load_body
from pipeline.sources.chunk import check_counts_tokens, count_tokens

Value = TypeVar("Value")
Texts = Sequence[tuple[str, str]]  # Each with its name first

_SYSTEM_PROMPT = f"""You are a careful researcher. You work on texts that were collected from the web, and you answer \
in JSON only. You have no tools, and you never write a URL.

{structured.DATA_RULE} read."""

TASKS: dict[str, str] = packaged_table(__file__, "tasks.toml")
NO_USE = "The model gave no usable answer"  # How notes begin on a question that the pages' own words answer
_LARGER = 4


def refuse_unknown_price(chosen: ChosenModel, prices: Mapping[str, Price], max_cost: float | None) -> None:
    """Refuse a limit of cost that cannot be held: the model has no price, and its server states none."""
    if max_cost is None or chosen.states_cost or chosen.model in prices:
        return
    raise InputError(
        f"`--max-cost` cannot be held: the price of {chosen.model!r} is not known. Write it into `citejury.toml` as "
        f'`[prices."{chosen.model}"]` with `input` and `output` for a million tokens.'
    )


class _AnsweredCalls(Protocol):
    """The calls of a run that were answered, kept where a kill leaves them; a `dict` is one that forgets."""

    def get(self, key: str, /) -> list[str] | None: ...

    def __setitem__(self, key: str, payloads: list[str], /) -> None: ...


@dataclass(eq=False)
class Model:
    """One model for a whole run. `notes` are what a reader of the report must know of how it was asked."""

    asker: structured.Asker
    answered: _AnsweredCalls
    prices: Mapping[str, Price] = field(default_factory=dict)
    may_ask: Callable[[], bool] = lambda: True  # Says before each call whether one is allowed; kept calls are free
    spent: structured.Spent = field(default_factory=structured.Spent)
    notes: list[str] = field(default_factory=list)
    under_way: dict[str, asyncio.Future[list[str]]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.asker.chosen.model

    def note(self, words: str) -> None:
        if words not in self.notes:
            self.notes.append(words)

    async def ask(
        self, task: str, texts: Texts, schema: Mapping[str, Any], to_value: Callable[[Any], Value], purpose: str
    ) -> Value | None:
        """What the model answers to the task on the texts (name, text), read by `to_value`; None where it is no use."""
        said = await self.answer(task, texts, schema, to_value)
        if said.value is None:
            if said.status == "http_error" and self.may_ask():
                raise ProviderError(f"The model {self.name!r} gave no answer for {purpose}: {said.error}")
            self.note(f"{NO_USE} for {purpose}: {plain_reason(said.error)}")
        return said.value

    async def ask_all(self, asked: Iterable[Awaitable[Value | None]]) -> tuple[list[Value | None], list[ProviderError]]:
        """What comes of several questions, None for each that failed, and the failures; raises if all failed."""
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
        self, task: str, texts: Texts, schema: Mapping[str, Any], to_value: Callable[[Any], Value]
    ) -> Structured[Value]:
        """What the model answers to the task on the texts (name, text), or why there is no value; never raises."""
        prompt = "\n\n".join(
            [task, structured.marking_words(texts), structured.marked_texts(texts), "Answer in JSON now."]
        )
        options = self.asker.options
        said = await self.put(self.asker, prompt, schema, to_value)
        if said.error == CUT_SHORT_ERROR:
            larger = options.model_copy(update={"max_tokens": _LARGER * options.max_tokens})
            said = await self.put(replace(self.asker, options=larger), prompt, schema, to_value)
        return said

    async def put(
        self, asker: structured.Asker, prompt: str, schema: Mapping[str, Any], to_value: Callable[[Any], Value]
    ) -> Structured[Value]:
        said = await structured.ask_structured(_CachedAsker(asker, self), prompt, _SYSTEM_PROMPT, schema, to_value)
        self.spent = structured.added(self.spent, structured.spent_of(said.payloads, self.name, self.prices))
        return said


class _CachedAsker(NamedTuple):
    """Asks what was never answered and is not being asked; takes the rest from what was kept, or waits for it."""

    asker: structured.Asker
    model: Model

    async def ask(self, prompt: str, system: str, schema: Mapping[str, Any], kept: list[str]) -> str:
        chosen, limit = self.asker.chosen, str(self.asker.options.max_tokens)
        decisive = (chosen.model, chosen.endpoint.base_url, limit, system, prompt, json.dumps(schema, sort_keys=True))
        key = sha256("\0".join(decisive).encode("utf-8", "surrogatepass")).hexdigest()
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
        if not self.model.may_ask():
            raise ProviderError(USED_UP, "not_recorded", attempts=0)
        payloads: list[str] = []
        await self.asker.ask(prompt, system, schema, payloads)
        self.model.answered[key] = payloads
        return payloads


# A NamedTuple of texts, some of which may be None: what identifies a reply.
Question = TypeVar("Question", bound=tuple[str | None, ...])


class Replies(Generic[Question]):
    """The replies in an open file: found by their question, added at the end."""

    def __init__(self, path: Path, kind: type[Question]) -> None:
        """Find every reply in the file to a question of this kind; a last line that a kill has torn is cut off."""
        self.path = path
        self.places: dict[Question, Place] = {}
        end = 0
        with open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break
                place = Place(end, end + len(line))
                self.places[_read_question(line, path, number, kind)], end = place, place.end
        cut_off(path, end)

    def find(self, question: Question) -> list[str]:
        place = self.places.get(question)
        return [str(each) for each in json.loads(read_at(self.path, place))["payloads"]] if place else []

    def keep(self, question: Question, payloads: Sequence[str]) -> None:
        fields: dict[str, Any] = question._asdict()  # type: ignore[attr-defined]  # of every NamedTuple
        self.places[question] = append_line(self.path, json.dumps({**fields, "payloads": list(payloads)}))


@contextmanager
def open_replies(path: Path, kind: type[Question], command: str) -> Iterator[Replies[Question]]:
    """The replies of the file, for this process alone; `command` is what writes such a file, as `annotation judge`."""
    with output_errors(f"{str(path)!r} cannot be written", "Name another `--out`."):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if sys.platform != "win32":  # Windows knows no such lock
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield Replies(path, kind)
    except BlockingIOError as error:
        raise OutputError(
            f"Another `{command}` is writing to {str(path)!r}; wait for it or name another `--out`."
        ) from error
    finally:
        os.close(descriptor)


def _read_question(line: bytes, path: Path, number: int, kind: type[Question]) -> Question:
    try:
        value: Any = json.loads(line)
        names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]  # of every NamedTuple
        question = kind(**{name: value[name] for name in names})
        texts = [*value["payloads"][-1:], *(part for part in question if part is not None)]
        if value["payloads"] and all(isinstance(text, str) for text in texts):
            return question
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    advice = "Remove the line, or name another `--out`."
    raise OutputError(f"Line {number} of {str(path)!r} is not a reply of a model. {advice}")


USED_UP = "The budget for the model is used up."
_PER_MILLION = 1_000_000


class SpendLimits(NamedTuple):
    """What all calls together may take; None is no limit."""

    tokens: int | None = None
    cost: float | None = None

    def reached(self, spent: structured.Spent) -> Literal["tokens", "cost"] | None:
        if self.tokens is not None and spent.tokens >= self.tokens:
            return "tokens"
        if self.cost is not None and spent.cost >= self.cost:
            return "cost"
        return None


class CallSize(NamedTuple):
    """The most tokens that one call may take."""

    tokens_in: int  # Tokens of the request, as `o200k_base` counts them
    tokens_out: int


class Book(Protocol):
    """Where calls are kept so that a kill leaves them: both are on the disk when they return."""

    def begin(self, most: structured.Spent) -> int: ...

    def settle(self, number: int, took: structured.Spent) -> None: ...


@dataclass(eq=False)
class Meter:
    """Lets calls start as limits allow, and counts what they took."""

    model: str
    prices: Mapping[str, Price]
    limits: SpendLimits = field(default_factory=SpendLimits)
    at_once: int = 8
    book: Book | None = None
    may_ask: Callable[[], bool] = lambda: True
    heard: Callable[[structured.Spent], None] = lambda spent: None
    spent: structured.Spent = field(default_factory=structured.Spent)
    cut_off: structured.Spent = field(default_factory=structured.Spent)
    """What those may have taken at the most that somebody may have answered and nobody heard: they count too."""
    under_way: list[structured.Spent] = field(default_factory=list)
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    answered: bool = False
    longer: float = 1.0
    longest: int = 0
    dearest_in: float = math.inf
    dearest_out: float = math.inf

    def __post_init__(self) -> None:
        check_counts_tokens()
        self.slots = asyncio.Semaphore(max(1, self.at_once))

    def used_up(self) -> Literal["tokens", "cost"] | None:
        return self.limits.reached(self.committed)

    @property
    def committed(self) -> structured.Spent:
        return structured.added(self.spent, self.cut_off)

    async def call(self, body: Mapping[str, Any], max_tokens: int, send: Callable[[], Awaitable[str]]) -> str:
        """The payload that `send` brings for this body, counted and kept; it is sent when there is room for it.

        A call that got no answer takes nothing, but for one that ran out of time or whose answer broke off: that one is
        cut off.
        """
        size = CallSize(count_tokens(json.dumps(body, ensure_ascii=False)), max_tokens)
        async with self.slots:
            most = await self.reserve(size)
            is_lost = True
            try:
                number = self.book.begin(most) if self.book else 0
                payload = await send()
                took = self.learn(payload, size)
                is_lost = False
            except ProviderError as error:
                is_lost = error.is_lost
                took = structured.Spent()
                raise
            finally:
                self.under_way.remove(most)
                self.settled.set()
                self.settled = asyncio.Event()
                if is_lost:
                    self.cut_off = structured.added(self.cut_off, most)
                else:
                    if self.book:
                        self.book.settle(number, took)
                    self.spent = structured.added(self.spent, took)
                    self.heard(self.spent)
            return payload

    async def reserve(self, size: CallSize) -> structured.Spent:
        """What a call of this size takes at the most, reserved; waits while it does not fit beside running calls."""
        while self.may_ask() and not self.used_up():
            most = self.most(size)
            if not self.under_way or self.fits(most):
                self.under_way.append(most)
                return most
            await self.settled.wait()
        raise ProviderError(USED_UP, "not_recorded", attempts=0)

    def fits(self, most: structured.Spent) -> bool:
        """With a limit, the first call goes alone: it shows how far sizes can be trusted. Unknown costs never fit."""
        if self.limits == SpendLimits():
            return True
        if not self.answered:
            return False
        total = structured.added(self.committed, most)
        for running in self.under_way:
            total = structured.added(total, running)
        if self.limits.tokens is not None and total.tokens > self.limits.tokens:
            return False
        return self.limits.cost is None or (total.cost <= self.limits.cost and not most.unpriced)

    def most(self, size: CallSize) -> structured.Spent:
        """What a call of this size takes at the most, by what the calls so far took of theirs.

        Without a price its cost follows from what answers stated: no token cost more than a whole answer did, shared
        among its tokens of that kind.
        """
        tokens_in, tokens_out = math.ceil(size.tokens_in * self.longer), max(size.tokens_out, self.longest)
        price = price_of(self.prices, self.model)
        if price:
            cost = (tokens_in * price.input + tokens_out * price.output) / _PER_MILLION
        else:
            cost = tokens_in * self.dearest_in + tokens_out * self.dearest_out
        known = math.isfinite(cost)
        return structured.Spent(1, tokens_in, tokens_out, cost if known else 0.0, int(not known))

    def learn(self, payload: str, size: CallSize) -> structured.Spent:
        """What an answer took: as it states, else by our own count; the next calls are taken for as large as it."""
        body = load_body(payload)
        usage = usage_of(body)
        if not (usage.input_tokens or usage.output_tokens):
            said = count_tokens(model_content(payload).content)
            usage = usage._replace(input_tokens=size.tokens_in, output_tokens=said)
        cost = cost_of(usage, price_of(self.prices, as_text(as_object(body).get("model")), self.model))
        self.answered = True
        self.longer = max(self.longer, usage.input_tokens / max(1, size.tokens_in))
        self.longest = max(self.longest, usage.output_tokens)
        if cost is not None:
            self.dearest_in = min(self.dearest_in, cost / max(1, usage.input_tokens))
            self.dearest_out = min(self.dearest_out, cost / max(1, usage.output_tokens))
        return structured.Spent(1, usage.input_tokens, usage.output_tokens, cost or 0.0, int(cost is None))
