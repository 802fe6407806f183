"""Whom narratives are put to, a module each: prompts and options in, requests out; stored payloads in, answers out.

Read `provider` first: it says what is known of a provider. Each name in `pipeline.core.schema.ProviderName` has a
module here that holds one, its `PROVIDER`. A payload's shape is recognised by its keys. Nothing here touches a network
or a file; `http` does.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pipeline.citations.addresses import link_key
from pipeline.core.errors import InputError, ProviderError, SettingsError
from pipeline.core.schema import PROVIDERS, RESULTS_OF, Answer, ProviderName
from pipeline.providers.answer import read_shared
from pipeline.providers.http.failure import payload_error
from pipeline.providers.http.request import Endpoint, is_error, is_near, load_body, read_base_url
from pipeline.providers.provider import Api, Provider, Shape

# What looks like a citation: a silent zero is worse than a strange name.
_CITATION_LIKE = re.compile("cit(?:e|ation)|annotation|ground|reference|retriev|footnote", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:https?|gs|s3)://\S+", re.IGNORECASE)
_FILE_CITATIONS = ("file_citation", "container_file_citation", "file_path")
# Responses, which OpenAI, xAI and Perplexity speak, and the chat completions of any provider or proxy. The rules of the
# provider that answered read them.
_SHARED_SHAPES = (
    Shape("responses", lambda body: isinstance(body, dict) and body.get("object") == "response", read_shared, True),
    Shape("chat", lambda body: isinstance(body, dict) and isinstance(body.get("choices"), list), read_shared),
)


@cache
def get_provider(name: ProviderName) -> Provider:
    provider: Provider = import_module(f"{__name__}.{name}").PROVIDER
    return provider


def every_provider() -> Iterator[Provider]:
    return map(get_provider, PROVIDERS)


def provider_name(name: str) -> ProviderName:
    """The provider that a name or a vendor's name stands for; InputError, which names the nearest, where none does."""
    wanted = name.strip().lower()
    aliases = {alias: provider.name for provider in every_provider() for alias in provider.aliases}
    known: dict[str, ProviderName] = {**{provider: provider for provider in PROVIDERS}, **aliases}
    if wanted in known:
        return known[wanted]
    nearest = get_close_matches(wanted, known, n=1)
    hint = f"Did you mean {nearest[0]!r}?" if nearest else f"The providers are {', '.join(PROVIDERS)}."
    raise InputError(f"There is no provider {name!r}. {hint}")


def read_payload(provider: ProviderName, text: str) -> Answer:
    """The answer in a provider's stored payload: the body as it was sent, JSON in a text.

    A refusal, a block, a body that is queued, cancelled or cut short is an answer with what is there. Search results
    are kept for the one provider whose results CSV v2 holds.

    Raises:
        ProviderError: the payload is an error, not JSON, `failed`, or of an unknown shape.
    """
    return read_body(provider, load_body(text))


def read_body(provider: ProviderName, body: Any) -> Answer:
    try:
        shape = recognise(body)
        own = get_provider(provider).read_shared if shape in _SHARED_SHAPES else None
        answer = (own or shape.read)(body)
    except RecursionError as error:
        raise ProviderError("The payload is nested too deeply to be a provider's answer.") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # It was paid for: whatever it breaks in a reader must lose neither it nor the replies beside it.
        kind = type(error).__name__
        raise ProviderError(f"citejury cannot read this payload ({kind}). Keep it, and report it to us.") from error
    answer = answer.model_copy(update={"unread": {**answer.unread, **_unread_fields(body, answer)}})
    return answer if provider == RESULTS_OF else answer.model_copy(update={"search_results": ()})


def _unread_fields(body: Any, answer: Answer) -> dict[str, int]:
    """By the path in the body, list places left out: how many sources stand there that the answer does not have."""
    known = {link_key(url) for url in answer.citations} | {link_key(result.url) for result in answer.search_results}
    found: Counter[str] = Counter()
    for path, value in _fields(body, "", False):
        if value in _FILE_CITATIONS or (_ADDRESS.fullmatch(value) and link_key(value) not in known):
            found[path] += 1
    return {f"field {path[:100]}": count for path, count in found.items()}


def _fields(value: Any, path: str, is_citation: bool) -> Iterator[tuple[str, str]]:
    """Each text within a field that is named like a citation, or like what holds some."""
    if isinstance(value, dict):
        for name, inner in value.items():
            place = f"{path}.{name}" if path else name
            yield from _fields(inner, place, is_citation or _CITATION_LIKE.search(name) is not None)
    elif isinstance(value, list):
        for inner in value:
            yield from _fields(inner, f"{path}[]", is_citation)
    elif isinstance(value, str) and is_citation:
        yield path, value


