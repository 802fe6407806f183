"""What is said of a request that is not valid: what is wrong and where, and no more of its text than shows which.

argilla-server 2.8.0 writes such a request's values into its log twice, with a traceback, and names of fields and values
of answers whole into its refusals: 5 MB of them become 10 MB of log.
"""

import logging
from collections.abc import Callable
from typing import Any

_LONGEST = 1_000  # characters of a refusal
_LONGEST_NAME = 100
_MOST_ERRORS = 20
_logger = logging.getLogger(__name__)


def name_first_errors(_: Any) -> Callable[[Any, Any], None]:
    """An `__init__` of the answer to an invalid request that names the first things that are wrong, each in short."""

    def take_first(answer: Any, error: Any) -> None:
        errors = error.errors()
        answer.errors = [
            {"type": each["type"], "loc": tuple(map(_short_place, each["loc"])), "msg": _short(each["msg"], _LONGEST)}
            for each in errors[:_MOST_ERRORS]
        ]
        left_out = len(errors) - len(answer.errors)
        if left_out:
            answer.errors.append({"type": "more", "loc": (), "msg": f"and {left_out:,} more"})

    return take_first


def log_without_values(convert: Any) -> Any:
    """A class method that makes an error what is answered; what is not valid gets one line in the log, not its text."""
    from argilla_server.errors.base_errors import ValidationError
    from fastapi.exceptions import RequestValidationError

    def make_answer(_: Any, error: Exception) -> Any:
        if not isinstance(error, RequestValidationError):
            return convert(error)
        answer = ValidationError(error)
        first = answer.errors[0]
        place = ".".join(map(str, first["loc"]))
        _logger.warning("not valid, %d errors, the first at %s: %s", len(error.errors()), ascii(place), first["type"])
        return answer

    return classmethod(make_answer)


def shorten_message(init: Any) -> Callable[..., None]:
    """An `__init__` of a refusal whose text is not longer than people read."""

    def keep_short(refusal: Any, message: Any, *args: Any, **named: Any) -> None:
        short = _short(message, _LONGEST) if isinstance(message, str) else message
        init(refusal, short, *args, **named)
        refusal.args = (short,)

    return keep_short


def _short_place(part: Any) -> Any:
    """A part of a place in a body: a number, or a name, which clients make up."""
    return _short(part, _LONGEST_NAME) if isinstance(part, str) else part


def _short(text: str, longest: int) -> str:
    """The text's beginning."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
