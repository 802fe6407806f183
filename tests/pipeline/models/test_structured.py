import asyncio
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, ConfigDict

from pipeline.core.errors import CitejuryError, InputError, SettingsError
from pipeline.core.schema import PROVIDERS, AskOptions, ProviderName
from pipeline.models.completion import REPAIR_ORDER, Structured
from pipeline.models.structured import (
    Asker,
    accept_body,
    ask_structured,
    closed,
    spent_of,
    structured_request,
)
from pipeline.providers import ChosenModel, choose_model, get_provider
from pipeline.providers.http.client import ApiClient, RetryPolicy
from pipeline.providers.provider import SCHEMA_NAME, StructuredQuestion, is_closed
from tests.support.provider_server import (
    GOOD_BODIES,
    Behaviour,
    HalfBody,
    Received,
    Status,
    WrongContentType,
    answer_text,
)
from tests.support.scripted_model import ScriptedModel, form_of, prompts_of, refuses, says

QUICK = RetryPolicy(attempts=2, total_seconds=60.0, backoff_seconds=0.0)
KEY = "key-of-tests-1234567890"


class Verdict(BaseModel):
    model_config = ConfigDict(extra="forbid")

    yes: bool
    confidence: float = 0.5


GOOD = {"yes": True, "confidence": 0.75}
SCHEMA = Verdict.model_json_schema()


class Asked(NamedTuple):
    said: list[Structured[Verdict]]
    calls: list[Received]


def ask(script: Iterable[Behaviour], questions: int = 1, key: str = "") -> Asked:
    steps: Iterator[Behaviour] = iter(script)

    async def run(model: ScriptedModel) -> list[Structured[Verdict]]:
        chosen = choose_model({"OPENAI_API_KEY": key}, model="m-1", base_url=model.url)
        async with ApiClient(chosen.endpoint, QUICK, check=accept_body) as client:
            asker = Asker(client, chosen)
            return [
                await ask_structured(asker, f"Question {number}?", "Be brief.", SCHEMA, Verdict.model_validate)
                for number in range(questions)
            ]

    with ScriptedModel(lambda received: next(steps)) as model:
        return Asked(asyncio.run(run(model)), model.calls)


ENVELOPES: dict[str, Behaviour] = {
    "plain": says(GOOD),
    "fenced": says(f"Here it is:\n```json\n{json.dumps(GOOD)}\n```\nDone."),
    "parts": says([{"type": "text", "text": '{"yes": true,'}, {"type": "text", "text": ' "confidence": 0.75}'}]),
    "thoughts": says('<think>{"yes": false}</think>' + json.dumps(GOOD)),
    "output_text": Status(200, {}, {"model": "m", "output_text": json.dumps(GOOD)}),
    "response": Status(200, {}, {"model": "m", "response": json.dumps(GOOD)}),
    "no envelope": Status(200, {}, GOOD),
}


@pytest.mark.parametrize("behaviour", ENVELOPES.values(), ids=ENVELOPES)
def test_the_answer_is_read_from_every_envelope_of_seed_002(behaviour: Behaviour) -> None:
    (said,), calls = ask([behaviour])
    assert (said.value, said.status, said.error) == (Verdict(yes=True, confidence=0.75), "ok", "")
    assert len(said.payloads) == len(calls) == 1
    assert calls[0].body == {
        "model": "m-1",
        "messages": calls[0].body["messages"],
        "max_tokens": 4096,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": SCHEMA_NAME, "schema": closed(SCHEMA), "strict": True},
        },
    }
    system, prompt = prompts_of(calls[0])
    assert (system.splitlines()[0], json.loads(system.splitlines()[-1]), prompt) == ("Be brief.", SCHEMA, "Question 0?")


@pytest.mark.parametrize(
    ("script", "forms", "payloads"),
    [
        ([refuses(), refuses(status=422)], ["json_schema", "json_object", "prompt", "prompt"], 1),
        ([refuses("response_format is deprecated")], ["json_schema", "json_object", "json_object"], 1),
        ([says("")], ["json_schema", "json_object", "json_object"], 2),
    ],
    ids=["refused", "deprecated", "brings no word"],
)
def test_a_form_that_is_no_use_gives_way_to_the_next_and_is_not_tried_again(
    script: list[Behaviour], forms: list[str], payloads: int
) -> None:
    (first, second), calls = ask([*script, says(GOOD), says(GOOD)], questions=2)
    assert (first.status, second.status, [form_of(call) for call in calls]) == ("ok", "ok", forms)
    assert len(first.payloads) == payloads
    assert spent_of(first.payloads, "m", {})[1:3] == (100 * payloads, 20 * payloads)


