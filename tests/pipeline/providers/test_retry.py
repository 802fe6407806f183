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
from tests.support.places import NO_SHARED, SHARED, cases

RECORDINGS = SHARED / "recordings"
NOW = 1_789_986_340.0
NO = Decision("no")

CASES = cases("retry")
# The decision on each recorded error; None for what ends the provider.
RECORDED = {name: each and Decision(*each) for name, each in CASES["recorded"].items()}


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


@pytest.mark.parametrize(("headers", "seconds"), CASES["waits"], ids=lambda value: str(value)[:60])
def test_the_wait_is_the_first_that_the_headers_name(headers: dict[str, str], seconds: float) -> None:
    assert decide(429, headers, "slow down", 1, NOW) == Decision("rate_limit", seconds, stated=True)


@pytest.mark.parametrize("value", ["", "soon", "-5", "nan", "inf", "1e9", "9" * 40, "５", "Mon, 99 Foo 2024", "1s 2x"])
def test_a_header_that_names_no_time_is_as_good_as_none(value: str) -> None:
    assert decide(429, {"retry-after": value, "x-ratelimit-reset": value}, "", 1, NOW) == Decision("rate_limit", 1.0)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        ({"details": [{"@type": "x/google.rpc.RetryInfo", "retryDelay": "1.5s"}]}, 1.5),
        ({"message": "Rate limit reached. Please try again in 1m2.5s."}, 62.5),
        ({"message": "Please retry in 48.9s."}, 48.9),
    ],
)
def test_the_body_names_the_wait_where_no_header_does(error: dict[str, object], seconds: float) -> None:
    assert decide(429, {}, json.dumps({"error": error}), 1, NOW) == Decision("rate_limit", seconds, stated=True)


@pytest.mark.parametrize(("status", "headers", "body", "kind"), CASES["kinds"])
def test_an_error_is_retried_only_where_that_may_help(
    status: int | None, headers: dict[str, str], body: str, kind: str
) -> None:
    assert decide(status, headers, body, 1, NOW).kind == kind


def test_the_wait_that_nobody_named_doubles_up_to_a_minute() -> None:
    assert [backoff_seconds(attempt) for attempt in (1, 2, 3, 7, 50)] == [1, 2, 4, 60, 60]


@pytest.mark.parametrize(("headers", "seconds"), CASES["nothing_left"], ids=lambda value: str(value)[:60])
def test_a_limit_with_nothing_left_is_waited_for(headers: dict[str, str], seconds: float) -> None:
    assert exhausted_seconds(headers, NOW) == pytest.approx(seconds)


@pytest.mark.parametrize(("words", "ends"), CASES["retired"])
def test_a_retired_api_ends_the_provider_and_a_retired_form_of_asking_for_json_does_not(words: str, ends: bool) -> None:
    assert ends_the_provider(ProviderError(words), 400) is ends


@pytest.mark.parametrize("body", CASES["refused"])
def test_a_question_refused_for_its_content_says_nothing_of_the_key(body: object) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    failure = unreadable_error(text, 403)
    assert (failure.kind, decide(403, {}, text, 1, NOW)) == ("bad_response", NO)
    assert not ends_the_provider(failure, 403)
    assert not ends_the_provider(payload_error(body, 200), 200)
