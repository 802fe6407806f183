import json
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import ProviderError
from pipeline.core.schema import PROVIDERS, ProviderName
from pipeline.providers import read_payload
from pipeline.providers.http.failure import (
    Decision,
    allowance,
    backoff_seconds,
    decide,
    ends_the_provider,
    payload_error,
    redact,
    unreadable_error,
)
from tests.support.places import DATA, NO_SHARED, SHARED, cases

PAYLOADS = DATA / "payloads"
RECORDINGS = SHARED / "recordings"


def error_of(body: Any, provider: ProviderName = "openai") -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        read_payload(provider, body if isinstance(body, str) else json.dumps(body))
    return caught.value


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason=NO_SHARED)
def test_every_recorded_error_is_of_its_kind_and_retried_as_its_provider_wants() -> None:
    kinds = {400: {"bad_response", "auth"}, 401: {"auth"}, 410: {"bad_response"}, 429: {"rate_limit", "quota"}}
    for sidecar_path in sorted(RECORDINGS.glob("*/error_*.meta.json")):
        sidecar = json.loads(sidecar_path.read_text(encoding="utf-8"))
        path = sidecar_path.with_name(sidecar["file"])
        text = path.read_text(encoding="utf-8")
        error = unreadable_error(text, sidecar["status"])
        wanted = {"rate_limit"} if "http_200" in path.name else kinds.get(sidecar["status"], {"server"})
        assert error.kind in wanted, path.name
        assert not re.search("AIz|not-a-re", f"{error} {error_of(text)}"), path.name
    found: dict[str, Decision | None] = {}
    for path in RECORDINGS.glob("*/error_*.meta.json"):
        sidecar = json.loads(path.read_text(encoding="utf-8"))
        status, body = sidecar["status"], path.with_name(sidecar["file"]).read_text(encoding="utf-8")
        decision = decide(status, sidecar["response_headers"], body, 1, NOW)
        ends = ends_the_provider(unreadable_error(body, status), status)
        assert decision == NO or not ends
        found[f"{path.parent.name}/{path.name.split('.')[0]}"] = None if ends else decision
    assert found == RECORDED


def test_a_failed_body_is_an_error_and_a_key_is_redacted() -> None:
    error = error_of((PAYLOADS / "responses_failed.json").read_text(encoding="utf-8"))
    assert (error.kind, "sk-proj" in str(error), "The model failed" in str(error)) == ("server", False, True)
    for secret in (
        *("sk-ant-api03-abcdefghijkl", "Bearer eyJhbGciOi.J9.x-y_z", "https://x.example/?key=AbCdEf123"),
        *("Incorrect API key provided: abcd1234efgh.", 'x-api-key: "abcd1234efgh"', "pplx-0123456789abcdef"),
        *("AIzaSyA1234567890abcdefghij", "organization org-AbCdEf123456", "not-a-re**************************ized"),
    ):
        shown = redact(f"It failed with {secret} today")
        assert not any(part in shown for part in ("abcdefgh", "eyJ", "AbCdEf", "abcd1234", "0123456", "AIzaSy", "ized"))
        assert "It failed with" in shown


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("", "bad_response", "empty"),
        ("<html>", "bad_response", "not JSON"),
        ('{"a": NaN}', "bad_response", "not JSON"),
        ("[" * 100_000, "bad_response", "too deeply"),
        ("9" * 5000, "bad_response", "no known shape"),
        ("[]", "bad_response", "no known shape"),
        ({"a": 1}, "bad_response", "no known shape: it is an object with the keys 'a'"),
        ({"error": "Incorrect API key provided."}, "auth", "Incorrect API key"),
        ([{"error": {"code": 503, "message": "down", "status": "UNAVAILABLE"}}], "server", "down"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "server", "Overloaded"),
        ({"error": {"code": "429", "message": "slow"}}, "rate_limit", "slow"),
        ({"error": {"code": 402, "message": "pay"}}, "quota", "pay"),
        ({"error": {"status": "DEADLINE_EXCEEDED", "message": "late"}}, "timeout", "late"),
        ({"error": {"code": 429, "details": [{"violations": [{"quotaId": "XPerDay"}]}]}}, "quota", "no reason"),
        ({"choices": [{"error": {"code": 502, "message": "upstream"}}]}, "server", "upstream"),
        ({"error": {}, "choices": []}, "bad_response", "no reason"),
    ],
)
def test_what_is_no_answer_says_why(body: Any, kind: str, words: str) -> None:
    error = error_of(body)
    assert error.kind == kind
    assert words in str(error)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
SAMPLES = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(PAYLOADS.glob("*.json"))]


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, each in inner for found in paths_of(each, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(path) == 1 and new == "missing":
        del copy[path[0]]
    else:
        copy[path[0]] = replaced(copy[path[0]], path[1:], new)
    return copy


@given(st.data())
def test_a_payload_changed_anywhere_is_an_answer_or_an_error_of_ours(data: st.DataObject) -> None:
    sample = data.draw(st.sampled_from(SAMPLES))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(paths_of(sample)))
        sample = replaced(sample, path, data.draw(st.just("missing") | JSON_VALUES))
    provider = data.draw(st.sampled_from(PROVIDERS))
    try:
        answer = read_payload(provider, json.dumps(sample))
    except ProviderError:
        return
    assert len(answer.domains) == len(answer.citations) == len(set(answer.citations))
    assert {each.url for each in answer.occurrences} == set(answer.citations)
    assert all(0 <= each.start < each.end <= len(answer.text) for each in answer.occurrences if each.start is not None)