def test_an_answer_of_another_form_is_repaired_once_with_the_schema_before_the_models_eyes() -> None:
    (said,), calls = ask([says("Yes, surely."), says(GOOD)])
    assert (said.status, len(said.payloads)) == ("ok", 2)
    system, prompt = prompts_of(calls[1])
    assert (prompt, json.loads(system.splitlines()[-1])) == (f"Yes, surely.\n\n{REPAIR_ORDER}", SCHEMA)


PASSING: dict[str, Behaviour] = {
    "429": Status(429, {"retry-after": "0"}, {"error": {"message": "slow down"}}),
    "500": Status(500, {}, "oops"),
    "half a body": HalfBody(),
    "a web page": WrongContentType(),
}


@pytest.mark.parametrize("behaviour", PASSING.values(), ids=PASSING)
def test_a_failure_that_passes_is_asked_again(behaviour: Behaviour) -> None:
    (said,), calls = ask([behaviour, says(GOOD)])
    assert (said.status, len(calls), len(said.payloads)) == ("ok", 2, 1)


LASTING: dict[str, Behaviour] = {
    "500": Status(500, {}, "oops"),
    "wrong key": Status(401, {}, {"error": {"message": f"Incorrect API key: {KEY}"}}),
    "error in a success": Status(200, {}, {"error": {"message": "upstream is down", "code": 502}}),
    "refuses every form": refuses("your prompt is too long"),
}


@pytest.mark.parametrize("behaviour", LASTING.values(), ids=LASTING)
def test_a_failure_that_lasts_is_an_http_error_and_shows_no_key(behaviour: Behaviour) -> None:
    (said,), calls = ask([behaviour] * 3, key=KEY)
    assert (said.value, said.status, said.payloads) == (None, "http_error", ())
    assert said.error.startswith("provider_error: ")
    assert KEY not in said.error
    assert calls[0].headers["authorization"] == f"Bearer {KEY}"


def places(provider: ProviderName, body: dict[str, Any]) -> dict[str, Any]:
    """Where the five APIs have what makes the answer JSON."""
    named = {"name": SCHEMA_NAME, "schema": closed(SCHEMA), "strict": True}
    return {
        "openai": {"text": {"format": {"type": "json_schema", **named}}},
        "grok": {"text": {"format": {"type": "json_schema", **named}}},
        "claude": {"output_config": {"format": {"type": "json_schema", "schema": closed(SCHEMA)}}},
        "gemini": {
            "generationConfig": {
                "maxOutputTokens": 99,
                "responseMimeType": "application/json",
                "responseJsonSchema": closed(SCHEMA),
            }
        },
        "perplexity": {"response_format": {"type": "json_schema", "json_schema": named}},
    }[provider]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_is_asked_for_the_schema_in_its_own_way_and_searches_nothing(provider: ProviderName) -> None:
    question = StructuredQuestion("maker/m", "Be brief.", "Well?", SCHEMA, AskOptions(max_tokens=99))
    body = structured_request(get_provider(provider).api(), question, "json_schema").body
    wanted = places(provider, body)
    assert {name: body[name] for name in wanted} == wanted
    assert "tools" not in body
    assert "json_schema" in json.dumps(body) or provider == "gemini"
    bare = structured_request(get_provider(provider).api(), question, "prompt").body
    assert get_provider(provider).forms[-1] == "prompt"
    assert "json_schema" not in json.dumps(bare)
    assert json.dumps(SCHEMA)[1:-1] in json.dumps(bare).replace('\\"', '"')
    # OpenAI's own Chat Completions have the newer name of the limit.
    chat = structured_request(get_provider("openai").api("chat"), question, "json_object").body
    assert (chat["max_completion_tokens"], chat["response_format"]) == (99, {"type": "json_object"})


