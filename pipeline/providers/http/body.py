"""A payload as JSON, and its values whatever they turn out to be: what is not of the wanted type counts as absent."""

import json
import re
from collections.abc import Mapping
from math import isfinite
from typing import Any, NoReturn

from pipeline.errors import ProviderError

# A lone surrogate cannot be written as UTF-8, and a NUL no database takes. Each gives way to one character, so that
# the provider's offsets still hold.
_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")
_ESCAPED_UNWRITABLE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_MAX_DIGITS = 100


def load_body(text: str) -> Any:
    """The payload's JSON value; characters that no file can carry are replaced by U+FFFD, one for one.

    Raises:
        ProviderError: the text is not JSON, or nested too deeply to be an answer.
    """
    if not text.strip():
        raise ProviderError("The payload is empty; a provider's JSON body is wanted.")
    try:
        body = json.loads(
            text.removeprefix("\ufeff"),
            parse_constant=_refuse_constant,
            parse_int=_read_number,
            parse_float=_read_fraction,
        )
        if _ESCAPED_UNWRITABLE.search(text) or _UNWRITABLE.search(text):
            return writable(body)
    except RecursionError as error:
        raise ProviderError("The payload is nested too deeply to be a provider's answer.") from error
    except ValueError as error:
        raise ProviderError(f"The payload is not JSON ({_short_reason(error)}).") from error
    return body


def encode_body(body: Mapping[str, Any]) -> bytes:
    """The request's JSON; escapes keep what UTF-8 cannot carry, such as half of an emoji, as it was."""
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii")


def _read_number(digits: str) -> int | None:
    """The whole number; None for one of more digits than any offset or time has, which Python might refuse to read."""
    return int(digits) if len(digits) <= _MAX_DIGITS else None


def _read_fraction(digits: str) -> float | None:
    """The number; None for one that is larger than any that can be written as JSON again."""
    number = float(digits)
    return number if isfinite(number) else None


def _refuse_constant(name: str) -> NoReturn:
    """Refuse `NaN` and its like, which are Python's and not JSON's.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{name} is no JSON value")


def _short_reason(error: ValueError) -> str:
    """Why the JSON could not be read, without its text."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    return str(error).split("\n")[0][:100]


def writable(value: Any) -> Any:
    """The value with every text in it fit for a UTF-8 file."""
    if isinstance(value, str):
        return _UNWRITABLE.sub("\ufffd", value)
    if isinstance(value, list):
        return [writable(each) for each in value]
    if isinstance(value, dict):
        return {writable(key): writable(each) for key, each in value.items()}
    return value


def as_object(value: Any) -> dict[str, Any]:
    """The value where it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a JSON list; empty where the value is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """The value where it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def as_number(value: Any) -> int | None:
    """The value where it is a whole number, else None; `true` is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def first_object(value: Any) -> dict[str, Any]:
    """The first item of a JSON list where it is an object, else an empty one."""
    return as_object(value[0]) if isinstance(value, list) and value else {}
