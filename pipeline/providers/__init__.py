"""The five providers: one reader each, from a stored payload to an answer. Nothing here touches a network or a file."""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from pipeline.errors import InputError, ProviderError
from pipeline.providers import claude, gemini, grok, openai, perplexity
from pipeline.providers.body import load_body
from pipeline.providers.shape import Shape, recognise
from pipeline.schema import PROVIDERS, Answer, ProviderName

READERS: dict[ProviderName, Callable[[Any], Answer]] = {
    "openai": openai.read,
    "claude": claude.read,
    "gemini": gemini.read,
    "grok": grok.read,
    "perplexity": perplexity.read,
}

# A vendor's own shape has one reader, whoever passed it on; the two shared shapes are read by the provider's rules.
SHAPE_OWNERS: dict[Shape, ProviderName] = {
    "gemini": "gemini",
    "interactions": "gemini",
    "agent": "perplexity",
    "grpc": "grok",
    "claude": "claude",
}
SHARED_SHAPES: tuple[ProviderName, ...] = ("openai", "grok", "perplexity")

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
    body = load_body(text)
    try:
        shape = recognise(body)
        answer = READERS[reader_of(shape, provider)](body)
    except RecursionError as error:
        raise ProviderError("The payload is nested too deeply to be a provider's answer.") from error
    return answer if provider == "perplexity" else answer.model_copy(update={"search_results": ()})


def reader_of(shape: Shape, provider: ProviderName) -> ProviderName:
    """Whose rules read this shape when it came from this provider."""
    return SHAPE_OWNERS.get(shape) or (provider if provider in SHARED_SHAPES else "openai")
