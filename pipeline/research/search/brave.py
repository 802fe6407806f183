"""Brave's search.

Source: https://api-dashboard.search.brave.com/app/documentation/web-search/get-started, read 2026-11.
"""

from collections.abc import Iterator
from typing import Any

from pipeline.providers.body import as_object, as_objects
from pipeline.research.search.api import Manner, Question
from pipeline.research.search.results import RawResult

BASE_URL = "https://api.search.brave.com"
KEY_VARIABLE = "BRAVE_API_KEY"
LONGEST_QUERY = 400
MOST_WORDS = 50
MOST_RESULTS = 20


def brave(base_url: str = "") -> Manner:
    """How Brave is spoken to; at `base_url` where that is given."""
    return Manner("brave", base_url or BASE_URL, KEY_VARIABLE, "x-subscription-token", "", to_question, raw_results)


def to_question(query: str, k: int) -> Question:
    """The request for a query, web pages alone and no marks around words that match."""
    words = " ".join(query.split()[:MOST_WORDS])[:LONGEST_QUERY]
    wanted = {"q": words, "count": str(min(k, MOST_RESULTS)), "result_filter": "web", "text_decorations": "false"}
    return Question("GET", "/res/v1/web/search", wanted)


def raw_results(body: Any) -> Iterator[RawResult] | None:
    """The results of an answer, none where it has no part `web`; None where it is no answer of Brave's."""
    fields = as_object(body)
    if fields.get("type") != "search" and "web" not in fields:
        return None
    results = as_objects(as_object(fields.get("web")).get("results"))
    return (RawResult(each.get("title"), each.get("url"), each.get("description")) for each in results)