def test_a_strict_schema_keeps_fields_that_are_named_like_keywords_and_tells_when_it_cannot_be_strict() -> None:
    fields = {"title": {"type": "string", "title": "T", "maxLength": 3}, "default": {"type": "number", "minimum": 0}}
    schema = {"type": "object", "properties": fields, "title": "X", "required": ["title"]}
    assert closed(schema) == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "default": {"type": "number"}},
        "required": ["title", "default"],
        "additionalProperties": False,
    }
    assert is_closed(closed(schema))
    assert not is_closed(closed({"type": "object", "additionalProperties": {"type": "string"}}))


def test_without_any_word_openrouter_is_asked_and_keys_are_named_by_their_own_variable() -> None:
    chosen = choose_model({"OPENROUTER_API_KEY": KEY})
    assert (chosen.model, chosen.endpoint.base_url, chosen.api.name) == (
        *("openai/gpt-oss-120b", "https://openrouter.ai/api/v1", "openrouter"),
    )
    assert chosen == choose_model({"OPENROUTER_API_KEY": KEY}, provider="OpenRouter")
    chosen = choose_model({"GOOGLE_API_KEY": KEY}, provider="gemini", base_urls={"gemini": "https://proxy.example/g/"})
    assert chosen.endpoint[:3] == ("gemini", "https://proxy.example/g", KEY)
    assert choose_model({"PERPLEXITY_API_KEY": KEY}, provider="perplexity").model == "perplexity/sonar"
    chosen: ChosenModel = choose_model({"OPENROUTER_API_KEY": "two words"})
    with pytest.raises(SettingsError, match="`OPENROUTER_API_KEY`") as caught:
        ApiClient(chosen.endpoint)
    assert "two words" not in str(caught.value)


@pytest.mark.parametrize(
    ("variables", "named", "error", "said"),
    [
        ({"OPENAI_API_KEY": KEY}, {}, SettingsError, "set `OPENROUTER_API_KEY`"),
        ({}, {"provider": "claude"}, SettingsError, "set `ANTHROPIC_API_KEY`"),
        ({"OPENAI_API_KEY": KEY}, {"base_url": "https://m.example/v1"}, SettingsError, "needs the name of a model"),
        ({"OPENAI_API_KEY": KEY}, {"model": "m", "base_url": "http://m.example/v1"}, SettingsError, "unencrypted"),
        ({}, {"provider": "opnai"}, InputError, "no provider 'opnai'"),
    ],
)
def test_what_is_missing_is_named(
    variables: dict[str, str], named: dict[str, str], error: type[CitejuryError], said: str
) -> None:
    with pytest.raises(error, match=said):
        choose_model(variables, **named)  # type: ignore[arg-type]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_answers_over_its_own_wire(provider: ProviderName) -> None:
    quoted = json.dumps(json.dumps(GOOD))[1:-1]
    spoken = json.dumps(GOOD_BODIES[provider](1)).replace(json.dumps(answer_text(1))[1:-1], quoted)

    async def run(model: ScriptedModel) -> Structured[Verdict]:
        base_url = model.base_url(provider)
        chosen = choose_model({}, provider=provider, model="maker/m", base_urls={provider: base_url})
        async with ApiClient(chosen.endpoint, QUICK, check=accept_body) as client:
            return await ask_structured(Asker(client, chosen), "Well?", "", SCHEMA, Verdict.model_validate)

    with ScriptedModel(lambda received: Status(200, {}, spoken)) as model:
        said = asyncio.run(run(model))
    assert said == Structured(Verdict(yes=True, confidence=0.75), "ok", "", (spoken,))
    assert spent_of(said.payloads, "m", {}).tokens_out == 5


def test_questions_at_once_all_find_the_form_that_the_server_takes() -> None:
    async def run(model: ScriptedModel) -> list[Structured[Verdict]]:
        chosen = choose_model({}, model="m-1", base_url=model.url)
        async with ApiClient(chosen.endpoint, QUICK, check=accept_body) as client:
            asker = Asker(client, chosen)
            asked = [ask_structured(asker, f"{number}?", "", SCHEMA, Verdict.model_validate) for number in range(12)]
            return await asyncio.gather(*asked, ask_structured(asker, "Last?", "", SCHEMA, Verdict.model_validate))

    with ScriptedModel(lambda call: says(GOOD) if form_of(call) == "prompt" else refuses()) as model:
        assert {said.status for said in asyncio.run(run(model))} == {"ok"}
