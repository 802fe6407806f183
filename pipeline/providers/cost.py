"""What answers cost: the usage that a body states, times prices that somebody wrote down. No price is made up.

`models.toml` has the models that we know with their prices, where a page of the provider's says them, and its date.
"""

import datetime
import tomllib
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field, ValidationError

from pipeline.core.errors import InputError
from pipeline.core.schema import Frozen, Price, ProviderName, what_is_needed
from pipeline.core.terminal import printable
from pipeline.providers.http.request import as_number, as_object, as_objects, as_text


class Usage(NamedTuple):
    input_tokens: int = 0
    output_tokens: int = 0
    searches: int = 0
    stated_cost: float | None = None


def usage_of(body: Any) -> Usage:
    """The usage that a provider's body states, 0 where it states none; the bodies of a paused turn are added up.

    Tokens read from a cache count as input, thoughts as output. Searches are the queries or calls that the body lists.
    """
    if isinstance(body, list):
        parts = [usage_of(each) for each in body]
        tokens_in, tokens_out = sum(part.input_tokens for part in parts), sum(part.output_tokens for part in parts)
        searches = sum(part.searches for part in parts)
        stated = [part.stated_cost for part in parts if part.stated_cost is not None]
        return Usage(tokens_in, tokens_out, searches, sum(stated) if parts and len(stated) == len(parts) else None)
    fields = as_object(body)
    usage = as_object(fields.get("usage") or fields.get("usageMetadata") or fields.get("usage_metadata"))
    tokens_in = _input_tokens(usage)
    return Usage(tokens_in, _output_tokens(usage, tokens_in), _searches(fields, usage), _stated_cost(usage))


def _count(fields: Mapping[str, Any], *names: str) -> int:
    return sum(max(0, as_number(fields.get(name)) or 0) for name in names)


