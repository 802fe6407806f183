"""What a failed request means: its kind, its message without anything secret, and whether and when to ask again.

Decisions are values, without clock or network.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NamedTuple

from pipeline.core.errors import ProviderError
from pipeline.core.schema import ErrorKind
from pipeline.core.sentences import packaged_table
from pipeline.providers.http.pace import Allowance
from pipeline.providers.http.request import as_number, as_object, as_objects, as_text, first_object, is_error, load_body

_MAX_MESSAGE = 400

# A refusal in plain words of the model, such as "I cannot help with that", is an answer like any other.
_REFUSED = {
    *("refusal", "content_filter"),  # OpenAI and Anthropic
    # Google's finishReason and blockReason: https://ai.google.dev/api/generate-content#FinishReason
    *("safety", "recitation", "blocklist", "prohibited_content", "spii", "image_safety", "jailbreak", "model_armor"),
}
_SAID: dict[str, Any] = packaged_table(__file__)
_REFUSED_CONTENT, _WRONG_KEY, _NO_MONEY, _NO_MODEL, _FORM_FIELDS = (
    re.compile(form, re.IGNORECASE | re.MULTILINE) for form in _SAID["patterns"].values()
)

# OpenAI shows the ends of a wrong key, Gemini may show all of it; limits name organisations and users.
_SECRETS = (
    re.compile(r"\b(?:sk|pk|pplx|xai|gsk|rk)-[\w*.-]{6,}|\bAIz[\w*-]{10,}|\bya29\.[\w.-]+|\bAQ\.[\w.-]{10,}"),
    re.compile(r"(?<=bearer )[\w.~+/*=-]+", re.IGNORECASE),
    re.compile(r"(?<=[?&]key=)[^&\s\"']+", re.IGNORECASE),
    re.compile(
        r"(?P<kept>\b(?:api[ _-]?key|x-goog-api-key|authorization|token)\b[^:=.\n]{0,40}[:=]\s*[\"'`]?)"
        r"(?!//)[^\s\"'`,;]{4,}",
        re.IGNORECASE,
    ),
    re.compile(r"[^\s\"'`:]*\*{3,}[^\s\"'`.,]*"),
    re.compile(r"\b(?:org|user|proj|req|acct)[-_][A-Za-z0-9]{4,}"),
    re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE),
    re.compile(r"(?<=organization \()[^)]*(?=\))"),
)
REDACTED = "[redacted]"

# Some proxies answer with a web page; only its words are worth keeping.
_PAGE_MARKUP = re.compile(r"<(script|style)\b.*?(?:</\1>|\Z)|<[^<>]*>", re.DOTALL | re.IGNORECASE)

ENDING: tuple[ErrorKind, ...] = ("auth", "no_permission", "unknown_model", "quota")
"""What no further call to the provider can do better."""
OVERLOADED = (503, 529)
_KIND_BY_WORD: dict[str, ErrorKind] = {word: kind for kind, words in _SAID["kinds"].items() for word in words.split()}
_KIND_BY_STATUS: dict[int, ErrorKind] = {int(status): kind for status, kind in _SAID["statuses"].items()}


def payload_error(body: Any, status: int | None = None) -> ProviderError:
    """The error that a provider's error body stands for; `status` is the HTTP status where it is known.

    Its kind comes from the status, the body's own code or its words; a 2xx says nothing about an error in its body.
    """
    detail = _error_detail(body)
    inner = as_object(detail)
    if not status or status < 400:  # the one that the error names itself, as number or digits
        code = inner.get("code")
        is_text = isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3
        status = int(str(code)) if is_text else as_number(code)
    words = _error_words(body, inner)
    # The provider's words: its message, `detail` or `detail.error` (Tavily), and what OpenRouter passes on.
    nested = as_text(as_object(inner.get("detail")).get("error"))
    said = [as_text(inner.get("message")) or as_text(inner.get("detail")) or nested]
    said = [detail] if isinstance(detail, str) else [*said, as_text(as_object(inner.get("metadata")).get("raw"))]
    message = redact(": ".join(filter(None, said))) or "the provider gives no reason"
    return ProviderError(f"The provider answered with an error: {message}", error_kind(status, words))


def unreadable_error(text: str, status: int | None) -> ProviderError:
    try:
        return payload_error(load_body(text), status)
    except ProviderError:
        head = " ".join(_PAGE_MARKUP.sub(" ", text[:2000]).split())
        message = redact(head)[:200] or "an empty body"
        return ProviderError(f"The provider answered status {status}: {message}", error_kind(status, head))


def _error_detail(body: Any) -> Any:
    """What stands under `error`: an object, or a text (xAI); the body itself where it has none."""
    if isinstance(body, list):
        body = next((each for each in body if is_error(each)), {})
    fields = as_object(body)
    choice_error = first_object(fields.get("choices")).get("error")
    found = choice_error if fields.get("error") is None else fields["error"]
    if isinstance(found, list):
        return first_object(found)
    return fields if found is None else found


def _error_words(body: Any, fields: dict[str, Any]) -> str:
    details = as_objects(fields.get("details"))
    violations = [quota for detail in details for quota in as_objects(detail.get("violations"))]
    values = [
        *(fields.get(name) for name in ("type", "code", "status", "message")),
        *(detail.get("reason") for detail in details),
        *(quota.get("quotaId") for quota in violations),
        as_object(body).get("error"),
        as_object(fields.get("detail")).get("error"),
        as_object(body).get("code"),
        as_object(fields.get("metadata")).get("raw"),
    ]
    return "\n".join(value for value in values if isinstance(value, str))


def error_kind(status: int | None, words: str) -> ErrorKind:
    """What the words say of key, money and model first, then the status, then the error's type."""
    if _WRONG_KEY.search(words):
        return "auth"
    if _NO_MONEY.search(words):
        return "quota"
    if status in (None, 400, 404, 410, 422) and _NO_MODEL.search(words) and not _FORM_FIELDS.search(words):
        return "unknown_model"
    # xAI and OpenRouter refuse a question for its content with the status of a wrong key; the next one may be harmless.
    if status == 403 and _REFUSED_CONTENT.search(words):
        return "bad_response"
    if status in _KIND_BY_STATUS:
        return _KIND_BY_STATUS[status]
    if status is not None and status >= 500:
        return "server"
    for word in words.lower().split("\n"):
        if word in _KIND_BY_WORD:
            return _KIND_BY_WORD[word]
    return "bad_response"


