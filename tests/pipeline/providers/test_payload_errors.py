import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import ProviderError
from pipeline.core.schema import PROVIDERS, ProviderName
from pipeline.providers import read_payload
from pipeline.providers.http.failure import redact, unreadable_error
from tests.support.places import DATA, NO_SHARED, SHARED

PAYLOADS = DATA / "payloads"
RECORDINGS = SHARED / "recordings"


def error_of(body: Any, provider: ProviderName = "openai") -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        read_payload(provider, body if isinstance(body, str) else json.dumps(body))
    return caught.value


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason=NO_SHARED)
def test_every_recorded_error_is_an_error_of_its_kind_and_shows_no_key() -> None:
    kinds = {400: {"bad_response", "auth"}, 401: {"auth"}, 410: {"bad_response"}, 429: {"rate_limit", "quota"}}
    for sidecar_path in sorted(RECORDINGS.glob("*/error_*.meta.json")):
        sidecar = json.loads(sidecar_path.read_text(encoding="utf-8"))
        path = sidecar_path.with_name(sidecar["file"])
        text = path.read_text(encoding="utf-8")
        error = unreadable_error(text, sidecar["status"])
        wanted = {"rate_limit"} if "http_200" in path.name else kinds.get(sidecar["status"], {"server"})
        assert error.kind in wanted, path.name
        assert not re.search("AIz|not-a-re", f"{error} {error_of(text)}"), path.name


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
