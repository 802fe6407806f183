"""The five providers: prompts and options in, request bodies out (`request`); stored payloads in, answers out.

Nothing here touches a network or a file; `http` does. Read `read_payload` below first: a payload's shape is told by
its keys, and one file a vendor (`_openai`, `_claude`, `_gemini`, `_grok`, `_perplexity`) reads it. A sixth provider is
such a file, a line in each of the tables here and in `request`, and recorded payloads for its tests.
"""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, Literal

from pipeline.errors import InputError, ProviderError
from pipeline.providers import _claude as claude
from pipeline.providers import _gemini as gemini
from pipeline.providers import _grok as grok
from pipeline.providers import _openai as openai
from pipeline.providers import _perplexity as perplexity
from pipeline.providers.body import as_objects, as_text, load_body
from pipeline.providers.failure import is_error, payload_error
from pipeline.schema import PROVIDERS, Answer, ProviderName

Shape = Literal["gemini", "interactions", "agent", "responses", "grpc", "claude", "chat"]


READERS: dict[ProviderName, Callable[[Any], Answer]] = {
    "openai": openai.read,
    "claude": claude.read,
    "gemini": gemini.read,
    "grok": grok.read,
    "perplexity": perplexity.read,
}

# A vendor's own shape has one reader, whoever passed it on; the two shared shapes are read by the provider's rules.
_SHAPE_OWNERS: dict[Shape, ProviderName] = {
    "gemini": "gemini",
    "interactions": "gemini",
    "agent": "perplexity",
    "grpc": "grok",
    "claude": "claude",
}
_SHARED_SHAPES: tuple[ProviderName, ...] = ("openai", "grok", "perplexity")

ALIASES: dict[str, ProviderName] = {
    "anthropic": "claude",
    "chatgpt": "openai",
    "google": "gemini",
    "openrouter": "openai",
    "sonar": "perplexity",
    "xai": "grok",
}


def provider_name(name: str) -> ProviderName:
    """The provider that a name or a vendor's name stands for; case and spaces around it do not matter.

    Raises:
        InputError: no provider has that name; the message names the nearest.
    """
    wanted = name.strip().lower()
    known: dict[str, ProviderName] = {**{provider: provider for provider in PROVIDERS}, **ALIASES}
    if wanted in known:
        return known[wanted]
    nearest = get_close_matches(wanted, known, n=1)
    hint = f"Did you mean {nearest[0]!r}?" if nearest else f"The providers are {', '.join(PROVIDERS)}."
    raise InputError(f"There is no provider {name!r}. {hint}")


def read_payload(provider: ProviderName, text: str) -> Answer:
    """The answer in a provider's stored payload: the body as it was sent, JSON in a text.

    A refusal, a block, a body that is queued, cancelled or cut short is an answer with what is there. Search results
    are Perplexity's only.

    Raises:
        ProviderError: the payload is an error, not JSON, `failed`, or of an unknown shape.
    """
    return read_body(provider, load_body(text))


def read_body(provider: ProviderName, body: Any) -> Answer:
    """The answer in a provider's body, as `read_payload` reads it.

    Raises:
        ProviderError: the body is an error, `failed`, or of an unknown shape.
    """
    try:
        shape = recognise(body)
        answer = READERS[reader_of(shape, provider)](body)
    except RecursionError as error:
        raise ProviderError("The payload is nested too deeply to be a provider's answer.") from error
    return answer if provider == "perplexity" else answer.model_copy(update={"search_results": ()})


def reader_of(shape: Shape, provider: ProviderName) -> ProviderName:
    """Whose rules read this shape when it came from this provider."""
    return _SHAPE_OWNERS.get(shape) or (provider if provider in _SHARED_SHAPES else "openai")


def recognise(body: Any) -> Shape:
    """The shape of an answer's body; the first match wins.

    Raises:
        ProviderError: the body is an error, its `status` is `failed`, or its shape is not known.
    """
    if is_error(body):
        raise payload_error(body)
    shape = next((shape for shape, matches in SHAPES if matches(body)), None)
    if shape is None:
        raise ProviderError(
            f"The payload has no known shape: {_top_keys(body)}. Give a provider's body as it was sent."
        )
    if shape in ("responses", "agent", "interactions") and body.get("status") == "failed":
        raise payload_error(body)
    return shape


def _top_keys(body: Any) -> str:
    """What stands at the top of the body, for a message."""
    if isinstance(body, dict):
        names = ", ".join(repr(str(key)[:30]) for key in list(body)[:5])
        return f"it is an object with the keys {names}" if names else "it is an empty object"
    return f"it is a JSON {'list' if isinstance(body, list) else 'value'} and not one object"


def _is_gemini(body: Any) -> bool:
    """Gemini's generateContent, from REST or dumped by its SDK."""
    return isinstance(body, dict) and any(key in body for key in ("candidates", "promptFeedback", "prompt_feedback"))


def _is_agent(body: Any) -> bool:
    """Perplexity's Agent API: a response that lists search results."""
    return _is_responses(body) and any(item.get("type") == "search_results" for item in as_objects(body.get("output")))


def _is_responses(body: Any) -> bool:
    """OpenAI's Responses, which xAI and Perplexity speak as well."""
    return isinstance(body, dict) and body.get("object") == "response"


def _is_interactions(body: Any) -> bool:
    """Gemini's Interactions API."""
    return isinstance(body, dict) and (body.get("object") == "interaction" or ("steps" in body and "status" in body))


def _is_grpc(body: Any) -> bool:
    """The gRPC service of xAI as JSON."""
    outputs = as_objects(body.get("outputs")) if isinstance(body, dict) else []
    return bool(outputs) and all("message" in output for output in outputs)


def _is_claude(body: Any) -> bool:
    """Claude's Messages: one body, or the bodies of a paused turn and its continuations in a list."""
    if isinstance(body, list):
        return bool(body) and all(isinstance(each, dict) and _is_claude(each) for each in body)
    return isinstance(body, dict) and as_text(body.get("type")) == "message" and isinstance(body.get("content"), list)


def _is_chat(body: Any) -> bool:
    """Chat completions of any provider or proxy."""
    return isinstance(body, dict) and isinstance(body.get("choices"), list)


SHAPES: tuple[tuple[Shape, Callable[[Any], bool]], ...] = (
    ("gemini", _is_gemini),
    ("agent", _is_agent),
    ("responses", _is_responses),
    ("interactions", _is_interactions),
    ("grpc", _is_grpc),
    ("claude", _is_claude),
    ("chat", _is_chat),
)