def _input_tokens(usage: Mapping[str, Any]) -> int:
    plain = _count(usage, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    dumped = ("prompt_token_count", "tool_use_prompt_token_count")
    gemini = _count(usage, "promptTokenCount", "toolUsePromptTokenCount", *dumped)
    interactions = _count(usage, "total_input_tokens", "total_tool_use_tokens")
    return plain or _count(usage, "prompt_tokens") or gemini or interactions


def _output_tokens(usage: Mapping[str, Any], tokens_in: int) -> int:
    """Thoughts are included, which xAI's chat completions leave out of `completion_tokens`."""
    if "completion_tokens" in usage:
        return max(_count(usage, "completion_tokens"), _count(usage, "total_tokens") - tokens_in)
    dumped = ("candidates_token_count", "thoughts_token_count")
    gemini = _count(usage, "candidatesTokenCount", "thoughtsTokenCount", *dumped)
    interactions = _count(usage, "total_output_tokens", "total_thought_tokens")
    return _count(usage, "output_tokens") or gemini or interactions


def _searches(fields: Mapping[str, Any], usage: Mapping[str, Any]) -> int:
    counted = _count(as_object(usage.get("server_tool_use")), "web_search_requests")
    details = as_object(usage.get("server_side_tool_usage_details"))
    grok = _count(details, "web_search_calls", "x_search_calls") or _count(usage, "num_server_side_tools_used")
    listed = queries = 0
    for item in as_objects(fields.get("output")):  # a page that was opened is no search
        kind, action = as_text(item.get("type")), as_text(as_object(item.get("action")).get("type"))
        listed += kind == "search_results" or (kind == "web_search_call" and action in ("", "search"))
    for candidate in as_objects(fields.get("candidates")):
        grounding = as_object(candidate.get("groundingMetadata") or candidate.get("grounding_metadata"))
        found = grounding.get("webSearchQueries") or grounding.get("web_search_queries")
        queries += len(found) if isinstance(found, list) else 0
    for step in as_objects(fields.get("steps")):
        asked = as_object(step.get("arguments")).get("queries") if step.get("type") == "google_search_call" else None
        queries += len(asked) if isinstance(asked, list) else 0
    return counted or grok or listed or queries


def _stated_cost(usage: Mapping[str, Any]) -> float | None:
    ticks = usage.get("cost_in_usd_ticks")
    if isinstance(ticks, str) and ticks.isascii() and ticks.isdigit() and len(ticks) < 20:
        ticks = int(ticks)
    if as_number(ticks) is not None:
        return (as_number(ticks) or 0) / 10_000_000_000  # xAI's unit
    cost = usage.get("cost")
    if isinstance(cost, dict):
        cost = cost.get("total_cost") if cost.get("currency", "USD") == "USD" else None
    return float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0 else None


class ListedPrice(Price):
    batch: float | None = Field(default=1.0, ge=0, le=1)


class ListedModel(Frozen):
    """A model with the provider's own page, the date of that, and the price that it names; `others` say more."""

    provider: ProviderName
    role: Literal["general", "small", "earlier"]
    price: ListedPrice | None = None
    page: str = ""
    date: datetime.date | None = None
    note: str = ""
    others: str = ""

    @property
    def days(self) -> int:
        return (datetime.datetime.now(datetime.UTC).date() - self.date).days if self.date else 0

    @property
    def age(self) -> str:
        """How old an entry is that may not hold any more; else empty."""
        return f"{self.days} days old" if self.days > 120 else ""


class RateLimit(Frozen):
    requests: int = Field(ge=1)
    input: int | None = Field(default=None, ge=1)
    output: int | None = Field(default=None, ge=1)
    page: str
    date: datetime.date | None = None


class Usual(Frozen):
    """Lower and upper quartile of what so many recorded answers took, each with a search."""

    answers: int = 0
    input: tuple[int, int] = (0, 0)
    output: tuple[int, int] = (0, 0)
    searches: tuple[int, int] = (1, 1)


class ModelList(Frozen):
    currency: Literal["USD"]
    tokens: Literal["million"]
    searches: Literal["thousand"]
    models: dict[str, ListedModel]
    limits: dict[str, RateLimit] = Field(default_factory=dict)
    usual: dict[ProviderName, Usual] = Field(default_factory=dict)

    def prices(self) -> dict[str, Price]:
        """Those that a dated page of the provider's names; all others are unknown."""
        listed = self.models.items()
        return {name: model.price for name, model in listed if model.price and model.page and model.date}


@cache
def _shipped_list() -> ModelList:
    return read_model_list(str(Path(__file__).with_name("models.toml")))


def read_model_list(file: str = "") -> ModelList:
    """The list of models and prices in a file, by default that which comes along; an InputError where it is none."""
    if not file:
        return _shipped_list()
    try:
        models = ModelList.model_validate(tomllib.loads(Path(file).read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else f"it is not TOML in UTF-8 ({error})"
        raise InputError(f"The list of models {file!r} cannot be read: {why}.") from error
    except ValidationError as error:
        problem = error.errors()[0]
        name = ".".join(map(str, problem["loc"]))
        raise InputError(f"The list of models {file!r} is wrong at `{name}`: {what_is_needed(problem)}.") from error
    for name, each in models.models.items():
        if each.days < -1:  # tomorrow is today in Japan
            raise InputError(f"In the list of models {file!r} `models.{name}.date` is in the future: {each.date}.")
    return models


def general_model(provider: str) -> str:
    models = read_model_list().models.items()
    return next(name for name, model in models if (model.provider, model.role) == (provider, "general"))


def old_prices(models: ModelList, own: Collection[str], asked: Iterable[str]) -> list[str]:
    """A line about the old prices of the models `asked`; none without any."""
    ages = {name: models.models[name].age for name in asked if name in models.prices() and name not in own}
    old = ", ".join(f"{name} ({age})" for name, age in ages.items() if age)
    return [f"Prices that may have changed: {old}; see `citejury pipeline models`."] if old else []


def list_rows(
    models: ModelList, own: Mapping[str, Price], defaults: Collection[str], shares: Mapping[str, float]
) -> list[tuple[str, ...]]:
    """The rows of a table, headings first; `own` prices go before, `shares` are what tokens cost in usual batches."""
    rows: list[tuple[str, ...]] = [("provider", "model", "", "in", "out", "search", "batch", "date")]
    prices = {**models.prices(), **own}
    for name in {**models.models, **own}:
        listed, price = models.models.get(name), prices.get(name)
        provider, role, day = (listed.provider, listed.role, listed.date) if listed else ("–", "", None)
        batch = shares.get(provider) if price and price.batch is None else price and price.batch
        amounts = (price.input, price.output, price.search, batch) if price else (None,) * 4
        shown = ("–" if each is None else f"{each:g}" for each in amounts)
        since = "yours" if name in own else f"{day or '–'}{' old' if listed and listed.age else ''}"
        rows.append((provider, name, "default" if name in defaults else role, *shown, since))
    return rows


def list_notes(models: ModelList) -> list[str]:
    """A line for each model: the page that its price rests on, whether that is old, and what else is said of it."""
    notes = []
    for name, each in models.models.items():
        old = f"{each.age}, so look there and write what it says into `[prices]`" if each.age else ""
        notes.append(f"{name}: {'; '.join(filter(None, (each.page, old, each.note, _others(name, models))))}")
    return notes


def cost_of(usage: Usage, price: Price | None) -> float | None:
    if usage.stated_cost is not None:
        return usage.stated_cost
    if price is None or not (usage.input_tokens or usage.output_tokens) or (usage.searches and price.search is None):
        return None
    is_above = price.above is not None and usage.input_tokens > price.above
    above_in, above_out = (price.above_input, price.above_output) if is_above else (0.0, 0.0)  # 0 also where not given
    tokens = usage.input_tokens * max(price.input, above_in) + usage.output_tokens * max(price.output, above_out)
    return tokens / 1_000_000 + usage.searches * (price.search or 0) / 1_000


def price_of(prices: Mapping[str, Price], *models: str) -> Price | None:
    return next((prices[model] for model in models if model in prices), None)


def price_tables(models: Iterable[str]) -> str:
    return " and ".join(f'`[prices."{printable(model)}"]`' for model in models)


def price_advice(*models: str) -> str:
    told = [f" Of {model} {words}." for model in models if (words := _others(model, read_model_list()))]
    ending = f"and `search` for a thousand searches, in USD.{''.join(told)}"
    return f"`citejury.toml` as {price_tables(models)} with `input` and `output` for a million tokens {ending}"


def _others(model: str, models: ModelList) -> str:
    others = models.models[model].others if model in models.models else ""
    return f"others than its provider say (USD a million tokens, a thousand searches): {others}" if others else ""


def missing_price(model: str, price: Price | None) -> str:
    """What of a model's price is not known where it searches; empty where all is."""
    if price is None:
        return f"the price of {model!r}"
    return f"the price of a search by {model!r}" if price.search is None else ""


def batch_price(price: Price | None, token_share: float | None) -> Price | None:
    """The price in a batch, where tokens cost this share of it, or its own; None is no batch. Searches cost as ever."""
    if price is None or token_share is None:
        return price
    share = token_share if price.batch is None else price.batch
    names = ("input", "output", "above_input", "above_output")
    return price.model_copy(update={name: getattr(price, name) * share for name in names})
