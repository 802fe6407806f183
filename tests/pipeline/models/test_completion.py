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
from tests.support.places import NO_SHARED, SHARED

RECORDINGS = SHARED / "recordings"
needs_recordings = pytest.mark.skipif(not RECORDINGS.is_dir(), reason=NO_SHARED)


def chat(content: Any) -> str:
    return json.dumps({"choices": [{"message": {"content": content}, "finish_reason": "stop"}], "model": "m"})


def body(**fields: Any) -> str:
    return json.dumps(fields)


PAYLOADS = {
    "chat": (chat("yes"), "yes", "chat"),
    "chat parts": (chat([{"type": "text", "text": "y"}, {"text": "es"}]), "yes", "chat"),
    "chat part with json": (chat([{"type": "text", "text": "so:"}, {"json": {"a": "é"}}]), '{"a": "é"}', "chat"),
    "chat thoughts": (chat("<think>{no}</think>\nyes"), "yes", "chat"),
    "chat empty": (chat(""), "", "chat"),
    "chat empty beside a field": (body(choices=[], output_text="yes"), "yes", "output_text"),
    "Responses empty beside a field": (body(object="response", output=[], response="never"), "", "responses"),
    "output_text": (body(output_text="yes", response="no"), "yes", "output_text"),
    "response": (body(model="llama", response="yes", output="no"), "yes", "response"),
    "empty field passed over": (body(output_text="", response="yes"), "yes", "response"),
    "output text": (body(output="yes"), "yes", "output"),
    "output object": (body(output={"text": "yes"}), "yes", "output"),
    "output content": (body(output={"content": [{"text": "y"}, {"text": "es"}]}), "yes", "output"),
    "output list": (body(output=[{"type": "reasoning", "text": "hm"}, {"content": "yes"}]), "yes", "output"),
    "object in a field": (body(response={"a": 1}), '{"a": 1}', "response"),
    "envelope in a field": (body(response=json.loads(chat("yes"))), "yes", "chat"),
    "claude": (body(type="message", content=[{"type": "text", "text": "yes"}]), "yes", "claude"),
    "unknown object": ('{"label": "yes"}', '{"label": "yes"}', "raw"),
    "not JSON": ("yes", "yes", "raw"),
    "empty": ("", "", "raw"),
}


@pytest.mark.parametrize(("payload", "content", "shape"), PAYLOADS.values(), ids=PAYLOADS)
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


