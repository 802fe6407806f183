"""Whether a failed request is worth another one, and after how long: decisions as values, without clock or network."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal, NamedTuple

from pipeline.errors import ProviderError
from pipeline.providers.http.body import as_object, as_objects, as_text, load_body
from pipeline.providers.http.failure import error_detail, unreadable_error

# The longest wait that we choose ourselves; what the provider asks for in so many words is taken as it is.
_LONGEST_WAIT = 60.0
# Anthropic asks for 5 to 60 seconds when it is overloaded: https://docs.anthropic.com/en/api/errors, read 2026-11.
_OVERLOADED = 529
_OVERLOADED_BASE = 10.0

_BAD_REQUEST = 400
_RETRIED_CLIENT_ERRORS = (408, 409)
_HOPELESS_SERVER_ERRORS = (501, 505)
_GONE = (404, 410)

_TOO_LARGE = re.compile(r"request too large|request_too_large", re.IGNORECASE)
_RETIRED = re.compile(r"retired|deprecated", re.IGNORECASE)
# The fields that ask for JSON: where one of them is retired, the same model still answers without it.
_FORM_FIELDS = re.compile(
    r"response_?format|output_?(?:config|format)|text\.format|json_(?:schema|object)|response_?(?:json_?schema|mime_?type)",
    re.IGNORECASE,
)
# Gemini: "Please retry in 48.9s." OpenAI: "Please try again in 1m2.5s."
_WAIT_IN_WORDS = re.compile(r"\b(?:retry|try again) in ((?:[\d.]+(?:ms|[dhms]))+)", re.IGNORECASE)

_DECIMAL = re.compile(r"\d{1,15}(?:\.\d{1,9})?", re.ASCII)
_DURATION = re.compile(r"(?:\d{1,9}(?:\.\d{1,9})?(?:ms|[dhms]))+", re.ASCII)
_DURATION_PART = re.compile(r"([\d.]+)(ms|[dhms])")
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
# Numbers this large are moments and not spans: seconds of the Unix clock (Perplexity), then milliseconds (OpenRouter).
_UNIX_SECONDS = 1e8
_UNIX_MILLISECONDS = 1e11


class Decision(NamedTuple):
    """What to do after a failed request: nothing more, or another one after so many seconds.

    `stated` says that the provider named the seconds: at least so long. Otherwise they are the upper end of a random
    wait, in units of the policy's backoff.
    """

    kind: Literal["no", "transient", "rate_limit"]
    seconds: float = 0.0
    stated: bool = False


def decide(status: int | None, headers: Mapping[str, str], body: str, attempt: int, now: float) -> Decision:
    """What to do after request number `attempt` (from 1) that brought no answer.

    `status` is None where nothing came back whole; a 2xx is an error by its body. Names in `headers` are in lower
    case. `now` is the time in Unix seconds, used where the headers have no `date` of the provider's own.

    Source: https://github.com/openai/openai-python `_base_client.py`, read 2026-11.
    """
    if status is None:
        return Decision("transient", backoff_seconds(attempt))
    kind = _retry_kind(status, headers, body)
    if kind == "no":
        return Decision("no")
    told = _stated_seconds(headers, body, now)
    if told is not None:
        return Decision(kind, told, stated=True)
    resets = [wait for wait, remaining in _limit_waits(headers, now) if remaining in (0, None)]
    if kind == "rate_limit" and resets:
        return Decision(kind, min(max(resets), _LONGEST_WAIT), stated=True)
    return Decision(kind, backoff_seconds(attempt, _OVERLOADED_BASE if status == _OVERLOADED else 1.0))


def _retry_kind(status: int, headers: Mapping[str, str], body: str) -> Literal["no", "transient", "rate_limit"]:
    """Whether another request may help, by what the error is, the provider's own word on it, and the status."""
    kind = unreadable_error(body, status).kind
    if kind in ("auth", "quota") or _TOO_LARGE.search(body):
        return "no"
    advice = headers.get("x-should-retry", "").strip().lower()
    if advice == "false":
        return "no"
    if kind == "rate_limit":
        return "rate_limit"
    passing = kind in ("server", "timeout") and status not in _HOPELESS_SERVER_ERRORS
    return "transient" if advice == "true" or passing or status in _RETRIED_CLIENT_ERRORS else "no"


