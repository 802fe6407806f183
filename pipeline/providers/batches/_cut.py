"""Values cut out of JSON as they stand there: a body in a batch's result keeps its bytes, as a synchronous one does."""

import json
from collections.abc import Iterator
from typing import Any

from pipeline.errors import ProviderError
from pipeline.providers.body import as_object, load_body

_DECODER = json.JSONDecoder()
_WHITE = " \t\r\n"


def cut(text: str, *path: str) -> str:
    """The value under the names, one within the other; empty where there is none or the text is no JSON.

    >>> cut('{"a": {"b": [1.50]}}', "a", "b")
    '[1.50]'
    """
    try:
        at = _skip(text, 0)
        for name in path:
            found = next((start for key, start in _members(text, at) if key == name), None)
            if found is None:
                return ""
            at = found
        return text[at : _DECODER.raw_decode(text, at)[1]]
    except (ValueError, IndexError, RecursionError):
        return ""


def told(line: str) -> dict[str, Any]:
    """The object that a line is; an empty one where it is none."""
    try:
        return as_object(load_body(line))
    except ProviderError:
        return {}


def cut_list(text: str, name: str) -> Iterator[str]:
    """The items of the list under the name, one after the other; none where there is no such list."""
    inner = cut(text, name)
    if not inner.startswith("["):
        return
    at = _skip(inner, 1)
    while inner[at] != "]":
        end = _DECODER.raw_decode(inner, at)[1]
        yield inner[at:end]
        at = _skip(inner, end)
        at = _skip(inner, at + 1) if inner[at] == "," else at


def _members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """The names of the object that begins here, each with where its value begins; nothing where there is no object.

    Raises:
        ValueError, IndexError: the text is no JSON.
    """
    if text[at] != "{":
        return
    at = _skip(text, at + 1)
    while text[at] == '"':
        name, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] != ":":
            raise ValueError("a colon is missing")
        at = _skip(text, at + 1)
        yield name, at
        at = _skip(text, _DECODER.raw_decode(text, at)[1])
        if text[at] != ",":
            return
        at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    """The next place that holds no white space."""
    while text[at : at + 1] and text[at] in _WHITE:
        at += 1
    return at
