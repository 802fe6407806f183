import asyncio
import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.core.errors import ProviderError
from pipeline.models.completion import extract_json, model_content, read_structured
from pipeline.providers import provider_name, read_payload
from tests.support.places import NO_SHARED, SHARED, cases

RECORDINGS = SHARED / "recordings"
needs_recordings = pytest.mark.skipif(not RECORDINGS.is_dir(), reason=NO_SHARED)


def chat(content: Any) -> str:
    return json.dumps({"choices": [{"message": {"content": content}, "finish_reason": "stop"}], "model": "m"})


CASES = cases("completions")
ANSWER = {"label": "yes", "quote": 'a } "b" ``` c'}


@pytest.mark.parametrize(("payload", "content", "shape"), CASES["payloads"].values(), ids=CASES["payloads"])
def test_content_is_of_the_envelope_then_the_seeds_fields_then_the_text(payload: str, content: str, shape: str) -> None:
    completion = model_content(payload)
    assert completion[:2] == (content, shape)
    assert payload != chat("yes") or completion[2:] == ("m", "stop")


@pytest.mark.parametrize(
    "payload", ['{"error": {"message": "no"}}', '{"object": "response", "status": "failed"}', "[" * 100_000]
)
def test_an_error_a_failure_and_an_abyss_have_no_content(payload: str) -> None:
    with pytest.raises(ProviderError):
        model_content(payload)


@needs_recordings
def test_content_of_every_recording_is_the_answers_text_or_the_projects_error() -> None:
    read = 0
    for path in sorted(RECORDINGS.glob("*/*.meta.json")):
        sidecar = json.loads(path.read_text(encoding="utf-8"))
        text = path.with_name(sidecar["file"]).read_text(encoding="utf-8")
        if sidecar["api_shape"] == "non-json":
            assert model_content(text).shape == "raw"
        elif sidecar["api_shape"] == "error":
            with pytest.raises(ProviderError):
                model_content(text)
        else:
            content = model_content(text).content
            assert content == read_payload(provider_name(sidecar["provider"]), text).text, path.name
            assert extract_json(content).status in ("ok", "invalid_json")
            read += 1
    assert read > 80


@pytest.mark.parametrize("content", CASES["contents"].values(), ids=CASES["contents"])
def test_json_is_found_in(content: str) -> None:
    assert extract_json(content) == (ANSWER, "ok", "")


@pytest.mark.parametrize(("content", "value"), CASES["slips"].values(), ids=CASES["slips"])
def test_raw_line_breaks_and_curly_quotes_are_read_and_never_as_another_value(content: str, value: Any) -> None:
    assert extract_json(content).value == value


def test_where_a_curly_string_ends_in_doubt_the_model_is_asked() -> None:
    said = asyncio.run(read_structured(chat('{"a": „er schrieb, „ja“, und ging“}'), dict))
    assert (said.value, said.status) == (None, "invalid_json")


@pytest.mark.parametrize("value", CASES["envelopes that are none"])
def test_an_object_that_only_looks_like_an_envelope_stays_and_so_does_a_fourth_envelope(value: Any) -> None:
    assert extract_json(json.dumps(value)).value == value
    assert extract_json(f"All: {json.dumps(value)}").value == (value or None)
    nested = chat(chat(chat(json.dumps(ANSWER))))
    assert extract_json(nested).value == ANSWER
    assert extract_json(chat(nested)).value != ANSWER


@pytest.mark.parametrize("content", ["", "no", "42", "null", '{"a": NaN}', '{"a": 1', "see [1] and {x}", "{" * 50_000])
def test_without_json_the_status_says_so_and_why(content: str) -> None:
    extracted = extract_json(content)
    assert (extracted.value, extracted.status) == (None, "invalid_json")
    assert extracted.error.startswith("json_parse_error: The model's answer is ")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abr"), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=5).filter(lambda key: key not in ("output", "response")), json_values)


@given(objects.filter(bool), st.text("ab {[\n`", max_size=10))
@example({"r": '"}'}, "{")
def test_an_object_is_found_whatever_follows_it(value: dict[str, Any], after: str) -> None:
    written = json.dumps(value, ensure_ascii=True)
    if "\\u0000" not in written and "\\ud" not in written and "\\ue2" not in written:
        assert extract_json(f"{written} {after}").value == value


@given(st.data())
def test_mutated_payloads_raise_nothing_but_the_projects_error(data: st.DataObject) -> None:
    text = chat(f"```json\n{json.dumps(data.draw(json_values))}\n```")
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    mutated = text[:start] + data.draw(st.text(max_size=8)) + text[end:]
    try:
        extracted = extract_json(model_content(mutated).content)
    except ProviderError:
        return
    assert (extracted.status == "ok") == isinstance(extracted.value, dict | list)


def cpu_seconds(content: str) -> float:
    begun = time.process_time()
    extract_json(content)
    return time.process_time() - begun


@pytest.mark.parametrize("unit", ["{", '{"', '{"a":[', "{]", "{x}", "```\n{", "<think>", '"{\\"', "\ue200", "[1] "])
def test_time_is_linear_in_the_length(unit: str) -> None:
    short = min(cpu_seconds(unit * 4_000) for _ in range(3))
    long = min(cpu_seconds(unit * 32_000) for _ in range(2))
    # 8 times the length; quadratic would be 64 times the time.
    assert long < 32 * max(short, 0.001)


def label_of(value: Any) -> str:
    if not isinstance(value, dict) or "label" not in value:
        raise ValueError("label is missing")
    return str(value["label"])


ABYSS = (chat("{[" * 9_000 + "]}" * 9_000), chat(json.dumps(ANSWER)), "yes", "ok", "")
# What is answered first and to the order for a repair (None: it is never asked for), and what is read.
REPAIRS: dict[str, Any] = CASES["repairs"] | {"an abyss": ABYSS}


@pytest.mark.parametrize(("payload", "repaired", "value", "status", "error"), REPAIRS.values(), ids=REPAIRS)
def test_a_slip_is_read_as_it_is_and_else_one_repair_gives_the_raw_words_back_with_the_order(
    payload: str, repaired: str | None, value: str | None, status: str, error: str
) -> None:
    asked: list[str] = []

    async def ask_again(prompt: str) -> str:
        asked.append(prompt)
        if not repaired:
            raise ProviderError("Nothing answers.", "network")
        return repaired

    read = asyncio.run(read_structured(payload, label_of, ask_again))
    assert (read.value, read.status, read.error.startswith(error)) == (value, status, True), read.error
    assert read.payloads == ((payload, repaired) if repaired else (payload,))
    words = [] if repaired is None else [f"{model_content(payload).content}\n\nOutput ONLY valid JSON per the schema."]
    assert asked == words
