"""Perplexity: the Agent API, and Sonar chat completions (retired on 27 September 2026, still in people's files).

Source: https://docs.perplexity.ai/api-reference
"""

from collections.abc import Mapping
from typing import Any

from pipeline.providers._openai import REFERENCE, annotation_occurrences, listed_urls, reference_occurrences
from pipeline.providers.answer import Message, build_answer, read_message
from pipeline.providers.body import as_number, as_objects, as_text
from pipeline.schema import Answer, SearchResult


def read(body: dict[str, Any]) -> Answer:
    """The answer with all search results.

    Agent API: its citations are what is annotated, else the results whose `id` the text names as `[n]`. Sonar: the list
    `citations`, else, where there is no such key, the URLs of the results; `[n]` is the n-th of that list.
    """
    message = read_message(body)
    if isinstance(body.get("choices"), list):
        results = _read_results(body.get("search_results"))
        listed = listed_urls(body.get("citations"))
        urls = listed if body.get("citations") is not None else [result.url for result in results]
        return _to_answer(message, urls, dict(enumerate(urls, start=1)), results)
    items = [item for item in as_objects(body.get("output")) if item.get("type") == "search_results"]
    raw_results = [result for item in items for result in as_objects(item.get("results"))]
    by_id = _results_by_id(raw_results)
    cited = [annotation.url for annotation in message.annotations]
    cited = cited or [by_id[number] for number in _references(message.text) if number in by_id]
    return _to_answer(message, cited, by_id, _read_results(raw_results))


def _to_answer(
    message: Message, citations: list[str], numbers: Mapping[int, str], results: list[SearchResult]
) -> Answer:
    """The answer whose marks `[n]` stand for these URLs."""
    titles = {result.url: result.title for result in reversed(results)}
    return build_answer(
        message.text,
        citations,
        [*reference_occurrences(message.text, numbers, titles), *annotation_occurrences(message, [])],
        search_results=results,
        model=message.model,
        stop_reason=message.stop_reason,
    )


def _results_by_id(results: list[dict[str, Any]]) -> dict[int, str]:
    """The URL of each result by its id; of results that share one, the first holds."""
    by_id: dict[int, str] = {}
    for result in results:
        number, url = as_number(result.get("id")), as_text(result.get("url"))
        if number is not None and url:
            by_id.setdefault(number, url)
    return by_id


def _read_results(value: Any) -> list[SearchResult]:
    """The results as listed; what a result does not tell is empty."""
    return [
        SearchResult(
            url=as_text(result.get("url")),
            title=as_text(result.get("title")),
            snippet=as_text(result.get("snippet")),
        )
        for result in as_objects(value)
    ]


def _references(text: str) -> list[int]:
    """The numbers that the text names as `[n]`, in order, repeats kept."""
    return [int(match[1]) for match in REFERENCE.finditer(text)]