def redact(text: str) -> str:
    """One line of at most 400 characters without keys, organisations, users and request ids."""
    line = " ".join(text[: 4 * _MAX_MESSAGE].split())
    for pattern in _SECRETS:
        kept = r"\g<kept>" if "kept" in pattern.groupindex else ""
        line = pattern.sub(kept + REDACTED, line)
    return line if len(line) <= _MAX_MESSAGE else line[: _MAX_MESSAGE - 1] + "…"


def is_refusal(stop_reason: str) -> bool:
    return stop_reason.lower() in _REFUSED


def is_refusal_error(kind: ErrorKind, message: str) -> bool:
    """Whether a line of `errors.jsonl` is a question that was refused for its content."""
    return kind == "bad_response" and bool(_REFUSED_CONTENT.search(message))


# The longest wait that we choose ourselves; what the provider asks for in so many words is taken as it is.
_LONGEST_WAIT = 60.0


# Gemini: "Please retry in 48.9s." OpenAI: "Please try again in 1m2.5s."
_WAIT_IN_WORDS = re.compile(r"\b(?:retry|try again) in ((?:[\d.]+(?:ms|[dhms]))+)", re.IGNORECASE)

_DECIMAL = re.compile(r"\d{1,15}(?:\.\d{1,9})?", re.ASCII)
_DURATION = re.compile(r"(?:\d{1,9}(?:\.\d{1,9})?(?:ms|[dhms]))+", re.ASCII)
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Decision(NamedTuple):
    """What to do after a failed request: nothing more, or another one after so many seconds.

    After a `limit`, which is a rate limit or overload, it is no further attempt. `stated` says that the provider named
    the seconds: at least so long. Otherwise they are the upper end of a random wait, in units of the policy's backoff;
    after a limit they are 0, for the pace says when.
    """

    kind: Literal["no", "transient", "limit"]
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
    resets = [wait for wait, left, _ in _limit_waits(headers, now) if left in (0, None)]
    if kind == "limit":
        return Decision(kind, min(max(resets), _LONGEST_WAIT), stated=True) if resets else Decision(kind)
    return Decision(kind, backoff_seconds(attempt))


def _retry_kind(status: int, headers: Mapping[str, str], body: str) -> Literal["no", "transient", "limit"]:
    kind = unreadable_error(body, status).kind
    if kind in ENDING or re.search(r"request too large|request_too_large", body, flags=re.IGNORECASE):
        return "no"
    advice = headers.get("x-should-retry", "").strip().lower()
    if advice == "false":
        return "no"
    if kind == "rate_limit" or (status in OVERLOADED and kind == "server"):
        return "limit"
    passing = kind in ("server", "timeout") and status not in (501, 505)
    return "transient" if advice == "true" or passing or status in (408, 409) else "no"


