import json

import pytest

from pipeline.core.errors import ProviderError
from pipeline.providers.http.failure import (
    Decision,
    backoff_seconds,
    decide,
    ends_the_provider,
    exhausted_seconds,
    payload_error,
    unreadable_error,
)
from tests.support.places import NO_SHARED, SHARED

RECORDINGS = SHARED / "recordings"
NOW = 1_789_986_340.0
NO = Decision("no")
GUESS = 1.0

RECORDED: dict[str, Decision | None] = {
    "anthropic/error_401_invalid_key": None,
    "anthropic/error_429_2024_headers": Decision("rate_limit", 7.0, stated=True),
    "anthropic/error_429_retry_after_8": Decision("rate_limit", 8.0, stated=True),
    "anthropic/error_500_api_error": NO,
    "anthropic/error_529_overloaded": Decision("transient", 10.0),
    "gemini/error_400_api_key_invalid": None,
    "gemini/error_429_quota_retryinfo": Decision("rate_limit", 48.0, stated=True),
    "gemini/error_500_internal": Decision("transient", GUESS),
    "gemini/error_503_overloaded": Decision("transient", GUESS),
    "openai/error_401_invalid_key": None,
    "openai/error_429_insufficient_quota": None,
    "openai/error_429_rpm_retry_after": Decision("rate_limit", 20.0, stated=True),
    "openai/error_500_server_error": Decision("transient", GUESS),
    "openai/error_503_plain_text": Decision("transient", GUESS),
    "openrouter/error_401_missing_auth": None,
    "openrouter/error_429_upstream": Decision("rate_limit", GUESS),
    "openrouter/error_in_http_200_body_429": Decision("rate_limit", GUESS),
    "perplexity/error_400_roles_must_alternate": NO,
    "perplexity/error_401_html": None,
    "perplexity/error_401_json": None,
    "xai/error_400_prompt_too_long": NO,
    "xai/error_400_wrong_key_2026-08": None,
    "xai/error_410_live_search_deprecated": None,
    "xai/error_503_at_capacity": Decision("transient", GUESS),
}
"""None for what ends the provider."""


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason=NO_SHARED)
def test_each_recorded_error_is_retried_as_its_provider_wants() -> None:
    found: dict[str, Decision | None] = {}
    for path in RECORDINGS.glob("*/error_*.meta.json"):
        sidecar = json.loads(path.read_text(encoding="utf-8"))
        status, body = sidecar["status"], path.with_name(sidecar["file"]).read_text(encoding="utf-8")
        decision = decide(status, sidecar["response_headers"], body, 1, NOW)
        ends = ends_the_provider(unreadable_error(body, status), status)
        assert decision == NO or not ends
        found[f"{path.parent.name}/{path.name.split('.')[0]}"] = None if ends else decision
    assert found == RECORDED


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "1h2m3.5s"}, 3723.5),
        ({"retry-after": "250ms"}, 0.25),
        ({"retry-after": "Tue, 02 Apr 2024 14:04:09 GMT", "date": "Tue, 02 Apr 2024 14:03:49 GMT"}, 20.0),
        ({"retry-after": "Tue, 02 Apr 2024 14:04:09 GMT"}, 0.0),
        ({"x-ratelimit-reset-requests": "12s", "x-ratelimit-reset-tokens": "115ms"}, 12.0),
        (
            {
                "x-ratelimit-reset-requests": "12s",
                "x-ratelimit-remaining-requests": "7",
                "x-ratelimit-reset-tokens": "5s",
            },
            5.0,
        ),
        ({"x-ratelimit-reset-requests": "21m36.001s"}, 60.0),
        ({"x-ratelimit-reset": "1789986347"}, 7.0),
        ({"x-ratelimit-reset": "1789986347000"}, 7.0),
        ({"x-ratelimit-reset": "30"}, 30.0),
        ({"anthropic-ratelimit-tokens-reset": "2024-06-04T18:39:57Z", "date": "Tue, 04 Jun 2024 18:39:50 GMT"}, 7.0),
    ],
    ids=lambda value: str(value)[:60],
)
def test_the_wait_is_the_first_that_the_headers_name(headers: dict[str, str], seconds: float) -> None:
    assert decide(429, headers, "slow down", 1, NOW) == Decision("rate_limit", seconds, stated=True)