ANSWER = {"label": "yes", "quote": 'a } "b" ``` c'}
WORDS = json.dumps(ANSWER)
CONTENTS = {
    "plain": WORDS,
    "byte order mark": "\ufeff" + WORDS,
    "fence": f"```json\n{WORDS}\n```",
    "fence in prose": f"Sure!\n\n```\n{WORDS}\n```\nAnything else?",
    "open fence": f"```json\n{WORDS}",
    "second fence": f"```sh\nls {{}}\n```\n```json\n{WORDS}\n```",
    "prose": f"By [1] the answer is {WORDS}, I think {{so}}.",
    "unclosed brace before": f"A set {{x | y. Then: {WORDS}",
    "inch mark before": f'A 5" disk: {WORDS}',
    "blank before": f"Fill {{}} in: {WORDS}",
    "thoughts": f'<think>maybe {{"label": "no"}}</think>{WORDS}',
    "JSON in a text": json.dumps(WORDS),
    "envelope": chat(WORDS),
    "three envelopes": body(response=body(output_text=chat(f"```\n{WORDS}\n```"))),
    "object in an envelope": body(output=ANSWER),
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_json_is_found_in(content: str) -> None:
    assert extract_json(content) == (ANSWER, "ok", "")


SLIPS = {
    "a raw line break": ('{"a": "one\ntwo", "b": {"c": 1}}', {"a": "one\ntwo", "b": {"c": 1}}),
    "in a fence": ('So:\n```json\n{"a": "one\n\ttwo"}\n```\n"Bye"', {"a": "one\n\ttwo"}),
    "in prose": ('It is 5" wide. {"a": "one\n{not} \\" two"} and "more".', {"a": 'one\n{not} " two'}),
    "in a list in prose": ('By [1]: no. [{"a": "b\nc"}] ok', [{"a": "b\nc"}]),
    "in a list": ('All: [{"a": "b\nc"}] ok', [{"a": "b\nc"}]),
    "curly quotes in a string": ('{"a": "he said “x”,\nloudly"}', {"a": "he said “x”,\nloudly"}),
    "curly delimiters": (
        '{“a”: “he said "x", loudly”, "b": „c“, ‘d’: [‘don’t’]}',
        {"a": 'he said "x", loudly', "b": "c", "d": ["don’t"]},
    ),
    "a quote that may end the string or not": ("{“a”: “he wrote, “yes”, then left”}", None),
    "a string that is never closed": ('{"a": “x, "b": 1}', None),
    "cut off": ('{"a": "one\ntwo', None),
}


@pytest.mark.parametrize(("content", "value"), SLIPS.values(), ids=SLIPS)
def test_raw_line_breaks_and_curly_quotes_are_read_and_never_as_another_value(content: str, value: Any) -> None:
    assert extract_json(content).value == value


def test_where_a_curly_string_ends_in_doubt_the_model_is_asked() -> None:
    said = asyncio.run(read_structured(chat('{"a": „er schrieb, „ja“, und ging“}'), dict))
    assert (said.value, said.status) == (None, "invalid_json")


@pytest.mark.parametrize(
    "value",
    [
        {},
        [{"a": 1}],
        [{"a": 1}, {"a": 2}],
        {"response": "yes", "confidence": 3},
        {"labels": {"a": 1}, "output": {"b": 2}},
        {"error": "none", "a": 1},
        {"steps": [1], "status": "ok"},
        {"content": [{"type": "text", "text": "x"}], "type": "message"},
    ],
)
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


BUSY = '{"error": {"message": "busy"}}'
CUT = chat("{'label': 'yes'}").replace('"stop"', '"length"')
CUT_SHORT = "json_parse_error: The model's answer was cut short; it needs more tokens."
# What is answered first and to the order for a repair (None: it is never asked for), and what is read.
REPAIRS: dict[str, tuple[str, str | None, str | None, str, str]] = {
    "as it should be": (chat(WORDS), None, "yes", "ok", ""),
    "comma at the end": (chat('{"label": "yes",}'), None, "yes", "ok", ""),
    "Python": (chat("{'label': 'yes', 'sure': True, 'why': None}"), None, "yes", "ok", ""),
    "comma missing": (chat('So: {"label": "yes" "quote": "x"}'), None, "yes", "ok", ""),
    "comment": (chat('{"label": "yes", // surely\n"quote": "in {braces}"}'), None, "yes", "ok", ""),
    "unclosed": (chat("{label: yes"), chat(WORDS), "yes", "ok", ""),
    "a list": (chat("['label',]"), chat(WORDS), "yes", "ok", ""),
    "no value": (chat("{'label': }"), chat(WORDS), "yes", "ok", ""),
    "another form": (chat("{'mark': 'yes'}"), chat(WORDS), "yes", "ok", ""),
    "NaN": (chat('{"label": NaN}'), chat(WORDS), "yes", "ok", ""),
    "an abyss": (chat("{[" * 9_000 + "]}" * 9_000), chat(WORDS), "yes", "ok", ""),
    "no JSON": (chat('{"label": yes'), chat(WORDS), "yes", "ok", ""),
    "JSON of another form": (chat('{"mark": "yes"}'), chat(WORDS), "yes", "ok", ""),
    "never twice": (
        *(chat("no"), chat('{"mark": 1}'), None, "invalid_json", "schema_validation_error: label is missing"),
    ),
    "cut short": (CUT, None, None, "invalid_json", CUT_SHORT),
    "empty": (chat(""), None, None, "invalid_json", "json_parse_error: The model's answer is "),
    "error": (BUSY, None, None, "http_error", "provider_error: "),
    "repair that fails": (chat("no"), BUSY, None, "http_error", "provider_error: "),
    "repair without answer": (chat("no"), "", None, "http_error", "provider_error: Nothing answers."),
}


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