def ends_the_provider(failure: ProviderError, status: int | None) -> bool:
    """Whether no further call of the run can do better: the key, the money, the address or the model is not good."""
    words = str(failure)
    retired = status == _BAD_REQUEST and _RETIRED.search(words) is not None and _FORM_FIELDS.search(words) is None
    return failure.kind in ("auth", "quota") or status in _GONE or retired


def backoff_seconds(attempt: int, base: float = 1.0) -> float:
    """The longest wait after request number `attempt`: doubled each time, at most a minute."""
    return min(base * 2.0 ** (attempt - 1), _LONGEST_WAIT)


def _stated_seconds(headers: Mapping[str, str], body: str, now: float) -> float | None:
    """The wait that the provider names, in its headers or in the error's body; None where it names none."""
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _DECIMAL.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    told = wait_seconds(headers.get("retry-after", ""), time_there(headers, now))
    if told is None:
        told = _window_seconds(headers)
    return _body_seconds(body) if told is None else told


def _body_seconds(body: str) -> float | None:
    """The wait in Gemini's `RetryInfo`, else in the words of the message; None where there is none."""
    try:
        detail = as_object(error_detail(load_body(body)))
    except ProviderError:
        return None
    for each in as_objects(detail.get("details")):
        if as_text(each.get("@type")).endswith("RetryInfo") and _DURATION.fullmatch(as_text(each.get("retryDelay"))):
            return duration_seconds(as_text(each.get("retryDelay")))
    words = _WAIT_IN_WORDS.search(as_text(detail.get("message")))
    return duration_seconds(words[1]) if words and _DURATION.fullmatch(words[1]) else None


def exhausted_seconds(headers: Mapping[str, str], now: float) -> float:
    """How long to start nothing new after this response: a limit has 0 left; at most a minute, 0 where none has."""
    waits = [wait for wait, remaining in _limit_waits(headers, now) if remaining == 0]
    return min(max([*waits, _window_seconds(headers) or 0.0]), _LONGEST_WAIT)


def _window_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds until a window of Brave's limits, all of which it names in one header, has room again; None if all have.

    Source: https://api-dashboard.search.brave.com/app/documentation/web-search/response-headers, read 2026-11.
    """
    left, resets = (headers.get(f"x-ratelimit-{name}", "").split(",") for name in ("remaining", "reset"))
    waits = [
        float(reset)
        for remaining, reset in zip(left, resets, strict=False)
        if len(resets) > 1 and remaining.strip() == "0" and _DECIMAL.fullmatch(reset.strip())
    ]
    return max(waits, default=None)


def _limit_waits(headers: Mapping[str, str], now: float) -> list[tuple[float, int | None]]:
    """For each limit that the headers name: seconds to its reset, and how much of it is left, None where not said."""
    there = time_there(headers, now)
    waits = []
    for name, value in headers.items():
        if "ratelimit" in name and "reset" in name:
            wait = wait_seconds(value, there)
            left = headers.get(name.replace("reset", "remaining"), "").strip()
            if wait is not None:
                waits.append((wait, int(left) if left.isascii() and left.isdigit() and len(left) < 20 else None))
    return waits


def time_there(headers: Mapping[str, str], now: float) -> float:
    """The provider's clock in Unix seconds, ours where it does not show it: the two may differ by minutes."""
    moment = _moment_of(headers.get("date", ""))
    return now if moment is None else moment


def wait_seconds(value: str, now: float) -> float | None:
    """Seconds from `now` to what a header says, never below 0: a span, a moment, or None where it is neither."""
    value = value.strip()
    if _DURATION.fullmatch(value):
        return duration_seconds(value)
    moment = _moment_of(value)
    if _DECIMAL.fullmatch(value):
        number = float(value)
        if number < _UNIX_SECONDS:
            return number
        moment = number / 1000 if number >= _UNIX_MILLISECONDS else number
    return None if moment is None else max(0.0, moment - now)


def _moment_of(value: str) -> float | None:
    """The Unix seconds of an HTTP date or an RFC 3339 time; None where the text is neither."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(value)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None


def duration_seconds(value: str) -> float:
    """The seconds of a span such as `21m36.001s` or `115ms`."""
    return sum(float(amount) * _UNIT_SECONDS[unit] for amount, unit in _DURATION_PART.findall(value))
