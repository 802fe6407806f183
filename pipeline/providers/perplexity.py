"""Perplexity: the Agent API, and Sonar chat completions (retired on 27 September 2026, still in people's files).

Source: https://docs.perplexity.ai/api-reference, https://docs.perplexity.ai/docs/agent-api/prompt-guide, read 2026-11.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from pipeline.core.errors import InputError
from pipeline.core.schema import Answer, AskOptions, SearchResult
from pipeline.providers import answer as answers
from pipeline.providers import provider
from pipeline.providers.cost import general_model
from pipeline.providers.http.request import ProviderRequest, as_number, as_objects, as_text

_FACTS = provider.Facts(__file__)

# Whatever instructions it gets are all that it gets, and its answers cite by these marks alone.
_ASK_FOR_MARKS = "Put the number of the search result that supports a statement in brackets behind it, such as [1]."
_MAX_STEPS = 10
# The presets, and those that it named as the successors of its retired models.
_PRESETS = ("fast", "low", "medium", "high", "xhigh")
_RETIRED_MODELS = {
    "sonar": "fast",
    "sonar-pro": "low",
    "sonar-reasoning": "medium",
    "sonar-reasoning-pro": "medium",
    "sonar-deep-research": "high",
}


def _is_agent(body: Any) -> bool:
    if not isinstance(body, dict) or body.get("object") != "response":
        return False
    return any(item.get("type") == "search_results" for item in as_objects(body.get("output")))


def _read(body: dict[str, Any]) -> Answer:
    """The answer with all search results.

    Agent API: what is annotated, else the results whose `id` the text names as `[n]`. Sonar: `[n]` is the n-th of the
    list `citations`, or, where there is no such key, of the results.
    """
    message = answers.read_message(body)
    if isinstance(body.get("choices"), list):
        results = _read_results(body.get("search_results"))
        listed = answers.listed_urls(body.get("citations"))
        urls = listed if body.get("citations") is not None else [result.url for result in results]
        annotated = {annotation.url for annotation in message.annotations}
        retrieved = () if listed else [url for url in urls if url not in annotated]
        return _to_answer(message, urls, dict(enumerate(urls, start=1)), results, retrieved)
    items = [item for item in as_objects(body.get("output")) if item.get("type") == "search_results"]
    raw_results = [result for item in items for result in as_objects(item.get("results"))]
    by_id: dict[int, str] = {}  # of results that share one, the first holds
    for result in raw_results:
        number, url = as_number(result.get("id")), as_text(result.get("url"))
        if number is not None and url:
            by_id.setdefault(number, url)
    named = (each.url for each in answers.reference_occurrences(message.text, by_id, {}) if each.start is not None)
    cited = [annotation.url for annotation in message.annotations] or list(named)
    return _to_answer(message, cited, by_id, _read_results(raw_results))


def _to_answer(
    message: answers.Message,
    citations: list[str],
    numbers: Mapping[int, str],
    results: list[SearchResult],
    retrieved: Iterable[str] = (),
) -> Answer:
    titles = {result.url: result.title for result in reversed(results)}
    return answers.build_answer(
        message.text,
        citations,
        [*answers.reference_occurrences(message.text, numbers, titles), *answers.annotation_occurrences(message, [])],
        retrieved=retrieved,
        search_results=results,
        model=message.model,
        stop_reason=message.stop_reason,
        cut=message.cut,
    )


def _read_results(value: Any) -> list[SearchResult]:
    fields = ("url", "title", "snippet")
    return [SearchResult(**{name: as_text(each.get(name)) for name in fields}) for each in as_objects(value)]


def _ask(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """A system prompt takes the place of the preset's own, so it has to ask for the marks on which citations rest."""
    domains = [*options.allowed_domains, *(f"-{domain}" for domain in options.blocked_domains)]
    filters = provider.present(search_domain_filter=domains, search_recency_filter=options.recency)
    country = {"country": options.country} if options.country else None
    body = {
        "preset" if _is_preset(model) else "model": model,
        "input": prompt,
        **provider.present(instructions=f"{system}\n\n{_ASK_FOR_MARKS}" if system else ""),
        "max_output_tokens": options.max_tokens,
        **provider.present(max_steps=options.max_uses),
        "tools": [{"type": "web_search", **provider.present(filters=filters, user_location=country)}],
        "tool_choice": "required",
    }
    return ProviderRequest("/v1/agent", {}, body)


def _ask_json(asked: provider.StructuredQuestion, form: provider.Form) -> ProviderRequest:
    """Without a tool; the model is `maker/model`, since a preset would search."""
    body = {
        "model": asked.model,
        "input": asked.prompt,
        "instructions": asked.system,
        "max_output_tokens": asked.options.max_tokens,
        **provider.present(response_format=provider.chat_format(asked.schema, form)),
    }
    return ProviderRequest("/v1/agent", {}, body)


def _is_preset(name: str) -> bool:
    return "/" not in name


def _check(name: str, options: AskOptions) -> None:
    if name in _RETIRED_MODELS:
        advice = f"Ask for the preset {_RETIRED_MODELS[name]!r} or the model 'perplexity/sonar'."
        raise InputError(f"Perplexity retired {name!r}. {advice}")
    if name not in _PRESETS and _is_preset(name):
        nearest = get_close_matches(name, _PRESETS, n=1)
        hint = f"Did you mean {nearest[0]!r}?" if nearest else f"The presets are {', '.join(_PRESETS)}."
        raise InputError(f"Perplexity has no preset {name!r}, and a model's name there is 'maker/model'. {hint}")
    if (options.max_uses or 0) > _MAX_STEPS:
        raise InputError(f"perplexity takes at most {_MAX_STEPS} searches; {options.max_uses} were given.")


_AGENT = _FACTS.api("agent", ask=_ask, ask_json=_ask_json, model=general_model("perplexity"), check=_check)

PROVIDER = _FACTS.provider(
    apis=(_AGENT,),
    shapes=(provider.Shape("agent", _is_agent, _read, has_status=True),),
    read_shared=_read,
    is_preset=_is_preset,
)