def ends_the_provider(failure: ProviderError, status: int | None) -> bool:
    """Whether no further call of the run can do better: the key, the money, the address or the model is not good."""
    words = str(failure)
    is_retired = re.search(r"retired|deprecated", words, flags=re.IGNORECASE) and not _FORM_FIELDS.search(words)
    retired = status == 400 and bool(is_retired)
    return failure.kind in ENDING or status in (404, 410) or retired


def is_limit(failure: ProviderError) -> bool:
    """Whether it is a rate limit or overload, which costs nothing and passes."""
    return failure.kind == "rate_limit" or (failure.kind == "server" and failure.status in OVERLOADED)


def backoff_seconds(attempt: int) -> float:
    return min(2.0 ** (attempt - 1), _LONGEST_WAIT)


def _stated_seconds(headers: Mapping[str, str], body: str, now: float) -> float | None:
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _DECIMAL.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    told = wait_seconds(headers.get("retry-after", ""), time_there(headers, now))
    if told is None:
        told = _window_seconds(headers)
    return _body_seconds(body) if told is None else told


def _body_seconds(body: str) -> float | None:
    try:
        detail = as_object(_error_detail(load_body(body)))
    except ProviderError:
        return None
    for each in as_objects(detail.get("details")):
        if as_text(each.get("@type")).endswith("RetryInfo") and _DURATION.fullmatch(as_text(each.get("retryDelay"))):
            return _duration_seconds(as_text(each.get("retryDelay")))
    words = _WAIT_IN_WORDS.search(as_text(detail.get("message")))
    return _duration_seconds(words[1]) if words and _DURATION.fullmatch(words[1]) else None


def allowance(headers: Mapping[str, str], now: float) -> Allowance:
    """What the limits in the headers leave; a limit with 0 left is a pause of at most a minute.

    Four times what is left until the reset: so a window of time is used up in it, and of a bucket that is filled
    steadily, whose reset moves, a fifth is kept. At least one request a minute is left.
    """
    limits = _limit_waits(headers, now)
    waits = [wait for wait, left, _ in limits if left == 0]
    pause = min(max([*waits, _window_seconds(headers) or 0.0]), _LONGEST_WAIT)
    some = [(wait, left) for wait, left, name in limits if left and wait > 1 and "token" not in name]
    rates = [(max(4 * left / wait, 1 / _LONGEST_WAIT), wait) for wait, left in some]
    return Allowance(pause, *min(rates)) if rates else Allowance(pause)


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


def _limit_waits(headers: Mapping[str, str], now: float) -> list[tuple[float, int | None, str]]:
    """For each limit that the headers name: seconds to its reset, how much is left, None where not said, its name."""
    there = time_there(headers, now)
    waits = []
    for name, value in headers.items():
        if "ratelimit" in name and "reset" in name:
            wait = wait_seconds(value, there)
            left = headers.get(name.replace("reset", "remaining"), "").strip()
            if wait is not None:
                waits.append((wait, int(left) if left.isascii() and left.isdigit() and len(left) < 20 else None, name))
    return waits


def time_there(headers: Mapping[str, str], now: float) -> float:
    """The provider's clock in Unix seconds, ours where it does not show it: the two may differ by minutes."""
    moment = _moment_of(headers.get("date", ""))
    return now if moment is None else moment


def wait_seconds(value: str, now: float) -> float | None:
    """Seconds from `now` to what a header says, never below 0: a span, a moment, or None where it is neither."""
    value = value.strip()
    if _DURATION.fullmatch(value):
        return _duration_seconds(value)
    moment = _moment_of(value)
    if _DECIMAL.fullmatch(value):
        number = float(value)
        # Larger ones are no spans but moments: seconds of the Unix clock (Perplexity), then milliseconds (OpenRouter).
        if number < 1e8:
            return number
        moment = number / 1000 if number >= 1e11 else number
    return None if moment is None else max(0.0, moment - now)


def _moment_of(value: str) -> float | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(value)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None


def _duration_seconds(value: str) -> float:
    return sum(float(amount) * _UNIT_SECONDS[unit] for amount, unit in re.findall(r"([\d.]+)(ms|[dhms])", value))
