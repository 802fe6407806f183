"""What a provider's error body says: its kind in `errors.jsonl`, its message without anything secret, or a refusal."""

import re
from typing import Any

from pipeline.errors import ErrorKind, ProviderError
from pipeline.providers.http.body import as_number, as_object, as_objects, as_text, first_object, load_body

_MAX_MESSAGE = 400

# A refusal in plain words of the model, such as "I cannot help with that", is an answer like any other.
_REFUSED = frozenset(
    (
        # OpenAI and Anthropic
        "refusal",
        "content_filter",
        # Google's finishReason and blockReason: https://ai.google.dev/api/generate-content#FinishReason
        "safety",
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "image_safety",
        "jailbreak",
        "model_armor",
    )
)
# What stands in an error that is about the question's content.
_REFUSED_CONTENT = re.compile(
    r"moderation|flagged|usage guidelines|content[ _](?:management )?(?:polic|filter)|safety[ _](?:check|system)",
    re.IGNORECASE,
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

_WRONG_KEY = re.compile(
    r"API_KEY_INVALID|SUBSCRIPTION_TOKEN_INVALID|(?:incorrect|invalid|missing|no) api[ _]?key|api key not valid",
    re.IGNORECASE,
)
_NO_MONEY = re.compile(
    r"insufficient_quota|credit_balance|credit balance|spend_?\s?limit|organization_usage_limit|usage limits?\b|PerDay",
    re.IGNORECASE,
)
# xAI and OpenRouter refuse a question for its content with the status of a wrong key; the next one may be harmless.
_FORBIDDEN = 403
_KIND_BY_WORD: dict[str, ErrorKind] = {
    "authentication_error": "auth",
    "permission_error": "auth",
    "invalid_api_key": "auth",
    "unauthenticated": "auth",
    "permission_denied": "auth",
    "billing_error": "quota",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "resource_exhausted": "rate_limit",
    "slow_down": "rate_limit",
    "too_many_requests": "rate_limit",
    "timeout_error": "timeout",
    "deadline_exceeded": "timeout",
    "api_error": "server",
    "overloaded_error": "server",
    "server_error": "server",
    "internal": "server",
    "internal_server_error": "server",
    "unavailable": "server",
}
_KIND_BY_STATUS: dict[int, ErrorKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    408: "timeout",
    429: "rate_limit",
    # Tavily's for a plan and for pay-as-you-go that are used up.
    432: "quota",
    433: "quota",
    504: "timeout",
}


def is_error(body: Any) -> bool:
    """Whether the body is an error and nothing else: `error` is null beside an answer, and told by its `status`."""
    if isinstance(body, list):
        return any(is_error(each) for each in body)
    if not isinstance(body, dict):
        return False
    if body.get("type") == "error":
        return True
    if first_object(body.get("choices")).get("error") is not None:
        return True
    answer = any(body.get(key) for key in ("choices", "output", "content", "candidates"))
    return body.get("error") is not None and not answer and body.get("object") not in ("response", "interaction")


def payload_error(body: Any, status: int | None = None) -> ProviderError:
    """The error that a provider's error body stands for, its kind told by the status, the body's own code or its words.

    `status` is the HTTP status where it is known; a 2xx says nothing about an error in its body.
    """
    detail = error_detail(body)
    inner = as_object(detail)
    status = status if status and status >= 400 else _inner_status(inner)
    words = _error_words(body, inner)
    message = redact(_error_message(detail)) or "the provider gives no reason"
    return ProviderError(f"The provider answered with an error: {message}", error_kind(status, words))


def unreadable_error(text: str, status: int | None) -> ProviderError:
    """The error that a failed request's body stands for, whether it is JSON or not."""
    try:
        return payload_error(load_body(text), status)
    except ProviderError:
        head = " ".join(_PAGE_MARKUP.sub(" ", text[:2000]).split())
        message = redact(head)[:200] or "an empty body"
        return ProviderError(f"The provider answered status {status}: {message}", error_kind(status, head))


def error_detail(body: Any) -> Any:
    """What stands under `error`: an object, or a text (xAI); the body itself where it has none."""
    if isinstance(body, list):
        body = next((each for each in body if is_error(each)), {})
    fields = as_object(body)
    choice_error = first_object(fields.get("choices")).get("error")
    found = fields.get("error")
    if found is None:
        found = choice_error
    if isinstance(found, list):
        return first_object(found)
    return fields if found is None else found


def _error_message(detail: Any) -> str:
    """The provider's words: its message, `detail` or `detail.error` (Tavily), and what OpenRouter passes on."""
    if isinstance(detail, str):
        return detail
    fields = as_object(detail)
    raw = as_text(as_object(fields.get("metadata")).get("raw"))
    nested = as_text(as_object(fields.get("detail")).get("error"))
    told = [as_text(fields.get("message")) or as_text(fields.get("detail")) or nested, raw]
    return ": ".join(part for part in told if part)


def _inner_status(fields: dict[str, Any]) -> int | None:
    """The HTTP status that the error names itself, as number or digits."""
    code = fields.get("code")
    if isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3:
        return int(code)
    return as_number(code)


def _error_words(body: Any, fields: dict[str, Any]) -> str:
    """Type, code, status, reasons, quota ids and message of the error, one a line."""
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
    """The kind of `errors.jsonl`: what the words say of key and money first, then the status, then the error's type."""
    if _WRONG_KEY.search(words):
        return "auth"
    if _NO_MONEY.search(words):
        return "quota"
    if status == _FORBIDDEN and _REFUSED_CONTENT.search(words):
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
    """Whether the answer ended for this reason because the provider refused or blocked it."""
    return stop_reason.lower() in _REFUSED


def is_refusal_error(kind: ErrorKind, message: str) -> bool:
    """Whether a line of `errors.jsonl` with this kind and message is a question that was refused for its content."""
    return kind == "bad_response" and bool(_REFUSED_CONTENT.search(message))
