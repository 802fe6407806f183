"""Tavily's search.

Source: https://docs.tavily.com/documentation/api-reference/endpoint/search, read 2026-11.
"""

from collections.abc import Iterator
from typing import Any

from pipeline.providers.body import as_object, as_objects
from pipeline.research.search.api import Manner, Question
from pipeline.research.search.results import RawResult

BASE_URL = "https://api.tavily.com"
KEY_VARIABLE = "TAVILY_API_KEY"
LONGEST_QUERY = 400
MOST_RESULTS = 20


def tavily(base_url: str = "") -> Manner:
    """How Tavily is spoken to; at `base_url` where that is given."""
    return Manner("tavily", base_url or BASE_URL, KEY_VARIABLE, "authorization", "Bearer ", to_question, raw_results)


def to_question(query: str, k: int) -> Question:
    """The request for a query; the cheapest depth, whose content is an excerpt of each page."""
    body = {"query": query[:LONGEST_QUERY], "max_results": min(k, MOST_RESULTS), "search_depth": "basic"}
    return Question("POST", "/search", body=body)


def raw_results(body: Any) -> Iterator[RawResult] | None:
    """The results of an answer; None where it is none."""
    fields = as_object(body)
    if not isinstance(fields.get("results"), list):
        return None
    return (
        RawResult(each.get("title"), each.get("url"), each.get("content")) for each in as_objects(fields["results"])
    )