@pytest.mark.parametrize("value", ["", "soon", "-5", "nan", "inf", "1e9", "9" * 40, "５", "Mon, 99 Foo 2024", "1s 2x"])
def test_a_header_that_names_no_time_is_as_good_as_none(value: str) -> None:
    assert decide(429, {"retry-after": value, "x-ratelimit-reset": value}, "", 1, NOW) == Decision("rate_limit", GUESS)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        ({"details": [{"@type": "x/google.rpc.RetryInfo", "retryDelay": "1.5s"}]}, 1.5),
        ({"message": "Rate limit reached. Please try again in 1m2.5s."}, 62.5),
        ({"message": "Please retry in 48.9s."}, 48.9),
    ],
)
def test_the_body_names_the_wait_where_no_header_does(error: dict[str, object], seconds: float) -> None:
    body = json.dumps({"error": error})
    assert decide(429, {}, body, 1, NOW) == Decision("rate_limit", seconds, stated=True)


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind"),
    [
        (None, {}, "", "transient"),
        (408, {}, "", "transient"),
        (409, {}, "", "transient"),
        (500, {}, "", "transient"),
        (502, {}, "<html>", "transient"),
        (503, {}, '{"error": {"code": "slow_down"}}', "transient"),
        (504, {}, "", "transient"),
        (501, {}, "", "no"),
        (400, {}, "", "no"),
        (404, {}, "", "no"),
        (413, {}, "", "no"),
        (422, {}, "", "no"),
        (422, {"x-should-retry": "true"}, "", "transient"),
        (500, {"x-should-retry": "false"}, "", "no"),
        (429, {"x-should-retry": "false", "retry-after": "1"}, "", "no"),
        (401, {"x-should-retry": "true"}, "", "no"),
        (429, {"retry-after": "1"}, '{"error": {"code": "credit_balance_exhausted"}}', "no"),
        (429, {"retry-after": "1"}, '{"error": {"message": "Request too large for gpt"}}', "no"),
        (429, {}, '{"error": {"details": [{"violations": [{"quotaId": "RequestsPerDay"}]}]}}', "no"),
        (200, {}, '{"error": {"code": 502, "message": "upstream"}}', "transient"),
        (200, {}, '{"error": {"code": 400, "message": "what"}}', "no"),
    ],
)
def test_an_error_is_retried_only_where_that_may_help(
    status: int | None, headers: dict[str, str], body: str, kind: str
) -> None:
    assert decide(status, headers, body, 1, NOW).kind == kind


def test_the_wait_that_nobody_named_doubles_up_to_a_minute() -> None:
    assert [backoff_seconds(attempt) for attempt in (1, 2, 3, 7, 50)] == [1, 2, 4, 60, 60]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0.0),
        ({"x-ratelimit-remaining": "0"}, 0.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6s"}, 6.0),
        ({"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "6s"}, 0.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "2h"}, 60.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1789986341"}, 1.0),
        (
            {
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-input-tokens-reset": "2024-06-04T18:39:57Z",
                "date": "Tue, 04 Jun 2024 18:39:50 GMT",
            },
            7.0,
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_limit_with_nothing_left_is_waited_for(headers: dict[str, str], seconds: float) -> None:
    assert exhausted_seconds(headers, NOW) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        ("This model is deprecated.", True),
        ("Messages should alternate.", False),
        ("`response_format` is deprecated for this model; use `structured_outputs`.", False),
        ("output_format: This field is deprecated. Use 'output_config.format' instead.", False),
        ("type json_schema has been retired", False),
        ("generationConfig.responseJsonSchema is deprecated", False),
    ],
)
def test_a_retired_api_ends_the_provider_and_a_retired_form_of_asking_for_json_does_not(words: str, ends: bool) -> None:
    assert ends_the_provider(ProviderError(words), 400) is ends


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": 403, "message": "Your input was flagged by the moderation of the model"}},
        {"error": {"code": 403, "message": "Provider returned error", "metadata": {"raw": "flagged: hate"}}},
        {"code": "forbidden", "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"},
        {"error": {"code": "content_policy_violation", "message": "No."}},
        "The content filter refused it.",
    ],
)
def test_a_question_refused_for_its_content_says_nothing_of_the_key(body: object) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    failure = unreadable_error(text, 403)
    assert failure.kind == "bad_response"
    assert decide(403, {}, text, 1, NOW) == NO
    assert not ends_the_provider(failure, 403)
    in_success = payload_error(body, 200)
    assert not ends_the_provider(in_success, 200)
