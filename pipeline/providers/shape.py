"""The shape of a body, told by its keys: proxies and migrations change shapes under a provider's name."""

from collections.abc import Callable
from typing import Any, Literal

from pipeline.errors import ProviderError
from pipeline.providers.body import as_objects, as_text
from pipeline.providers.failure import is_error, payload_error

Shape = Literal["gemini", "interactions", "agent", "responses", "grpc", "claude", "chat"]


def recognise(body: Any) -> Shape:
    """The shape of an answer's body; the first match wins.

    Raises:
        ProviderError: the body is an error, its `status` is `failed`, or its shape is not known.
    """
    if is_error(body):
        raise payload_error(body)
    shape = next((shape for shape, matches in SHAPES if matches(body)), None)
    if shape is None:
        raise ProviderError(f"The payload has no known shape: {top_keys(body)}. Give a provider's body as it was sent.")
    if shape in ("responses", "agent", "interactions") and body.get("status") == "failed":
        raise payload_error(body)
    return shape


def top_keys(body: Any) -> str:
    """What stands at the top of the body, for a message."""
    if isinstance(body, dict):
        names = ", ".join(repr(str(key)[:30]) for key in list(body)[:5])
        return f"it is an object with the keys {names}" if names else "it is an empty object"
    return f"it is a JSON {'list' if isinstance(body, list) else 'value'} and not one object"


def is_gemini(body: Any) -> bool:
    """Gemini's generateContent, from REST or dumped by its SDK."""
    return isinstance(body, dict) and any(key in body for key in ("candidates", "promptFeedback", "prompt_feedback"))


def is_agent(body: Any) -> bool:
    """Perplexity's Agent API: a response that lists search results."""
    return is_responses(body) and any(item.get("type") == "search_results" for item in as_objects(body.get("output")))


def is_responses(body: Any) -> bool:
    """OpenAI's Responses, which xAI and Perplexity speak as well."""
    return isinstance(body, dict) and body.get("object") == "response"


def is_interactions(body: Any) -> bool:
    """Gemini's Interactions API."""
    return isinstance(body, dict) and (body.get("object") == "interaction" or ("steps" in body and "status" in body))


def is_grpc(body: Any) -> bool:
    """The gRPC service of xAI as JSON."""
    outputs = as_objects(body.get("outputs")) if isinstance(body, dict) else []
    return bool(outputs) and all("message" in output for output in outputs)


def is_claude(body: Any) -> bool:
    """Claude's Messages: one body, or the bodies of a paused turn and its continuations in a list."""
    if isinstance(body, list):
        return bool(body) and all(isinstance(each, dict) and is_claude(each) for each in body)
    return isinstance(body, dict) and as_text(body.get("type")) == "message" and isinstance(body.get("content"), list)


def is_chat(body: Any) -> bool:
    """Chat completions of any provider or proxy."""
    return isinstance(body, dict) and isinstance(body.get("choices"), list)


SHAPES: tuple[tuple[Shape, Callable[[Any], bool]], ...] = (
    ("gemini", is_gemini),
    ("agent", is_agent),
    ("responses", is_responses),
    ("interactions", is_interactions),
    ("grpc", is_grpc),
    ("claude", is_claude),
    ("chat", is_chat),
)
