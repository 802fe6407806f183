"""A question to a model whose answer is JSON of one schema: asked in the most binding form that its server takes."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

from pipeline.errors import PayloadError, SettingsError
from pipeline.models.completion import (
    CUT_SHORT,
    MAX_ENVELOPES,
    Structured,
    body_content,
    model_content,
    read_structured,
)
from pipeline.providers import provider_name
from pipeline.providers.body import load_body
from pipeline.providers.http.cost import Usage, usage_of
from pipeline.providers.http.endpoint import Endpoint
from pipeline.providers.http.network import Network
from pipeline.providers.options import OpenAIApi
from pipeline.providers.request import (
    DEFAULT_MODELS,
    KEY_VARIABLES,
    is_near,
    read_base_url,
    read_base_urls,
)
from pipeline.providers.request_structured import Form, StructuredQuestion, forms_of, structured_request
from pipeline.schema import AskOptions, ProviderName

Value = TypeVar("Value")

OPENROUTER = "openrouter"
OPENROUTER_URL = "https://openrouter.ai/api/v1"
OPENROUTER_KEY = "OPENROUTER_API_KEY"
OPENROUTER_MODEL = "openai/gpt-oss-120b"
# A preset would search.
PERPLEXITY_MODEL = "perplexity/sonar"

REFUSED_FORM = (400, 422)


class ChosenModel(NamedTuple):
    """Which model is asked, where, and in which of the forms that `openai` has."""

    model: str
    endpoint: Endpoint
    openai_api: OpenAIApi = "responses"


def choose_model(
    environment: Mapping[str, str],
    *,
    model: str = "",
    provider: str = "",
    base_url: str = "",
    base_urls: Mapping[str, str] | None = None,
    openai_api: OpenAIApi = "responses",
) -> ChosenModel:
    """The model to ask: a provider's, that of any server compatible with Chat Completions, or one of OpenRouter.

    Without a provider, `base_url` is such a server's, and without that it is OpenRouter's. A key is needed but for a
    server on this machine or in its network. `base_urls` and `openai_api` are the settings of these names.

    Raises:
        InputError: there is no such provider.
        SettingsError: there is no key, the base URL is none that a key may be sent to, or a server has no model named.
    """
    if provider and provider.strip().lower() != OPENROUTER:
        return choose_of_provider(provider_name(provider), environment, model, base_url, base_urls or {}, openai_api)
    url = read_base_url("the model", base_url or OPENROUTER_URL)
    host = urlsplit(url).hostname or ""
    of_openrouter = bool(provider) or host == urlsplit(OPENROUTER_URL).hostname
    if not model and not of_openrouter:
        raise SettingsError(f"The server at {host!r} needs the name of a model; give it with `--model`.")
    variable = OPENROUTER_KEY if of_openrouter else KEY_VARIABLES["openai"][0]
    key = wanted_key(environment, (variable,), host)
    # Every such server knows OpenRouter's form of Chat Completions.
    return ChosenModel(model or OPENROUTER_MODEL, Endpoint("openai", url, key, variable), "openrouter")


def choose_of_provider(
    provider: ProviderName,
    environment: Mapping[str, str],
    model: str,
    base_url: str,
    base_urls: Mapping[str, str],
    openai_api: OpenAIApi,
) -> ChosenModel:
    """The provider's model at its own address, that of the settings or that of the command.

    Raises:
        SettingsError: there is no key, or the base URL is none that a key may be sent to.
    """
    url = read_base_url(provider, base_url) if base_url else read_base_urls(base_urls)[provider]
    key = wanted_key(environment, KEY_VARIABLES[provider], urlsplit(url).hostname or "")
    own = PERPLEXITY_MODEL if provider == "perplexity" else DEFAULT_MODELS[provider]
    if provider == "openai" and openai_api == "openrouter":
        own = OPENROUTER_MODEL
    return ChosenModel(model or own, Endpoint(provider, url, key), openai_api)


def wanted_key(environment: Mapping[str, str], variables: Iterable[str], host: str) -> str:
    """The key from the first of the variables that is set; empty where none is and the host is near.

    Raises:
        SettingsError: none is set, and the host is not near.
    """
    names = tuple(variables)
    key = next((value for name in names if (value := environment.get(name, "").strip())), "")
    if not key and not is_near(host):
        raise SettingsError(f"There is no key for {host}; set `{names[0]}`.")
    return key


def accept_body(body: Any) -> None:
    """Nothing where a successful response's body may hold an answer: `check` of the network that is asked.

    Raises:
        PayloadError: the body is an error, or says that it failed.
    """
    body_content(body, MAX_ENVELOPES)


class Asks(Protocol):
    """What puts a question to a model: an `Asker`, or what keeps its answers."""

    async def ask(self, prompt: str, system: str, schema: Mapping[str, Any], kept: list[str]) -> str:
        """The payload that answers; it and those before it that held no word are appended to `kept`.

        Raises:
            PayloadError: there is no answer.
        """


class Asker:
    """One model behind a network; remembers which form of asking for JSON its server takes."""

    def __init__(self, network: Network, chosen: ChosenModel, options: AskOptions | None = None) -> None:
        """Nothing is asked yet. The network's `check` is `accept_body`, and it has the chosen endpoint."""
        self.network = network
        self.chosen = chosen
        self.options = options or AskOptions()
        self.forms: tuple[Form, ...] = forms_of(chosen.endpoint.provider)

    async def ask(self, prompt: str, system: str, schema: Mapping[str, Any], kept: list[str]) -> str:
        """The payload that answers; it and those before it that held no word are appended to `kept`.

        A form that the server refuses, or answers with nothing, gives way to the next one, for later questions too.

        Raises:
            PayloadError: there is no answer.
        """
        question = StructuredQuestion(self.chosen.model, system, prompt, schema, self.options)
        for form in self.forms[:-1]:
            try:
                payload = await self.put(question, form, kept)
            except PayloadError as error:
                if error.status not in REFUSED_FORM or error.kind != "bad_response":
                    raise
                continue
            if not says_nothing(payload):
                return payload
        return await self.put(question, self.forms[-1], kept)

    async def put(self, question: StructuredQuestion, form: Form, kept: list[str]) -> str:
        """The payload that answers in this form, appended to `kept`.

        A form in which the model said something is the first one from then on.

        Raises:
            PayloadError: there is no answer.
        """
        provider = self.chosen.endpoint.provider
        request = structured_request(provider, self.chosen.openai_api, question, form)
        payload = (await self.network.put(provider, self.chosen.model, request)).text
        kept.append(payload)
        if form in self.forms and not says_nothing(payload):
            self.forms = self.forms[self.forms.index(form) :]
        return payload


def says_nothing(payload: str) -> bool:
    """Whether the payload holds no word of the model's, although it was not cut short."""
    said = model_content(payload)
    return not said.content.strip() and said.stop_reason.lower() not in CUT_SHORT


async def ask_structured(
    asker: Asks, prompt: str, system: str, schema: Mapping[str, Any], to_value: Callable[[Any], Value]
) -> Structured[Value]:
    """What the model answers as `to_value` reads it, after exactly one repair where that fails; never an exception.

    `payloads` are all that came, in their order; without an answer the status is `http_error`.
    """
    kept: list[str] = []

    async def ask_again(order: str) -> str:
        return await asker.ask(order, system, schema, kept)

    try:
        said = await read_structured(await ask_again(prompt), to_value, ask_again)
    except PayloadError as error:
        said = Structured(None, "http_error", f"provider_error: {error}", ())
    return said._replace(payloads=tuple(kept))


def usage_of_payloads(payloads: Iterable[str]) -> Usage:
    """What the payloads state together: tokens in and out, and the cost where all of them state it."""
    return usage_of([load_body(payload) for payload in payloads])