def recognise(body: Any) -> Shape:
    """The shape of an answer's body; ProviderError for an error, one that is `failed`, or none that is known."""
    if is_error(body):
        raise payload_error(body)
    shape = find_shape(body)
    if shape is None:
        advice = "Give a provider's body as it was sent."
        raise ProviderError(f"The payload has no known shape: {_top_keys(body)}. {advice}")
    if shape.has_status and body.get("status") == "failed":
        raise payload_error(body)
    return shape


def find_shape(body: Any) -> Shape | None:
    """The first shape that matches, a provider's own before a shared one; None where none does."""
    shapes = (shape for provider in every_provider() for shape in provider.shapes)
    return next((shape for shape in (*shapes, *_SHARED_SHAPES) if shape.matches(body)), None)


def _top_keys(body: Any) -> str:
    if isinstance(body, dict):
        names = ", ".join(repr(str(key)[:30]) for key in list(body)[:5])
        return f"it is an object with the keys {names}" if names else "it is an empty object"
    return f"it is a JSON {'list' if isinstance(body, list) else 'value'} and not one object"


# Every server that is compatible with Chat Completions knows OpenRouter's form of it.
_COMPATIBLE: ProviderName = "openai"
_OPENROUTER = "openrouter"
_OPENROUTER_URL = "https://openrouter.ai/api/v1"


def read_base_urls(configured: Mapping[str, str]) -> dict[ProviderName, str]:
    """Where each provider is reached: `base_urls` over the defaults; SettingsError for one that no key may go to."""
    try:
        given = {provider_name(name): read_base_url(name, url) for name, url in configured.items()}
    except InputError as error:
        raise SettingsError(f"`[base_urls]` in `citejury.toml`: {error}") from error
    return {**{provider.name: provider.base_url for provider in every_provider()}, **given}


def find_key(variables: Iterable[str], environment: Mapping[str, str]) -> str:
    return next((value for name in variables if (value := environment.get(name, "").strip())), "")


class ChosenModel(NamedTuple):
    provider: ProviderName
    model: str
    endpoint: Endpoint
    api: Api

    @property
    def states_cost(self) -> bool:
        """Whether its answers say what they cost."""
        return get_provider(self.provider).states_cost or self.endpoint.base_url == _OPENROUTER_URL


def choose_model(
    environment: Mapping[str, str],
    *,
    model: str = "",
    provider: str = "",
    base_url: str = "",
    base_urls: Mapping[str, str] | None = None,
    apis: Mapping[ProviderName, str] | None = None,
) -> ChosenModel:
    """The model to ask: a provider's, that of any server compatible with Chat Completions, or one of OpenRouter.

    Without a provider, `base_url` is such a server's, and without that it is OpenRouter's. A key is needed but for a
    server on this machine or in its network. `base_urls` and `apis` are the settings of these names.

    Raises:
        InputError: there is no such provider.
        SettingsError: there is no key, the base URL is none that a key may be sent to, or a server has no model named.
    """
    if provider and provider.strip().lower() != _OPENROUTER:
        known = get_provider(provider_name(provider))
        url = read_base_url(known.name, base_url) if base_url else read_base_urls(base_urls or {})[known.name]
        key = _wanted_key(known.key_variables, environment, url)
        api = known.api((apis or {}).get(known.name, ""))
        own = api.json_model or known.apis[0].model
        return ChosenModel(known.name, model or own, known.endpoint(url, key), api)
    url = read_base_url("the model", base_url or _OPENROUTER_URL)
    host = urlsplit(url).hostname or ""
    of_openrouter = bool(provider) or host == urlsplit(_OPENROUTER_URL).hostname
    if not model and not of_openrouter:
        raise SettingsError(f"The server at {host!r} needs the name of a model; give it with `--model`.")
    compatible = get_provider(_COMPATIBLE)
    variable = "OPENROUTER_API_KEY" if of_openrouter else compatible.key_variables[0]
    key = _wanted_key((variable,), environment, url)
    api = compatible.api(_OPENROUTER)
    return ChosenModel(compatible.name, model or api.json_model, compatible.endpoint(url, key, variable), api)


def _wanted_key(variables: tuple[str, ...], environment: Mapping[str, str], url: str) -> str:
    """The key from the first of the variables that is set; empty where none is and the host is near."""
    host = urlsplit(url).hostname or ""
    key = find_key(variables, environment)
    if not key and not is_near(host):
        raise SettingsError(f"There is no key for {host}; set `{variables[0]}`.")
    return key
