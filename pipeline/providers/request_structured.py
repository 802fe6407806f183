"""How each API is asked for JSON of one schema, without any search: path, headers and body. No network, no file.

Source: the providers' API references on structured output, as of November 2026. Tests assert the whole bodies.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from pipeline.providers.options import OpenAIApi
from pipeline.providers.request_builders import ProviderRequest, messages, present, temperature
from pipeline.schema import AskOptions, ProviderName

Form = Literal["json_schema", "json_object", "prompt"]
"""How the JSON is asked for: with the schema, as JSON of any form, or by words alone."""

SCHEMA_NAME = "answer"
SCHEMA_ORDER = "Answer with one JSON object and nothing else. It follows this JSON Schema:"
WITHOUT_JSON_OBJECT: tuple[ProviderName, ...] = ("claude", "perplexity")

NAMED_SCHEMAS = ("properties", "$defs")
LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength")
NOT_ENFORCED = frozenset(("default", "title", "format", "pattern", "minItems", "maxItems", *LIMITS))


class StructuredQuestion(NamedTuple):
    """What is asked of which model: two prompts, the JSON Schema of the answer, and its limits."""

    model: str
    system: str
    prompt: str
    schema: Mapping[str, Any]
    options: AskOptions


def forms_of(provider: ProviderName) -> tuple[Form, ...]:
    """The forms that the provider's API has, the most binding first."""
    return ("json_schema", "prompt") if provider in WITHOUT_JSON_OBJECT else ("json_schema", "json_object", "prompt")


def structured_request(
    provider: ProviderName, openai_api: OpenAIApi, question: StructuredQuestion, form: Form
) -> ProviderRequest:
    """The request that puts the question. The schema stands in the system prompt too: some servers pass over its field.

    Servers that refuse a form answer with status 400 or 422.
    """
    asked = question._replace(system=with_schema(question.system, question.schema), schema=closed(question.schema))
    if provider == "openai" and openai_api != "responses":
        return ask_chat(asked, form, openai_api)
    if provider == "claude":
        return ask_claude(asked, form)
    if provider == "gemini":
        return ask_gemini(asked, form)
    if provider == "perplexity":
        return ask_perplexity(asked, form)
    return ask_responses(provider, asked, form)


def ask_chat(asked: StructuredQuestion, form: Form, openai_api: OpenAIApi) -> ProviderRequest:
    """Chat Completions; only OpenAI's own (`chat`) wants the newer name of the limit, the others know the older one."""
    limit = "max_completion_tokens" if openai_api == "chat" else "max_tokens"
    body = {
        "model": asked.model,
        "messages": messages(asked.system, asked.prompt),
        limit: asked.options.max_tokens,
        **temperature("openai", asked.model, asked.options, openai_api),
        **present(response_format=chat_format(asked.schema, form)),
    }
    return ProviderRequest("/chat/completions", {}, body)


def ask_responses(provider: ProviderName, asked: StructuredQuestion, form: Form) -> ProviderRequest:
    """The Responses API of OpenAI and xAI."""
    schema = {"name": SCHEMA_NAME, "schema": asked.schema, "strict": is_closed(asked.schema)}
    formats = {"json_schema": {"type": "json_schema", **schema}, "json_object": {"type": "json_object"}, "prompt": None}
    body = {
        "model": asked.model,
        "input": messages(asked.system, asked.prompt),
        "max_output_tokens": asked.options.max_tokens,
        **temperature(provider, asked.model, asked.options),
        **present(text=present(format=formats[form])),
        "store": False,
    }
    return ProviderRequest("/responses", {}, body)


def ask_claude(asked: StructuredQuestion, form: Form) -> ProviderRequest:
    """Anthropic's Messages."""
    output = {"format": {"type": "json_schema", "schema": asked.schema}} if form == "json_schema" else None
    body = {
        "model": asked.model,
        "max_tokens": asked.options.max_tokens,
        "system": asked.system,
        "messages": messages("", asked.prompt),
        **temperature("claude", asked.model, asked.options),
        **present(output_config=output),
    }
    return ProviderRequest("/v1/messages", {"anthropic-version": "2023-06-01"}, body)


def ask_gemini(asked: StructuredQuestion, form: Form) -> ProviderRequest:
    """Google's generateContent."""
    generation = {
        "maxOutputTokens": asked.options.max_tokens,
        **temperature("gemini", asked.model, asked.options),
        **present(responseMimeType="application/json" if form != "prompt" else ""),
        **present(responseJsonSchema=asked.schema if form == "json_schema" else None),
    }
    body = {
        "systemInstruction": {"parts": [{"text": asked.system}]},
        "contents": [{"role": "user", "parts": [{"text": asked.prompt}]}],
        "generationConfig": generation,
    }
    name = quote(asked.model.removeprefix("models/"), safe="")
    return ProviderRequest(f"/v1beta/models/{name}:generateContent", {}, body)


def ask_perplexity(asked: StructuredQuestion, form: Form) -> ProviderRequest:
    """Perplexity's Agent API; the model is `maker/model`, since a preset would search."""
    body = {
        "model": asked.model,
        "input": asked.prompt,
        "instructions": asked.system,
        "max_output_tokens": asked.options.max_tokens,
        **present(response_format=chat_format(asked.schema, form)),
    }
    return ProviderRequest("/v1/agent", {}, body)


def chat_format(schema: Mapping[str, Any], form: Form) -> dict[str, Any] | None:
    """The `response_format` of Chat Completions; None where the words alone ask for JSON."""
    if form == "json_schema":
        named = {"name": SCHEMA_NAME, "schema": schema, "strict": is_closed(schema)}
        return {"type": "json_schema", "json_schema": named}
    return {"type": "json_object"} if form == "json_object" else None


def with_schema(system: str, schema: Mapping[str, Any]) -> str:
    """The system prompt followed by the order to answer with JSON of the schema."""
    order = f"{SCHEMA_ORDER}\n{json.dumps(schema, ensure_ascii=False)}"
    return f"{system}\n\n{order}" if system else order


def closed(schema: Any) -> Any:
    """The schema as strict servers take it: every field required, no others allowed, no defaults and no limits.

    What is left out here stands in the prompt, and is checked when the answer is read.
    """
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {
        name: {key: closed(each) for key, each in value.items()} if name in NAMED_SCHEMAS else closed(value)
        for name, value in schema.items()
        if name not in NOT_ENFORCED
    }
    fields = kept.get("properties")
    return {**kept, "required": list(fields), "additionalProperties": False} if fields else kept


def is_closed(schema: Any) -> bool:
    """Whether no object of the schema has fields of any name, which strict servers refuse."""
    if isinstance(schema, Mapping):
        is_open = schema.get("type") == "object" and schema.get("additionalProperties") is not False
        return not is_open and all(is_closed(value) for value in schema.values())
    return all(is_closed(each) for each in schema) if isinstance(schema, list) else True
