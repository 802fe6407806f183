"""Fields of a payload that look like citations and that no rule reads: a silent zero is worse than a strange name."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pipeline.citations.addresses import link_key
from pipeline.core.schema import Answer

_CITATION_LIKE = re.compile("cit(?:e|ation)|annotation|ground|reference|retriev|footnote", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:https?|gs|s3)://\S+", re.IGNORECASE)
_FILE_CITATIONS = ("file_citation", "container_file_citation", "file_path")


def unread_fields(body: Any, answer: Answer) -> dict[str, int]:
    """By the path in the body, list places left out: how many sources stand there that the answer does not have."""
    known = {link_key(url) for url in answer.citations} | {link_key(result.url) for result in answer.search_results}
    found: Counter[str] = Counter()
    for path, value in _fields(body, "", False):
        if value in _FILE_CITATIONS or (_ADDRESS.fullmatch(value) and link_key(value) not in known):
            found[path] += 1
    return {f"field {path[:100]}": count for path, count in found.items()}


def _fields(value: Any, path: str, is_citation: bool) -> Iterator[tuple[str, str]]:
    """Each text within a field that is named like a citation, or like what holds some."""
    if isinstance(value, dict):
        for name, inner in value.items():
            place = f"{path}.{name}" if path else name
            yield from _fields(inner, place, is_citation or _CITATION_LIKE.search(name) is not None)
    elif isinstance(value, list):
        for inner in value:
            yield from _fields(inner, f"{path}[]", is_citation)
    elif isinstance(value, str) and is_citation:
        yield path, value
