"""What answers cost: the usage that a body states, times prices that somebody wrote down. No price is made up."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pipeline.core.schema import Price
from pipeline.core.terminal import printable
from pipeline.providers.http.request import as_number, as_object, as_objects, as_text


class Usage(NamedTuple):
    input_tokens: int = 0
    output_tokens: int = 0
    searches: int = 0
    stated_cost: float | None = None


def expected_usage(characters: int, output_tokens: int, calls: int) -> Usage:
    """What calls with prompts of so many characters and such answers will about take, with one search each."""
    return Usage(characters // 4, output_tokens, calls)  # a token of English has about four characters


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
    gemini = _count(usage, "promptTokenCount", "toolUsePromptTokenCount")
    dumped = _count(usage, "prompt_token_count", "tool_use_prompt_token_count")
    interactions = _count(usage, "total_input_tokens", "total_tool_use_tokens")
    return plain or _count(usage, "prompt_tokens") or gemini or dumped or interactions


def _output_tokens(usage: Mapping[str, Any], tokens_in: int) -> int:
    """Thoughts are included, which xAI's chat completions leave out of `completion_tokens`."""
    if "completion_tokens" in usage:
        return max(_count(usage, "completion_tokens"), _count(usage, "total_tokens") - tokens_in)
    gemini = _count(usage, "candidatesTokenCount", "thoughtsTokenCount")
    dumped = _count(usage, "candidates_token_count", "thoughts_token_count")
    interactions = _count(usage, "total_output_tokens", "total_thought_tokens")
    return _count(usage, "output_tokens") or gemini or dumped or interactions


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


def cost_of(usage: Usage, price: Price | None) -> float | None:
    if usage.stated_cost is not None:
        return usage.stated_cost
    if price is None or not (usage.input_tokens or usage.output_tokens):
        return None
    tokens = usage.input_tokens * price.input + usage.output_tokens * price.output
    return tokens / 1_000_000 + usage.searches * price.search / 1_000


def price_of(prices: Mapping[str, Price], *models: str) -> Price | None:
    return next((prices[model] for model in models if model in prices), None)


def price_tables(models: Iterable[str]) -> str:
    return " and ".join(f'`[prices."{printable(model)}"]`' for model in models)


def price_advice(*models: str) -> str:
    return (
        f"`citejury.toml` as {price_tables(models)} with `input` and `output` for a million tokens and `search` for a "
        "thousand searches."
    )


def batch_price(price: Price | None, token_share: float) -> Price | None:
    """The price where tokens cost this share of it, as in a batch; searches cost as ever."""
    if price is None or token_share == 1:
        return price
    return price.model_copy(update={"input": price.input * token_share, "output": price.output * token_share})