NOW = 1_789_986_340.0
NO = Decision("no")

CASES = cases("retry")
# The decision on each recorded error; None for what ends the provider.
RECORDED = {name: each and Decision(*each) for name, each in CASES["recorded"].items()}


@pytest.mark.parametrize(("headers", "seconds"), CASES["waits"], ids=lambda value: str(value)[:60])
def test_the_wait_is_the_first_that_the_headers_name(headers: dict[str, str], seconds: float) -> None:
    assert decide(429, headers, "slow down", 1, NOW) == Decision("limit", seconds, stated=True)


@pytest.mark.parametrize("value", ["", "soon", "-5", "nan", "inf", "1e9", "9" * 40, "５", "Mon, 99 Foo 2024", "1s 2x"])
def test_a_header_that_names_no_time_is_as_good_as_none(value: str) -> None:
    assert decide(429, {"retry-after": value, "x-ratelimit-reset": value}, "", 1, NOW) == Decision("limit")


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        ({"details": [{"@type": "x/google.rpc.RetryInfo", "retryDelay": "1.5s"}]}, 1.5),
        ({"message": "Rate limit reached. Please try again in 1m2.5s."}, 62.5),
        ({"message": "Please retry in 48.9s."}, 48.9),
    ],
)
def test_the_body_names_the_wait_where_no_header_does(error: dict[str, object], seconds: float) -> None:
    assert decide(429, {}, json.dumps({"error": error}), 1, NOW) == Decision("limit", seconds, stated=True)


@pytest.mark.parametrize(("status", "headers", "body", "kind"), CASES["kinds"])
def test_errors_are_retried_where_of_use(status: int | None, headers: dict[str, str], body: str, kind: str) -> None:
    assert decide(status, headers, body, 1, NOW).kind == kind


def test_the_wait_that_nobody_named_doubles_up_to_a_minute() -> None:
    assert [backoff_seconds(attempt) for attempt in (1, 2, 3, 7, 50)] == [1, 2, 4, 60, 60]


@pytest.mark.parametrize(("headers", "seconds"), CASES["nothing_left"], ids=lambda value: str(value)[:60])
def test_a_limit_with_nothing_left_is_waited_for(headers: dict[str, str], seconds: float) -> None:
    assert allowance(headers, NOW).pause == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("left", "reset", "rate"),
    [
        pytest.param("30", "20s", 6.0, id="four times what is left until the reset"),
        pytest.param("30", str(NOW + 20), 6.0, id="a moment of the Unix clock"),
        pytest.param("0", "20s", math.inf, id="nothing left is a pause"),
        pytest.param("119", "500ms", math.inf, id="full again within a second"),
        pytest.param("1", "2h", 1 / 60, id="at least one a minute"),
        pytest.param("many", "20s", math.inf, id="no number"),
    ],
)
def test_what_is_left_of_a_limit_says_how_fast_to_ask(left: str, reset: str, rate: float) -> None:
    headers = {"x-ratelimit-remaining-requests": left, "x-ratelimit-reset-requests": reset}
    assert allowance(headers, NOW).rate == pytest.approx(rate)
    tokens = {name.replace("requests", "tokens"): value for name, value in headers.items()}
    assert allowance(tokens, NOW).rate == math.inf


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (404, {"message": "The model `gpt-9` does not exist.", "code": "model_not_found"}, "unknown_model"),
        (404, {"type": "not_found_error", "message": "model: claude-nine"}, "unknown_model"),
        (
            404,
            {"message": "models/gemini-9 is not found for API version v1beta.", "status": "NOT_FOUND"},
            "unknown_model",
        ),
        (400, {"message": "Invalid model 'sonar-9'.", "type": "invalid_model"}, "unknown_model"),
        (400, {"message": "x/y is not a valid model ID", "code": 400}, "unknown_model"),
        (400, "Model not found: grok-9", "unknown_model"),
        (404, {"message": "Not Found"}, "bad_response"),
        (400, {"message": "Unsupported parameter: 'temperature' is not supported with this model."}, "bad_response"),
        (400, {"message": "`response_format` of this model is deprecated"}, "bad_response"),
        (403, {"message": "Your project has no access to model `gpt-9`", "code": "model_not_found"}, "no_permission"),
        (403, {"status": "PERMISSION_DENIED", "message": "The API is not enabled"}, "no_permission"),
        (403, "Your newly created team doesn't have any credits or licenses yet.", "quota"),
        (429, "Your team has either used all available credits or reached its monthly spending limit.", "quota"),
        (429, {"code": "insufficient_quota", "message": "You exceeded your current quota"}, "quota"),
    ],
    ids=str,
)
def test_an_unknown_model_missing_permission_and_empty_quota_end_the_provider(
    status: int, error: object, kind: str
) -> None:
    body = json.dumps({"error": error})
    failure = unreadable_error(body, status)
    assert failure.kind == kind
    assert decide(status, {}, body, 1, NOW) == NO
    assert ends_the_provider(failure, status) is (kind != "bad_response" or status == 404)


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
